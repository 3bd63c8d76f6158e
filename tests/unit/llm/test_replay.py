"""What was recorded replays without a model: the same path, the same words, the same attempts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.wire.asking import CENT, GOOD, Critique, Desk, critique, question, twin, verdict
from tests.wire.fakes.model import Line, ScriptedModel, Silence, in_order
from zuno.adapters.model.recorded import RecordedModels
from zuno.kernel.canonical import canonical, decode_canonical
from zuno.kernel.errors import Broken
from zuno.llm.ask import Breakers, ask
from zuno.llm.budget import Limits
from zuno.llm.port import Attempt, Ceiling, Failed
from zuno.llm.question import SourcedAnswer

DOWN = Failed("unavailable", "it could not be reached")
LINES: dict[str, list[Line]] = {
    "at once": [GOOD],
    "repaired": ["prose", GOOD],
    "out of bounds, repaired": [critique(verdict(0)), GOOD],
    "made-up figure twice": [critique(verdict(0, reason="It is 12345."), verdict(1))] * 2,
    "endless": ["x" * 200_000, GOOD],
    "nothing said": ["", GOOD],
    "half a surrogate": ["\ud800", GOOD],
    "tool call": [Failed("malformed", "it called a tool instead of answering"), GOOD],
    "timeout": [Silence()],
    "refused": [Failed("refused", "it refused to answer", raw="no")],
    "unavailable": [DOWN],
}


def bytes_of(attempt: Attempt) -> Attempt:
    """There and back through the journal's own bytes."""
    return Attempt.model_validate(decode_canonical(canonical(attempt)))


async def replayed(tmp_path: Path, attempts: list[Attempt], **changes: object) -> tuple[SourcedAnswer[Critique], Desk]:
    desk = Desk(tmp_path, breakers=Breakers(None))
    registry = RecordedModels([bytes_of(attempt) for attempt in attempts])
    spoken = await ask(question(**changes), desk.model_context(registry=registry))  # type: ignore[arg-type]
    assert not any("asked differently" in line for line in registry.list_differences())
    return spoken, desk


def timeless(attempts: tuple[Attempt, ...]) -> list[Attempt]:
    return [attempt.model_copy(update={"latency_ms": 0}) for attempt in attempts]


@pytest.mark.parametrize("name", LINES)
async def test_the_same_path_to_the_same_words(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path, timeout=0.05)
    first = ScriptedModel(in_order(LINES[name]), "first", usd_per_token=CENT)
    second = ScriptedModel(lambda request: GOOD, "second")
    then = await ask(question(), desk.model_context(first, second))
    now, again = await replayed(tmp_path, desk.recorded)
    assert (now.value, now.source, now.why) == (then.value, then.source, then.why)
    assert timeless(now.attempts) == timeless(then.attempts)
    assert again.recorded == list(now.attempts)


async def test_budget_and_breaker_are_replayed_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path, Limits(run=Ceiling(tokens=1)))
    then = await ask(question(), desk.model_context(ScriptedModel(in_order([]))))
    now, _ = await replayed(tmp_path, desk.recorded)
    assert (now.source, now.why, now.value) == (then.source, then.why, twin())

    desk = Desk(tmp_path, breakers=Breakers(1))
    model_context = desk.model_context(ScriptedModel(in_order([DOWN])), ScriptedModel(lambda request: GOOD, "second"))
    await ask(question(), model_context)
    then = await ask(question(round=1), model_context)
    now, _ = await replayed(tmp_path, desk.recorded, round=1)
    assert [attempt.outcome for attempt in now.attempts] == ["breaker", "ok"]
    assert (now.source, now.why, now.value) == (then.source, then.why, then.value)


async def test_a_role_without_a_record_had_no_model(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    spoken = await ask(question(), desk.model_context(registry=RecordedModels([], "no key for a model")))
    assert (spoken.source, spoken.why) == ("deterministic", "no key for a model")


async def test_a_prompt_that_has_changed_since_is_noticed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await ask(question(), desk.model_context(ScriptedModel(in_order([GOOD]))))
    registry = RecordedModels(desk.recorded)
    spoken = await ask(question("USDC"), desk.model_context(registry=registry))
    assert spoken.source == "model"
    assert registry.list_differences() == ("critic, round 0, attempt 1: asked differently then",)


async def test_what_was_never_asked_cannot_be_replayed(tmp_path: Path) -> None:
    """Rules that have grown stricter ask for a repair nobody recorded."""
    desk = Desk(tmp_path)
    await ask(question(), desk.model_context(ScriptedModel(in_order([GOOD]))))
    model_context = desk.model_context(registry=RecordedModels(desk.recorded))

    def stricter(value: Critique) -> str | None:
        return None if value == twin() else "never good enough"

    with pytest.raises(Broken, match="attempt 2"):
        await ask(question(judge=stricter), model_context)


async def test_two_records_of_one_attempt_are_refused(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await ask(question(), desk.model_context(ScriptedModel(in_order([GOOD]))))
    with pytest.raises(Broken, match="Two records"):
        RecordedModels(desk.recorded * 2)


async def test_a_replay_knows_what_it_has_not_heard(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await ask(question(), desk.model_context(ScriptedModel(in_order(["prose", GOOD]))))
    registry = RecordedModels(desk.recorded)
    assert len(registry.list_differences()) == 2
    await ask(question(), replace(desk.model_context(registry=registry)))
    assert registry.list_differences() == ()


async def test_an_attempt_is_journaled_in_the_houses_spelling(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await ask(question(), desk.model_context(ScriptedModel(in_order([GOOD]), usd_per_token=CENT)))
    row = json.loads(canonical(desk.recorded[0]))
    assert (row["tokensIn"], row["usd"], row["latencyMs"]) == (100, "1.5", 0)


async def test_one_models_words_are_not_put_into_anothers_mouth(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    second = ScriptedModel(in_order([GOOD]), "second")
    await ask(question(), desk.model_context(ScriptedModel(in_order([DOWN]), "first"), second))
    first, other = RecordedModels(desk.recorded).models_for("critic", 0).models
    assert (first.name, other.name) == ("first", "second")
    with pytest.raises(Broken, match=r"attempt 2.*first"):
        await first.reply(second.asked[0])
