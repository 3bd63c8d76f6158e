"""Deploys the official Uniswap v4 contracts to a fresh chain, at the same addresses every time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from eth_abi.abi import encode
from eth_utils.address import to_checksum_address

from zuno.kernel.errors import Broken

from .artifacts import Artifacts
from .chain import ETHER, Genesis, LocalChain
from .keys import dev_address, dev_key

DEPLOYER: Final = "deployer"
PERMIT2: Final = bytes.fromhex("000000000022D473030F116dDEE9F6B43aC78BA3")
_ZERO: Final = bytes(20)
_UNSUBSCRIBE_GAS: Final = 300_000
_DEPLOY_GAS: Final = 12_000_000
_ROUTER_PARAMETERS: Final = "(address,address,address,address,bytes32,bytes32,address,address,address,address)"


@dataclass(frozen=True, slots=True)
class DeployedContracts:
    """Addresses of 20 bytes."""

    pool_manager: bytes
    position_manager: bytes
    state_view: bytes
    quoter: bytes
    universal_router: bytes
    permit2: bytes
    weth: bytes
    usdc: bytes
    pool_swap_test: bytes

    def to_checksums(self) -> dict[str, str]:
        """Checksummed addresses by name."""
        return {field.name: to_checksum_address(getattr(self, field.name)) for field in fields(self)}


def v4_genesis(
    artifacts: Artifacts, *, balances: Mapping[bytes, int], timestamp: int, chain_id: int = 31337
) -> Genesis:
    """A genesis for `deploy`: the deployer is funded, and Permit2 is at its usual address."""
    return Genesis(
        chain_id=chain_id,
        timestamp=timestamp,
        balances={dev_address(DEPLOYER): 1_000 * ETHER, **balances},
        code={PERMIT2: artifacts.permit2_code},
    )


def deploy(chain: LocalChain, artifacts: Artifacts) -> DeployedContracts:
    """Deploy in a fixed order from a fixed key, a contract in each block, a second apart."""
    owner = dev_address(DEPLOYER)

    def create(contract: str, types: tuple[str, ...] = (), *values: object) -> bytes:
        init_code = artifacts.init_code(contract) + encode(types, values)
        tx = chain.sign(dev_key(DEPLOYER), to=None, data=init_code, gas=_DEPLOY_GAS)
        (receipt,) = chain.apply_block([tx], chain.head.timestamp + 1).receipts
        if not receipt.ok or receipt.contract is None:
            raise Broken(f"deploying {contract}: {receipt.error} 0x{receipt.revert_data.hex()}")
        return receipt.contract

    if not chain.code(PERMIT2):
        raise Broken("Permit2 is not in the genesis of this chain; build it with v4_genesis")
    weth = create("WETH")
    usdc = create("MockERC20", ("string", "string", "uint8"), "USD Coin", "USDC", 6)
    manager = create("PoolManager", ("address",), owner)
    positions = create(
        "PositionManager",
        ("address", "address", "uint256", "address", "address"),
        *(manager, PERMIT2, _UNSUBSCRIBE_GAS, _ZERO, weth),
    )
    router_parameters = (*(PERMIT2, weth, _ZERO, _ZERO, bytes(32), bytes(32)), *(manager, _ZERO, positions, _ZERO))
    return DeployedContracts(
        pool_manager=manager,
        position_manager=positions,
        state_view=create("StateView", ("address",), manager),
        quoter=create("V4Quoter", ("address",), manager),
        universal_router=create("UniversalRouter", (_ROUTER_PARAMETERS,), router_parameters),
        permit2=PERMIT2,
        weth=weth,
        usdc=usdc,
        pool_swap_test=create("PoolSwapTest", ("address",), manager),
    )
