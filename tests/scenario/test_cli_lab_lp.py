"""`zuno lab lp` as a person runs it, on minutes drawn from a seed."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.wire.commands import run_zuno
from tests.wire.model_server import ModelServer, chat, serving
from tests.wire.pool_minutes import draw_minutes, write_minutes
from tests.wire.pool_tape import draw_tape, write_tape
from zuno.adapters.store.report_files import FolderOfReports
from zuno.kernel.view import write_document
from zuno.lab.lp.ablation import read_horizon
from zuno.lab.lp.arms import WHOLE_RUN
from zuno.lab.lp.question import read_question
from zuno.lab.lp.views import ArmView, LpLabView
from zuno.lab.reports import LabReports
from zuno.lab.workers import StoppedEarly
from zuno.wiring.lab_models import choose_runner
from zuno.wiring.lp_lab import build_lp_lab

HOURS = 168 + 24


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_minutes(tmp_path_factory.mktemp("minutes"), draw_minutes(60 * HOURS, step=18))


def read_home(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (home / "lab").iterdir() if path.name != ".lock"}


async def compare_here(home: Path, data: Path, arms: str, *, models: bool = False, resume: bool = False) -> LpLabView:
    question = read_question(str(data), arms, 10_000, 12, "2", "balanced", "0.1", models=models)
    desk = build_lp_lab(home, LabReports(FolderOfReports(home / "lab")), choose_runner())
    view = await desk.compare(question, 1, lambda done, total: None, asyncio.Event(), resume=resume)
    assert isinstance(view, LpLabView)
    return view


def configure(monkeypatch: pytest.MonkeyPatch, server: ModelServer) -> None:
    """A model that costs 2 dollars a reply."""
    name = f"{server.origin}/v1#small"
    monkeypatch.setenv("ZUNO_AGENT_MODEL", name)
    monkeypatch.setenv("ZUNO_MODEL_PRICES", f"{name}=10000/20000")
    for limit in ("ZUNO_BUDGET_USD_PER_RUN", "ZUNO_BUDGET_USD_PER_DAY"):
        monkeypatch.setenv(limit, "100000")


async def test_every_arm_is_explained_over_the_same_hours(data: Path, tmp_path: Path) -> None:
    arms = "hold,passive,reset,fee-cover,score,no-critic,placebo-critic,debate,random"
    view = await compare_here(tmp_path, data, arms)
    assert (view.hours, view.stopped, view.repairs.rows) == (24, False, 60 * HOURS)
    found = {arm.name: arm for arm in view.arms}
    assert list(found) == arms.split(",")
    for arm in view.arms:
        assert arm.residual == 0
        told = arm.fees + arm.price_effect - arm.divergence_loss - arm.gas - arm.swap_cost
        assert told == pytest.approx(arm.net_pnl_usd, abs=1e-5)
        assert len(arm.equity_usd) == 25
        assert arm.scored_fees == pytest.approx(arm.fees, rel=0.05), "fees count at their own prices, not at the last"
        assert arm.fees_less_lvr == pytest.approx(arm.scored_fees - arm.lvr, abs=1e-5)
        assert arm.fees_less_lvr == pytest.approx(sum(arm.carry_usd), abs=1e-5)
        assert (arm.ci95, arm.smallest, arm.replayed) == (None, None, None), "one day is too few"
        assert (arm.hedged is None) == (arm.name == "hold")
    assert (found["hold"].fees, found["hold"].vs_hold, found["hold"].gas) == (0, None, 0)
    assert found["passive"].time_in_range == 1
    assert found["passive"].fees > 0 < found["passive"].gas
    assert found["debate"].decisions == 1
    assert found["random"].rebalances == found["debate"].rebalances


def test_a_tape_is_scored_swap_by_swap_and_replayed(tmp_path: Path) -> None:
    (tmp_path / "tape").mkdir()
    folder = write_tape(tmp_path / "tape", draw_tape(5_800, apart=120))
    words = ["lab", "lp", "--data", str(folder), "--arms", "hold,passive,fee-cover", "--workers", "1", "--json"]
    done = run_zuno(tmp_path / "home", *words, "--funding", "1")
    assert done.code == 0, done.err
    view = done.document
    assert set(view["byMinutes"]) >= {"5", "30", "60"}
    assert view["tape"]["swaps"] == 5_800
    assert view["tape"]["ticksKnown"] > view["tape"]["ticksUnknown"]
    assert [arm["name"] for arm in view["arms"]] == ["hold", "passive", "fee-cover"]
    hold, passive, _ = view["arms"]
    assert (hold["feesLessLvr"], hold["replayed"], hold["hedged"]) == (0, None, None)
    assert passive["scoredFees"] == pytest.approx(passive["fees"], rel=0.05)
    assert -0.1 < passive["replayed"]["differencePct"] < 0
    assert passive["hedged"]["fundingUsd"] > 0
    assert run_zuno(tmp_path / "home", "lab", "lp", *words[2:-1]).code == 0


def test_a_pool_by_day_has_a_full_range_and_no_interval(tmp_path: Path) -> None:
    dice, growth = random.Random(2), 0
    (tmp_path / "days").mkdir()
    lines = ["date,sqrt_price_x96,fee_growth0_x128,fee_growth1_x128"]
    for day in range(60):
        growth += int(2**128 * 0.0002)
        root = int(2**96 * (1 + 0.02 * dice.gauss(0, 1)))
        lines.append(f"{date(2022, 1, 1) + timedelta(days=day)},{root},{growth},{growth}.0")
    (tmp_path / "days" / "days.csv").write_text("\n".join(lines) + "\n")
    words = ["lab", "lp", "--data", str(tmp_path / "days")]
    done = run_zuno(tmp_path / "home", *words, "--json")
    assert done.code == 0, done.err
    (full,) = done.document["arms"]
    assert (full["name"], full["ci95"], done.document["minutes"]) == ("full-range", None, 1_440)
    assert done.document["feesOverLvr"] == pytest.approx(full["feesPctYear"] / full["lvrPctYear"], rel=0.05)
    assert full["feesPctYear"] == pytest.approx(100 * 365 * 0.0002, rel=0.05)
    assert run_zuno(tmp_path / "home", *words).code == 0
    assert run_zuno(tmp_path / "home", "lab", "sweep", "--data", str(tmp_path / "days")).code == 3


@pytest.mark.soak
async def test_questions_that_a_spent_budget_left_to_rules_are_told_and_asked_again(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = LabReports(FolderOfReports(tmp_path / "lab"))
    async with serving(lambda heard: chat("I cannot say.")) as server:
        configure(monkeypatch, server)
        monkeypatch.setenv("ZUNO_BUDGET_TOKENS_PER_DAY", "1")
        spent = await compare_here(tmp_path, data, "hold,debate", models=True)
        hold, debate = spent.arms
        assert (server.heard, hold.unanswered, debate.model_tokens) == ([], 0, 0)
        assert debate.unanswered > 0
        assert [part.name for part in reports.load_parts(spent.report, ArmView)] == ["hold"]
        assert (await reports.read(spent.report)).partial
        monkeypatch.delenv("ZUNO_BUDGET_TOKENS_PER_DAY")
        asked = (await compare_here(tmp_path, data, "hold,debate", models=True, resume=True)).arms[1]
        assert (asked.unanswered, asked.model_tokens) == (0, 150 * len(server.heard))
        assert server.heard
        assert asked.model_cost_usd == 2 * len(server.heard) > 10
        assert asked.equity_usd[-1] - asked.equity_usd[0] == pytest.approx(asked.net_pnl_usd, abs=1e-5)
        told = asked.fees + asked.price_effect - asked.divergence_loss - asked.gas - asked.swap_cost
        assert (asked.residual, told - asked.model_cost_usd) == (0, pytest.approx(asked.net_pnl_usd, abs=1e-5))


@pytest.mark.soak
async def test_an_id_holds_the_models_and_the_rounds_they_argue(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports, ids = LabReports(FolderOfReports(tmp_path / "lab")), set()
    for model, rounds in (("small", "2"), ("large", "2"), ("small", "1"), ("small", "2")):
        monkeypatch.setenv("ZUNO_AGENT_MODEL", f"http://127.0.0.1:9/v1#{model}")
        monkeypatch.setenv("ZUNO_MAX_DEBATE_ROUNDS", rounds)
        ids.add((await compare_here(tmp_path, data, "hold", models=True)).report)
    ids.add((await compare_here(tmp_path, data, "hold")).report)
    assert len(ids) == 4
    assert reports.count_trials("lp") == 1, "who holds asks nobody"


@pytest.mark.soak
async def test_the_same_bytes_whatever_the_workers(data: Path, tmp_path: Path) -> None:
    words = ["lab", "lp", "--data", str(data), "--width", "2", "--every", "12", "--arms", "hold,reset", "--json"]
    done = await asyncio.to_thread(run_zuno, tmp_path / "a", *words, "--workers", "2")
    assert done.code == 0, done.err
    view = await compare_here(tmp_path / "b", data, "hold,reset")
    assert json.loads(write_document(view)) == done.document
    assert read_home(tmp_path / "a") == read_home(tmp_path / "b")
    assert set(read_home(tmp_path / "a")) == {f"{view.report}.json", f"{view.report}.html", "trials.jsonl"}
    saved = json.loads((tmp_path / "a" / "lab" / f"{view.report}.json").read_bytes())
    assert (saved["body"], saved["partial"]) == (done.document, False)
    listed = await asyncio.to_thread(run_zuno, tmp_path / "a", "lab", "reports", "--json")
    assert [row["command"] for row in listed.document["reports"]] == [saved["command"]]


@pytest.mark.soak
async def test_a_stopped_run_keeps_what_is_done_and_goes_on_to_the_same_report(data: Path, tmp_path: Path) -> None:
    reports = LabReports(FolderOfReports(tmp_path / "lab"))
    desk = build_lp_lab(tmp_path, reports, choose_runner())
    question = read_question(str(data), "hold,passive,reset", 10_000, 12, "2", "balanced", "0.1")
    stop = asyncio.Event()

    def stop_in_the_second_arm(done: int, total: int) -> None:
        if done > 26:
            stop.set()

    partial = await desk.compare(question, 1, stop_in_the_second_arm, stop)
    assert (partial.stopped, [arm.name for arm in partial.arms]) == (True, ["hold"])
    assert (await reports.read(partial.report)).partial
    told: list[int] = []
    whole = await desk.compare(question, 1, lambda done, total: told.append(total), asyncio.Event(), resume=True)
    assert (whole.stopped, whole.report, set(told)) == (False, partial.report, {48})
    kept = read_home(tmp_path)
    assert set(kept) == {f"{whole.report}.json", f"{whole.report}.html", "trials.jsonl"}
    assert await compare_here(tmp_path / "b", data, "hold,passive,reset") == whole
    other = read_home(tmp_path / "b")
    trials = [sorted(home.pop("trials.jsonl").splitlines()) for home in (kept, other)]
    assert other == kept
    assert trials[0] == trials[1]
    assert reports.count_trials("lp") == 3


@pytest.mark.soak
async def test_every_arm_decides_about_the_same_position_at_the_same_moment(data: Path, tmp_path: Path) -> None:
    words = ["lab", "ablate", "--data", str(data), "--every", "12", "--horizon", "12", "--width", "2"]
    done = await asyncio.to_thread(run_zuno, tmp_path, *words, "--workers", "1", "--json")
    assert done.code == 0, done.err
    view = done.document
    assert (view["episodes"], view["asked"], view["stopped"]) == (1, 1, False)
    assert [arm["arm"] for arm in view["arms"]] == list(WHOLE_RUN)
    assert [row["arm"] for row in view["notRun"]] == ["single", "vote", "aa"]
    assert set(read_home(tmp_path)) == {f"{view['report']}.json", f"{view['report']}.html", "trials.jsonl"}
    for wrong in (["--horizon", "3"], ["--desk", "poker"]):
        assert (await asyncio.to_thread(run_zuno, tmp_path, *words, *wrong)).code == 2


@pytest.mark.soak
async def test_a_sweep_leaves_a_report_with_a_cell_for_every_range(data: Path, tmp_path: Path) -> None:
    words = ["lab", "sweep", "--data", str(data), "--ranges", "50", "--json"]
    done = await asyncio.to_thread(run_zuno, tmp_path / "a", *words, "--workers", "1")
    assert done.code == 0, done.err
    kept = read_home(tmp_path / "a")
    report = done.document["report"]
    assert set(kept) == {f"{report}.json", f"{report}.html", "trials.jsonl"}
    assert kept[f"{report}.html"].count(b"<rect") == 50 + 2
    assert done.document["asked"] == 50
    assert done.document["ranges"] == done.document["trials"] == kept["trials.jsonl"].count(b"\n") < 50
    again = await asyncio.to_thread(run_zuno, tmp_path / "b", *words, "--workers", "2")
    assert (again.document, read_home(tmp_path / "b")) == (done.document, kept)
    for wrong in (["--capital", "0"], ["--capital", "-5"], ["--ranges", "26"], ["--workers", "0"]):
        assert (await asyncio.to_thread(run_zuno, tmp_path / "a", *words, *wrong)).code == 2
    assert read_home(tmp_path / "a") == kept


async def test_ctrl_c_while_the_minutes_are_read_leaves_the_older_report(data: Path, tmp_path: Path) -> None:
    view = await compare_here(tmp_path, data, "hold")
    kept = read_home(tmp_path)
    desk = build_lp_lab(tmp_path, LabReports(FolderOfReports(tmp_path / "lab")), choose_runner())
    question = read_question(str(data), "hold", 10_000, 12, "2", "balanced", "0.1")
    stop = asyncio.Event()
    stop.set()
    with pytest.raises(StoppedEarly):
        await desk.compare(question, 1, lambda done, total: None, stop)
    with pytest.raises(StoppedEarly):
        await desk.ablation.ablate(read_horizon(question, 12), 1, lambda done, total: None, stop)
    with pytest.raises(StoppedEarly):
        await desk.sweep.sweep(str(data), 25, 10_000, 1, lambda done, total: None, stop)
    assert read_home(tmp_path) == kept
    assert f"{view.report}.json" in kept


@pytest.mark.soak
async def test_a_day_without_rows_and_minutes_without_liquidity_are_played_through(tmp_path: Path) -> None:
    drawn = draw_minutes(60 * (HOURS + 24), step=18)
    gone = range(60 * 170, 60 * 194)
    rows = [
        replace(row, liquidity=0) if 60 * 200 <= number < 60 * 201 else row
        for number, row in enumerate(drawn.minutes)
        if number not in gone
    ]
    folder = write_minutes(tmp_path, replace(drawn, minutes=tuple(rows)))
    view = await compare_here(tmp_path / "home", folder, "hold,reset,debate")
    assert (view.hours, view.repairs.missing, view.repairs.without_liquidity) == (48, len(gone), 60)
    assert [arm.residual for arm in view.arms] == [0, 0, 0]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--arms", "hodl"], 2),
        (["--arms", "aa"], 2),
        (["--arms", "random"], 2),
        (["--capital", "5"], 2),
        (["--every", "0"], 2),
        (["--width", "NaN"], 2),
        (["--gas-gwei", "-1"], 2),
        (["--profile", "yolo"], 2),
        (["--funding", "free"], 2),
        (["--workers", "0"], 2),
        (["--data", "nowhere"], 3),
    ],
)
def test_what_cannot_be_asked(data: Path, tmp_path: Path, words: list[str], code: int) -> None:
    assert run_zuno(tmp_path, "lab", "lp", "--data", str(data), *words).code == code


def test_too_short_a_record_is_refused(tmp_path: Path) -> None:
    write_minutes(tmp_path, draw_minutes(600))
    assert run_zuno(tmp_path / "home", "lab", "lp", "--data", str(tmp_path)).code == 3
