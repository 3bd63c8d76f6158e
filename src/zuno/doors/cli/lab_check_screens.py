"""How the lab's checks look on a screen."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, Rows, heading
from zuno.lab.invariance import InvarianceView
from zuno.lab.lookahead import LookaheadView
from zuno.lab.lp.debate_checks import PoolLookaheadView
from zuno.lab.model import CheckView, format_rate
from zuno.lab.noedge import NoEdgeView
from zuno.trading.service.report import format_signed


def show_no_edge(view: NoEdgeView) -> RenderableType:
    claims = Rows("worlds", "judged", "after costs", "95 %", "before costs", "95 %", "opened on it", "record weighs")
    for kind in view.kinds:
        claims.add_row(
            kind.kind,
            f"{kind.judged} of {kind.worlds}",
            *format_rate(kind.net),
            *format_rate(kind.before_costs),
            format_rate(kind.desk)[0],
            format_rate(kind.weighed)[0],
        )
    before, span = format_rate(view.before_costs)
    rate = (
        ""
        if view.false_edge_rate is None or view.ci95 is None
        else (
            f"An edge is claimed after costs in {view.false_edge_rate:.1%} of {view.judged} worlds "
            f"({view.ci95[0]:.1%} to {view.ci95[1]:.1%}), before costs in {before} ({span})."
        )
    )
    trades = Rows("worlds", "cycles", "trades", "mean before costs", "standard error", "mean after costs")
    for kind in view.kinds:
        means = (kind.mean_gross_pct, kind.mean_net_pct)
        before, after = ("" if mean is None else f"{format_signed(mean, 3)} %" for mean in means)
        error = "" if kind.standard_error_pct is None else f"{kind.standard_error_pct:.3f} %"
        trades.add_row(kind.kind, f"{kind.cycles}", f"{kind.trades}", before, error, after)
    return Group(
        heading(f"{view.worlds} of {view.asked} worlds, blocks of {view.origin}, edition {view.edition}, no model"),
        claims,
        Text(""),
        trades,
        Text(""),
        Text(rate),
        Text(view.said, style={True: GOOD, False: BAD, None: QUIET}[view.ok]),
        *_name_report(view),
    )


def show_lookahead(view: LookaheadView) -> RenderableType:
    startups = Rows("history", "decisions differ", "95 %", "rulings differ", "95 %", "most moved indicators")
    for row in view.startups:
        most = ", ".join(f"{drift.indicator} {drift.largest:.1%}" for drift in row.indicators[:3])
        startups.add_row(f"{row.bars:,} bars", *format_rate(row.decisions), *format_rate(row.rulings), most or "none")
    leaks = [
        Text(f"LEAK  seed {leak.seed} {leak.symbol} {leak.mode} {leak.at}: {', '.join(leak.differs)}", style=BAD)
        for leak in view.differences
    ]
    return Group(
        heading(f"{view.origin}: {view.moments} of {view.asked} moments, edition {view.edition}, no model"),
        Text(
            f"{len(view.differences)} leaks: {view.compared} rulings with the future cut off or scrambled, compared by "
            "the bytes of inputs, figures and ruling.",
            style=BAD if leaks else GOOD,
        ),
        *leaks,
        *(_pool_leaks(view.pool) if view.pool else []),
        Text(""),
        startups,
        *_name_report(view),
    )


def _pool_leaks(pool: PoolLookaheadView) -> list[RenderableType]:
    said = (
        f"{pool.leaks} leaks of the LP desk: {pool.compared} debates over {pool.data} with later minutes cut off or "
        f"scrambled, {pool.moments} of {pool.asked} moments, edition {pool.edition}."
    )
    leaks = [Text(f"LEAK  {leak.at}: {', '.join(leak.differs)}", style=BAD) for leak in pool.differences]
    return [Text(said, style=BAD if pool.leaks else GOOD), *leaks]


def show_invariance(view: InvarianceView) -> RenderableType:
    changes = Rows("change", "moments", "decisions flip", "rulings flip", "95 %", "not HOLD: flip", "95 %")
    for row in view.changes:
        rates = (format_rate(row.decisions)[0], *format_rate(row.rulings), *format_rate(row.active))
        changes.add_row(row.change, f"{row.rulings.total}", *rates)
    choices = Rows("LP desk", "moments", "choices flip", "95 %", "new range: flip", "95 %")
    if (pool := view.pool) is not None:
        choices.add_row(pool.change, f"{pool.moments}", *format_rate(pool.choices), *format_rate(pool.ranges))
    flips = Rows("flip", "ruling", "veto", "after the change", "veto")
    for row in view.changes:
        for flip in row.flips:
            place = f"{row.change}: seed {flip.seed} {flip.symbol} {flip.mode} {flip.at}"
            flips.add_row(place, flip.ruling, flip.veto or "", flip.changed, flip.changed_veto or "")
    chosen = () if pool is None else pool.flips
    for moved in chosen:
        flips.add_row(f"LP desk: {moved.at}", moved.choice, "", moved.changed, "")
    return Group(
        heading(f"{view.origin}: {view.moments} of {view.asked} moments, edition {view.edition}, no model"),
        changes,
        *(() if pool is None else (Text(""), choices)),
        Text(""),
        flips if chosen or any(row.flips for row in view.changes) else Text("No ruling flips.", style=GOOD),
        *_name_report(view),
    )


def _name_report(view: CheckView) -> list[RenderableType]:
    return [Text(f"Report {view.report} (zuno lab reports)", style=QUIET)] if view.report else []
