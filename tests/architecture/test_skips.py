"""Strict mode: which skips fail a run, and which cases are left to soak."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import CHECKOUT

CONFTEST = """
from pathlib import Path
from tests.skips import check_skips

def pytest_configure(config):
    check_skips(config, Path(__file__).with_name("allowed.txt"))
"""
TESTS = """
import pytest

def test_that_passes():
    pass

def test_without_a_server():
    pytest.skip("no server")

@pytest.mark.xfail(strict=True)
def test_of_a_known_fault():
    assert False
"""
MODULE = 'import pytest\npytest.importorskip("no_such_library", reason="no library")\n'


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    (tmp_path / "tests").mkdir()
    for name, text in (("conftest.py", CONFTEST), ("test_few.py", TESTS), ("test_module.py", MODULE)):
        (tmp_path / "tests" / name).write_text(text)
    return tmp_path


def run(suite: Path, allowed: list[str], *options: str) -> tuple[int, list[str]]:
    (suite / "tests" / "allowed.txt").write_text("\n".join(["# why", *allowed]))
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=suite, env=environment, capture_output=True, text=True, check=False)
    said = [line for line in done.stdout.splitlines() if line.startswith(("skipped without leave", "no test skips so"))]
    return done.returncode, said


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_skips_without_a_written_reason_fail(suite: Path, workers: str) -> None:
    code, said = run(suite, ["no library", "no moon"], "-n", workers)
    assert code == 1
    assert said == [
        "skipped without leave: tests/test_few.py::test_without_a_server: no server",
        "no test skips so: no moon",
    ]


@pytest.mark.slow
def test_skips_with_a_written_reason_pass_and_a_module_needs_one_too(suite: Path) -> None:
    assert run(suite, ["no server", "no library"]) == (0, [])
    code, (unlisted,) = run(suite, ["no server"])
    assert code == 1
    assert unlisted.endswith("tests/test_module.py: no library")


@pytest.mark.soak
@pytest.mark.parametrize("part", [("tests/test_few.py",), ("-k", "server")])
def test_a_part_of_the_tests_may_leave_lines_unused(suite: Path, part: tuple[str, ...]) -> None:
    assert run(suite, ["no server", "no library", "no moon"], *part) == (0, [])
    assert run(suite, [], *part)[0] == 1


@pytest.mark.soak(every=2)
@pytest.mark.parametrize("case", [0, 1, 2, 3, pytest.param(4, marks=pytest.mark.soak)])
def test_every_second_case_stays_and_the_others_are_soak(request: pytest.FixtureRequest, case: int) -> None:
    assert (request.node.get_closest_marker("soak") is None) == (case in (0, 2))
