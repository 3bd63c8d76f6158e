"""Reads symbols and decimals of tokens outside the curated list; anybody may have written the contract, so its answers
are checked."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from zuno.adapters.chain.rpc import abi
from zuno.adapters.chain.rpc.cache import JsonCache
from zuno.adapters.chain.rpc.errors import CallReverted, InvalidCallResult, ResponseTooLarge
from zuno.adapters.chain.rpc.node import RpcNode
from zuno.adapters.chain.rpc.transport import Callee
from zuno.amm.model import Block
from zuno.kernel.errors import Malformed
from zuno.kernel.text import MAX_DECIMALS, MAX_SYMBOL, Token, plain_text
from zuno.kernel.units import Address
from zuno.lp.model.chains import ChainInfo

T = TypeVar("T")
_RECORD: Final = "tokens"
_WORD: Final = 32
CALL_GAS: Final = 1_000_000
"""Gas limit of a call: enough for any honest token behind a proxy, too little to keep the node busy."""


class TokenReader:
    """Tokens by address. Answers are cached; a contract that did not answer is asked again next time."""

    def __init__(self, node: RpcNode, info: ChainInfo, cache: JsonCache) -> None:
        self._node = node
        self._cache = cache
        self._known = {token.address: token for token in (info.native.token, *info.tokens)}
        self._loaded = False

    async def read(self, addresses: Iterable[Address], at: Block) -> dict[Address, Token]:
        self._load()
        wanted = set(addresses)
        missing = sorted(wanted - self._known.keys())
        unanswered = dict[Address, Token]()
        for token, answered in await asyncio.gather(*(self._fetch(address, at) for address in missing)):
            (self._known if answered else unanswered)[token.address] = token
        if len(missing) > len(unanswered):
            unverified = [token for token in self._known.values() if not token.verified]
            self._cache.save(_RECORD, {token.address: [token.symbol, token.decimals] for token in unverified})
        return {address: unanswered.get(address) or self._known[address] for address in wanted}

    async def _fetch(self, address: Address, at: Block) -> tuple[Token, bool]:
        """The token, and whether its contract answered both calls. Without a symbol it is named by its short address;
        without decimals its amounts are shown in base units."""
        symbol, decimals = await asyncio.gather(
            self._call(address, abi.SYMBOL, at, lambda answer: parse_symbol(answer, address)),
            self._call(address, abi.DECIMALS, at, parse_decimals),
        )
        answered = symbol is not None and decimals is not None
        return Token(address, _short_address(address) if symbol is None else symbol, decimals or 0), answered

    async def _call(self, address: Address, question: bytes, at: Block, read: Callable[[bytes], T]) -> T | None:
        try:
            return await self._node.call(address, question, at, read, callee=Callee.UNTRUSTED, gas=CALL_GAS)
        except (CallReverted, ResponseTooLarge, InvalidCallResult):
            return None  # the contract reverts, or returns something else or far too much: no node is to blame

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        for token in self._cache.load(_RECORD, _parse_record) or ():
            self._known.setdefault(token.address, token)


def _parse_record(record: dict[str, Any]) -> list[Token]:
    """Cached tokens; an impossible entry is dropped and asked for again."""
    tokens = list[Token]()
    for address, fields in record.items():
        match fields:
            case [str(symbol), int(decimals)] if 0 <= decimals <= MAX_DECIMALS:
                tokens.append(Token(Address(address), plain_text(symbol, MAX_SYMBOL), decimals))
    return tokens


def parse_symbol(answer: bytes, address: Address) -> str:
    """The symbol, returned as a string or, by older tokens, as bytes32; an empty one becomes the short address."""
    if len(answer) == _WORD:
        try:
            symbol = answer.rstrip(b"\0").decode()
        except UnicodeDecodeError as error:
            raise Malformed("symbol: a word that is no text") from error
    else:
        symbol = bytes(abi.decode_abi(["bytes"], answer, "symbol")[0]).decode("utf-8", "replace")
    shown = plain_text(symbol, MAX_SYMBOL)
    return _short_address(address) if shown == "?" else shown


def parse_decimals(answer: bytes) -> int:
    value = abi.decode_uint(answer, "decimals")
    if value > MAX_DECIMALS:
        raise Malformed("decimals: more than any token has")
    return value


def _short_address(address: Address) -> str:
    return f"{address[:6]}…{address[-4:]}"
