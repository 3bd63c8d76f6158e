"""One question, one answer: open Zuno, ask, print it for a person or a script, and turn errors into exit codes."""

from __future__ import annotations

import json as codec
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from zuno.kernel.errors import FULL_DISK, Broken, DiskFull, Malformed, Refused, Unavailable, UsageError, ZunoError

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import PartialView, VerdictView, View
    from zuno.lp.service.recommend import Listen
    from zuno.trading.service.imports import Confirm
    from zuno.trading.service.imports import Listen as ImportListen
    from zuno.trading.service.runs import Listen as Watch

Shown = TypeVar("Shown")
Partial = TypeVar("Partial", bound="PartialView")

Answer = Awaitable["View"]
"""What a command is to print."""

Opener = Callable[["str | None"], "Zuno"]
"""Opens Zuno at a home (None: where the environment says)."""

USAGE, REFUSED, UNAVAILABLE, BROKEN, BUG, STOPPED, CLOSED_PIPE, TERMINATED = 2, 3, 4, 5, 70, 130, 141, 143
_KINDS: tuple[tuple[type[ZunoError], str, int], ...] = (
    (UsageError, "usage", USAGE),
    (Refused, "refused", REFUSED),
    (Unavailable, "unavailable", UNAVAILABLE),
    (Malformed, "unavailable", UNAVAILABLE),
    (Broken, "broken", BROKEN),
)


_sigterm: list[bool] = []


class Failed(Exception):
    """The command failed and its message was printed; `code` is the exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Session:
    """How this invocation opens Zuno."""

    opener: Opener
    home: str | None = None
    shown: Callable[[View], None] | None = None
    """Called with each view that was printed, as long as it is of this home."""
    lock_account: Callable[[str | None, str], None] = lambda home, account: None
    """Locks an account of a home before anything is opened there: the first step of a kill."""
    find_account: Callable[[str | None, str], str | None] = lambda home, account: account
    """The whole name of an account, by the settings of a home alone."""
    mender: Opener | None = None
    """Opens Zuno by the environment alone where the settings file cannot be used."""
    shell: Callable[[str | None], int] | None = None
    """Opened by `zuno` without a command, at a terminal or with lines on stdin."""

    def at(self, home: str | None) -> Session:
        return self if home is None else replace(self, home=home, shown=None)


def answer(session: Session, json: bool, question: Callable[[Zuno], Awaitable[View]]) -> None:
    """Ask and print; a deliberate error becomes its sentence and its exit code."""
    _print(session, _run_question(session, json, question), json)


def serve_silently(session: Session, serve: Callable[[Zuno], Awaitable[None]]) -> None:
    """Run what writes to stdout itself; only an error is told, on stderr."""
    _run_question(session, False, serve)


def verdict(
    session: Session, json: bool, question: Callable[[Zuno], Awaitable[VerdictView]], *, no: int = BROKEN
) -> None:
    """Ask and print; an answer that is no is an exit code of its own, and it is printed all the same."""
    view = _run_question(session, json, question)
    _print(session, view, json)
    if not view.ok:
        raise Failed(no)


def mend(session: Session, json: bool, question: Callable[[Zuno], Awaitable[VerdictView]], *, no: int = USAGE) -> None:
    """A verdict that a settings file which cannot be used does not prevent."""
    verdict(replace(session, opener=session.mender or session.opener), json, question, no=no)


def partial_verdict(
    session: Session, json: bool, question: Callable[[Zuno], Awaitable[Partial]], *, no: int = BROKEN
) -> None:
    """Ask and print; what Ctrl-C cut short is printed as far as it came, and ends as every stopped command does."""
    view = _run_question(session, json, question)
    _print(session, view, json)
    if view.stopped:
        raise build_stopped()
    if view.ok is False:
        raise Failed(no)


def listen_and_answer(session: Session, json: bool, question: Callable[[Zuno, Listen], Awaitable[View]]) -> None:
    """Ask the desk, with a preview of its thoughts on a terminal; they stand under the answer."""
    if json:
        answer(session, json, lambda zuno: question(zuno, lambda thought: None))
        return
    from zuno.doors.cli.transcript import Preview

    with Preview() as preview:
        view = _run_question(session, json, lambda zuno: question(zuno, preview.hear))
    _print(session, view, json)


def watch_and_answer(session: Session, json: bool, question: Callable[[Zuno, Watch], Awaitable[View]]) -> None:
    """Ask the trading desk, showing who waits and who speaks; a script gets the document alone."""
    if json:
        answer(session, json, lambda zuno: question(zuno, lambda event: None))
        return
    from zuno.doors.cli.cycle_progress import Progress

    with Progress() as progress:
        view = _run_question(session, json, lambda zuno: question(zuno, progress.hear))
    _print(session, view, json)


def import_and_answer(
    session: Session, json: bool, yes: bool, question: Callable[[Zuno, ImportListen, Confirm], Awaitable[VerdictView]]
) -> None:
    """Import files with a bar on a terminal; what was not imported is an exit code, with the rest printed."""
    from zuno.doors.cli.consent import ask_to_type

    ask = partial(ask_to_type(json=json, yes=yes), "y")
    if json:
        verdict(session, json, lambda zuno: question(zuno, lambda progress: None, ask), no=REFUSED)
        return
    from zuno.doors.cli.progress_bar import ImportBar

    with ImportBar() as bar:
        view = _run_question(session, json, lambda zuno: question(zuno, bar.hear, partial(bar.ask, ask)))
    _print(session, view, json)
    if not view.ok:
        raise Failed(REFUSED)


def demo(session: Session, json: bool) -> None:
    """The tour runs in a home of its own: it never touches anybody's world, and its own can be looked at after."""
    import tempfile

    from zuno.doors.cli import demo_tour

    if json:
        with tempfile.TemporaryDirectory(prefix="zuno-demo-") as home:
            answer(session.at(home), json, demo_tour.tour)
        return

    from zuno.doors.cli.render import narrow_pipe

    home = tempfile.mkdtemp(prefix="zuno-demo-")
    here = session.at(home)
    with narrow_pipe():
        answer(here, json, demo_tour.opening)
        listen_and_answer(here, json, demo_tour.show_argument)
        answer(here, json, demo_tour.show_result)
        answer(here, json, demo_tour.carried_out)
    sys.stdout.write("SIMULATED world of a fixed seed: nothing above is market data.\n\nTry next:\n")
    for command, what in demo_tour.NEXT:
        sys.stdout.write(f"  {command.format(home=home):<39} {what}\n")


