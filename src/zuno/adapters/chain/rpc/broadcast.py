"""Signed bytes and the nodes they are offered to: which of their words mean that they have them."""

from __future__ import annotations

import re
from contextlib import aclosing
from typing import Final

from zuno.adapters.chain.rpc.errors import FUNDS, NotTaken, Unreached
from zuno.adapters.chain.rpc.transport import FailoverProvider, Question
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


async def offer(provider: FailoverProvider, raw: bytes) -> SendResult:
    """The bytes to one node after the other until one has them: a second offer of the same bytes is harmless.

    A refusal counts only where every node that may have heard the bytes gave one.
    """
    faults, told = list[ZunoError](), list[str]()
    async with aclosing(provider.ask_each(Question("eth_sendRawTransaction", ["0x" + raw.hex()]))) as answers:
        async for node, answer in answers:
            if not isinstance(answer, ZunoError):
                return SendResult.ACCEPTED
            if meaning(answer) is SendResult.KNOWN:
                return SendResult.KNOWN
            faults.append(answer)
            told.append(f"{node.host}: {answer}")
    found = {meaning(fault) for fault in faults}
    for sending in (SendResult.NONCE_SPENT, SendResult.UNDERPRICED):
        if sending in found:
            return sending
    said = "; ".join(told)
    heard = [fault for fault in faults if not isinstance(fault, Unreached)]
    if heard and all(_refuses(fault) for fault in heard):
        raise Refused(f"The chain does not take the transaction as it is: {said}.")
    if faults and all(isinstance(fault, Malformed) and not isinstance(fault, NotTaken) for fault in faults):
        raise Malformed(f"No node's answer to the transaction can be believed ({said}): send the same bytes again.")
    raise Unavailable(f"Nobody said that the transaction was taken ({said}): send the same bytes again.")


def meaning(fault: ZunoError) -> SendResult | None:
    """What a node's refusal of a transaction means, if it is one that leaves something to do."""
    if not isinstance(fault, NotTaken):
        return None
    return next((sending for sending, words in _WORDS if words.search(str(fault))), None)


def _refuses(fault: ZunoError) -> bool:
    return isinstance(fault, NotTaken) and bool(_NEVER.search(str(fault)))
