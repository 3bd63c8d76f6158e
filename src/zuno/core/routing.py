"""Where a trade goes and how it is worked: exchanges by direction and leverage, each leg within its room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, fsum
from typing import Final

from zuno.core.account import Standing
from zuno.core.known import Known, Missing
from zuno.core.terms import Terms
from zuno.domain.cycle import Call, Exchange, Style, Target
from zuno.domain.trading import Mode, Side, Symbol
from zuno.messages.cycle import Leg

CAPS: Final[Mapping[Exchange, float]] = {Exchange.UPBIT: 2_000_000.0, Exchange.BINANCE: 2_000.0}
"""Margin over open, pending and new, in the exchange's own currency."""
GRAIN: Final[Mapping[Exchange, int]] = {Exchange.UPBIT: 1, Exchange.BINANCE: 100}
"""Parts of a unit of its currency that money is kept in."""
COSTS: Final = (Style.PASSIVE_MAKER, Style.SMART_DCA, Style.MOMENTUM_SNIPER, Style.CASINO_EXIT)
"""The cheapest first."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A leg that is smaller than it was meant to be."""

    exchange: Exchange
    meant: float
    left: float
    why: str


@dataclass(frozen=True, slots=True)
class Placed:
    """The legs that can be carried, and what was taken from them by which reason."""

    legs: tuple[Leg, ...]
    topped: tuple[Cut, ...]
    """Part of it is held already."""
    capped: tuple[Cut, ...]
    """The exchange's room is used up."""
    lost: tuple[Cut, ...]
    """The leg cannot be placed at all."""


def route(call: Call, leverage: float, mode: Mode) -> Target:
    """SHORT or borrowed → BINANCE; a LONG of one's own money → UPBIT in POSITION, half each in SWING."""
    if call is Call.SHORT or leverage > 1:
        return Target.BINANCE
    return Target.UPBIT if mode is Mode.POSITION else Target.SPLIT


def exchanges(target: Target) -> tuple[Exchange, ...]:
    return (Exchange.BINANCE, Exchange.UPBIT) if target is Target.SPLIT else (Exchange(target.value),)


def target_of(several: tuple[Exchange, ...]) -> Target | None:
    named = sorted(set(several))
    return None if not named else Target(named[0].value) if len(named) == 1 else Target.SPLIT


def style_of(terms: Terms) -> Style:
    """A true breakout is caught, a restless market entered in parts, a calm one waited for; what is not known to be
    calm is restless, so that not knowing never makes a trade cheaper."""
    if terms.breakout is True:
        return Style.MOMENTUM_SNIPER
    return Style.PASSIVE_MAKER if terms.breakout is False and terms.restless is False else Style.SMART_DCA


def cheaper(one: Style, other: Style) -> Style:
    return min(one, other, key=COSTS.index)


def place(side: Side, allocation_pct: float, leverage: float, target: Target, terms: Terms) -> Placed:
    """Each exchange's part of the allocation, of its own equity, less its part of what is held of the symbol that way
    already, within its cap. A leg that cannot be carried is dropped and never moved."""
    several = exchanges(target)
    placed = Placed((), (), (), ())
    account = terms.standing
    if isinstance(account, Missing):
        return placed
    share = allocation_pct / 100 / len(several)
    meant = {one: _leg(one, side, share * max(0.0, account.equity.get(one, 0.0)), leverage) for one in several}
    new = _new_share(fsum(usd_of(leg, terms.won) for leg in meant.values()), _held_usd(account, terms.symbol, side))
    for leg in meant.values():
        placed = _one(placed, leg, new, account, terms.won)
    return placed


def usd_of(leg: Leg, won: Known[float]) -> float:
    """The notional in dollars; a leg in won that nobody can convert is none."""
    if leg.venue is Exchange.BINANCE:
        return leg.notional
    return 0.0 if isinstance(won, Missing) else leg.notional / won


def sized(leg: Leg, margin: float) -> Leg:
    """The same leg with that margin, in whole parts of its currency, rounded down."""
    kept = floored(margin, leg.venue)
    return leg.model_copy(update={"margin": kept, "notional": kept * leg.leverage})


def floored(money: float, exchange: Exchange) -> float:
    grain = GRAIN[exchange]
    # What a double falls short of a whole part by is no part.
    return floor(max(0.0, money) * grain + 1e-9) / grain


def percent_of(legs: tuple[Leg, ...], account: Known[Standing]) -> float:
    """Margin as a percentage of the equity that carries it; halves add up."""
    if isinstance(account, Missing):
        return 0.0
    return fsum(100 * leg.margin / account.equity[leg.venue] for leg in legs if account.equity[leg.venue] > 0)


def _leg(exchange: Exchange, side: Side, margin: float, leverage: float) -> Leg:
    """Spot is never borrowed for."""
    borrowed = float(leverage) if exchange is Exchange.BINANCE else 1.0
    currency = exchange.currency
    return Leg(
        venue=exchange, side=side, currency=currency, margin=margin, notional=margin * borrowed, leverage=borrowed
    )


def _new_share(whole_usd: float, held_usd: float) -> float:
    """How much of a trade is not held yet. Sizes are compared, for margin says nothing of what a stop costs; and all of
    both at once, for what one exchange holds the other need not buy."""
    if held_usd <= 0:
        return 1.0
    return max(0.0, 1 - held_usd / whole_usd) if whole_usd > 0 else 0.0


def _one(placed: Placed, leg: Leg, share: float, account: Standing, won: Known[float]) -> Placed:
    topped, capped, lost = placed.topped, placed.capped, placed.lost
    exchange, meant = leg.venue, leg.margin
    if exchange is Exchange.UPBIT and (leg.side is Side.SHORT or isinstance(won, Missing)):
        why = "spot cannot be sold short" if leg.side is Side.SHORT else "the won is not known"
        return Placed(placed.legs, topped, capped, (*lost, Cut(exchange, meant, 0.0, why)))
    new = meant * share
    if new < meant:
        topped = (*topped, Cut(exchange, meant, new, "part of it is held already"))
    used, equity = account.margin[exchange].total, account.equity[exchange]
    room = min(CAPS[exchange], equity) - used
    if room < new:
        why = f"{used:,.2f} {exchange.currency} of at most {min(CAPS[exchange], equity):,.2f} are used"
        capped = (*capped, Cut(exchange, new, max(0.0, room), why))
    leg = sized(leg, min(new, room))
    return Placed((*placed.legs, leg) if leg.margin > 0 else placed.legs, topped, capped, lost)


def _held_usd(account: Standing, symbol: Symbol, side: Side) -> float:
    """What is held of the symbol that way, wherever it is, at its mark: orders that would add to it included."""
    position = account.position
    sizes = [] if position is None or position.side is not side else [one.quantity for one in position.holdings]
    sizes += [one.quantity for one in account.pending if one.side is side and not one.reduce_only]
    return fsum(sizes) * account.marks[symbol]
