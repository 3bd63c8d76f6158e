"""Who may ask: the owner's browser after its login, or a script with the token; on this machine's own name alone.

A session is the moment it was given and a signature by the token, so it outlives a restart and ends with the token.
What changes state wants a second word that another site cannot read (CSRF). Every answer carries a strict policy for
the page.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from fastapi import Response
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from zuno.doors.web.metrics import Metrics
from zuno.doors.web.problems import Problem, answer_problem
from zuno.kernel.units import Millis

DAY_MS: Final = 86_400_000
SESSION_MS: Final = 30 * DAY_MS
CLOCK_TOLERANCE_MS: Final = DAY_MS
"""By which the clock may have been set back since the login."""
MOST_BODY_BYTES: Final = 64 * 1024
LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
CSRF_HEADER: Final = "x-csrf-token"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
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
_SESSION: Final = re.compile(r"([0-9]{1,16})\.([0-9a-f]{32})\.([0-9a-f]{64})")
_LOWERS_RISK: Final = re.compile(r"/api/v1/(trading/(kill|pause)|lp/plans/[^/]+/cancel)")
_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::[0-9]{1,5})?")


class Turns:
    """A bucket that fills with time: so many at once, so many a second."""

    def __init__(self, at_once: int, per_second: float, stopwatch: Callable[[], float]) -> None:
        self._at_once = at_once
        self._per_second = per_second
        self._stopwatch = stopwatch
        self._left = float(at_once)
        self._at = stopwatch()

    def take(self) -> bool:
        now = self._stopwatch()
        self._left = min(float(self._at_once), self._left + max(0.0, now - self._at) * self._per_second)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, once that is known."""

    session: str | None
    """None: a script with the token."""


class Access:
    """What is checked of a request, and the two secrets that follow from the token."""

    def __init__(
        self,
        token: str,
        now: Callable[[], Millis],
        stopwatch: Callable[[], float],
        chance: Callable[[int], bytes],
        names: frozenset[str] = LOOPBACK_NAMES,
    ) -> None:
        """`names`: how this machine may be called. `stopwatch`: seconds that no clock change touches."""
        self._token = token
        self._now = now
        self._chance = chance
        self._names = names
        self._key = hashlib.sha256(b"zuno web session\n" + token.encode()).digest()
        self.cookie = f"zuno_{hashlib.sha256(b'zuno web cookie' + self._key).hexdigest()[:8]}"
        """Cookies know no ports: two homes on one machine have two names."""
        self._guesses = Turns(10, 1 / 6, stopwatch)
        self._looks = Turns(400, 100.0, stopwatch)
        self._acts = Turns(30, 2.0, stopwatch)
        self._stops = Turns(30, 2.0, stopwatch)
        """For what lowers risk: nothing else that is asked stands in its way."""

    # -- logging in

    def login(self, token: str) -> str:
        """A session for whoever has the token. `Problem` for a wrong one, or after too many."""
        self._check_token(token)
        body = f"{self._now()}.{self._chance(16).hex()}"
        return f"{body}.{self._sign('session', body)}"

    def csrf_token(self, session: str) -> str:
        return self._sign("csrf", session)

    # -- checking

    def check(self, method: str, path: str, headers: Mapping[str, str], cookies: str) -> Caller | None:
        """Who asks; None for what is open to everybody on this machine. `Problem` says what is missing."""
        self._check_host(headers.get("host", ""))
        if not path.startswith(_GUARDED):
            return None
        self._check_origin(headers)
        caller = self._identify(headers.get("authorization"), cookies)
        changes = method not in _SAFE
        if changes and caller.session is not None:
            sent = headers.get(CSRF_HEADER, "")
            if not hmac.compare_digest(sent.encode(), self.csrf_token(caller.session).encode()):
                raise Problem(403, f"The header {CSRF_HEADER} is missing or wrong; GET /api/v1/session gives it.")
        turns = self._looks if not changes else self._stops if _LOWERS_RISK.fullmatch(path) else self._acts
        if not turns.take():
            raise Problem(429, "Too many requests; wait a moment.")
        return caller

    def _check_host(self, host: str) -> None:
        """A name of ours: a foreign name that points here is DNS rebinding."""
        found = _HOST.fullmatch(host)
        if found is None or found[1].lower() not in self._names:
            raise Problem(421, "This machine is not called so here; open the link that `zuno web` printed.")

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        if origin is not None and origin.lower() != f"http://{headers.get('host', '')}".lower():
            raise Problem(403, "Another site asked for this.")
        if site not in ("same-origin", "none"):
            raise Problem(403, "Another site asked for this.")

    def _identify(self, authorization: str | None, cookies: str) -> Caller:
        if authorization is not None:
            scheme, _, token = authorization.partition(" ")
            if scheme.lower() != "bearer":
                raise Problem(401, "Authorization is `Bearer TOKEN`.")
            self._check_token(token.strip())
            return Caller(None)
        session = _read_cookie(cookies, self.cookie)
        if session is None:
            raise Problem(401, "Log in first: open the link that `zuno web` printed.")
        self._check_session(session)
        return Caller(session)

    def _check_token(self, token: str) -> None:
        if hmac.compare_digest(token.encode(), self._token.encode()):
            return
        if not self._guesses.take():
            raise Problem(429, "Too many wrong tokens; wait a minute.")
        raise Problem(401, "This is not the token of this home; `zuno web` prints the link that has it.")

    def _check_session(self, session: str) -> None:
        found = _SESSION.fullmatch(session)
        if found is None or not hmac.compare_digest(
            found[3].encode(), self._sign("session", f"{found[1]}.{found[2]}").encode()
        ):
            raise Problem(401, "This login is over: the token was changed. Open the link of `zuno web` again.")
        age = self._now() - int(found[1])
        if not -CLOCK_TOLERANCE_MS <= age < SESSION_MS:
            raise Problem(401, "This login has expired, or the clock was changed. Open the link of `zuno web` again.")

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}\n{text}".encode(), "sha256").hexdigest()


