"""Arms of a trading backtest that ask models, over HTTP from a server that answers by what it is shown."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.unit.lab.trading.test_backtest_cycles import HOURS, walk
from tests.unit.lab.trading.test_trade_lab import open_lab
from tests.wire.model_server import Heard, ModelServer, chat, serving
from zuno.adapters.venues.synthetic.path import END
from zuno.kernel.clock import iso
from zuno.kernel.errors import UsageError
from zuno.kernel.units import Millis
from zuno.lab.trading.ablations import UNSHOWN, count_votes
from zuno.lab.trading.arm_result import ArmResult
from zuno.lab.trading.question import read_question
from zuno.lab.trading.views import TradeArmView, TradeLabView
from zuno.trading.model.cycle import Call
from zuno.trading.model.market import HOUR_MS

SPAN = (iso(Millis(END - 232 * HOUR_MS)), iso(Millis(END - 204 * HOUR_MS)))
"""By rules a long is opened in it."""
CYCLES = 8
HOLD = {
    "decision": "HOLD",
    "allocation_pct": 0,
    "leverage": 1,
    "entry_price": None,
    "stop_loss": None,
    "take_profit": None,
    "hold_duration": "3d",
    "reasoning": dict.fromkeys(
        (
            "counter_scenario",
            "meta_agent_context",
            "technical",
            "derivatives",
            "experts",
            "narrative",
            "final_logic",
        ),
        "Nothing speaks for a trade.",
    ),
    "win_probability_pct": 50,
    "expected_profit_pct": 0.0,
    "expected_loss_pct": 0.0,
    "ev_rationale": "Nothing is opened.",
    "key_factors": ["Nothing stands out."],
}
REVIEW = {"allocation_pct": 100, "leverage": 3, "execution_style": "MOMENTUM_SNIPER", "rationale": "So it is."}


def write_market(folder: Path) -> Path:
    folder.mkdir()
    rows = walk(HOURS, END - HOURS * HOUR_MS)
    lines = [f"{iso(row.at)[:19].replace('T', ' ')},{','.join(map(str, row[1:6]))}" for row in rows]
    (folder / "btc-1h.csv").write_text("\n".join(["date,open,high,low,close,volume", *lines]) + "\n")
    return folder


def answer(heard: Heard) -> bytes:
    """The Judge holds; the risk officer vetoes what he is shown; nobody else can be used."""
    asked = json.dumps(heard.body)
    if "You are the chief risk officer" in asked:
        return chat(json.dumps(REVIEW | {"veto": UNSHOWN.lines[0].text not in asked}))
    return chat(json.dumps(HOLD) if "final_logic" in asked else "I cannot say.")


async def compare(home: Path, folder: Path, arms: str, *, models: bool = True, resume: bool = False) -> TradeLabView:
    question = read_question(str(folder), "BTCUSDT", *SPAN, arms, models=models)
    return await open_lab(home)[0].compare(question, 1, lambda done, total: None, asyncio.Event(), resume=resume)


def configure(monkeypatch: pytest.MonkeyPatch, server: ModelServer, *roles: str) -> None:
    name = f"{server.origin}/v1#small"
    for role in roles:
        monkeypatch.setenv(f"ZUNO_MODEL_{role}", name)
    monkeypatch.setenv("ZUNO_MODEL_PRICES", f"{name}=10/20")


def count_entries(arm: TradeArmView) -> int:
    return arm.trades + arm.open_trades


def by_name(view: TradeLabView) -> dict[str, TradeArmView]:
    return {arm.arm: arm for arm in view.arms}


@pytest.mark.slow
async def test_the_judge_alone_a_vote_and_fresh_replies_are_asked_once_and_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_market(tmp_path / "market")
    arms = "debate,aa,single,vote,placebo"
    async with serving(answer) as server:
        configure(monkeypatch, server, "JUDGE")
        first = await compare(tmp_path / "home", folder, arms)
        asked = len(server.heard)
        found = by_name(first)
        assert list(found) == ["debate", "aa", "single", "vote"]
        assert [skipped.arm for skipped in first.not_run] == ["placebo"], "no model sits in his place"
        for arm in found.values():
            assert (arm.trades, arm.open_trades, arm.model_tokens) == (0, 0, CYCLES * 150)
            assert arm.model_cost_usd == pytest.approx(CYCLES * 150 * 0.002 / 150)
            assert arm.net_pnl_usd == pytest.approx(-arm.model_cost_usd, abs=0.006)
        assert asked == 2 * CYCLES, "the debate's replies serve single and vote; aa has its own"
        assert [(model.cutoff, model.in_sample) for model in first.models] == [(None, True)]
        assert "provable" in first.headline
        assert (first.noise_floor_usd, first.noise_floor_said) == (0.0, "measured by aa")
        assert await compare(tmp_path / "home", folder, arms) == first
        assert len(server.heard) == asked, "nobody is asked again"
    monkeypatch.delenv("ZUNO_MODEL_JUDGE")
    assert await compare(tmp_path / "home", folder, arms) == first, "kept replies need no model"
    ruled = await compare(tmp_path / "home", folder, "debate,single", models=False)
    assert count_entries(by_name(ruled)["debate"]) == 1, "by rules something is opened"
    assert [skipped.arm for skipped in ruled.not_run] == ["single"]
    assert (ruled.models, ruled.noise_floor_usd) == ((), 0.0)


@pytest.mark.soak
async def test_another_model_is_another_trial_of_the_arms_that_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, home = write_market(tmp_path / "market"), tmp_path / "home"
    reports, ids = open_lab(home)[1], set()
    async with serving(answer) as server:
        configure(monkeypatch, server, "JUDGE")
        for name, trials in (("small", 2), ("small", 2), ("large", 3)):
            monkeypatch.setenv("ZUNO_MODEL_JUDGE", f"{server.origin}/v1#{name}")
            ids.add((await compare(home, folder, "hold,single")).report)
            assert reports.count_trials("trade") == trials
    assert len(ids) == 2
    await compare(home, folder, "hold,single", models=False)
    assert reports.count_trials("trade") == 3, "who holds asks nobody, and single was not run"


@pytest.mark.soak
async def test_what_a_spent_budget_left_to_rules_is_told_and_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, home = write_market(tmp_path / "market"), tmp_path / "home"
    async with serving(answer) as server:
        configure(monkeypatch, server, "JUDGE")
        monkeypatch.setenv("ZUNO_BUDGET_TOKENS_PER_DAY", "1")
        spent = await compare(home, folder, "debate,hold,random")
        assert server.heard == []
        found = by_name(spent)
        assert (found["debate"].unanswered, found["debate"].model_tokens) == (CYCLES, 0), "rules decided"
        assert found["hold"].unanswered == 0
        assert spent.headline.startswith("Not judged")
        reports = open_lab(home)[1]
        assert (await reports.read(spent.report)).partial
        kept = [part.arm for part in reports.load_parts(spent.report, ArmResult)]
        assert kept == ["hold"], "what is matched with the debate goes with it"
        monkeypatch.delenv("ZUNO_BUDGET_TOKENS_PER_DAY")
        asked = by_name(await compare(home, folder, "debate,hold,random", resume=True))
        assert len(server.heard) == CYCLES
        assert (asked["debate"].unanswered, asked["debate"].model_tokens) == (0, CYCLES * 150)


@pytest.mark.soak
async def test_a_risk_officer_who_is_shown_nothing_vetoes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_market(tmp_path / "market")
    async with serving(answer) as server:
        configure(monkeypatch, server, "MACRO")
        view = await compare(tmp_path / "home", folder, "debate,placebo,single")
    found = by_name(view)
    assert count_entries(found["debate"]) == 0
    assert count_entries(found["placebo"]) == 1
    assert [skipped.arm for skipped in view.not_run] == ["single"], "the Judge has no model"


def test_of_equal_votes_what_opens_nothing_wins() -> None:
    assert count_votes([Call.LONG, Call.HOLD, Call.LONG]) is Call.LONG
    assert count_votes([Call.LONG, Call.HOLD]) is Call.HOLD
    assert count_votes([Call.SHORT, Call.LONG]) is Call.SHORT


def test_a_vote_needs_a_debate_to_be_as_dear_as() -> None:
    with pytest.raises(UsageError):
        read_question(None, "BTCUSDT", None, None, "vote")
