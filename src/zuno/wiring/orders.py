"""Wire accounts to the venues that carry their orders: paper venues over the market that is read, or exchanges."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Final

from zuno.adapters.venues.paper.tape import MarketTape, SeriesTape
from zuno.adapters.venues.paper.venue import LATENCY_MS, PaperFunds, PaperVenue
from zuno.kernel.accounts import HomeLock
from zuno.kernel.units import Millis
from zuno.markets.market import Catalogue
from zuno.markets.venues import DEFAULT_VENUES, Venue
from zuno.settings import Settings
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.model.market import MINUTE_MS
from zuno.trading.model.sleeves import DEBATE, DEBATE_ALONE, NEW_PAPER, SleeveShares, parse_sleeves
from zuno.trading.ports.series import SeriesStore
from zuno.trading.ports.venue import OrderVenue
from zuno.trading.rules.account import DOLLAR
from zuno.trading.rules.inputs import FeeRates, Fees
from zuno.trading.rules.performance import AccountLog
from zuno.trading.rules.sleeve_funds import Opening, list_places, plan_opening
from zuno.trading.rules.trading_book import TradingBook

COMPARE_EVERY_MS: Final = Millis(5 * 60_000)
"""How often a running desk compares its log with the exchange."""


def read_fees(settings: Settings) -> Fees:
    futures, spot = DEFAULT_VENUES
    named = {
        futures: FeeRates(settings.fee_binance_maker_pct, settings.fee_binance_taker_pct),
        spot: FeeRates(settings.fee_upbit_pct, settings.fee_upbit_pct),
    }
    return Fees(Fees(named).list_unusual())


def parse_shares(settings: Settings) -> SleeveShares | None:
    """Of the setting, if there is one."""
    return None if settings.sleeves is None else parse_sleeves(settings.sleeves)


def plan_new_account(settings: Settings) -> Opening | None:
    """What a paper account is begun with."""
    return plan_opening(parse_shares(settings) or NEW_PAPER, settings.routes().venues, settings.markets[0].venue)


def build_paper_gate(
    settings: Settings,
    store: SeriesStore,
    log: AccountLog,
    account: str,
    now: Callable[[], Millis],
    killed: Callable[[], HomeLock | None] = lambda: None,
    catalogue: Catalogue | None = None,
    book: TradingBook | None = None,
) -> OrderGate:
    """Reaches paper venues alone: those of the routes, of its sleeves, and those that its `book` uses already."""
    from zuno.trading.service.live_start import list_used_exchanges
    from zuno.trading.service.prices import read_rates

    live, routed = settings.market == "live", settings.routes().venues
    shares, perpetual = parse_shares(settings), settings.markets[0].venue
    places = partial(list_places, routed, perpetual)
    known = book is not None and book.count > 0
    opening = None if known or book is None else plan_new_account(settings)
    cash = {} if opening is None else opening.cash
    if book is not None and known and book.shares != DEBATE_ALONE:
        cash = {venue: book.venue_balance(venue) for venue in book.venues}
        for move in book.moves:  # a venue whose log is empty has not seen them: they are made there yet
            cash[move.source] += move.amount
            cash[move.target] -= move.amount
    held = DEBATE_ALONE if book is None else book.shares
    own = (venue for sleeve in (shares if known and shares else held) if sleeve != DEBATE for venue in places(sleeve))
    venues = tuple(dict.fromkeys((*routed, *cash, *own, *(() if book is None else list_used_exchanges(book)))))
    fees, funds = read_fees(settings), PaperFunds(account, log, now, cash)
    return OrderGate(
        GateContext(
            log=log,
            account=account,
            venues=build_paper_venues(store, log, account, now, fees, venues, catalogue, cash, live=live),
            now=now,
            killed=killed,
            rates=None if any(venue.currency == DOLLAR for venue in venues) else lambda: read_rates(store, now()),
            funds=funds,
            opening=opening,
            sleeve_places=places,
            move_cash=funds.move_cash,
            take_after=settings.target_taker_minutes * MINUTE_MS,
            let_run_pct=settings.let_run_pct,
            manual_fees_pct={exchange: Decimal(str(fees.at(exchange).taker)) for exchange in venues},
        )
    )


def build_exchange_gate(
    log: AccountLog,
    account: str,
    venues: Mapping[Venue, OrderVenue],
    now: Callable[[], Millis],
    killed: Callable[[], HomeLock | None] = lambda: None,
    *,
    entries: bool,
    watch_only: str | None = None,
    store: SeriesStore | None = None,
    find_stale: Callable[[Venue], Awaitable[str | None]] | None = None,
    settings: Settings | None = None,
) -> OrderGate:
    """The gate of an account at exchanges: new positions need a mandate, `entries`, and `watch_only` None. `store`:
    what a live market is read into. `settings`: None for the usual ones."""
    from zuno.adapters.venues.orders.wires import build_funds
    from zuno.trading.service.prices import read_rates

    settings = settings or Settings()
    context = GateContext(
        log=log,
        account=account,
        venues=venues,
        now=now,
        live=True,
        killed=killed,
        entries=entries and watch_only is None,
        compare_every=COMPARE_EVERY_MS,
        find_stale=find_stale,
        rates=None if store is None else lambda: read_rates(store, now()),
        funds=build_funds(venues),
        sleeve_places=partial(list_places, settings.routes().venues, settings.markets[0].venue),
        take_after=settings.target_taker_minutes * MINUTE_MS,
        let_run_pct=settings.let_run_pct,
    )
    return OrderGate(context if watch_only is None else replace(context, why_no_entries=watch_only))


def build_paper_venues(
    store: SeriesStore,
    log: AccountLog,
    account: str,
    now: Callable[[], Millis],
    fees: Fees,
    venues: Sequence[Venue] = DEFAULT_VENUES,
    catalogue: Catalogue | None = None,
    cash: Mapping[Venue, Decimal] | None = None,
    *,
    live: bool = False,
) -> Mapping[Venue, OrderVenue]:
    async def read_clock() -> Millis:
        return now()

    return {
        exchange: PaperVenue(
            exchange,
            account,
            log,
            open_tape(store, exchange, live=live),
            read_clock,
            fees.at(exchange),
            catalogue=catalogue,
            cash=(cash or {}).get(exchange),
            latency_ms=choose_latency(store),
            sleep=asyncio.sleep if live else None,
        )
        for exchange in venues
    }


def open_tape(store: SeriesStore, exchange: Venue, *, live: bool = False) -> MarketTape:
    """The market a paper venue is matched with. Candles-only data give opens: an order is filled at the next open."""
    return SeriesTape(store, exchange, live=live, openings=store.origin.candles_only and not live)


def choose_latency(store: SeriesStore) -> int:
    """Milliseconds to an order's arrival: none where only bars are recorded."""
    return 0 if store.origin.candles_only else LATENCY_MS
