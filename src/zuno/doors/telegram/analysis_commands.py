"""Commands that ask the trading desk for a ruling, and those that show what came of it and what was learned."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from zuno.doors.telegram.commands import ChatRequest, Command, Level
from zuno.doors.telegram.layout import warning
from zuno.doors.telegram.render import render
from zuno.doors.telegram.reply import Attachment, Reply
from zuno.doors.telegram.run_messages import show_experts, show_progress
from zuno.doors.zuno import Zuno
from zuno.kernel.errors import NotFound, UsageError, ZunoError
from zuno.trading.model.cycle import Node
from zuno.trading.model.market import Mode, parse_mode, parse_symbol
from zuno.trading.model.outcome import NodeEvent
from zuno.trading.service.report import Report, Reports

RUN_PREFIX: Final = "run_"
PARTS: Final = ("experts", "page", "replay", "why")
"""Of a report, by the word that follows its run."""


async def analyze(asked: ChatRequest, zuno: Zuno) -> AsyncIterator[Reply]:
    """Follow a cycle in one message, then send its report. Nothing is ordered: the ruling is shown."""
    if not asked.words or len(asked.words) > 2:
        raise UsageError("Write `/analyze SYMBOL [MODE]`, as in `/analyze BTC position`.")
    symbol, mode = parse_symbol(asked.words[0]), parse_mode(asked.words[1] if len(asked.words) > 1 else Mode.SWING)
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
        yield render(await reports.runs())
        return
    part = words.pop() if words and words[-1] in PARTS else None
    if len(words) > 1:
        raise UsageError(f"Write `/report [RUN] [{'|'.join(PARTS)}]`, or `/report list`.")
    run = words[0] if words else await _find_newest_run(reports)
    match part:
        case "replay":
            yield render(await zuno.cycles().replay(run))
        case "why":
            yield render(await reports.why(run))
        case "page":
            report = await _load_report(zuno, run)
            yield Reply("", document=Attachment(f"{report.view.run_id}.html", report.page.encode()))
        case "experts":
            why = await reports.why(run)
            yield render(why) if why.run is None else show_experts(why.run)
        case _:
            yield _show_report(await _load_report(zuno, run))


async def show_why(asked: ChatRequest, zuno: Zuno) -> Reply:
    """Of either desk: a run's id or a plan's tells whose decision it is."""
    if len(asked.words) > 1:
        raise UsageError("Write `/why DECISION`: the id of a run, a plan or a request.")
    reports = Reports(zuno.cycles())
    decision = asked.words[0] if asked.words else await _find_newest_run(reports)
    if decision.startswith(RUN_PREFIX):
        return render(await reports.why(decision))
    return render(await zuno.archive().why(decision))


async def show_memory(asked: ChatRequest, zuno: Zuno) -> Reply:
    memory = zuno.memory()
    match asked.words:
        case ():
            return render(await memory.list())
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
    return replace(render(report.view), photo=report.trade or report.image)


async def _load_report(zuno: Zuno, run: str) -> Report:
    """A run that was cut off is refused, not taken up: `zuno trade resume` does that."""
    if not await zuno.cycles().has_ended(run):
        await zuno.cycles().outcome(run)  # says what is wrong with it
    return await Reports(zuno.cycles()).resume(run, lambda event: None)


async def _find_newest_run(reports: Reports) -> str:
    for run in (await reports.runs()).runs:
        if run.state == "ended":
            return run.run_id
    raise NotFound("No run is on record; `/analyze BTC` makes one.")


COMMANDS = (
    Command(
        "analyze",
        "SYMBOL [MODE]",
        "Run the desk on a symbol and show its ruling; it places no order.",
        Level.OWNER,
        analyze,
        takes_long=True,
    ),
    Command("report", "[RUN] [experts|page|replay|why] | list", "Show a run's report.", Level.LOOK, show_report),
    Command("why", "[DECISION]", "Show the argument behind a run or a plan.", Level.LOOK, show_why),
    Command(
        "memory", "[search WORDS|lessons|ID]", "Show what was learned from closed trades.", Level.LOOK, show_memory
    ),
)
