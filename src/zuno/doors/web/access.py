"""Who may ask: the owner's browser after its login, or a script with a token; on this machine's own name alone.

A browser shows two secrets: a cookie, which every server on this machine receives, and a header that only a page of
this very origin can send. Neither is given out for the other. Every answer carries a strict policy for the page.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from zuno.doors.web.metrics import Metrics
from zuno.doors.web.problems import Problem, answer_problem, describe_error
from zuno.doors.web_logins import LoginKind, Logins, LoginScope, hash_secret, hash_session
from zuno.kernel.backoff import TokenBucket
from zuno.kernel.errors import ZunoError
from zuno.kernel.logs import log_under

MOST_BODY_BYTES: Final = 64 * 1024
LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
SESSION_HEADER: Final = "x-zuno-session"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_RAW_HEADERS: Final = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_GUARDED: Final = ("/api/", "/metrics")
_SAFE: Final = frozenset({"GET", "HEAD"})
_LOWERS_RISK: Final = re.compile(r"/api/v1/(trading/(kill|pause)|lp/plans/[^/]+/cancel)")
_OWN_END: Final = "/api/v1/session"
"""The route that changes only the session of the caller."""
_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Caller:
    key: str
    """The hash that this home knows it by."""
    kind: LoginKind
    name: str
    """Of its token; of a session its id."""
    scope: LoginScope


class Access:
    """What is checked of a request. Nothing here needs a database."""

    def __init__(
        self,
        logins: Logins,
        cookie: str,
        stopwatch: Callable[[], float],
        names: frozenset[str] = LOOPBACK_NAMES,
        *,
        real_money: bool = False,
    ) -> None:
        """`cookie`: its name, of this home alone, for cookies know no ports. `names`: how this machine may be called.
        `stopwatch`: seconds that no clock change touches. `real_money`: acting needs the leave of `zuno web allow`."""
        self._logins = logins
        self.cookie = cookie
        self._names = names
        self._real_money = real_money
        self._stopwatch = stopwatch
        self._guesses = TokenBucket(1 / 6, 10)
        self._looks = TokenBucket(100.0, 400)
        self._acts = TokenBucket(2.0, 30)
        self._stops = TokenBucket(2.0, 30)
        """For what lowers risk: nothing else that is asked stands in its way."""

    # -- logging in and out

    async def log_in(self, code: str) -> tuple[str, str, LoginScope]:
        """Cookie, header and scope of a new session, for a code that was not used. `Problem` for a wrong one."""
        known = self._logins.find(hash_secret(code), "code")  # a wrong one costs neither a thread nor a write
        given = None if known is None else await asyncio.to_thread(self._logins.log_in, code)
        if given is None:
            raise self._count_guess("This link was used, or is older than two minutes; `zuno web link` prints another.")
        return given

    async def log_out(self, caller: Caller) -> None:
        if caller.kind == "session":
            await asyncio.to_thread(self._logins.list, "session", caller.name)

    # -- checking

    def check(self, method: str, path: str, headers: Mapping[str, str], cookies: str) -> Caller | None:
        """Who asks; None for what is open to everybody on this machine. `Problem` says what is missing."""
        self._check_host(headers.get("host", ""))
        changes = method not in _SAFE
        guarded = path.startswith(_GUARDED)
        if guarded or changes:
            self._check_origin(headers)
        if not guarded:
            return None
        caller = self._identify(headers.get("authorization"), headers.get(SESSION_HEADER), cookies)
        lowers_risk = _LOWERS_RISK.fullmatch(path) is not None
        if changes and path != _OWN_END:
            if caller.scope != "act":
                raise Problem(403, "This login may look and not act; `zuno web link` prints one that may.")
            if not lowers_risk and not self.may_act(caller):
                raise Problem(403, "Here is real money: type `zuno web allow --for 30m` at a terminal, then try again.")
        bucket = self._looks if not changes else self._stops if lowers_risk else self._acts
        if not bucket.try_take(self._millis()):
            raise Problem(429, "Too many requests; wait a moment.")
        return caller

    def _millis(self) -> int:
        return int(1000 * self._stopwatch())

    def may_act(self, caller: Caller) -> bool:
        """Beyond what lowers risk."""
        return caller.scope == "act" and (not self._real_money or self._logins.allowed_until() is not None)

    def lasts(self, caller: Caller) -> bool:
        """Whether the login is still valid: neither ended nor expired."""
        return self._logins.find(caller.key, caller.kind) is not None

    def _check_host(self, host: str) -> None:
        """A name of ours: a foreign name that points here is DNS rebinding."""
        match = _HOST.fullmatch(host)
        if match is None or match[1].lower() not in self._names:
            raise Problem(421, "This machine is not called so here; open the link that `zuno web` printed.")

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        foreign = origin is not None and origin.lower() != f"http://{headers.get('host', '')}".lower()
        if foreign or site not in ("same-origin", "none"):
            raise Problem(403, "Another site asked for this.")

    def _identify(self, authorization: str | None, secret: str | None, cookies: str) -> Caller:
        if authorization is not None:
            scheme, _, given = authorization.partition(" ")
            if scheme.lower() != "bearer":
                raise Problem(401, "Authorization is `Bearer TOKEN`; `zuno web token create` makes one.")
            if (caller := self._find(hash_secret(given.strip()), "token")) is None:
                raise self._count_guess("This is no token of this home; `zuno web token create` makes one.")
            return caller
        for cookie in _read_cookies(cookies, self.cookie) if secret is not None else ():
            if (caller := self._find(hash_session(cookie, secret or ""), "session")) is not None:
                return caller
        raise Problem(
            401,
            "Log in first, by the link that `zuno web link` prints. A script sends `Authorization: Bearer TOKEN`, "
            "made by `zuno web token create`.",
        )

    def _find(self, key: str, kind: LoginKind) -> Caller | None:
        login = self._logins.find(key, kind)
        return None if login is None else Caller(key, kind, login.name, login.scope)

    def _count_guess(self, detail: str) -> Problem:
        if not self._guesses.try_take(self._millis()):
            return Problem(429, "Too many wrong tokens and codes; wait a minute.")
        return Problem(401, detail)


def _read_cookies(header: str, name: str) -> list[str]:
    """Cookies know no ports: whatever another server on this machine has set comes along, by the same name too."""
    pairs = (part.partition("=") for part in header.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]


class Guard:
    """The first thing a request meets: access, the size of its body, and the headers of every answer."""

    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics, chance: Callable[[int], bytes]) -> None:
        """`chance`: for the ids that requests are logged by."""
        self._app = app
        self._access = access
        self._metrics = metrics
        self._chance = chance

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        id = f"http_{self._chance(6).hex()}"
        with log_under(id):
            await self._answer(scope, receive, send, id.encode())

    async def _answer(self, scope: Scope, receive: Receive, send: Send, id: bytes) -> None:
        scope.setdefault("state", {})
        read_timer = self._metrics.start_timer()

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                cache = b"no-store" if scope["path"].startswith(_GUARDED) else b"no-cache"
                own = {name for name, _ in message["headers"]}  # a page of the lab has a policy of its own
                more = [*_RAW_HEADERS, (b"cache-control", cache), (b"x-request-id", id)]
                message["headers"] = [*message["headers"], *(header for header in more if header[0] not in own)]
                route = str(getattr(scope.get("route"), "path", "other"))  # as the code has it, whatever was asked for
                self._metrics.count_answer(scope["method"], route, message["status"], read_timer())
            elif message["type"] == "http.response.body":
                self._metrics.count_bytes(len(message.get("body", b"")))
            await send(message)

        try:
            headers = Headers(scope=scope)
            cookies = "; ".join(headers.getlist("cookie"))
            caller, state = self._access.check(scope["method"], scope["path"], headers, cookies), scope["state"]
            state["caller"] = caller
            if caller is not None and "connection" in state:
                state["connection"].recognise()
            if scope["method"] not in _SAFE:
                receive = _limit_body(headers, receive)
        except (Problem, ZunoError) as error:
            view = describe_error(error)
            await answer_problem(view, _RETRY.get(view.status))(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)


_RETRY: Final = {429: {"Retry-After": "10"}, 401: {"WWW-Authenticate": "Bearer"}}


def _limit_body(headers: Mapping[str, str], receive: Receive) -> Receive:
    """Ends in a `Problem` as soon as too much has come; what a header claims is believed only where it is too much."""
    claimed, received = headers.get("content-length", "0"), 0
    too_large = Problem(413, f"A request may have {MOST_BODY_BYTES:,} bytes.")
    if not claimed.isascii() or not claimed.isdigit() or int(claimed[:12]) > MOST_BODY_BYTES:
        raise too_large

    async def receive_limited() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > MOST_BODY_BYTES:
            raise too_large
        return message

    return receive_limited
