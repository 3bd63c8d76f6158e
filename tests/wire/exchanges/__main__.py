"""The exam of order venues as tables: `python -m tests.wire.exchanges [VENUE ...]`; a fake exchange to trade at:
`python -m tests.wire.exchanges --serve VENUE`.

A row is a promise, or a fault that is injected at the wire; a column is a venue over its fake: kept or pass, BROKEN or
FAIL, and – where the venue has no such thing.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
from collections import defaultdict

import pytest

from tests.paths import CHECKOUT
from tests.wire.exchanges.harness import WIRES, WireHarness
from tests.wire.exchanges.serving import serve_exchange
from zuno.markets.venues import Venue

EXAM = CHECKOUT / "tests" / "contract" / "test_venue_exam.py"
FAULTS = {
    "lost reply to an order": "a lost reply leaves one order",
    "lost reply to a stop": "a lost reply leaves one stop",
    "lost reply to a cancel": "a lost reply to a cancel is asked about again",
    "lag of 0, 3, 12 s, entries": "an entry listed late is one",
    "lag, stops": "a stop listed late is one and keeps its position",
    "lag, targets": "a target listed late is one",
    "lag, cuts": "a cut listed late is one",
    "lag, closes": "a close listed late sells no more than what is held",
    "lag, legs": "legs listed late are one each",
    "lag, transfers": "a transfer listed late is made once",
    "lag, an id that is taken": "an id that is taken is no rejection",
    "look-ups that fail": "what reduces is sent unread where that does no harm",
    "codes that say nothing": "a code that says nothing of an order is no rejection",
    "duplicate orders": "an order that another process placed meanwhile is one",
    "repeated and reordered events": "what is repeated and shuffled is told once and in order",
    "HTTP 429 and 418": "a limit is waited for and a ban is not",
    "429 without end": "a limit without end is unavailable",
    "rate limit by its own code": "too many requests in the venues own words leave none",
    "clock skew": "a clock that is wrong is set by the venue",
    "machine's clock 45 to 600 s off": "an account is dated by the venues clock",
    "HTML, maintenance at an order": "a request that was not carried out leaves none",
    "HTML, broken JSON at a question": "whatever cannot be read is unavailable",
    "old prices": "an old price is no price",
    "delisted market": "a symbol that stopped trading takes no order",
    "delisted with a position": "a position of a symbol that stopped trading is told and cannot be sold",
    "filter changed over night": "a filter that changed over night is the venues to say",
    "tick coarsened over night": "a tick that coarsened over night is the venues to say",
    "lot of zero": "a market of zero lot takes no order",
    "hedge mode": "an account in hedge mode takes no order",
    "foreign positions and orders": "what another hand did is told as its own",
    "keys that may withdraw": "keys that may withdraw trade nothing",
    "wrong keys": "wrong keys are refused",
}
"""Each by the paper of the exam that injects it."""


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
        promises = {promise: promise for promise in self.promises}
        rows = self.write_rows(promises, width, {True: "kept", False: "BROKEN", None: "–"})
        sums = []
        for venue in self.venues:
            papers = [row[venue] for row in self.kept.values() if venue in row]
            sums.append(f"{sum(papers)}/{len(papers)}".ljust(max(6, len(venue))))
        total = "  ".join(["kept of those it was asked for".ljust(width), *sums]).rstrip()
        faults = self.write_rows(FAULTS, width, {True: "pass", False: "FAIL", None: "–"})
        return [*rows, total, "", *faults]

    def write_rows(self, promises: dict[str, str], width: int, words: dict[bool | None, str]) -> list[str]:
        rows = ["  ".join([" " * width, *(venue.ljust(6) for venue in self.venues)]).rstrip()]
        for title, promise in promises.items():
            cells = [words[self.kept[promise].get(venue)].ljust(max(6, len(venue))) for venue in self.venues]
            rows.append("  ".join([title.ljust(width), *cells]).rstrip())
        return rows


def split_name(nodeid: str) -> tuple[str, str]:
    """`…::test_an_order_placed_twice_is_one[OKX]`: the promise, and who makes it."""
    test, _, case = nodeid.rpartition("::")[2].partition("[")
    return test.removeprefix("test_").replace("_", " "), case.removesuffix("]")


async def serve(name: str) -> None:
    """Until Ctrl-C. The market of BTC and ETH stands still."""
    here = WireHarness(Venue(name))
    async with serve_exchange(here.server) as server:
        settings = WIRES[name].set_environment(here.exchange, server.url) | {"ZUNO_LIVE": "1", "ZUNO_MARKET": "live"}
        print("\n".join(f"export {setting}={value}" for setting, value in settings.items()), flush=True)
        await asyncio.Event().wait()


def main(asked: list[str]) -> int:
    serves, asked = "--serve" in asked, [name.upper() for name in asked if name != "--serve"]
    unknown = sorted(set(asked) - set(WIRES))
    if unknown:
        print(f"no fake of {', '.join(unknown)}; there are {', '.join(WIRES)}", file=sys.stderr)
        return 2
    if serves:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve(asked[0] if asked else "BINANCE"))
        return 0
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
