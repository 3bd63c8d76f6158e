"""Adapters have no screen: what a person should know is returned, told to a listener or logged."""

from __future__ import annotations

import ast

import pytest

from tests.paths import SOURCE
from tests.wire.source_nodes import read_nodes

ADAPTERS = SOURCE / "adapters"


def speaks(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="print")):
            return True
        case ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr"):
            return True
    return False


@pytest.mark.slow
def test_no_adapter_writes_to_the_screen() -> None:
    modules = sorted(ADAPTERS.rglob("*.py"))
    assert modules
    spoken = [
        f"{module.relative_to(ADAPTERS)}:{getattr(node, 'lineno', 0)}"
        for module in modules
        for node in read_nodes(module)
        if speaks(node)
    ]
    assert spoken == []
