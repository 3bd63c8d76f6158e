"""Hedges are kept: what the chain holds is short, by orders that nobody sends twice, whatever fails between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.wire.fakes.outbox import OutboxInMemory
from tests.wire.hedges import HedgeHarness
from tests.wire.paper_venue import ACCOUNT, START
from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.chain.world import WALLET
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.memory import MemoryStore
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.notify import Severity
from zuno.kernel.units import Address, Millis
from zuno.lp.execute.hedges import HedgeKeeper
from zuno.lp.model.chains import CHAINS
from zuno.lp.model.hedges import HedgeApproved, HedgeSet
from zuno.lp.model.plan import PlanState
from zuno.lp.model.plan_events import Action, Approval, Draft, InstructedHedge, Instruction, PlanApproved, PlanOver
from zuno.lp.ports.chain import Missing, Snapshot
from zuno.markets.market import Catalogue, Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.sleeves import LP_HEDGE
from zuno.trading.service.trade_desk import find_broken_invariant
from zuno.trading.strategies.port import MarketHistory, StrategyView
from zuno.wiring.hedges import SleeveShorts, keep_days

BINANCE, MARKET = Venue("BINANCE"), "BTCUSDT"
PLAN = "plan_" + "a" * 12


class StrangersChain(SimChain):
    """Every position is held by another wallet, or nobody can say by whom."""

    readable = True

    async def positions(self, ids: Sequence[int]) -> Snapshot:
        snapshot = await super().positions(ids)
        if self.readable:
            held = (replace(position, owner=Address("0x" + "ab" * 20)) for position in snapshot.positions)
            return replace(snapshot, positions=tuple(held))
        return Snapshot(snapshot.block, (), tuple(Missing(id, "no answer", unread=True) for id in ids))


@dataclass
class World:
    """The simulated chain, whose ether the market of the harness stands for at a price that a small account can pay."""

    sim: SimChain
    market: HedgeHarness = field(default_factory=HedgeHarness)
    outbox: OutboxInMemory = field(default_factory=OutboxInMemory)
    now: int = START
    busy: bool = False

    async def open(self, folder: Path) -> World:
        self.market.show(100)
        key = KeyFile(folder / "key")
        key.ensure()
        self.journal = ChainedJournal(MemoryStore(), key, code=lambda: "test", now=lambda: Millis(self.now), secrets=())
        self.restart()
        return self

    def restart(self) -> None:
        """As a process that starts has it."""
        self.market.gate = self.market.open_gate()

        async def play() -> str:
            return ACCOUNT

        async def open_gate(account: str) -> OrderGate:
            return self.market.gate

        async def view(symbol: Symbol) -> StrategyView:
            days = tuple(range(0, 10 * 86_400_000, 86_400_000))
            paid = dict.fromkeys(days, 0.0001)
            return StrategyView(10 * 86_400_000, {MARKET: MarketHistory(MARKET, days, (100.0,) * 10, paid)})

        @contextmanager
        def lock(name: str) -> Iterator[None]:
            if self.busy:
                raise Refused("another process")
            yield

        async def journal() -> ChainedJournal:
            return self.journal

        self.shorts = SleeveShorts(open_gate, play, None, Catalogue, view, real_time=False)
        self.keeper = HedgeKeeper(
            self.shorts, lambda chain: self.sim, journal, lock, lambda: Millis(self.now), self.outbox
        )

    async def approve(self, most: str = "12", plan: str = PLAN) -> None:
        await self.shorts.reserve(ACCOUNT, {MARKET: Decimal(most)}, plan)
        record = HedgeApproved(
            plan_id=plan,
            chain="sim",
            account=ACCOUNT,
            position_id=1,
            market=MARKET,
            symbol="ETH",
            side=0,
            decimals=18,
            most=Decimal(most),
        )
        await self.journal.append_once(kind=record.kind, author=Author("t"), payload=record, request_id=plan)

    async def end(self, state: PlanState, position: int | None = 1, plan: str = PLAN) -> None:
        over = PlanOver(plan_id=plan, state=state, new_position_id=position)
        await self.journal.append(kind=over.kind, author=Author("t"), payload=over, request_id=plan)

    async def sign(self, plan: str = PLAN) -> None:
        """The owner's approval, for the wallet of the simulated chain."""
        approval = Approval(
            plan_id=plan,
            plan_hash="0" * 64,
            draft="0" * 64,
            chain_id=self.sim.info.id,
            genesis="0x",
            wallet=WALLET,
            expires=0,
            who="t",
        )
        event = PlanApproved(plan_id=plan, approval=approval, signature="0" * 128)
        await self.journal.append(kind=event.kind, author=Author("t"), payload=event, request_id=plan)

    async def keep(self) -> tuple[str, ...]:
        self.now += 60_000
        return await self.keeper.keep()

    @property
    def short(self) -> Decimal:
        trade = self.market.gate.book.position(BINANCE, Symbol(MARKET), LP_HEDGE)
        return Decimal(0) if trade is None else -trade.signed

    async def held(self) -> Decimal:
        (position,) = (await self.sim.positions([1])).positions
        return Decimal(position.amount0).scaleb(-18)

    async def count_sets(self) -> int:
        return len([entry async for entry in self.journal.entries(kind=HedgeSet.kind)])


