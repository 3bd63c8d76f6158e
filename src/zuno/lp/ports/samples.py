"""Stores of the monitor: samples of pools and gas over weeks, which fee yield and gas are compared with, and alerts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from zuno.amm.model import Block
from zuno.kernel.units import HexId, Liquidity, Seconds, SqrtPriceX96, Tick, Wei

if TYPE_CHECKING:
    from zuno.lp.model.alerts import AlertBook


@dataclass(frozen=True, slots=True)
class PoolSample:
    """A pool's numbers at one block."""

    chain: str
    pool_id: HexId
    block: Block
    sqrt_price_x96: SqrtPriceX96
    tick: Tick
    liquidity: Liquidity
    fee_growth_global0_x128: int
    fee_growth_global1_x128: int


@dataclass(frozen=True, slots=True)
class GasSample:
    """What a unit of gas cost at one block, tip included."""

    chain: str
    at: Seconds
    price: Wei


class Samples(Protocol):
    """Promises samples by the time of their block:

    - One pool (one chain's gas) has at most one sample for a moment; a later reading of it replaces the earlier.
    - What is older than 40 days goes; beyond a day, one in five minutes stays. Age is counted from `now`, the reader's
      clock, because a local world's own clock may say anything.
    - Integers come back as they went in. `Unavailable` where the store does not answer, `Broken` where it is damaged.
    """

    async def keep(self, pools: Sequence[PoolSample], gas: Sequence[GasSample], now: Seconds) -> None: ...

    async def pools(self, chain: str, pool_id: HexId, since: Seconds, upto: Seconds) -> tuple[PoolSample, ...]:
        """The pool's samples of that time, both ends included, oldest first."""

    async def gas(self, chain: str, since: Seconds, upto: Seconds) -> tuple[GasSample, ...]:
        """At most one in five minutes, however often it was sampled, so that no hour outweighs another."""

    async def close(self) -> None: ...


T = TypeVar("T")


class ReadBefore(Protocol):
    """Named JSON objects of what was read. One that is lost or damaged is none: it is read again."""

    def load(self, name: str, read: Callable[[dict[str, Any]], T]) -> T | None: ...
    def save(self, name: str, value: dict[str, Any]) -> None: ...


class AlertStore(Protocol):
    """Promises one book for all processes of a home:

    - `change` holds the book alone while it reads, computes and writes; two changes never lose one another.
    - A change is written whole or not at all, and what `change` returned of is on disk.
    - A book nobody wrote yet is empty; one that cannot be read is `Broken` and stays as it is.
    - `Unavailable` where it cannot be reached or written: nothing was changed.
    """

    async def book(self) -> AlertBook: ...

    async def change(self, make: Callable[[AlertBook], tuple[AlertBook, T]]) -> T:
        """Replace the book by what `make` returns; `make` runs while the book is held, possibly on a thread."""
