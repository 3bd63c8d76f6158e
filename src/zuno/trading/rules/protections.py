"""What keeps the desk from taking new risk: protections, each with its reason and the time it ends, and the limits of a
mandate. Exits are never kept back. What cannot be judged counts as hit; what a mandate does not name is not allowed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import accumulate, takewhile
from typing import Final

from zuno.kernel.accounts import PAPER_ACCOUNT, HomeLock
from zuno.kernel.canonical import Digest, canonical, digest, to_json
from zuno.kernel.clock import iso
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.cycle import EvPolicy
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from zuno.trading.model.orders import ZERO
from zuno.trading.model.sleeves import DEBATE
from zuno.trading.model.trade_events import DayMarked, ExitReason, LockSet, Mandate, Protection, TradeSummary
from zuno.trading.rules.account import rate_of
from zuno.trading.rules.book_state import BookState, LedgerAccount, RealisedResult

STOPPED: Final = frozenset({ExitReason.STOP, ExitReason.LIQUIDATION})
STORED: Final = frozenset({Protection.DAILY_LOSS, Protection.MAX_DRAWDOWN, Protection.STOPLOSS_GUARD})
"""Written down when they are hit, because they outlast their cause. The others are judged anew each time."""

MANUAL_UNLOCK: Final = frozenset({Protection.KILL_SWITCH, Protection.PAUSED, Protection.RECONCILIATION})
"""Those that stand until somebody lifts them."""

OF_THE_DEBATE: Final = frozenset({Protection.MAX_OPEN_TRADES, Protection.COOLDOWN, Protection.STOPLOSS_GUARD})
"""Those that keep no other sleeve back."""

LockKey = tuple[Protection, Symbol | None]


@dataclass(frozen=True, slots=True)
class ProtectionLimits:
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
    open_symbols: Collection[Symbol]
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
    day_marks: Sequence[DayMarked] = ()
    """Of an account with sleeves, the newest last."""
    capital_usd: Decimal = ZERO
    """What was put in, less what was taken out."""
    lifted: Mapping[LockKey, Millis] = field(default_factory=dict)
    """When a protection was lifted last: what was closed before counts no more."""


def active_locks(state: RiskState, limits: ProtectionLimits) -> tuple[LockSet, ...]:
    """Stored locks that are not over, and what is hit at this moment."""
    locks: dict[LockKey, LockSet] = {}
    stored = [lock for lock in state.locks if lock.until is None or lock.until > state.now]
    for lock in (*stored, *triggered_protections(state, limits)):
        known = locks.get((lock.protection, lock.symbol))
        if known is None or _ends(lock) > _ends(known):
            locks[lock.protection, lock.symbol] = lock
    return tuple(locks.values())


def add_kill(locks: tuple[LockSet, ...], killed: HomeLock | None, now: Millis) -> tuple[LockSet, ...]:
    """The lock of the home among the others; the account's own log may not have it."""
    if killed is None or any(lock.protection == killed.kind for lock in locks):
        return locks
    lock = LockSet(at=now, protection=Protection(killed.kind), symbol=None, until=None, reason=killed.why[:600])
    return (*locks, lock)


def find_refusal(symbol: Symbol, locks: Iterable[LockSet]) -> LockSet | None:
    """The lock that refuses new risk in a symbol; of several the one that lasts longest."""
    return max((lock for lock in locks if lock.symbol in (None, symbol)), key=_ends, default=None)


def describe_end(lock: LockSet, account: str = PAPER_ACCOUNT) -> str:
    """When new risk may be taken again. `account`: by its short name."""
    if lock.until is not None:
        return f"until {iso(lock.until)}"
    if lock.protection is Protection.RESTORED:
        return "until the home is unlocked (`zuno home unlock`)"
    if lock.protection in MANUAL_UNLOCK:
        return f"until it is lifted (`{name_unlock(account)}`)"
    ends = {Protection.MAX_OPEN_TRADES: "all of a symbol is closed", Protection.STALE_DATA: "a fresh price comes"}
    return f"until {ends.get(lock.protection, 'it can be judged')}"


def name_unlock(account: str) -> str:
    return "zuno trade unlock" + ("" if account == PAPER_ACCOUNT else f" --account {account}")


