"""Who may ask the page: browsers' sessions, scripts' tokens and one-time codes, in one small file of the home.

Secrets are given out once and kept as hashes. The server and the commands beside it read and change the same file.
The second factor (TOTP, RFC 6238) has a file of its own, for its secrets are kept as they are.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b32decode, b32encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeVar

from pydantic import Field

from zuno.kernel.arguments import parse_span
from zuno.kernel.errors import Broken, NotFound, Refused, UsageError, ZunoError
from zuno.kernel.units import Millis
from zuno.kernel.view import View
from zuno.present.document import Document, Mark, document, lines, table
from zuno.present.values import when

T = TypeVar("T")
LoginScope = Literal["look", "act"]
LoginKind = Literal["code", "session", "token"]
CodeVerdict = Literal["right", "wrong", "used", "locked", "none"]
"""`used`: right, and taken before. `none`: there is no factor."""
CODE_MS: Final = 120_000
DAY_MS: Final = 86_400_000
IDLE_MS: Final = 7 * DAY_MS
SESSION_MS: Final = 30 * DAY_MS
SEEN_MS: Final = 3_600_000
CLOCK_TOLERANCE_MS: Final = DAY_MS
"""By which the clock may have been set back since the login."""
LONGEST_ALLOWANCE_MS: Final = DAY_MS
ALL: Final = "all"
STEP_MS: Final = 30_000
"""A code's time step; one before and one after now are taken too."""
DIGITS: Final = 6
MOST_WRONG: Final = 5
"""Wrong codes in a row after which none is taken for a time."""
LOCKED_MS: Final = 300_000
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


class LoginFile(Protocol):
    def stamp(self) -> object | None:
        """Another one after every change; None: no file. Needs no descriptor."""

    def read(self) -> bytes | None: ...

    def change(self, make: Callable[[bytes | None], tuple[bytes, T]], *, wait: bool = True) -> T:
        """Replace what was read by what `make` answers, one process at a time. `wait`: for others, and for the disk."""


class WebLoginView(View):
    kind: LoginKind
    name: str
    """Of a token; of a session its id."""
    scope: LoginScope
    made: int
    """Unix milliseconds."""
    seen: int
    """When it was last used, to the hour."""
    token: str | None = None
    """Shown when it is made, and never again."""
    client: str | None = None
    """The address that a session was begun from."""

    def to_document(self) -> Document:
        return document("", lines(self.token or "", f"Token {self.name} (scope {self.scope}); it is shown this once."))

    def lasts(self, now: int) -> bool:
        match self.kind:
            case "code":
                return self.made <= now < self.made + CODE_MS
            case "session":
                return self.made - CLOCK_TOLERANCE_MS <= now < min(self.made + SESSION_MS, self.seen + IDLE_MS)
            case "token":
                return True


