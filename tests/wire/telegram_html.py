"""Telegram's HTML as its server reads it: a small set of tags, strictly nested, and entities counted in UTF-16."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

MOST_ENTITIES = 100
_TYPES = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "a": "text_link",
    "tg-emoji": "custom_emoji",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
}
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_TAG = re.compile(
    r"<(/?)([A-Za-z][A-Za-z0-9-]*)((?:\s+[A-Za-z-]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>=]+))?)*)\s*>"
)
_ATTRIBUTE = re.compile(r"([A-Za-z-]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'<>=]+)))?")
_ENTITY = re.compile(r"&(?:#(?:x([0-9A-Fa-f]{1,6})|([0-9]{1,7}))|([a-z]+));")


_TAPPABLE = re.compile(
    r"(?<![\w/])[/@#]\w+|(?<!\w)\$[A-Za-z]+|\w+://\S*|\w\.[^\W\d_]{2,}|\d+\.\d{1,3}\.\d{1,3}\.\d+", re.ASCII
)


class CantParse(Exception):
    """The server's complaint."""


@dataclass(frozen=True)
class Parsed:
    text: str
    entities: list[dict[str, Any]]


def units(text: str) -> int:
    """UTF-16 code units: what offsets, lengths and limits are counted in."""
    return len(text.encode("utf-16-le")) // 2


def find_tappable(html: str) -> list[str]:
    """What the app would make a link, a mention, a tag or a command of: everywhere but in code."""
    bare = re.sub(r"<(code|pre)>.*?</\1>", " ", html, flags=re.DOTALL)
    return _TAPPABLE.findall(parse_html(bare).text)


def parse_html(html: str) -> Parsed:
    text: list[str] = []
    open_tags: list[tuple[str, int, dict[str, str], int]] = []
    entities: list[dict[str, Any]] = []
    place = length = 0
    while place < len(html):
        char = html[place]
        if char == "<":
            found = _TAG.match(html, place)
            offset = len(html[:place].encode())
            if found is None:
                raise CantParse(f"Unsupported start tag at byte offset {offset}")
            closing, name, raw = found[1], found[2].lower(), found[3]
            if closing:
                if not open_tags:
                    raise CantParse(f"Unexpected end tag at byte offset {offset}")
                expected, start, attributes, slot = open_tags.pop()
                if expected != name:
                    raise CantParse(
                        f'Unmatched end tag at byte offset {offset}, expected "</{expected}>", found "</{name}>"'
                    )
                if length > start:
                    entities[slot] = _entity(name, start, length - start, attributes)
            else:
                if name not in _TYPES:
                    raise CantParse(f'Unsupported start tag "{name}" at byte offset {offset}')
                attributes = {key.lower(): a or b or c for key, a, b, c in _ATTRIBUTE.findall(raw)}
                if name == "span" and attributes.get("class") != "tg-spoiler":
                    raise CantParse(f'Tag "span" must have class "tg-spoiler" at byte offset {offset}')
                open_tags.append((name, length, attributes, len(entities)))
                entities.append({"offset": 0, "length": 0})
            place = found.end()
            continue
        if char == "&" and (found := _ENTITY.match(html, place)) is not None:
            decoded = _decode(found)
            if decoded is not None:
                text.append(decoded)
                length += units(decoded)
                place = found.end()
                continue
        text.append(char)
        length += units(char)
        place += 1
    if open_tags:
        raise CantParse(f'Can\'t find end tag corresponding to start tag "{open_tags[-1][0]}"')
    return _trim("".join(text), entities)


def _decode(found: re.Match[str]) -> str | None:
    hexadecimal, decimal, name = found.groups()
    if name is not None:
        return _NAMED.get(name)
    number = int(hexadecimal, 16) if hexadecimal else int(decimal)
    return chr(number) if 0 < number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF else None


def _entity(name: str, offset: int, length: int, attributes: dict[str, str]) -> dict[str, Any]:
    entity: dict[str, Any] = {"type": _TYPES[name], "offset": offset, "length": length}
    if name == "a":
        entity["url"] = attributes.get("href", "")
    elif name == "tg-emoji":
        entity["custom_emoji_id"] = attributes.get("emoji-id", "")
    elif name == "blockquote" and "expandable" in attributes:
        entity["type"] = "expandable_blockquote"
    return entity


def _trim(text: str, entities: list[dict[str, Any]]) -> Parsed:
    """Surrounding white space is not sent; entities are moved and cut with it."""
    stripped = text.strip()
    front = units(text[: len(text) - len(text.lstrip())])
    whole = units(stripped)
    kept = []
    for entity in entities:
        start = max(0, entity["offset"] - front)
        end = min(whole, entity["offset"] - front + entity["length"])
        if end > start:
            kept.append(entity | {"offset": start, "length": end - start})
    return Parsed(stripped, kept[:MOST_ENTITIES])
