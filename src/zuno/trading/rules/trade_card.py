"""The trade card: what a ruling opens, in quantities, prices and dollars a person can check."""

from __future__ import annotations

from dataclasses import replace
from math import fsum

from zuno.trading.measure.portable import round_digits
from zuno.trading.model.cycle import Exchange, Leg, TradeCard
from zuno.trading.model.known import Missing
from zuno.trading.model.market import Side
from zuno.trading.rules.draft import RuleName, RulingDraft, record_change, veto_trade
from zuno.trading.rules.expectancy import gross_ev, llm_cost_pct, trade_prices
from zuno.trading.rules.inputs import RulingInputs
from zuno.trading.rules.margin import liquidation_distance
from zuno.trading.rules.minimum_order import stop_loss_pct
from zuno.trading.rules.price_menu import round_to_tick
from zuno.trading.rules.routing import allocation_pct_of, leg_notional_usd, target_of, with_lots


def size_orders(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    """Legs in whole lots. A leg below the least its exchange takes is dropped; with none left nothing is opened."""
    entry = draft.decision.entry_price
    if not draft.opens or entry is None:
        return draft
    sized: list[Leg] = []
    for leg in draft.legs:
        whole = with_lots(leg, entry, draft.decision.stop_loss, inputs)
        if whole is not None:
            sized.append(whole)
            continue
        why = f"{leg.venue} takes no order of less than its minimum in whole lots"
        draft = record_change(draft, RuleName.MINIMUM_ORDER, f"legs.{leg.venue.value}.margin", leg.margin, 0.0, why)
    legs = tuple(sized)
    if not legs:
        return veto_trade(draft, RuleName.MINIMUM_ORDER, "no leg is as large as the least its exchange takes")
    allocation = allocation_pct_of(legs, inputs.marked_account)
    return replace(draft, legs=legs, allocation_pct=allocation, target=target_of(tuple(leg.venue for leg in legs)))


def build_card(draft: RulingDraft, inputs: RulingInputs) -> TradeCard | None:
    """The card of a draft in whole lots; None where nothing is opened."""
    side, worth = draft.call.side, draft.expectation
    prices = None if side is None else trade_prices(draft.decision, side)
    if side is None or worth is None or prices is None or isinstance(inputs.marked_account, Missing) or not draft.legs:
        return None
    tick = inputs.symbol.tick
    entry, stop, target = (round_to_tick(price, tick) for price in (prices.entry, prices.stop, prices.take))
    quantity = fsum(leg.quantity or 0.0 for leg in draft.legs)
    notional = quantity * entry
    loss = notional * stop_loss_pct(worth) / 100
    equity = inputs.marked_account.equity_usd
    margin = fsum(leg_notional_usd(leg, inputs.krw_rate) / leg.leverage for leg in draft.legs)
    return TradeCard(
        side=side,
        entry=entry,
        stop=stop,
        target=target,
        stop_pct=round_digits(100 * (stop / entry - 1), 9),
        target_pct=round_digits(100 * (target / entry - 1), 9),
        quantity=round(quantity, 8),
        notional_usd=round(notional, 2),
        margin_usd=round(margin, 2),
        leverage=draft.leverage,
        loss_at_stop_usd=round(loss, 2),
        loss_at_stop_pct=round_digits(100 * loss / equity, 9) if equity > 0 else 0.0,
        reward_risk=round_digits(worth.profit_pct / worth.loss_pct, 9),
        liquidation=_liquidation_price(draft.legs, side, entry, tick),
        hold=draft.decision.hold_duration,
        duration_hours=worth.duration_hours,
        fair=worth.fair,
        edge=worth.edge,
        ev_pct=worth.ev_pct,
        gross_pct=round_digits(gross_ev(worth)),
        fees_pct=worth.fees_pct,
        slippage_pct=worth.slippage_pct,
        funding_pct=worth.funding_pct,
        llm_cost_pct=round_digits(
            llm_cost_pct(worth, fsum(leg_notional_usd(leg, inputs.krw_rate) for leg in draft.legs))
        ),
        fill=worth.fill,
        exploration=draft.exploration,
    )


def _liquidation_price(legs: tuple[Leg, ...], side: Side, entry: float, tick: float) -> float | None:
    """Of the leg that is borrowed for. A long of one's own money is not liquidated."""
    futures = next((leg for leg in legs if leg.venue is Exchange.BINANCE), None)
    if futures is None or (side is Side.LONG and futures.leverage <= 1):
        return None
    distance = liquidation_distance(futures.leverage, side)
    return round_to_tick(entry * (1 - distance if side is Side.LONG else 1 + distance), tick)
