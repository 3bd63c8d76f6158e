"""Post-mortems of closed trades, as memory holds them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.cycle import JudgeKind, Regime, RegimeFamily
from zuno.trading.model.market import DAY_MS, HOUR_MS, Mode, Side
from zuno.trading.model.memory import PostMortem, RealisedPath, Verdict
from zuno.trading.model.trade_events import ExitReason, TradeSummary

START = Millis(1_767_225_600_000)
ORIGIN = "SYNTHETIC seed 1"
CROWDED = "failed breakout up 4h; funding high; RSI 4h overbought; longs crowded; price under VWAP 4h"
CALM = "structure up 4h; funding neutral; RSI 4h neutral; 4h without a trend; volatility low"


def closed_at(day: float) -> Millis:
    return Millis(START + int(day * DAY_MS))


def post_mortem(
    number: int, setup: str = CROWDED, verdict: Verdict = Verdict.FAILURE, *, day: float | None = None, **changes: Any
) -> PostMortem:
    """Of the trade of that number, closed on that day."""
    at = closed_at(number if day is None else day)
    won = verdict is Verdict.SUCCESS
    r = {Verdict.SUCCESS: 1.5, Verdict.FAILURE: -1.1, Verdict.FLAT: 0.0}[verdict]
    side = changes.get("side", Side.LONG)
    opened = changes.pop("opened", Millis(at - 20 * HOUR_MS))
    reason = changes.pop("reason", ExitReason.TARGET if won else ExitReason.STOP)
    intent = changes.pop("intent", f"int_{number}")
    summary = TradeSummary(
        trade=f"trade_{number}",
        intent=intent,
        decision=f"run_{number:016x}",
        exchange=Venue("BINANCE"),
        symbol=changes.get("symbol", Symbol("BTCUSDT")),
        side=side,
        mode=Mode.SWING,
        opened=opened,
        closed=at,
        quantity=Decimal("0.01"),
        entry=Decimal(60_000),
        exit=Decimal(61_800 if won else 58_800),
        stop=Decimal(58_800),
        target=Decimal(61_800),
        gross_pnl=Decimal(18 if won else -12),
        fees=Decimal("0.6"),
        funding=Decimal(0),
        net_pnl=Decimal("17.4" if won else "-12.6"),
        reason=reason,
        exploration=True,
        judge=JudgeKind.RULES,
        family=RegimeFamily.RANGE,
        edge=0.1,
    )
    path = RealisedPath(
        first_touch="target" if won else "stop",
        mfe_pct=3.0 if won else 0.4,
        mae_pct=0.5 if won else 2.0,
        exit_pct=3.0 if won else -2.0,
        r=r,
        hold_hours=20.0,
        bars=20,
    )
    told: dict[str, Any] = {
        "id": f"pm_{number:04d}",
        "account": f"paper:{ORIGIN}",
        "origin": ORIGIN,
        "symbol": Symbol("BTCUSDT"),
        "side": side,
        "mode": Mode.SWING,
        "regime": Regime.RANGE_BOUND,
        "closed": at,
        "setup": setup,
        "outcome": "The stop was touched first.",
        "constraint": "A LONG in this setup needs another confirmation.",
        "verdict": verdict,
        "path": path,
        "summary": summary,
        "source": "rules",
    }
    return PostMortem(**told | changes)
