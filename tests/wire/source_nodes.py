"""The package's sources as the tests of its architecture read them, parsed once."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def parse_nodes(source: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(source)))


@cache
def read_nodes(path: Path) -> tuple[ast.AST, ...]:
    return parse_nodes(path.read_text(encoding="utf-8"))
