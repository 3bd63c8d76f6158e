"""Wire the owner's own strategies: which adapter asks each, and the listener of their signals."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from zuno.adapters.atomic_file import replace_file
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.strategies.csv_file import CsvStrategy
from zuno.adapters.strategies.python_file import Confinement, PythonStrategy, read_code
from zuno.adapters.strategies.webhook import SHORTEST_SECRET, SignalListener, WebhookStrategy
from zuno.journal.port import Journal
from zuno.kernel.errors import Refused
from zuno.settings import Settings
from zuno.trading.model.own_strategies import Registration, StrategyForm
from zuno.trading.ports.own_strategies import OwnStrategy
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.own_strategies import OwnStrategies

ReadJournal = Callable[[], Awaitable[Journal]]


def build_own_strategies(settings: Settings, desk: TradingDesk, journal: ReadJournal) -> OwnStrategies:
    confinement = Confinement(settings.strategy_seconds)

    def open_strategy(registration: Registration) -> OwnStrategy:
        path = settings.home / registration.path
        if registration.form is StrategyForm.PYTHON:
            return PythonStrategy(path, registration.digest, confinement)
        return (
            CsvStrategy(path) if registration.form is StrategyForm.CSV else WebhookStrategy(registration.name, journal)
        )

    async def check(registration: Registration) -> Registration:
        name, path = registration.name, _find_path(registration.path)
        if registration.form is StrategyForm.PYTHON:
            if gap := await confinement.find_gap():
                raise Refused(f"No Python strategy is run here: {gap}. A CSV file or a webhook can be added.")
            code, digest = read_code(path)
            path = Path("strategies", f"{name}.py")
            (settings.home / path).parent.mkdir(mode=0o700, exist_ok=True)
            replace_file(settings.home / path, code.encode())
            return registration.model_copy(update={"path": str(path), "digest": digest})
        if registration.form is StrategyForm.CSV:
            return registration.model_copy(update={"path": str(path)})
        secret = settings.webhook_secrets.get(name)
        if settings.webhook_port is None or secret is None or len(secret.get_secret_value()) < SHORTEST_SECRET:
            raise Refused(
                f"Signals of {name} need ZUNO_WEBHOOK_PORT, and in ZUNO_WEBHOOK_SECRETS {name}=SECRET of "
                f"{SHORTEST_SECRET} characters or more."
            )
        if [*settings.webhook_secrets.values()].count(secret) > 1:
            raise Refused(f"{name} has the secret of another strategy in ZUNO_WEBHOOK_SECRETS; give it its own.")
        return registration

    return OwnStrategies(journal, desk, settings.market == "live", check, open_strategy)


def _find_path(given: str) -> Path:
    return Path(given).expanduser().absolute()


async def serve_signals(settings: Settings, journal: ReadJournal) -> None:
    if settings.webhook_port is None:
        return
    secrets = {name: secret.get_secret_value() for name, secret in settings.webhook_secrets.items()}
    listener = SignalListener(secrets, journal, unix_millis, settings.webhook_sources)
    await listener.serve(settings.webhook_host, settings.webhook_port)
