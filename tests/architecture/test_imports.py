"""The front end stays light: help and completion import no vendor and no room below."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "web3",
    "eth",
    "eth_abi",
    "httpx2",
    "pydantic",
    "rich.table",
    "numpy",
    "zuno.wiring",
    "zuno.adapters",
    "zuno.app",
)


def test_help_imports_no_vendor() -> None:
    code = "import sys; import zuno.__main__; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in HEAVY if name in loaded] == []
