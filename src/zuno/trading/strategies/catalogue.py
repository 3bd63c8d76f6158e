"""Strategies that are built in, by the name of their sleeve."""

from collections.abc import Mapping
from typing import Final

from zuno.trading.strategies.cash_carry import CashCarry
from zuno.trading.strategies.port import CoreStrategy
from zuno.trading.strategies.trend import TREND

STRATEGY_EDITION: Final = 1
"""Raised when a strategy gives other targets for the same history."""
STRATEGIES: Final[Mapping[str, CoreStrategy]] = {strategy.name: strategy for strategy in (TREND, CashCarry())}
