"""Who may ask the page: browsers' sessions, scripts' tokens and one-time codes, in one small file of the home.

Secrets are given out once and kept as hashes. The server and the commands beside it read and change the same file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Literal, Protocol, TypeVar

from pydantic import Field

from zuno.kernel.arguments import parse_span
from zuno.kernel.errors import Broken, NotFound, Refused, UsageError, ZunoError
from zuno.kernel.units import Millis
from zuno.kernel.view import View

T = TypeVar("T")
LoginScope = Literal["look", "act"]
CODE_MS: Final = 120_000
DAY_MS: Final = 86_400_000
IDLE_MS: Final = 7 * DAY_MS
SESSION_MS: Final = 30 * DAY_MS
SEEN_MS: Final = 3_600_000
CLOCK_TOLERANCE_MS: Final = DAY_MS
"""By which the clock may have been set back since the login."""
LONGEST_ALLOWANCE_MS: Final = DAY_MS
ALL: Final = "all"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


class LoginFile(Protocol):
    def stamp(self) -> object | None:
        """Another one after every change; None: no file. Needs no descriptor."""
        ...

    def read(self) -> bytes: ...

    def change(self, make: Callable[[bytes], tuple[bytes, T]], *, wait: bool = True) -> T:
        """Replace what was read by what `make` answers, one process at a time. `wait`: for others, and for the disk."""
        ...


class WebSessionView(View):
    id: str
    scope: LoginScope
    begun: int
    """Unix milliseconds."""
    seen: int
    """When it was last used, to the hour."""

    def lasts(self, now: int) -> bool:
        return self.begun - CLOCK_TOLERANCE_MS <= now < min(self.begun + SESSION_MS, self.seen + IDLE_MS)


class WebSessionsView(View):
    sessions: tuple[WebSessionView, ...]


class WebTokenView(View):
    name: str
    scope: LoginScope
    made: int
    """Unix milliseconds."""
    token: str | None = None
    """Shown when it is made, and never again."""


class WebTokensView(View):
    tokens: tuple[WebTokenView, ...]


class WebLinkView(View):
    url: str
    """With a code that is good for one login."""
    scope: LoginScope
    expires: int
    """Unix milliseconds."""


class WebAllowanceView(View):
    until: int | None
    """Unix milliseconds; null: in a home with real money the page may not act."""


class LoginCode(View):
    scope: LoginScope
    made: int


class LoginBook(View):
    """Codes, sessions and tokens by the hash of their secret; a session's is that of its cookie and its header."""

    format: Literal[1] = 1
    url: str | None = None
    """Where the page is served, or was."""
    codes: dict[str, LoginCode] = Field(default_factory=dict)
    sessions: dict[str, WebSessionView] = Field(default_factory=dict)
    tokens: dict[str, WebTokenView] = Field(default_factory=dict)
    allowed: tuple[int, int] | None = None
    """From when until when the page may act with real money."""

    def prune(self, now: int) -> LoginBook:
        codes = {key: code for key, code in self.codes.items() if code.made <= now < code.made + CODE_MS}
        sessions = {key: session for key, session in self.sessions.items() if session.lasts(now)}
        return self.model_copy(update={"codes": codes, "sessions": sessions})


