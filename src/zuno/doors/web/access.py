"""Who may ask: the owner's browser after its login, or a script with a token; on this machine's own name alone.

A browser shows two secrets: a cookie, which every server on this machine receives, and a header that only a page of
this very origin can send. Neither is given out for the other. Every answer carries a strict policy for the page.
Behind a public URL the page has one more name, named proxies say who the client is, and acting needs a second factor.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from zuno.doors.web.metrics import Metrics
from zuno.doors.web.problems import Problem, answer_problem, describe_error
from zuno.doors.web_logins import LoginKind, Logins, LoginScope, WebLoginView, hash_secret, hash_session
from zuno.kernel.backoff import TokenBucket
from zuno.kernel.errors import ZunoError
from zuno.kernel.logs import log_under
from zuno.kernel.public_site import LOOPBACK_NAMES, PublicSite, parse_address

MOST_BODY_BYTES: Final = 64 * 1024
SESSION_HEADER: Final = "x-zuno-session"
FACTOR_HEADER: Final = "x-zuno-factor"
SHOWN_HEADER: Final = "x-zuno-shown"
"""Of an answer that only shows what the act would be: the code that was given is good for the act too."""
KEPT_SECONDS: Final = 120.0
"""How long a code that led to no act stays good, for the same caller and the same act."""
PROBES: Final = frozenset({"/livez", "/readyz", "/healthz"})
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
_LOWERS_RISK: Final = re.compile(
    r"/api/v1/(trading/(kill|pause|cancel|revoke)|lp/(plans/[^/]+/cancel|mandates/(pause|revoke)))"
)
_OWN_END: Final = "/api/v1/session"
"""The route that changes only the session of the caller."""
_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Caller:
    key: str
    """The hash that this home knows it by."""
    login: WebLoginView


@dataclass(eq=False)
class _ClientBuckets:
    """A `TokenBucket` for each client; whoever asked longest ago makes room."""

    rate: float
    burst: float
    _buckets: dict[str, TokenBucket] = field(default_factory=dict)

    def try_take(self, client: str, now: int) -> bool:
        bucket = self._buckets[client] = self._buckets.pop(client, TokenBucket(self.rate, self.burst))
        _drop_oldest(self._buckets, 4_096)
        return bucket.try_take(now)


def _drop_oldest(known: dict[str, Any], most: int) -> None:
    while len(known) > most:
        del known[next(iter(known))]


@dataclass(eq=False)
class Access:
    """What is checked of a request. Nothing here needs a database."""

    logins: Logins
    cookie: str
    """Its name, of this home alone, for cookies know no ports."""
    stopwatch: Callable[[], float]
    """Seconds that no clock change touches."""
    names: frozenset[str] = LOOPBACK_NAMES
    """How this machine may be called."""
    _: KW_ONLY
    real_money: bool = False
    """Acting needs the leave of `zuno web allow`."""
    site: PublicSite | None = None
    """The public address, if there is one; then acting needs a code of the second factor too."""

    def __post_init__(self) -> None:
        self.base = "" if self.site is None else self.site.base
        self._names = self.names if self.site is None else self.names | {self.site.name}
        self._kept: dict[str, tuple[str, float]] = {}
        """Codes by whose they are and for which act, and until when they are good for it, while it is not done."""
        self._acting: set[str] = set()
        self._guesses = _ClientBuckets(1 / 6, 10)
        self._probes = _ClientBuckets(5.0, 20)
        self._looks = TokenBucket(100.0, 400)
        self._acts = TokenBucket(2.0, 30)
        self._stops = TokenBucket(2.0, 30)
        """For what lowers risk: nothing else that is asked stands in its way."""

    def set_cookie(self, response: Response, cookie: str, age: int) -> None:
        """For the pages under the base path alone; `age`: in seconds, 0 ends it."""
        encrypted = self.site is not None and self.site.scheme == "https"
        place = f"{self.base}/"
        response.set_cookie(self.cookie, cookie, age, path=place, secure=encrypted, httponly=True, samesite="strict")

    async def log_in(self, code: str, client: str = "") -> tuple[str, str, LoginScope]:
        """Cookie, header and scope of a new session, for a code that was not used. `Problem` for a wrong one."""
        known = self.logins.find(hash_secret(code), "code")  # a wrong one costs neither a thread nor a write
        given = None if known is None else await asyncio.to_thread(self.logins.log_in, code, client)
        if given is None:
            why = "This link was used, or is older than two minutes; `zuno web link` prints another."
            raise self._count_guess(why, client)
        return given

    async def log_out(self, caller: Caller) -> None:
        if caller.login.kind == "session":
            await asyncio.to_thread(self.logins.list, "session", caller.login.name)

    def check(
        self, method: str, path: str, headers: Mapping[str, str], cookies: str, client: str = ""
    ) -> Caller | None:
        """Who asks; None for what is open to everybody on this machine. `Problem` says what is missing."""
        if _name_of(headers.get("host", "")) not in self._names:  # a foreign name that points here: DNS rebinding
            raise Problem(421, "This machine is not called so here; open the link that `zuno web` printed.")
        if path in PROBES and not self._probes.try_take(client, self._millis()):
            raise Problem(429, "Too many requests; wait a moment.")
        changes = method not in _SAFE
        guarded = path.startswith(_GUARDED)
        if guarded or changes:
            self._check_origin(headers)
        if not guarded:
            return None
        caller = self._identify(headers.get("authorization"), headers.get(SESSION_HEADER), cookies, client)
        lowers_risk = _LOWERS_RISK.fullmatch(path) is not None
        if changes and path != _OWN_END:
            if caller.login.scope != "act":
                raise Problem(403, "This login may look and not act; `zuno web link` prints one that may.")
            if not lowers_risk and not self.may_act(caller):
                raise Problem(403, "Here is real money: type `zuno web allow --for 30m` at a terminal, then try again.")
        bucket = self._looks if not changes else self._stops if lowers_risk else self._acts
        if not bucket.try_take(self._millis()):
            raise Problem(429, "Too many requests; wait a moment.")
        return caller

    def needs_factor(self, method: str, path: str) -> bool:
        """Every act behind a public URL, except those that lower risk."""
        guarded = method not in _SAFE and path.startswith(_GUARDED)
        return self.site is not None and guarded and path != _OWN_END and _LOWERS_RISK.fullmatch(path) is None

    async def begin_act(self, caller: Caller, path: str, code: str | None) -> str:
        """Use up a code of the second factor, and return the act's id for `end_act`. `Problem` without one."""
        act = hash_secret(f"{caller.key}\n{path}")
        if act in self._acting:
            raise Problem(409, "This is being done already; wait for its answer.")
        kept, until = self._kept.pop(act, (None, 0.0))
        self._acting.add(act)
        try:
            if code is None or code != kept or self.stopwatch() >= until:
                await self._take_code(code)
        except BaseException:
            self._acting.discard(act)
            raise
        return act

    def end_act(self, act: str, code: str | None) -> None:
        """`code`: of an act that was only shown, or refused; it stays good for that one."""
        self._acting.discard(act)
        if code is not None:
            self._kept[act] = code, self.stopwatch() + KEPT_SECONDS
            _drop_oldest(self._kept, 100)

    async def _take_code(self, code: str | None) -> None:
        factors = self.logins.factors
        if not (await asyncio.to_thread(factors.list)).factors:
            add = "type `zuno web factor add totp NAME` at a terminal, then try again."
            raise Problem(403, f"Acting from outside needs a second factor: {add}", "factor-missing")
        verdict = "absent" if code is None else await asyncio.to_thread(factors.take, code.strip())
        if verdict == "locked":
            raise Problem(429, "Too many wrong codes: none is taken for some minutes.", "factor-locked")
        if verdict != "right":
            raise Problem(403, f"{_VERDICTS.get(verdict, _WRONG)} ({FACTOR_HEADER})", "factor")

    def _millis(self) -> int:
        return int(1000 * self.stopwatch())

    def may_act(self, caller: Caller) -> bool:
        """Beyond what lowers risk."""
        return caller.login.scope == "act" and (not self.real_money or self.logins.allowed_until() is not None)

    def lasts(self, caller: Caller) -> bool:
        return self.logins.find(caller.key, caller.login.kind) is not None

    def _check_origin(self, headers: Mapping[str, str]) -> None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        host = headers.get("host", "").lower()
        own = {f"http://{host}"}
        if self.site is not None:
            own = {self.site.origin} | (own if _name_of(host) in LOOPBACK_NAMES else set())
        foreign = origin is not None and origin.lower() not in own
        if foreign or site not in ("same-origin", "none"):
            raise Problem(403, "Another site asked for this.")

    def _identify(self, authorization: str | None, secret: str | None, cookies: str, client: str) -> Caller:
        if authorization is not None:
            scheme, _, given = authorization.partition(" ")
            if scheme.lower() != "bearer":
                raise Problem(401, "Authorization is `Bearer TOKEN`; `zuno web token create` makes one.")
            if (caller := self._find(hash_secret(given.strip()), "token")) is None:
                raise self._count_guess("This is no token of this home; `zuno web token create` makes one.", client)
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
        login = self.logins.find(key, kind)
        return None if login is None else Caller(key, login)

    def _count_guess(self, detail: str, client: str) -> Problem:
        if not self._guesses.try_take(client, self._millis()):
            return Problem(429, "Too many wrong tokens and codes; wait a minute.")
        return Problem(401, detail)


