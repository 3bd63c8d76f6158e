"""What keeps the desk from taking new risk: protections, each with its reason and the time it ends, and the limits of a
mandate. Exits are never kept back. What cannot be judged counts as hit; what a mandate does not name is not allowed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import accumulate
from typing import Final

from zuno.kernel.canonical import Digest, canonical, digest, to_json
from zuno.kernel.clock import iso
from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from zuno.trading.model.orders import ZERO
from zuno.trading.model.trade_events import ExitReason, LockSet, Mandate, Protection, TradeSummary
from zuno.trading.rules.account import rate_of
from zuno.trading.rules.book_state import RealisedResult

STOPPED: Final = frozenset({ExitReason.STOP, ExitReason.LIQUIDATION})
STORED: Final = frozenset({Protection.DAILY_LOSS, Protection.MAX_DRAWDOWN, Protection.STOPLOSS_GUARD})
"""Written down when they are hit, because they outlast their cause. The others are judged anew each time."""

MANUAL_UNLOCK: Final = frozenset({Protection.KILL_SWITCH, Protection.PAUSED, Protection.RECONCILIATION})
"""Those that stand until somebody lifts them."""

OF_THE_DEBATE: Final = frozenset({Protection.MAX_OPEN_TRADES, Protection.COOLDOWN, Protection.STOPLOSS_GUARD})
"""Those that keep no hedged position back."""

LockKey = tuple[Protection, Symbol | None]


@dataclass(frozen=True, slots=True)
class ProtectionLimits:
    """When a protection is hit, and for how long."""

    max_open_trades: int = 2
    """Symbols in which something is held or being opened."""
    daily_loss_pct: Decimal = Decimal(3)
    """Of the equity, since midnight UTC; until the next."""
    max_drawdown_pct: Decimal = Decimal(10)
    """Below the highest equity of the last `drawdown_days`; for `drawdown_pause_hours` after the last close."""
    drawdown_days: int = 30
    drawdown_pause_hours: int = 48
    max_stops: int = 3
    """Trades that ended at their stop within `stops_hours`; for as long after the last of them."""
    stops_hours: int = 24
    cooldown_minutes: int = 60
    """After a close, of that symbol."""
    stale_seconds: int = 600
    """Since the price of a symbol was true."""


@dataclass(frozen=True, slots=True)
class RiskState:
    now: Millis
    open_symbols: frozenset[Symbol]
    closed: Sequence[TradeSummary]
    """In the order they were closed."""
    results: Sequence[RealisedResult]
    """Every close, part of a close, fee and payment, in the order they were booked."""
    equity_usd: Known[Decimal]
    unrealised_usd: Known[Decimal]
    rates: Mapping[str, Known[Decimal]]
    """How much of a currency a dollar is."""
    price_times: Mapping[Symbol, Known[Millis]]
    """When each symbol's price was true."""
    locks: Sequence[LockSet] = ()
    """As stored, over or not."""
    lifted: Mapping[LockKey, Millis] = field(default_factory=dict)
    """When a protection was lifted last: what was closed before counts no more."""


def active_locks(state: RiskState, limits: ProtectionLimits) -> tuple[LockSet, ...]:
    """Everything that keeps new risk back now: stored locks that are not over, and what is hit at this moment."""
    locks: dict[LockKey, LockSet] = {}
    stored = [lock for lock in state.locks if lock.until is None or lock.until > state.now]
    for lock in (*stored, *triggered_protections(state, limits)):
        known = locks.get((lock.protection, lock.symbol))
        if known is None or _ends(lock) > _ends(known):
            locks[lock.protection, lock.symbol] = lock
    return tuple(locks.values())


def add_kill(locks: tuple[LockSet, ...], killed: str | None, now: Millis) -> tuple[LockSet, ...]:
    """The kill lock of the home among the others. `killed`: why it stands; the account's own log may not have it."""
    if killed is None or any(lock.protection is Protection.KILL_SWITCH for lock in locks):
        return locks
    kill = LockSet(at=now, protection=Protection.KILL_SWITCH, symbol=None, until=None, reason=killed[:600])
    return (*locks, kill)


