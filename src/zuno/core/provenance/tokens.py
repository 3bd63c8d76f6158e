"""Text cut into words, numbers, dates, ids and signs, in one pass that no text can make slow."""

from __future__ import annotations

import re
from typing import NamedTuple

from zuno.core.provenance import words as w

_YEAR = r"(?:19|20)[0-9]{2}"
_DAY = r"(?:0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?"
_CLOCK = r"(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?"
# Every alternative has a bounded length or repeats possessively, so that no text makes the scan backtrack.
_TOKEN = re.compile(
    rf"""
    (?P<id>   (?<![0-9A-Za-z_])0[xX][0-9A-Fa-f][0-9A-Za-z]*+(?:(?:…|\.\.\.?+)[0-9A-Za-z]*+)?+
            | (?<![0-9A-Za-z_])(?:plan|req|alert|act)_[0-9A-Za-z]++ )
  | (?P<date> (?<![\w.,-])(?:
              {_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])(?:[T ]{_CLOCK}(?:Z|[+-][0-9]{{2}}:[0-9]{{2}})?)?
            | {_CLOCK}
            | [0-9]{{1,2}}([./])[0-9]{{1,2}}\3{_YEAR}
            | {_DAY}\ (?:of\ )?(?:{w.MONTHS})(?:,?\ {_YEAR})?
            | (?:{w.MONTHS})\.?\ (?:{_DAY}(?:,?\ {_YEAR})?|{_YEAR})(?!\ ?%|\ ?(?:h|bps|x|×)\b)
            )(?![\w]|[.,:][0-9]) )
  | (?P<num>  (?:(?<![.\w])\.)?+[0-9]++(?:[.,'_\u202f][0-9]++)*+(?:[eE][+-]?+[0-9]++(?![0-9A-Za-z]))?+ )
  | (?P<word> [^\W\d]\w*+(?:'[^\W\d]++)?+ )
  | (?P<sym>  [^\w\s] )
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    kind: str
    start: int
    end: int
    text: str


class Tokens:
    """A text's tokens, asked about by index; beyond either end there is nothing."""

    def __init__(self, plain: str) -> None:
        self.plain = plain
        self.all = [
            Token(match.lastgroup or "", match.start(), match.end(), match[0]) for match in _TOKEN.finditer(plain)
        ]

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, at: int) -> Token:
        return self.all[at]

    def text(self, at: int) -> str:
        return self.all[at].text if 0 <= at < len(self.all) else ""

    def kind(self, at: int) -> str:
        return self.all[at].kind if 0 <= at < len(self.all) else ""

    def word(self, at: int) -> str:
        """The word there in lower case; empty when it is no word."""
        if 0 <= at < len(self.all) and self.all[at].kind == "word":
            return self.all[at].text.lower()
        return ""

    def is_(self, at: int, text: str) -> bool:
        return 0 <= at < len(self.all) and self.all[at].text == text

    def touches(self, left: int, right: int) -> bool:
        return left >= 0 and self.all[left].end == self.all[right].start

    def near(self, at: int, end: int) -> str:
        """The token there, when at most a space lies between it and `end`."""
        return self.all[at].text if at < len(self.all) and self.all[at].start - end <= 1 else ""
