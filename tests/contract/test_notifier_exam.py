"""The exam of `Notifier`: memory, console and Telegram (over a Bot API on loopback) sit it; Telegram's own is below."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.wire.bot_api import CHAT, FAULTS, TOKEN, Bot, bot_api, refused
from tests.wire.fakes.notifier import MemoryNotifier
from tests.wire.model_server import http
from zuno.adapters.notifier.console import ConsoleNotifier
from zuno.adapters.notifier.telegram import TelegramNotifier, as_html
from zuno.kernel.errors import Usage
from zuno.kernel.notify import Notice, Notifier, RetryLater, Sent, Severity, Undeliverable

NOTICE = Notice(
    title="Out of range",
    severity=Severity.CRITICAL,
    chain="base",
    wallet="0x" + "ab" * 20,
    position="42",
    condition="out of range",
    reason="tick -1 lies 1 ticks beyond its lower edge",
    reference="alert_0123456789ab",
)
CHAIN_NOTICE = replace(NOTICE, wallet=None, position=None, severity=Severity.WARNING, title="Chain unreachable")


@pytest.fixture
async def bot() -> AsyncIterator[Bot]:
    async with bot_api() as server:
        yield server


@pytest.fixture
async def telegram(bot: Bot) -> AsyncIterator[TelegramNotifier]:
    notifier = TelegramNotifier(TOKEN, CHAT, bot.url, timeout=3)
    yield notifier
    await notifier.close()


@pytest.fixture(params=["memory", "console", "telegram"])
def candidate(request: pytest.FixtureRequest, telegram: TelegramNotifier) -> Notifier:
    match request.param:
        case "memory":
            return MemoryNotifier()
        case "console":
            return ConsoleNotifier([].append)  # type: ignore[arg-type]
        case _:
            return telegram


@pytest.mark.parametrize("notice", [NOTICE, CHAIN_NOTICE, replace(NOTICE, reason="<b>&\x00\u202e" + "x" * 10_000)])
async def test_a_notice_arrives(candidate: Notifier, notice: Notice) -> None:
    assert await candidate.send(notice) == Sent()
    assert await candidate.send(notice) == Sent()


async def test_closing_twice_is_harmless_and_a_closed_one_opens_again(candidate: Notifier) -> None:
    await candidate.send(NOTICE)
    await candidate.close()
    await candidate.close()
    assert await candidate.send(NOTICE) == Sent()
    await candidate.close()


# -- console and memory


async def test_the_console_writes_one_plain_line() -> None:
    lines: list[str] = []
    await ConsoleNotifier(lines.append).send(replace(NOTICE, reason="two\nlines \x1b[31mred"))
    assert lines == ["CRITICAL Out of range: position 42 on base: two lines [31mred (alert_0123456789ab)"]


async def test_a_console_nobody_reads_is_tried_again() -> None:
    def broken(line: str) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    assert isinstance(await ConsoleNotifier(broken).send(NOTICE), RetryLater)


async def test_the_memory_fails_as_it_is_told() -> None:
    notifier = MemoryNotifier([RetryLater("down"), Undeliverable("no", all=True)])
    assert [await notifier.send(NOTICE) for _ in range(3)] == [
        RetryLater("down"),
        Undeliverable("no", all=True),
        Sent(),
    ]
    assert (notifier.sent, notifier.tries) == ([NOTICE], 3)


# -- Telegram


async def test_the_message_says_everything_in_escaped_html(bot: Bot, telegram: TelegramNotifier) -> None:
    await telegram.send(replace(NOTICE, reason="a < b & <script>c</script>", title="<i>x"))
    assert bot.arrived == [
        "\N{LARGE RED CIRCLE} <b>&lt;i&gt;x</b>\nseverity: critical\nchain: base\nwallet: <code>0xabab…abab</code>\n"
        "position: <code>42</code>\ncondition: out of range\nreason: a &lt; b &amp; &lt;script&gt;c&lt;/script&gt;\n"
        "<code>alert_0123456789ab</code>"
    ]
    body = bot.heard[0].body
    assert (body["chat_id"], body["parse_mode"]) == (CHAT, "HTML")


def test_no_notice_is_longer_than_telegram_takes() -> None:
    long = "&" * 100_000
    notice = replace(NOTICE, reason=long, title="t" * 5_000)
    # Telegram counts 4096 characters after entities are read: `&amp;` is one.
    assert len(as_html(notice).replace("&amp;", "&")) < 4_096


@pytest.mark.parametrize("fault", FAULTS)
async def test_what_may_pass_is_for_later(bot: Bot, telegram: TelegramNotifier, fault: str) -> None:
    bot.mood = FAULTS[fault]
    outcome = await asyncio.wait_for(telegram.send(NOTICE), 10)
    assert isinstance(outcome, RetryLater)
    assert TOKEN not in outcome.reason
    bot.mood = None
    assert await telegram.send(NOTICE) == Sent()


async def test_a_message_is_not_carried_elsewhere(bot: Bot, telegram: TelegramNotifier) -> None:
    bot.mood = http(307, b"", extra=f"location: {bot.url}/elsewhere\r\n")
    assert isinstance(await telegram.send(NOTICE), RetryLater)
    assert [heard.path for heard in bot.heard] == [f"/bot{TOKEN}/sendMessage"]


async def test_a_service_that_is_not_there_is_for_later() -> None:
    notifier = TelegramNotifier(TOKEN, CHAT, "http://127.0.0.1:9", timeout=2)
    outcome = await notifier.send(NOTICE)
    assert outcome == RetryLater("Telegram could not be reached")
    await notifier.close()


@pytest.mark.parametrize(
    ("parameters", "wait"),
    [({"retry_after": 7}, 7.0), ({"retry_after": 10**9}, 3_600.0), ({"retry_after": "soon"}, None), ({}, None)]
    + [({"retry_after": value}, None) for value in (-1, True, None, [])],  # type: ignore[var-annotated]
)
async def test_the_wait_it_asks_for_is_passed_on(
    bot: Bot, telegram: TelegramNotifier, parameters: dict[str, object], wait: float | None
) -> None:
    bot.mood = refused(429, "Too Many Requests", **parameters)
    outcome = await telegram.send(NOTICE)
    assert outcome == RetryLater("Telegram limits our messages (HTTP 429)", wait)


@pytest.mark.parametrize(("status", "all_of_them"), [(400, False), (401, True), (403, True), (404, True)])
async def test_what_cannot_pass_is_never(bot: Bot, telegram: TelegramNotifier, status: int, all_of_them: bool) -> None:
    bot.mood = refused(status, f"no /bot{TOKEN}/ here")
    outcome = await telegram.send(NOTICE)
    assert isinstance(outcome, Undeliverable)
    assert outcome.all is all_of_them
    assert TOKEN not in outcome.reason


async def test_a_wrong_token_is_told_by_its_setting(bot: Bot) -> None:
    notifier = TelegramNotifier("1:other", CHAT, bot.url)
    outcome = await notifier.send(NOTICE)
    assert isinstance(outcome, Undeliverable)
    assert "ZUNO_TELEGRAM_BOT_TOKEN" in outcome.reason
    await notifier.close()


async def test_an_unknown_chat_is_told_by_its_setting(bot: Bot, telegram: TelegramNotifier) -> None:
    bot.mood = refused(400, "Bad Request: chat not found")
    outcome = await telegram.send(NOTICE)
    assert outcome == Undeliverable("Telegram knows no such chat (HTTP 400); correct ZUNO_TELEGRAM_CHAT_ID", all=False)


@pytest.mark.parametrize(
    ("token", "chat", "url"),
    [
        ("no token", CHAT, "https://api.telegram.org"),
        ("12:a/../b", CHAT, "https://api.telegram.org"),
        (TOKEN, "my chat", "https://api.telegram.org"),
        (TOKEN, CHAT, "http://example.org"),
    ],
)
def test_settings_that_cannot_work_are_refused_without_being_repeated(token: str, chat: str, url: str) -> None:
    with pytest.raises(Usage) as refusal:
        TelegramNotifier(token, chat, url)
    assert token not in str(refusal.value)


@pytest.mark.parametrize("fault", [None, "500", "cut", "429"])
async def test_no_log_holds_the_token(
    bot: Bot, telegram: TelegramNotifier, fault: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bot.mood = None if fault is None else FAULTS[fault]
    await telegram.send(NOTICE)
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(telegram)
