"""Records of before there was a third venue: what they called otherwise, in the words of now."""

from typing import Any

from zuno.markets.venues import DEFAULT_VENUES


def read_older_cash(content: Any) -> Any:
    """`usd` and `krw` as cash of the two venues there were."""
    if not isinstance(content, dict) or "usd" not in content or "cash" in content:
        return content
    cash = dict(zip(map(str, DEFAULT_VENUES), (content["usd"], content.get("krw")), strict=True))
    return {**{name: value for name, value in content.items() if name not in ("usd", "krw")}, "cash": cash}


def read_older_fees(content: Any) -> Any:
    """A rate of each name as rates by venue."""
    if not isinstance(content, dict) or "binanceMaker" not in content:
        return content
    futures = {"maker": content["binanceMaker"], "taker": content.get("binanceTaker")}
    spot = dict.fromkeys(("maker", "taker"), content.get("upbit"))
    return {"fees": dict(zip(map(str, DEFAULT_VENUES), (futures, spot), strict=True))}


def read_older_day(content: Any) -> Any:
    """Figures of a day in dollars and won as figures by currency."""
    if not isinstance(content, dict) or "netUsd" not in content:
        return content
    names = ("net", "fees", "funding", "cash")
    older = {f"{name}{currency}": name for name in names for currency in ("Usd", "Krw")}
    day = {name: value for name, value in content.items() if name not in older}
    for key, name in older.items():
        if key in content:
            day.setdefault(name, {})[key.removeprefix(name).upper()] = content[key]
    return day
