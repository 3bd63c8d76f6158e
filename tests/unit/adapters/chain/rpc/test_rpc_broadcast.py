"""What nodes say to signed bytes, vendor by vendor, and what we make of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from zuno.adapters.chain.rpc.errors import NoSuchMethod, NotConnected, TransactionRejected, parse_error
from zuno.adapters.chain.rpc.node import classify_refusal, send_to_nodes
from zuno.adapters.chain.rpc.transport import Endpoint, FailoverProvider, RpcRequest
from zuno.kernel.errors import Malformed, Refused, Unavailable, ZunoError
from zuno.lp.ports.spending import SendResult

KNOWN, SPENT, UNDERPRICED = SendResult.KNOWN, SendResult.NONCE_SPENT, SendResult.UNDERPRICED

SAID = [
    # geth, and the devnet with its words
    ("already known", KNOWN),
    ("known transaction: 0x5bd0…", KNOWN),
    ("nonce too low", SPENT),
    ("nonce too low: next nonce 12, tx nonce 11", SPENT),
    ("nonce too low: address 0xAb5801a7D398351b8bE11C439e05C5B3259aeC9B, tx: 3 state: 4", SPENT),
    ("replacement transaction underpriced", UNDERPRICED),
    ("transaction underpriced", UNDERPRICED),
    ("transaction underpriced: gas tip cap 1, minimum needed 1000000", UNDERPRICED),
    ("transaction gas price below minimum: gas tip cap 0, minimum needed 1", UNDERPRICED),
    ("future transaction tries to replace pending", UNDERPRICED),
    ("max fee per gas less than block base fee: address 0xAb58, maxFeePerGas: 1, baseFee: 7", UNDERPRICED),
    ("insufficient funds for gas * price + value: balance 0, tx cost 21000, overshot 21000", Refused),
    ("insufficient funds for transfer", Refused),
    ("intrinsic gas too low: gas 20999, minimum needed 21000", Refused),
    ("insufficient gas for floor data gas cost: gas 1, minimum needed 2", Refused),
    ("exceeds block gas limit", Refused),
    ("tx fee (1.20 ether) exceeds the configured cap (1.00 ether)", Refused),
    ("max priority fee per gas higher than max fee per gas", Refused),
    ("invalid sender", Refused),
    ("invalid chain id for signer: have 1 want 10", Refused),
    ("only replay-protected (EIP-155) transactions allowed over RPC", Refused),
    ("transaction type not supported", Refused),
    ("rlp: expected input list for types.LegacyTx", Refused),
    ("oversized data: transaction size 140000, limit 131072", Refused),
    ("max initcode size exceeded: code size 49153, limit 49152", Refused),
    ("nonce too high", Unavailable),
    ("txpool is full", Unavailable),
    # erigon
    ("INTERNAL_ERROR: could not replace existing tx", UNDERPRICED),
    ("fee too low", UNDERPRICED),
    ("block gas limit exceeded", Refused),
    # nethermind
    ("AlreadyKnown", KNOWN),
    ("OldNonce, Current nonce: 12, nonce of rejected tx: 11", SPENT),
    ("OwnNonceAlreadyUsed", UNDERPRICED),
    ("FeeTooLow, MaxFeePerGas too low. MaxFeePerGas: 1, BaseFee: 7, MaxPriorityFeePerGas:1", UNDERPRICED),
    ("FeeTooLowToCompete", UNDERPRICED),
    ("ReplacementNotAllowed", UNDERPRICED),
    ("InsufficientFunds, Account balance: 0, cumulative cost: 21000", Refused),
    ("GasLimitExceeded, Gas limit: 1, gas limit of rejected tx: 2", Refused),
    ("SenderIsContract", Refused),
    ("NonceGap, Future nonce. Expected nonce: 3", Unavailable),
    # besu
    ("Known transaction", KNOWN),
    ("Nonce too low", SPENT),
    ("Replacement transaction underpriced", UNDERPRICED),
    ("Gas price below configured minimum gas price", UNDERPRICED),
    ("Gas price below current base fee", UNDERPRICED),
    ("Upfront cost exceeds account balance", Refused),
    ("Intrinsic gas exceeds gas limit", Refused),
    ("Invalid signature", Refused),
    ("Transaction fee cap exceeded", Refused),
    # reth
    ("already known", KNOWN),
    ("nonce too low: next nonce 4, tx nonce 3", SPENT),
    ("max fee per gas less than block base fee", UNDERPRICED),
    ("transaction priority fee below minimum required priority fee 1000000", UNDERPRICED),
    # OpenEthereum
    ("Transaction with the same hash was already imported.", KNOWN),
    ("Transaction nonce is too low. Try incrementing the nonce.", SPENT),
    (
        "Transaction gas price 1wei is too low. There is another transaction with same nonce in the queue",
        UNDERPRICED,
    ),
    ("Insufficient funds. The account you tried to send transaction from does not have enough funds.", Refused),
    # arbitrum, optimism
    ("max fee per gas less than block base fee: address 0xAb58, maxFeePerGas: 1 baseFee: 10000000", UNDERPRICED),
    ("not enough funds for gas", Refused),
    ("unknown transaction type", Refused),
    # gateways
    ("Node error: already known", KNOWN),
    ("[-32000] nonce too low", SPENT),
    ("err: insufficient funds for gas * price + value: address 0xAb58 have 1 want 2 (supplied gas 21000)", Refused),
    ("internal error", Unavailable),
    ("upstream request timed out", Unavailable),
    ("request limit reached: too many requests", Unavailable),
]


class Nodes:
    """Nodes that answer as they are told to; the provider's own loop is tried in the scenarios."""

    def __init__(self, *answers: Any) -> None:
        self._answers = answers
        self.heard = 0

    async def ask_each(self, question: RpcRequest) -> AsyncGenerator[tuple[Endpoint, Any], None]:
        for at, answer in enumerate(self._answers):
            self.heard += 1
            yield Endpoint("https://host", f"host{at}"), answer


