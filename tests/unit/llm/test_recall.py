"""What is on record of a run is not asked for again: the reply is read anew, and nothing is written or spent."""

from __future__ import annotations

from dataclasses import replace

from tests.wire.asking import GOOD, Desk, question, twin
from tests.wire.fakes.model import ScriptedModel, in_order
from zuno.llm.ask import ModelContext, ask
from zuno.llm.port import Attempt, Failed, ModelRequest


def remembering(model_context: ModelContext, attempts: list[Attempt]) -> ModelContext:
    known = {(one.role, one.round, one.attempt, one.request): one for one in attempts}

    def recall(request: ModelRequest) -> Attempt | None:
        return known.get((request.role, request.round, request.attempt, request.fingerprint))

    return replace(model_context, recall=recall)


async def test_a_reply_on_record_is_taken_as_it_was(desk: Desk) -> None:
    first = ScriptedModel(in_order([GOOD]))
    said = await ask(question(), desk.model_context(first))
    desk_again = remembering(desk.model_context(silent := ScriptedModel(in_order([]))), list(said.attempts))
    before, spent = len(desk.recorded), desk.budget.spent
    again = await ask(question(), desk_again)
    assert again == said
    assert silent.asked == []
    assert (len(desk.recorded), desk.budget.spent) == (before, spent), "it is on record and paid already"


async def test_a_wrong_reply_on_record_is_repaired_and_the_repair_alone_is_asked_for(desk: Desk) -> None:
    said = await ask(question(), desk.model_context(ScriptedModel(in_order(["prose", GOOD]))))
    assert said.source == "repaired"
    model = ScriptedModel(in_order([GOOD]))
    again = await ask(question(), remembering(desk.model_context(model), [said.attempts[0]]))
    assert (again.value, again.source) == (said.value, "repaired")
    assert [request.attempt for request in model.asked] == [2]


async def test_a_failure_on_record_is_not_tried_again(desk: Desk) -> None:
    said = await ask(question(), desk.model_context(ScriptedModel(in_order([Failed("timeout", "no answer")]))))
    model = ScriptedModel(in_order([]))
    again = await ask(question(), remembering(desk.model_context(model), list(said.attempts)))
    assert (again.value, again.source, again.why) == (twin(), "fallback", said.why)
    assert model.asked == []


async def test_another_question_or_another_model_is_asked(desk: Desk) -> None:
    said = await ask(question(), desk.model_context(ScriptedModel(in_order([GOOD]))))
    for model, asked in (
        (ScriptedModel(in_order([GOOD]), "another"), question()),
        (ScriptedModel(in_order([GOOD])), replace(question(), max_output_tokens=77)),
    ):
        await ask(asked, remembering(desk.model_context(model), list(said.attempts)))
        assert len(model.asked) == 1