@pytest.fixture
async def world(tmp_path: Path) -> World:
    return await World(SimChain(SimFile(tmp_path))).open(tmp_path)


async def test_the_short_follows_the_liquidity_and_not_the_approval(world: World) -> None:
    await world.approve()
    assert await world.keep() == ()
    assert world.short == 0, "the liquidity comes first"
    await world.end(PlanState.CONFIRMED)
    assert await world.keep() == ()
    assert abs(world.short - await world.held()) < Decimal("0.001")
    trade = world.market.gate.book.position(BINANCE, Symbol(MARKET), LP_HEDGE)
    assert trade is not None
    assert (trade.stop, trade.leverage) == (None, 1)
    assert find_broken_invariant(world.market.gate.book) is None


async def test_what_is_not_hedged_is_listed_by_position_and_nothing_is_ordered(world: World) -> None:
    await world.approve()
    assert await world.keeper.list_unhedged("sim") == {}
    await world.end(PlanState.CONFIRMED)
    off = await world.keeper.list_unhedged("sim")
    assert off.keys() == {1}
    assert f"{await world.held():f}" in off[1]
    assert world.short == 0
    await world.keep()
    assert await world.keeper.list_unhedged("sim") == await world.keeper.list_unhedged("base") == {}


@pytest.mark.parametrize("readable", [True, False])
async def test_a_position_that_another_wallet_holds_is_hedged_no_more(
    world: World, tmp_path: Path, readable: bool
) -> None:
    """It is sold or given away: the short ends, and that is said once. An owner who cannot be read is no other one."""
    await world.approve()
    await world.sign()
    await world.end(PlanState.CONFIRMED)
    assert await world.keep() == ()
    before, chain = world.short, StrangersChain(SimFile(tmp_path))
    chain.readable = readable
    world.keeper = replace(world.keeper, chain_of=lambda name: chain)
    (said,) = await world.keep()
    assert before > 0
    if not readable:
        assert ("stays as it is" in said, world.short) == (True, before)
        return
    assert ("position 1" in said, world.short) == (True, 0)
    pushed = await world.outbox.find(1)
    assert pushed is not None
    assert pushed.notice.severity is Severity.CRITICAL
    assert await world.keep() == ()
    assert (await world.market.gate.refresh()).sleeve_free(LP_HEDGE, "USD") < Decimal("0.01")


async def test_a_second_round_and_a_new_process_order_nothing_twice(world: World) -> None:
    await world.approve()
    await world.end(PlanState.CONFIRMED)
    await world.keep()
    orders = len(world.market.gate.book.orders)
    world.restart()
    assert await world.keep() == ()
    assert (len(world.market.gate.book.orders), await world.count_sets()) == (orders, 1)


