"""Zuno as a person meets it: every front end holds one of these and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from zuno.app.alerts import AlertDesk
from zuno.app.archive import Archive
from zuno.app.book import Bookkeeper
from zuno.app.chairs import Chairs
from zuno.app.collecting import Collector
from zuno.app.cycle import Cycles
from zuno.app.data import DataDesk
from zuno.app.debate import Advice
from zuno.app.downloading import Downloads
from zuno.app.execution import Execution
from zuno.app.interpreting import Interpreter
from zuno.app.journal import JournalAudit
from zuno.app.keeping import MeshHost
from zuno.app.lp import LpDesk
from zuno.app.mesh import MeshKeeper
from zuno.app.monitor import Monitor
from zuno.app.peering import PeerLife
from zuno.app.place import Place
from zuno.app.playground import Devnet, Playground, SimPlayground
from zuno.app.trading import TradingDesk
from zuno.app.wallets import WalletKeeper, WalletOnChain


class Zuno(Protocol):
    """Promises a desk for any chain it knows. Chains are opened when first asked for and closed together."""

    def lp(self, chain: str | None) -> LpDesk:
        """The LP desk of a chain by name, or of the default chain. `Usage` for a name nobody knows."""
        ...

    def audit(self) -> JournalAudit:
        """The journal of this home."""
        ...

    def advice(self, *, offline: bool = False, transport: str | None = None) -> Advice:
        """The desk itself; `offline` keeps models out whatever keys there are. `transport`: inproc, iroh or axl; None
        is the mesh if it answers, else this process."""
        ...

    def mesh(self) -> MeshKeeper:
        """The mesh of this home: set up, looked at, joined."""
        ...

    def mesh_host(self) -> MeshHost:
        """Whoever keeps the peers of this home running."""
        ...

    async def peer(self, role: str, transport: str | None, *, parent: int | None = None) -> PeerLife:
        """One agent in this process; `parent`: it ends when that process, which started it, is gone."""
        ...

    def archive(self) -> Archive:
        """What the journal remembers of the desk's debates."""
        ...

    def execution(self) -> Execution:
        """Plans carried out: tried, approved, applied."""
        ...

    def alerts(self) -> AlertDesk:
        """What the monitor raised, and the owner's answers to it."""
        ...

    def monitor(self, *, announce: bool = False) -> Monitor:
        """The watch over every configured wallet; `announce`: alerts that no service carries are told on stderr."""
        ...

    def wallets(self) -> WalletKeeper:
        """The wallets of this home."""
        ...

    def wallet(self, chain: str | None) -> WalletOnChain:
        """The wallet that acts on a chain, or on the default chain. `Refused` where none does."""
        ...

    def place(self) -> Place:
        """Where this is: the home, the default chain, and the wallet that acts there."""
        ...

    def interpreter(self) -> Interpreter:
        """A model's help with a line that the rules could not read."""
        ...

    def chairs(self) -> Chairs:
        """Who sits at the desk."""
        ...

    def data(self) -> DataDesk:
        """The past of the trading desk's market."""
        ...

    def collector(self, symbols: Sequence[str]) -> Collector:
        """Whoever keeps the market as it comes; no symbol means every one. `Usage` for one that is not traded here."""
        ...

    def downloads(self) -> Downloads:
        """The past that venues keep, fetched into our own store."""
        ...

    def trading(self) -> TradingDesk:
        """The trading desk: what is measured of a symbol."""
        ...

    def book(self) -> Bookkeeper:
        """The paper book of the market this home reads."""
        ...

    def cycles(self) -> Cycles:
        """The trading desk's cycles: run, resumed, replayed."""
        ...

    def sim(self) -> SimPlayground: ...

    def devnet(self) -> Devnet: ...

    def devnet_world(self) -> Playground: ...

    async def close(self) -> None: ...
