"""One test per rule between a decision and a ruling: at its bound, just inside, just beyond, and without its input."""

from __future__ import annotations

from dataclasses import replace
from math import fsum
from typing import Any

import pytest
from hypothesis import given as given_values
from hypothesis import strategies as st

from tests.wire.accounts import FUTURES, SPOT, build_account, with_cash
from tests.wire.trades import (
    CASH,
    FREE,
    NOW,
    PRICE,
    PROVEN,
    WON,
    change_inputs,
    decision,
    fired_rules,
    holding,
    liquidity,
    meta,
    resting,
    ruled_on,
    standing,
    terms,
    walk,
    worth,
)
from zuno.kernel.units import Millis
from zuno.markets.market import Catalogue, Symbol, assume_market
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.trading.model.cycle import Call, JudgeKind, Leg, RegimeFamily, Style, Target
from zuno.trading.model.known import Missing, NotRecorded
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, Mode, Side
from zuno.trading.model.memory import Calibration, DeskRecord, Exploration
from zuno.trading.rules.draft import RuleName, RuleOwner, RulingDraft, Tightening
from zuno.trading.rules.exits import PositionExit
from zuno.trading.rules.expectancy import require_expectancy
from zuno.trading.rules.inputs import LIQUIDATION_TRAP_USD, FeeRates, Fees, RulingInputs, Slippage
from zuno.trading.rules.risk_rules import apply_risk_rules, place_legs
from zuno.trading.rules.routing import leg_notional_usd, minimum_margin, price_at, with_lots, with_margin
from zuno.trading.rules.ruling import apply_leverage_guard, finish_ruling, start_draft

GONE = Missing("nobody said")
TIGHT = decision(leverage=1, allocation_pct=20)
"""Small enough for no cap to bite: half at either exchange."""


def test_every_rule_has_a_test_of_its_name() -> None:
    named = {name.removeprefix("test_rule_") for name in globals() if name.startswith("test_rule_")}
    assert named == {rule.value for rule in RuleName}


def test_every_rule_has_its_office() -> None:
    assert {rule for rule in RuleName if rule.owner is RuleOwner.GUARD} == {RuleName.LEVERAGE_GUARD}
    assert sum(rule.owner is RuleOwner.CRO for rule in RuleName) == 9


def test_nothing_fires_on_a_calm_market() -> None:
    done = ruled_on(TIGHT, terms())
    assert done.changes == ()
    assert (done.call, done.leverage, done.target, done.style) == (
        Call.LONG,
        1.0,
        Target.SPLIT,
        Style.PASSIVE_MAKER,
    )
    assert [(leg.venue, leg.margin, leg.notional) for leg in done.legs] == [
        (Venue("BINANCE"), 200.0, 200.0),
        (Venue("UPBIT"), 200_000.0, 200_000.0),
    ]
    assert done.allocation_pct == pytest.approx(20)


# -- the desk's own


@pytest.mark.parametrize("how", ["open", "pending"])
@pytest.mark.parametrize(("call", "side"), [(Call.LONG, Side.SHORT), (Call.SHORT, Side.LONG)])
def test_rule_close_first(how: str, call: Call, side: Side) -> None:
    account = replace(CASH, positions=(holding(side),)) if how == "open" else replace(CASH, pending=(resting(side),))
    done = ruled_on(decision(call), terms(account))
    assert (done.call, done.style, done.target) == (Call.CANCEL_AND_CLOSE, Style.CASINO_EXIT, Target.BINANCE)
    assert fired_rules(done) == [RuleName.CLOSE_FIRST]
    assert (done.veto, done.legs, done.allocation_pct) == (None, (), 0.0)
    assert [(one.what, one.side) for one in done.closes] == [("position" if how == "open" else "order", side)]


def test_an_exit_names_what_it_ends_and_nothing_of_another_symbol() -> None:
    ours, spot = holding(Side.SHORT, id="a"), holding(Side.LONG, id="b", exchange=Venue("UPBIT"), entry=140_000.0)
    orders = (resting(Side.LONG, id="c"), resting(Side.SHORT, id="d", reduce_only=True))
    other = holding(Side.LONG, id="e", symbol=Symbol("ETHUSDT"), entry=10.0)
    account = replace(CASH, positions=(ours, other, spot), pending=orders)
    found = finish_ruling(ruled_on(decision(Call.CANCEL_AND_CLOSE), terms(account)), terms(account), NOW)
    assert [(one.id, one.what, one.venue, one.side, one.quantity) for one in found.closes] == [
        ("a", "position", Venue("BINANCE"), Side.SHORT, ours.quantity),
        ("b", "position", Venue("UPBIT"), Side.LONG, spot.quantity),
        ("c", "order", Venue("BINANCE"), Side.LONG, orders[0].quantity),
        ("d", "order", Venue("BINANCE"), Side.SHORT, orders[1].quantity),
    ]
    assert found.target_exchange is Target.SPLIT
    unknown = replace(terms(account), account=GONE)
    blind = finish_ruling(ruled_on(decision(Call.CANCEL_AND_CLOSE), unknown), unknown, NOW)
    assert (blind.decision, blind.closes, blind.target_exchange) == (Call.CANCEL_AND_CLOSE, (), None)


def test_only_an_exit_ends_anything() -> None:
    account = replace(CASH, positions=(holding(),))
    for call in (Call.LONG, Call.HOLD):
        assert finish_ruling(ruled_on(decision(call), terms(account)), terms(account), NOW).closes == ()


def test_close_first_minds_its_own_symbol_and_orders_that_add() -> None:
    other = replace(CASH, positions=(holding(Side.SHORT, symbol=Symbol("ETHUSDT"), entry=10.0),))
    assert ruled_on(decision(), terms(other)).call is Call.LONG
    leaving = replace(CASH, pending=(resting(Side.SHORT, reduce_only=True),))
    assert ruled_on(decision(), terms(leaving)).call is Call.LONG


def test_close_first_needs_no_mark() -> None:
    account = replace(CASH, positions=(holding(Side.SHORT),))
    done = ruled_on(decision(), terms(account, mark=GONE))
    assert done.call is Call.CANCEL_AND_CLOSE


@pytest.mark.parametrize(("call", "shock"), [(Call.LONG, "shock_down"), (Call.SHORT, "shock_up")])
@pytest.mark.parametrize("hit", ["shock: it fell", GONE])
def test_rule_shock_cooldown(call: Call, shock: str, hit: Any) -> None:
    other = "shock_up" if shock == "shock_down" else "shock_down"
    assert ruled_on(decision(call), terms(**{other: hit})).opens
    done = ruled_on(decision(call), terms(**{shock: hit}))
    assert (done.call, done.veto) == (Call.HOLD, RuleName.SHOCK_COOLDOWN)
    by = RuleName.SHOCK_COOLDOWN if hit is not GONE else f"{RuleName.SHOCK_COOLDOWN} (unknown)"
    assert written_by(done, RuleName.SHOCK_COOLDOWN) == [by]


@pytest.mark.parametrize(("side", "shock"), [(Side.LONG, "shock_down"), (Side.SHORT, "shock_up")])
@pytest.mark.parametrize("call", [Call.LONG, Call.SHORT, Call.HOLD])
def test_rule_shock_exit(side: Side, shock: str, call: Call) -> None:
    account = replace(CASH, positions=(holding(side),))
    struck: dict[str, Any] = {shock: "shock: it went so"}
    done = ruled_on(decision(call), terms(account, **struck))
    assert (done.call, len(done.closes)) == (Call.CANCEL_AND_CLOSE, 1)
    assert fired_rules(done) == [RuleName.SHOCK_EXIT]
    unknown = ruled_on(decision(call), terms(account, **{shock: GONE}))
    assert RuleName.SHOCK_EXIT not in fired_rules(unknown)
    assert not unknown.opens


