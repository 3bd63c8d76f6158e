"""What every process of a crash test would load and play for itself, done once before any is forked."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from importlib import import_module

from tests.wire.certificates import trust_nobody
from tests.wire.copied_world import CopiedWorld
from zuno.adapters.chain.sim import world_file
from zuno.adapters.chain.world import DEFAULT_SEED

JOURNAL = ("cryptography.hazmat.primitives.serialization", "zuno.adapters.keys.ed25519")
KEYS = (*JOURNAL, "eth_account")
REQUESTS = ("anyio._backends._asyncio", "h11", "httpcore", "zuno.adapters.http")


def preload(names: Iterable[str]) -> None:
    """Modules, and all modules of packages."""
    trust_nobody()
    for name in names:
        module = import_module(name)
        for found in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
            if name.startswith("zuno."):
                import_module(found.name)


def play_story() -> None:
    """The simulated chain's, which each process copies."""
    CopiedWorld.play(DEFAULT_SEED)
    setattr(world_file, "SimWorld", CopiedWorld)  # noqa: B010  # by name: mypy holds a module to what it exports
