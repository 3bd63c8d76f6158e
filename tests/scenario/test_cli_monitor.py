"""The monitor and its alerts as a person asks for them: looks by hand, answers, Telegram down and up again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.wire.bot_api import CHAT, FAULTS, TOKEN, bot_api, refused

Zuno = Callable[..., Any]
POSITION = "1"  # near its edge in the story everybody starts in


def test_the_first_look_warns_of_the_position_near_its_edge(zuno: Zuno, home: Path) -> None:
    ran = zuno("monitor", "once", "--json")
    assert (ran.code, ran.err) == (0, "")
    (chain,) = ran.document["chains"]
    assert (chain["chain"], chain["positions"], chain["failure"]) == ("sim", 2, "")
    assert [(event["happening"], event["position"]) for event in ran.document["events"]] == [("raised", POSITION)]
    assert (home / "samples.db").exists()


def test_alerts_are_raised_answered_and_cleared(zuno: Zuno) -> None:
    zuno("monitor", "once")
    zuno("sim", "move", "--percent", "-12")
    worse = zuno("monitor", "once", "--json").document
    (alert,) = worse["alerts"]
    assert (alert["severity"], alert["condition"], alert["state"]) == ("critical", "out_of_range", "active")
    assert zuno("alerts", "ack", alert["id"], "--json").document["alert"]["state"] == "acknowledged"
    assert zuno("alerts", "--json").document["alerts"][0]["state"] == "acknowledged"
    assert zuno("alerts", "snooze", alert["id"], "6h", "--json").document["alert"]["state"] == "snoozed"
    zuno("sim", "move", "--percent", "15")
    calm = zuno("monitor", "once", "--json").document
    assert (calm["alerts"], [event["said"] for event in calm["events"]]) == ([], [False])
    history = zuno("alerts", "--all", "--json").document
    assert [event["happening"] for event in history["events"]] == [
        "recovered",
        "snoozed",
        "acknowledged",
        "worsened",
        "raised",
    ]


def test_everything_said_is_in_the_journal_and_no_debate_is(zuno: Zuno) -> None:
    zuno("monitor", "once")
    zuno("sim", "move", "--percent", "-12")
    zuno("monitor", "once")
    (alert,) = zuno("alerts", "--json").document["alerts"]
    zuno("alerts", "ack", alert["id"])
    entries = zuno("journal", "tail", "--json").document["entries"]
    assert [entry["kind"] for entry in entries] == ["alert"] * 3
    assert zuno("journal", "verify").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("alerts", "ack", "first"), 2, "is not an alert"),
        (("alerts", "ack", "../../etc/passwd"), 2, "is not an alert"),
        (("alerts", "ack"), 2, "Missing argument"),
        (("alerts", "snooze", "alert_0123456789ab", "soon"), 2, "is not a length of time"),
        (("alerts", "snooze", "alert_0123456789ab", "90d"), 2, "from 1m to 30d"),
        (("alerts", "ack", "alert_0123456789ab"), 3, "No alert alert_0123456789ab is on"),
        (("alerts", "snooze", "alert_0123456789ab", "6h"), 3, "No alert alert_0123456789ab is on"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(zuno: Zuno, arguments: tuple[str, ...], code: int, said: str) -> None:
    ran = zuno(*arguments)
    assert ran.code == code
    assert said in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_before_any_look_the_list_says_so_and_makes_nothing(zuno: Zuno, home: Path) -> None:
    ran = zuno("alerts")
    assert ran.code == 0
    assert "monitor" in ran.out
    assert list(home.iterdir()) == []


def test_tables_say_what_the_documents_say(zuno: Zuno) -> None:
    zuno("sim", "move", "--percent", "-12")
    shown = zuno("monitor", "once").out
    assert "position 1 " in shown
    listed = zuno("alerts", "--all").out
    assert "critical" in listed
    assert "raised" in listed
    (alert,) = zuno("alerts", "--json").document["alerts"]
    assert "acknowledged" in zuno("alerts", "ack", alert["id"]).out
    assert re.search(r"\bsnoozed\b.*\d", zuno("alerts", "snooze", alert["id"], "90m").out)


def test_a_chain_that_cannot_be_read_is_exit_four_and_said(zuno: Zuno) -> None:
    dead = {"ZUNO_BASE_RPC_URL": "http://127.0.0.1:9", "ZUNO_AGENT_WALLET_ADDRESS": "0x" + "ab" * 20}
    ran = zuno("monitor", "once", **dead)
    assert ran.code == 4
    assert "base" in ran.err
    assert re.search(r"\bbase\b.*\blook\b", zuno("alerts", **dead).out)


def test_a_wallet_that_is_kept_is_watched_too(zuno: Zuno, home: Path) -> None:
    address = "0x" + "cd" * 20
    assert zuno("wallet", "import", "--watch", address).code == 0
    ran = zuno("monitor", "once", ZUNO_BASE_RPC_URL="http://127.0.0.1:9")
    assert (ran.code, "base" in ran.err) == (4, True)


def test_without_a_wallet_there_is_nothing_to_watch(zuno: Zuno) -> None:
    ran = zuno("monitor", "once", ZUNO_BASE_RPC_URL="http://127.0.0.1:9")
    assert ran.code == 2
    assert "ZUNO_AGENT_WALLET_ADDRESS" in ran.err


def test_a_damaged_book_is_exit_five_and_stays_as_it_is(zuno: Zuno, home: Path) -> None:
    zuno("monitor", "once")
    (home / "alerts.json").write_text("{")
    for command in (("monitor", "once"), ("alerts",), ("alerts", "ack", "alert_0123456789ab")):
        ran = zuno(*command)
        assert ran.code == 5
        assert "alerts.json" in ran.err
    assert (home / "alerts.json").read_text() == "{"


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({"ZUNO_TELEGRAM_BOT_TOKEN": TOKEN}, "ZUNO_TELEGRAM_CHAT_ID is not set"),
        ({"ZUNO_TELEGRAM_CHAT_ID": CHAT}, "ZUNO_TELEGRAM_BOT_TOKEN is not"),
    ],
)
def test_half_of_telegram_pushes_nothing_and_says_so(zuno: Zuno, settings: dict[str, str], missing: str) -> None:
    ran = zuno("monitor", "once", "--json", **settings)
    assert (ran.code, ran.err.count(missing)) == (0, 1)


def test_a_token_that_cannot_be_one_is_a_mistake(zuno: Zuno) -> None:
    ran = zuno("monitor", "once", ZUNO_TELEGRAM_BOT_TOKEN="nonsense", ZUNO_TELEGRAM_CHAT_ID=CHAT)
    assert ran.code == 2
    assert "ZUNO_TELEGRAM_BOT_TOKEN" in ran.err


async def test_telegram_down_then_up_again_gets_everything_once_and_in_order(zuno: Zuno, home: Path) -> None:
    async with bot_api() as bot:
        settings = {
            "ZUNO_TELEGRAM_BOT_TOKEN": TOKEN,
            "ZUNO_TELEGRAM_CHAT_ID": CHAT,
            "ZUNO_TELEGRAM_API_BASE_URL": bot.url,
        }

        async def run(*arguments: str) -> Any:
            return await asyncio.to_thread(zuno, *arguments, **settings)

        bot.mood = FAULTS["500"]
        first = await run("monitor", "once", "--json")
        await run("sim", "move", "--percent", "-12")
        bot.mood = FAULTS["hang up"]
        second = await run("monitor", "once", "--json")
        assert (first.code, second.code, second.document["waiting"]) == (0, 0, 2)
        assert "delivered" in (await run("alerts")).out
        bot.mood = None
        third = await run("monitor", "once", "--json")
        assert third.code == 0
        await run("monitor", "once")
        assert ["Near " in text for text in bot.arrived] == [True, False]
        assert ["Out " in text for text in bot.arrived] == [False, True]
        assert (await run("alerts", "--json")).document["waiting"] == 0
        bot.mood = refused(401, "Unauthorized")
        await run("sim", "move", "--percent", "15")
        told = await run("monitor", "once")
        assert (told.code, "ZUNO_TELEGRAM_BOT_TOKEN" in told.err) == (0, True)
        everything = [first, second, third, told]
        assert not any(TOKEN in ran.out + ran.err for ran in everything)
        assert not any(TOKEN.encode() in (home / file).read_bytes() for file in ("alerts.json", "outbox.db"))


def test_a_price_alert_is_set_fired_and_removed(zuno: Zuno) -> None:
    made = zuno("alerts", "add", "2", "--price-below", "3000", "--json")
    assert made.code == 0, made.err
    rule = made.document["rule"]
    assert (rule["condition"], rule["level"], rule["unit"], rule["state"]) == (
        *("price_below", "3000", "USDC per ETH", "armed"),
    )
    before = zuno("monitor", "once", "--json").document["events"]
    assert zuno("sim", "move", "--percent", "-6").code == 0
    events = zuno("monitor", "once", "--json").document["events"]
    told = [(event["happening"], event["condition"]) for event in (*before, *events) if event["position"] == "2"]
    assert told == [("raised", "price_below")]
    listed = zuno("alerts", "--json").document
    assert [line["state"] for line in listed["rules"]] == ["reached"]
    assert rule["id"] in zuno("alerts").out
    assert zuno("alerts", "remove", rule["id"]).code == 0
    assert zuno("alerts", "--json").document["rules"] == []
    assert zuno("alerts", "remove", rule["id"]).code == 3
    for wrong in (["2"], ["2", "--price-above", "1", "--fees-above", "1"], ["2", "--price-above", "high"]):
        assert zuno("alerts", "add", *wrong).code == 2
    assert zuno("alerts", "add", "99", "--price-above", "1").code == 3
