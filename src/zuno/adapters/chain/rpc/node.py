"""Typed questions to a chain node, at pinned blocks, with our own errors."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

from eth_typing import ChecksumAddress
from eth_utils.address import to_checksum_address

from zuno.adapters.chain.rpc import requests
from zuno.adapters.chain.rpc.errors import (
    FUNDS,
    CallReverted,
    NoSuchMethod,
    NoSuchState,
    NotConnected,
    TransactionRejected,
)
from zuno.adapters.chain.rpc.transport import Callee, FailoverProvider, RpcRequest
from zuno.amm.model import Block
from zuno.kernel.errors import Malformed, Refused, Unavailable, ZunoError
from zuno.kernel.units import Address, HexId, Seconds, Wei
from zuno.lp.ports.spending import SendResult

T = TypeVar("T")
Topics = Sequence[HexId | Sequence[HexId] | None]
RawFields = Mapping[str, Any]
"""An object as JSON-RPC has it, validated: bytes and numbers as hex."""

HEADERS_PER_BATCH: Final = 100
YOUNG_BLOCKS: Final = 2_000
"""A node may be behind by so many blocks below the head; one that is further behind is treated as broken."""


@dataclass(frozen=True, slots=True)
class Log:
    """An event as mined; `position` orders all events of the chain."""

    address: Address
    topics: tuple[HexId, ...]
    data: bytes
    block_number: int
    block_hash: HexId
    tx: HexId
    tx_index: int
    index: int
    timestamp: Seconds | None
    """Where the node says it; most do not."""

    @property
    def position(self) -> tuple[int, int]:
        return self.block_number, self.index


@dataclass(frozen=True, slots=True)
class Receipt:
    """A mined transaction and what it cost its sender."""

    tx: HexId
    sender: Address
    block_number: int
    tx_index: int
    cost: Wei
    """Gas at its effective price, and the data and operator fees of an OP-stack rollup."""
    logs: tuple[Log, ...]


class RpcNode:
    """Questions to whichever node the provider finds. State is asked for by the block's hash (EIP-1898), else by its
    number, counted in `provider.by_number`; `confirm` checks afterwards that a number is still the block we meant."""

    def __init__(self, provider: FailoverProvider) -> None:
        self.provider = provider
        self._takes_batches = True
        # Per task: an answer is held against the head that it is read at, not against what others heard meanwhile.
        self._head: ContextVar[int] = ContextVar("head", default=0)

    # -- blocks

    async def head(self) -> Block:
        block = _parse_block(await self.ask(requests.block("latest")))
        self._head.set(block.number)
        return block

    async def block(self, number: int) -> Block:
        return _parse_block(await self.ask(requests.block(hex(number))))

    async def blocks(self, numbers: Iterable[int]) -> dict[int, Block]:
        wanted, blocks = sorted(set(numbers)), dict[int, Block]()
        for at in range(0, len(wanted), HEADERS_PER_BATCH):
            part = wanted[at : at + HEADERS_PER_BATCH]
            headers = await self.ask_together([requests.block(hex(number)) for number in part])
            blocks.update(zip(part, map(_parse_block, headers), strict=True))
        return blocks

    async def senders_and_receivers(self, block: Block) -> list[tuple[HexId, Address, Address | None]]:
        data = await self.ask(requests.block(hex(block.number), whole=True))
        if _parse_hex(data["hash"]) != block.hash:
            raise NoSuchState(f"block {block.number} is no longer the one that was read")
        return [
            (_parse_hex(tx["hash"]), _parse_address(tx["from"]), _parse_address(tx["to"]) if tx["to"] else None)
            for tx in data["transactions"]
        ]

    async def confirm(self, block: Block) -> None:
        """Raise NoSuchState if the chain has another block of this number by now."""
        if (await self.block(block.number)).hash != block.hash:
            raise NoSuchState(f"block {block.number} was replaced while it was read")

    # -- state

    async def call(
        self,
        to: Address,
        data: bytes,
        at: Block,
        read: Callable[[bytes], T],
        *,
        callee: Callee = Callee.CERTAIN,
        gas: int | None = None,
    ) -> T:
        """What `read` makes of the returned data; a node whose data it refuses as Malformed is not believed."""
        return cast(T, await self.ask_reading(replace(requests.view(to, data, at, read, gas), callee=callee)))

    async def balance(self, address: Address, at: Block) -> int:
        return int(await self.ask_reading(requests.balance(address, at)))

    async def transaction_count(self, address: Address, at: Block) -> int:
        """How many transactions an account had sent by the end of a block."""
        return int(await self.ask_reading(requests.transaction_count(address, at)))

    async def has_code(self, address: Address, number: int) -> bool:
        return bool(await self.ask(requests.code(address, hex(number))))

    async def simulate(self, sender: Address, to: Address, data: bytes, at: Block) -> tuple[Log, ...]:
        """The events a call would cause on top of a block; native coin that moves is a Transfer of its own address."""
        call = {"from": _checksum(sender), "to": _checksum(to), "data": "0x" + data.hex()}
        payload = {"blockStateCalls": [{"calls": [call]}], "traceTransfers": True, "validation": False}
        request = RpcRequest("eth_simulateV1", [payload], _parse_simulation, at, Callee.MAY_REVERT)
        return cast(tuple[Log, ...], await self.ask_reading(request))

    # -- any question

    async def ask(self, question: RpcRequest) -> Any:
        return await self.provider.ask(question)

    async def ask_together(
        self,
        questions: Sequence[RpcRequest],
        callee: Callee = Callee.CERTAIN,
        judge: Callable[[list[Any]], Any] = lambda results: results,
    ) -> Any:
        """Several questions in one exchange where the node takes that, so that one machine answers them all."""
        if self._takes_batches and len(questions) > 1:
            try:
                return await self.provider.ask_all(questions, callee, judge)
            except NoSuchMethod:
                self._takes_batches = False  # one by one, then
        return judge([await self.provider.ask(replace(question, callee=callee)) for question in questions])

    # -- events

    async def logs(self, address: Address, topics: Topics, first: int, last: int) -> list[Log]:
        """Events in chain order, from `first` to `last`, both included."""
        wanted = {"address": _checksum(address), "topics": list(topics), "fromBlock": hex(first), "toBlock": hex(last)}
        asked = [RpcRequest("eth_getLogs", [wanted])]
        if last > self._head.get() - YOUNG_BLOCKS:
            # A node that is behind leaves out events near the head without saying so. Its height is asked in the same
            # exchange, because one address may be many machines.
            asked.insert(0, requests.height(last))
        return sorted(map(_parse_log, (await self.ask_together(asked))[-1]), key=lambda log: log.position)

    async def receipt(self, tx: HexId) -> Receipt:
        return parse_receipt(await self.ask(replace(requests.receipt(tx), may_lack=False)))

    async def value(self, tx: HexId) -> Wei:
        return Wei(_parse_int((await self.ask(replace(requests.transaction(tx), may_lack=False)))["value"]))

    # -- fees

    async def fee_history(self, blocks: int, percentile: int) -> tuple[int, list[int]]:
        """The base fee of the next block, and these tips of the last blocks that had any transaction."""
        raw = await self.ask(RpcRequest("eth_feeHistory", [hex(blocks), "latest", [float(percentile)]]))
        paid = zip(raw["gasUsedRatio"], raw["reward"], strict=False)
        return _parse_int(raw["baseFeePerGas"][-1]), [_parse_int(tips[0]) for ratio, tips in paid if ratio and tips]

    async def suggested_tip(self) -> int:
        return _parse_int(await self.ask(RpcRequest("eth_maxPriorityFeePerGas", [])))

    async def gas_price(self) -> int:
        return _parse_int(await self.ask(RpcRequest("eth_gasPrice", [])))

    # -- how questions are put

    async def ask_reading(self, request: RpcRequest) -> Any:
        """The same, of an answer that its reader may not be able to read: `Malformed` then."""

        def read(result: Any) -> Any:
            try:
                return request.read(result)
            except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError) as error:
                why = f"the answer cannot be read ({type(error).__name__})"
                raise Malformed(f"{request.method}: {why}") from error

        return await self.provider.ask(replace(request, read=read))


@lru_cache(maxsize=4096)
def _checksum(address: Address) -> ChecksumAddress:
    return to_checksum_address(address)


def _parse_hex(value: str) -> HexId:
    return HexId(value.lower())


def _parse_address(value: str) -> Address:
    return Address(value.lower())


def _parse_int(value: str | None) -> int:
    return int(value or "0", 16)


def _parse_simulation(result: Any) -> tuple[Log, ...]:
    call = result[0]["calls"][0]
    if _parse_int(call["status"]) != 1:
        raise CallReverted("eth_simulateV1: the call reverted")
    return tuple(map(_parse_log, call["logs"]))


def _parse_block(data: RawFields) -> Block:
    return Block(_parse_int(data["number"]), _parse_hex(data["hash"]), Seconds(_parse_int(data["timestamp"])))


def _parse_log(entry: RawFields) -> Log:
    timestamp = entry.get("blockTimestamp")
    return Log(
        address=_parse_address(entry["address"]),
        topics=tuple(map(_parse_hex, entry["topics"])),
        data=bytes.fromhex(entry["data"][2:]),
        block_number=_parse_int(entry["blockNumber"]),
        block_hash=_parse_hex(entry["blockHash"]),
        tx=_parse_hex(entry["transactionHash"]),
        tx_index=_parse_int(entry["transactionIndex"]),
        index=_parse_int(entry["logIndex"]),
        timestamp=None if timestamp is None else Seconds(_parse_int(timestamp)),
    )


def parse_receipt(fields: RawFields) -> Receipt:
    gas = _parse_int(fields["gasUsed"]) * _parse_int(fields["effectiveGasPrice"])
    return Receipt(
        tx=_parse_hex(fields["transactionHash"]),
        sender=_parse_address(fields["from"]),
        block_number=_parse_int(fields["blockNumber"]),
        tx_index=_parse_int(fields["transactionIndex"]),
        cost=Wei(gas + _parse_int(fields.get("l1Fee")) + _operator_fee(fields)),
        logs=tuple(_parse_log(entry) for entry in fields["logs"]),
    )


def _operator_fee(fields: Mapping[str, Any]) -> int:
    """What an OP-stack rollup's operator takes: by the million of gas since Isthmus, a hundredfold by the gas since
    Jovian, whose receipts are known by their data footprint."""
    scaled = _parse_int(fields["gasUsed"]) * _parse_int(fields.get("operatorFeeScalar"))
    since_jovian = fields.get("daFootprintGasScalar") is not None
    return (scaled * 100 if since_jovian else scaled // 10**6) + _parse_int(fields.get("operatorFeeConstant"))


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
"""Refusals that no later try of the same bytes changes, short of more funds."""


async def send_to_nodes(provider: FailoverProvider, raw: bytes) -> SendResult:
    """Offer the bytes to one node after the other until one has them; offering the same bytes twice is harmless. A
    refusal counts only if every node that may have received the bytes refused them."""
    faults, replies = list[ZunoError](), list[str]()
    async with aclosing(provider.ask_each(RpcRequest("eth_sendRawTransaction", ["0x" + raw.hex()]))) as answers:
        async for node, answer in answers:
            if not isinstance(answer, ZunoError):
                return SendResult.ACCEPTED
            if classify_refusal(answer) is SendResult.KNOWN:
                return SendResult.KNOWN
            faults.append(answer)
            replies.append(f"{node.host}: {answer}")
    results = {classify_refusal(fault) for fault in faults}
    for sending in (SendResult.NONCE_SPENT, SendResult.UNDERPRICED):
        if sending in results:
            return sending
    all_replies = "; ".join(replies)
    heard = [fault for fault in faults if not isinstance(fault, NotConnected)]
    if heard and all(isinstance(fault, TransactionRejected) and _NEVER.search(str(fault)) for fault in heard):
        raise Refused(f"The chain does not take the transaction as it is: {all_replies}.")
    if faults and all(isinstance(fault, Malformed) and not isinstance(fault, TransactionRejected) for fault in faults):
        raise Malformed(
            f"No node's answer to the transaction can be believed ({all_replies}): send the same bytes again."
        )
    raise Unavailable(f"Nobody said that the transaction was taken ({all_replies}): send the same bytes again.")


def classify_refusal(fault: ZunoError) -> SendResult | None:
    """What a node's refusal of a transaction means, if something can still be done about it."""
    if not isinstance(fault, TransactionRejected):
        return None
    return next((sending for sending, words in _WORDS if words.search(str(fault))), None)
