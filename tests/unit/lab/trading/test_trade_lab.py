"""A small backtest of the trading desk over hours drawn from a seed, through its own wiring."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from pathlib import Path

import numpy as np
import pytest

from tests.unit.lab.trading.test_backtest_cycles import BTC, END, hours_alone
from tests.wire.real_hours import FOLDER
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.adapters.store.report_files import FolderOfReports
from zuno.kernel.errors import NotFound, Refused, UsageError
from zuno.kernel.units import Millis
from zuno.lab.reports import LabReports
from zuno.lab.trading.ablations import SharedAnswers
from zuno.lab.trading.arm_result import ArmResult, Span
from zuno.lab.trading.arms import Arm
from zuno.lab.trading.engine import Lockstep, run_desk_arm
from zuno.lab.trading.figures import MarketFigures
from zuno.lab.trading.question import read_question
from zuno.lab.trading.service import TradeLab
from zuno.lab.trading.views import TradeLabView
from zuno.lab.workers import StoppedEarly
from zuno.settings import Settings
from zuno.trading.data.price_path import read_bars
from zuno.trading.model.market import DAY_MS, HOUR_MS
from zuno.trading.model.trade_events import FillBooked, TradeClosed
from zuno.trading.ports.series import PUBLIC_HISTORY
from zuno.trading.rules.trade_outcomes import trace_path
from zuno.trading.service.learning_view import VetoScoreView
from zuno.wiring.lab_models import choose_runner
from zuno.wiring.recordings import Recordings
from zuno.wiring.trade_lab import build_desk_arm, build_trade_lab

HOURS = 300 * 24
FIRST = 1_704_067_200
"""2024-01-01, in seconds."""
SPAN = ("2024-10-10T00:00:00Z", "2024-10-16T00:00:00Z")
ARMS = "debate,hold,sma,random,geometry,vote"


def write_hours(folder: Path, hours: int = HOURS) -> Path:
    folder.mkdir(exist_ok=True)
    for seed, base in ((3, "btc"), (4, "eth")):
        dice = np.random.Generator(np.random.PCG64(seed))
        steps = dice.normal(0, 0.006, HOURS)
        closes = np.round(20_000 * np.exp(np.cumsum(steps) - np.cumsum(steps).mean()), 1)
        opens = np.round(np.concatenate(([closes[0]], closes[:-1])) * (1 + dice.normal(0, 0.001, HOURS)), 1)
        wicks = np.round(closes * np.abs(dice.normal(0, 0.002, HOURS)), 1)
        lines = ["date,open,high,low,close,volume"]
        for place in range(hours):
            at = np.datetime64(FIRST + 3_600 * place, "s").item().strftime("%Y-%m-%d %H:%M:%S")
            high, low = max(opens[place], closes[place]) + wicks[place], min(opens[place], closes[place]) - wicks[place]
            lines.append(f"{at},{opens[place]},{high:.1f},{low:.1f},{closes[place]},{100 + place % 37}")
        (folder / f"{base}-1h.csv").write_text("\n".join(lines) + "\n")
    return folder


def open_lab(home: Path) -> tuple[TradeLab, LabReports]:
    settings = Settings(home=home)
    reports = LabReports(FolderOfReports(home / "lab"))
    return build_trade_lab(settings, Recordings(settings), reports, choose_runner()), reports


def compare(home: Path, folder: Path, arms: str = ARMS, *, resume: bool = False, workers: int = 1) -> TradeLabView:
    lab, _ = open_lab(home)
    question = read_question(str(folder), "BTCUSDT", *SPAN, arms)
    return asyncio.run(lab.compare(question, workers, lambda done, total: None, asyncio.Event(), resume=resume))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hours(tmp_path_factory.mktemp("market"))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> tuple[TradeLabView, Path]:
    home = tmp_path_factory.mktemp("home")
    return compare(home, folder), home


@pytest.mark.slow
def test_every_arm_goes_through_the_same_days(found: tuple[TradeLabView, Path]) -> None:
    view, _ = found
    assert [arm.arm for arm in view.arms] == ["debate", "hold", "sma", "random", "geometry"]
    assert [skipped.arm for skipped in view.not_run] == ["vote"]
    assert all(len(arm.equity) == 7 and arm.equity[0] == 2_000 for arm in view.arms)
    assert all(arm.net_pnl_usd == pytest.approx(arm.equity[-1] - 2_000, abs=0.011) for arm in view.arms)
    assert view.arms[0].cycles == 37
    assert view.trials == 5
    assert "Not judged" in view.headline


@pytest.mark.slow
def test_what_the_arms_made(found: tuple[TradeLabView, Path]) -> None:
    arms = {arm.arm: arm for arm in found[0].arms}
    assert arms["hold"].net_pnl_usd == 438.51
    geometry = arms["geometry"]
    assert (geometry.net_pnl_usd, geometry.fees, geometry.funding) == (-10.37, 0.78, -0.05)
    assert (geometry.exits, geometry.open_trades) == ({"stop": 3, "target": 1}, 1)
    assert geometry.vs_debate is not None
    assert geometry.vs_debate.net_pnl_usd == -10.37


@pytest.mark.slow
def test_an_order_is_filled_at_the_open_of_the_bar_after_its_decision(
    found: tuple[TradeLabView, Path], folder: Path
) -> None:
    rows = [line.split(",") for line in (folder / "btc-1h.csv").read_text().splitlines()[1:]]
    first, last = (datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M:%S") for moment in SPAN)
    place = next(place for place, row in enumerate(rows) if row[0] == first)
    end = next(place for place, row in enumerate(rows) if row[0] == last)
    decided, opened, worth = (Decimal(price) for price in (rows[place - 1][4], rows[place][1], rows[end - 1][4]))
    lot, tick = Decimal("0.001"), Decimal("0.1")
    quantity = (2_000 * Decimal("0.97") / decided) // lot * lot
    paid = (opened * Decimal("1.0005")).quantize(tick, ROUND_CEILING)
    fee = quantity * paid * Decimal("0.0005")
    hold = next(arm for arm in found[0].arms if arm.arm == "hold")
    assert abs(opened - decided) > tick
    assert hold.net_pnl_usd == float(round(quantity * (worth - paid) - fee, 2))


@pytest.mark.soak
async def test_without_a_risk_officer_the_same_is_traded_where_he_changes_nothing(tmp_path: Path) -> None:
    """To the ids of orders, which are made of the account's name."""
    store = await hours_alone(SqliteSeries(tmp_path / "market", PUBLIC_HISTORY))
    span = Span(Millis(END - 10 * DAY_MS), Millis(END - 7 * DAY_MS))
    figures, voices = {BTC: MarketFigures(store, BTC)}, {BTC: SharedAnswers()}
    desks = [
        build_desk_arm(arm, store, figures, voices, span.begin, HOUR_MS, tmp_path) for arm in (Arm.DEBATE, Arm.NO_CRO)
    ]
    lockstep, stop = Lockstep(len(desks)), asyncio.Event()

    async def tell(at: Millis) -> None:
        pass

    await asyncio.gather(*(run_desk_arm(desk, span, lockstep, tell, stop) for desk in desks))
    trades = [event.summary for event in desks[0].events() if isinstance(event, TradeClosed)]
    for trade in trades:
        bars = await read_bars(store, trade.exchange, BTC, trade.opened, trade.closed, known_by=trade.closed)
        assert trace_path(trade, bars).uncovered_hours == 0, "from the bar it was opened with"
    await store.close()
    assert trades
    whole, without = ([event for event in desk.events() if isinstance(event, FillBooked)] for desk in desks)
    assert whole == without
    assert whole, "a desk that does nothing proves nothing"
    assert all(fill.at % HOUR_MS == 0 for fill in whole)


