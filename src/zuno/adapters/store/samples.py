"""The monitor's samples in one SQLite file: all for a day, one in five minutes for forty days; safe to delete."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any, Final

from zuno.adapters.sqlite_file import SqliteFile, create_tables
from zuno.amm.model import Block
from zuno.kernel.errors import Broken
from zuno.kernel.units import HexId, Liquidity, Seconds, SqrtPriceX96, Tick, Wei
from zuno.lp.ports.samples import GasSample, PoolSample

DAY: Final = 86_400
KEPT: Final = 40 * DAY
BUCKET: Final = 300
_TIDY_EVERY: Final = 3_600
_SCHEMA: Final = (
    # Integers of 256 bits are text: SQLite's own have 64.
    """CREATE TABLE IF NOT EXISTS pools (
        chain TEXT NOT NULL, pool TEXT NOT NULL, at INTEGER NOT NULL, read_at INTEGER NOT NULL,
        number INTEGER NOT NULL, hash TEXT NOT NULL, sqrt_price TEXT NOT NULL, tick INTEGER NOT NULL,
        liquidity TEXT NOT NULL, growth0 TEXT NOT NULL, growth1 TEXT NOT NULL,
        PRIMARY KEY (chain, pool, at)) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS gas (
        chain TEXT NOT NULL, at INTEGER NOT NULL, read_at INTEGER NOT NULL, price TEXT NOT NULL,
        PRIMARY KEY (chain, at)) WITHOUT ROWID""",
)
_COLUMNS: Final = "chain, pool, number, hash, at, sqrt_price, tick, liquidity, growth0, growth1"


class SqliteSamples:
    """`samples.db` of a home. The file is made by the first sample; reading makes nothing."""

    def __init__(self, home: Path) -> None:
        self._file = SqliteFile(home / "samples.db", create_tables(_SCHEMA), "delete it, new samples will follow.")
        self._tidied_at: int | None = None

    async def keep(self, pools: Sequence[PoolSample], gas: Sequence[GasSample], now: Seconds) -> None:
        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(
                f"INSERT OR REPLACE INTO pools (read_at, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(now, *_row(sample)) for sample in pools],
            )
            connection.executemany(
                "INSERT OR REPLACE INTO gas (chain, at, read_at, price) VALUES (?, ?, ?, ?)",
                [(sample.chain, sample.at, now, str(sample.price)) for sample in gas],
            )
            if self._tidied_at is None or now - self._tidied_at >= _TIDY_EVERY:
                _tidy(connection, now)
                self._tidied_at = now

        if pools or gas:
            await self._file.run(write)

    async def pools(self, chain: str, pool_id: HexId, since: Seconds, upto: Seconds) -> tuple[PoolSample, ...]:
        rows = await self._file.fetch(
            f"SELECT {_COLUMNS} FROM pools WHERE chain = ? AND pool = ? AND at BETWEEN ? AND ? ORDER BY at",
            *(chain, pool_id, since, upto),
        )
        return tuple(map(self._sample, rows))

    async def gas(self, chain: str, since: Seconds, upto: Seconds) -> tuple[GasSample, ...]:
        rows = await self._file.fetch(
            "SELECT MIN(at), price FROM gas WHERE chain = ? AND at BETWEEN ? AND ? GROUP BY at / ? ORDER BY at",
            *(chain, since, upto, BUCKET),
        )
        with self._readable():
            return tuple(GasSample(chain, Seconds(int(at)), Wei(int(price))) for at, price in rows)

    async def close(self) -> None:
        self._file.close()

    def _sample(self, row: tuple[Any, ...]) -> PoolSample:
        with self._readable():
            chain, pool, number, name, at, sqrt_price, tick, liquidity, growth0, growth1 = row
            return PoolSample(
                chain,
                HexId(pool),
                Block(number, HexId(name), Seconds(int(at))),
                SqrtPriceX96(int(sqrt_price)),
                Tick(int(tick)),
                Liquidity(int(liquidity)),
                int(growth0),
                int(growth1),
            )

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise Broken(f"{self._file.path} holds what no sample has; delete it, new ones will follow.") from error


def _row(sample: PoolSample) -> tuple[object, ...]:
    chain, pool, block, sqrt_price, tick, *wide = astuple(sample)
    return (chain, pool, *block, str(sqrt_price), tick, *map(str, wide))


def _tidy(connection: sqlite3.Connection, now: int) -> None:
    for table, pool in (("pools", "pool"), ("gas", "''")):
        connection.execute(f"DELETE FROM {table} WHERE read_at < ?", (now - KEPT,))
        connection.execute(
            f"""DELETE FROM {table} WHERE read_at < :old AND (chain, {pool}, at) NOT IN (
                SELECT chain, {pool}, MIN(at) FROM {table} GROUP BY chain, {pool}, at / :bucket)""",
            {"old": now - DAY, "bucket": BUCKET},
        )
