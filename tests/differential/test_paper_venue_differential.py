"""The paper venue against nautilus_trader's simulated exchange: the same orders and quotes, the same fills, fees, PnL.

Where the two differ by convention, the difference is asserted by its name and its amount.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal as D
from importlib.util import find_spec
from typing import Any, Literal

import pytest

from tests.wire.accounts import FUTURES, open_account
from tests.wire.paper_venue import depth
from zuno.adapters.venues.paper.matching import PaperExchange
from zuno.adapters.venues.paper.tape import Mark
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.model.orders import OrderRequest, OrderSide, OrderType
from zuno.trading.rules.inputs import Fees

if find_spec("nautilus_trader") is None:
    pytest.skip("nautilus_trader is not installed: make .venv/.peers", allow_module_level=True)

BTC, SECOND, CASH = Symbol("BTCUSDT"), 1_000, 100_000
TOLERANCE = D("1e-8")
Kind = Literal["market", "limit", "stop", "cancel"]


@dataclass(frozen=True)
class Wish:
    """An order both exchanges are given right after a quote."""

    kind: Kind
    side: OrderSide
    quantity: D
    price: D | None = None
    reduce_only: bool = False
    order: int = 0
    """What is cancelled."""


@dataclass(frozen=True)
class Quoted:
    bid: D
    size: D = D(5)
    spread: D = D(1)

    @property
    def ask(self) -> D:
        return self.bid + self.spread


@dataclass
class Result:
    fills: list[tuple[int, D, D, bool]] = field(default_factory=list)
    """Number of the order, quantity, price, whether it waited."""
    fees: list[D] = field(default_factory=list)
    signs: list[int] = field(default_factory=list)
    """Bought or sold."""
    realised: list[D] = field(default_factory=list)
    """Of the position, net of fees, after each fill."""


Plan = Mapping[int, Sequence[Wish]]


def trade_on_paper(quotes: Sequence[Quoted], plan: Plan) -> Result:
    engine = PaperExchange(Venue("BINANCE"), Fees().at(FUTURES))
    engine.restore([open_account(at=Millis(0), usd=D(CASH), krw=D(0))])
    result, number, seen = Result(), 0, 0

    def take_fills() -> None:
        nonlocal seen
        for fill in engine.fills[BTC][seen:]:
            result.fills.append((int(fill.client_id), fill.quantity, fill.price, fill.maker))
            result.fees.append(fill.fee)
            result.signs.append(fill.side.sign)
            seen += 1

    for place, quote in enumerate(quotes):
        at = (place + 1) * SECOND
        # Theirs triggers a stop by the side of the touch that it would trade with.
        marks = [Mark(Millis(at), float(price)) for price in (quote.bid, quote.ask)]
        engine.advance(BTC, [depth(at, quote.bid, quote.ask, quote.size), *marks])
        take_fills()
        for wish in plan.get(place, ()):
            if wish.kind == "cancel":
                engine.cancel(str(wish.order), Millis(at))
                continue
            number += 1
            engine.place(to_request(number, wish), Millis(at))
            take_fills()
    result.realised = realise(result)
    return result


def to_request(number: int, wish: Wish) -> OrderRequest:
    kinds = {"market": OrderType.MARKET, "limit": OrderType.LIMIT, "stop": OrderType.STOP_MARKET}
    return OrderRequest(
        client_id=str(number),
        exchange=Venue("BINANCE"),
        symbol=BTC,
        side=wish.side,
        type=kinds[wish.kind],
        quantity=wish.quantity,
        price=wish.price if wish.kind == "limit" else None,
        trigger=wish.price if wish.kind == "stop" else None,
        reduce_only=wish.reduce_only,
        leverage=10,
    )


def trade_at_theirs(quotes: Sequence[Quoted], plan: Plan) -> Result:
    from nautilus_trader.backtest.engine import BacktestEngine, BacktestEngineConfig
    from nautilus_trader.config import LoggingConfig, StrategyConfig
    from nautilus_trader.model import currencies, enums, identifiers, objects
    from nautilus_trader.model.data import QuoteTick
    from nautilus_trader.model.instruments import CryptoPerpetual
    from nautilus_trader.trading.strategy import Strategy

    venue = identifiers.Venue("BINANCE")
    instrument = CryptoPerpetual(
        instrument_id=identifiers.InstrumentId(identifiers.Symbol("BTCUSDT-PERP"), venue),
        raw_symbol=identifiers.Symbol("BTCUSDT"),
        base_currency=currencies.BTC,
        quote_currency=currencies.USDT,
        settlement_currency=currencies.USDT,
        is_inverse=False,
        price_precision=1,
        price_increment=objects.Price.from_str("0.1"),
        size_precision=3,
        size_increment=objects.Quantity.from_str("0.001"),
        margin_init=D("0.05"),
        margin_maint=D("0.025"),
        maker_fee=D("0.0002"),
        taker_fee=D("0.0005"),
        ts_event=0,
        ts_init=0,
    )
    result = Result()
    numbers: dict[Any, int] = {}

    class Follower(Strategy):
        def __init__(self) -> None:
            super().__init__(StrategyConfig())
            self.place = -1

        def on_start(self) -> None:
            self.subscribe_quote_ticks(instrument.id)

        def on_quote_tick(self, tick: Any) -> None:
            self.place += 1
            for wish in plan.get(self.place, ()):
                if wish.kind == "cancel":
                    (id,) = (id for id, number in numbers.items() if number == wish.order)
                    self.cancel_order(self.cache.order(id))
                    continue
                side = enums.OrderSide.BUY if wish.side is OrderSide.BUY else enums.OrderSide.SELL
                quantity = instrument.make_qty(wish.quantity)
                make, price = self.order_factory, None if wish.price is None else instrument.make_price(wish.price)
                if wish.kind == "market":
                    order = make.market(instrument.id, side, quantity, reduce_only=wish.reduce_only)
                elif wish.kind == "limit":
                    order = make.limit(instrument.id, side, quantity, price, reduce_only=wish.reduce_only)
                else:
                    order = make.stop_market(instrument.id, side, quantity, price, reduce_only=wish.reduce_only)
                numbers[order.client_order_id] = len(numbers) + 1
                self.submit_order(order)

        def on_event(self, event: Any) -> None:
            if type(event).__name__ == "OrderFilled":
                maker = event.liquidity_side == enums.LiquiditySide.MAKER
                number = numbers[event.client_order_id]
                result.fills.append((number, D(str(event.last_qty)), D(str(event.last_px)), maker))
                result.fees.append(event.commission.as_decimal())
                result.signs.append(1 if event.order_side == enums.OrderSide.BUY else -1)
            elif type(event).__name__ in ("PositionOpened", "PositionChanged", "PositionClosed"):
                result.realised.append(event.realized_pnl.as_decimal())

    engine = BacktestEngine(BacktestEngineConfig(logging=LoggingConfig(bypass_logging=True)))
    try:
        engine.add_venue(
            venue,
            enums.OmsType.NETTING,
            enums.AccountType.MARGIN,
            starting_balances=[objects.Money(CASH, currencies.USDT)],
            default_leverage=D(10),
        )
        engine.add_instrument(instrument)
        ticks = [
            QuoteTick(
                instrument.id,
                objects.Price.from_str(f"{quote.bid:.1f}"),
                objects.Price.from_str(f"{quote.ask:.1f}"),
                objects.Quantity.from_str(f"{quote.size:.3f}"),
                objects.Quantity.from_str(f"{quote.size:.3f}"),
                (place + 1) * 10**9,
                (place + 1) * 10**9,
            )
            for place, quote in enumerate(quotes)
        ]
        engine.add_data(ticks)
        engine.add_strategy(Follower())
        engine.run()
    finally:
        engine.dispose()
    return result


def realise(result: Result) -> list[D]:
    """Realised PnL of the position net of its fees after each fill, as theirs counts it; a turn is a close and an
    opening. Worked out here from the fills alone."""
    held, cost, net = D(0), D(0), D(0)
    told: list[D] = []
    for (_, quantity, price, _), fee, sign in zip(result.fills, result.fees, result.signs, strict=True):
        signed = sign * quantity
        if held and (held > 0) != (signed > 0):
            closed = min(abs(held), quantity)
            entry = cost / held
            gained = closed * (price - entry) * (1 if held > 0 else -1)
            share = fee * closed / quantity
            net += gained - share
            told.append(net)
            cost -= entry * closed * (1 if held > 0 else -1)
            held += closed * sign
            if quantity > closed:
                held, cost = sign * (quantity - closed), sign * (quantity - closed) * price
                net = -(fee - share)
                told.append(net)
            continue
        if not held:
            net = D(0)
        net -= fee
        held += signed
        cost += signed * price
        told.append(net)
    return told


def compare(quotes: Sequence[Quoted], plan: Plan) -> tuple[Result, Result]:
    return trade_on_paper(quotes, plan), trade_at_theirs(quotes, plan)


def require_same(ours: Result, theirs: Result) -> None:
    assert ours.fills == theirs.fills
    assert ours.signs == theirs.signs
    assert all(abs(fee - other) <= TOLERANCE for fee, other in zip(ours.fees, theirs.fees, strict=True))
    for count, (mine, other) in enumerate(zip(ours.realised, theirs.realised, strict=True), 1):
        assert abs(mine - other) <= TOLERANCE * count


class RandomMarket:
    """Trades from flat to flat, one order at work at a time, on a walk whose steps meet a stop and never jump over it,
    and trade through a limit and never touch it. Orders are far smaller than the touch."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.level = 2_000
        self.quotes = [Quoted(D(20_000))]
        self.plan: dict[int, list[Wish]] = {}
        self.ordered = 0
        for _ in range(8):
            self.trade()

    def walk(self, steps: int) -> None:
        """So many steps of the grid, up or down."""
        for _ in range(abs(steps)):
            self.level += 1 if steps > 0 else -1
            self.quotes.append(Quoted(D(self.level * 10)))

    def wish(self, *wish: Any) -> None:
        self.ordered += 1
        self.plan.setdefault(len(self.quotes) - 1, []).append(Wish(*wish))

    def size(self) -> D:
        return D(self.draw.randint(10, 300)) / 1_000

    def rest(self, side: OrderSide, quantity: D, reduce_only: bool) -> None:
        away = self.draw.randint(1, 3)
        self.wish("limit", side, quantity, D(self.level * 10) + D("0.5") - side.sign * 10 * away, reduce_only)
        self.walk(-side.sign * (away + 1))
        self.quotes.append(self.quotes[-1])  # or theirs gives the next taker the price of this maker

    def trade(self) -> None:
        side, held = self.draw.choice(tuple(OrderSide)), self.size()
        match self.draw.choice(("market", "marketable", "limit")):
            case "market":
                self.wish("market", side, held)
            case "marketable":
                self.wish("limit", side, held, D(self.level * 10) + side.sign * 15)
            case _:
                self.rest(side, held, False)
        self.walk(self.draw.randint(-3, 3))
        if self.draw.random() < 0.5:
            more = self.size()
            self.wish("market", side, more)
            held += more
            self.walk(self.draw.choice((-1, 1)))
        if self.draw.random() < 0.5:
            self.wish("market", side.opposite, held / 2 // D("0.001") * D("0.001"), None, True)
            held -= held / 2 // D("0.001") * D("0.001")
            self.walk(self.draw.choice((-1, 1)))
        match self.draw.choice(("stop", "market", "limit")):
            case "stop":
                away = self.draw.randint(1, 4)
                met = D(self.level * 10) - side.sign * 10 * away + (0 if side is OrderSide.BUY else 1)
                self.wish("stop", side.opposite, held, met, True)
                self.walk(-side.sign * (away + 1))
            case "market":
                self.wish("market", side.opposite, held + D("0.1"), None, True)
                self.walk(1)
            case _:
                self.rest(side.opposite, held, True)


class BusyMarket(RandomMarket):
    """Several orders at work at a time: an entry in parts, at the market and at limits that wait beside each other, and
    a stop beside a target, of which one is met. Two parts never wait at one price."""

    def trade(self) -> None:
        side = self.draw.choice(tuple(OrderSide))
        held = D(0)
        for _ in range(self.draw.randint(1, 3)):
            held += (part := self.size())
            self.wish("market", side, part)
        deepest, steps = 0, self.draw.sample((1, 2, 3, 4, 5), self.draw.randint(1, 4))
        for away in steps:
            held += (part := self.size())
            self.wish("limit", side, part, D(self.level * 10) + D("0.5") - side.sign * 10 * away)
            deepest = max(deepest, away)
        self.walk(-side.sign * (deepest + 1))
        self.quotes.append(self.quotes[-1])
        away = self.draw.randint(1, 4)
        met = D(self.level * 10) - side.sign * 10 * away + (0 if side is OrderSide.BUY else 1)
        self.wish("stop", side.opposite, held, met, True)
        self.wish("limit", side.opposite, held, D(self.level * 10) + D("0.5") + side.sign * 10 * away, True)
        won = self.draw.choice((True, False))
        self.walk((1 if won else -1) * side.sign * (away + 1))
        left = Wish("cancel", side, D(1), order=self.ordered - 1 if won else self.ordered)
        self.plan[len(self.quotes) - 1] = [left]
        self.quotes.append(self.quotes[-1])


@pytest.mark.soak(every=3)
@pytest.mark.parametrize("seed", range(6))
def test_several_orders_at_work_give_the_same_fills_fees_and_results(seed: int) -> None:
    market = BusyMarket(seed)
    ours, theirs = compare(market.quotes, market.plan)
    assert len(ours.fills) >= 30
    assert sum(sign * fill[1] for sign, fill in zip(ours.signs, ours.fills, strict=True)) == 0
    require_same(ours, theirs)


@pytest.mark.parametrize("seed", range(6))
def test_the_same_orders_on_the_same_quotes_give_the_same_fills_fees_and_results(seed: int) -> None:
    market = RandomMarket(seed)
    ours, theirs = compare(market.quotes, market.plan)
    assert len(ours.fills) >= 16
    assert sum(sign * fill[1] for sign, fill in zip(ours.signs, ours.fills, strict=True)) == 0
    require_same(ours, theirs)


@pytest.mark.parametrize("side", list(OrderSide))
def test_a_stop_that_the_market_walks_into_is_filled_alike(side: OrderSide) -> None:
    start = D(20_000)
    quotes = [Quoted(start - side.sign * 10 * step) for step in range(8)]
    touch = quotes[5].bid if side is OrderSide.BUY else quotes[5].ask
    stop = Wish("stop", side.opposite, D("0.7"), touch, reduce_only=True)
    plan = {
        0: [Wish("market", side, D("0.5"))],
        2: [Wish("limit", side, D("0.2"), quotes[3].bid + D("0.5") + side.sign * 2)],
        4: [stop],
    }
    ours, theirs = compare(quotes, plan)
    require_same(ours, theirs)
    assert sum(quantity for _, quantity, _, _ in ours.fills) == D("1.4")


# -- conventions


def test_convention_a_gapped_stop_fills_at_the_gap_here_and_at_its_trigger_there() -> None:
    quotes = [Quoted(D(20_000)), Quoted(D(19_800)), Quoted(D(19_700))]
    stop = Wish("stop", OrderSide.SELL, D("0.5"), D(19_900), reduce_only=True)
    ours, theirs = compare(quotes, {0: [Wish("market", OrderSide.BUY, D("0.5")), stop]})
    assert ours.fills[1][2] == D(19_800)
    assert theirs.fills[1][2] == D(19_900)
    gap, fee = D("0.5") * 100, D("0.5") * 100 * D("0.0005")
    assert abs(theirs.realised[-1] - ours.realised[-1] - (gap - fee)) <= 2 * TOLERANCE


def test_convention_what_the_touch_does_not_hold_fills_one_tick_worse_there_and_not_here() -> None:
    quotes = [Quoted(D(20_000), size=D("0.4")), Quoted(D(20_000))]
    ours, theirs = compare(quotes, {0: [Wish("market", OrderSide.BUY, D(1))]})
    assert ours.fills == theirs.fills[:1] == [(1, D("0.4"), D(20_001), False)]
    assert theirs.fills[1:] == [(1, D("0.6"), D("20001.1"), False)]


def test_convention_an_order_that_rests_is_filled_at_the_touch_there_and_when_traded_through_here() -> None:
    quotes = [Quoted(D(20_000)), Quoted(D(19_989)), Quoted(D(19_988))]
    plan = {0: [Wish("limit", OrderSide.BUY, D("0.5"), D(19_990))]}
    touched, theirs = compare(quotes[:2], plan)
    assert touched.fills == []
    through, _ = compare(quotes, plan)
    assert through.fills == theirs.fills == [(1, D("0.5"), D(19_990), True)]


@pytest.mark.parametrize("side", list(OrderSide))
def test_convention_a_quote_trades_through_one_order_that_rests_there_and_through_all_here(side: OrderSide) -> None:
    prices = [D(20_000) - side.sign * away + D("0.5") for away in (10, 20, 30)]
    plan = {0: [Wish("limit", side, D("0.2"), price) for price in prices]}
    quotes = [Quoted(D(20_000)), *[Quoted(D(20_000) - side.sign * 60)] * 3]
    ours, theirs = compare(quotes[:2], plan)
    assert [fill[2] for fill in ours.fills] == prices
    assert theirs.fills == ours.fills[:1]
    require_same(*compare(quotes, plan))


def test_convention_a_quote_is_there_for_every_order_there_and_once_here() -> None:
    plan = {0: [Wish("market", OrderSide.BUY, D("0.4")), Wish("market", OrderSide.BUY, D("0.4"))]}
    ours, theirs = compare([Quoted(D(20_000), size=D("0.4")), Quoted(D(20_000))], plan)
    assert theirs.fills == [(1, D("0.4"), D(20_001), False), (2, D("0.4"), D(20_001), False)]
    assert ours.fills == theirs.fills[:1]


def test_convention_a_taker_behind_a_maker_on_one_quote_pays_the_makers_price_there_and_the_touch_here() -> None:
    plan = {
        0: [Wish("limit", OrderSide.BUY, D("0.5"), D("19990.5"))],
        1: [Wish("market", OrderSide.BUY, D("0.5"))],
    }
    ours, theirs = compare([Quoted(D(20_000)), Quoted(D(19_980)), Quoted(D(19_980))], plan)
    assert ours.fills[0] == theirs.fills[0] == (1, D("0.5"), D("19990.5"), True)
    assert (ours.fills[1][2], theirs.fills[1][2]) == (D(19_981), D("19990.5"))


def test_convention_realised_pnl_is_net_of_commission_there_and_before_fees_in_the_ledger_here() -> None:
    quotes = [Quoted(D(20_000)), Quoted(D(20_100))]
    plan = {0: [Wish("market", OrderSide.BUY, D("0.5"))], 1: [Wish("market", OrderSide.SELL, D("0.5"), None, True)]}
    ours, theirs = compare(quotes, plan)
    gross = D("0.5") * (D(20_100) - D(20_001))
    assert abs(theirs.realised[-1] - (gross - sum(ours.fees))) <= 2 * TOLERANCE
