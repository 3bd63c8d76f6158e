"""Events and days of a pool from CSV files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wire.pool_minutes import draw_minutes, write_minutes
from tests.wire.pool_tape import draw_tape, write_tape
from zuno.adapters.imports.pool_events import DAY_COLUMNS, EVENT_COLUMNS, read_pool_record
from zuno.kernel.errors import Malformed, Refused
from zuno.lp.model.minutes import PoolMinutes
from zuno.lp.model.tape import PoolDays

ROOT = 2**96
SWAP = f"2023-07-13 00:00:00,swap,,,5,-5,{ROOT},1000,0"


def read_events(folder: Path, *rows: str) -> object:
    (folder / "events.csv").write_text("\n".join((",".join(EVENT_COLUMNS), *rows)) + "\n")
    return read_pool_record(folder)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    tape = draw_tape(200)
    assert read_pool_record(write_tape(tmp_path, tape)) == tape


def test_columns_say_what_a_folder_holds(tmp_path: Path) -> None:
    assert isinstance(read_pool_record(write_minutes(tmp_path, draw_minutes(5))), PoolMinutes)
    (tmp_path / "minutes.csv").unlink()
    (tmp_path / "days.csv").write_text(f"{','.join(DAY_COLUMNS)}\n2022-01-01,{ROOT},0.0,7\n2022-01-02,{ROOT},3,9\n")
    record = read_pool_record(tmp_path)
    assert isinstance(record, PoolDays)
    assert [(day.day, day.growth0_x128, day.growth1_x128) for day in record.days] == [(18_993, 0, 7), (18_994, 3, 9)]


@pytest.mark.parametrize(
    "row",
    [
        "2023-07-12 23:59:59,swap,,,5,-5,79228162514264337593543950336,1000,0",
        "2023-07-13 00:00:01,flash,,,5,-5,79228162514264337593543950336,1000,0",
        "2023-07-13 00:00:01,swap,,,5,-5,12,1000,0",
        "2023-07-13 00:00:01,swap,,,5,-5,79228162514264337593543950336,-1,0",
        "2023-07-13 00:00:01,swap,,,5,-5,79228162514264337593543950336,1000,900000",
        "2023-07-13 00:00:01,mint,20,10,5,5,,1000,",
        "2023-07-13 00:00:01,burn,10,20,5,5,,-1000,",
        "2023-07-13 00:00:01,mint,,20,5,5,,1000,",
        "yesterday,swap,,,5,-5,79228162514264337593543950336,1000,0",
        "2023-07-13 00:00:01,swap,,",
        "2023-07-13 00:00:01,swap,,,5.5,-5,79228162514264337593543950336,1000,0",
    ],
)
def test_a_row_that_cannot_be_is_refused_by_its_number(tmp_path: Path, row: str) -> None:
    with pytest.raises(Malformed, match="row 3"):
        read_events(tmp_path, SWAP, row)


def test_a_tape_without_a_swap_and_a_folder_without_a_file(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        read_pool_record(tmp_path)
    with pytest.raises(Malformed):
        read_events(tmp_path, "2023-07-13 00:00:01,mint,10,20,5,5,,1000,")
    for empty in ("", ",".join(EVENT_COLUMNS)):
        (tmp_path / "events.csv").write_text(empty)
        with pytest.raises((Malformed, Refused)):
            read_pool_record(tmp_path)
    (tmp_path / "events.csv").write_text(",".join(DAY_COLUMNS) + "\n")
    with pytest.raises(Malformed):
        read_pool_record(tmp_path)
