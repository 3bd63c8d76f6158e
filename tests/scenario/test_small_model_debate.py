"""A real, very small model in each of the four chairs, told what the desk really tells: the debate ends all the same.

Judgement is not asked of it. What is: the prompt fits, the wire holds, time is bounded, the record is honest, and no
figure of the plan is the model's.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.paths import CACHE
from tests.wire.debating import ROLES, Table, observed, shaken
from tests.wire.prompt_size import SMALL_MODEL_TOKENS
from tests.wire.small_model import Missing, fetch, running
from zuno.adapters.model.vendors import VendorModel
from zuno.llm.names import parse_model
from zuno.lp.agents.pool_inputs import build_all_pool_inputs, build_ballot, extract_moves
from zuno.lp.model.debate import Context
from zuno.lp.rules.ballot import judge_all

pytestmark = pytest.mark.soak
MODELS = CACHE / "models"
SECONDS_PER_CALL = 240.0  # far more than it takes: a busy machine is no broken wire
MOST_TOKENS = {"scout": 1_500, "strategist": 1_500, "critic": 1_500, "arbiter": 800}


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    try:
        with running(fetch(MODELS)) as url:
            yield url
    except Missing as reason:
        pytest.skip(f"no small model here: {reason}")


@pytest.fixture(scope="module")
async def rough(tmp_path_factory: pytest.TempPathFactory) -> Context:
    """A world in which the first proposal is not accepted, so that all four speak."""
    return shaken(await observed(tmp_path_factory.mktemp("rough")), Fraction(6, 5))


@pytest.mark.parametrize("role", ROLES)
async def test_a_debate_with_a_small_model_in_one_chair(
    tmp_path: Path, base_url: str, rough: Context, role: str
) -> None:
    model = VendorModel(parse_model(f"{base_url}#smollm2"), None)
    table = Table(tmp_path, rough, timeout=SECONDS_PER_CALL)
    registry: dict[str, Any] = table.models
    registry[role] = model
    await model.ready()
    ready = await table.debate(max_rounds=0, wait=2 * SECONDS_PER_CALL + 60)
    await model.close()
    said = [(one.outcome, one.tokens_in, one.tokens_out, one.why, one.raw[:300]) for one in table.attempts]
    (voice,) = [one for one in ready.debate.spoke if one.role == role]
    outcomes = [one.outcome for one in table.attempts]
    assert {one.role for one in table.attempts} == {role}
    assert set(outcomes) <= {"ok", "malformed", "out_of_bounds", "unsupported_figure"}, said  # it was there, and spoke
    assert voice.speaker == (("model", "repaired")[len(outcomes) - 1] if outcomes[-1] == "ok" else "fallback"), said
    for one in table.attempts:
        assert not one.estimated, "the server's own count is wanted"
        assert one.tokens_in > 100, "less than the facts it was told"
        assert 0 < one.tokens_out <= MOST_TOKENS[role]
        assert one.usd == 0
        # The shape reached the server, which holds the model to it; only an answer cut short can miss it.
        assert one.outcome != "malformed" or one.tokens_out == MOST_TOKENS[role], said
    assert table.attempts[0].tokens_in <= SMALL_MODEL_TOKENS
    context = rough.model_copy(update={"max_rounds": 0})
    for round_ in ready.debate.rounds:
        assert (
            build_ballot(context, build_all_pool_inputs(context), extract_moves(round_.candidates)) == round_.candidates
        )
        assert judge_all(round_.candidates, context.profile) == round_.mechanical
    assert (await table.journal.verify()).ok
