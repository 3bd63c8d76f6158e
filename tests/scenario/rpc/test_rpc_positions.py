"""What is remembered of positions stays true when two questions overlap."""

from __future__ import annotations

import asyncio
from typing import Any

from zuno.adapters.chain.rpc.cache import JsonCache
from zuno.adapters.chain.rpc.node import RpcNode
from zuno.adapters.chain.rpc.positions import PositionReader
from zuno.adapters.chain.rpc.transport import FailoverProvider
from zuno.amm.model import Block
from zuno.kernel.units import Address
from zuno.lp.plan import calldata


class SlowAt(RpcNode):
    """A node that takes its time over calls at one block."""

    slow: Block | None = None

    async def call(self, to: Address, data: bytes, at: Block, *rest: Any, **how: Any) -> Any:
        if at == self.slow:
            await asyncio.sleep(0.3)
        return await super().call(to, data, at, *rest, **how)


async def test_a_slow_reader_of_the_new_head_does_not_vouch_for_what_an_old_one_saw(desk: Any) -> None:
    stage, key = desk.stage, desk.stage.weth_pool
    manager = stage.info.deployment.position_manager
    (given,) = stage.mint(key, -200_700, -199_980, 10**15)
    (other,) = stage.mint(key, -200_700, -199_980, 10**15)
    node = SlowAt(FailoverProvider([(await desk.node()).url], stage.info.id, "the RPC URL"))
    deeds = PositionReader(node, manager, JsonCache(desk.cache))
    try:
        before = await node.head()
        await deeds.read([], before)
        give = calldata.call("transferFrom(address,address,uint256)", stage.wallet, stage.trader, given)
        stage.send("wallet", manager, give)
        node.slow = after = await node.head()
        await asyncio.gather(deeds.read([other], after), deeds.read([given], before))
        assert (await deeds.read([given], after)).nfts[given].owner == stage.trader
    finally:
        await node.provider.close()
