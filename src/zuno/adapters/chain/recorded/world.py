"""Recorded minutes played on our own integer pool, with one wallet that may hold a position in it; and that pool behind
the chain's port: what was known by the last minute that was played, and nothing later.

Everybody else is one position over all prices, as large as the minute's recorded liquidity. A minute is swapped along
the path from the close before through its lowest and highest tick to its close, without a fee; the fees it was recorded
to pay are given to whoever was in range along the way, falling in token0 and rising in token1. So prices and fees are
those of the record, whatever our own liquidity adds, and every amount is the contracts' own arithmetic. The wallet's
swaps pay the pool's fee and move its price until the next minute.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import astuple, dataclass, replace
from decimal import Decimal
from hashlib import sha256
from itertools import pairwise
from typing import Final

from zuno.adapters.chain.states import amounts_held, build_event, build_pool_state, build_position, build_snapshot
from zuno.amm import identity
from zuno.amm.fees import DYNAMIC_FEE_FLAG, PIPS
from zuno.amm.liquidity import (
    amounts_for_liquidity,
    liquidity_for_amount0,
    liquidity_for_amount1,
    liquidity_for_amounts,
)
from zuno.amm.model import Block, Depth, LpPosition, PoolKey, PoolState, Range
from zuno.amm.pool import LiquidityChange, Pool, PositionInfo, Slot0
from zuno.amm.ticks import MAX_SQRT_PRICE, MAX_TICK, MIN_SQRT_PRICE, cached_sqrt_price_at_tick
from zuno.kernel.errors import NotFound, Refused, Unavailable
from zuno.kernel.text import Token
from zuno.kernel.units import Address, HexId, Pips, Seconds, SqrtPriceX96, Wei
from zuno.kernel.wire import pick
from zuno.lp.model.chains import ChainInfo, Deployment
from zuno.lp.model.history import PositionEvent, PositionHistory, PositionSnapshot, PricedBlock, SwapFees, WalletSwap
from zuno.lp.model.market import HOUR, GasQuote
from zuno.lp.model.minutes import PoolMinute, PoolMinutes
from zuno.lp.ports import chain as port

WALLET: Final = Address("0x" + "aa" * 20)
OTHERS: Final = Address("0x" + "bb" * 20)
_ENOUGH: Final = 1 << 126


@dataclass(frozen=True, slots=True)
class RecordedMarket:
    token0: Token
    token1: Token
    fee: Pips
    tick_spacing: int
    native_side: int
    """0 or 1: the token that pays for gas, being the chain's own currency or its wrapper."""

    @property
    def key(self) -> PoolKey:
        return PoolKey(self.token0.address, self.token1.address, self.fee, self.tick_spacing)


