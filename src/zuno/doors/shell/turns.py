"""One line in, one turn out: run a command, ask, or leave. Terminal or pipe, it is the same."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final, Protocol

from rich.console import Console
from rich.text import Text

from zuno.doors.chat.conversation import Ask, ChainSwitched, Conversation, EndConversation, Help, Run, Turn
from zuno.doors.reading.intents import Reading
from zuno.doors.reading.secrecy import looks_secret
from zuno.doors.zuno import ShellStart
from zuno.kernel.errors import ZunoError
from zuno.kernel.view import View
from zuno.lp.service.views import PositionsView

USAGE: Final = 2
_POINTING: Final = frozenset(
    "it this that these those the one first second third fourth fifth last latest newest previous".split()
)
_OF_WHAT_WAS_SHOWN: Final = (["why"], ["replay"])
"""Commands that mean the last by themselves; in the shell that is the last shown."""


class Grammar(Protocol):
    """Promises what the command line would make of words, without running them."""

    def names(self) -> tuple[str, ...]:
        """Every command, as it is typed."""

    def is_command(self, words: Sequence[str]) -> bool:
        """Whether they are one whole command."""

    def starts_command(self, words: Sequence[str]) -> bool:
        """Whether they begin like one."""

    def takes_chain(self, words: Sequence[str]) -> bool: ...


@dataclass(frozen=True, slots=True)
class ShellHost:
    run: Callable[[Sequence[str], Callable[[View], None]], int]
    """Run a command, tell what it showed, return its exit code."""
    grammar: Grammar
    place: ShellStart
    interpret: Callable[[str], Reading | None]
    """Ask a model what a line means; None without a model, or without an answer."""
    write: Callable[[Path, bytes], None]
    """Replace a file that only its owner may read: whole or not at all."""
    positions: Callable[[str | None], PositionsView | None] = lambda chain: None
    """The positions on a chain, where a line means one by what it holds; None where they cannot be read."""


class ShellSession:
    """A conversation with its screen. Returns exit codes; None is the end."""

    def __init__(self, door: ShellHost, say: Callable[[Text], None] | None = None) -> None:
        self._door = door
        self._say = say or on_stderr
        self.conversation = Conversation(door.positions)

    @property
    def status_line(self) -> str:
        """Chain and wallet, for the line at the bottom."""
        place, talk = self._door.place, self.conversation
        wallet = talk.wallet or (place.wallet if talk.chain in (None, place.chain) else None)
        short = f"{wallet[:6]}…{wallet[-4:]}" if wallet and len(wallet) > 12 else "no wallet shown"
        return f"{talk.chain or place.chain} · {short}"

    def line(self, text: str) -> int | None:
        """Do what a line says."""
        if not text.strip():
            return 0
        if (words := self._verbatim(text)) is not None:
            return self._run(words)
        return self._turn(self.conversation.hear(text), text)

    def _turn(self, turn: Turn, text: str) -> int | None:
        match turn:
            case EndConversation():
                return None
            case Help():
                self._say(Text((files("zuno.doors.shell") / "help.txt").read_text(encoding="utf-8").rstrip()))
            case ChainSwitched(chain):
                self.conversation.wallet = None
                self._say(Text(f"On {chain} from here on.", style="dim"))
            case Run(words, understood):
                self._say(_echo(words, understood.source == "model"))
                if understood.unused:
                    self._say(Text(f"Not understood here: {', '.join(understood.unused)}.", style="yellow"))
                return self._run(words)
            case Ask(question, reading, offered):
                if reading is not None and (better := self._ask_model(text, turn)):
                    return self._turn(better, text)
                if reading is not None and self._door.grammar.starts_command(_split(text)):
                    return self._run(_split(text))  # the command line says what is wrong with its own words
                offer = "".join(
                    f"\n  {number}  zuno {shlex.join(each.template)}" for number, each in enumerate(offered, 1)
                )
                self._say(Text.assemble((question, "yellow"), offer))
                return USAGE
        return 0

    def _ask_model(self, text: str, asked: Ask) -> Turn | None:
        """What a model makes of a line the examples could not read; nothing that signs, and no line with a secret."""
        if asked.reading is None or asked.reading.suggestion is not None or looks_secret(text):
            return None
        try:
            reading = self._door.interpret(text)
        except ZunoError:  # the question is still an answer
            return None
        return None if reading is None else self.conversation.act_on(reading)

    def _verbatim(self, text: str) -> list[str] | None:
        """The words of a line that is a command as it stands."""
        words = _split(text)
        if words[:1] == ["zuno"]:
            return self._add_chain(words[1:]) if len(words) > 1 else None
        if not words or words in _OF_WHAT_WAS_SHOWN or (_POINTING & {word.lower() for word in words[1:]}):
            return None
        if self._door.grammar.is_command(words) or (
            self._door.grammar.starts_command(words) and any(word.startswith("--") for word in words)
        ):
            return self._add_chain(words)
        return None

    def _add_chain(self, words: list[str]) -> list[str]:
        """A command that names no chain means the one spoken of."""
        chain = self.conversation.chain
        if chain is None or "--chain" in words or not self._door.grammar.takes_chain(words):
            return words
        placed = [*words, "--chain", chain]
        self._say(_echo(placed, by_model=False))
        return placed

    def _run(self, words: Sequence[str]) -> int:
        if not words:
            return 0
        return self._door.run(words, self.conversation.remember_view)


def run_lines(door: ShellHost, lines: Iterable[str]) -> int:
    """Run the lines; the last code that was not 0, or 0. Lines that begin with # are remarks."""
    talk, last = ShellSession(door), 0
    for line in lines:
        if line.lstrip().startswith("#"):
            continue
        code = talk.line(line)
        if code is None:
            break
        last = code or last
    return last


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # "don't" is half a quotation to a shell
        return text.split()


def _echo(words: Sequence[str], by_model: bool) -> Text:
    return Text(f"→ zuno {shlex.join(words)}{'  (read by a model)' if by_model else ''}", style="dim")


def on_stderr(text: Text) -> None:
    Console(stderr=True, highlight=False, markup=False, emoji=False).print(text)
