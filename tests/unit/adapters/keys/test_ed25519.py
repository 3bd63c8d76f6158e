"""The node's key: made once, readable by its owner alone, and never replaced in silence."""

from __future__ import annotations

import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.kernel.errors import Broken, Refused


def made(folder: Path) -> KeyFile:
    key = KeyFile(folder / "keys" / "node.key")
    key.ensure()
    return key


def test_a_key_is_made_for_its_owner_alone_and_stays_the_same(tmp_path: Path) -> None:
    key = made(tmp_path)
    path = tmp_path / "keys" / "node.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    key.ensure()
    assert KeyFile(path).public == key.public
    assert len(key.public) == 64
    assert sorted(one.name for one in path.parent.iterdir()) == ["node.key", "node.pub"]


def test_many_who_make_it_at_once_get_the_same_one(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        publics = set(threads.map(lambda _: made(tmp_path).public, range(16)))
    assert len(publics) == 1


class MadeMeanwhile(KeyFile):
    """Another process makes the key right after the second look for it."""

    looks = 0

    def exists(self) -> bool:
        found = super().exists()
        self.looks += 1
        if self.looks == 2:
            KeyFile(self._path).ensure()
        return found


def test_a_key_that_somebody_makes_between_two_looks_is_taken(tmp_path: Path) -> None:
    key = MadeMeanwhile(tmp_path / "node.key")
    key.ensure()
    assert key.looks == 2
    assert key.public == KeyFile(tmp_path / "node.key").public


def test_signatures_hold_for_their_message_and_key_alone(tmp_path: Path) -> None:
    key, other = made(tmp_path / "a"), made(tmp_path / "b")
    signature = key.sign(b"said")
    assert signature == key.sign(b"said")
    assert key.verify(key.public, b"said", signature)
    assert other.verify(key.public, b"said", signature)
    assert not key.verify(key.public, b"sad", signature)
    assert not key.verify(other.public, b"said", signature)
    assert not key.verify(key.public, b"said", bytes(64))
    assert not key.verify(key.public, b"said", b"")
    assert not key.verify("not a key", b"said", signature)
    assert not key.verify("ab", b"said", signature)


def test_a_missing_key_is_broken_and_is_not_made_by_looking(tmp_path: Path) -> None:
    key = KeyFile(tmp_path / "node.key")
    assert not key.exists()
    with pytest.raises(Broken, match="missing"):
        _ = key.public
    with pytest.raises(Broken, match="missing"):
        key.sign(b"said")
    assert not key.exists()


def test_the_public_half_is_enough_to_check_and_not_to_sign(tmp_path: Path) -> None:
    key = made(tmp_path)
    signature = key.sign(b"said")
    (tmp_path / "keys" / "node.key").unlink()
    checker = KeyFile(tmp_path / "keys" / "node.key")
    assert checker.public == key.public
    assert checker.verify(checker.public, b"said", signature)
    with pytest.raises(Broken, match="missing"):
        checker.sign(b"said")
    with pytest.raises(Broken, match="missing"):
        checker.ensure()  # another key would end the journal
    for nonsense in ("", "ab", "zz" * 32, "é" * 64):
        (tmp_path / "keys" / "node.pub").write_text(nonsense, encoding="utf-8")
        with pytest.raises(Broken, match=r"node\.pub"):
            _ = KeyFile(tmp_path / "keys" / "node.key").public


def test_a_key_from_before_gets_its_public_half(tmp_path: Path) -> None:
    key = made(tmp_path)
    (tmp_path / "keys" / "node.pub").unlink()
    again = KeyFile(tmp_path / "keys" / "node.key")
    again.ensure()
    assert (tmp_path / "keys" / "node.pub").read_text().strip() == again.public == key.public


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_a_file_that_is_no_key_is_broken(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "node.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(Broken, match=rf"{re.escape(str(path))} .*\bkey\b"):
        _ = KeyFile(path).public


def test_a_key_in_another_s_place_is_broken(tmp_path: Path) -> None:
    """Whoever swaps it would sign as somebody else from then on."""
    ours, theirs = KeyFile(tmp_path / "node.key"), KeyFile(tmp_path / "theirs" / "node.key")
    ours.ensure()
    theirs.ensure()
    (tmp_path / "node.key").write_bytes((tmp_path / "theirs" / "node.key").read_bytes())
    for use in (lambda key: key.public, lambda key: key.sign(b"entry"), lambda key: key.secret()):
        with pytest.raises(Broken):
            use(KeyFile(tmp_path / "node.key"))


def test_a_key_of_another_kind_is_broken(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    path = tmp_path / "node.key"
    path.write_bytes(X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    with pytest.raises(Broken, match="ed25519"):
        _ = KeyFile(path).public


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    made(tmp_path)
    path = tmp_path / "keys" / "node.key"
    path.chmod(mode)
    with pytest.raises(Refused, match="chmod 600"):
        _ = KeyFile(path).public
