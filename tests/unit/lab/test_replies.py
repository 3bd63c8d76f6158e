"""Kept replies: asked in the same order and at the same price, without a key and without the vendors' libraries."""

from __future__ import annotations

import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from tests.wire.asking import GOOD, Desk, question
from tests.wire.fakes.model import ScriptedModel
from zuno.adapters.store.report_files import FolderOfReports
from zuno.kernel.units import Millis
from zuno.lab.replies import ModelMeter, ReplyBook, describe_models, keep_replies
from zuno.llm.ask import Breakers, ModelContext, ask
from zuno.llm.port import Attempt, Failed, ModelRegistry
from zuno.wiring.lab_models import REPLIES, LabModels

DOWN = Failed("unavailable", "it could not be reached")
PRICE = Decimal("0.00000015")


def open_book(folder: Path, registry: ModelRegistry | None = None) -> ReplyBook:
    files = FolderOfReports(folder / "lab")
    if registry is None:
        return ReplyBook(files, REPLIES)
    return ReplyBook(files, REPLIES, lambda: describe_models(registry, ("scout", "critic")))


def kept(model_context: ModelContext, book: ReplyBook) -> tuple[ModelContext, ModelMeter]:
    meter = ModelMeter(lambda: Millis(0))
    return keep_replies(model_context, book, meter), meter


async def test_a_second_model_that_answered_for_the_first_answers_again(tmp_path: Path) -> None:
    """The first by order is the last by name, and never said a word; a request names its place in the order."""
    desk = Desk(tmp_path)
    first = ScriptedModel(lambda request: DOWN, "z-first")
    second = ScriptedModel(lambda request: GOOD, "a-second", usd_per_token=PRICE)
    asked = desk.model_context(first, second)
    model_context, _ = kept(asked, open_book(tmp_path, asked.registry))
    answer = await ask(question(), model_context)
    assert (answer.source, len(answer.attempts)) == ("model", 2)
    book = open_book(tmp_path)
    again, _ = kept(desk.model_context(registry=book), book)
    assert [model.name for model in book.models_for("critic", 0).models] == ["z-first", "a-second"]
    heard = await ask(question(), again)
    assert (heard.source, heard.value) == ("model", answer.value)
    assert len(second.asked) == 1


async def test_a_question_is_unanswered_where_nobody_said_anything(tmp_path: Path) -> None:
    desk = Desk(tmp_path, breakers=Breakers(threshold=None))
    silent = ScriptedModel(lambda request: DOWN, "silent")
    poor = ScriptedModel(lambda request: "not the object asked for", "poor")
    for models, unanswered in (((silent,), 1), ((silent, poor), 0), ((poor,), 0), ((silent, silent), 1)):
        model_context, meter = kept(
            desk.model_context(*models), ReplyBook(FolderOfReports(tmp_path / "none"), "unkept")
        )
        for _ in range(2):
            await ask(question(), replace(model_context, recall=lambda request: None))
        assert meter.unanswered == 2 * unanswered


async def test_an_answer_counts_though_the_question_back_was_not_answered_and_so_does_a_refusal(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (said,) = (await ask(question(), desk.model_context(ScriptedModel(lambda request: GOOD, "good")))).attempts
    second = said.model_copy(update={"attempt": 2})
    silent = second.model_copy(update={"outcome": "timeout"})
    refused = said.model_copy(update={"outcome": "refused"})
    for attempts, unanswered in (([said, silent], 0), ([silent], 1), ([silent, second], 0), ([refused], 0)):
        meter = ModelMeter(lambda: Millis(0))
        for attempt in attempts:
            meter.add(attempt)
        assert meter.unanswered == unanswered
    meter.add(said.model_copy(update={"outcome": "timeout"}))
    assert meter.unanswered == 1


async def test_of_two_answers_to_one_request_the_first_stands(tmp_path: Path) -> None:
    desk, book = Desk(tmp_path), open_book(tmp_path)
    (said,) = (await ask(question(), desk.model_context(ScriptedModel(lambda request: GOOD, "good")))).attempts
    for _ in range(2):
        await book.record(said)
    files = FolderOfReports(tmp_path / "two")
    lines = [said.model_copy(update={"raw": raw}).model_dump_json(by_alias=True) for raw in ("first", "second")]
    files.add_lines("replies.jsonl", lines)
    found = ReplyBook(files, "replies")._attempts[said.request]
    assert found.raw == "first"


async def test_a_kept_model_costs_what_it_cost(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    priced = ScriptedModel(lambda request: GOOD, "gpt-4o-mini", usd_per_token=PRICE)
    asked = desk.model_context(priced)
    model_context, _ = kept(asked, open_book(tmp_path, asked.registry))
    await ask(question(), model_context)
    for role in ("critic", "scout"):
        (model,) = open_book(tmp_path).models_for(role, 0).models
        assert await model.price(3_000, 200) == await priced.price(3_000, 200)
    assert open_book(tmp_path).has_reply("critic")
    assert not open_book(tmp_path).has_reply("scout")


async def test_older_replies_without_a_price_need_no_price_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home of before prices were kept, where the vendors' libraries are not installed."""
    attempt = Attempt(
        role="risk_manager",
        round=0,
        attempt=1,
        model="gpt-4o-mini",
        request="f" * 64,
        outcome="ok",
        why="",
        raw="{}",
        cut=False,
        tokens_in=1,
        tokens_out=1,
        usd=Decimal(0),
        estimated=False,
        latency_ms=1,
    )
    later = attempt.model_copy(update={"model": "a-second", "attempt": 2, "request": "e" * 64})
    lines = [line.model_dump_json(by_alias=True) for line in (later, attempt)]
    FolderOfReports(tmp_path / "lab").add_lines("replies.jsonl", [*lines, '{"of":"another form"}'])
    for library in ("pydantic_ai", "genai_prices"):
        monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setattr("zuno.wiring.lab_models.missing_models", lambda: "make models")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    models = LabModels(str(tmp_path), tmp_path)
    chain = models.registry(REPLIES).models_for("risk_manager", 0).models
    assert [model.name for model in chain] == ["gpt-4o-mini", "a-second"]
    assert await chain[0].price(3_000, 200) is None
    assert models.can_answer("risk_manager")
    assert not models.can_answer("judge"), "a key without the library asks nobody"
    await models.close()
