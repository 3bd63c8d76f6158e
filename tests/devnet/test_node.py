"""Mining, time, reorganisations, snapshots and evictions."""

from __future__ import annotations

from typing import Any

import pytest

from zuno_devnet.chain import GWEI
from zuno_devnet.rpc_errors import RpcError

TICKER = (0x1001).to_bytes(20, "big")


def count(bench: Any) -> int:
    return bench.chain.storage(TICKER, 0)


def test_each_transaction_is_mined_at_once(bench: Any) -> None:
    tx = bench.submit()
    assert bench.chain.head.number == 1
    assert bench.chain.receipt(tx.hash).ok


def test_paused_transactions_wait_for_a_block_and_resuming_mines_them(bench: Any) -> None:
    bench.node.set_automine(False)
    first = bench.submit()
    assert bench.chain.head.number == 0
    assert bench.chain.receipt(first.hash) is None
    assert len(bench.node.mine().receipts) == 1
    bench.submit()
    bench.submit()
    bench.node.set_automine(True)
    assert (bench.chain.head.number, count(bench)) == (2, 3)


def test_the_best_tip_goes_first_and_arrival_breaks_ties(bench: Any) -> None:
    bench.node.set_automine(False)
    slow = bench.submit("alice", tip=GWEI)
    same = bench.submit("bob", tip=GWEI)
    fast = bench.submit("carol", tip=2 * GWEI)
    assert [tx.hash for tx in bench.node.mine().transactions] == [fast.hash, slow.hash, same.hash]


def test_what_does_not_fit_waits_for_the_next_block(bench: Any) -> None:
    bench.node.set_automine(False)
    # Each reserves a whole block, whatever little it will use.
    first, second = (bench.submit(role, gas=60_000_000) for role in ("alice", "bob"))
    assert [tx.hash for tx in bench.node.mine().transactions] == [first.hash]
    assert [tx.hash for tx in bench.node.mine().transactions] == [second.hash]


def test_blocks_follow_the_clock_and_never_stand_still(bench: Any) -> None:
    bench.clock.now = bench.chain.head.timestamp + 50
    assert bench.node.mine().timestamp == bench.clock.now
    assert bench.node.mine().timestamp == bench.clock.now + 1
    assert bench.node.increase_time(3600) == 3600
    assert bench.node.mine().timestamp == bench.clock.now + 3600
    bench.node.set_next_timestamp(int(bench.clock.now) + 9999)
    assert bench.node.mine().timestamp == bench.clock.now + 9999
    assert bench.node.mine().timestamp == bench.clock.now + 10_000
    with pytest.raises(RpcError, match=r"\bafter\b"):
        bench.node.set_next_timestamp(1)


def test_a_reorg_takes_receipts_away_and_gives_transactions_back(bench: Any) -> None:
    kept = bench.submit()
    tx = bench.submit()
    old = bench.chain.head
    (new,) = bench.node.reorg(1)
    assert (new.number, new.receipts) == (old.number, ())
    assert new.hash != old.hash
    assert new.timestamp == old.timestamp
    assert bench.chain.history.by_hash(old.hash) is None
    assert bench.chain.receipt(tx.hash) is None
    assert bench.chain.receipt(kept.hash) is not None
    assert bench.node.pool.get(tx.hash) is not None
    assert count(bench) == 1
    again = bench.node.mine()
    assert [found.hash for found in again.transactions] == [tx.hash]
    assert again.hash not in (old.hash, new.hash)
    assert count(bench) == 2


def test_a_reorg_can_drop_or_keep_transactions(bench: Any) -> None:
    txs = [bench.submit() for _ in range(3)]
    blocks = bench.node.reorg(2, drop=[txs[2].hash], keep=True)
    assert [[tx.hash for tx in block.transactions] for block in blocks] == [[txs[1].hash], []]
    assert len(bench.node.pool) == 0
    assert bench.chain.receipt(txs[2].hash) is None


def test_a_dropped_nonce_leaves_its_followers_waiting(bench: Any) -> None:
    txs = [bench.submit() for _ in range(2)]
    bench.node.reorg(2, drop=[txs[0].hash])
    assert bench.node.mine().transactions == ()
    assert bench.node.pool.get(txs[1].hash) is not None


def test_empty_blocks_are_replaced_by_different_ones(bench: Any) -> None:
    old = [bench.node.mine().hash for _ in range(3)]
    new = [block.hash for block in bench.node.reorg(3)]
    assert len(new) == 3
    assert not set(old) & set(new)
    assert new != [block.hash for block in bench.node.reorg(3)]


@pytest.mark.parametrize("depth", [0, 2])
def test_genesis_cannot_be_reorganised(bench: Any, depth: int) -> None:
    bench.node.mine()
    with pytest.raises(RpcError, match="reorganise"):
        bench.node.reorg(depth)


def test_an_evicted_transaction_is_gone_and_may_come_back(bench: Any) -> None:
    bench.node.set_automine(False)
    tx = bench.submit()
    assert bench.node.pool.drop(tx.hash)
    assert not bench.node.pool.drop(tx.hash)
    assert bench.node.mine().transactions == ()
    bench.node.submit(tx.raw)
    assert len(bench.node.mine().transactions) == 1


def test_a_snapshot_restores_chain_pool_and_clock_once(bench: Any) -> None:
    bench.submit()
    bench.node.set_automine(False)
    waiting = bench.submit()
    head = bench.chain.head
    snapshot = bench.node.snapshot()
    later = bench.node.snapshot()
    bench.node.increase_time(500)
    bench.node.mine()
    bench.node.reorg(2)
    bench.node.mine()
    assert bench.node.revert(snapshot)
    assert bench.chain.head is head
    assert bench.chain.history.by_hash(head.hash) is head
    assert bench.node.pool.get(waiting.hash) is waiting
    assert bench.node.time_offset == 0
    assert count(bench) == 1
    assert not bench.node.revert(snapshot)
    assert not bench.node.revert(later)


def test_the_pending_block_is_a_preview(bench: Any) -> None:
    bench.node.set_automine(False)
    bench.submit()
    nodes = len(bench.chain.store)
    view = bench.node.pending()
    assert view.block.number == 1
    assert view.chain.storage(TICKER, 0, view.block) == 1
    assert (bench.chain.head.number, count(bench), len(bench.chain.store)) == (0, 0, nodes)
    assert len(bench.node.pool) == 1
