"""The folder of wallets: written once, for their owner alone, and never one over another."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import SecretBytes, SecretStr

from zuno.adapters.keys.keystore import write_keystore
from zuno.adapters.keys.passphrases import Passphrases
from zuno.adapters.keys.wallets import KeystoreSigner, WalletFolder, WatchOnly
from zuno.kernel.errors import Broken, Refused, Unavailable, UsageError
from zuno.kernel.units import Address, Wei
from zuno.lp.model.gas import FeeBound
from zuno.lp.ports.spending import Call, Fees, Unsigned

KEY = "46" * 32
OWN = Address("0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f")
OTHER = Address("0x" + "ab" * 20)
WORD = "correct horse"
TX = Unsigned(1, 0, Call(OTHER, 1, b""), 21_000, Fees(Wei(2), Wei(1)), FeeBound(Wei(2), Wei(1), Wei(42_000)))


def folder(home: Path, *answers: str) -> WalletFolder:
    left = list(answers)

    def ask(prompt: str) -> SecretStr | None:
        return SecretStr(left.pop(0)) if left else None

    return WalletFolder(home / "wallets", Passphrases(None, ask), rounds=2)


def kept(home: Path) -> Path:
    return Path(folder(home, KEY, WORD, WORD).add_key().place)


def foreign(home: Path, key: str = KEY, mode: int = 0o600, **changed: object) -> str:
    document = json.loads(write_keystore(SecretBytes(bytes.fromhex(key)), SecretStr("its old word"), rounds=2))
    file = home / "UTC--keystore"
    file.write_text(json.dumps(document | changed))
    file.chmod(mode)
    return str(file)


def modes(path: Path) -> tuple[int, int]:
    return stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)


def test_no_folder_is_no_wallets(tmp_path: Path) -> None:
    assert folder(tmp_path).all() == ()
    assert list(tmp_path.iterdir()) == []


def test_a_new_wallet_signs_with_its_passphrase(tmp_path: Path) -> None:
    made = folder(tmp_path, WORD, WORD).create()
    path = tmp_path / "wallets" / f"{made.address}.json"
    assert (made.place, made.watch_only, made.notes) == (str(path), False, ())
    assert modes(path) == (0o600, 0o700)
    assert json.loads(path.read_text())["version"] == 3
    assert folder(tmp_path).all() == (made,)
    signer = folder(tmp_path, WORD).signer(made.address)
    assert signer.address == made.address
    assert signer.sign(TX).raw
    assert folder(tmp_path, WORD, WORD).create().address != made.address


def test_a_key_that_is_typed(tmp_path: Path) -> None:
    for typed in (KEY, f"0x{KEY}", f"  0x{KEY.upper()}\n"):
        home = tmp_path / str(len(typed))
        assert folder(home, typed, WORD, WORD).add_key().address == OWN


@pytest.mark.parametrize(
    "typed",
    ["", "00" * 32, "ff" * 32, "46" * 31, "46" * 33, "0x" + "4" * 63, "zz" * 32, "4６" * 32, "0x0x" + "46" * 32],
)
def test_what_is_no_key_is_told_without_repeating_it(tmp_path: Path, typed: str) -> None:
    with pytest.raises(UsageError, match="private") as caught:
        folder(tmp_path, typed, WORD, WORD).add_key()
    assert not typed or typed not in str(caught.value)
    assert not (tmp_path / "wallets").exists()


def test_the_same_wallet_twice_is_refused_and_the_first_stays(tmp_path: Path) -> None:
    path = kept(tmp_path)
    before = path.read_bytes()
    for again in (
        lambda: folder(tmp_path, KEY, "another word", "another word").add_key(),
        lambda: folder(tmp_path, "its old word", WORD, WORD).add_keystore(foreign(tmp_path)),
        lambda: folder(tmp_path, "its old word", WORD, WORD).add_keystore(foreign(tmp_path, address=None)),
        lambda: folder(tmp_path).watch(OWN),
    ):
        with pytest.raises(Refused, match=f"{OWN}.*kept"):
            again()
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_nobody_types_a_new_passphrase_for_what_is_kept_already(tmp_path: Path) -> None:
    kept(tmp_path)
    for add in (
        lambda: folder(tmp_path, KEY).add_key(),
        lambda: folder(tmp_path).add_keystore(foreign(tmp_path)),
        lambda: folder(tmp_path, "its old word").add_keystore(foreign(tmp_path, address=None)),
    ):
        with pytest.raises(Refused, match="kept"):
            add()


def test_somebody_else_keeps_it_while_the_passphrase_is_typed(tmp_path: Path) -> None:
    answers = [KEY, WORD, WORD]

    def ask(prompt: str) -> SecretStr:
        if prompt.startswith("The same"):
            kept(tmp_path)
        return SecretStr(answers.pop(0))

    slow = WalletFolder(tmp_path / "wallets", Passphrases(None, ask), rounds=2)
    with pytest.raises(Refused, match="kept"):
        slow.add_key()


def test_many_who_add_it_at_once_write_one(tmp_path: Path) -> None:
    def add(number: int) -> bool:
        word = f"correct horse {number}"
        try:
            return bool(folder(tmp_path, KEY, word, word).add_key())
        except Refused:
            return False

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(add, range(16))) == 1
    assert len(list((tmp_path / "wallets").iterdir())) == 1


def test_a_keystore_of_another_wallet_is_kept_under_the_new_passphrase(tmp_path: Path) -> None:
    file = foreign(tmp_path)
    before = Path(file).read_bytes()
    made = folder(tmp_path, "its old word", WORD, WORD).add_keystore(file)
    assert (made.address, made.notes) == (OWN, ())
    assert Path(file).read_bytes() == before
    assert folder(tmp_path, WORD).signer(OWN).sign(TX)
    with pytest.raises(Refused, match="not the passphrase"):
        folder(tmp_path, "its old word").signer(OWN).sign(TX)


def test_a_file_that_others_can_read_is_told(tmp_path: Path) -> None:
    made = folder(tmp_path, "its old word", WORD, WORD).add_keystore(foreign(tmp_path, mode=0o644))
    (note,) = made.notes
    assert "read" in note
    assert modes(Path(made.place))[0] == 0o600


@pytest.mark.parametrize(
    ("changed", "answer", "why"),
    [
        ({}, "nobody said so", "not the passphrase of"),
        ({"version": 1}, "its old word", "version is 1, and only version 3"),
        ({"address": "ab" * 20}, "its old word", "holds the key of another address"),
        ({"crypto": {}}, "its old word", "its crypto is not"),
    ],
)
def test_a_keystore_that_is_not_taken(tmp_path: Path, changed: dict[str, object], answer: str, why: str) -> None:
    with pytest.raises(Refused, match=why) as caught:
        folder(tmp_path, answer, WORD, WORD).add_keystore(foreign(tmp_path, **changed))  # type: ignore[arg-type]
    assert answer not in str(caught.value)
    assert not (tmp_path / "wallets").exists()


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="file"):
        folder(tmp_path).add_keystore(str(tmp_path / "none"))
    with pytest.raises(Unavailable, match="read"):
        folder(tmp_path).add_keystore(str(tmp_path))
    (tmp_path / "text").write_text("not a keystore")
    with pytest.raises(Refused, match="JSON"):
        folder(tmp_path).add_keystore(str(tmp_path / "text"))


def test_a_watched_address_signs_nothing_until_its_key_comes(tmp_path: Path) -> None:
    made = folder(tmp_path).watch(OWN)
    assert made.watch_only
    assert modes(Path(made.place)) == (0o600, 0o700)
    assert json.loads(Path(made.place).read_text()) == {"version": 1, "watch": OWN}
    assert folder(tmp_path).all() == (made,)
    assert isinstance(folder(tmp_path).signer(OWN), WatchOnly)
    with pytest.raises(Refused, match=f"{OWN}.*watched"):
        folder(tmp_path).watch(OWN)
    kept(tmp_path)
    (now,) = folder(tmp_path).all()
    assert not now.watch_only
    assert isinstance(folder(tmp_path).signer(OWN), KeystoreSigner)


def test_only_wallets_are_listed_and_by_address(tmp_path: Path) -> None:
    kept(tmp_path)
    folder(tmp_path).watch(OTHER)
    first = Address("0x" + "01" * 20)
    folder(tmp_path).watch(first)
    for stray in (f".{OWN}.json.x1", "notes.txt", "0x12.json", f"{OWN.upper()}.json", f"{OWN}.json.bak"):
        (tmp_path / "wallets" / stray).write_text("{}")
    assert [one.address for one in folder(tmp_path).all()] == [first, OWN, OTHER]


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "wallets").write_text("a file in its place")
    with pytest.raises(Unavailable, match="read"):
        folder(tmp_path).all()
    with pytest.raises(Unavailable, match="written"):
        folder(tmp_path).watch(OTHER)


def test_a_symlink_is_no_wallet(tmp_path: Path) -> None:
    path = kept(tmp_path)
    elsewhere = tmp_path / "elsewhere.json"
    signer = folder(tmp_path, WORD).signer(OWN)  # that found a file
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    (path.parent / f"{OTHER}.watch.json").symlink_to(elsewhere)
    with pytest.raises(Refused):
        signer.sign(TX)
    assert folder(tmp_path).all() == ()
    assert folder(tmp_path, WORD).signer(OWN).watch_only
    with pytest.raises(Refused):
        folder(tmp_path).watch(OTHER)
    assert elsewhere.read_bytes()
    imported = folder(tmp_path / "other", WORD, WORD, WORD).add_keystore(str(path))  # a file that its owner names
    assert imported.address == OWN


def test_a_pipe_or_a_folder_in_its_place_is_no_wallet(tmp_path: Path) -> None:
    (tmp_path / "wallets").mkdir()
    os.mkfifo(tmp_path / "wallets" / f"{OWN}.json")
    (tmp_path / "wallets" / f"{OTHER}.json").mkdir()
    assert folder(tmp_path).all() == ()
    assert [folder(tmp_path, WORD).signer(address).watch_only for address in (OWN, OTHER)] == [True, True]


def test_a_harmed_wallet_is_broken_and_one_that_others_read_is_refused(tmp_path: Path) -> None:
    path = kept(tmp_path)
    whole = path.read_text()
    path.chmod(0o640)
    with pytest.raises(Refused, match="chmod 600"):
        folder(tmp_path, WORD).signer(OWN).sign(TX)
    path.chmod(0o600)
    for harmed in (whole[:-10], whole.replace('"version": 3', '"version": 1'), "{}"):
        path.write_text(harmed)
        with pytest.raises(Broken, match=f"{path.name}.*damaged"):
            folder(tmp_path, WORD).signer(OWN).sign(TX)
    signer = folder(tmp_path, WORD).signer(OWN)
    path.unlink()
    with pytest.raises(Broken, match=f"{path.name}.*missing"):
        signer.sign(TX)


def test_a_wallet_under_another_ones_name_is_not_used(tmp_path: Path) -> None:
    path = kept(tmp_path)
    swapped = path.with_name(f"{OTHER}.json")
    path.rename(swapped)
    with pytest.raises(Broken, match=f" {OWN}"):
        folder(tmp_path, WORD).signer(OTHER).sign(TX)
    document = json.loads(swapped.read_text())
    del document["address"]
    swapped.write_text(json.dumps(document))
    with pytest.raises(Broken, match="the key of another address"):
        folder(tmp_path, WORD).signer(OTHER).sign(TX)
