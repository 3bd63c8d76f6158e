"""What it costs to follow a cycle in a chat: `python -m benchmarks.telegram_follow`.

Prints one JSON line per figure and ends with 1 when a bar is missed. Timed is `/analyze` until its report is there,
with a message that is edited through a Bot API in the same process, beside the same report with nobody listening.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.debate import timed
from benchmarks.figure import report, settle_disk
from tests.wire.fakes.chat_store import ChatStoreInMemory
from tests.wire.telegram_api import ALICE, TOKEN, TelegramApi, telegram_api
from zuno.doors.telegram.access import Role
from zuno.doors.telegram.analysis_commands import analyze
from zuno.doors.telegram.api import ChatSender, open_bot
from zuno.doors.telegram.commands import ChatRequest
from zuno.doors.telegram.confirm import Confirmations
from zuno.doors.telegram.reply import Reply
from zuno.kernel.units import Millis
from zuno.settings import read_settings
from zuno.trading.service.report import Reports
from zuno.wiring import Application

SEED = 11
PAIRS = 12
BAR = 1.1


async def follow(house: Application, api: TelegramApi) -> bool:
    async with open_bot(TOKEN, api.url) as bot:
        api.say(ALICE, "/analyze BTC")
        store = ChatStoreInMemory()
        live = ChatSender(bot, store, ALICE.id, os.urandom)
        cards = Confirmations(store, lambda: Millis(0), os.urandom, {})
        asked = ChatRequest(ALICE.id, ALICE.id, 1, "/analyze BTC", ("BTC",), Role.OWNER, live, cards)

        async def alone() -> None:
            await Reports(house.cycles()).run("BTCUSDT", "swing", None, lambda event: None)

        async def followed() -> None:
            replies = analyze(asked, house)
            await anext(replies)
            rest.append(asyncio.create_task(_drain(replies)))

        rest: list[asyncio.Task[None]] = []
        await alone()
        await followed()
        await asyncio.gather(*rest)
        settle_disk()
        pairs = []
        for _ in range(PAIRS):
            pairs.append((await timed(followed), await timed(alone)))
            await asyncio.gather(*rest)
        edits = sum(request.method == "editMessageText" for request in api.requests)
    if len(api.sent) != PAIRS + 1 or not edits:
        raise ValueError(f"meant to follow {PAIRS + 1} cycles, sent {len(api.sent)} messages and {edits} edits")
    value, yardstick = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    unit, against = f"ms, p50 of {PAIRS}", "the same cycle unheard"
    return report("a cycle followed in a chat", value, unit, yardstick, against, BAR, ratio=ratio, edits=edits)


async def _drain(replies: AsyncIterator[Reply]) -> None:
    async for _ in replies:
        pass


async def run() -> int:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        house = Application(read_settings({"ZUNO_DETERMINISTIC": "true"}, home))
        await house.data().synth(SEED)
        async with telegram_api() as api:
            passed = await follow(house, api)
        await house.close()
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(run()))
