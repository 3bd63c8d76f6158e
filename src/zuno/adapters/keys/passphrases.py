"""Where passphrases come from: a file that only its owner can read, or a person at a terminal; never from an argument
or the environment, which others can read."""

import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import SecretStr

from zuno.kernel.errors import Refused, Unavailable

FEWEST = 8
_MOST_BYTES = 4_096
_TERMINAL = "/dev/tty"

Passphrase = SecretStr
Ask = Callable[[str], "Passphrase | None"]
"""Asks the person with the answer hidden; None where nobody can be asked."""


class InputEnded(Refused):
    """The person ended the input at the prompt."""


def ask_hidden(prompt: str) -> SecretStr | None:
    from getpass import getpass

    if not _may_ask():
        return None
    typed: SecretStr | None = None
    try:
        with _interruptible(), suppress(UnicodeDecodeError):  # which carries what was typed
            typed = SecretStr(getpass(prompt))
    except EOFError:
        raise InputEnded("Nothing was typed; nothing was done.") from None
    if typed is None:
        raise Refused("What was typed is not text in the terminal's own encoding; nothing was done.")
    return typed


def _may_ask() -> bool:
    """Whether there is a terminal and this process is in its foreground: in the background a prompt would stop it."""
    try:
        terminal = os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY)  # getpass would read stdin instead, and show it
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


@contextmanager
def _interruptible() -> Iterator[None]:
    """So that the first Ctrl-C at the prompt ends it: an event loop would swallow it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Passphrases:
    """From the file where one is set, for services; otherwise the person is asked."""

    def __init__(self, file: Path | None, ask: Ask = ask_hidden) -> None:
        self._file = None if file is None else file.expanduser()
        self._ask = ask

    def of(self, what: str) -> SecretStr:
        if self._file is not None:
            return _first_line(self._file)
        return self._require_answer(f"Passphrase of {what}: ")

    def of_stranger(self, what: str) -> SecretStr:
        """The passphrase of a keystore made elsewhere: asked of the person, else read from the file."""
        answer = self._ask(f"Passphrase of {what}: ")
        return self.of(what) if answer is None else answer

    def new(self) -> SecretStr:
        """A passphrase for a new wallet; typed, it is typed twice."""
        chosen = self._require_answer("New passphrase: ") if self._file is None else _first_line(self._file)
        if self._file is None and chosen != self._require_answer("The same again: "):
            raise Refused("The two passphrases differ; nothing was written.")
        length = len(chosen.get_secret_value())
        if length < FEWEST:
            raise Refused(f"A passphrase of {length} characters is too short; use {FEWEST} or more.")
        return chosen

    def key(self) -> SecretStr:
        answer = self._ask("Private key (64 hex digits, not shown): ")
        if answer is None:
            raise Refused("A private key is typed at a terminal, and there is none; import a keystore file instead.")
        return answer

    def _require_answer(self, prompt: str) -> SecretStr:
        answer = self._ask(prompt)
        if answer is None:
            raise Refused("Nobody can be asked for the passphrase here; put it in a file and set ZUNO_PASSPHRASE_FILE.")
        return answer


def _first_line(file: Path) -> SecretStr:
    try:
        with open(file, "rb") as opened:
            mode, body = os.fstat(opened.fileno()).st_mode, opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Unavailable(f"ZUNO_PASSPHRASE_FILE {file} cannot be read ({error.strerror}).") from error
    if stat.S_IMODE(mode) & 0o077:
        raise Refused(f"Others may read the passphrase in {file}; run `chmod 600` on it.")
    line = body.split(b"\n", 1)[0].removesuffix(b"\r")
    if len(line) > _MOST_BYTES:
        raise Refused(f"The first line of {file} is longer than {_MOST_BYTES} bytes; that is no passphrase.")
    if not line:
        raise Refused(f"The first line of {file} is empty; write the passphrase there.")
    readable: SecretStr | None = None
    with suppress(UnicodeDecodeError):  # which carries the bytes it could not read
        readable = SecretStr(line.decode("utf-8"))
    if readable is None:
        raise Refused(f"The first line of {file} is not UTF-8 text.")
    return readable
