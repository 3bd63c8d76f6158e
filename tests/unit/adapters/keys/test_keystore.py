"""Keystore documents: those of the format's own test vectors open, and nothing else is mistaken for one."""

from __future__ import annotations

import json
from hashlib import scrypt
from typing import Any

import pytest
from eth_hash.auto import keccak
from eth_keyfile.keyfile import encrypt_aes_ctr
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretBytes, SecretStr

from tests.examples import examples
from zuno.adapters.keys.keystore import MAX_BYTES, read_keystore, write_keystore

VECTOR_KEY = bytes.fromhex("7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d")
PBKDF2: dict[str, Any] = {
    "crypto": {
        "cipher": "aes-128-ctr",
        "cipherparams": {"iv": "6087dab2f9fdbbfaddc31a909735c1e6"},
        "ciphertext": "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
        "kdf": "pbkdf2",
        "kdfparams": {
            "c": 262144,
            "dklen": 32,
            "prf": "hmac-sha256",
            "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd",
        },
        "mac": "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2",
    },
    "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6",
    "version": 3,
}
SCRYPT: dict[str, Any] = {
    "crypto": {
        "cipher": "aes-128-ctr",
        "cipherparams": {"iv": "83dbcc02d8ccb40e466191a123791e0e"},
        "ciphertext": "d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c",
        "kdf": "scrypt",
        "kdfparams": {
            "dklen": 32,
            "n": 262144,
            "p": 8,
            "r": 1,
            "salt": "ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19",
        },
        "mac": "2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097",
    },
    "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6",
    "version": 3,
}
KEY = SecretBytes(b"\x46" * 32)
ADDRESS = "9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f"
PASSPHRASE = SecretStr("pässwörd 0x12")


def body(document: Any) -> bytes:
    return json.dumps(document).encode()


def own() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(write_keystore(KEY, PASSPHRASE, rounds=2))
    return document


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(document))
    *way, last = path.split(".")
    part = copy
    for name in way:
        part = part[name]
    part[last] = value
    return dict(copy)


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("document", [PBKDF2, SCRYPT], ids=["pbkdf2", "scrypt"])
def test_the_formats_own_vectors_open(document: dict[str, Any]) -> None:
    store = read_keystore(body(document))
    assert store.address is None
    opened = store.open(SecretStr("testpassword"))
    assert opened is not None
    assert opened.get_secret_value() == VECTOR_KEY


def test_what_was_written_opens_with_its_passphrase_alone() -> None:
    store = read_keystore(write_keystore(KEY, PASSPHRASE, rounds=2))
    assert store.address == f"0x{ADDRESS}"
    assert store.open(PASSPHRASE) == KEY
    assert store.open(SecretStr("pässwörd 0x1")) is None
    assert store.open(SecretStr("")) is None
    assert own()["crypto"]["kdfparams"]["n"] == 2
    assert own()["crypto"]["cipherparams"] != own()["crypto"]["cipherparams"], "each document has chance of its own"


def test_the_key_is_not_in_the_document() -> None:
    written = write_keystore(KEY, PASSPHRASE, rounds=2)
    assert KEY.get_secret_value().hex().encode() not in written
    assert PASSPHRASE.get_secret_value().encode() not in written


@pytest.mark.parametrize("name", ["Crypto", "CRYPTO"])
def test_old_wallets_write_crypto_in_capitals(name: str) -> None:
    document = own()
    document[name] = document.pop("crypto")
    assert read_keystore(body(document)).open(PASSPHRASE) == KEY


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("version", 1, "its version is 1, and only version 3 is read"),
        ("version", "1", "its version is 1"),
        ("version", 4, "its version is 4"),
        ("version", True, "its version is True"),
        ("version", None, "its version is None"),
        ("crypto", None, "its crypto is not"),
        ("crypto", "text", "its crypto is not"),
        ("address", "0x12", "its address is not"),
        ("crypto.kdf", "argon2", "its crypto is not"),
        ("crypto.cipher", "aes-256-cbc", "its crypto.cipher is not"),
        ("crypto.cipherparams", {}, "its crypto.cipherparams.iv is not"),
        ("crypto.ciphertext", "ab", "its crypto.ciphertext is not"),
        ("crypto.mac", "zz" * 32, "its crypto.mac is not"),
        ("crypto.kdfparams.n", 3, "not a power of two"),
        ("crypto.kdfparams.n", 0, "its crypto.kdfparams.n is not"),
        ("crypto.kdfparams.n", "2", "its crypto.kdfparams.n is not"),
        ("crypto.kdfparams.n", 2.0, "its crypto.kdfparams.n is not"),
        ("crypto.kdfparams.n", 1 << 30, "n·r is 8589934592, at most 4194304"),
        ("crypto.kdfparams.n", 1 << 20, "n·r is 8388608, at most 4194304"),
        ("crypto.kdfparams.r", 65, "its crypto.kdfparams.r is not"),
        ("crypto.kdfparams.p", 17, "its crypto.kdfparams.p is not"),
        ("crypto.kdfparams.dklen", 16, "its crypto.kdfparams.dklen is not"),
        ("crypto.kdfparams.salt", "xyz", "its crypto.kdfparams.salt is not"),
    ],
)
def test_a_document_that_is_no_keystore_says_why(path: str, value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_keystore(body(changed(own(), path, value)))


def test_too_many_rounds_of_the_other_function_are_not_run() -> None:
    with pytest.raises(ValueError, match=r"crypto.kdfparams.c "):
        read_keystore(body(changed(PBKDF2, "crypto.kdfparams.c", 10**9)))
    with pytest.raises(ValueError, match=r"crypto.kdfparams.prf "):
        read_keystore(body(changed(PBKDF2, "crypto.kdfparams.prf", "hmac-md5")))


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 1_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"{}", "its version is None"),
        (b" " * (MAX_BYTES + 1), f"at most {MAX_BYTES}"),
    ],
)
def test_bytes_that_are_no_document(raw: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_keystore(raw)


def test_an_address_that_is_not_the_keys_is_found_when_it_opens() -> None:
    store = read_keystore(body(changed(own(), "address", "ab" * 20)))
    with pytest.raises(ValueError, match=f"0x{'ab' * 20}.*another"):
        store.open(PASSPHRASE)
    assert store.open(SecretStr("wrong")) is None


def test_a_document_may_hold_what_is_no_key() -> None:
    """Sealed by the format's own steps around 32 zero bytes."""
    document = own()
    params, iv = document["crypto"]["kdfparams"], int(document["crypto"]["cipherparams"]["iv"], 16)
    derived = scrypt(
        PASSPHRASE.get_secret_value().encode(), salt=bytes.fromhex(params["salt"]), n=2, r=8, p=1, dklen=32
    )
    sealed = encrypt_aes_ctr(bytes(32), derived[:16], iv)
    document["crypto"] |= {"ciphertext": sealed.hex(), "mac": keccak(derived[16:32] + sealed).hex()}
    with pytest.raises(ValueError, match=r"\bkey\b"):
        read_keystore(body(document)).open(PASSPHRASE)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=examples(150), deadline=None)
def test_one_changed_byte_never_opens_as_another_key(data: st.DataObject) -> None:
    """It is refused by shape, by its seal, or it opens as the same key: case, blanks and names we do not use."""
    whole = bytearray(WRITTEN)
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] = data.draw(st.integers(32, 126).filter(lambda byte: byte != whole[at]))
    try:
        opened = read_keystore(bytes(whole)).open(PASSPHRASE)
    except ValueError:
        return
    assert opened in (None, KEY)


WRITTEN = write_keystore(KEY, PASSPHRASE, rounds=2)