def test_rule_paper_only() -> None:
    for paper, candles_only, vetoed in ((True, True, False), (False, True, True), (False, False, False)):
        done = ruled_on(TIGHT, terms(paper=paper, candles_only=candles_only))
        assert (done.veto == RuleName.PAPER_ONLY) == vetoed


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"panic": NotRecorded("no options")}, RuleName.VOLATILITY),
        ({"curve_change": NotRecorded("no curve")}, RuleName.VOLATILITY),
        ({"funding_assumed": True}, RuleName.FUNDING),
        ({"shorts_liquidated": NotRecorded("no tape")}, RuleName.LIQUIDATIONS),
        ({"dollar": NotRecorded("no rate")}, RuleName.DOLLAR),
    ],
)
def test_what_was_never_recorded_is_told_as_not_judged(changed: dict[str, Any], rule: RuleName) -> None:
    """It neither fires nor passes in silence."""
    plain, done = ruled_on(TIGHT, terms(candles_only=True)), ruled_on(TIGHT, terms(candles_only=True, **changed))
    assert done.opens
    assert done.legs == plain.legs
    assert written_by(done, rule) == [f"{rule} (not judged)"]
    mixed = terms(candles_only=True, panic=GONE, curve_change=NotRecorded("no curve"))
    assert written_by(ruled_on(TIGHT, mixed), RuleName.VOLATILITY) == [f"{RuleName.VOLATILITY} (unknown)"]


def test_without_a_won_everything_goes_where_dollars_are_kept() -> None:
    for mode in Mode:
        done = ruled_on(TIGHT, terms(krw_rate=NotRecorded("no won"), mode=mode, candles_only=True))
        assert [leg.venue for leg in done.legs] == [Venue("BINANCE")]


@pytest.mark.parametrize("side", list(Side))
def test_an_assumed_rate_is_charged_to_either_side(side: Side) -> None:
    known, assumed = terms(), terms(funding_assumed=True)
    assert assumed.funding_of(0.0001, side) == 0.0001
    assert known.funding_of(0.0001, side) == (0.0001 if side is Side.LONG else -0.0001)


@pytest.mark.parametrize(("source", "opens"), [("model", 1), ("repaired", 1), ("deterministic", 1), ("fallback", 0)])
def test_rule_judge_fallback(source: Any, opens: int) -> None:
    done = ruled_on(decision(source=source), terms())
    assert done.opens == bool(opens)
    assert (done.veto == RuleName.JUDGE_FALLBACK) == (source == "fallback")


def test_a_fallback_judge_may_partsleave() -> None:
    assert ruled_on(decision(Call.CANCEL_AND_CLOSE, source="fallback"), terms()).call is Call.CANCEL_AND_CLOSE


@pytest.mark.parametrize("gone", ["bars", "atr", "mark", "slippage", "funding_next", "marked_account", "account"])
def test_rule_missing_facts(gone: str) -> None:
    done = ruled_on(decision(), replace(terms(), **{gone: GONE}))  # type: ignore[arg-type]
    assert (done.call, done.veto) == (Call.HOLD, RuleName.MISSING_FACTS)
    assert done.changes[-1].by == f"{RuleName.MISSING_FACTS} (unknown)"
    assert "nobody said" in done.changes[-1].why


@pytest.mark.parametrize(
    "prices",
    [
        {"stop_loss": PRICE},
        {"stop_loss": PRICE + 1},
        {"take_profit": PRICE},
        {"take_profit": PRICE - 1},
        {"stop_loss": 0.0},
        {"entry_price": None},
    ],
)
def test_prices_that_make_no_trade_open_nothing(prices: dict[str, Any]) -> None:
    done = ruled_on(decision(**prices), terms())
    assert (done.call, done.veto) == (Call.HOLD, RuleName.MISSING_FACTS)
    assert done.changes[-1].by == f"{RuleName.MISSING_FACTS} (unknown)"


@pytest.mark.parametrize(
    ("changed", "budget"),
    [
        ({"panic": GONE}, 20),
        ({"panic": True}, 20),
        ({"day_volatility_rank": GONE}, 20),
        ({"day_volatility_rank": 0.95}, 20),
        ({"day_volatility_rank": 0.949}, 80),
        ({}, 80),
    ],
)
def test_rule_panic_budget(changed: dict[str, Any], budget: int) -> None:
    draft = start_draft(TIGHT, meta(80), terms(**changed), 0, 0)
    assert draft.allocation_pct == pytest.approx(20 * budget / 100)
    assert (RuleName.PANIC_BUDGET in fired_rules(draft)) == (budget == 20)


def test_a_smaller_budget_than_panics_is_left_alone() -> None:
    assert RuleName.PANIC_BUDGET not in fired_rules(start_draft(TIGHT, meta(20), terms(panic=True), 0, 0))


@pytest.mark.parametrize(("budget", "left"), [(100, 20.0), (99, 19.8), (50, 10.0), (1, 0.2)])
def test_rule_risk_budget(budget: int, left: float) -> None:
    draft = start_draft(TIGHT, meta(budget), terms(), 0, 0)
    assert draft.allocation_pct == pytest.approx(left)
    assert (RuleName.RISK_BUDGET in fired_rules(draft)) == (budget < 100)


@pytest.mark.parametrize("budget", [0, None])
def test_a_missing_budget_is_none(budget: int | None) -> None:
    done = ruled_on(decision(), terms(), budget)
    assert done.changes[-1].by == (f"{RuleName.RISK_BUDGET} (unknown)" if budget is None else RuleName.RISK_BUDGET)
    assert (done.call, done.veto) == (Call.HOLD, RuleName.RISK_BUDGET)


@pytest.mark.parametrize(
    ("leverage", "asked", "left"),
    # A stop 2 % away: at 2× a quarter of the equity costs exactly one per cent of it.
    [(2, 24, 24.0), (2, 25, 25.0), (2, 26, 25.0), (1, 51, 50.0), (3, 40, 100 / 6)],
)
def test_rule_stop_risk(leverage: int, asked: int, left: float) -> None:
    draft = start_draft(decision(leverage=leverage, allocation_pct=asked), meta(), terms(**FREE), 0, 0)
    assert draft.allocation_pct == pytest.approx(left)
    assert (RuleName.STOP_RISK in fired_rules(draft)) == (left < asked)


def test_a_stop_costs_its_fees_and_slippage_too() -> None:
    # 0.02 and 0.05 % in fees, half a spread of 0.01 and 0.02 % of slippage: 2.1 % in all.
    draft = start_draft(decision(leverage=2, allocation_pct=40), meta(), terms(), 0, 0)
    assert draft.allocation_pct == pytest.approx(100 / 4.2)
    taker = start_draft(decision(leverage=2, allocation_pct=40), meta(), terms(high_volatility=True), 0, 0)
    assert taker.allocation_pct == pytest.approx(100 / (2 * 2.13))


def test_a_stop_is_held_against_what_the_mode_may_borrow() -> None:
    # 3× would leave a sixth, but a POSITION borrows nothing: at 1× a half costs one per cent.
    given = terms(mode=Mode.POSITION, **FREE)
    for asked, left in ((40, 40.0), (50, 50.0), (51, 50.0)):
        draft = start_draft(decision(leverage=3, allocation_pct=asked), meta(), given, 0, 0)
        assert draft.allocation_pct == pytest.approx(left)
        assert (RuleName.STOP_RISK in fired_rules(draft)) == (left < asked)


def test_a_stop_never_costs_more_than_its_share() -> None:
    given = terms()
    done = ruled_on(decision(allocation_pct=100, leverage=3), given)
    assert worth(done, given) * 0.021 <= 0.01 * standing(given).equity_usd


def test_rule_no_size() -> None:
    done = ruled_on(decision(allocation_pct=0), terms())
    assert (done.call, done.veto) == (Call.HOLD, RuleName.NO_SIZE)
    for cash in (0.0, 0.004, -5.0):
        assert ruled_on(decision(), terms(with_cash(CASH, usd=cash))).veto in (RuleName.NO_SIZE, RuleName.VENUE_CAP)
    empty = replace(_whole(Call.LONG), legs=())
    assert apply_leverage_guard(empty, terms()).veto in (RuleName.NO_SIZE, RuleName.LEVERAGE_GUARD)


def test_what_has_no_worth_or_no_size_is_not_done() -> None:
    draft = _whole(Call.LONG)
    for nothing in (replace(draft, expectation=None), replace(draft, legs=())):
        assert require_expectancy(nothing, terms()).veto == RuleName.NO_SIZE
    won_alone = replace(draft, legs=(_spot(200_000.0),))
    assert require_expectancy(won_alone, terms()).opens
    assert require_expectancy(won_alone, terms(krw_rate=GONE)).veto == RuleName.NO_SIZE


