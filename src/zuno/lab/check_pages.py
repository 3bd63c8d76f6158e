"""What the pages of the lab's checks show beneath their title."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zuno.lab.model import RateView, format_rate
from zuno.lab.report_page import heading, interval_chart, paragraph, table

if TYPE_CHECKING:
    from zuno.lab.invariance import InvarianceView
    from zuno.lab.lookahead import LookaheadView
    from zuno.lab.lp.debate_checks import PoolCheckView, PoolInvarianceView, PoolLookaheadView
    from zuno.lab.noedge import NoEdgeView
    from zuno.trading.service.learning_view import TradeCalibrationView, VetoesView


def list_no_edge_sections(view: NoEdgeView) -> list[str]:
    rates = [
        (f"{kind.kind}, {name}", rate)
        for kind in view.kinds
        for name, rate in (("after costs", kind.net), ("before costs", kind.before_costs), ("record", kind.weighed))
    ]
    return [
        paragraph(view.said, "warn" if view.ok is False else ""),
        paragraph(
            f"{view.worlds:,} of {view.asked:,} worlds, {view.judged:,} of them with ten trades or more; blocks of "
            f"{view.origin}; edition {view.edition}; agents by rules.",
            "quiet",
        ),
        paragraph(
            "An edge is claimed where a world's trades made money with a one-sided bootstrap p below 0.05. Nothing can "
            "be foreseen in these markets: before costs one world in twenty makes such a claim by chance."
        ),
        heading("Share of worlds with a claim"),
        table(
            ("market", "judged", "claims", "share", "95 %"),
            [(name, f"{rate.total}", f"{rate.count}", *format_rate(rate)) for name, rate in rates],
        ),
        interval_chart(
            "Share of worlds", [(name, 100 * (rate.rate or 0.0), _percents(rate)) for name, rate in rates], "%"
        ),
        heading("Trades"),
        table(
            ("market", "worlds", "cycles", "trades", "mean before costs", "standard error", "mean after costs"),
            [
                (
                    kind.kind,
                    f"{kind.worlds}",
                    f"{kind.cycles}",
                    f"{kind.trades}",
                    "" if kind.mean_gross_pct is None else f"{kind.mean_gross_pct:+.3f} %",
                    "" if kind.standard_error_pct is None else f"{kind.standard_error_pct:.3f} %",
                    "" if kind.mean_net_pct is None else f"{kind.mean_net_pct:+.3f} %",
                )
                for kind in view.kinds
            ],
        ),
    ]


def list_lookahead_sections(view: LookaheadView) -> list[str]:
    return [
        paragraph(
            f"{len(view.differences)} of {view.moments:,} moments of the trading desk differ where the future is cut "
            f"off or other ({view.compared:,} rulings compared by the bytes of inputs, figures and ruling).",
            "warn" if view.differences else "",
        ),
        paragraph(f"{view.origin}; edition {view.edition}; agents by rules.", "quiet"),
        *(_list_pool_lookahead(view.pool) if view.pool else []),
        *(
            [
                heading("Leaks"),
                table(
                    ("moment", "differs"),
                    [
                        (f"seed {leak.seed} {leak.symbol} {leak.mode} {leak.at}", ", ".join(leak.differs))
                        for leak in view.differences
                    ],
                    text_columns=2,
                ),
            ]
            if view.differences
            else []
        ),
        heading("How much hangs on where the history begins"),
        table(
            ("bars of each timeframe", "decisions that differ", "95 %", "rulings that differ", "95 %", "indicators"),
            [
                (f"{row.bars:,}", *format_rate(row.decisions), *format_rate(row.rulings), f"{len(row.indicators)}")
                for row in view.startups
            ],
        ),
        paragraph(
            "Indicators that differ by more than a thousandth from those of the whole history, the largest first."
        ),
        table(
            ("bars, indicator", "largest difference", "mean difference"),
            [
                (f"{row.bars:,} {drift.indicator}", f"{drift.largest:.2%}", f"{drift.mean:.3%}")
                for row in view.startups
                for drift in row.indicators[:15]
            ],
        ),
    ]


def _list_pool_lookahead(pool: PoolLookaheadView) -> list[str]:
    return [
        paragraph(
            f"{pool.leaks} of {pool.moments:,} moments of the LP desk differ where the pool's later minutes are cut "
            f"off or other ({pool.compared:,} debates compared by the bytes of inputs, ballots and decision).",
            "warn" if pool.leaks else "",
        ),
        paragraph(_describe_pool(pool), "quiet"),
        *(
            [
                table(
                    ("moment", "differs"),
                    [(leak.at, ", ".join(leak.differs)) for leak in pool.differences],
                    text_columns=2,
                )
            ]
            if pool.differences
            else []
        ),
    ]


def _describe_pool(pool: PoolCheckView) -> str:
    return f"{pool.data}, {pool.since} to {pool.until}; edition {pool.edition} of the LP desk; agents by rules."


def list_invariance_sections(view: InvarianceView) -> list[str]:
    return [
        paragraph(
            f"{view.moments:,} of {view.asked:,} moments; {view.origin}; edition {view.edition}; agents by rules.",
            "quiet",
        ),
        heading("Rulings that flip"),
        table(
            ("change", "moments", "decisions flip", "rulings flip", "95 %", "of rulings that are not HOLD", "95 %"),
            [
                (
                    row.change,
                    f"{row.rulings.total}",
                    format_rate(row.decisions)[0],
                    *format_rate(row.rulings),
                    *format_rate(row.active),
                )
                for row in view.changes
            ],
        ),
        interval_chart(
            "Rulings that flip",
            [(row.change, 100 * (row.rulings.rate or 0.0), _percents(row.rulings)) for row in view.changes],
            "%",
        ),
        *(_list_pool_invariance(view.pool) if view.pool else []),
        heading("Flips"),
        table(
            ("change", "moment", "ruling", "veto", "after the change", "veto"),
            [
                (
                    row.change,
                    f"seed {flip.seed} {flip.symbol} {flip.mode} {flip.at}",
                    flip.ruling,
                    flip.veto or "",
                    flip.changed,
                    flip.changed_veto or "",
                )
                for row in view.changes
                for flip in row.flips
            ],
            text_columns=6,
        ),
    ]


def _list_pool_invariance(pool: PoolInvarianceView) -> list[str]:
    return [
        heading("Choices of the LP desk that flip"),
        table(
            ("change", "moments", "choices flip", "95 %", "of choices that take a range", "moments", "95 %"),
            [
                (
                    pool.change,
                    f"{pool.moments}",
                    *format_rate(pool.choices),
                    format_rate(pool.ranges)[0],
                    f"{pool.ranges.total}",
                    format_rate(pool.ranges)[1],
                )
            ],
        ),
        paragraph(_describe_pool(pool), "quiet"),
        *(
            [
                table(
                    ("moment", "choice", "after the change"),
                    [(flip.at, flip.choice, flip.changed) for flip in pool.flips],
                    text_columns=3,
                )
            ]
            if pool.flips
            else []
        ),
    ]


def list_calibration_sections(view: TradeCalibrationView) -> list[str]:
    return [
        paragraph(view.said or f"{view.outcomes} closed trades were scored."),
        paragraph(f"{view.account}; {view.origin}.", "quiet"),
        table(
            ("agent", "by", "regime", "trades", "Brier", "skill", "ECE"),
            [
                (
                    row.role,
                    row.source,
                    row.regime,
                    f"{row.n}",
                    f"{row.brier:.3f}",
                    "" if row.skill is None else f"{row.skill:+.3f}",
                    f"{row.ece:.3f}",
                )
                for row in view.agents
            ],
            text_columns=3,
        ),
        heading("Reliability: what was claimed, and how often it came"),
        table(
            ("agent, regime", "claimed from", "to", "trades", "mean claim", "came"),
            [
                (
                    f"{row.role} ({row.source}), {row.regime}",
                    f"{bin.low:.0%}",
                    f"{bin.high:.0%}",
                    f"{bin.n}",
                    f"{bin.claimed:.1%}",
                    f"{bin.came:.1%}",
                )
                for row in view.agents
                for bin in row.bins
            ],
        ),
    ]


def list_veto_sections(view: VetoesView) -> list[str]:
    return [
        paragraph(view.said or f"{view.outcomes} decisions that were vetoed or cut were scored."),
        paragraph(f"{view.account}; {view.origin}. Above zero is saved, below zero is cost.", "quiet"),
        table(
            ("rule", "owner", "scored", "vetoes", "cuts", "saved", "cost", "total R", "mean R", "error"),
            [
                (
                    row.rule,
                    row.owner,
                    f"{row.n}",
                    f"{row.vetoes}",
                    f"{row.cuts}",
                    f"{row.saved_trades}",
                    f"{row.cost_trades}",
                    f"{row.total_r:+.2f}",
                    f"{row.mean_r:+.3f}",
                    "" if row.error_r is None else f"{row.error_r:.3f}",
                )
                for row in view.rules
            ],
            text_columns=2,
        ),
    ]


def _percents(rate: RateView) -> tuple[float, float] | None:
    return None if rate.ci95 is None else (100 * rate.ci95[0], 100 * rate.ci95[1])