def describe_lock(lock: LockSet) -> str:
    whom = "" if lock.symbol is None else f" of {lock.symbol}"
    return f"{lock.protection.value}{whom} {describe_end(lock)}: {lock.reason}"


def triggered_protections(state: RiskState, limits: ProtectionLimits) -> tuple[LockSet, ...]:
    locks = [
        _too_many_trades(state, limits),
        _daily_loss(state, limits),
        _drawdown(state, limits),
        _stoploss_guard(state, limits),
        *(_cooldown(state, limits, symbol) for symbol in sorted({summary.symbol for summary in state.closed})),
        *(_stale_price(state, limits, symbol) for symbol in state.price_times),
    ]
    return tuple(lock for lock in locks if lock is not None)


def sum_results_usd(
    results: Sequence[RealisedResult], since: Millis, rates: Mapping[str, Known[Decimal]]
) -> Known[Decimal]:
    """What was booked at or after a moment, in dollars. Read from the end: a long past costs nothing."""
    total = ZERO
    for result in takewhile(lambda result: result.at >= since, reversed(results)):
        rate = rate_of(result.exchange, rates)
        if isinstance(rate, Missing):
            return rate
        total += result.amount / rate
    return total


def sum_capital_usd(book: BookState, rates: Mapping[str, Known[Decimal]]) -> Decimal:
    """What an account was opened with and what its owner paid in since, less what was taken out, in dollars. Money in
    a currency without a rate counts nothing, as in the equity."""
    total = ZERO
    for venue, balances in book.ledger.balances.items():
        if not isinstance(rate := rate_of(venue, rates), Missing):
            total -= (balances[LedgerAccount.CAPITAL] + balances[LedgerAccount.ADJUSTMENTS]) / rate
    return total


# -- each protection


def _too_many_trades(state: RiskState, limits: ProtectionLimits) -> LockSet | None:
    """A symbol that is open may be topped up: it is refused for the others alone, by the gate."""
    count = len(state.open_symbols)
    if count < limits.max_open_trades:
        return None
    why = f"{count} of at most {limits.max_open_trades} symbols are held or being opened"
    return _lock(state, Protection.MAX_OPEN_TRADES, None, None, why)


def find_day_mark(state: RiskState) -> DayMarked | None:
    newest = state.day_marks[-1] if state.day_marks else None
    return newest if newest is not None and newest.at // DAY_MS == state.now // DAY_MS else None


def find_day_loss(state: RiskState, since: int = 0) -> Known[Decimal]:
    """What was lost of the account today, booked or open; below zero is a gain. `since`: what was booked before counts
    no more, and nothing that is open does."""
    midnight = state.now // DAY_MS * DAY_MS
    realised = sum_results_usd(state.results, Millis(max(midnight, since)), state.rates)
    if isinstance(realised, Missing):
        return realised
    if isinstance(state.unrealised_usd, Missing):
        return state.unrealised_usd
    if since >= midnight:
        return -realised
    if (mark := find_day_mark(state)) is not None:
        return mark.unrealised_usd - realised - state.unrealised_usd
    return -realised - min(ZERO, state.unrealised_usd)


