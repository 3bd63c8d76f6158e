"""The checks of `zuno doctor`: home, store, keys, clock, market, models, chains, exchanges, memory, pushes."""

import os
import shutil
import stat
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from zuno.adapters.file_lock import outbox_lock
from zuno.adapters.home_files import measure_home
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.doors.agents import AgentsView
from zuno.doors.config import ConfigCheckView
from zuno.doors.doctor import Check, CheckView, Doctor, State
from zuno.journal.port import Journal
from zuno.kernel.accounts import DEMO_ACCOUNT, KillLock
from zuno.kernel.clock import iso
from zuno.kernel.errors import Broken, Unavailable, ZunoError
from zuno.kernel.notify import Outbox
from zuno.kernel.units import Millis
from zuno.lp.model.chains import CHAINS
from zuno.settings import Settings
from zuno.trading.learn.memory_book import MemoryBook
from zuno.trading.model.sleeves import DEBATE
from zuno.trading.ports.recall import MemoryIndex
from zuno.trading.rules.performance import AccountLog
from zuno.trading.service.data import DataStatusView
from zuno.trading.service.live_start import LiveStart
from zuno.wiring.chains import Chains
from zuno.wiring.disk_budget import MEGABYTE, describe_budget
from zuno.wiring.outbox import find_push_gaps

LITTLE_ROOM: Final = 1_000_000_000
NO_ROOM: Final = 100_000_000
OLD_BLOCK_SECONDS: Final = 900
LATE_PUSH_SECONDS: Final = 3_600
MOST_SKEW_MS: Final = 1_000
"""Clock skew beyond which an exchange may refuse signed requests."""


def build_doctor(
    settings: Settings,
    *,
    key: KeyFile,
    journal: Callable[[], Awaitable[Journal]],
    data: Callable[[], Awaitable[DataStatusView]],
    agents: Callable[[], Awaitable[AgentsView]],
    chains: Chains,
    now: Callable[[], Millis],
    more: Sequence[Check] = (),
) -> Doctor:
    """`more`: checks of the exchanges and the mandate."""

    async def look_at_home() -> list[CheckView]:
        budget, lines = settings.disk_budget_mb * MEGABYTE, [_home_line(settings.home), _room_line(settings.home)]
        if budget:
            text = describe_budget(measure_home(settings.home), budget)
            advice = "`zuno home compact --older 90d` archives old bundles" if text else ""
            lines.append(_line("disk", "warn" if text else "ok", text or "the home is within its disk budget", advice))
        return lines

    async def look_at_store() -> list[CheckView]:
        kind = "SQLite in the home" if settings.database_url is None else "Postgres"
        newest = await (await journal()).latest(1)
        if not newest:
            return [_line("store", "ok", f"journal ({kind}): empty")]
        lines = [_line("store", "ok", f"journal ({kind}): {newest[0].seq:,} entries, newest {iso(newest[0].at)}")]
        if newest[0].at > now() + MOST_SKEW_MS:
            text = f"the journal's newest entry is of {iso(newest[0].at)}, which has not come yet"
            lines.append(_line("clock", "fail", text, "set this machine's clock (NTP)"))
        return lines

    async def look_at_keys() -> list[CheckView]:
        if not key.exists():
            return [_line("keys", "off", "this home has no signing key yet; the first entry of the journal makes one")]
        return [_line("keys", "ok", f"entries are signed by {key.public[:16]}…")]

    async def look_at_market() -> list[CheckView]:
        status = await data()
        newest = max((span.last for span in status.series), default=None)
        if newest is None:
            invented = "; the first run invents a SYNTHETIC market" if status.synthetic else ""
            advice = "`zuno data collect`, `download` or `import` store a real one"
            return [_line("market", "off", f"{settings.market}: nothing is stored{invented}", advice)]
        past = f"{status.rows:,} rows to {iso(Millis(newest))}"
        return [_line("market", "ok", f"{settings.market}: {status.origin}, {past}")]

    async def look_at_models() -> list[CheckView]:
        view = await agents()
        spoken = [chair for chair in view.chairs if chair.models]
        if view.install is not None:
            return [_line("models", "warn", "a model's key is set and the models are not installed", view.install)]
        if not spoken:
            advice = "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY to let models argue"
            return [_line("models", "off", "no key: rules speak for every agent", advice)]
        names = ", ".join(sorted({chair.models[0] for chair in spoken}))
        return [_line("models", "ok", f"{len(spoken)} of {len(view.chairs)} agents by {names}; keys are not tried")]

    async def look_at_chains() -> list[CheckView]:
        named = [chain.name for chain in CHAINS if settings.rpc_urls(chain.name)]
        if not named:
            advice = "set an RPC URL such as ZUNO_ARBITRUM_RPC_URL to read a real chain"
            return [_line("chains", "off", "no RPC URL: the simulated chain is used", advice)]
        return [await _chain_line(chains, name, now) for name in named]

    return Doctor(
        [
            Check("home", look_at_home, "choose another --home"),
            Check("store", look_at_store, "`zuno journal verify` says more"),
            Check("keys", look_at_keys),
            Check("market", look_at_market, "`zuno data status` says more"),
            Check("models", look_at_models),
            Check("chains", look_at_chains),
            *more,
        ]
    )


