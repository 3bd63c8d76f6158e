"""What `make bench` prints: one JSON line per figure, every field of every line of its one type."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from benchmarks import amm
from benchmarks.__main__ import BENCHES
from benchmarks.figure import report
from tests.paths import BENCHMARKS

FIELDS: dict[str, Any] = {
    "name": str,
    "value": float,
    "unit": str,
    "yardstick": float,
    "against": str,
    "ratio": float,
    "bar": float,
    "ok": bool,
}


def check(printed: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in printed.splitlines()]
    for line in lines:
        assert {name: type(line[name]) for name in FIELDS} == FIELDS
        assert line["ok"] is (line["ratio"] <= line["bar"])
        assert line["ratio"] == pytest.approx(line["value"] / line["yardstick"], rel=1e-3)
    return lines


@pytest.mark.slow
def test_a_bench_prints_lines_of_one_shape(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(amm, "REPEATS", 1)
    code = amm.main()
    lines = check(capsys.readouterr().out)
    assert len(lines) == 3
    assert code == (0 if all(line["ok"] for line in lines) else 1)


@pytest.mark.parametrize(("value", "ok"), [(1, True), (3.0, True), (4, False)])
def test_a_figure_is_judged_by_its_ratio(capsys: pytest.CaptureFixture[str], value: float, ok: bool) -> None:
    assert report("x", value, "s", 2, "two seconds", 1.5, turns=5) is ok
    (line,) = check(capsys.readouterr().out)
    assert (line["ok"], line["ratio"], line["turns"]) == (ok, value / 2, 5)


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in BENCHMARKS.glob("*.py") if path.stem not in {"__init__", "__main__", "figure"})
)
def test_every_bench_is_run_and_prints_through_the_one_door(name: str) -> None:
    assert name in BENCHES
    calls = {
        node.func.id
        for node in ast.walk(ast.parse((BENCHMARKS / f"{name}.py").read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert calls & {"report", "report_pairs"}
    assert "print" not in calls