async def test_a_plan_that_failed_hedges_nothing_and_gives_its_margin_back(world: World) -> None:
    await world.approve()
    assert world.market.gate.book.sleeve_free(LP_HEDGE, "USD") == Decimal("1500.00")
    await world.end(PlanState.FAILED, None)
    assert await world.keep() == ()
    book = await world.market.gate.refresh()
    assert (world.short, book.sleeve_free(LP_HEDGE, "USD"), book.sleeve_cash(LP_HEDGE, "USD")) == (0, 0, 0)


async def test_what_is_refused_is_pushed_as_critical_in_every_round_until_it_is_there(world: World) -> None:
    await world.approve()
    await world.end(PlanState.CONFIRMED)
    await world.market.gate.pause()
    for round in (1, 2):
        (said,) = await world.keep()
        assert "unhedged" in said
        assert (await world.outbox.status()).waiting == round
    last = await world.outbox.find(2)
    assert last is not None
    notice = last.notice
    assert (notice.severity, notice.reference) == (Severity.CRITICAL, PLAN)
    assert f"{(await world.held()).normalize():f} ETH" in notice.title
    await world.market.gate.resume()
    assert await world.keep() == ()
    assert world.short > 0


async def test_margin_that_is_not_free_is_refused_before_anything_is_signed(world: World) -> None:
    with pytest.raises(Refused, match="margin"):
        await world.approve("60")
    assert [entry async for entry in world.journal.entries(kind=HedgeApproved.kind)] == []


async def test_another_process_at_the_hedges_is_left_to_it(world: World) -> None:
    await world.approve()
    await world.end(PlanState.CONFIRMED)
    world.busy = True
    assert await world.keep() == ()
    assert world.short == 0


async def test_a_chain_that_does_not_answer_leaves_the_short_as_it_is(world: World) -> None:
    await world.approve()
    await world.end(PlanState.CONFIRMED)
    await world.keep()
    before = world.short

    def silent(chain: str) -> SimChain:
        raise Refused("no chain")

    world.keeper = replace(world.keeper, chain_of=silent)
    (said,) = await world.keep()
    assert "stays as it is" in said
    assert world.short == before


async def test_ledger_and_fills_of_a_hedge_agree_and_funding_is_apart(world: World) -> None:
    await world.approve()
    await world.end(PlanState.CONFIRMED)
    await world.keep()
    world.market.show(90)
    found = await world.keeper.read_result("sim", frozenset({1}))
    assert found is not None
    result, note = found
    assert result.ledger == result.trades + result.funding
    assert result.ledger == pytest.approx(world.short * 10, rel=Decimal("0.1"))
    assert MARKET in note
    assert await world.keeper.read_result("sim", frozenset({2})) is None


async def test_a_coin_without_a_perpetual_and_a_real_chain_without_a_mandate_are_refused(world: World) -> None:
    real = next(chain for chain in CHAINS if not chain.testnet)
    assert (await world.shorts.quote("BTC", world.sim.info)).market == MARKET
    for coin, chain in (("NOPE", world.sim.info), ("???", world.sim.info), ("BTC", real)):
        with pytest.raises(Refused):
            await world.shorts.quote(coin, chain)
    for account, why in (("live", "mandate"), ("demo", "money"), (ACCOUNT, "money")):
        named = replace(world.shorts, live_account=account)
        with pytest.raises(Refused, match=why):
            await named.choose_account(real)


async def test_days_are_read_once_a_day_but_anew_until_funding_is_known() -> None:
    days, asked = tuple(range(0, 12 * DAY_MS, DAY_MS)), list[int]()
    paid, moment = dict[int, float](), 0

    async def read(symbol: Symbol, at: Millis) -> StrategyView:
        asked.append(at)
        return StrategyView(at, {MARKET: MarketHistory(MARKET, days, (100.0,) * len(days), dict(paid))})

    async def now(symbol: Symbol) -> Millis:
        return Millis(moment)

    async def funding(at: int) -> int:
        nonlocal moment
        moment = at
        return len((await view(Symbol(MARKET))).markets[MARKET].funding)

    view = keep_days(now, read)
    assert await funding(10 * DAY_MS) == 0
    paid.update(dict.fromkeys(days, 0.0001))
    assert [await funding(10 * DAY_MS + later) for later in (1, 2, DAY_MS - 1)] == [12, 12, 12]
    assert await funding(11 * DAY_MS) == 12
    assert asked == [10 * DAY_MS, 10 * DAY_MS + 1, 11 * DAY_MS]