def build_kill_check(lock: KillLock) -> Check:

    async def look() -> list[CheckView]:
        if (found := lock.why_locked()) is None:
            return []
        return [_line("kill", "warn", found.why, f"nothing new begins, on both desks; `{found.lifted_by}` lifts it")]

    return Check("kill", look)


def build_live_checks(
    account: str,
    log: Callable[[], AccountLog],
    start: Callable[[], LiveStart],
    origin: Callable[[], str],
    planned: Callable[[], Iterable[str]],
    now: Callable[[], Millis],
) -> list[Check]:
    """Mandate, sleeves and, with money, the debate's record. `planned`: sleeves that a new account would have."""
    advice = f"`zuno trade mandate grant --account {account}` lets it trade there"

    async def look_at_mandate() -> list[CheckView]:
        granted = (await log().history(account)).mandate
        if granted is None:
            return [_line("mandate", "off", "none: the desk trades on paper", advice)]
        until = iso(granted.mandate.expires)
        if granted.mandate.expires <= now():
            return [_line("mandate", "off", f"expired at {until}: the desk trades on paper", advice)]
        return [_line("mandate", "ok", f"{granted.hash[:16]}… until {until}")]

    async def look_at_sleeves() -> list[CheckView]:
        lines = []
        for sleeve in await start().list_sleeves(account, planned()):
            if sleeve == DEBATE:
                continue
            gaps = await start().find_sleeve_gaps(account, sleeve, origin())
            lines += [_line("sleeve", "off", f"{sleeve} lacks {gap}") for gap in gaps]
            if not gaps:
                lines.append(_line("sleeve", "ok", f"{sleeve} may trade with money"))
        return lines

    async def look_at_record() -> list[CheckView]:
        record = await start().read_record(origin(), account)
        text = f"closed trades in real time: {record}"
        if record.open:
            return [_line("record", "ok", text)]
        if any(sleeve != DEBATE for sleeve in await start().list_sleeves(account)):
            return [_line("record", "warn", text, "until then the debate opens nothing; other sleeves trade")]
        return [_line("record", "off", text, "until then `zuno trade start --live` trades on paper")]

    sleeves_advice = "docs/guides/going-live.md says what a sleeve needs"
    return [
        Check("mandate", look_at_mandate, "`zuno trade mandate show` says more", needed_live=True),
        Check("sleeve", look_at_sleeves, sleeves_advice, needed_live=True),
        *([] if account == DEMO_ACCOUNT else [Check("record", look_at_record, needed_live=True)]),
    ]


def build_config_check(check: Callable[[], ConfigCheckView]) -> Check:
    """Whether the settings file can be used; where it cannot, every other check goes by the environment alone."""

    async def look() -> list[CheckView]:
        view = check()
        if not view.found:
            return [_line("config", "off", "no settings file: the environment alone counts")]
        if not view.ok:
            return [_line("config", "fail", f"{view.file}: {view.faults[0]}", "`zuno config check` lists everything")]
        return [_line("config", "ok", f"{view.file}, {view.settings} settings")]

    return Check("config", look, "`zuno config check` lists everything")


