"""What a backtest of the LP desk needs of a recorded pool: time that passes, and one wallet's position."""

from __future__ import annotations

from typing import Protocol

from zuno.amm.model import Block, PoolState, Range
from zuno.kernel.units import Seconds, Wei
from zuno.lp.model.history import PositionEvent, PositionHistory, WalletSwap


class BacktestPool(Protocol):
    """Promises the record and nothing later than the moment it was played to; every amount is the contracts' own."""

    @property
    def head(self) -> Block: ...

    @property
    def at_end(self) -> bool:
        """Whether the record has no minute left."""
        ...

    @property
    def balances(self) -> tuple[int, int]:
        """Of the wallet, beside its position."""
        ...

    @property
    def range(self) -> Range | None:
        """Of the wallet's position; None: it has none."""
        ...

    @property
    def events(self) -> list[PositionEvent | WalletSwap]:
        """What the wallet did, oldest first."""
        ...

    def copy(self) -> BacktestPool:
        """The same moment with a future of its own."""
        ...

    def play_until(self, moment: Seconds) -> None: ...

    def open_position(self, held: Range, gas: Wei) -> None:
        """Mint with everything the wallet holds, after the swap that this needs. `Refused` where that is too little."""
        ...

    def close_position(self, gas: Wei) -> None: ...

    def state(self) -> PoolState: ...

    def worth(self) -> tuple[int, int]:
        """Of wallet and position, fees included, in both tokens."""
        ...

    def history(self) -> PositionHistory:
        """What attribution explains. `Refused` before the first position."""
        ...
