"""How the plans of a debate are shown to people."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, Rows, grid, heading, notes_block
from zuno.doors.cli.transcript import thought_line
from zuno.doors.plan_text import (
    candidate_kind,
    candidate_range,
    capital_in,
    capital_verb,
    confidence_text,
    count_text,
    leftover_text,
    opens_nothing,
    regimes_text,
    stress_hours,
    voices_text,
)
from zuno.kernel.numbers_text import short_text, time_text

if TYPE_CHECKING:
    from zuno.kernel.text import Token
    from zuno.lp.service.archive import PlanDiffView, PlanListView, WhyView
    from zuno.lp.service.plan_view import CandidateView, PlanView
    from zuno.lp.service.views import PoolKeyView

_JOINED = {"range": " – "}


def show_plan(view: PlanView) -> RenderableType:
    chosen = view.recommended
    style = {"approve": GOOD, "reject": BAD}.get(view.verdict, "yellow")
    what = f"{candidate_kind(view, chosen)} {candidate_range(chosen)}".strip()
    head = Text(f"{view.verdict.replace('_', ' ')}: {what}", style=f"bold {style}")
    facts = grid()
    rows = [
        ("plan", f"{view.plan_id} ({view.request_id}), {view.kind} on {view.chain} at block {view.block}"),
        (
            "decided by",
            f"{view.decided_by} after {count_text(view.rounds, 'revision')}, "
            f"profile {view.profile}, regime {view.regime}",
        ),
        ("why", view.because),
        ("confidence", confidence_text(view)),
        *(("caution", caution) for caution in view.cautions),
        *((("regimes", regimes_text(view)),) if len(view.regimes) > 1 else ()),
        *(() if view.own_range is None else (("your range", view.own_range),)),
        *(() if opens_nothing(view, chosen) else (("pool", chosen.pool.label),)),
        *((("ticks", f"{chosen.tick_lower} to {chosen.tick_upper}"),) if chosen.tick_lower is not None else ()),
        *(((capital_verb(chosen), capital_in(chosen)),) if chosen.tick_lower is not None else ()),
        *((("before", chosen.prep_action.removesuffix(" first")),) if chosen.prep_action else ()),
        *((("stays home", leftover_text(chosen.leftover)),) if chosen.leftover else ()),
        ("voices", voices_text(view)),
    ]
    for name, value in rows:
        facts.add_row(name, value)
    table = Rows(
        "",
        "range",
        "1×/2×/3× h",
        "fees",
        "LVR",
        "net",
        "cost",
        "worth",
        "even",
        "verdict",
        spare=("fees", "even", "cost"),
        between=_JOINED,
    )
    for candidate in view.candidates:
        mark = "→ " if candidate.index == chosen.index else "  "
        own = " (yours)" if candidate.own else ""
        table.add_row(
            f"{mark}{candidate.index} {candidate_kind(view, candidate)}{own}{_where(view, candidate)}",
            candidate_range(candidate, "\n"),
            stress_hours(candidate),
            *(
                _money(value)
                for value in (
                    candidate.carry.fees24h,
                    candidate.carry.lvr24h,
                    candidate.carry.net24h,
                    candidate.carry.cost,
                    candidate.carry.worth,
                )
            ),
            "–" if candidate.carry.breakeven_hours is None else f"{Decimal(candidate.carry.breakeven_hours):.0f} h",
            Text(candidate.verdict, style={"accept": GOOD, "veto": BAD}.get(candidate.verdict, "yellow")),
        )
    reasons = [
        f"{candidate.index} {candidate_kind(view, candidate)}, {candidate.verdict}: {candidate.reason}"
        for candidate in view.candidates
        if candidate.verdict != "accept"
    ]
    reasons += [
        f"round {candidate.round}: {candidate.kind} "
        f"{short_text(candidate.price_lower)} – {short_text(candidate.price_upper)}"
        f"{f' in {candidate.pool}' if view.kind == 'create' else ''}, {candidate.verdict}: {candidate.reason}"
        for candidate in view.earlier
    ]
    units = {candidate.carry.token for candidate in view.candidates}
    unit = units.pop() if len(units) == 1 else "the second token of its pool"
    return Group(
        head,
        *notes_block(view.computed_notes),
        facts,
        Text(f"per 24 h, cost once, worth over 14 days after cost, in {unit}:", style=QUIET),
        table,
        *notes_block(reasons),
        *_sources(view),
        *_strangers(*(candidate.pool for candidate in view.candidates)),
        *map(thought_line, view.transcript),
    )


def show_plan_list(view: PlanListView) -> RenderableType:
    notes = notes_block(view.notes)
    if not view.plans:
        said = "No plan waits." if notes else "No plans yet; `zuno lp recommend rebalance 1` asks for one."
        return Group(Text(said), *notes)
    table = Rows(
        "plan",
        "when",
        "for",
        "verdict",
        "choice",
        "decided by",
        "state",
        "request",
        spare=("request", "decided by", "when", "choice"),
    )
    for plan in view.plans:
        what = f"{plan.kind} {plan.position_id or ''} on {plan.chain}".replace("  ", " ")
        table.add_row(
            plan.plan_id,
            time_text(plan.at // 1000),
            what,
            plan.verdict or "–",
            plan.choice,
            plan.decided_by,
            "–" if plan.choice == "hold" else plan.state,
            plan.request_id,
        )
    return Group(table, *notes) if notes else table


def show_why(view: WhyView) -> RenderableType:
    parts: list[RenderableType] = [heading(f"{view.request_id}, held by {view.code}")]
    if view.plan is None:
        parts += map(thought_line, view.transcript)
    if view.failed is not None:
        parts.append(Text(f"The flow failed: {view.failed}", style=BAD))
    elif view.seen_by:
        seen = " and the ".join(view.seen_by)
        parts.append(Text(f"As seen by the {seen} of this home; how it ended is with whoever asked."))
    elif view.plan is None:
        parts.append(Text("The debate did not end: nothing was decided.", style=BAD))
    if view.plan is not None:
        parts.append(show_plan(view.plan))
    return Group(*parts)


def show_plan_diff(view: PlanDiffView) -> RenderableType:
    if not view.changes:
        return Text(f"{view.before} and {view.after} say the same.")
    table = Rows("", view.before, view.after)
    for change in view.changes:
        table.add_row(change.what, change.before, change.after)
    return table


def _where(view: PlanView, candidate: CandidateView) -> str:
    """Only a create has candidates in several pools, and opening nothing happens in none."""
    several = view.kind == "create" and not opens_nothing(view, candidate)
    return f"\n  {candidate.pool.label}" if several else ""


def _money(value: str | None) -> str:
    return "?" if value is None else short_text(value)


def _sources(view: PlanView) -> list[Text]:
    lines = []
    for source in view.sources:
        note = f"; {'; '.join(source.notes)}" if source.notes else ""
        about = f"{source.source}, {source.age_seconds} s old" if source.source else "none"
        lines.append(Text(f"{source.feed}: {about}{' STALE' if source.stale else ''}{note}", style=QUIET))
    return lines


def _strangers(*pools: PoolKeyView) -> list[Text]:
    return _warn_unverified(token for pool in pools for token in (pool.currency0, pool.currency1))


def _warn_unverified(shown: Iterable[Token]) -> list[Text]:
    """A line for each token that only its own contract vouches for."""
    tokens = {token.address: token for token in shown}
    return [
        Text(
            f"{token.display_name} is {token.address}: its contract alone gives it this name, so no price is looked up",
            style=BAD,
        )
        for token in tokens.values()
        if not token.verified
    ]
