"""What holds of every ruling: nobody but the Judge raises, flips or prices anything, and not knowing never helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.wire.accounts import build_account
from tests.wire.trades import (
    CASH,
    PRICE,
    PROVEN,
    change_inputs,
    decision,
    holding,
    liquidity,
    meta,
    no_more,
    resting,
    ruled_on,
    standing,
    terms,
    walk,
    worth,
)
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.trading.model.account import Account
from zuno.trading.model.cycle import Call, Decision, Style
from zuno.trading.model.known import Missing
from zuno.trading.model.market import Mode, Side
from zuno.trading.model.memory import DeskRecord
from zuno.trading.rules.draft import Tightening
from zuno.trading.rules.inputs import RulingInputs, Slippage
from zuno.trading.rules.risk_rules import apply_risk_rules
from zuno.trading.rules.ruling import MAX_ACCOUNT_LEVERAGE, apply_leverage_guard, finish_ruling, start_draft

GONE = Missing("nobody said")
SOFT = (
    "panic day_volatility_rank curve_change longs_liquidated shorts_liquidated breakout high_volatility krw_rate"
).split()
"""Figures without which something smaller may still be done."""
FIGURES = (
    "bars atr mark slippage funding_next panic day_volatility_rank curve_change longs_liquidated shorts_liquidated "
    "breakout high_volatility shock_down shock_up dollar krw_rate account marked_account record"
).split()


def test_the_figures_are_all_there_are() -> None:
    told = {name for name, hint in get_type_hints(RulingInputs).items() if Missing in get_args(hint)}
    assert told | {"dollar", "krw_rate"} == set(FIGURES)


money = st.floats(0, 5_000)
sides = st.sampled_from(list(Side))


@st.composite
def accounts(draw: st.DrawFn) -> Account:
    side = draw(sides)
    mine = [
        holding(side, draw(st.floats(1, 500)), draw(st.sampled_from([1.0, 2.0, 3.0])))
        for _ in range(draw(st.integers(0, 1)))
    ]
    other = [
        holding(draw(sides), draw(st.floats(1, 1_500)), 3.0, symbol=Symbol("ETHUSDT"), entry=10.0, id="pos_2")
        for _ in range(draw(st.integers(0, 1)))
    ]
    spot = [
        holding(Side.LONG, draw(st.floats(1e3, 1e6)), exchange=Venue("UPBIT"), id="pos_3")
        for _ in range(draw(st.integers(0, 1)) if side is Side.LONG else 0)
    ]
    waiting = [resting(side, draw(st.floats(1, 500))) for _ in range(draw(st.integers(0, 1)))]
    return build_account(
        usd=draw(money),
        krw=draw(st.floats(0, 5e6)),
        positions=(*mine, *other, *spot),
        pending=tuple(waiting),
        liquidity=tuple(liquidity(draw(st.floats(0, 30))) for _ in range(draw(st.integers(0, 1)))),
    )


class World:
    """Terms that are told without their thousand bars."""

    def __init__(self, given_: RulingInputs) -> None:
        self.terms = given_

    def __repr__(self) -> str:
        return repr(self.terms)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Anything between calm and mad, everything known."""
    found = terms(
        draw(st.one_of(st.just(CASH), st.just(CASH), accounts())),
        mode=draw(st.sampled_from(list(Mode))),
        bars=draw(st.sampled_from([walk(), walk(spread=0.002, seed=9)])),
        slippage=Slippage(draw(st.floats(0, 0.1)), draw(st.floats(0, 0.1))),
        funding_next=draw(st.floats(-0.00031, 0.00031)),
        record=draw(st.sampled_from([PROVEN, PROVEN, DeskRecord()])),
        panic=draw(st.booleans()),
        day_volatility_rank=draw(st.floats(0, 1)),
        curve_change=draw(st.floats(-0.4, 0.4)),
        longs_liquidated=draw(st.floats(0, 1e8)),
        shorts_liquidated=draw(st.floats(0, 1e8)),
        breakout=(breakout := draw(st.booleans())),
        high_volatility=breakout or draw(st.booleans()),
        shock_down=draw(st.sampled_from([None] * 7 + ["shock down"])),
        shock_up=draw(st.sampled_from([None] * 7 + ["shock up"])),
        dollar=draw(st.sampled_from([1.0, 1.0, 1.0, 0.995, 1.005, 0.985, 1.015])),
    )
    return World(found)


