"""Figures of the desk for Prometheus, read from what a home has stored: any process of the home says the same.

Gauges are what is stored now; counters count from the first look of a process on. Labels are words of this code: no id,
no wallet, no word of a stranger.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import ip_address
from typing import Final, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from pydantic import ValidationError

from zuno.journal.port import Entry, Journal
from zuno.kernel.errors import ZunoError
from zuno.kernel.notify import Outbox
from zuno.kernel.units import Millis
from zuno.llm.port import Attempt
from zuno.lp.model.alerts import AlertBook
from zuno.lp.model.debate import Kind, Role
from zuno.markets.venues import Venue
from zuno.trading.model import trade_events as trade
from zuno.trading.model.cycle import ENDED, STARTED, Call
from zuno.trading.model.orders import OrderStatus
from zuno.trading.service.account import AccountDesk

CACHE_SECONDS: Final = 10.0
"""However often it is asked, a home is read once in this time."""
READ_SECONDS: Final = 20.0
"""For each source; a slower one is left out of this look."""
MOST_ENTRIES: Final = 5_000
"""Of the journal in one look; the next one goes on from there."""
TEXT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
GAUGES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "zuno_cycle_age_seconds": ("Since the last cycle ended.", ()),
    "zuno_cycle_duration_seconds": ("From the start of the last cycle to its end.", ()),
    "zuno_equity_usd": ("Equity of an account, by stored prices.", ("account",)),
    "zuno_drawdown_ratio": ("How far the equity is below its peak of 30 days.", ("account",)),
    "zuno_exposure_usd": ("Net exposure of open trades; a short is below zero.", ("account", "market")),
    "zuno_active_locks": ("Locks that refuse new risk.", ("account", "protection")),
    "zuno_feed_age_seconds": ("Since the newest row of a series was known; of a live market only.", ("feed",)),
    "zuno_waiting_notices": ("Pushes that wait in the outbox.", ()),
    "zuno_journal_size_bytes": ("Files of the journal in the home; none where it is in Postgres.", ()),
    "zuno_monitor_age_seconds": ("Since the monitor last looked.", ()),
    "zuno_chain_head_age_seconds": ("Age of the newest block the monitor has seen.", ("chain",)),
}
COUNTERS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "zuno_rulings": ("Rulings of cycles that ended.", ("ruling", "vetoed")),
    "zuno_orders": ("Orders that were planned.", ("account", "exchange", "purpose")),
    "zuno_fills": ("Fills that were booked.", ("account", "exchange")),
    "zuno_order_rejects": ("Orders that an exchange rejected or never had.", ("account",)),
    "zuno_model_calls": ("Calls of models.", ("role", "outcome")),
    "zuno_model_tokens": ("Tokens of models.", ("role", "direction")),
    "zuno_model_cost_usd": ("What models cost, as far as prices are known.", ("role",)),
    "zuno_model_refusals": ("Refused by the model, the budget or the breaker.", ("role", "reason")),
    "zuno_envelopes": ("Envelopes in this home's journal, by who sent them.", ("peer", "kind")),
    "zuno_failed_reads": ("Looks at a source that failed.", ("source",)),
}
_SLIPPAGE_BUCKETS: Final = (-0.01, -0.001, 0.0, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05)
_UNASKED: Final = ("budget", "breaker")
_MOST_ORDERS: Final = 1_000
_REQUEST_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 15.0
_LONGEST_REQUEST: Final = 8_192
_REQUEST: Final = re.compile(
    rb"GET /metrics(?:\?\S*)? HTTP/1\.[01]\r\n(?:[^\r\n]+\r\n)*?host:[ \t]*(\S+?)(?::\d+)?[ \t]*\r\n", re.IGNORECASE
)
_LOCAL_CHAINS: Final = ("sim", "devnet")
"""They have clocks of their own."""
_LOCAL_NAMES: Final = (b"127.0.0.1", b"localhost", b"[::1]")
T = TypeVar("T")
_LOG: Final = logging.getLogger(__name__)

disable_created_metrics()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class MetricSources:
    """What a home has stored. None of them asks an exchange, a chain or a venue."""

    journal: Callable[[], Awaitable[Journal]]
    accounts: Callable[[], Sequence[AccountDesk]]
    feeds: Callable[[], Awaitable[Mapping[str, Millis]]]
    """By series: since when its newest row is known."""
    alerts: Callable[[], Awaitable[AlertBook]]
    outbox: Callable[[], Outbox]
    journal_bytes: Callable[[], int]
    roles: frozenset[str]
    """The agents; others are `other`."""


class DeskMetrics(Collector):
    def __init__(self, sources: MetricSources, now: Callable[[], Millis], stopwatch: Callable[[], float]) -> None:
        self._from = sources
        self._now = now
        self._stopwatch = stopwatch
        self._gauges: dict[str, dict[tuple[str, ...], float]] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._counters = {
            name: Counter(name, text, labels, registry=self._registry) for name, (text, labels) in COUNTERS.items()
        }
        worse = "How much worse than its order's price a fill was."
        spans, registry = _SLIPPAGE_BUCKETS, self._registry
        self._slippage = Histogram("zuno_slippage_ratio", worse, ("exchange",), buckets=spans, registry=registry)
        self._seen: int | None = None
        self._intents: dict[str, trade.TradeIntent] = {}
        self._prices: dict[str, float] = {}
        """By the order's id, of orders that were planned since the first look."""
        self._lock = asyncio.Lock()
        self._read_at = -CACHE_SECONDS
        self._text = b""

    def collect(self) -> Iterable[GaugeMetricFamily]:
        for name, (text, labels) in GAUGES.items():
            family = GaugeMetricFamily(name, text, labels=labels)
            for values, figure in self._gauges.get(name, {}).items():
                family.add_metric(values, figure)
            yield family

    async def write(self) -> bytes:
        """The text that Prometheus reads. Never raises a `ZunoError`: what cannot be read is left out and counted."""
        async with self._lock:
            if not self._text or self._stopwatch() - self._read_at >= CACHE_SECONDS:
                await self._look()
                self._read_at = self._stopwatch()
                self._text = generate_latest(self._registry)
        return self._text

    async def _look(self) -> None:
        self._gauges = {}
        journal_and_desk = (self._read_journal, self._read_cycles, self._read_accounts)
        for read in (*journal_and_desk, self._read_feeds, self._read_monitor, self._read_outbox):
            source = read.__name__.removeprefix("_read_")
            try:
                async with asyncio.timeout(READ_SECONDS):
                    await read()
            except (ZunoError, TimeoutError, OSError) as error:
                _LOG.debug("no figures of %s: %s", source, error)
                self._count("zuno_failed_reads", source)

    def _set(self, name: str, figure: float, *labels: str) -> None:
        self._gauges.setdefault(name, {})[labels] = figure

    def _set_age(self, name: str, at: int, *labels: str) -> None:
        self._set(name, max(0.0, (self._now() - at) / 1000), *labels)

    def _count(self, name: str, *labels: str, by: float = 1) -> None:
        self._counters[name].labels(*labels).inc(by)

    async def _read_cycles(self) -> None:
        journal = await self._from.journal()
        for ended in await journal.latest(1, kind=ENDED):
            self._set_age("zuno_cycle_age_seconds", ended.at)
            for started in await journal.latest(1, request_id=ended.request_id, kind=STARTED):
                self._set("zuno_cycle_duration_seconds", (ended.at - started.at) / 1000)

    async def _read_accounts(self) -> None:
        for desk in self._from.accounts():
            account = await desk.figures()
            for name, figure in (("zuno_equity_usd", account.equity_usd), ("zuno_drawdown_ratio", account.drawdown)):
                if figure is not None:
                    self._set(name, float(figure), account.mode)
            for symbol, exposure in account.exposure_usd.items():
                self._set("zuno_exposure_usd", float(exposure), account.mode, symbol.value)
            for protection in trade.Protection:
                self._set("zuno_active_locks", account.locks.get(protection, 0), account.mode, protection.value)

    async def _read_feeds(self) -> None:
        for series, known in (await self._from.feeds()).items():
            self._set_age("zuno_feed_age_seconds", known, series)

    async def _read_monitor(self) -> None:
        book = await self._from.alerts()
        if book.looked_at is not None:
            self._set_age("zuno_monitor_age_seconds", 1000 * book.looked_at)
        for chain, health in book.chains.items():
            if health.block_time is not None and chain not in _LOCAL_CHAINS:
                self._set_age("zuno_chain_head_age_seconds", 1000 * health.block_time, chain)

    async def _read_outbox(self) -> None:
        self._set("zuno_waiting_notices", (await self._from.outbox().status()).waiting)

    async def _read_journal(self) -> None:
        if size := self._from.journal_bytes():
            self._set("zuno_journal_size_bytes", size)
        journal = await self._from.journal()
        if self._seen is None:
            newest = await journal.latest(1)
            self._seen = newest[0].seq if newest else 0
        left = MOST_ENTRIES
        async for entry in journal.entries(after=self._seen):
            self._count_entry(entry)
            self._seen, left = entry.seq, left - 1
            if not left:
                break
            await asyncio.sleep(0)  # a thousand of them must not hold up a watch

    def _count_entry(self, entry: Entry) -> None:
        payload = dict(entry.payload)
        try:
            if entry.kind == ENDED:
                vetoed = "no" if payload.get("veto") is None else "yes"
                self._count("zuno_rulings", Call(str(payload.get("ruling"))).value, vetoed)
            elif entry.kind == "model_attempt":
                self._count_attempt(Attempt.model_validate(payload, strict=False))
            elif entry.kind == trade.TRADE_EVENTS and not str(payload.get("account")).startswith("venue:"):
                written = trade.TradeEntry.model_validate(payload)
                for event in written.events:
                    self._count_event(event, trade.account_mode(written.account))
            elif entry.kind in frozenset(Kind):
                role = entry.author.role
                self._count("zuno_envelopes", role if role in frozenset(Role) else "other", entry.kind)
        except (ValidationError, ValueError):  # of another edition
            self._count("zuno_failed_reads", "journal")

    def _count_attempt(self, attempt: Attempt) -> None:
        role = attempt.role if attempt.role in self._from.roles else "other"
        if attempt.outcome in ("refused", *_UNASKED):
            self._count("zuno_model_refusals", role, attempt.outcome)
        if attempt.outcome not in _UNASKED:
            self._count("zuno_model_calls", role, attempt.outcome)
            self._count("zuno_model_tokens", role, "in", by=attempt.tokens_in)
            self._count("zuno_model_tokens", role, "out", by=attempt.tokens_out)
            self._count("zuno_model_cost_usd", role, by=float(attempt.usd or 0))

    def _count_event(self, event: trade.TradeEvent, account: str) -> None:
        match event:
            case trade.IntentStored():
                _remember(self._intents, event.intent.id, event.intent)
            case trade.OrderPlanned():
                order = event.order
                self._count("zuno_orders", account, order.exchange.value, event.purpose)
                price = order.price or order.trigger or _find_price(self._intents.get(event.intent), order.exchange)
                if price is not None:
                    _remember(self._prices, order.client_id, float(price))
            case trade.FillBooked():
                fill = event.fill
                self._count("zuno_fills", account, fill.exchange.value)
                if expected := self._prices.get(fill.client_id):
                    worse = fill.side.sign * (float(fill.price) - expected) / expected
                    self._slippage.labels(fill.exchange.value).observe(worse)
            case trade.OrderLost():
                self._count("zuno_order_rejects", account)
            case trade.OrderUpdated() if event.order.status is OrderStatus.REJECTED:
                self._count("zuno_order_rejects", account)


