"""Kill -9 a desk at every persisted step of a trade and after every answer of the venue, restart it, and count.

The trade: opened in parts with a partial fill, protected, scaled into, topped up, its stop moved, funding settled,
closed by a ruling; then a short (at a spot exchange a second long) that ends at its stop. On the paper venue, whose
state is in the same journal, and at the fake of every wire over loopback, which outlives the desk; there it lists what
was sent before the desk died no sooner than after 0, 3 or 12 s, each in turn. And a position of
two legs, spot and perpetual, on paper and at each house that has both: opened in part, grown, cut for a smaller
target, cut twice as its short comes near to its liquidation, closed, opened anew where its short finds no buyer, and
once more. Where no margin can be added the first cut undoes both legs. For each point one process dies there by
SIGKILL and another starts: no order may be made twice, no position may be without its stop, and no leg alone, once
the start is done, and in the end the ledger must equal the venue.

The processes are forks of one that has loaded everything; it also serves the fake exchange.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from tests.wire.exchanges.account import FakeExchange
from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.harness import WIRES, WireHarness, open_wire, over_wire
from tests.wire.exchanges.matching import Engine
from tests.wire.order_gate import BTC, card, rule
from tests.wire.paper_venue import START, ListTape, depth
from zuno.adapters.account.trade_log import JournalTradeLog
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.sqlite import open_sqlite
from zuno.adapters.venues.orders.wires.binance_spot import BinanceFunds
from zuno.adapters.venues.paper.tape import FundingRate, Mark
from zuno.adapters.venues.paper.venue import PaperFunds, PaperVenue, venue_account
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Journal
from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.carry import HedgeTarget
from zuno.trading.execute.intents import RulingToExecute
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.targets import TargetPosition
from zuno.trading.execute.venue_context import GateContext
from zuno.trading.model.cycle import Call, Leg, Style, Target
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Mode, Side
from zuno.trading.model.orders import ClientId, OrderSide, OrderStatus, OrderType
from zuno.trading.model.sleeves import DEBATE, TREND, SleeveShares
from zuno.trading.model.trade_events import OrderUpdated
from zuno.trading.ports.venue import MarginFunds, OrderVenue
from zuno.trading.rules.inputs import Fees
from zuno.trading.rules.protections import ProtectionLimits
from zuno.trading.rules.sleeve_funds import list_places, plan_opening

DIED = -signal.SIGKILL
CASH = Decimal(2_000)
LIMITS = ProtectionLimits(cooldown_minutes=0, daily_loss_pct=Decimal(50), max_drawdown_pct=Decimal(50))
NO_LIMIT = Decimal(1_000)
LAGS = (0, 3_000, 12_000)
"""Milliseconds for which what was sent before a desk died is not listed."""
LOOKS = 30


@dataclass(frozen=True)
class Step:
    """What the market does, and what the desk is then asked for."""

    name: str
    price: int
    size: Decimal = NO_LIMIT
    ask: str = "advance"
    funding: bool = False
    sold_size: Decimal | None = None
    """At the perpetuals, where it is another one."""
    quantity: Decimal = Decimal("0.05")
    """Of each leg that is asked for."""


STEPS = (
    Step("open, filled in part", 20_000, Decimal("0.012"), "open"),
    Step("scale in", 19_890),
    Step("top up", 19_890, ask="top up"),
    Step("move the stop", 19_890, ask="tighten"),
    Step("funding", 19_900, funding=True),
    Step("close", 19_950, ask="close"),
    Step("open a short", 19_950, ask="short"),
    Step("the stop is hit", 20_500),
    Step("the end", 20_500),
)
LEG_STEPS = (
    Step("open, filled in part", 20_000, Decimal("0.0305"), "hedge"),
    Step("grow", 20_000, ask="hedge", quantity=Decimal("0.07")),
    Step("shrink", 20_050, ask="hedge", quantity=Decimal("0.044")),
    Step("funding", 20_100, funding=True),
    Step("the first cut", 32_500),
    Step("the second cut", 42_000),
    Step("close", 41_000, ask="close hedge"),
    Step("open what cannot be sold", 20_000, ask="hedge", sold_size=Decimal(0)),
    Step("open again", 20_000, ask="hedge"),
    Step("the end", 20_000),
)
TARGET_STEPS = (
    Step("both begin", 20_000, ask="trend 0.05 own 0"),
    Step("what waited is taken", 20_000),
    Step("more, then another target", 20_100, ask="trend 0.08 own 0"),
    Step("replaced while it waits", 20_100, ask="trend 0.07 own 0"),
    Step("give money away", 20_050, ask="transfer"),
    Step("crossed, the rest is ordered", 20_200, ask="trend 0.02 own 0.03"),
    Step("cut", 20_150, ask="trend 0.01 own 0.03"),
    Step("cut further before it is done", 20_150, ask="trend 0.004 own 0.01"),
    Step("what waited is sold", 20_250),
    Step("trend ends and is crossed", 20_300, ask="trend 0 own 0.014"),
    Step("all ends", 20_100, ask="trend 0 own 0"),
    Step("the end", 20_100),
)
"""Of two sleeves at a spot exchange; money lies at the perpetuals too."""
SHARES = SleeveShares(((TREND, Decimal("0.5")), ("own", Decimal("0.25")), (DEBATE, Decimal("0.25"))))
SPOT_STEPS = (
    *(step for step in STEPS[:6] if not step.funding),
    Step("open again", 19_950, ask="again"),
    Step("the stop is hit", 19_400),
    Step("the end", 19_400),
)
SPOT, PERPETUAL = Venue("BINANCE-SPOT"), Venue("BINANCE")
LOT = Decimal("0.001")
WON = 1_000


@dataclass(frozen=True)
class Case:
    """Where the trade is made, and what it is."""

    venues: tuple[Venue, ...]
    steps: tuple[Step, ...]
    fake: bool = True
    """Over the wire of a fake exchange; else on paper."""
    sleeves: bool = False
    """The account has sleeves with targets."""

    @property
    def scale(self) -> int:
        """Of prices and cash."""
        return WON if self.venues[0].currency == "KRW" else 1

    @property
    def account(self) -> str:
        """At an exchange it begins with what is found there."""
        return "demo:crash" if self.fake else "paper:crash"

    @property
    def legs(self) -> dict[bool, Venue]:
        """The venue of coins by True, that of perpetuals by False."""
        return {venue.spot: venue for venue in self.venues}


OPENING = plan_opening(SHARES, (PERPETUAL,), PERPETUAL)
PLACES = partial(list_places, (PERPETUAL,), PERPETUAL)
CASES = {
    "paper": Case((PERPETUAL,), STEPS, fake=False),
    "paper legs": Case((PERPETUAL, SPOT), LEG_STEPS, fake=False),
    "paper targets": Case((PERPETUAL, SPOT), TARGET_STEPS, fake=False, sleeves=True),
    **{name: Case((Venue(name),), SPOT_STEPS if Venue(name).spot else STEPS) for name in WIRES},
    **{
        f"{name} legs": Case((Venue(name), Venue(f"{name}-SPOT")), LEG_STEPS)
        for name in WIRES
        if f"{name}-SPOT" in WIRES
    },
}


class NoFunds:
    """Keys that may not move money."""

    async def add_margin(self, key: str, source: Venue, target: Venue, symbol: Symbol, amount: Decimal) -> Decimal:
        raise Refused("no money can be moved here")


def find_markets(here: WireHarness, venues: Sequence[Venue]) -> dict[Venue, tuple[Engine, str]]:
    """Whose touch a step moves."""
    wallets: dict[Venue, FakeExchange] = dict.fromkeys(venues, here.fake)
    if SPOT in wallets and isinstance(here.fake, FakeBinance):
        wallets[SPOT] = here.fake.spot
    return {venue: (fake.engine, WIRES[venue].market) for venue, fake in wallets.items()}


def order_of(step: Step, case: Case, at: Millis) -> RulingToExecute:
    """The ruling a step acts on: the same whenever it is asked for."""
    price, exchange = Decimal(step.price), case.venues[0]
    call, side, style, quantity = {
        "open": (Call.LONG, Side.LONG, Style.SMART_DCA, 0.05),
        "top up": (Call.LONG, Side.LONG, Style.MOMENTUM_SNIPER, 0.02),
        "again": (Call.LONG, Side.LONG, Style.MOMENTUM_SNIPER, 0.03),
        "short": (Call.SHORT, Side.SHORT, Style.MOMENTUM_SNIPER, 0.03),
        "close": (Call.CANCEL_AND_CLOSE, Side.LONG, Style.CASINO_EXIT, 0.0),
    }[step.ask]
    sign = 1 if side is Side.LONG else -1
    legs: tuple[Leg, ...] = ()
    opened = None
    if quantity:
        entry = float(price)
        leg = Leg(
            venue=exchange,
            side=side,
            currency=exchange.currency,
            margin=quantity * entry * case.scale,
            notional=quantity * entry * case.scale,
            leverage=1.0,
            quantity=quantity,
        )
        legs = (leg,)
        opened = card(side, entry, entry * (1 - sign * 0.02), entry * (1 + sign * 0.06), quantity)
    target = Target(exchange) if exchange in list(Target) else Target.BINANCE
    ruling = rule(call, at, execution_style=style, legs=legs, card=opened, target_exchange=target if legs else None)
    return RulingToExecute(
        run_id=f"run_{step.ask.replace(' ', '_')}",
        symbol=BTC,
        mode=Mode.SWING,
        as_of=at,
        ruling=ruling,
        valid_until=Millis(at + 15 * MINUTE_MS),
        mark=price,
        atr=price / 100,
    )


class Mortal:
    """Ends its process after so many writes and answers."""

    def __init__(self, last: int | None) -> None:
        self.last = last
        self.count = 0

    def after(self, act: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def acting(*args: Any, **named: Any) -> Any:
            done = await act(*args, **named)
            self.count += 1
            if self.count == self.last:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return acting


class MortalVenue:
    """A venue after whose answers the process may end."""

    def __init__(self, venue: OrderVenue, fate: Mortal) -> None:
        self._venue = venue
        self.place = fate.after(venue.place)
        self.cancel = fate.after(venue.cancel)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._venue, name)


@dataclass
class Child:
    """One process of the desk. The market is moved by its parent."""

    home: Path
    case: Case
    control: socket.socket
    fate: Mortal
    url: str = ""
    tapes: dict[Venue, ListTape] = field(default_factory=lambda: {SPOT: ListTape(), PERPETUAL: ListTape()})
    wires: list[OrderVenue] = field(default_factory=list)
    ahead: int = 0
    at: Millis = START
    shown: Millis = START
    """On paper."""

    async def run(self, first: int, begun: bool) -> dict[str, Any]:
        key = KeyFile(self.home / "node.key")
        key.ensure()
        journal = ChainedJournal(open_sqlite(self.home), key, code=lambda: "test", now=lambda: Millis(0))
        await journal.start()

        async def open_journal() -> Journal:
            return journal

        log: Any = JournalTradeLog(open_journal)
        log.append = self.fate.after(log.append)
        venues: dict[Venue, Any] = {exchange: self.open_venue(log, exchange) for exchange in self.case.venues}
        opening = OPENING if self.case.sleeves else None
        cash = {} if opening is None else opening.cash
        paper = PaperFunds(self.case.account, log, self.now, cash)
        funds: MarginFunds = NoFunds() if self.case.fake else paper
        if self.case.fake and SPOT in venues and PERPETUAL in venues:
            for venue in venues.values():
                venue.send = self.fate.after(venue.send)
            funds = BinanceFunds(venues[SPOT], venues[PERPETUAL])
        open_at: dict[Venue, Any] = {at: MortalVenue(venue, self.fate) for at, venue in venues.items()}
        if self.case.venues[0].currency != PERPETUAL.currency:  # what a day's loss is in dollars is asked of another
            open_at[PERPETUAL] = self.open_paper(log, PERPETUAL)
        gate = OrderGate(
            GateContext(
                log=log,
                account=self.case.account,
                venues=open_at,
                now=self.now,
                limits=LIMITS,
                compare_every=Millis(5 * MINUTE_MS),
                funds=funds,
                opening=opening,
                sleeve_places=PLACES,
                move_cash=None if self.case.fake else paper.move_cash,
            )
        )
        for number in range(first + 1 if begun else first):
            self.show(number)
        if begun:
            self.take_step(first)
        if begun and self.case.fake:
            await self.settle(gate)
            self.tell("settled")
        said = [*await gate.reconcile()]
        unprotected = await self.count_unprotected(gate, venues)
        for number in range(first, len(self.case.steps)):
            self.show(number)
            at = self.take_step(number)
            await self.act(gate, self.case.steps[number], at)
            unprotected += await self.count_unprotected(gate, venues)
        said += await gate.reconcile()
        told = await self.describe(gate, venues, log)
        for venue in venues.values():
            await venue.close()
        await journal.close()
        return {**told, "unprotected": unprotected, "said": said, "writes": self.fate.count}

    def now(self) -> Millis:
        return self.at if not self.case.fake else Millis(int(time.time() * 1_000) + self.ahead)

    def tell(self, message: str) -> Millis:
        """The parent moves its market or its clock; what it says of the step."""
        self.control.sendall(f"{message}\n".encode())
        at, self.ahead = map(int, self.control.recv(100).split())
        return Millis(at)

    async def sleep(self, seconds: float) -> None:
        """In the exchange's time, not in ours: orders are dated by it."""
        self.tell(f"wait {round(seconds * 1_000)}")
        for venue in self.wires:
            await venue.now()

    async def settle(self, gate: OrderGate) -> None:
        """Look until nothing is unsure: what was sent may not be listed yet."""
        for look in range(LOOKS):
            await gate.advance()
            if look >= 2 and not gate.troubles and not gate.book.locks:
                return
            if self.case.fake and (gate.troubles or gate.book.locks):
                await self.sleep(4)

    async def read_clock(self) -> Millis:
        return self.shown

    def open_venue(self, log: Any, exchange: Venue) -> OrderVenue:
        if not self.case.fake:
            return self.open_paper(log, exchange)
        self.wires.append(open_wire(exchange, self.url, self.sleep))
        return self.wires[-1]

    def open_paper(self, log: Any, exchange: Venue) -> OrderVenue:
        tape, fees = self.tapes[exchange], Fees().at(exchange)
        return PaperVenue(
            exchange,
            self.case.account,
            log,
            tape,
            self.read_clock,
            fees,
            latency_ms=0,
            cash=OPENING.cash[exchange] if self.case.sleeves and OPENING is not None else None,
        )

    def show(self, number: int) -> None:
        """The paper market of a step."""
        step, at = self.case.steps[number], START + number * HOUR_MS
        for exchange, tape in self.tapes.items():
            ticks = tape.market[BTC]
            if any(tick.at == at for tick in ticks):
                return
            size = step.size if exchange is SPOT or step.sold_size is None else step.sold_size
            ticks += [
                depth(at, step.price - Decimal("0.1"), step.price + Decimal("0.1"), size),
                Mark(Millis(at), float(step.price)),
            ]
            if step.funding:
                ticks.append(FundingRate(Millis(at), 0.0001))

    def take_step(self, number: int) -> Millis:
        """Tell the parent, who moves its market once; the moment the step was first taken at."""
        at = self.tell(str(number))
        self.shown = Millis(START + number * HOUR_MS)
        self.at = at if self.case.fake else self.shown
        return self.at

    async def act(self, gate: OrderGate, step: Step, at: Millis) -> None:
        if step.ask in ("open", "top up", "short", "again", "close"):
            result = await gate.execute(order_of(step, self.case, at))
            assert result.state != "refused", (step, result)
        elif step.ask == "tighten":
            for trade in list(gate.book.trades.values()):
                await gate.set_levels(trade.id, Decimal(19_650 * self.case.scale), None)
        elif step.ask == "hedge":
            request, legs = f"req_{step.name[-5:].replace(' ', '_')}", self.case.legs
            result = await gate.set_hedge(HedgeTarget(BTC, legs[True], legs[False], step.quantity, request))
            assert result.state in ("open", "ended", "working"), (step, result)
        elif step.ask == "transfer":
            await gate.transfer(TREND, DEBATE, Decimal(1_000), "req_transfer")
        elif step.ask.startswith(TREND):
            words = step.ask.split()
            wanted = dict(zip(words[::2], map(Decimal, words[1::2]), strict=True))
            targets = {sleeve: [TargetPosition(SPOT, BTC, quantity)] for sleeve, quantity in wanted.items()}
            results = await gate.set_targets(targets, at, f"run_{at}")
            assert not {result.state for result in results} & {"refused", "waiting"}, (step, results)
        elif step.ask == "close hedge":
            await gate.close(BTC)
        await self.settle(gate)
        assert not gate.troubles, gate.troubles

    async def count_unprotected(self, gate: OrderGate, venues: Mapping[Venue, OrderVenue]) -> int:
        """Positions without a stop of their size at the venue (in the book, where the venue holds none), or legs that
        do not match. Less than a lot of a coin cannot be sold."""
        if self.case.sleeves:
            orders = [order for order in await venues[SPOT].open_orders() if order.request.side is OrderSide.SELL]
            bound = sum((order.left for order in orders), Decimal(0))
            held_there = sum((position.quantity for position in await venues[SPOT].positions()), Decimal(0))
            return int(abs(held_there - bound) > LOT)
        if len(venues) > 1:
            held = [position for venue in venues.values() for position in await venue.positions()]
            net = sum((position.side.sign * position.quantity for position in held), Decimal(0))
            return int(abs(net) > LOT)
        ((exchange, venue),) = venues.items()
        stops: dict[Symbol, Decimal] = {}
        if exchange.holds_stops:
            for order in await venue.open_orders():
                if order.request.type is OrderType.STOP_MARKET:
                    stops[order.request.symbol] = max(stops.get(order.request.symbol, Decimal(0)), order.left)
        else:
            trades = gate.book.positions.items()
            stops = {symbol: trade.quantity for (_, symbol, _), trade in trades if trade.stop is not None}
        unprotected = 0
        for position in await venue.positions():
            lot = (await venue.filters(position.symbol)).lot
            unprotected += stops.get(position.symbol, Decimal(0)) != position.quantity // lot * lot
        return unprotected

    async def describe(self, gate: OrderGate, venues: Mapping[Venue, OrderVenue], log: Any) -> dict[str, Any]:
        book = gate.book
        made: Counter[ClientId] = Counter()
        for exchange in venues if not self.case.fake else ():
            known: dict[ClientId, set[str]] = {}
            for event in await log.events(venue_account(self.case.account, exchange)):
                if isinstance(event, OrderUpdated) and event.order.status is not OrderStatus.REJECTED:
                    known.setdefault(event.order.request.client_id, set()).add(event.order.venue_id)
            made.update({id: len(ids) for id, ids in known.items()})
        held = [position for venue in venues.values() for position in await venue.positions()]
        ours = {f"{at} {symbol}": left for at, coins in book.dust.items() for symbol, left in coins.items()}
        ours |= {f"{at} {symbol}": trade.quantity for (at, symbol, _), trade in book.positions.items()}
        positions = {f"{position.exchange} {position.symbol}": position.quantity for position in held}
        balances = {exchange: (await venue.balance()).total for exchange, venue in venues.items()}
        ledger = {exchange: book.venue_balance(exchange) for exchange in venues}
        wallets = {exchange: exchange.wallet if self.case.fake else exchange for exchange in venues}
        return {
            "made": dict(made),
            "planned": list(book.orders),
            "open": len(book.open_orders),
            "intents": len(book.intents),
            "openIntents": len(book.open_intents),
            "held": {place: f"{quantity.normalize():f}" for place, quantity in ours.items() if quantity},
            "positions": {place: f"{quantity.normalize():f}" for place, quantity in positions.items()},
            "balance": {wallets[exchange]: str(balances[exchange]) for exchange in venues},
            "ledger": {
                wallet: str(sum(ledger[exchange] for exchange in venues if wallets[exchange] == wallet))
                for wallet in wallets.values()
            },
            "closed": sorted((each.reason.value, f"{each.quantity.normalize():f}") for each in book.closed),
            "locks": [lock.reason for lock in book.locks.values()],
            "fees": str(sum((summary.fees for summary in book.closed), Decimal(0))),
        }


