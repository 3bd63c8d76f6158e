"""Minute rows of a pool: repaired by the rules that are stated, or refused with the row."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.paths import REAL_MINUTES
from zuno.adapters.imports.pool_minutes import read_pool_minutes
from zuno.kernel.errors import Malformed, Refused, Unavailable

HEADER = "timestamp,openTick,closeTick,lowestTick,highestTick,inAmount0,inAmount1,currentLiquidity"
ROW = "2022-07-19 00:0{}:00,10,12,9,13,100,200,1000"


def write(folder: Path, *lines: str, name: str = "a.csv") -> Path:
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.slow
def test_the_real_minutes() -> None:
    if not REAL_MINUTES.exists():
        pytest.skip("the minute rows of a real pool are not on this machine")
    repairs = read_pool_minutes(REAL_MINUTES).repairs
    assert (repairs.files, repairs.rows, repairs.missing, repairs.widened) == (22, 31_677, 3, 1_876)
    assert (repairs.sorted_rows, repairs.repeated, repairs.contradicted, repairs.without_liquidity) == (0, 0, 0, 0)


def test_columns_may_stand_in_any_order_and_ticks_as_floats(tmp_path: Path) -> None:
    write(
        tmp_path,
        "\ufeffcurrentLiquidity, closeTick,netAmount0,openTick,inAmount1,inAmount0,highestTick,lowestTick,timestamp",
        "1000,197030.0,-5,197029.,200,100000000000000000000000.0,197031,197028.00,2022-07-19T00:00:00Z",
    )
    (minute,) = read_pool_minutes(tmp_path).minutes
    assert (minute.open_tick, minute.close_tick, minute.lowest_tick, minute.highest_tick) == (
        197029,
        197030,
        197028,
        197031,
    )
    assert (minute.in0, minute.in1, minute.liquidity) == (10**23, 200, 1000)
    assert minute.at == 1_658_188_800_000


def test_unsorted_repeated_and_contradicted_rows_are_put_in_order(tmp_path: Path) -> None:
    write(tmp_path, HEADER, ROW.format(3), ROW.format(1), ROW.format(3), ROW.format(1).replace(",100,", ",101,"))
    found = read_pool_minutes(tmp_path)
    assert [minute.at // 60_000 % 60 for minute in found.minutes] == [1, 3]
    assert found.minutes[0].in0 == 100
    repairs = found.repairs
    assert (repairs.rows, repairs.sorted_rows, repairs.repeated, repairs.contradicted, repairs.missing) == (
        4,
        1,
        1,
        1,
        1,
    )


def test_missing_days_are_named(tmp_path: Path) -> None:
    write(tmp_path, HEADER, ROW.format(1))
    write(tmp_path, HEADER, ROW.format(0).replace("07-19", "07-22"), name="b.csv")
    repairs = read_pool_minutes(tmp_path).repairs
    assert repairs.missing_days == ("2022-07-20", "2022-07-21")
    assert repairs.missing == 3 * 1440 - 2


@pytest.mark.parametrize("written", ["1970-01-01", "2062-07-19"])
def test_a_date_that_was_written_wrong_is_no_gap(tmp_path: Path, written: str) -> None:
    write(tmp_path, HEADER, *(ROW.format(number) for number in range(5)))
    write(tmp_path, HEADER, ROW.format(6), "", ROW.format(7).replace("2022-07-19", written), name="b.csv")
    with pytest.raises(Malformed, match=rf"b\.csv, row 4: {written}"):
        read_pool_minutes(tmp_path)


def test_open_and_close_widen_lowest_and_highest(tmp_path: Path) -> None:
    write(tmp_path, HEADER, "2022-07-19 00:00:00,10,14,11,13,1,1,0")
    found = read_pool_minutes(tmp_path)
    assert (found.minutes[0].lowest_tick, found.minutes[0].highest_tick) == (10, 14)
    assert (found.repairs.widened, found.repairs.without_liquidity) == (1, 1)


@pytest.mark.parametrize(
    "row",
    [
        "2022-07-19 00:00:00,10,12,9,13,100,200",
        "2022-07-19 00:00:00,10.5,12,9,13,100,200,1000",
        "2022-07-19 00:00:00,ten,12,9,13,100,200,1000",
        "2022-07-19 00:00:00,10,12,9,13,1.5e20,200,1000",
        "2022-07-19 00:00:00,10,12,9,13,-1,200,1000",
        f"2022-07-19 00:00:00,10,12,9,13,{2**127},200,1000",
        f"2022-07-19 00:00:00,10,12,9,13,100,200,{2**127}",
        "2022-07-19 00:00:00,10,12,13,9,100,200,1000",
        "2022-07-19 00:00:00,10,12,9,900000,100,200,1000",
        "2022-07-19 00:00:00,10,12,9,887272,100,200,1000",
        "2022-07-19 00:00:00,10,12,-887272,13,100,200,1000",
        "2022-07-19 00:00:30,10,12,9,13,100,200,1000",
        "yesterday,10,12,9,13,100,200,1000",
        "2022-07-19 00:00:00,,12,9,13,100,200,1000",
    ],
)
def test_a_row_that_is_none_is_refused_with_its_number(tmp_path: Path, row: str) -> None:
    write(tmp_path, HEADER, ROW.format(1), row)
    with pytest.raises(Malformed, match=r"a\.csv, row 3"):
        read_pool_minutes(tmp_path)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        read_pool_minutes(tmp_path / "nowhere")
    with pytest.raises(Refused):
        read_pool_minutes(tmp_path)
    path = tmp_path / "a.csv"
    for content in (b"", HEADER.encode() + b"\n"):
        path.write_bytes(content)
        with pytest.raises(Refused):
            read_pool_minutes(tmp_path)
    whole = gzip.compress((HEADER + "\n" + ROW.format(1)).encode())
    for content in (b"\x00\xff\xfe\x89PNG", b"time,price\n1,2\n", b'"open\n', whole[:-12]):
        path.write_bytes(content)
        with pytest.raises(Malformed):
            read_pool_minutes(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(Unavailable):
        read_pool_minutes(tmp_path)
