"""A process that is killed with -9 at every step of a write or a seal: no row is lost and none is there twice."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy
import pytest

from zuno.adapters.series.sqlite import SqliteSeries
from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS, Book, Level, Quote, books, open_interest
from zuno.trading.ports.series import Batch, Origin

AT, EVER = Millis(1_767_225_600_000), Millis(2**62)
RECORDED = Origin(False, "recorded")
OI, BOOKS = open_interest("binance", "BTCUSDT"), books("binance", "BTCUSDT")
LEVELS = [Level(Millis(AT + n * DAY_MS), 1.0 + n) for n in range(50)]
PAGES = [Book(Millis(AT + n), (Quote(1.0 + n, 1.0),), ()) for n in range(3)]
STRIDES = pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.soak)])
"""Every third step; `make soak` tries all."""
READY = (duckdb, numpy)  # imported before the forks: the steps are what is tried here, not the imports


def die_at(step: int) -> Callable[..., None]:
    left = [step]

    def counted(*_: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return counted


def in_a_child(folder: Path, step: int, act: Callable[[SqliteSeries], None]) -> bool:
    """Whether the child came to the end before its time was over."""
    pid = os.fork()
    if pid == 0:
        try:
            store = SqliteSeries(folder, RECORDED)
            store.origin  # noqa: B018 - opens the file
            connection = store._file._connection
            assert connection is not None
            tick = die_at(step)
            connection.set_trace_callback(tick)  # before each statement
            for name in ("fsync", "replace"):
                plain = getattr(os, name)
                # Before and after each of them.
                setattr(os, name, lambda *given, plain=plain: (tick(), plain(*given), tick()))
            act(store)
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return False
    assert os.WEXITSTATUS(status) == 0
    return True


async def assert_whole(folder: Path) -> None:
    store = SqliteSeries(folder, RECORDED)
    assert await store.read(OI, Millis(0), EVER, EVER) == tuple(LEVELS)
    assert await store.read(BOOKS, Millis(0), EVER, EVER) == tuple(PAGES)
    assert [span.count for span in await store.spans()] == [3, 50]
    assert await store.flaws() == ()
    await store.close()


async def filled(folder: Path) -> None:
    store = SqliteSeries(folder, RECORDED)
    await store.write([Batch(OI, LEVELS), Batch(BOOKS, PAGES)])
    await store.close()


@STRIDES
async def test_a_seal_killed_at_any_step_loses_and_doubles_nothing(tmp_path: Path, stride: int) -> None:
    await filled(tmp_path / "before")
    steps, ended = 0, False
    while not ended:  # each child comes further than the one before
        folder = tmp_path / str(steps)
        shutil.copytree(tmp_path / "before", folder)
        ended = in_a_child(folder, steps, lambda store: store._seal(Millis(AT + 31 * DAY_MS)) and None)  # type: ignore[arg-type]
        await assert_whole(folder)
        steps += stride
        assert steps < 400
    assert steps > 30  # two files, each with some fifteen steps


@pytest.mark.soak
async def test_a_seal_goes_on_where_dead_ones_left_it(tmp_path: Path) -> None:
    folder, steps = tmp_path / "own", 0
    await filled(folder)
    while not in_a_child(folder, steps, lambda store: store._seal(EVER) and None):  # type: ignore[arg-type]
        steps += 1
        assert steps < 400
    await assert_whole(folder)
    store = SqliteSeries(folder, RECORDED)
    assert [span.sealed for span in await store.spans()] == [3, 50]
    await store.close()
    with sqlite3.connect(folder / "series.db") as connection:
        listed = {name for (name,) in connection.execute("SELECT name FROM files")}
    connection.close()
    assert set(os.listdir(folder / "history")) == listed  # nothing that a dead one left


async def test_a_write_killed_at_every_step_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    await filled(folder)
    news = [Level(Millis(AT - 1 - n), 5.0) for n in range(3)]
    page = Book(Millis(AT - 1), (), ())

    def write(store: SqliteSeries) -> None:
        asyncio.run(store.write([Batch(OI, news), Batch(BOOKS, [page])]))

    steps, seen = 0, set()
    while True:
        ended = in_a_child(folder, steps, write)
        store = SqliteSeries(folder, RECORDED)
        seen.add(tuple(span.count for span in await store.spans()))
        await store.close()
        if ended:
            break
        steps += 1
        assert steps < 400
    assert seen == {(3, 50), (4, 53)}
    assert steps > 5


@pytest.mark.soak
@STRIDES
async def test_a_store_begun_again_and_killed_at_any_step_is_the_old_one_or_the_new(
    tmp_path: Path, stride: int
) -> None:
    before, anew = tmp_path / "before", Origin(False, "anew")
    await filled(before)
    store = SqliteSeries(before, RECORDED)
    await store.seal(EVER)
    await store.close()
    others = [Level(level.at, 7.0) for level in LEVELS[:20]]
    steps, seen, ended = 0, set(), False
    while not ended:
        folder = tmp_path / str(steps)
        shutil.copytree(before, folder)
        ended = in_a_child(folder, steps, lambda store: asyncio.run(store.renew(anew, [Batch(OI, others)])) and None)  # type: ignore[arg-type]
        store = SqliteSeries(folder, RECORDED)
        seen.add(store.origin)
        if store.origin == RECORDED:
            await assert_whole(folder)
        else:
            assert await store.read(OI, Millis(0), EVER, EVER) == tuple(others)
            assert [(span.count, span.sealed) for span in await store.spans()] == [(20, 0)]
            await store.renew(RECORDED, [Batch(OI, LEVELS), Batch(BOOKS, PAGES)])
            await store.seal(EVER)
            await assert_whole(folder)
        await store.close()
        steps += stride
        assert steps < 400
    assert seen == {RECORDED, anew}
    assert steps > 10
