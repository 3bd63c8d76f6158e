"""What the shell does with a line before a command runs: whose words it is, what is kept, what it goes on with."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from rich.text import Text

from zuno.adapters.atomic_file import replace_file
from zuno.doors.cli.grammar_lookup import CommandTree
from zuno.doors.reading.intents import Reading
from zuno.doors.reading.secrecy import looks_secret
from zuno.doors.shell.terminal import MOST_LINES, PrivateHistory, ShellCompleter
from zuno.doors.shell.turns import ShellHost, ShellSession, run_lines
from zuno.doors.zuno import ShellStart
from zuno.kernel.view import View

PLAN = "plan_0123456789ab"


class Ran:
    """A door that notes what it is asked to run."""

    def __init__(self, home: Path, interpreted: Reading | None = None, code: int = 0) -> None:
        self.words: list[list[str]] = []
        self.said: list[str] = []
        self.asked: list[str] = []
        self._code = code
        self._interpreted = interpreted
        place = ShellStart(home, "sim", "0x39dde55bf9d7add0a554ed9e2fc6a23c72f2519c")
        self.door = ShellHost(self._run, CommandTree(), place, self._ask, replace_file)
        self.talk = ShellSession(self.door, lambda text: self.said.append(text.plain))

    def _run(self, words: Sequence[str], shown: Callable[[View], None]) -> int:
        self.words.append(list(words))
        return self._code

    def _ask(self, text: str) -> Reading | None:
        self.asked.append(text)
        return self._interpreted


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    return Ran(tmp_path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("lp positions --chain devnet", ["lp", "positions", "--chain", "devnet"]),
        ("zuno lp positions --chain devnet", ["lp", "positions", "--chain", "devnet"]),
        ('lp recommend create "2 ETH passively"', ["lp", "recommend", "create", "2 ETH passively"]),
        (f"plan approve {PLAN}", ["plan", "approve", PLAN]),
        (f"plan approve {PLAN} --yes", ["plan", "approve", PLAN, "--yes"]),
        ("lp inspect --help", ["lp", "inspect", "--help"]),
        ("lp --help", ["lp", "--help"]),
        ("sim move --percent -6", ["sim", "move", "--percent", "-6"]),
        ("lp inspect 1 --nonsense", ["lp", "inspect", "1", "--nonsense"]),
        ("zuno nonsense", ["nonsense"]),
        (f"why {PLAN}", ["why", PLAN]),
        ("lp inspect abc", ["lp", "inspect", "abc"]),
    ],
)
def test_the_command_lines_own_words_are_run_as_they_are(ran: Ran, line: str, words: list[str]) -> None:
    assert ran.talk.line(line) == 0
    assert ran.words == [words]
    assert ran.said == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("show positions", ["lp", "positions"]),
        ("sim move -6%", ["sim", "move", "--percent", "-6"]),
        ("wallet", ["wallet", "show"]),
        ("alerts", ["alerts"]),
        ("journal", ["journal", "tail"]),
        ("demo please", ["demo"]),
        (f"plan approve {PLAN} please", ["plan", "approve", PLAN]),
        ("logs", ["logs"]),
    ],
)
def test_prose_is_run_as_the_command_it_means_and_says_so(ran: Ran, line: str, words: list[str]) -> None:
    assert ran.talk.line(line) == 0
    assert ran.words == [words]
    assert ran.said == ["→ zuno " + " ".join(words)] or ran.said == []


@pytest.mark.parametrize("line", ["approve it", "plan approve it", "simulate this", "plan apply the last"])
def test_what_points_is_never_taken_for_an_id(ran: Ran, line: str) -> None:
    assert ran.talk.line(line) == 2
    assert ran.words == []
    assert ran.said[0].startswith("Which plan?")


@pytest.mark.parametrize(
    "line", ["don't approve it", "should I apply?", "aprove it", "approve it and apply it", "yes", "send it"]
)
def test_what_is_no_order_runs_nothing_and_asks_nobody_else(ran: Ran, line: str) -> None:
    assert ran.talk.line(line) == 2
    assert ran.words == []
    assert len(ran.said) == 1


def test_a_model_is_asked_only_when_the_rules_are_at_a_loss(tmp_path: Path) -> None:
    ran = Ran(tmp_path, Reading("", "inspect", {"position": "7"}, 0.6, source="model"))
    assert ran.talk.line("show balances") == 0
    assert ran.asked == []
    assert ran.talk.line("zeig mir mal nummer 7") == 0
    assert ran.asked == ["zeig mir mal nummer 7"]
    assert ran.words[-1] == ["lp", "inspect", "7"]
    assert ran.said[-1].endswith(" model)")
    for line in ("aprove it", "should i apply it", "my private key is " + "ab" * 32):
        ran.talk.line(line)
    assert len(ran.asked) == 1, "nothing that signs, and no secret"


def test_the_chain_spoken_of_goes_with_commands_that_take_one(ran: Ran) -> None:
    assert ran.talk.line("switch to base") == 0
    ran.talk.line("lp positions")
    ran.talk.line("lp positions --chain sim")
    ran.talk.line("plan list")
    assert ran.words == [
        ["lp", "positions", "--chain", "base"],
        ["lp", "positions", "--chain", "sim"],
        ["plan", "list"],
    ]
    assert ran.talk.status_line.startswith("base · ")


def test_the_line_at_the_bottom_says_where_one_is(ran: Ran) -> None:
    assert ran.talk.status_line == "sim · 0x39dd…519c"


def test_leaving_is_none(ran: Ran) -> None:
    assert ran.talk.line("exit") is None
    assert ran.talk.line("  ") == 0


@pytest.mark.slow
def test_every_line_of_a_pipe_is_run(tmp_path: Path) -> None:
    ran = Ran(tmp_path, code=3)
    assert run_lines(ran.door, ["# a remark\n", "show pools\n", "\n", "exit\n", "show balances\n"]) == 3
    assert ran.words == [["lp", "pools"]]
    assert run_lines(Ran(tmp_path).door, ["show pools\n"]) == 0
    assert run_lines(Ran(tmp_path).door, ["frobnicate\n", "show pools\n"]) == 2, "the last that failed"


# -- what is kept


def test_history_is_the_owners_own_and_bounded(tmp_path: Path) -> None:
    file = tmp_path / "history"
    history = PrivateHistory(file, replace_file)
    file.write_text("\n".join(f"inspect {number}" for number in range(3 * MOST_LINES)))
    file.chmod(0o644)
    history.store_string("show\npositions")
    lines = file.read_text().splitlines()
    assert (len(lines), lines[-1]) == (MOST_LINES, "show positions")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert next(iter(PrivateHistory(file, replace_file).load_history_strings())) == "show positions"
    assert [path.name for path in tmp_path.iterdir()] == ["history"]


SECRETS = [
    "0x" + "1f" * 32,
    "import wallet " + "AB" * 32,
    "my passphrase is hunter2",
    "password: hunter2",
    "sk-proj-abcdefgh12345678",
    "https://user:pass@node.example/v1",
    "1234567890:AAabcdefghijklmnopqrstuvwxyz_123456",
    "abandon ability able about above absent absorb abstract absurd abuse access accident",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
]


@pytest.mark.parametrize("line", SECRETS)
def test_a_secret_is_not_kept(tmp_path: Path, line: str) -> None:
    assert looks_secret(line)
    history = PrivateHistory(tmp_path / "history", replace_file)
    history.append_string(line)
    history.store_string(line)
    assert not (tmp_path / "history").exists()
    assert history.get_strings() == []


@pytest.mark.parametrize(
    "line",
    [
        "show positions",
        f"approve {PLAN}",
        "why req_0123456789abcdef",
        "lp positions --wallet 0x39dde55bf9d7add0a554ed9e2fc6a23c72f2519c",
        "please show me all of my positions that are out of range on base sepolia right now",
    ],
)
def test_an_ordinary_line_is_kept(tmp_path: Path, line: str) -> None:
    assert not looks_secret(line)
    PrivateHistory(tmp_path / "history", replace_file).append_string(line)
    assert (tmp_path / "history").read_text() == line + "\n"


@given(st.lists(st.sampled_from(["a" * 23, "A", "0", ":", "://", "@", " ", "/", "é"]), max_size=12).map("".join))
@example("://a@b:c@")
@example("a" * 24 + ":0A")
@example("0A" + ":" + "a" * 24)
def test_what_looks_secret_by_search_is_what_does_by_definition(line: str) -> None:
    """At every place of a line, which takes a time that grows with its square."""
    blob = re.compile(r"(?=[^\s]*[0-9])(?=[^\s]*[a-z])(?=[^\s]*[A-Z])[0-9A-Za-z+/=_-]{24,}")
    address = re.compile(r"://[^\s/]*:[^\s/]*@")
    assert looks_secret(line) == bool(blob.search(line) or address.search(line))


def test_a_home_that_cannot_be_written_has_no_history(tmp_path: Path) -> None:
    history = PrivateHistory(tmp_path / "absent" / "history", replace_file)
    history.append_string("show positions")
    assert history.get_strings() == ["show positions"]


# -- what a line goes on with


def completions(ran: Ran, text: str) -> list[str]:
    completer = ShellCompleter(ran.talk, ran.door.grammar.names())
    return [one.text for one in completer.get_completions(Document(text), CompleteEvent())]


def test_lines_and_chains_are_completed(ran: Ran) -> None:
    assert "show positions" in completions(ran, "sho")
    assert "lp recommend rebalance" in completions(ran, "lp rec")
    assert completions(ran, "switch to arb") == ["arbitrum", "arbitrum-sepolia"]
    assert completions(ran, "") == []


def test_the_grammar_is_the_command_lines_own() -> None:
    tree = CommandTree()
    assert {"lp positions", "plan diff", "parse", "demo", "journal tail"} <= set(tree.names())
    assert tree.is_command(["lp", "inspect", "1"])
    assert not tree.is_command(["lp", "inspect"])
    assert not tree.is_command(["why", "did", "you", "pick", "that"])
    assert not tree.is_command([])
    assert tree.starts_command(["lp", "x"])
    assert not tree.starts_command(["show"])
    assert tree.takes_chain(["lp", "positions"])
    assert not tree.takes_chain(["plan", "list"])


def test_what_is_said_is_plain_text(ran: Ran) -> None:
    ran.talk.line("[bold]frobnicate[/bold] \x1b[2J")
    assert "\x1b" not in ran.said[0]
    assert isinstance(Text(ran.said[0]), Text)
