"""The exam every signer sits: bytes anybody can recompute, the same each time, and no way to the key."""

from __future__ import annotations

import copy
import hmac
import pickle
import traceback
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
import rlp
from eth_hash.auto import keccak
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretBytes, SecretStr

from tests.examples import examples
from zuno.adapters.chain.dev_signer import ROLE, DevSigner
from zuno.adapters.chain.world import DEVNET, SIM, WALLET
from zuno.adapters.keys.keystore import write_keystore
from zuno.adapters.keys.wallets import KeystoreSigner, WatchOnly
from zuno.adapters.signing import address_of, is_key, sign
from zuno.kernel.errors import Refused
from zuno.kernel.units import Address, Wei
from zuno.lp.model.gas import FeeBound
from zuno.lp.ports.spending import Call, Fees, Signer, Unsigned
from zuno_devnet.keys import dev_address, dev_key

SECRET = bytes.fromhex("4646464646464646464646464646464646464646464646464646464646464646")
KEY = SecretBytes(SECRET)
OWN = Address("0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f")
PASSPHRASE = "correct horse battery staple"
GOLDEN = "cf2a80966d8d67d11dbf96411d4fcb0b190e27dfecfe50841cbf9b08a5e068fc"
TX = Unsigned(
    SIM.id,
    9,
    Call(Address("0x" + "35" * 20), 10**18, bytes.fromhex("a9059cbb") + bytes(64)),
    150_000,
    Fees(Wei(20 * 10**9), Wei(10**9)),
    FeeBound(Wei(20 * 10**9), Wei(10**9), Wei(150_000 * 20 * 10**9)),
)

# secp256k1 from its equation, so that no library's mistake is in the answer.
P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
Point = tuple[int, int] | None
G: Point = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)


def add(a: Point, b: Point) -> Point:
    if a is None or b is None:
        return a or b
    if a[0] == b[0] and (a[1] + b[1]) % P == 0:
        return None
    slope = 3 * a[0] * a[0] * pow(2 * a[1], -1, P) if a == b else (b[1] - a[1]) * pow(b[0] - a[0], -1, P)
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def times(number: int, point: Point) -> Point:
    total: Point = None
    while number:
        if number & 1:
            total = add(total, point)
        point, number = add(point, point), number >> 1
    return total


def nonce_of(key: bytes, digest: bytes) -> int:
    """RFC 6979, section 3.2, with SHA-256; its first candidate always fits here."""
    message = (int.from_bytes(digest, "big") % N).to_bytes(32, "big")
    v, k = b"\x01" * 32, bytes(32)
    for round_ in (b"\x00", b"\x01"):
        k = hmac.digest(k, v + round_ + key + message, sha256)
        v = hmac.digest(k, v, sha256)
    return int.from_bytes(hmac.digest(k, v, sha256), "big")


def signed_by_hand(key: bytes, tx: Unsigned) -> bytes:
    fields = [
        *(tx.chain_id, tx.nonce, tx.fees.tip, tx.fees.max_fee, tx.gas),
        *(bytes.fromhex(tx.call.to[2:]), tx.call.value, tx.call.data, []),
    ]
    digest = keccak(b"\x02" + rlp.encode(fields))
    k = nonce_of(key, digest)
    point = times(k, G)
    assert point is not None
    r = point[0] % N
    s = pow(k, -1, N) * (int.from_bytes(digest, "big") + r * int.from_bytes(key, "big")) % N
    odd = point[1] & 1
    if s > N // 2:
        s, odd = N - s, 1 - odd
    return bytes(b"\x02" + rlp.encode([*fields, odd, r, s]))


def keystore(folder: Path, said: str = PASSPHRASE) -> KeystoreSigner:
    path = folder / f"{OWN}.json"
    if not path.exists():
        path.write_bytes(write_keystore(KEY, SecretStr(PASSPHRASE), rounds=2))
        path.chmod(0o600)
    return KeystoreSigner(path, lambda: SecretStr(said))


Made = tuple[Signer, bytes]


def dev(folder: Path) -> Made:
    return DevSigner(SIM.id), dev_key(ROLE).to_bytes()


def kept(folder: Path) -> Made:
    return keystore(folder), SECRET


HOLDERS = pytest.mark.parametrize("make", [dev, kept])


@HOLDERS
def test_the_bytes_are_those_computed_by_hand(make: Callable[[Path], Made], tmp_path: Path) -> None:
    signer, key = make(tmp_path)
    signed = signer.sign(TX)
    assert signed.raw == signed_by_hand(key, TX)
    assert signed.hash == "0x" + keccak(signed.raw).hex()
    assert signer.sign(TX) == signed
    assert not signer.watch_only


@HOLDERS
def test_the_address_is_the_keys(make: Callable[[Path], Made], tmp_path: Path) -> None:
    signer, key = make(tmp_path)
    point = times(int.from_bytes(key, "big"), G)
    assert point is not None
    public = point[0].to_bytes(32, "big") + point[1].to_bytes(32, "big")
    assert signer.address == "0x" + keccak(public)[-20:].hex() == address_of(SecretBytes(key))