def find_refusal(symbol: Symbol, locks: Iterable[LockSet]) -> LockSet | None:
    """The lock that refuses new risk in a symbol; of several the one that lasts longest."""
    mine = [lock for lock in locks if lock.symbol in (None, symbol)]
    return max(mine, key=_ends, default=None)


def describe_end(lock: LockSet) -> str:
    """When new risk may be taken again."""
    if lock.until is not None:
        return f"until {iso(lock.until)}"
    if lock.protection is Protection.MAX_OPEN_TRADES:
        return "until all of a symbol is closed"
    if lock.protection is Protection.STALE_DATA:
        return "until a fresh price comes"
    if lock.protection in MANUAL_UNLOCK:
        return "until it is lifted (`zuno trade unlock`)"
    return "until it can be judged"


def describe_lock(lock: LockSet) -> str:
    until = describe_end(lock)
    whom = "" if lock.symbol is None else f" of {lock.symbol}"
    return f"{lock.protection.value}{whom} {until}: {lock.reason}"


def triggered_protections(state: RiskState, limits: ProtectionLimits) -> tuple[LockSet, ...]:
    """The protections that are hit at this moment."""
    locks = [
        _too_many_trades(state, limits),
        _daily_loss(state, limits),
        _drawdown(state, limits),
        _stoploss_guard(state, limits),
        *(_cooldown(state, limits, symbol) for symbol in sorted({summary.symbol for summary in state.closed})),
        *(_stale_price(state, limits, symbol) for symbol in state.price_times),
    ]
    return tuple(lock for lock in locks if lock is not None)


def net_usd(summary: TradeSummary, rates: Mapping[str, Known[Decimal]]) -> Known[Decimal]:
    """What a trade brought, in dollars."""
    rate = rate_of(summary.exchange, rates)
    return rate if isinstance(rate, Missing) else summary.net_pnl / rate


def sum_results_usd(
    results: Sequence[RealisedResult], since: Millis, rates: Mapping[str, Known[Decimal]]
) -> Known[Decimal]:
    """What was booked at or after a moment, in dollars. Read from the end: a long past costs nothing."""
    total = ZERO
    for result in reversed(results):
        if result.at < since:
            break
        rate = rate_of(result.exchange, rates)
        if isinstance(rate, Missing):
            return rate
        total += result.amount / rate
    return total


# -- each protection


def _too_many_trades(state: RiskState, limits: ProtectionLimits) -> LockSet | None:
    """A symbol that is open may be topped up: it is refused for the others alone, by the gate."""
    count = len(state.open_symbols)
    if count < limits.max_open_trades:
        return None
    why = f"{count} of at most {limits.max_open_trades} symbols are held or being opened"
    return _lock(state, Protection.MAX_OPEN_TRADES, None, None, why)


def _daily_loss(state: RiskState, limits: ProtectionLimits) -> LockSet | None:
    midnight = state.now // DAY_MS * DAY_MS
    tomorrow = Millis(midnight + DAY_MS)
    lifted = state.lifted.get((Protection.DAILY_LOSS, None), 0)
    realised = sum_results_usd(state.results, Millis(max(midnight, lifted)), state.rates)
    if isinstance(realised, Missing):
        return _unknown(state, Protection.DAILY_LOSS, realised)
    if isinstance(state.equity_usd, Missing):
        return _unknown(state, Protection.DAILY_LOSS, state.equity_usd)
    if isinstance(state.unrealised_usd, Missing):
        return _unknown(state, Protection.DAILY_LOSS, state.unrealised_usd)
    open_loss = ZERO if lifted >= midnight else min(ZERO, state.unrealised_usd)
    loss = -(realised + open_loss)
    if loss <= 0:
        return None
    before = state.equity_usd + loss
    if before > 0 and 100 * loss < limits.daily_loss_pct * before:
        return None
    share = f"{100 * loss / before:.2f} %" if before > 0 else "all"
    why = f"${loss:,.2f} lost since midnight UTC, {share} of the equity; at most {limits.daily_loss_pct} %"
    return _lock(state, Protection.DAILY_LOSS, None, tomorrow, why)


