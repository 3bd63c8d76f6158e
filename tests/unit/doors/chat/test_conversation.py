"""`it` is what stood on the screen; one question is asked, and the next line answers it or forgets it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from tests.shell_place import POSITIONS
from zuno.doors.chat.conversation import Ask, ChainSwitched, Conversation, EndConversation, Help, Run
from zuno.doors.reading.intents import UNCLEAR
from zuno.doors.reading.reader import read
from zuno.doors.reading.seen import to_shown_positions
from zuno.lp.service.archive import PlanListView, WhyView
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.views import InspectView, PositionsView
from zuno.lp.watch.alerts import AlertsView, AlertView
from zuno.wiring import Application, open_zuno

PLAN, OTHER = "plan_0123456789ab", "plan_ba9876543210"
T = TypeVar("T")


@pytest.fixture(scope="module")
def screens(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What the embedded world shows, once for all of these tests."""
    home = str(tmp_path_factory.mktemp("home"))

    def shown(question: Callable[[Application], Awaitable[T]]) -> T:
        async def asked() -> T:
            zuno = open_zuno(home)
            try:
                return await question(zuno)
            finally:
                await zuno.close()

        return asyncio.run(asked())

    plan = shown(
        lambda zuno: zuno.advice().rebalance("1", chain="sim", profile=None, candidate=None, listen=lambda _: None)
    )
    assert isinstance(plan, PlanView)
    return {
        "positions": shown(lambda zuno: zuno.lp("sim").positions()),
        "one": shown(lambda zuno: zuno.lp("sim").positions(["2"])),
        "inspect": shown(lambda zuno: zuno.lp("sim").inspect("2")),
        "plan": plan,
        "why": shown(lambda zuno: zuno.archive().why(plan.plan_id)),
        "plans": shown(lambda zuno: zuno.archive().plans()),
        "last": shown(lambda zuno: zuno.audit().last_request(("plan", "cycle_ended"))),
    }


def positions(screens: dict[str, object]) -> PositionsView:
    view = screens["positions"]
    assert isinstance(view, PositionsView)
    return view


def plan(screens: dict[str, object]) -> PlanView:
    view = screens["plan"]
    assert isinstance(view, PlanView)
    return view


def words(turn: object) -> str:
    assert isinstance(turn, Run), turn
    return " ".join(turn.words)


def question(turn: object) -> str:
    assert isinstance(turn, Ask), turn
    return turn.question


@pytest.mark.soak
def test_nothing_shown_is_nothing_pointed_at() -> None:
    talk = Conversation()
    assert question(talk.hear("inspect it")).startswith("Which position?")
    assert words(talk.hear("3")) == "lp inspect 3"
    assert question(talk.hear("approve it")).startswith("Which plan?")
    assert words(talk.hear(PLAN)) == f"plan approve {PLAN}"


@pytest.mark.soak
def test_it_is_the_last_position_shown_and_keeps_its_chain(screens: dict[str, object]) -> None:
    talk = Conversation()
    talk.remember_view(positions(screens))
    assert question(talk.hear("inspect it")).startswith("Which position?"), "two were shown, none by itself"
    assert words(talk.hear("the second")) == "lp inspect 2 --chain sim"
    view = screens["inspect"]
    assert isinstance(view, InspectView)
    talk.remember_view(view)
    assert words(talk.hear("pnl of it")) == "lp pnl 2 --chain sim"
    assert words(talk.hear("inspect the first")) == "lp inspect 1 --chain sim"
    assert words(talk.hear("recommend rebalance")) == "lp recommend rebalance 2 --chain sim"
    assert words(talk.hear("inspect it on base")) == "lp inspect 2 --chain base"


def test_a_list_of_one_is_shown_by_itself(screens: dict[str, object]) -> None:
    talk = Conversation()
    view = screens["one"]
    assert isinstance(view, PositionsView)
    talk.remember_view(view)
    assert words(talk.hear("close it")) == "lp close 2 --chain sim"


def test_what_was_typed_is_not_what_was_shown() -> None:
    talk = Conversation()
    assert words(talk.hear(f"simulate {PLAN}")) == f"plan simulate {PLAN}"
    assert question(talk.hear("approve it")).startswith("Which plan?"), "the command may have failed"


