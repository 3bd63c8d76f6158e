"""Ctrl-C or SIGTERM while a command waits: it says so, and a script still gets one document."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wire.account_home import write_account_home
from tests.wire.commands import shell
from tests.wire.forked import ZunoProcess

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@SIGNALS
def test_a_stopped_command_says_so_and_leaves_one_document(tmp_path: Path, number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        words = ["lp", "pools", "--chain", "base", "--json"]
        with ZunoProcess(
            words,
            env=shell(tmp_path, {"ZUNO_BASE_RPC_URL": url}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as asked:
            taken, _ = silent.accept()  # it has asked, and nobody answers
            asked.send_signal(number)
            out, err = asked.communicate(timeout=60)
            taken.close()
    assert asked.returncode == 128 + number
    assert "stopped" in err.lower()
    assert json.loads(out)["error"]["kind"] == "stopped"


@pytest.mark.soak
@SIGNALS
def test_a_stopped_study_leaves_what_is_known_by_then(tmp_path: Path, number: signal.Signals) -> None:
    words = ["lab", "study", "--moments", "2", "--seeds", "1-2", "--json"]
    with ZunoProcess(
        words, env=shell(tmp_path, {}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as asked:
        assert asked.stderr is not None
        assert asked.stderr.readline() == "0 of 2 moments\n"
        asked.send_signal(number)
        out, err = asked.communicate(timeout=60)
    assert asked.returncode == 128 + number
    assert "stopped" in err.lower()
    told = json.loads(out)
    assert (told["stopped"], told["moments"], told["asked"], told["seeds"]) == (True, 0, 2, [1, 2])


@pytest.mark.soak(every=2)
@SIGNALS
def test_a_stopped_run_through_recorded_time_leaves_its_document(tmp_path: Path, number: signal.Signals) -> None:
    asyncio.run(write_account_home(tmp_path))
    words = ["trade", "start", "--speed", "max", "--from", "40h", "--account", "past"]
    with ZunoProcess(
        words, env=shell(tmp_path, {"ZUNO_RECORDING": "own"}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as desk:
        assert desk.stdout is not None
        assert any("cycle" in desk.stdout.readline() for _ in range(3))
        desk.send_signal(number)
        out, err = desk.communicate(timeout=60)
    assert desk.returncode == 128 + number
    assert "invariants" in out
    assert "stopped" in err.lower()


def test_sigterm_ends_a_command_that_hears_no_ctrl_c(tmp_path: Path) -> None:
    """As a script starts it in the background: with SIGINT ignored."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        run = [sys.executable, "-m", "zuno", "lp", "pools", "--chain", "base", "--json"]
        with subprocess.Popen(
            ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *run],
            env=shell(tmp_path, {"ZUNO_BASE_RPC_URL": url}),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as asked:
            taken, _ = silent.accept()
            asked.send_signal(signal.SIGTERM)
            out, _ = asked.communicate(timeout=60)
            taken.close()
    assert (asked.returncode, json.loads(out)["error"]["kind"]) == (143, "stopped")


def test_sigterm_ends_the_shell_and_the_assistants_server(tmp_path: Path) -> None:
    for words in ([], ["mcp"]):
        with ZunoProcess(
            words,
            env=shell(tmp_path, {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            if words:
                process.stdin.write(json.dumps(INITIALIZE) + "\n")
            else:
                process.stdin.write("version\n")
            process.stdin.flush()
            assert process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 143


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
