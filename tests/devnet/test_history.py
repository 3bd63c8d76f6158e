"""The index answers exactly what a walk over all blocks would."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from zuno_devnet.history import ChainIndex, LocalLog, LogFilter

ADDRESSES = [bytes([n]) * 20 for n in range(3)]
TOPICS = [bytes([n]) * 32 for n in range(4)]


def build(rng: random.Random, blocks: int) -> tuple[ChainIndex, list[Any]]:
    history: ChainIndex = ChainIndex()
    return history, grow(rng, history, blocks)


def grow(rng: random.Random, history: ChainIndex, blocks: int) -> list[Any]:
    """History needs only a hash, receipts and logs of a block, so stand-ins do."""
    made = []
    for number in range(len(history), blocks):
        logs = tuple(
            LocalLog(
                address=rng.choice(ADDRESSES),
                topics=tuple(rng.choice(TOPICS) for _ in range(rng.randrange(4))),
                data=b"",
                block_number=number,
                tx_index=0,
                index=index,
            )
            for index in range(rng.randrange(5))
        )
        block = SimpleNamespace(hash=rng.randbytes(32), receipts=(), logs=lambda logs=logs: iter(logs))
        made.append(block)
        history.append(block)  # type: ignore[arg-type]
    return made


def random_filter(rng: random.Random, blocks: int) -> LogFilter:
    first = rng.randrange(-1, blocks + 2)
    topics = tuple(
        None if rng.random() < 0.4 else frozenset(rng.sample(TOPICS, rng.randrange(1, 3)))
        for _ in range(rng.randrange(4))
    )
    addresses = frozenset(rng.sample(ADDRESSES, rng.randrange(3)))
    return LogFilter(first, first + rng.randrange(blocks), addresses, topics)


def walk(blocks: list[Any], wanted: LogFilter) -> list[LocalLog]:
    return [
        log
        for block in blocks
        for log in block.logs()
        if wanted.first <= log.block_number <= wanted.last
        and (not wanted.addresses or log.address in wanted.addresses)
        and len(log.topics) >= len(wanted.topics)
        and all(want is None or log.topics[i] in want for i, want in enumerate(wanted.topics))
    ]


def test_filters_agree_with_a_walk_before_and_after_a_reorganisation() -> None:
    rng = random.Random(4)
    history, blocks = build(rng, 60)
    found = 0
    for _ in range(3):
        for _ in range(200):
            wanted = random_filter(rng, 60)
            expected = walk(blocks, wanted)
            assert list(history.logs(wanted)) == expected
            found += len(expected)
        while len(history) > 41:
            history.pop()
        blocks = blocks[:41] + grow(rng, history, 60)
    assert found > 1_000, "the filters must match something for this to mean anything"


def test_an_address_nobody_logged_from_matches_nothing() -> None:
    history, _ = build(random.Random(1), 20)
    assert list(history.logs(LogFilter(0, 19, frozenset({b"\xff" * 20})))) == []
