"""The keystore document (Web3 Secret Storage, version 3): a key under a passphrase, as every wallet can read it."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretBytes, SecretStr, ValidationError

from zuno.adapters.eth_imports import import_eth_account
from zuno.adapters.signing import address_of, is_key
from zuno.kernel.foreign_json import parse
from zuno.kernel.units import Address

MAX_BYTES = 64 * 1024
VERSION = 3
_MOST_SCRYPT = 1 << 22
"""n·r: four times what wallets write, half a gigabyte; beyond, a file could fill the memory of whoever opens it."""
_MOST_ROUNDS = 10_000_000

_Hex = Annotated[str, Field(pattern=r"^(0x)?([0-9a-fA-F]{2})*$", max_length=256)]
_Hash = Annotated[str, Field(pattern=r"^(0x)?[0-9a-fA-F]{64}$")]


class _Part(BaseModel):
    """Unknown fields are ignored."""

    model_config = ConfigDict(defer_build=True, frozen=True, strict=True, extra="ignore")


class _Scrypt(_Part):
    n: int = Field(ge=2)
    r: int = Field(ge=1, le=64)
    p: int = Field(ge=1, le=16)
    dklen: int = Field(ge=32, le=64)
    salt: _Hex


class _Pbkdf2(_Part):
    c: int = Field(ge=1, le=_MOST_ROUNDS)
    dklen: int = Field(ge=32, le=64)
    prf: Literal["hmac-sha256"]
    salt: _Hex


class _Iv(_Part):
    iv: Annotated[str, Field(pattern=r"^(0x)?[0-9a-fA-F]{32}$")]


class _Cipher(_Part):
    cipher: Literal["aes-128-ctr"]
    cipherparams: _Iv
    ciphertext: _Hash
    mac: _Hash


class _ByScrypt(_Cipher):
    kdf: Literal["scrypt"]
    kdfparams: _Scrypt


class _ByPbkdf2(_Cipher):
    kdf: Literal["pbkdf2"]
    kdfparams: _Pbkdf2


class _Document(_Part):
    crypto: Annotated[_ByScrypt | _ByPbkdf2, Field(discriminator="kdf")]
    address: Annotated[str, Field(pattern=r"^(0x)?[0-9a-fA-F]{40}$")] | None = None


@dataclass(frozen=True, slots=True)
class Keystore:
    """A document whose shape was checked; only its passphrase shows whether it opens."""

    document: _Document

    @property
    def address(self) -> Address | None:
        address = self.document.address
        return None if address is None else Address("0x" + address.lower().removeprefix("0x"))

    def open(self, passphrase: SecretStr) -> SecretBytes | None:
        """The key, or None where the passphrase is another one. `ValueError` for a key of another address."""
        sealed = {"version": VERSION, "crypto": self.document.crypto.model_dump()}
        key: SecretBytes | None = None
        account = import_eth_account()
        with suppress(ValueError):  # "MAC mismatch"; the vendor's frames hold the passphrase: nothing is raised from it
            key = SecretBytes(bytes(account.decrypt(sealed, passphrase.get_secret_value())))
        if key is None:
            return None
        if not is_key(key.get_secret_value()):
            raise ValueError("what it holds is not a key")
        if self.address is not None and address_of(key) != self.address:
            raise ValueError(f"it says {self.address} and holds the key of another address")
        return key


def read_keystore(body: bytes) -> Keystore:
    """`ValueError` with the reason for anything but a version 3 keystore that can be opened here."""
    if len(body) > MAX_BYTES:
        raise ValueError(f"it has {len(body)} bytes, a keystore at most {MAX_BYTES}")
    try:
        raw = parse(body)
    except ValueError:
        raise ValueError("it is not JSON") from None
    if not isinstance(raw, Mapping):
        raise ValueError("it is not a JSON object")
    raw = {str(name).lower(): value for name, value in raw.items()}  # old ones say "Crypto"
    if raw.get("version") != VERSION:
        raise ValueError(f"its version is {str(raw.get('version'))[:20]}, and only version {VERSION} is read")
    try:
        document = _Document.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"] if part not in ("scrypt", "pbkdf2"))
        raise ValueError(f"its {where} is not what it should be") from None
    if isinstance(document.crypto, _ByScrypt):
        params = document.crypto.kdfparams
        if params.n & (params.n - 1):
            raise ValueError("its scrypt n is not a power of two")
        if params.n * params.r > _MOST_SCRYPT:
            raise ValueError(f"its scrypt n·r is {params.n * params.r}, at most {_MOST_SCRYPT} is opened here")
    return Keystore(document)


def write_keystore(key: SecretBytes, passphrase: SecretStr, rounds: int | None = None) -> bytes:
    """The key as a document under this passphrase, by scrypt; `rounds` is its n, and None what wallets use."""
    account = import_eth_account()
    document = account.encrypt(key.get_secret_value(), passphrase.get_secret_value(), kdf="scrypt", iterations=rounds)
    return json.dumps(document, indent=1).encode() + b"\n"
