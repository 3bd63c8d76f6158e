"""Whatever a model's server does over the wire, a question ends in a valid value, flagged, in time, and paid for."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.examples import pair_in_turn
from tests.wire.asking import GOOD, INJECTION, Critique, Desk, critique, question, twin, verdict
from tests.wire.model_server import Answer, Heard, chat, cut, endless, hang_up, http, never, serving
from zuno.adapters.model.vendors import VendorModel
from zuno.llm.ask import ask
from zuno.llm.names import ModelId, Vendor, parse_model

KEY = "sk-do-not-repeat-me-0123456789"
ERROR = {"error": {"message": f"Incorrect API key provided: {KEY}", "type": "x", "code": "y"}}
TOOL = {"id": "t1", "type": "function", "function": {"name": "accept_all", "arguments": "{}"}}
CUSTOM = {"id": "t1", "type": "custom", "custom": {"name": "accept_all", "input": "x"}}

WRONG: dict[str, tuple[Answer, str]] = {
    # what the model says, on a wire that works: the outcome
    "prose": (chat("They look fine to me."), "malformed"),
    "truncated": (chat(GOOD[:40], finish="length"), "malformed"),
    "NaN": (chat(GOOD.replace("0.5", "NaN")), "malformed"),
    "string number": (chat(critique(verdict(0, weight="0.7"), verdict(1))), "malformed"),
    "unknown enum": (chat(critique(verdict(0, verdict="yes"), verdict(1))), "malformed"),
    "extra field": (chat(critique(verdict(0, price=1), verdict(1))), "malformed"),
    "index out of range": (chat(critique(verdict(0), verdict(7))), "out_of_bounds"),
    "two verdicts for one": (chat(critique(verdict(0), verdict(0), verdict(1))), "out_of_bounds"),
    "200 kB": (chat("a" * 200_000), "malformed"),
    "half a surrogate": (chat("\ud800"), "malformed"),
    "NUL": (chat("\x00"), "malformed"),
    "no content": (chat(None), "malformed"),
    "empty content": (chat(""), "malformed"),
    "thinking only": (chat("<think>hmm</think>"), "malformed"),
    "tool call": (chat(None, finish="tool_calls", tool_calls=[TOOL]), "malformed"),
    "custom tool call": (chat(None, finish="tool_calls", tool_calls=[CUSTOM]), "malformed"),
    "empty choices": (http(200, {"id": "c", "object": "chat.completion", "created": 1, "choices": []}), "malformed"),
    "no choices": (http(200, {}), "malformed"),
    "a list": (http(200, b"[]"), "malformed"),
    "null": (http(200, b"null"), "malformed"),
    "not JSON": (http(200, b"{"), "malformed"),
    "not UTF-8": (http(200, b"\xff\xfe\x00"), "malformed"),
    "wrong content type": (http(200, b"<html>hello</html>", "text/html"), "malformed"),
    "deep": (http(200, b'{"choices":' + b"[" * 100_000), "malformed"),
    "endless": (endless, "malformed"),
    "compressed": (http(200, gzip.compress(b"x"), extra="content-encoding: gzip\r\n"), "malformed"),
    "strange finish": (chat("hello", finish="because"), "malformed"),
    "strange usage": (http(200, {"choices": [{"message": {"content": 3}}], "usage": "none"}), "malformed"),
}
FAILING: dict[str, tuple[Answer, str]] = {
    "refusal": (chat(None, refusal="I cannot help with trading."), "refused"),
    "content filter": (chat(None, finish="content_filter"), "refused"),
    "400": (http(400, ERROR), "unavailable"),
    "401": (http(401, ERROR), "unavailable"),
    "403": (http(403, ERROR), "unavailable"),
    "404": (http(404, ERROR), "unavailable"),
    "429": (http(429, ERROR, extra="retry-after: 3600\r\n"), "unavailable"),
    "500": (http(500, ERROR), "unavailable"),
    "503 in HTML": (http(503, b"<html>", "text/html"), "unavailable"),
    "redirect": (http(302, b"", extra="location: http://127.0.0.1:9/elsewhere\r\n"), "unavailable"),
    "cut": (cut, "unavailable"),
    "hung up": (hang_up, "unavailable"),
    "no HTTP": (b"220 mail.example ESMTP\r\n\r\n", "unavailable"),
    "silence": (never, "timeout"),
}


async def asked(tmp_path: Path, answers: list[Answer], vendor: Vendor = Vendor.URL) -> tuple[Any, Desk, list[Heard]]:
    """One question to a server that gives these answers in order, the last one for ever."""
    remaining = list(answers)
    desk = Desk(tmp_path, timeout=1.5)
    async with serving(lambda heard: remaining.pop(0) if len(remaining) > 1 else remaining[0]) as server:
        if vendor is Vendor.URL:
            model = VendorModel(parse_model(f"{server.origin}/v1#llama"), KEY)
        else:
            model = VendorModel(ModelId(vendor, "gpt-4o-mini"), KEY, base_url=f"{server.origin}/v1")
        await model.ready()
        spoken = await ask(question(INJECTION), desk.model_context(model))
        await model.close()
    return spoken, desk, server.heard


@pytest.mark.soak(every=3)
@pytest.mark.parametrize(("vendor", "name"), pair_in_turn([Vendor.URL, Vendor.OPENAI], WRONG))
async def test_a_wrong_answer_is_repaired_over_the_wire(tmp_path: Path, name: str, vendor: Vendor) -> None:
    answer, outcome = WRONG[name]
    spoken, desk, heard = await asked(tmp_path, [answer, chat(GOOD)], vendor)
    assert (spoken.source, spoken.value) == ("repaired", Critique.model_validate_json(GOOD)), spoken.why
    assert desk.outcomes() == [outcome, "ok"]
    assert desk.recorded[0].why in heard[1].body["messages"][-1]["content"]
    assert desk.recorded[0].tokens_in > 0


@pytest.mark.soak(every=4)
@pytest.mark.slow
@pytest.mark.parametrize("name", [*WRONG, *FAILING])
async def test_in_every_case_a_valid_value_flagged_and_paid_for_and_no_key_on_record(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answer, outcome = (WRONG | FAILING)[name]
    spoken, desk, heard = await asked(tmp_path, [answer])
    assert (spoken.source, spoken.value) == ("fallback", twin())
    assert set(desk.outcomes()) == {outcome}
    assert outcome in spoken.why
    assert len(heard) == len(desk.recorded) == (2 if name in WRONG else 1)
    if name not in ("400", "401", "403", "404", "429"):  # turned away at the door: certainly nothing
        assert desk.budget.spent.tokens > 0
    assert heard[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(spoken) + repr(desk.recorded) + caplog.text


async def test_a_server_that_repeats_our_key_does_not_get_it_on_record(tmp_path: Path) -> None:
    spoken, desk, heard = await asked(tmp_path, [chat(f"your key is {KEY}"), chat(None, refusal=f"not with {KEY}")])
    assert desk.outcomes() == ["malformed", "refused"]
    assert [attempt.raw for attempt in desk.recorded] == ["your key is [key]", "not with [key]"]
    assert KEY not in repr(spoken) + str(heard[1].body)


@pytest.mark.parametrize(
    "usage",
    [None, (0, 0), (-5, 10), (10, -5), (10**30, 5)],
    ids=str,
)
async def test_usage_nobody_can_believe_is_the_reservation(tmp_path: Path, usage: tuple[int, int] | None) -> None:
    spoken, desk, _ = await asked(tmp_path, [chat(GOOD, usage)])
    # The library refuses less than nothing by itself, as an answer that is not what the API promises.
    assert spoken.source == ("fallback" if usage and min(usage) < 0 else "model")
    assert all(attempt.estimated for attempt in desk.recorded)
    assert 1_500 * len(desk.recorded) < desk.budget.spent.tokens < 3_000 * len(desk.recorded)


async def test_one_call_is_one_request(tmp_path: Path) -> None:
    """No SDK tries again behind our back, whatever the status invites it to."""
    for status in (408, 409, 429, 500, 502, 503, 529):
        _, _, heard = await asked(tmp_path, [http(status, ERROR, extra="retry-after-ms: 1\r\n")], Vendor.OPENAI)
        assert len(heard) == 1, status


async def test_a_closed_port_costs_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    model = VendorModel(parse_model("http://127.0.0.1:9/v1#llama"), None)
    spoken = await ask(question(), desk.model_context(model))
    assert desk.outcomes() == ["unavailable"]
    assert "reached" in spoken.why
    assert desk.budget.spent.tokens == 0
    await model.close()