def _daily_loss(state: RiskState, limits: ProtectionLimits) -> LockSet | None:
    tomorrow = Millis(state.now // DAY_MS * DAY_MS + DAY_MS)
    loss = find_day_loss(state, state.lifted.get((Protection.DAILY_LOSS, None), 0))
    if isinstance(loss, Missing):
        return _unknown(state, Protection.DAILY_LOSS, loss)
    if isinstance(state.equity_usd, Missing):
        return _unknown(state, Protection.DAILY_LOSS, state.equity_usd)
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
    since = max(state.now - limits.drawdown_days * DAY_MS, lifted)
    moments = [
        *(moment for moment, _, _ in _list_nets(state, since)[-1:]),
        *(mark.at for mark in state.day_marks[-1:] if mark.at > since),
    ]
    if not moments:
        return None
    last = max(moments)
    until = Millis(last + limits.drawdown_pause_hours * HOUR_MS)
    if until <= state.now:
        return None
    fall = _measure_fall(state, since)
    if isinstance(fall, Missing):
        return _unknown(state, Protection.MAX_DRAWDOWN, fall)
    if fall is not None and 100 * fall < limits.max_drawdown_pct:
        return None
    share = "all" if fall is None else f"{100 * fall:.2f} %"
    why = f"equity is {share} below its peak of {limits.drawdown_days} days; at most {limits.max_drawdown_pct} %"
    return _lock(state, Protection.MAX_DRAWDOWN, None, until, why)


def _measure_fall(state: RiskState, since: int) -> Known[Decimal] | None:
    """Of the equity from its peak since a moment, a share of that; None where it was never above zero. The peak is the
    highest after any close or loss of cash, backwards from what is there now, or of any marked day. Money that the
    owner paid in or out is no gain and no loss."""
    equity, nets = state.equity_usd, list[Decimal]()
    if isinstance(equity, Missing):
        return equity
    for _, exchange, net in _list_nets(state, since):
        if isinstance(rate := rate_of(exchange, state.rates), Missing):
            return rate
        nets.append(net / rate)
    tops = [equity - later for later in accumulate(reversed(nets), initial=ZERO)]
    marks = (mark for mark in state.day_marks if mark.at > since)
    peak = max([*tops, *(sum(mark.results_usd.values(), state.capital_usd) for mark in marks)])
    return (peak - equity) / peak if peak > 0 else None


def find_drawdown(state: RiskState, limits: ProtectionLimits) -> Known[Decimal]:
    """How far the equity is below its peak of `drawdown_days`, as a share of that."""
    fall = _measure_fall(state, state.now - limits.drawdown_days * DAY_MS)
    return Missing("the equity was never above zero") if fall is None else fall


def _stoploss_guard(state: RiskState, limits: ProtectionLimits) -> LockSet | None:
    lifted = state.lifted.get((Protection.STOPLOSS_GUARD, None), 0)
    since = max(state.now - limits.stops_hours * HOUR_MS, lifted)
    ended = (summary for summary in _closed_since(state, since) if summary.sleeve == DEBATE)
    stopped = [summary for summary in ended if summary.reason in STOPPED]
    if len(stopped) < limits.max_stops:
        return None
    until = Millis(stopped[-1].closed + limits.stops_hours * HOUR_MS)
    why = f"{len(stopped)} trades ended at their stop within {limits.stops_hours} h"
    return _lock(state, Protection.STOPLOSS_GUARD, None, until, why)


def _cooldown(state: RiskState, limits: ProtectionLimits, symbol: Symbol) -> LockSet | None:
    lifted = state.lifted.get((Protection.COOLDOWN, symbol), 0)
    since = max(state.now - limits.cooldown_minutes * MINUTE_MS, lifted)
    ended = (summary for summary in _closed_since(state, since) if summary.sleeve == DEBATE)
    closed = [summary for summary in ended if summary.symbol is symbol]
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
    why = f"the newest price of {symbol} is {age} s old; at most {limits.stale_seconds} s"
    if age < 0:
        why = f"the newest price of {symbol} is {-age} s ahead of the clock: one of them is wrong"
    return _lock(state, Protection.STALE_DATA, symbol, None, why)


# -- parts


def _closed_since(state: RiskState, since: int) -> list[TradeSummary]:
    """Newest last. Read from the end: a long past costs nothing."""
    return [*takewhile(lambda summary: summary.closed >= since, reversed(state.closed))][::-1]


def _list_nets(state: RiskState, since: int) -> list[tuple[int, Venue, Decimal]]:
    """What closes brought in since a moment, and cash that went missing, in order of time."""
    nets = [(summary.closed, summary.exchange, summary.net_pnl) for summary in _closed_since(state, since)]
    booked = takewhile(lambda result: result.at >= since, reversed(state.results))
    nets += [(result.at, result.exchange, result.amount) for result in booked if result.drift]
    return sorted(nets, key=lambda net: net[0])


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
    """Exchanges among them that hold no stop orders, or none for all of it beside what other sleeves have there."""
    judge_failed: bool = False
    """Rules decided because the Judge's model failed."""
    policy: EvPolicy = "record"
    sleeve: str = DEBATE
    sleeve_share: Decimal = ZERO
    """Of the account's capital, as it is set."""
    sleeve_fall: Known[Decimal] = ZERO
    """Of its equity from its highest, a fraction."""


@dataclass(frozen=True, slots=True)
class SleeveWorth:
    equity_usd: Decimal
    capital_usd: Decimal
    """What it was given, less what was taken from it."""


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
    names = [sleeve.name for sleeve in mandate.sleeves]
    if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
        raise Refused(f"{twice} stands twice among the sleeves of the mandate.")
    try:
        _ = mandate.shares
    except UsageError as error:
        raise Refused(str(error)) from error


def find_sleeve_fall(sleeve: str, worth: SleeveWorth, marks: Iterable[DayMarked]) -> Known[Decimal]:
    """How far a sleeve's equity is below its highest of the marked days, or below what was put in, as a share of that.
    Money that was given or taken since is no gain and no loss."""
    earned = worth.equity_usd - worth.capital_usd
    most = max([ZERO, earned, *(mark.results_usd.get(sleeve, ZERO) for mark in marks)])
    peak = worth.capital_usd + most
    return (most - earned) / peak if peak > 0 else Missing("it has no money")


def find_mandate_refusal(mandate: Mandate | None, entry: LiveEntry, now: Millis) -> str | None:
    """Why a mandate does not cover an entry; None where it does."""
    if mandate is None:
        return "no mandate is granted: the desk trades on paper (`zuno trade mandate grant`)"
    if now < mandate.granted or now >= mandate.expires:
        return f"the mandate is good from {iso(mandate.granted)} to {iso(mandate.expires)}"
    if entry.symbol not in mandate.symbols:
        return f"the mandate is for {', '.join(mandate.symbols)}, not for {entry.symbol}"
    if strange := [exchange for exchange in entry.exchanges if exchange not in mandate.venues]:
        return f"the mandate is for {', '.join(mandate.venues)}, not for {strange[0]}"
    if entry.without_stops and mandate.stops != "watched":
        named = ", ".join(entry.without_stops)
        held = f"{named} holds no stop for all of it, alone or beside what other sleeves have there"
        return f"{held}, and the mandate wants stops at the exchange (`--stops watched`)"
    if entry.judge_failed and not mandate.judge_fallback:
        return "the Judge's model failed, and the mandate does not let rules decide"
    if entry.policy == "seed" != mandate.policy:
        return "it was opened by the Judge's own odds, and the mandate does not name `--policy seed`"
    trade, day = entry.margin_held_usd + entry.margin_usd, entry.margin_today_usd + entry.margin_usd
    if entry.sleeve == DEBATE and trade > mandate.max_margin_per_trade_usd:
        return f"a margin of ${trade:,.2f} is more than ${mandate.max_margin_per_trade_usd:,.2f} per trade"
    if entry.sleeve == DEBATE and day > mandate.max_margin_per_day_usd:
        return f"a margin of ${day:,.2f} today would be more than ${mandate.max_margin_per_day_usd:,.2f} per day"
    if (why := _find_sleeve_refusal(mandate, entry)) is not None:
        return why
    if entry.lost_today_usd >= mandate.max_daily_loss_usd:
        return f"${entry.lost_today_usd:,.2f} are lost today; at most ${mandate.max_daily_loss_usd:,.2f}"
    return None


def _find_sleeve_refusal(mandate: Mandate, entry: LiveEntry) -> str | None:
    """The debate may trade unnamed, bounded by margin. What bounds the others is their share."""
    named = next((sleeve for sleeve in mandate.sleeves if sleeve.name == entry.sleeve), None)
    if named is None:
        return None if entry.sleeve == DEBATE else f"the mandate does not name the sleeve {entry.sleeve}"
    if entry.sleeve_share > named.share:
        return f"{entry.sleeve} has {entry.sleeve_share:.0%} of the account, and the mandate gives it {named.share:.0%}"
    if isinstance(entry.sleeve_fall, Missing):
        return f"how far {entry.sleeve} has fallen is not known: {entry.sleeve_fall.reason}"
    if entry.sleeve_fall >= named.max_drawdown:
        return f"{entry.sleeve} is {entry.sleeve_fall:.1%} below its highest; at most {named.max_drawdown:.0%}"
    return None
