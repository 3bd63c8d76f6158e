"""Which index memories are recalled from, and what makes vectors of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zuno.settings import Settings
    from zuno.trading.ports.recall import Embedder, MemoryIndex


def embedder(settings: Settings) -> Embedder:
    from zuno.adapters.memory.hashed import HashedEmbedder

    return HashedEmbedder()


def memory_index(settings: Settings, home: Path) -> MemoryIndex:
    """With the most recent of the symbol behind it, for when it is down."""
    from zuno.adapters.memory.fallback import FallbackIndex
    from zuno.adapters.memory.jsonl import JsonlMemory
    from zuno.adapters.memory.sqlite import SqliteMemoryIndex

    folder = home / "memory"
    index = SqliteMemoryIndex(folder / "index.db", embedder(settings))
    return FallbackIndex(index, JsonlMemory(folder / "post_mortems.jsonl"))
