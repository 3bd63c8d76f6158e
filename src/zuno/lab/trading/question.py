"""What a backtest of the trading desk is asked: which market, which arms, from when to when."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, TypeAlias

from zuno.kernel import arguments
from zuno.kernel.canonical import Digest
from zuno.kernel.clock import iso
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.units import Millis
from zuno.lab.trading.arm_result import PriceSeries, Span
from zuno.lab.trading.arms import AFTER_DEBATE, Arm
from zuno.lab.workers import parse_arms, write_command
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol, parse_symbol
from zuno.trading.model.market import DAY_MS

WARM_UP_MS: Final = 200 * DAY_MS
"""Of the record that is history before the first decision, where a beginning is not given."""


@dataclass(frozen=True, slots=True)
class TradeMarket:
    """A recorded market; wiring opens it."""

    place: str
    folder: str
    """It was imported from; empty: the home's own recording."""
    origin: str
    synthetic: bool
    candles_only: bool
    minutes: bool
    """Whether bars of a minute are recorded, or hours are the shortest."""
    prices: Mapping[Symbol, PriceSeries]
    funded_days: Mapping[Symbol, frozenset[int]]
    """Days of which funding is recorded, counted from the epoch."""
    krw_rate: PriceSeries | None
    """KRW for one dollar, where it is recorded."""
    fingerprint: Digest
    left_out: tuple[str, ...] = ()  # files of the folder that could not be imported, and why


@dataclass(frozen=True, slots=True)
class TradeQuestion:
    folder: str | None
    symbols: tuple[Symbol, ...]
    since: str | None
    until: str | None
    arms: tuple[Arm, ...]
    models: bool = False
    """Whether models argue, or replies of theirs that are kept."""

    @property
    def command(self) -> str:
        span = {"from": self.since, "to": self.until}
        options = {"data": self.folder, "symbols": ",".join(self.symbols), **span, "arms": ",".join(self.arms)}
        return write_command("trade", options, models=self.models)


OpenMarket: TypeAlias = Callable[[str | None], AbstractAsyncContextManager[TradeMarket]]


def choose_span(market: TradeMarket, question: TradeQuestion) -> Span:
    missing = [symbol for symbol in question.symbols if symbol not in market.prices]
    if missing:
        raise Refused(
            f"No hours of {', '.join(missing)} are recorded; `zuno data import` or --data reads some."
            + "".join(f" {file}." for file in market.left_out)
        )
    series = [market.prices[symbol] for symbol in question.symbols]
    first = Millis(max(each.times[0] for each in series))
    last = Millis(min(each.times[-1] for each in series))
    if question.since is None:
        begin = Millis(min(first + WARM_UP_MS, last))
    else:
        begin = arguments.parse_market_moment(question.since, last, last, first)
    end = last if question.until is None else arguments.parse_market_moment(question.until, last, last, first)
    if end - begin < DAY_MS:
        raise UsageError(f"From {iso(begin)} to {iso(end)} is less than a day; give --from and --to further apart.")
    return Span(begin, end)


def read_question(
    folder: str | None,
    symbols: str,
    since: str | None,
    until: str | None,
    arms: str,
    *,
    models: bool = False,
    markets: Sequence[Symbol] = DEFAULT_SYMBOLS,
) -> TradeQuestion:
    """Parse a command's options; `UsageError` names what is wrong."""
    chosen = tuple(dict.fromkeys(parse_symbol(symbol, markets) for symbol in symbols.split(",")))
    compared = parse_arms(arms, tuple(Arm))
    for arm, what in AFTER_DEBATE.items():
        if arm in compared and Arm.DEBATE not in compared:
            raise UsageError(f"The arm {arm} is matched with the debate's {what}: add debate.")
    return TradeQuestion(folder, chosen, since, until, compared, models)
