"""JSON-RPC over HTTP: which node is asked, how long it is waited for, and when to give up. RPC addresses carry API
keys, so no message shows more of one than its host."""

import asyncio
import itertools
import json
import logging
import random
import re
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from zuno.adapters.chain.rpc import errors
from zuno.adapters.chain.rpc.validate import ResultValidator, parse_quantity
from zuno.adapters.http import is_loopback
from zuno.amm.model import Block
from zuno.kernel.backoff import SPREAD, Backoff
from zuno.kernel.errors import Malformed, Unavailable, UsageError, ZunoError
from zuno.kernel.foreign_json import check_nesting

_TOO_MANY_REQUESTS: Final = 429
_DEEPEST: Final = 32
_KEY_LENGTH: Final = 6
_TOO_LARGE: Final = 413
_BATCH: Final = "batch"
_DISTRUSTED_AFTER: Final = 2


@dataclass(frozen=True, slots=True)
class RpcPolicy:
    """Limits of a request; the worst case is rounds × nodes × timeout, plus pauses."""

    timeout: float = 15.0
    """Seconds for one whole exchange, however slowly the bytes drip."""
    rounds: int = 3
    """How often every node is tried before we give up."""
    first_pause: float = 0.25
    longest_pause: float = 4.0
    cool_down: float = 30.0
    """Seconds a node that failed is left alone while another one answers."""
    max_response: int = 32 * 1024 * 1024
    """Bytes of one decoded answer."""
    at_once: int = 4
    """Questions under way at the same time; public nodes count them."""


@dataclass(slots=True)
class Endpoint:
    """One node; only its host is ever shown."""

    url: str = field(repr=False)
    host: str
    chain_checked: bool = False
    cool_until: float = 0.0
    bad_pins: int = 0
    """Questions in a row that it could read only with the block's number in place of its hash (EIP-1898)."""

    @property
    def pins_by_hash(self) -> bool:
        """One refusal may be a hiccup, so it takes two."""
        return self.bad_pins < _DISTRUSTED_AFTER

    def without_keys(self, text: str) -> str:
        """A node's words without any part of its own address: some quote the key they were called with."""
        parts = urlsplit(self.url)
        secrets = re.split(r"[/?&=:@]", f"{parts.path}?{parts.query}@{parts.username or ''}:{parts.password or ''}")
        for secret in secrets:
            if len(secret) >= _KEY_LENGTH:
                text = text.replace(secret, "***")
        return text


def parse_endpoint(url: str, variable: str = "the RPC URL") -> Endpoint:
    """A node from its address; the address never appears in the error."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise UsageError(f"{variable} holds a URL that cannot be read: it must look like https://host/path") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"{variable} holds a URL that does not start with http:// or https:// and name a host")
    return Endpoint(url.strip(), parts.hostname if port is None else f"{parts.hostname}:{port}")


class Callee(Enum):
    """Which contract a call goes to, and so whose fault an odd answer is."""

    CERTAIN = auto()
    """Known, and cannot revert: a revert is as much the node's fault as data that does not fit."""
    MAY_REVERT = auto()
    """Known, and may revert."""
    UNTRUSTED = auto()
    """It may answer anything, and no node is to blame; another node is asked all the same, because the node may lie."""


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """A question; `read` makes the result of the answer or raises `Malformed`."""

    method: str
    params: list[Any]
    read: Callable[[Any], Any] = lambda result: result
    at: Block | None = None
    """The block whose state is asked for, sent as the last parameter."""
    callee: Callee = Callee.CERTAIN
    may_lack: bool = False
    """Whether "nothing" is an answer: `read` is then given None."""

    def params_at(self, by_hash: bool) -> Any:
        if self.at is None:
            return self.params
        pin = {"blockHash": self.at.hash, "requireCanonical": True} if by_hash else hex(self.at.number)
        return [*self.params, pin]


