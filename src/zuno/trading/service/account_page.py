"""A trading account at the market's moment, read from its log and marked with what the market says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from difflib import get_close_matches
from typing import Final, Literal

from zuno.kernel.accounts import DEMO_ACCOUNT, LIVE_ACCOUNT, PAPER_ACCOUNT, KillLock, check_account_name
from zuno.kernel.clock import iso
from zuno.kernel.errors import NotFound, ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.learn.evaluator import Evaluation
from zuno.trading.measure.portable import round_digits
from zuno.trading.model.known import Known, Missing, or_none
from zuno.trading.model.market import DAY_MS, SECOND_MS, Timeframe, basis, candles
from zuno.trading.model.orders import ZERO, ExchangeAnswer, to_decimal
from zuno.trading.model.trade_events import AccountOpened, LockSet, account_mode, account_name, paper_account
from zuno.trading.ports.series import SeriesStore, Slice
from zuno.trading.ports.trade_log import TradeLog
from zuno.trading.rules.performance import AccountHistory, AccountLog, Close, current_step, equity_usd
from zuno.trading.rules.protections import ProtectionLimits, RiskState, active_locks, add_kill
from zuno.trading.rules.trading_book import TradingBook
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.paper_book import Inventory, sum_inventory
from zuno.trading.service.prices import NO_PRICES, Prices, read_prices

NO_MARKET: Final = "no market was ever read here: nothing is open"
_FINE_DAYS: Final = 60
"""An account that is younger is drawn by the hour, one of up to four times that by four hours, others by the day."""


@dataclass(frozen=True, slots=True)
class AccountBackends:
    """What an account is read from and acted on with; wiring chooses it."""

    desk: TradingDesk
    store: SeriesStore
    log: AccountLog
    inventory: Inventory
    open_gate: Callable[[str | None], Awaitable[OrderGate]]
    """By the account's name, None: the home's own. The market is read first, so that its end is known."""
    limits: ProtectionLimits
    running: Callable[[str], str | None]
    """The process that trades for an account, where one does."""
    now: Callable[[], Millis]
    """The wall's clock: a mandate is for money, which no recording moves."""
    kill_lock: KillLock
    marks: Callable[[str], Awaitable[Mapping[tuple[Venue, Symbol], Decimal]]] | None = None
    """What an account at exchanges is marked by: their own prices of what it holds."""
    ask: Callable[[str, TradingBook], Awaitable[tuple[ExchangeAnswer, ...]]] | None = None
    """What the exchanges of an account say they hold beside its log, within seconds; None: nobody can be asked."""
    learn: Callable[[OrderGate], Awaitable[Evaluation]] | None = None
    """Learns from what the account of a gate has closed; None: an evaluation does later."""


@dataclass(frozen=True, slots=True)
class AccountPage:
    name: str
    book: AccountHistory
    at: Millis
    prices: Prices
    lp: Mapping[Symbol, Decimal]
    locks: tuple[LockSet, ...]
    notes: tuple[str, ...]
    lp_notes: tuple[str, ...]
    """What is not read of liquidity positions, and why."""
    marks: Mapping[tuple[Venue, Symbol], Decimal] = field(default_factory=dict)
    """Prices that the exchanges themselves say."""
    recorded: bool = False
    """Whether the account is in recorded time: it stands at its own last moment, and the market may go on after it."""
    answers: tuple[ExchangeAnswer, ...] | None = None
    """None: no exchange was asked."""

    @property
    def krw_rate(self) -> Decimal | None:
        rate = or_none(self.prices.krw_rate)
        return None if rate is None else to_decimal(rate)

    def mark(self, symbol: Symbol, exchange: Venue) -> Decimal | None:
        if (exchange, symbol) in self.marks:
            return self.marks[exchange, symbol]
        price = or_none(self.prices.of(symbol, exchange))
        return None if price is None else to_decimal(round_digits(price))

    @property
    def usd_marks(self) -> dict[Symbol, Decimal]:
        found = {symbol: self.mark(symbol, Venue("BINANCE")) for symbol in DEFAULT_SYMBOLS}
        return {symbol: mark for symbol, mark in found.items() if mark is not None}

    def total_equity(self) -> tuple[Decimal | None, str | None]:
        missing = [
            f"{trade.symbol} has no mark"
            for trade in self.book.trades.values()
            if self.mark(trade.symbol, Venue("BINANCE")) is None
        ]
        if missing:
            return None, missing[0]
        return equity_usd(current_step(self.book, self.at), self.usd_marks, self.krw_rate), None

    def unrealised_usd(self) -> Decimal | None:
        total = ZERO
        for trade in self.book.trades.values():
            mark = self.mark(trade.symbol, trade.exchange)
            rate = Decimal(1) if trade.exchange is Venue("BINANCE") else self.krw_rate
            if mark is None or rate is None:
                return None
            total += trade.unrealised_pnl(mark) / rate
        return total

    def risk_state(self) -> RiskState:
        equity, unknown = self.total_equity()
        unrealised = self.unrealised_usd()
        book = self.book
        opening = {tracked.intent.symbol for tracked in book.open_intents.values() if tracked.intent.kind == "open"}
        krw_rate = self.prices.krw_rate
        ages: dict[Symbol, Known[Millis]] = {}
        for symbol in {trade.symbol for trade in book.trades.values()}:
            age = self.prices.ages.get(str(basis(BINANCE, symbol)))
            if age is not None:
                ages[symbol] = Millis(self.at - age * SECOND_MS)
        return RiskState(
            now=self.at,
            open_symbols=frozenset({trade.symbol for trade in book.trades.values()} | opening),
            closed=book.closed,
            results=book.results,
            equity_usd=Missing(unknown or "no mark") if equity is None else equity,
            unrealised_usd=Missing("no mark") if unrealised is None else unrealised,
            krw_rate=krw_rate if isinstance(krw_rate, Missing) else to_decimal(krw_rate),
            price_times=ages,
            locks=tuple(book.locks.values()),
            lifted=book.lifted,
        )


