"""Commands that ask the trading desk for a ruling, and those that show what came of it and what was learned."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from zuno.doors.telegram.commands import ChatRequest, Command, Level
from zuno.doors.telegram.layout import bold, italic, join, paragraphs, text, warning
from zuno.doors.telegram.render import render, render_document
from zuno.doors.telegram.reply import Attachment, Button, Reply
from zuno.doors.zuno import Zuno
from zuno.kernel.errors import NotFound, UsageError, ZunoError
from zuno.kernel.text import plain_text
from zuno.markets.market import parse_symbol
from zuno.trading.model.cycle import Node, NodeEvent
from zuno.trading.model.market import Mode, parse_mode
from zuno.trading.service.report import Report, Reports
from zuno.trading.service.run_view import SPOKE

RUN_PREFIX: Final = "run_"
PARTS: Final = ("experts", "page", "replay", "why")
"""Of a report, by the word that follows its run."""
MOST_RUNS: Final = 10
MOST_MEMORIES: Final = 8
_NOTE_CHARS: Final = 80
_MARKS: Final = {"waits": "⏳", "speaks": "✓", "done": "✓", "skipped": "–"}


async def analyze(asked: ChatRequest, zuno: Zuno) -> AsyncIterator[Reply]:
    """Follow a cycle in one message, then send its report. Nothing is ordered: the ruling is shown."""
    if not asked.words or len(asked.words) > 2:
        raise UsageError("Write `/analyze SYMBOL [MODE]`, as in `/analyze BTC position`.")
    symbol = parse_symbol(asked.words[0], zuno.markets)
    mode = parse_mode(asked.words[1] if len(asked.words) > 1 else Mode.SWING)
    heard: dict[Node, NodeEvent] = {}
    message = asked.live.follow()

    def hear(event: NodeEvent) -> None:
        heard[event.node] = event
        message.show(show_progress(symbol, mode, heard))

    message.show(show_progress(symbol, mode, heard))
    try:
        report = await Reports(zuno.cycles()).run(symbol, mode, None, hear)
    except ZunoError as error:
        await message.finish(f"{show_progress(symbol, mode, heard, over=True)}\n{warning(str(error))}")
        raise
    yield _show_report(report)
    await message.finish(show_progress(symbol, mode, heard, over=True))


async def show_report(asked: ChatRequest, zuno: Zuno) -> AsyncIterator[Reply]:
    """The newest run, one by its id, the list of them, or a part of a report."""
    words = list(asked.words)
    reports = Reports(zuno.cycles())
    if words == ["list"]:
        yield render(await zuno.cycles().runs(MOST_RUNS))
        return
    part = words.pop() if words and words[-1] in PARTS else None
    if len(words) > 1:
        raise UsageError(f"Write `/report [RUN] [{'|'.join(PARTS)}]`, or `/report list`.")
    run = words[0] if words else await _find_newest_run(zuno)
    match part:
        case "replay":
            yield render(await zuno.cycles().replay(run))
        case "why":
            yield await _show_why(zuno, run)
        case "page":
            report = await reports.show(run)
            yield Reply("", document=Attachment(f"{report.view.run_id}.html", report.page.encode()))
        case "experts":
            why = await zuno.cycles().why(run)
            yield render(why) if why.run is None else render_document(why.run.to_experts_document())
        case _:
            yield _show_report(await reports.show(run))


async def show_why(asked: ChatRequest, zuno: Zuno) -> Reply:
    """Of either desk: a run's id or a plan's tells whose decision it is."""
    if len(asked.words) > 1:
        raise UsageError("Write `/why DECISION`: the id of a run, a plan or a request.")
    decision = asked.words[0] if asked.words else await _find_newest_run(zuno)
    if decision.startswith(RUN_PREFIX):
        return await _show_why(zuno, decision)
    return render(await zuno.archive().why(decision))


async def list_markets(asked: ChatRequest, zuno: Zuno) -> Reply:
    return render(await zuno.market_desk().list(search="".join(asked.words)))


async def show_memory(asked: ChatRequest, zuno: Zuno) -> Reply:
    memory = zuno.memory()
    match asked.words:
        case ():
            return render(await memory.list(MOST_MEMORIES))
        case ("lessons",):
            return render(await memory.lessons())
        case ("search", *query) if query:
            return render(await memory.search(" ".join(query)))
        case (id_,) if id_ != "search":
            return render(await memory.show(id_))
        case _:
            raise UsageError("Write `/memory`, `/memory search WORDS`, `/memory lessons` or `/memory ID`.")


def _show_report(report: Report) -> Reply:
    """The chart with the trade drawn in, where something is to be opened, and the card under it."""
    reply = _offer_parts(render_document(report.view.to_summary()), report.view.run_id)
    return replace(reply, photo=report.trade or report.image)


async def _show_why(zuno: Zuno, run: str) -> Reply:
    why = await zuno.cycles().why(run)
    return render(why) if why.run is None else _offer_parts(render(why), why.run_id)


def _offer_parts(reply: Reply, run_id: str) -> Reply:
    parts = (("Experts", "experts"), ("Full page", "page"), ("Replay", "replay"))
    return replace(reply, buttons=(*reply.buttons, *(Button(name, f"/report {run_id} {part}") for name, part in parts)))


def show_progress(symbol: str, mode: str, heard: dict[Node, NodeEvent], *, over: bool = False) -> str:
    """Who waits and who spoke, for a message that is edited."""
    lines = [_progress_line(node, heard[node]) for node in Node if node in heard]
    left = sum(node not in heard for node in Node)
    spent = f"spent ${sum(event.usd or 0.0 for event in heard.values()):.4f}"
    tail = italic(spent if over else f"{left} steps to go · {spent}")
    return paragraphs(bold(f"{'Analysed' if over else 'Analysing'} {symbol}, {mode}"), join(*lines), tail)


def _progress_line(node: Node, event: NodeEvent) -> str:
    who = "" if event.source is None else SPOKE[event.source]
    cost = f"${event.usd:.4f}" if event.usd else ""
    told = plain_text(event.note, _NOTE_CHARS) if event.note and event.source != "deterministic" else ""
    about = ", ".join(part for part in (who, cost, told) if part)
    return f"{_MARKS[event.state]} {text(node.replace('_', ' '))}{f' · {text(about)}' if about else ''}"


async def _find_newest_run(zuno: Zuno) -> str:
    for run in (await zuno.cycles().runs()).runs:
        if run.state == "ended":
            return run.run_id
    raise NotFound("No run is on record; `/analyze BTC` makes one.")


_ANALYZE: Final = "Run the desk on a symbol and show its ruling; it places no order."
COMMANDS = (
    Command("analyze", "SYMBOL [MODE]", _ANALYZE, Level.OWNER, analyze, takes_long=True),
    Command("markets", "[COIN]", "List what venues list, with their rules and fees.", Level.LOOK, list_markets),
    Command("report", "[RUN] [experts|page|replay|why] | list", "Show a run's report.", Level.LOOK, show_report),
    Command("why", "[DECISION]", "Show the argument behind a run or a plan.", Level.LOOK, show_why),
    Command(
        "memory", "[search WORDS|lessons|ID]", "Show what was learned from closed trades.", Level.LOOK, show_memory
    ),
)
