"""Venues: places that take orders, each with one kind of market, one currency and one wallet. Whoever handles an order
asks a venue what it can do, never what it is called; a new venue is a row here and a wire in `adapters/venues/orders`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from zuno.kernel.errors import UsageError
from zuno.kernel.text import plain_text


class Kind(StrEnum):
    SPOT = "spot"
    PERPETUAL = "perp"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Capabilities:
    label: str
    house: str
    """The company's name in full names of markets: `house:BASE/QUOTE`."""
    feed: str
    """The name its series carry."""
    kind: Kind
    quote: str = "USDT"
    """What its markets are priced in."""
    currency: str = "USD"
    """What its money is counted in; a stable coin of a dollar that everybody takes for one is a dollar."""
    maker: float
    taker: float
    """Usual fees in per cent of the notional."""
    shorts: bool = True
    holds_stops: bool = True
    """False: the desk watches stops itself."""
    reduce_only: bool = True
    funding_hours: int = 0
    """Between two payments of funding, where the venue's list does not say; 0: it settles none."""
    agent_key: bool = False
    """Orders are signed by a key that the wallet named for it, never by the wallet's own."""
    sandbox: bool = False
    """It has demo trading."""
    wallet: str
    """Venues with one wallet share their cash."""
    fee_in_base: bool = False
    """What is bought arrives less the fee."""
    cash_decimals: int = 2
    margin_cap: float = 2_000.0
    """Most margin over open, pending and new, in its currency."""
    paper_cash: Decimal = Decimal(2_000)
    """What a paper account begins with."""
    least_notional: float = 5.0
    """Of an order, where the venue's list is not at hand."""
    form: str = "{base}{quote}"
    """How its series name a market."""
    beside: bool = True
    """Its series of a coin are read for every market of that coin, else for its own markets alone."""
    long_short: bool = False
    forced: bool = False
    large: bool = False
    """Its stream of large trades is listened to."""
    units: bool = False
    """It lists coins by the thousand (1000PEPE) as the default venue does."""
    quiet: bool = False
    """It makes no bar without a trade, so a bar that is not there may be no gap."""
    kept_days: Mapping[str, int] = field(default_factory=dict)
    """How long it keeps a kind of series, less a day; all others for ever."""

    @property
    def spot(self) -> bool:
        return self.kind is Kind.SPOT


class Name(str):
    """A text that names one object: equal texts are the same object, and records hold the text."""

    def __reduce__(self) -> tuple[type[Name], tuple[str]]:
        return type(self), (str(self),)

    @property
    def value(self) -> str:
        return str(self)

    @classmethod
    def list_names(cls) -> list[str]:
        """All there are; none where they cannot be listed."""
        return []

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        names = cls.list_names()
        text = core_schema.literal_schema(names) if names else core_schema.str_schema(min_length=2, max_length=60)
        return core_schema.no_info_after_validator_function(
            cls, text, serialization=core_schema.to_string_ser_schema(when_used="always")
        )


class Venue(Name, Capabilities):
    """One of `VENUES` by its name, as records spell it. `ValueError` for any other name."""

    def __new__(cls, name: str) -> Venue:
        try:
            return _ROWS[name]
        except KeyError:
            raise ValueError(f"no venue of this name; there are {', '.join(_ROWS)}") from None

    def __init__(self, name: str) -> None:
        pass  # made once, below

    @classmethod
    def list_names(cls) -> list[str]:
        return list(map(str, _ROWS))


_ROWS: Final[dict[str, Venue]] = {}


def _define(name: str, **capabilities: Any) -> Venue:
    venue = str.__new__(Venue, name)
    Capabilities.__init__(venue, **capabilities)
    _ROWS[name] = venue
    return venue


