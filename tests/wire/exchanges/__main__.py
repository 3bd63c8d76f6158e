"""The exam of order venues as a table: `python -m tests.wire.exchanges [VENUE ...]`.

A row is a promise, a column a venue over its fake: kept, BROKEN, or – where the venue has no such thing to promise.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections import defaultdict

import pytest

from tests.paths import CHECKOUT
from tests.wire.exchanges.harness import WIRES

EXAM = CHECKOUT / "tests" / "contract" / "test_venue_exam.py"


class Marks:
    """What each venue's paper came to, by promise; a test is one case of a promise at a venue."""

    def __init__(self, venues: list[str]) -> None:
        self.venues = venues
        self.kept: dict[str, dict[str, bool]] = defaultdict(dict)
        self.promises: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if split_name(item.nodeid)[1] in self.venues]

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        promise = split_name(item.nodeid)[0]
        if promise not in self.promises:
            self.promises.append(promise)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        promise, venue = split_name(report.nodeid)
        self.kept[promise][venue] = self.kept[promise].get(venue, True) and not report.failed

    def write(self) -> list[str]:
        width = max(map(len, self.promises))
        rows = ["  ".join([" " * width, *(venue.ljust(6) for venue in self.venues)]).rstrip()]
        for promise in self.promises:
            words = {True: "kept", False: "BROKEN", None: "–"}
            cells = [words[self.kept[promise].get(venue)].ljust(max(6, len(venue))) for venue in self.venues]
            rows.append("  ".join([promise.ljust(width), *cells]).rstrip())
        sums = []
        for venue in self.venues:
            papers = [row[venue] for row in self.kept.values() if venue in row]
            sums.append(f"{sum(papers)}/{len(papers)}".ljust(max(6, len(venue))))
        return [*rows, "  ".join(["kept of those it was asked for".ljust(width), *sums]).rstrip()]


def split_name(nodeid: str) -> tuple[str, str]:
    """`…::test_an_order_placed_twice_is_one[OKX]`: the promise, and who makes it."""
    test, _, case = nodeid.rpartition("::")[2].partition("[")
    return test.removeprefix("test_").replace("_", " "), case.removesuffix("]")


def main(asked: list[str]) -> int:
    unknown = sorted(set(asked) - set(WIRES))
    if unknown:
        print(f"no fake of {', '.join(unknown)}; there are {', '.join(WIRES)}", file=sys.stderr)
        return 2
    marks, output = Marks(asked or list(WIRES)), io.StringIO()
    with contextlib.redirect_stdout(output):
        code = pytest.main([str(EXAM), "-m", "", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"], [marks])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        print(output.getvalue(), file=sys.stderr)
        return int(code)
    print("\n".join(marks.write()))
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
