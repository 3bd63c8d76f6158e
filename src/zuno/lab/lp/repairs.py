"""What was put right in a pool's rows, in words."""

from __future__ import annotations

from zuno.lp.model.minutes import MinuteRepairs


def describe_repairs(repairs: MinuteRepairs) -> str:
    return (
        f"{repairs.rows:,} rows in {repairs.files} files. Put right: {repairs.sorted_rows} out of order, "
        f"{repairs.repeated} repeated, {repairs.contradicted} contradicted (the first stands), {repairs.widened} with "
        f"open or close outside of lowest and highest. {repairs.missing} minutes without a row (nothing traded), days "
        f"missing: {', '.join(repairs.missing_days) or 'none'}; {repairs.without_liquidity} rows without liquidity."
    )
