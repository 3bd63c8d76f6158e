"""How RPC failures become our own errors.

Unavailable: the node may have it later, or another node has it. Malformed: the node, or the contract it called,
answered what it should not have.
"""

import re
from typing import Final

from zuno.kernel.errors import Malformed, Unavailable, ZunoError
from zuno.kernel.text import plain_text


class NoSuchState(Unavailable):
    """The block is unknown to the node, or its state is pruned or not there yet."""


class NodeBehind(NoSuchState):
    """Events that end before the state does; what was made of them is not the whole story."""


class NoSuchMethod(Unavailable):
    """The node does not offer the method."""


class NotConnected(Unavailable):
    """No connection was made, so nothing was asked."""


class RangeRefused(Unavailable):
    """A log query over too many blocks or with too many results."""


class CallReverted(Malformed):
    """The call ran and reverted."""

    def __init__(self, message: str, output: bytes = b"") -> None:
        super().__init__(message)
        self.output = output
        """What the contract gave back, where the node passes it on."""


class InsufficientFunds(CallReverted):
    """The call sends more coin than its sender has."""


class TransactionRejected(Malformed):
    """The node gave its reason for not taking a signed transaction."""


class InvalidCallResult(Malformed):
    """The call returned data that its contract cannot have returned."""


class BadRequest(Malformed):
    """The node could not read the question: it does not know this form of it."""


class ResponseTooLarge(Malformed):
    """An answer beyond the size limit."""


HONEST_FAULTS: Final = (NoSuchState, NoSuchMethod, BadRequest, ResponseTooLarge, TransactionRejected)
"""Faults that a sound node may report too: such a node is not put aside."""
LASTING_FAULTS: Final = (NoSuchMethod, BadRequest)
"""Faults that do not change by waiting."""

_MAX_SAID: Final = 180
_REVERTED: Final = 3
_METHOD_NOT_FOUND: Final = -32601
_UNREADABLE: Final = (-32600, -32602, -32700)
# Providers agree on nothing but these words; -32005 means "too many results" here and "too many requests" there.
_BUSY: Final = re.compile(r"rate.?limit|too many requests|request count|throttl|capacity|quota|credits", re.I)
_RANGE: Final = re.compile(
    r"more than \d+ results|range|too many (logs|results|blocks)|response size|query timeout|narrow|limit exceeded",
    re.I,
)
_STATE: Final = re.compile(
    r"header not found|unknown block|block not found|missing trie node|not (currently )?canonical|pruned|"
    r"state .*(not|un)\s?available|no state|historical state|archive|could not find block|after last accepted",
    re.I,
)
_METHOD: Final = re.compile(r"method .*(not|un)\s?(found|supported|available|exist|allowed)", re.I)
_REVERT: Final = re.compile(
    r"revert|invalid opcode|out of gas|gas required exceeds|invalid jump|stack (under|over)flow", re.I
)
FUNDS: Final = re.compile(
    r"insufficient ?(funds|balance)|(not|lack of) (enough )?funds|upfront cost exceeds|would cause overdraft", re.I
)
_RUNS: Final = ("eth_call", "eth_estimateGas", "eth_simulateV1")
_UNFUNDED: Final = -38014
_OUTPUT: Final = re.compile(r"0x((?:[0-9a-fA-F]{2})*)$")


def parse_error(method: str, error: object) -> ZunoError:
    """Our error for the JSON-RPC error object of a reply to `method`; plain `Unavailable` means "ask another node"."""
    if not isinstance(error, dict):
        return Malformed(f"{method}: the error is not an object")
    code, message, data = error.get("code"), error.get("message"), error.get("data")
    reason = plain_text(message, _MAX_SAID) if isinstance(message, str) else "no message"
    text = f"{method}: {reason}"
    # Some gateways keep the reason in `data` and say only "invalid params".
    spoken = f"{reason} {plain_text(str(data), _MAX_SAID)}" if isinstance(data, dict | str) else reason
    if code == _REVERTED or (method in _RUNS and _REVERT.search(spoken)):
        return CallReverted(text, _output(data))
    if method in _RUNS and (code == _UNFUNDED or FUNDS.search(reason)):
        return InsufficientFunds(text)
    if _BUSY.search(reason):
        return Unavailable(text)
    if method == "eth_sendRawTransaction" and code != _METHOD_NOT_FOUND and not _METHOD.search(reason):
        return TransactionRejected(text)
    if method == "eth_getLogs" and _RANGE.search(spoken):
        return RangeRefused(text)
    if _STATE.search(reason):
        return NoSuchState(text)
    if code == _METHOD_NOT_FOUND or _METHOD.search(reason):
        return NoSuchMethod(text)
    if code in _UNREADABLE:
        return BadRequest(text)
    return Unavailable(text)


def _output(data: object) -> bytes:
    """The contract's returned data: as it is, behind a word ("Reverted 0x…"), or one level deeper."""
    hex_text = data.get("data") if isinstance(data, dict) else data
    match = _OUTPUT.search(hex_text) if isinstance(hex_text, str) else None
    return b"" if match is None else bytes.fromhex(match[1])


def refuses_batches(error: object) -> bool:
    """Whether the error a whole batch was answered with means that the node takes no batches."""
    if not isinstance(error, dict):
        return False
    code, message = error.get("code"), error.get("message")
    reason = message if isinstance(message, str) else ""
    return not _BUSY.search(reason) and (code in (_METHOD_NOT_FOUND, *_UNREADABLE) or "batch" in reason.lower())
