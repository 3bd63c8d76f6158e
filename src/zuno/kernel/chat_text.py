"""Text as Telegram's HTML: escaped, and nothing in it is made a link, a mention or a command by the app."""

import re
from html import escape
from typing import Final

JOINER: Final = "\u2060"
"""Zero-width: ends what Telegram reads as one word."""
_LINKS: Final = re.compile(
    r"(?<![\w/])[/@#](?=\w)"  # a command, a mention, a tag
    r"|(?<!\w)\$(?=[A-Za-z])"  # a symbol to search for
    r"|:(?=//)"
    r"|(?<=\w)(?=\.[^\W\d_]{2})"  # a domain
    r"|(?<=\d)(?=\.\d{1,3}\.\d{1,3}\.\d)"  # an address of numbers
)
_IN_BACKTICKS: Final = re.compile(r"`([^`]+)`")
_MOST_CODES: Final = 4
"""Per line: Telegram ignores tags after a hundred, and untagged text could be tapped."""


def break_links(raw: str) -> str:
    """The same text with nothing that Telegram turns into a link."""
    return _LINKS.sub(lambda match: match.group() + JOINER, raw)


def format_text(raw: str, tag: str = "") -> str:
    """One line of plain text, in `<tag>` if one is given. What stands in backticks is in type of one width, where
    Telegram makes no links: it is copied by a tap, as it is."""
    opened, closed = (f"<{tag}>", f"</{tag}>") if tag else ("", "")
    parts = _IN_BACKTICKS.split(raw, _MOST_CODES)
    words = (f"{opened}{escape(break_links(part), quote=False)}{closed}" if part else "" for part in parts[::2])
    codes = (f"<code>{escape(part, quote=False)}</code>" for part in parts[1::2])
    return "".join(part for pair in zip(words, (*codes, ""), strict=True) for part in pair)