class _HostOnly(logging.Filter):
    """httpx2 logs whole URLs at INFO; ours carry keys."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(arg.host if isinstance(arg, httpx2.URL) else arg for arg in record.args)
        return True


_HOST_ONLY: Final = _HostOnly()


class FailoverProvider:
    """Asks whichever node answers. Every node must prove its chain id before it answers anything else."""

    def __init__(
        self,
        urls: Sequence[str],
        chain_id: int,
        variable: str,
        policy: RpcPolicy | None = None,
        validator: ResultValidator | None = None,
    ) -> None:
        if not urls:
            raise UsageError(f"no RPC URL: set {variable}")
        self.endpoints = tuple(parse_endpoint(url, variable) for url in urls)
        self.requests = 0
        self.by_number = 0
        """Answers about a block's state that were asked for by number: they may be of another block of that number."""
        # Per task: questions run side by side, and each wants to know who answered *it*.
        self._served_by: ContextVar[Endpoint | None] = ContextVar("served_by", default=None)
        self.only: ContextVar[Endpoint | None] = ContextVar("only", default=None)
        """The one node that this task asks, once, whether it rests or not."""
        self._one_round_until = 0.0
        self._validator = validator or ResultValidator()
        self._chain_id = chain_id
        self._variable = variable
        self._policy = policy or RpcPolicy()
        self._ids = itertools.count(1)
        self._client: httpx2.AsyncClient | None = None
        self._slots = asyncio.Semaphore(self._policy.at_once)
        logger = logging.getLogger("httpx2")
        if _HOST_ONLY not in logger.filters:
            logger.addFilter(_HOST_ONLY)

    @property
    def served_by(self) -> Endpoint | None:
        return self._served_by.get()

    async def ask_all(self, requests: Sequence[RpcRequest], callee: Callee, judge: Callable[[Any], Any]) -> Any:
        return await self.ask(RpcRequest(_BATCH, list(requests), judge, callee=callee))

    async def ask_each(self, request: RpcRequest) -> AsyncGenerator[tuple[Endpoint, Any], None]:
        """One question to every node in turn, once, resting ones last."""
        now = time.monotonic()
        for node in sorted(self.endpoints, key=lambda node: max(node.cool_until, now)):
            try:
                async with self._slots:
                    result = await self._ask(node, request)
            except (Unavailable, Malformed) as fault:
                if not _is_blameless(fault, request.callee):
                    self._rest(node)
                yield node, fault
            else:
                node.cool_until = 0.0
                yield node, result

    def skip_last_node(self) -> None:
        if self.served_by is not None:
            self._rest(self.served_by)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def ask(self, request: RpcRequest) -> Any:
        policy, faults, only = self._policy, list[tuple[str, ZunoError]](), self.only.get()
        # Who asked everyone in vain a moment ago does not wait so long again: one round says whether anyone is back.
        for turn in range(1 if only or time.monotonic() < self._one_round_until else policy.rounds):
            if turn:
                pauses = Backoff(policy.first_pause, policy.longest_pause, SPREAD)
                await asyncio.sleep(pauses.delay(turn, random.random()))
            for node in self._healthy() if only is None else [only]:
                try:
                    async with self._slots:
                        result = await self._ask(node, request)
                except errors.RangeRefused:
                    raise  # whoever asked will ask for less
                except _AnotherChain as alien:
                    raise Malformed(f"{node.host}: {alien}") from None
                except (Unavailable, Malformed) as fault:
                    if isinstance(fault, errors.CallReverted) and request.callee is Callee.MAY_REVERT:
                        raise
                    if not _is_blameless(fault, request.callee):
                        self._rest(node)
                    faults.append((node.host, fault))
                else:
                    node.cool_until = self._one_round_until = 0.0
                    self._served_by.set(node)
                    return result
            _raise_settled(faults, request.callee, self._variable)
        self._one_round_until = time.monotonic() + policy.cool_down
        raise _verdict(faults, self._variable)

    def _rest(self, node: Endpoint) -> None:
        node.cool_until = time.monotonic() + self._policy.cool_down

    def _healthy(self) -> list[Endpoint]:
        """Nodes in the given order; those cooling down only when nobody else is left, the longest rested first."""
        now = time.monotonic()
        rested = [node for node in self.endpoints if node.cool_until <= now]
        return rested or sorted(self.endpoints, key=lambda node: node.cool_until)

    async def _ask(self, node: Endpoint, request: RpcRequest) -> Any:
        try:
            if not node.chain_checked:
                await self._check_chain(node)
            if request.method == _BATCH:
                asked = request.params
                results = await self._ask_with_pin(node, partial(self._ask_many, node, asked), asked)
                return request.read([_read_result(*pair) for pair in zip(asked, results, strict=True)])
            result = await self._ask_with_pin(node, partial(self._ask_one, node, request), [request])
            return _read_result(request, result)
        except ZunoError as fault:
            fault.args = (node.without_keys(str(fault)), *fault.args[1:])
            raise

    async def _ask_with_pin(
        self, node: Endpoint, ask_by: Callable[[bool], Awaitable[Any]], requests: list[RpcRequest]
    ) -> Any:
        """Pin the block by its hash, or by its number for a node that cannot read that (EIP-1898)."""
        if all(request.at is None for request in requests):
            return await ask_by(True)
        if node.pins_by_hash:
            try:
                result = await ask_by(True)
            except errors.BadRequest:
                # It cannot read such a pin, or nothing at all just now, or the question is bad in both forms.
                result = await ask_by(False)
                node.bad_pins += 1
                self.by_number += 1
            else:
                node.bad_pins = 0
            return result
        self.by_number += 1
        return await ask_by(False)

    async def _check_chain(self, node: Endpoint) -> None:
        chain_id = parse_quantity(await self._ask_one(node, RpcRequest("eth_chainId", [])))
        if chain_id != self._chain_id:
            raise _AnotherChain(f"it is chain {chain_id}, expected {self._chain_id}: check {self._variable}")
        node.chain_checked = True

    async def _ask_one(self, node: Endpoint, request: RpcRequest, by_hash: bool = True) -> Any:
        asked, params = next(self._ids), request.params_at(by_hash)
        body = {"jsonrpc": "2.0", "id": asked, "method": request.method, "params": params}
        return self._answer(request, params, asked, await self._post(node, body))

    async def _ask_many(self, node: Endpoint, requests: list[RpcRequest], by_hash: bool) -> list[Any]:
        asked = [(next(self._ids), request, request.params_at(by_hash)) for request in requests]
        body = [{"jsonrpc": "2.0", "id": at, "method": each.method, "params": params} for at, each, params in asked]
        replies = await self._post(node, body)
        if isinstance(replies, dict) and replies.get("error") is not None:
            # A node that is merely busy or broken refuses a batch as it refuses anything: that is no inability.
            if errors.refuses_batches(replies["error"]):
                raise errors.NoSuchMethod("the node does not take batches")
            raise errors.parse_error("batch", replies["error"])
        if not isinstance(replies, list):
            raise Malformed("a batch was answered with something else")
        by_id = {reply["id"]: reply for reply in replies if isinstance(reply, dict) and type(reply.get("id")) is int}
        return [self._answer(each, params, at, by_id.get(at)) for at, each, params in asked]

    def _answer(self, request: RpcRequest, params: Any, asked: int, reply: object) -> Any:
        result = _result(request.method, asked, reply)
        if result is None and request.may_lack:
            return None
        return self._validator.validate(request.method, params, result)

    async def _post(self, node: Endpoint, body: object) -> Any:
        """One HTTP exchange within the time and size limits; anything but JSON is a fault."""
        content = json.dumps(body, separators=(",", ":")).encode()
        raw = bytearray()
        self.requests += 1
        try:
            async with (
                asyncio.timeout(self._policy.timeout),
                self._http().stream(
                    "POST", node.url, content=content, headers={"Content-Type": "application/json"}
                ) as response,
            ):
                status = response.status_code
                async for chunk in response.aiter_bytes():
                    raw += chunk
                    if len(raw) > self._policy.max_response:
                        raise errors.ResponseTooLarge(f"the answer is larger than {self._policy.max_response} bytes")
        except TimeoutError as error:
            raise Unavailable(f"no answer within {self._policy.timeout:g} s") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise transport_fault(error) from error
        return _decode_reply(status, bytes(raw))

    def _http(self) -> httpx2.AsyncClient:
        if self._client is None:
            # No redirects: a node that sends us elsewhere would get our key passed on.
            # A proxy from the environment is for the world outside: our own machine is reached directly.
            local = all(is_loopback(node.url) for node in self.endpoints)
            plain = all(node.url.lower().startswith("http:") for node in self.endpoints)
            try:
                self._client = httpx2.AsyncClient(
                    timeout=self._policy.timeout,
                    follow_redirects=False,
                    trust_env=not local,
                    # Reading the world's certificates takes longer than most answers; without them none is trusted.
                    verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain and local else True,
                )
            except ImportError as error:
                raise Unavailable("a SOCKS proxy is set in the environment, which needs the package socksio") from error
        return self._client


