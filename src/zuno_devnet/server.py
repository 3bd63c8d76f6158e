"""The node on a loopback port: plain HTTP/1.1 from the standard library, a thread for each connection; and the faults
that a client can ask of it."""

from __future__ import annotations

import errno
import ipaddress
import logging
import signal
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

from zuno.kernel.errors import Unavailable

from . import params
from .methods import Method
from .node import DevnetNode
from .params import Params
from .rpc import Rpc, parse
from .rpc_errors import bad_params

HOST: Final = "127.0.0.1"
_MAX_BODY: Final = 5 * 1024 * 1024
_MAX_DIGITS: Final = 10
_JSON: Final = "application/json"
FaultKind = Literal["delay", "status", "garbage", "cut"]
_KINDS: Final = get_args(FaultKind)
_FIELDS: Final = frozenset({"kind", "count", "ms", "status", "methods", "processed"})
_LONGEST_MS: Final = 600_000
_GREATEST_STATUS: Final = 999
_CONTROL_PREFIX: Final = "zuno_"
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class PlannedFault:
    """A fault of the next `count` requests that name one of `methods` (any, if none is given).

    `processed`: the node does the work and then spoils its answer, as when a reply is lost after a transaction was
    accepted.
    """

    kind: FaultKind
    count: int = 1
    ms: int = 0
    status: int = 500
    methods: frozenset[str] = frozenset()
    processed: bool = False

    def hits(self, named: frozenset[str]) -> bool:
        return self.count > 0 and (not self.methods or bool(self.methods & named))


def read_fault(fields: Mapping[str, Any]) -> PlannedFault:
    params.reject_unknown(fields, _FIELDS, "fault option")
    kind: Any = fields.get("kind")
    if kind not in _KINDS:
        raise bad_params(f"a fault is one of {', '.join(_KINDS)}")
    return PlannedFault(
        kind=kind,
        count=params.optional_quantity(fields, "count", 1),
        ms=params.up_to(_LONGEST_MS, params.optional_quantity(fields, "ms", 0)),
        status=params.up_to(_GREATEST_STATUS, params.optional_quantity(fields, "status", 500)),
        methods=frozenset(map(params.text, params.list_or_empty(fields.get("methods")))),
        processed=params.flag(fields.get("processed"), default=kind in ("cut", "garbage")),
    )


class FaultPlan:
    """The faults still to come. Requests of `zuno_` methods are never hit, or no client could cancel a fault."""

    def __init__(self) -> None:
        self._planned: list[PlannedFault] = []
        self._lock = threading.Lock()

    def plan(self, fault: PlannedFault) -> None:
        with self._lock:
            self._planned.append(fault)

    def clear(self) -> None:
        with self._lock:
            self._planned.clear()

    def next(self, named: frozenset[str]) -> PlannedFault | None:
        """The fault that hits a request naming these methods, if one does; it counts as used."""
        if any(name.startswith(_CONTROL_PREFIX) for name in named):
            return None
        with self._lock:
            for fault in self._planned:
                if fault.hits(named):
                    fault.count -= 1
                    return fault
        return None


