"""Everyday sentences, written before the grammar was read: how many the shell understands, and none wrong about money.

Each is typed into a shell of its own, without a model. Even-numbered ones were tuned on.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import paths
from zuno.adapters.atomic_file import replace_file
from zuno.doors.cli.grammar_lookup import CommandTree
from zuno.doors.glossary import look_up
from zuno.doors.shell.turns import ShellHost, ShellSession
from zuno.doors.zuno import ShellStart
from zuno.kernel.view import View

SENTENCES = tomllib.loads((paths.GOLDEN / "sentences.toml").read_text(encoding="utf-8"))["sentences"]
COINS = {"btc": "BTCUSDT", "eth": "ETHUSDT", "sol": "SOLUSDT"}
ACTS = re.compile(
    r"lp (add|close|collect|compound|remove|revoke|mandate (grant|revoke)|pause|resume)\b|plan (approve|apply|cancel)\b"
    r"|trade (close|set|kill|cancel|transfer|start|stop|pause|resume|adopt|unlock|book|mandate (grant|revoke))\b"
    r"|(sim|devnet) |wallet (create|import)"
)
ADVICE = re.compile(r"lp (recommend|whatif)\b|alerts add\b|trade run\b|lp pools\b")
"""What moves nothing, and still must not speak of another amount, price or position than the line."""
GENERIC = "I am not sure what you want."


TREE = CommandTree()


@dataclass(frozen=True)
class Answer:
    ran: str
    """The command, empty where nothing was run."""
    said: str
    offered: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    number: int
    say: str
    answer: Answer
    right: bool
    offered: bool
    wrong_money: bool


def ask_shell(line: str, home: Path) -> Answer:
    ran: list[str] = []
    said: list[str] = []

    def run(words: Sequence[str], shown: Callable[[View], None]) -> int:
        ran.append(shlex.join(words))
        return 0

    place = ShellStart(home, "sim", None)
    host = ShellHost(run, TREE, place, lambda text: None, replace_file)
    ShellSession(host, lambda text: said.append(text.plain)).line(line)
    spoken = "\n".join(said)
    offers = re.findall(r"^  \d  zuno (.*)$", spoken, re.MULTILINE)
    return Answer(ran[0] if ran else "", spoken.split("\n", 1)[0], tuple(offers))


def normal(command: str) -> tuple[str, ...]:
    """The command's words in one spelling: options in order, symbols, spans and fees alike."""
    positional: list[str] = []
    options: dict[str, str] = {}
    name = ""
    words = shlex.split(command)
    if words[:3] == ["lp", "recommend", "create"] and len(words) > 3 and not words[3].startswith("--"):
        capital = re.fullmatch(r"([\d.]+) (\w+)(?: and (.+))?( passively)?", words[3])
        assert capital is not None, command
        words[3:4] = ["--amount", capital[1], "--token", capital[2]]
        words += ["--with", capital[3]] if capital[3] else []
        words += ["--profile", "conservative"] if capital[4] else []
    for word in words:
        if word.startswith("-") and not re.match(r"-\d", word):
            name = {"-n": "--lines", "--count": "--lines"}.get(word, word)
            options[name] = ""
        elif name and name not in {"--all", "--rank", "--closed"}:
            options[name] = f"{options[name]} {_value(word)}".strip()
        else:
            positional.append(_value(word))
            name = ""
    return (*positional, *(f"{key}={value}" for key, value in sorted(options.items())))


def _value(word: str) -> str:
    if word.lower() in COINS:
        return COINS[word.lower()]
    if pips := re.fullmatch(r"(\d+)pips|([\d.]+)bps", word):
        return f"{float(pips[1] or 0) / 1e4 or float(pips[2]) / 100:g}%"
    return {"24h": "1d", "1w": "7d", "+10%": "10%"}.get(word, word.casefold())


def judge(number: int, say: str, right: Sequence[str], answer: Answer) -> Verdict:
    commands = [normal(each) for each in right if each[0] not in "?-" and each != "help"]
    ran = normal(answer.ran) if answer.ran else ()
    offered = {normal(each) for each in answer.offered}
    if answer.ran.startswith("glossary "):
        terms = [shlex.split(each)[1:] for each in right if each.startswith("glossary ")]
        asked = look_up(" ".join(shlex.split(answer.ran)[1:]))
        is_right = asked.known and any(asked.entries == look_up(" ".join(term)).entries for term in terms)
    elif answer.ran:
        is_right = ran in commands
    else:
        is_right = any(_is_right_question(each, commands, answer, offered) for each in right)
    wrong_money = False
    if answer.ran and not is_right:
        family = [each for each in commands if each[:2] == ran[:2]]
        wrong_money = bool(ACTS.match(answer.ran)) or (bool(ADVICE.match(answer.ran)) and bool(family))
    named = [normal(part) for each in right if each[0] == "?" for part in each[1:].split("|") if part.strip()]
    return Verdict(number, say, answer, is_right, bool(offered & {*commands, *named}), wrong_money)


def _is_right_question(
    each: str, commands: Sequence[tuple[str, ...]], answer: Answer, offered: set[tuple[str, ...]]
) -> bool:
    if each in {"-", "help"}:
        return True
    if each[0] != "?":
        return False
    named = {normal(part) for part in each[1:].split("|") if part.strip()}
    if named:
        return named <= offered
    return not answer.said.startswith(GENERIC) or bool(offered & set(commands))


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> list[Verdict]:
    home = tmp_path_factory.mktemp("home")
    return [
        judge(number, sentence["say"], sentence["right"], ask_shell(sentence["say"], home))
        for number, sentence in enumerate(SENTENCES, 1)
    ]


@pytest.mark.parametrize("parity", [1, 0], ids=["odd", "even"])
def test_four_in_five_sentences_are_understood(
    verdicts: list[Verdict], parity: int, capsys: pytest.CaptureFixture[str]
) -> None:
    half = [verdict for verdict in verdicts if verdict.number % 2 == parity]
    rest = [verdict for verdict in half if not verdict.right]
    right, offered = len(half) - len(rest), sum(verdict.offered for verdict in rest)
    with capsys.disabled():
        print(f" {right}/{len(half)} right ({right / len(half):.0%}), offered {offered} of {len(rest)}", end="")
    assert right >= 0.8 * len(half), _tell(rest)


def test_half_of_what_is_not_understood_is_offered(verdicts: list[Verdict]) -> None:
    rest = [verdict for verdict in verdicts if not verdict.right]
    assert sum(verdict.offered for verdict in rest) >= 0.5 * len(rest), _tell(rest)


def _tell(rest: Sequence[Verdict]) -> str:
    return "\n".join(f"{each.number} {each.say!r}: {each.answer}" for each in rest)


def test_no_sentence_is_wrong_about_money(verdicts: list[Verdict]) -> None:
    assert [(each.say, each.answer.ran) for each in verdicts if each.wrong_money] == []