class Logins:
    """`served`: whether a page of this home is being served."""

    def __init__(
        self,
        file: LoginFile,
        now: Callable[[], Millis],
        chance: Callable[[int], bytes],
        served: Callable[[], bool] = lambda: True,
    ) -> None:
        self._file = file
        self._now = now
        self._chance = chance
        self._served = served
        self._stamp: object | None = None
        self._book = LoginBook()
        self._noted: dict[str, int] = {}
        """When a session's use was last written down, or tried to be."""

    # -- from a terminal

    def link(self, scope: LoginScope) -> WebLinkView:
        """`Refused` where no page is served."""
        url = self._load().url
        if url is None or not self._served():
            raise Refused("No page of this home is served; `zuno web` serves it, and prints a link.")
        code, now = self._chance(16).hex(), self._now()
        new = {hash_secret(code): LoginCode(scope=scope, made=now)}
        self._update(lambda book: {"codes": book.codes | new})
        return WebLinkView(url=f"{url}#login={code}", scope=scope, expires=now + CODE_MS)

    def sessions(self, end: str | None = None) -> WebSessionsView:
        """Those that last; `end`: after the one of this id, or `all`, was ended."""

        def drop(book: LoginBook) -> dict[str, Any]:
            kept = {key: session for key, session in book.sessions.items() if end not in (ALL, session.id)}
            if end != ALL and len(kept) == len(book.sessions):
                raise NotFound("No session has this id; `zuno web sessions` lists them.")
            return {"sessions": kept}

        book = self._load().prune(self._now()) if end is None else self._update(drop)
        return WebSessionsView(sessions=tuple(book.sessions.values()))

    def create_token(self, name: str, scope: LoginScope) -> WebTokenView:
        if _NAME.fullmatch(name) is None:
            raise UsageError("A token's name has up to 40 letters, digits, dots, dashes and underscores.")
        token = self._chance(32).hex()
        new = WebTokenView(name=name, scope=scope, made=self._now())

        def add(book: LoginBook) -> dict[str, Any]:
            if any(known.name == name for known in book.tokens.values()):
                raise Refused(f"There is a token {name} already; `zuno web token revoke {name}` ends it.")
            return {"tokens": {**book.tokens, hash_secret(token): new}}

        self._update(add)
        return new.model_copy(update={"token": token})

    def tokens(self, revoke: str | None = None) -> WebTokensView:
        """All of them; `revoke`: after the one of this name was ended."""

        def drop(book: LoginBook) -> dict[str, Any]:
            kept = {key: token for key, token in book.tokens.items() if token.name != revoke}
            if len(kept) == len(book.tokens):
                raise NotFound("No token has this name; `zuno web token list` lists them.")
            return {"tokens": kept}

        book = self._load() if revoke is None else self._update(drop)
        return WebTokensView(tokens=tuple(book.tokens.values()))

    def allow(self, span: str | None = None, *, end: bool = False) -> WebAllowanceView:
        """Let the page act with real money for a time, or no longer; with neither, say whether it may."""
        if span is None and not end:
            return WebAllowanceView(until=self.allowed_until())
        length = 0 if span is None else parse_span(span) * 1_000
        if end is not (span is None) or (span is not None and not 0 < length <= LONGEST_ALLOWANCE_MS):
            raise UsageError("Give --for a length of time up to 1d, as 30m, or --end.")
        now = self._now()
        allowed = None if end else (now, now + length)
        self._update(lambda book: {"allowed": allowed})
        return WebAllowanceView(until=allowed and allowed[1])

    # -- of the server

    def start(self, url: str, *, end_sessions: bool) -> None:
        """The page is served there from now on."""
        self._update(lambda book: {"url": url, "sessions": {} if end_sessions else book.sessions})

    def has_code(self, code: str) -> bool:
        """Whether one can log in by it; nothing is written."""
        return hash_secret(code) in self._load().prune(self._now()).codes

    def log_in(self, code: str) -> tuple[str, str, LoginScope] | None:
        """Cookie, header and scope of a new session, for a code that is used up by it."""
        cookie, secret, now = self._chance(32).hex(), self._chance(32).hex(), self._now()
        given: list[LoginScope] = []

        def redeem(book: LoginBook) -> dict[str, Any]:
            codes = dict(book.codes)
            if (code_ := codes.pop(hash_secret(code), None)) is None:
                return {}
            given.append(code_.scope)
            session = WebSessionView(id=self._chance(4).hex(), scope=code_.scope, begun=now, seen=now)
            return {"codes": codes, "sessions": {**book.sessions, hash_session(cookie, secret): session}}

        self._update(redeem)
        return (cookie, secret, given[0]) if given else None

    def find_session(self, key: str) -> WebSessionView | None:
        """By its hash, if neither anybody nor time has ended it."""
        session, now = self._load().sessions.get(key), self._now()
        if session is None:
            return None
        seen = max(session.seen, self._noted.get(key, 0))
        if not session.model_copy(update={"seen": seen}).lasts(now):
            return None
        if now - seen >= SEEN_MS:
            self._noted[key] = now
            with suppress(ZunoError):  # nobody who asks waits for it
                self._update(lambda book: {"sessions": _note_use(book.sessions, key, now)}, wait=False)
        return session

    def find_token(self, key: str) -> WebTokenView | None:
        return self._load().tokens.get(key)

    def allowed_until(self) -> int | None:
        allowed = self._load().allowed
        return allowed[1] if allowed is not None and allowed[0] <= self._now() < allowed[1] else None

    def _load(self) -> LoginBook:
        """Read again only when the file has changed. One that cannot be read just now leaves what was known."""
        stamp = self._file.stamp()
        if stamp != self._stamp:
            try:
                self._book, self._stamp = _parse(self._file.read()), stamp
            except ZunoError:
                if self._stamp is None:
                    raise
        return self._book

    def _update(self, make: Callable[[LoginBook], dict[str, Any]], *, wait: bool = True) -> LoginBook:
        def rewrite(content: bytes) -> tuple[bytes, LoginBook]:
            book = _parse(content).prune(self._now())
            after = book.model_copy(update=make(book))
            return after.model_dump_json(indent=1).encode(), after

        return self._file.change(rewrite, wait=wait)


def _note_use(sessions: dict[str, WebSessionView], key: str, now: int) -> dict[str, WebSessionView]:
    return sessions | {key: sessions[key].model_copy(update={"seen": now})} if key in sessions else sessions


def _parse(content: bytes) -> LoginBook:
    if not content:
        return LoginBook()
    try:
        return LoginBook.model_validate_json(content)
    except ValueError as error:
        raise Broken("web-logins.json is damaged; delete it, then log in and make tokens anew.") from error


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def hash_session(cookie: str, secret: str) -> str:
    """Of what both have to be there."""
    return hash_secret(f"{cookie}\n{secret}")