_WRONG: Final = "This is not the code of now; are both clocks right?"
_VERDICTS: Final = {"absent": "Type the code of your authenticator app.", "used": "This code was used; take the next."}


def _name_of(host: str) -> str | None:
    match = _HOST.fullmatch(host)
    return None if match is None else match[1].lower()


def _read_cookies(header: str, name: str) -> list[str]:
    """Cookies know no ports: whatever another server on this machine has set comes along, by the same name too."""
    pairs = (part.partition("=") for part in header.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]


@dataclass(eq=False)
class Guard:
    """The first thing a request meets: access, the size of its body, and the headers of every answer."""

    app: ASGIApp
    access: Access
    metrics: Metrics
    chance: Callable[[int], bytes]
    """For the ids that requests are logged by."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        id = f"http_{self.chance(6).hex()}"
        with log_under(id):
            await self._answer(scope, receive, send, id.encode())

    async def _answer(self, scope: Scope, receive: Receive, send: Send, id: bytes) -> None:
        scope.setdefault("state", {})
        read_timer = self.metrics.start_timer()
        act, code, kept, site = "", None, None, self.access.site
        client, over_http = str((scope.get("client") or ("",))[0]), False
        if site is not None:
            client, over_http = _read_proxy(scope, site, client)
        scope["state"]["client"] = client
        path = scope["path"][len(self.access.base) :]

        async def send_guarded(message: Message) -> None:
            nonlocal kept
            if message["type"] == "http.response.start":
                cache = b"no-store" if path.startswith(_GUARDED) else b"no-cache"
                own = {name for name, _ in message["headers"]}  # a page of the lab has a policy of its own
                more = [*_RAW_HEADERS, (b"cache-control", cache), (b"x-request-id", id)]
                message["headers"] = [*message["headers"], *(header for header in more if header[0] not in own)]
                route = str(getattr(scope.get("route"), "path", "other"))  # as the code has it, whatever was asked for
                self.metrics.count_answer(scope["method"], route, message["status"], read_timer())
                if 400 <= message["status"] < 500 or SHOWN_HEADER.encode() in own:
                    kept = code  # nothing was done by it; of an answer that never came nobody knows
            elif message["type"] == "http.response.body":
                self.metrics.count_bytes(len(message.get("body", b"")))
            await send(message)

        try:
            headers = Headers(scope=scope)
            cookies = "; ".join(headers.getlist("cookie"))
            if over_http and path not in PROBES:
                raise Problem(403, "This page is open over https alone.", "tls")
            caller, state = self.access.check(scope["method"], path, headers, cookies, client), scope["state"]
            state["caller"] = caller
            if caller is not None and self.access.needs_factor(scope["method"], path):
                code = headers.get(FACTOR_HEADER)
                act = await self.access.begin_act(caller, path, code)
            if caller is not None and "connection" in state:
                state["connection"].recognise()
            if scope["method"] not in _SAFE:
                receive = _limit_body(headers, receive)
        except (Problem, ZunoError) as error:
            view = describe_error(error)
            await answer_problem(view, _RETRY.get(view.status))(scope, receive, send_guarded)
            return
        if not path:
            await RedirectResponse(f"{self.access.base}/", 307)(scope, receive, send_guarded)
            return
        try:
            await self.app(scope, receive, send_guarded)
        finally:
            if act:
                self.access.end_act(act, kept)


def _read_proxy(scope: Scope, site: PublicSite, peer: str) -> tuple[str, bool]:
    """The client as named proxies know it, and whether it came without TLS: past every proxy nobody has it, and only
    this machine itself may. Name, scheme and path become those of the
    public address; a proxy may cut the base path off or leave it. Of anybody else these headers are worth nothing."""
    headers = MutableHeaders(scope=scope)
    given = {name: ", ".join(headers.getlist(f"x-forwarded-{name}")) for name in ("for", "proto", "host")}
    encrypted, address = site.scheme == "https", parse_address(peer)
    client, over_http = peer, encrypted and address is not None and not address.is_loopback
    if site.trusts(peer):
        client = site.find_client(peer, given["for"])
        proto, host = (given[name].rpartition(",")[2].strip().lower() for name in ("proto", "host"))
        over_http = encrypted and proto == "http"
        if host:
            headers["host"] = host
        if proto == site.scheme:
            scope["scheme"] = proto
    whole = str(scope["path"])
    if whole != site.base and not whole.startswith(f"{site.base}/"):
        scope["path"] = f"{site.base}{whole}"
    scope["root_path"] = site.base
    return client, over_http


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
