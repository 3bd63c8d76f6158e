"""One chain node as we want to speak with it: typed questions, pinned blocks, our own errors. web3 is known here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

from eth_typing import ChecksumAddress
from eth_utils.address import to_checksum_address
from hexbytes import HexBytes
from web3 import AsyncWeb3
from web3.exceptions import BlockNotFound, TransactionNotFound, Web3Exception
from web3.types import BlockData, FilterParams, LogReceipt, TxParams, TxReceipt

from zuno.adapters.chain.rpc.faults import BadRequest, Behind, CallReverted, NoSuchMethod, NoSuchState
from zuno.adapters.chain.rpc.transport import FailoverProvider
from zuno.domain.errors import Malformed, ZunoError
from zuno.domain.pool import Block
from zuno.domain.units import Address, HexId, Seconds, Wei

T = TypeVar("T")
Topics = Sequence[HexId | Sequence[HexId] | None]

HEADERS_PER_BATCH: Final = 100
YOUNG_BLOCKS: Final = 2_000
"""So close below the head a node may not be there yet; further down every node that answers at all is."""


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
    """Gas at its effective price, and the data fee of an OP-stack rollup."""
    logs: tuple[Log, ...]


@dataclass(frozen=True, slots=True)
class FeeHistory:
    """Base fees, the next block's last, and the median tips of blocks that had any transaction."""

    base_fees: tuple[int, ...]
    tips: tuple[int, ...]


