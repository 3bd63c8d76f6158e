"""The lists of slow tests name tests that are there, each once and in order."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import SLOW_TESTS, SOAK_TESTS, read_tests
from tests.paths import CHECKOUT


@cache
def functions_of(file: str) -> frozenset[str]:
    tree = ast.parse((CHECKOUT / file).read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return frozenset(node.name for node in found)


@pytest.mark.parametrize("path", [SLOW_TESTS, SOAK_TESTS], ids=lambda path: path.stem)
def test_every_line_names_a_test_once_and_in_order(path: Path) -> None:
    tests = [test for test, _ in read_tests(path)]
    assert tests == sorted(set(tests))
    gone = [test for test in tests if test.rpartition("::")[2] not in functions_of(test.partition("::")[0])]
    assert not gone


def test_a_test_with_every_keeps_some_parameters() -> None:
    assert 1 not in {every for _, every in read_tests(SOAK_TESTS)}
