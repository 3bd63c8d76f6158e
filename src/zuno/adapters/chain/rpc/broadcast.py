"""Send signed bytes to every node and classify their replies: accepted, known already, refused."""

from __future__ import annotations

import re
from contextlib import aclosing
from typing import Final

from zuno.adapters.chain.rpc.errors import FUNDS, NotConnected, TransactionRejected
from zuno.adapters.chain.rpc.transport import FailoverProvider, RpcRequest
from zuno.kernel.errors import Malformed, Refused, Unavailable, ZunoError
from zuno.lp.ports.spending import SendResult

_WORDS: Final = (
    # geth, erigon, reth: "already known"; besu: "Known transaction"; nethermind: "AlreadyKnown"; OpenEthereum: "… was
    # already imported". "unknown transaction type" is none of them.
    (
        SendResult.KNOWN,
        re.compile(r"already ?(known|imported|in (the )?(mem|tx|transaction )?pool)|\bknown transaction", re.I),
    ),
    # nethermind: "OldNonce, Current nonce: …".
    (SendResult.NONCE_SPENT, re.compile(r"nonce (is )?too low|\boldnonce\b|nonce has already been used", re.I)),
    # nethermind: "FeeTooLow, …", "FeeTooLowToCompete", "ReplacementNotAllowed", "OwnNonceAlreadyUsed"; erigon: "could
    # not replace existing tx"; besu: "Gas price below …"; geth also: "future transaction tries to replace pending".
    (
        SendResult.UNDERPRICED,
        re.compile(
            r"underpriced|fee ?too ?low|replacement ?not ?allowed|ownnoncealreadyused|replace (existing|pending)|"
            r"(fee per gas|fee cap|feecap) (is )?(less|lower) than (block|current)? ?base ?fee|"
            r"(gas price|priority fee|tip)[a-z ]* (is )?(too low|below)|same nonce in the (queue|tx pool)",
            re.I,
        ),
    ),
)
_NEVER: Final = re.compile(
    FUNDS.pattern + r"|intrinsic gas|floor data gas|block gas limit|gas ?limit ?(is )?(exceeded|too|reached)|"
    r"gas uint64 overflow|exceeds the configured cap|fee cap exceeded|higher than max fee|initcode|oversized|"
    r"transaction is too (big|large)|invalid (sender|signature|chain ?id|transaction type)|replay.?protected|"
    r"type not supported|unknown transaction type|\brlp\b|sender ?(is contract|iscontract|not an eoa)|"
    r"int256overflow|failedtoresolvesender|negative value|fee exceeds",
    re.I,
)
"""What no later try of the same bytes changes, short of more funds."""


async def send_to_nodes(provider: FailoverProvider, raw: bytes) -> SendResult:
    """The bytes to one node after the other until one has them: a second offer of the same bytes is harmless.

    A refusal counts only where every node that may have heard the bytes gave one.
    """
    faults, replies = list[ZunoError](), list[str]()
    async with aclosing(provider.ask_each(RpcRequest("eth_sendRawTransaction", ["0x" + raw.hex()]))) as answers:
        async for node, answer in answers:
            if not isinstance(answer, ZunoError):
                return SendResult.ACCEPTED
            if classify_refusal(answer) is SendResult.KNOWN:
                return SendResult.KNOWN
            faults.append(answer)
            replies.append(f"{node.host}: {answer}")
    found = {classify_refusal(fault) for fault in faults}
    for sending in (SendResult.NONCE_SPENT, SendResult.UNDERPRICED):
        if sending in found:
            return sending
    all_replies = "; ".join(replies)
    heard = [fault for fault in faults if not isinstance(fault, NotConnected)]
    if heard and all(_refuses(fault) for fault in heard):
        raise Refused(f"The chain does not take the transaction as it is: {all_replies}.")
    if faults and all(isinstance(fault, Malformed) and not isinstance(fault, TransactionRejected) for fault in faults):
        raise Malformed(
            f"No node's answer to the transaction can be believed ({all_replies}): send the same bytes again."
        )
    raise Unavailable(f"Nobody said that the transaction was taken ({all_replies}): send the same bytes again.")


def classify_refusal(fault: ZunoError) -> SendResult | None:
    """What a node's refusal of a transaction means, if it is one that leaves something to do."""
    if not isinstance(fault, TransactionRejected):
        return None
    return next((sending for sending, words in _WORDS if words.search(str(fault))), None)


def _refuses(fault: ZunoError) -> bool:
    return isinstance(fault, TransactionRejected) and bool(_NEVER.search(str(fault)))
