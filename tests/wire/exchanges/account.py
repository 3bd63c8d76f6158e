"""What every fake exchange has in a test's hands, whatever its wire: an account that can be set wrongly, an order book
that changes over night, and answers that go wrong in the exchange's own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, ClassVar

from tests.wire.exchanges.matching import OPEN, Engine, FakeAlgo, FakeOrder, Market
from tests.wire.exchanges.serving import Answer, Clock, FakeServer, Handler

Row = dict[str, Any]
READS = re.compile(r"(GET|POST /info).*(order|trade|fill|execution)", re.IGNORECASE)
"""Names of requests that look up or list orders and trades."""


class FakeExchange:
    """One account over one wire. A subclass is the wire alone: what it reads, who it lets in, how it answers."""

    place_name: ClassVar[str]
    find_name: ClassVar[str]
    cancel_name: ClassVar[str]
    filters_name: ClassVar[str]
    funding_name: ClassVar[str] = ""
    """Of requests, as the server writes them down; empty where the exchange has none."""
    limited: ClassVar[Answer]
    """HTTP 429."""
    banned: ClassVar[Answer]
    """HTTP 418, or what the exchange answers in its place."""
    overloaded: ClassVar[Answer]
    """Too many requests, by the exchange's own code."""
    maintenance: ClassVar[Answer]
    unsure: ClassVar[tuple[Answer, ...]] = ()
    """To an order, where nobody knows what becomes of it."""
    outdated: ClassVar[Answer]
    """A request that is dated too early or too late."""
    events: ClassVar[tuple[str, ...]]
    """Parts of the names of requests whose answers list orders, trades or payments."""
    secrets: tuple[str, ...]
    """What may stand in no log and in no error."""
    secret: str
    limit_word: ClassVar[str] = "LIMIT"
    """How the wire spells the type of an order with a price."""
    tells_anybody: ClassVar[bool] = False
    """An account is read without keys."""
    sizes_are_fixed: ClassVar[bool] = False
    """The lot is the same for every market, and not told."""

    def __init__(self, engine: Engine, clock: Clock, **options: Any) -> None:
        self.clock = clock
        self.engine = engine
        self.withdrawals = False
        """The keys may withdraw."""
        self.trading = True
        """The keys may trade."""
        self.hedge = False
        """Two positions of a symbol, one on either side."""
        self.page = 1_000
        """Rows a page, at most."""
        self.late = 0
        """How many looks an order takes to be seen in the lists, where the exchange confirms that it took one only."""
        self.broker_marks: list[str] = []
        """Whatever named somebody who would be paid for our orders: a broker's tag, a referrer, a builder."""
        self.server = FakeServer(self.routes(), clock, **options)
        self.server.reading = self.hide_new

    @property
    def stop_name(self) -> str:
        """Of the request that places a stop."""
        return self.place_name

    @contextmanager
    def hide_new(self, name: str) -> Iterator[None]:
        """Look-ups and lists come from a copy that lags behind: what is new is not in it yet."""
        if not self.clock.lag or not READS.match(name):
            yield
            return
        engine, until = self.engine, self.clock.listed()
        kept = engine.orders, engine.algos, engine.trades
        engine.orders = {id: order for id, order in engine.orders.items() if order.created <= until}
        engine.algos = {id: algo for id, algo in engine.algos.items() if algo.created <= until}
        engine.trades = [trade for trade in engine.trades if trade.at <= until]
        try:
            yield
        finally:
            engine.orders, engine.algos, engine.trades = kept

    def routes(self) -> dict[str, Handler]:
        raise NotImplementedError

    def change_keys(self) -> None:
        """Those that the desk has are known no more."""
        self.secret = "another"

    # -- what changes over night

    def delist(self, symbol: str) -> None:
        """It stops trading; what is open stays where it is."""
        self.engine.markets[symbol].trading = False

    def change_filters(self, symbol: str, **rules: Decimal) -> None:
        """`tick`, `lot`, `min_quantity`, `max_quantity`, `min_notional`."""
        for name, value in rules.items():
            assert isinstance(getattr(self.engine.markets[symbol], name), Decimal)
            setattr(self.engine.markets[symbol], name, value)

    def hold_foreign(self, symbol: str, amount: Decimal) -> None:
        """A position, or a coin, that somebody else's hand took."""
        self.engine.take(symbol, amount, self.engine.markets[symbol].mark)

    def order_foreign(self, symbol: str, side: str, quantity: Decimal, price: Decimal) -> FakeOrder:
        """A resting order of somebody else's hand, without a client id of ours."""
        return self.engine.place(self.foreign_id(), symbol, side, self.limit_word, quantity, price)

    def place_meanwhile(
        self, client_id: str, symbol: str, side: str, quantity: Decimal, price: Decimal | None
    ) -> FakeOrder:
        """An order of ours that another process sent."""
        return self.engine.place(client_id, symbol, side, self.limit_word, quantity, price)

    def foreign_id(self) -> str:
        return "web_1"

    def repeat_and_shuffle(self) -> None:
        """From now on every list of orders, trades or payments comes backwards, with each row twice."""

        def change(name: str, document: Any) -> Any:
            return repeat_rows(document) if any(word in name for word in self.events) else document

        self.server.change = change

    # -- what wires share

    def market(self, name: str, spot: bool = False) -> Market | None:
        """By the name the wire has for it."""
        rows = self.engine.markets.values()
        return next((market for market in rows if market.name == name and market.spot is spot), None)

    def look_up(self, matches: Callable[[FakeOrder | FakeAlgo], bool]) -> FakeOrder | FakeAlgo | None:
        """The newest such order. An order that a conditional one became, under the same id, stands for both."""
        newest: list[FakeOrder | FakeAlgo] = [*self.engine.orders.values(), *self.engine.algos.values()]
        return max(filter(matches, newest), key=lambda order: (order.id, isinstance(order, FakeOrder)), default=None)

    def list_orders(self, market: Callable[[Market], bool]) -> list[FakeOrder | FakeAlgo]:
        """Every order of the markets, each once, oldest first."""
        orders = self.engine.orders
        algos = [algo for algo in self.engine.algos.values() if not (self.engine.keeps_ids and algo.id in orders)]
        rows: list[FakeOrder | FakeAlgo] = [*orders.values(), *algos]
        return sorted(filter(lambda row: market(self.engine.markets[row.symbol]), rows), key=lambda row: row.id)


def is_open(order: FakeOrder | FakeAlgo) -> bool:
    return order.status in OPEN


def empty(names: str) -> Row:
    """Fields that a wire has and nobody here fills."""
    return dict.fromkeys(names.split(), "")


def repeat_rows(document: Any) -> Any:
    """Lists of documents, wherever they are in one."""
    if isinstance(document, list):
        return [*reversed(document), *document] if document and isinstance(document[0], dict) else document
    if isinstance(document, dict):
        return {name: repeat_rows(value) for name, value in document.items()}
    return document