def test_a_leg_nobody_can_convert_is_dropped_by_the_guard() -> None:
    draft = _whole(Call.LONG)
    both = replace(draft, legs=(*draft.legs, _spot(100_000.0)), routed_to=Target.SPLIT)
    assert [leg.venue for leg in apply_leverage_guard(both, terms()).legs] == [Venue("BINANCE"), Venue("UPBIT")]
    done = apply_leverage_guard(both, terms(krw_rate=GONE))
    assert ([leg.venue for leg in done.legs], done.target) == ([Venue("BINANCE")], Target.BINANCE)
    assert fired_rules(done)[-1] == RuleName.LEVERAGE_GUARD


def test_rule_expectancy() -> None:
    """Forty trades as they were claimed: half of an edge counts. 7 points carry the costs, and 3 do not."""
    half = Calibration(judge=JudgeKind.RULES, n=40, edge_gain=1.0, edge_squared=1.0, edge_variance=0.1)
    given = terms(record=replace_explorations(DeskRecord(calibrations=(half,))))
    worth_it, not_worth_it = (ruled_on(decision(win_probability_pct=pct), given) for pct in (40, 36))
    assert (not_worth_it.call, not_worth_it.veto) == (Call.HOLD, RuleName.EXPECTANCY)
    assert worth_it.call is Call.LONG
    for done in (worth_it, not_worth_it):
        found = done.expectation
        assert found is not None
        costs = found.fees_pct + found.slippage_pct + found.funding_pct
        assert (found.fees_pct, found.slippage_pct) == (pytest.approx(0.07), pytest.approx(0.03))
        assert found.funding_pct == pytest.approx(0.01 * found.duration_hours / 8)
        assert found.lambda_ == pytest.approx((1 - 1.28 * (0.1 * 1.1) ** 0.5) / 1.1)
        gross = found.lambda_ * found.edge * 6
        assert found.ev_pct == pytest.approx(found.fill * (gross - costs))
        assert (found.ev_pct > 0) == done.opens


def test_rule_judge_ev() -> None:
    """By the Judge's own probability it loses: nothing is explored."""
    done = ruled_on(decision(win_probability_pct=34), terms(record=DeskRecord()))
    assert (done.call, done.veto) == (Call.HOLD, RuleName.JUDGE_EV)
    assert ruled_on(decision(win_probability_pct=37), terms(record=DeskRecord())).exploration


def test_rule_exploration() -> None:
    """Two a day for the whole desk, a quarter of the size, on paper; marked wherever it is shown."""
    given = terms(record=DeskRecord())
    whole, done = ruled_on(decision(), terms()), ruled_on(decision(), given)
    assert (done.call, done.exploration, fired_rules(done)[-1]) == (Call.LONG, True, RuleName.EXPLORATION)
    assert done.legs[0].margin == pytest.approx(whole.legs[0].margin / 4, abs=0.01)
    assert done.expectation is not None
    assert done.expectation.exploration
    card = finish_ruling(done, given, NOW).card
    assert card is not None
    assert card.exploration
    assert card.loss_at_stop_usd <= 0.0025 * standing(given).equity_usd
    assert ruled_on(decision(), terms(record=explorations(1))).exploration
    for refused in (replace(given, paper=False), terms(record=explorations(2)), terms(record=GONE)):
        held = ruled_on(decision(), refused)
        assert (held.call, held.veto) == (Call.HOLD, RuleName.EXPECTANCY)


def test_money_needs_as_many_closed_trades_as_prove_something() -> None:
    proven = terms().record
    assert isinstance(proven, DeskRecord)
    for n, opens in ((39, False), (40, True)):
        counted = tuple(
            entry.model_copy(update={"n": n, "edge_gain": entry.edge_squared}) for entry in proven.calibrations
        )
        given = terms(record=proven.model_copy(update={"calibrations": counted}))
        assert ruled_on(decision(), given).opens, "on paper either way"
        done = ruled_on(decision(), replace(given, paper=False))
        assert (done.opens, done.exploration, done.veto) == (opens, False, None if opens else RuleName.EXPECTANCY)


def test_there_is_no_monthly_limit_to_explorations() -> None:
    days = 2 * DAY_MS
    assert ruled_on(decision(), terms(record=explorations(20, n=400, ago=days))).exploration
    assert not ruled_on(decision(), terms(record=explorations(2, n=400))).opens


def small_edge(**changed: Any) -> RulingInputs:
    """A record that supports a third of a claimed edge."""
    third = Calibration(judge=JudgeKind.RULES, n=400, edge_gain=0.8, edge_squared=1.0, edge_variance=0.1)
    return terms(record=DeskRecord(calibrations=(third,)), **{"funding_next": 0.0, **changed})


@pytest.mark.parametrize("call", [Call.LONG, Call.SHORT])
@pytest.mark.parametrize("cost", [0.0, 0.02])
def test_rule_kelly(call: Call, cost: float) -> None:
    """Notional is at most a quarter of equity · EV / (G · L), models paid, whatever part of it is filled."""
    said, given = decision(call, win_probability_pct=42), small_edge()
    done = ruled_on(said, given, cost=cost)
    found = done.expectation
    assert found is not None
    assert RuleName.KELLY in fired_rules(done)
    assert RuleName.KELLY not in fired_rules(ruled_on(decision(call), terms()))
    bears = standing(given).equity_usd / 4 * (found.ev_pct / found.fill / 100) / (0.04 * 0.02)
    assert done.legs[0].notional == pytest.approx(bears, rel=1e-3)
    assert done.allocation_pct == pytest.approx(100 * done.legs[0].margin / 2_000, rel=1e-3)


@pytest.mark.parametrize("allocation", [20, 30])
def test_whole_lots_stay_below_what_the_edge_bears(allocation: int) -> None:
    """An allocation between two lots is cut for all of it, not for the lots below it alone."""
    lots = replace(assume_market(Venue("BINANCE"), "BTC"), lot=2.0)
    given = small_edge(catalogue=Catalogue((lots,), {Venue("BINANCE"): NOW}))
    done = ruled_on(decision(win_probability_pct=40, allocation_pct=allocation), given)
    assert RuleName.KELLY in fired_rules(done)
    bought = with_lots(done.legs[0], PRICE, None, given)
    assert bought is not None
    assert 0 < bought.notional <= done.kelly_cap_usd


def test_what_is_open_on_the_same_side_of_the_group_counts_against_it() -> None:
    ether, group = Symbol("ETHUSDT"), frozenset((Symbol("BTCUSDT"), Symbol("ETHUSDT")))

    def open_beside(side: Side, usd: float, group: frozenset[Symbol] = group) -> RulingDraft:
        beside = replace(CASH, positions=(holding(side, margin=usd, leverage=2.0, entry=10.0, symbol=ether),))
        return ruled_on(decision(win_probability_pct=42), small_edge(account=beside, group=group))

    alone = ruled_on(decision(win_probability_pct=42), small_edge()).legs[0].notional
    assert open_beside(Side.LONG, 50.0).legs[0].notional == pytest.approx(alone - 100.0, abs=5.0)
    assert open_beside(Side.SHORT, 50.0).legs[0].notional == pytest.approx(alone, abs=5.0)
    assert open_beside(Side.LONG, 50.0, frozenset()).legs[0].notional == pytest.approx(alone, abs=5.0)
    full = open_beside(Side.LONG, alone)
    assert (full.call, full.veto) == (Call.HOLD, RuleName.KELLY)


def test_a_trade_is_not_raised_to_a_minimum_that_its_edge_does_not_bear() -> None:
    """An EV of a cent on $100 bears less than the $100 that BINANCE takes."""
    done = ruled_on(decision(win_probability_pct=36), small_edge(**FREE, account=build_account(usd=200.0, krw=0.0)))
    assert (done.call, done.exploration, done.veto) == (Call.HOLD, False, RuleName.MINIMUM_ORDER)


def test_an_exploration_is_not_held_against_its_edge() -> None:
    done = ruled_on(decision(), terms(record=DeskRecord()))
    assert done.exploration
    assert RuleName.KELLY not in fired_rules(done)


