"""Weights from a CSV file: each row from its time on, every line that cannot be read by its number."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.adapters.strategies.csv_file import MOST_BYTES, CsvStrategy, read_weights
from zuno.adapters.strategies.python_file import read_code
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.units import Millis

NOON = Millis(1_767_268_800_000)
"""2026-01-01T12:00Z."""
HEAD = "time,market,weight\n"


def test_a_row_counts_from_its_time_on_until_the_next_of_its_market() -> None:
    text = HEAD + (
        "2026-01-01T13:00,BTCUSDT,0.9\n"  # of the future: ignored as of now
        "2025-12-31,BTCUSDT,0.2\n"
        "2026-01-01T12:00,BTCUSDT,0.3\n"
        "1767100000,ETHUSDT,-0.1\n"
        '\n"2025-01-01", "BTCUSDT", "0.1"\n'
    )
    assert read_weights(text, NOON) == {"BTCUSDT": 0.3, "ETHUSDT": -0.1}
    assert read_weights(text, Millis(NOON + 3_600_000))["BTCUSDT"] == 0.9
    assert read_weights(text, Millis(0)) == {}


@given(st.permutations([f"2026-01-0{day},BTCUSDT,0.{day}" for day in range(1, 6)]))
def test_the_order_of_rows_does_not_matter(rows: list[str]) -> None:
    assert read_weights(HEAD + "\n".join(rows), Millis(NOON + 2 * 86_400_000)) == {"BTCUSDT": 0.3}


def test_lines_that_cannot_be_read_are_named() -> None:
    rows = ["2026-01-01,BTCUSDT,0.1", "yesterday,BTCUSDT,1", "2026-01-01,BTCUSDT", "2026-01-01,BTCUSDT,half"]
    with pytest.raises(Malformed, match=r"line 3 .*line 4 .*line 5") as error:
        read_weights(HEAD + "\n".join(rows), NOON)
    assert "line 2" not in str(error.value)
    with pytest.raises(Malformed, match="and 15 more"):
        read_weights(HEAD + "x\n" * 20, NOON)
    for head in ("", "time;market;weight\n", "BTCUSDT,0.1\n"):
        with pytest.raises(Malformed, match="line 1"):
            read_weights(head, NOON)


def test_a_broken_row_of_the_future_is_named_too() -> None:
    with pytest.raises(Malformed, match="line 2"):
        read_weights(f"{HEAD}2030-01-01,BTCUSDT,?", NOON)


async def test_a_file_that_is_gone_or_no_text(tmp_path: Path) -> None:
    path = tmp_path / "targets.csv"
    with pytest.raises(Unavailable):
        await CsvStrategy(path).ask(NOON, b"")
    path.write_bytes(b"\xef\xbb\xbf" + HEAD.encode() + b"2026-01-01,BTCUSDT,0.5\r\n")
    assert await CsvStrategy(path).ask(NOON, b"") == {"BTCUSDT": 0.5}
    path.write_bytes(b"\0\xff\xfe")
    with pytest.raises(Malformed):
        await CsvStrategy(path).ask(NOON, b"")


async def test_a_pipe_a_device_and_a_huge_file_are_not_read(tmp_path: Path) -> None:
    pipe, huge, link = tmp_path / "pipe", tmp_path / "huge.csv", tmp_path / "link.csv"
    os.mkfifo(pipe)
    with huge.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    link.symlink_to("/dev/zero")
    for path in (pipe, huge, link, tmp_path):
        with pytest.raises(Refused):
            await CsvStrategy(path).ask(NOON, b"")
        with pytest.raises(Refused):
            read_code(path)
