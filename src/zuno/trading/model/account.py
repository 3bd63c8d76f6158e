"""What the trading desk holds as it is written down: in the slots of a bundle, and in entries by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import Field, ValidationError, model_validator

from zuno.kernel.canonical import Json, canonical, to_json
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Millis
from zuno.kernel.wire import Wire
from zuno.markets.market import Market, Symbol
from zuno.markets.older import read_older_cash, read_older_fees
from zuno.markets.routes import Routes
from zuno.markets.venues import Venue
from zuno.trading.model.bundle import Slot
from zuno.trading.model.known import derive
from zuno.trading.model.market import Side

S = TypeVar("S", bound=Wire)
POSITIONS: Final = "positions"
EQUITY: Final = "equity"
"""The two slots of a bundle that hold the account."""
FEES: Final = "fees"
"""The slot of what the exchanges take, where it is not what they usually do."""
MARKETS: Final = "markets"
"""The slot of the markets' rules and of the routes, where they are not the built-in ones."""

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Above = Annotated[float, Field(gt=0)]
NotBelow = Annotated[float, Field(ge=0)]
Fee = Annotated[float, Field(ge=0, le=5)]
Leverage = Annotated[float, Field(ge=1)]
Timestamp = Annotated[Millis, Field(ge=0, lt=2**53)]


class Holding(Wire):
    """An open position. Prices and margin are in the exchange's own currency."""

    id: Id
    symbol: Symbol
    exchange: Venue
    side: Side
    quantity: Above
    """Of the base currency."""
    entry: Above
    leverage: Leverage
    opened: Timestamp
    stop: Above | None = None
    take: Above | None = None
    hold: Annotated[str | None, Field(pattern=r"^[0-9]{1,3}[hdw]$", exclude_if=lambda hold: hold is None)] = None
    """How long it is held at most, such as 5d. Absent means no end, as in records from before."""
    leaves: Annotated[float | None, Field(exclude_if=lambda quantity: quantity is None)] = None
    """What of it leaves at the target, where the rest runs on."""
    levels_since: Annotated[Timestamp | None, Field(exclude_if=lambda since: since is None)] = None
    """Of both levels, in records of editions before the ninth."""
    stop_since: Annotated[Timestamp | None, Field(exclude_if=lambda since: since is None)] = None
    """When the stop was set; None: it stands since the opening. Bars of before touched another one."""
    take_since: Annotated[Timestamp | None, Field(exclude_if=lambda since: since is None)] = None
    """When the target was set, likewise."""

    @property
    def margin(self) -> float:
        return self.quantity * self.entry / self.leverage


class RestingOrder(Wire):
    """An order that waits for its price. A reduce-only one closes and adds nothing."""

    id: Id
    symbol: Symbol
    exchange: Venue
    side: Side
    quantity: Above
    price: Above
    leverage: Leverage
    placed: Timestamp
    reduce_only: bool = False

    @property
    def margin(self) -> float:
        return 0.0 if self.reduce_only else self.quantity * self.price / self.leverage


class Liquidity(Wire):
    """How much of a base currency the owner's liquidity positions hold: it moves with the price like any other."""

    symbol: Symbol
    quantity: NotBelow


class SleeveExposure(Wire):
    """What sleeves beside the debate have of a symbol. Below zero is short."""

    symbol: Symbol
    held: float
    adding: float
    """Of orders that would add to it."""
    gross: NotBelow
    """Each sleeve's net by its size, and what would be added: legs of one sleeve are netted, sleeves are not."""


class OtherSleeves(Wire):
    """The sleeves of an account beside the debate, which limits of the whole account count."""

    cash: dict[str, float]
    """By currency, margin included, less their perpetuals at entry: with what is held at its mark, their equity."""
    exposures: tuple[SleeveExposure, ...] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """Everything that the debate held at a moment, strictly before it."""

    cash: Mapping[Venue, float]
    """By venue, in its currency: margin of open positions included, profits that are not taken excluded; what was
    bought at a spot venue is not in it."""
    positions: tuple[Holding, ...] = ()
    pending: tuple[RestingOrder, ...] = ()
    liquidity: tuple[Liquidity, ...] = ()
    others: OtherSleeves | None = None

    def __hash__(self) -> int:
        return hash((tuple(self.cash.items()), self.positions, self.pending, self.liquidity))