class _AnotherChain(Malformed):
    """The node is of another chain."""


def transport_fault(error: Exception) -> ZunoError:
    """Our error for an httpx2 error. Its own text may quote the address, so only its kind is repeated."""
    match error:
        case httpx2.DecodingError():
            return Malformed("the answer cannot be decompressed")
        case httpx2.ConnectTimeout():
            return errors.NotConnected("no connection in time")
        case httpx2.TimeoutException():
            return Unavailable("timed out")
        case httpx2.ConnectError():
            return errors.NotConnected("no connection")
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return Unavailable("the address cannot be used")
        case _:
            return Unavailable(f"the connection broke ({type(error).__name__})")


def _decode_reply(status: int, raw: bytes) -> Any:
    if status == _TOO_LARGE:
        raise errors.ResponseTooLarge("HTTP 413: the question is too large")
    if status == _TOO_MANY_REQUESTS or status >= 500:
        raise Unavailable(f"HTTP {status}")
    if 300 <= status < 400:
        raise Unavailable(f"HTTP {status}: redirects are not followed")
    try:
        reply = json.loads(check_nesting(raw, _DEEPEST))
    except ValueError:
        reply = None
    # Some gateways send JSON-RPC errors under 4xx: there the body speaks, if it has something to say.
    if status >= 400 and not (isinstance(reply, dict) and "error" in reply):
        raise Unavailable(f"HTTP {status}")
    if reply is None:
        raise Malformed("the answer is not JSON")
    return reply


