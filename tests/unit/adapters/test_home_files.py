"""The inventory of a home: every file that a part of Zuno writes has a kind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.paths import CHECKOUT
from zuno.adapters.file_lock import desk_lock, monitor_lock
from zuno.adapters.home_files import FileKind, classify_file, find_running, list_home

_PLACE = re.compile(r'\bhome((?: / f?"[^"]+")+)')
_PART = re.compile(r'f?"([^"]+)"')
_FILLED = re.compile(r"\{[^}]*\}")


def find_home_paths() -> set[str]:
    """Each `home / "name"` of the source; what is filled in later is an X."""
    texts = (path.read_text(encoding="utf-8") for path in (CHECKOUT / "src" / "zuno").rglob("*.py"))
    places = (place for text in texts for place in _PLACE.findall(text))
    return {_FILLED.sub("X", "/".join(_PART.findall(place))) for place in places}


def test_every_place_that_the_source_names_is_in_the_inventory() -> None:
    names = find_home_paths()
    assert {"cycles.db", "alerts.json", "keys/node.key", "leases/X.lock", "turn-X.lock", "history", "mesh"} <= names
    unknown = {name for name in names if {kind(name), kind(f"{name}/own/x")} == {FileKind.OTHER}}
    assert {name for name in unknown if not name.startswith(("X.", "journal.X"))} == set()


def kind(name: str) -> FileKind:
    return classify_file(name)[0]


@pytest.mark.parametrize(
    ("name", "expected", "saved"),
    [
        ("journal.db", FileKind.RECORD, True),
        ("journal.db-wal", FileKind.RECORD, False),
        ("journal.head", FileKind.RECORD, True),
        ("journal.lock", FileKind.LOCK, True),
        ("kill.lock", FileKind.MONEY, True),
        ("kills/live.01.ab", FileKind.MONEY, True),
        ("leases/kill.lock", FileKind.LOCK, False),
        ("keys/node.key", FileKind.KEY, False),
        ("keys/node.pub", FileKind.KEY, True),
        ("mesh/critic/peer.key", FileKind.KEY, False),
        ("mesh/critic/axl.key", FileKind.KEY, False),
        ("mesh/critic/journal.db", FileKind.RECORD, True),
        ("mesh/pongs/critic-1", FileKind.CACHE, False),
        ("wallets/0x" + "ab" * 20 + ".json", FileKind.KEY, True),
        ("web-logins.json", FileKind.LOGIN, False),
        ("restored.lock", FileKind.MONEY, True),
        ("market/own/series.db", FileKind.RECORD, True),
        ("market/own/history/a.parquet", FileKind.RECORD, True),
        ("market/own/collect.lock", FileKind.LOCK, False),
        ("market/synthetic/series.db", FileKind.CACHE, False),
        ("archive/2026-01.bundles", FileKind.RECORD, True),
        ("zuno.toml", FileKind.RECORD, True),
        ("logs/zuno.log", FileKind.LOG, False),
        ("passphrase", FileKind.OTHER, False),
    ],
)
def test_kinds(name: str, expected: FileKind, saved: bool) -> None:
    assert classify_file(name) == (expected, saved)


def test_what_runs_is_found_by_its_lock(tmp_path: Path) -> None:
    desk, monitor = desk_lock(tmp_path, "paper"), monitor_lock(tmp_path)
    (tmp_path / "kill.lock").write_text("live by hand\n")
    with desk, monitor:
        assert find_running(tmp_path) == ["leases/desk-paper.lock", "monitor.lock"]
    assert find_running(tmp_path) == []


def test_a_link_is_neither_followed_nor_listed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text("x")
    home = tmp_path / "home"
    home.mkdir()
    (home / "journal.db").symlink_to(tmp_path / "elsewhere" / "secret")
    (home / "lab").symlink_to(tmp_path / "elsewhere")
    assert list_home(home) == []