class Node:
    """Questions to whichever node the provider finds. A block given as `at` is pinned by its hash.

    Where a node does not know pins by hash (EIP-1898) the number is used. Events can be asked for by number alone.
    Either way `confirm` looks afterwards whether the block is still the one we meant.
    """

    def __init__(self, provider: FailoverProvider) -> None:
        self._provider = provider
        # No middleware: none of web3's default layers concerns a reader, and one of them would ask ENS.
        self._web3 = AsyncWeb3(provider, middleware=[])
        self.pins_by_hash = True
        """False once a node was met that cannot: from then on, state too is of a number, and to be confirmed."""
        self._takes_batches = True
        self._highest = 0

    @property
    def requests(self) -> int:
        return self._provider.requests

    async def close(self) -> None:
        await self._provider.disconnect()

    # -- blocks

    async def head(self) -> Block:
        block = _block(await self._told("the head", self._web3.eth.get_block("latest")))
        self._highest = max(self._highest, block.number)
        return block

    async def block(self, number: int) -> Block:
        return _block(await self._told(f"block {number}", self._web3.eth.get_block(number)))

    async def blocks(self, numbers: Iterable[int]) -> dict[int, Block]:
        """Many headers in few requests."""
        wanted, found = sorted(set(numbers)), dict[int, Block]()
        for at in range(0, len(wanted), HEADERS_PER_BATCH):
            part = wanted[at : at + HEADERS_PER_BATCH]
            found.update(zip(part, await self._some_blocks(part), strict=True))
        return found

    async def _some_blocks(self, numbers: Sequence[int]) -> list[Block]:
        if len(numbers) > 1 and self._takes_batches:
            try:
                async with self._web3.batch_requests() as batch:
                    for number in numbers:
                        batch.add(self._web3.eth.get_block(number))
                    replies = await self._told("headers", batch.async_execute())
                return [_block(cast(BlockData, reply)) for reply in replies]
            except NoSuchMethod:
                self._takes_batches = False  # one by one, then
        return [await self.block(number) for number in numbers]

    async def senders_and_receivers(self, block: Block) -> list[tuple[HexId, Address, Address | None]]:
        """Every transaction of a block with who sent it to whom."""
        data = await self._told(f"block {block.number}", self._web3.eth.get_block(block.number, full_transactions=True))
        if _hex(data["hash"]) != block.hash:
            raise NoSuchState(f"block {block.number} is no longer the one that was read")
        with _reading(f"block {block.number}"):
            txs = cast(Sequence[Mapping[str, Any]], data["transactions"])
            return [
                (_hex(tx["hash"]), _address(tx["from"]), _address(tx["to"]) if tx.get("to") else None) for tx in txs
            ]

    async def confirm(self, block: Block) -> None:
        """Raise NoSuchState if the chain has another block of this number by now."""
        if (await self.block(block.number)).hash != block.hash:
            raise NoSuchState(f"block {block.number} was replaced while it was read")

    # -- state

    async def call(self, to: Address, data: bytes, at: Block, gas: int | None = None) -> bytes:
        tx: TxParams = {"to": _checksum(to), "data": HexBytes(data)}
        if gas is not None:
            tx["gas"] = gas
        return bytes(await self._pinned("eth_call", at, lambda pin: self._web3.eth.call(tx, pin)))

    async def balance(self, address: Address, at: Block) -> int:
        owner = _checksum(address)
        return int(await self._pinned("eth_getBalance", at, lambda pin: self._web3.eth.get_balance(owner, pin)))

    async def sent(self, address: Address, at: Block) -> int:
        """How many transactions an account had sent by the end of a block."""
        who = _checksum(address)
        count = self._web3.eth.get_transaction_count
        return int(await self._pinned("eth_getTransactionCount", at, lambda pin: count(who, pin)))

    async def has_code(self, address: Address, number: int) -> bool:
        return bool(await self._told("eth_getCode", self._web3.eth.get_code(_checksum(address), number)))

    async def simulate(self, sender: Address, to: Address, data: bytes, at: Block) -> tuple[Log, ...]:
        """The events a call would cause on top of a block; native coin that moves is a Transfer of its own address."""
        call: TxParams = {"from": _checksum(sender), "to": _checksum(to), "data": HexBytes(data)}
        wish = cast(Any, {"blockStateCalls": [{"calls": [call]}], "traceTransfers": True, "validation": False})
        answer = await self._pinned("eth_simulateV1", at, lambda pin: self._web3.eth.simulate_v1(wish, pin))
        with _reading("eth_simulateV1"):
            result = cast(Mapping[str, Any], answer[0]["calls"][0])
            if int(result["status"]) != 1:
                raise CallReverted("eth_simulateV1: the call reverted")
            return tuple(_log(entry) for entry in result["logs"])

    # -- events

    async def logs(self, address: Address, topics: Topics, first: int, last: int) -> list[Log]:
        """Events in chain order, from `first` to `last`, both included."""
        wanted: FilterParams = {
            "address": _checksum(address),
            "topics": cast(Any, list(topics)),
            "fromBlock": cast(Any, hex(first)),
            "toBlock": cast(Any, hex(last)),
        }
        raw = await self._young_logs(wanted, last) if last > self._highest - YOUNG_BLOCKS else await self._logs(wanted)
        with _reading("eth_getLogs"):
            return sorted(map(_log, raw), key=lambda log: log.position)

    async def _logs(self, wanted: FilterParams) -> Sequence[LogReceipt]:
        return await self._told("eth_getLogs", self._web3.eth.get_logs(wanted))

    async def _young_logs(self, wanted: FilterParams, last: int) -> Sequence[LogReceipt]:
        """A node that is behind answers with what it has and does not say that there is more: so its height first.

        One address may be many machines: only what comes back in one exchange is likely of one of them.
        """
        reached, raw = 0, cast(Sequence[LogReceipt], ())
        if self._takes_batches:
            try:
                async with self._web3.batch_requests() as batch:
                    batch.add(self._web3.eth.get_block_number())
                    batch.add(self._web3.eth.get_logs(wanted))
                    reached, raw = cast(Any, await self._told("eth_getLogs", batch.async_execute()))
            except NoSuchMethod:
                self._takes_batches = False
        if not self._takes_batches:
            reached = await self._told("eth_blockNumber", self._web3.eth.get_block_number())
            raw = await self._logs(wanted)
        if reached < last:
            raise Behind(f"{self._answerer}it is at block {reached}, {last} was asked for")
        return raw

    async def receipt(self, tx: HexId) -> Receipt:
        raw = await self._told("a receipt", self._web3.eth.get_transaction_receipt(cast(Any, tx)))
        with _reading("a receipt"):
            return _receipt(raw)

    async def value(self, tx: HexId) -> Wei:
        """The native coin a transaction carried."""
        raw = await self._told("a transaction", self._web3.eth.get_transaction(cast(Any, tx)))
        with _reading("a transaction"):
            return Wei(int(raw["value"]))

    # -- fees

    async def fee_history(self, blocks: int, percentile: int) -> FeeHistory:
        raw = cast(
            Mapping[str, Any],
            await self._told("eth_feeHistory", self._web3.eth.fee_history(blocks, "latest", [float(percentile)])),
        )
        with _reading("eth_feeHistory"):
            base_fees = tuple(int(fee) for fee in raw["baseFeePerGas"])
            used, rewards = raw.get("gasUsedRatio") or (), raw.get("reward") or ()
            tips = tuple(int(reward[0]) for ratio, reward in zip(used, rewards, strict=False) if ratio and reward)
        return FeeHistory(base_fees, tips)

    async def suggested_tip(self) -> int:
        return int(await self._told("eth_maxPriorityFeePerGas", self._web3.eth.max_priority_fee))

    async def gas_price(self) -> int:
        return int(await self._told("eth_gasPrice", self._web3.eth.gas_price))

    # -- how questions are put

    async def _pinned(self, what: str, at: Block, ask: Callable[[Any], Awaitable[T]]) -> T:
        if self.pins_by_hash:
            try:
                return await self._told(what, ask({"blockHash": at.hash, "requireCanonical": True}))
            except BadRequest:
                # Either the node cannot read such a pin, or the question is bad in both forms.
                answer = await self._told(what, ask(at.number))
                self.pins_by_hash = False
                return answer
        return await self._told(what, ask(at.number))

    async def _told(self, what: str, asked: Awaitable[T]) -> T:
        """Await web3; whatever it raises over an answer it cannot read is the answer's fault."""
        with _reading(what):
            return await asked

    @property
    def _answerer(self) -> str:
        """The node this task heard last, to begin a complaint with."""
        node = self._provider.served_by
        return "" if node is None else f"{node.host}: "