@pytest.mark.parametrize("call", [Call.LONG, Call.SHORT])
def test_by_the_policy_of_the_seed_the_judges_own_odds_decide(call: Call) -> None:
    given = terms(record=DeskRecord(policy="seed"))
    done = ruled_on(decision(call, win_probability_pct=45), given)
    found = done.expectation
    assert found is not None
    assert (found.lambda_, found.policy, done.exploration) == (0.0, "seed", False)
    costs = found.fees_pct + found.slippage_pct + found.funding_pct
    assert found.ev_pct == pytest.approx(found.fill * (0.45 * (4 - costs) - 0.55 * (2 + costs)))
    card = finish_ruling(done, given, NOW).card
    assert card is not None
    assert (card.policy, card.model_dump(mode="json")["policy"]) == ("seed", "seed")
    usual = finish_ruling(ruled_on(decision(call), terms()), terms(), NOW).card
    assert usual is not None
    assert "policy" not in usual.model_dump(mode="json")
    assert ruled_on(decision(call, win_probability_pct=30), given).veto == RuleName.JUDGE_EV


@pytest.mark.parametrize(("allocation", "notional"), [(40, 238.08), (10, 100.0), (5, 100.0), (2, None)])
def test_an_exploration_is_raised_to_what_the_exchange_takes(allocation: int, notional: float | None) -> None:
    """A quarter of $400 is $100; a quarter of $200 is raised to it, and a whole trade below it is none."""
    given = terms(record=DeskRecord())
    done = ruled_on(decision(allocation_pct=allocation), given)
    if notional is None:
        assert (done.call, done.veto) == (Call.HOLD, RuleName.MINIMUM_ORDER)
        return
    assert [leg.notional for leg in done.legs] == [pytest.approx(notional, abs=0.05)]
    ruling = finish_ruling(done, given, NOW)
    assert ruling.legs[0].quantity == pytest.approx(notional / 100, abs=0.001)
    assert ruling.allocation_pct == pytest.approx(100 * ruling.legs[0].margin / 2_000)


def test_an_exploration_is_not_raised_beyond_its_risk() -> None:
    # 0.25 % of it are 75 cents; 2.1 % of $100 are $2.10
    poor = terms(build_account(usd=300.0, krw=0.0), record=DeskRecord())
    done = ruled_on(decision(allocation_pct=40), poor)
    assert (done.call, done.veto) == (Call.HOLD, RuleName.MINIMUM_ORDER)


@pytest.mark.parametrize("leverage", [1, 3])
def test_a_ruling_takes_the_margin_of_its_lots(leverage: int) -> None:
    """Lots are rounded down; what is not bought takes no margin, and a model costs its share of what is."""
    given = terms(mark=50_300.0)
    said = decision(
        allocation_pct=13, leverage=leverage, entry_price=50_300.0, stop_loss=49_300.0, take_profit=52_300.0
    )
    ruling = finish_ruling(ruled_on(said, given, cost=0.01), given, NOW)
    card = ruling.card
    assert card is not None
    for leg in ruling.legs:
        rate, grain = (1.0, 0.01) if leg.venue is Venue("BINANCE") else (WON, 1.0)
        assert leg.notional == pytest.approx((leg.quantity or 0.0) * 50_300.0 * rate, abs=leverage * grain)
    assert card.margin_usd == pytest.approx(card.notional_usd / leverage, abs=0.02)
    assert card.llm_cost_pct == pytest.approx(1 / card.notional_usd, rel=1e-3)
    parts = card.fees_pct + card.slippage_pct + card.funding_pct + card.llm_cost_pct
    assert card.ev_pct == pytest.approx(card.fill * (card.gross_pct - parts), rel=1e-9)


def test_rule_minimum_order() -> None:
    """A leg the Judge himself asks too little for is dropped, with the reason; the other stays."""
    given = terms()
    done = ruled_on(decision(allocation_pct=2, leverage=2), given)
    assert (done.call, done.veto) == (Call.HOLD, RuleName.MINIMUM_ORDER)
    split = ruled_on(decision(allocation_pct=8, leverage=1), given)
    assert [leg.venue for leg in split.legs] == [Venue("UPBIT")]
    assert split.changes[-1].by == RuleName.MINIMUM_ORDER


@pytest.mark.parametrize("call", [Call.LONG, Call.SHORT])
@pytest.mark.parametrize("record", [PROVEN, DeskRecord()])
def test_what_rules_made_too_small_is_raised_to_the_minimum(call: Call, record: DeskRecord) -> None:
    """A twentieth of $1,600 is $80, and BINANCE takes $100: its stop costs $2.10 and may cost $8.57 or $34.29."""
    given = terms(record=record)
    done = ruled_on(decision(call), given, 5)
    assert [(leg.margin, leg.notional) for leg in done.legs] == [(50.0, 100.0)]
    told = [(change.by, change.field, change.to) for change in done.changes]
    assert told.count((RuleName.MINIMUM_ORDER, "legs.BINANCE.margin", 50.0)) == 1
    ruling = finish_ruling(done, given, NOW)
    assert (ruling.decision, ruling.allocation_pct) == (call, pytest.approx(2.5))
    halved = ruled_on(decision(call), replace(given, panic=True), 5)
    assert halved.legs == done.legs


def test_what_is_raised_stays_within_stop_venue_and_book() -> None:
    poor = terms(build_account(usd=150.0, krw=0.0))  # 1 % of it is $1.50; 2.1 % of $100 are $2.10
    full = terms(replace(CASH, positions=(holding(margin=1_951.0, symbol=Symbol("ETHUSDT"), entry=10.0),)))
    held = terms(replace(CASH, positions=(holding(margin=79.0),)))
    for given, said in ((poor, decision(allocation_pct=80)), (full, decision()), (held, decision())):
        done = ruled_on(said, given, 5 if given is held else 100)
        assert (done.call, done.veto) == (Call.HOLD, RuleName.MINIMUM_ORDER)


def test_a_spot_leg_at_its_minimum_can_be_sold_at_its_stop() -> None:
    """₩5,000 bought and stopped 10 % lower are ₩4,500, which nobody takes."""
    given = terms(krw_rate=1_400.0)
    leg = Leg(venue=Venue("UPBIT"), side=Side.LONG, currency="KRW", margin=5_000.0, notional=5_000.0, leverage=1.0)
    assert with_lots(leg, 50_000.0, 45_000.0, given) is None
    least = minimum_margin(leg, 50_000.0, 45_000.0, given)
    assert isinstance(least, float)
    kept = with_lots(with_margin(leg, least), 50_000.0, 45_000.0, given)
    assert kept is not None
    assert kept.quantity is not None
    assert 5_000 <= kept.quantity * 45_000 * 1_400 < 5_200
    short = leg.model_copy(update={"venue": Venue("BINANCE"), "currency": "USDT", "notional": 100.0})
    assert minimum_margin(short, 50_000.0, 45_000.0, given) == minimum_margin(short, 50_000.0, None, given)


def test_what_the_officer_makes_too_small_is_not_raised() -> None:
    given = terms()
    done = ruled_on(decision(), given, 5, Tightening(allocation_pct=1.0))
    ruling = finish_ruling(done, given, NOW)
    assert (ruling.decision, ruling.veto, ruling.card) == (Call.HOLD, RuleName.MINIMUM_ORDER, None)


@pytest.mark.parametrize("rule", [RuleName.STOP_PASSED, RuleName.TARGET_PASSED, RuleName.HOLD_OVER])
@pytest.mark.parametrize("call", list(Call))
def test_what_is_passed_ends_whatever_was_decided(rule: RuleName, call: Call) -> None:
    account = replace(CASH, positions=(holding(),))
    given = terms(account, exits=(PositionExit("pos_1", rule, "it was passed"),))
    for blind in (given, change_inputs(given, **_nothing()), replace(given, panic=True)):
        blind = replace(blind, account=given.account)
        done = ruled_on(decision(call), blind, None, Tightening(veto=True))
        assert (done.call, done.style, done.veto) == (Call.CANCEL_AND_CLOSE, Style.CASINO_EXIT, None)
        assert [closing.id for closing in done.closes] == ["pos_1"]
        assert fired_rules(done) == [rule]


def test_rule_stop_passed() -> None:
    """`tests/unit/trading/rules/test_exits.py` says when."""


test_rule_target_passed = test_rule_hold_over = test_rule_stop_passed


def test_expectancy_is_asked_again_after_the_guard() -> None:
    """What the minds cost is little of the whole and too much of what the guard leaves."""
    room = 60.0
    account = replace(
        CASH,
        positions=(holding(symbol=Symbol("ETHUSDT"), margin=(2 * 3_428.571428 - room) / 3, leverage=3, entry=10.0),),
    )
    account = with_cash(account, usd=2_000.0)
    given = terms(account, record=replace_explorations(PROVEN))
    draft = apply_risk_rules(start_draft(decision(leverage=1), meta(), given, 0.8, 0.0), given, None)
    assert draft.opens
    done = apply_leverage_guard(draft, given)
    assert done.veto == RuleName.EXPECTANCY
    assert fired_rules(done)[-2:] == [RuleName.LEVERAGE_GUARD, RuleName.EXPECTANCY]


