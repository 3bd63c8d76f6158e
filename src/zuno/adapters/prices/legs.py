"""Which way round a source quotes the pair that was asked for."""

from __future__ import annotations

from zuno.kernel.errors import Unavailable
from zuno.lp.model.market import Pair

_WRAPPED = {"WETH": "ETH"}
"""A wrapped native token redeems one for one in its own contract, so both names have one price."""


def unwrapped(symbol: str) -> str:
    return _WRAPPED.get(symbol, symbol)


def turned_round(asked: Pair, known: Pair, source: str) -> bool:
    """Whether `asked` is `known` upside down; `Unavailable` when it is another pair.

    Exact names win; failing that, WETH counts as ETH. (In an ETH/WETH pool only exact names tell the legs apart.)
    """
    for name in (str, unwrapped):
        base, quote = name(asked.base), name(asked.quote)
        if (base, quote) == (name(known.base), name(known.quote)):
            return False
        if (base, quote) == (name(known.quote), name(known.base)):
            return True
    raise Unavailable(f"{source} prices {known}, not {asked}")