class Server(ThreadingHTTPServer):
    """Owns the socket, the fault plan and the request count; the node is behind `rpc`."""

    daemon_threads = True
    # Idle keep-alive connections would hold up a join for ever.
    block_on_close = False

    def __init__(self, node: DevnetNode, port: int, extra: Mapping[str, Method] | None = None) -> None:
        self.faults = FaultPlan()
        self.requests = 0
        self._count_lock = threading.Lock()
        own: dict[str, Method] = {"zuno_fault": self._fault, "zuno_stats": lambda *_: {"requests": self.requests}}
        self.rpc = Rpc(node, {**own, **(extra or {})})
        with _listening(port):
            super().__init__((HOST, port), _Handler)

    def server_bind(self) -> None:
        # HTTPServer would look up the host's full name here, which can ask a name server.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_port}"

    def count(self) -> None:
        with self._count_lock:
            self.requests += 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Logs what is not a client hanging up."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            _log.exception("a connection failed")

    def _fault(self, node: DevnetNode, given: Params) -> bool:
        """zuno_fault: plan a fault; without an argument, cancel all."""
        if given.get(0) is None:
            self.faults.clear()
        else:
            self.faults.plan(read_fault(params.record(given.require(0))))
        return True


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    # Without this, Nagle and delayed acknowledgements together add 40 ms to every answer.
    disable_nagle_algorithm = True
    # Buffered writes: head and body leave in one segment.
    wbufsize = -1

    def do_POST(self) -> None:
        self.server.count()
        obstacle = self._obstacle()
        if obstacle is not None:
            self.close_connection = True  # the body was not read, so the connection cannot be used again
            status, message = obstacle
            self._reply(status, message.encode(), "text/plain; charset=utf-8")
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        fault = self.server.faults.next(_methods_in(body))
        if fault is not None and fault.kind == "delay":
            time.sleep(fault.ms / 1000)
            fault = None
        if fault is None:
            self._reply(HTTPStatus.OK, self.server.rpc.answer(body))
            return
        answer = self.server.rpc.answer(body) if fault.processed else b'{"jsonrpc":"2.0"}'
        self._misbehave(fault, answer)

    def do_GET(self) -> None:
        """geth answers an empty 200, which health checks rely on."""
        self._reply(HTTPStatus.OK, b"")

    def log_message(self, format: str, *args: Any) -> None:
        """Overrides a line on stderr for each request."""

    def _obstacle(self) -> tuple[HTTPStatus, str] | None:
        """Why the body will not even be read."""
        if not _is_local(self.headers.get("Host", "")):
            return HTTPStatus.FORBIDDEN, "invalid host specified"
        if self.headers.get_content_type() != _JSON:
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"invalid content type, only {_JSON} is supported"
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            return HTTPStatus.LENGTH_REQUIRED, "content length required"
        if len(length) > _MAX_DIGITS or int(length) > _MAX_BODY:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "content length too large"
        return None

    def _reply(self, status: int, body: bytes, kind: str = _JSON) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _misbehave(self, fault: PlannedFault, answer: bytes) -> None:
        match fault.kind:
            case "status":
                self._reply(fault.status, b"the node is out of order", "text/plain")
            case "garbage":
                self._reply(HTTPStatus.OK, b'\x00\xff{"jsonrpc": <html>')
            case _:
                # Promise the whole answer, deliver half of it, and hang up.
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Type", _JSON)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer[: len(answer) // 2])
                self.close_connection = True


def check_port(port: int) -> None:
    """`Unavailable` unless the port is free; to be asked before a chain is built."""
    with _listening(port), socket.create_server((HOST, port)):
        pass


@contextmanager
def _listening(port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise Unavailable(f"Port {port} on {HOST} is taken; choose another one (0 picks a free one).") from error
        raise Unavailable(f"Nobody can listen on {HOST}:{port} ({error.strerror}); choose another port.") from error


@contextmanager
def serve(node: DevnetNode, port: int = 0, extra: Mapping[str, Method] | None = None) -> Iterator[str]:
    """Serve a node (and `extra` methods) for as long as the block lasts; yields its URL. Port 0 picks a free one."""
    server = Server(node, port, extra)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def serve_until_signalled(
    node: DevnetNode, port: int, on_ready: Callable[[str], None], extra: Mapping[str, Method] | None = None
) -> None:
    """Serve until SIGINT or SIGTERM; for a command line, so it must run in the main thread."""
    stop = threading.Event()
    previous = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with serve(node, port, extra) as url:
            on_ready(url)
            stop.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _methods_in(body: bytes) -> frozenset[str]:
    """The methods a body asks for; none if it cannot be read."""
    try:
        request = parse(body)
    except ValueError:
        return frozenset()
    requests = request if isinstance(request, list) else [request]
    return frozenset(str(item.get("method")) for item in requests if isinstance(item, dict))


def _is_local(host: str) -> bool:
    """A web page that rebinds its own name to 127.0.0.1 still sends that name: only addresses pass."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or bool(ipaddress.ip_address(name))
    except ValueError:
        return False
