"""What the trading desk rules without a model at the moments of one market, and how its decisions would have ended."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from zuno.kernel.units import Millis
from zuno.lab.mirror import mirror_account, open_mirror
from zuno.lab.model import MomentResult, RulingSummary, TradeScore
from zuno.lab.moments import Moment, MomentKind, StudyMarket
from zuno.markets.feeds import BINANCE
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.account import Account, Holding, Liquidity
from zuno.trading.model.cycle import Decision, Outcome
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, Candle, Mode, Side, Timeframe, candles
from zuno.trading.ports.series import SeriesStore
from zuno.trading.rules.exits import hold_hours
from zuno.trading.rules.expectancy import trade_prices
from zuno.trading.rules.price_menu import TradePrices
from zuno.trading.rules.trading_book import TradingBook
from zuno.trading.service.runs import Cycles

OpenCycles: TypeAlias = Callable[[SeriesStore, Account, Millis], Cycles]
STARTING_ACCOUNT: Final = TradingBook().to_account()
FILL_MS: Final = DAY_MS
"""How long an entry away from the market is waited for."""
AT_MARKET: Final = 0.0005
"""An entry no further than this share from the first price is filled at once."""


async def study_moment(market: StudyMarket, moment: Moment, open_cycles: OpenCycles) -> MomentResult:
    """A moment ruled as it was, and in the mirror."""
    holding, account = await make_account(market.store, moment)
    outcome = await _run_cycle(market.store, moment, account, open_cycles)
    mirrored: RulingSummary | None = None
    if not account.liquidity and moment.kind is not MomentKind.NO_KRW:  # Upbit takes longs alone
        mirror = await open_mirror(market.store, moment.at)
        mirrored = summarise(await _run_cycle(mirror, moment, mirror_account(account, mirror), open_cycles))
    names = (name for anomaly in outcome.anomalies for name in (anomaly.rule, anomaly.label) if name)
    return MomentResult(
        *moment.place_in(market.seed),
        kind=moment.kind.value,
        holding=holding,
        own=summarise(outcome),
        mirrored=mirrored,
        rules=tuple(dict.fromkeys(change.by.split(" ")[0] for change in outcome.ruling.changes)),
        anomalies=tuple(dict.fromkeys(names)),
        regime=outcome.meta.regime.value,
        exploration=outcome.ruling.card is not None and outcome.ruling.card.exploration,
        trade=await score_decision(market, outcome.decision, moment),
    )


def summarise(outcome: Outcome) -> RulingSummary:
    worth = None if outcome.expectation is None else round(outcome.expectation.ev_pct, 6)
    score = None if outcome.board.synthesis is None else round(outcome.board.synthesis.score, 6)
    decided, ruled = outcome.decision.decision.value, outcome.ruling.decision.value
    return RulingSummary(decided, ruled, outcome.ruling.veto, worth, score)


async def _run_cycle(store: SeriesStore, moment: Moment, account: Account, open_cycles: OpenCycles) -> Outcome:
    cycles = open_cycles(store, account, moment.at)
    return await cycles.run(moment.symbol.value, moment.mode.value, str(moment.at), chart=False)


async def make_account(store: SeriesStore, moment: Moment) -> tuple[str, Account]:
    """An empty account most of the time, else one that makes exits, caps, guards or top-ups apply."""
    at, symbol = moment.at, moment.symbol
    entries = await _read_entries(store, at)

    def position(of: Symbol, side: Side, margin: float, leverage: float) -> Holding:
        return Holding(
            id="pos_study",
            symbol=of,
            exchange=Venue("BINANCE"),
            side=side,
            quantity=margin * leverage / entries[of],
            entry=entries[of],
            leverage=leverage,
            opened=Millis(at - DAY_MS),
        )

    other = next(each for each in DEFAULT_SYMBOLS if each is not symbol)
    cash = STARTING_ACCOUNT.cash
    match moment.number % 10:
        case 3:
            return "long", Account(cash, (position(symbol, Side.LONG, 400, 2),))
        case 4:
            return "short", Account(cash, (position(symbol, Side.SHORT, 400, 2),))
        case 5 | 8:
            return "other", Account(cash, (position(other, Side.LONG, 1_850, 1),))
        case 6 | 9:
            inventory = Liquidity(symbol=symbol, quantity=3_800 / entries[symbol])
            return "heavy", Account(cash, (position(other, Side.SHORT, 900, 3),), liquidity=(inventory,))
        case 7:
            side = Side.LONG if moment.number % 20 == 7 else Side.SHORT
            return side.value, Account(cash, (position(symbol, side, 60, 1),))
        case _:
            return "nothing", STARTING_ACCOUNT


async def _read_entries(store: SeriesStore, at: Millis) -> Mapping[Symbol, float]:
    """The close of a day before, at which whatever is held was opened."""
    closes = {}
    for symbol in DEFAULT_SYMBOLS:
        series = candles(BINANCE, symbol, Timeframe.H1)
        rows = await store.read(series, Millis(at - DAY_MS - 3 * HOUR_MS), Millis(at - DAY_MS), at)
        closes[symbol] = rows[-1].close
    return closes


async def score_decision(market: StudyMarket, decision: Decision, moment: Moment) -> TradeScore | None:
    """None where nothing was to be opened, the entry was not reached, or the market ends before the hold does."""
    side = decision.decision.side
    prices = None if side is None else trade_prices(decision, side)
    if prices is None:
        return None
    hold = hold_hours(decision.hold_duration, Mode(moment.mode)) * HOUR_MS
    if moment.at + hold > market.end:
        return None
    series = candles(BINANCE, moment.symbol, Timeframe.M1)
    until = Millis(min(moment.at + FILL_MS + hold, market.end))
    rows = await market.store.read(series, moment.at, Millis(until - MINUTE_MS), until)
    y = score_trade(prices, rows, hold, market.end)
    if y is None:
        return None
    return TradeScore(prices.side.value, round(prices.fair_odds, 9), y, round(100 * (prices.reward + prices.risk), 9))


def score_trade(prices: TradePrices, rows: tuple[Candle, ...], hold: int, end: int) -> float | None:
    """The score y of a trade over the minutes after its decision. A minute that touches both touched the stop first."""
    if not rows:
        return None
    begin = 0
    if abs(rows[0].open / prices.entry - 1) > AT_MARKET:
        touched = (place for place, row in enumerate(rows, 1) if row.low <= prices.entry <= row.high)
        begin = next(touched, len(rows))  # the minute of the fill itself says nothing of what came after it
    if begin >= len(rows) or rows[begin].at > rows[0].at + FILL_MS or rows[begin].at + hold > end:
        return None
    sign = 1 if prices.side is Side.LONG else -1
    last = prices.entry
    for row in rows[begin:]:
        if row.at >= rows[begin].at + hold:
            break
        worst, best = (row.low, row.high) if sign > 0 else (row.high, row.low)
        if sign * (worst - prices.stop) <= 0:
            return 0.0
        if sign * (best - prices.take) >= 0:
            return 1.0
        last = row.close
    gain = sign * (last / prices.entry - 1)
    return round(min(1.0, max(0.0, (gain + prices.risk) / (prices.reward + prices.risk))), 9)