@pytest.mark.slow
def test_the_report_is_kept_with_its_page(found: tuple[TradeLabView, Path]) -> None:
    view, home = found
    report = asyncio.run(open_lab(home)[1].read(view.report))
    assert report.body["arms"][0]["arm"] == "debate"
    assert not report.partial
    page = asyncio.run(open_lab(home)[1].read_page(view.report))
    assert "<svg" in page
    assert report.command in page


async def test_a_report_says_how_the_decisions_of_an_arm_came_out(found: tuple[TradeLabView, Path]) -> None:
    view, home = found
    lab, _ = open_lab(home)
    geometry = next(arm for arm in view.arms if arm.arm == "geometry")
    calibration = await lab.read_calibration(view.report, "geometry")
    judge = calibration.agents[0]
    assert (judge.role, judge.regime, judge.n, calibration.outcomes) == ("judge", "all", geometry.trades, judge.n)
    assert sum(row.n for row in judge.bins) == judge.n
    assert (calibration.as_of, calibration.account) == (view.until, f"{view.report}, arm geometry")
    assert "verdict" in calibration.said
    vetoes = await lab.read_vetoes(view.report, "geometry")
    assert vetoes.outcomes == len(vetoes.scores) > 0
    assert sum(row.n for row in vetoes.rules) == sum(len(score.rules) for score in vetoes.scores)
    assert all(score.resolved <= view.until for score in vetoes.scores)
    assert sum(row.total_r for row in vetoes.rules) == pytest.approx(
        sum(-score.r * part.share for score in vetoes.scores for part in score.rules)
    )


