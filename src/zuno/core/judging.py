"""The Judge held to the rules: prices of the menu, a stop and a target in proportion, a counter-argument, a second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from zuno.core.board import entries
from zuno.core.known import Known, Missing
from zuno.core.menu import Menu
from zuno.core.terms import Terms, hold_text
from zuno.domain.cycle import Call
from zuno.domain.trading import Side
from zuno.messages.cycle import Blackboard, Decision

NEAREST_STOP: Final = 0.75
FURTHEST_STOP: Final = 3.0
"""ATR between entry and stop."""
LEAST_REWARD: Final = 1.0
MOST_REWARD: Final = 5.0
"""What is to be won for what is risked."""
FURTHEST_ENTRY: Final = 1.0
"""ATR between the market and the entry: what lies further away is another trade than the one that was argued."""
SECOND: Final = 0.5
"""The confidence a numeric expert must have to second a direction."""
MAINTENANCE: Final = 0.005
"""The share of its notional below which a position is liquidated."""
ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class _Prices:
    entry: float
    stop: float
    take: float


def validated(raw: Decision, menu: Menu, terms: Terms, board: Blackboard) -> Decision:
    """The decision as it may stand: prices of the menu, signs and duration normalised; a HOLD with its reason where a
    rule is broken. An exit needs nothing."""
    plain = raw.model_copy(
        update={
            "hold_duration": hold_text(raw.hold_duration, terms.mode),
            "expected_profit_pct": abs(raw.expected_profit_pct),
            "expected_loss_pct": abs(raw.expected_loss_pct),
        }
    )
    if raw.decision.side is None:
        return _priceless(plain)
    why = objection(raw, menu, terms, board)
    if why is not None:
        return _priceless(plain.model_copy(update={"decision": Call.HOLD, "why": _joined(raw.why, why)}))
    prices = _snapped(raw, menu)
    assert isinstance(prices, _Prices)
    return plain.model_copy(update={"entry_price": prices.entry, "stop_loss": prices.stop, "take_profit": prices.take})


def objection(raw: Decision, menu: Menu, terms: Terms, board: Blackboard) -> str | None:
    """What keeps a LONG or SHORT from standing, in words that say how to mend it."""
    side = raw.decision.side
    if side is None:
        return None
    if not raw.reasoning.counter_scenario.strip():
        return "counter_scenario is empty: name the strongest argument against the trade, or HOLD"
    prices = _snapped(raw, menu)
    if isinstance(prices, str):
        return prices
    return (
        _disproportion(prices, side, raw.leverage, terms)
        or _elsewhere(prices, side, menu.now, terms)
        or _unseconded(side, board)
    )


def liquidation_distance(leverage: float, side: Side) -> float:
    """As a share of the entry. What a SHORT has to keep grows with the price that runs against it."""
    distance = 1 / leverage - MAINTENANCE
    return distance if side is Side.LONG else distance / (1 + MAINTENANCE)


def _snapped(raw: Decision, menu: Menu) -> _Prices | str:
    found: list[float] = []
    for name in ("entry_price", "stop_loss", "take_profit"):
        price = getattr(raw, name)
        level = None if price is None else menu.snap(price)
        if level is None:
            said = "is missing" if price is None else f"of {price:g} is no level of the menu"
            return f"{name} {said}: take one from it, or HOLD"
        found.append(level)
    return _Prices(*found)


def _disproportion(prices: _Prices, side: Side, leverage: int, terms: Terms) -> str | None:
    sign = 1 if side is Side.LONG else -1
    risk, reward = sign * (prices.entry - prices.stop), sign * (prices.take - prices.entry)
    if risk <= 0:
        return f"stop_loss {prices.stop:g} is not behind the entry {prices.entry:g} of a {side}"
    if reward <= 0:
        return f"take_profit {prices.take:g} is not ahead of the entry {prices.entry:g} of a {side}"
    if isinstance(terms.atr, Missing):
        return f"there is no ATR to hold a stop against ({terms.atr.reason}): HOLD"
    reach, ratio = risk / terms.atr, reward / risk
    if not NEAREST_STOP - ROUNDING <= reach <= FURTHEST_STOP + ROUNDING:
        return f"stop_loss is {reach:.2f} ATR from the entry: {NEAREST_STOP} to {FURTHEST_STOP:g} are allowed"
    if not LEAST_REWARD - ROUNDING <= ratio <= MOST_REWARD + ROUNDING:
        return f"take_profit offers {ratio:.2f} for each 1 risked: {LEAST_REWARD:g} to {MOST_REWARD:g} are allowed"
    if risk / prices.entry >= liquidation_distance(leverage, side):
        most = 100 * liquidation_distance(leverage, side)
        return f"stop_loss lies behind the liquidation at {leverage}×, {most:.1f} % from the entry"
    return None


def _elsewhere(prices: _Prices, side: Side, now: Known[float], terms: Terms) -> str | None:
    """A trade is opened at the market: one that stands stopped or won already, or far from it, is none."""
    if isinstance(now, Missing):
        return f"where the market is is not known ({now.reason}): HOLD"
    sign = 1 if side is Side.LONG else -1
    if sign * (now - prices.stop) <= 0:
        return f"stop_loss {prices.stop:g} of a {side} is passed already: the market is at {now:g}"
    if sign * (prices.take - now) <= 0:
        return f"take_profit {prices.take:g} of a {side} is reached already: the market is at {now:g}"
    assert not isinstance(terms.atr, Missing)
    away = abs(prices.entry - now) / terms.atr
    if away > FURTHEST_ENTRY + ROUNDING:
        return f"entry_price is {away:.2f} ATR from the market at {now:g}: up to {FURTHEST_ENTRY:g} is allowed"
    return None


def _unseconded(side: Side, board: Blackboard) -> str | None:
    stance = 1 if side is Side.LONG else -1
    for expert, entry in entries(board).items():
        if expert.numeric and entry.stance == stance and entry.confidence >= SECOND:
            return None
    return f"no expert that reads numbers looks {side} with a confidence of {SECOND} or more: HOLD"


def _priceless(decision: Decision) -> Decision:
    """What opens nothing has no prices and no size."""
    nothing = {"entry_price": None, "stop_loss": None, "take_profit": None, "allocation_pct": 0, "leverage": 1}
    return decision.model_copy(update=nothing)


def _joined(said: str, why: str) -> str:
    return f"{said}; {why}" if said else why