class AccountPageReader:
    """One account: the home's paper account in the market it reads, another of its paper accounts, or a live one."""

    def __init__(self, backends: AccountBackends, name: str | None = None) -> None:
        """`name`: of `--account`."""
        if name is not None:
            check_account_name(name)
        self._with = backends
        self.name = name

    @property
    def account(self) -> str:
        """Known for good once a moment was asked for."""
        return account_name(self._with.desk.origin, self.name)

    @property
    def short_name(self) -> str:
        """What `--account` says."""
        return self.name or PAPER_ACCOUNT

    @property
    def mode(self) -> Literal["paper", "demo", "live"]:
        return account_mode(self.short_name)

    @property
    def title(self) -> str:
        """What is acted on, in a sentence: nobody is to kill one account and believe it was another."""
        with suppress(ZunoError):
            return f"{self.mode.upper()} account {self.account}"
        return f"{self.mode.upper()} account {self.short_name}"  # a kill waits for no market that can be read

    async def look(self, *, ask: bool = False) -> AccountPage:
        """`ask`: an account at exchanges is held against what they say."""
        paper, live = self.mode == "paper", self._with.desk.live(None)
        # What is recorded or invented names the account; a live market is asked for prices once they are needed.
        found = await self._find_moment() if paper and not live else None
        book = await self.read_book()
        own = book.recorded_moment(live=live) if paper else None
        if own is not None:
            found = own, (f"recorded time: everything is as of {iso(own)}, this account's last moment",)
        elif found is None:
            found = await (self._find_moment() if paper else self._find_present())
        moment, notes = found
        if not paper and not book.count:
            book.apply(AccountOpened(at=moment, usd=ZERO, krw=ZERO))
        at = Millis(max(moment, book.newest))
        recorded = own is not None
        prices = await read_prices(self._with.store, at, recorded=recorded) if paper or live else NO_PRICES
        marks = {} if paper or self._with.marks is None else await self._with.marks(self.account)
        answers = await self.ask_exchanges(book) if ask else None
        notes += self.describe_answers(answers)
        lp, said = await self._read_liquidity(book, recorded=recorded)
        page = AccountPage(self.account, book, at, prices, lp, (), notes, said, marks, recorded, answers)
        return replace(page, locks=self._add_kill(active_locks(page.risk_state(), self._with.limits), at))

    async def glance(self) -> AccountPage:
        """As `look`, by what is stored alone: no venue, exchange or chain is asked, and no market is invented."""
        if not await self.has_market():
            return self.empty_page()
        paper, live = self.mode == "paper", self._with.desk.live(None)
        moment = (await self._find_moment())[0] if paper and not live else self._with.now()
        book = await self.read_book()
        own = book.recorded_moment(live=live) if paper else None
        at = Millis(max(own or moment, book.newest))
        prices = await read_prices(self._with.store, at, recorded=own is not None) if paper or live else NO_PRICES
        page = replace(self.empty_page(), book=book, at=at, prices=prices, recorded=own is not None, notes=())
        return replace(page, locks=self._add_kill(active_locks(page.risk_state(), self._with.limits), at))

    def empty_page(self) -> AccountPage:
        """Of an account whose market was never read: nothing can be open there."""
        now = self._with.now()
        locks = self._add_kill((), now)
        return AccountPage(self.account, AccountHistory(), now, NO_PRICES, {}, locks, (NO_MARKET,), ())

    def _add_kill(self, locks: tuple[LockSet, ...], at: Millis) -> tuple[LockSet, ...]:
        return add_kill(locks, self._with.kill_lock.why_locked(self.short_name), at)

    async def has_market(self) -> bool:
        """Whether the account can have been traded: on paper a market names it. None is invented for the question."""
        return self.mode != "paper" or self._with.desk.live(None) or bool(await self._with.store.spans())

    async def ask_exchanges(self, book: TradingBook) -> tuple[ExchangeAnswer, ...] | None:
        return None if self.mode == "paper" or self._with.ask is None else await self._with.ask(self.account, book)

    def describe_answers(self, answers: tuple[ExchangeAnswer, ...] | None) -> tuple[str, ...]:
        if answers is None:
            return () if self.mode == "paper" else ("the exchange was not asked: this is the account's own log",)
        return tuple(line for answer in answers for line in answer.describe())

    async def read_book(self) -> AccountHistory:
        """The account as it is written down: no chain, no exchange and no market is waited for."""
        book = await self._with.log.history(self.account)
        if not book.count:
            await require_account(self._with.log, self._with.desk.origin, self.name)
        return book.freeze()

    async def read_closes(self, since: Millis, until: Millis) -> dict[Symbol, list[Close]]:
        """Of the finest bars that are stored and not too many."""
        frames = (Timeframe.H1, Timeframe.H4, Timeframe.D1)
        days = (until - since) / DAY_MS
        wanted = frames if days <= _FINE_DAYS else frames[1:] if days <= 4 * _FINE_DAYS else frames[2:]
        found: dict[Symbol, list[Close]] = {}
        for symbol in DEFAULT_SYMBOLS:
            for timeframe in wanted:
                start = Millis(since - 2 * timeframe.millis)
                series = candles(BINANCE, symbol, timeframe)
                state = await self._with.store.read_many([Slice(series, start, until)], until)
                closes = [Close(Millis(row.at + timeframe.millis), to_decimal(row.close)) for row in state.rows[0]]
                if closes:
                    found[symbol] = closes
                    break
        return found

    async def _find_moment(self) -> tuple[Millis, tuple[str, ...]]:
        moment = await self._with.desk.newest_moment(None)
        return moment.as_of, tuple(moment.notes)

    async def _find_present(self) -> tuple[Millis, tuple[str, ...]]:
        """Of an account at exchanges, which goes on whatever market is read here and whoever is silent."""
        if not self._with.desk.live(None):
            return self._with.now(), ("prices of what is not held are read with ZUNO_MARKET=live",)
        try:
            moment, notes = await self._find_moment()
        except ZunoError as error:
            return self._with.now(), (f"the market is not read: {plain_text(str(error), 300)}",)
        return Millis(max(moment, self._with.now())), notes

    async def _read_liquidity(
        self, book: TradingBook, *, recorded: bool
    ) -> tuple[dict[Symbol, Decimal], tuple[str, ...]]:
        """By base currency: what was read or what was stated, whichever is more. The chain is read in the present only:
        in recorded time what was stated counts."""
        stated = {pool.symbol: to_decimal(pool.quantity) for pool in book.liquidity.values()}
        if isinstance(self._with.inventory, str):
            return stated, (self._with.inventory,)
        if recorded:
            return stated, ("liquidity positions are read in the present only; what was stated by hand counts",)
        try:
            read = sum_inventory(await self._with.inventory())
        except ZunoError as error:
            return stated, (f"liquidity positions are not read: {plain_text(str(error), 300).rstrip('.')}",)
        most = {symbol: max(stated.get(symbol, ZERO), to_decimal(read.get(symbol, 0.0))) for symbol in DEFAULT_SYMBOLS}
        return {symbol: size for symbol, size in most.items() if size}, ()


async def require_account(log: TradeLog, origin: str, name: str | None) -> None:
    """`NotFound` for a paper account by whose name nothing ever happened in this market. The home's own and those at
    exchanges are there before anything does."""
    if name in (None, "", PAPER_ACCOUNT, LIVE_ACCOUNT, DEMO_ACCOUNT):
        return
    own = f"{paper_account(origin)}:"
    names = [account.removeprefix(own) for account in await log.accounts() if account.startswith(own)]
    if name not in names:
        near = get_close_matches(name, [*names, PAPER_ACCOUNT, LIVE_ACCOUNT, DEMO_ACCOUNT]) or [*names, PAPER_ACCOUNT]
        raise NotFound(
            f"No account {plain_text(name, 64)} of {origin}; the nearest: {', '.join(near[:5])}. "
            f"`zuno trade start --account {plain_text(name, 64)}` opens it."
        )
