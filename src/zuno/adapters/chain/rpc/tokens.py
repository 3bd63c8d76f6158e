"""Symbols and decimals of tokens nobody curated: a stranger's contract answers, so nothing it says is trusted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from zuno.adapters.chain.rpc import wire
from zuno.adapters.chain.rpc.cache import Shelf
from zuno.adapters.chain.rpc.faults import CallReverted, Oversized
from zuno.adapters.chain.rpc.node import Node
from zuno.domain.chains import ChainInfo
from zuno.domain.errors import Malformed
from zuno.domain.pool import Block
from zuno.domain.tokens import MAX_DECIMALS, MAX_SYMBOL, NATIVE, Token, plain_text
from zuno.domain.units import Address

_SHELF: Final = "tokens"
_WORD: Final = 32
CALL_GAS: Final = 1_000_000
"""Enough for any honest token behind a proxy, too little for one that wants to keep the node busy."""


class Tokens:
    """Tokens by address; what a contract said once is kept, because honest ones never change it."""

    def __init__(self, node: Node, info: ChainInfo, shelf: Shelf) -> None:
        self._node = node
        self._info = info
        self._shelf = shelf
        self._known = {token.address: token for token in info.tokens}
        self._loaded = False

    async def read(self, addresses: Iterable[Address], at: Block) -> dict[Address, Token]:
        self._load()
        wanted = set(addresses)
        strange = sorted(wanted - self._known.keys())
        if strange:
            for token in await asyncio.gather(*(self._ask(address, at) for address in strange)):
                self._known[token.address] = token
            self._save()
        return {address: self._known[address] for address in wanted}

    async def _ask(self, address: Address, at: Block) -> Token:
        if address == NATIVE:
            return Token(NATIVE, "ETH", 18)
        symbol, decimals = await asyncio.gather(
            self._answer(address, wire.SYMBOL, at), self._answer(address, wire.DECIMALS, at)
        )
        return Token(address, symbol_of(symbol, address), decimals_of(decimals))

    async def _answer(self, address: Address, question: bytes, at: Block) -> bytes:
        try:
            return await self._node.call(address, question, at, gas=CALL_GAS)
        except (CallReverted, Oversized):
            # It reverts or answers with megabytes: it has no such thing. A node that talks nonsense is another matter:
            # what is kept here is kept for good.
            return b""

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        for kept in self._shelf.load(_SHELF, _kept) or ():
            self._known.setdefault(kept.address, kept)

    def _save(self) -> None:
        strangers = [token for token in self._known.values() if not token.verified]
        self._shelf.save(_SHELF, {token.address: [token.symbol, token.decimals] for token in strangers})


def _kept(record: dict[str, Any]) -> list[Token]:
    """What was written down; an entry that cannot be true is asked for again."""
    tokens = list[Token]()
    for address, said in record.items():
        match said:
            case [str(symbol), int(decimals)] if 0 <= decimals <= MAX_DECIMALS:
                tokens.append(Token(Address(address), plain_text(symbol, MAX_SYMBOL), decimals))
    return tokens


def symbol_of(answer: bytes, address: Address) -> str:
    """A symbol as string or, in tokens older than that convention, as bytes32; a nameless one is shown by address."""
    if len(answer) == _WORD:
        raw = answer.rstrip(b"\0").decode("utf-8", "replace")
    else:
        try:
            (data,) = wire.decoded(["bytes"], answer, "symbol")
        except Malformed:
            data = b""
        raw = bytes(data).decode("utf-8", "replace")
    shown = plain_text(raw, MAX_SYMBOL)
    return f"{address[:6]}…{address[-4:]}" if shown == "?" else shown


def decimals_of(answer: bytes) -> int:
    """Decimals, or 0 where there are none to believe: amounts are then shown in base units, never scaled by a guess."""
    value = int.from_bytes(answer, "big") if len(answer) == _WORD else MAX_DECIMALS + 1
    return value if value <= MAX_DECIMALS else 0
