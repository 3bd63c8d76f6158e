"""What is sent to a chat, and how it is cut to what one message may hold."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import unescape
from typing import Final

from zuno.kernel.notify import Button as Button

MESSAGE_LIMIT: Final = 4_096
CAPTION_LIMIT: Final = 1_024
"""UTF-16 code units of text, without its tags."""
MOST_TAGS: Final = 100
"""Formatted parts of one message; Telegram ignores the tags of further ones."""


@dataclass(frozen=True, slots=True)
class Attachment:
    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """A message in Telegram's HTML. With a photo or a document the text is its caption."""

    html: str
    buttons: tuple[Button, ...] = ()
    photo: bytes | None = None
    document: Attachment | None = None


def split_reply(reply: Reply) -> tuple[Reply, ...]:
    """As one message each can hold: the picture with the first, the buttons with the last, a document by itself."""
    first = CAPTION_LIMIT if reply.photo is not None or reply.document is not None else MESSAGE_LIMIT
    texts = split_message(reply.html, first)
    photo, document = reply.photo, reply.document
    parts = [Reply(text) for text in texts]
    if photo is not None or document is not None:
        caption = texts[0] if texts else ""
        parts[:1] = [Reply(caption, photo=photo) if photo is not None else Reply(caption, document=document)]
    if photo is not None and document is not None:
        parts.append(Reply("", document=document))
    if parts:
        parts[-1] = replace(parts[-1], buttons=reply.buttons)
    return tuple(parts)


def split_message(html: str, first: int = MESSAGE_LIMIT, limit: int = MESSAGE_LIMIT) -> tuple[str, ...]:
    """Well-formed HTML as pieces of at most `limit` units, the first of at most `first`; none of them is blank.

    A piece ends at an empty line if one stands in its second half, else at the end of a line, else at a space, else
    anywhere between two characters; the white space it ends at is dropped. Tags that are open where a piece ends are
    closed there and opened again in the next."""
    if len(html.encode("utf-16-le")) <= 2 * first and html.count("<") <= MOST_TAGS and _TEXT.search(html):
        return (html.strip(),)  # as most are: with its tags it fits already
    tokens = list(_read_tokens(html))
    pieces: list[str] = []
    open_tags: list[_Token] = []
    start = 0
    while start < len(tokens):
        end, after = _find_end(tokens, start, limit if pieces else first, len(open_tags))
        piece, open_tags = _write_piece(tokens[start:end], open_tags)
        if piece:
            pieces.append(piece)
        start = after
    return tuple(pieces)


def count_units(html: str) -> int:
    """UTF-16 code units of the text, as Telegram counts a message."""
    return sum(token.size for token in _read_tokens(html))


@dataclass(frozen=True, slots=True)
class _Token:
    """A tag, or a character of the text (an entity is one)."""

    raw: str
    tag: str = ""
    closes: bool = False
    size: int = 0

    @property
    def blank(self) -> bool:
        return not self.tag and self.raw.isspace()


_TEXT: Final = re.compile(r"(?:^|>)[^<]*[^<\s]")
"""Something to read outside of the tags."""
_TOKEN = re.compile(r"<(?P<closes>/?)(?P<tag>[a-z-]+)[^<>]*>|&(?:#[0-9]+|#x[0-9a-fA-F]+|[a-z]+);|.", re.DOTALL)


def _read_tokens(html: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(html):
        raw = found.group()
        if tag := found.group("tag"):
            yield _Token(raw, tag, closes=bool(found.group("closes")))
        else:
            yield _Token(raw, size=len(unescape(raw).encode("utf-16-le", "surrogatepass")) // 2)


def _find_end(tokens: list[_Token], start: int, limit: int, tags: int) -> tuple[int, int]:
    """Where the piece from `start` ends, and where the next begins."""
    size, said = 0, False
    breaks: dict[int, int] = {}
    """The last place of each kind: 0 an empty line, 1 the end of a line, 2 a space."""
    for place, token in enumerate(tokens[start:], start):
        size += token.size
        tags += bool(token.tag) and not token.closes
        if size > limit or (tags > MOST_TAGS and said):
            return _choose_end(tokens, start, breaks, place)
        if token.blank:
            breaks[_rank_break(tokens, place)] = place
        said = said or (not token.tag and not token.blank)
    return len(tokens), len(tokens)


def _rank_break(tokens: list[_Token], place: int) -> int:
    if tokens[place].raw != "\n":
        return 2
    return 0 if place and tokens[place - 1].raw == "\n" else 1


def _choose_end(tokens: list[_Token], start: int, breaks: dict[int, int], full: int) -> tuple[int, int]:
    """`full`: the first token that has no room any more."""
    middle = start + (full - start) // 2
    for rank in sorted(breaks):
        if breaks[rank] > middle:
            return breaks[rank], breaks[rank] + 1
    end = full
    while end > middle and unicodedata.combining(tokens[end].raw[0]):
        end -= 1  # an accent stays with its letter
    end = max(end, start + 1)
    return end, end


def _write_piece(tokens: list[_Token], open_tags: list[_Token]) -> tuple[str, list[_Token]]:
    """A piece with its tags closed ("" if it has no text), and the tags to open in the next."""
    written, stack = list(open_tags), list(open_tags)
    while tokens and tokens[-1].blank:
        tokens.pop()
    said = False
    for token in tokens:
        if not said and token.raw == "\n":
            continue
        if token.closes:
            stack.pop()
            if written and written[-1].tag == token.tag and not written[-1].closes:
                written.pop()  # nothing stands between them
                continue
        elif token.tag:
            stack.append(token)
        else:
            said = said or not token.blank
        written.append(token)
    closing = [_Token(f"</{token.tag}>") for token in reversed(stack)]
    return "".join(token.raw for token in (*written, *closing)) if said else "", stack