def test_a_plan_shown_brings_its_position(screens: dict[str, object]) -> None:
    for name in ("plan", "why"):
        talk = Conversation()
        view = screens[name]
        assert isinstance(view, PlanView | WhyView)
        talk.remember_view(view)
        known = plan(screens).plan_id
        assert words(talk.hear("approve it")) == f"plan approve {known}"
        assert words(talk.hear("apply the plan")) == f"plan apply {known}"
        assert words(talk.hear("why")) == f"why {known}"
        assert words(talk.hear("what are my options")) == f"plan show {known}"
        assert words(talk.hear("inspect it")) == "lp inspect 1 --chain sim"


@pytest.mark.parametrize("line", ["approve", "apply", "cancel", "close position", "collect fees", "remove 50%"])
def test_what_signs_is_told_what_even_if_one_was_shown(line: str, screens: dict[str, object]) -> None:
    talk = Conversation()
    talk.remember_view(plan(screens))
    asked = question(talk.hear(line))
    assert "`it`" in asked
    whole = talk.hear("it")
    assert words(whole).split()[1] == read(line).intent
    assert "--yes" not in words(whole)


def test_options_of_a_position_are_argued_about(screens: dict[str, object]) -> None:
    talk = Conversation()
    view = screens["inspect"]
    assert isinstance(view, InspectView)
    talk.remember_view(view)
    assert words(talk.hear("what are my options")) == "lp recommend rebalance 2 --chain sim"


def test_one_question_is_open_at_a_time() -> None:
    talk = Conversation()
    assert question(talk.hear("inspect")) == "Which position?"
    assert words(talk.hear("show balances")) == "wallet balance", "a command of its own"
    assert isinstance(talk.hear("4"), Ask), "the question is forgotten"
    assert question(talk.hear("create a position on base")).startswith("How much")
    assert words(talk.hear("0.05 ETH")) == "lp recommend create --token ETH --amount 0.05 --chain base"
    assert question(talk.hear("approve")) == "Which plan?"
    for line in ("no", "yes", "ok", "not that one", "never mind"):
        talk.hear("approve")
        assert isinstance(talk.hear(line), Ask), line


def test_two_things_missing_are_asked_one_after_the_other() -> None:
    talk = Conversation()
    assert question(talk.hear("snooze")) == "Which alert?"
    assert question(talk.hear("alert_0123456789ab")).startswith("For how long?")
    assert words(talk.hear("6 hours")) == "alerts snooze alert_0123456789ab 6h"


def test_a_chain_is_kept_until_another_is_named(screens: dict[str, object]) -> None:
    talk = Conversation()
    assert talk.hear("switch to base") == ChainSwitched("base")
    assert words(talk.hear("show positions")) == "lp positions --chain base"
    assert words(talk.hear("show positions on devnet")) == "lp positions --chain devnet"
    assert words(talk.hear("create a position with 1 ETH")) == (
        "lp recommend create --token ETH --amount 1 --chain base"
    )
    assert words(talk.hear("logs")) == "logs", "a log has no chain"
    assert words(talk.hear("inspect 3")) == "lp inspect 3 --chain base"


def test_two_plans_are_compared() -> None:
    talk = Conversation()
    assert "ids" in question(talk.hear("diff"))
    assert words(talk.hear(f"diff {PLAN} {OTHER}")) == f"plan diff {PLAN} {OTHER}"


def test_the_last_two_plans_shown_are_compared(screens: dict[str, object]) -> None:
    talk = Conversation()
    first = plan(screens)
    talk.remember_view(first)
    talk.remember_view(first)
    assert "ids" in question(talk.hear("diff")), "one plan shown twice is one plan"
    talk.remember_view(first.model_copy(update={"plan_id": OTHER}))
    assert words(talk.hear("diff")) == f"plan diff {first.plan_id} {OTHER}"
    assert words(talk.hear("what changed")) == f"plan diff {first.plan_id} {OTHER}"
    talk.remember_view(first)
    assert words(talk.hear("approve it")) == f"plan approve {first.plan_id}", "shown again, it is the last again"
    assert words(talk.hear("diff")) == f"plan diff {OTHER} {first.plan_id}"


