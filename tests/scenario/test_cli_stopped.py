"""Ctrl-C while a command waits: it says so, and a script still gets one document."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from pathlib import Path

from tests.wire.commands import shell
from tests.wire.forked import ZunoProcess


def test_ctrl_c_says_stopped_and_leaves_one_document(tmp_path: Path) -> None:
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
            asked.send_signal(signal.SIGINT)
            out, err = asked.communicate(timeout=60)
            taken.close()
    assert asked.returncode == 130
    assert "stopped" in err.lower()
    assert json.loads(out)["error"]["kind"] == "stopped"


def test_ctrl_c_in_a_study_leaves_what_is_known_by_then(tmp_path: Path) -> None:
    words = ["lab", "study", "--moments", "2", "--seeds", "1-2", "--json"]
    with ZunoProcess(
        words, env=shell(tmp_path, {}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as asked:
        assert asked.stderr is not None
        assert asked.stderr.readline() == "0 of 2 moments\n"
        asked.send_signal(signal.SIGINT)
        out, err = asked.communicate(timeout=60)
    assert asked.returncode == 130
    assert "stopped" in err.lower()
    told = json.loads(out)
    assert (told["stopped"], told["moments"], told["asked"], told["seeds"]) == (True, 0, 2, [1, 2])
