"""A question in a chat, answered: `python -m benchmarks.telegram`.

The whole bot of a home (polled, claimed, admitted, dispatched, rendered, sent, recorded) against python-telegram-bot
alone, which sends the same message, known beforehand; both poll a Bot API on loopback, by turns. Our views are read
once and kept; `computed_ms` is the same answer with its view read anew from the home, as people get it. Prints one JSON
line per figure and ends with 1 when a bar is missed.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from unittest.mock import patch

from telegram import InlineKeyboardButton, InlineKeyboardMarkup, Update
from telegram.ext import Application, CommandHandler, ContextTypes

from benchmarks.figure import report, report_pairs
from tests.wire.commands import run_zuno
from tests.wire.telegram_api import ALICE, TOKEN, TelegramApi, telegram_api
from tests.wire.telegram_side import running_bot
from zuno.doors.telegram import command_table
from zuno.doors.telegram.commands import ChatRequest, Command, Level
from zuno.doors.telegram.render import render
from zuno.doors.telegram.reply import Reply
from zuno.doors.zuno import Zuno
from zuno.kernel.view import View
from zuno.settings import Settings
from zuno.wiring.application import Application as HouseApplication

BAR = 1.5
TURNS = 60
WARM_UP = 5
BURST = 1_000
A_MINUTE = 60.0
"""What a thousand updates may take."""

Pairs = list[tuple[float, float]]


async def read_views(zuno: Zuno) -> dict[str, View]:
    account = zuno.account()
    return {
        "status": await account.positions(),
        "balance": await account.balance(),
        "locks": await account.locks(),
        "profit": await account.profit(),
        "positions": await zuno.lp(None).positions(),
    }


def build_cached_command(name: str, view: View) -> Command:
    async def show(asked: ChatRequest, zuno: Zuno) -> Reply:
        return render(view)

    return Command(f"cached_{name}", "", "x", Level.LOOK, show)


class BareBot:
    """python-telegram-bot alone: the same message, known beforehand."""

    def __init__(self) -> None:
        self.html = ""
        self.buttons: list[list[dict[str, str]]] = []

    async def answer(self, update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
        assert update.message is not None
        rows = [
            [InlineKeyboardButton(button["text"], callback_data=button["callback_data"]) for button in row]
            for row in self.buttons
        ]
        markup = InlineKeyboardMarkup(rows) if rows else None
        await update.message.reply_html(self.html, reply_markup=markup)


async def time_answer(api: TelegramApi, command: str) -> float:
    started = perf_counter()
    api.say(ALICE, f"/{command}")
    await api.next()
    return (perf_counter() - started) * 1_000


async def measure(home: Path) -> dict[str, Pairs]:
    """Milliseconds of ours and of the bare library by turns, for each command."""
    house = HouseApplication(Settings(home=home))
    views = await read_views(house)
    await house.close()
    cached = [build_cached_command(name, view) for name, view in views.items()]
    names = ["version", "help", *(command.name for command in cached), *views]
    found: dict[str, Pairs] = {}
    fixed = BareBot()
    with patch.object(command_table, "COMMANDS", (*command_table.COMMANDS, *cached)):
        async with telegram_api() as ours, telegram_api() as bare, running_bot(home, ours):
            library = Application.builder().token(TOKEN).base_url(f"{bare.url}/bot").build()
            library.add_handler(CommandHandler(names, fixed.answer))
            async with library:
                assert library.updater is not None
                await library.updater.start_polling()
                await library.start()
                for name in names:
                    await time_answer(ours, name)
                    fixed.html, fixed.buttons = ours.sent[-1].html, ours.sent[-1].buttons
                    pairs: Pairs = []
                    for _ in range(WARM_UP + TURNS):
                        pairs.append((await time_answer(ours, name), await time_answer(bare, name)))
                        await asyncio.sleep(0.02)  # for what is written down after an answer
                    found[name] = pairs[WARM_UP:]
                await library.updater.stop()
                await library.stop()
    return found


async def measure_burst(home: Path) -> float:
    """Seconds until a thousand updates that came at once are answered."""
    async with telegram_api() as api, running_bot(home, api):
        started = perf_counter()
        for _ in range(BURST):
            api.say(ALICE, "/version")
        for _ in range(10):
            await api.next(BURST // 10)
        return perf_counter() - started


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        run_zuno(home, "data", "synth", "--seed", "7")
        found = asyncio.run(measure(home))
        burst = asyncio.run(measure_burst(Path(folder) / "burst"))
    results = []
    for name, pairs in found.items():
        shown = name.removeprefix("cached_")
        computed = f"cached_{name}" in found
        if computed:
            continue
        more = {}
        if name != shown:
            more["computed_ms"] = round(median(own for own, _ in found[shown]), 2)
        results.append(report_pairs(f"telegram: /{shown}", pairs, "python-telegram-bot alone", BAR, **more))
    results.append(report("telegram: 1,000 updates at once", burst, "s", A_MINUTE, "a minute", 1.0, updates=BURST))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