class WebLoginsView(View):
    logins: tuple[WebLoginView, ...]

    def to_document(self) -> Document:
        if not self.logins:
            return document("None.")
        rows = (
            (login.name, login.scope, when(login.made // 1000), when(login.seen // 1000), login.client or "–")
            for login in self.logins
        )
        return document("", table(("name", "scope", "made", "last used", "from"), rows))


class WebLinkView(View):
    url: str
    """With a code that is good for one login."""
    scope: LoginScope
    expires: int
    """Unix milliseconds."""

    def to_document(self) -> Document:
        until = when(self.expires // 1000).text
        return document(
            "", lines(self.url, mark=Mark.VERBATIM), lines(f"One login (scope {self.scope}), until {until}.")
        )


class WebAllowanceView(View):
    until: int | None
    """Unix milliseconds; null: in a home with real money the page may not act."""

    def to_document(self) -> Document:
        if self.until is None:
            return document("In a home with real money the page may not act; `zuno web allow --for 30m` lets it.")
        return document(f"The page may act with real money until {when(self.until // 1000).text}.")


class LoginBook(View):
    format: Literal[1] = 1
    url: str | None = None
    """Where the page is served, or was."""
    logins: dict[str, WebLoginView] = Field(default_factory=dict)
    """By the hash of their secret; a session's is that of its cookie and its header."""
    allowed: tuple[int, int] | None = None
    """From when until when the page may act with real money."""


@dataclass(eq=False)
class Logins:
    file: LoginFile
    factors: Factors
    now: Callable[[], Millis]
    chance: Callable[[int], bytes]
    served: Callable[[], bool] = lambda: True
    """Whether a page of this home is being served."""
    _stamp: object | None = field(default=None, init=False)
    _book: LoginBook = field(default_factory=LoginBook, init=False)

    def link(self, scope: LoginScope) -> WebLinkView:
        """`Refused` where no page is served."""
        url = self._load().url
        if url is None or not self.served():
            raise Refused("No page of this home is served; `zuno web` serves it, and prints a link.")
        code, new = self.chance(16).hex(), self._build("code", "", scope)
        self._update(lambda book: {"logins": book.logins | {hash_secret(code): new}})
        return WebLinkView(url=f"{url}#login={code}", scope=scope, expires=new.made + CODE_MS)

    def create_token(self, name: str, scope: LoginScope) -> WebLoginView:
        if _NAME.fullmatch(name) is None:
            raise UsageError("A token's name has up to 40 letters, digits, dots, dashes and underscores.")
        token, new = self.chance(32).hex(), self._build("token", name, scope)

        def add(book: LoginBook) -> dict[str, Any]:
            if any((known.kind, known.name) == ("token", name) for known in book.logins.values()):
                raise Refused(f"There is a token {name} already; `zuno web token revoke {name}` ends it.")
            return {"logins": book.logins | {hash_secret(token): new}}

        self._update(add)
        return new.model_copy(update={"token": token})

    def list(self, kind: LoginKind, end: str | None = None) -> WebLoginsView:
        """Those that last; `end`: after the one of this name was ended, or `all` sessions. `NotFound` where none is."""

        def drop(book: LoginBook) -> dict[str, Any]:
            every = kind == "session" and end == ALL
            items = book.logins.items()
            kept = {key: login for key, login in items if login.kind != kind or not (every or login.name == end)}
            if not every and len(kept) == len(book.logins):
                raise NotFound(f"No {kind} of this home is called so.")
            return {"logins": kept}

        logins = (self._load() if end is None else self._update(drop)).logins.values()
        return WebLoginsView(logins=tuple(login for login in logins if login.kind == kind and login.lasts(self.now())))

    def allow(self, span: str | None = None, *, end: bool = False) -> WebAllowanceView:
        """Let the page act with real money for a time, or no longer; with neither, say whether it may."""
        if span is not None or end:
            length = 0 if span is None else parse_span(span) * 1_000
            if end is not (span is None) or length > LONGEST_ALLOWANCE_MS or (length == 0 and not end):
                raise UsageError("Give --for a length of time up to 1d, as 30m, or --end.")
            now = self.now()
            self._update(lambda book: {"allowed": None if end else (now, now + length)})
        return WebAllowanceView(until=self.allowed_until())

    def start(self, url: str, *, end_sessions: bool) -> None:
        """The page is served there from now on."""
        if end_sessions:
            self.list("session", ALL)
        self._update(lambda book: {"url": url})

    def log_in(self, code: str, client: str = "") -> tuple[str, str, LoginScope] | None:
        """Cookie, header and scope of a new session, for a code that is used up by it."""
        cookie, secret, given = self.chance(32).hex(), self.chance(32).hex(), self.find(hash_secret(code), "code")
        if given is None:
            return None
        session = self._build("session", self.chance(4).hex(), given.scope)
        session = session.model_copy(update={"client": client or None})

        def redeem(book: LoginBook) -> dict[str, Any]:
            left = {key: login for key, login in book.logins.items() if key != hash_secret(code)}
            new = {hash_session(cookie, secret): session} if len(left) < len(book.logins) else {}
            return {"logins": left | new}

        done = self._update(redeem)
        return (cookie, secret, session.scope) if hash_session(cookie, secret) in done.logins else None

    def find(self, key: str, kind: LoginKind) -> WebLoginView | None:
        """By its hash, if neither anybody nor time has ended it."""
        login, now = self._load().logins.get(key), self.now()
        if login is None or login.kind != kind or not login.lasts(now):
            return None
        if now - login.seen >= SEEN_MS:
            used = {key: login.model_copy(update={"seen": now})}
            with suppress(ZunoError):  # nobody who asks waits for it
                self._update(lambda book: {"logins": book.logins | used} if key in book.logins else {}, wait=False)
        return login

    def allowed_until(self) -> int | None:
        allowed = self._load().allowed
        return allowed[1] if allowed is not None and _is_within(allowed, self.now()) else None

    def _build(self, kind: LoginKind, name: str, scope: LoginScope) -> WebLoginView:
        now = self.now()
        return WebLoginView(kind=kind, name=name, scope=scope, made=now, seen=now)

    def _load(self) -> LoginBook:
        """Read again only when the file has changed. One that cannot be read just now leaves what was known."""
        stamp = self.file.stamp()
        if stamp != self._stamp:
            try:
                self._book, self._stamp = _parse(self.file.read()), stamp
            except ZunoError:
                if self._stamp is None:
                    raise
        return self._book

    def _update(self, make: Callable[[LoginBook], dict[str, Any]], *, wait: bool = True) -> LoginBook:
        def rewrite(content: bytes | None) -> tuple[bytes, LoginBook]:
            book, now = _parse(content), self.now()
            lasting = {key: login for key, login in book.logins.items() if login.lasts(now)}
            book = book.model_copy(update={"logins": lasting})
            book = book.model_copy(update=make(book))
            return book.model_dump_json(indent=1).encode(), book

        return self.file.change(rewrite, wait=wait)


def _parse(content: bytes | None) -> LoginBook:
    try:
        return LoginBook() if content is None else LoginBook.model_validate_json(content)
    except ValueError as error:
        raise Broken("web-logins.json is damaged; delete it, then log in and make tokens anew.") from error


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def hash_session(cookie: str, secret: str) -> str:
    """Of what both have to be there."""
    return hash_secret(f"{cookie}\n{secret}")


class FactorView(View):
    kind: Literal["totp"] = "totp"
    name: str
    made: int
    """Unix milliseconds."""
    secret: str = ""
    """In base 32; shown when it is made, and never again."""
    last_step: int = -1
    """Of the newest code that was taken: neither it nor an older one is taken again."""

    def to_document(self) -> Document:
        what = f"issuer=Zuno&algorithm=SHA1&digits={DIGITS}&period={STEP_MS // 1000}"
        uri = f"otpauth://{self.kind}/Zuno:{self.name}?secret={self.secret}&{what}"
        return document("", lines(uri, mark=Mark.VERBATIM), lines("For your authenticator app; it is shown this once."))


class FactorsView(View):
    factors: tuple[FactorView, ...] = ()
    wrong: int = 0
    locked: tuple[int, int] | None = None
    """From when until when no code is taken, after too many wrong ones."""

    def to_document(self) -> Document:
        rows = [(factor.name, factor.kind, when(factor.made // 1000)) for factor in self.factors]
        locked = [] if self.locked is None else [f"No code is taken until {when(self.locked[1] // 1000).text}."]
        return document(
            "" if rows else "No second factors; `zuno web factor add totp NAME` makes one.",
            table(("name", "kind", "made"), rows) if rows else None,
            lines(*locked),
        )


@dataclass(eq=False)
class Factors:
    """`take` is the server's, the others the terminal's alone."""

    file: LoginFile
    now: Callable[[], Millis]
    chance: Callable[[int], bytes]

    def add(self, kind: str, name: str) -> FactorView:
        if kind != "totp" or _NAME.fullmatch(name) is None:
            raise UsageError("A factor is `totp NAME`; a name has up to 40 letters, digits, dots, dashes, underscores.")
        new = FactorView(name=name, made=self.now(), secret=b32encode(self.chance(20)).decode("ascii"))

        def append(book: FactorsView) -> tuple[FactorsView, FactorView]:
            if any(factor.name == name for factor in book.factors):
                raise Refused(f"There is a factor {name} already; `zuno web factor remove {name}` ends it.")
            return book.model_copy(update={"factors": (*book.factors, new)}), new

        return self._update(append)

    def list(self) -> FactorsView:
        """Without their secrets."""
        book = _parse_factors(self.file.read())
        shown = tuple(factor.model_copy(update={"secret": ""}) for factor in book.factors)
        locked = book.locked if _is_within(book.locked, self.now()) else None
        return book.model_copy(update={"factors": shown, "locked": locked})

    def remove(self, name: str) -> FactorsView:
        def drop(book: FactorsView) -> tuple[FactorsView, None]:
            kept = tuple(factor for factor in book.factors if factor.name != name)
            if len(kept) == len(book.factors):
                raise NotFound("No factor of this home is called so; `zuno web factor list` shows them.")
            return FactorsView(factors=kept), None

        self._update(drop)
        return self.list()

    def take(self, code: str) -> CodeVerdict:
        """A right code is used up, among all processes."""

        def use(book: FactorsView) -> tuple[FactorsView, CodeVerdict]:
            now = self.now()
            if not book.factors or _is_within(book.locked, now):
                return book, "locked" if book.factors else "none"
            for place, factor in enumerate(book.factors):
                if (step := match_step(factor.secret, code, now)) is not None:
                    spent = factor.model_copy(update={"last_step": step})
                    left = (*book.factors[:place], spent, *book.factors[place + 1 :])
                    return (FactorsView(factors=left), "right") if step > factor.last_step else (book, "used")
            wrong = (book.wrong + 1) % MOST_WRONG
            return FactorsView(
                factors=book.factors, wrong=wrong, locked=None if wrong else (now, now + LOCKED_MS)
            ), "wrong"

        return self._update(use)

    def _update(self, make: Callable[[FactorsView], tuple[FactorsView, T]]) -> T:
        def rewrite(content: bytes | None) -> tuple[bytes, T]:
            book, answer = make(_parse_factors(content))
            return book.model_dump_json(indent=1).encode(), answer

        return self.file.change(rewrite)


def match_step(secret: str, code: str, now: int) -> int | None:
    """The newest time step near now that a code belongs to."""
    steps = range(now // STEP_MS + 1, now // STEP_MS - 2, -1)
    given = code.encode("utf-8", "replace")
    return next((step for step in steps if hmac.compare_digest(write_code(secret, step).encode(), given)), None)


def write_code(secret: str, step: int) -> str:
    """RFC 4226 with the time step as its counter."""
    digest = hmac.digest(b32decode(secret), step.to_bytes(8, "big"), "sha1")
    start = digest[-1] & 0x0F
    number = int.from_bytes(digest[start : start + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}}"


def _is_within(span: tuple[int, int] | None, now: int) -> bool:
    return span is not None and span[0] <= now < span[1]


def _parse_factors(content: bytes | None) -> FactorsView:
    try:
        return FactorsView() if content is None else FactorsView.model_validate_json(content)
    except ValueError:
        raise Broken("web-factors.json is damaged; delete it, then add the factors anew.") from None
