"""The finished devnet world of the default seed: `python -m tests.wire.devnet_world` builds it ahead of the tests."""

from __future__ import annotations

import fcntl
from pathlib import Path

from tests.paths import CACHE, NODE_MODULES
from zuno.adapters.chain.devnet.world_builder import open_world
from zuno.adapters.chain.world import DEFAULT_SEED
from zuno_devnet.artifacts import find_artifacts

WORLD_CACHE = CACHE / "devnet"


def build_world(node_modules: Path) -> Path:
    """The folder that holds it, built by whoever comes first."""
    WORLD_CACHE.mkdir(parents=True, exist_ok=True)
    with open(WORLD_CACHE / "building.lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        open_world(find_artifacts(node_modules), WORLD_CACHE, DEFAULT_SEED, lambda done, total: None)
    return WORLD_CACHE


if __name__ == "__main__":
    build_world(NODE_MODULES)