def test_rule_top_up() -> None:
    # $200 are meant for BINANCE and 200,000 won, which is $142.86, for UPBIT: 150 of $342.86 are held, 9/16 new.
    new = {Venue("BINANCE"): 112.5, Venue("UPBIT"): 112_500.0}
    for account in (
        replace(CASH, positions=(holding(margin=150.0),)),
        replace(CASH, positions=(holding(margin=50.0, leverage=3.0),)),
        replace(CASH, pending=(resting(margin=150.0),)),
        with_cash(
            CASH, krw=CASH.cash[SPOT] - 210_000.0, positions=(holding(margin=210_000.0, exchange=Venue("UPBIT")),)
        ),
    ):
        done = ruled_on(TIGHT, terms(account))
        assert fired_rules(done) == [RuleName.ALREADY_HELD]
        assert {leg.venue: leg.margin for leg in done.legs} == new
    leaving = replace(CASH, pending=(resting(margin=150.0, reduce_only=True),))
    assert fired_rules(ruled_on(TIGHT, terms(leaving))) == []


def test_sizes_are_topped_up_and_not_margins() -> None:
    # SHORT 1,500 are open on a margin of 500; of $2,000 a half at 1× is 1,000, and at 2 % that is all a stop may cost.
    held = replace(CASH, positions=(holding(Side.SHORT, margin=500.0, leverage=3.0),))
    done = ruled_on(decision(Call.SHORT, leverage=1, allocation_pct=50), terms(held, **FREE))
    assert (done.call, done.veto) == (Call.HOLD, RuleName.ALREADY_HELD)
    # At 2× a quarter is the same 1,000: of 600 held on 600, 400 are new, on 200.
    held = replace(CASH, positions=(holding(Side.SHORT, margin=600.0),))
    done = ruled_on(decision(Call.SHORT, leverage=2, allocation_pct=25), terms(held, **FREE))
    assert [(leg.margin, leg.notional) for leg in done.legs] == [(200.0, 400.0)]


def test_what_was_held_counts_at_what_it_is_worth_now() -> None:
    # Bought at 50 for 75, it is worth 150.
    held = with_cash(CASH, usd=1_925.0, positions=(holding(margin=75.0, entry=50.0),))
    assert {leg.venue: leg.margin for leg in ruled_on(TIGHT, terms(held)).legs}[Venue("BINANCE")] == 112.5


def test_what_is_held_whole_is_not_bought_again() -> None:
    held = replace(CASH, positions=(holding(margin=500.0, leverage=2.0),))
    done = ruled_on(decision(allocation_pct=20), terms(held))
    assert (done.call, done.veto) == (Call.HOLD, RuleName.ALREADY_HELD)


@pytest.mark.parametrize(("mode", "minutes"), [(Mode.SWING, 15), (Mode.POSITION, 60)])
def test_rule_expired(mode: Mode, minutes: int) -> None:
    given = terms(mode=mode)
    done = ruled_on(decision(leverage=1), given)
    end = Millis(NOW + minutes * MINUTE_MS)
    fresh, late = finish_ruling(done, given, end), finish_ruling(done, given, Millis(end + 1))
    assert fresh.decision is Call.LONG
    assert (late.decision, late.veto, late.legs) == (Call.HOLD, "expired", ())
    assert (late.allocation_pct, late.leverage, late.target_exchange, late.execution_style) == (0.0, 1.0, None, None)
    assert fresh.valid_until == ("2026-01-01T00:15:00Z" if minutes == 15 else "2026-01-01T01:00:00Z")


# -- the risk officer's


@pytest.mark.parametrize(
    ("mode", "asked", "left"),
    [(Mode.SWING, 3, 3.0), (Mode.POSITION, 1, 1.0), (Mode.POSITION, 2, 1.0), (Mode.POSITION, 3, 1.0)],
)
def test_rule_cro_1_leverage(mode: Mode, asked: int, left: float) -> None:
    done = ruled_on(decision(leverage=asked), terms(mode=mode))
    assert done.leverage == left
    assert (RuleName.LEVERAGE in fired_rules(done)) == (left < asked)


@pytest.mark.parametrize(
    ("changed", "halved"),
    [
        ({}, False),
        ({"panic": True}, True),
        ({"panic": GONE}, True),
        ({"curve_change": 0.249}, False),
        ({"curve_change": 0.25}, True),
        ({"curve_change": 0.251}, True),
        ({"curve_change": -0.249}, False),
        ({"curve_change": -0.25}, True),
        ({"curve_change": GONE}, True),
        ({"panic": True, "curve_change": 0.5}, True),
    ],
)
def test_rule_cro_2_volatility(changed: dict[str, Any], halved: bool) -> None:
    _halves(RuleName.VOLATILITY, terms(**changed), Call.LONG, halved)


@pytest.mark.parametrize(
    ("call", "rate", "held"),
    [
        (Call.LONG, 0.00029, False),
        (Call.LONG, 0.0003, False),
        (Call.LONG, 0.00031, True),
        (Call.LONG, -0.002, False),
        (Call.SHORT, -0.00029, False),
        (Call.SHORT, -0.0003, False),
        (Call.SHORT, -0.00031, True),
        (Call.SHORT, 0.002, False),
        (Call.SHORT, GONE, True),
    ],
)
def test_rule_cro_3_funding(call: Call, rate: Any, held: bool) -> None:
    done = apply_risk_rules(_whole(call), terms(funding_next=rate), None)
    assert (done.veto == RuleName.FUNDING) == held
    assert done.opens is not held


@pytest.mark.parametrize("call", [Call.LONG, Call.SHORT])
@pytest.mark.parametrize(
    ("usd", "halved"),
    [(LIQUIDATION_TRAP_USD - 1, False), (LIQUIDATION_TRAP_USD, False), (LIQUIDATION_TRAP_USD + 1, True), (GONE, True)],
)
def test_rule_cro_4_liquidations(call: Call, usd: Any, halved: bool) -> None:
    """The other side's: those who were forced out are who moved the price."""
    against = "shorts_liquidated" if call is Call.LONG else "longs_liquidated"
    along = "longs_liquidated" if call is Call.LONG else "shorts_liquidated"
    _halves(RuleName.LIQUIDATIONS, terms(**{against: usd}), call, halved)
    _halves(RuleName.LIQUIDATIONS, terms(**{along: usd}), call, False)


@pytest.mark.parametrize(("used", "left"), [(1_799.0, 200.0), (1_800.0, 199.9), (1_801.0, 198.9)])
def test_rule_cro_5_venue_cap(used: float, left: float) -> None:
    # Margin of another symbol counts, profits do not widen the cap, and the fee is kept back.
    account = with_cash(CASH, usd=2_000.0, positions=(holding(margin=used, symbol=Symbol("ETHUSDT"), entry=10.0),))
    done = ruled_on(TIGHT, terms(account))
    assert {leg.venue: leg.margin for leg in done.legs}[Venue("BINANCE")] == pytest.approx(left)
    assert (RuleName.VENUE_CAP in fired_rules(done)) == (used >= 1_800)


def test_caps_are_of_margin_in_the_exchanges_own_money() -> None:
    rich = terms(with_cash(CASH, usd=50_000.0, krw=50_000_000.0))
    done = ruled_on(decision(leverage=3, allocation_pct=16), rich)
    assert [(leg.margin, leg.notional) for leg in done.legs] == [(2_000.0, 6_000.0)]
    done = ruled_on(decision(leverage=1, allocation_pct=50), rich)
    assert [leg.margin for leg in done.legs] == [2_000.0, 2_000_000.0]


def test_pending_margin_counts_against_the_cap() -> None:
    account = replace(CASH, pending=(resting(margin=1_850.0, symbol=Symbol("ETHUSDT")),))
    done = ruled_on(TIGHT, terms(account, krw_rate=WON))
    assert {leg.venue: leg.margin for leg in done.legs}[Venue("BINANCE")] == pytest.approx(149.92)