OPENING = (Call.LONG, Call.SHORT)


@st.composite
def decisions(draw: st.DrawFn, calls: Sequence[Call] = (*OPENING, *OPENING, *Call)) -> Decision:
    call = draw(st.sampled_from(calls))
    if call.side is None:
        return decision(call)
    sign, loss = 1 if call is Call.LONG else -1, draw(st.floats(0.5, 5))
    return decision(
        call,
        stop_loss=100 - sign * loss,
        take_profit=100 + sign * loss * draw(st.floats(1, 5)),
        allocation_pct=draw(st.integers(1, 100)),
        leverage=draw(st.integers(1, 3)),
        win_probability_pct=draw(st.integers(75, 100)),
        hold_duration=draw(st.sampled_from(["2d", "5d", "2w", "soon"])),
        source=draw(st.sampled_from(["model"] * 9 + ["fallback"])),
    )


budgets = st.one_of(st.integers(1, 100), st.integers(50, 100), st.sampled_from([None, 0]))
costs = st.sampled_from([0.0, 0.0, 0.01, 0.2])
losses = st.one_of(
    *(st.sets(st.sampled_from(SOFT), min_size=1, max_size=3) for _ in range(3)),
    st.sets(st.sampled_from(FIGURES), min_size=1, max_size=3),
)
asked = st.one_of(
    st.none(),
    st.builds(
        Tightening,
        allocation_pct=st.one_of(st.none(), st.floats(-10, 200)),
        leverage=st.one_of(st.none(), st.floats(-1, 10)),
        veto=st.sampled_from([False, False, False, True]),
        style=st.one_of(st.none(), st.sampled_from(list(Style))),
    ),
)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(decisions(), worlds(), budgets, costs, asked)
def test_the_risk_office_never_raises_flips_or_prices(
    said: Decision, world: World, budget: int | None, cost: float, tightening: Tightening | None
) -> None:
    draft = start_draft(said, None if budget is None else meta(budget), world.terms, cost, 0.0)
    plain, done = apply_risk_rules(draft, world.terms, None), apply_risk_rules(draft, world.terms, tightening)
    for after, before in (
        (plain, draft),
        (done, draft),
        (done, plain),
        (apply_leverage_guard(done, world.terms), done),
    ):
        assert no_more(after, before)
        assert after.decision == said
        if not before.opens:
            assert after == before
    assert (done.style is Style.CASINO_EXIT) == (done.call is Call.CANCEL_AND_CLOSE)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(decisions(), worlds(), budgets)
def test_the_whole_account_carries_no_more_than_twice_what_it_owns(
    said: Decision, world: World, budget: int | None
) -> None:
    done = ruled_on(said, world.terms, budget)
    if done.opens:
        account = standing(world.terms)
        assert (account.exposure_usd + worth(done, world.terms)) / account.equity_usd <= MAX_ACCOUNT_LEVERAGE + 1e-9
        assert 0 < done.allocation_pct <= said.allocation_pct + 1e-9
        assert done.leverage <= said.leverage
        assert done.expectation is not None
        assert (done.expectation.ev_pct > 0) is not done.exploration
        assert budget
        for leg in done.legs:
            used = account.margin[leg.venue].total + leg.margin
            assert used <= {Venue("BINANCE"): 2_000.0, Venue("UPBIT"): 2_000_000.0}[leg.venue] + 1e-6
            assert leg.notional == leg.margin * leg.leverage
            cents = leg.margin * (100 if leg.venue is Venue("BINANCE") else 1)
            assert abs(cents - round(cents)) < 1e-6
            assert leg.venue is Venue("BINANCE") or (leg.side is Side.LONG and leg.leverage == 1)
        found = done.expectation
        risked = worth(done, world.terms) * (found.loss_pct + found.fees_pct + found.slippage_pct) / 100
        assert risked <= (0.0025 if done.exploration else 0.01) * account.equity_usd + 1e-2
    else:
        assert (done.legs, done.allocation_pct, done.leverage) == ((), 0.0, 1.0)


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(decisions(OPENING), st.sampled_from(list(Mode)), st.floats(0, 0.003), st.sampled_from([DeskRecord(), GONE]))
def test_without_closed_trades_nothing_but_an_exploration_opens(
    said: Decision, mode: Mode, received: float, record: Any
) -> None:
    """Whatever funding pays, and whichever side."""
    rate = -received if said.decision is Call.LONG else received
    done = ruled_on(said, terms(mode=mode, funding_next=rate, record=record))
    assert done.exploration or not done.opens


