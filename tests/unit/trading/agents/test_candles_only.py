"""A home of imported candles alone: what was never recorded is absent, not zero, and trades are possible on paper."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from tests.wire.desk_bundles import AS_OF, BTC, bundle_of, minds_of, saying
from tests.wire.desk_roles import argued
from tests.wire.real_hours import real_bundle
from tests.wire.trades import PROVEN, decision, ruled_on
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE
from zuno.markets.venues import Venue
from zuno.trading.agents import liquidity, microstructure
from zuno.trading.agents.case import Case, build_case
from zuno.trading.chart.charting import describe
from zuno.trading.measure.structure import PriceDirection
from zuno.trading.model import market
from zuno.trading.model.bundle import Absent, Block, Bundle
from zuno.trading.model.chart import MissingPanel, Panel
from zuno.trading.model.cycle import Call, Regime
from zuno.trading.model.known import Missing, NotRecorded
from zuno.trading.model.market import DAY_MS, HOUR_MS, Feed, Funding, Mode, Timeframe
from zuno.trading.ports.series import PUBLIC_HISTORY
from zuno.trading.rules.draft import RuleName
from zuno.trading.rules.inputs import ASSUMED_FUNDING, ASSUMED_SLIPPAGE, missing_essentials
from zuno.trading.rules.ruling import apply_leverage_guard, finish_ruling


@cache
def candles_only(mode: Mode = Mode.SWING) -> Bundle:
    """Hours and coarser bars of one symbol, without what takers bought, and an account."""
    whole = bundle_of(mode=mode)
    kept = [
        replace(block, rows=tuple(row._replace(taker_buy=None) for row in block.rows))
        for block in whole.blocks
        if block.series.feed is Feed.CANDLES and not block.series.name.endswith(Timeframe.M1)
    ]
    gone = tuple(Absent(str(block.series), "never recorded") for block in whole.blocks if block not in kept)
    return replace(whole, origin=PUBLIC_HISTORY.label, blocks=tuple(kept), absent=(*whole.absent, *gone))


def last_bar(bundle: Bundle, **changes: float) -> Bundle:
    """The same with another last bar of the mode's shortest timeframe, its prices in multiples of the close before."""
    series = market.candles(BINANCE, BTC, bundle.mode.timeframes[0])
    rows = list(bundle.rows(series))
    before = rows[-2].close
    usual = sum(row.volume for row in rows[-21:-1]) / 20
    prices: dict[str, Any] = {name: before * changes.get(name, 1.0) for name in ("open", "high", "low", "close")}
    rows[-1] = rows[-1]._replace(volume=usual * changes.get("volume", 1.0), **prices)
    blocks = tuple(replace(block, rows=tuple(rows)) if block.series == series else block for block in bundle.blocks)
    return replace(bundle, blocks=blocks)


BREAK_UP = {"high": 1.2, "low": 1.0, "close": 1.19, "volume": 2.5}
BREAK_DOWN = {"high": 1.0, "low": 0.8, "close": 0.81, "volume": 2.5}
HAMMER = {"high": 1.002, "low": 0.95, "close": 1.001, "volume": 2.5}
STAR = {"high": 1.05, "low": 0.998, "close": 0.999, "volume": 2.5}


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(Mode))
def test_nothing_essential_is_missing_and_nothing_absent_is_zero(mode: Mode) -> None:
    case = build_case(candles_only(mode))
    inputs, features = case.inputs, case.features
    assert missing_essentials(inputs) == ()
    shortest = candles_only(mode).rows(market.candles(BINANCE, BTC, Timeframe.H1))
    assert (inputs.mark, inputs.slippage) == (shortest[-1].close, ASSUMED_SLIPPAGE)
    assert (ASSUMED_SLIPPAGE.buy, ASSUMED_SLIPPAGE.sell, ASSUMED_FUNDING) == (0.05, 0.05, 0.0001)
    assert (inputs.funding_next, inputs.funding_assumed) == (ASSUMED_FUNDING, True)
    unjudged = (inputs.panic, inputs.curve_change, inputs.longs_liquidated, *inputs.quoted_rates.values())
    assert all(isinstance(figure, NotRecorded) for figure in unjudged)
    absent = (features.book, case.context.flow, case.context.days, features.whales_day, features.forced.longs_hour)
    assert all(isinstance(figure, Missing) for figure in absent)
    assert all(frame.readings.cvd is None for _, frame in features.frames if not isinstance(frame, Missing))
    assert inputs.shock_down is None
    assert inputs.shock_up is None


