"""An owner's code in its own process: what the kernel keeps from it, and every way in which it can misbehave."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from zuno.adapters.strategies import python_file
from zuno.adapters.strategies.python_file import LAYERS, Confinement, PythonStrategy
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.trading.strategies.own_targets import check_targets, encode_view
from zuno.trading.strategies.port import StrategyView, build_history

VIEW = encode_view(StrategyView(0, {"BTCUSDT": build_history("BTCUSDT", [(0, 100.0), (86_400_000, 110.0)])}))
SIDES = {"BTCUSDT": True}
CONFINED = Confinement(6.0)


async def ask(tmp_path: Path, body: str, confinement: Confinement = CONFINED, head: str = "") -> Mapping[str, object]:
    """A strategy with this function body."""
    code = f"{head}\ndef targets(view):\n" + "\n".join(f"    {line}" for line in body.splitlines())
    return await ask_code(tmp_path, code, confinement)


async def ask_code(tmp_path: Path, code: str, confinement: Confinement = CONFINED) -> Mapping[str, object]:
    path = tmp_path / "mine.py"
    path.write_text(code)
    strategy = PythonStrategy(path, sha256(code.encode()).hexdigest(), confinement)
    return check_targets(await strategy.ask(Millis(0), VIEW), SIDES)


async def test_it_sees_the_view_and_answers(tmp_path: Path) -> None:
    body = "closes = view.markets['BTCUSDT'].closes\nreturn {'BTCUSDT': (closes[-1] - closes[0]) / 100 + view.at}"
    assert await ask(tmp_path, body) == {"BTCUSDT": 0.1}


@pytest.mark.parametrize(
    ("layers", "open_ways"),
    [
        (LAYERS, ""),
        (("seccomp",), ""),
        (("landlock", "seccomp"), ""),
        (("namespaces", "seccomp"), ""),
        (("namespaces",), "other processes"),
        (("landlock",), "the network"),
        ((), "files"),
    ],
)
async def test_what_holds_is_tried(layers: tuple[str, ...], open_ways: str) -> None:
    """Each layer alone and together, on this kernel; a kernel that lacks one says so here."""
    confinement = Confinement(5.0, layers)
    gap = await confinement.find_gap()
    if confinement._lacking:
        assert not gap or confinement._lacking in gap
    else:
        assert open_ways in gap
        assert bool(gap) is bool(open_ways)


async def test_a_layer_that_is_lost_later_is_noticed_before_the_code_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    confinement = Confinement(6.0, ("seccomp",))
    assert await ask(tmp_path, "return {}", confinement) == {}
    confinement.layers = ("seccomp", "a wall that this kernel lacks")
    assert await ask(tmp_path, "return {}", confinement) == {}
    assert "a wall that this kernel lacks" in caplog.text
    confinement.layers = ()
    with pytest.raises(Refused, match="files"):
        await ask(tmp_path, "return {}", confinement)


async def test_where_nothing_confines_no_code_is_run(tmp_path: Path) -> None:
    for confinement in (Confinement(2.0, ()), Confinement(2.0, platform="darwin")):
        with pytest.raises(Refused):
            await ask(tmp_path, "return {}", confinement)


@pytest.mark.parametrize(
    ("body", "head", "fault", "words"),
    [
        ("while True: pass", "", Unavailable, "longer than 6 s"),
        ("import time\ntime.sleep(60)", "", Unavailable, "longer than 6 s"),
        ("return {'BTCUSDT': len(bytearray(1 << 40))}", "", Malformed, "MemoryError"),
        ("kept = []\nwhile True: kept.append(bytearray(1 << 24))", "", Malformed, "MemoryError"),
        ("print('x' * 10_000_000)\nreturn {}", "", Malformed, "more than 256 KB"),
        ("while True: print('x' * 1000)", "", Malformed, "more than 256 KB"),
        ("os.fork()\nreturn {}", "import os", Malformed, "PermissionError"),
        ("os.kill(os.getpid(), 9)", "import os", Malformed, "PermissionError"),
        ("os.execv('/bin/sh', ['sh'])", "import os", Malformed, "PermissionError"),
        ("os.unlink(__file__)", "import os", Malformed, "NameError"),
        ("_socket.socket(2, 1)", "import _socket", Malformed, "PermissionError"),
        ("import socket", "", Malformed, "ModuleNotFoundError"),
        ("import zuno", "", Malformed, "ModuleNotFoundError"),
        ("ctypes.string_at(0)", "import ctypes", Malformed, "without an answer"),
        ("os._exit(0)", "import os", Malformed, "without an answer"),
        ("raise SystemExit(0)", "", Malformed, "SystemExit"),
        ("raise KeyboardInterrupt", "", Malformed, "KeyboardInterrupt"),
        ("return targets(view)", "", Malformed, "RecursionError"),
        ("return [1]", "", Malformed, "returned list"),
        ("return {'BTCUSDT': 'much'}", "", Malformed, "not a number"),
        ("return {'BTCUSDT': float('nan')}", "", Malformed, "not a number"),
        ("return {'BTCUSDT': 1e9}", "", Malformed, "beyond 1"),
        ("return {'BTCUSDT': 10 ** 400}", "", Malformed, "beyond 1"),
        ("return {'DOGEUSDT': 0.1}", "", Malformed, "DOGEUSDT is no market"),
        ("os.write(1, b'no json\\n')\nos._exit(0)", "import os", Malformed, "without an answer"),
    ],
)
async def test_a_fault_ends_with_its_reason(
    tmp_path: Path, body: str, head: str, fault: type[Exception], words: str
) -> None:
    with pytest.raises(fault, match=words):
        await ask(tmp_path, body, head=head)


async def test_code_that_cannot_be_read(tmp_path: Path) -> None:
    for code in ("def targets(view:", "weights = {}", ""):
        with pytest.raises(Malformed, match=r"SyntaxError|KeyError"):
            await ask_code(tmp_path, code)


async def test_no_file_is_read_and_nothing_is_written(tmp_path: Path) -> None:
    secret = tmp_path / "node.key"
    secret.write_text("a key")
    for attempt in (f"open({str(secret)!r})", "os.listdir('/')", f"os.unlink({str(tmp_path / 'mine.py')!r})"):
        with pytest.raises(Malformed, match=r"PermissionError|FileNotFoundError"):
            await ask(tmp_path, attempt, head="import os")
    assert secret.exists()
    assert (tmp_path / "mine.py").exists()


async def test_its_environment_holds_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZUNO_BINANCE_API_KEY", "a key")
    with pytest.raises(Malformed, match=r"TypeError: \[\]"):
        await ask(tmp_path, "raise TypeError([name for name in os.environ if name != 'LC_CTYPE'])", head="import os")


async def test_a_listening_socket_is_never_reached(tmp_path: Path) -> None:
    """By one layer alone as by all."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        place = server.getsockname()
        code = f"import _socket\ndef targets(view):\n    _socket.socket(2, 1).connect({place!r})\n    return {{}}"
        answer = await Confinement(5.0, ("seccomp",)).run(code, b"{}")
        assert "Error" in answer["error"]
        with pytest.raises(TimeoutError):
            server.accept()


async def test_a_changed_or_missing_file_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def targets(view): return {}")
    with pytest.raises(Refused, match="changed"):
        await PythonStrategy(path, "0" * 64, CONFINED).ask(Millis(0), VIEW)
    path.unlink()
    with pytest.raises(Refused, match="no file"):
        await PythonStrategy(path, "0" * 64, CONFINED).ask(Millis(0), VIEW)


async def test_no_process_is_left_behind(tmp_path: Path) -> None:
    def children() -> set[str]:
        return {pid for pid in os.listdir("/proc") if pid.isdigit() and is_child(pid)}

    def is_child(pid: str) -> bool:
        try:
            return python_file.CHILD.name in Path("/proc", pid, "cmdline").read_text()
        except OSError:
            return False

    before = children()
    with pytest.raises(Unavailable):
        await ask(tmp_path, "while True: pass", Confinement(0.5))
    assert children() - before == set()


def test_the_child_imports_nothing_of_zuno() -> None:
    assert "zuno" not in python_file.CHILD.read_text().replace("Zuno", "").lower()


def test_a_view_is_json_with_what_the_page_names() -> None:
    market = json.loads(VIEW)["markets"]["BTCUSDT"]
    assert sorted(market) == ["closes", "days", "funding", "name", "spot"]
