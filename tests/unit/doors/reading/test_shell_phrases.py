"""Phrases written by somebody who has not seen the examples, and never used as one: how many are read right.

`tests/golden/shell_phrases.json` lists `{"line", "command"}`; `command` is what `zuno parse LINE --json` yields, null
where no command is meant. They are read in the Place of `tests/shell_place.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from tests import paths
from tests.shell_place import read_in_place

FILE = paths.GOLDEN / "shell_phrases.json"


@dataclass(frozen=True)
class Tally:
    lines: int
    right: int
    offered: int
    """Right, or among the choices."""
    misread: tuple[str, ...]
    signed: tuple[str, ...]
    """Read as something that signs, and not meant so."""


@pytest.fixture(scope="module")
def tally() -> Tally:
    right = offered = 0
    misread, signed = [], []
    phrases = json.loads(FILE.read_text(encoding="utf-8"))
    for phrase in phrases:
        line, wanted = phrase["line"], tuple(phrase["command"] or ())
        reading = read_in_place(line)
        found = reading.template
        choices = {choice.template for choice in reading.choices}
        right += found == wanted
        offered += found == wanted or (not found and wanted in choices)
        if found and found != wanted:
            misread.append(f"{line!r}: {' '.join(found)}, not {' '.join(wanted) or 'nothing'}")
            if reading.signs and found[:2] != wanted[:2]:
                signed.append(line)
    return Tally(len(phrases), right, offered, tuple(misread), tuple(signed))


@pytest.mark.slow
def test_most_phrases_are_read_right_and_few_misread(tally: Tally, capsys: pytest.CaptureFixture[str]) -> None:
    shares = [count / tally.lines for count in (tally.right, tally.offered, len(tally.misread))]
    with capsys.disabled():
        print(
            f" {tally.lines} phrases: right {shares[0]:.1%}, or offered {shares[1]:.1%}, misread {shares[2]:.1%}",
            end="",
        )
    assert tally.lines >= 200
    assert shares[0] >= 0.75
    assert shares[1] >= 0.90
    assert shares[2] <= 0.03, tally.misread


def test_no_phrase_signs_that_does_not_say_so(tally: Tally) -> None:
    assert tally.signed == ()
