"""The running devnet behind the `World` socket."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from zuno.adapters.chain.devnet.running import DevnetProcess, ask
from zuno.amm.model import Block
from zuno.kernel.units import HexId, Seconds
from zuno.lp.ports.world import PoolMove, PriceMove

STALE_SECONDS = 60


class DevnetWorld:
    """Asks the node to push its own price."""

    def __init__(self, process: DevnetProcess) -> None:
        self._process = process

    async def move(self, percent: Decimal) -> PriceMove:
        moved = await ask(self._process.url(), "zuno_move", str(percent))
        block = moved["block"]
        return PriceMove(
            Block(block["number"], HexId(block["hash"]), Seconds(block["timestamp"])),
            _usdc(moved["referenceBefore"]),
            _usdc(moved["referenceAfter"]),
            tuple(
                PoolMove(HexId(pool["id"]), pool["label"], _usdc(pool["before"]), _usdc(pool["after"]))
                for pool in moved["pools"]
            ),
        )

    async def wake(self) -> None:
        """A chain that mines only what it is sent stands still between transactions, and its next block is of now: a
        deadline counted from a head of yesterday would be over before it began."""
        url = self._process.url()
        latest, pending = [await ask(url, "eth_getBlockByNumber", tag, False) for tag in ("latest", "pending")]
        if int(pending["timestamp"], 16) - int(latest["timestamp"], 16) > STALE_SECONDS:
            await ask(url, "evm_mine")

    async def reference(self) -> Fraction:
        return _usdc(await ask(self._process.url(), "zuno_reference"))


def _usdc(micro: str) -> Fraction:
    return Fraction(int(micro), 10**6)
