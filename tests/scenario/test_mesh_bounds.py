"""The bounds of a neighbour against the largest honest debate there is: whoever means well never meets one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.wire.debating import (
    Overheard,
    Table,
    arbiter_says,
    critic_says,
    judgment,
    observed,
    scout_says,
    shape,
    strategist_says,
    surveyed,
)
from zuno.kernel.canonical import canonical
from zuno.llm.port import ModelRequest
from zuno.lp.agents.pool_choice import MOST_POOLS
from zuno.lp.mesh.delivery import DeliveryLimits
from zuno.lp.mesh.envelope import LONGEST_TEXT, to_bytes
from zuno.lp.model.debate import Kind, Role
from zuno.lp.rules.stress import HISTORY_HOURS

RULES = DeliveryLimits()
LONG = ("This is an opinion of the greatest length that any agent of this desk may have about anything at all. " * 20)[
    :279
]
SEVERITY = ("accept", "revise", "veto")


def strategist(request: ModelRequest) -> str:
    """As many shapes as there may be, each with as many words as there may be, and others in every round."""
    widths = range(35 + 5 * request.round, 320 + 5 * request.round, 60)
    return strategist_says(*(shape(width, 0, LONG) for width in widths))


def critic(request: ModelRequest) -> str:
    judgments = []
    for line in request.turns[0].text.split("rules' verdicts:\n")[1].split("\n\n")[0].splitlines()[1:]:
        index, kind = line.split()[:2]
        rules = line.split(" → ")[1].split(":")[0]
        own = rules if kind.rstrip(":") in ("hold", "close") else max("revise", rules, key=SEVERITY.index)
        judgments.append({**judgment(int(index[1:]), own, LONG), "suggestion": LONG})
    return critic_says(*judgments)


def arbiter(request: ModelRequest) -> str:
    return arbiter_says(0, "approve_with_caution", "In round 0 " + (LONG * 8)[:1_980])


@pytest.mark.soak
async def test_the_largest_honest_debate_is_far_below_every_bound(tmp_path: Path) -> None:
    context = await observed(tmp_path)
    scripts: Any = {"scout": lambda asked: scout_says(LONG), "strategist": strategist, "critic": critic}
    table = Table(tmp_path, context, {**scripts, "arbiter": arbiter}, timeout=30.0)
    ready = await table.debate(max_rounds=10)
    assert [len(one.candidates) for one in ready.debate.rounds] == [7] * 11
    assert {one.outcome for one in table.attempts} == {"ok"}
    assert isinstance(table.transport, Overheard)
    sent = [(one, to_bytes(one)) for one in table.transport.sent]
    letters = [(one, data) for one, data in sent if one.kind is not Kind.AGENT_THOUGHT]
    said, written = Counter[tuple[Role, Role]](), Counter[tuple[Role, Role]]()
    sender_of = {one.id: one.from_ for one, _ in letters}
    for one, data in letters:
        said[one.from_, one.to] += 1
        written[one.from_, one.to] += len(data)
        if one.cause is not None:
            written[sender_of[one.cause], one.from_] += len(data)  # what is answered is on the account of who asked
    assert said[Role.STRATEGIST, Role.CRITIC] == 11
    assert max(said.values()) <= RULES.letters_a_request / 2
    assert max(len(data) for _, data in letters) <= RULES.largest_letter / 3
    assert max(len(data) for one, data in sent if one.kind is Kind.AGENT_THOUGHT) <= RULES.largest_note / 3
    assert max(written.values()) + len(canonical(context)) <= RULES.paper_bytes / 8
    assert max(len(text) for _, data in sent for text in texts(json.loads(data))) <= LONGEST_TEXT


async def test_the_largest_context_is_far_below_its_bound(tmp_path: Path) -> None:
    """A pool's history at its longest, five pools of it."""
    (scene, *_) = (await surveyed(tmp_path, ("ETH", "1"), ("USDC", "3000"))).scenes
    longest = len(canonical(scene.model_copy(update={"returns_nano": (-123_456_789,) * HISTORY_HOURS})))
    assert MOST_POOLS * longest <= RULES.largest_context / 10


def texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from texts(one)
        case dict():
            for one in value.values():
                yield from texts(one)
