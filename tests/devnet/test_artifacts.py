"""What is said when the contract packages are missing, foreign or broken."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from zuno.kernel.errors import Malformed, Unavailable
from zuno_devnet.artifacts import VERSIONS, find_artifacts


def install(root: Path, **changes: str) -> Path:
    for package, version in (VERSIONS | {name.replace("_", "-"): v for name, v in changes.items()}).items():
        folder = root / "@uniswap" / package
        folder.mkdir(parents=True)
        (folder / "package.json").write_text(json.dumps({"version": version}))
    return root


def test_missing_packages_name_the_cure(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"`make devnet`.*`npm install .*v4-core@1\.0\.2.*\bZUNO_CONTRACTS_DIR\b"):
        find_artifacts(tmp_path)


def test_another_version_is_not_used(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"@uniswap/v4-core .*1\.0\.9\b.*\b1\.0\.2\b"):
        find_artifacts(install(tmp_path, v4_core="1.0.9"))


def test_an_unreadable_manifest_is_malformed(tmp_path: Path) -> None:
    install(tmp_path)
    (tmp_path / "@uniswap/v4-core/package.json").write_text("[]")
    with pytest.raises(Malformed, match="unreadable"):
        find_artifacts(tmp_path)


def test_bytecode_is_read_from_both_compilers_and_checked(tmp_path: Path) -> None:
    artifacts = find_artifacts(install(tmp_path))
    with pytest.raises(Unavailable, match="`make devnet`"):
        artifacts.init_code("PoolManager")
    with pytest.raises(Unavailable, match="installed"):
        _ = artifacts.permit2_code
    foundry = tmp_path / "@uniswap/v4-core/out/PoolManager.sol/PoolManager.json"
    foundry.parent.mkdir(parents=True)
    foundry.write_text(json.dumps({"bytecode": {"object": "0x6001"}}))
    assert artifacts.init_code("PoolManager") == b"\x60\x01"
    foundry.write_text(json.dumps({"bytecode": {"object": "0x__$lib$__"}}))
    with pytest.raises(Malformed, match=r"\bhex\b"):
        artifacts.init_code("PoolManager")
    hardhat = tmp_path / "@uniswap/universal-router/artifacts/contracts/UniversalRouter.sol/UniversalRouter.json"
    hardhat.parent.mkdir(parents=True)
    hardhat.write_text(json.dumps({"bytecode": "0x6002"}))
    assert artifacts.init_code("UniversalRouter") == b"\x60\x02"


def test_a_missing_engine_names_the_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Unavailable, match=r"\bpy-evm\b.*`make devnet`"):
        find_artifacts(install(tmp_path))


@pytest.mark.slow
def test_asking_costs_no_heavy_import() -> None:
    module = "zuno_devnet.artifacts"
    script = f"import sys, {module}; print(sorted({{'eth', 'web3', 'eth_abi'}} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