async def test_a_report_that_scored_no_decisions_says_what_to_do(found: tuple[TradeLabView, Path]) -> None:
    view, home = found
    lab, reports = open_lab(home)
    kept = await reports.read(view.report)
    old, stopped, pool = (
        kept.model_copy(update={"id": f"trade-{digit * 12}"} | changed)
        for digit, changed in (("a", {"arms": {}}), ("b", {"arms": {}, "partial": True}), ("c", {"kind": "lp"}))
    )
    for other in (old, stopped, pool):
        reports.save(other, "")
    for report, arm, failure, said in (
        ("trade-000000000000", "debate", NotFound, "lab reports"),
        (old.id, "debate", Refused, kept.command),
        (stopped.id, "debate", Refused, "--resume"),
        (pool.id, "debate", Refused, "lab trade"),
        (view.report, "no-cro", Refused, "debate, geometry"),
        (view.report, "hold", UsageError, "debate"),
        (view.report, "hodl", UsageError, "debate"),
    ):
        for read in (lab.read_calibration, lab.read_vetoes):
            with pytest.raises(failure, match=re.escape(said)):
                await read(report, arm)


@pytest.mark.soak
def test_an_arm_that_was_done_is_not_run_again(tmp_path: Path, folder: Path) -> None:
    """The parts of a run that was killed before its end; each balances to the last digit."""
    lab, reports = open_lab(tmp_path)
    question = read_question(str(folder), "BTCUSDT", *SPAN, "hold,sma")
    parts: dict[str, bytes] = {}
    totals: list[int] = []

    def look(done: int, total: int) -> None:
        totals.append(total)
        parts.update((path.name, path.read_bytes()) for path in (tmp_path / "lab").glob("*.part.jsonl"))

    whole = asyncio.run(lab.compare(question, 1, look, asyncio.Event()))
    assert reports.read_parts(whole.report) == (), "a whole report needs none"
    for name, content in parts.items():
        (tmp_path / "lab" / name).write_bytes(content)
    kept = [ArmResult.model_validate_json(part) for part in reports.read_parts(whole.report)]
    assert [result.arm for result in kept] == ["hold"]
    assert all(Decimal(result.debits) == Decimal(result.credits) > 0 for result in kept)
    assert asyncio.run(lab.compare(question, 1, look, asyncio.Event(), resume=True)) == whole
    assert totals[-1] == totals[0] / 2


@pytest.mark.soak
def test_a_run_that_is_stopped_before_its_first_result_leaves_the_older_report(tmp_path: Path, folder: Path) -> None:
    lab, reports = open_lab(tmp_path)
    question = read_question(str(folder), "BTCUSDT", *SPAN, "sma")
    whole = asyncio.run(lab.compare(question, 1, lambda *_: None, asyncio.Event()))
    stop = asyncio.Event()
    stop.set()
    with pytest.raises(StoppedEarly):
        asyncio.run(lab.compare(question, 1, lambda *_: None, stop))
    assert not asyncio.run(reports.read(whole.report)).partial
    nobody = read_question(str(folder), "BTCUSDT", *SPAN, "debate,vote")
    with pytest.raises(StoppedEarly):
        asyncio.run(lab.compare(nobody, 1, lambda *_: None, stop))