def _read_result(request: RpcRequest, result: Any) -> Any:
    try:
        return request.read(result)
    except errors.CallReverted:
        raise
    except Malformed as fault:
        raise errors.InvalidCallResult(f"{request.method}: {fault}") from fault


def _result(method: str, asked: int, reply: object) -> Any:
    if not isinstance(reply, dict):
        raise Malformed(f"{method}: the answer is not a JSON-RPC object")
    if reply.get("error") is not None:
        raise errors.parse_error(method, reply["error"])
    if reply.get("id") != asked or "result" not in reply:
        raise Malformed(f"{method}: the answer belongs to no question of ours")
    return reply["result"]


def _is_blameless(fault: ZunoError, callee: Callee) -> bool:
    if isinstance(fault, errors.CallReverted | errors.InvalidCallResult):
        return callee is Callee.UNTRUSTED
    return isinstance(fault, (*errors.HONEST_FAULTS, _AnotherChain)) and not isinstance(fault, errors.NodeBehind)


def _raise_settled(faults: list[tuple[str, ZunoError]], callee: Callee, variable: str) -> None:
    """After a round: raise what another round would only repeat."""
    if faults and all(isinstance(fault, errors.LASTING_FAULTS) for _, fault in faults):
        raise _verdict(faults, variable)
    # Someone heard the question whole and said no: whoever asked may ask for less, or take it for the answer.
    settled = (
        (errors.CallReverted, errors.ResponseTooLarge, errors.InvalidCallResult)
        if callee is Callee.UNTRUSTED
        else (errors.CallReverted, errors.ResponseTooLarge)
    )
    for _, fault in faults:
        if isinstance(fault, settled):
            raise type(fault)(f"{_join_faults(faults)}; check {variable} or try again")


def _join_faults(faults: list[tuple[str, ZunoError]]) -> str:
    return "; ".join(f"{host}: {fault}" for host, fault in dict(faults).items())


def _verdict(faults: list[tuple[str, ZunoError]], variable: str) -> ZunoError:
    """The error when no node helped: the kind of fault that the nodes agree on."""
    why, kinds = _join_faults(faults), {type(fault) for fault in dict(faults).values()}
    if kinds & {errors.NoSuchState, errors.NodeBehind}:
        return errors.NoSuchState(why)
    if kinds <= {errors.NoSuchMethod, errors.BadRequest}:
        return (errors.NoSuchMethod if errors.NoSuchMethod in kinds else errors.BadRequest)(
            f"{why}; check {variable} or use another node"
        )
    if all(issubclass(kind, Malformed) for kind in kinds):
        return Malformed(f"{why}; check {variable} or try again")
    return Unavailable(f"no RPC node answered ({why}); check {variable} or try again")
