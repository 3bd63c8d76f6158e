"""The engine: blocks, archive reads, free calls and gas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from zuno_devnet.block_builder import next_base_fee
from zuno_devnet.chain import ETHER, GWEI
from zuno_devnet.execution import CallMessage
from zuno_devnet.keys import dev_address, dev_key
from zuno_devnet.rpc_errors import RpcError, revert_message

TICKER = (0x1001).to_bytes(20, "big")
REVERTER = (0x1002).to_bytes(20, "big")
SPENDER = (0x1003).to_bytes(20, "big")
FORWARDER = (0x1004).to_bytes(20, "big")
NOBODY = (0xDEAD).to_bytes(20, "big")


def tick(chain: Any, nonce: int | None = None) -> Any:
    return chain.sign(dev_key("alice"), to=TICKER, data=bytes(64), gas=100_000, nonce=nonce)


def count(chain: Any, at: Any = None) -> int:
    return chain.storage(TICKER, 0, at)


def test_the_same_genesis_and_blocks_give_the_same_hashes(make_chain: Any) -> None:
    one, two = make_chain(), make_chain()
    for chain in (one, two):
        chain.apply_block([tick(chain)], chain.head.timestamp + 5)
    assert one.head.hash == two.head.hash
    assert make_chain(base_fee=7).head.hash != make_chain().head.hash


def test_a_block_holds_several_transactions_of_one_sender(make_chain: Any) -> None:
    chain = make_chain()
    block = chain.apply_block([tick(chain, nonce) for nonce in range(3)], chain.head.timestamp + 1)
    assert [receipt.ok for receipt in block.receipts] == [True] * 3
    assert count(chain) == 3
    assert block.receipts[-1].cumulative_gas == sum(receipt.gas_used for receipt in block.receipts)
    assert [log.index for log in block.logs()] == [0, 1, 2]
    # Sharing a block warms nothing: each costs what it costs in a block of its own.
    (alone,) = chain.apply_block([tick(chain)], chain.head.timestamp + 1).receipts
    assert [receipt.gas_used for receipt in block.receipts[1:]] == [alone.gas_used] * 2


def test_an_invalid_transaction_changes_nothing(make_chain: Any) -> None:
    chain = make_chain()
    before = chain.head.hash
    with pytest.raises(RpcError, match="invalid transaction"):
        chain.apply_block([tick(chain, 0), tick(chain, 5)], chain.head.timestamp + 1)
    assert chain.head.hash == before
    assert count(chain) == 0


def test_the_sender_pays_for_the_gas_used_after_refunds(make_chain: Any) -> None:
    """SSTORE(0, CALLDATALOAD(0)): clearing the slot earns a refund, and the receipt must know of it."""
    setter = b"\x77" * 20
    chain = make_chain(code={setter: bytes.fromhex("60003560005500")})
    costs = []
    for value in (1, 0):
        before = chain.balance(dev_address("alice"))
        tx = chain.sign(dev_key("alice"), to=setter, data=value.to_bytes(32, "big"), gas=100_000)
        (receipt,) = chain.apply_block([tx], chain.head.timestamp + 1).receipts
        assert before - chain.balance(dev_address("alice")) == receipt.gas_used * receipt.gas_price
        costs.append(receipt.gas_used)
    # 21,000 + call data + three pushes and loads + SSTORE; clearing gives 4,800 back.
    assert costs == [21_000 + 140 + 9 + 22_100, 21_000 + 128 + 9 + 5_000 - 4_800]


def test_time_must_move_forward(make_chain: Any) -> None:
    chain = make_chain()
    with pytest.raises(RpcError, match=r"\bafter\b"):
        chain.apply_block([], chain.head.timestamp)


def test_every_past_block_stays_readable(make_chain: Any) -> None:
    chain = make_chain()
    for _ in range(4):
        chain.apply_block([tick(chain)], chain.head.timestamp + 1)
    assert [count(chain, block) for block in chain.history] == [0, 1, 2, 3, 4]
    answer = chain.call(CallMessage(sender=NOBODY, to=TICKER, data=bytes(64)), chain.history.at(2))
    assert int.from_bytes(answer, "big") == 3


def test_a_call_needs_no_money_and_leaves_no_mark(make_chain: Any) -> None:
    chain = make_chain()
    nodes, head = len(chain.store), chain.head.hash
    assert int.from_bytes(chain.call(CallMessage(sender=NOBODY, to=TICKER, data=bytes(64))), "big") == 1
    assert (count(chain), len(chain.store), chain.head.hash) == (0, nodes, head)


def test_a_call_cannot_send_ether_it_does_not_have(make_chain: Any) -> None:
    with pytest.raises(RpcError, match=r"insufficient funds for gas \* price \+ value: address 0x0+dead have 0"):
        make_chain().call(CallMessage(sender=NOBODY, to=TICKER, value=1))


def test_a_revert_carries_its_bytes(make_chain: Any) -> None:
    with pytest.raises(RpcError) as caught:
        make_chain().call(CallMessage(sender=NOBODY, to=REVERTER))
    assert (caught.value.code, caught.value.message, caught.value.data) == (3, "execution reverted", "0xdeadbeef")


def test_a_failed_transaction_is_mined_and_says_why(make_chain: Any) -> None:
    chain = make_chain()
    tx = chain.sign(dev_key("alice"), to=REVERTER, gas=100_000)
    (receipt,) = chain.apply_block([tx], chain.head.timestamp + 1).receipts
    assert (receipt.ok, receipt.error, receipt.revert_data.hex()) == (False, "execution reverted", "deadbeef")
    assert chain.nonce(dev_address("alice")) == 1


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("", "execution reverted"),
        ("deadbeef", "execution reverted"),
        ("08c379a0" + f"{32:064x}" + f"{2:064x}" + "6e6f".ljust(64, "0"), "execution reverted: no"),
        ("08c379a0" + f"{32:064x}" + f"{2**255:064x}", "execution reverted"),
        ("4e487b71" + f"{0x11:064x}", "execution reverted: arithmetic underflow or overflow"),
    ],
)
def test_revert_reasons_are_told_as_geth_tells_them(output: str, message: str) -> None:
    assert revert_message(bytes.fromhex(output)) == message


def test_an_estimate_suffices_where_the_gas_used_does_not(make_chain: Any) -> None:
    chain = make_chain()
    call = CallMessage(sender=dev_address("alice"), to=FORWARDER)
    used = chain.execute_call(call).gas_used
    assert not chain.execute_call(replace(call, gas=used)).ok, "the test needs a case where 1/64 matters"
    estimate = chain.estimate_gas(call)
    assert chain.execute_call(replace(call, gas=estimate)).ok
    assert used < estimate < used * 1.1


def test_estimates_of_transfers_are_exact_and_of_reverts_refused(make_chain: Any) -> None:
    chain = make_chain()
    assert chain.estimate_gas(CallMessage(sender=dev_address("alice"), to=NOBODY, value=ETHER)) == 21_000
    with pytest.raises(RpcError, match="execution reverted"):
        chain.estimate_gas(CallMessage(sender=NOBODY, to=REVERTER))
    with pytest.raises(RpcError, match=r"gas required exceeds allowance \(30000\)"):
        chain.estimate_gas(CallMessage(sender=NOBODY, to=SPENDER, gas=30_000))


def test_the_base_fee_follows_the_protocol_down_to_its_floor(make_chain: Any) -> None:
    chain = make_chain(base_fee=8 * GWEI, base_fee_floor=GWEI)
    fees = []
    for _ in range(25):
        fees.append(chain.apply_block([], chain.head.timestamp + 1).base_fee)
    assert fees[:2] == [7 * GWEI, 7 * GWEI * 7 // 8]
    assert fees[-1] == GWEI
    full = chain.head.header.copy(gas_used=chain.head.header.gas_limit, base_fee_per_gas=8 * GWEI)
    assert next_base_fee(full, 0) == 9 * GWEI


def test_rewinding_forgets_blocks_receipts_and_logs(make_chain: Any) -> None:
    chain = make_chain()
    txs = []
    for _ in range(3):
        txs.append(tick(chain))
        chain.apply_block([txs[-1]], chain.head.timestamp + 1)
    removed = chain.rewind(1)
    assert [block.number for block in removed] == [3, 2]
    assert (chain.head.number, count(chain)) == (1, 1)
    assert [chain.receipt(tx.hash) is not None for tx in txs] == [True, False, False]


def test_contracts_see_their_block(make_chain: Any) -> None:
    """NUMBER, TIMESTAMP and BLOCKHASH(NUMBER - 1), as one returned triple."""
    code = bytes.fromhex("43600052" + "42602052" + "600143034060405260606000f3")
    chain = make_chain()
    for _ in range(2):
        chain.apply_block([], chain.head.timestamp + 7)
    outcome = chain.execute_call(CallMessage(sender=NOBODY, to=b"", data=code))
    words = [outcome.output[start : start + 32] for start in (0, 32, 64)]
    assert [int.from_bytes(word, "big") for word in words[:2]] == [2, chain.head.timestamp]
    assert words[2] == chain.history.at(1).hash