@pytest.mark.soak
def test_a_part_of_another_form_is_run_again(tmp_path: Path, folder: Path) -> None:
    lab, _ = open_lab(tmp_path)
    question = read_question(str(folder), "BTCUSDT", *SPAN, "sma")
    whole = asyncio.run(lab.compare(question, 1, lambda *_: None, asyncio.Event()))
    (tmp_path / "lab" / f"{whole.report}.part.jsonl").write_text('{"arm":"sma","worth":[1,2]}\n')
    assert asyncio.run(lab.compare(question, 1, lambda *_: None, asyncio.Event(), resume=True)) == whole


@pytest.mark.slow
def test_what_comes_later_changes_nothing_before(found: tuple[TradeLabView, Path], tmp_path: Path) -> None:
    """The hours after the span are not there: the same figures to the last digit."""
    view, _ = found
    hours = (1_729_036_800 - FIRST) // 3_600
    early = compare(tmp_path / "home", write_hours(tmp_path / "cut", hours), ARMS)
    assert early.arms == view.arms


@pytest.mark.parametrize("words", [("BTCUSDT", "nobody"), ("BTCUSDT", "random"), ("DOGEUSDT", "hold")])
def test_what_cannot_be_asked(words: tuple[str, str]) -> None:
    with pytest.raises(UsageError):
        read_question(None, words[0], None, None, words[1])


def test_an_empty_home_has_nothing_to_backtest(tmp_path: Path) -> None:
    lab, _ = open_lab(tmp_path)
    with pytest.raises(Refused):
        asyncio.run(
            lab.compare(read_question(None, "BTCUSDT", None, None, "hold"), 1, lambda *_: None, asyncio.Event())
        )


@pytest.mark.soak
async def test_an_arm_trades_what_the_desk_trades(tmp_path: Path) -> None:
    """`zuno trade start --speed max` over the same real hours, with its journal, graph and checkpoints: one account."""
    from zuno.wiring.application import Application

    if not FOLDER.exists():
        pytest.skip("no real hours: ../shared/data/btc-eth-history is not beside the checkout")
    span = ("2025-04-01T00:00:00Z", "2025-04-06T00:00:00Z")
    folder = tmp_path / "candles"
    folder.mkdir()
    for path in FOLDER.glob("*-1h.csv.gz"):
        (folder / path.name).symlink_to(path)
    lab, _ = open_lab(tmp_path / "lab")
    question = read_question(str(folder), "BTCUSDT,ETHUSDT", *span, "debate")
    view = await lab.compare(question, 1, lambda done, total: None, asyncio.Event())
    arm = view.arms[0]
    house = Application(Settings(home=tmp_path / "desk", recording="own"))
    try:
        await house.imports().run([str(folder)], None, "auto", lambda _: None, lambda _: False)
        run = await house.trade_desk().start(
            lambda event: None, asyncio.Event(), speed="max", since=span[0], until=span[1]
        )
        await house.learning().evaluate()
        calibration = await house.learning().reliability(span[1])
        vetoes = await house.learning().vetoes(span[1])
    finally:
        await house.close()
    assert (run.cycles, run.trades, run.open_trades) == (arm.cycles, arm.trades, arm.open_trades)
    assert arm.trades, "a desk that does nothing proves nothing"
    assert run.ledger.equity["USD"] == pytest.approx(arm.equity[-1], abs=0.006)
    assert (await lab.read_calibration(view.report, "debate")).agents == calibration.agents
    found = await lab.read_vetoes(view.report, "debate")
    assert found.rules == vetoes.rules
    assert calibration.agents, "a desk that closed nothing proves nothing"
    assert vetoes.rules
    assert [replace_run(score) for score in found.scores] == [replace_run(score) for score in vetoes.scores]


def replace_run(score: VetoScoreView) -> VetoScoreView:
    """Runs of a desk have names of their own."""
    return score.model_copy(update={"run": ""})


@pytest.mark.soak
def test_two_workers_answer_what_one_does(found: tuple[TradeLabView, Path], folder: Path, tmp_path: Path) -> None:
    assert compare(tmp_path, folder, workers=2) == found[0]