def build_memory_check(index: Callable[[], MemoryIndex], book: Callable[[], MemoryBook]) -> Check:
    """Whether the store of memories answers, and holds what the journal holds."""
    advice = "the next run, `zuno memory search` or `zuno trade evaluate` brings it in step"

    async def look() -> list[CheckView]:
        store, written = index(), await book().read()
        try:
            there = await store.ids()
        except (Unavailable, Broken) as error:
            return [_line("memory", "warn", f"{error} Recall by age answers until then.", advice)]
        if missing := len(written.keys() - there):
            return [
                _line("memory", "warn", f"{store.name}: {missing:,} of {len(written):,} post-mortems missing", advice)
            ]
        return [_line("memory", "ok", f"{store.name}: {len(written):,} post-mortems, as in the journal")]

    return Check("memory", look, advice)


def build_push_check(settings: Settings, outbox: Callable[[], Outbox], now: Callable[[], Millis]) -> Check:
    """Whether pushes can reach the owner, and what waits for whom."""

    def look_at_settings() -> list[CheckView]:
        gaps = [_line("pushes", "warn", gap, "docs/telegram.md has the steps") for gap in find_push_gaps(settings)]
        if settings.telegram_bot_token is None:
            advice = "set ZUNO_TELEGRAM_BOT_TOKEN to be told in a chat: docs/telegram.md"
            return gaps or [_line("pushes", "off", "no Telegram bot is set", advice)]
        if not settings.telegram_owners and not settings.telegram_viewers:
            text = "the bot answers nobody: no owner and no viewer is listed"
            gaps.append(_line("pushes", "warn", text, "`zuno telegram setup`, then set ZUNO_TELEGRAM_OWNERS"))
        return gaps or [_line("pushes", "ok", f"to one chat; owners of the bot: {len(settings.telegram_owners)}")]

    async def look() -> list[CheckView]:
        box, lease = outbox(), outbox_lock(settings.home)
        status, oldest, holder = await box.status(), await box.next(), lease.holder()
        sender = f"process {holder} sends" if holder else "a process sends" if lease.is_held() else "no process sends"
        text = f"{status.waiting:,} wait, {status.undeliverable:,} could not be delivered; {sender}"
        late = False
        if oldest is not None:
            age = max(0, now() // 1_000 - oldest.notice.at)
            late = not lease.is_held() or age > LATE_PUSH_SECONDS
            text += f"; the oldest is {age // 60:,} min old"
        if status.trouble:
            text += f"; the last one failed: {status.trouble}"
        advice = "`zuno monitor run`, `zuno trade start` or `zuno telegram run` sends them" if late else ""
        state: State = "warn" if late or status.trouble else "ok"
        return [*look_at_settings(), _line("outbox", state, text, advice)]

    return Check("pushes", look, "docs/runbook.md says what can be lost")


def _line(topic: str, state: State, text: str, advice: str = "") -> CheckView:
    return CheckView(topic=topic, state=state, text=text, advice=advice)


def _home_line(home: Path) -> CheckView:
    if not os.access(home, os.W_OK | os.X_OK):
        return _line("home", "fail", f"{home} cannot be written", "choose another --home")
    mode = stat.S_IMODE(home.stat().st_mode)
    if mode & 0o077:
        return _line("home", "warn", f"{home} may be read by others (mode {mode:o})", f"chmod 700 {home}")
    return _line("home", "ok", f"{home}, the owner's alone")


def _room_line(home: Path) -> CheckView:
    try:
        free = shutil.disk_usage(home).free
    except OSError as error:
        raise Unavailable(f"The disk of {home} cannot be looked at ({error.strerror}).") from error
    text = f"{free / 1e9:,.1f} GB free"
    if free < NO_ROOM:
        return _line("disk", "fail", text, "make room: what cannot be written down is not done")
    return _line("disk", "warn" if free < LITTLE_ROOM else "ok", text, "make room" if free < LITTLE_ROOM else "")


async def _chain_line(chains: Chains, name: str, now: Callable[[], Millis]) -> CheckView:
    try:
        head = await chains.open_chain(name).head()
    except ZunoError as error:
        return _line("chains", "fail", f"{name}: {error}", "another RPC URL, or mend the network")
    age = now() // 1_000 - head.timestamp
    text = f"{name}: block {head.number:,}, {age} s old"
    if not -MOST_SKEW_MS <= age * 1_000 <= OLD_BLOCK_SECONDS * 1_000:
        return _line("chains", "warn", text, "the node is behind or this clock is wrong: another RPC URL, or NTP")
    return _line("chains", "ok", text)
