"""JSON-RPC errors in geth's words and with geth's codes, because clients match on both."""

from __future__ import annotations

from typing import Final

from zuno.kernel.errors import Refused

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
SERVER_ERROR: Final = -32000
LIMIT_EXCEEDED: Final = -32005
VM_ERROR: Final = -32015
REVERTED: Final = 3

_ERROR_STRING: Final = bytes.fromhex("08c379a0")
_PANIC: Final = bytes.fromhex("4e487b71")
_PANICS: Final = {
    0x00: "generic panic",
    0x01: "assert(false)",
    0x11: "arithmetic underflow or overflow",
    0x12: "division or modulo by zero",
    0x21: "enum overflow",
    0x22: "invalid encoded storage byte array accessed",
    0x31: "out-of-bounds array access; popping on an empty array",
    0x32: "out-of-bounds access of an array or bytesN",
    0x41: "out of memory",
    0x51: "uninitialized function",
}


class RpcError(Refused):
    """The error object of a reply."""

    def __init__(self, code: int, message: str, data: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def server_error(message: str) -> RpcError:
    """Refused by the transaction pool or the state transition."""
    return RpcError(SERVER_ERROR, message)


def bad_params(message: str) -> RpcError:
    return RpcError(INVALID_PARAMS, message)


def revert_error(output: bytes) -> RpcError:
    return RpcError(REVERTED, revert_message(output), "0x" + output.hex())


def revert_message(output: bytes) -> str:
    """geth appends the reason when the contract gave a string or a panic code, never for a custom error."""
    reason = _reason(output)
    return "execution reverted" if reason is None else f"execution reverted: {reason}"


def _reason(output: bytes) -> str | None:
    selector, body = output[:4], output[4:]
    if selector == _ERROR_STRING and len(body) >= 64:
        size = int.from_bytes(body[32:64], "big")
        text = body[64 : 64 + size]
        return text.decode("utf-8", "replace") if len(text) == size else None
    if selector == _PANIC and len(body) == 32:
        code = int.from_bytes(body, "big")
        return _PANICS.get(code, f"unknown panic code: {code:#x}")
    return None