def test_a_list_of_plans_is_counted_through(screens: dict[str, object]) -> None:
    talk = Conversation()
    view = screens["plans"]
    assert isinstance(view, PlanListView)
    assert len(view.plans) == 1
    talk.remember_view(view)
    assert words(talk.hear("show the first plan")) == f"plan show {plan(screens).plan_id}"
    assert words(talk.hear("replay it")) == f"replay {plan(screens).plan_id}"


def alerts(*ids: str) -> AlertsView:
    lines = tuple(
        AlertView(
            id=one,
            severity="critical",
            condition="out of range",
            chain="sim",
            wallet=None,
            position="1",
            reason="it left",
            raised_at=1,
            told_at=1,
            state="active",
            snoozed_until=None,
        )
        for one in ids
    )
    return AlertsView(looked_at=1, alerts=lines, events=None, waiting=0, dropped=0, trouble="", notes=())


def test_the_alert_is_the_only_one_shown() -> None:
    talk = Conversation()
    one, two = "alert_0123456789ab", "alert_ba9876543210"
    talk.remember_view(alerts(one, two))
    assert question(talk.hear("ack it")).startswith("Which alert?")
    assert words(talk.hear("the second")) == f"alerts ack {two}"
    talk.remember_view(alerts(one))
    assert words(talk.hear("ack it")) == f"alerts ack {one}"


def test_help_and_leaving() -> None:
    talk = Conversation()
    assert isinstance(talk.hear("help"), Help)
    assert isinstance(talk.hear("bye"), EndConversation)


def test_what_could_not_be_read_is_handed_on() -> None:
    turn = Conversation().hear("frobnicate the flux")
    assert isinstance(turn, Ask)
    assert turn.reading is not None
    assert turn.reading.intent == UNCLEAR
    slip = Conversation().hear("aprove it")
    assert isinstance(slip, Ask)
    assert slip.reading is not None
    assert slip.reading.suggestion == "approve"


def test_ids_are_remembered_for_completion(screens: dict[str, object]) -> None:
    talk = Conversation()
    talk.remember_view(positions(screens))
    talk.remember_view(plan(screens))
    assert set(talk.ids) == {"1", "2", plan(screens).plan_id}
    assert talk.wallet == positions(screens).wallet


def test_the_demo_world_is_the_place_phrases_are_read_in(screens: dict[str, object]) -> None:
    assert tuple(to_shown_positions(positions(screens))) == POSITIONS


def test_a_position_is_meant_by_what_it_holds(screens: dict[str, object]) -> None:
    talk = Conversation(lambda chain: positions(screens))
    assert words(talk.hear("rebalance my eth position safely")) == (
        "lp recommend rebalance 2 --profile conservative --chain sim"
    )
    assert words(talk.hear("inspect the first")) == "lp inspect 1 --chain sim"
    asked = talk.hear("inspect my usdc position")
    assert isinstance(asked, Ask)
    assert [reading.template for reading in asked.offered] == [("lp", "inspect", "1"), ("lp", "inspect", "2")]
    assert words(talk.hear("2")) == "lp inspect 2"
    assert question(Conversation().hear("inspect my eth position"))


def test_a_digit_takes_a_choice_once() -> None:
    talk = Conversation()
    asked = talk.hear("show balances and allowances")
    assert isinstance(asked, Ask)
    assert [reading.template for reading in asked.offered] == [("wallet", "balance"), ("wallet", "allowances")]
    assert words(talk.hear("2")) == "wallet allowances"
    assert isinstance(talk.hear("2"), Ask), "the offer is forgotten"
    talk.hear("show balances and allowances")
    assert isinstance(talk.hear("3"), Ask), "there is no third"


def test_what_was_not_understood_is_told() -> None:
    turn = Conversation().hear("who can spend my usdc")
    assert isinstance(turn, Run)
    assert turn.reading.unused == ("usdc",)


def test_why_and_replay_mean_the_last_where_none_was_shown() -> None:
    assert words(Conversation().hear("why")) == "why"
    assert words(Conversation().hear("replay it")) == "replay"


def test_the_last_decision_is_known(screens: dict[str, object]) -> None:
    assert screens["last"] == plan(screens).request_id
