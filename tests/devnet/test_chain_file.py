"""A saved chain is the same chain; anything else is told apart."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from zuno.kernel.errors import Malformed, Unavailable
from zuno_devnet import chain_file
from zuno_devnet.chain import LocalChain
from zuno_devnet.execution import CallMessage
from zuno_devnet.history import LogFilter
from zuno_devnet.keys import dev_key

TICKER = (0x1001).to_bytes(20, "big")
REVERTER = (0x1002).to_bytes(20, "big")


@pytest.fixture
def story(bench: Any) -> Any:
    for index in range(6):
        bench.submit(data=index.to_bytes(64, "big"))
    bench.node.set_automine(False)
    for role in ("alice", "bob"):
        bench.submit(role, to=REVERTER, data=b"")
    bench.submit("carol", to=None, data=bytes.fromhex("60006000f3"))
    for role in ("alice", "bob", "carol"):
        bench.submit(role)
    bench.node.mine()
    return bench.chain


def save_and_load(chain: LocalChain, folder: Path) -> LocalChain:
    (folder / "saved.chain").write_bytes(chain_file.dump(chain))
    return chain_file.load(folder / "saved.chain")


@pytest.mark.slow
def test_a_round_trip_keeps_every_answer(story: Any, tmp_path: Path) -> None:
    copy = save_and_load(story, tmp_path)
    assert copy.genesis == story.genesis
    assert [block.hash for block in copy.history] == [block.hash for block in story.history]
    assert [block.receipts for block in copy.history] == [block.receipts for block in story.history]
    everything = LogFilter(0, 99)
    assert list(copy.history.logs(everything)) == list(story.history.logs(everything))
    call = CallMessage(sender=bytes(20), to=TICKER, data=bytes(64))
    for height in (0, 3, 7):
        assert copy.call(call, copy.history.at(height)) == story.call(call, story.history.at(height))


@pytest.mark.slow
def test_a_loaded_chain_goes_on_as_the_original_would(story: Any, tmp_path: Path) -> None:
    copy = save_and_load(story, tmp_path)
    heads = []
    for chain in (story, copy):
        tx = chain.sign(dev_key("alice"), to=TICKER, data=bytes(64), gas=100_000)
        heads.append(chain.apply_block([tx], chain.head.timestamp + 9).hash)
    assert heads[0] == heads[1]


def test_a_missing_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=re.escape(str(tmp_path / "nothing"))):
        chain_file.load(tmp_path / "nothing")


@pytest.mark.slow
def test_a_cut_or_changed_file_is_malformed(story: Any, tmp_path: Path) -> None:
    path = tmp_path / "c"
    good = chain_file.dump(story)
    middle = len(good) // 2
    damaged = {
        "empty": b"",
        "foreign": b"PK\x03\x04" + good,
        "older format": good.replace(b"format 1", b"format 0", 1),
        "only the first line": good[:28],
        "cut": good[:-1],
        "half": good[:middle],
        "another digest": good[:30] + bytes([good[30] ^ 1]) + good[31:],
        "flipped": good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :],
    }
    for name, content in damaged.items():
        path.write_bytes(content)
        with pytest.raises(Malformed, match=re.escape(str(path))):
            chain_file.load(path)
        assert name
