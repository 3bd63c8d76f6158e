"""The page of an LP backtest."""

from __future__ import annotations

from zuno.lab.lp.repairs import describe_repairs
from zuno.lab.lp.views import ArmView, LpLabView
from zuno.lab.report_page import (
    Bars,
    Line,
    bar_chart,
    build_page,
    describe_unfinished,
    draw_down,
    format_moment,
    format_span,
    heading,
    interval_chart,
    line_chart,
    paragraph,
    table,
)
from zuno.lp.model.market import HOUR

TERMS = ("fees", "price", "divergence loss", "gas", "swap cost", "models")


def build_lp_page(view: LpLabView, title: str, command: str) -> str:
    return build_page(
        title,
        command,
        [
            *describe_unfinished(view, "arm"),
            paragraph(describe_period(view)),
            paragraph(
                "Every arm begins with half of the capital in each token. Fees, price effect, divergence loss, gas, "
                "swap cost and models add up to the net result; LVR stands beside it. Intervals are 95 %, days "
                "resampled: an interval that holds zero shows nothing."
            ),
            heading("Result"),
            _results(view),
            line_chart("Equity", [Line(arm.arm, _points(view, arm)) for arm in view.arms]),
            line_chart("Drawdown", [Line(arm.arm, draw_down(_points(view, arm))) for arm in view.arms], "%"),
            heading("Where the money went"),
            bar_chart(
                "Attribution",
                TERMS,
                [Bars(arm.arm, _terms(arm)) for arm in view.arms],
            ),
            _costs(view),
            heading("Against holding"),
            interval_chart(
                "Net result less that of holding",
                [(arm.arm, arm.vs_hold.net_pnl_usd, arm.vs_hold.ci95) for arm in view.arms if arm.vs_hold],
            ),
            heading("Two engines"),
            paragraph(
                "Fees of the same positions at the last price: exact (every minute swapped on the integer pool) and "
                "fast (all minutes at once)."
            ),
            _engines(view),
            heading("Data"),
            paragraph(describe_repairs(view.repairs)),
        ],
    )


def describe_period(view: LpLabView) -> str:
    models = ", ".join(view.models) or "none, the agents argue by rules"
    return (
        f"{format_moment(view.since)} to {format_moment(view.until)} UTC, {view.hours} hours; "
        f"{view.capital_usd:,} USD; a decision every {view.every_hours} h; "
        f"ranges of ±{view.half_width_pct:g} %; profile {view.profile}; gas {view.gas_gwei:g} gwei; "
        f"edition {view.edition}; models: {models}."
    )


def _points(view: LpLabView, arm: ArmView) -> list[tuple[int, float]]:
    return [(view.since + HOUR * hour, worth) for hour, worth in enumerate(arm.equity_usd)]


def _terms(arm: ArmView) -> tuple[float, ...]:
    return arm.fees, arm.price_effect, -arm.divergence_loss, -arm.gas, -arm.swap_cost, -arm.model_cost_usd


def _results(view: LpLabView) -> str:
    return table(
        ("arm", "decided by", "net", "95 %", "against hold", "95 % of it", "in range", "moves", "drawdown"),
        [
            (
                arm.arm,
                arm.by,
                f"{arm.net_pnl_usd:+,.2f}",
                format_span(arm.ci95),
                "" if arm.vs_hold is None else f"{arm.vs_hold.net_pnl_usd:+,.2f}",
                "" if arm.vs_hold is None else format_span(arm.vs_hold.ci95),
                f"{arm.time_in_range:.1%}",
                f"{arm.rebalances} of {arm.decisions}",
                f"{arm.max_drawdown:.2%}",
            )
            for arm in view.arms
        ],
        text_columns=2,
    )


def _costs(view: LpLabView) -> str:
    return table(
        (
            "arm",
            "fees",
            "price",
            "divergence loss",
            "gas",
            "swap cost",
            "models",
            "tokens",
            "unanswered",
            "LVR",
            "residual",
        ),
        [
            (
                arm.arm,
                f"{arm.fees:,.2f}",
                f"{arm.price_effect:+,.2f}",
                f"{arm.divergence_loss:,.2f}",
                f"{arm.gas:,.2f}",
                f"{arm.swap_cost:,.2f}",
                f"{arm.model_cost_usd:,.2f}",
                f"{arm.model_tokens:,}",
                f"{arm.unanswered:,}",
                f"{arm.lvr:,.2f}",
                f"{arm.residual:g}",
            )
            for arm in view.arms
        ],
    )


def _engines(view: LpLabView) -> str:
    return table(
        ("arm", "convention", "exact", "fast", "difference"),
        [
            (
                arm.arm,
                fees.convention,
                f"{fees.exact_usd:,.4f}",
                f"{fees.fast_usd:,.4f}",
                "" if fees.difference_pct is None else f"{fees.difference_pct:+.4f} %",
            )
            for arm in view.arms
            if (fees := arm.fast_fees) is not None
        ],
        text_columns=2,
    )
