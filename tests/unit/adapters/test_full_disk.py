"""A full disk, on a real one: a small tmpfs in a mount namespace of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from errno import EDQUOT, EFBIG, EIO, ENOSPC
from pathlib import Path
from typing import Any

import pytest

from tests.paths import CHECKOUT
from zuno.adapters.atomic_file import build_write_error, detect_full_disk
from zuno.kernel.errors import DiskFull, Unavailable

STORES = (
    "journal entry",
    "journal bundle",
    "series",
    "samples",
    "alerts",
    "outbox",
    "day book",
    "mesh folder",
    "sim world",
    "node key",
    "wallet",
    "checkpoints",
    "any file",
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What every store said, in one run of one process."""
    alone, disk = ["unshare", "--map-root-user", "--mount"], str(tmp_path_factory.mktemp("disk"))
    mounted = [*alone, "mount", "-t", "tmpfs", "tmpfs", disk]
    if not shutil.which("unshare") or subprocess.run(mounted, check=False, capture_output=True).returncode:
        pytest.xfail("no full disk: this system gives no mount namespace")
    command = [*alone, sys.executable, "-m", "tests.wire.full_stores", disk]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, cwd=CHECKOUT)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.soak(every=6)
@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
def test_no_room_is_said_in_one_sentence_by(told: dict[str, Any], store: str) -> None:
    kind, said = told[store]
    assert kind == DiskFull.__name__, said
    assert str(DiskFull("x")).partition("x")[2] in said


@pytest.mark.slow
def test_it_is_exit_4_and_nothing_is_lost(told: dict[str, Any]) -> None:
    code, said = told["command line"]
    assert (code, str(DiskFull("x")).partition("x")[2] in said) == (4, True)
    assert told["journal verify"] == 0
    code, said = told["backup"]
    assert (code, "No room" in said, told["older backup"]) == (4, True, True)
    assert {told[f"home {act}"][0] for act in ("backup", "restore", "move", "compact")} == {"DiskFull"}
    assert {kind for act in ("backup", "restore", "move") for kind in told[f"home {act}"]} == {"DiskFull"}
    assert set(told["home compact"]) <= {"DiskFull", ""}


@pytest.mark.parametrize(("number", "full"), [(ENOSPC, True), (EDQUOT, True), (EFBIG, True), (EIO, False)])
def test_other_trouble_stays_what_it_is(number: int, full: bool) -> None:
    error = OSError(number, "as the system says")
    assert isinstance(build_write_error(Path("a"), error), DiskFull) is full
    with pytest.raises(DiskFull if full else OSError), detect_full_disk(Path("a")):
        raise error
    assert issubclass(DiskFull, Unavailable)
