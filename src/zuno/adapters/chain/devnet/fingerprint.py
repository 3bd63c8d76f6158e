"""What a finished world is named by: the story, the contracts, the EVM, and every line of ours that shaped it."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from zuno.adapters.chain.world import write_script

from .artifacts import VERSIONS

SHAPING: Final = (
    "zuno.adapters.chain.devnet.artifacts",
    "zuno.adapters.chain.devnet.block_builder",
    "zuno.adapters.chain.devnet.cachefile",
    "zuno.adapters.chain.devnet.deploy",
    "zuno.adapters.chain.devnet.evm",
    "zuno.adapters.chain.devnet.execution",
    "zuno.adapters.chain.devnet.history",
    "zuno.adapters.chain.devnet.keys",
    "zuno.adapters.chain.devnet.story",
    "zuno.adapters.chain.devnet.transactions",
    "zuno.adapters.chain.sim.permissions",
    "zuno.adapters.chain.world",
    "zuno.amm.bitmap",
    "zuno.amm.fees",
    "zuno.amm.identity",
    "zuno.amm.integers",
    "zuno.amm.liquidity",
    "zuno.amm.pool",
    "zuno.amm.swap",
    "zuno.amm.ticks",
    "zuno.lp.plan.calldata",
)
"""Modules whose code decides what is on the chain; what else the story needs are types, words and a second opinion."""


def fingerprint(seed: int) -> str:
    """Another story, other contracts, another EVM or other code of ours make another world."""
    parts = (repr(write_script(seed)), repr(sorted(VERSIONS.items())), version("py-evm"), *map(_digest, SHAPING))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def source_of(module: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{module} shapes the devnet's world and is not there", name=module)
    return Path(spec.origin)


def _digest(module: str) -> str:
    return hashlib.sha256(source_of(module).read_bytes()).hexdigest()
