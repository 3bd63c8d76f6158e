"""Free text to the bot of a home: answered by the reader, by a model over its wire, and never acted on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.wire.model_server import chat, serving
from tests.wire.telegram_api import ALICE, BOB, GROUP, TelegramApi, telegram_api
from tests.wire.telegram_side import running_bot

LINE = "tell me whether the first position is fine please"


@pytest_asyncio.fixture
async def api() -> AsyncIterator[TelegramApi]:
    async with telegram_api() as served:
        yield served


def step(tool: str = "answer", answer: str = "", propose: str = "", **arguments: str) -> bytes:
    given = [{"name": name, "value": value} for name, value in arguments.items()]
    return chat(json.dumps({"tool": tool, "arguments": given, "answer": answer, "propose": propose}))


async def test_without_a_model_the_reader_answers_and_nothing_acts(api: TelegramApi, home: Path) -> None:
    async with running_bot(home, api) as bot:
        api.say(ALICE, "show my positions")
        shown = await api.next()
        assert "WETH/USDC" in shown.text
        assert "from /" in shown.text.replace("\u2060", "")
        api.say(ALICE, "close position 1")
        proposed = await api.next()
        assert "/close 1" in proposed.text
        assert proposed.labels == []
        api.say(BOB, "😀")
        assert (await api.next()).chat == BOB.id
        api.say(ALICE, f"my key 0x{'ab12' * 16}")
        assert "secret" in (await api.next()).text
        turns = [entry.payload for entry in await bot.chats(4)]
    assert [turn["question"] for turn in turns] == ["show my positions", "close position 1", "😀", ""]
    assert [turn["proposal"] for turn in turns] == ["", "/close 1 sim", "", ""]
    assert "ab12ab12" not in str(turns)


async def test_what_is_said_in_a_group_is_answered_where_it_replies_to_the_bot(api: TelegramApi, home: Path) -> None:
    async with running_bot(home, api):
        api.say(ALICE, "show my positions", GROUP)
        api.say(ALICE, "/version", GROUP)
        assert (await api.next()).text.startswith("zuno ")


async def test_a_model_answers_with_figures_of_the_tools_and_replays(api: TelegramApi, home: Path) -> None:
    pytest.importorskip("pydantic_ai")
    said = iter(
        [
            step("inspect", position="1"),
            step(answer="It is worth 22,561 USDC."),
            step(answer="It is in range and worth {position.worth}.", propose="/recommend 1"),
        ]
    )
    async with (
        serving(lambda heard: next(said)) as server,
        running_bot(home, api, model_chat=f"{server.origin}/v1#tiny") as bot,
    ):
        api.say(ALICE, LINE)
        answer = await api.next()
        (turn,) = await bot.chats(1)
        assert turn.request_id is not None
        replayed = await bot.zuno.replay_chat(turn.request_id)
    assert "worth 22,561.8331 USDC" in answer.text
    assert "/recommend 1" in answer.text
    assert (turn.payload["source"], turn.payload["proposal"]) == ("model", "/recommend 1")
    assert replayed is not None
    assert (replayed.ok, replayed.differences) == (True, ())
    assert (home / "spend.json").exists(), "the day's budget counts it"


@pytest.mark.parametrize(("limit", "said"), [(0, ""), (10, "budget"), (1_000_000, "It is in range.")])
async def test_viewers_ask_a_model_within_a_budget_of_their_own(
    api: TelegramApi, home: Path, limit: int, said: str
) -> None:
    pytest.importorskip("pydantic_ai")
    asked: list[object] = []

    def answer(heard: object) -> bytes:
        asked.append(heard)
        return step(answer="It is in range.")

    async with (
        serving(answer) as server,
        running_bot(home, api, model_chat=f"{server.origin}/v1#tiny", budget_tokens_per_day_viewers=limit),
    ):
        api.say(BOB, LINE)
        told = await api.next()
        assert said in told.text
        assert ("No model" in told.text, len(asked)) == (limit == 10, int(limit > 10))
        api.say(ALICE, LINE)
        assert "It is in range." in (await api.next()).text
    spent = {name for name in ("spend.json", "spend-viewers.json") if (home / name).exists()}
    assert spent == ({"spend.json", "spend-viewers.json"} if limit > 10 else {"spend.json"})


async def test_a_model_that_is_away_leaves_the_reader(api: TelegramApi, home: Path) -> None:
    pytest.importorskip("pydantic_ai")
    async with running_bot(home, api, model_chat="http://127.0.0.1:9/v1#gone"):
        api.say(ALICE, "show my positions")
        answer = await api.next()
    assert "No model" in answer.text
    assert "WETH/USDC" in answer.text
