"""One figure of a bench, as one JSON line that every reader of benches can rely on."""

from __future__ import annotations

import json


def report(name: str, value: float, unit: str, yardstick: float, against: str, bar: float, **more: float) -> bool:
    """Print a value beside its yardstick, measured in the same run; True when their ratio is at most the bar.

    `against` says in words what the yardstick is; `more` are further numbers worth seeing.
    """
    ratio = value / yardstick
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


def _shown(number: float) -> float:
    """Five digits: more would be noise."""
    return float(f"{number:.5g}")
