"""Wire the web page: logins, lock, clocks."""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Final

from zuno.adapters.clock.system import unix_millis
from zuno.adapters.file_lock import LockedFile, web_lock
from zuno.adapters.helper_process import HelperProcess
from zuno.adapters.kill_lock import KillLockFile
from zuno.doors.docs_site import find_docs
from zuno.doors.web_door import LOOPBACK, WebDoor
from zuno.doors.web_logins import Factors, Logins
from zuno.doors.zuno import Zuno
from zuno.kernel.errors import Unavailable, ZunoError
from zuno.kernel.installation import name_install, read_version
from zuno.kernel.public_site import LOOPBACK_NAMES, parse_public_url
from zuno.settings import Settings
from zuno.wiring.doctor import NO_ROOM

LOGINS_FILE: Final = "web-logins.json"
FACTORS_FILE: Final = "web-factors.json"
OLD_TOKEN_FILE: Final = "web.token"
"""From versions with one token for everything."""
_LIBRARIES: Final = ("fastapi", "uvicorn", "prometheus_client")


def build_web(
    settings: Settings,
    zuno: Zuno,
    kill_lock: KillLockFile,
    helper: HelperProcess,
    host: str,
    port: int,
    public_url: str | None,
    probe_journal: Callable[[], Awaitable[object]],
    list_troubles: Callable[[], tuple[str, ...]] = tuple,
) -> WebDoor:
    """`helper` carries out stops; `list_troubles`: why `zuno serve` is not ready. `Unavailable` without the libraries,
    with the install command; `UsageError` for a public URL that gives logins away."""
    public_url = public_url or settings.web_public_url
    site = None if public_url is None else parse_public_url(public_url, settings.web_proxies)
    if any(find_spec(name) is None for name in _LIBRARIES):
        raise Unavailable(f"The page needs FastAPI and uvicorn: {name_install('web')}.")
    from zuno.doors.web.access import Access
    from zuno.doors.web.app import WebBackends
    from zuno.doors.web.metrics import Metrics
    from zuno.doors.web.routes.system import has_real_money
    from zuno.doors.web.server import WebServer

    logins = build_logins(settings.home)
    own = LOOPBACK_NAMES if host == LOOPBACK else LOOPBACK_NAMES | {f"[{host}]" if ":" in host else host.lower()}
    private = host == LOOPBACK or site is not None
    notes = () if private else (f"{host} is open to other machines, without encryption: {_ADVICE}",)
    money = has_real_money(zuno.config())
    access = Access(logins, name_cookie(settings.home), monotonic, own, real_money=money, site=site)
    return WebServer(
        zuno,
        WebBackends(
            access=access,
            now=unix_millis,
            chance=os.urandom,
            metrics=Metrics(monotonic),
            version=read_version(),
            kill_lock=kill_lock,
            helper=helper,
            list_faults=partial(list_faults, settings.home, probe_journal, kill_lock, list_troubles),
            docs=find_docs(),
        ),
        logins,
        host,
        port,
        web_lock(settings.home),
        notes + remove_old_token(settings.home),
    )


_ADVICE: Final = "whoever reads the traffic has your login. An SSH tunnel to 127.0.0.1 is safer."


def build_logins(home: Path) -> Logins:
    factors = Factors(LockedFile(home / FACTORS_FILE), unix_millis, os.urandom)
    return Logins(LockedFile(home / LOGINS_FILE), factors, unix_millis, os.urandom, web_lock(home).is_held)


async def list_faults(
    home: Path,
    probe_journal: Callable[[], Awaitable[object]],
    kill_lock: KillLockFile,
    list_troubles: Callable[[], tuple[str, ...]] = tuple,
) -> tuple[str, ...]:
    """Why this home is not ready, in codes that tell a stranger nothing. Writes only the repair of every start."""
    faults = [*(("parts",) if list_troubles() else ())]
    try:
        await probe_journal()
        if not os.access(home, os.W_OK):
            faults.append("journal")
    except ZunoError:
        faults.append("journal")
    try:
        await asyncio.to_thread(kill_lock.check)
    except ZunoError:
        faults.append("kill-lock")
    return (*faults, "disk") if shutil.disk_usage(home).free < NO_ROOM else tuple(faults)


def name_cookie(home: Path) -> str:
    """Cookies ignore ports: two homes on one machine need two names."""
    return f"zuno_{sha256(os.fsencode(home.resolve())).hexdigest()[:8]}"


def remove_old_token(home: Path) -> tuple[str, ...]:
    """Returns a note if there was one."""
    try:
        (home / OLD_TOKEN_FILE).unlink()
    except FileNotFoundError:
        return ()
    return (f"{OLD_TOKEN_FILE} is void and was removed; scripts need a token of `zuno web token create`.",)
