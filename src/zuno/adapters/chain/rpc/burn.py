"""What burning a position would pay, from the contracts themselves: the node is asked to pretend it."""

from __future__ import annotations

from dataclasses import dataclass

from zuno.adapters.chain.rpc.errors import NoSuchMethod
from zuno.adapters.chain.rpc.ledger import ETHER, amount_given, received_by_pools
from zuno.adapters.chain.rpc.node import Node
from zuno.amm.model import Block, PoolKey
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address
from zuno.lp.model.chains import Deployment
from zuno.lp.plan import calldata

_NO_HURRY = 2**40


@dataclass(frozen=True, slots=True)
class BurnResult:
    """What the pool would pay, and what of it would reach the owner."""

    paid0: int
    paid1: int
    received0: int
    received1: int
    blind_to_coin: bool
    """True: the pool holds native coin and the simulation names no move of any."""


class BurnSimulator:
    """Pretended burns, where the node offers eth_simulateV1."""

    def __init__(self, node: Node, deployment: Deployment) -> None:
        self._node = node
        self._at = deployment
        self._refusal = ""

    async def simulate(self, token: int, owner: Address, key: PoolKey, at: Block) -> BurnResult | str:
        """The burn on top of a block, or why nobody can say."""
        if self._refusal:
            return self._refusal
        steps = [calldata.burn_position(token, 0, 0), calldata.take_pair(key.currency0, key.currency1, owner)]
        data = calldata.modify_liquidities(steps, _NO_HURRY)
        try:
            logs = await self._node.simulate(owner, self._at.position_manager, data, at)
        except NoSuchMethod:
            self._refusal = "the node does not offer eth_simulateV1"
            return self._refusal
        except (Unavailable, Malformed) as fault:
            return str(fault)
        paid0, paid1 = (
            -received_by_pools(logs, side, self._at.pool_manager) for side in (key.currency0, key.currency1)
        )
        received0, received1 = (
            -amount_given(logs, ETHER if side == NATIVE else side, owner) for side in (key.currency0, key.currency1)
        )
        blind = key.currency0 == NATIVE and not any(log.address == ETHER for log in logs)
        return BurnResult(paid0, paid1, received0, received1, blind)
