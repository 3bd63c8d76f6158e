"""The version and the install commands, by how Zuno was installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from zuno.kernel import installation
from zuno.kernel.errors import Unavailable
from zuno.kernel.installation import name_install, read_version


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The metadata of an installed 2.3.4, found before that of the checkout."""
    metadata = tmp_path / "zuno_desk-2.3.4.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.4\nName: zuno-desk\nVersion: 2.3.4\n")
    monkeypatch.syspath_prepend(tmp_path)
    installation._find_distribution.cache_clear()

    yield metadata

    installation._find_distribution.cache_clear()


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({"url": "file:///home/me/zuno", "dir_info": {"editable": True}}, "`make web`"),
        ({"url": "file:///home/me/zuno", "dir_info": {}}, "`pip install '.[web]'`"),
        (
            {"url": "file:///home/me/zuno_desk-2.3.4-py3-none-any.whl", "archive_info": {}},
            "`pip install './zuno_desk-2.3.4-py3-none-any.whl[web]'`",
        ),
        (None, "`pip install './zuno_desk-2.3.4-py3-none-any.whl[web]'`"),
    ],
)
def test_an_extra_is_added_to_what_is_really_installed(
    installed: Path, origin: dict[str, object] | None, command: str
) -> None:
    if origin is not None:
        (installed / "direct_url.json").write_text(json.dumps(origin))
    assert command in name_install("web")


def test_a_stranger_of_our_import_name_gives_no_version(installed: Path) -> None:
    stranger = installed.parent / "zuno-0.0.1a1.dist-info"
    stranger.mkdir()
    (stranger / "METADATA").write_text("Metadata-Version: 2.4\nName: zuno\nVersion: 0.0.1a1\n")
    assert read_version() == "2.3.4"


def test_files_without_their_distribution_say_so(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(Unavailable):
        read_version()
