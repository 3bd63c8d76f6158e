"""Read models as tables for people; colours only where a terminal can show them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from functools import singledispatch

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from zuno.app.archive import PlanDiffView, PlanListView, ReplayView, WhyView
from zuno.app.demo import DemoOpening
from zuno.app.plans import CandidateView, PlanView
from zuno.app.shaping import fee_text
from zuno.app.views import (
    FactView,
    InspectView,
    JournalTailView,
    JournalVerdictView,
    MoveView,
    NodeView,
    PnlView,
    PoolsView,
    PoolView,
    PositionsView,
    PositionView,
    ResetView,
    TermsView,
    View,
)

_GOOD, _BAD, _QUIET = "green", "red", "dim"


def render(view: View) -> None:
    """Print a read model."""
    console().print(_shown(view))


class _Console(Console):
    """Rich ends the process where a pipe breaks; how we end is decided elsewhere."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Where people read. Symbols come from strangers, so nothing in a text is markup."""
    plain = _Console(highlight=False, markup=False, emoji=False)
    # Piped output has no width of its own: give tables room rather than folding them.
    return plain if plain.is_terminal else _Console(highlight=False, markup=False, emoji=False, width=120)


@singledispatch
def _shown(view: View) -> RenderableType:
    raise TypeError(f"no screen for {type(view).__name__}")


@_shown.register
def _(view: PoolsView) -> RenderableType:
    table = _table("pool", "price", "liquidity", "tick", "fee now")
    for pool in view.pools:
        table.add_row(
            pool.label,
            f"{_short(pool.price)} {pool.price_unit}",
            f"{int(pool.liquidity):.4g}",
            str(pool.tick),
            _fee(pool),
        )
    return Group(_title(_at("Pools", view.chain, view.block)), table, *_notes(view.notes))


@_shown.register
def _(view: PositionsView) -> RenderableType:
    if not view.positions and not view.missing:
        if not view.complete:
            return Text(f"The positions of {view.wallet} on {view.chain} could not be listed: {view.note}", style=_BAD)
        return Text(f"No positions of {view.wallet} on {view.chain} at block {view.block}. {view.note}".strip())
    table = _table("id", "pool", "range", "state", "holds", "fees", "worth")
    for one in view.positions:
        table.add_row(
            one.id,
            _pool(one),
            _range(one),
            _state(one),
            _pair(one, fees=False),
            _pair(one, fees=True),
            _worth(one, "\n"),
        )
    notes = [f"position {one.id}: {one.reason}" for one in view.missing]
    title = _title(_at("Positions", view.chain, view.block))
    return Group(title, table, *_notes((*notes, *([view.note] if view.note else []))))


@_shown.register
def _(view: InspectView) -> RenderableType:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style=_QUIET)
    facts.add_column()
    rows: list[tuple[str, RenderableType]] = [
        ("pool", view.pool.label),
        ("pool id", view.pool.id),
        ("owner", view.owner),
        ("range", f"{_range(view, ' – ')} {view.price_unit}  (ticks {view.tick_lower} to {view.tick_upper})"),
        ("price", f"{_short(view.price)} {view.price_unit}  (tick {view.tick})"),
        ("state", _state(view, ", ")),
        ("liquidity", _thousands(view.liquidity)),
        (
            "holds",
            f"{view.amount0_human} {view.pool.currency0.symbol}, {view.amount1_human} {view.pool.currency1.symbol}",
        ),
        ("fees", f"{view.fees0_human} {view.pool.currency0.symbol}, {view.fees1_human} {view.pool.currency1.symbol}"),
        ("worth", _worth(view)),
        ("reference", _fact(view.market.reference_price)),
        ("volatility", _fact(view.market.realized_vol)),
        ("gas", _fact(view.market.gas_price)),
        ("data fee", _fact(view.market.l1_data_fee)),
        ("native", _fact(view.market.native_price)),
    ]
    if view.subscribed:
        rows.append(("warning", Text("this position is subscribed (staked): burning it unsubscribes", style=_BAD)))
    for name, value in rows:
        facts.add_row(name, value)
    return Group(_title(_at(f"Position {view.id}", view.chain, view.block)), facts)


