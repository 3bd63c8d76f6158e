"""A calm market, a plain account and a decision worth taking: what the rules of the trading desk are told."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from tests.wire.accounts import build_account, build_fees, won_rates
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.measure.bars import Bars
from zuno.trading.model.account import Account, Holding, Liquidity, RestingOrder
from zuno.trading.model.cycle import (
    Blackboard,
    Call,
    Decision,
    DirectiveOpinion,
    Expert,
    JudgeKind,
    LiquidityEntry,
    MacroEntry,
    Meta,
    MicrostructureEntry,
    Reasoning,
    Regime,
    RiskBias,
)
from zuno.trading.model.known import Known
from zuno.trading.model.market import HOUR_MS, Mode, Side, Timeframe
from zuno.trading.model.memory import Calibration, DeskRecord
from zuno.trading.rules.account import MarkedAccount, mark_to_market
from zuno.trading.rules.draft import RulingDraft, Tightening
from zuno.trading.rules.inputs import FeeRates, RulingInputs, Slippage
from zuno.trading.rules.price_menu import MenuLevel, PriceMenu
from zuno.trading.rules.risk_rules import apply_risk_rules
from zuno.trading.rules.ruling import apply_leverage_guard, start_draft

NOW = Millis(1_767_225_600_000)
PRICE = 100.0
WON = 1_400.0
CASH = build_account(usd=2_000.0, krw=2_000_000.0)
PROVEN = DeskRecord(
    calibrations=tuple(
        Calibration(judge=judge, n=10**6, edge_gain=1e4, edge_squared=1e4, edge_variance=2e3) for judge in JudgeKind
    )
)
"""So many trades came out as they were claimed to that a claimed edge counts nearly whole."""
FREE: dict[str, Any] = {
    "fees": build_fees(FeeRates(0.0, 0.0), FeeRates(0.0, 0.0)),
    "slippage": Slippage(0.0, 0.0),
    "funding_next": 0.0,
}
"""A market that costs nothing."""


@cache
def walk(count: int = 1_000, spread: float = 0.004, seed: int = 5) -> Bars:
    """Hours without drift, each with a high and a low beyond its ends."""
    chance = np.random.default_rng(seed)
    steps = chance.normal(0.0, spread, count)
    close = PRICE * np.exp(np.cumsum(steps))
    before = np.concatenate(([PRICE], close[:-1]))
    reach = np.abs(chance.normal(0.0, spread / 3, (2, count)))
    high, low = np.maximum(before, close) * (1 + reach[0]), np.minimum(before, close) * (1 - reach[1])
    return _bars(before, high, low, close)


@cache
def fine(count: int = 1_000, spread: float = 0.004, seed: int = 5, moves: int = 240) -> Bars:
    """Hours of many small moves: their highs and lows are where the walk was, so nothing is jumped over."""
    chance = np.random.default_rng(seed)
    path = PRICE * np.exp(np.cumsum(chance.normal(0.0, spread / np.sqrt(moves), count * moves)))
    path = path.reshape(count, moves)
    close = path[:, -1]
    before = np.concatenate(([PRICE], close[:-1]))
    return _bars(before, np.maximum(before, path.max(axis=1)), np.minimum(before, path.min(axis=1)), close)


@cache
def still(count: int = 1_000) -> Bars:
    """Hours in which nothing happens: no trade ends but by the clock."""
    price = np.full(count, PRICE)
    return _bars(price, price, price, price)


def _bars(*prices: Any) -> Bars:
    count = len(prices[0])
    at = np.arange(NOW - count * HOUR_MS, NOW, HOUR_MS, dtype=np.int64)
    return Bars(Timeframe.H1, at, *prices, np.ones(count), np.full(count, 0.5))  # type: ignore[call-arg]


def terms(
    account: Account = CASH,
    krw_rate: Known[float] = WON,
    mark: Known[float] = PRICE,
    dollar: Known[float] = 1.0,
    **changed: Any,
) -> RulingInputs:
    """Everything known, nothing wrong, the account marked at these rates."""
    marks: dict[Symbol, Known[float]] = {Symbol("BTCUSDT"): mark, Symbol("ETHUSDT"): 10.0}
    calm = RulingInputs(
        symbol=Symbol("BTCUSDT"),
        mode=Mode.SWING,
        as_of=NOW,
        bars=walk(),
        atr=1.0,
        mark=mark,
        slippage=Slippage(0.01, 0.02),
        funding_next=0.0001,
        record=PROVEN,
        panic=False,
        day_volatility_rank=0.5,
        curve_change=0.1,
        longs_liquidated=1e6,
        shorts_liquidated=1e6,
        breakout=False,
        high_volatility=False,
        shock_down=None,
        shock_up=None,
        quoted_rates={"KRW": krw_rate, "USDC": dollar},
        account=account,
        marked_account=mark_to_market(account, Symbol("BTCUSDT"), marks, won_rates(krw_rate)),
    )
    return replace(calm, **changed)


def change_inputs(given: RulingInputs, **changed: Any) -> RulingInputs:
    """With other figures; `krw_rate` and `dollar` are among the quoted rates."""
    named = {"KRW": "krw_rate", "USDC": "dollar"}
    rates = {currency: changed.pop(named[currency], rate) for currency, rate in given.quoted_rates.items()}
    return replace(given, quoted_rates=rates, **changed)


def standing(given: RulingInputs) -> MarkedAccount:
    assert isinstance(given.marked_account, MarkedAccount)
    return given.marked_account


def decision(call: Call = Call.LONG, **changed: Any) -> Decision:
    """A trade with two per cent to lose and four to win."""
    sign = 1 if call is Call.LONG else -1
    opens = call.side is not None
    plain = Decision(
        source="deterministic",
        why="",
        decision=call,
        allocation_pct=40,
        leverage=2,
        entry_price=PRICE if opens else None,
        stop_loss=PRICE - sign * 2 if opens else None,
        take_profit=PRICE + sign * 4 if opens else None,
        hold_duration="5d",
        reasoning=Reasoning(
            counter_scenario="it may fall",
            meta_agent_context="",
            technical="",
            derivatives="",
            experts="",
            narrative="",
            final_logic="",
        ),
        win_probability_pct=90,
        expected_profit_pct=4.0,
        expected_loss_pct=2.0,
        ev_rationale="",
        key_factors=[],
    )
    return plain.model_copy(update=changed)


def meta(budget: int = 100) -> Meta:
    return Meta(
        source="deterministic",
        why="",
        regime=Regime.RANGE_BOUND,
        rationale="r",
        trust_directive=DirectiveOpinion(expert=Expert.MACRO, note="n"),
        risk_budget_pct=budget,
        risk_bias=RiskBias.NEUTRAL,
    )


def board(stance: Any = 1, confidence: float = 0.6) -> Blackboard:
    """One expert who reads numbers has an opinion."""
    said: dict[str, Any] = {"source": "deterministic", "why": "", "rationale": "r"}
    bias: Any = {1: "UP", 0: "NEUTRAL", -1: "DOWN"}[stance]
    return Blackboard(
        liquidity=LiquidityEntry(**said, anomaly="none", confidence=0.0, target_entry=None, stance=0),
        microstructure=MicrostructureEntry(
            **said, anomaly="none", confidence=confidence, directional_bias=bias, stance=stance
        ),
        macro=MacroEntry(**said, anomaly="none", options_bias="NEUTRAL", confidence=0.9, stance=0),
        vlm_geometry=None,
    )


def menu(*prices: float, atr: Known[float] = 1.0) -> PriceMenu:
    levels = tuple(MenuLevel(f"level_{price:g}", "pivot", price) for price in sorted(prices))
    return PriceMenu(levels, atr, 0.1, PRICE)


def holding(side: Side = Side.LONG, margin: float = 100.0, leverage: float = 1.0, **changed: Any) -> Holding:
    exchange = changed.get("exchange", Venue("BINANCE"))
    entry = changed.pop("entry", PRICE * (WON if exchange is Venue("UPBIT") else 1.0))
    plain = Holding(
        id="pos_1",
        symbol=Symbol("BTCUSDT"),
        exchange=Venue("BINANCE"),
        side=side,
        quantity=margin * leverage / entry,
        entry=entry,
        leverage=leverage,
        opened=Millis(NOW - HOUR_MS),
    )
    return plain.model_copy(update=changed)


def resting(side: Side = Side.LONG, margin: float = 100.0, **changed: Any) -> RestingOrder:
    plain = RestingOrder(
        id="ord_1",
        symbol=Symbol("BTCUSDT"),
        exchange=Venue("BINANCE"),
        side=side,
        quantity=margin / PRICE,
        price=PRICE,
        leverage=1.0,
        placed=Millis(NOW - HOUR_MS),
    )
    return plain.model_copy(update=changed)


def liquidity(quantity: float) -> Liquidity:
    return Liquidity(symbol=Symbol("BTCUSDT"), quantity=quantity)


def ruled_on(
    said: Decision,
    given: RulingInputs,
    budget: int | None = 100,
    tightening: Tightening | None = None,
    cost: float = 0.0,
) -> RulingDraft:
    """The whole way from a decision to what is left of it."""
    draft = start_draft(said, None if budget is None else meta(budget), given, cost, 0.0)
    return apply_leverage_guard(apply_risk_rules(draft, given, tightening), given)


def fired_rules(draft: RulingDraft) -> list[str]:
    """The rules that changed something, in their order, each once."""
    return list(dict.fromkeys(change.by.split(" ")[0] for change in draft.changes))


def worth(draft: RulingDraft, given: RulingInputs) -> float:
    """The notional of all legs, in dollars."""
    told = given.quoted_rates["KRW"]
    won = told if isinstance(told, float) else 1.0
    return sum(leg.notional if leg.venue is Venue("BINANCE") else leg.notional / won for leg in draft.legs)


def no_more(after: RulingDraft, before: RulingDraft) -> bool:
    """Whether the first risks nothing the second does not."""
    if not after.opens:
        return True
    most = {leg.venue: leg for leg in before.legs}
    smaller = all(
        leg.venue in most
        and leg.side is most[leg.venue].side
        and leg.notional <= most[leg.venue].notional + 1e-6
        and leg.margin <= most[leg.venue].margin + 1e-6
        for leg in after.legs
    )
    return (
        after.call is before.call
        and smaller
        and after.leverage <= before.leverage
        and after.allocation_pct <= before.allocation_pct + 1e-6
    )
