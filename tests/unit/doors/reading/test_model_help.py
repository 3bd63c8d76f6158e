"""A model may help to read a line; it picks among intents that change nothing, and copies what stands in the line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.wire.asking import Desk
from tests.wire.fakes.model import ScriptedModel, in_order
from tests.wire.prompt_size import SMALL_MODEL_TOKENS, count_tokens
from zuno.doors.reading.intents import Reading, load_catalogue, may_be_guessed
from zuno.doors.reading.model_help import Interpreter, _question, offered_intents
from zuno.llm.ask import ModelContext
from zuno.llm.port import Ceiling
from zuno.llm.prompts import Prompts, Untrusted

SIGNING = [name for name, intent in load_catalogue().intents.items() if intent.signs]
LINE = "gimme the lowdown on numero 7 over at base"


def said(intent: str, **slots: str) -> str:
    return json.dumps({"intent": intent, "slots": [{"name": name, "text": text} for name, text in slots.items()]})


async def read(
    folder: Path, *answers: str, line: str = LINE, **desk: Any
) -> tuple[Reading | None, ScriptedModel, Desk]:
    model, table = ScriptedModel(in_order(answers)), Desk(folder, **desk)

    async def model_context() -> ModelContext:
        return replace(table.model_context(model), prompts=Prompts("zuno.doors.reading"))

    return await Interpreter(model_context).read(line), model, table


async def test_a_model_reads_what_the_rules_could_not(tmp_path: Path) -> None:
    reading, model, table = await read(tmp_path, said("inspect", position="7", chain="base"))
    assert reading is not None
    assert (reading.intent, reading.source) == ("inspect", "model")
    assert reading.command() == ("lp", "inspect", "7", "--chain", "base")
    assert table.outcomes() == ["ok"]
    assert LINE in model.asked[0].turns[0].text


@pytest.mark.parametrize(
    "intent",
    [
        *(name for name, intent in load_catalogue().intents.items() if intent.signs),
        "sign",
        "send",
        "sim_reset",
        "devnet_down",
        "unclear",
        "rm -rf",
    ],
)
async def test_a_model_never_yields_what_signs_or_moves(tmp_path: Path, intent: str) -> None:
    """Not even when it insists."""
    reading, _, table = await read(tmp_path, said(intent), said(intent))
    assert reading is None
    assert table.outcomes() == ["out_of_bounds", "out_of_bounds"] or table.outcomes() == ["malformed", "malformed"]


@pytest.mark.parametrize(
    "answer",
    [
        said("inspect", position="8"),
        said("inspect", position="numero"),
        said("inspect", chain="devnet"),
        said("inspect", plan="plan_0123456789ab"),
        said("show", position="7"),
        "approve",
        "{}",
        '{"intent": "inspect", "slots": [], "yes": true}',
        "",
    ],
)
async def test_what_does_not_stand_in_the_line_is_refused(tmp_path: Path, answer: str) -> None:
    reading, _, _ = await read(tmp_path, answer, answer)
    assert reading is None


async def test_a_mended_answer_is_taken(tmp_path: Path) -> None:
    reading, _, table = await read(tmp_path, said("approve"), said("inspect", position="7"))
    assert reading is not None
    assert reading.intent == "inspect"
    assert table.outcomes() == ["out_of_bounds", "ok"]


async def test_none_is_an_answer(tmp_path: Path) -> None:
    reading, _, table = await read(tmp_path, said("none"))
    assert reading is None
    assert table.outcomes() == ["ok"]


async def test_nobody_is_asked_where_nobody_sits(tmp_path: Path) -> None:
    async def nobody() -> None:
        return None

    assert await Interpreter(nobody).read(LINE) is None


@pytest.mark.parametrize("line", ["my private key is " + "ab" * 32, "0x" + "12" * 32, "password hunter2", "x" * 5_000])
async def test_a_secret_is_not_shown_to_a_model(tmp_path: Path, line: str) -> None:
    reading, model, _ = await read(tmp_path, said("help"), line=line)
    assert reading is None
    assert model.asked == []


async def test_the_budget_holds_here_too(tmp_path: Path) -> None:
    from zuno.llm.budget import Limits

    limits = Limits(Ceiling(10, None), Ceiling(None, None))
    reading, model, table = await read(tmp_path, said("help"), limits=limits)
    assert reading is None
    assert model.asked == []
    assert table.outcomes() == ["budget"]


async def test_a_wish_is_read_by_its_own_rules(tmp_path: Path) -> None:
    reading, _, _ = await read(tmp_path, said("create", amount="0.5 ETH"), line="0.5 ETH, safely")
    assert reading is not None
    assert reading.slots == {"token": "ETH", "quantity": "0.5", "profile": "conservative"}
    again, _, _ = await read(tmp_path, said("create"), said("create"), line="everything but the kitchen sink")
    assert again is None


def test_what_is_offered_may_be_guessed() -> None:
    assert all(map(may_be_guessed, offered_intents()))


def test_the_question_fits_a_small_model() -> None:
    question = _question("x" * 400)
    prompt = Prompts("zuno.doors.reading").render("reader", question.variables())
    assert count_tokens(prompt) <= SMALL_MODEL_TOKENS
    assert isinstance(question.variables()["line"], Untrusted)