def test_margin_never_exceeds_what_an_exchange_holds() -> None:
    account = with_cash(CASH, usd=500.0, positions=(holding(margin=440.0, symbol=Symbol("ETHUSDT"), entry=10.0),))
    done = ruled_on(decision(allocation_pct=25), terms(account))
    assert [leg.margin for leg in done.legs] == [59.94]


def test_a_leg_fits_the_book_with_its_fee_whatever_was_won_or_lost() -> None:
    for price in (9.0, 10.0, 11.0):
        held = holding(margin=1_000.0, symbol=Symbol("ETHUSDT"), entry=price)
        account = with_cash(CASH, usd=2_000.0, positions=(held,))
        inputs = terms(account)
        assert not isinstance(inputs.marked_account, Missing)
        (leg,) = [leg for leg in ruled_on(decision(allocation_pct=90), inputs).legs if leg.venue is Venue("BINANCE")]
        lost = min(0.0, inputs.marked_account.equity[Venue("BINANCE")] - account.cash[FUTURES])
        assert leg.margin + leg.notional * 0.0005 <= account.cash[FUTURES] - 1_000.0 + lost
        assert inputs.marked_account.free[Venue("BINANCE")] == pytest.approx(account.cash[FUTURES] - 1_000.0 + lost)


def test_a_book_below_zero_says_so_and_cuts_nothing_from_nothing() -> None:
    under = with_cash(CASH, usd=-966.0)
    done = ruled_on(decision(leverage=3), terms(under))
    assert not done.opens
    assert done.veto == RuleName.VENUE_CAP
    assert "-966.00 USD" in done.changes[-1].why
    assert not [change for change in done.changes if change.from_ == change.to]


def test_rule_cro_5_won() -> None:
    done = ruled_on(TIGHT, terms(krw_rate=GONE))
    assert fired_rules(done) == [RuleName.RATE]
    assert (done.target, [(leg.venue, leg.margin) for leg in done.legs]) == (
        Target.BINANCE,
        [(Venue("BINANCE"), 200.0)],
    )
    assert done.allocation_pct == pytest.approx(10)
    given = terms(krw_rate=GONE)
    assert apply_risk_rules(start_draft(TIGHT, meta(), given, 0, 0), given, None).allocation_pct == pytest.approx(10)


def test_spot_is_never_borrowed_for() -> None:
    """Not even before the officer has looked at the leverage."""
    draft = start_draft(decision(leverage=3), meta(), terms(mode=Mode.POSITION), 0, 0)
    assert [(leg.venue, leg.leverage, leg.notional == leg.margin) for leg in draft.legs] == [
        (Venue("UPBIT"), 1.0, True)
    ]


def test_what_the_minds_will_yet_cost_counts() -> None:
    draft = start_draft(TIGHT, meta(), terms(), 0.02, 0.03)
    assert draft.expectation is not None
    assert draft.expectation.llm_cost_usd == pytest.approx(0.05)


def test_a_leg_that_is_lost_is_not_carried_elsewhere() -> None:
    done = ruled_on(decision(leverage=1), terms(krw_rate=GONE, mode=Mode.POSITION))
    assert (done.call, done.veto, done.legs) == (Call.HOLD, RuleName.RATE, ())


@pytest.mark.parametrize(
    ("breakout", "high_volatility", "style"),
    [
        (False, False, Style.PASSIVE_MAKER),
        (False, True, Style.SMART_DCA),
        (True, True, Style.MOMENTUM_SNIPER),
        (GONE, False, Style.SMART_DCA),
        (False, GONE, Style.SMART_DCA),
        (GONE, GONE, Style.SMART_DCA),
    ],
)
def test_rule_cro_6_style(breakout: Any, high_volatility: Any, style: Style) -> None:
    done = ruled_on(TIGHT, terms(breakout=breakout, high_volatility=high_volatility))
    assert done.style is style
    assert (RuleName.STYLE in fired_rules(done)) == (style is not Style.PASSIVE_MAKER)


@pytest.mark.parametrize(
    ("changed", "rule", "unknown"),
    [
        ({"panic": GONE}, RuleName.VOLATILITY, True),
        ({"panic": True}, RuleName.VOLATILITY, False),
        ({"curve_change": GONE}, RuleName.VOLATILITY, True),
        ({"curve_change": GONE, "panic": True}, RuleName.VOLATILITY, False),
        ({"curve_change": 0.3, "panic": GONE}, RuleName.VOLATILITY, False),
        ({"funding_next": GONE}, RuleName.FUNDING, True),
        ({"funding_next": 0.0004}, RuleName.FUNDING, False),
        ({"shorts_liquidated": GONE}, RuleName.LIQUIDATIONS, True),
        ({"shorts_liquidated": LIQUIDATION_TRAP_USD + 1}, RuleName.LIQUIDATIONS, False),
        ({"dollar": GONE}, RuleName.DOLLAR, True),
        ({"dollar": 1.02}, RuleName.DOLLAR, False),
        ({"krw_rate": GONE}, RuleName.RATE, True),
        ({"high_volatility": GONE}, RuleName.STYLE, True),
        ({"high_volatility": True}, RuleName.STYLE, False),
        ({"breakout": True}, RuleName.STYLE, False),
        ({"breakout": GONE}, RuleName.STYLE, True),
    ],
)
def test_a_rule_says_when_it_fires_for_what_is_missing(changed: dict[str, Any], rule: RuleName, unknown: bool) -> None:
    seen = {name: value for name, value in changed.items() if name in ("breakout", "high_volatility")}
    draft = start_draft(TIGHT, meta(), terms(**seen), 0, 0)
    done = apply_risk_rules(draft, terms(**changed), None)
    assert written_by(done, rule) == [f"{rule} (unknown)" if unknown else rule]
    if rule is RuleName.STYLE:
        word = "not known" if unknown else "breakout" if "breakout" in changed else "restless"
        assert word in done.changes[-1].why


def test_only_the_leg_in_won_is_lost_for_want_of_its_rate() -> None:
    used = replace(CASH, positions=(holding(margin=1_850.0, symbol=Symbol("ETHUSDT"), entry=10.0),))
    done = ruled_on(TIGHT, terms(used, krw_rate=GONE))
    assert written_by(done, RuleName.VENUE_CAP) == [RuleName.VENUE_CAP]
    assert written_by(done, RuleName.RATE) == [f"{RuleName.RATE} (unknown)"]
    short = replace(start_draft(decision(Call.SHORT), meta(), terms(), 0, 0), routed_to=Target.SPLIT)
    assert written_by(apply_risk_rules(short, terms(), None), RuleName.RATE) == [RuleName.RATE]


def test_what_was_sent_nowhere_has_no_legs_to_carry() -> None:
    nowhere = replace(_whole(Call.LONG), routed_to=None)
    assert place_legs(nowhere, terms()) == nowhere


def written_by(draft: RulingDraft, rule: RuleName) -> list[str]:
    return [change.by for change in draft.changes if change.by.split(" ")[0] == rule]


@pytest.mark.parametrize("asked", list(Style))
@pytest.mark.parametrize("high_volatility", [False, True])
@pytest.mark.parametrize("taker", [0.05, 3.0])
def test_an_officer_picks_a_costlier_style_while_something_is_left(
    asked: Style, high_volatility: bool, taker: float
) -> None:
    """With a taker's fee of three per cent only waiting orders leave anything; the exits' style is never picked."""
    by_rule = Style.SMART_DCA if high_volatility else Style.PASSIVE_MAKER
    fees = Fees({venue: FeeRates(0.0, 0.05) for venue in DEFAULT_VENUES})
    given = terms(high_volatility=high_volatility, fees=fees)
    draft = apply_risk_rules(start_draft(TIGHT, meta(100), given, 0.0, 0.0), given, None)
    dear = replace(given, slippage=Slippage(taker - 0.05, taker - 0.05, 0.0))
    done = apply_risk_rules(replace(draft, changes=()), dear, Tightening(style=asked))
    kept = asked if asked.opens and (taker < 1 or asked is Style.PASSIVE_MAKER) else by_rule
    assert done.style is kept
    assert done.expectation is not None
    if kept is not by_rule:
        assert done.expectation.ev_pct > 0
    assert (done.allocation_pct, done.leverage) <= (draft.allocation_pct, draft.leverage)


