"""Everything a vendor can raise, and everything a node can refuse with, lands in our own tree."""

from __future__ import annotations

import inspect
from typing import Any

import httpx2
import pytest

from zuno.adapters.chain.rpc.errors import (
    BadRequest,
    CallReverted,
    NoSuchMethod,
    NoSuchState,
    RangeRefused,
    parse_error,
)
from zuno.adapters.chain.rpc.transport import transport_fault
from zuno.kernel.errors import Malformed, Unavailable, ZunoError

SECRET = "https://host/v3/s3cr3t"


def raisable(module: Any) -> list[type[Exception]]:
    return [kind for _, kind in inspect.getmembers(module, inspect.isclass) if issubclass(kind, Exception)]


HTTP_ERRORS = [
    kind
    for kind in raisable(httpx2)
    if issubclass(kind, httpx2.HTTPError | httpx2.InvalidURL | httpx2.StreamError)
    and not issubclass(kind, httpx2.HTTPStatusError)  # only raise_for_status makes one
]


def test_the_vendor_has_no_error_we_do_not_catch() -> None:
    """A new branch in httpx2's tree must be looked at, not discovered in production."""
    known = {*HTTP_ERRORS, httpx2.HTTPStatusError, httpx2.CookieConflict}
    assert {kind for kind in raisable(httpx2) if not issubclass(kind, Warning)} <= known


@pytest.mark.parametrize("kind", HTTP_ERRORS, ids=lambda kind: kind.__name__)
def test_every_http_error_becomes_ours_without_its_text(kind: type[Exception]) -> None:
    error = kind.__new__(kind)
    error.args = (f"failed at {SECRET}",)
    fault = transport_fault(error)
    assert isinstance(fault, Unavailable | Malformed)
    assert "s3cr3t" not in str(fault)


@pytest.mark.parametrize(
    ("method", "error", "expected"),
    [
        ("eth_call", {"code": 3, "message": "execution reverted", "data": "0x08c379a0"}, CallReverted),
        ("eth_call", {"code": -32000, "message": "execution reverted: NOT_MINTED"}, CallReverted),
        ("eth_call", {"code": -32015, "message": "VM execution error", "data": "Reverted 0x"}, CallReverted),
        ("eth_call", {"code": -32000, "message": "out of gas"}, CallReverted),
        ("eth_call", {"code": -32000, "message": "header not found"}, NoSuchState),
        ("eth_call", {"code": -32000, "message": "missing trie node 0a (path ) <nil>"}, NoSuchState),
        ("eth_call", {"code": -32001, "message": "hash 0xab is not currently canonical"}, NoSuchState),
        ("eth_call", {"code": 4444, "message": "pruned history unavailable"}, NoSuchState),
        ("eth_call", {"code": -32000, "message": "required historical state unavailable"}, NoSuchState),
        ("eth_call", {"code": -32602, "message": "invalid argument 1: cannot unmarshal object"}, BadRequest),
        ("eth_getLogs", {"code": -32005, "message": "query returned more than 10000 results"}, RangeRefused),
        ("eth_getLogs", {"code": -32602, "message": "range 1000000 exceeds limit of 10000"}, RangeRefused),
        ("eth_getLogs", {"code": -32000, "message": "block range is too large"}, RangeRefused),
        ("eth_getLogs", {"code": -32000, "message": "exceed maximum block range: 5000"}, RangeRefused),
        ("eth_getLogs", {"code": -32602, "message": "Log response size exceeded."}, RangeRefused),
        (
            "eth_getLogs",
            {"code": -32602, "message": "invalid params", "data": {"payload": "range 9 is bigger than range limit 2"}},
            RangeRefused,
        ),
        ("eth_getLogs", {"code": -32005, "message": "daily request count exceeded, request rate limited"}, Unavailable),
        ("eth_getLogs", {"code": 429, "message": "Too Many Requests"}, Unavailable),
        ("eth_feeHistory", {"code": -32601, "message": "the method eth_feeHistory does not exist"}, NoSuchMethod),
        ("eth_call", {"code": -32603, "message": "internal error"}, Unavailable),
        ("eth_call", {"message": None}, Unavailable),
        ("eth_call", {}, Unavailable),
        ("eth_call", "no", Malformed),
        ("eth_call", [1], Malformed),
    ],
)
def test_what_a_refusal_means(method: str, error: object, expected: type[ZunoError]) -> None:
    assert type(parse_error(method, error)) is expected


def test_a_refusal_is_quoted_short_and_harmless() -> None:
    fault = parse_error("eth_call", {"code": -32000, "message": "\x1b[2J" + "x" * 10_000 + "\n"})
    assert len(str(fault)) < 200
    assert str(fault).isprintable()