async def test_what_is_approved_and_not_yet_done_keeps_its_margin(world: World) -> None:
    for letter, margin in (("b", 625), ("c", 1250), ("c", 1250)):
        await world.keeper.approve(await draft_hedged(world, "plan_" + letter * 12))
        book = await world.market.gate.refresh()
        assert book.sleeve_free(LP_HEDGE, "USD") == margin
    await world.end(PlanState.CANCELLED, None, "plan_" + "b" * 12)
    await world.keeper.approve(await draft_hedged(world, "plan_" + "d" * 12))
    assert (await world.market.gate.refresh()).sleeve_free(LP_HEDGE, "USD") == 1250, "what is over needs none"


async def test_an_approval_waits_for_a_round_that_may_give_margin_back(world: World) -> None:
    world.busy = True
    approving = asyncio.create_task(world.keeper.approve(await draft_hedged(world, PLAN)))
    await asyncio.sleep(0.1)
    assert (await world.market.gate.refresh()).sleeve_free(LP_HEDGE, "USD") < Decimal("0.01")
    world.busy = False
    await approving
    assert (await world.market.gate.refresh()).sleeve_free(LP_HEDGE, "USD") == 625


async def draft_hedged(world: World, plan: str) -> Draft:
    """To open a position whose short is counted to reach five coins at a price of 100."""
    (position,) = (await world.sim.positions([1])).positions
    hedge = InstructedHedge(market=MARKET, side=0, amount=10**18, most=5 * 10**18)
    told = Instruction(action=Action.CREATE, chain="sim", pool_id=position.pool.id, tick=0, hedge=hedge)
    fields: dict[str, Any] = {"plan_id": plan, "instruction": told, "pool": position.pool}
    return Draft.model_construct(**fields)


async def test_margin_that_could_not_be_given_back_is_given_back_in_the_next_round(world: World) -> None:
    await world.approve()
    await world.end(PlanState.FAILED, None)
    whole = world.keeper

    @dataclass
    class Stuck:
        shorts: SleeveShorts

        def __getattr__(self, name: str) -> Any:
            return getattr(self.shorts, name)

        async def release(self, account: str) -> None:
            raise Unavailable("the exchange does not answer")

    world.keeper = replace(whole, shorts=Stuck(world.shorts))
    (said,) = await world.keep()
    assert "does not answer" in said
    world.keeper = whole
    assert await world.keep() == ()
    assert (await world.market.gate.refresh()).sleeve_cash(LP_HEDGE, "USD") == 0


async def test_an_account_that_does_not_open_is_pushed_each_round_and_stops_no_other(world: World) -> None:
    await world.approve()
    await world.end(PlanState.CONFIRMED)
    other = HedgeApproved(
        plan_id="plan_" + "e" * 12,
        chain="sim",
        account="paper-gone",
        position_id=2,
        market=MARKET,
        symbol="ETH",
        side=0,
        decimals=18,
        most=Decimal(1),
    )
    await world.journal.append(kind=other.kind, author=Author("t"), payload=other, request_id=other.plan_id)
    await world.end(PlanState.CONFIRMED, 2, other.plan_id)
    whole = world.shorts.open_gate

    async def open_gate(account: str) -> OrderGate:
        if account != ACCOUNT:
            raise Unavailable("the exchange does not answer")
        return await whole(account)

    world.keeper = replace(world.keeper, shorts=replace(world.shorts, open_gate=open_gate))
    for round in (1, 2):
        (said,) = await world.keep()
        assert "does not answer" in said
        assert (await world.outbox.status()).waiting == round
    assert world.short > 0
