"""A recorded pool behind the chain's port: what was known by the last minute that was played, and nothing later."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from zuno.adapters.chain.recorded.world import WALLET, RecordedMarket, RecordedWorld
from zuno.amm.model import Block, Depth, LpPosition, PoolState
from zuno.kernel.errors import NotFound, Refused, Unavailable
from zuno.kernel.text import Token
from zuno.kernel.units import Address, HexId, Pips, Seconds, SqrtPriceX96, Wei
from zuno.lp.model.chains import ChainInfo, Deployment
from zuno.lp.model.history import PositionHistory, PricedBlock, SwapFees
from zuno.lp.model.market import HOUR, GasQuote
from zuno.lp.ports import chain as port

_NOWHERE: Final = Address("0x" + "00" * 19 + "01")
USDC: Final = Token(Address("0x2791bca1f2de4661ed88a30c99a7a9449aa84174"), "USDC", 6, verified=True)
WETH: Final = Token(Address("0x7ceb23fd6bc0add59e62ac25578270cff1b9f619"), "WETH", 18, verified=True)
RECORDED: Final = ChainInfo(
    31337,
    "recorded",
    "Recorded pool",
    Deployment(_NOWHERE, _NOWHERE, _NOWHERE),
    (USDC, WETH),
    testnet=True,
    confirmations=0,
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
        return self.world.state_of(self.world.marks[place - 1])

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
        missing = tuple(
            port.Missing(position_id, "no such position") for position_id in asked if position_id not in held
        )
        return port.Snapshot(
            world.head, tuple(held[position_id] for position_id in asked if position_id in held), missing
        )

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

    async def price_path(self, pool_id: HexId, since: Seconds) -> tuple[PricedBlock, ...]:
        self._check_pool(pool_id)
        # A mark stands at the end of its minute, so what it tells was traded the second before.
        hourly = {(mark.block.timestamp - 1) // HOUR: mark for mark in self.world.marks if mark.block.timestamp > since}
        return tuple(
            PricedBlock(
                Block(mark.block.number, mark.block.hash, Seconds(mark.block.timestamp - 1)),
                SqrtPriceX96(mark.sqrt_price_x96),
            )
            for mark in hourly.values()
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
