"""The debate beside other sleeves: it has its own cash and positions, and limits of the account count the rest."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal as D

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.trading.rules.test_properties import accounts, decisions
from tests.unit.trading.rules.test_protections import hit, state, summary
from tests.unit.trading.rules.test_sleeve_book import BINANCE, BUY, SELL, SPOT, begin, fill
from tests.wire.accounts import won_rates
from tests.wire.trades import CASH, decision, no_more, ruled_on, standing, terms, worth
from zuno.kernel.canonical import canonical
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.model.account import Account, OtherSleeves, PositionsSlot, SleeveExposure, account_slots, read_slot
from zuno.trading.model.cycle import Decision
from zuno.trading.model.market import MINUTE_MS, Side
from zuno.trading.model.trade_events import ExitReason, Protection
from zuno.trading.rules.account import MarkedAccount, mark_to_market
from zuno.trading.rules.draft import RuleName
from zuno.trading.rules.performance import trace_account
from zuno.trading.rules.ruling import MAX_ACCOUNT_LEVERAGE, MAX_GROUP_LEVERAGE

BTC, ETH = Symbol("BTCUSDT"), Symbol("ETHUSDT")


@st.composite
def others(draw: st.DrawFn) -> OtherSleeves:
    """Of prices of 100 and 10."""
    rows = []
    for symbol, price in ((BTC, 100), (ETH, 10)):
        held, adding, crossed = (draw(st.floats(-20_000, 20_000)) / price for _ in range(3))
        gross = abs(held) + abs(adding) + abs(crossed)
        rows.append(SleeveExposure(symbol=symbol, held=held, adding=adding, gross=gross))
    kept = draw(st.integers(0, 2))
    return OtherSleeves(cash={"USD": draw(st.floats(-30_000, 60_000))}, exposures=tuple(rows[:kept]))


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(decisions(), st.one_of(st.just(CASH), accounts()), others(), st.booleans())
def test_another_sleeve_never_raises_a_ruling(
    said: Decision, account: Account, rest: OtherSleeves, grouped: bool
) -> None:
    group = frozenset({BTC, ETH}) if grouped else frozenset({BTC})
    alone = ruled_on(said, terms(account, group=group))
    given_ = terms(replace(account, others=rest), group=group, whole_group=frozenset({BTC, ETH}))
    beside = ruled_on(said, given_)
    assert no_more(beside, alone)
    whole = standing(given_).whole
    assert whole is not None
    if beside.opens:
        assert whole.exposure_usd + worth(beside, given_) <= MAX_ACCOUNT_LEVERAGE * whole.equity_usd + 1e-6


def test_what_other_sleeves_carry_leaves_less_room() -> None:
    """Of $60,000 and a group that is $59,500 long, $500 are left; netted legs of a carry take nothing."""
    row = SleeveExposure(symbol=ETH, held=5_950.0, adding=0.0, gross=5_950.0)
    free = 60_000.0 - standing(terms()).equity_usd
    trend = OtherSleeves(cash={"USD": free - 59_500.0}, exposures=(row,))
    carry = OtherSleeves(cash={"USD": free}, exposures=(row.model_copy(update={"held": 0.0, "gross": 0.0}),))
    said, both = decision(leverage=1, allocation_pct=40), frozenset({BTC, ETH})
    bound = terms(replace(CASH, others=trend), group=both, whole_group=both)
    assert standing(bound).whole is not None
    cut = ruled_on(said, bound)
    assert any(change.by.startswith(RuleName.LEVERAGE_GUARD) for change in cut.changes)
    assert 450 < worth(cut, bound) <= MAX_GROUP_LEVERAGE * 60_000 - 59_500 + 1e-6
    assert ruled_on(said, terms(replace(CASH, others=carry), whole_group=both)).legs == ruled_on(said, terms()).legs


def test_without_another_sleeve_the_slots_keep_their_bytes() -> None:
    book = trace_account(begin()[:1])
    account = book.to_account()
    positions, _ = account_slots(account, Millis(1))
    assert account.others is None
    assert b"others" not in canonical(positions.content)
    assert account.cash == {venue: float(book.cash(venue)) for venue in book.venues}


@pytest.mark.parametrize("price", [41_000, 60_000, 75_000])
def test_the_debate_has_its_sleeve_and_the_rest_adds_up_to_the_account(price: int) -> None:
    events = begin(
        fill(10, BUY, "0.02", "60000", "1", client="c_trend"),
        fill(11, SELL, "0.01", "61000", client="c_debate"),
        fill(12, SELL, "0.005", "62000", client="c_mine"),
    )
    book = trace_account(events)
    account = book.to_account()
    assert [holding.quantity for holding in account.positions] == [0.01]
    assert account.others is not None
    (row,) = account.others.exposures
    assert (row.held, row.adding) == pytest.approx((0.015, 0.015))  # of the other's order 0.015 are open
    assert row.gross == pytest.approx(0.02 + 0.005 + 0.015)
    mark = D(price)
    marked = mark_to_market(account, BTC, {BTC: float(price)}, won_rates(1_400.0))
    marks = {(BINANCE, BTC): mark, (SPOT, BTC): mark}
    own = book.sleeve_equity("debate", "USD", marks)
    whole = sum(book.equity(venue, {BTC: mark}) for venue in book.venues)
    assert isinstance(marked, MarkedAccount)
    assert marked.whole is not None
    assert marked.position is not None
    assert marked.equity_usd == pytest.approx(float(own))
    assert marked.whole.equity_usd == pytest.approx(float(whole))
    assert marked.position.side is Side.SHORT
    slot = account_slots(account, Millis(13))[0]
    assert read_slot(PositionsSlot, slot.content, "positions").others == account.others


def test_only_the_debates_own_closes_cool_it_down_or_stop_it() -> None:
    stopped = [summary("-1", ago=MINUTE_MS, reason=ExitReason.STOP, trade=f"trade_{n}") for n in range(3)]
    assert hit(state(*stopped)).keys() >= {Protection.COOLDOWN, Protection.STOPLOSS_GUARD}
    others = [close.model_copy(update={"sleeve": "trend"}) for close in stopped]
    assert not hit(state(*others)).keys() & {Protection.COOLDOWN, Protection.STOPLOSS_GUARD}