def _read_cookie(header: str, name: str) -> str | None:
    """Cookies know no ports: whatever another server on this machine has set comes along, well formed or not."""
    for part in header.split(";"):
        key, _, value = part.partition("=")
        if key.strip() == name:
            return value.strip()
    return None


class Guard:
    """The first thing a request meets: access, the size of its body, and the headers of every answer."""

    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics) -> None:
        self._app = app
        self._access = access
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        read_timer = self._metrics.start_timer()

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                cache = b"no-store" if scope["path"].startswith(_GUARDED) else b"no-cache"
                own = {name for name, _ in message["headers"]}  # a page of the lab has a policy of its own
                more = [*_RAW_HEADERS, (b"cache-control", cache)]
                message["headers"] = [*message["headers"], *(header for header in more if header[0] not in own)]
                self._metrics.count_answer(scope["method"], _name_route(scope), message["status"], read_timer())
            elif message["type"] == "http.response.body":
                self._metrics.count_bytes(len(message.get("body", b"")))
            await send(message)

        try:
            headers = Headers(scope=scope)
            cookies = "; ".join(headers.getlist("cookie"))
            scope.setdefault("state", {})["caller"] = self._access.check(
                scope["method"], scope["path"], headers, cookies
            )
            if scope["state"]["caller"] is not None and (connection := scope["state"].get("connection")) is not None:
                connection.recognise()
            body = await _read_body(headers, receive) if scope["method"] not in _SAFE else None
        except Problem as problem:
            await answer_problem(problem.view, _retry(problem))(scope, receive, send_guarded)
            return
        await self._app(scope, receive if body is None else _replay(body, receive), send_guarded)


def _name_route(scope: Scope) -> str:
    """As it is written in the code, whatever was asked for."""
    return str(getattr(scope.get("route"), "path", "other"))


def _retry(problem: Problem) -> dict[str, str]:
    match problem.view.status:
        case 429:
            return {"Retry-After": "10"}
        case 401:
            return {"WWW-Authenticate": "Bearer"}
        case _:
            return {}


async def _read_body(headers: Mapping[str, str], receive: Receive) -> bytes:
    """All of it, as far as it is not too large; what a header claims is believed only where it is too much."""
    claimed = headers.get("content-length", "0")
    if not claimed.isascii() or not claimed.isdigit() or int(claimed[:12]) > MOST_BODY_BYTES:
        raise Problem(413, f"A request may have {MOST_BODY_BYTES:,} bytes.")
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        parts.append(message.get("body", b""))
        if sum(map(len, parts)) > MOST_BODY_BYTES:
            raise Problem(413, f"A request may have {MOST_BODY_BYTES:,} bytes.")
        if not message.get("more_body", False):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


def set_session(response: Response, access: Access, session: str) -> None:
    response.set_cookie(access.cookie, session, max_age=SESSION_MS // 1000, httponly=True, samesite="strict", path="/")
