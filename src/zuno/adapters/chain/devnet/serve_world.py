"""Serves the world of a seed: opens it, starts a node on it and writes its address and keys."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from eth_utils.address import to_checksum_address

from zuno.adapters.chain.world import DEPLOYMENT, USDC, WETH, pool_specs, write_script
from zuno_devnet.artifacts import Artifacts
from zuno_devnet.chain import LocalChain
from zuno_devnet.keys import dev_address, dev_key
from zuno_devnet.node import DevnetNode
from zuno_devnet.server import check_port, serve_until_signalled

from .price_moves import PriceMover
from .world_builder import OTHERS_ROLE, WALLET_ROLE, open_world

Tell = Callable[[str], None]


def serve_world(
    artifacts: Artifacts, cache: Path, seed: int, port: int, write: Callable[[Mapping[str, Any]], None], tell: Tell
) -> None:
    """Serve the world of a seed until SIGINT or SIGTERM; `write` gets the record once the node answers."""
    check_port(port)
    node, mover = open_node(artifacts, cache, seed, tell)

    def ready(url: str) -> None:
        write(record(node.chain, url, seed))
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
    """What a script needs to talk to the node."""
    contracts = {
        "poolManager": DEPLOYMENT.pool_manager,
        "positionManager": DEPLOYMENT.position_manager,
        "stateView": DEPLOYMENT.state_view,
        "quoter": DEPLOYMENT.quoter,
        "universalRouter": DEPLOYMENT.universal_router,
        "permit2": DEPLOYMENT.permit2,
        "weth": WETH.address,
        "usdc": USDC.address,
    }
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