def converse(session: Session, shell: Callable[[str | None], int]) -> int:
    """Open the shell; an unusable home or setting is reported like any other error."""
    try:
        return shell(session.home)
    except ZunoError as error:
        return _report_error(error, json=False)


def note_sigterm() -> None:
    """Remember that SIGTERM came, for the exit code of the process."""
    _sigterm.append(True)


def find_exit_code(code: int) -> int:
    """The exit code of the process: 143 instead of 130 where SIGTERM stopped it."""
    return TERMINATED if code == STOPPED and _sigterm else code


def tell_mistake(message: str, *, json: bool) -> int:
    """A command line that cannot be read."""
    _tell("usage", message, json)
    return USAGE


def build_stopped() -> Failed:
    """The end of a command that was stopped and has printed how far it came."""
    complain("zuno: Stopped.")
    return Failed(STOPPED)


def tell_stopped(*, json: bool) -> int:
    """Report Ctrl-C or SIGTERM once; a script still gets its one document."""
    with suppress(OSError):
        _tell("stopped", "Stopped.", json)
        sys.stdout.flush()
    return STOPPED


def _run_question(session: Session, json: bool, question: Callable[[Zuno], Awaitable[Shown]]) -> Shown:
    import asyncio

    async def conversation() -> Shown:
        zuno, task = session.opener(session.home), asyncio.current_task()
        try:
            return await question(zuno)
        except Exception:
            if task is not None and task.cancelling():
                raise asyncio.CancelledError from None  # Ctrl-C, whatever was made of it on the way
            raise
        finally:
            await zuno.close()

    try:
        return asyncio.run(conversation())
    except ZunoError as error:
        raise Failed(_report_error(error, json)) from error
    except OSError as error:
        if error.errno not in FULL_DISK:
            raise _bug(error, json) from error
        place = error.filename or session.home or "Zuno's home"
        raise Failed(_report_error(DiskFull(place), json)) from error
    except Exception as error:
        raise _bug(error, json) from error


def _report_error(error: ZunoError, json: bool) -> int:
    kind, code = next((kind, code) for branch, kind, code in _KINDS if isinstance(error, branch))
    _tell(kind, str(error), json)
    return code


def _bug(error: Exception, json: bool) -> Failed:
    """Our own mistake: keep the evidence, tell the person one sentence."""
    _tell("bug", f"Zuno has a bug ({type(error).__name__}); {_keep_evidence()}", json)
    return Failed(BUG)


def _keep_evidence() -> str:
    import tempfile
    import traceback

    trace = traceback.format_exc()
    try:
        handle, path = tempfile.mkstemp(prefix="zuno-bug-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(trace)
    except OSError:
        return f"please report it: {trace[-600:]}"
    return f"please report it with {path}."


def _tell(kind: str, message: str, json: bool) -> None:
    from zuno.kernel.text import plain_text

    sentence = plain_text(message, 2_000)
    if json:
        sys.stdout.write(codec.dumps({"error": {"kind": kind, "message": sentence}}) + "\n")
    complain(f"zuno: {sentence}")


def complain(line: str) -> None:
    """Write a line to stderr; a stderr that cannot be written is ignored."""
    with suppress(OSError):
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def _print(session: Session, view: View, json: bool) -> None:
    """Write the answer out, or say in a sentence that it could not be written."""
    try:
        if json:
            from zuno.kernel.view import write_document

            sys.stdout.write(write_document(view) + "\n")
        else:
            from zuno.doors.cli.render import render

            render(view)
        sys.stdout.flush()
        if session.shown is not None:
            session.shown(view)
    except BrokenPipeError:
        raise Failed(discard_stdout()) from None
    except OSError as error:
        raise Failed(report_unwritten(error)) from error
    except Exception as error:
        raise _bug(error, json) from error


def report_unwritten(error: OSError) -> int:
    """Report on stderr that stdout cannot be written."""
    discard_stdout()
    complain(f"zuno: the answer could not be written ({error.strerror}).")
    return UNAVAILABLE


def discard_stdout() -> int:
    """Send the rest of stdout to /dev/null, because its reader is gone; return the exit code for that."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return CLOSED_PIPE
