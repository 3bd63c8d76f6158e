"""JSON-RPC 2.0 over bytes: the reply to a request or a batch, however malformed."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from typing import Any, Final

from eth_utils.exceptions import ValidationError

from zuno.kernel.errors import Broken, Refused
from zuno.kernel.foreign_json import check_nesting, reject_non_number

from .controls import CONTROLS
from .methods import METHODS, Method
from .node import DevnetNode
from .params import Params
from .rpc_errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    RpcError,
    bad_params,
    server_error,
)

_log = logging.getLogger(__name__)
_MAX_BATCH: Final = 1_000
_MAX_DEPTH: Final = 64

Reply = dict[str, Any]


class Rpc:
    """Dispatches requests to a node, one at a time."""

    def __init__(self, node: DevnetNode, extra: Mapping[str, Method] | None = None) -> None:
        self._node = node
        self._methods: dict[str, Method] = {**METHODS, **CONTROLS, **(extra or {})}
        # py-evm is not thread-safe, and a node answers from one consistent state.
        self._lock = threading.Lock()

    def answer(self, body: bytes) -> bytes:
        """The reply to one HTTP body; empty if it holds nothing but notifications."""
        try:
            request = parse(body)
        except ValueError:
            return _encode(_failure(None, RpcError(PARSE_ERROR, "parse error")))
        if not isinstance(request, list):
            reply = self._answer_one(request)
            return b"" if reply is None else _encode(reply)
        if not request:
            return _encode(_failure(None, RpcError(INVALID_REQUEST, "empty batch")))
        if len(request) > _MAX_BATCH:
            return _encode(_failure(None, RpcError(INVALID_REQUEST, "batch too large")))
        replies = [reply for reply in map(self._answer_one, request) if reply is not None]
        return _encode(replies) if replies else b""

    def _answer_one(self, request: Any) -> Reply | None:
        if not isinstance(request, dict) or not isinstance(request.get("method"), str):
            return _failure(None, RpcError(INVALID_REQUEST, "invalid request"))
        try:
            result = self._call(request["method"], request.get("params"))
        except RpcError as refusal:
            reply = _failure(request.get("id"), refusal)
        except (Refused, ValidationError) as error:
            reply = _failure(request.get("id"), server_error(str(error)))
        except Broken as error:
            reply = _failure(request.get("id"), RpcError(INTERNAL_ERROR, str(error)))
        except Exception as error:
            # A bug is answered too, or the client would see a dead node; the trace goes to the log.
            _log.exception("%s failed", request["method"])
            reply = _failure(request.get("id"), RpcError(INTERNAL_ERROR, f"{type(error).__name__}: {error}"))
        else:
            reply = {"jsonrpc": "2.0", "id": request.get("id"), "result": result}
        return reply if "id" in request else None

    def _call(self, name: str, values: Any) -> Any:
        method = self._methods.get(name)
        if method is None:
            raise RpcError(METHOD_NOT_FOUND, f"the method {name} does not exist/is not available")
        if values is not None and not isinstance(values, list):
            raise bad_params("non-array args")
        with self._lock:
            return method(self._node, Params(values or []))


def parse(body: bytes) -> Any:
    """The JSON in a body. ValueError if there is none, or if it nests deeper than any request does."""
    return json.loads(check_nesting(body, _MAX_DEPTH), parse_constant=reject_non_number)


def _failure(request_id: Any, refusal: RpcError) -> Reply:
    error: dict[str, Any] = {"code": refusal.code, "message": refusal.message}
    if refusal.data is not None:
        error["data"] = refusal.data
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def _encode(reply: Any) -> bytes:
    return json.dumps(reply, separators=(",", ":")).encode()