class RecordedWorld:
    """The pool after the last minute that was played. Balances are what the wallet holds beside its position."""

    def __init__(self, market: RecordedMarket, recorded: PoolMinutes, balance0: int, balance1: int) -> None:
        first = recorded.minutes[0]
        self.market, self.minutes = market, recorded.minutes
        self.balances = (balance0, balance1)
        self.range: Range | None = None
        self.position_id = 0
        self.events: list[PositionEvent | WalletSwap] = []
        self.marks: list[PoolState] = []
        self._key = market.key
        self.pool_id = HexId(identity.pool_id(*astuple(self._key)))
        self._edge = MAX_TICK // market.tick_spacing * market.tick_spacing
        self._others = 0
        start = cached_sqrt_price_at_tick(first.open_tick)
        self._pool = Pool.initialize(DYNAMIC_FEE_FLAG, market.tick_spacing, start)
        self._set_others(first.liquidity)
        self._number = -1
        self.head = self._next_block(Seconds(first.at // 1000))

    def copy(self) -> RecordedWorld:
        twin = copy(self)
        twin._pool = self._pool.copy()
        twin.events, twin.marks = [*self.events], [*self.marks]
        return twin

    # -- time

    @property
    def at_end(self) -> bool:
        return len(self.marks) == len(self.minutes)

    def play_until(self, moment: Seconds) -> None:
        while not self.at_end and self.minutes[len(self.marks)].at // 1000 + 60 <= moment:
            self._play(self.minutes[len(self.marks)])

    def _play(self, minute: PoolMinute) -> None:
        before = self.minutes[len(self.marks) - 1].close_tick if self.marks else minute.open_tick
        self._set_others(minute.liquidity)
        self._move_to(cached_sqrt_price_at_tick(before))  # what the wallet moved is traded back
        self._trade(minute, before)
        self.head = self._next_block(Seconds(minute.at // 1000 + 60))
        self.marks.append(self.state())

    def _trade(self, minute: PoolMinute, before: int) -> None:
        """Swap along the minute's path and pay its fees on the way, a tick's worth for every tick."""
        low, high = min(before, minute.lowest_tick), max(before, minute.highest_tick)
        low_first = (before - low) + (high - minute.close_tick) <= (high - before) + (minute.close_tick - low)
        turns = (before, low, high, minute.close_tick) if low_first else (before, high, low, minute.close_tick)
        fees = tuple(paid * self.market.fee // PIPS if minute.liquidity else 0 for paid in (minute.in0, minute.in1))
        totals = [sum(max(0, a - b) for a, b in pairwise(turns)), sum(max(0, b - a) for a, b in pairwise(turns))]
        gone = [0, 0]
        for a, b in self._pieces(turns):
            side = 0 if b < a else 1
            reached = gone[side] + abs(b - a)
            paid = fees[side] * reached // totals[side] - fees[side] * gone[side] // totals[side]
            gone[side] = reached
            start, end = cached_sqrt_price_at_tick(a), cached_sqrt_price_at_tick(b)
            self._move_to((start + end) // 2)
            if paid:
                self._pool.donate(*((paid, 0) if side == 0 else (0, paid)))
            self._move_to(end)
        left = tuple(0 if total else fee for total, fee in zip(totals, fees, strict=True))
        if any(left):
            self._pool.donate(*left)

    def _pieces(self, turns: Sequence[int]) -> Iterator[tuple[int, int]]:
        """The path cut at the edges of the wallet's range, so that a piece is inside of it or outside."""
        edges = () if self.range is None else (self.range.lower, self.range.upper)
        for a, b in pairwise(turns):
            if a == b:
                continue
            cuts = sorted((edge for edge in edges if min(a, b) < edge < max(a, b)), reverse=b < a)
            yield from pairwise((a, *cuts, b))

    def _set_others(self, liquidity: int) -> None:
        if liquidity != self._others:
            self._pool.modify_liquidity(OTHERS, -self._edge, self._edge, liquidity - self._others, 0)
            self._others = liquidity

    def _move_to(self, sqrt_price_x96: int) -> None:
        now = self._pool.slot0.sqrt_price_x96
        if sqrt_price_x96 != now:
            self._pool.swap(sqrt_price_x96 < now, -_ENOUGH, sqrt_price_x96)

    def _next_block(self, at: Seconds) -> Block:
        self._number += 1
        slot0 = self._pool.slot0
        content = (self._number, at, tuple(slot0), self._pool.liquidity, self.balances)
        return Block(self._number, HexId("0x" + sha256(repr(content).encode()).hexdigest()), at)

    # -- the wallet

    def open_position(self, held: Range, gas: Wei) -> None:
        """Swap what the range does not need of one token, mint with the rest and pay for the gas."""
        if self.range is not None:
            raise Refused("The wallet holds a position already.")
        before = (self._pool, self.balances, self.head, self._number, [*self.events])
        try:
            self._swap_and_mint(held, gas)
        except Refused:
            self._pool, self.balances, self.head, self._number, self.events = before
            raise

    def _swap_and_mint(self, held: Range, gas: Wei) -> None:
        self._pay_gas(gas)
        gas = Wei(0) if self._swap_for(held, gas) else gas
        pool, price = self._pool, self._pool.slot0.sqrt_price_x96
        edges = cached_sqrt_price_at_tick(held.lower), cached_sqrt_price_at_tick(held.upper)
        liquidity = liquidity_for_amounts(price, *edges, *self.balances)
        while liquidity > 0:
            needed = amounts_for_liquidity(price, *edges, liquidity, round_up=True)
            if needed[0] <= self.balances[0] and needed[1] <= self.balances[1]:
                break
            liquidity -= 1
        if liquidity <= 0:
            raise Refused("The wallet holds too little for a position.")
        self.range, self.position_id = held, self.position_id + 1
        change = pool.modify_liquidity(WALLET, held.lower, held.upper, liquidity, self.position_id)
        self._note_change(liquidity, change, gas)

    def close_position(self, gas: Wei) -> None:
        """Take everything home, fees included; the gas is paid from it."""
        held = self._held()
        liquidity = self._info().liquidity
        if self.worth()[self.market.native_side] < gas:
            raise Refused("The wallet cannot pay for the gas.")
        change = self._pool.modify_liquidity(WALLET, held.lower, held.upper, -liquidity, self.position_id)
        self._note_change(-liquidity, change, gas)
        self.range = None
        self._pay_gas(gas)

    def _note_change(self, delta: int, change: LiquidityChange, gas: Wei) -> None:
        # A burn clears its ticks; what had grown inside by then is what the position remembers.
        held, info = self._held(), self._info()
        self.balances = (self.balances[0] + change.amount0, self.balances[1] + change.amount1)
        self.head = self._next_block(self.head.timestamp)
        price, paid = self._pool.slot0.sqrt_price_x96, (-change.amount0, -change.amount1)
        self.events.append(
            build_event(self.position_id, held, self.head, self.head.hash, price, delta, info, paid, gas, gas)
        )

    def _pay_gas(self, gas: Wei) -> None:
        left = [*self.balances]
        left[self.market.native_side] -= gas
        if left[self.market.native_side] < 0:
            raise Refused("The wallet cannot pay for the gas.")
        self.balances = (left[0], left[1])

    def _swap_for(self, held: Range, gas: Wei) -> bool:
        """Sell as much of one token as lets both be used up; a swap is charged with the gas of its transaction."""
        zero_for_one = self._surplus_of_token0(self._pool, *self.balances, held)
        low, high = 0, self.balances[0 if zero_for_one else 1]
        while low < high:
            amount = (low + high + 1) // 2
            pool, balances = self._try_swap(zero_for_one, amount)
            if self._surplus_of_token0(pool, *balances, held) == zero_for_one:
                low = amount
            else:
                high = amount - 1
        if not low:
            return False
        before, balances = self._pool.slot0.sqrt_price_x96, self.balances
        self._pool, self.balances = self._try_swap(zero_for_one, low)
        paid0, paid1 = balances[0] - self.balances[0], balances[1] - self.balances[1]
        self.head = self._next_block(self.head.timestamp)
        self.events.append(
            WalletSwap(self.head, self.head.hash, SqrtPriceX96(before), paid0, paid1, paid0, paid1, gas, gas)
        )
        return True

    def _try_swap(self, zero_for_one: bool, amount: int) -> tuple[Pool, tuple[int, int]]:
        """The pool and the balances after selling so much, which changes neither of them here."""
        pool = self._pool.copy()
        pool.set_lp_fee(self.market.fee)
        limit = MIN_SQRT_PRICE + 1 if zero_for_one else MAX_SQRT_PRICE - 1
        got = pool.swap(zero_for_one, -amount, limit)
        pool.set_lp_fee(0)
        return pool, (self.balances[0] + got.amount0, self.balances[1] + got.amount1)

    def _surplus_of_token0(self, pool: Pool, balance0: int, balance1: int, held: Range) -> bool:
        """Whether token1 is what runs out first when the range is minted."""
        price = pool.slot0.sqrt_price_x96
        lower, upper = cached_sqrt_price_at_tick(held.lower), cached_sqrt_price_at_tick(held.upper)
        if price <= lower:
            return False
        if price >= upper:
            return True
        return liquidity_for_amount0(price, upper, balance0) > liquidity_for_amount1(lower, price, balance1)

    # -- reading

    def state(self) -> PoolState:
        market, pool = self.market, self._pool
        tokens, growth = (market.token0, market.token1), (pool.fee_growth_global0_x128, pool.fee_growth_global1_x128)
        slot0 = Slot0(pool.slot0.sqrt_price_x96, pool.slot0.tick, 0, market.fee)
        return build_pool_state(self.pool_id, self._key, tokens, slot0, pool.liquidity, growth, self.head)

    def position(self, chain: str) -> LpPosition:
        held, info = self._held(), self._info()
        principal = amounts_held(self._pool.slot0.sqrt_price_x96, held, info.liquidity)
        fees = self._pool.fees_owed(WALLET, held.lower, held.upper, self.position_id)
        return build_position(self.position_id, chain, WALLET, self.state(), held, info.liquidity, principal, fees)

    def worth(self) -> tuple[int, int]:
        """Both tokens: the wallet's balances and what its position would pay, computed by burning it on a copy."""
        if self.range is None:
            return self.balances
        pool = self._pool.copy()
        liquidity = self._info().liquidity
        burnt = pool.modify_liquidity(WALLET, self.range.lower, self.range.upper, -liquidity, self.position_id)
        return self.balances[0] + burnt.amount0, self.balances[1] + burnt.amount1

    def history(self) -> PositionHistory:
        if not self.events:
            raise Refused("The wallet has not held a position yet.")
        market, opened = self.market, self.events[0].block
        return PositionHistory(
            **pick(market, "key", "token0", "token1", "native_side"),
            opened=opened,
            closed=self.head,
            start=None,
            end=None if self.range is None else self._standing(),
            events=tuple(self.events),
            path=tuple(
                PricedBlock(mark.block, mark.sqrt_price_x96)
                for mark in self.marks
                if mark.block.number > opened.number and mark.block.timestamp % HOUR == 0
            ),
        )

    def _standing(self) -> PositionSnapshot:
        held, info = self._held(), self._info()
        both, price = self.worth(), self._pool.slot0.sqrt_price_x96
        worth = both[0] - self.balances[0], both[1] - self.balances[1]
        inside = self._pool.fee_growth_inside(held.lower, held.upper)
        return build_snapshot(self.position_id, held, self.head, price, info, worth, inside)

    def _info(self) -> PositionInfo:
        held = self._held()
        return self._pool.position(WALLET, held.lower, held.upper, self.position_id)

    def _held(self) -> Range:
        if self.range is None:
            raise Refused("The wallet holds no position.")
        return self.range


_NOWHERE: Final = Address("0x" + "00" * 19 + "01")
USDC: Final = Token(Address("0x2791bca1f2de4661ed88a30c99a7a9449aa84174"), "USDC", 6, verified=True)
WETH: Final = Token(Address("0x7ceb23fd6bc0add59e62ac25578270cff1b9f619"), "WETH", 18, verified=True)
_NO_CONTRACTS: Final = Deployment(_NOWHERE, _NOWHERE, _NOWHERE)
RECORDED: Final = ChainInfo(
    31337, "recorded", "Recorded pool", _NO_CONTRACTS, (USDC, WETH), testnet=True, confirmations=0
)
USDC_WETH: Final = RecordedMarket(USDC, WETH, Pips(500), 10, native_side=1)
"""The pool of the minute rows that are published with demeter."""


class RecordedChain:
    info = RECORDED

    def __init__(self, world: RecordedWorld, gas: GasQuote) -> None:
        self.world = world
        self._gas = gas

    async def head(self) -> Block:
        return self.world.head

    async def wallet(self) -> Address | None:
        return WALLET

    async def pools(self) -> port.PoolsFound:
        return port.PoolsFound(self.world.head, (self.world.state(),))

    async def pool(self, pool_id: HexId) -> PoolState:
        self._check_pool(pool_id)
        return self.world.state()

    async def pool_at(self, pool_id: HexId, moment: Seconds) -> PoolState:
        self._check_pool(pool_id)
        place = bisect_right(self.world.marks, moment, key=lambda mark: mark.block.timestamp)
        if not place:
            raise Unavailable(f"the record begins after {moment}")
        return self.world.marks[place - 1]

    async def owned(self, owner: Address) -> port.OwnedPositions:
        ids = (self.world.position_id,) if self._holds(owner) else ()
        return port.OwnedPositions(self.world.head, Address(owner.lower()), ids, len(ids), complete=True)

    async def holdings(self, owner: Address) -> port.Holdings:
        owned = await self.owned(owner)
        return port.Holdings(owned, await self.positions(owned.ids))

    async def holdings_of(self, owners: Sequence[Address]) -> tuple[port.Holdings, ...]:
        return tuple([await self.holdings(Address(owner)) for owner in dict.fromkeys(map(str.lower, owners))])

    async def past_positions(self, owner: Address) -> port.PastPositions:
        last = self.world.position_id - self._holds(owner) if owner.lower() == WALLET else 0
        return port.PastPositions(self.world.head, Address(owner.lower()), tuple(range(1, last + 1)), complete=True)

    async def positions(self, ids: Sequence[int]) -> port.Snapshot:
        world = self.world
        asked = dict.fromkeys(ids)
        held = {world.position_id: world.position(RECORDED.name)} if world.range is not None else {}
        missing = tuple(port.Missing(id, "no such position") for id in asked if id not in held)
        return port.Snapshot(world.head, tuple(held[id] for id in asked if id in held), missing)

    async def witness(self, block: Block, pool_ids: Sequence[HexId], position_ids: Sequence[int]) -> port.StateAtBlock:
        if block != self.world.head:
            raise Refused(f"the record does not stand at block {block.number}")
        snapshot = await self.positions(position_ids)
        state = self.world.state()
        return port.StateAtBlock(
            block,
            {pool_id: state for pool_id in pool_ids if pool_id == state.id},
            {position.id: position for position in snapshot.positions},
        )

    async def history(self, position_id: int, since: Seconds | None) -> PositionHistory:
        if since is not None:
            raise Unavailable("a record is explained from the wallet's first position on")
        return self.world.history()

    async def window(self, positions: Sequence[LpPosition], since: Seconds) -> port.PositionsWindow:
        raise Unavailable("a recorded pool does not explain windows")

    async def price_path(self, pool_id: HexId, since: Seconds, step: int = HOUR) -> tuple[PricedBlock, ...]:
        self._check_pool(pool_id)
        # A mark stands at the end of its minute, so what it tells was traded the second before.
        hourly = {(mark.block.timestamp - 1) // step: mark for mark in self.world.marks if mark.block.timestamp > since}
        blocks = (replace(mark.block, timestamp=Seconds(mark.block.timestamp - 1)) for mark in hourly.values())
        return tuple(
            PricedBlock(block, mark.sqrt_price_x96) for block, mark in zip(blocks, hourly.values(), strict=True)
        )

    async def swap_fees(self, pool_id: HexId, since: Seconds) -> SwapFees:
        raise Unavailable("a record of minutes has no swaps")

    async def depth(self, pool_id: HexId) -> Depth:
        raise Unavailable("a record of minutes has no liquidity by tick")

    async def gas(self) -> GasQuote:
        return self._gas

    async def close(self) -> None:
        """Nothing is open."""

    def _holds(self, owner: Address) -> bool:
        return owner.lower() == WALLET and self.world.range is not None

    def _check_pool(self, pool_id: HexId) -> None:
        if pool_id.lower() != self.world.pool_id:
            raise NotFound(f"No pool {pool_id} in the record.")


def fixed_gas(gwei: Decimal) -> GasQuote:
    return GasQuote(Wei(int(gwei * 10**9)), Wei(0))
