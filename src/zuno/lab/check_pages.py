"""What the pages of the lab's checks show beneath their title."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zuno.lab.report_page import heading, interval_chart, paragraph, table

if TYPE_CHECKING:
    from zuno.lab.lookahead import LookaheadView
    from zuno.lab.model import RateView
    from zuno.lab.noedge import NoEdgeView


def list_no_edge_sections(view: NoEdgeView) -> list[str]:
    rates = [
        (f"{kind.kind}, {name}", rate)
        for kind in view.kinds
        for name, rate in (("after costs", kind.net), ("before costs", kind.before_costs), ("record", kind.weighed))
    ]
    return [
        paragraph(view.said, "" if view.ok else "warn"),
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
            ("worlds", "judged", "claims", "share", "95 %"),
            [(name, f"{rate.total}", f"{rate.count}", format_rate(rate), format_ends(rate)) for name, rate in rates],
        ),
        interval_chart(
            "Share of worlds", [(name, 100 * (rate.rate or 0.0), _percents(rate)) for name, rate in rates], "%"
        ),
        heading("Trades"),
        table(
            ("worlds", "worlds", "cycles", "trades", "mean before costs", "mean after costs"),
            [
                (
                    kind.kind,
                    f"{kind.worlds}",
                    f"{kind.cycles}",
                    f"{kind.trades}",
                    "" if kind.mean_gross_pct is None else f"{kind.mean_gross_pct:+.3f} %",
                    "" if kind.mean_net_pct is None else f"{kind.mean_net_pct:+.3f} %",
                )
                for kind in view.kinds
            ],
        ),
    ]


def list_lookahead_sections(view: LookaheadView) -> list[str]:
    return [
        paragraph(
            f"{view.leaks} of {view.moments:,} moments differ where the future is cut off or other "
            f"({view.compared:,} rulings compared by the bytes of inputs, figures and ruling).",
            "" if view.ok else "warn",
        ),
        paragraph(f"{view.origin}; edition {view.edition}; agents by rules.", "quiet"),
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
                (
                    f"{row.bars:,}",
                    format_rate(row.decisions),
                    format_ends(row.decisions),
                    format_rate(row.rulings),
                    format_ends(row.rulings),
                    f"{len(row.indicators)}",
                )
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


def format_rate(rate: RateView) -> str:
    return "" if rate.rate is None else f"{rate.rate:.1%}"


def format_ends(rate: RateView) -> str:
    return "" if rate.ci95 is None else f"{rate.ci95[0]:.1%} to {rate.ci95[1]:.1%}"


def _percents(rate: RateView) -> tuple[float, float] | None:
    return None if rate.ci95 is None else (100 * rate.ci95[0], 100 * rate.ci95[1])
