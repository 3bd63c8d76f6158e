"""The list of tools: few, described, closed; none of them spends or changes anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from zuno.doors.mcp.server import describe_tool, fence_text
from zuno.doors.mcp.tools import TOOLS

SPENDING = frozenset(
    "ack add adopt apply approve buy cancel close collect compound create delete edit enter exit forget grant kill "
    "order pause reset resume revoke sell send set sign snooze start stop swap transfer unlock update "
    "withdraw write".split()
)

NAMES = (
    r"(lp|plan|trade|analysis|memory|journal)(_[a-z]+)+|rank_pools|simulate_plan|prepare_plan|strategy_targets|backtest"
)


def walk(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for item in schema.values():
            yield from walk(item)
    elif isinstance(schema, list):
        for item in schema:
            yield from walk(item)


DESCRIBED = [describe_tool(tool) for tool in TOOLS.values()]


def test_they_are_few_and_each_says_what_it_is() -> None:
    assert len(TOOLS) <= 26
    for tool in DESCRIBED:
        assert re.fullmatch(
            NAMES,
            tool.name,
        )
        assert tool.description
        assert tool.input_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
        assert tool.output_schema["type"] == "object"
        assert tool.output_schema["properties"]


def test_no_tool_spends_or_changes_anything() -> None:
    starting = set()
    for tool in DESCRIBED:
        assert not SPENDING & set(tool.name.split("_")), tool.name
        assert tool.annotations is not None
        assert tool.annotations.destructive_hint is False
        if not tool.annotations.read_only_hint:
            starting.add(tool.name)
        for argument in tool.input_schema.get("properties", {}):
            assert argument not in ("account", "execute", "live", "confirm", "yes", "passphrase", "key")
    assert starting == {"lp_recommend_rebalance", "trade_analyze", "backtest", "prepare_plan"}


def test_fences_break_no_schema() -> None:
    """Where a schema names the only words, they are left as they are; none bounds the length or the form of a text."""
    for tool in DESCRIBED:
        for part in walk(tool.output_schema):
            words = [*part.get("enum", []), *([part["const"]] if "const" in part else [])]
            assert all(fence_text(word) == word for word in words if isinstance(word, str)), words
            if part.get("type") == "string":
                assert not {"pattern", "format", "maxLength"} & part.keys(), part
