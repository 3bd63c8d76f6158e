"""A trading account at the market's moment, read from its log and marked with what the market says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from difflib import get_close_matches
from itertools import product, starmap, takewhile
from typing import Final, Literal, NamedTuple, TypeAlias

from zuno.kernel.accounts import DEMO_ACCOUNT, LIVE_ACCOUNT, PAPER_ACCOUNT, KillLock, check_account_name, short_name
from zuno.kernel.clock import iso
from zuno.kernel.errors import NotFound, Refused, UsageError, ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.markets.market import Catalogue, Symbol
from zuno.markets.routes import DEFAULT_ROUTES, Routes
from zuno.markets.venues import DEFAULT_VENUE, DEFAULT_VENUES, Venue
from zuno.trading.data.intake import clause
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.learn.evaluator import Evaluation
from zuno.trading.measure.portable import round_digits
from zuno.trading.model.account import (
    Account,
    FeesSlot,
    Liquidity,
    PositionClosed,
    VenueFees,
    account_slots,
    fees_slot,
    markets_slot,
)
from zuno.trading.model.bundle import Slot
from zuno.trading.model.known import Missing, or_none
from zuno.trading.model.market import DAY_MS, SECOND_MS, Timeframe
from zuno.trading.model.orders import ZERO, ExchangeAnswer, to_decimal
from zuno.trading.model.sleeves import DEBATE, SleeveShares
from zuno.trading.model.trade_events import (
    AccountOpened,
    IntentKind,
    LockSet,
    ManualChange,
    TradeEvent,
    account_mode,
    account_name,
    paper_account,
)
from zuno.trading.model.wanted import mark_series, own_candles
from zuno.trading.ports.series import SeriesStore, Slice
from zuno.trading.ports.trade_log import TradeLog
from zuno.trading.rules.inputs import Fees
from zuno.trading.rules.margin import find_liquidation
from zuno.trading.rules.performance import AccountHistory, AccountLog, Close, current_step, equity_usd, trace_account
from zuno.trading.rules.protections import ProtectionLimits, RiskState, active_locks, add_kill, sum_capital_usd
from zuno.trading.rules.sleeve_funds import Opening
from zuno.trading.rules.trading_book import TradingBook
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.prices import NO_PRICES, Prices, read_prices

NO_MARKET: Final = "no market was ever read here: nothing is open"
NOT_PRESENT: Final = "liquidity positions are read in the present only; what was stated by hand counts"
_FINE_DAYS: Final = 60
"""An account that is younger is drawn by the hour, one of up to four times that by four hours, others by the day."""

ReadInventory: TypeAlias = Callable[[], Awaitable[Mapping[str, Decimal]]]
"""Reads the token amounts in the owner's liquidity positions, by verified symbol."""
Inventory: TypeAlias = ReadInventory | str
"""Reads them, or says why none are read."""
SIMULATED: Final = "liquidity of the simulated chain counts here where none is stated by hand; no cycle counts it"


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
    fees: Fees = field(default_factory=Fees)
    """What is written by hand is charged, and a cycle reckons with."""
    marks: Callable[[str], Awaitable[Mapping[tuple[Venue, Symbol], Decimal]]] | None = None
    """What an account at exchanges is marked by: their own prices of what it holds."""
    ask: Callable[[str, TradingBook], Awaitable[tuple[ExchangeAnswer, ...]]] | None = None
    """What the exchanges of an account say they hold beside its log, within seconds; None: nobody can be asked."""
    simulated: ReadInventory | None = None
    """Liquidity of a simulated chain: the risk book of a paper account counts it where none is stated by hand."""
    learn: Callable[[OrderGate], Awaitable[Evaluation]] | None = None
    """Learns from what the account of a gate has closed; None: an evaluation does later."""
    catalogue: Callable[[], Catalogue] = Catalogue
    routes: Routes = DEFAULT_ROUTES
    """What a run may use of markets and venues."""
    venues: Callable[[str], tuple[Venue, ...]] = lambda account: (DEFAULT_VENUE,)
    """Of an account at exchanges, where a mandate names none."""
    opening: Opening | None = None
    """What a paper account is begun with; None: the usual cash of each venue, the debate's alone."""
    check_sleeves: Callable[[SleeveShares], Awaitable[None]] | None = None
    """Refuses a sleeve that nobody knows, and a strategy of the owner's without a record."""
    describe_backtest: Callable[[str, Sequence[Symbol]], Awaitable[str]] | None = None
    """What a sleeve's strategy would have earned on what is recorded of these markets, in sentences."""
    list_hedged: Callable[[str], Awaitable[tuple[str, ...]]] | None = None
    """Liquidity that an account's shorts hedge, in words."""


