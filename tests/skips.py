"""Strict mode, `ZUNO_TEST_STRICT=1`: a skip fails the run unless its reason is written in `tests/allowed_skips.txt`.

A line of that file which no test of a whole run gives any more fails it too. Runs in the process that reports, so it
sees the skips of all workers, those of whole modules included.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ALLOWED_SKIPS = Path(__file__).with_name("allowed_skips.txt")


class SkipCheck:
    def __init__(self, allowed: frozenset[str], whole: bool) -> None:
        self._allowed = allowed
        self._whole = whole
        self._skips: dict[str, str] = {}
        """Node id to reason."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._collect(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._collect(report)

    def _collect(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            *_, reason = report.longrepr if isinstance(report.longrepr, tuple | list) else [str(report.longrepr)]
            self._skips[report.nodeid] = str(reason).removeprefix("Skipped: ")

    def faults(self) -> list[str]:
        unlisted = [f"{name}: {reason}" for name, reason in sorted(self._skips.items()) if reason not in self._allowed]
        stale = sorted(self._allowed - set(self._skips.values())) if self._whole else []
        return [f"skipped without leave: {each}" for each in unlisted] + [f"no test skips so: {each}" for each in stale]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.faults() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for fault in self.faults():
            terminalreporter.line(fault, red=True)


def read_allowed_skips(path: Path) -> frozenset[str]:
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return frozenset(line for line in lines if line and not line.startswith("#"))


def check_skips(config: pytest.Config, path: Path = ALLOWED_SKIPS) -> None:
    """Hold this run to the list. A run of a part of the tests may leave lines of it unused."""
    if hasattr(config, "workerinput"):
        return
    selected = config.args != config.getini("testpaths") or any(map(config.getoption, ("keyword", "deselect")))
    whole = not selected and config.getoption("markexpr") in ("", "not soak") and not config.getoption("lf", False)
    config.pluginmanager.register(SkipCheck(read_allowed_skips(path), whole))
