"""A bundle in blocks: series are cut at fixed times, so that the next cycle's window shares nearly all of its blocks.

A stored bundle is one of three: its own bytes (written so before there were blocks), a recipe of block numbers and
short pieces, or the name of the archive file that holds it. Its name is the hash of its whole bytes in each case.
"""

import json
import re
import zlib
from collections.abc import Callable, Mapping
from hashlib import sha256
from itertools import pairwise
from typing import Final, TypeAlias

from zuno.kernel.canonical import digest
from zuno.kernel.errors import Unavailable

ROWS: Final = 32
"""A block has so many rows of a regular series, up to twice as many."""
LEAST: Final = 256
"""Bytes of a piece below which it stands in the recipe itself: as a block it would cost more."""
MAX_BUNDLE: Final = 64 * 1024 * 1024

Recipe: TypeAlias = list[bytes | int]
"""Pieces of a bundle, or the numbers of the blocks that hold them."""

_RECIPE, _ARCHIVED = b"\0zuno recipe 1\n", b"\0zuno archived 1\n"
_LIST = re.compile(rb"\[\[(\d{13}),")  # rows begin with their moment in milliseconds
_ROW = re.compile(rb"\],\[(\d{13}),")
_LIST_END = re.compile(rb'\]\],"')


class ArchiveMissing(Unavailable):
    """A bundle lies in an archive file that is not there."""

    def __init__(self, file: str) -> None:
        super().__init__(f"The archive file archive/{file} of this home is missing; put it back and try again.")
        self.file = file


def split(content: bytes) -> list[bytes]:
    """Pieces that joined are the content again, whatever it is; the same rows give the same pieces in every bundle.

    Whether two rows are parted depends on their own moments alone: a multiple of a span lies between them, and the
    span grows with the time from one to the other.
    """
    cuts = [0]
    for first in _LIST.finditer(content):
        start = first.start() + 1
        if start <= cuts[-1]:
            continue
        ended = _LIST_END.search(content, start)
        end = len(content) if ended is None else ended.start() + 1
        cuts.append(start)
        last = int(first[1])
        for row in _ROW.finditer(content, start, end):
            at = int(row[1])
            span = ROWS << max(0, at - last).bit_length()
            if last < at and at // span != last // span:
                cuts.append(row.start() + 2)
            last = at
        cuts.append(end)
    cuts.append(len(content))
    return [content[start:end] for start, end in pairwise(cuts) if end > start]


def build_recipe(content: bytes, put_blocks: Callable[[Mapping[bytes, bytes]], Mapping[bytes, int]]) -> bytes:
    """The content as it is stored; `put_blocks` stores blocks by their hash and says their numbers."""
    pieces = [(piece, sha256(piece).digest() if len(piece) >= LEAST else b"") for piece in split(content)]
    numbers = put_blocks({name: piece for piece, name in pieces if name})
    return encode_recipe([numbers[name] if name else piece for piece, name in pieces])


def encode_recipe(recipe: Recipe) -> bytes:
    """Numbers as steps from the one before: most are small and alike."""
    parts, last = [], 0
    for part in recipe:
        parts.append(part.decode("latin-1") if isinstance(part, bytes) else part - last)
        last = last if isinstance(part, bytes) else part
    return _RECIPE + zlib.compress(json.dumps(parts, separators=(",", ":")).encode())


def point_to_archive(file: str) -> bytes:
    return _ARCHIVED + file.encode()


def decode_stored(name: str, stored: bytes) -> Recipe | str | None:
    """The recipe or archive file that stands for a bundle; None: its own bytes, or damaged ones."""
    if not stored.startswith((_RECIPE, _ARCHIVED)) or digest(stored) == name:
        return None
    if stored.startswith(_ARCHIVED):
        return stored.removeprefix(_ARCHIVED).decode("utf-8", "replace")
    recipe: Recipe = []
    last = 0
    try:
        for part in json.loads(unpack(stored.removeprefix(_RECIPE)) or b"0"):
            last += part if isinstance(part, int) else 0
            recipe.append(last if isinstance(part, int) else part.encode("latin-1"))
    except (ValueError, TypeError, AttributeError):
        return None
    return recipe


def join(recipe: Recipe, blocks: Mapping[int, bytes]) -> bytes | None:
    """None where a block is missing or damaged."""
    try:
        return b"".join([part if isinstance(part, bytes) else blocks[part] for part in recipe])
    except KeyError:
        return None


def unpack(packed: bytes) -> bytes | None:
    """None for anything but one whole packed piece. Bounded: forged bytes do not fill the memory."""
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(packed, MAX_BUNDLE + 1)
    except zlib.error:
        return None
    return data if reader.eof and not reader.unused_data else None
