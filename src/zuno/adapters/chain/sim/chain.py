"""The simulated world behind the ports: a chain to read and a world whose price can be pushed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from zuno.adapters.chain.sim.engine import BASE_FEE, PRIORITY_FEE, SimWorld
from zuno.adapters.chain.sim.history import list_prices, position_history
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.chain.world import SIM, WALLET, shift_reference
from zuno.amm import identity
from zuno.amm.fees import earned_rounding_down
from zuno.amm.model import Block, Depth, LpPosition, PoolState, Range
from zuno.amm.ticks import MAX_TICK, MIN_TICK
from zuno.kernel.errors import NotFound, PoolNotInitialized, Refused, Unavailable
from zuno.kernel.units import Address, HexId, Seconds, Tick
from zuno.lp.model.chains import curated_keys
from zuno.lp.model.history import PositionHistory, PricedBlock, ReadPlans, SwapFees, read_no_plans
from zuno.lp.model.market import HOUR, GasQuote
from zuno.lp.ports import chain as port
from zuno.lp.ports.world import PoolMove, PriceMove

if TYPE_CHECKING:
    from zuno.lp.ports.spending import SendResult


@lru_cache(maxsize=4096)
def _whole_usdc(micro_usdc: int) -> Fraction:
    return Fraction(micro_usdc, 10**6)


class SimChain:
    """Our own pools, replayed from the saved events by each process. Answers are of the world at opening, or of the
    last change made by this process."""

    info = SIM

    def __init__(self, file: SimFile, read_plans: ReadPlans = read_no_plans) -> None:
        self._file, self._read_plans = file, read_plans
        self._world: SimWorld | None = None

    async def head(self) -> Block:
        return self._now.head

    async def wallet(self) -> Address | None:
        return WALLET

    async def pools(self) -> port.PoolsFound:
        world = self._now
        states = (world.state(index) for index in range(len(world.pools)))
        return port.PoolsFound(world.head, tuple(sorted(states, key=lambda pool: pool.key.order)))

    async def pool(self, pool_id: HexId) -> PoolState:
        return self._now.state(self.index(pool_id))

    async def pool_at(self, pool_id: HexId, moment: Seconds) -> PoolState:
        index = self.index(pool_id)
        if moment < self._now.prices[index][0].block.timestamp:
            raise Unavailable(f"pool {pool_id} has no price as early as {moment}")
        return self._now.state_at(index, moment)

    async def depth(self, pool_id: HexId) -> Depth:
        world, index = self._now, self.index(pool_id)
        ticks = world.pools[index].ticks
        net = {tick: ticks[tick].liquidity_net for tick in sorted(ticks)}
        return Depth(world.state(index), Range(Tick(MIN_TICK), Tick(MAX_TICK)), net)

    async def owned(self, owner: Address) -> port.OwnedPositions:
        ids = tuple(nft.id for nft in self._now.nfts.values() if nft.owner == owner.lower())
        return port.OwnedPositions(self._now.head, Address(owner.lower()), ids, len(ids), complete=True)

    async def holdings(self, owner: Address) -> port.Holdings:
        owned = await self.owned(owner)
        return port.Holdings(owned, await self.positions(owned.ids))

    async def holdings_of(self, owners: Sequence[Address]) -> tuple[port.Holdings, ...]:
        return tuple([await self.holdings(Address(owner)) for owner in dict.fromkeys(map(str.lower, owners))])

    async def past_positions(self, owner: Address) -> port.PastPositions:
        world, wanted = self._now, owner.lower()
        gone = (nft.id for nft in world.all_nfts.values() if nft.owner == wanted and nft.id not in world.nfts)
        return port.PastPositions(world.head, Address(wanted), tuple(sorted(gone)), complete=True)

    async def positions(self, ids: Sequence[int]) -> port.Snapshot:
        world, positions, missing = self._now, [], []
        for position_id in dict.fromkeys(ids):
            nft = world.nfts.get(position_id)
            if nft is None:
                missing.append(port.Missing(position_id, "no such position"))
            else:
                positions.append(world.position(nft))
        return port.Snapshot(world.head, tuple(positions), tuple(missing))

    async def witness(self, block: Block, pool_ids: Sequence[HexId], position_ids: Sequence[int]) -> port.StateAtBlock:
        then = self._now if block == self._now.head else self._now.past(block.timestamp)
        if then.head != block:
            raise Refused(f"sim has no block {block.number} with hash {block.hash[:12]}…")
        states = {then.state(index).id: then.state(index) for index in range(len(then.pools))}
        nfts = (then.nfts.get(position_id) for position_id in position_ids)
        return port.StateAtBlock(
            block,
            {pool_id: states[pool_id] for pool_id in pool_ids if pool_id in states},
            {nft.id: then.position(nft) for nft in nfts if nft is not None},
        )

    async def history(self, position_id: int, since: Seconds | None) -> PositionHistory:
        return position_history(self._now, position_id, since, await self._read_plans(self.info.name))

    async def window(self, positions: Sequence[LpPosition], since: Seconds) -> port.PositionsWindow:
        world, fees = self._now, dict[int, tuple[int, int]]()
        first = max(world.prices[self.index(position.pool.id)][0].block.timestamp for position in positions)
        then = world.past(max(since, first))
        for position in positions:
            nft, before = world.nfts.get(position.id), then.nfts.get(position.id)
            if nft is None or before is None:
                continue
            start, end = then.snapshot_position(before), world.snapshot_position(nft)
            if start.liquidity == end.liquidity:
                fees[nft.id] = (
                    earned_rounding_down(end.fee_growth_inside0_x128, start.fee_growth_inside0_x128, end.liquidity),
                    earned_rounding_down(end.fee_growth_inside1_x128, start.fee_growth_inside1_x128, end.liquidity),
                )
        paths = {
            position.pool.id: list_prices(world.prices[self.index(position.pool.id)], then.head, world.head)
            for position in positions
        }
        return port.PositionsWindow(then.head, world.head, fees, paths)

    async def price_path(self, pool_id: HexId, since: Seconds, step: int = HOUR) -> tuple[PricedBlock, ...]:
        index, world = self.index(pool_id), self._now
        hourly: dict[int, PricedBlock] = {}
        for price in world.prices[index]:
            if price.block.timestamp >= since and price.block.number in world.traded[index]:
                hourly[price.block.timestamp // step] = price
        return tuple(hourly.values())

    async def swap_fees(self, pool_id: HexId, since: Seconds) -> SwapFees:
        from zuno.lp.rules.fee_yield import DAY, FORTNIGHT, growth_of_swaps, mark_growth

        index, world = self.index(pool_id), self._now
        dated = [(block, swap) for block, swap in world.swaps[index] if block.timestamp >= since]
        if not dated:
            raise Unavailable(f"pool {pool_id} had no swap since {since}")
        first = dated[0][0].number
        last_of_first = [swap for block, swap in dated if block.number == first][-1]
        later = [(block, swap) for block, swap in dated if block.number > first]
        swaps = [last_of_first, *(swap for _, swap in later)]
        growth0, growth1, uneven = growth_of_swaps(swaps, world.state(index))
        opened = next(price.block for price in world.prices[index] if price.block.number == first)
        blocks = {price.block.number: price for price in world.prices[index]}
        after = [blocks[first], *(blocks[block.number] for block, _ in later)]
        moments = [Seconds(world.head.timestamp - ago) for ago in range(FORTNIGHT, -1, -DAY)]
        marks = [world.state_at(index, moment).block for moment in moments if moment > opened.timestamp]
        days = mark_growth(world.state(index), swaps, after, marks)
        return SwapFees(opened, world.head, growth0, growth1, len(swaps) - 1, uneven, days)

    async def survey(
        self,
        pool_ids: Sequence[HexId],
        moments: Sequence[Seconds],
        since: Mapping[HexId, Seconds],
        priced: Collection[HexId] = (),
    ) -> tuple[port.SurveyedPool, ...]:
        from zuno.lp.rules.fee_yield import sample_of

        world, surveyed = self._now, []
        for pool_id in pool_ids:
            index, depth = self.index(pool_id), await self.depth(pool_id)
            first = world.prices[index][0].block.timestamp
            begin = since.get(pool_id, Seconds(world.head.timestamp + 1))
            times = (Seconds(max(moment, first)) for moment in moments if moment >= begin and moment > first - HOUR)
            marks = (sample_of(world.state_at(index, time)) for time in times)
            path = await self.price_path(pool_id, begin, 300) if pool_id in priced else None
            surveyed.append(port.SurveyedPool(depth, tuple(marks), path))
        return tuple(surveyed)

    async def gas(self) -> GasQuote:
        return GasQuote(BASE_FEE, PRIORITY_FEE)

    def refresh(self) -> None:
        """Forget the world if another process has changed it since."""
        if self._world is not None and not self._file.ends_on(self._world):
            self._world = None

    async def close(self) -> None:
        self._world = None

    def reference_closes(self) -> tuple[tuple[Seconds, Fraction], ...]:
        """The seeded reference in USDC for one ETH, oldest first."""
        return tuple((at, _whole_usdc(price)) for at, price in self._now.closes)

    async def reference_path(self) -> tuple[tuple[Seconds, Fraction], ...]:
        return self.reference_closes()

    async def move(self, percent: Decimal) -> PriceMove:
        with self._changing() as world:
            before = [world.state(index) for index in range(len(world.pools))]
            reference_before = world.reference
            move = world.next_move(shift_reference(reference_before, percent))
            world.apply(move)
            self._file.save(world)
        return PriceMove(
            world.head,
            Fraction(reference_before, 10**6),
            Fraction(move.reference, 10**6),
            tuple(
                PoolMove(
                    state.id,
                    spec.label,
                    Fraction(spec.micro_usdc(state.sqrt_price_x96), 10**6),
                    Fraction(spec.micro_usdc(pool.slot0.sqrt_price_x96), 10**6),
                )
                for spec, pool, state in zip(world.specs, world.pools, before, strict=True)
            ),
        )

    async def reset(self, seed: int) -> Block:
        with self._file.lock():
            self._world = SimWorld.play(seed)
            self._file.save(self._world)
        return self._world.head

    def latest(self) -> SimWorld:
        """The world as its file has it now: whoever is about to spend needs the present, not the opening."""
        if self._world is None or not self._file.ends_on(self._world):
            self._world = self._file.load()
        return self._world

    def take(self, raw: bytes) -> SendResult:
        """Mine signed bytes, or raise; once this answers, they are on disk."""
        from zuno.adapters.chain.sim.transactions import parse_transaction
        from zuno.lp.ports.spending import SendResult

        tx = parse_transaction(raw, SIM.id)
        with self._changing() as world:
            result = world.admit(tx)
            if result is SendResult.ACCEPTED:
                world.transact(tx, world.next_time)
                self._file.save(world)
        return result

    @contextmanager
    def _changing(self) -> Iterator[SimWorld]:
        """The latest world, locked; where the change fails, what was changed is forgotten."""
        with self._file.lock():
            try:
                yield self.latest()
            except BaseException:
                self._world = None
                raise

    @property
    def _now(self) -> SimWorld:
        if self._world is None:
            self._world = self._file.load()
        return self._world

    def index(self, pool_id: HexId) -> int:
        for index, spec in enumerate(self._now.specs):
            if spec.id == pool_id.lower():
                return index
        if any(HexId(identity.pool_id(*astuple(key))) == pool_id.lower() for key in curated_keys(SIM)):
            raise PoolNotInitialized(f"pool {pool_id} on sim has no price yet")
        raise NotFound(f"No pool {pool_id} on sim; `zuno lp pools --chain sim` lists them.")