VENDOR_ERRORS: Final = (Web3Exception, ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError)
"""What web3 and its formatters raise over an answer they cannot read, and what our own unpacking of one raises."""


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Inside, an answer that is not what it should be becomes one of our errors."""
    try:
        yield
    except VENDOR_ERRORS as error:
        raise vendor_fault(what, error) from error


def vendor_fault(what: str, error: Exception) -> ZunoError:
    """A vendor's complaint as ours; its text stays in the chained cause."""
    if isinstance(error, BlockNotFound | TransactionNotFound):
        return NoSuchState(f"{what}: the node does not have it")
    return Malformed(f"{what}: the answer cannot be read ({type(error).__name__})")


@lru_cache(maxsize=4096)
def _checksum(address: Address) -> ChecksumAddress:
    return to_checksum_address(address)


def _hex(value: Any) -> HexId:
    return HexId("0x" + bytes(value).hex())


def _address(value: Any) -> Address:
    return Address(str(value).lower())


def _whole(value: Any) -> int:
    """A number that web3 has no formatter for arrives as hex text."""
    return int(value, 16) if isinstance(value, str) else int(value)


def _block(data: BlockData) -> Block:
    return Block(int(data["number"]), _hex(data["hash"]), Seconds(int(data["timestamp"])))


def _log(entry: LogReceipt) -> Log:
    timestamp = cast(Mapping[str, Any], entry).get("blockTimestamp")
    return Log(
        address=_address(entry["address"]),
        topics=tuple(map(_hex, entry["topics"])),
        data=bytes(entry["data"]),
        block_number=int(entry["blockNumber"]),
        block_hash=_hex(entry["blockHash"]),
        tx=_hex(entry["transactionHash"]),
        tx_index=int(entry["transactionIndex"]),
        index=int(entry["logIndex"]),
        timestamp=None if timestamp is None else Seconds(_whole(timestamp)),
    )


def _receipt(raw: TxReceipt) -> Receipt:
    fields = cast(Mapping[str, Any], raw)
    gas = int(fields["gasUsed"]) * int(fields["effectiveGasPrice"])
    return Receipt(
        tx=_hex(fields["transactionHash"]),
        sender=_address(fields["from"]),
        block_number=int(fields["blockNumber"]),
        tx_index=int(fields["transactionIndex"]),
        cost=Wei(gas + _whole(fields.get("l1Fee") or 0)),
        logs=tuple(_log(entry) for entry in fields["logs"]),
    )
