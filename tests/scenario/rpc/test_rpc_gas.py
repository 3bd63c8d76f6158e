"""Gas on chains that charge for calldata, from scripted nodes: the devnet has neither oracle."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from zuno.adapters.chain.rpc import RpcChain
from zuno.kernel.errors import Unavailable
from zuno.lp.model.chains import DataFee

GWEI = 10**9
BLOCK = {"number": "0x10", "hash": "0x" + "ab" * 32, "timestamp": "0x65000000"}
ORACLE, ARB = "0x420000000000000000000000000000000000000f", "0x000000000000000000000000000000000000006c"
UPPER_BOUND, PRICES = "0xf1c7a58b", "0x41b247a8"
SCALARS = {"0x519b4bd3": 30 * GWEI, "0xc5985918": 5227, "0xf8206140": 7 * GWEI, "0x68d5dca6": 1_014_213}


class Script:
    """Answers by method; a missing one is "method not found", as on a node that lacks it."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {"eth_chainId": "0x7a69", "eth_getBlockByNumber": BLOCK, **answers}

    def __call__(self, body: bytes) -> bytes:
        request = json.loads(body)
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        answer = self.answers.get(request["method"])
        if callable(answer):
            answer = answer(*request["params"])
        if answer is None:
            message = f"the method {request['method']} does not exist/is not available"
            reply["error"] = {"code": -32601, "message": message}
        elif isinstance(answer, dict) and "code" in answer:
            reply["error"] = answer
        else:
            reply["result"] = answer
        return json.dumps(reply).encode()


def history(tips: list[int], used: list[float]) -> dict[str, Any]:
    return {
        "oldestBlock": "0x1",
        "baseFeePerGas": [hex(20 * GWEI)] * len(tips) + [hex(21 * GWEI)],
        "gasUsedRatio": used,
        "reward": [[hex(tip)] for tip in tips],
    }


def word(value: int) -> str:
    return f"0x{value:064x}"


def calls(**by_selector: Any) -> Any:
    def call(tx: dict[str, Any], pin: Any) -> Any:
        assert pin == {"blockHash": BLOCK["hash"], "requireCanonical": True}
        return by_selector["answer"](tx["to"].lower(), tx["data"])

    return call


async def quote(desk: Any, tmp_path: Path, script: Script, fee: DataFee = DataFee.NONE) -> Any:
    node = await desk.node(answer=script)
    chain = RpcChain(replace(desk.stage.info, data_fee=fee), [node.url], tmp_path / "gas")
    try:
        return await chain.gas()
    finally:
        await chain.close()


async def test_the_next_base_fee_and_the_median_tip_of_blocks_that_had_any(desk: Any, tmp_path: Path) -> None:
    tips = [GWEI, 0, 3 * GWEI, 100 * GWEI, 0]
    script = Script(eth_feeHistory=history(tips, [0.5, 0.0, 0.4, 0.9, 0.0]))
    told = await quote(desk, tmp_path, script)
    assert (told.base_fee, told.priority_fee, told.l1_fee_per_byte) == (21 * GWEI, 3 * GWEI, None)


async def test_empty_blocks_fall_back_to_the_suggested_tip(desk: Any, tmp_path: Path) -> None:
    script = Script(eth_feeHistory=history([0, 0], [0.0, 0.0]), eth_maxPriorityFeePerGas=hex(2 * GWEI))
    told = await quote(desk, tmp_path, script)
    assert (told.base_fee, told.priority_fee) == (21 * GWEI, 2 * GWEI)


async def test_a_node_with_one_price_only(desk: Any, tmp_path: Path) -> None:
    both = Script(eth_gasPrice=hex(5 * GWEI), eth_maxPriorityFeePerGas=hex(GWEI))
    told = await quote(desk, tmp_path, both)
    assert (told.base_fee, told.priority_fee) == (4 * GWEI, GWEI)
    told = await quote(desk, tmp_path, Script(eth_gasPrice=hex(5 * GWEI)))
    assert (told.base_fee, told.priority_fee) == (5 * GWEI, 0)
    with pytest.raises(Unavailable):
        await quote(desk, tmp_path, Script())