@given_values(
    st.sampled_from([Call.LONG, Call.SHORT]), st.sampled_from(list(Target)), st.sampled_from(list(Style)),
    st.floats(0.0, 5.0), st.sampled_from([1, 2, 3]),
)  # fmt: skip
def test_another_route_or_style_never_risks_more_and_keeps_something(
    call: Call, route: Target, style: Style, slippage: float, leverage: int
) -> None:
    given = terms(slippage=Slippage(slippage, slippage))
    said = decision(call, leverage=leverage, allocation_pct=20)
    plain = apply_risk_rules(start_draft(said, meta(100), given, 0.0, 0.0), given, None)
    asked = apply_risk_rules(start_draft(said, meta(100), given, 0.0, 0.0), given, Tightening(style=style, route=route))
    assert asked.call is plain.call
    if not asked.opens:
        return
    size, most = (fsum(leg_notional_usd(leg, given) for leg in draft.legs) for draft in (asked, plain))
    assert size <= most * (1 + 1e-9)
    assert max(leg.leverage for leg in asked.legs) <= max(leg.leverage for leg in plain.legs)
    assert call is Call.LONG or all(leg.venue.shorts for leg in asked.legs)
    if (asked.style, asked.target) != (plain.style, plain.target) and asked.style is not Style.PASSIVE_MAKER:
        assert asked.expectation is not None
        assert asked.expectation.ev_pct > 0


def test_a_route_that_is_chosen_carries_the_trade() -> None:
    given = terms()
    said = decision(leverage=2, allocation_pct=20)
    done = apply_risk_rules(start_draft(said, meta(100), given, 0.0, 0.0), given, Tightening(route=Target.UPBIT))
    assert {leg.venue for leg in done.legs} == {Venue("UPBIT")}
    assert (done.target, written_by(done, RuleName.TIGHTENED) != []) == (Target.UPBIT, True)


@pytest.mark.parametrize(
    ("rate", "held"),
    [(1.0, False), (1.0099, False), (1.01, False), (1.0101, True), (0.99, False), (0.9899, True), (GONE, True)],
)
def test_rule_cro_7_dollar(rate: Any, held: bool) -> None:
    done = ruled_on(TIGHT, terms(dollar=rate))
    assert (done.veto == RuleName.DOLLAR) == held


def test_rule_cro_model() -> None:
    given = terms()
    assert ruled_on(TIGHT, given, tightening=Tightening(veto=True)).veto == RuleName.TIGHTENED
    half = ruled_on(TIGHT, given, tightening=Tightening(allocation_pct=10))
    assert [leg.margin for leg in half.legs] == [100.0, 100_000.0]
    assert half.allocation_pct == pytest.approx(10)
    assert fired_rules(half) == [RuleName.TIGHTENED]
    slower = ruled_on(decision(leverage=3, allocation_pct=10), given, tightening=Tightening(leverage=2))
    assert [(leg.margin, leg.notional, leg.leverage) for leg in slower.legs] == [(200.0, 400.0, 2.0)]
    assert ruled_on(TIGHT, given, tightening=Tightening(allocation_pct=0)).veto == RuleName.TIGHTENED


def test_a_smaller_leverage_sends_nothing_elsewhere() -> None:
    done = ruled_on(decision(leverage=3), terms(), tightening=Tightening(leverage=1))
    assert (done.leverage, done.target) == (1.0, Target.BINANCE)


@pytest.mark.slow
def test_a_model_that_asks_for_more_gets_nothing() -> None:
    given = terms()
    more = Tightening(allocation_pct=100, leverage=3)
    assert ruled_on(TIGHT, given, tightening=more) == ruled_on(TIGHT, given)
    for leverage, asked in ((2, 3.0), (2, 2.0), (1, 1.0), (1, 0.5), (1, -1.0)):
        plain = decision(leverage=leverage, allocation_pct=10)
        assert ruled_on(plain, given, tightening=Tightening(leverage=asked)) == ruled_on(plain, given)


def test_what_the_officer_asks_for_is_given_with_its_reason() -> None:
    said = ruled_on(TIGHT, terms(), tightening=Tightening(allocation_pct=10, rationale="a quiet week"))
    assert said.changes[-1].why == "a quiet week"
    assert ruled_on(TIGHT, terms(), tightening=Tightening(allocation_pct=10)).changes[-1].why


# -- the guard's


@pytest.mark.parametrize(
    ("borrowed", "left"),
    # $3,428.57 of equity may carry $6,857.14; a LONG of 25 % of $2,000 at 2× asks for $1,000.
    [(5_857.0, 500.0), (5_857.2, 499.97), (6_357.14, 250.0), (6_857.2, None)],
)
def test_rule_leverage_guard(borrowed: float, left: float | None) -> None:
    account = replace(CASH, liquidity=(liquidity(borrowed / PRICE),))
    done = ruled_on(decision(allocation_pct=25), terms(account, **FREE))
    if left is None:
        assert (done.call, done.veto) == (Call.HOLD, RuleName.LEVERAGE_GUARD)
        return
    assert [leg.margin for leg in done.legs] == [pytest.approx(left, abs=0.011)]
    assert (RuleName.LEVERAGE_GUARD in fired_rules(done)) == (left < 500)


def test_pending_orders_and_inventory_fill_the_guards_room() -> None:
    for held in (
        replace(CASH, pending=(resting(margin=6_900.0),)),
        replace(CASH, liquidity=(liquidity(69.0),)),
    ):
        given = terms(held)
        draft = replace(_whole(Call.LONG), changes=())
        assert apply_leverage_guard(draft, given).veto == RuleName.LEVERAGE_GUARD


def test_what_looks_either_way_fills_the_guards_room() -> None:
    # $1,200 of one symbol short and $600 of another long are $1,800 and not 600.
    short = holding(Side.SHORT, 400.0, 3.0, symbol=Symbol("ETHUSDT"), entry=10.0, id="pos_2")
    given = terms(replace(CASH, positions=(holding(margin=200.0, leverage=3.0), short)))
    assert standing(given).exposure_usd == pytest.approx(1_800.0)


def test_each_leg_has_its_half_of_the_room() -> None:
    # $200 and ₩200,000 ($142.86) are asked for; of $300 that are left, neither may take more than $150.
    account = replace(CASH, liquidity=(liquidity((2 * (2_000 + 2_000_000 / WON) - 300) / PRICE),))
    done = ruled_on(TIGHT, terms(account))
    assert [leg.margin for leg in done.legs] == [pytest.approx(150.0, abs=0.011), 200_000.0]
    alone = ruled_on(TIGHT, terms(account, krw_rate=GONE))
    assert alone.veto == RuleName.LEVERAGE_GUARD  # without the won half the equity is gone


@pytest.mark.parametrize(
    ("used_up", "left"), [(Venue("UPBIT"), (Venue("BINANCE"), 50.0)), (Venue("BINANCE"), (Venue("UPBIT"), 70_000.0))]
)
def test_a_leg_that_is_used_up_leaves_the_other_its_half_of_the_room(used_up: Venue, left: tuple[Venue, float]) -> None:
    # Of $100 of room each leg may take $50, which is ₩70,000, whether or not the other exchange has margin left.
    margin, entry = (2_000_000.0, 10 * WON) if used_up is Venue("UPBIT") else (2_000.0, 10.0)
    full = holding(margin=margin, symbol=Symbol("ETHUSDT"), entry=entry, exchange=used_up)
    account = with_cash(CASH, krw=0.0 if used_up is Venue("UPBIT") else CASH.cash[SPOT], positions=(full,))
    alone = standing(terms(account))
    room = 2 * alone.equity_usd - alone.exposure_usd
    given = terms(replace(account, liquidity=(liquidity((room - 100) / PRICE),)))
    done = ruled_on(TIGHT, given)
    assert fired_rules(done) == [RuleName.VENUE_CAP, RuleName.LEVERAGE_GUARD]
    assert [(leg.venue, leg.margin) for leg in done.legs] == [(left[0], pytest.approx(left[1], abs=1.01))]
    assert done.target is Target(left[0].value)


@pytest.mark.parametrize(("used", "cut"), [(7_599.0, False), (7_600.0, False), (7_600.02, True)])
def test_a_leg_as_large_as_its_room_is_left_alone(used: float, cut: bool) -> None:
    # With a won of 1,000 the account owns $4,000 and may carry $8,000; both legs ask for $200 of the $400 left.
    account = replace(CASH, liquidity=(liquidity(used / PRICE),))
    done = ruled_on(TIGHT, terms(account, krw_rate=1_000.0))
    assert (fired_rules(done) == [RuleName.LEVERAGE_GUARD]) is cut
    assert [leg.margin for leg in done.legs] == ([199.99, 199_990.0] if cut else [200.0, 200_000.0])
    assert done.allocation_pct == pytest.approx(19.999 if cut else 20, abs=1e-9)


