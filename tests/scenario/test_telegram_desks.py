"""Both desks in a chat: a cycle and a debate followed in one message, their reports, and what is asked about them."""

from __future__ import annotations

import asyncio
import re
import sys
from asyncio.subprocess import DEVNULL
from pathlib import Path

import pytest

from tests.wire.commands import shell
from tests.wire.telegram_api import ALICE, BOB, TOKEN, TelegramApi, telegram_api
from tests.wire.telegram_side import chat_settings, running_bot


async def ask(api: TelegramApi, words: str) -> str:
    api.say(ALICE, words)
    return (await api.next()).text


async def test_a_cycle_is_followed_then_reported_and_asked_about(invented: Path) -> None:
    async with telegram_api() as api, running_bot(invented, api):
        api.say(BOB, "/analyze BTC")
        assert "owner" in (await api.next()).text
        assert "BTCUSDT" in await ask(api, "/analyze DOGE")
        assert "tomorrow" in await ask(api, "/analyze BTC tomorrow")
        assert "/analyze BTC" in await ask(api, "/report")

        api.say(ALICE, "/analyze btc")
        followed, report = await api.next(), await api.next()
        await api.until(lambda: followed.text.startswith("Analysed BTCUSDT, swing"))
        assert re.match(r"Analysing BTCUSDT, swing\n\n16 ", followed.edits[0])
        assert "✓ judge agent · rules" in followed.text
        assert report.photo is not None
        assert report.photo.startswith(b"\x89PNG")
        assert report.text.startswith("SYNTHETIC · BTCUSDT swing: ")
        assert "nothing was sent" in report.text
        assert report.labels == ["Why", "Experts", "Full page", "Replay"]
        found = re.search(r"run_[0-9a-f]{16}", report.text)
        assert found is not None
        run = found.group()

        api.tap(ALICE, report, "Full page")
        page = await api.next()
        assert page.document is not None
        assert page.document[0] == f"{run}.html"
        assert page.document[1].startswith(b"<!doctype html>")
        api.tap(ALICE, report, "Replay")
        assert "Identical" in (await api.next()).text
        api.tap(ALICE, report, "Experts")
        assert (await api.next()).text.startswith("SYNTHETIC · Experts on BTCUSDT")
        why = await ask(api, f"/why {run}")
        assert why.startswith("SYNTHETIC · Why: BTCUSDT swing")
        while "outcome: " not in why:  # the last section, in a message of its own where one is too short
            why = (await api.next()).text
        assert "run_" in await ask(api, "/report list")
        api.say(ALICE, "/report")
        assert (await api.next()).photo is not None
        assert "run_0000000000000000" in await ask(api, "/report run_0000000000000000 page")
        assert "No trade was learned from" in await ask(api, "/memory")


@pytest.mark.soak
async def test_a_request_that_was_killed_with_the_bot_is_told_once_by_the_next(invented: Path) -> None:
    async with telegram_api() as api:
        settings = chat_settings(invented, api)
        environment = {
            "ZUNO_TELEGRAM_BOT_TOKEN": TOKEN,
            "ZUNO_TELEGRAM_API_BASE_URL": settings.telegram_api_base_url,
            "ZUNO_TELEGRAM_OWNERS": str(ALICE.id),
        }
        command = (sys.executable, "-m", "zuno", "telegram", "run")
        bot = await asyncio.create_subprocess_exec(*command, env=shell(invented, environment), stdout=DEVNULL)
        try:
            api.say(ALICE, "/analyze BTC")
            assert (await api.next()).text.startswith("Analysing BTCUSDT")
        finally:
            bot.kill()
            await bot.wait()
        api.polling.clear()
        async with running_bot(invented, api):
            told = await api.next()
            assert "/analyze BTC" in told.text
            assert "cut off" in told.text
            assert await ask(api, "/version") != told.text
        async with running_bot(invented, api):
            assert (await ask(api, "/version")).startswith("zuno"), "and nothing else"


@pytest.mark.soak
async def test_a_debate_is_followed_and_its_plan_looked_at(tmp_path: Path) -> None:
    async with telegram_api() as api, running_bot(tmp_path, api):
        positions = await ask(api, "/positions")
        assert positions.startswith("Positions in range: 2 of 2\nSYNTHETIC · sim at block ")
        assert re.search("├─*●─*┤", positions)
        assert "Position 1" in await ask(api, "/positions 1 sim")
        assert "SYNTHETIC · Portfolio in USD" in await ask(api, "/portfolio 7d")
        assert "3,500 USDC per WETH" in await ask(api, "/whatif 1 3,500")
        assert "exact" in await ask(api, "/pnl 1")
        assert "No alert" in await ask(api, "/alerts all")
        assert "alert_" in await ask(api, "/ack 1")
        assert "/recommend 1" in await ask(api, "/plan")
        for wrong in ("/recommend", "/whatif", "/pnl", "/positions a b", "/plan x y z", "/alerts 1", "/snooze x"):
            assert await ask(api, wrong)
        assert "nowhere" in await ask(api, "/positions nowhere")

        api.say(ALICE, "/recommend 1 sim conservative")
        followed, plan = await api.next(), await api.next()
        await api.until(lambda: "⏳" not in followed.text)
        assert all(text.startswith("Argues position 1") for text in followed.edits[:1])  # none where it is over at once
        assert "critic" in followed.text
        assert plan.text.startswith("SYNTHETIC · ")
        found = re.search(r"plan_[0-9a-f]{12}", plan.text)
        assert found is not None
        assert plan.labels[0] == "Why"
        api.tap(ALICE, plan, "Why")
        assert "The debate" in (await api.next()).text
        shown = await ask(api, f"/plan {found.group()}")
        assert shown == plan.text
        if "Simulate" in plan.labels:
            api.tap(ALICE, plan, "Simulate")
            assert "it goes through" in (await api.next()).text
        assert found.group() in await ask(api, "/plan")
        assert "Identical" in await ask(api, f"/plan {found.group()} replay")
