"""A venue's wire: what is asked of it, and its rows read by its table. `VenueAccount` makes an account of it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import ClassVar

from zuno.adapters.venues.exchange import Params
from zuno.adapters.venues.orders.client import TradingClient
from zuno.adapters.venues.orders.wire import Cells, Holding, Listing, Question, Trade, WireTable, clean_id, read_reason
from zuno.adapters.venues.vendor_json import VendorJson
from zuno.kernel.errors import Malformed, UsageError
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.model.orders import ZERO, ClientId, Order, OrderRequest, OrderStatus, OrderType, TimeInForce
from zuno.trading.rules.execution_styles import CONDITIONAL


class VenueWire(ABC):
    wire: ClassVar[WireTable]

    def __init__(self, client: TradingClient, symbols: Sequence[Symbol], page: int) -> None:
        self._client, self.read = client, client.read
        self.exchange = self.wire.exchange
        self._page = page or self.wire.page
        self._names = {self.name(symbol): symbol for symbol in symbols}
        if len(self._names) < len(set(symbols)):
            raise UsageError(f"Two of {', '.join(symbols)} have one name at {self.wire.exchange.label}.")
        self._units: dict[str, Decimal] = {}

    # -- names

    def name(self, symbol: Symbol) -> str:
        here = symbol.venue is self.wire.exchange
        return self.wire.market.format(base=symbol.base, quote=symbol.quote if here else self.wire.asset)

    def symbol_of(self, row: VendorJson) -> Symbol:
        return self._names[row.choice(self.wire.market_field, list(self._names))]

    # -- what a wire says: markets by their names on it

    @abstractmethod
    async def read_rights(self) -> tuple[bool, ...]:
        """Whether the keys may trade and withdraw, and the account is in one-way mode and on isolated margin; where the
        venue says so, also whether the keys may move money between its wallets."""

    @abstractmethod
    def ask_for_listings(self, name: str | None) -> Question:
        """The whole list; of that name at least, where there is one."""

    @abstractmethod
    async def read_touch(self, name: str) -> tuple[Decimal, Decimal, Decimal, Millis]:
        """Bid, ask, mark and their moment."""

    @abstractmethod
    async def ask_to_place(self, order: OrderRequest, name: str, good_till: Millis | None) -> Question: ...

    @abstractmethod
    def ask_for_order(self, name: str, client_id: ClientId, kind: OrderType | None) -> list[Question]:
        """Where an order of that id may be, in turn."""

    @abstractmethod
    def ask_to_cancel(self, name: str, client_id: ClientId, kind: OrderType, venue_id: str) -> Question: ...

    @abstractmethod
    def ask_for_open(self, name: str) -> list[Question]: ...

    @abstractmethod
    async def balance_rows(self) -> list[VendorJson]: ...

    async def parse_placed(self, order: OrderRequest, answer: VendorJson) -> Order | None:
        """None: the answer is an acknowledgement alone, and the order is looked up."""
        return None

    async def prepare(self, order: OrderRequest, name: str) -> None:  # noqa: B027
        """Margin mode and leverage before an order that opens a position."""

    async def check_settings(self) -> None:  # noqa: B027
        """`Refused` where the account is set otherwise than it has to be."""

    def ask_for_trades(self, name: str, low: Millis, high: Millis) -> Question:
        raise NotImplementedError

    def ask_for_order_trades(self, name: str, venue_id: str) -> Question:
        raise NotImplementedError

    async def find_owner(self, name: str, trade: Trade) -> ClientId:
        """The client id of a trade's order, where its row names none of ours."""
        return trade.client_id or trade.order_id

    def ask_for_funding(self, name: str, low: Millis, high: Millis) -> Question:
        raise NotImplementedError

    async def position_rows(self) -> list[VendorJson]:
        raise NotImplementedError

    async def read_leverage(self, name: str, cells: Cells) -> int:
        return int(cells.require("leverage"))

    def child_of(self, row: VendorJson) -> Question | None:
        """Where the order is that a conditional one was turned into, if its trades are not its own."""
        return None

    def turn_page(self, params: Mapping[str, object], answer: VendorJson, rows: Sequence[VendorJson]) -> Params | None:
        """What is asked for after a page; None: there is no more."""
        return None

    def rows_of(self, answer: VendorJson) -> list[VendorJson]:
        for part in self.wire.rows:
            answer = answer.child(part)
        return answer.items()

    def row_of(self, answer: VendorJson) -> VendorJson | None:
        """The order in the answer to a look-up."""
        return next(iter(self.rows_of(answer)), None) if self.wire.rows else answer

    def row_id(self, row: VendorJson, field: str) -> str:
        return str(row[field])

    # -- rows, by the table

    def flatten_listing(self, row: VendorJson) -> VendorJson:
        return row

    async def read_listings(self, name: str | None = None) -> list[Listing]:
        rows = [self.flatten_listing(row) for row in await self.read_pages(self.ask_for_listings(name))]
        listed = (Cells(row, self.wire.listing) for row in rows if name in (None, row.text(self.wire.market_field)))
        kind, asset = list(self.wire.trading[1:]), self.wire.asset
        return [
            self.parse_listing(cells)
            for cells in listed
            if name or (cells.words("state")[1:] == kind and cells.word("quote") == asset)
        ]

    def parse_listing(self, cells: Cells) -> Listing:
        name, unit = cells.word("name"), cells.total("unit") if "unit" in cells else Decimal(1)
        self._units[name] = unit
        least = cells.require("notional") if "notional" in cells else Decimal(str(self.exchange.least_notional))
        if not (lots := cells.numbers("lot")) or not (most := cells.numbers("most")):
            raise Malformed(f"{cells.row.what} lacks the sizes of {name}")
        return Listing(
            name,
            cells.word("base"),
            cells.word("quote"),
            cells.require("tick"),
            max(lots) * unit,
            max(cells.numbers("least"), default=ZERO) * unit,
            min(most) * unit,
            least,
            tuple(cells.words("state")) == self.wire.trading,
            unit,
            int(cells.require("minutes")) // 60 if "minutes" in cells else None,
        )

    async def unit_of(self, name: str) -> Decimal:
        """How much of the base currency one of the venue's units of size is."""
        if "unit" in self.wire.listing and name not in self._units and not await self.read_listings(name):
            raise Malformed(f"{self._client.name} does not list {name}")
        return self._units.get(name, Decimal(1))

    def kind_of(self, cells: Cells) -> OrderType:
        return cells.choose("kind", self.wire.types)

    def status_of(self, cells: Cells) -> OrderStatus:
        algo = cells.names is self.wire.algo
        return cells.choose("status", self.wire.algo_statuses if algo else self.wire.statuses)

    def is_algo(self, row: VendorJson) -> bool:
        return bool(self.wire.algo) and self.wire.algo["id"][0] in row

    async def parse_order(self, row: VendorJson, *, listed: bool = False) -> Order:
        """`listed`: of a list of orders, which may leave something out."""
        return await self.build_order(Cells(row, self.wire.algo if self.is_algo(row) else self.wire.order))

    async def build_order(self, cells: Cells, *, closes: Decimal | None = None, client_id: str | None = None) -> Order:
        """`closes`: how much an order without a quantity reduces a position by."""
        symbol, kind, status = self.symbol_of(cells.row), self.kind_of(cells), self.status_of(cells)
        unit = await self.unit_of(self.name(symbol))
        quantity = cells.require("quantity") * unit if closes is None else closes
        filled = cells.total("filled") * unit
        if "left" in cells and status is not OrderStatus.REJECTED:
            filled = quantity - cells.require("left") * unit
        average = cells.number("average")
        if filled and "funds" in cells:
            average = cells.require("funds") / filled
        price, trigger, known = cells.number("price"), cells.number("trigger"), self.wire.read_in_force
        in_force = known.get(cells.word("in_force")) or known.get(cells.word("kind"), TimeInForce.GTC)
        if (kind is OrderType.LIMIT and price is None) or (kind in CONDITIONAL and trigger is None):
            raise Malformed(f"{cells.row.what}: an order of type {kind} without its price")
        return Order(
            request=OrderRequest(
                client_id=clean_id(cells.word("client_id") if client_id is None else client_id),
                exchange=self.exchange,
                symbol=symbol,
                side=cells.choose("side", self.wire.sides),
                type=kind,
                quantity=quantity,
                price=price if kind is OrderType.LIMIT else None,
                trigger=trigger if kind in CONDITIONAL else None,
                time_in_force=in_force if kind is OrderType.LIMIT else TimeInForce.GTC,
                reduce_only=closes is not None or cells.word("reduce_only").lower() == "true",
            ),
            venue_id=cells.word("id"),
            status=status,
            filled=filled,
            average_price=average if filled and average and average > 0 else None,
            updated=cells.moment("updated"),
            reason=read_reason(cells.word("reason")) if status is OrderStatus.REJECTED else "",
        )

    def parse_trade(self, symbol: Symbol, row: VendorJson) -> Trade:
        cells, name = Cells(row, self.wire.trade), self.name(symbol)
        if row.text(self.wire.market_field) != name:
            raise Malformed(f"{self._client.name} answered with the trades of another market")
        id = cells.word("id")
        return Trade(
            f"{symbol}-{id}" if self.wire.numbers_by_market else id,
            cells.word("order_id"),
            cells.word("client_id"),
            cells.choose("side", self.wire.sides),
            cells.require("quantity") * self._units.get(name, Decimal(1)),
            cells.require("price"),
            cells.require("fee") * self.wire.fee_sign,
            cells.word("asset") or self.wire.asset,
            cells.word("maker") == self.wire.maker,
            cells.moment("at"),
            cells.word("forced") in self.wire.forced,
        )

    async def balances(self) -> dict[str, Holding]:
        held = {}
        for row in await self.balance_rows():
            cells = Cells(row, self.wire.balance)
            total, cost = cells.total("total"), cells.number("cost")
            free = cells.total("free") if "free" in cells else total - cells.total("used")
            held[cells.word("asset")] = Holding(total, free, cost or None)
        return held

    # -- questions

    async def ask(self, question: Question) -> VendorJson:
        assert isinstance(question.params, Mapping)
        return await self._client.read(question.endpoint, question.what, **question.params)

    async def read_pages(self, question: Question, id_field: str | None = None) -> list[VendorJson]:
        """The rows of every page, each once by its id; without one, as they come."""
        rows: dict[str, VendorJson] = {}
        while True:
            answer = await self.ask(question)
            page = self.rows_of(answer)
            numbered = enumerate(page, len(rows))
            keyed = {str(number) if id_field is None else self.row_id(row, id_field): row for number, row in numbered}
            fresh = {key: row for key, row in keyed.items() if key not in rows}
            rows |= fresh
            assert isinstance(question.params, Mapping)
            following = self.turn_page(question.params, answer, page) if fresh else None
            if following is None:
                return list(rows.values())
            question = question._replace(params=following)

    async def read_trades(self, name: str, low: Millis, high: Millis) -> list[VendorJson]:
        return await self.read_pages(self.ask_for_trades(name, low, high), self.wire.trade["id"][0])
