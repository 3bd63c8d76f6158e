"""A bundle in blocks: series are cut at fixed times, so that the next cycle's window shares nearly all of its blocks.

A stored bundle is one of three: its own bytes (written so before there were blocks), a recipe of block numbers and
short pieces, or the name of the archive file that holds it. Its name is the hash of its whole bytes in each case.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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

Part: TypeAlias = bytes | int
"""A piece of a bundle, or the number of the block that holds it."""

_RECIPE, _ARCHIVED = b"\0zuno recipe 1\n", b"\0zuno archived 1\n"
_LIST = re.compile(rb"\[\[(\d{13}),")  # rows begin with their moment in milliseconds
_ROW = re.compile(rb"\],\[(\d{13}),")
_LIST_END = re.compile(rb'\]\],"')


class ArchiveMissing(Unavailable):
    """A bundle lies in an archive file that is not there."""

    def __init__(self, file: str) -> None:
        super().__init__(f"The archive file {file} of this home is missing; put it back and try again.")
        self.file = file


@dataclass(frozen=True, slots=True)
class Archived:
    """Where a bundle went."""

    file: str


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
        cuts.append(start)
        ended = _LIST_END.search(content, start)
        end = len(content) if ended is None else ended.start() + 1
        last = int(first[1])
        for row in _ROW.finditer(content, start, end):
            at = int(row[1])
            gap = at - last
            if gap > 0:
                span = ROWS << gap.bit_length()
                if at // span != last // span:
                    cuts.append(row.start() + 2)
            last = at
        cuts.append(end)
    cuts.append(len(content))
    return [content[start:end] for start, end in pairwise(cuts) if end > start]


def build_recipe(content: bytes, put_blocks: Callable[[Mapping[bytes, bytes]], Mapping[bytes, int]]) -> bytes:
    """The content as a recipe; `put_blocks` stores blocks by their hash and says their numbers."""
    pieces = split(content)
    names = [sha256(piece).digest() if len(piece) >= LEAST else None for piece in pieces]
    numbers = put_blocks({name: piece for name, piece in zip(names, pieces, strict=True) if name is not None})
    return encode_recipe([piece if name is None else numbers[name] for name, piece in zip(names, pieces, strict=True)])


def encode_recipe(parts: Sequence[Part]) -> bytes:
    """Even numbers are followed by a piece of half that length; odd ones are steps to the next block's number."""
    out, last = bytearray(), 0
    for part in parts:
        if isinstance(part, bytes):
            _append_number(out, len(part) << 1)
            out += part
        else:
            step, last = part - last, part
            _append_number(out, ((step << 1 if step >= 0 else (-step << 1) - 1) << 1) | 1)
    return _RECIPE + zlib.compress(bytes(out))


def point_to_archive(file: str) -> bytes:
    return _ARCHIVED + file.encode()


def decode_stored(name: str, stored: bytes) -> Sequence[Part] | Archived | None:
    """What stands for the bundle of that name; None: its own bytes, or damaged ones."""
    if not stored.startswith((_RECIPE, _ARCHIVED)) or digest(stored) == name:
        return None
    if stored.startswith(_ARCHIVED):
        return Archived(stored.removeprefix(_ARCHIVED).decode("utf-8", "replace"))
    try:
        return _decode_parts(_inflate(stored.removeprefix(_RECIPE)))
    except (ValueError, IndexError, zlib.error):
        return None


def join(parts: Sequence[Part], blocks: Mapping[int, bytes]) -> bytes | None:
    """The bytes of a recipe; None where a block is missing or damaged."""
    try:
        return b"".join([part if isinstance(part, bytes) else blocks[part] for part in parts])
    except KeyError:
        return None


def pack_block(piece: bytes) -> bytes:
    return zlib.compress(piece)


def unpack_block(packed: bytes) -> bytes | None:
    """None for bytes that `pack_block` does not write."""
    try:
        return _inflate(packed)
    except (ValueError, zlib.error):
        return None


def list_blocks(parts: Sequence[Part]) -> set[int]:
    return {part for part in parts if isinstance(part, int)}


def _inflate(packed: bytes) -> bytes:
    """Bounded: a damaged or forged block does not fill the memory."""
    reader = zlib.decompressobj()
    data = reader.decompress(packed, MAX_BUNDLE + 1)
    if not reader.eof or reader.unused_data:
        raise ValueError("more or less than one packed piece")
    return data


def _decode_parts(data: bytes) -> list[Part]:
    parts: list[Part] = []
    place = last = 0
    while place < len(data):
        number = shift = 0
        while True:
            byte = data[place]
            place += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if number & 1:
            step = number >> 1
            last += (step + 1 >> 1) * -1 if step & 1 else step >> 1
            parts.append(last)
        else:
            parts.append(data[place : place + (number >> 1)])
            place += number >> 1
    return parts


def _append_number(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
