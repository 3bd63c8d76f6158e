"""The real v4 contracts behind the node, driven by web3 as any client would drive a public node."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.paths import NODE_MODULES

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from eth_abi.abi import decode, encode
from eth_hash.auto import keccak

from zuno.adapters.chain.world import DEPLOYMENT
from zuno.kernel.errors import Broken, Unavailable
from zuno.lp.model.chains import SwapStruct
from zuno_devnet.artifacts import Artifacts, find_artifacts
from zuno_devnet.chain import ETHER, GWEI, Genesis, LocalChain
from zuno_devnet.deploy import DeployedContracts, deploy, v4_genesis
from zuno_devnet.keys import dev_address, dev_key
from zuno_devnet.node import DevnetNode
from zuno_devnet.server import serve

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from web3 import AsyncHTTPProvider, AsyncWeb3, HTTPProvider, Web3
    from web3.exceptions import ContractCustomError, Web3RPCError

pytestmark = pytest.mark.slow
NATIVE = bytes(20)
WALLET = dev_address("wallet")
KEY = "(address,address,uint24,int24,address)"
FOREVER = 2**40
LOWER, UPPER = -207_000, -190_800
START_PRICE = 3543191142285914205922034  # sqrt(2000e6 / 1e18) in Q64.96
LIQUIDITY = 10**16


@pytest.fixture(scope="module")
def artifacts() -> Artifacts:
    try:
        return find_artifacts(NODE_MODULES)
    except Unavailable as reason:
        pytest.skip(str(reason))


@dataclass
class World:
    web3: Web3
    url: str
    at: DeployedContracts
    artifacts: Artifacts

    @property
    def pool_key(self) -> tuple[Any, ...]:
        return (NATIVE, self.at.usdc, 3000, 60, NATIVE)

    @property
    def pool_id(self) -> bytes:
        return keccak(encode([KEY], [self.pool_key]))

    def contract(self, name: str, address: bytes) -> Any:
        return self.web3.eth.contract(Web3.to_checksum_address(address), abi=self.artifacts.abi(name))

    def send(self, to: bytes, data: bytes, value: int = 0) -> Any:
        """Signed here, not by the node: the way the desk does it."""
        account = self.web3.eth.account.from_key(dev_key("wallet").to_bytes())
        call = {"from": account.address, "to": Web3.to_checksum_address(to), "data": "0x" + data.hex(), "value": value}
        signed = account.sign_transaction(
            {
                **{name: call[name] for name in ("to", "data", "value")},
                "gas": self.web3.eth.estimate_gas(call),  # type: ignore[arg-type]
                "nonce": self.web3.eth.get_transaction_count(account.address, "pending"),
                "chainId": self.web3.eth.chain_id,
                "maxFeePerGas": 10 * GWEI,
                "maxPriorityFeePerGas": self.web3.eth.max_priority_fee,
            }
        )
        receipt = self.web3.eth.wait_for_transaction_receipt(self.web3.eth.send_raw_transaction(signed.raw_transaction))
        assert receipt["status"] == 1
        return receipt


def selector(signature: str) -> bytes:
    return keccak(signature.encode())[:4]


def invoke(signature: str, *values: Any) -> bytes:
    types = signature[signature.index("(") + 1 : -1]
    return selector(signature) + encode(_split(types), values)


def _split(types: str) -> list[str]:
    parts, depth = [""], 0
    for letter in types:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def mint(world: World) -> bytes:
    """MINT, SETTLE_PAIR, SWEEP of what ether is left."""
    minted = [KEY, "int24", "int24", "uint256", "uint128", "uint128", "address", "bytes"]
    most = 2**128 - 1
    steps = [
        encode(minted, [world.pool_key, LOWER, UPPER, LIQUIDITY, most, most, WALLET, b""]),
        encode(["address", "address"], [NATIVE, world.at.usdc]),
        encode(["address", "address"], [NATIVE, WALLET]),
    ]
    plan = encode(["bytes", "bytes[]"], [b"\x02\x0d\x14", steps])
    return invoke("modifyLiquidities(bytes,uint256)", plan, FOREVER)


def swap_usdc_for_ether(world: World, amount: int) -> bytes:
    """SWAP_EXACT_IN_SINGLE, SETTLE_ALL, TAKE_ALL, in the five-field struct of router 2.1."""
    assert DEPLOYMENT.swap_struct is SwapStruct.FIVE_FIELDS
    steps = [
        encode([f"({KEY},bool,uint128,uint128,bytes)"], [(world.pool_key, False, amount, 0, b"")]),
        encode(["address", "uint256"], [world.at.usdc, amount]),
        encode(["address", "uint256"], [NATIVE, 0]),
    ]
    plan = encode(["bytes", "bytes[]"], [b"\x06\x0c\x0f", steps])
    return invoke("execute(bytes,bytes[],uint256)", b"\x10", [plan], FOREVER)


@pytest.fixture(scope="module")
def world(artifacts: Artifacts) -> Iterator[World]:
    chain = LocalChain.create(v4_genesis(artifacts, balances={WALLET: 10_000 * ETHER}, timestamp=1_700_000_000))
    at = deploy(chain, artifacts)
    node = DevnetNode(chain, unlocked={WALLET: dev_key("wallet")})
    with serve(node) as url:
        made = World(Web3(HTTPProvider(url)), url, at, artifacts)
        made.send(at.usdc, invoke("mint(address,uint256)", WALLET, 10**15))
        made.send(at.usdc, invoke("approve(address,uint256)", at.permit2, 2**256 - 1))
        for spender in (at.position_manager, at.universal_router):
            approve = "approve(address,address,uint160,uint48)"
            made.send(at.permit2, invoke(approve, at.usdc, spender, 2**160 - 1, 2**48 - 1))
        made.send(at.pool_manager, invoke(f"initialize({KEY},uint160)", made.pool_key, START_PRICE))
        made.send(at.position_manager, mint(made), value=100 * ETHER)
        yield made


def test_the_addresses_never_change(artifacts: Artifacts) -> None:
    heads = set()
    for _ in range(2):
        chain = LocalChain.create(v4_genesis(artifacts, balances={}, timestamp=1_700_000_000))
        at = deploy(chain, artifacts)
        heads.add(chain.head.hash)
    assert len(heads) == 1
    assert at.to_checksums()["pool_manager"] == "0x15A7a2d3074882D38099211B1D3638b478135Db9"
    assert at.to_checksums()["permit2"] == "0x000000000022D473030F116dDEE9F6B43aC78BA3"


def test_permit2_must_be_in_the_genesis(artifacts: Artifacts) -> None:
    with pytest.raises(Broken, match="Permit2"):
        deploy(LocalChain.create(Genesis()), artifacts)


def test_it_looks_like_a_node(world: World) -> None:
    web3 = world.web3
    assert web3.is_connected()
    assert web3.eth.chain_id == 31337
    assert web3.net.version == "31337"
    head = web3.eth.get_block("latest", full_transactions=True)
    assert web3.eth.get_block(head["hash"])["number"] == head["number"]
    assert web3.eth.get_transaction(head["transactions"][0]["hash"])["blockHash"] == head["hash"]  # type: ignore[call-overload]
    assert web3.eth.fee_history(3, "latest", [50])["reward"][0] == [GWEI]


def test_a_minted_position_is_what_was_asked_for(world: World) -> None:
    positions = world.contract("PositionManager", world.at.position_manager)
    view = world.contract("StateView", world.at.state_view)
    assert positions.functions.ownerOf(1).call() == Web3.to_checksum_address(WALLET)
    assert positions.functions.getPositionLiquidity(1).call() == LIQUIDITY
    assert view.functions.getLiquidity(world.pool_id).call() == LIQUIDITY
    price, tick, _, fee = view.functions.getSlot0(world.pool_id).call()
    assert (price, fee) == (START_PRICE, 3000) or world.web3.eth.block_number > 16
    assert LOWER < tick < UPPER
    (transfer,) = positions.events.Transfer().get_logs(from_block=0)
    assert transfer["args"]["id"] == 1


def test_a_swap_pays_what_the_quoter_said(world: World) -> None:
    quoter = world.contract("V4Quoter", world.at.quoter)
    amount = 10**9
    quoted, _ = quoter.functions.quoteExactInputSingle((world.pool_key, False, amount, b"")).call()
    wallet = Web3.to_checksum_address(WALLET)
    before = world.web3.eth.get_balance(wallet)
    receipt = world.send(world.at.universal_router, swap_usdc_for_ether(world, amount))
    fee = receipt["gasUsed"] * receipt["effectiveGasPrice"]
    assert world.web3.eth.get_balance(wallet) - before + fee == quoted
    # Before the swap, at the block before it, everything still is as it was.
    assert world.web3.eth.get_balance(wallet, receipt["blockNumber"] - 1) == before


def test_a_simulated_swap_tells_the_truth(world: World) -> None:
    call = {"from": "0x" + WALLET.hex(), "to": "0x" + world.at.universal_router.hex()}
    data = "0x" + swap_usdc_for_ether(world, 10**8).hex()
    options = {"blockStateCalls": [{"calls": [{**call, "input": data}] * 2}], "traceTransfers": True}
    reply = world.web3.provider.make_request("eth_simulateV1", [options, "latest"])  # type: ignore[arg-type]
    first, second = reply["result"][0]["calls"]
    assert (first["status"], second["status"]) == ("0x1", "0x1")

    def ether_out(result: Any) -> int:
        return sum(int(log["data"], 16) for log in result["logs"] if log["address"] == "0x" + "ee" * 20)

    wallet = Web3.to_checksum_address(WALLET)
    before = world.web3.eth.get_balance(wallet)
    receipt = world.send(world.at.universal_router, bytes.fromhex(data[2:]))
    earned = world.web3.eth.get_balance(wallet) - before + receipt["gasUsed"] * receipt["effectiveGasPrice"]
    assert ether_out(first) == earned > ether_out(second) > 0
    assert int(first["gasUsed"], 16) == receipt["gasUsed"]


def test_custom_errors_arrive_decodable(world: World) -> None:
    """DeadlinePassed(uint256), raised by the real PositionManager."""
    positions = world.contract("PositionManager", world.at.position_manager)
    with pytest.raises(ContractCustomError) as caught:
        positions.functions.modifyLiquidities(b"", 1).call()
    assert caught.value.data is not None
    raw = bytes.fromhex(str(caught.value.data)[2:])
    assert raw[:4] == selector("DeadlinePassed(uint256)")
    assert decode(["uint256"], raw[4:]) == (1,)


def test_a_node_refusal_arrives_as_one(world: World) -> None:
    with pytest.raises(Web3RPCError, match="typed transaction too short"):
        world.web3.eth.send_raw_transaction(b"")


async def test_the_async_client_works_too(world: World) -> None:
    provider = AsyncHTTPProvider(world.url)
    web3 = AsyncWeb3(provider)
    try:
        assert await web3.eth.chain_id == 31337
        assert (await web3.eth.get_block("latest"))["number"] == await web3.eth.block_number
    finally:
        await provider.disconnect()