@_shown.register
def _(view: PnlView) -> RenderableType:
    title = (
        f"Where the money went: position {view.id} ({view.pool.label}) on {view.chain},\n"
        f"{_when(view.from_timestamp)} to {_when(view.to_timestamp)}"
    )
    table = _table("", f"in {view.in_token1.token}", f"in {view.in_token0.token}")
    for name, field, sign in _TERM_ROWS:
        values = [_term(terms, field, sign) for terms in (view.in_token1, view.in_token0)]
        table.add_row(
            name, *values, style="bold" if field == "result" else "", end_section=field in {"result", "swap_cost"}
        )
    proof = (
        Text("The terms add up to the result: exact to the last wei.", style=_GOOD)
        if view.exact
        else Text("The terms do not add up: do not trust these figures.", style=_BAD)
    )
    return Group(_title(title), table, proof, *_notes(view.notes))


_TERM_ROWS = (
    ("worth at the start", "nav_start", ""),
    ("put in (net, gas included)", "flows", ""),
    ("worth at the end", "nav_end", ""),
    ("result", "result", ""),
    ("+ fees", "fees", ""),
    ("+ price effect", "price_effect", ""),
    ("− divergence loss", "divergence_loss", "-"),
    ("− gas", "gas", "-"),
    ("− swap cost", "swap_cost", "-"),
    ("unexplained", "residual", ""),
    ("LVR, the benchmark for fees", "lvr", ""),
)


def _term(terms: TermsView, field: str, sign: str) -> Text:
    raw: str = getattr(terms, field)
    text = _short(raw)
    if sign and text != "0":
        text = text[1:] if text.startswith("-") else f"-{text}"
    style = "" if field in {"nav_start", "nav_end", "flows", "lvr"} else _BAD if text.startswith("-") else _GOOD
    return Text(text, style=style if text != "0" else _QUIET, justify="right")


@_shown.register
def _(view: MoveView) -> RenderableType:
    table = _table("", "before", "after")
    table.add_row("reference", _short(view.reference_before), _short(view.reference_after))
    for one in view.pools:
        table.add_row(one.label, _short(one.before), _short(one.after))
    return Group(_title(f"ETH {view.percent} % on {view.chain} (block {view.block}), {view.price_unit}"), table)


@_shown.register
def _(view: ResetView) -> RenderableType:
    return Text(f"A new world of seed {view.seed} on {view.chain}: block {view.block}, {_when(view.timestamp)}.")


@_shown.register
def _(view: NodeView) -> RenderableType:
    if not view.running:
        return Text(view.note or "No devnet is running; `zuno devnet up --background` starts one.")
    return Text(
        f"Devnet at {view.url} (pid {view.pid}), block {view.block}, chain time {_when(view.timestamp or 0)}; "
        f"addresses and the test key are in {view.file}. {view.note}".strip()
    )


@_shown.register
def _(view: JournalVerdictView) -> RenderableType:
    entries = f"{view.entries:,} {'entry' if view.entries == 1 else 'entries'}"
    if view.first_bad is None:
        told = Text(f"The journal is whole: {entries}, each chained to the one before and signed.", style=_GOOD)
    else:
        where = "" if view.first_bad.seq is None else f" at entry {view.first_bad.seq}"
        told = Text(f"The journal is BROKEN{where}: {view.first_bad.reason}. ", style=_BAD)
        told.append(f"{entries} before that hold.", style=_QUIET)
    return Group(told, *_notes(view.notes))


