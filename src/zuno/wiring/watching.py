"""Wire the monitor: watched wallets, stores, notifier."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from zuno.kernel.errors import Usage
from zuno.kernel.units import Address
from zuno.lp.model.chains import CHAINS
from zuno.settings import Settings

if TYPE_CHECKING:
    from zuno.amm.model import LpPosition
    from zuno.journal.port import Journal
    from zuno.kernel.notify import Notifier
    from zuno.lp.ports.samples import Samples
    from zuno.lp.service.portfolio import PortfolioDesk
    from zuno.lp.watch.alerts import AlertDesk, ReadPosition
    from zuno.lp.watch.monitor import Monitor, Watch
    from zuno.wiring.chains import Chains
    from zuno.wiring.signers import Signers

OpenJournal = Callable[[], Awaitable["Journal"]]


def build_alert_desk(
    settings: Settings, chains: Chains, signers: Signers, journal: OpenJournal, read_position: ReadPosition
) -> AlertDesk:
    from zuno.adapters.clock.system import SystemClock
    from zuno.adapters.store.alerts_file import AlertsFile
    from zuno.lp.watch.alerts import AlertDesk

    def is_watched(position: LpPosition) -> bool:
        watches = _watches(settings, chains, signers)
        return any(watch.chain == position.chain and watch.wallet in {None, position.owner} for watch in watches)

    return AlertDesk(AlertsFile(settings.home), journal, SystemClock(), read_position, is_watched)


def build_monitor(
    settings: Settings, chains: Chains, signers: Signers, samples: Samples, journal: OpenJournal, *, announce: bool
) -> Monitor:
    from zuno.adapters.clock.system import SystemClock
    from zuno.adapters.file_lock import monitor_lock
    from zuno.adapters.store.alerts_file import AlertsFile
    from zuno.lp.watch.alerts import AlertSender
    from zuno.lp.watch.monitor import Monitor

    store = AlertsFile(settings.home)
    return Monitor(
        watches=lambda: _watches(settings, chains, signers),
        chain_of=chains.current_chain,
        store=store,
        samples=samples,
        lock=monitor_lock(settings.home),
        journal=journal,
        sender=AlertSender(store, _notifier(settings, announce), _print_line),
        clock=SystemClock(),
        period=settings.monitor_interval_ms / 1000,
        tell=_print_line,
    )


def build_portfolio(settings: Settings, chains: Chains, signers: Signers, samples: Samples) -> PortfolioDesk:
    from zuno.lp.service.portfolio import PortfolioDesk

    return PortfolioDesk(
        watches=lambda: _watches(settings, chains, signers),
        chain_of=chains.open_chain,
        feeds_of=chains.feeds,
        samples=samples,
        labels={Address(address): label for address, label in settings.watched_wallets.items()},
    )


def _notifier(settings: Settings, announce: bool) -> Notifier | None:
    token, chat = settings.telegram_bot_token, settings.telegram_chat_id
    if (token is None) != (chat is None):
        missing = "ZUNO_TELEGRAM_BOT_TOKEN" if token is None else "ZUNO_TELEGRAM_CHAT_ID"
        raise Usage(f"Telegram needs both a bot and a chat: {missing} is not set.")
    if token is not None and chat is not None:
        from zuno.adapters.notifier.telegram import TelegramNotifier

        return TelegramNotifier(token.get_secret_value(), chat, settings.telegram_api_base_url)
    if not announce:
        return None
    from zuno.adapters.notifier.console import ConsoleNotifier

    return ConsoleNotifier(_print_line)


def _watches(settings: Settings, chains: Chains, signers: Signers) -> tuple[Watch, ...]:
    """Every wallet worth watching now: the devnet comes and goes, and wallets may be added while it runs."""
    from zuno.lp.watch.monitor import Watch

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


def _print_line(line: str) -> None:
    sys.stderr.write(f"zuno: {line}\n")
    sys.stderr.flush()