class PositionsSlot(Wire):
    """Everything that moves with the market."""

    positions: tuple[Holding, ...]
    pending: tuple[RestingOrder, ...]
    liquidity: tuple[Liquidity, ...]
    unread: str | None = None
    """Why the liquidity positions of the owner's wallet could not be read, where there may be some."""
    notes: tuple[str, ...] = ()
    others: Annotated[OtherSleeves | None, Field(exclude_if=lambda others: others is None)] = None
    """Absent means that the debate is all there is."""


class EquitySlot(Wire):
    """Cash by venue, as `Account` counts it."""

    cash: dict[Venue, float]

    @model_validator(mode="before")
    @classmethod
    def _read_older(cls, content: Any) -> Any:
        return read_older_cash(content)


class VenueFees(Wire):
    maker: Fee
    taker: Fee


class FeesSlot(Wire):
    """What venues take of a notional, in per cent."""

    fees: dict[Venue, VenueFees]

    @model_validator(mode="before")
    @classmethod
    def _read_older(cls, content: Any) -> Any:
        return read_older_fees(content)


class AccountEvent(Wire):
    """Something that happened to an account, and when."""

    at: Timestamp


# -- entries by hand


class PositionOpened(AccountEvent):
    kind: Literal["opened"] = "opened"
    position: Holding
    fee: NotBelow


class PositionClosed(AccountEvent):
    """A position that was closed whole."""

    kind: Literal["closed"] = "closed"
    id: Id
    price: Above
    fee: NotBelow


class OrderPlaced(AccountEvent):
    kind: Literal["rested"] = "rested"
    order: RestingOrder


class OrderCancelled(AccountEvent):
    kind: Literal["cancelled"] = "cancelled"
    id: Id


class LiquidityStated(AccountEvent):
    """How much of a base currency the owner says to hold in liquidity positions, whatever was said before."""

    kind: Literal["liquidity"] = "liquidity"
    symbol: Symbol
    quantity: NotBelow


BookChange = PositionOpened | PositionClosed | OrderPlaced | OrderCancelled | LiquidityStated


def account_slots(
    account: Account, as_of: Millis, source: str = "account", unread: str | None = None, notes: Sequence[str] = ()
) -> list[Slot]:
    """The account as slots of a bundle. `unread`: why the wallet's liquidity could not be read."""
    held, cash = derive(PositionsSlot, account, unread=unread, notes=tuple(notes)), derive(EquitySlot, account)
    return [Slot(POSITIONS, to_json(held), as_of, source), Slot(EQUITY, to_json(cash), as_of, source)]


def read_slot(shape: type[S], content: Json, what: str) -> S:
    """The content of a slot. `Malformed` for anything that was not written from this shape."""
    try:
        return shape.model_validate_json(canonical(content), strict=True)
    except ValidationError as error:
        raise Malformed(f"This is no record of {what} ({error.error_count()} flaws).") from error


class MarketsSlot(Wire):
    """The markets a run may use by their rules, and its routes."""

    markets: tuple[Market, ...]
    routes: dict[str, dict[Venue, float]]


def markets_slot(markets: Iterable[Market], routes: Routes, as_of: Millis) -> Slot:
    content = MarketsSlot(markets=tuple(markets), routes={name: dict(way) for name, way in routes.shares.items()})
    return Slot(MARKETS, to_json(content), as_of, "catalogue")


def fees_slot(fees: FeesSlot, as_of: Millis) -> Slot:
    return Slot(FEES, to_json(fees), as_of, "settings")
