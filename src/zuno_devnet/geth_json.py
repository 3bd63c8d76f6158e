"""Writes blocks, transactions, receipts and logs as geth's JSON does, field for field."""

from __future__ import annotations

from typing import Any

from .history import LocalBlock, LocalLog, LocalReceipt
from .transactions import ACCESS_LIST, DYNAMIC_FEE, LEGACY, LocalTransaction

Json = dict[str, Any]


def quantity(value: int) -> str:
    return hex(value)


def data(value: bytes) -> str:
    return "0x" + value.hex()


def word(value: int) -> str:
    return f"0x{value:064x}"


def block(block: LocalBlock, *, full: bool, pending: bool = False) -> Json:
    header: Any = block.header
    shown: list[Any] = [data(receipt.tx.hash) for receipt in block.receipts]
    if full:
        shown = [transaction(receipt.tx, None if pending else block, receipt) for receipt in block.receipts]
    return {
        # Nobody can know these of a block that is not mined.
        "hash": None if pending else data(header.hash),
        "nonce": None if pending else data(header.nonce),
        "miner": None if pending else data(header.coinbase),
        "number": quantity(header.block_number),
        "parentHash": data(header.parent_hash),
        "timestamp": quantity(header.timestamp),
        "baseFeePerGas": quantity(block.base_fee),
        "gasLimit": quantity(header.gas_limit),
        "gasUsed": quantity(header.gas_used),
        "blobGasUsed": quantity(header.blob_gas_used),
        "excessBlobGas": quantity(header.excess_blob_gas),
        "difficulty": quantity(header.difficulty),
        "extraData": data(header.extra_data),
        "logsBloom": bloom(header.bloom),
        "mixHash": data(header.mix_hash),
        "sha3Uncles": data(header.uncles_hash),
        "stateRoot": data(header.state_root),
        "transactionsRoot": data(header.transaction_root),
        "receiptsRoot": data(header.receipt_root),
        "withdrawalsRoot": data(header.withdrawals_root),
        "parentBeaconBlockRoot": data(header.parent_beacon_block_root),
        "requestsHash": data(header.requests_hash),
        "size": quantity(block.size),
        "transactions": shown,
        "uncles": [],
        "withdrawals": [],
    }


def transaction(tx: LocalTransaction, mined_in: LocalBlock | None, receipt: LocalReceipt | None = None) -> Json:
    inner: Any = tx.inner
    shape: Json = {
        "blockHash": data(mined_in.hash) if mined_in else None,
        "blockNumber": quantity(mined_in.number) if mined_in else None,
        "transactionIndex": quantity(receipt.index) if mined_in and receipt else None,
        "hash": data(tx.hash),
        "type": quantity(tx.type),
        "chainId": quantity(inner.chain_id),
        "nonce": quantity(tx.nonce),
        "from": data(tx.sender),
        "to": data(tx.to) if tx.to else None,
        "value": quantity(tx.value),
        "input": data(tx.data),
        "gas": quantity(tx.gas),
        "gasPrice": quantity(receipt.gas_price if mined_in and receipt else tx.max_fee),
        "v": quantity(inner.v if tx.type == LEGACY else inner.y_parity),
        "r": quantity(inner.r),
        "s": quantity(inner.s),
    }
    if tx.type == DYNAMIC_FEE:
        shape["maxFeePerGas"] = quantity(tx.max_fee)
        shape["maxPriorityFeePerGas"] = quantity(tx.tip)
    if tx.type >= ACCESS_LIST:
        shape["yParity"] = quantity(inner.y_parity)
        shape["accessList"] = [
            {"address": data(address), "storageKeys": [word(slot) for slot in slots]}
            for address, slots in tx.access_list
        ]
    return shape


def receipt(block: LocalBlock, receipt: LocalReceipt) -> Json:
    tx = receipt.tx
    return {
        "transactionHash": data(tx.hash),
        "transactionIndex": quantity(receipt.index),
        "blockHash": data(block.hash),
        "blockNumber": quantity(block.number),
        "from": data(tx.sender),
        "to": data(tx.to) if tx.to else None,
        "contractAddress": data(receipt.contract) if receipt.contract else None,
        "status": quantity(int(receipt.ok)),
        "type": quantity(tx.type),
        "gasUsed": quantity(receipt.gas_used),
        "cumulativeGasUsed": quantity(receipt.cumulative_gas),
        "effectiveGasPrice": quantity(receipt.gas_price),
        "logs": [log(block, entry) for entry in receipt.logs],
        "logsBloom": bloom(receipt.bloom),
    }


def log(block: LocalBlock, log: LocalLog, tx_hash: str | None = None) -> Json:
    return {
        "address": data(log.address),
        "topics": [data(topic) for topic in log.topics],
        "data": data(log.data),
        "blockHash": data(block.hash),
        "blockNumber": quantity(log.block_number),
        "blockTimestamp": quantity(block.timestamp),
        "transactionHash": tx_hash or data(block.receipts[log.tx_index].tx.hash),
        "transactionIndex": quantity(log.tx_index),
        "logIndex": quantity(log.index),
        "removed": False,
    }


def bloom(value: int) -> str:
    return f"0x{value:0512x}"
