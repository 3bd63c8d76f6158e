"""The shell at a terminal: a prompt with history, completion, and a status line with chain and wallet."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.output import Output
from prompt_toolkit.styles import Style
from rich.text import Text

from zuno.doors.reading.intents import typical_lines
from zuno.doors.reading.secrecy import looks_secret
from zuno.doors.shell.turns import ShellHost, ShellSession, on_stderr
from zuno.lp.model.chains import CHAINS

MOST_LINES: Final = 1_000
MOST_CHARS: Final = 400


class PrivateHistory(History):
    """`write` replaces the file whole. Where nothing can be written the shell works without."""

    def __init__(self, file: Path, write: Callable[[Path, bytes], None]) -> None:
        super().__init__()
        self._file = file
        self._write = write

    def load_history_strings(self) -> Iterable[str]:
        """Newest first."""
        return reversed(self._lines())

    def store_string(self, string: str) -> None:
        line = " ".join(string.split())
        if not line or len(line) > MOST_CHARS or looks_secret(line):
            return
        with suppress(OSError):
            kept = [*self._lines(), line][-MOST_LINES:]
            self._write(self._file, ("\n".join(kept) + "\n").encode(errors="replace"))

    def append_string(self, string: str) -> None:
        """A secret is not even kept for the arrow keys."""
        if not looks_secret(string):
            super().append_string(string)

    def _lines(self) -> list[str]:
        try:
            lines = self._file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        return [line for line in lines if line][-MOST_LINES:]


_STYLE = Style.from_dict({"bottom-toolbar": "noreverse #888888", "prompt": "bold"})
_CHAINS = ("sim", "devnet", *(chain.name for chain in CHAINS))
GREETING = "Zuno. Say what you want, or `help`; `exit` leaves."


class ShellCompleter(Completer):
    """What a line may go on with: whole phrases and commands, else ids that were shown and chains."""

    def __init__(self, talk: ShellSession, commands: tuple[str, ...]) -> None:
        self._talk = talk
        self._lines = tuple(dict.fromkeys((*typical_lines(), *commands)))

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = document.text_before_cursor.lstrip()
        for line in self._lines:
            if typed and line.startswith(typed.lower()) and line != typed:
                yield Completion(line, start_position=-len(typed))
        word = document.get_word_before_cursor(WORD=True)
        for name in (*self._talk.conversation.ids, *_CHAINS):
            if word and name.startswith(word) and name != word and typed != word:
                yield Completion(name, start_position=-len(word))


def converse(door: ShellHost, keys: Input | None = None, screen: Output | None = None) -> int:
    """Talk until the person leaves. Ctrl-C ends a command or an unfinished line, Ctrl-D the shell."""
    talk = ShellSession(door)
    session: PromptSession[str] = PromptSession(
        history=PrivateHistory(door.place.home / "history", door.write),
        completer=ShellCompleter(talk, door.grammar.names()),
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        bottom_toolbar=lambda: FormattedText([("class:bottom-toolbar", talk.status_line)]),
        style=_STYLE,
        input=keys,
        output=screen,
    )
    on_stderr(Text(GREETING, style="dim"))
    while True:
        try:
            line = session.prompt(FormattedText([("class:prompt", "zuno› ")]))
        except KeyboardInterrupt:
            continue
        except EOFError:
            return 0
        try:
            if talk.line(line) is None:
                return 0
        except KeyboardInterrupt:  # while a line was read, or a model asked: a command ends by itself
            on_stderr(Text("Stopped.", style="dim"))
