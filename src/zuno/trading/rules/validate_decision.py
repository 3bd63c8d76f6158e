"""Check the Judge's decision: menu prices, stop distance, reward/risk, a counter-argument and a supporting expert."""

from typing import Final

from zuno.trading.model.cycle import Blackboard, Call, Decision, Expert, JudgeOpinion
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import Side
from zuno.trading.rules.exits import hold_text
from zuno.trading.rules.inputs import RulingInputs
from zuno.trading.rules.margin import liquidation_distance
from zuno.trading.rules.price_menu import PriceMenu, TradePrices
from zuno.trading.rules.score import board_entries

MIN_STOP_ATR: Final = 0.75
MAX_STOP_ATR: Final = 3.0
"""ATR between entry and stop."""
MIN_REWARD_RISK: Final = 1.0
MAX_REWARD_RISK: Final = 5.0
"""What is to be gained for what is risked."""
MAX_ENTRY_ATR: Final = 1.0
"""ATR between the market and the entry: what lies further away is another trade than the one that was argued."""
MIN_SUPPORT_CONFIDENCE: Final = 0.5
"""The confidence a numeric expert must have to second a direction."""
ROUNDING: Final = 1e-9


def validate_decision(raw: Decision, menu: PriceMenu, inputs: RulingInputs, board: Blackboard) -> Decision:
    """The decision with prices on the menu and signs normalised; a HOLD with its reason if a rule is broken."""
    plain = raw.model_copy(
        update={
            "hold_duration": hold_text(raw.hold_duration, inputs.mode),
            "expected_profit_pct": abs(raw.expected_profit_pct),
            "expected_loss_pct": abs(raw.expected_loss_pct),
        }
    )
    if raw.decision.side is None:
        return _without_prices(plain)
    why = find_objection(raw, menu, inputs, board)
    if why is not None:
        why = f"{raw.why}; {why}" if raw.why else why
        return _without_prices(plain.model_copy(update={"decision": Call.HOLD, "why": why}))
    prices = _snap_prices(raw, raw.decision.side, menu)
    assert isinstance(prices, TradePrices)
    return plain.model_copy(update={"entry_price": prices.entry, "stop_loss": prices.stop, "take_profit": prices.take})


def find_objection(raw: JudgeOpinion, menu: PriceMenu, inputs: RulingInputs, board: Blackboard) -> str | None:
    """Why a LONG or SHORT is invalid and how to fix it; None if it is valid."""
    side = raw.decision.side
    if side is None:
        return None
    if not raw.reasoning.counter_scenario.strip():
        return "counter_scenario is empty: name the strongest argument against the trade, or HOLD"
    prices = _snap_prices(raw, side, menu)
    if isinstance(prices, str):
        return prices
    objection = _check_risk_reward(prices, raw.leverage, inputs) or _check_market_distance(prices, menu.now, inputs)
    if objection is not None or find_supporters(board, side):
        return objection
    return f"no expert that reads numbers looks {side} with a confidence of {MIN_SUPPORT_CONFIDENCE} or more: HOLD"


def _snap_prices(raw: JudgeOpinion, side: Side, menu: PriceMenu) -> TradePrices | str:
    levels: list[float] = []
    for name in ("entry_price", "stop_loss", "take_profit"):
        price = getattr(raw, name)
        level = None if price is None else menu.snap(price)
        if level is None:
            fault = "is missing" if price is None else f"of {price:g} is no level of the menu"
            return f"{name} {fault}: take one from it, or HOLD"
        levels.append(level)
    return TradePrices(side, *levels)


def _check_risk_reward(prices: TradePrices, leverage: int, inputs: RulingInputs) -> str | None:
    side, sign = prices.side, prices.side.sign
    risk, reward = sign * (prices.entry - prices.stop), sign * (prices.take - prices.entry)
    if risk <= 0:
        return f"stop_loss {prices.stop:g} is not behind the entry {prices.entry:g} of a {side}"
    if reward <= 0:
        return f"take_profit {prices.take:g} is not ahead of the entry {prices.entry:g} of a {side}"
    if isinstance(inputs.atr, Missing):
        return f"there is no ATR to hold a stop against ({inputs.atr.reason}): HOLD"
    reach, ratio = risk / inputs.atr, reward / risk
    if not MIN_STOP_ATR - ROUNDING <= reach <= MAX_STOP_ATR + ROUNDING:
        return f"stop_loss is {reach:.2f} ATR from the entry: {MIN_STOP_ATR} to {MAX_STOP_ATR:g} are allowed"
    if not MIN_REWARD_RISK - ROUNDING <= ratio <= MAX_REWARD_RISK + ROUNDING:
        allowed = f"{MIN_REWARD_RISK:g} to {MAX_REWARD_RISK:g} are allowed"
        return f"take_profit offers {ratio:.2f} for each 1 risked: {allowed}"
    if risk / prices.entry >= liquidation_distance(leverage, side):
        most = 100 * liquidation_distance(leverage, side)
        return f"stop_loss lies behind the liquidation at {leverage}×, {most:.1f} % from the entry"
    return None


def _check_market_distance(prices: TradePrices, now: Known[float], inputs: RulingInputs) -> str | None:
    """A trade is opened at the market: one that stands at its stop or target already, or far from it, is none."""
    if isinstance(now, Missing):
        return f"where the market is is not known ({now.reason}): HOLD"
    side, sign = prices.side, prices.side.sign
    if sign * (now - prices.stop) <= 0:
        return f"stop_loss {prices.stop:g} of a {side} is passed already: the market is at {now:g}"
    if sign * (prices.take - now) <= 0:
        return f"take_profit {prices.take:g} of a {side} is reached already: the market is at {now:g}"
    assert not isinstance(inputs.atr, Missing)
    away = abs(prices.entry - now) / inputs.atr
    if away > MAX_ENTRY_ATR + ROUNDING:
        return f"entry_price is {away:.2f} ATR from the market at {now:g}: up to {MAX_ENTRY_ATR:g} is allowed"
    return None


def find_supporters(board: Blackboard, side: Side) -> list[Expert]:
    """The experts that read numbers and second a side with enough confidence."""
    return [
        expert
        for expert, entry in board_entries(board).items()
        if expert.numeric and entry.stance == side.sign and entry.confidence >= MIN_SUPPORT_CONFIDENCE
    ]


def _without_prices(decision: Decision) -> Decision:
    """A call that opens nothing has no prices and no size."""
    nothing = {"entry_price": None, "stop_loss": None, "take_profit": None, "allocation_pct": 0, "leverage": 1}
    return decision.model_copy(update=nothing)
