"""A model that keeps failing is left alone, each for itself, and let back in by one probe."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.wire.asking import GOOD, Desk, question
from tests.wire.fakes.model import Line, ScriptedModel, Silence
from zuno.kernel.units import Seconds
from zuno.llm.ask import Breakers, ask
from zuno.llm.port import Ceiling, Failed, ModelRequest

DOWN = Failed("unavailable", "it could not be reached")


class Moody:
    """Says whatever it is set to."""

    def __init__(self, line: Line) -> None:
        self.line = line

    def __call__(self, request: ModelRequest) -> Line:
        return self.line


def desk_with(tmp_path: Path, threshold: int | None = 3) -> Desk:
    return Desk(tmp_path, breakers=Breakers(threshold, Seconds(60)))


async def fail(desk: Desk, model: ScriptedModel, times: int) -> None:
    for at in range(times):
        await ask(question(round=at), desk.model_context(model))


async def test_after_three_failures_in_a_row_nobody_asks(tmp_path: Path) -> None:
    desk, model = desk_with(tmp_path), ScriptedModel(Moody(DOWN))
    await fail(desk, model, 5)
    assert desk.outcomes() == ["unavailable"] * 3 + ["breaker"] * 2
    assert len(model.asked) == 3
    assert "3 times" in desk.recorded[-1].why
    assert (desk.recorded[-1].tokens_in, desk.recorded[-1].usd) == (0, 0)


def test_what_is_said_of_it_knows_no_clock_and_no_count() -> None:
    """It is on record with what was decided, which has one hash however fast the failures came."""
    said = set()
    for failures, now in ((3, 10), (5, 59)):
        breakers = Breakers()
        for _ in range(failures):
            breakers.record_failure("gone", Seconds(0))
        said.add(breakers.admit("gone", Seconds(now)))
    assert len(said) == 1
    assert all("3 times" in (why or "") for why in said)


async def test_a_success_in_between_starts_the_count_again(tmp_path: Path) -> None:
    desk, mood = desk_with(tmp_path), Moody(DOWN)
    model = ScriptedModel(mood)
    await fail(desk, model, 2)
    mood.line = GOOD
    await fail(desk, model, 1)
    mood.line = DOWN
    await fail(desk, model, 3)
    assert "breaker" not in desk.outcomes()


async def test_one_models_failures_are_not_anothers(tmp_path: Path) -> None:
    desk = desk_with(tmp_path)
    down, up = ScriptedModel(Moody(DOWN), "down"), ScriptedModel(Moody(GOOD), "up")
    await fail(desk, down, 3)
    spoken = await ask(question(), desk.model_context(down, up))
    assert (spoken.source, spoken.model) == ("model", "up")
    assert desk.outcomes()[-2:] == ["breaker", "ok"]


async def test_after_the_pause_one_probe_decides(tmp_path: Path) -> None:
    desk, mood = desk_with(tmp_path), Moody(DOWN)
    model = ScriptedModel(mood)
    await fail(desk, model, 3)
    desk.clock.advance(Seconds(59))
    await fail(desk, model, 1)
    assert desk.outcomes()[-1] == "breaker"
    desk.clock.advance(Seconds(1))
    await fail(desk, model, 2)
    assert desk.outcomes()[-2:] == ["unavailable", "breaker"]
    desk.clock.advance(Seconds(60))
    mood.line = GOOD
    await fail(desk, model, 2)
    assert desk.outcomes()[-2:] == ["ok", "ok"]


async def test_only_one_call_probes(tmp_path: Path) -> None:
    desk, mood = desk_with(tmp_path), Moody(DOWN)
    model = ScriptedModel(mood, seconds=0.02)
    await fail(desk, model, 3)
    desk.clock.advance(Seconds(60))
    mood.line = GOOD
    asked = len(model.asked)
    await asyncio.gather(*(ask(question(round=at), desk.model_context(model)) for at in range(4)))
    assert len(model.asked) == asked + 1
    assert sorted(desk.outcomes()[-4:]) == ["breaker", "breaker", "breaker", "ok"]


@pytest.mark.parametrize("line", ["prose", Failed("refused", "it refused")], ids=["prose", "refusal"])
async def test_a_model_that_answers_is_there_whatever_it_says(tmp_path: Path, line: Line) -> None:
    desk = desk_with(tmp_path)
    await fail(desk, ScriptedModel(Moody(line)), 5)
    assert "breaker" not in desk.outcomes()


async def test_timeouts_and_broken_answers_count(tmp_path: Path) -> None:
    desk = desk_with(tmp_path)
    desk.timeout = 0.01
    await fail(desk, ScriptedModel(Moody(Silence())), 4)
    assert desk.outcomes() == ["timeout"] * 3 + ["breaker"]
    await fail(desk, ScriptedModel(Moody(Failed("malformed", "no JSON")), "babbling"), 3)
    assert desk.outcomes()[4:] == ["malformed", "malformed", "malformed", "breaker", "breaker"]


async def test_a_probe_that_was_not_made_is_free_again(tmp_path: Path) -> None:
    """Cancelled, or refused by the budget: neither leaves the circuit waiting for ever."""
    desk, mood = desk_with(tmp_path), Moody(DOWN)
    model = ScriptedModel(mood)
    await fail(desk, model, 3)
    desk.clock.advance(Seconds(60))
    mood.line = Silence()
    asking = asyncio.create_task(ask(question(), desk.model_context(model)))
    await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    unlimited = desk.budget.limits
    desk.budget.limits = type(unlimited)(run=Ceiling(tokens=1))
    await fail(desk, model, 1)
    assert desk.outcomes()[-1] == "budget"
    desk.budget.limits = unlimited
    mood.line = GOOD
    await fail(desk, model, 1)
    assert desk.outcomes()[-1] == "ok"


async def test_without_a_threshold_it_never_opens(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, None)
    await fail(desk, ScriptedModel(Moody(DOWN)), 10)
    assert desk.outcomes() == ["unavailable"] * 10
    with pytest.raises(ValueError, match="least"):
        Breakers(0)