@pytest.mark.slow
@settings(deadline=None)
@given(st.floats(-50, 500), st.integers(10, 40))
def test_losing_one_leg_never_lets_the_other_grow(room: float, allocation: int) -> None:
    """Whatever room is left: a leg without the other is cut as it was beside it, to half of the room at most."""
    free = terms()
    account = standing(free)
    used = MAX_ACCOUNT_LEVERAGE * account.equity_usd - account.exposure_usd - room
    given_ = terms(replace(CASH, liquidity=(liquidity(used / PRICE),)))
    draft = start_draft(decision(leverage=1, allocation_pct=allocation), meta(), free, 0.0, 0.0)
    assert {leg.venue for leg in draft.legs} == set(DEFAULT_VENUES)
    beside = {leg.venue: leg.margin for leg in apply_leverage_guard(draft, given_).legs}
    for leg in draft.legs:
        alone = apply_leverage_guard(replace(draft, legs=(leg,)), given_)
        assert {left.venue: left.margin for left in alone.legs} == {
            venue: margin for venue, margin in beside.items() if venue is leg.venue
        }
        assert worth(alone, given_) <= max(0.0, room) / 2 + 1e-9


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(decisions(OPENING), accounts(), st.sampled_from(list(Mode)))
def test_with_what_is_held_a_stop_costs_no_more_than_its_share(said: Decision, account: Account, mode: Mode) -> None:
    """What is new adds to what is held the same way, wherever that is and whatever was borrowed for it."""
    given_ = terms(account, mode=mode)
    done = ruled_on(said, given_)
    if not done.opens:
        return
    sizes = [one.quantity for one in account.positions if one.symbol is Symbol("BTCUSDT")]
    sizes += [one.quantity for one in account.pending]
    risked = (100 * sum(sizes) + worth(done, given_)) * abs((said.stop_loss or 0) - 100) / 100
    assert risked <= 0.01 * standing(given_).equity_usd + 1e-6


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(
    decisions(OPENING), worlds(), st.integers(1, 100), costs, st.sets(st.sampled_from(FIGURES), min_size=1, max_size=3)
)
def test_not_knowing_never_raises_a_ruling(
    said: Decision, world: World, budget: int, cost: float, gone: set[str]
) -> None:
    whole = ruled_on(said, world.terms, budget, cost=cost)
    assert no_more(ruled_on(said, without(world.terms, gone), budget, cost=cost), whole)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(worlds(), budgets, asked, st.sets(st.sampled_from(FIGURES)))
def test_an_exit_is_never_vetoed(
    world: World, budget: int | None, tightening: Tightening | None, gone: set[str]
) -> None:
    blind = change_inputs(world.terms, **dict.fromkeys(gone, GONE))
    done = finish_ruling(
        ruled_on(decision(Call.CANCEL_AND_CLOSE), blind, budget, tightening, 9.0), blind, Millis(2**50)
    )
    assert (done.decision, done.execution_style, done.veto, done.legs) == (
        Call.CANCEL_AND_CLOSE,
        Style.CASINO_EXIT,
        None,
        (),
    )


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(decisions(), worlds(), st.sampled_from([None, 0]))
def test_a_missing_budget_is_none(said: Decision, world: World, budget: int | None) -> None:
    assert not ruled_on(said, world.terms, budget).opens


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(decisions(), worlds(), budgets, costs)
def test_a_ruling_can_be_computed_again(said: Decision, world: World, budget: int | None, cost: float) -> None:
    assert ruled_on(said, world.terms, budget, cost=cost) == ruled_on(said, world.terms, budget, cost=cost)


def without(given_: RulingInputs, gone: set[str]) -> RulingInputs:
    """As a bundle without these would give: what is marked or converted is marked and converted anew."""
    changed: dict[str, Any] = dict.fromkeys(gone, GONE)
    if "krw_rate" in gone and isinstance(given_.account, Account):
        changed["marked_account"] = terms(given_.account, krw_rate=GONE).marked_account
    if gone & {"mark", "account", "marked_account"}:
        changed["marked_account"] = GONE
    return change_inputs(given_, **changed)
