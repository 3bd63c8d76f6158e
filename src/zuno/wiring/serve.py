"""Wire `zuno serve` and `zuno status`: the parts and their commands, who holds which lock, what is written down."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from zuno.adapters.atomic_file import replace_file
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.file_lock import FileLock, mesh_lock, monitor_lock, serve_lock, telegram_lock, web_lock
from zuno.adapters.home_files import list_home
from zuno.adapters.part_processes import PartProcesses, ServiceManager
from zuno.doors.serve import Part, PartView, ServeBackends, ServeReport, Supervisor
from zuno.doors.status import StatusView
from zuno.kernel.accounts import KillLock, short_name
from zuno.kernel.errors import Unavailable, UsageError, ZunoError
from zuno.kernel.notify import NoticeLabel, Outbox
from zuno.kernel.units import Millis
from zuno.settings import Settings
from zuno.wiring.outbox import build_drain

if TYPE_CHECKING:
    from zuno.journal.port import Entry, Journal
    from zuno.lp.model.alerts import AlertBook
    from zuno.trading.rules.trading_book import TradingBook

T = TypeVar("T")
COMMANDS = {
    "mesh": ("mesh", "up"),
    "monitor": ("monitor", "run"),
    "desk": ("trade", "start"),
    "page": ("web",),
    "telegram": ("telegram", "run"),
}
PUSHES = "pushes"
"""Sent by `zuno serve` itself, so that they arrive when every part is dead."""


def build_supervisor(
    settings: Settings,
    without: Sequence[str],
    options: Mapping[str, str],
    outbox: Outbox,
    check: Callable[[], Awaitable[object]],
) -> Supervisor:
    """`options`: further words of a part's command, as typed in a terminal. `UsageError` for a part there is not."""
    known = (*COMMANDS, PUSHES)
    if unknown := [name for name in without if name not in known]:
        raise UsageError(f"{unknown[0][:40]!r} is no part; there are {', '.join(known)}.")
    home = settings.home
    missing = _find_missing(settings, options) | dict.fromkeys(without, "it is not wanted")
    locks, processes, manager = _list_locks(home), PartProcesses(home), ServiceManager(os.environ)
    drain = build_drain(settings, outbox)

    async def send(ending: asyncio.Event) -> None:
        if drain is None or PUSHES in without:
            await ending.wait()
            return
        try:
            await drain.run(ending)
        finally:
            await drain.close()

    money = NoticeLabel.LIVE if settings.live else NoticeLabel.PAPER
    try:
        words = {name: (*COMMANDS[name], *shlex.split(text)) for name, text in options.items()}
    except ValueError as error:
        raise UsageError(f"The options of a part cannot be read: {str(error).lower()}.") from None
    return Supervisor(
        ServeBackends(
            parts=[
                Part(
                    name,
                    words.get(name, command),
                    missing.get(name, ""),
                    locks[name].holder if name in locks else lambda: None,
                )
                for name, command in COMMANDS.items()
            ],
            start=processes.start,
            end_orphans=processes.end_orphans,
            check=check,
            lock=serve_lock(home),
            manager=manager.tell,
            watchdog_seconds=manager.watchdog_seconds,
            outbox=None if drain is None else outbox,
            drain=send,
            label=money if settings.market == "live" else NoticeLabel.SYNTHETIC,
            read=lambda: read_report(home),
            keep=lambda report: _keep_report(home, report),
            pid=os.getpid(),
            now=unix_millis,
            stopwatch=monotonic,
        )
    )


def _find_missing(settings: Settings, options: Mapping[str, str]) -> dict[str, str]:
    """Parts that are not configured, and what they lack."""
    missing: dict[str, str] = {}
    if settings.telegram_bot_token is None:
        missing["telegram"] = "ZUNO_TELEGRAM_BOT_TOKEN is not set"
    if options.get("mesh") == "inproc" or not (settings.home / "mesh" / "mesh.json").exists():
        missing["mesh"] = "debates are held in the process that asks (`zuno mesh init` makes a mesh)"
    if settings.market != "live" and "--speed" not in options.get("desk", ""):
        missing["desk"] = "the market here is a recording; ZUNO_MARKET=live trades on paper as it happens"
    return missing