def test_the_guard_scales_less_than_a_dollar_too_and_raises_nothing() -> None:
    draft = start_draft(decision(leverage=1, allocation_pct=20), meta(), terms(), 0, 0)
    small, nothing = (with_margin(draft.legs[0], margin) for margin in (0.8, 0.0))
    used = 2 * standing(terms()).equity_usd - 1
    given = terms(replace(CASH, liquidity=(liquidity(used / PRICE),)))
    assert [leg.margin for leg in apply_leverage_guard(replace(draft, legs=(small, nothing)), given).legs] == [0.5]
    asked_less = replace(draft, allocation_pct=1.0)
    assert apply_leverage_guard(asked_less, terms()).allocation_pct == 1.0


def test_the_guard_fails_closed() -> None:
    for blind in (
        apply_leverage_guard(_whole(Call.LONG), terms(marked_account=GONE)),
        apply_leverage_guard(replace(_whole(Call.LONG), routed_to=None), terms()),
    ):
        assert blind.veto == RuleName.LEVERAGE_GUARD
        assert blind.changes[-1].by == f"{RuleName.LEVERAGE_GUARD} (unknown)"
    assert apply_leverage_guard(_whole(Call.LONG), terms(with_cash(CASH, usd=-3_000.0))).veto == RuleName.LEVERAGE_GUARD


def test_behaviour_05_an_exit_with_nothing_to_gain_survives_every_veto_and_closes() -> None:
    nothing = terms(replace(CASH, positions=(holding(),)))
    blind = change_inputs(nothing, **_nothing())
    exits = decision(Call.CANCEL_AND_CLOSE, win_probability_pct=0, expected_profit_pct=0.0, source="fallback")
    for given in (nothing, blind, change_inputs(nothing, panic=True, funding_next=0.002, dollar=0.5)):
        for tightening in (None, Tightening(veto=True, allocation_pct=0)):
            for budget in (None, 0, 100):
                done = ruled_on(exits, given, budget, tightening, cost=50.0)
                late = finish_ruling(done, given, Millis(NOW + 10**9))
                assert (late.decision, late.execution_style, late.veto) == (
                    Call.CANCEL_AND_CLOSE,
                    Style.CASINO_EXIT,
                    None,
                )
    assert finish_ruling(ruled_on(exits, nothing), nothing, NOW).target_exchange is Target.BINANCE


def test_behaviour_06_expected_loss_of_either_sign_gives_the_same_expectation() -> None:
    given = terms(bars=walk())
    minus, plus = (ruled_on(decision(expected_loss_pct=loss), given) for loss in (-3.0, 3.0))
    assert minus.expectation == plus.expectation
    assert minus.expectation is not None
    assert minus.legs == plus.legs


def test_behaviour_07_with_twice_open_a_new_long_is_scaled_to_nothing() -> None:
    equity = 2_000.0 + 2_000_000.0 / WON
    account = replace(
        CASH, positions=(holding(symbol=Symbol("ETHUSDT"), margin=2 * equity / 3, leverage=3, entry=10.0),)
    )
    account = with_cash(account, usd=2_000.0)
    given = terms(account)
    assert standing(given).leverage == pytest.approx(2.0)
    draft = start_draft(decision(leverage=1), meta(), terms(), 0, 0)
    done = apply_leverage_guard(apply_risk_rules(draft, terms(), None), given)
    assert (done.call, done.legs, done.allocation_pct, done.veto) == (
        Call.HOLD,
        (),
        0.0,
        RuleName.LEVERAGE_GUARD,
    )
    assert not ruled_on(decision(leverage=1), given).opens


@pytest.mark.parametrize("leverage", [1, 2, 3])
@pytest.mark.parametrize("mode", list(Mode))
def test_behaviour_08_a_short_never_reaches_upbit(mode: Mode, leverage: int) -> None:
    done = ruled_on(decision(Call.SHORT, leverage=leverage, allocation_pct=10), terms(mode=mode))
    assert (done.call, done.target) == (Call.SHORT, Target.BINANCE)
    assert {leg.venue for leg in done.legs} == {Venue("BINANCE")}
    forced = replace(
        start_draft(decision(Call.SHORT), meta(), terms(), 0, 0), routed_to=Target.SPLIT, target=Target.SPLIT
    )
    assert {leg.venue for leg in apply_risk_rules(forced, terms(), None).legs} == {Venue("BINANCE")}


@pytest.mark.parametrize(
    ("call", "leverage", "mode", "target"),
    [
        (Call.LONG, 1, Mode.SWING, Target.SPLIT),
        (Call.LONG, 1, Mode.POSITION, Target.UPBIT),
        (Call.LONG, 2, Mode.SWING, Target.BINANCE),
        (Call.LONG, 2, Mode.POSITION, Target.UPBIT),
        (Call.SHORT, 1, Mode.SWING, Target.BINANCE),
        (Call.SHORT, 1, Mode.POSITION, Target.BINANCE),
    ],
)
def test_where_a_trade_is_sent(call: Call, leverage: int, mode: Mode, target: Target) -> None:
    done = ruled_on(decision(call, leverage=leverage), terms(mode=mode))
    assert done.target is target
    assert all(leg.leverage == 1.0 for leg in done.legs if leg.venue is Venue("UPBIT"))


def test_a_hold_changes_nothing() -> None:
    done = ruled_on(decision(Call.HOLD), terms(replace(CASH, positions=(holding(),))))
    assert (done.call, done.veto, done.changes, done.legs, done.style) == (Call.HOLD, None, (), (), None)


def explorations(count: int, n: int = 0, ago: int = HOUR_MS, family: RegimeFamily = RegimeFamily.RANGE) -> DeskRecord:
    """So many explorations of that family, and a record of the range that shows no edge."""
    flat = Calibration(
        judge=JudgeKind.RULES, family=RegimeFamily.RANGE, n=n, edge_gain=0.0, edge_squared=1.0, edge_variance=0.1
    )
    done = Exploration(at=Millis(NOW - ago), judge=JudgeKind.RULES, family=family)
    return DeskRecord(calibrations=(flat,) if n else (), explorations=(done,) * count)


def replace_explorations(record: DeskRecord) -> DeskRecord:
    """The same record on a day on which nothing more may be explored."""
    return record.model_copy(update={"explorations": explorations(2).explorations})


def _spot(won: float) -> Leg:
    return Leg(venue=Venue("UPBIT"), side=Side.LONG, currency="KRW", margin=won, notional=won, leverage=1.0)


def _whole(call: Call) -> RulingDraft:
    return start_draft(replace_call(call), meta(), terms(), 0, 0)


def replace_call(call: Call) -> Any:
    return decision(call, leverage=2, allocation_pct=20)


def _halves(rule: RuleName, given: RulingInputs, call: Call, halved: bool) -> None:
    whole = _whole(call)
    done = apply_risk_rules(whole, given, None)
    assert done.allocation_pct == pytest.approx(whole.allocation_pct / (2 if halved else 1))
    assert (rule in fired_rules(done)) == halved
    assert sum(leg.margin for leg in done.legs) == pytest.approx(sum(leg.margin for leg in whole.legs) / (1 + halved))


def _nothing() -> dict[str, Missing]:
    """The figures of terms that may be missing, none of them known."""
    given = "symbol mode as_of fees paper exits funding_assumed catalogue routes quoted_rates".split()
    known = (name for name in RulingInputs.__dataclass_fields__ if name not in given)
    return dict.fromkeys((*known, "krw_rate", "dollar"), GONE)


def test_the_money_of_a_leg_is_what_its_whole_lots_take() -> None:
    given = terms()
    ruling = finish_ruling(ruled_on(decision(), given), given, NOW)
    assert ruling.card is not None
    for leg in ruling.legs:
        price = price_at(leg.venue, ruling.card.entry, given)
        assert leg.quantity is not None
        assert not isinstance(price, Missing)
        assert leg.notional == pytest.approx(leg.quantity * price, abs=0.01 * leg.leverage * max(1, price / 100))
        assert leg.notional == pytest.approx(leg.margin * leg.leverage)
