"""What every price feed shares: the hours it answers for, what is missing of them, and which way round a pair is."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Seconds
from zuno.lp.model.market import HOUR, Fact, Pair, PricePoint, PriceSeries

_WRAPPED = {"WETH": "ETH"}
"""A wrapped native token redeems one for one in its own contract, so both names have one price."""


def unwrap_symbol(symbol: str) -> str:
    return _WRAPPED.get(symbol, symbol)


def is_inverse(asked: Pair, known: Pair, source: str) -> bool:
    """Whether `asked` is `known` upside down; `Unavailable` when it is another pair.

    Exact names win; failing that, WETH counts as ETH. (In an ETH/WETH pool only exact names tell the legs apart.)
    """
    for name in (str, unwrap_symbol):
        base, quote = name(asked.base), name(asked.quote)
        if (base, quote) == (name(known.base), name(known.quote)):
            return False
        if (base, quote) == (name(known.quote), name(known.base)):
            return True
    raise Unavailable(f"{source} prices {known}, not {asked}")


HISTORY_LIMIT = Seconds(2 * HOUR)
"""The last close is at most an hour old when it comes; one missed hour more and the history is stale."""

SPOT_LIMIT = Seconds(600)


def window(hours: int, now: Seconds) -> range:
    """The times of the last `hours` closes by `now`, oldest first. The running hour has no close."""
    if hours < 1:
        raise ValueError(f"a price history of {hours} hours")
    last = now // HOUR * HOUR
    return range(last - (hours - 1) * HOUR, last + 1, HOUR)


def history_fact(
    closes: Mapping[int, Fraction],
    pair: Pair,
    hours: int,
    now: Seconds,
    source: str,
    limit: Seconds,
    notes: tuple[str, ...] = (),
) -> Fact[PriceSeries]:
    """Those of `closes` that the window asks for, its missing hours counted; `Unavailable` when none is left."""
    wanted = window(hours, now)
    points = tuple(PricePoint(Seconds(at), closes[at]) for at in wanted if at in closes)
    if not points:
        known = f"; its last close is dated {max(closes)}" if closes else ""
        raise Unavailable(f"{source} has no hourly close of {pair} from {wanted[0]} to {wanted[-1]}{known}")
    series = PriceSeries(pair, points, gaps=hours - len(points))
    return Fact(series, source, points[-1].at, now, limit, notes)
