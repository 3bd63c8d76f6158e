"""A small backtest of the trading desk over hours drawn from a seed, through its own wiring."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from tests.wire.real_hours import FOLDER
from zuno.adapters.store.report_files import FolderOfReports
from zuno.kernel.errors import Refused, Usage
from zuno.lab.reports import LabReports
from zuno.lab.trading.arm_result import ArmResult
from zuno.lab.trading.service import TradeLab, read_question
from zuno.lab.trading.views import TradeLabView
from zuno.settings import Settings
from zuno.wiring.lab import choose_runner
from zuno.wiring.recordings import Recordings
from zuno.wiring.trade_lab import build_trade_lab

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
        opens = np.concatenate(([closes[0]], closes[:-1]))
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


def test_every_arm_goes_through_the_same_days(found: tuple[TradeLabView, Path]) -> None:
    view, _ = found
    assert [arm.arm for arm in view.arms] == ["debate", "hold", "sma", "random", "geometry"]
    assert [skipped.arm for skipped in view.not_run] == ["vote"]
    assert all(len(arm.equity) == 7 and arm.equity[0] == 2_000 for arm in view.arms)
    assert all(arm.net_pnl_usd == pytest.approx(arm.equity[-1] - 2_000, abs=0.011) for arm in view.arms)
    assert view.arms[0].cycles == 37
    assert view.trials == 5


def test_what_the_arms_made(found: tuple[TradeLabView, Path]) -> None:
    arms = {arm.arm: arm for arm in found[0].arms}
    assert arms["hold"].net_pnl_usd == 439.54
    geometry = arms["geometry"]
    assert (geometry.net_pnl_usd, geometry.fees, geometry.funding) == (-14.33, 0.67, -0.04)
    assert (geometry.exits, geometry.open_trades) == ({"stop": 3}, 1)
    assert geometry.vs_debate is not None
    assert geometry.vs_debate.net_pnl_usd == -14.33


def test_the_report_is_kept_with_its_page(found: tuple[TradeLabView, Path]) -> None:
    view, home = found
    report = asyncio.run(open_lab(home)[1].read(view.report))
    assert report.body["arms"][0]["arm"] == "debate"
    assert not report.partial
    page = asyncio.run(open_lab(home)[1].read_page(view.report))
    assert "<svg" in page
    assert report.command in page


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


def test_what_comes_later_changes_nothing_before(found: tuple[TradeLabView, Path], tmp_path: Path) -> None:
    """The hours after the span are not there: the same figures to the last digit."""
    view, _ = found
    hours = (1_729_036_800 - FIRST) // 3_600
    early = compare(tmp_path / "home", write_hours(tmp_path / "cut", hours), ARMS)
    assert early.arms == view.arms


@pytest.mark.parametrize("words", [("BTCUSDT", "nobody"), ("BTCUSDT", "random"), ("DOGEUSDT", "hold")])
def test_what_cannot_be_asked(words: tuple[str, str]) -> None:
    with pytest.raises(Usage):
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
    from zuno.wiring.house import Application

    if not FOLDER.exists():
        pytest.skip("no real hours: ../shared/data/btc-eth-history is not beside the checkout")
    span = ("2025-04-01T00:00:00Z", "2025-04-06T00:00:00Z")
    folder = tmp_path / "candles"
    folder.mkdir()
    for path in FOLDER.glob("*-1h.csv.gz"):
        (folder / path.name).symlink_to(path)
    lab, _ = open_lab(tmp_path / "lab")
    question = read_question(str(folder), "BTCUSDT,ETHUSDT", *span, "debate")
    arm = (await lab.compare(question, 1, lambda done, total: None, asyncio.Event())).arms[0]
    house = Application(Settings(home=tmp_path / "desk", recording="own"))
    try:
        await house.imports().run([str(folder)], None, "auto", lambda _: None)
        run = await house.trade_desk().start(
            lambda event: None, asyncio.Event(), speed="max", since=span[0], until=span[1]
        )
    finally:
        await house.close()
    assert (run.cycles, run.trades, run.open_trades) == (arm.cycles, arm.trades, arm.open_trades)
    assert arm.trades, "a desk that does nothing proves nothing"
    assert run.ledger.equity["USD"] == pytest.approx(arm.equity[-1], abs=0.006)


@pytest.mark.soak
def test_two_workers_answer_what_one_does(found: tuple[TradeLabView, Path], folder: Path, tmp_path: Path) -> None:
    assert compare(tmp_path, folder, workers=2) == found[0]