def _list_locks(home: Path) -> dict[str, FileLock]:
    """What each part holds while it runs. The desk's lock is its account's."""
    locks = {"mesh": mesh_lock, "monitor": monitor_lock, "page": web_lock, "telegram": telegram_lock}
    return {name: lock(home) for name, lock in locks.items()}


def _find_running(home: Path) -> tuple[PartView, ...]:
    """Commands of this home that run by themselves, since their locks were taken."""
    desks = [("desk", FileLock(path)) for path in sorted((home / "leases").glob("desk-*.lock"))]
    holders = [(name, lock, lock.holder()) for name, lock in (*_list_locks(home).items(), *desks)]
    return tuple(
        PartView(name=name, state="ready", pid=pid, since=int(lock.path.stat().st_mtime * 1_000))
        for name, lock, pid in holders
        if pid is not None
    )


def read_report(home: Path, *, running: bool = False) -> ServeReport | None:
    """What the last `zuno serve` wrote; None: there is none, one of another version, or none that is `running`."""
    with suppress(OSError, ValueError):
        if not running or serve_lock(home).is_held():
            return ServeReport.model_validate_json((home / "leases" / "serve.json").read_bytes())
    return None


def _keep_report(home: Path, report: ServeReport) -> None:
    """On a full disk the old one stays."""
    with suppress(OSError, Unavailable):
        replace_file(home / "leases" / "serve.json", report.model_dump_json(by_alias=True).encode(), durable=False)


async def read_status(
    home: Path,
    read_journal: Callable[[], Awaitable[Journal]],
    read_alerts: Callable[[], Awaitable[AlertBook]],
    read_book: Callable[[], Awaitable[tuple[str, TradingBook, Millis]]],
    kill_lock: KillLock,
) -> StatusView:
    """Every question by itself: what cannot be read is left unknown, with a note."""
    from zuno.trading.model.cycle import STARTED
    from zuno.trading.model.market import Mode
    from zuno.trading.rules.protections import describe_lock
    from zuno.trading.watch.desk_loop import next_slot

    now, notes = unix_millis(), list[str]()

    async def ask(question: Callable[[], Awaitable[T]]) -> T | None:
        try:
            return await question()
        except ZunoError as error:
            notes.append(str(error))
            return None

    async def find_newest() -> list[Entry | None]:
        journal = await read_journal()
        return [next(iter(await journal.latest(1, kind=kind)), None) for kind in (None, STARTED)]

    report = read_report(home, running=True)
    troubles = () if report is None else report.list_troubles(now)
    alone = {part.name: part for part in _find_running(home)}
    parts = () if report is None else report.parts
    parts = tuple(part if part.pid else alone.get(part.name, part) for part in parts) or tuple(alone.values())
    record, alerts, opened = await ask(find_newest), await ask(read_alerts), await ask(read_book)
    newest, cycle = record or (None, None)
    account, book, moment = opened or ("", None, now)
    stored = () if book is None else book.locks.values()
    locks = [describe_lock(lock) for lock in stored if lock.until is None or lock.until > moment]
    if (killed := kill_lock.why_locked(short_name(account) if account else None)) is not None:
        locks = [f"{killed.why}; `{killed.lifted_by}` lifts it", *locks]
    mode = Mode.POSITION if cycle is not None and cycle.payload.get("mode") == Mode.POSITION else Mode.SWING
    trades = any(part.name == "desk" and part.pid is not None for part in parts)
    return StatusView(
        at=now,
        home=str(home),
        ready=report is not None and not troubles,
        troubles=troubles,
        pid=None if report is None else report.pid,
        since=None if report is None else report.since,
        parts=parts,
        last_cycle=None if cycle is None else cycle.at,
        last_run="" if cycle is None else cycle.request_id or "",
        next_cycle=next_slot(mode, now) if trades else None,
        last_look=None if alerts is None or alerts.looked_at is None else alerts.looked_at * 1_000,
        alerts=None if alerts is None else len(alerts.active),
        account=account,
        open_trades=None if book is None else len(book.trades),
        open_orders=None if book is None else len(book.open_orders) + len(book.resting),
        locks=None if book is None and not locks else tuple(locks),
        used_bytes=sum(file.size for file in list_home(home)),
        free_bytes=shutil.disk_usage(home).free,
        entries=None if record is None else 0 if newest is None else newest.seq,
        newest=None if newest is None else newest.at,
        notes=tuple(dict.fromkeys(notes)),
    )
