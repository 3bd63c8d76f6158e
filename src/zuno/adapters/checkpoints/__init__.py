"""How far each run of the trading desk has come: in a file of the home, or on a server. Plain values alone are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer


def strict_serializer() -> JsonPlusSerializer:
    """Reads what our state is made of. The library's own default imports and calls whatever a file tells it to."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    return JsonPlusSerializer(pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=None)
