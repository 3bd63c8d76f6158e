"""How a study looks on a screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, Rows, grid, heading
from zuno.kernel.view import PartialView
from zuno.lab.lp.ablation_page import describe_floor
from zuno.lab.lp.repairs import describe_repairs
from zuno.lab.lp.views import ArmGainView, ArmView, LpAblationView, LpLabView, SweepView, describe_alike
from zuno.lab.memory_service import MemoryStudyView, WorldView
from zuno.lab.model import CalibrationView, CountView, MarketStudyView, StudyView, SymmetryView
from zuno.lab.reports import LabReportsView
from zuno.lab.trading.views import TradeArmView, TradeLabView
from zuno.trading.service.report import format_signed


def show_study(view: StudyView) -> RenderableType:
    return Group(
        heading(f"{view.origin}: {view.moments} of {view.asked} moments, edition {view.edition}, no model"),
        *_list_counts(view),
        *_describe_kinds(view),
        *_describe_symmetry(view.symmetry),
        *_describe_calibration(view.calibration),
        Text(view.power.said),
        *_describe_bars(view, "a whole study of 200 moments or more"),
    )


def _list_counts(view: StudyView) -> Iterator[RenderableType]:
    tables: list[tuple[str, Sequence[CountView]]] = [
        ("Judge decides", view.decisions),
        ("desk rules", view.rulings),
        ("vetoed by", view.vetoes),
        ("regime", view.regimes),
        ("triage", view.triage),
        *((f"rules: {owner}", counts) for owner, counts in view.rules.items()),
    ]
    for title, counts in tables:
        if counts:
            table = Rows(title, "count", "share")
            for row in counts:
                table.add_row(
                    f"{row.name:<28}", f"{row.count:>5}", f"{row.share:>6.1%}", style="" if row.count else QUIET
                )
            yield table
            yield Text("")
    if view.exploration:
        yield Text(f"{view.exploration} rulings are exploration: a quarter of the size, on paper.")


def _describe_kinds(view: StudyView) -> Iterator[RenderableType]:
    facts = grid()
    for kind in view.kinds:
        facts.add_row(kind.kind, f"{kind.moments} moments, {kind.active / kind.moments:.1%} not HOLD")
    facts.add_row("with an open position", f"{view.open_positions} moments, {view.closed} close it")
    yield facts
    yield Text("")


def _describe_symmetry(view: SymmetryView) -> Iterator[RenderableType]:
    chance = "" if view.chance is None else f" (so uneven a split has a chance of {view.chance:.0%})"
    yield Text(f"Judge: {view.long} LONG, {view.short} SHORT{chance}; ruled {view.ruled_long} and {view.ruled_short}.")
    if view.share is None:
        return
    yield Text(f"Mirrored market: {view.mirrored} of {view.compared} rulings mirrored, {view.share:.1%}.")
    if view.differences:
        names = ("difference", "ruling", "mirror", "EV", "EV mirror", "score", "score mirror", "veto", "veto mirror")
        table = Rows(*names, spare=("veto", "veto mirror"))
        for row in view.differences:
            table.add_row(
                f"seed {row.seed} {row.symbol} {row.mode} {row.at}",
                row.ruling,
                row.mirrored,
                _percent(row.ev_pct),
                _percent(row.mirrored_ev_pct),
                format_signed(row.score, 3),
                format_signed(row.mirrored_score, 3),
                row.veto or "",
                row.mirrored_veto or "",
                style=QUIET if row.small else "",
            )
        yield table


def _describe_calibration(view: CalibrationView) -> Iterator[RenderableType]:
    yield Text("")
    if view.fair is None or view.realised is None or view.se is None:
        yield Text("No decision to open was scored.")
        return
    table = Rows("fair rate", "trades", "fair", "realised", "± 1 se")
    for bucket in view.buckets:
        place = f"{bucket.low:.0%} to {bucket.high:.0%}"
        table.add_row(place, f"{bucket.trades}", f"{bucket.fair:.1%}", f"{bucket.realised:.1%}", f"{bucket.se:.1%}")
    table.add_row("all", f"{view.trades}", f"{view.fair:.1%}", f"{view.realised:.1%}", f"{view.se:.1%}")
    yield table
    said, style = ("inside", "") if view.inside else ("OUTSIDE", BAD)
    yield Text(f"The realised rate is {said} the 95 % band of a market without drift.", style=style)


def _describe_bars(view: MarketStudyView, needed: str) -> Iterator[RenderableType]:
    if not view.judged:
        yield Text(f"The bars are not judged: {needed} is needed.", style=QUIET)
    elif view.ok:
        yield Text("Every bar is met.", style=GOOD)
    yield from (Text(f"MISSED  {line}", style=BAD) for line in view.missed)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{format_signed(value)} %"


# -- does memory help?


def show_memory_study(view: MemoryStudyView) -> RenderableType:
    parts: list[RenderableType] = [
        heading(f"{view.origin}: {view.moments} of {view.asked} moments, edition {view.edition}, no model")
    ]
    for world in view.worlds:
        parts += _describe_world(world)
    return Group(*parts, *_describe_bars(view, "a whole study with 50 outcomes of each arm"))


def _describe_world(view: WorldView) -> Iterator[RenderableType]:
    arms = Rows(f"{view.world}: recall", "trades", "failing setup", "paying setup", "hit rate", "mean R")
    for arm in view.arms:
        hits = "" if arm.hit_rate is None else f"{arm.hit_rate:.1%}"
        counts = (f"{count}" for count in (arm.trades, arm.failing_trades, arm.paying_trades))
        arms.add_row(arm.arm, *counts, hits, format_signed(arm.mean_r, 3))
    pairs = Rows("difference", "hit rate", "95 %", "R", "95 %", "R seen at 80 %", "verdict by R")
    for pair in view.pairs:
        hit, r = pair.hit_rate, pair.r
        pairs.add_row(
            f"{pair.first} less {pair.second}",
            "" if hit is None else f"{format_signed(100 * hit.difference, 1)}%",
            "" if hit is None else f"{format_signed(100 * hit.low, 1)}% to {format_signed(100 * hit.high, 1)}%",
            format_signed(None if r is None else r.difference, 3),
            "" if r is None else f"{format_signed(r.low, 3)} to {format_signed(r.high, 3)}",
            "" if r is None else f"{r.detectable:.3f}",
            pair.verdict,
        )
    yield from (arms, Text(""), pairs, Text(""))


def show_lp_lab(view: LpLabView) -> RenderableType:
    first, last = (
        datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M") for moment in (view.since, view.until)
    )
    arms = Rows(
        *("arm", "decided by", "net USD", "95 %", "fees", "price", "divergence", "LVR", "gas", "swaps", "in range"),
        *("moves", "against hold", "95 % of it"),
        spare=("LVR", "gas", "swaps", "decided by", "price"),
    )
    for arm in view.arms:
        against = arm.vs_hold
        arms.add_row(
            arm.arm,
            arm.by,
            format_signed(arm.net_pnl_usd, 2),
            _span(arm.ci95),
            f"{arm.fees:.2f}",
            format_signed(arm.price_effect, 2),
            f"{arm.divergence_loss:.2f}",
            f"{arm.lvr:.2f}",
            f"{arm.gas:.2f}",
            f"{arm.swap_cost:.2f}",
            f"{arm.time_in_range:.0%}",
            f"{arm.rebalances}",
            "" if against is None else format_signed(against.net_pnl_usd, 2),
            "" if against is None else _span(against.ci95),
        )
    engines = Rows("fees by both engines", "convention", "exact", "fast", "difference")
    for arm in view.arms:
        if (fees := arm.fast_fees) is not None:
            gap = "" if fees.difference_pct is None else f"{format_signed(fees.difference_pct, 4)} %"
            engines.add_row(arm.arm, fees.convention, f"{fees.exact_usd:.4f}", f"{fees.fast_usd:.4f}", gap)
    unexplained = [arm.arm for arm in view.arms if arm.residual]
    return Group(
        heading(
            f"{first} to {last} UTC ({view.hours} h), {view.capital_usd:,} USD, decided every {view.every_hours} h"
        ),
        *_list_stop(view),
        arms,
        Text(""),
        engines,
        Text(""),
        *_list_unanswered(view.arms),
        Text(describe_repairs(view.repairs), style=QUIET),
        Text(f"UNEXPLAINED  {', '.join(unexplained)}", style=BAD)
        if unexplained
        else Text("Every arm's result is explained by its terms to the last unit.", style=GOOD),
    )


def show_lp_ablation(view: LpAblationView) -> RenderableType:
    gains = Rows(
        *("arm", "decided by", "moved", "net", "debate gains", "95 %", "p (Holm)", "better", "worse", "verdict"),
        *("bull", "bear", "sideways"),
        spare=("bull", "bear", "sideways", "decided by"),
    )
    for arm in view.arms:
        gains.add_row(*_gain_cells(arm))
    skipped = Rows("not run", "why")
    for row in view.not_run:
        skipped.add_row(row.arm, row.why)
    models = "; ".join(
        f"{model.model}, trained until {model.cutoff or 'an unknown month'}{' (in-sample)' if model.in_sample else ''}"
        for model in view.models
    )
    return Group(
        heading(
            f"{view.episodes} of {view.asked} episodes, {view.horizon_hours} h each, {view.capital_usd:,} USD; "
            f"USD a decision, gas, swaps and models paid"
        ),
        *_list_stop(view),
        gains,
        Text(
            f"Bull, bear and sideways: the same {view.horizon_hours} h that are scored, told afterwards.", style=QUIET
        ),
        Text(""),
        skipped,
        Text(""),
        *_list_unanswered(view.arms),
        Text(f"Noise floor: {describe_floor(view)}.", style=QUIET),
        Text(f"Models: {models or 'none, the agents argued by rules'}.", style=QUIET),
        Text(describe_repairs(view.repairs), style=QUIET),
        Text(view.headline),
    )


def show_sweep(view: SweepView) -> RenderableType:
    table = Rows("range in ticks", "net USD", "against hold", "fees", "in range", "drawdown")
    for row in (*view.best, *view.worst):
        table.add_row(
            f"{row.lower}…{row.upper}",
            format_signed(row.net_pnl_usd, 2),
            format_signed(row.vs_hold_usd, 2),
            f"{row.fees:.2f}",
            f"{row.time_in_range:.0%}",
            f"{row.max_drawdown:.2%}",
        )
    spread = ", ".join(f"{row.share} %: {format_signed(row.vs_hold_usd)}" for row in view.quantiles)
    return Group(
        heading(f"{view.ranges:,} ranges opened once and kept, {view.capital_usd:,} USD: the best and the worst"),
        *_list_stop(view),
        table,
        Text(""),
        Text(f"Against holding, by share of the ranges: {spread}; {view.above_hold:.0%} ended above it."),
        *([Text(alike, style=QUIET)] if (alike := describe_alike(view)) else []),
        Text(f"{view.trials:,} ranges were ever tried here: the best of so many is no forecast.", style=QUIET),
        Text(describe_repairs(view.repairs), style=QUIET),
    )


def _gain_cells(arm: ArmGainView) -> tuple[str, ...]:
    return (
        arm.arm,
        arm.by,
        f"{arm.moved} of {arm.episodes}",
        format_signed(arm.net_usd, 2),
        format_signed(arm.gain_usd, 2),
        "" if arm.ci95 is None else f"{format_signed(arm.ci95[0])} to {format_signed(arm.ci95[1])}",
        "" if arm.p_corrected is None else f"{arm.p_corrected:.3f}",
        "" if arm.better is None else f"{arm.better}",
        "" if arm.worse is None else f"{arm.worse}",
        arm.verdict,
        *(format_signed(regime.gain_usd, 2) for regime in arm.regimes),
        *("" for _ in range(3 - len(arm.regimes))),
    )


def _list_stop(view: PartialView) -> list[Text]:
    return [Text("STOPPED before the end: only what was done by then is counted", style=BAD)] if view.stopped else []


def _list_unanswered(arms: Sequence[ArmView | ArmGainView | TradeArmView]) -> list[Text]:
    return [
        Text(f"UNANSWERED  {arm.arm}: rules answered {arm.unanswered:,} questions to models", style=BAD)
        for arm in arms
        if arm.unanswered
    ]


def _span(ends: tuple[float, float] | None) -> str:
    return "too few days" if ends is None else f"{format_signed(ends[0], 0)} to {format_signed(ends[1], 0)}"


def show_reports(view: LabReportsView) -> RenderableType:
    damaged = [Text(f"{report} is damaged; run its command again.", style=BAD) for report in view.damaged]
    if not view.reports:
        return Group(Text("No report yet; `zuno lab lp` writes one."), *damaged)
    table = Rows("report", "what", "command", spare=("command",))
    for row in view.reports:
        table.add_row(row.id, f"{row.title} (unfinished)" if row.partial else row.title, row.command)
    return Group(table, *damaged, Text(""), Text(f"Pages: {view.folder}/ID.html", style=QUIET))


def show_trade_lab(view: TradeLabView) -> RenderableType:
    arms = Rows(
        *("arm", "net USD", "95 %", "Sharpe", "deflated", "drawdown", "trades", "hits", "mean R", "fees", "funding"),
        *("exposure", "less debate", "95 % of it", "p"),
        spare=("fees", "funding", "exposure", "deflated", "mean R", "p"),
    )
    for arm in view.arms:
        gain = arm.vs_debate
        arms.add_row(
            arm.arm,
            format_signed(arm.net_pnl_usd, 2),
            _span(arm.ci95),
            "" if arm.sharpe is None or arm.ci95 is None else format_signed(arm.sharpe),
            "" if arm.deflated_sharpe is None or arm.ci95 is None else f"{arm.deflated_sharpe:.0%}",
            f"{arm.max_drawdown:.1%}",
            f"{arm.trades} + {arm.open_trades} open" if arm.open_trades else f"{arm.trades}",
            "" if arm.hit_rate is None else f"{arm.hit_rate:.0%}",
            "" if arm.expectancy_r is None else format_signed(arm.expectancy_r),
            f"{arm.fees:.2f}",
            format_signed(arm.funding, 2),
            f"{arm.exposure:.2f}",
            "" if gain is None else format_signed(gain.net_pnl_usd, 2),
            "" if gain is None else _span(gain.ci95),
            "" if gain is None or gain.p_holm is None else f"{gain.p_holm:.3f}",
        )
    regimes = Rows("net USD by market", "bull", "bear", "sideways", "flips for better", "for worse")
    for arm in view.arms:
        kinds = (arm.regimes.bull, arm.regimes.bear, arm.regimes.sideways)
        gain = arm.vs_debate if arm.cycles else None  # only a desk decides cycle by cycle
        flips = ("", "") if gain is None else (f"{gain.better}", f"{gain.worse}")
        regimes.add_row(arm.arm, *(format_signed(kind, 2) for kind in kinds), *flips)
    return Group(
        heading(
            f"{', '.join(view.symbols)}, {view.since[:10]} to {view.until[:10]} ({view.days} days), "
            f"{view.capital_usd:,.0f} USD; the market {format_signed(100 * view.market_change, 1)}%"
        ),
        *_list_stop(view),
        arms,
        Text(""),
        regimes,
        Text(""),
        Text(view.headline),
        *(
            Text(
                f"{model.model}: training cutoff {model.cutoff or 'not known'}"
                f"{', in-sample for it' if model.in_sample else ''}",
                style=QUIET,
            )
            for model in view.models
        ),
        Text(
            f"Models: {sum(arm.model_tokens for arm in view.arms):,} tokens, "
            f"{sum(arm.model_cost_usd for arm in view.arms):,.2f} USD; noise floor: {view.noise_floor_said}"
            f"{'' if view.noise_floor_usd is None else f', {view.noise_floor_usd:,.2f} USD'}.",
            style=QUIET,
        ),
        *_list_unanswered(view.arms),
        *(Text(f"not run: {skipped.arm} ({skipped.reason})", style=QUIET) for skipped in view.not_run),
        *(Text(note, style=QUIET) for note in view.notes),
        Text(
            f"deflated: how probable a true Sharpe ratio above zero is after {view.trials} trials; R: a result as a "
            "multiple of the planned loss.",
            style=QUIET,
        ),
    )