@pytest.mark.slow
def test_without_the_declaration_the_same_bundle_is_missing_nearly_everything() -> None:
    plain = build_case(replace(candles_only(), origin="recorded")).inputs
    assert {said.partition(":")[0] for said in missing_essentials(plain)} >= {"book", "funding", "mark"}
    assert not isinstance(plain.panic, NotRecorded)


@pytest.mark.slow
@pytest.mark.parametrize("gone", ["positions", "equity"])
def test_the_paper_account_is_needed_all_the_same(gone: str) -> None:
    bundle = candles_only()
    bare = replace(bundle, slots=tuple(slot for slot in bundle.slots if slot.name != gone))
    inputs = build_case(bare).inputs
    assert len(missing_essentials(inputs)) == len(missing_essentials(build_case(bundle).inputs)) + 1


@pytest.mark.slow
def test_imported_funding_is_taken_as_it_is() -> None:
    bundle = candles_only()
    rows = tuple(Funding(Millis(AS_OF - day * DAY_MS), 0.0002 + 0.0001 * (day == 1), 8.0) for day in (3, 2, 1))
    block = Block(market.funding(BINANCE, BTC), rows, rows[-1].at, 86_400, 29_400)  # type: ignore[arg-type]
    inputs = build_case(replace(bundle, blocks=(*bundle.blocks, block))).inputs
    assert (inputs.funding_next, inputs.funding_assumed) == (pytest.approx(0.0003), False)
    old = replace(block, rows=tuple(row._replace(at=Millis(row.at - 2 * DAY_MS)) for row in rows))
    assert isinstance(build_case(replace(bundle, blocks=(*bundle.blocks, old))).inputs.funding_next, Missing)


@pytest.mark.slow
@pytest.mark.parametrize("call", [Call.LONG, Call.SHORT])
@pytest.mark.parametrize("mode", list(Mode))
def test_rules_without_a_feed_are_told_as_not_judged_and_a_trade_opens(mode: Mode, call: Call) -> None:
    case = build_case(candles_only(mode))
    mark, atr = case.inputs.mark, case.inputs.atr
    assert isinstance(mark, float)
    assert isinstance(atr, float)
    sign = 1 if call is Call.LONG else -1
    prices = {"entry_price": mark, "stop_loss": mark - sign * 2 * atr, "take_profit": mark + sign * 4 * atr}
    proven = replace(case.inputs, record=PROVEN)
    done = ruled_on(decision(call, win_probability_pct=95, leverage=1, **prices), proven)
    told = [change.by for change in done.changes if "not judged" in change.by]
    rules = (RuleName.VOLATILITY, RuleName.FUNDING, RuleName.LIQUIDATIONS, RuleName.DOLLAR)
    assert told == [f"{rule} (not judged)" for rule in rules]
    assert [leg.venue for leg in done.legs] == [Venue("BINANCE")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bar", "flow", "book"),
    [(BREAK_UP, 1, 1), (BREAK_DOWN, -1, -1), (HAMMER, 0, 1), (STAR, 0, -1), ({"high": 1.001, "low": 0.999}, 0, 0)],
)
def test_liquidity_and_microstructure_read_price_and_volume(bar: dict[str, float], flow: int, book: int) -> None:
    case = build_case(last_bar(candles_only(), **bar))
    wide = asyncio.run(liquidity.ask_expert(case, minds_of())).value
    near = asyncio.run(microstructure.ask_expert(case, minds_of())).value
    assert (wide.stance, near.stance) == (flow, book)
    for entry in (wide, near):
        assert entry.confidence <= 0.6
        assert (entry.confidence >= 0.5) == bool(entry.stance), "it may second"


