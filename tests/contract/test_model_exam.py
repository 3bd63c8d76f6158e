"""The exam of `Model`: the script, the record and every vendor's own wire over a local server sit it unchanged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from decimal import Decimal
from typing import Any, Literal, Protocol

import pytest

from tests.wire.fakes.model import Line, ScriptedModel, Silence
from tests.wire.model_server import Answer, Heard, anthropic, chat, gemini, http, never, serving
from zuno.adapters.model.recorded import RecordedModels
from zuno.adapters.model.vendors import VendorModel
from zuno.llm.names import ModelId, Vendor, parse_model
from zuno.llm.port import Answered, Attempt, Failed, Model, ModelRequest, Turn

KEY = "sk-exam-0123456789"
SCHEMA = '{"additionalProperties":false,"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}'
ROLES = [f"role{number}" for number in range(12)]
Mood = Literal["talks", "is down", "refuses", "is silent"]


def request(role: str = ROLES[0], **changes: Any) -> ModelRequest:
    told: dict[str, Any] = {
        "role": role,
        "round": 0,
        "attempt": 1,
        "system": "You are brief.",
        "turns": (Turn("user", f"Speak for {role}."),),
        "shape": "Word",
        "schema": SCHEMA,
        "max_output_tokens": 100,
        "timeout": 5.0,
        "fingerprint": "f" * 64,
    }
    return ModelRequest(**told | changes)


def words_for(role: str) -> str:
    return json.dumps({"a": f"{role}: 3000 – “ünïcode” ✓\n\\ and a \u0001"}, ensure_ascii=False)


class Candidate(Protocol):
    """A model in a world of one mood: it talks (each role its own words), is down, refuses, or never answers."""

    live: bool
    """Whether it has a mood of its own, or only tells what happened."""

    def world(self, mood: Mood) -> AbstractAsyncContextManager[Model]: ...


class ScriptedCandidate:
    live = True

    @asynccontextmanager
    async def world(self, mood: Mood) -> AsyncIterator[Model]:
        def script(asked: ModelRequest) -> Line:
            match mood:
                case "talks":
                    return words_for(asked.role)
                case "is down":
                    return Failed("unavailable", "it could not be reached")
                case "refuses":
                    return Failed("refused", "it refused to answer")
                case "is silent":
                    return Silence()

        yield ScriptedModel(script, usd_per_token=Decimal("0.000001"))


class RecordedCandidate:
    live = False

    @asynccontextmanager
    async def world(self, mood: Mood) -> AsyncIterator[Model]:
        registry = RecordedModels(self._attempt(role, mood) for role in ROLES)
        yield registry.models_for(ROLES[0], 0).models[0]
        assert all("asked differently" not in line for line in registry.list_differences())

    def _attempt(self, role: str, mood: Mood) -> Attempt:
        outcomes = {"talks": "ok", "is down": "unavailable", "refuses": "refused", "is silent": "timeout"}
        return Attempt.model_validate(
            {
                "role": role,
                "round": 0,
                "attempt": 1,
                "model": "gpt-4o-mini",
                "request": "f" * 64,
                "outcome": outcomes[mood],
                "why": "" if mood == "talks" else mood,
                "raw": words_for(role) if mood == "talks" else "",
                "cut": False,
                "tokens_in": 100,
                "tokens_out": 50,
                "usd": "0.00015",
                "estimated": False,
                "latency_ms": 3,
            }
        )


class WireCandidate:
    live = True

    def __init__(self, model: str, says: Callable[[str], bytes], refusal: bytes, base: str) -> None:
        self._model = model
        self._says = says
        self._refusal = refusal
        self._base = base

    @asynccontextmanager
    async def world(self, mood: Mood) -> AsyncIterator[Model]:
        def answer(heard: Heard) -> Answer:
            match mood:
                case "talks":
                    return self._says(
                        words_for(next(role for role in ROLES if f"for {role}." in json.dumps(heard.body)))
                    )
                case "is down":
                    return http(503, {"error": {"message": "down"}})
                case "refuses":
                    return self._refusal
                case "is silent":
                    return never

        async with serving(answer) as server:
            base = server.origin + self._base
            model_id = parse_model(self._model.replace("BASE", base))
            model = VendorModel(model_id, KEY, base_url=None if model_id.vendor is Vendor.URL else base)
            await model.ready()
            yield model
            await model.close()


CANDIDATES: dict[str, Candidate] = {
    "scripted": ScriptedCandidate(),
    "recorded": RecordedCandidate(),
    "openai": WireCandidate("gpt-4o-mini", chat, chat(None, refusal="no"), "/v1"),
    "anthropic": WireCandidate("claude-sonnet-4-6", anthropic, anthropic("", stop="refusal"), ""),
    "google": WireCandidate("gemini-3-flash-preview", gemini, gemini("", finish="SAFETY"), ""),
    "url": WireCandidate("BASE#llama", chat, chat(None, finish="content_filter"), "/v1"),
}


@pytest.fixture(params=CANDIDATES.values(), ids=list(CANDIDATES))
def candidate(request: pytest.FixtureRequest) -> Candidate:
    return request.param


async def test_gives_the_text_to_the_letter(candidate: Candidate) -> None:
    async with candidate.world("talks") as model:
        reply = await model.reply(request())
    assert isinstance(reply, Answered)
    assert reply.text == words_for(ROLES[0])


async def test_says_what_the_call_took(candidate: Candidate) -> None:
    async with candidate.world("talks") as model:
        reply = await model.reply(request())
    assert reply.usage is not None
    assert (reply.usage.tokens_in, reply.usage.tokens_out, reply.usage.estimated) == (100, 50, False)
    assert reply.usage.usd is not None
    assert 0 <= reply.usage.usd < 1


async def test_a_model_that_is_down_is_a_failure_and_no_exception(candidate: Candidate) -> None:
    async with candidate.world("is down") as model:
        reply = await model.reply(request())
    assert isinstance(reply, Failed)
    assert reply.kind == "unavailable"
    assert reply.why


async def test_a_refusal_is_a_refusal(candidate: Candidate) -> None:
    async with candidate.world("refuses") as model:
        reply = await model.reply(request())
    assert isinstance(reply, Failed)
    assert reply.kind == "refused"
    assert reply.why


async def test_calls_side_by_side_do_not_mix(candidate: Candidate) -> None:
    async with candidate.world("talks") as model:
        replies = await asyncio.gather(*(model.reply(request(role)) for role in ROLES))
    assert [reply.text for reply in replies if isinstance(reply, Answered)] == [words_for(role) for role in ROLES]


async def test_a_cancelled_call_ends_at_once(candidate: Candidate) -> None:
    async with candidate.world("is silent") as model:
        call = asyncio.create_task(model.reply(request()))
        await asyncio.sleep(0.1)
        if not candidate.live:
            reply = await call
            assert isinstance(reply, Failed)
            assert reply.kind == "timeout"
            return
        assert not call.done()
        call.cancel()
        done, _ = await asyncio.wait({call}, timeout=1)
        assert done
        assert call.cancelled()


async def test_a_model_survives_a_cancelled_call(candidate: Candidate) -> None:
    async with candidate.world("talks") as model:
        call = asyncio.create_task(model.reply(request()))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait({call})
        reply = await model.reply(request(ROLES[1]))
    assert isinstance(reply, Answered)
    assert reply.text == words_for(ROLES[1])


async def test_its_name_is_fit_to_be_shown(candidate: Candidate) -> None:
    async with candidate.world("talks") as model:
        assert model.name
        assert model.name == model.name.strip()
        assert KEY not in model.name + repr(model)
        if candidate.live and model.name != "scripted":
            assert parse_model(model.name)


async def test_a_price_is_a_number_of_dollars_that_never_falls(candidate: Candidate) -> None:
    async with candidate.world("talks") as model:
        prices = [await model.price(tokens, tokens) for tokens in (0, 1_000, 100_000)]
    assert all(isinstance(price, Decimal) and price >= 0 for price in prices)
    assert prices == sorted(prices)  # type: ignore[type-var]


async def test_opening_and_closing_twice_is_harmless(candidate: Candidate) -> None:
    async with candidate.world("talks") as model:
        await model.ready()
        await model.ready()
        await model.close()
        await model.close()


def test_every_vendor_sits_the_exam() -> None:
    wires = {candidate._model for candidate in CANDIDATES.values() if isinstance(candidate, WireCandidate)}
    assert {parse_model(name.replace("BASE", "http://h")).vendor for name in wires} == set(Vendor)
    assert ModelId(Vendor.OPENAI, "gpt-4o-mini") == parse_model("gpt-4o-mini")
