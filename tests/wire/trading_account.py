"""An account with a past: a trade that was won, one that was stopped out, one that is open and protected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.account_writer import AccountWriter
from zuno.trading.model.account import LiquidityStated
from zuno.trading.model.cycle import JudgeKind, RegimeFamily, Style
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Mode, Side
from zuno.trading.model.memory import ClosedTrade
from zuno.trading.model.orders import (
    Fill,
    FundingPayment,
    Order,
    OrderRequest,
    OrderSide,
    OrderStatus,
    OrderType,
    client_order_id,
    opening_side,
)
from zuno.trading.model.sleeves import DEBATE
from zuno.trading.model.trade_events import (
    ClockSet,
    FillBooked,
    FundingBooked,
    IntentEnded,
    IntentKind,
    IntentLeg,
    IntentStored,
    ManualChange,
    OrderPlanned,
    OrderUpdated,
    SleevesSet,
    SleeveTransferred,
    TradeIntent,
)
from zuno.trading.rules.performance import AccountLog

FEE = Decimal("0.0005")


class AccountStory:
    """Writes what a desk and its exchange would have written."""

    def __init__(self, log: AccountLog, account: str) -> None:
        self._writer = AccountWriter(log, account)
        self._count = 0

    async def open_trade(
        self,
        at: int,
        symbol: Symbol,
        side: Side,
        quantity: str,
        entry: str,
        stop: str,
        target: str,
        *,
        exchange: Venue = Venue("BINANCE"),
        leverage: int = 2,
        sleeve: str = DEBATE,
    ) -> str:
        """The intent of it: filled at the entry, with its stop and target at the exchange."""
        self._count += 1
        prices = {name: Decimal(text) for name, text in (("entry", entry), ("stop", stop), ("target", target))}
        leg = IntentLeg(exchange=exchange, quantity=Decimal(quantity), leverage=leverage, **prices)
        intent = TradeIntent(
            id=f"int_{self._count:024x}",
            decision=f"run_{self._count:016x}",
            kind=IntentKind.OPEN,
            symbol=symbol,
            mode=Mode.SWING,
            side=side,
            style=Style.MOMENTUM_SNIPER,
            legs=(leg,),
            hold="5d",
            valid_until=Millis(at + HOUR_MS),
            mark=prices["entry"],
            atr=Decimal(10),
            judge=JudgeKind.RULES,
            family=RegimeFamily.RANGE,
            edge=0.05,
            llm_cost_usd=Decimal("0.03"),
            sleeve=sleeve,
        )
        await self._writer.write([IntentStored(at=Millis(at), intent=intent, ruling=None)])
        way = opening_side(side)
        await self._fill(at, intent, "entry", way, prices["entry"], OrderType.MARKET, None)
        for purpose, kind in (("stop", OrderType.STOP_MARKET), ("target", OrderType.TAKE_PROFIT_MARKET)):
            await self._place(at, intent, purpose, way.opposite, kind, prices[purpose])
        await self._writer.write([IntentEnded(at=Millis(at), intent=intent.id, state="done")])
        return intent.id

    async def set_sleeves(self, at: int, **shares: str) -> None:
        """Each but the debate is given its share of the usual dollars of a paper account."""
        wanted = {name: Decimal(share) for name, share in shares.items()}
        await self._writer.write([SleevesSet(at=Millis(at), shares=wanted)])
        for name, share in wanted.items():
            if name != DEBATE:
                await self.transfer(at, DEBATE, name, str(share * Venue("BINANCE").paper_cash))

    async def transfer(self, at: int, source: str, target: str, amount: str) -> None:
        moved = {"source": source, "target": target, "amount": Decimal(amount), "currency": "USD"}
        event = SleeveTransferred.model_validate({"at": at, "key": f"move-{at}-{target}", **moved})
        await self._writer.write([event])

    async def exit_trade(self, at: int, intent_id: str, purpose: str) -> None:
        """At its stop or its target; the other one is cancelled."""
        book = await self._writer.refresh()
        intent = book.intents[intent_id].intent
        (leg,) = intent.legs
        price = leg.stop if purpose == "stop" else leg.target
        assert price is not None
        other = "target" if purpose == "stop" else "stop"
        await self._fill(at, intent, purpose, opening_side(intent.side).opposite, price, None, price)
        order = self._order(intent, other)
        await self._writer.write([OrderUpdated(at=Millis(at), order=self._word(at, order, OrderStatus.CANCELED))])

    async def pay_funding(self, at: int, symbol: Symbol, amount: str) -> None:
        payment = FundingPayment(
            id=f"funding-{at}", exchange=Venue("BINANCE"), symbol=symbol, amount=Decimal(amount), at=Millis(at)
        )
        await self._writer.write([FundingBooked(at=Millis(at), payment=payment)])

    async def state_liquidity(self, at: int, symbol: Symbol, quantity: float) -> None:
        change = LiquidityStated(at=Millis(at), symbol=symbol, quantity=quantity)
        await self._writer.write([ManualChange(at=Millis(at), change=change)])

    async def come_to(self, at: int) -> None:
        """Recorded time, up to a moment at which nothing happened."""
        await self._writer.refresh()
        await self._writer.write([ClockSet(at=Millis(at), recorded=True)])

    # -- parts

    async def _fill(
        self,
        at: int,
        intent: TradeIntent,
        purpose: str,
        side: OrderSide,
        price: Decimal,
        kind: OrderType | None,
        trigger: Decimal | None,
    ) -> None:
        if kind is not None:
            await self._place(at, intent, purpose, side, kind, trigger)
        request = self._order(intent, purpose)
        fill = Fill(
            id=f"fill-{request.client_id}",
            client_id=request.client_id,
            exchange=request.exchange,
            symbol=request.symbol,
            side=side,
            quantity=request.quantity,
            price=price,
            fee=request.quantity * price * FEE,
            maker=False,
            at=Millis(at),
        )
        await self._writer.write(
            [
                FillBooked(at=Millis(at), fill=fill),
                OrderUpdated(at=Millis(at), order=self._word(at, request, OrderStatus.FILLED, price)),
            ]
        )

    async def _place(
        self, at: int, intent: TradeIntent, purpose: str, side: OrderSide, kind: OrderType, trigger: Decimal | None
    ) -> None:
        (leg,) = intent.legs
        request = OrderRequest(
            client_id=client_order_id(intent.id, leg.exchange, purpose),
            exchange=leg.exchange,
            symbol=intent.symbol,
            side=side,
            type=kind,
            quantity=leg.quantity,
            trigger=trigger,
            reduce_only=purpose != "entry",
            leverage=leg.leverage,
        )
        planned = OrderPlanned.model_validate(
            {"at": at, "intent": intent.id, "purpose": purpose, "order": request, "expires": None}
        )
        await self._writer.write(
            [planned, OrderUpdated(at=Millis(at), order=self._word(at, request, OrderStatus.OPEN))]
        )

    def _order(self, intent: TradeIntent, purpose: str) -> OrderRequest:
        (leg,) = intent.legs
        return self._writer.book.orders[client_order_id(intent.id, leg.exchange, purpose)].request

    def _word(self, at: int, request: OrderRequest, status: OrderStatus, price: Decimal | None = None) -> Order:
        filled = request.quantity if status is OrderStatus.FILLED else Decimal(0)
        return Order(
            request=request,
            venue_id=f"v-{request.client_id[2:10]}",
            status=status,
            filled=filled,
            average_price=price,
            updated=Millis(at),
        )


async def write_story(log: AccountLog, account: str, end: int) -> None:
    """At the end BTC is at 60,000 and ETH at 3,000."""
    story = AccountStory(log, account)
    first = await story.open_trade(end - 20 * HOUR_MS, Symbol("ETHUSDT"), Side.LONG, "0.5", "2900", "2850", "2980")
    await story.exit_trade(end - 14 * HOUR_MS, first, "target")
    second = await story.open_trade(
        end - 12 * HOUR_MS, Symbol("BTCUSDT"), Side.SHORT, "0.01", "59800", "60400", "58000"
    )
    await story.pay_funding(end - 8 * HOUR_MS, Symbol("BTCUSDT"), "0.06")
    await story.exit_trade(end - 7 * HOUR_MS, second, "stop")
    await story.open_trade(end - 3 * HOUR_MS, Symbol("BTCUSDT"), Side.LONG, "0.02", "59500", "58900", "61500")
    await story.state_liquidity(end - 2 * HOUR_MS - MINUTE_MS, Symbol("ETHUSDT"), 0.25)
    await story.come_to(end)


class MemoryTradeRecord:
    """The `TradeRecord` of these trades, by market."""

    def __init__(self, trades: Mapping[str, Iterable[ClosedTrade]] | None = None) -> None:
        self._trades = {
            origin: tuple(sorted(closed, key=lambda trade: trade.closed)) for origin, closed in (trades or {}).items()
        }

    async def closed_trades(self, origin: str, before: Millis) -> tuple[ClosedTrade, ...]:
        return tuple(trade for trade in self._trades.get(origin, ()) if trade.closed < before)
