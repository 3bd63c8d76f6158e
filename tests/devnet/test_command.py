"""`python -m zuno_devnet up`: the v4 contracts on a port, without the rest of Zuno."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.paths import CHECKOUT, DEVNET
from zuno_devnet.__main__ import main

pytest.importorskip("eth", reason="py-evm is the devnet extra")

README = (DEVNET / "README.md").read_text(encoding="utf-8")
STARTED = 1_700_000_000


@contextmanager
def run_up(node_modules: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its first line."""
    command = [sys.executable, "-m", "zuno_devnet", "up", "--port", "0", "--contracts", str(node_modules), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


def ask(url: str, method: str, *params: Any) -> Any:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.loads(response.read())["result"]


@pytest.mark.slow
def test_it_serves_the_contracts_and_funded_accounts_until_it_is_stopped(node_modules: Path) -> None:
    options = ("--accounts", "2", "--balance", "7", "--chain-id", "1234", "--timestamp", str(STARTED))
    with run_up(node_modules, *options) as (process, first_line):
        (url,) = re.findall(r"http://127\.0\.0\.1:\d+", first_line)
        assert ask(url, "eth_chainId") == hex(1234)
        assert int(ask(url, "eth_getBlockByNumber", "earliest", False)["timestamp"], 16) == STARTED
        accounts = ask(url, "eth_accounts")
        assert [int(ask(url, "eth_getBalance", account, "latest"), 16) for account in accounts] == [7 * 10**18] * 2
        sent = ask(url, "eth_sendTransaction", {"from": accounts[0], "to": accounts[1], "value": hex(10**18)})
        assert ask(url, "eth_getTransactionReceipt", sent)["status"] == "0x1"
        listed = dict(re.findall(r"^\| `(\w+)` \| `(0x\w{40})` \|$", README, re.MULTILINE))
        assert all(len(ask(url, "eth_getCode", address, "latest")) > 1_000 for address in listed.values())
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        shown = process.stdout.read() if process.stdout else ""
    assert dict(re.findall(r"^  (\w+) +(0x\w{40})$", shown, re.MULTILINE)) == listed
    keys = dict(re.findall(r"^  (0x\w{40})  (0x\w{64})$", shown, re.MULTILINE))
    assert [address.lower() for address in keys] == accounts


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["down"],
        ["up", "--port", "65536"],
        ["up", "--port", "-1"],
        ["up", "--port", "٣"],
        ["up", "--accounts", "1001"],
        ["up", "--chain-id", "0"],
        ["up", "--balance", "1.5"],
        ["up", "--timestamp", "9" * 4_400],
        ["up", "now"],
    ],
)
def test_options_that_cannot_be_read_are_a_usage_error(options: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(options)
    assert ended.value.code == 2


def test_missing_packages_and_a_taken_port_are_unavailable(
    node_modules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--contracts", str(tmp_path)]) == 4
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["up", "--contracts", str(node_modules), "--port", port]) == 4
    missing, refused = capsys.readouterr().err.splitlines()
    assert "npm install" in missing
    assert port in refused


@pytest.mark.slow
def test_it_loads_nothing_of_zuno_but_the_kernel_and_the_pool() -> None:
    modules = [path.stem for path in DEVNET.glob("[!_]*.py")]
    imports = "".join(f"import zuno_devnet.{module}\n" for module in modules)
    script = [sys.executable, "-c", f"{imports}import sys; print(*sys.modules)"]
    loaded = subprocess.run(script, capture_output=True, text=True, check=True).stdout.split()
    rooms = {name.split(".")[1] for name in loaded if name.startswith("zuno.")}
    assert rooms <= {"kernel", "amm"}


@pytest.mark.slow
def test_the_readme_code_runs(node_modules: Path) -> None:
    (code,) = re.findall(r"```python\n(.+?)```", README, re.DOTALL)
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=120).stdout
    url, address = shown.split()
    assert url.startswith("http://127.0.0.1:")
    assert f"| `pool_manager` | `{address}` |" in README


def test_every_module_is_in_the_readme() -> None:
    table = README.split("| module | holds |")[1]
    modules = {path.stem for path in DEVNET.glob("[!_]*.py")}
    assert set(re.findall(r"`(\w+)`", table)) == modules
