"""Markets that move together: by daily returns, in whole numbers, and what they may carry net."""

from __future__ import annotations

from dataclasses import replace
from math import exp, sin

import pytest

from tests.wire.trades import CASH, decision, holding, meta, terms
from zuno.kernel.units import Millis, Seconds
from zuno.markets.market import Symbol
from zuno.trading.model.bundle import Block, Bundle
from zuno.trading.model.cycle import Call
from zuno.trading.model.known import Missing
from zuno.trading.model.market import DAY_MS, Candle, Mode, Side, Timeframe
from zuno.trading.model.wanted import own_candles
from zuno.trading.rules.account import GROUP_DAYS, find_group, group_net_usd
from zuno.trading.rules.draft import RuleName
from zuno.trading.rules.risk_rules import apply_risk_rules
from zuno.trading.rules.routing import leg_notional_usd
from zuno.trading.rules.ruling import apply_leverage_guard, start_draft

BTC, ETH, SOL, DOGE = (Symbol(f"{base}USDT") for base in ("BTC", "ETH", "SOL", "DOGE"))
START = Millis(1_700_000_000_000 // DAY_MS * DAY_MS)
AS_OF = Millis(START + (GROUP_DAYS + 1) * DAY_MS)


def days(symbol: Symbol, returns: list[float]) -> Block:
    price, rows = 100.0, []
    for number, change in enumerate([0.0, *returns]):
        price *= exp(change)
        rows.append(Candle(Millis(START + number * DAY_MS), price, price, price, price, 1.0, None))
    return Block(own_candles(symbol, Timeframe.D1), tuple(rows), AS_OF, Seconds(0), Seconds(60), ())


def bundle(**returns: list[float]) -> Bundle:
    blocks = tuple(days(Symbol(f"{base}USDT"), each) for base, each in returns.items())
    return Bundle(BTC, Mode.SWING, AS_OF, "recorded", blocks, (), ())


WAVE = [0.03 * sin(number) for number in range(GROUP_DAYS)]
OTHER = [0.03 * sin(2.7 * number + 1) for number in range(GROUP_DAYS)]
BETWEEN = [(first + second) / 2 for first, second in zip(WAVE, OTHER, strict=True)]


@pytest.mark.parametrize(
    ("eth", "group"),
    [
        ([2 * change for change in WAVE], {BTC, ETH}),
        ([-change for change in WAVE], {BTC}),
        (OTHER, {BTC}),
        (WAVE[:9], {BTC, ETH}),  # too few days to be known as apart
    ],
)
def test_a_group_is_what_moves_together(eth: list[float], group: set[Symbol]) -> None:
    assert find_group(bundle(BTC=WAVE, ETH=eth), BTC, [ETH]) == group
    assert find_group(bundle(BTC=WAVE, ETH=eth), BTC, []) == {BTC}


def test_a_group_reaches_through_another_market() -> None:
    whole = bundle(BTC=WAVE, SOL=BETWEEN, DOGE=OTHER)
    assert find_group(whole, BTC, [DOGE]) == {BTC}
    assert find_group(whole, BTC, [SOL, DOGE]) == {BTC, SOL, DOGE}


def test_a_day_that_is_not_over_does_not_count() -> None:
    early = replace(bundle(BTC=WAVE, ETH=OTHER), as_of=Millis(AS_OF - 1))
    assert find_group(early, BTC, [ETH]) == {BTC, ETH}


@pytest.mark.parametrize(("side", "call"), [(Side.LONG, Call.LONG), (Side.SHORT, Call.LONG), (Side.SHORT, Call.SHORT)])
def test_a_group_carries_at_most_its_equity_net(side: Side, call: Call) -> None:
    """Of an equity of some $3,400: $3,000 of another coin leave $400 the same way; the other way they are a hedge."""
    account = replace(CASH, positions=(holding(side, 1_000.0, 3.0, symbol=ETH, entry=10.0),))
    apart, together = terms(account, group=frozenset({BTC})), terms(account, group=frozenset({BTC, ETH}))
    said = decision(call, leverage=1 if call is Call.LONG else 2, allocation_pct=40)
    free, bound = (
        apply_leverage_guard(apply_risk_rules(start_draft(said, meta(100), given, 0.0, 0.0), given, None), given)
        for given in (apart, together)
    )
    marked = together.marked_account
    assert not isinstance(marked, Missing)
    net = group_net_usd(marked, account, together.group)
    assert net == pytest.approx(side.sign * 3_000.0)
    cut = any(change.by.startswith(RuleName.LEVERAGE_GUARD) for change in bound.changes)
    assert bound.allocation_pct <= free.allocation_pct
    if side is not call.side:
        assert not cut
        assert bound.legs == free.legs
    else:
        most = marked.equity_usd - 3_000.0
        size = sum(leg_notional_usd(leg, together) for leg in bound.legs)
        assert not bound.opens or size <= most * 1.001
