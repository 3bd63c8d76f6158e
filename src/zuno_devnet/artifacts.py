"""The compiled v4 contracts in `node_modules`. Imports nothing heavy, so that their absence is reported at once."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.installation import name_install

# The licences of these packages forbid us to ship them: the user's own npm client installs exactly these.
VERSIONS: Final = {"v4-core": "1.0.2", "v4-periphery": "1.0.3", "universal-router": "2.1.0"}

_NPM: Final = "npm install --ignore-scripts " + " ".join(
    f"@uniswap/{name}@{wanted}" for name, wanted in VERSIONS.items()
)
CURE: Final = (
    f"in a checkout run `make devnet`; elsewhere run `{_NPM}` and set ZUNO_CONTRACTS_DIR to the node_modules it makes"
)
NOT_INSTALLED: Final = "the v4 contract packages are not installed"

_INIT_CODE: Final = {
    "PoolManager": "v4-core/out/PoolManager.sol/PoolManager.json",
    "PoolSwapTest": "v4-core/out/PoolSwapTest.sol/PoolSwapTest.json",
    "PoolModifyLiquidityTest": "v4-core/out/PoolModifyLiquidityTest.sol/PoolModifyLiquidityTest.json",
    # v4-core compiles two MockERC20s; the one below mocks/ is solmate's, with a constructor and an open mint.
    "MockERC20": "v4-core/out/mocks/MockERC20.sol/MockERC20.json",
    "PositionManager": "v4-periphery/foundry-out/PositionManager.sol/PositionManager.json",
    "StateView": "v4-periphery/foundry-out/StateView.sol/StateView.json",
    "V4Quoter": "v4-periphery/foundry-out/V4Quoter.sol/V4Quoter.json",
    "WETH": "v4-periphery/foundry-out/WETH.sol/WETH.default.json",
    "UniversalRouter": "universal-router/artifacts/contracts/UniversalRouter.sol/UniversalRouter.json",
}
_PERMIT2_SOURCE: Final = "v4-periphery/lib/permit2/test/utils/DeployPermit2.sol"
_HEX_LITERAL: Final = re.compile(r'hex"([0-9a-f]+)"')


@dataclass(frozen=True)
class Artifacts:
    """The compiled contracts below one `node_modules`, of the versions in `VERSIONS`."""

    scope: Path

    def init_code(self, contract: str) -> bytes:
        """Creation bytecode, without constructor arguments."""
        artifact = self._read_json(_INIT_CODE[contract])
        # Hardhat writes the bytecode as a string, Foundry as an object around it.
        code = artifact.get("bytecode")
        literal = code.get("object") if isinstance(code, dict) else code
        if not isinstance(literal, str):
            raise Malformed(f"{contract}: the artifact carries no bytecode; {self._repair_advice}")
        try:
            return bytes.fromhex(literal.removeprefix("0x"))
        except ValueError as error:
            raise Malformed(f"{contract}: the bytecode is not hex (an unlinked library?)") from error

    def abi(self, contract: str) -> list[dict[str, Any]]:
        abi: list[dict[str, Any]] = self._read_json(_INIT_CODE[contract])["abi"]
        return abi

    @cached_property
    def permit2_code(self) -> bytes:
        """Runtime bytecode: Permit2 lives at one address on every chain, so it is placed, not deployed."""
        try:
            literal = _HEX_LITERAL.search((self.scope / _PERMIT2_SOURCE).read_text())
        except OSError as error:
            raise Unavailable(f"{NOT_INSTALLED}: {CURE}") from error
        if literal is None:
            raise Malformed(f"Permit2's bytecode is not where v4-periphery keeps it; {self._repair_advice}")
        return bytes.fromhex(literal[1])

    def _read_json(self, path: str) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads((self.scope / path).read_bytes())
        except OSError as error:
            raise Unavailable(f"the contract packages lack {path}; {self._repair_advice}") from error
        except ValueError as error:
            raise Malformed(f"{path} is not JSON; {self._repair_advice}") from error
        return content

    @property
    def _repair_advice(self) -> str:
        return _delete_and_cure(self.scope.parent)


def _delete_and_cure(node_modules: Path) -> str:
    return f"delete {node_modules}, then {CURE}"


def find_artifacts(node_modules: Path) -> Artifacts:
    """The artifacts below `node_modules`. `Unavailable`: py-evm or a package is missing or of another version."""
    if importlib.util.find_spec("eth") is None:
        raise Unavailable(f"py-evm is not installed: {name_install('devnet')}")
    scope = node_modules / "@uniswap"
    for package, wanted in VERSIONS.items():
        try:
            version = json.loads((scope / package / "package.json").read_bytes())["version"]
        except OSError as error:
            raise Unavailable(f"{NOT_INSTALLED} in {node_modules}: {CURE}") from error
        except (ValueError, KeyError, TypeError) as error:
            message = f"@uniswap/{package}: unreadable package.json; {_delete_and_cure(node_modules)}"
            raise Malformed(message) from error
        if version != wanted:
            raise Unavailable(f"@uniswap/{package} is {version}, but the devnet knows {wanted}: {CURE}")
    return Artifacts(scope)
