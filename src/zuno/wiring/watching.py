"""Wire the monitor: watched wallets, stores, notifier."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from zuno.adapters.clock.system import SystemClock
from zuno.adapters.file_lock import monitor_lock
from zuno.adapters.store.alerts_file import AlertsFile
from zuno.amm.model import LpPosition
from zuno.journal.port import Journal
from zuno.kernel.notify import Outbox
from zuno.kernel.units import Address
from zuno.lp.model.chains import CHAINS
from zuno.lp.ports.samples import Samples
from zuno.lp.service.portfolio import PortfolioDesk
from zuno.lp.watch.alerts import AlertDesk, ReadPosition
from zuno.lp.watch.monitor import Monitor, Watch
from zuno.settings import Settings
from zuno.wiring.chains import Chains
from zuno.wiring.outbox import PushSources, build_drain, build_feed, find_push_gaps, print_line
from zuno.wiring.signers import Signers

OpenJournal = Callable[[], Awaitable["Journal"]]


def build_alert_desk(
    settings: Settings,
    chains: Chains,
    signers: Signers,
    outbox: Outbox,
    journal: OpenJournal,
    read_position: ReadPosition,
) -> AlertDesk:
    def is_watched(position: LpPosition) -> bool:
        watches = _watches(settings, chains, signers)
        return any(watch.chain == position.chain and watch.wallet in {None, position.owner} for watch in watches)

    return AlertDesk(AlertsFile(settings.home), outbox, journal, SystemClock(), read_position, is_watched)


def build_monitor(
    settings: Settings,
    chains: Chains,
    signers: Signers,
    samples: Samples,
    journal: OpenJournal,
    *,
    announce: bool,
    pushes: PushSources,
) -> Monitor:
    drain = build_drain(settings, pushes.outbox, announce=announce)
    for gap in find_push_gaps(settings):
        print_line(gap)
    return Monitor(
        watches=lambda: _watches(settings, chains, signers),
        chain_of=chains.current_chain,
        store=AlertsFile(settings.home),
        samples=samples,
        lock=monitor_lock(settings.home),
        journal=journal,
        outbox=None if drain is None else pushes.outbox,
        drain=drain,
        feed=None if drain is None else build_feed(settings, drain, pushes),
        clock=SystemClock(),
        period=settings.monitor_interval_ms / 1000,
        tell=print_line,
    )


def build_portfolio(settings: Settings, chains: Chains, signers: Signers, samples: Samples) -> PortfolioDesk:
    return PortfolioDesk(
        watches=lambda: _watches(settings, chains, signers),
        chain_of=chains.open_chain,
        feeds_of=chains.feeds,
        samples=samples,
        labels={Address(address): label for address, label in settings.watched_wallets.items()},
    )


def _watches(settings: Settings, chains: Chains, signers: Signers) -> tuple[Watch, ...]:
    """Wallets to watch now: the devnet may start or end, and wallets may be added, while the monitor runs."""
    default, wallet = settings.default_chain(), settings.agent_wallet_address
    live = [chain.name for chain in CHAINS if settings.rpc_urls(chain.name)]
    kept = [wallet.address for wallet in signers.folder().all()]
    named = [Address(address) for address in settings.watched_wallets]
    owners = dict.fromkeys([*([] if wallet is None else [Address(wallet)]), *kept, *named])
    watches = [Watch(name, owner) for name in live for owner in owners]
    if default == "sim" and (settings.chain_id == "sim" or not watches):
        watches.append(Watch("sim", local=True))
    if default == "devnet" or chains.devnet_runs():
        watches.append(Watch("devnet", local=True))
    return tuple(watches)
