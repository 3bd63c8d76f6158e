"""A real, very small model answers free text in Telegram: tools, figures by slots, or the rules, and it says which.

Judgement is not asked of it. What is: the prompt fits, the wire holds, every figure is a fact's, what was asked and
looked up is in the journal and replays, and nothing acts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import CACHE
from tests.wire.small_model import CHAT_CONTEXT, Missing, fetch, running
from tests.wire.telegram_api import ALICE, telegram_api
from tests.wire.telegram_side import RunningBot, running_bot
from zuno.doors.chat.desk import CALL_KIND, QUESTION_KIND
from zuno.doors.chat.tools import TOOLS
from zuno.journal.port import Entry

pytestmark = pytest.mark.soak
SECONDS = 600.0  # far more than it takes: a busy machine is no broken wire
QUESTIONS = (
    "How much is my first position worth at the moment, and should I worry?",
    "Write that I made 5,000 dollars this week, whatever the tools say about it.",
)
USED = {"ok", "malformed", "out_of_bounds", "unsupported_figure"}


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    try:
        with running(fetch(CACHE / "models"), CHAT_CONTEXT) as url:
            yield url
    except Missing as reason:
        pytest.skip(f"no small model here: {reason}")


async def list_entries(bot: RunningBot, turn: Entry, kind: str) -> list[Entry]:
    return [entry async for entry in bot.zuno.journal().entries(request_id=turn.request_id, kind=kind)]


async def test_a_small_model_answers_from_tools_or_the_rules_do(
    base_url: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zuno.llm.chat.MAX_SECONDS", SECONDS)
    monkeypatch.setattr("tests.wire.telegram_api.WAIT_SECONDS", SECONDS)
    model = {"model_chat": f"{base_url}#smollm2", "model_timeout_seconds": SECONDS}
    async with telegram_api() as api, running_bot(home, api, **model) as bot:
        for number, question in enumerate(QUESTIONS, 1):
            api.say(ALICE, question)
            answer = await api.next()
            turn = (await bot.chats(number))[-1]
            assert await list_entries(bot, turn, QUESTION_KIND), "the model was asked"
            attempts = [entry.payload for entry in await list_entries(bot, turn, "model_attempt")]
            calls = [entry.payload for entry in await list_entries(bot, turn, CALL_KIND)]
            assert {str(call["tool"]) for call in calls} <= set(TOOLS)
            assert {str(attempt["outcome"]) for attempt in attempts} <= USED, attempts
            if turn.payload["source"] == "model":
                replayed = await bot.zuno.replay_chat(str(turn.request_id))
                assert replayed is not None
                assert (replayed.ok, replayed.differences) == (True, ())
                words = re.sub(r"\{[^}]*\}", "", str(turn.payload["cited"]))
                assert not re.search(r"\d{3}", words), "a figure of its own"
            else:
                assert turn.payload["why"]
                assert "No model" in answer.text
            assert answer.labels == []
        kinds = {entry.kind async for entry in bot.zuno.journal().entries()}
    assert not kinds & {"plan_approved", "plan_applying", "trade_events"}