@pytest.mark.slow
def test_the_edge_of_twenty_bars_is_passed_by_a_close() -> None:
    case = build_case(last_bar(candles_only(), **BREAK_UP))
    action = case.context.action
    assert not isinstance(action, Missing)
    rows = case.bundle.rows(market.candles(BINANCE, BTC, Timeframe.H1))
    assert (action.breakout, action.level) == (PriceDirection.UP, pytest.approx(max(row.high for row in rows[-21:-1])))
    assert action.volume_ratio == pytest.approx(2.5)
    touched = build_case(last_bar(candles_only(), high=1.2, low=1.0, close=1.0)).context.action
    assert not isinstance(touched, Missing)
    assert (touched.breakout, touched.rejection) == (None, PriceDirection.DOWN)


@pytest.mark.slow
@pytest.mark.parametrize("role", ["liquidity", "microstructure"])
def test_no_model_is_surer_than_price_and_volume_make_it(role: str) -> None:
    found = asyncio.run(argued(last_bar(candles_only(), **BREAK_UP)))
    said: dict[str, Any] = found.twin(role).model_dump() | {"confidence": 0.95}
    heard = asyncio.run(hear(found.case, role, said))
    assert heard.confidence <= 0.6
    assert "cut" in heard.why


async def hear(case: Case, role: str, said: dict[str, Any]) -> Any:
    expert = {"liquidity": liquidity, "microstructure": microstructure}[role]
    return (await expert.ask_expert(case, minds_of(saying(said)))).value


@pytest.mark.slow
def test_a_loud_hour_is_a_shock_without_minutes() -> None:
    fell = build_case(last_bar(candles_only(), high=1.0, low=0.9, close=0.91, volume=5.0))
    assert isinstance(fell.inputs.shock_down, str)
    assert fell.inputs.shock_up is None


# -- real hours


@pytest.mark.soak
def test_august_2024_is_a_panic() -> None:
    found = asyncio.run(argued(real_bundle("2024-08-05T12:00"), None))
    assert (found.meta.regime, found.meta.risk_budget_pct) == (Regime.VOLATILITY_PANIC, 20)
    assert missing_essentials(found.case.inputs) == ()


@pytest.mark.slow
@pytest.mark.parametrize("at", ["2022-11-09T04:00", "2022-11-09T21:00"])
def test_november_2022_is_argued_to_an_end(at: str) -> None:
    found = asyncio.run(argued(real_bundle(at), None))
    assert found.meta.regime is Regime.VOLATILITY_PANIC
    assert found.decision.decision in Call


LONGS, SHORTS = ("2024-03-25T17:00",), ("2025-02-24T15:00",)


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize(("at", "call"), [*((at, Call.LONG) for at in LONGS), *((at, Call.SHORT) for at in SHORTS)])
def test_both_sides_are_possible_on_real_hours(at: str, call: Call) -> None:
    found = asyncio.run(argued(real_bundle(at), None))
    assert found.decision.decision is call
    done = apply_leverage_guard(found.draft, found.case.inputs)
    assert (done.call, done.exploration, done.veto) == (call, True, None)
    assert finish_ruling(done, found.case.inputs, found.case.bundle.as_of).decision is call


@pytest.mark.slow
def test_the_hours_before_the_as_of_are_all_that_is_read() -> None:
    bundle = real_bundle("2024-08-05T12:00")
    newest = max(row.at for block in bundle.blocks for row in block.rows)
    assert newest + HOUR_MS <= bundle.as_of


def test_the_chart_leaves_out_what_was_never_recorded() -> None:
    """And says so once; a home that records has a panel with the reason instead."""
    bundle = candles_only()
    picture = describe(bundle)
    assert [panel.name for panel in picture.panels if isinstance(panel, Panel)] == ["volume"]
    assert [panel for panel in picture.panels if isinstance(panel, MissingPanel)] == []
    assert sum("CVD, open interest, funding" in note for note in picture.notes) == 1
    recording = describe(replace(bundle, origin="recorded"))
    assert [panel.title for panel in recording.panels if isinstance(panel, MissingPanel)] == [
        "CVD",
        "open interest",
        "funding",
    ]
