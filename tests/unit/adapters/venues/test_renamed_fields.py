"""A vendor may rename a field any day: what we read of an answer and no longer find is `Malformed`, never a default.

Every field of every answer is renamed in turn (of rows of bare values: made null). Exactly those that are read must be
missed; the others must not matter.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire.vendors.questions import QUESTIONS, Question, asking
from tests.wire.vendors.serving import Place, fields, without
from zuno.kernel.errors import Malformed


async def outcome(question: Question, feed: Any) -> Any:
    try:
        return await question.ask(feed)
    except Malformed:
        return Malformed


@pytest.mark.soak(every=3)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
async def test_a_field_that_is_read_is_missed_when_it_is_renamed(question: Question) -> None:
    documents: dict[str, Any] = {}

    def remember(path: str, document: Any) -> Any:
        return documents.setdefault(path, document)

    missed: dict[str, set[Place]] = {}
    async with asking(question) as (here, feed):
        here.change = remember
        usual = await question.ask(feed)
        assert usual
        for path, document in documents.items():
            missed[path] = set()
            for name in fields(document):
                here.change = lambda at, said, path=path, name=name: without(said, name) if at == path else said  # type: ignore[misc]
                found = await outcome(question, feed)
                if found is Malformed:
                    missed[path].add(name)
                else:
                    assert found == usual, f"{path} without {name} is another answer"
    assert missed == question.reads