@_shown.register
def _(view: JournalTailView) -> RenderableType:
    if not view.entries:
        return Text("The journal is empty.")
    table = _table("entry", "time", "kind", "request", "by", "hash")
    for one in view.entries:
        table.add_row(str(one.seq), _when(one.at // 1_000), one.kind, one.request_id or "", one.role, one.hash[:12])
    return table


@_shown.register
def _(view: PlanView) -> RenderableType:
    chosen = view.recommended
    style = {"approve": _GOOD, "reject": _BAD}.get(view.verdict, "yellow")
    what = f"{chosen.kind} {_edges(chosen)}".strip()
    head = Text(f"{view.verdict.replace('_', ' ')}: {what}", style=f"bold {style}")
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style=_QUIET)
    facts.add_column()
    rows = [
        ("plan", f"{view.plan_id} ({view.request_id}), {view.kind} on {view.chain} at block {view.block}"),
        (
            "decided by",
            f"{view.decided_by} after {view.rounds} revisions, profile {view.profile}, regime {view.regime}",
        ),
        ("confidence", f"{view.confidence:.2f}"),
        *(("caution", caution) for caution in view.cautions),
        ("pool", chosen.pool.label),
        (
            "puts in",
            f"{_short(chosen.amount0_human)} {chosen.pool.currency0.symbol}, "
            f"{_short(chosen.amount1_human)} {chosen.pool.currency1.symbol}",
        ),
        *((("first", chosen.prep_action),) if chosen.prep_action else ()),
        ("voices", _voices(view)),
    ]
    for name, value in rows:
        facts.add_row(name, value)
    table = _table("", "range", "1×/2×/3× h", "fees", "LVR", "net", "cost", "even", "verdict")
    for one in view.candidates:
        mark = "→ " if one.index == chosen.index else "  "
        table.add_row(
            f"{mark}{one.index} {one.kind}{_where(view, one)}",
            _edges(one, "\n"),
            _buffers(one),
            *(_money(value) for value in (one.carry.fees24h, one.carry.lvr24h, one.carry.net24h, one.carry.cost)),
            "–" if one.carry.breakeven_hours is None else f"{Decimal(one.carry.breakeven_hours):.0f} h",
            Text(one.verdict, style={"accept": _GOOD, "veto": _BAD}.get(one.verdict, "yellow")),
        )
    reasons = [
        f"{one.index} {one.kind}, {one.verdict}: {one.reason}" for one in view.candidates if one.verdict != "accept"
    ]
    units = {one.carry.token for one in view.candidates}
    unit = units.pop() if len(units) == 1 else "the second token of its pool"
    return Group(
        head, facts, Text(f"per 24 h, cost once, in {unit}:", style=_QUIET), table, *_notes(reasons), *_sources(view)
    )


@_shown.register
def _(view: PlanListView) -> RenderableType:
    if not view.plans:
        return Text("No plans yet; `zuno lp recommend rebalance 1` asks for one.")
    table = _table("plan", "when", "for", "verdict", "choice", "decided by", "request")
    for one in view.plans:
        what = f"{one.kind} {one.position_id or ''} on {one.chain}".replace("  ", " ")
        table.add_row(one.plan_id, _when(one.at // 1000), what, one.verdict, one.choice, one.decided_by, one.request_id)
    return table


@_shown.register
def _(view: WhyView) -> RenderableType:
    parts: list[RenderableType] = [_title(f"{view.request_id}, held by {view.code}")]
    for thought in view.transcript:
        line = Text(f"{thought.role:<11}{thought.round}  ", style=_QUIET)
        line.append(thought.text, style="")
        parts.append(line)
    if view.failed is not None:
        parts.append(Text(f"The flow failed: {view.failed}", style=_BAD))
    if view.plan is not None:
        parts.append(_shown(view.plan))
    return Group(*parts)


@_shown.register
def _(view: PlanDiffView) -> RenderableType:
    if not view.changes:
        return Text(f"{view.before} and {view.after} say the same.")
    table = _table("", view.before, view.after)
    for change in view.changes:
        table.add_row(change.what, change.before, change.after)
    return table


@_shown.register
def _(view: ReplayView) -> RenderableType:
    if view.identical:
        told = Text(f"Identical: {view.hash}", style=_GOOD)
    else:
        told = Text(f"NOT identical: {view.hash} then, {view.replayed_hash} now", style=_BAD)
    return Group(
        told, Text(f"decided by {view.code_then}, replayed by {view.code_now}", style=_QUIET), *_notes(view.differences)
    )


def _where(view: PlanView, one: CandidateView) -> str:
    """Only a create has candidates in several pools, and opening nothing happens in none."""
    return f"\n  {one.pool.label}" if view.kind == "create" and one.tick_lower is not None else ""


def _edges(one: CandidateView, between: str = " – ") -> str:
    if one.price_lower is None or one.price_upper is None:
        return ""
    return f"{_short(one.price_lower)}{between}{_short(one.price_upper)}"


def _buffers(one: CandidateView) -> str:
    if one.stress is None:
        return ""
    points = (one.stress.x1, one.stress.x2, one.stress.x3)
    return "/".join(f"{'≥' if point.censored else ''}{point.median_hours}" for point in points)


def _money(value: str | None) -> str:
    return "?" if value is None else _short(value)


def _voices(view: PlanView) -> str:
    """Who spoke: what ran as a fallback says so."""
    counts: dict[str, list[str]] = {}
    for voice in view.voices:
        said = voice.speaker if not voice.model else f"{voice.speaker} {voice.model}"
        why = f" ({voice.why})" if voice.why else ""
        counts.setdefault(said + why, []).append(voice.role)
    known = [Decimal(voice.usd) for voice in view.voices if voice.usd is not None]
    cost = f"; ${sum(known)} spent" if any(known) else ""
    return "; ".join(f"{', '.join(dict.fromkeys(roles))}: {said}" for said, roles in counts.items()) + cost


def _sources(view: PlanView) -> list[Text]:
    lines = []
    for one in view.sources:
        note = f"; {'; '.join(one.notes)}" if one.notes else ""
        about = f"{one.source}, {one.age_seconds} s old" if one.source else "none"
        lines.append(Text(f"{one.feed}: {about}{' STALE' if one.stale else ''}{note}", style=_QUIET))
    return lines


@_shown.register
def _(view: DemoOpening) -> RenderableType:
    return Group(
        _shown(view.pools),
        _shown(view.before),
        _shown(view.move),
        _shown(view.after),
        Text("\nPosition 1 is at its edge. The desk argues:", style=_QUIET),
    )


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style=_QUIET)
    for column in columns:
        table.add_column(column, justify="right" if column.startswith("in ") else "left")
    return table


def _title(text: str) -> Text:
    return Text(text, style="bold")


def _at(what: str, chain: str, block: int) -> str:
    return f"{what} on {chain} at block {block}"


def _range(view: PositionView, between: str = "\n") -> str:
    return f"{_short(view.price_lower)}{between}{_short(view.price_upper)}"


def _state(view: PositionView, between: str = "\n") -> Text:
    if not view.in_range:
        return Text("out of range", style=_BAD)
    return Text(f"in range{between}{Decimal(view.edge_distance_percent):.1f} % to edge", style=_GOOD)


def _pair(view: PositionView, *, fees: bool) -> str:
    amount0, amount1 = (view.fees0_human, view.fees1_human) if fees else (view.amount0_human, view.amount1_human)
    return f"{_short(amount0)} {view.pool.currency0.symbol}\n{_short(amount1)} {view.pool.currency1.symbol}"


def _pool(view: PositionView) -> str:
    return view.pool.label.replace(" ", "\n", 1)


def _worth(view: PositionView, between: str = " ") -> str:
    return f"{_short(view.value_human)}{between}{view.price_unit.split()[0]}"


def _fee(pool: PoolView) -> str:
    note = " (set by its hook)" if pool.dynamic_fee else ""
    return f"{fee_text(pool.lp_fee)}{note}"


def _fact(fact: FactView) -> Text:
    if fact.value is None:
        return Text(f"none: {'; '.join(fact.notes)}", style=_QUIET)
    text = Text(f"{_short(fact.value)} {fact.unit}")
    note = "; ".join((f"{fact.source}, {fact.age_seconds} s old", *fact.notes))
    text.append(f"  ({note})", style=_QUIET)
    if fact.stale:
        text.append("  STALE", style=_BAD)
    return text


def _notes(notes: tuple[str, ...] | list[str]) -> list[Text]:
    return [Text(f"note: {note}", style=_QUIET) for note in notes]


def _short(text: str) -> str:
    """Rounded for eyes, never for sums: two places on large numbers, four significant digits on small ones."""
    number = Decimal(text)
    if not number:
        return "0"
    if abs(number) >= 10**15:
        return f"{number:.4g}"  # an absurd pool has absurd prices; nobody reads thirty digits
    if abs(number) >= 100:
        return f"{number:,.2f}" if "." in text else f"{number:,}"
    rounded = f"{round(number, max(0, 3 - number.adjusted())):f}"
    return rounded.rstrip("0").rstrip(".") if "." in rounded else rounded


def _thousands(text: str) -> str:
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    return sign + (f"{int(digits):,}" if digits.isdigit() else digits)


def _when(timestamp: int) -> str:
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%d %H:%M UTC")
