"""Which collection of a shared server a home's memories are in."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr

from zuno.adapters.memory.milvus import MilvusMemoryIndex
from zuno.settings import Settings
from zuno.wiring.memory import _open_index


def collection(folder: Path) -> str:
    settings = Settings(memory_store="milvus", memory_url=SecretStr("http://127.0.0.1:9"))
    index = _open_index(settings, folder, None)
    assert isinstance(index, MilvusMemoryIndex)
    return index._collection


def test_homes_that_share_a_server_have_collections_of_their_own(tmp_path: Path) -> None:
    first, other = collection(tmp_path / "a"), collection(tmp_path / "b")
    assert first != other
    assert collection(tmp_path / "a") == first
