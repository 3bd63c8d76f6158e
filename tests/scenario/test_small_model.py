"""One path against a real model: each shape an agent returns, over a real wire, from a model too small to be wise.

What is asserted is the wire and the honesty, not the judgement: the schema reached the model, tokens were counted,
time was bounded, and the record says truly who spoke.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

# Test folders are no packages; the code these tests share is found from here.
sys.path.append(str(Path(__file__).parents[1] / "wire"))

from asking import Desk
from small_model import Missing, fetch, running

from zuno.adapters.model.vendors import VendorModel
from zuno.agents.ask import ask
from zuno.agents.opinion import Opinion
from zuno.agents.prompts import SMALL_MODEL_TOKENS, Untrusted
from zuno.agents.question import Question
from zuno.agents.tokens import PER_TURN
from zuno.domain.models import parse_model

MODELS = Path(__file__).resolve().parents[2] / ".cache" / "models"
SECONDS_PER_CALL = 60.0

Index = Annotated[int, Field(ge=0, le=2)]
Reason = Annotated[str, Field(min_length=10, max_length=40)]


class Summary(Opinion):
    summary: Annotated[str, Field(min_length=20, max_length=80)]


class Width(Opinion):
    width_percent: Annotated[int, Field(ge=30, le=350)]
    center_offset_ticks: Annotated[int, Field(ge=-2400, le=2400)]
    rationale: Reason


class Widths(Opinion):
    candidates: Annotated[list[Width], Field(min_length=2, max_length=2)]


class Judged(Opinion):
    index: Index
    verdict: Literal["accept", "revise", "veto"]
    reason: Reason


class Judgement(Opinion):
    verdicts: Annotated[list[Judged], Field(min_length=2, max_length=2)]


class Choice(Opinion):
    chosen_index: Index
    verdict: Literal["approve", "approve_with_caution", "reject"]
    reasoning: Reason


TEXT = "The rules speak here."
SHAPES: dict[str, tuple[Opinion, str]] = {
    "scout": (Summary(summary=TEXT), "Sum up the pool in one sentence."),
    "strategist": (
        Widths(candidates=[Width(width_percent=100, center_offset_ticks=0, rationale=TEXT)] * 2),
        "Propose two widths as whole percentages of the current width.",
    ),
    "critic": (
        Judgement(verdicts=[Judged(index=at, verdict="accept", reason=TEXT) for at in (0, 1)]),
        "Judge candidates 0 and 1.",
    ),
    "arbiter": (Choice(chosen_index=0, verdict="approve", reasoning=TEXT), "Choose candidate 0, 1 or 2."),
}
PROMPT = "You are the {{role}} of a liquidity desk.\n---\nPool of {{token}}: price 3000, 24 h in range. {{task}}"


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    try:
        with running(fetch(MODELS)) as url:
            yield url
    except Missing as reason:
        pytest.skip(f"no small model here: {reason}")


def question(role: str) -> Question[Any]:
    twin, task = SHAPES[role]
    return Question(
        role=role,
        round=0,
        prompt="agent",
        variables={"role": role, "token": Untrusted("WETH/USDC"), "task": task},
        output=type(twin),
        fallback=lambda: twin,
        max_output_tokens=200,
    )


@pytest.mark.parametrize("role", SHAPES)
async def test_every_shape_over_a_real_wire(tmp_path: Path, base_url: str, role: str) -> None:
    desk = Desk(tmp_path, timeout=SECONDS_PER_CALL)
    model = VendorModel(parse_model(f"{base_url}#smollm2"), None)
    minds = desk.minds(model)
    (tmp_path / "prompts" / "agent.md").write_text(PROMPT)
    asked = question(role)
    prompt = minds.prompts.render("agent", asked.variables, SMALL_MODEL_TOKENS)
    await model.ready()
    started = time.monotonic()
    spoken = await ask(asked, minds)
    await model.close()
    assert time.monotonic() - started < 2 * SECONDS_PER_CALL + 30
    assert isinstance(spoken.value, asked.output)
    outcomes = desk.outcomes()
    if spoken.source == "fallback":
        assert spoken.value == SHAPES[role][0]
        assert all(outcome in spoken.why for outcome in outcomes)
    else:
        assert outcomes[-1] == "ok"
        assert asked.output.model_validate_json(desk.recorded[-1].raw) == spoken.value
    assert "unavailable" not in outcomes
    assert "refused" not in outcomes
    for attempt in desk.recorded:
        if attempt.outcome != "timeout":  # a slow machine is no broken wire
            assert not attempt.estimated
            assert 20 < attempt.tokens_in < SMALL_MODEL_TOKENS
            assert 0 < attempt.tokens_out <= 200
            assert attempt.usd == 0
    if outcomes[0] != "timeout":
        assert desk.recorded[0].tokens_in <= prompt.tokens + 3 * PER_TURN  # its tokenizer against our estimate