class Parent:
    """Serves the market of one kind of venue, and starts desks that die."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name, self._case = name, CASES[name]
        self._number = 0

    async def run(self, last: int | None) -> tuple[dict[str, Any], bool]:
        """A desk from start to end, killed once; what is found in the end, and whether it died."""
        self._number += 1
        home = self._folder / f"{self._name}-{self._number}"
        home.mkdir()
        async with AsyncExitStack() as stack:
            case, here = self._case, None
            if case.fake:
                here = await stack.enter_async_context(over_wire(case.venues[0]))
                for engine, _ in find_markets(here, case.venues).values():
                    engine.cash = CASH * case.scale
                await here.venue.balance()  # its library is loaded once, for all processes
            taken: dict[int, int] = {}
            code = await self._start(home, here, taken, last)
            died = code == DIED
            if died:
                if here is not None:
                    here.fake.clock.lag = LAGS[(last or 0) % len(LAGS)]
                code = await self._start(home, here, taken, None)
            if code != 0:
                return {"problem": f"the desk ended with {code}"}, died
            told: dict[str, Any] = json.loads((home / "told.json").read_text())
            if here is not None:
                engines = {id(engine): engine for engine, _ in find_markets(here, case.venues).values()}.values()
                planned = {client_id: here.spell(client_id) for client_id in told["planned"]}
                refused = Counter(
                    order.client_id
                    for engine in engines
                    for order in engine.orders.values()
                    if order.status == "REJECTED"
                )  # a close of everything that was sent again: some venues keep what they refuse
                told["made"] = {
                    client_id: sum(engine.count_orders(spelled) for engine in engines) - refused[spelled]
                    for client_id, spelled in planned.items()
                }
                known = {order.client_id for engine in engines for order in engine.orders.values()}
                known |= {algo.client_id for engine in engines for algo in engine.algos.values()}
                children = {name for name in known if name.startswith("x-engine")}
                told["strange"] = sorted(known - children - set(planned.values()))
        shutil.rmtree(home)
        return told, died

    async def _start(self, home: Path, here: WireHarness | None, taken: dict[int, int], last: int | None) -> int:
        ours, theirs = socket.socketpair()
        url = "" if here is None else here.fake.server.url
        first = max(taken, default=0)
        pid = os.fork()
        if pid == 0:
            code = 9
            try:
                ours.close()
                asyncio.events._set_running_loop(None)
                child = Child(home, self._case, theirs, Mortal(last), url)
                told = asyncio.run(child.run(first, bool(taken)))
                (home / "told.json").write_text(json.dumps(told))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        theirs.close()
        ours.setblocking(False)
        try:
            while True:
                with_message = asyncio.create_task(self._answer(ours, here, taken))
                while not with_message.done():
                    done, status = os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222  # it does not wait
                    if done:
                        with_message.cancel()
                        return os.waitstatus_to_exitcode(status)
                    await asyncio.wait({with_message}, timeout=0.005)
        finally:
            ours.close()

    async def _answer(self, ours: socket.socket, here: WireHarness | None, taken: dict[int, int]) -> None:
        loop = asyncio.get_running_loop()
        message = await loop.sock_recv(ours, 100)
        if not message:
            await asyncio.sleep(60)
            return
        word, *rest = message.decode().split()
        if word in ("wait", "settled"):
            if here is not None:
                here.fake.clock.ahead += sum(map(int, rest))
                here.fake.clock.lag = 0 if word == "settled" else here.fake.clock.lag
            ahead = 0 if here is None else here.fake.clock.ahead
            await loop.sock_sendall(ours, f"0 {ahead}".encode())
            return
        number = int(word)
        if number not in taken:
            step = self._case.steps[number]
            if here is not None:
                if step.funding:
                    await here.settle_funding(Decimal("0.0001"))
                price = Decimal(step.price * self._case.scale)
                for venue, (engine, market) in find_markets(here, self._case.venues).items():
                    size = step.size if venue.spot or step.sold_size is None else step.sold_size
                    tick = engine.markets[market].tick
                    engine.move(market, price - tick, price + tick, size)
            taken[number] = START if here is None else here.fake.clock.now()
        ahead = 0 if here is None else here.fake.clock.ahead
        await loop.sock_sendall(ours, f"{taken[number]} {ahead}".encode())


def find_problems(told: dict[str, Any], reference: dict[str, Any]) -> list[str]:
    if "problem" in told:
        return [told["problem"]]
    problems = [f"{id} was made {count} times" for id, count in told["made"].items() if count > 1]
    problems += [f"{id} is at the venue and not in the book" for id in told.get("strange", ())]
    problems += [f"{told['unprotected']} positions without a stop, or legs alone"] if told["unprotected"] else []
    problems += ["the venue holds something else"] if told["held"] != told["positions"] else []
    amounts = ({at: Decimal(amount) for at, amount in told[name].items()} for name in ("balance", "ledger"))
    problems += ["the ledger is not the venue's"] if next(amounts) != next(amounts) else []
    problems += ["orders are left"] if told["open"] or told["openIntents"] else []
    problems += [f"locked: {reason}" for reason in told["locks"]]
    for name in ("closed", "intents", "balance"):
        if told[name] != reference[name]:
            problems.append(f"{name}: {told[name]} instead of {reference[name]}")
    return problems


async def run_matrix(folder: Path, name: str, every: int, offset: int) -> tuple[int, int, Counter[str]]:
    parent = Parent(folder, name)
    reference, _ = await parent.run(None)
    wrong: Counter[str] = Counter()
    problems = find_problems(reference, reference)
    assert not problems, problems
    deaths = 0
    for last in range(1 + offset, reference["writes"] + 1, every):
        told, died = await parent.run(last)
        deaths += died
        problems = find_problems(told, reference) if died else ["it did not die"]
        for problem in problems:
            wrong["duplicate orders"] += "times" in problem
            wrong["positions without a stop"] += "without a stop" in problem
            wrong["ledgers that differ"] += "ledger" in problem or "holds something else" in problem
            wrong["other problems"] += 1
            print(f"{name}, after {last}: {problem}", flush=True)
    return deaths, reference["writes"], wrong


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=tuple(CASES), action="append", help="these alone")
    parser.add_argument("--every", type=int, default=1, help="every n-th point only")
    parser.add_argument("--offset", type=int, default=0, help="leave out so many points first")
    chosen = parser.parse_args(arguments)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.only or CASES:
            deaths, writes, wrong = asyncio.run(run_matrix(Path(folder), name, chosen.every, chosen.offset))
            bad += wrong.total()
            print(
                f"{name}: {deaths} kills at {writes} steps, {wrong['duplicate orders']} duplicate orders, "
                f"{wrong['positions without a stop']} positions without a stop or legs alone, "
                f"{wrong['ledgers that differ']} ledgers that differ from the venue, "
                f"{wrong['other problems']} other problems",
                flush=True,
            )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
