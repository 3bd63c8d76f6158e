"""What each agent is told fits a small model, however long the argument and however wordy the Critic."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.examples import mark_all_but
from tests.wire.debating import ROLES, Table, critic_says, judgment, shape, strategist_says
from tests.wire.prompt_size import SMALL_MODEL_TOKENS
from zuno.llm.port import Failed, ModelRequest
from zuno.llm.prompts import estimate_tokens
from zuno.lp.agents.prompt_facts import context_lines, facts_of, text_faults
from zuno.lp.model.debate import Context

Seat = Callable[..., Table]
WORDY = "This range looks a little too brave to me and I would rather see it somewhat wider than it is now. " * 3


def five(request: ModelRequest) -> str:
    return strategist_says(*(shape(90 + 7 * at + 40 * request.round, 20 * request.round) for at in range(5)))


def wordy(request: ModelRequest) -> str:
    ballot = request.turns[0].text.split("rules' verdicts:\n")[1].split("\n\n")[0].splitlines()[1:]
    rules = [line.split(" → ")[1].split(":")[0] for line in ballot]
    return critic_says(
        *(
            judgment(at, said if at < 2 else max("revise", said, key=["accept", "revise", "veto"].index), WORDY[:280])
            for at, said in enumerate(rules)
        )
    )


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("world", mark_all_but(2, ["calm", "rough", "wild", "drifted"], pytest.mark.soak))
async def test_every_prompt_of_a_long_argument_fits(seat: Seat, worlds: dict[str, Context], world: str) -> None:
    refuses = Failed("refused", "it would not")
    table = seat(
        worlds[world], scout=lambda request: refuses, strategist=five, critic=wordy, arbiter=lambda request: refuses
    )
    ready = await table.debate(max_rounds=3)
    assert len(ready.debate.rounds) == 4
    for role in ROLES:
        assert table.models[role].asked
        for request in table.models[role].asked:
            told = estimate_tokens(request.system) + estimate_tokens(request.turns[0].text)
            assert told <= SMALL_MODEL_TOKENS, (role, request.round, told)
    for round_ in ready.debate.rounds:
        if len(round_.candidates) == 7:
            break
    else:
        raise AssertionError("meant to show the fullest ballot")


async def test_an_agent_may_cite_every_id_it_was_told(seat: Seat, worlds: dict[str, Context]) -> None:
    for context in worlds.values():
        facts = facts_of(context)
        told = re.findall(r"{[a-z0-9_.]+}", context_lines(context))
        assert len(told) > 8
        assert text_faults(" and ".join(told), facts, limits=(1, 600)) == []