@HOLDERS
@pytest.mark.parametrize(
    "bound",
    [
        None,
        FeeBound(Wei(TX.fees.max_fee - 1), TX.fees.tip, Wei(10**18)),
        FeeBound(TX.fees.max_fee, Wei(TX.fees.tip - 1), Wei(10**18)),
        FeeBound(TX.fees.max_fee, TX.fees.tip, Wei(TX.gas * TX.fees.max_fee - 1)),
    ],
    ids=["none", "a unit", "the tip", "the whole"],
)
def test_what_has_no_bound_or_is_above_it_is_not_signed(
    make: Callable[[Path], Made], bound: FeeBound | None, tmp_path: Path
) -> None:
    signer = make(tmp_path)[0]
    with pytest.raises(Refused, match="not signed") as caught:
        signer.sign(replace(TX, bound=bound))
    assert told_nothing(caught.value)


@given(
    st.integers(1, N - 1),
    st.builds(
        Unsigned,
        st.integers(1, 2**63),
        st.integers(0, 2**64 - 2),
        st.builds(
            Call,
            st.binary(min_size=20, max_size=20).map(lambda raw: Address("0x" + raw.hex())),
            st.integers(0, 2**256 - 1),
            st.binary(max_size=300),
        ),
        st.integers(21_000, 2**32),
        st.builds(Fees, st.integers(0, 2**64).map(Wei), st.integers(0, 2**64).map(Wei)),
        st.just(FeeBound(Wei(2**64), Wei(2**64), Wei(2**96))),
    ),
)
@settings(max_examples=examples(25), deadline=None)
def test_any_transaction_is_signed_as_by_hand(number: int, tx: Unsigned) -> None:
    key = number.to_bytes(32, "big")
    assert sign(SecretBytes(key), tx).raw == signed_by_hand(key, tx)


def test_a_known_transaction_has_known_bytes() -> None:
    """So that both hands cannot change together."""
    assert keccak(sign(KEY, TX).raw).hex() == GOLDEN


def test_what_is_no_transaction_is_refused(tmp_path: Path) -> None:
    for broken in (
        replace(TX, nonce=-1),
        replace(TX, gas=2**300),
        replace(TX, call=replace(TX.call, to=Address("0x1234"))),
        replace(TX, call=replace(TX.call, to=Address("nonsense"))),
        replace(TX, call=replace(TX.call, value=-1)),
    ):
        with pytest.raises(Refused, match="signed") as caught:
            keystore(tmp_path).sign(broken)
        assert told_nothing(caught.value)


def test_bytes_that_are_no_key() -> None:
    assert is_key(SECRET)
    assert is_key((N - 1).to_bytes(32, "big"))
    assert not any(map(is_key, (b"", bytes(32), SECRET[1:], SECRET + b"\x00", N.to_bytes(32, "big"))))


def test_a_watched_wallet_signs_nothing() -> None:
    signer: Signer = WatchOnly(OWN)
    assert signer.watch_only
    assert signer.address == OWN
    with pytest.raises(Refused, match=f"{OWN}.*watched"):
        signer.sign(TX)


def test_the_built_in_wallet_is_that_of_the_story_and_signs_for_its_chain_alone() -> None:
    builder = pytest.importorskip("zuno.adapters.chain.devnet.world_builder")
    assert builder.WALLET_ROLE == ROLE
    assert "0x" + dev_address(ROLE).hex() == WALLET == DevSigner(DEVNET.id).address
    with pytest.raises(Refused, match=r"31337.* 1\b"):
        DevSigner(DEVNET.id).sign(replace(TX, chain_id=1))


SPOKEN = (SECRET.hex(), str(int.from_bytes(SECRET, "big")), repr(SECRET), PASSPHRASE, "F" * 20)


def told_nothing(error: BaseException) -> bool:
    """Neither the error nor any frame it can be followed into holds a secret that a person could read."""
    whole = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert error.__context__ is None or error.__suppress_context__
    return not any(secret in text for secret in SPOKEN for text in (whole, str(error), repr(error), str(error.args)))


def test_a_signer_does_not_show_its_key(tmp_path: Path) -> None:
    signer = keystore(tmp_path)
    signer.sign(TX)
    for text in (repr(signer), str(signer), f"{vars(signer)}", repr([signer])):
        assert not any(secret in text for secret in SPOKEN), text
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="copied"):
            leak(signer)


def test_it_asks_once_and_only_when_it_has_to_sign(tmp_path: Path) -> None:
    path = Path(keystore(tmp_path)._path)
    asked: list[int] = []

    def passphrase() -> SecretStr:
        asked.append(1)
        return SecretStr(PASSPHRASE)

    signer = KeystoreSigner(path, passphrase)
    assert (signer.address, asked) == (OWN, [])
    signer.sign(TX)
    signer.sign(replace(TX, nonce=10))
    assert asked == [1]


def test_a_wrong_passphrase_is_refused_and_told_to_nobody(tmp_path: Path) -> None:
    keystore(tmp_path)
    with pytest.raises(Refused, match=f"passphrase.*{OWN}") as caught:
        keystore(tmp_path, said=PASSPHRASE + "F" * 20).sign(TX)
    assert told_nothing(caught.value)
