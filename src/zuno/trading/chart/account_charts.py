"""What is drawn of an account: equity, drawdown and closed trades, and how well agents are calibrated."""

from bisect import bisect_right
from collections.abc import Sequence

from zuno.trading.chart.scales import calendar_ticks, moment_text, money_axis, value_axis
from zuno.trading.model.chart import EquityChart, EquityMark, ReliabilityChart, ReliabilityPanel
from zuno.trading.model.trade_events import TradeSummary
from zuno.trading.rules.calibration import EVERY_REGIME, LEAST_OUTCOMES, Reliability
from zuno.trading.rules.equity_lines import CORE, DESK, HOLD, EquityLine
from zuno.trading.rules.performance import drawdown_percents, find_max_drawdown


def describe_equity(
    lines: Sequence[EquityLine],
    closed: Sequence[TradeSummary],
    label: str,
    account: str,
    origin: str,
    *,
    synthetic: bool,
) -> EquityChart:
    """The first line is the account's own, the others stand beside it. `label`: PAPER or LIVE. `ValueError` for fewer
    than two points."""
    curve = lines[0].points if lines else ()
    if len(curve) < 2:
        raise ValueError("a curve has two points or more")
    first, last = curve[0].at, curve[-1].at
    span = max(1, last - first)
    places = tuple((point.at - first) / span for point in curve)
    equity = tuple(float(point.equity) for point in curve)
    falls = tuple(None if percent is None else float(percent) for percent in drawdown_percents(curve))
    beside = tuple((line.name, tuple(float(at.equity) for at in line.points)) for line in lines[1:])
    fall = find_max_drawdown(curve)
    gain = (equity[-1] - equity[0]) / equity[0] * 100 if equity[0] > 0 else 0.0
    wins = sum(trade.net_pnl > 0 for trade in closed)
    depth = "" if fall is None or fall.percent is None else f" · max drawdown {float(fall.percent):.2f} %"
    worth = {trade.trade: curve[bisect_right(curve, trade.closed, key=lambda point: point.at) - 1] for trade in closed}
    return EquityChart(
        title=f"Equity of {account}",
        label=label,
        figures=f"${equity[0]:,.2f} → ${equity[-1]:,.2f} ({gain:+.2f} %){depth} · {len(closed)} trades, {wins} won",
        period=f"{moment_text(first)} to {moment_text(last)} UTC",
        origin=origin,
        synthetic=synthetic,
        places=places,
        equity=equity,
        equity_axis=money_axis([*equity, *(worth for _, line in beside for worth in line)]),
        drawdown=falls,
        drawdown_axis=value_axis([value for value in falls if value is not None], from_zero=True),
        beside=beside,
        legend=" · ".join(_describe_line(line) for line in lines if line.name in (DESK, CORE, HOLD)) if beside else "",
        times=calendar_ticks(first, last),
        closes=tuple(
            EquityMark((trade.closed - first) / span, float(worth[trade.trade].equity), won=trade.net_pnl > 0)
            for trade in closed
            if first <= trade.closed <= last
        ),
    )


def _describe_line(line: EquityLine) -> str:
    fall, sharpe = find_max_drawdown(line.points), line.sharpe
    grown = "" if line.return_pct is None else f" {line.return_pct:+.2f} %"
    depth = "" if fall is None or fall.percent is None else f", fall {fall.percent:.1f} %"
    return f"{line.name}{grown}{depth}, Sharpe {'–' if sharpe is None else f'{sharpe:.2f}'}"


def describe_reliability(
    rows: Sequence[Reliability], label: str, account: str, origin: str, *, synthetic: bool
) -> ReliabilityChart:
    """`label`: PAPER or LIVE."""
    whole = [row for row in rows if row.regime == EVERY_REGIME]
    most = max((row.n for row in whole), default=0)
    verdict = f" · under {LEAST_OUTCOMES} outcomes no verdict is given" if most < LEAST_OUTCOMES else ""
    return ReliabilityChart(
        title=f"Calibration of {account}",
        label=label,
        figures=f"claimed (across) against what came (up); on the diagonal they are equal{verdict}",
        origin=origin,
        synthetic=synthetic,
        panels=tuple(
            ReliabilityPanel(
                title=f"{row.role} ({row.source})",
                figures=f"n {row.n} · Brier {row.brier:.3f}"
                + ("" if row.skill is None else f" · skill {row.skill:+.2f}")
                + f" · ECE {row.ece:.2f}",
                points=row.bins,
                regimes=tuple(
                    (other.regime, other.bins)
                    for other in rows
                    if (other.role, other.source) == (row.role, row.source) and other.regime != EVERY_REGIME
                ),
            )
            for row in whole
        ),
    )
