"""How an answer is laid out in a chat: Telegram's HTML, narrow enough for a phone, with every foreign word escaped."""

from collections.abc import Iterable
from functools import partial
from html import escape

from zuno.doors.telegram.terminal_words import translate_commands
from zuno.kernel.chat_text import format_text
from zuno.kernel.view import sanitise
from zuno.present.html import join as join


def text(raw: str, tag: str = "") -> str:
    """Plain text on one line: escaped, and nothing in it to tap; what stands in backticks is in type of one width."""
    return format_text(translate_commands(sanitise(raw)), tag)


bold = partial(text, tag="b")
italic = partial(text, tag="i")


def code(raw: str) -> str:
    """An id or a price that is copied by a tap."""
    return f"<code>{escape(sanitise(raw), quote=False)}</code>"


def command(words: str) -> str:
    """A command of the chat; the first word of it can be tapped."""
    return escape(sanitise(words), quote=False)


def fact(name: str, value: str) -> str:
    return f"<b>{text(name)}</b>: {text(value)}"


def warning(line: str) -> str:
    return f"⚠ {text(line)}"


def paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def block(lines: Iterable[str]) -> str:
    """Lines in type of one width; not sanitised, so that spaces stay."""
    return f"<pre>{escape(chr(10).join(lines), quote=False)}</pre>"