_SPOT: Final[dict[str, Any]] = {
    "kind": Kind.SPOT, "shorts": False, "reduce_only": False, "fee_in_base": True
}  # fmt: skip
_READ: Final[dict[str, Any]] = {"long_short": True, "forced": True}
_define(
    "BINANCE", label="Binance USDⓈ-M futures", house="binance", feed="binance", kind=Kind.PERPETUAL, maker=0.02,
    taker=0.05, funding_hours=8, sandbox=True, wallet="binance futures", **_READ, large=True, units=True,
    kept_days={"open_interest": 29, "long_short": 29},
)  # fmt: skip
_define(
    "UPBIT", label="Upbit spot", house="upbit", feed="upbit", **_SPOT | {"fee_in_base": False}, quote="KRW",
    currency="KRW", maker=0.05, taker=0.05, holds_stops=False, wallet="upbit", cash_decimals=0,
    margin_cap=2_000_000.0, paper_cash=Decimal(2_000_000), least_notional=5_000.0,
    form="{quote}-{base}", quiet=True,
)  # fmt: skip
_define(
    "BINANCE-SPOT", label="Binance spot", house="binance", feed="binance-spot", **_SPOT, maker=0.1, taker=0.1,
    wallet="binance spot",
)  # fmt: skip
_define(
    "BYBIT", label="Bybit linear perpetuals", house="bybit", feed="bybit", kind=Kind.PERPETUAL, maker=0.02, taker=0.055,
    funding_hours=8, sandbox=True, wallet="bybit", **_READ, units=True,
)  # fmt: skip
_define(
    "BYBIT-SPOT", label="Bybit spot", house="bybit", feed="bybit-spot", **_SPOT, maker=0.1, taker=0.1, sandbox=True,
    wallet="bybit",
)  # fmt: skip
_define(
    "OKX", label="OKX swaps", house="okx", feed="okx", kind=Kind.PERPETUAL, maker=0.02, taker=0.05, funding_hours=8,
    sandbox=True, wallet="okx", **_READ, kept_days={"open_interest": 29, "long_short": 29, "funding": 89},
)  # fmt: skip
_define(
    "OKX-SPOT", label="OKX spot", house="okx", feed="okx-spot", **_SPOT, maker=0.08, taker=0.1, sandbox=True,
    wallet="okx",
)  # fmt: skip
_define(
    "HYPERLIQUID", label="Hyperliquid perpetuals", house="hyperliquid", feed="hyperliquid", kind=Kind.PERPETUAL,
    quote="USDC", currency="USDC", maker=0.015, taker=0.045, funding_hours=1, sandbox=True, wallet="hyperliquid",
    least_notional=10.0, agent_key=True, beside=False, units=True, kept_days={"open_interest": 0},
)  # fmt: skip

VENUES: Final = tuple(_ROWS.values())
DEFAULT_VENUES: Final = VENUES[:2]
"""Those of the routes that a desk has without settings."""
DEFAULT_VENUE: Final = VENUES[0]
"""Whose perpetual a short name such as BTCUSDT means."""


def venue_of(house: str, kind: Kind) -> Venue | None:
    return next((venue for venue in VENUES if venue.house == house and venue.kind is kind), None)


def find_near(name: str, names: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    from difflib import get_close_matches  # only on the way to an error

    return get_close_matches(name, list(names), n=most, cutoff=cutoff)


def parse_venue(text: str) -> Venue:
    """A venue by what a person writes: `binance`, `bybit-spot`."""
    name = plain_text(text, 40).strip().upper()
    if name in _ROWS:
        return _ROWS[name]
    near = find_near(name, _ROWS, cutoff=0.5)
    hint = f"did you mean {near[0].lower()}? " if near else ""
    raise UsageError(f"{name.lower()!r} is no venue; {hint}there are {', '.join(_ROWS).lower()}.")


def sort_venues(several: Iterable[Venue]) -> tuple[Venue, ...]:
    """Each once, in the order of the table."""
    named = set(several)
    return tuple(venue for venue in VENUES if venue in named)
