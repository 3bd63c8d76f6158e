"""Moves the devnet's ETH price by real swaps to a limit, all pools in one block, and the reference with them."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from zuno.adapters.chain.world import DEPLOYMENT, SWAP_ROUTER, PoolSpec, pool_specs, shift_reference
from zuno.amm.identity import pool_slots, unpack_slot0
from zuno.kernel.errors import Broken
from zuno.kernel.text import NATIVE
from zuno.lp.plan import calldata
from zuno_devnet import params
from zuno_devnet.chain import ETHER
from zuno_devnet.keys import dev_address, dev_key
from zuno_devnet.methods import Method
from zuno_devnet.node import DevnetNode
from zuno_devnet.params import Params
from zuno_devnet.rpc_errors import bad_params
from zuno_devnet.transactions import LocalTransaction

from .world_builder import OTHERS_ROLE, address_bytes

_SWAP = f"swap({calldata.KEY},(bool,int256,uint160),(bool,bool),bytes)"
_AMPLE = 1 << 120
_AMPLE_NATIVE = 1_000_000 * ETHER
_GAS = 5_000_000
_MAX_PERCENT = 1_000_000


class PriceMover:
    """Moves the pools by the trader's swaps and keeps the reference price (micro-USDC for one ETH)."""

    def __init__(self, reference: int) -> None:
        self._first = reference
        self._moves: list[tuple[bytes, int, int]] = []
        """Hash and number of each block that moved the price, and the reference since."""

    def methods(self) -> dict[str, Method]:
        return {"zuno_move": self._move, "zuno_reference": lambda node, given: str(self._reference(node))}

    def _reference(self, node: DevnetNode) -> int:
        """The reference after the last move that is on the chain; a block that was reorganised away moved nothing."""
        for block_hash, number, reference in reversed(self._moves):
            block = node.chain.history.at(number)
            if block is not None and block.hash == block_hash:
                return reference
        return self._first

    def _move(self, node: DevnetNode, given: Params) -> dict[str, Any]:
        """zuno_move(percent as text): every pool to the new reference, or nothing."""
        before = self._reference(node)
        after = shift_reference(before, _percent(given.require(0)))
        specs = pool_specs()
        prices = [self._price(node, spec) for spec in specs]
        try:
            block = node.mine_only(self._swaps(node, specs, after))
        except Broken as failure:
            raise Broken(f"The push by swaps failed and nothing was moved: {failure}.") from failure
        self._moves.append((block.hash, block.number, after))
        return {
            "block": {"number": block.number, "hash": "0x" + block.hash.hex(), "timestamp": block.timestamp},
            "referenceBefore": str(before),
            "referenceAfter": str(after),
            "pools": [
                {
                    "id": spec.id,
                    "label": spec.label,
                    "before": str(spec.micro_usdc(price)),
                    "after": str(spec.micro_usdc(self._price(node, spec))),
                }
                for spec, price in zip(specs, prices, strict=True)
            ],
        }

    def _price(self, node: DevnetNode, spec: PoolSpec) -> int:
        word = node.chain.storage(address_bytes(DEPLOYMENT.pool_manager), pool_slots(spec.id).slot0)
        return unpack_slot0(word).sqrt_price_x96

    def _swaps(self, node: DevnetNode, specs: tuple[PoolSpec, ...], reference: int) -> list[LocalTransaction]:
        key, router = dev_key(OTHERS_ROLE), address_bytes(SWAP_ROUTER)
        nonce, txs = node.chain.nonce(dev_address(OTHERS_ROLE)), list[LocalTransaction]()
        for spec in specs:
            here, target = self._price(node, spec), spec.sqrt_price(reference)
            if here == target:
                continue
            down = target < here
            data = calldata.call(_SWAP, calldata.key_tuple(spec.key), (down, -_AMPLE, target), (False, False), b"")
            # What a native swap does not need comes back from the router.
            value = _AMPLE_NATIVE if down and spec.key.currency0 == NATIVE else 0
            at = nonce + len(txs)
            txs.append(node.chain.sign(key, to=router, data=data, value=value, gas=_GAS, nonce=at))
        return txs


def _percent(value: object) -> Decimal:
    try:
        percent = Decimal(params.text(value))
    except InvalidOperation:
        percent = Decimal("NaN")
    if not percent.is_finite() or abs(percent) > _MAX_PERCENT:
        raise bad_params(f"invalid argument 0: expected a percentage of at most {_MAX_PERCENT} as text")
    return percent
