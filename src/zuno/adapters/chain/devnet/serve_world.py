"""Serve the world of a seed: a node on it, its record for scripts, and `zuno_move`, which moves the price by swaps."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from eth_utils.address import to_checksum_address
from pydantic.alias_generators import to_camel

from zuno.adapters.chain.devnet.world_builder import OTHERS_ROLE, WALLET_ROLE, address_bytes, open_world
from zuno.adapters.chain.world import (
    DEPLOYMENT,
    SWAP_ROUTER,
    USDC,
    WETH,
    PoolSpec,
    pool_specs,
    shift_reference,
    write_script,
)
from zuno.amm.identity import pool_slots, unpack_slot0
from zuno.kernel.errors import Broken
from zuno.kernel.text import NATIVE
from zuno.lp.plan import calldata
from zuno_devnet import params
from zuno_devnet.artifacts import Artifacts
from zuno_devnet.chain import ETHER, LocalChain
from zuno_devnet.keys import dev_address, dev_key
from zuno_devnet.methods import Method
from zuno_devnet.node import DevnetNode
from zuno_devnet.params import Params
from zuno_devnet.rpc_errors import bad_params
from zuno_devnet.server import check_port, serve_until_signalled
from zuno_devnet.transactions import LocalTransaction

Tell = Callable[[str], None]


def serve_world(
    artifacts: Artifacts, cache: Path, seed: int, port: int, write: Callable[[bytes], None], tell: Tell
) -> None:
    """Serve the world of a seed until SIGINT or SIGTERM; `write` gets the record once the node answers."""
    check_port(port)
    node, mover = open_node(artifacts, cache, seed, tell)

    def ready(url: str) -> None:
        write(json.dumps(record(node.chain, url, seed), indent=1).encode())
        tell(f"Devnet at {url}, block {node.chain.head.number}; stop it with Ctrl-C.")

    serve_until_signalled(node, port, ready, mover.methods())


def open_node(
    artifacts: Artifacts, cache: Path, seed: int, tell: Tell = lambda line: None
) -> tuple[DevnetNode, PriceMover]:
    """A node on the world of a seed. Its clock continues from the last block, whatever the wall clock says."""
    chain = open_world(artifacts, cache, seed, lambda done, total: _tell_progress(tell, done, total))
    keys = {dev_address(role): dev_key(role) for role in (WALLET_ROLE, OTHERS_ROLE)}
    offset = chain.head.timestamp - int(time.time())
    return DevnetNode(chain, unlocked=keys, time_offset=offset), PriceMover(write_script(seed).hours[-1].reference)


def record(chain: LocalChain, url: str, seed: int) -> dict[str, Any]:
    names = "pool_manager position_manager state_view quoter universal_router permit2".split()
    contracts: dict[str, str] = {to_camel(name): getattr(DEPLOYMENT, name) for name in names}
    contracts |= {"weth": WETH.address, "usdc": USDC.address}
    return {
        "url": url,
        "pid": os.getpid(),
        "chainId": chain.chain_id,
        "genesisHash": "0x" + next(iter(chain.history)).hash.hex(),
        "seed": seed,
        "swapStruct": DEPLOYMENT.swap_struct,
        "contracts": {name: to_checksum_address(address) for name, address in contracts.items()},
        "pools": [{"id": spec.id, "label": spec.label} for spec in pool_specs()],
        "wallet": {
            "address": to_checksum_address(dev_address(WALLET_ROLE)),
            "privateKey": dev_key(WALLET_ROLE).to_hex(),
            "warning": "a public test key: anyone can compute it, so never fund it elsewhere",
        },
    }


def _tell_progress(tell: Tell, done: int, total: int) -> None:
    if done == 1:
        tell("Building the devnet's world with real swaps (once; about a minute) ...")
    elif done % 72 == 0:
        tell(f"  {100 * done // total} %")


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
        return {
            "zuno_move": self._move,
            "zuno_moves": lambda node, given: [[at, str(reference)] for at, reference in self._list_moves(node)],
            "zuno_reference": lambda node, given: str(self._reference(node)),
        }

    def _list_moves(self, node: DevnetNode) -> list[tuple[int, int]]:
        """When the chain's moves were, and the reference since; a block that was reorganised away moved nothing."""
        moved = ((node.chain.history.at(number), mined, after) for mined, number, after in self._moves)
        return [(block.timestamp, after) for block, mined, after in moved if block is not None and block.hash == mined]

    def _reference(self, node: DevnetNode) -> int:
        return (self._list_moves(node) or [(0, self._first)])[-1][1]

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
