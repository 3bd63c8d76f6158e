"""What was put right in a pool's rows, in words."""

from __future__ import annotations

from zuno.lp.model.minutes import MinuteRepairs


def describe_repairs(repairs: MinuteRepairs) -> str:
    return (
        f"{repairs.rows:,} rows in {repairs.files} files. Put right: {repairs.sorted_rows} out of order, "
        f"{repairs.repeated} repeated, {repairs.contradicted} contradicted (the first stands), {repairs.widened} with "
        f"open or close outside of lowest and highest. Nothing traded where a row is missing: {repairs.missing} "
        f"minutes, whole days: {', '.join(repairs.missing_days) or 'none'}. Without liquidity, so without fees: "
        f"{repairs.without_liquidity} rows."
    )
