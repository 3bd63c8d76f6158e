"""Commands that look at the trading account, and those that only lower its risk."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from zuno.doors.telegram.access import Role
from zuno.doors.telegram.commands import ChatRequest, Command, Level, open_account, read_account, take_account
from zuno.doors.telegram.layout import block, bold, command, fact, join, paragraphs, text
from zuno.doors.telegram.render import render, render_document
from zuno.doors.telegram.reply import Reply
from zuno.doors.zuno import Zuno
from zuno.kernel.accounts import LIVE_ACCOUNT
from zuno.kernel.errors import UsageError
from zuno.kernel.installation import read_version
from zuno.kernel.view import View
from zuno.present.document import select_columns
from zuno.trading.model.market import Mode
from zuno.trading.service.account import AccountDesk

TRADES: Final = 15
LOG_LINES: Final = 20
SHORT_COLUMNS: Final = ("position", "entry", "unrealised", "R")
"""Columns of `/status table`."""
MOST_LINES: Final = 100
_TABLE: Final = "table"
_PRIVATE: Final = re.compile(
    r"\w+://\S+|(?<!\w)[~.]{0,2}/[^\s'\",;:()]+|\b0x[0-9a-fA-F]{8,}\b"
    r"|\b(?:user|chat) -?\d+|(?<![\w.,])-?\d{6,}(?![\w.,]*\d)"
)
"""URLs, paths, addresses, and ids of people and chats: what a viewer does not see of logs and settings."""


async def greet(asked: ChatRequest, zuno: Zuno) -> Reply:
    """Opening a chat sends this by itself: it shows the state and starts nothing."""
    shown = render(await zuno.account().status())
    hello = f"{bold('Zuno')} · you may {_RIGHTS[asked.role]} · /help lists the commands"
    return replace(shown, html=paragraphs(hello, shown.html))


async def show_version(asked: ChatRequest, zuno: Zuno) -> Reply:
    return Reply(f"{bold('zuno')} {read_version()}")


async def show_service(asked: ChatRequest, zuno: Zuno) -> Reply:
    return render(await zuno.status())


async def show_config(asked: ChatRequest, zuno: Zuno) -> Reply:
    view = zuno.config()
    owner = asked.role is Role.OWNER
    facts = join(
        fact("home", view.home) if owner else "",
        fact("default chain", view.chain),
        fact("market", view.market if view.market == "live" else f"{view.market} ({view.recording})"),
        fact("trading with money", "allowed" if view.live else "off"),
    )
    lines = [
        f"{each.name.removeprefix('ZUNO_')}={each.value if owner or not _PRIVATE.search(each.value) else 'set'}"
        for each in view.settings
    ]
    changed = block(lines) if lines else text("every setting has its default")
    return Reply(paragraphs(bold("Settings"), facts, changed, text("They are changed where zuno runs, not here.")))


async def show_status(asked: ChatRequest, zuno: Zuno) -> Reply:
    desk, words = _open_account(asked, zuno)
    if words not in ((), (_TABLE,)):
        raise UsageError("Write `/status [table] [live|demo]`.")
    view = await desk.positions()
    return render_document(select_columns(view.to_document(), SHORT_COLUMNS)) if words else render(view)


async def show_trades(asked: ChatRequest, zuno: Zuno) -> Reply:
    desk, words = _open_account(asked, zuno)
    return render(await desk.trades(_read_count(words, "/trades [N] [live|demo]", TRADES)))


async def show_performance(asked: ChatRequest, zuno: Zuno) -> Reply:
    view, picture = await open_account(asked, zuno, "/performance [live|demo]").performance()
    return replace(render(view), photo=picture)


async def show_profit(asked: ChatRequest, zuno: Zuno) -> Reply:
    desk, words = _open_account(asked, zuno)
    if len(words) > 1:
        raise UsageError("Write `/profit [day|week|month|symbol|exit|side|sleeve] [live|demo]`.")
    return render(await desk.profit(words[0] if words else None))


async def show_mandate(asked: ChatRequest, zuno: Zuno) -> Reply:
    if asked.words == ("lp",):
        return render(await zuno.mandates().show())
    name = read_account(asked, "/mandate [lp|live|demo]")
    return render(await zuno.account(name or LIVE_ACCOUNT).mandate())


async def pause(asked: ChatRequest, zuno: Zuno) -> Reply:
    if asked.words == ("lp",):
        return render(await zuno.mandates().pause())
    return render(await zuno.account(read_account(asked, "/pause [lp|live|demo]")).pause())


async def show_count(asked: ChatRequest, zuno: Zuno) -> Reply:
    view = await open_account(asked, zuno, "/count [live|demo]").status()
    counts = join(
        fact("open positions", str(view.open_trades)),
        fact("open orders", str(view.open_orders)),
        fact("closed trades", str(view.closed_trades)),
    )
    return Reply(join(f"{bold('Count')} · {text(view.label)}", counts))


async def show_logs(asked: ChatRequest, zuno: Zuno) -> Reply:
    """A viewer gets the first line of each entry: a traceback is of files."""
    view = await zuno.logs().show(_read_count(asked.words, "/logs [N]", LOG_LINES))
    if asked.role is not Role.OWNER:
        home = zuno.config().home
        shown = (_PRIVATE.sub("…", line.text.split("\n")[0].replace(home, "/home")) for line in view.lines)
        lines = tuple(line.model_copy(update={"text": each}) for line, each in zip(view.lines, shown, strict=True))
        view = view.model_copy(update={"file": "", "lines": lines})
    return render(view)


async def show_mode(asked: ChatRequest, zuno: Zuno) -> Reply:
    """A mode is chosen with each analysis, and by `zuno trade start`; there is nothing to switch here."""
    lines = [fact(mode, "candles of " + ", ".join(mode.timeframes)) for mode in Mode]
    choose = f"Choose one with the question: {command('/analyze BTC position')}"
    return Reply(paragraphs(bold("Modes"), join(*lines), text(f"Default: {Mode.SWING}."), choose))


def _open_account(asked: ChatRequest, zuno: Zuno) -> tuple[AccountDesk, tuple[str, ...]]:
    words, name = take_account(asked.words)
    return zuno.account(name), words


def _read_count(words: tuple[str, ...], usage: str, default: int) -> int:
    if not words:
        return default
    if len(words) > 1 or not (words[0].isascii() and words[0].isdigit()) or not 1 <= int(words[0]) <= MOST_LINES:
        raise UsageError(f"Write `{usage}`; N is at most {MOST_LINES}.")
    return int(words[0])


def _ask_account(
    name: str,
    description: str,
    ask: Callable[[Zuno, str | None], Awaitable[View]],
    level: Level = Level.LOOK,
) -> Command:
    """A command that nothing but an account may follow."""

    async def answer(asked: ChatRequest, zuno: Zuno) -> Reply:
        return render(await ask(zuno, read_account(asked, f"/{name} [live|demo]")))

    return Command(name, "[live|demo]", description, level, answer)


_PAUSE: Final = "Open no new trades; open ones keep their stops."
_EVALUATE: Final = "Learn from what was closed since the last time."
_STOP: Final = "End the running desk; stops at Binance stay."
_RIGHTS: Final = {"owner": "look, act and confirm", "viewer": "look"}
COMMANDS: Final = (
    Command("start", "", "Show the state; it starts nothing.", Level.LOOK, greet),
    Command("status", "[table] [live|demo]", "Show open trades.", Level.LOOK, show_status),
    Command("trades", "[N] [live|demo]", "List closed trades.", Level.LOOK, show_trades),
    Command("profit", "[GROUP] [live|demo]", "Show the profit of closed trades.", Level.LOOK, show_profit),
    _ask_account("daily", "Show profit by day.", lambda zuno, name: zuno.account(name).profit("day")),
    _ask_account("weekly", "Show profit by week.", lambda zuno, name: zuno.account(name).profit("week")),
    _ask_account("monthly", "Show profit by month.", lambda zuno, name: zuno.account(name).profit("month")),
    _ask_account("stats", "Show profit by exit reason.", lambda zuno, name: zuno.account(name).profit("exit")),
    Command("performance", "[live|demo]", "Draw equity and drawdown.", Level.LOOK, show_performance),
    _ask_account("balance", "Show cash, margin and equity.", lambda zuno, name: zuno.account(name).balance()),
    _ask_account("sleeves", "Show what each sleeve holds and made.", lambda zuno, name: zuno.account(name).sleeves()),
    Command("mandate", "[lp|live|demo]", "Show the mandate.", Level.LOOK, show_mandate),
    Command("count", "[live|demo]", "Count trades and orders.", Level.LOOK, show_count),
    _ask_account("locks", "List what keeps the desk from new trades.", lambda zuno, name: zuno.account(name).locks()),
    _ask_account("evaluate", _EVALUATE, lambda zuno, name: zuno.learning(name).evaluate(), Level.OWNER),
    Command("mode", "", "Show the modes.", Level.LOOK, show_mode),
    Command("logs", "[N]", "Show the newest lines of the log.", Level.LOOK, show_logs),
    Command("show_config", "", "Show the settings, without secrets.", Level.LOOK, show_config),
    Command("version", "", "Show the version.", Level.LOOK, show_version),
    Command("service", "", "Show what runs, and how it is.", Level.OWNER, show_service),
    Command("pause", "[lp|live|demo]", _PAUSE, Level.LOWERS_RISK, pause, ("stopentry",)),
    _ask_account("stop", _STOP, lambda zuno, name: zuno.trade_desk().stop(name), Level.LOWERS_RISK),
)
