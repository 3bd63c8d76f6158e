"""Bundles in blocks: any bytes come back, the same rows give the same blocks, and damage is never taken for content."""

from __future__ import annotations

import random
import zlib
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from zuno.journal.blocks import (
    LEAST,
    Recipe,
    build_recipe,
    decode_stored,
    encode_recipe,
    join,
    point_to_archive,
    split,
    unpack,
)
from zuno.kernel.canonical import canonical, digest, encode_json

HOUR = 3_600_000
START = 1_700_000_000_000 // HOUR * HOUR


def rows(first: int, count: int, step: int = HOUR) -> list[list[float]]:
    return [[START + number * step, 40_000.5 + number, 1.25 * number, None] for number in range(first, first + count)]  # type: ignore[list-item]


def bundle(*lists: list[list[float]], note: str = "") -> bytes:
    blocks = [{"asOf": each[-1][0], "notes": [note], "rows": each, "series": f"s{n}"} for n, each in enumerate(lists)]
    return canonical({"blocks": blocks, "slots": [{"name": "memory", "content": note}]})


class Shelf:
    """Blocks by number, as a store keeps them."""

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = {}
        self.blocks: dict[int, bytes] = {}

    def put(self, pieces: dict[bytes, bytes]) -> dict[bytes, int]:
        for name, piece in pieces.items():
            assert sha256(piece).digest() == name
            self.blocks[self.numbers.setdefault(name, len(self.numbers) + 1)] = piece
        return self.numbers

    def read(self, name: str, stored: bytes) -> bytes | None:
        parts = decode_stored(name, stored)
        assert not isinstance(parts, str | None)
        return join(parts, self.blocks)


row_like = st.lists(st.integers(0, 2**44), max_size=60).map(lambda times: encode_json([[at, 1.5] for at in times]))


@given(st.lists(st.one_of(st.binary(max_size=400), row_like, st.sampled_from([b"[[1700000000000,", b']],"', b"],[1"]))))
def test_any_bytes_come_back_from_their_pieces_and_from_a_recipe(parts: list[bytes]) -> None:
    content = b"".join(parts)
    assert b"".join(split(content)) == content
    shelf = Shelf()
    stored = build_recipe(content, shelf.put)  # type: ignore[arg-type]
    assert shelf.read(digest(content), stored) == content
    assert all(len(block) >= LEAST for block in shelf.blocks.values())


@given(st.lists(st.one_of(st.binary(max_size=300), st.integers(0, 2**60))))
def test_a_recipe_says_its_parts(parts: Recipe) -> None:
    assert decode_stored("0" * 64, encode_recipe(parts)) == parts


def test_the_same_pieces_on_every_machine() -> None:
    content = bundle(rows(5, 300), rows(0, 200, 60_000), [[START + 9, "long", 1.0], [START + 9, "short", 2.0]])  # type: ignore[list-item]
    pieces = split(content)
    assert [len(piece) for piece in pieces] == GOLDEN_LENGTHS
    assert digest(b"|".join(pieces)) == GOLDEN_PIECES


def test_the_next_window_shares_all_but_the_ends_of_its_series() -> None:
    before, after = (set(split(bundle(rows(first, 4_344), note=str(first)))) for first in (100, 104))
    new = [piece for piece in after - before if len(piece) >= LEAST]
    assert len(after) > 60
    assert len(new) == 2  # the oldest, which lost four rows, and the newest


def test_rows_at_odd_times_are_cut_too_and_shared() -> None:
    chance = random.Random(4)
    times = sorted(START + chance.randrange(20 * 24 * HOUR) for _ in range(3_000))
    whole = [[at, "long", 1.5, f"f{at}"] for at in times]
    before, after = (set(split(bundle(whole[first : first + 2_500]))) for first in (100, 130))  # type: ignore[arg-type]
    assert 40 < len(after) < 200
    assert len(after - before) <= 4


def test_a_bundle_that_looks_like_a_recipe_is_itself() -> None:
    for content in (encode_recipe([b"other", 3]), point_to_archive("bundles-2026-01.db")):
        assert decode_stored(digest(content), content) is None
        assert decode_stored("0" * 64, content) is not None
        shelf = Shelf()
        assert shelf.read(digest(content), build_recipe(content, shelf.put)) == content  # type: ignore[arg-type]


def test_damaged_recipes_and_blocks_are_no_content() -> None:
    stored = encode_recipe([b"x" * 40, 7, b"y", 9])
    magic = stored.index(b"\n") + 1
    assert decode_stored("0" * 64, stored[:-3]) is None
    assert decode_stored("0" * 64, stored + b"more") is None
    assert decode_stored("0" * 64, stored[:magic] + zlib.compress(b"[1,null]")) is None
    parts = decode_stored("0" * 64, stored)
    assert not isinstance(parts, str | None)
    assert parts == [b"x" * 40, 7, b"y", 9]
    assert join(parts, {7: b"a"}) is None
    assert unpack(b"nonsense") is None
    assert unpack(zlib.compress(bytes(70_000_000))) is None, "a bomb is not unpacked"
    assert decode_stored("0" * 64, point_to_archive("a.db")) == "a.db"


GOLDEN_LENGTHS = [
    54,
    1136,
    1311,
    1309,
    1314,
    1349,
    1313,
    1314,
    1313,
    212,
    60,
    268,
    1207,
    1208,
    1240,
    1243,
    1242,
    603,
    60,
    54,
    59,
]
GOLDEN_PIECES = "3c6ba2305c95b2502445a170162f5a0dffa0e2d119a5407ed3a1f455026d260e"
