"""Getting into the pool: geth's rules, in geth's words."""

from __future__ import annotations

from typing import Any

import pytest
import rlp

from zuno_devnet.chain import ETHER, GWEI
from zuno_devnet.keys import dev_address, dev_key
from zuno_devnet.rpc_errors import RpcError
from zuno_devnet.transactions import decode_transaction


@pytest.fixture
def paused(bench: Any) -> Any:
    bench.node.set_automine(False)
    return bench


def refusal(paused: Any, role: str = "alice", **wishes: Any) -> str:
    with pytest.raises(RpcError) as caught:
        paused.submit(role, **wishes)
    assert caught.value.code == -32000
    return caught.value.message


def test_the_same_bytes_are_already_known(paused: Any) -> None:
    tx = paused.submit()
    with pytest.raises(RpcError, match=r"^already known$"):
        paused.node.submit(tx.raw)


def test_a_mined_nonce_is_too_low(bench: Any) -> None:
    tx = bench.submit()
    with pytest.raises(RpcError, match=r"^nonce too low: next nonce 1, tx nonce 0$"):
        bench.node.submit(tx.raw)


def test_a_replacement_pays_a_tenth_more_on_both_counts(paused: Any) -> None:
    first = paused.submit(max_fee=10 * GWEI, tip=GWEI)
    words = "replacement transaction underpriced"
    assert refusal(paused, nonce=0, max_fee=11 * GWEI, tip=GWEI) == words
    assert refusal(paused, nonce=0, max_fee=10 * GWEI, tip=2 * GWEI) == words
    assert refusal(paused, nonce=0, max_fee=11 * GWEI - 1, tip=2 * GWEI) == words
    second = paused.submit(nonce=0, max_fee=11 * GWEI, tip=GWEI * 11 // 10)
    assert paused.node.pool.get(first.hash) is None
    assert paused.node.pool.get(second.hash) is second
    assert len(paused.node.pool) == 1
    assert [tx.hash for tx in paused.node.mine().transactions] == [second.hash]


def test_a_gap_is_queued_until_it_is_filled(bench: Any) -> None:
    late = bench.submit(nonce=1)
    assert bench.chain.head.number == 0, "a transaction behind a gap mines nothing"
    assert bench.node.pending_nonce(dev_address("alice")) == 0
    early = bench.submit(nonce=0)
    assert [tx.hash for tx in bench.chain.head.transactions] == [early.hash, late.hash]
    assert bench.node.pending_nonce(dev_address("alice")) == 2
    assert len(bench.node.pool) == 0


def test_the_pending_nonce_counts_what_waits(paused: Any) -> None:
    for _ in range(3):
        paused.submit()
    assert paused.node.pending_nonce(dev_address("alice")) == 3
    assert paused.chain.nonce(dev_address("alice")) == 0


def test_money_is_counted_with_what_is_queued_already(paused: Any) -> None:
    cost = 200_000 * 10 * GWEI
    words = "insufficient funds for gas * price + value: balance 100000000000000000000"
    value = 100 * ETHER
    assert refusal(paused, value=value) == f"{words}, tx cost {value + cost}, overshot {cost}"
    paused.submit(value=60 * ETHER)
    queued, second = 60 * ETHER + cost, 50 * ETHER + cost
    assert refusal(paused, value=50 * ETHER) == (
        f"{words}, queued cost {queued}, tx cost {second}, overshot {queued + second - value}"
    )
    # Replacing counts the difference only.
    paused.submit(nonce=0, value=90 * ETHER, max_fee=12 * GWEI, tip=2 * GWEI)


def test_gas_has_a_floor_and_a_ceiling(paused: Any) -> None:
    assert refusal(paused, gas=20_000, data=b"") == "intrinsic gas too low: gas 20000, minimum needed 21000"
    assert refusal(paused, gas=60_000_001) == "exceeds block gas limit"
    assert refusal(paused, data=b"\x01" * 100, gas=22_700) == (
        "insufficient gas for floor data gas cost: gas 22700, minimum needed 25000"
    )
    assert refusal(paused, to=None, data=bytes(49_153), gas=5_000_000) == (
        "max initcode size exceeded: code size 49153, limit 49152"
    )


def test_fees_must_make_sense(paused: Any) -> None:
    assert refusal(paused, max_fee=GWEI, tip=2 * GWEI) == "max priority fee per gas higher than max fee per gas"
    assert refusal(paused, tip=0) == "transaction gas price below minimum: gas tip cap 0, minimum needed 1"


def test_a_fee_below_the_base_fee_waits(bench: Any) -> None:
    tx = bench.submit(max_fee=GWEI // 2, tip=1)
    assert bench.chain.head.number == 0
    assert bench.node.pool.get(tx.hash) is tx


def test_foreign_and_unreadable_bytes_are_refused(paused: Any) -> None:
    assert refusal(paused, chain_id=1) == "invalid sender: invalid chain id for signer: have 1 want 31337"
    for raw, words in (
        (b"", "typed transaction too short"),
        (b"\x03\xc0", "transaction type not supported"),
        (b"\x00\xc0", "transaction type not supported"),
        (b"\x02\xc0", "rlp: "),
        (b"\xf8\xff\x00", "rlp: "),
    ):
        with pytest.raises(RpcError) as caught:
            paused.node.submit(raw)
        assert caught.value.message.startswith(words), raw


def test_a_flipped_signature_is_refused(paused: Any) -> None:
    """Every signature has a twin in the upper half of the curve; accepting it would give one payment two hashes."""
    tx = paused.sign()
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    fields = rlp.decode(tx.raw[1:])
    fields[-3] = b"" if fields[-3] else b"\x01"
    fields[-1] = (order - int.from_bytes(fields[-1], "big")).to_bytes(32, "big")
    twin = b"\x02" + rlp.encode(fields)
    with pytest.raises(RpcError, match="invalid sender: invalid transaction v, r, s values"):
        paused.node.submit(twin)


def test_three_kinds_of_transactions_are_understood(bench: Any) -> None:
    """Signed by another library, so that we do not only agree with ourselves."""
    account = pytest.importorskip("eth_account").Account.from_key(dev_key("alice").to_bytes())
    common = {"to": "0x" + "11" * 20, "value": 5, "gas": 30_000, "chainId": 31337}
    storage_keys = ["0x" + "00" * 32]
    wishes = [
        {"gasPrice": 3 * GWEI},
        {"gasPrice": 3 * GWEI, "type": 1, "accessList": [{"address": "0x" + "22" * 20, "storageKeys": storage_keys}]},
        {"maxFeePerGas": 3 * GWEI, "maxPriorityFeePerGas": GWEI, "type": 2},
    ]
    for nonce, wish in enumerate(wishes):
        signed = account.sign_transaction({**common, "nonce": nonce, **wish})  # type: ignore[dict-item]
        tx = bench.node.submit(signed.raw_transaction)
        assert (tx.hash, tx.sender, tx.type) == (signed.hash, dev_address("alice"), nonce)
        assert bench.chain.receipt(tx.hash).ok
    assert bench.chain.balance(b"\x11" * 20) == 15


def test_a_transaction_without_a_chain_is_refused() -> None:
    account = pytest.importorskip("eth_account").Account.from_key(dev_key("alice").to_bytes())
    signed = account.sign_transaction({"to": "0x" + "11" * 20, "value": 5, "gas": 30_000, "gasPrice": 1, "nonce": 0})
    with pytest.raises(RpcError, match=r"only replay-protected \(EIP-155\)"):
        decode_transaction(signed.raw_transaction, 31337)