def fault(said: str, code: int = -32000) -> ZunoError:
    return parse_error("eth_sendRawTransaction", {"code": code, "message": said})


async def offered(*answers: Any) -> SendResult:
    return await send_to_nodes(cast(FailoverProvider, Nodes(*answers)), b"\x02")


@pytest.mark.slow
@pytest.mark.parametrize(("said", "expected"), SAID, ids=[f"{at} {said[:40]}" for at, (said, _) in enumerate(SAID)])
async def test_every_vendor_s_words_are_understood(said: str, expected: Any) -> None:
    if isinstance(expected, SendResult):
        assert await offered(fault(said)) is expected
    else:
        with pytest.raises(expected) as raised:
            await offered(fault(said))
        assert said[:60] in str(raised.value)  # the node's own words, its numbers included


async def test_who_takes_it_ends_the_round() -> None:
    nodes = Nodes(Unavailable("no answer within 15 s"), "0xhash", fault("nonce too low"))
    assert await send_to_nodes(cast(FailoverProvider, nodes), b"\x02") is SendResult.ACCEPTED
    assert nodes.heard == 2


async def test_who_has_it_ends_the_round() -> None:
    assert await offered(fault("already known"), fault("nonce too low")) is SendResult.KNOWN


async def test_one_node_s_refusal_is_not_the_chain_s() -> None:
    assert await offered(fault("txpool is full"), "0xhash") is SendResult.ACCEPTED
    assert await offered(fault("insufficient funds for gas * price + value"), "0xhash") is SendResult.ACCEPTED
    assert await offered(fault("transaction underpriced"), fault("already known")) is SendResult.KNOWN
    assert await offered(fault("transaction underpriced"), fault("nonce too low")) is SendResult.NONCE_SPENT


@pytest.mark.parametrize(
    "silent", [Unavailable("no answer within 15 s"), Malformed("the answer is not JSON"), fault("internal error")]
)
async def test_a_refusal_beside_a_silence_leaves_it_open(silent: ZunoError) -> None:
    """Who did not answer may have taken the bytes: nobody may take them for refused."""
    broke = fault("insufficient funds for gas * price + value")
    for answers in ((silent, broke), (broke, silent)):
        with pytest.raises(Unavailable, match=r"\bbytes\b"):
            await offered(*answers)


async def test_a_node_that_was_never_reached_leaves_nothing_open() -> None:
    with pytest.raises(Refused, match=r"host1: .*balance 3"):
        await offered(NotConnected("no connection"), fault("insufficient funds for gas * price + value: balance 3"))
    with pytest.raises(Unavailable):
        await offered(NotConnected("no connection"))


async def test_nonsense_from_everyone_is_called_nonsense() -> None:
    with pytest.raises(Malformed, match=r"\bbytes\b"):
        await offered(Malformed("the hash of another transaction"))


def test_what_is_no_refusal_of_a_transaction_has_no_meaning() -> None:
    assert classify_refusal(Unavailable("nonce too low")) is None
    assert isinstance(fault("the method eth_sendRawTransaction is not available", -32601), NoSuchMethod)
    assert isinstance(fault("nonce too low", -32602), TransactionRejected)