async def quotes(desk: Any, tmp_path: Path, *tips: int) -> Any:
    """What the first of these nodes says, and what the others add to it."""
    scripts = [Script(eth_feeHistory=history([tip], [0.5])) if tip else Script() for tip in tips]
    nodes = [await desk.node(answer=script) for script in scripts]
    chain = RpcChain(desk.stage.info, [node.url for node in nodes], tmp_path / "gas")
    try:
        return await chain.gas(), await chain.writer().list_gas()
    finally:
        await chain.close()


async def test_every_node_is_asked_on_its_own(desk: Any, tmp_path: Path) -> None:
    told, others = await quotes(desk, tmp_path, 2_000_000 * GWEI, 2 * GWEI)
    assert others == (told, replace(told, priority_fee=2 * GWEI))
    assert told.priority_fee == 2_000_000 * GWEI


async def test_one_node_is_no_second_opinion_and_one_that_is_silent_has_none(desk: Any, tmp_path: Path) -> None:
    assert (await quotes(desk, tmp_path, GWEI))[1] == ()
    assert [quote.priority_fee for quote in (await quotes(desk, tmp_path, GWEI, 0))[1]] == [GWEI]


def fjord_upper_bound(size: int) -> int:
    """The published formula, with the scalars and fees above."""
    signed = size + 68
    compressed = signed + signed // 255 + 16
    estimated = max(100 * 10**6, -42_585_600 + 836_500 * compressed)
    price = 16 * 5227 * 30 * GWEI + 1_014_213 * 7 * GWEI
    return estimated * price // 10**12


async def test_op_stack_bytes_are_priced_from_above(desk: Any, tmp_path: Path) -> None:
    def oracle(to: str, data: str) -> Any:
        assert to == ORACLE
        assert data.startswith(UPPER_BOUND)
        return word(fjord_upper_bound(int(data[10:], 16)))

    script = Script(eth_feeHistory=history([GWEI], [0.5]), eth_call=calls(answer=oracle))
    told = await quote(desk, tmp_path, script, DataFee.OP_STACK)
    for size in (500, 700, 1_500, 4_000, 20_000):
        bound, charged = told.l1_fee_per_byte * size, fjord_upper_bound(size)
        assert charged <= bound <= charged * 107 // 100
        # An OP-stack node's estimate leaves the data fee out, so it counts whoever named the units.
        assert told.cost(10, size, estimated_here=True) == 10 * told.price + bound


async def test_op_stack_before_fjord(desk: Any, tmp_path: Path) -> None:
    def oracle(to: str, data: str) -> Any:
        assert to == ORACLE
        if data.startswith(UPPER_BOUND):
            return {"code": 3, "message": "execution reverted", "data": "0x"}
        return word(SCALARS[data[:10]])

    script = Script(eth_feeHistory=history([GWEI], [0.5]), eth_call=calls(answer=oracle))
    told = await quote(desk, tmp_path, script, DataFee.OP_STACK)
    price = 16 * 5227 * 30 * GWEI + 1_014_213 * 7 * GWEI
    assert told.l1_fee_per_byte == -(-price // 10**6)


async def test_arbitrum_prices_a_byte_itself(desk: Any, tmp_path: Path) -> None:
    def info(to: str, data: str) -> Any:
        assert (to, data) == (ARB, PRICES)
        return "0x" + "".join(f"{value:064x}" for value in (140 * 123_456, 123_456, 3, 4, 5, 6))

    script = Script(eth_feeHistory=history([0], [0.5]), eth_call=calls(answer=info))
    told = await quote(desk, tmp_path, script, DataFee.ARBITRUM)
    assert told.l1_fee_per_byte == 123_456
    assert told.cost(10, 100, estimated_here=True) == 10 * told.price
    assert told.cost(10, 100, estimated_here=False) == 10 * told.price + 100 * 123_456
