"""The journal's bytes, fixed for good: a change here orphans every journal ever written."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.memory.chain import first_head, forged
from zuno.messages.record import FIRST_PREV, EntryRecord, RecordAuthor

PUBLIC = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"


@pytest.fixture
def key(tmp_path: Path) -> KeyFile:
    path = tmp_path / "node.key"
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    path.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    return KeyFile(path)


def test_an_entry(key: KeyFile) -> None:
    record = EntryRecord(
        seq=1,
        at=1_700_000_000_000,
        request_id="req_00000000000000aa",
        kind="critique",
        author=RecordAuthor(role="critic", key=key.public),
        code="0.1.0",
        node=key.public,
        payload={"amount": 10**25, "share": 0.25, "word": "hold"},
        bundle=None,
        prev=FIRST_PREV,
    )
    link = forged(record, key)
    assert key.public == PUBLIC
    assert link.row.body.decode() == (
        f'{{"at":1700000000000,"author":{{"key":"{PUBLIC}","role":"critic"}},"bundle":null,"code":"0.1.0","format":1,'
        f'"kind":"critique","node":"{PUBLIC}","payload":{{"amount":10000000000000000000000000,"share":0.25,'
        f'"word":"hold"}},"prev":"{FIRST_PREV}","requestId":"req_00000000000000aa","seq":1}}'
    )
    assert link.row.hash == "df8a819cbcf80a3aa1aeb4faea3a353f07ad300fa9331f3e92860df6a78d1190"
    assert link.row.signature == (
        "a2cbd184f60c767f63565e82fcc9e64e2f20b26434f238f78967edfaf8bd4c31"
        "5b85f7bfab00850b0f6ae7cad183da648e928c02cb78aa1ca241ba66a992c404"
    )
    signed = b"zuno journal entry 1\n" + link.row.hash.encode()  # its purpose is part of what is signed
    assert key.verify(PUBLIC, signed, bytes.fromhex(link.row.signature))


def test_a_head(key: KeyFile) -> None:
    said = f'{{"format":1,"hash":"{FIRST_PREV}","node":"{PUBLIC}","seq":0}}'
    signature = key.sign(b"zuno journal head 1\n" + said.encode()).hex()
    assert first_head(key).decode() == f'{{"head":{said},"signature":"{signature}"}}\n'
