"""Text as a reader sees it: one alphabet of digits and signs, nothing invisible, every character's place kept."""

from __future__ import annotations

import re
import unicodedata

UNREADABLE = "\ufffc"
"""Stands for a character that means a number no digit spells (½, Ⅻ, 二): never silently skipped."""

NARROW = "\u202f"
"""The one space that may stand between thousands."""

_INVISIBLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_DRAWN_ALIKE = {
    **dict.fromkeys("\u2212\u2010\u2011\ufe63\uff0d", "-"),
    **dict.fromkeys("\u2012\u2013", "–"),
    **dict.fromkeys("\u2014\u2015", "—"),
    **dict.fromkeys("✕✖⨯", "×"),
    **dict.fromkeys("≈∼≃～", "~"),
    **dict.fromkeys("’ʼ", "'"),
    **dict.fromkeys("\u00a0\u2007\u2009\u202f", NARROW),
    "⁄": "/",
    "∕": "/",
    "٪": "%",
    "٫": ".",
    "٬": ",",
    "⁻": "^-",
}


def plain(text: str) -> tuple[str, list[int] | None]:
    """The text in plain characters, and where each of them stood; None when nothing moved.

    What a screen does not show (zero-width, combining and control characters) is dropped: "9\u200b9" reads ninety-nine.
    """
    if text.isascii() and not _INVISIBLE.search(text):
        return text, None
    out: list[str] = []
    places: list[int] = []
    raised = False
    for place, char in enumerate(text):
        shown = char if char.isascii() and not _INVISIBLE.match(char) else _shown(char)
        is_raised = shown[:1] == "^" and char != "^"
        if is_raised and raised:
            shown = shown[1:]  # 10¹⁵ is 10^15, not 10^1^5
        if shown:
            raised = is_raised
            out.append(shown)
            places.extend([place] * len(shown))
    return "".join(out), places


def _shown(char: str) -> str:
    if char in _DRAWN_ALIKE:
        return _DRAWN_ALIKE[char]
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    if unicodedata.numeric(char, None) is not None:
        if unicodedata.decomposition(char).startswith("<super>"):
            return f"^{unicodedata.digit(char)}"
        return UNREADABLE
    if unicodedata.category(char) in {"Cc", "Cf", "Mn", "Me"}:
        return ""
    folded = unicodedata.normalize("NFKC", char)
    return folded if len(folded) == 1 else char
