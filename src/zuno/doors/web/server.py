"""`zuno web`: uvicorn in a thread of this process; the services stay on the process's own loop."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from errno import EACCES, EADDRINUSE, EADDRNOTAVAIL
from functools import partial
from ipaddress import ip_address
from threading import Thread
from typing import Final

import uvicorn

from zuno.doors.web import connections
from zuno.doors.web.app import WebBackends, create_app
from zuno.doors.web.events import EventFeed
from zuno.doors.web.routes.system import has_real_money
from zuno.doors.web.services import Services
from zuno.doors.web_door import LOOPBACK, WebEndView, WebEventView
from zuno.doors.web_logins import Logins
from zuno.doors.zuno import Zuno
from zuno.kernel.errors import Refused, Unavailable, UsageError
from zuno.kernel.lock import ProcessLock, hold

_CLOSE_SECONDS: Final = 3
"""For requests under way when it ends."""
_HIGHEST_PORT: Final = 65_535


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """asyncio accepts as many at once as may queue; past a short queue a request would wait a second for TCP."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(connections.WAITING_AT_ONCE)


@dataclass(frozen=True, slots=True, eq=False)
class WebServer:
    """The `WebDoor`."""

    zuno: Zuno
    on: WebBackends
    logins: Logins
    host: str
    port: int
    lock: ProcessLock
    notes: tuple[str, ...] = ()
    """What is to be said at the start."""

    async def run(self, hear: Callable[[WebEventView], None], stop: asyncio.Event) -> WebEndView:
        site = self.on.access.site
        with hold(self.lock), open_port(self.host, self.port, wildcard=site is not None) as listening:
            self.zuno.unlock_wallet()  # while somebody may be at the terminal: later nobody is asked
            return await self._serve(listening, hear, stop)

    async def _serve(
        self, listening: socket.socket, hear: Callable[[WebEventView], None], stop: asyncio.Event
    ) -> WebEndView:
        loop = asyncio.get_running_loop()
        services = Services(self.zuno, loop)
        self.on.helper.start()
        feed = EventFeed(services)
        app = create_app(services, self.on, feed)
        server = _Server(
            uvicorn.Config(
                app,
                http=partial(connections.Connection, connections.Connections(connections.count_places())),  # type: ignore[arg-type]
                backlog=connections.ACCEPTED_AT_ONCE,
                timeout_keep_alive=connections.IDLE_SECONDS,
                log_level="warning",
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_CLOSE_SECONDS,
            )
        )
        host = f"[{self.host}]" if ":" in self.host else self.host
        url = f"http://{host}:{listening.getsockname()[1]}/"
        if (site := self.on.access.site) is not None:
            url = f"{site.origin}{site.base}/"
        self.logins.start(url, end_sessions=has_real_money(self.zuno.config()))
        ended = asyncio.Event()

        def serve() -> None:
            try:
                with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
                    runner.run(server.serve(sockets=[listening]))
            finally:
                loop.call_soon_threadsafe(ended.set)

        thread = Thread(target=serve, name="zuno-web", daemon=True)
        thread.start()
        for note in self.notes:
            self._tell(hear, "warning", note)
        link = self.logins.link("act").url
        self._tell(hear, "serving", f"{url} is served; log in by {link}", link)
        waiting = [asyncio.ensure_future(stop.wait()), asyncio.ensure_future(ended.wait())]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
            failed = ended.is_set()
            await services.end_work()
            feed.close()
            server.should_exit = True
            await ended.wait()  # what is asked meanwhile is still answered by this loop
            await asyncio.to_thread(self.on.helper.stop)
        if failed:
            raise Unavailable("The page's server ended by itself; `zuno logs` says more.")
        return WebEndView(url=url, requests=self.on.metrics.requests, refused=self.on.metrics.refused)

    def _tell(self, hear: Callable[[WebEventView], None], event: str, text: str, url: str | None = None) -> None:
        hear(WebEventView(at=self.on.now(), event=event, text=text, url=url))


def open_port(host: str, port: int, *, wildcard: bool = False) -> socket.socket:
    """A listening socket; 0 picks a free port. `Refused` where the port is in use, `UsageError` for what is none or
    would be every address at once. `wildcard`: that is meant, for the page has a public name."""
    if not 0 <= port <= _HIGHEST_PORT:
        raise UsageError(f"--port is {port}; give a number from 0 to {_HIGHEST_PORT}.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Said to be TCP: asyncio turns Nagle's delay off for no other, and every answer would wait 40 ms.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(connections.ACCEPTED_AT_ONCE)
    except OSError as error:
        opened.close()
        raise _unusable_port(host, port, error) from error
    bound = ip_address(opened.getsockname()[0])
    if not wildcard and (getattr(bound, "ipv4_mapped", None) or bound).is_unspecified:
        opened.close()  # the page answers to names that it knows, and nobody opens it by this one
        raise UsageError(f"{host or 'An empty --host'} means every address of this machine; name the one to serve at.")
    return opened


def _unusable_port(host: str, port: int, error: OSError) -> Exception:
    match error.errno:
        case code if code == EADDRINUSE:
            return Refused(f"Port {port} is in use; end what uses it, or choose another by --port.")
        case code if code == EACCES:
            return Refused(f"Port {port} is not ours to open; choose one above 1023 by --port.")
        case code if code == EADDRNOTAVAIL:
            return UsageError(f"{host} is no address of this machine; leave --host out for {LOOPBACK}.")
        case _:
            return UsageError(f"{host}:{port} cannot be opened ({error.strerror or error}).")