def _drawdown(state: RiskState, limits: ProtectionLimits) -> LockSet | None:
    lifted = state.lifted.get((Protection.MAX_DRAWDOWN, None), 0)
    closed = _closed_since(state, max(state.now - limits.drawdown_days * DAY_MS, lifted))
    if not closed:
        return None
    until = Millis(closed[-1].closed + limits.drawdown_pause_hours * HOUR_MS)
    if until <= state.now:
        return None
    if isinstance(state.equity_usd, Missing):
        return _unknown(state, Protection.MAX_DRAWDOWN, state.equity_usd)
    nets = [net_usd(summary, state.rates) for summary in closed]
    unknown = next((net for net in nets if isinstance(net, Missing)), None)
    if unknown is not None:
        return _unknown(state, Protection.MAX_DRAWDOWN, unknown)
    peak = _find_peak(state.equity_usd, [net for net in nets if not isinstance(net, Missing)])
    if peak > 0 and 100 * (peak - state.equity_usd) < limits.max_drawdown_pct * peak:
        return None
    share = f"{100 * (peak - state.equity_usd) / peak:.2f} %" if peak > 0 else "all"
    why = f"equity is {share} below its peak of {limits.drawdown_days} days; at most {limits.max_drawdown_pct} %"
    return _lock(state, Protection.MAX_DRAWDOWN, None, until, why)


def _find_peak(equity: Decimal, nets: Sequence[Decimal]) -> Decimal:
    """The highest equity after any of these closes: backwards from what is there now."""
    return max(equity - before for before in accumulate(reversed(nets), initial=ZERO))


def find_drawdown(state: RiskState, limits: ProtectionLimits) -> Known[Decimal]:
    """How far the equity is below its peak of `drawdown_days`, as a share of that."""
    nets = [net_usd(close, state.rates) for close in _closed_since(state, state.now - limits.drawdown_days * DAY_MS)]
    for known in (state.equity_usd, *nets):
        if isinstance(known, Missing):
            return known
    assert not isinstance(state.equity_usd, Missing)
    peak = _find_peak(state.equity_usd, [net for net in nets if not isinstance(net, Missing)])
    return (peak - state.equity_usd) / peak if peak > 0 else Missing("the equity was never above zero")


def _stoploss_guard(state: RiskState, limits: ProtectionLimits) -> LockSet | None:
    lifted = state.lifted.get((Protection.STOPLOSS_GUARD, None), 0)
    since = max(state.now - limits.stops_hours * HOUR_MS, lifted)
    stopped = [summary for summary in _closed_since(state, since) if summary.reason in STOPPED]
    if len(stopped) < limits.max_stops:
        return None
    until = Millis(stopped[-1].closed + limits.stops_hours * HOUR_MS)
    why = f"{len(stopped)} trades ended at their stop within {limits.stops_hours} h"
    return _lock(state, Protection.STOPLOSS_GUARD, None, until, why)


def _cooldown(state: RiskState, limits: ProtectionLimits, symbol: Symbol) -> LockSet | None:
    lifted = state.lifted.get((Protection.COOLDOWN, symbol), 0)
    since = max(state.now - limits.cooldown_minutes * MINUTE_MS, lifted)
    closed = [summary for summary in _closed_since(state, since) if summary.symbol is symbol]
    until = Millis(closed[-1].closed + limits.cooldown_minutes * MINUTE_MS) if closed else state.now
    if until <= state.now:
        return None
    why = f"a trade in {symbol} was closed at {iso(Millis(closed[-1].closed))}"
    return _lock(state, Protection.COOLDOWN, symbol, until, why)


def _stale_price(state: RiskState, limits: ProtectionLimits, symbol: Symbol) -> LockSet | None:
    at = state.price_times[symbol]
    if isinstance(at, Missing):
        return _lock(state, Protection.STALE_DATA, symbol, None, f"no price of {symbol}: {at.reason}")
    age = (state.now - at) // SECOND_MS
    if abs(age) <= limits.stale_seconds:
        return None
    if age < 0:
        why = f"the newest price of {symbol} is {-age} s ahead of the clock: one of them is wrong"
        return _lock(state, Protection.STALE_DATA, symbol, None, why)
    why = f"the newest price of {symbol} is {age} s old; at most {limits.stale_seconds} s"
    return _lock(state, Protection.STALE_DATA, symbol, None, why)


# -- parts


