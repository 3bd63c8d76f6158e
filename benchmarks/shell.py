"""How soon the shell has read a line, once the examples are loaded: `python -m benchmarks.shell`."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import mean
from time import perf_counter

from benchmarks.figure import report
from zuno.doors.reading.reader import read

BUDGET_MS = 20.0
CORPUS = Path(__file__).parent.parent / "tests" / "golden" / "shell" / "corpus.txt"


def milliseconds(line: str) -> float:
    start = perf_counter()
    read(line)
    return (perf_counter() - start) * 1000


def main() -> int:
    lines = [line.rpartition(" => ")[0] for line in CORPUS.read_text(encoding="utf-8").splitlines() if " => " in line]
    first = milliseconds("show positions")
    turns = []
    for _ in range(3):
        read.cache_clear()
        turns.append([milliseconds(line) for line in lines])
    best = [min(times) for times in zip(*turns, strict=True)]
    average = round(mean(best), 3)
    slowest = report("shell line, warm", max(best), "ms", BUDGET_MS, "the budget of a line", 1.0, mean=average)
    sys.stderr.write(f"the first line of a process, with the examples loaded: {first:.0f} ms\n")
    return 0 if slowest else 1


if __name__ == "__main__":
    sys.exit(main())
