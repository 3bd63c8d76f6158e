"""The exam of `Notifier`: memory, console and Telegram (over a Bot API on loopback) sit it; Telegram's own is below."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from html import unescape

import pytest

from tests.wire.bot_api import CHAT, FAULTS, TOKEN, Bot, asks_silence, bot_api, refused
from tests.wire.fakes.notifier import MemoryNotifier
from tests.wire.model_server import http
from tests.wire.telegram_api import ALICE, TelegramApi, telegram_api
from tests.wire.telegram_html import find_tappable
from zuno.adapters.notifier.console import ConsoleNotifier
from zuno.adapters.notifier.telegram import LONGEST_CAPTION, LONGEST_TEXT, TelegramNotifier, as_html
from zuno.doors.telegram.terminal_words import translate_commands
from zuno.kernel.chat_text import JOINER
from zuno.kernel.errors import UsageError
from zuno.kernel.notify import (
    Button,
    Fact,
    Notice,
    NoticeKind,
    NoticeLabel,
    Notifier,
    OutboxEntry,
    RetryLater,
    Sent,
    Severity,
    Undeliverable,
)
from zuno.kernel.units import Seconds

NOTICE = Notice(
    kind=NoticeKind.ALERT,
    title="Out of range",
    severity=Severity.CRITICAL,
    label=NoticeLabel.LIVE,
    at=Seconds(1_700_000_000),
    facts=(Fact("chain", "base"), Fact("position", "42")),
    reason="tick -1 lies 1 ticks beyond its lower edge",
    reference="alert_0123456789ab",
    buttons=(Button("Ack", "/ack alert_0123456789ab"), Button("Snooze 6 h", "/snooze alert_0123456789ab 6h")),
)
BARE = Notice(NoticeKind.FILL, "Filled", Severity.INFO, NoticeLabel.PAPER, Seconds(1_700_000_000))
SUMMARY = replace(NOTICE, kind=NoticeKind.SUMMARY, picture=b"\x89PNG")
HOSTILE = replace(NOTICE, reason="<b>&\x00\u202e" + "x" * 10_000, facts=(Fact("\n" * 99, "<" * 9_000),) * 30)


def post(notice: Notice = NOTICE, number: int = 7) -> OutboxEntry:
    return OutboxEntry(number, f"key {number}", notice)


@pytest.fixture
async def bot() -> AsyncIterator[Bot]:
    async with bot_api() as server:
        yield server


@pytest.fixture
async def telegram(bot: Bot) -> AsyncIterator[TelegramNotifier]:
    notifier = TelegramNotifier(TOKEN, CHAT, bot.url, timeout=3)
    yield notifier
    await notifier.close()


@pytest.fixture
async def api() -> AsyncIterator[TelegramApi]:
    """Reads entities and counts characters as Telegram does."""
    async with telegram_api() as server:
        server.say(ALICE, "/start")
        yield server


@pytest.fixture
async def strict(api: TelegramApi) -> AsyncIterator[TelegramNotifier]:
    notifier = TelegramNotifier(TOKEN, str(ALICE.id), api.url, timeout=3)
    yield notifier
    await notifier.close()


@pytest.fixture(params=["memory", "console", "telegram", "strict"])
def candidate(request: pytest.FixtureRequest, telegram: TelegramNotifier, strict: TelegramNotifier) -> Notifier:
    match request.param:
        case "strict":
            return strict
        case "memory":
            return MemoryNotifier()
        case "console":
            return ConsoleNotifier([].append)  # type: ignore[arg-type]
        case _:
            return telegram


@pytest.mark.parametrize("notice", [NOTICE, BARE, SUMMARY, HOSTILE, replace(HOSTILE, picture=b"\x89PNG")])
async def test_a_notice_arrives(candidate: Notifier, notice: Notice) -> None:
    assert await candidate.send(post(notice)) == Sent()
    assert await candidate.send(post(notice, 2**62), silent=True) == Sent()


async def test_closing_twice_is_harmless_and_a_closed_one_opens_again(candidate: Notifier) -> None:
    await candidate.send(post())
    await candidate.close()
    await candidate.close()
    assert await candidate.send(post()) == Sent()
    await candidate.close()


# -- console and memory


async def test_the_console_writes_one_plain_line() -> None:
    lines: list[str] = []
    await ConsoleNotifier(lines.append).send(post(replace(NOTICE, reason="two\nlines \x1b[31mred")))
    assert lines == ["CRITICAL Out of range [LIVE], chain base, position 42: two lines [31mred (alert_0123456789ab)"]


async def test_a_console_nobody_reads_is_tried_again() -> None:
    def broken(line: str) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    assert isinstance(await ConsoleNotifier(broken).send(post()), RetryLater)


async def test_the_memory_fails_as_it_is_told() -> None:
    notifier = MemoryNotifier([RetryLater("down"), Undeliverable("no", all=True)])
    assert [await notifier.send(post()) for _ in range(3)] == [
        RetryLater("down"),
        Undeliverable("no", all=True),
        Sent(),
    ]
    assert (notifier.sent, notifier.tries) == ([NOTICE], 3)


# -- Telegram


async def test_a_hostile_notice_stands_in_the_chat_as_it_was_said(api: TelegramApi, strict: TelegramNotifier) -> None:
    said = "</code><b>&amp;</b> https://t.me/x \u202e@somebody /kill"
    notice = replace(NOTICE, title=said, reason=said, facts=(Fact(said, said),), reference=said)
    assert await strict.send(post(notice)) == Sent()
    (message,) = api.sent
    assert message.text.replace(JOINER, "").count("</code><b>&amp;</b> https://t") == 5
    assert {entity["type"] for entity in message.entities} == {"bold", "code"}
    assert find_tappable(message.html) == []


async def test_a_terminals_command_is_the_chats_own(bot: Bot) -> None:
    notifier = TelegramNotifier(TOKEN, CHAT, bot.url, translate=translate_commands)
    await notifier.send(post(replace(NOTICE, reason="locked until `zuno trade unlock`")))
    await notifier.close()
    assert "<code>/unlock</code>" in bot.arrived[0]


async def test_a_picture_stands_above_its_words_and_its_buttons(api: TelegramApi, strict: TelegramNotifier) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(8) + (640).to_bytes(4) + (480).to_bytes(4)
    await strict.send(post(replace(HOSTILE, picture=picture)), silent=True)
    (message,) = api.sent
    assert (message.photo, message.labels, message.silent) == (picture, ["Ack", "Snooze 6 h"], True)


async def test_a_group_that_became_a_supergroup_is_told_by_its_new_number(
    api: TelegramApi, strict: TelegramNotifier
) -> None:
    api.migrated[ALICE.id] = -1_009_876_543_210
    outcome = await strict.send(post())
    assert isinstance(outcome, Undeliverable)
    assert outcome.all
    assert "ZUNO_TELEGRAM_CHAT_ID to -1009876543210" in outcome.reason


async def test_a_lost_answer_is_for_later_though_it_arrived(api: TelegramApi, strict: TelegramNotifier) -> None:
    api.lose("sendMessage")
    assert isinstance(await strict.send(post()), RetryLater)
    assert len(api.sent) == 1


async def test_the_message_says_everything_in_escaped_html(bot: Bot, telegram: TelegramNotifier) -> None:
    await telegram.send(post(replace(NOTICE, reason="a < b & <script>c</script>", title="<i>x")))
    assert bot.arrived == [
        "\N{LARGE RED CIRCLE} <b>&lt;i&gt;x</b> · LIVE\nchain: base\nposition: 42\n"
        f"reason: a &lt; b &amp; &lt;script&gt;c&lt;/{JOINER}script&gt;\n"
        "2023-11-14 22:13 UTC · <code>alert_0123456789ab</code>"
    ]
    body = bot.heard[0].body
    assert (body["chat_id"], body["parse_mode"]) == (CHAT, "HTML")


@pytest.mark.parametrize("limit", [LONGEST_CAPTION, LONGEST_TEXT])
@pytest.mark.parametrize("junk", ["&", "x", "\N{GRINNING FACE}", "a ", "/a ", "`/a` ", "a.bc"])
def test_no_notice_is_longer_than_telegram_takes(limit: int, junk: str) -> None:
    facts = tuple(Fact(f"{junk}{number}", junk * 900) for number in range(9))
    html = as_html(replace(NOTICE, reason=junk * 9_000, title=junk * 5_000, facts=facts), limit)
    text = unescape(re.sub("<[^>]*>", "", html))
    assert limit // 3 < len(text.encode("utf-16-le")) // 2 <= limit
    assert find_tappable(html) == []
    assert html.endswith(f"<code>{NOTICE.reference}</code>")


async def test_buttons_carry_the_number_of_the_notice(bot: Bot, telegram: TelegramNotifier) -> None:
    many = tuple(Button(f"b{index}", "/x") for index in range(20))
    await telegram.send(post(replace(NOTICE, buttons=many), 2**62))
    rows = bot.heard[0].body["reply_markup"]["inline_keyboard"]
    assert [len(row) for row in rows] == [3, 3, 2]
    assert [key["callback_data"] for row in rows for key in row] == [f"n{2**62}.{index}" for index in range(8)]
    assert all(len(key["callback_data"]) <= 64 for row in rows for key in row)


async def test_a_chat_given_by_its_name_gets_no_buttons_that_nobody_could_press(bot: Bot) -> None:
    notifier = TelegramNotifier(TOKEN, "@desk", bot.url)
    assert await notifier.send(post()) == Sent()
    await notifier.close()
    assert "reply_markup" not in bot.heard[0].body


@pytest.mark.parametrize("notice", [NOTICE, SUMMARY])
async def test_silence_is_asked_for_only_when_wanted(bot: Bot, telegram: TelegramNotifier, notice: Notice) -> None:
    await telegram.send(post(notice))
    await telegram.send(post(notice), silent=True)
    assert [asks_silence(heard) for heard in bot.heard] == [False, True]


async def test_a_picture_is_a_photo_with_its_words_below(bot: Bot, telegram: TelegramNotifier) -> None:
    await telegram.send(post(SUMMARY))
    assert [heard.path for heard in bot.heard] == [f"/bot{TOKEN}/sendPhoto"]
    assert bot.arrived == [as_html(SUMMARY, LONGEST_CAPTION)]


async def test_a_picture_that_is_refused_leaves_its_words(bot: Bot, telegram: TelegramNotifier) -> None:
    bot.photo_mood = refused(400, "Bad Request: PHOTO_INVALID_DIMENSIONS")
    assert await telegram.send(post(SUMMARY)) == Sent()
    assert bot.arrived == [as_html(SUMMARY)]


@pytest.mark.parametrize("fault", FAULTS)
async def test_what_may_pass_is_for_later(bot: Bot, telegram: TelegramNotifier, fault: str) -> None:
    bot.mood = FAULTS[fault]
    outcome = await asyncio.wait_for(telegram.send(post()), 10)
    assert isinstance(outcome, RetryLater)
    assert TOKEN not in outcome.reason
    bot.mood = None
    assert await telegram.send(post()) == Sent()


async def test_a_message_is_not_carried_elsewhere(bot: Bot, telegram: TelegramNotifier) -> None:
    bot.mood = http(307, b"", extra=f"location: {bot.url}/elsewhere\r\n")
    assert isinstance(await telegram.send(post()), RetryLater)
    assert [heard.path for heard in bot.heard] == [f"/bot{TOKEN}/sendMessage"]


async def test_a_service_that_is_not_there_is_for_later() -> None:
    notifier = TelegramNotifier(TOKEN, CHAT, "http://127.0.0.1:9", timeout=2)
    outcome = await notifier.send(post())
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
    outcome = await telegram.send(post())
    assert outcome == RetryLater("Telegram limits our messages (HTTP 429)", wait)


@pytest.mark.parametrize(("status", "all_of_them"), [(400, False), (401, True), (404, True)])
async def test_what_cannot_pass_is_never(bot: Bot, telegram: TelegramNotifier, status: int, all_of_them: bool) -> None:
    bot.mood = refused(status, f"no /bot{TOKEN}/ here")
    outcome = await telegram.send(post())
    assert isinstance(outcome, Undeliverable)
    assert outcome.all is all_of_them
    assert TOKEN not in outcome.reason


async def test_a_wrong_token_is_told_by_its_setting(bot: Bot) -> None:
    notifier = TelegramNotifier("1:other", CHAT, bot.url)
    outcome = await notifier.send(post())
    assert isinstance(outcome, Undeliverable)
    assert "ZUNO_TELEGRAM_BOT_TOKEN" in outcome.reason
    await notifier.close()


@pytest.mark.parametrize("notice", [NOTICE, SUMMARY])
@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (refused(400, "Bad Request: chat not found"), "ZUNO_TELEGRAM_CHAT_ID"),
        (
            refused(400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=-10077),
            "ZUNO_TELEGRAM_CHAT_ID to -10077",
        ),
    ],
)
async def test_a_chat_that_is_gone_is_told_by_its_setting_and_loses_nothing(
    bot: Bot, telegram: TelegramNotifier, notice: Notice, answer: bytes, names: str
) -> None:
    bot.mood = answer
    outcome = await telegram.send(post(notice))
    assert isinstance(outcome, Undeliverable)
    assert outcome.all
    assert names in outcome.reason


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (403, "Forbidden: bot was blocked by the user"),
        (400, "Bad Request: not enough rights to send text messages to the chat"),
        (400, "Bad Request: CHAT_WRITE_FORBIDDEN"),
        (400, "Bad Request: TOPIC_CLOSED"),
    ],
)
async def test_a_bot_that_may_not_write_is_for_later(
    bot: Bot, telegram: TelegramNotifier, code: int, said: str
) -> None:
    bot.mood = refused(code, said)
    outcome = await telegram.send(post())
    assert isinstance(outcome, RetryLater)
    assert outcome.wait is not None
    bot.mood = None
    assert await telegram.send(post()) == Sent()


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
    with pytest.raises(UsageError) as refusal:
        TelegramNotifier(token, chat, url)
    assert token not in str(refusal.value)


@pytest.mark.parametrize("fault", [None, "500", "cut", "429"])
async def test_no_log_holds_the_token(
    bot: Bot, telegram: TelegramNotifier, fault: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bot.mood = None if fault is None else FAULTS[fault]
    await telegram.send(post())
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(telegram)
