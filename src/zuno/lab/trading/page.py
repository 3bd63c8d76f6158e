"""The page of a backtest of the trading desk."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from zuno.lab.report_page import (
    Bars,
    Line,
    bar_chart,
    draw_down,
    format_span,
    heading,
    interval_chart,
    line_chart,
    paragraph,
    table,
)
from zuno.lab.trading.views import TradeArmView, TradeLabView

DAY: Final = 86_400


def list_trade_sections(view: TradeLabView) -> Iterator[str]:
    if view.stopped:
        yield paragraph("Cut short: arms end where they had come to. --resume goes on.", "warn")
    change = f"{100 * view.market_change:+.1f} %"
    yield paragraph(
        f"{view.origin}. {view.days} days, {view.capital_usd:,.0f} USD at the start; the market changed {change}. "
        f"{', '.join(f'{days} days {kind}' for kind, days in view.regime_days.items())}. Every figure is net of fees, "
        f"slippage, funding and models. Sharpe ratios are deflated by {view.trials} trials of the lab's run log."
    )
    yield paragraph(view.headline)
    floor = "" if view.noise_floor_usd is None else f"{view.noise_floor_usd:,.2f} USD, "
    yield paragraph(f"Noise floor beside every gain: {floor}{view.noise_floor_said}.", "quiet")
    for model in view.models:
        known = "in-sample for it" if model.in_sample else "after its training"
        yield paragraph(f"{model.model}: trained on what was known by {model.cutoff or 'nobody knows when'}, {known}.")
    for note in view.notes:
        yield paragraph(f"{note[0].upper()}{note[1:]}.", "quiet")
    curves = [Line(arm.arm, _points(view, arm)) for arm in view.arms]
    yield heading("Equity and drawdown")
    yield line_chart("Equity at midnight", curves)
    desks = [curve for curve, arm in zip(curves, view.arms, strict=True) if arm.cycles]
    yield line_chart("Equity of the desks alone", desks)
    yield line_chart("Drawdown", [Line(curve.name, draw_down(curve.points)) for curve in curves], "%")
    yield heading("Arms")
    yield table(
        ("arm", "net USD", "95 %", "Sharpe", "deflated", "Sortino", "Calmar", "drawdown", "exposure"),
        (
            (
                arm.arm,
                f"{arm.net_pnl_usd:+,.2f}",
                format_span(arm.ci95),
                _number(arm.sharpe),
                _number(arm.deflated_sharpe),
                _number(arm.sortino),
                _number(arm.calmar),
                f"{arm.max_drawdown:.1%}",
                f"{arm.exposure:.2f}",
            )
            for arm in view.arms
        ),
    )
    yield table(("arm", "who decides"), ((arm.arm, arm.by) for arm in view.arms), text_columns=2)
    yield heading("Trades and costs")
    yield table(
        (
            "arm",
            "trades",
            "open",
            "explorations",
            "hits",
            "profit factor",
            "R",
            "fees",
            "funding",
            "models",
            "unanswered",
        ),
        (
            (
                arm.arm,
                f"{arm.trades}",
                f"{arm.open_trades}",
                f"{arm.exploration}",
                "" if arm.hit_rate is None else f"{arm.hit_rate:.0%}",
                _number(arm.profit_factor),
                _number(arm.expectancy_r),
                f"{arm.fees:,.2f}",
                f"{arm.funding:+,.2f}",
                f"{arm.model_cost_usd:,.2f}",
                f"{arm.unanswered}",
            )
            for arm in view.arms
        ),
    )
    reasons = sorted({reason for arm in view.arms for reason in arm.exits})
    counts = ((arm.arm, *(f"{arm.exits.get(reason, 0)}" for reason in reasons)) for arm in view.arms)
    yield table(("ended by", *(reason.replace("_", " ") for reason in reasons)), counts)
    yield heading("Against the debate")
    compared = [(arm, arm.vs_debate) for arm in view.arms if arm.vs_debate is not None]
    yield interval_chart(
        "Arm less debate, 95 % by blocks of days", [(arm.arm, gain.net_pnl_usd, gain.ci95) for arm, gain in compared]
    )
    yield table(
        ("arm", "less debate, USD", "95 %", "p", "p by Holm", "flips for better", "for worse"),
        (
            (
                arm.arm,
                f"{gain.net_pnl_usd:+,.2f}",
                format_span(gain.ci95),
                _number(gain.p, 3),
                _number(gain.p_holm, 3),
                f"{gain.better}" if arm.cycles else "",
                f"{gain.worse}" if arm.cycles else "",
            )
            for arm, gain in compared
        ),
    )
    if view.random is not None:
        low, high = view.random.middle90_usd
        yield paragraph(
            f"Chance with the same sides, sizes and holds, {view.random.draws:,} draws before funding: mean "
            f"{view.random.mean_usd:+,.2f} USD, nine of ten between {low:+,.2f} and {high:+,.2f}; the debate's "
            f"{view.random.debate_usd:+,.2f} is above {view.random.share_below:.0%} of them."
        )
    yield heading("Bull, bear, sideways")
    names = ("bull", "bear", "sideways")
    yield bar_chart(
        "Net PnL by kind of market",
        names,
        [Bars(arm.arm, (arm.regimes.bull, arm.regimes.bear, arm.regimes.sideways)) for arm in view.arms],
    )
    if view.not_run:
        yield heading("Not run")
        yield table(("arm", "why"), ((skipped.arm, skipped.reason) for skipped in view.not_run), text_columns=2)


def _points(view: TradeLabView, arm: TradeArmView) -> list[tuple[int, float]]:
    begin, end = (round(datetime.fromisoformat(text).timestamp()) for text in (view.since, arm.until))
    first = (begin // DAY + 1) * DAY
    times = [begin, *range(first, end, DAY), end]
    return list(zip(times, arm.equity, strict=False))


def _number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"
