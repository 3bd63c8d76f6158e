"""A saved chain is the same chain; anything else is told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from zuno.adapters.chain.devnet import cachefile
from zuno.adapters.chain.devnet.execution import CallMessage
from zuno.adapters.chain.devnet.history import LogFilter
from zuno.adapters.chain.devnet.keys import dev_key
from zuno.kernel.errors import Malformed, Unavailable

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


def test_a_round_trip_keeps_every_answer(story: Any, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "world.chain"
    cachefile.save(path, story, {"world": "test", "offset": 5})
    saved = cachefile.load(path)
    copy = saved.chain
    assert saved.notes == {"world": "test", "offset": 5}
    assert copy.genesis == story.genesis
    assert [block.hash for block in copy.history] == [block.hash for block in story.history]
    assert [block.receipts for block in copy.history] == [block.receipts for block in story.history]
    everything = LogFilter(0, 99)
    assert list(copy.history.logs(everything)) == list(story.history.logs(everything))
    call = CallMessage(sender=bytes(20), to=TICKER, data=bytes(64))
    for height in (0, 3, 7):
        assert copy.call(call, copy.history.at(height)) == story.call(call, story.history.at(height))
    assert list(tmp_path.rglob("*.partial")) == []


def test_a_loaded_chain_goes_on_as_the_original_would(story: Any, tmp_path: Path) -> None:
    cachefile.save(tmp_path / "c", story, {})
    copy = cachefile.load(tmp_path / "c").chain
    heads = []
    for chain in (story, copy):
        tx = chain.sign(dev_key("alice"), to=TICKER, data=bytes(64), gas=100_000)
        heads.append(chain.apply_block([tx], chain.head.timestamp + 9).hash)
    assert heads[0] == heads[1]


def test_a_missing_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no saved chain"):
        cachefile.load(tmp_path / "nothing")


def test_a_cut_or_changed_file_is_malformed(story: Any, tmp_path: Path) -> None:
    path = tmp_path / "c"
    cachefile.save(path, story, {})
    good = path.read_bytes()
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
        with pytest.raises(Malformed, match="build it again"):
            cachefile.load(path)
        assert name


def test_a_failed_save_leaves_the_old_file(story: Any, tmp_path: Path) -> None:
    path = tmp_path / "c"
    cachefile.save(path, story, {})
    good = path.read_bytes()
    with pytest.raises(TypeError):
        cachefile.save(path, story, {"unwritable": object()})
    assert path.read_bytes() == good
    assert [entry.name for entry in tmp_path.iterdir()] == ["c"]
