"""How the desk's memory is shown to people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import QUIET, Rows, grid, heading, notes_block
from zuno.trading.service.memory_view import (
    ForgottenView,
    LessonsView,
    MemoriesView,
    MemoryView,
    PostMortemView,
    SearchView,
)
from zuno.trading.service.report import format_signed

_NONE = "No trade was learned from yet; `zuno trade evaluate` learns from every trade that has closed."


def show_memories(view: MemoriesView) -> RenderableType:
    if not view.memories:
        return Text(_NONE)
    table = Rows("memory", "closed", "trade", "verdict", "R", "future constraint", spare=("future constraint",))
    for memory in view.memories:
        table.add_row(
            memory.id,
            memory.closed[:16] + "Z",
            f"{memory.side} {memory.symbol}",
            memory.verdict,
            format_signed(memory.r),
            memory.constraint,
        )
    return table


def show_search(view: SearchView) -> RenderableType:
    if not view.memories:
        return Group(Text("Nothing like it is remembered."), *notes_block([view.note] if view.note else []))
    found: list[RenderableType] = []
    for memory in view.memories:
        found += _show_memory(memory)
    found.append(Text(f"from {view.source}", style=QUIET))
    return Group(*found, *notes_block([view.note] if view.note else []))


def _show_memory(memory: MemoryView) -> Sequence[RenderableType]:
    alike = "the most recent" if memory.similarity is None else f"similarity {memory.similarity:.2f}"
    title = f"{memory.id}: {memory.side} {memory.symbol}, closed {memory.closed}"
    facts = grid()
    facts.add_row("outcome", f"{memory.verdict}, {format_signed(memory.r)} R: {memory.outcome}")
    facts.add_row("constraint", memory.constraint)
    facts.add_row("setup", Text(memory.setup, style=QUIET))
    facts.add_row("found by", alike)
    return heading(title), facts


def show_post_mortem(view: PostMortemView) -> RenderableType:
    path = view.path
    facts = grid()
    facts.add_row("SETUP", view.setup)
    facts.add_row("OUTCOME", f"{view.verdict}: {view.outcome}")
    facts.add_row("FUTURE CONSTRAINT", view.constraint)
    touched = "neither stop nor target" if path.first_touch is None else path.first_touch
    facts.add_row("first touch", f"{touched}; closed by {view.exit_reason}")
    facts.add_row("result", f"{format_signed(path.r)} R, {format_signed(path.exit_pct)} % of the entry before costs")
    facts.add_row("MFE, MAE", f"{path.mfe_pct:.2f} % ahead, {path.mae_pct:.2f} % behind, of {path.bars} bars")
    facts.add_row("costs", f"fees {view.fees}, funding {view.funding}; net PnL {view.net_pnl}")
    facts.add_row("held", f"{path.hold_hours:.1f} h, {view.opened} to {view.closed} at {view.exchange}")
    if path.uncovered_hours:
        facts.add_row("not recorded", f"{path.uncovered_hours:.1f} h of it")
    facts.add_row("regime", f"{view.regime or 'not known'}, {view.mode or 'no mode'}")
    facts.add_row("run", view.run_id or "none: opened by hand")
    facts.add_row("written by", f"{view.source} ({view.why_rules})" if view.why_rules else view.source)
    facts.add_row("account", f"{view.account} · {view.market}")
    return Group(heading(f"{view.id}: {view.side} {view.symbol}"), facts)


def show_lessons(view: LessonsView) -> RenderableType:
    if not view.lessons:
        return Text("No lesson yet: one needs five closed trades of alike setups that came out the same way.")
    parts: list[RenderableType] = []
    for lesson in view.lessons:
        facts = grid()
        facts.add_row("lesson", lesson.text)
        facts.add_row("setups", Text(lesson.condition, style=QUIET))
        facts.add_row("cases", ", ".join(lesson.cases))
        if lesson.against:
            facts.add_row("against", ", ".join(lesson.against))
        later = f"{len(lesson.confirmed)} confirmed it, {len(lesson.contradicted)} did not"
        facts.add_row("since then", later + (f": {lesson.review}" if lesson.review else ""))
        facts.add_row("written", f"{lesson.written}, expires {lesson.expires}")
        parts += [heading(f"{lesson.id}: {lesson.side}, {lesson.state} since {lesson.since}"), facts]
    return Group(*parts)


def show_forgotten(view: ForgottenView) -> RenderableType:
    return Text(f"{view.id} is forgotten: nothing recalls it and no lesson is drawn from it any more.")
