"""What happened must matter: one test per row of the event-response table, on bundles edited by hand."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from tests.wire.desk_bundles import AS_OF, BTC, Scripted, World, bundle_of, holding, minds_of, saying
from tests.wire.desk_roles import Argued, argued
from tests.wire.trades import decision
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, PERPETUALS
from zuno.provenance.slots import render
from zuno.trading.agents import liquidity, meta, prompt_facts
from zuno.trading.agents.case import Case, build_case
from zuno.trading.measure.events import EventKind
from zuno.trading.measure.structure import PriceDirection
from zuno.trading.model import market
from zuno.trading.model.account import Account
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import Call, Meta, Regime, RiskBias
from zuno.trading.model.known import Missing
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, Funding, Level, MarkAndIndex, Side, Timeframe
from zuno.trading.rules.draft import RuleName, RulingDraft
from zuno.trading.rules.ruling import start_draft

pytestmark = pytest.mark.slow

SIDES = {-1: (Side.LONG, Call.LONG), 1: (Side.SHORT, Call.SHORT)}
"""By the way an event goes: who is hurt by it, and what is not opened."""


def with_rows(bundle: Bundle, series: Any, rows: list[Any]) -> Bundle:
    edited = tuple(replace(block, rows=tuple(rows)) if block.series == series else block for block in bundle.blocks)
    return replace(bundle, blocks=edited)


def moved(bundle: Bundle, timeframe: Timeframe, share: float, bars: int) -> Bundle:
    """The price came this far over the last bars, evenly, and stands where it stood; the last bars are loud."""
    series = market.candles(BINANCE, BTC, timeframe)
    rows = list(bundle.rows(series))
    count = len(rows)
    shifted = []
    for place, row in enumerate(rows):
        left = min(bars, count - 1 - place)
        close, opened = (row.close * (1 + share) ** (-part / bars) for part in (left, min(bars, left + 1)))
        low, high = min(opened, close), max(opened, close)
        loud = place >= count - bars
        volume = row.volume * (8 if loud else 1)
        taken = None if row.taker_buy is None else row.taker_buy * (8 if loud else 1)
        edges = (high * 1.001, low * 0.999) if loud else (high * row.high / row.close, low * row.low / row.close)
        shifted.append(
            row._replace(open=opened, high=edges[0], low=edges[1], close=close, volume=volume, taker_buy=taken)
        )
    return with_rows(bundle, series, shifted)


def flat(bundle: Bundle) -> Bundle:
    """The price stands where it stood a day ago."""
    series = market.candles(BINANCE, BTC, Timeframe.H1)
    rows = list(bundle.rows(series))
    level = rows[-1].close / rows[-25].close
    prices = [{name: getattr(row, name) * level for name in ("open", "high", "low", "close")} for row in rows[:-24]]
    return with_rows(
        bundle, series, [*(row._replace(**p) for row, p in zip(rows[:-24], prices, strict=True)), *rows[-24:]]
    )


def with_interest(bundle: Bundle, share: float) -> Bundle:
    """Open interest changed so over the last hour, at every venue."""
    for venue in PERPETUALS:
        series = market.open_interest(venue, BTC)
        rows = list(bundle.rows(series))
        bundle = with_rows(bundle, series, [*rows[:-1], Level(AS_OF, rows[-2].value * (1 + share))])
    return bundle


def spiked(way: int, interest: float, account: Account | None = None) -> Bundle:
    return with_interest(moved(bundle_of(account=account), Timeframe.H1, 0.08 * way, 3), interest)


def shocked(way: int, account: Account | None = None, minutes: int = 10) -> Bundle:
    return moved(bundle_of(account=account), Timeframe.M1, 0.04 * way, minutes)


EVENTS = {"cascade": lambda way, account=None: spiked(way, -0.02, account), "shock": shocked}


@cache
def debate(event: str, way: int, held: int = 0) -> Argued:
    account = None if not held else holding(SIDES[-held][0])
    return asyncio.run(argued(EVENTS[event](way, account)))


def ruled(case: Case, call: Call, **changed: Any) -> RulingDraft:
    """What comes of a decision, whatever the experts say."""
    said = decision(call, entry_price=80_000.0, stop_loss=79_000.0, take_profit=82_000.0, **changed)
    if call is Call.SHORT:
        said = said.model_copy(update={"stop_loss": 81_000.0, "take_profit": 78_000.0})
    return start_draft(said, asyncio.run(argued_meta(case)), case.inputs, 0.0, 0.0)


async def argued_meta(case: Case) -> Meta:
    return (await meta.ask_meta(case, minds_of())).value


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("way", [-1, 1])
@pytest.mark.parametrize("event", list(EVENTS))
def test_after_a_cascade_or_shock_nothing_is_opened_against_it_when_flat(event: str, way: int) -> None:
    found = debate(event, way)
    side, call = SIDES[way]
    (happened,) = found.case.features.events.events
    assert happened.kind is (EventKind.LIQUIDATION_CASCADE if event == "cascade" else EventKind.SHOCK)
    assert happened.way is (PriceDirection.UP if way > 0 else PriceDirection.DOWN)
    entry = found.board.liquidity
    assert entry is not None
    assert entry.stance == way
    cited = prompt_facts.event_id(found.case, happened)
    assert f"{{{cited}}}" in entry.rationale
    assert happened.kind.replace("_", " ") in render(entry.rationale, prompt_facts.market_facts(found.case))
    assert found.decision.decision is not call
    done = ruled(found.case, call)
    assert (done.call, done.veto) == (Call.HOLD, RuleName.SHOCK_COOLDOWN)
    assert not isinstance(found.case.inputs.shock_against(side), Missing)
    other = Call.SHORT if call is Call.LONG else Call.LONG
    assert ruled(found.case, other).veto != RuleName.SHOCK_COOLDOWN


@pytest.mark.soak(every=4)
@pytest.mark.parametrize("way", [-1, 1])
@pytest.mark.parametrize("event", list(EVENTS))
def test_after_a_cascade_or_shock_what_is_held_against_it_is_closed_and_never_topped_up(event: str, way: int) -> None:
    found = debate(event, way, -way)
    assert found.decision.decision is Call.CANCEL_AND_CLOSE
    for call in (*SIDES[way][1:], Call.HOLD):
        done = ruled(found.case, call)
        assert done.call is Call.CANCEL_AND_CLOSE
        assert [change.by for change in done.changes] == [RuleName.SHOCK_EXIT]
        assert [closing.id for closing in done.closes] == ["pos_1"]
    along = debate(event, way, way)
    assert along.case.inputs.shock_against(SIDES[-way][0]) is None
    assert ruled(along.case, Call.HOLD).call is Call.HOLD


@pytest.mark.parametrize(("quiet", "known"), [(0, True), (56, True), (60, False)])
def test_an_hour_later_it_is_over(quiet: int, known: bool) -> None:
    """A fall of three minutes, and so many after it in which nothing moved."""
    series = market.candles(BINANCE, BTC, Timeframe.M1)
    rows = list(moved(bundle_of(), Timeframe.M1, -0.04, 3).rows(series))
    last = rows[-1].close
    still = [row._replace(open=last, high=last, low=last, close=last) for row in rows[-quiet:]] if quiet else []
    shifted = [row._replace(at=Millis(row.at - quiet * MINUTE_MS)) for row in rows[quiet:]]
    assert bool(build_case(with_rows(bundle_of(), series, [*shifted, *still])).features.events.events) == known


@pytest.mark.parametrize("way", [-1, 1])
def test_a_true_breakout_is_evidence_of_liquidity_and_geometry_and_makes_its_side_possible(way: int) -> None:
    bundle = with_interest(moved(bundle_of(World(lean=0.8 * way, whales=0.5 * way)), Timeframe.H1, 0.08 * way, 3), 0.02)
    found = asyncio.run(argued(bundle))
    (happened,) = found.case.features.events.events
    assert (happened.kind, happened.way) == (
        EventKind.TRUE_BREAKOUT,
        PriceDirection.UP if way > 0 else PriceDirection.DOWN,
    )
    for entry in (found.board.liquidity, found.board.vlm_geometry):
        assert entry is not None
        assert entry.stance == way
        assert "breakout" in entry.rationale
    assert found.board.liquidity is not None
    assert found.board.liquidity.confidence >= 0.5, "it may second"
    assert found.decision.decision is (Call.LONG if way > 0 else Call.SHORT)
    assert ruled(found.case, found.decision.decision).veto != RuleName.SHOCK_COOLDOWN


@pytest.mark.soak(every=2)
@pytest.mark.parametrize(("rate", "stance"), [(0.0005, -1), (0.001, -1), (-0.0005, 1), (-0.001, 1), (0.00049, 0)])
def test_funding_that_a_crowd_pays_in_a_flat_price_is_against_the_crowd(rate: float, stance: int) -> None:
    bundle = with_rows(flat(bundle_of()), market.funding_next(BINANCE, BTC), [Funding(AS_OF, rate, 8.0)])
    case = build_case(bundle)
    day = case.context.day
    assert not isinstance(day, Missing)
    assert abs(day) < liquidity.FLAT_DAY
    entry = asyncio.run(liquidity.ask_expert(case, minds_of())).value
    quiet = asyncio.run(liquidity.ask_expert(build_case(flat(bundle_of())), minds_of())).value
    assert entry.stance == (stance or quiet.stance)
    assert ("crowded" in entry.rationale) == bool(stance)


@pytest.mark.parametrize(("extreme", "weight"), [(1, -0.15), (-1, 0.15), (0, None)])
@pytest.mark.parametrize("which", ["basis", "long_short"])
def test_basis_and_accounts_at_the_edge_of_their_week_are_evidence(
    which: str, extreme: int, weight: float | None
) -> None:
    hours = range(AS_OF - 7 * DAY_MS, AS_OF, HOUR_MS)
    if which == "basis":
        past = [MarkAndIndex(Millis(at), 80_000.0 + place % 20, 80_000.0) for place, at in enumerate(hours)]
        rows: list[Any] = [*past, MarkAndIndex(AS_OF, 80_009.5 + 30 * extreme, 80_000.0)]
        series: Any = market.basis(BINANCE, BTC)
    else:
        rows = [Level(Millis(at), 1.2 + (place % 20) / 100) for place, at in enumerate(hours)]
        rows, series = [*rows, Level(AS_OF, 1.295 + 0.3 * extreme)], market.long_short(BINANCE, BTC)
    case = build_case(with_rows(bundle_of(), series, rows))
    found = [reason for reason in liquidity.crowding_reasons(case) if "of the week" in reason.said]
    assert [reason.weight for reason in found] == ([] if weight is None else [weight])
    if found:
        assert found[0].said in liquidity.answer_by_rules(case).rationale


@pytest.mark.parametrize("way", [-1, 1])
def test_an_options_panic_is_a_regime_of_its_own_with_little_to_risk_and_closes_what_it_runs_against(way: int) -> None:
    held = holding(SIDES[way][0])
    bundle = moved(bundle_of(World(dvol=60.0), account=held), Timeframe.H1, 0.04 * way, 20)
    found = asyncio.run(argued(bundle))
    assert (found.meta.regime, found.meta.risk_budget_pct) == (Regime.VOLATILITY_PANIC, 20)
    assert found.decision.decision is Call.CANCEL_AND_CLOSE


@pytest.mark.parametrize("way", [-1, 1])
def test_a_shock_inside_the_last_hour_is_read_by_meta_and_the_judge(way: int) -> None:
    found = debate("shock", way)
    (happened,) = found.case.features.events.events
    assert found.meta.risk_bias is RiskBias.CONSERVATIVE
    assert "{shock_1}" in found.meta.rationale
    assert any("{shock_1}" in factor for factor in found.decision.key_factors)
    for role in ("meta", "judge", "liquidity", "microstructure", "macro", "vlm_geometric", "synthesis"):
        model = saying(found.twin(role).model_dump_json())
        asyncio.run(hear(found, role, model))
        assert happened.said in model.asked[0].turns[0].text, role


async def hear(found: Argued, role: str, model: Scripted) -> None:
    await found.ask(role, minds_of(model))


def test_what_cannot_be_ruled_out_is_waited_for() -> None:
    """A spike down without open interest may have been a cascade; without minutes nobody saw a shock."""
    spike = moved(bundle_of(), Timeframe.H1, -0.08, 3)
    deaf = replace(spike, blocks=tuple(b for b in spike.blocks if b.series.feed is not market.Feed.OPEN_INTEREST))
    blind = bundle_of()
    minutes = market.candles(BINANCE, BTC, Timeframe.M1)
    blind = replace(blind, blocks=tuple(block for block in blind.blocks if block.series != minutes))
    for bundle, shorts in ((deaf, False), (blind, True)):
        case = build_case(bundle)
        assert ruled(case, Call.LONG).changes[-1].by == f"{RuleName.SHOCK_COOLDOWN} (unknown)"
        assert (ruled(case, Call.SHORT).veto == RuleName.SHOCK_COOLDOWN) == shorts