def _find_price(intent: trade.TradeIntent | None, exchange: Venue) -> Decimal | None:
    """What an order at the market expected, in the exchange's currency: the entry of its leg, or the mark."""
    if intent is None:
        return None
    mark = intent.mark if exchange is Venue("BINANCE") else None
    return next((leg.entry for leg in intent.legs if leg.exchange is exchange), mark)


def _remember(kept: dict[str, T], key: str, value: T) -> None:
    kept[key] = value
    if len(kept) > _MOST_ORDERS:
        del kept[next(iter(kept))]


async def serve_metrics(metrics: DeskMetrics, host: str, port: int) -> None:
    """Answer GET /metrics until it is cancelled. A taken port is tried again: one process of a home serves for all."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            asked = _REQUEST.match(head)
            # At a loopback address a foreign name is DNS rebinding.
            known = asked is not None and (asked[1].lower() in _LOCAL_NAMES or not ip_address(host).is_loopback)
            status, body = ("200 OK", await metrics.write()) if known else ("404 Not Found", b"")
            lines = (f"HTTP/1.1 {status}", f"Content-Type: {TEXT_TYPE}", f"Content-Length: {len(body)}")
            writer.write("\r\n".join((*lines, "Connection: close", "", "")).encode() + body)
            async with asyncio.timeout(_REQUEST_SECONDS):
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asks so has no answer
        finally:
            writer.close()

    warned = False
    while True:
        try:
            server = await asyncio.start_server(answer, host, port, limit=_LONGEST_REQUEST)
        except OSError as error:
            if not warned:
                _LOG.info("figures are not served at %s port %d yet: %s", host, port, error.strerror)
            warned = True
            await asyncio.sleep(_RETRY_SECONDS)
            continue
        try:
            await server.serve_forever()
        finally:
            server.close()
