"""The nouns of one cycle of the trading desk: who speaks, what can be decided, and where it would be done."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from zuno.domain.trading import Mode, Side


class Node(StrEnum):
    """The steps of a cycle, by the names they have on record."""

    COLLECT_DATA = "collect_data"
    CONTEXT_GATHERING = "context_gathering"
    META_AGENT = "meta_agent"
    TRIAGE = "triage"
    LIQUIDITY_EXPERT = "liquidity_expert"
    MICROSTRUCTURE_EXPERT = "microstructure_expert"
    MACRO_EXPERT = "macro_expert"
    GENERATE_CHART = "generate_chart"
    VLM_EXPERT = "vlm_expert"
    BLACKBOARD_SYNTHESIS = "blackboard_synthesis"
    JUDGE_AGENT = "judge_agent"
    RISK_MANAGER = "risk_manager"
    PORTFOLIO_LEVERAGE_GUARD = "portfolio_leverage_guard"
    EXECUTE_TRADE = "execute_trade"
    GENERATE_REPORT = "generate_report"
    DATA_SYNTHESIS = "data_synthesis"


class Expert(StrEnum):
    """Who writes on the blackboard."""

    LIQUIDITY = "liquidity"
    MICROSTRUCTURE = "microstructure"
    MACRO = "macro"
    GEOMETRY = "vlm_geometry"

    @property
    def numeric(self) -> bool:
        """Whether it reads numbers; the other one looks at a picture."""
        return self is not Expert.GEOMETRY


class Call(StrEnum):
    """What the Judge can decide."""

    LONG = "LONG"
    SHORT = "SHORT"
    HOLD = "HOLD"
    CANCEL_AND_CLOSE = "CANCEL_AND_CLOSE"

    @property
    def side(self) -> Side | None:
        """Which way new risk would look; None where there is none."""
        return {Call.LONG: Side.LONG, Call.SHORT: Side.SHORT}.get(self)


class Regime(StrEnum):
    """What kind of market it is."""

    BULL_MOMENTUM = "BULL_MOMENTUM"
    BEAR_MOMENTUM = "BEAR_MOMENTUM"
    RANGE_BOUND = "RANGE_BOUND"
    VOLATILITY_PANIC = "VOLATILITY_PANIC"
    SIDEWAYS_ACCUMULATION = "SIDEWAYS_ACCUMULATION"


class RiskBias(StrEnum):
    AGGRESSIVE = "AGGRESSIVE"
    NEUTRAL = "NEUTRAL"
    CONSERVATIVE = "CONSERVATIVE"


class Signal(StrEnum):
    """Which way the blackboard leans as a whole."""

    BULLISH = "BULLISH"
    BEARISH = "BEARISH"
    NEUTRAL = "NEUTRAL"


class Exchange(StrEnum):
    """Where a leg is carried."""

    BINANCE = "BINANCE"
    """USDⓈ-M futures: both ways, in dollars."""
    UPBIT = "UPBIT"
    """Spot: long only, in won."""

    @property
    def currency(self) -> str:
        return "USD" if self is Exchange.BINANCE else "KRW"


class Target(StrEnum):
    """Where a ruling goes: one exchange, or half to each."""

    BINANCE = "BINANCE"
    UPBIT = "UPBIT"
    SPLIT = "SPLIT"


class Style(StrEnum):
    """How an order would be worked, the cheapest first; the last is for exits alone."""

    PASSIVE_MAKER = "PASSIVE_MAKER"
    SMART_DCA = "SMART_DCA"
    MOMENTUM_SNIPER = "MOMENTUM_SNIPER"
    CASINO_EXIT = "CASINO_EXIT"


CONVICTION: Final[Mapping[Mode, tuple[Expert, Expert, Expert, Expert]]] = {
    Mode.SWING: (Expert.MICROSTRUCTURE, Expert.LIQUIDITY, Expert.MACRO, Expert.GEOMETRY),
    Mode.POSITION: (Expert.MACRO, Expert.LIQUIDITY, Expert.GEOMETRY, Expert.MICROSTRUCTURE),
}
"""Whose word weighs most, first."""
WEIGHTS: Final = (0.4, 0.3, 0.2, 0.1)
"""In the order of conviction."""
LEVERAGE_CAP: Final[Mapping[Mode, int]] = {Mode.SWING: 3, Mode.POSITION: 1}
VALID_MINUTES: Final[Mapping[Mode, int]] = {Mode.SWING: 15, Mode.POSITION: 60}
"""How long a ruling is good for after its as-of."""
DEFAULT_HOLD: Final[Mapping[Mode, str]] = {Mode.SWING: "5d", Mode.POSITION: "6w"}