@dataclass(frozen=True, slots=True)
class AccountPage:
    name: str
    book: AccountHistory
    at: Millis
    prices: Prices
    locks: tuple[LockSet, ...] = ()
    notes: tuple[str, ...] = ()
    lp: Mapping[Symbol, Decimal] = field(default_factory=dict)
    lp_notes: tuple[str, ...] = ()
    lp_simulated: bool = False
    liquidated: tuple[PositionClosed, ...] = ()
    """Positions entered by hand that the market has ended; in the book here, and written with the next entry."""
    opened: tuple[TradeEvent, ...] = ()
    """Paper money at venues that the account had not; in the book here, and written with the next entry."""
    marks: Mapping[tuple[Venue, Symbol], Decimal] = field(default_factory=dict)
    """Prices that the exchanges themselves say."""
    recorded: bool = False
    """Whether the account is in recorded time: it stands at its own last moment, and the market may go on after it."""
    answers: tuple[ExchangeAnswer, ...] | None = None
    """None: no exchange was asked."""

    @property
    def rates(self) -> dict[str, Decimal]:
        """How much of a currency a dollar is; a currency without a rate is not in it."""
        known = {currency: or_none(rate) for currency, rate in self.prices.rates.items()}
        return {currency: to_decimal(rate) for currency, rate in known.items() if rate is not None and rate > 0}

    def mark(self, symbol: Symbol, exchange: Venue) -> Decimal | None:
        if (exchange, symbol) in self.marks:
            return self.marks[exchange, symbol]
        price = or_none(self.prices.of(symbol, exchange))
        return None if price is None else to_decimal(round_digits(price))

    def marks_at(self, exchange: Venue) -> dict[Symbol, Decimal] | None:
        """Of what is held at an exchange, in its own currency; None where one of them is not known."""
        marks = {trade.symbol: self.mark(trade.symbol, exchange) for trade in self.book.trades_at(exchange)}
        known = {symbol: mark for symbol, mark in marks.items() if mark is not None}
        return known if len(known) == len(marks) else None

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """The desk's markets, and whatever else is held."""
        return tuple(dict.fromkeys((*self.prices.marks, *list_held(self.book), *self.lp)))

    @property
    def usd_marks(self) -> dict[Symbol, Decimal]:
        """Of what is priced in another currency by its rate."""
        rates = self.rates
        marks = {symbol: self.mark(symbol, symbol.venue) for symbol in self.symbols if symbol.venue.currency in rates}
        return {symbol: mark / rates[symbol.venue.currency] for symbol, mark in marks.items() if mark is not None}

    def total_equity(self) -> tuple[Decimal | None, str | None]:
        marks = self.usd_marks
        missing = next((trade.symbol for trade in self.book.trades.values() if trade.symbol not in marks), None)
        if missing is not None:
            return None, f"{missing} has no mark"
        return equity_usd(current_step(self.book, self.at), marks, self.rates), None

    def unrealised_usd(self) -> Decimal | None:
        total, rates = ZERO, self.rates
        for trade in self.book.trades.values():
            mark, rate = self.mark(trade.symbol, trade.exchange), rates.get(trade.exchange.currency)
            if mark is None or rate is None:
                return None
            total += trade.unrealised_pnl(mark) / rate
        return total

    def risk_state(self) -> RiskState:
        (equity, unknown), unrealised, book = self.total_equity(), self.unrealised_usd(), self.book
        opening = {tracked.intent.symbol for tracked in book.list_intents(IntentKind.OPEN, sleeve=DEBATE)}
        held = {trade.symbol for trade in book.trades.values() if trade.sleeve == DEBATE}
        seen = {trade.symbol: self.prices.ages.get(str(mark_series(trade.symbol))) for trade in book.trades.values()}
        ages = {symbol: Millis(self.at - age * SECOND_MS) for symbol, age in seen.items() if age is not None}
        rates = {
            currency: rate if isinstance(rate, Missing) else to_decimal(rate)
            for currency, rate in self.prices.rates.items()
        }
        return RiskState(
            now=self.at,
            open_symbols=frozenset(held | opening),
            closed=book.closed,
            results=book.results,
            equity_usd=Missing(unknown or "no mark") if equity is None else equity,
            unrealised_usd=Missing("no mark") if unrealised is None else unrealised,
            rates=rates,
            capital_usd=sum_capital_usd(book, rates),
            price_times=ages,
            locks=tuple(book.locks.values()),
            lifted=book.lifted,
            day_marks=book.day_marks,
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
        return account_name(self._with.desk.origin, self.name)

    @property
    def short_name(self) -> str:
        """What `--account` says."""
        return short_name(self.name) if self.mode != "paper" and self.name else self.name or PAPER_ACCOUNT

    @property
    def mode(self) -> Literal["paper", "demo", "live"]:
        return account_mode(self.name or PAPER_ACCOUNT)

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
        moment = await self._find_moment() if paper and not live else None
        book = await self.read_book()
        own = book.recorded_moment(live=live) if paper else None
        if own is not None:
            moment = own, (f"recorded time: everything is as of {iso(own)}, this account's last moment",)
        elif moment is None:
            moment = await (self._find_moment() if paper else self._find_present())
        at, notes = moment
        opened: list[TradeEvent] = []
        if not book.count:  # shown as it will be
            usual = AccountOpened(at=at, cash=dict.fromkeys(DEFAULT_VENUES, ZERO))
            opened = self._list_opening(at) if paper else [usual]
            book = AccountHistory()
            book.apply_all(opened)
        marks = {} if paper or self._with.marks is None else await self._with.marks(self.account)
        answers = await self.ask_exchanges(book) if ask else None
        at, notes = Millis(max(at, book.newest)), (*notes, *self.describe_answers(answers))
        page = await self._read_page(book, at, notes, priced=paper or live, recorded=own is not None, marks=marks)
        simulated = self._with.simulated if paper else None
        pools = await self._read_liquidity(
            book.liquidity.values(), simulated or self._choose_inventory(present=not page.recorded)
        )
        stated = {pool.symbol: pool.quantity for pool in book.liquidity.values() if simulated is not None}
        lp = {symbol: to_decimal(quantity) for symbol, quantity in {**pools.amounts, **stated}.items()}
        counted = simulated is not None and lp.keys() > stated.keys()
        lp_notes = (*pools.describe(), SIMULATED) if counted else pools.describe()
        page = replace(page, lp=lp, lp_notes=lp_notes, lp_simulated=counted)
        return replace(page, answers=answers, opened=tuple(opened))

    async def glance(self) -> AccountPage:
        """As `look`, by what is stored alone: no venue, exchange or chain is asked, and no market is invented."""
        if not await self.has_market():
            return self.empty_page()
        paper, live = self.mode == "paper", self._with.desk.live(None)
        moment = (await self._find_moment())[0] if paper and not live else self._with.now()
        book = await self.read_book()
        own = book.recorded_moment(live=live) if paper else None
        at = Millis(max(own or moment, book.newest))
        return await self._read_page(book, at, (), priced=paper or live, recorded=own is not None)

    async def look_for_entry(self, as_of: str | None) -> AccountPage:
        """The account at the moment that an entry by hand is written at. `Refused` for one before its newest event."""
        looked, live = await self._with.desk.newest_moment(as_of), self._with.desk.live(None)
        book = await self.read_book()
        own = book.recorded_moment(live=live) if as_of is None else None
        moment, newest = looked.as_of if own is None else own, book.newest
        if own is None and as_of is None and not live:  # a cycle at the end sees what was before it
            moment = Millis(max(moment - 1, min(newest, moment)))
        if moment < newest:
            raise Refused(
                f"The account's newest event is of {format_moment(newest)} and {format_moment(moment)} is before it; "
                f"an account is written forward: give {format_moment(newest)} or a later moment."
            )
        page = await self._read_page(book, moment, tuple(looked.notes), priced=True, recorded=own is not None)
        opened = self._list_opening(moment) if not book.count else []
        if not opened and (cash := page.book.find_opening(self._with.routes.venues)):
            opened = [AccountOpened(at=moment, cash=cash)]
        if opened:
            page = replace(page, book=page.book.fork())
            page.book.apply_all(opened)
        return replace(page, opened=tuple(opened))

    def _list_opening(self, at: Millis) -> list[TradeEvent]:
        return [] if self._with.opening is None else self._with.opening.list_events(at)

    async def read_slots(
        self, origin: str, moment: Millis, present: bool, account: Account | None = None
    ) -> list[Slot]:
        """The account for a bundle of that moment, and the fees where they are not the usual ones. `present`: of a live
        market, where the chain can be asked too. `account`: of a cycle that acts; None: the market's own."""
        if account is None:
            name = paper_account(origin)
            book = await read_before(self._with.log, name, moment)
            prices = await self._read_prices(book, moment, recorded=False)
            account = (await self._end_liquidated(name, book, moment, prices))[0].to_account(self._with.routes.venues)
        lp = await self._read_liquidity(account.liquidity, self._choose_inventory(present=present))
        pools = tuple(Liquidity(symbol=symbol, quantity=quantity) for symbol, quantity in lp.amounts.items())
        notes = () if lp.note is None else (lp.note,)
        slots = account_slots(replace(account, liquidity=pools), moment, unread=lp.unread, notes=notes)
        if changed := self._with.fees.list_unusual():
            own = {venue: VenueFees(maker=rates.maker, taker=rates.taker) for venue, rates in changed.items()}
            slots.append(fees_slot(FeesSlot(fees=own), moment))
        catalogue, routes = self._with.catalogue(), self._with.routes
        if catalogue.read_at or routes != DEFAULT_ROUTES:
            places = product(routes.venues, self._with.desk.markets)
            slots.append(markets_slot(filter(None, starmap(catalogue.find_listed, places)), routes, moment))
        return slots

    async def _read_page(
        self,
        book: AccountHistory,
        at: Millis,
        notes: tuple[str, ...],
        *,
        priced: bool,
        recorded: bool,
        marks: Mapping[tuple[Venue, Symbol], Decimal] | None = None,
    ) -> AccountPage:
        prices = await self._read_prices(book, at, recorded=recorded) if priced else NO_PRICES
        book, liquidated = await self._end_liquidated(self.account, book, at, prices)
        notes += tuple(f"{close.id} is liquidated: its margin is lost" for close in liquidated)
        notes += tuple(
            f"{left.normalize():f} {symbol.base} at {exchange} is less than a lot: it is of the next trade there"
            for exchange, rests in book.dust.items()
            for symbol, left in rests.items()
        )
        notes += self._describe_unwanted(book)
        page = AccountPage(
            self.account, book, at, prices, (), notes, liquidated=liquidated, marks=marks or {}, recorded=recorded
        )
        return replace(page, locks=self._add_kill(active_locks(page.risk_state(), self._with.limits), at))

    def _describe_unwanted(self, book: TradingBook) -> tuple[str, ...]:
        """What is held of markets in which nothing may be opened any more."""
        kept, catalogue = "what is held is protected and closed, nothing is opened", self._with.catalogue()
        notes: dict[str, None] = {}
        for exchange, symbol in dict.fromkeys((trade.exchange, trade.symbol) for trade in book.trades.values()):
            listed = catalogue.find_listed(exchange, symbol)
            if listed is None or not listed.trading:
                notes[f"{symbol} is not traded at {exchange} any more: {kept}"] = None
            elif symbol not in self._with.desk.markets:
                notes[f"{symbol} is none of this desk's markets (ZUNO_MARKETS): {kept}"] = None
        return tuple(notes)

    async def _end_liquidated(
        self, account: str, book: AccountHistory, at: Millis, prices: Prices
    ) -> tuple[AccountHistory, tuple[PositionClosed, ...]]:
        """Positions entered by hand are not watched: each look finds what the market has done to them."""
        trades = [trade for trade in book.trades.values() if trade.manual and trade.margin]
        hour = Timeframe.H1
        slices = [Slice(own_candles(trade.symbol, hour), hour.floor(trade.opened), at) for trade in trades]
        rows = (await self._with.store.read_many(slices, at)).rows if slices else ()
        closes = (
            find_liquidation(trade, bars, or_none(prices.marks[trade.symbol]), at)
            for trade, bars in zip(trades, rows, strict=True)
        )
        liquidated = tuple(close for close in closes if close is not None)
        if not liquidated:
            return book, ()
        written = (await self._with.log.events(account))[: book.count]
        return trace_account([*written, *(ManualChange(at=at, change=close) for close in liquidated)]), liquidated

    def empty_page(self) -> AccountPage:
        """Of an account whose market was never read: nothing can be open there."""
        now = self._with.now()
        return AccountPage(self.account, AccountHistory(), now, NO_PRICES, self._add_kill((), now), (NO_MARKET,))

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
        return book

    async def _read_prices(self, book: TradingBook, at: Millis, *, recorded: bool) -> Prices:
        symbols = tuple(dict.fromkeys((*self._with.desk.markets, *list_held(book))))
        return await read_prices(self._with.store, at, symbols, recorded=recorded)

    async def read_closes(self, since: Millis, until: Millis) -> dict[Symbol, list[Close]]:
        """Of the finest bars that are stored and not too many."""
        frames = (Timeframe.H1, Timeframe.H4, Timeframe.D1)
        days = (until - since) / DAY_MS
        wanted = frames if days <= _FINE_DAYS else frames[1:] if days <= 4 * _FINE_DAYS else frames[2:]
        by_symbol: dict[Symbol, list[Close]] = {}
        for symbol in self._with.desk.markets:
            for timeframe in wanted:
                span = Slice(own_candles(symbol, timeframe), Millis(since - 2 * timeframe.millis), until)
                rows = (await self._with.store.read_many([span], until)).rows[0]
                if rows:
                    ends = timeframe.millis
                    by_symbol[symbol] = [Close(Millis(row.at + ends), to_decimal(row.close)) for row in rows]
                    break
        return by_symbol

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

    def _choose_inventory(self, *, present: bool) -> Inventory:
        """`present`: the chain is read then alone."""
        return self._with.inventory if present or isinstance(self._with.inventory, str) else NOT_PRESENT

    async def _read_liquidity(self, pools: Iterable[Liquidity], inventory: Inventory) -> LiquidityFound:
        stated = {pool.symbol: pool.quantity for pool in pools}
        if isinstance(inventory, str):
            return LiquidityFound(stated, inventory)
        try:
            read = sum_inventory(await inventory(), self._with.desk.markets)
        except UsageError as error:
            return LiquidityFound(stated, f"liquidity positions are not read: {clause(error)}")
        except ZunoError as error:
            return LiquidityFound(stated, unread=clause(error))
        most = {symbol: max(stated.get(symbol, 0.0), read.get(symbol, 0.0)) for symbol in (*stated, *read)}
        return LiquidityFound({symbol: quantity for symbol, quantity in most.items() if quantity})


class LiquidityFound(NamedTuple):
    """By base currency: what was read or what was stated, whichever is more."""

    amounts: Mapping[Symbol, float]
    note: str | None = None
    """Why nothing is read, where nothing needs to be."""
    unread: str | None = None
    """Why what may be there could not be read."""

    def describe(self) -> tuple[str, ...]:
        reason = self.note if self.unread is None else f"liquidity positions are not read: {self.unread}"
        return () if reason is None else (reason,)


def sum_inventory(amounts: Mapping[str, Decimal], markets: Iterable[Symbol]) -> dict[Symbol, float]:
    """How much of the coins of these markets is among token amounts, wrapped ones (WETH, cbBTC) included."""
    tokens = {symbol: (symbol.base, f"W{symbol.base}", f"cb{symbol.base}") for symbol in markets}
    sums = {symbol: sum((amounts.get(name, ZERO) for name in names), ZERO) for symbol, names in tokens.items()}
    return {symbol: float(quantity) for symbol, quantity in sums.items() if quantity}


def format_moment(moment: Millis) -> str:
    """A moment as people read it and `--as-of` takes it."""
    return iso(moment).removesuffix("Z").removesuffix(":00")


async def read_before(log: AccountLog, account: str, moment: Millis) -> AccountHistory:
    """What was written of strictly before a moment: a later event never alters it."""
    newest = await log.history(account)
    if newest.newest < moment or not newest.count:
        return newest
    return trace_account(takewhile(lambda event: event.at < moment, await log.events(account)))


def list_held(book: TradingBook) -> list[Symbol]:
    """What is held or wanted, listed or not."""
    return [trade.symbol for trade in book.trades.values()] + [order.symbol for order in book.to_pending()]


async def require_account(log: TradeLog, origin: str, name: str | None) -> None:
    """`NotFound` for a paper account by whose name nothing ever happened in this market. The home's own and those at
    exchanges are there before anything does."""
    if name in (None, "", PAPER_ACCOUNT) or account_mode(name) != "paper":
        return
    own = f"{paper_account(origin)}:"
    names = [account.removeprefix(own) for account in await log.accounts() if account.startswith(own)]
    if name not in names:
        near = get_close_matches(name, [*names, PAPER_ACCOUNT, LIVE_ACCOUNT, DEMO_ACCOUNT]) or [*names, PAPER_ACCOUNT]
        raise NotFound(
            f"No account {plain_text(name, 64)} of {origin}; the nearest: {', '.join(near[:5])}. "
            f"`zuno trade start --account {plain_text(name, 64)}` opens it."
        )
