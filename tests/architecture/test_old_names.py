"""Yesterday's import paths: one sentence says where a module is now, whatever an update has left in the checkout."""

from __future__ import annotations

import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import zuno

GONE = "ImportError: zuno.{} is gone: "


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A package as it is after the moves: old packages are gone, `zuno.amm.pool` and a part of the devnet are there."""
    package = tmp_path / "zuno"
    (package / "amm").mkdir(parents=True)
    shutil.copy(zuno.__file__, package / "__init__.py")
    (package / "amm" / "__init__.py").touch()
    (package / "amm" / "pool.py").write_text("class Pool: ...\n")
    (package / "adapters" / "chain" / "devnet").mkdir(parents=True)
    (package / "adapters" / "chain" / "devnet" / "process.py").touch()
    return package


def run_import(checkout: Path, statement: str) -> str:
    """The last line of what it says; empty where it works."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", statement], cwd=checkout.parent, capture_output=True, text=True, check=False
    )
    return done.stderr.strip().rpartition("\n")[2]


def leave_folders(checkout: Path) -> None:
    (checkout / "core" / "amm" / "__pycache__").mkdir(parents=True)
    (checkout / "core" / "amm" / "__pycache__" / "pool.cpython-311.pyc").write_bytes(b"stale")
    (checkout / "desks" / "__pycache__").mkdir(parents=True)
    (checkout / "adapters" / "chain" / "devnet" / "__pycache__").mkdir()
    (checkout / "adapters" / "chain" / "devnet" / "__pycache__" / "evm.cpython-311.pyc").write_bytes(b"stale")


def leave_bytecode(checkout: Path) -> None:
    """Modules without their source, which Python would import."""
    (checkout / "core" / "amm").mkdir(parents=True)
    for name in ("core/__init__", "core/amm/__init__", "core/amm/pool"):
        source = checkout / "old.py"
        source.write_text("class Pool: ...\n")
        py_compile.compile(str(source), cfile=str(checkout / f"{name}.pyc"))
        source.unlink()


def leave_nothing(checkout: Path) -> None:
    """As after a fresh clone."""


@pytest.mark.parametrize("leave", [leave_nothing, leave_folders, leave_bytecode])
@pytest.mark.parametrize(
    ("statement", "begins", "names"),
    [
        ("from zuno.core.amm.pool import Pool", GONE.format("core"), "zuno.core.amm is now zuno.amm"),
        ("import zuno.core", GONE.format("core"), "docs/architecture.md"),
        ("from zuno.desks import lp", GONE.format("desks"), "docs/architecture.md"),
        (
            "from zuno.adapters.chain.devnet.evm import LocalChain",
            GONE.format("adapters.chain.devnet.evm"),
            "zuno_devnet",
        ),
        ("import zuno.adapters.chain.devnet.process", "", ""),
        ("import zuno.frontends.cli.main", GONE.format("frontends"), "docs/architecture.md"),
        ("from zuno.amm.pool import Pool", "", ""),
        ("import zuno.nothing", "ModuleNotFoundError: ", "'zuno.nothing': docs/architecture.md"),
    ],
)
def test_an_old_path_is_answered_with_the_new_one(
    checkout: Path, leave: Callable[[Path], None], statement: str, begins: str, names: str
) -> None:
    leave(checkout)
    said = run_import(checkout, statement)
    assert said.startswith(begins)
    assert names in said
    assert bool(said) is bool(begins)


def test_a_package_that_has_its_source_is_not_old(checkout: Path) -> None:
    leave_folders(checkout)
    (checkout / "core" / "__init__.py").touch()
    assert run_import(checkout, "import zuno.core") == ""
    assert run_import(checkout, "import zuno.core.amm.pool").startswith("ModuleNotFoundError")
    assert run_import(checkout, "import zuno.desks").startswith(GONE.format("desks"))


def test_a_module_that_moved_within_its_room_is_one_sentence(checkout: Path) -> None:
    assert run_import(checkout, "import zuno.amm.fees").startswith("ModuleNotFoundError: No module named 'zuno.amm")
    assert "architecture.md" in run_import(checkout, "from zuno.amm.fees import swap_fee")
    assert run_import(checkout, "import zuno.amm.pool") == ""