def _closed_since(state: RiskState, since: int) -> list[TradeSummary]:
    """Newest last. Read from the end: a long past costs nothing."""
    closed: list[TradeSummary] = []
    for summary in reversed(state.closed):
        if summary.closed < since:
            break
        closed.append(summary)
    return closed[::-1]


def _unknown(state: RiskState, protection: Protection, missing: Missing) -> LockSet:
    return _lock(state, protection, None, None, f"it cannot be judged: {missing.reason}")


def _lock(
    state: RiskState, protection: Protection, symbol: Symbol | None, until: Millis | None, reason: str
) -> LockSet:
    return LockSet(at=state.now, protection=protection, symbol=symbol, until=until, reason=reason)


def _ends(lock: LockSet) -> float:
    return float("inf") if lock.until is None else lock.until


LONGEST_MANDATE: Final = 30 * DAY_MS


@dataclass(frozen=True, slots=True)
class LiveEntry:
    """New risk that somebody wants to take with money."""

    symbol: Symbol
    exchanges: tuple[Venue, ...]
    margin_usd: Decimal
    margin_today_usd: Decimal
    """Margin of the entries since midnight UTC, without this one, and what is unfilled of earlier ones."""
    lost_today_usd: Decimal
    """Net loss since midnight UTC, and what open positions have lost; below zero is a gain."""
    margin_held_usd: Decimal = Decimal(0)
    """Of the trade that this entry adds to, and of entries in that symbol that wait to be ordered or filled."""
    without_stops: tuple[Venue, ...] = ()
    """Exchanges among them that hold no stop orders."""
    judge_failed: bool = False
    """Rules decided because the Judge's model failed."""


def hash_mandate(mandate: Mandate) -> Digest:
    return digest(canonical(to_json(mandate)))


def check_grant(mandate: Mandate, now: Millis) -> None:
    """`Refused` for a mandate that nobody may grant."""
    if not mandate.symbols or not mandate.venues:
        raise Refused("A mandate names at least one symbol and one exchange.")
    if mandate.expires <= max(now, mandate.granted):
        raise Refused(f"A mandate that ended at {iso(mandate.expires)} allows nothing.")
    if mandate.expires - mandate.granted > LONGEST_MANDATE:
        raise Refused("A mandate lasts 30 days at most; grant it for less, and again when it ends.")
    if mandate.max_margin_per_day_usd < mandate.max_margin_per_trade_usd:
        raise Refused("A day's margin is less than that of one trade; raise the one or lower the other.")


def find_mandate_refusal(mandate: Mandate | None, entry: LiveEntry, now: Millis) -> str | None:
    """Why a mandate does not cover an entry; None where it does."""
    if mandate is None:
        return "no mandate is granted: the desk trades on paper (`zuno trade mandate grant`)"
    if now < mandate.granted or now >= mandate.expires:
        return f"the mandate is good from {iso(mandate.granted)} to {iso(mandate.expires)}"
    if entry.symbol not in mandate.symbols:
        return f"the mandate is for {', '.join(mandate.symbols)}, not for {entry.symbol}"
    for exchange in entry.exchanges:
        if exchange not in mandate.venues:
            return f"the mandate is for {', '.join(mandate.venues)}, not for {exchange}"
    if entry.without_stops and mandate.stops != "watched":
        named = ", ".join(entry.without_stops)
        return f"{named} holds no stop orders, and the mandate wants stops at the exchange (`--stops watched`)"
    if entry.judge_failed and not mandate.judge_fallback:
        return "the Judge's model failed, and the mandate does not let rules decide"
    trade = entry.margin_held_usd + entry.margin_usd
    if trade > mandate.max_margin_per_trade_usd:
        return f"a margin of ${trade:,.2f} is more than ${mandate.max_margin_per_trade_usd:,.2f} per trade"
    day = entry.margin_today_usd + entry.margin_usd
    if day > mandate.max_margin_per_day_usd:
        return f"a margin of ${day:,.2f} today would be more than ${mandate.max_margin_per_day_usd:,.2f} per day"
    if entry.lost_today_usd >= mandate.max_daily_loss_usd:
        return f"${entry.lost_today_usd:,.2f} are lost today; at most ${mandate.max_daily_loss_usd:,.2f}"
    return None
