"""Find out whether a transaction was mined: by its receipt, checked against the wallet's transaction count."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from zuno.adapters.chain.rpc import abi, requests
from zuno.adapters.chain.rpc.errors import NodeBehind, NoSuchState
from zuno.adapters.chain.rpc.node import Receipt, parse_receipt
from zuno.adapters.chain.rpc.readers import Readers
from zuno.adapters.chain.rpc.replay import BlockReplay
from zuno.adapters.chain.rpc.scan import Query, Scanner
from zuno.amm.model import Block, Range
from zuno.kernel.errors import Malformed
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId
from zuno.lp.ports.spending import Call, LiquidityTouch, Mined, NonceStatus, SentTransaction, SentTransactions

_NO_BLOCK: Final = {None, "0x" + "00" * 32}


@dataclass(frozen=True, slots=True)
class _FoundTransaction:
    tx: HexId
    receipt: Receipt | None
    block_hash: HexId | None
    success: bool
    gas_used: int
    waiting: bool
    call: Call | None = None


class NonceTracker:
    def __init__(self, readers: Readers) -> None:
        self._node = readers.node
        self._info = readers.info
        self._replay = BlockReplay(readers)

    async def status_at(self, head: Block, wallet: Address, nonce: int, hashes: Sequence[HexId]) -> NonceStatus:
        settled = await self._settled_block(head)
        counted, final = await asyncio.gather(
            self._node.transaction_count(wallet, head), self._node.transaction_count(wallet, settled)
        )
        transactions = await self._find_transactions(head, hashes, spent=counted > nonce)
        for each in transactions:
            if each.receipt is not None and each.receipt.sender != wallet:
                raise Malformed(f"transaction {each.tx} is {each.receipt.sender}'s, not the wallet's")
        mined = [
            result
            for result in await asyncio.gather(*(self._mined_result(each, wallet, head) for each in transactions))
            if result
        ]
        if len(mined) > 1:
            raise Malformed(f"two transactions of number {nonce} cannot both be mined")
        if mined and counted <= nonce:
            raise NodeBehind(f"number {nonce} is mined by a receipt and not by the state")
        waiting = tuple(each.tx for each in transactions if each.waiting)
        return NonceStatus(head, mined[0] if mined else None, waiting, counted, final)

    async def read_sent(self, head: Block, wallet: Address, hashes: Sequence[HexId]) -> SentTransactions:
        sent = []
        for transaction in await self._find_transactions(head, hashes, spent=False):
            mined = await self._mined_result(transaction, wallet, head)
            if mined is not None and transaction.receipt is not None and transaction.call is not None:
                touches = tuple(
                    LiquidityTouch(change.token, change.range, change.delta)
                    for change in self._replay.changes(transaction.receipt.logs)
                )
                sent.append(SentTransaction(transaction.receipt.sender, transaction.call, mined, touches))
        return SentTransactions(head, await self._settled_block(head), tuple(sent))

    async def touching_at(
        self, head: Block, wallet: Address, after: int, pool_id: HexId, band: Range
    ) -> SentTransactions:
        topics = (abi.MODIFY_LIQUIDITY, pool_id, abi.address_word(self._info.deployment.position_manager))
        logs = await Scanner(self._node).all(Query(self._info.deployment.pool_manager, topics), after + 1, head.number)
        hashes = dict.fromkeys(change.log.tx for change in self._replay.changes(logs) if change.range == band)
        return await self.read_sent(head, wallet, list(hashes))

    async def sent_at(self, head: Block, wallet: Address, after: int) -> SentTransactions:
        """Nodes have no index by sender: the blocks in which the wallet's count grew are found by halving."""
        if after >= head.number:
            return await self.read_sent(head, wallet, [])
        first = await self._node.transaction_count(wallet, await self._node.block(after))
        spans = [(after, first, head.number, await self._node.transaction_count(wallet, head))]
        hashes: list[HexId] = []
        while spans:
            low, before, high, by_then = spans.pop()
            if by_then <= before:
                continue
            if high - low > 1:
                middle = await self._node.block((low + high) // 2)
                counted = await self._node.transaction_count(wallet, middle)
                spans += [(middle.number, counted, high, by_then), (low, before, middle.number, counted)]
                continue
            mined = await self._node.senders_and_receivers(await self._node.block(high))
            hashes += [tx for tx, sender, _ in mined if sender == wallet]
        return await self.read_sent(head, wallet, hashes)

    async def _settled_block(self, head: Block) -> Block:
        number = max(0, head.number - max(1, self._info.confirmations) + 1)
        return head if number == head.number else await self._node.block(number)

    async def _find_transactions(self, head: Block, hashes: Sequence[HexId], *, spent: bool) -> list[_FoundTransaction]:
        """Receipts and pending transactions from one machine that has the head. If the nonce is spent and none of ours
        has it, every node is asked first: one that lacks its newest blocks says the same."""
        if not hashes:
            return []
        asked = [requests.height(head.number)]
        asked += [ask(tx) for tx in hashes for ask in (requests.receipt, requests.transaction)]

        def parse(results: list[Any]) -> list[_FoundTransaction]:
            _, *rest = results
            return [_parse_found(tx, *rest[2 * index : 2 * index + 2]) for index, tx in enumerate(hashes)]

        def parse_doubtful(results: list[Any]) -> list[_FoundTransaction]:
            transactions = parse(results)
            if not any(each.receipt for each in transactions):
                raise NoSuchState("the number is spent, and by none of the transactions this node knows")
            return transactions

        transactions: list[_FoundTransaction]
        try:
            transactions = await self._node.ask_together(asked, judge=parse_doubtful if spent else parse)
        except NoSuchState:
            if not spent:
                raise
            transactions = await self._node.ask_together(asked, judge=parse)
        return transactions

    async def _mined_result(self, known: _FoundTransaction, wallet: Address, head: Block) -> Mined | None:
        receipt = known.receipt
        if receipt is None:
            return None
        if receipt.block_number > head.number:
            raise NoSuchState(f"mined in block {receipt.block_number}, after the head was read")
        block = head if receipt.block_number == head.number else await self._node.block(receipt.block_number)
        if block.hash != known.block_hash:
            return None
        return Mined(known.tx, block, known.success, known.gas_used, receipt.cost, self._minted_ids(receipt, wallet))

    def _minted_ids(self, receipt: Receipt, wallet: Address) -> tuple[int, ...]:
        given = (abi.TRANSFER, abi.address_word(NATIVE), abi.address_word(wallet))
        manager = self._info.deployment.position_manager
        logs = (log for log in receipt.logs if log.address == manager and log.topics[:3] == given)
        return tuple(int(log.topics[3], 16) for log in logs)


def _parse_found(tx: HexId, receipt: Any, transaction: Any) -> _FoundTransaction:
    if receipt is None:
        if transaction is not None and transaction["blockHash"] not in _NO_BLOCK:
            raise NoSuchState("a transaction in a block, and no receipt of it yet")
        return _FoundTransaction(tx, None, None, False, 0, transaction is not None)
    if "status" not in receipt or "blockHash" not in receipt:
        raise Malformed("a receipt that does not say in which block it is and how it went")
    block_hash = HexId(receipt["blockHash"].lower())
    gas_used = requests.parse_int(receipt["gasUsed"])
    success, call = requests.parse_int(receipt["status"]) == 1, None
    if transaction is not None and transaction.get("to"):
        data = bytes.fromhex(transaction["input"][2:])
        call = Call(Address(transaction["to"].lower()), requests.parse_int(transaction["value"]), data)
    return _FoundTransaction(tx, parse_receipt(receipt), block_hash, success, gas_used, False, call)
