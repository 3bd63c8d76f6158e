"""Messages as a phone shows them, for looking at: `python -m tests.wire.telegram_pictures FOLDER`.

Writes a PNG of 360 px (at twice the density) for every message of `tests/wire/telegram_views.py`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont

from tests.wire.telegram_views import collect_views
from zuno.doors.telegram.render import render
from zuno.doors.telegram.reply import Reply, split_reply

SCALE = 2
PHONE, MARGIN, PADDING = 360 * SCALE, 8 * SCALE, 10 * SCALE
TEXT_SIZE, PRE_SIZE, LINE = 15 * SCALE, 13 * SCALE, 20 * SCALE
INK, PAPER, WALL, MONO, BUTTON = "#111111", "#ffffff", "#d5e2ec", "#3a6d99", "#8fa9bd"
FONTS = {
    (False, False): "DejaVuSans.ttf",
    (True, False): "DejaVuSans-Bold.ttf",
    (False, True): "DejaVuSans-Oblique.ttf",
    (True, True): "DejaVuSans-BoldOblique.ttf",
}


def font(name: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / name), size)


@dataclass
class Word:
    text: str
    tags: frozenset[str]

    @property
    def font(self) -> ImageFont.FreeTypeFont:
        if self.tags & {"pre", "code"}:
            return font("DejaVuSansMono.ttf", PRE_SIZE)
        return font(FONTS["b" in self.tags, "i" in self.tags], TEXT_SIZE)

    @property
    def width(self) -> float:
        return self.font.getlength(self.text)


class Reader(HTMLParser):
    """Lines of words with their tags; a line of a table is one word, for it does not wrap."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[list[Word]] = [[]]
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.tags.pop()

    def handle_data(self, data: str) -> None:
        tags = frozenset(self.tags)
        for number, line in enumerate(data.split("\n")):
            if number:
                self.lines.append([])
            parts = [line] if "pre" in tags else [part + " " for part in line.split(" ")]
            if parts and "pre" not in tags:
                parts[-1] = parts[-1][:-1]
            self.lines[-1] += [Word(part, tags) for part in parts if part]


def wrap(html: str, room: int) -> list[list[Word]]:
    reader = Reader()
    reader.feed(html)
    rows: list[list[Word]] = []
    for line in reader.lines:
        row: list[Word] = []
        width = 0.0
        for word in line:
            pieces = [word]
            while pieces[-1].width > room and "pre" not in word.tags:
                last, fits = pieces.pop(), 1
                while Word(last.text[: fits + 1], word.tags).width <= room:
                    fits += 1
                pieces += [Word(last.text[:fits], word.tags), Word(last.text[fits:], word.tags)]
            for piece in pieces:
                if row and width + piece.width > room:
                    rows.append(row)
                    row, width = [], 0.0
                row.append(piece)
                width += piece.width
        rows.append(row)
    return rows


def paint(reply: Reply) -> Image.Image:
    room = PHONE - 2 * MARGIN - 2 * PADDING
    rows = wrap(reply.html, room)
    height = len(rows) * LINE + 2 * PADDING
    buttons = [reply.buttons[at : at + 4] for at in range(0, len(reply.buttons), 4)]
    picture = Image.new("RGB", (PHONE, height + 2 * MARGIN + len(buttons) * 40 * SCALE), WALL)
    draw = ImageDraw.Draw(picture)
    draw.rounded_rectangle((MARGIN, MARGIN, PHONE - MARGIN, MARGIN + height), 12 * SCALE, fill=PAPER)
    y = MARGIN + PADDING
    for row in rows:
        x = float(MARGIN + PADDING)
        if row and "blockquote" in row[0].tags:
            draw.rectangle((x - 6 * SCALE, y, x - 4 * SCALE, y + LINE), fill=MONO)
        for word in row:
            draw.text((x, y), word.text, font=word.font, fill=MONO if word.tags & {"pre", "code"} else INK)
            x += word.width
            if x > MARGIN + PADDING + room + 1:
                draw.line((PHONE - MARGIN, y, PHONE - MARGIN, y + LINE), fill="red", width=4)
        y += LINE
    y = 2 * MARGIN + height
    for labels in buttons:
        share = (PHONE - 2 * MARGIN) / len(labels)
        for place, button in enumerate(labels):
            left = MARGIN + place * share
            draw.rounded_rectangle((left, y, left + share - 4 * SCALE, y + 34 * SCALE), 6 * SCALE, fill=BUTTON)
            draw.text(
                (left + 6 * SCALE, y + 8 * SCALE), button.label, font=font("DejaVuSans.ttf", 13 * SCALE), fill=PAPER
            )
        y += 40 * SCALE
    return picture


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as home:
        found = asyncio.run(collect_views(Path(home)))
    folder.mkdir(parents=True, exist_ok=True)
    for name, view in found.views.items():
        for number, part in enumerate(split_reply(render(view))):
            paint(part).save(folder / f"{name}{number or ''}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
