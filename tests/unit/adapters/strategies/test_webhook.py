"""Signals by webhook: what is taken, once, and what is refused with which code; through a real socket as well."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.wire.homes import open_journal
from zuno.adapters.strategies.webhook import MOST_BODY, MOST_CALLERS, SignalListener, SignalRefused, WebhookStrategy
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author, Journal
from zuno.kernel.clock import iso
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.trading.model.own_strategies import OWN_SIGNAL, Signal

NOW = Millis(1_790_000_000_000)
"""The hour of `open_journal`, 13:33:20 UTC."""
SECRET = "0123456789abcdef-of-mine"
TARGETS = {"BTCUSDT": 0.25, "ETHUSDT": -0.1}


def reader(journal: ChainedJournal) -> Callable[[], Awaitable[Journal]]:
    async def read() -> Journal:
        return journal

    return read


def listen(journal: ChainedJournal, *, now: Millis = NOW, **more: Any) -> SignalListener:
    return SignalListener({"mine": SECRET, "weak": "short"}, reader(journal), lambda: now, **more)


def sign(body: bytes, sent: str = str(NOW // 1_000), secret: str = SECRET) -> dict[str, str]:
    due = hmac.new(secret.encode(), f"{sent}.".encode() + body, sha256).hexdigest()
    return {"x-zuno-time": sent, "x-zuno-signature": due}


def write(**fields: Any) -> bytes:
    return json.dumps({"targets": TARGETS, **fields}).encode()


def write_open(**fields: Any) -> bytes:
    """As a charting service sends it, which has no headers of its own."""
    return write(**({"secret": SECRET, "id": "bar-1", "time": iso(NOW)} | fields))


async def refusal(listener: SignalListener, headers: dict[str, str], body: bytes, name: str = "mine") -> str:
    try:
        await listener.take(name, "192.0.2.7", headers, body)
    except SignalRefused as error:
        return str(error)
    return "taken"


async def test_a_signed_signal_is_taken_once_even_after_a_restart(tmp_path: Path) -> None:
    journal, body = open_journal(tmp_path), write()
    assert await refusal(listen(journal), sign(body), body) == "taken"
    assert await refusal(listen(journal), sign(body), body) == "replayed"
    await journal.close()
    journal = open_journal(tmp_path)
    assert await refusal(listen(journal), sign(body), body) == "replayed"
    assert await refusal(listen(journal), sign(body, str(NOW // 1_000 + 1)), body) == "taken"
    await journal.close()


async def test_a_secret_of_two_strategies_speaks_for_neither(tmp_path: Path) -> None:
    journal, body = open_journal(tmp_path), write()
    shared = replace(listen(journal), secrets={"mine": SECRET, "other": SECRET})
    for name in ("mine", "other"):
        assert await refusal(shared, sign(body), body, name) == "unsigned"
    assert await refusal(listen(journal), sign(body), body) == "taken"
    await journal.close()


async def test_an_id_counts_once_with_its_targets(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    assert await refusal(listen(journal), {}, write_open()) == "taken"
    for body in (write_open(), write_open(time=str(NOW)), write_open(targets=dict(reversed(TARGETS.items())))):
        assert await refusal(listen(journal), {}, body) == "replayed"
    assert await refusal(listen(journal), {}, write_open(id=2)) == "taken"
    await journal.close()


async def test_of_two_alerts_in_one_second_both_count(tmp_path: Path) -> None:
    """As the guide has it, `{"id": "BTCUSDT {{timenow}}", "time": "{{timenow}}"}`: the time is whole seconds."""
    journal, said = open_journal(tmp_path), {"id": f"BTCUSDT {iso(NOW)}", "time": iso(NOW)}
    opened, closed = write_open(**said), write_open(**said, targets={"BTCUSDT": 0.0})
    for body, code in ((opened, "taken"), (closed, "taken"), (opened, "replayed"), (closed, "replayed")):
        assert await refusal(listen(journal), {}, body) == code
    assert await WebhookStrategy("mine", reader(journal)).ask(NOW, b"") == {"BTCUSDT": 0.0}
    await journal.close()


async def test_the_signal_sent_last_is_the_answer_whichever_comes_last(tmp_path: Path) -> None:
    journal, targets = open_journal(tmp_path), {"BTCUSDT": 0.1}
    for sent, body in ((0, write()), (-60, write(targets=targets)), (-120, write(targets={}))):
        assert await refusal(listen(journal), sign(body, str(NOW // 1_000 + sent)), body) == "taken"
    assert await WebhookStrategy("mine", reader(journal)).ask(NOW, b"") == TARGETS
    later = write(targets=targets)
    assert await refusal(listen(journal), sign(later, str(NOW // 1_000 + 1)), later) == "taken"
    assert await WebhookStrategy("mine", reader(journal)).ask(NOW, b"") == targets
    await journal.close()


async def test_a_signal_of_before_was_sent_when_it_came(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    old = Signal(name="mine", targets={"BTCUSDT": 0.1})
    assert "sent" not in old.model_dump()
    await journal.append_once(kind=OWN_SIGNAL, author=Author("webhook"), payload=old, request_id="signal_mine_old")
    early = write_open(time=iso(Millis(NOW - 60_000)))
    assert await refusal(listen(journal), {}, early) == "taken"
    assert await WebhookStrategy("mine", reader(journal)).ask(NOW, b"") == old.targets
    await journal.close()


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ({}, write(), "unsigned"),
        ({}, write_open(secret="0123456789abcdef-of-nobody"), "unsigned"),
        ({}, write_open(secret="é\U0001f600"), "unsigned"),
        (sign(write(), secret="0123456789abcdef-of-nobody"), write(), "unsigned"),
        (sign(write()), write(more=1), "unsigned"),
        (sign(write()) | {"x-zuno-time": str(NOW // 1_000 + 1)}, write(), "unsigned"),
        (sign(write()) | {"x-zuno-signature": "é"}, write(), "unsigned"),
        (sign(write_open()) | {"x-zuno-signature": ""}, write_open(), "unsigned"),
        (sign(write(), str(NOW // 1_000 - 301)), write(), "late"),
        (sign(write(), str(NOW // 1_000 + 301)), write(), "late"),
        (sign(write(), str(NOW // 1_000 - 86_400)), write(), "another_day"),
        (sign(write(), "now"), write(), "malformed"),
        ({}, write_open(time="2026-09-21"), "late"),
        ({}, write_open(time=iso(Millis(NOW - 86_400_000))), "another_day"),
        ({}, write_open(time=""), "malformed"),
        ({}, write_open(id=""), "malformed"),
        ({}, b"{", "malformed"),
        ({}, b"[" * 10_000, "malformed"),
        ({}, b'{"targets": {"BTCUSDT": NaN}}', "malformed"),
        ({}, b'{"targets": {"BTCUSDT": 1e999}}', "malformed"),
        ({}, b'{"targets": [1]}', "malformed"),
        ({}, b'{"targets": {"\\ud800": 1}}', "malformed"),
        ({}, b"\xff", "malformed"),
    ],
)
async def test_what_is_refused(tmp_path: Path, headers: dict[str, str], body: bytes, code: str) -> None:
    journal = open_journal(tmp_path)
    assert await refusal(listen(journal), headers, body) == code
    assert await journal.latest(1) == []
    await journal.close()


async def test_just_over_midnight_is_another_day(tmp_path: Path) -> None:
    midnight, journal = Millis(NOW - NOW % 86_400_000), open_journal(tmp_path)
    body = write_open(time=iso(Millis(midnight - 1_000)))
    assert await refusal(listen(journal, now=midnight), {}, body) == "another_day"
    await journal.close()


async def test_strategies_without_a_long_secret_and_unknown_ones_answer_alike(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    assert await refusal(listen(journal), {}, write_open(secret="short"), "weak") == "unsigned"
    assert await refusal(listen(journal), {}, write_open(secret=""), "nobody") == "unsigned"
    await journal.close()


async def test_only_named_sources_may_call(tmp_path: Path) -> None:
    journal, body = open_journal(tmp_path), write()
    assert await refusal(listen(journal, sources=("10.0.0.0/8", "::1")), sign(body), body) == "source"
    assert await refusal(listen(journal, sources=("192.0.2.0/24",)), sign(body), body) == "taken"
    await journal.close()


async def test_the_newest_signal_by_a_moment_is_the_answer(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    read = reader(journal)
    with pytest.raises(Unavailable):
        await WebhookStrategy("mine", read).ask(NOW, b"")
    for number, targets in enumerate(({"BTCUSDT": 0.1}, TARGETS)):
        assert await refusal(listen(journal), {}, write_open(id=number, targets=targets)) == "taken"
    assert await WebhookStrategy("mine", read).ask(NOW, b"") == TARGETS
    with pytest.raises(Unavailable):
        await WebhookStrategy("mine", read).ask(Millis(NOW - 1), b"")
    await journal.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


async def call(port: int, request: bytes) -> bytes:
    for _ in range(100):
        with suppress(ConnectionRefusedError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            break
        await asyncio.sleep(0.02)
    writer.write(request)
    await writer.drain()
    if not request.endswith(b"\r\n\r\n") and b"\r\n\r\n" not in request:
        writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer.partition(b"\r\n")[0]


def post(body: bytes, headers: dict[str, str], path: str = "/mine", length: int | None = None) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: desk", f"Content-Length: {len(body) if length is None else length}"]
    return "\r\n".join([*lines, *(f"{name}: {text}" for name, text in headers.items()), "", ""]).encode() + body


async def test_the_listener_serves_nothing_else_and_logs_no_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    journal, port, body = open_journal(tmp_path), free_port(), write()
    serving = asyncio.create_task(listen(journal).serve("127.0.0.1", port))
    calls: list[tuple[bytes, bytes]] = [
        (post(body, sign(body)), b"HTTP/1.1 200 taken"),
        (post(body, sign(body)), b"HTTP/1.1 409 replayed"),
        (post(write_open(), {}), b"HTTP/1.1 200 taken"),
        (post(write_open(secret=f"{SECRET}!"), {}), b"HTTP/1.1 401 unsigned"),
        (post(body, sign(body), "/"), b"HTTP/1.1 404 unknown"),
        (post(body, sign(body), "/../mine"), b"HTTP/1.1 404 unknown"),
        (b"GET /mine HTTP/1.1\r\n\r\n", b"HTTP/1.1 404 unknown"),
        (b"POST /mine HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 malformed"),
        (post(b"", {}, length=MOST_BODY + 1), b"HTTP/1.1 413 too_large"),
        (b"rubbish", b""),
    ]
    try:
        for request, status in calls:
            assert await call(port, request) == status
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await journal.close()
    assert "replayed" in caplog.text
    assert SECRET not in caplog.text


async def test_a_port_that_is_taken_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zuno.adapters.strategies.webhook._RETRY_SECONDS", 0.01)
    journal, body = open_journal(tmp_path), write()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        serving = asyncio.create_task(listen(journal).serve("127.0.0.1", port))
        await asyncio.sleep(0.05)
    assert await call(port, post(body, sign(body))) == b"HTTP/1.1 200 taken"
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    await journal.close()


async def test_callers_that_say_nothing_take_no_more_than_their_places(tmp_path: Path) -> None:
    journal, port, body = open_journal(tmp_path), free_port(), write()
    serving = asyncio.create_task(listen(journal).serve("127.0.0.1", port))
    try:
        assert await call(port, b"GET / HTTP/1.1\r\n\r\n") == b"HTTP/1.1 404 unknown"
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST_CALLERS)]
        with suppress(ConnectionError):
            assert await call(port, post(body, sign(body))) == b""
        assert await journal.latest(1) == []
        for _, writer in silent:
            writer.close()
            await writer.wait_closed()
        for _ in range(100):
            with suppress(ConnectionError):
                if answer := await call(port, post(body, sign(body))):
                    break
            await asyncio.sleep(0.02)
        assert answer == b"HTTP/1.1 200 taken"
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        await journal.close()
