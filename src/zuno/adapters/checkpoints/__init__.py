"""LangGraph checkpoints of trading runs, in a file of the home or in Postgres. Plain values alone are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer


def strict_serializer() -> JsonPlusSerializer:
    """A serializer of plain values alone: the library's default imports and calls whatever a file names."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    return JsonPlusSerializer(pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=None)
