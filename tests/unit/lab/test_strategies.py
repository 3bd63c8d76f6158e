"""The backtest of the core strategies: its arithmetic by hand, and its figures on the shared years."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from tests.paths import SHARED_DATA
from tests.wire.commands import run_zuno
from zuno.adapters.store.report_files import FolderOfReports
from zuno.kernel.errors import Refused, UsageError
from zuno.lab.reports import LabReports
from zuno.lab.strategies import StrategyLab, StrategyQuestion, play_tilts
from zuno.lab.strategies_view import StrategyLabView, TiltView
from zuno.markets.market import Symbol
from zuno.trading.learn.tilt_book import JudgeView
from zuno.trading.model.market import DAY_MS
from zuno.trading.strategies.port import MarketHistory, build_history
from zuno.trading.strategies.scaler import simulate
from zuno.wiring.lab_models import choose_runner
from zuno.wiring.trade_lab import build_strategy_lab

HISTORY = SHARED_DATA / "crypto-hours"


def open_lab(folder: Path) -> StrategyLab:
    return build_strategy_lab(LabReports(FolderOfReports(folder)), choose_runner())


async def backtest(folder: Path, question: StrategyQuestion, *, resume: bool = False) -> StrategyLabView:
    return await open_lab(folder).backtest(question, 1, lambda done, total: None, asyncio.Event(), resume=resume)


def test_weights_of_an_evening_earn_the_next_day() -> None:
    weights, moves = np.array([[0.5, 0.0, 1.0]]), np.array([[0.9, 0.1, 0.2]])
    path = simulate(weights, moves, 0.01)
    assert path.returns.tolist() == pytest.approx([0.0, 0.05 - 0.005, -0.005])
    assert path.traded.tolist() == [0.0, 0.5, 0.5]


@pytest.fixture(scope="module")
def eight_years(tmp_path_factory: pytest.TempPathFactory) -> StrategyLabView:
    if not HISTORY.is_dir():
        pytest.skip("no eight years of hours beside the checkout")
    question = StrategyQuestion(str(HISTORY), "BTCUSDT,ETHUSDT", "2018-01-01", "2025-06-30")
    return asyncio.run(backtest(tmp_path_factory.mktemp("lab"), question))


def test_trend_on_the_shared_years(eight_years: StrategyLabView) -> None:
    trend = eight_years.strategies[0]
    assert trend.name == "trend"
    assert trend.days == 2_738
    assert trend.sharpe == pytest.approx(1.218, abs=0.002)
    assert trend.drawdown == pytest.approx(0.280, abs=0.001)
    assert trend.sharpe_ci95 == pytest.approx((0.39, 1.99), abs=0.01)
    assert trend.benchmark.hold.sharpe == pytest.approx(0.72, abs=0.005)
    assert trend.benchmark.hold.drawdown == pytest.approx(0.88, abs=0.005)
    year = {stretch.name: stretch for stretch in trend.years}["2022"]
    assert (year.gain, year.hold) == pytest.approx((-0.16, -0.65), abs=0.005)
    assert sum(stretch.days for stretch in trend.regimes) == trend.days == sum(stretch.days for stretch in trend.years)
    assert trend.difference.ci95 is not None
    assert trend.difference.ci95[0] < 0 < trend.difference.ci95[1]
    assert trend.difference.smallest is not None
    assert trend.difference.smallest > 0.5
    assert trend.costs == pytest.approx(0.0009 * trend.turns_per_year, rel=1e-6)


def test_the_prints_of_carry_have_no_sharpe_and_name_their_risks(eight_years: StrategyLabView) -> None:
    carry = eight_years.strategies[1]
    assert carry.name == "cash-carry"
    assert carry.risks
    assert carry.sharpe is carry.sharpe_ci95 is carry.scaled.sharpe is carry.difference.sharpe is None
    assert carry.annual_return == pytest.approx(carry.funding - carry.costs, abs=0.01)


def test_a_resumed_run_gives_the_same_document(tmp_path: Path) -> None:
    folder = tmp_path / "hours"
    folder.mkdir()
    dice = np.random.Generator(np.random.PCG64(5))
    closes = np.round(20_000 * np.exp(np.cumsum(dice.normal(0, 0.03 / sqrt(24), 24 * 300))), 1)
    lines = ["date,open,high,low,close,volume"]
    for place, close in enumerate(closes.tolist()):
        at = np.datetime64(1_704_067_200 + 3_600 * place, "s").item().isoformat(" ")
        lines.append(f"{at},{close},{close},{close},{close},{100 + place % 7}")
    (folder / "btc-1h.csv").write_text("\n".join(lines))
    question = StrategyQuestion(str(folder), "", None, None)
    whole = asyncio.run(backtest(tmp_path / "one", question))
    lab = open_lab(tmp_path / "two")
    lab.reports.keep_part(whole.report, whole.strategies[0])
    assert asyncio.run(backtest(tmp_path / "two", question, resume=True)) == whole
    assert [row.name for row in whole.strategies] == ["trend"]
    assert whole.not_run
    assert "cash-carry" in whole.not_run[0]
    with pytest.raises(Refused):
        asyncio.run(backtest(tmp_path / "two", StrategyQuestion(str(folder), "BTC,SOL", None, None)))
    with pytest.raises(UsageError):
        asyncio.run(backtest(tmp_path / "two", StrategyQuestion(str(folder), "", "2024-03-01", "2024-03-01")))


def test_a_file_that_was_left_out_is_named_and_a_missing_market_is_refused(tmp_path: Path) -> None:
    """The second file is the first under another name: the answer is of one market, says so, and ends with 3."""
    folder = tmp_path / "market"
    folder.mkdir()
    closes = 30_000 * np.exp(np.cumsum(np.random.default_rng(5).normal(0, 0.005, 24 * 100)))
    for name in ("btc", "trx"):
        lines = ["date,open,high,low,close,volume"]
        for place, close in enumerate(closes.tolist()):
            at = np.datetime64(1_704_067_200 + 3_600 * place, "s").item().isoformat(" ")
            lines.append(f"{at},{close},{close},{close},{close},{100 + place % 7}")
        (folder / f"{name}-1h.csv").write_text("\n".join(lines))
    words = ("lab", "strategies", "--data", str(folder), "--workers", "1", "--json")
    done = run_zuno(tmp_path / "home", *words)
    assert (done.code, done.document["markets"]) == (3, ["BTCUSDT"])
    (left_out,) = done.document["leftOut"]
    assert left_out.startswith("trx-1h.csv: ")
    assert run_zuno(tmp_path / "home", *words, "--markets", "BTC,TRX").code == 3
    (folder / "trx-1h.csv").unlink()
    whole = run_zuno(tmp_path / "home", *words)
    assert (whole.code, whole.document["leftOut"]) == (0, [])


DAYS = 380


def draw_histories(seed: int, names: Sequence[str], days: int = DAYS) -> tuple[MarketHistory, ...]:
    dice = np.random.Generator(np.random.PCG64(seed))
    closes = {name: (100 * np.exp(np.cumsum(dice.normal(0, 0.03, days)))).tolist() for name in names}
    return tuple(build_history(name, [(DAY_MS * day, each) for day, each in enumerate(closes[name])]) for name in names)


def say_of_each_day(
    histories: Sequence[MarketHistory], say: Callable[[float], float], days: int = DAYS
) -> dict[tuple[int, Symbol], list[JudgeView]]:
    """One cycle a day and market; `say`: by what the market will do on the next day, points over the fair rate."""
    return {
        (DAY_MS * day, Symbol(history.name)): [
            (1, 0.5 + 0.2 * say(history.closes[day + 1] / history.closes[day] - 1), 0.5)
        ]
        for history in histories
        for day in range(150, days - 1)
    }


def play(views: dict[tuple[int, Symbol], list[JudgeView]], histories: Sequence[MarketHistory]) -> TiltView:
    tilt = play_tilts(views, histories, 200 * DAY_MS, DAYS * DAY_MS)
    assert tilt is not None
    return tilt


@pytest.mark.slow
def test_a_debate_that_knows_tomorrow_earns_its_tilt_and_a_silent_one_changes_nothing() -> None:
    histories = draw_histories(3, ("BTCUSDT", "ETHUSDT"))
    seer = play(say_of_each_day(histories, lambda move: 1.0 if move > 0 else -1.0), histories)
    assert seer.weight > 0.5
    assert 0 < seer.weighed_days < DAYS - 200
    assert seer.core.sharpe is not None
    assert seer.tilted.sharpe is not None
    assert seer.full.sharpe is not None
    assert seer.core.sharpe < seer.tilted.sharpe < seer.full.sharpe
    assert seer.gain.ci95 is not None
    silent = play(say_of_each_day(histories, lambda move: 0.0), histories)
    assert (silent.weight, silent.weighed_days) == (0.0, 0)
    assert silent.core == silent.tilted == silent.full == seer.core


def test_a_tilt_acts_on_the_day_after_it_was_said() -> None:
    histories = draw_histories(4, ("BTCUSDT", "ETHUSDT"))
    late = say_of_each_day(histories, lambda move: 1.0 if move > 0 else -1.0)
    shifted = {(day + DAY_MS, name): views for (day, name), views in late.items() if day < DAY_MS * (DAYS - 2)}
    copied = play(shifted, histories)
    assert copied.weight < 0.2
    assert play_tilts({}, histories, 0, DAYS * DAY_MS) is None
