"""The chains of one process, opened on first use: readers, writers, price feeds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zuno.kernel.errors import Unavailable, UsageError
from zuno.kernel.units import Address, HexId
from zuno.lp.model.chains import CHAINS, ChainInfo, chain_named
from zuno.lp.model.history import read_no_plans
from zuno.settings import Settings
from zuno.wiring.version import PACKAGE

if TYPE_CHECKING:
    from zuno.adapters.chain.devnet.process import DevnetProcess
    from zuno.adapters.chain.sim.chain import SimChain
    from zuno.adapters.prices.coingecko import CoinGecko
    from zuno.adapters.venues.exchange_path import ExchangePath
    from zuno.lp.ports.chain import Chain, SurveyedChain
    from zuno.lp.ports.market import Feeds, PathFeed, PriceFeed
    from zuno.lp.ports.spending import Writer

LOCAL_CHAINS: Final = ("sim", "devnet")
_CHECKOUT = PACKAGE.parents[1]


def unusable_home(home: Path, why: str) -> Unavailable:
    return Unavailable(f"{home} cannot be used as Zuno's home ({why}); choose another --home.")


class Chains:
    """Chains by name. Each is one connection, shared by readers and writers."""

    def __init__(self, settings: Settings, sealed: str | None, own_wallet: Callable[[], Address | None]) -> None:
        """`sealed`: why nothing can be written in the home, if so."""
        self._settings = settings
        self._sealed = sealed
        self._own_wallet = own_wallet
        self.read_plans = read_no_plans
        """What the journal knows of a chain's positions."""
        self._sim: SimChain | None = None
        self._opened: dict[str, SurveyedChain] = {}
        self._left: list[Chain] = []
        """Connections to a devnet that has ended."""
        self._devnet_url = ""
        self._service: CoinGecko | None = None
        self._candles: ExchangePath | None = None

    @property
    def sim(self) -> SimChain:
        self._sim = self._sim or self._open_sim()
        return self._sim

    def _open_sim(self) -> SimChain:
        from zuno.adapters.chain.sim.chain import SimChain
        from zuno.adapters.chain.sim.world_file import SimFile

        return SimChain(SimFile(self._settings.home), self.read_plans)

    @property
    def writable(self) -> bool:
        return self._sealed is None

    def require_writable(self) -> None:
        if self._sealed is not None:
            raise unusable_home(self._settings.home, self._sealed)

    def open_chain(self, name: str) -> SurveyedChain:
        wanted = name.strip().lower()
        if wanted not in self._opened:
            self._opened[wanted] = self._open(wanted)
        return self._opened[wanted]

    def current_chain(self, name: str) -> Chain:
        """The chain as it is now, for processes that live long: the sim may have been moved, the devnet restarted."""
        if name == "sim":
            return self._open_sim()
        if name == "devnet" and (url := self.devnet().url()) != self._devnet_url:
            if gone := self._opened.pop(name, None):
                self._left.append(gone)
            self._devnet_url = url
        return self.open_chain(name)

    def refresh(self) -> None:
        """Notice that another process moved the sim or restarted the devnet."""
        if self._sim is not None:
            self._sim.refresh()
        if "devnet" in self._opened and self.find_devnet() != self._devnet_url:
            self._left.append(self._opened.pop("devnet"))

    def writer(self, name: str) -> Writer:
        opened = self.open_chain(name)
        if opened is self._sim:
            from zuno.adapters.chain.sim.writer import SimWriter

            return SimWriter(self.sim)
        from zuno.adapters.chain.rpc.chain import RpcChain

        if not isinstance(opened, RpcChain):
            raise TypeError(f"{type(opened).__name__} has no writer")
        return opened.writer()

    def devnet(self) -> DevnetProcess:
        from zuno.adapters.chain.devnet.process import DevnetProcess
        from zuno.adapters.chain.world import DEFAULT_SEED

        self.require_writable()
        packages = self._settings.contracts_dir or _CHECKOUT / "contracts" / "node_modules"
        return DevnetProcess(
            self._settings.home, packages, DEFAULT_SEED, tell=lambda line: print(line, file=sys.stderr, flush=True)
        )

    def find_devnet(self) -> str | None:
        """Where the devnet answers; None: it does not run."""
        try:
            return self.devnet().url()
        except Unavailable:
            return None

    def feeds(self, chain: Chain, pool_id: HexId) -> Feeds:
        from zuno.adapters.prices.feeds import ChainGas, DeepestPool, FirstThatAnswers, NativePrice
        from zuno.lp.ports.market import Feeds

        prices = self._prices(chain, pool_id)
        own = prices if chain.info.name in LOCAL_CHAINS else FirstThatAnswers((prices, DeepestPool(chain)))
        return Feeds(prices, ChainGas(chain), NativePrice(own, chain.info.native), self._reference(chain))

    def _reference(self, chain: Chain) -> PathFeed:
        """What arbitrage follows: local worlds have their seeded price, others an exchange's."""
        from zuno.adapters.prices.feeds import SeededPath
        from zuno.lp.model.market import Pair

        pair = Pair(chain.info.native.symbol, "USDC")
        if chain is self._sim:
            return SeededPath(pair, self.sim.reference_path)
        if chain.info.name == "devnet":
            from zuno.adapters.chain.devnet.process import DevnetWorld

            return SeededPath(pair, DevnetWorld(self.devnet()).reference_path)
        if self._candles is None:
            from zuno.adapters.venues.exchange_path import ExchangePath

            self._candles = ExchangePath(self._settings.binance_url, self._settings.home / "prices")
        return self._candles

    async def close(self) -> None:
        for chain in (*self._opened.values(), *self._left):
            await chain.close()
        self._opened.clear()
        self._left.clear()
        for service in (self._service, self._candles):
            if service is not None:
                await service.close()
        self._service = self._candles = None

    def _open(self, name: str) -> SurveyedChain:
        if name == "sim":
            if self._sealed is not None:
                sys.stderr.write(
                    f"zuno: nothing can be written in {self._settings.home} ({self._sealed}); sim is only read.\n"
                )
            return self.sim
        self.require_writable()
        if name == "devnet":
            from zuno.adapters.chain.world import DEVNET, WALLET

            self._devnet_url = self.devnet().url()
            return self._rpc(DEVNET, (self._devnet_url,), WALLET)
        info = chain_named(name)
        if info is None:
            known = ", ".join((*LOCAL_CHAINS, *(chain.name for chain in CHAINS)))
            raise UsageError(f"No chain is called {name[:40]!r}; Zuno knows {known}.")
        urls = tuple(url.get_secret_value() for url in self._settings.rpc_urls(info.name))
        if not urls:
            raise Unavailable(f"No RPC URL for {info.title}; set {info.rpc_url_variable}.")
        return self._rpc(info, urls, self._own_wallet())

    def _rpc(self, info: ChainInfo, urls: tuple[str, ...], wallet: Address | None) -> SurveyedChain:
        from zuno.adapters.chain.rpc.chain import RpcChain
        from zuno.adapters.chain.rpc.transport import RpcPolicy

        policy = RpcPolicy(timeout=self._settings.rpc_timeout_seconds)
        return RpcChain(info, urls, self._settings.home / "chains" / info.name, wallet, policy, self.read_plans)

    def _prices(self, chain: Chain, pool_id: HexId) -> PriceFeed:
        """Price service, then the pool's own swaps; local worlds have no service, and the simulation only its seed."""
        from zuno.adapters.prices.feeds import FirstThatAnswers, PoolHistory, SeededFeed
        from zuno.lp.model.market import Pair

        pair = Pair(chain.info.native.symbol, "USDC")
        if chain is self._sim:
            return SeededFeed(pair, self.sim.reference_closes)
        own = PoolHistory(chain, pool_id)
        if chain.info.name == "devnet":
            from zuno.adapters.chain.devnet.process import DevnetWorld
            from zuno.adapters.prices.feeds import WithReference

            return WithReference(own, pair, DevnetWorld(self.devnet()).reference, "devnet reference")
        return FirstThatAnswers((self._price_service(), own))

    def _price_service(self) -> CoinGecko:
        """One for the whole process: its answers and its rate limit are shared."""
        from zuno.adapters.prices.coingecko import CoinGecko

        if self._service is None:
            key = self._settings.coingecko_api_key
            self._service = CoinGecko(self._settings.coingecko_url, api_key=key.get_secret_value() if key else None)
        return self._service
