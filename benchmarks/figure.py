"""One figure of a bench, as one JSON line that every reader of benches can rely on."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Sequence


def report(
    name: str,
    value: float,
    unit: str,
    yardstick: float,
    against: str,
    bar: float,
    *,
    ratio: float | None = None,
    **more: float,
) -> bool:
    """Print a value beside its yardstick, measured in the same run; True when their ratio is at most the bar.

    `against` says in words what the yardstick is; `more` are further numbers worth seeing.
    """
    ratio = value / yardstick if ratio is None else ratio
    line = {
        "name": name,
        "value": _shown(value),
        "unit": unit,
        "yardstick": _shown(yardstick),
        "against": against,
        "ratio": _shown(ratio),
        "bar": _shown(bar),
        "ok": ratio <= bar,
        **more,
    }
    print(json.dumps(line, ensure_ascii=False), flush=True)
    return ratio <= bar


def report_pairs(name: str, pairs: Sequence[tuple[float, float]], against: str, bar: float, **more: float) -> bool:
    """Print the medians of milliseconds that were measured by turns with their yardstick's. The ratio that counts is
    the median of the pairs': what slows a machine down for a while slows both of a pair."""
    value, yardstick = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    return report(name, value, f"ms, p50 of {len(pairs)}", yardstick, against, bar, ratio=ratio, **more)


def settle_disk() -> None:
    """Wait until what was written before is on the disk: a journal that flushes would wait for it, a yardstick not."""
    os.sync()


def _shown(number: float) -> float:
    """Five digits: more would be noise."""
    return float(f"{number:.5g}")
