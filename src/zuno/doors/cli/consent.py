"""Confirmation at a terminal: everything is shown, then a word has to be typed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from zuno.kernel.errors import UsageError

if TYPE_CHECKING:
    from zuno.lp.service.execution import Consent
    from zuno.lp.service.execution_view import ApprovalView


def of(*, json: bool, yes: bool, costs_more: bool = False) -> Consent:
    """Consent by `--yes`, or by a person at this terminal."""
    from zuno.lp.service.execution import Consent

    if yes:
        return Consent(lambda view: True, lambda view: True, scripted=True, costs_more=costs_more)
    return Consent(_ask_for_word("approve", json), _ask_for_word("apply", json))


def ask_to_type(*, json: bool, yes: bool = False) -> Callable[[str, str], bool]:
    """Confirmation for the trading desk: shows `what`, then asks for the word."""

    def ask(word: str, what: str) -> bool:
        if yes:
            return True
        if json or not sys.stdin.isatty() or not sys.stderr.isatty():
            raise UsageError(f"{what} The word {word} has to be typed at a terminal.")
        return _is_typed(word, f"{what}\nType {word} to go on: ")

    return ask


def progress(json: bool) -> Callable[[str], None]:
    """What happens while a chain is waited for; a script gets the end alone."""

    def tell(line: str) -> None:
        if not json:
            sys.stderr.write(f"  {line}\n")
            sys.stderr.flush()

    return tell


def _ask_for_word(word: str, json: bool) -> Callable[[ApprovalView], bool]:
    def ask(view: ApprovalView) -> bool:
        if json or not sys.stdin.isatty() or not sys.stderr.isatty():
            raise UsageError(
                f"To {word} a plan the word has to be typed at a terminal; scripts say --yes, on sim, devnet and test "
                f"networks only."
            )
        from zuno.doors.cli.render import render

        if word == "approve":
            render(view)
        asked = view.asks if word == "approve" else (word,)
        prompts = (view.summarise(), f"{view.cost.text}: more than it moves.")
        return all(
            _is_typed(typed, f"{prompt}\nType {typed} to {word} {view.plan_id}: ")
            for typed, prompt in zip(asked, prompts, strict=False)
        )

    return ask


def _is_typed(word: str, prompt: str) -> bool:
    """Asks for the word. An event loop takes the first Ctrl-C for itself and would leave the person at the prompt."""
    import signal
    import threading

    asked_here = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.default_int_handler) if asked_here else None
    try:
        sys.stderr.write(prompt)
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() == word
    finally:
        if asked_here:
            signal.signal(signal.SIGINT, before)
