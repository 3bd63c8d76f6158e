"""The wallets of a home, a file each: `<address>.json` is a keystore, `<address>.watch.json` an address alone."""

import json
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from errno import ELOOP
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from pydantic import SecretBytes, SecretStr

from zuno.adapters.atomic_file import create_file, translate_write_errors
from zuno.adapters.eth_imports import import_eth_account
from zuno.adapters.keys.keystore import MAX_BYTES, read_keystore, write_keystore
from zuno.adapters.keys.passphrases import Passphrases
from zuno.adapters.signing import address_of, is_key, sign
from zuno.kernel.errors import Broken, Refused, Unavailable, UsageError
from zuno.kernel.units import Address
from zuno.lp.ports.spending import Signed, Signer, Unsigned
from zuno.lp.ports.wallets import StoredWallet

_FILE = re.compile(r"(0x[0-9a-f]{40})(\.watch)?\.json")
_TYPED_KEY = re.compile(r"(0x)?[0-9a-fA-F]{64}")


class WatchOnly:
    watch_only = True

    def __init__(self, address: Address) -> None:
        self.address = address

    def ready(self) -> None:
        raise self._refusal()

    def sign(self, tx: Unsigned) -> Signed:
        raise self._refusal()

    def _refusal(self) -> Refused:
        return Refused(
            f"{self.address} is watched only, its key is not here; sign the transaction elsewhere, or bring the key "
            "with `zuno wallet import`."
        )


class KeystoreSigner:
    """Opens its file when first needed, and never shows the key."""

    watch_only = False

    def __init__(self, path: Path, passphrase: Callable[[], SecretStr]) -> None:
        self.address = Address(path.stem)
        self._path = path
        self._passphrase = passphrase

    def ready(self) -> None:
        _ = self._key

    def sign(self, tx: Unsigned) -> Signed:
        return sign(self._key, tx)

    def __repr__(self) -> str:
        return f"KeystoreSigner({self.address})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a signer is neither copied nor kept")

    @cached_property
    def _key(self) -> SecretBytes:
        missing = Broken(f"The wallet {self._path} is missing; put it back from a copy.")
        body, others_read = _read_file(self._path, missing, os.O_NOFOLLOW)
        if others_read:
            raise Refused(f"Others may read the wallet {self._path}; run `chmod 600` on it.")
        try:
            keystore = read_keystore(body)
            if keystore.address not in (None, self.address):
                raise ValueError(f"it says {keystore.address}")
            key = keystore.open(self._passphrase())
        except ValueError as error:
            raise Broken(f"The wallet {self._path} is damaged: {error}; put it back from a copy.") from None
        if key is None:
            raise Refused(f"That is not the passphrase of {self.address}.")
        if address_of(key) != self.address:
            raise Broken(f"The wallet {self._path} holds the key of another address; put it back from a copy.")
        return key


@dataclass(frozen=True, slots=True)
class WalletFolder:
    """Wallets are added here and never changed."""

    folder: Path
    passphrases: Passphrases
    rounds: int | None = None
    """scrypt's n for what is written; None is what wallets use."""

    def all(self) -> tuple[StoredWallet, ...]:
        try:
            names = sorted(entry.name for entry in os.scandir(self.folder) if entry.is_file(follow_symlinks=False))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise Unavailable(f"{self.folder} cannot be read ({error.strerror}).") from error
        kept: dict[Address, StoredWallet] = {}
        for name in names:  # "….json" comes before "….watch.json": a key wins
            if match := _FILE.fullmatch(name):
                address = Address(match[1])
                kept.setdefault(address, StoredWallet(address, match[2] is not None, str(self.folder / name)))
        return tuple(kept.values())

    def signer(self, address: Address) -> Signer:
        """The keystore's signer, or a watch-only wallet. A symlink is not followed."""
        path = self._path(address)
        if path.is_symlink() or not path.is_file():
            return WatchOnly(address)
        return KeystoreSigner(path, lambda: self.passphrases.of(address))

    def create(self) -> StoredWallet:
        passphrase = self.passphrases.new()
        return self._keep(SecretBytes(bytes(import_eth_account().create().key)), passphrase)

    def add_key(self) -> StoredWallet:
        typed = self.passphrases.key().get_secret_value().strip()
        key = SecretBytes(bytes.fromhex(typed.removeprefix("0x")) if _TYPED_KEY.fullmatch(typed) else b"")
        del typed
        if not is_key(key.get_secret_value()):
            raise UsageError("That is not a private key; a key is 64 hex digits, and not any 64.")
        self._must_be_new(address_of(key))
        return self._keep(key, self.passphrases.new())

    def add_keystore(self, file: str) -> StoredWallet:
        path = Path(file).expanduser()
        body, others_read = _read_file(path, UsageError(f"There is no file {path}."))
        try:
            keystore = read_keystore(body)
            if keystore.address is not None:
                self._must_be_new(keystore.address)
            key = keystore.open(self.passphrases.of_stranger(path.name))
        except ValueError as error:
            raise Refused(f"{path} is not a keystore that can be imported: {error}.") from None
        if key is None:
            raise Refused(f"That is not the passphrase of {path}.")
        self._must_be_new(address_of(key))
        notes = (f"others may read {path}: run `chmod 600` on it, or delete it",) if others_read else ()
        return self._keep(key, self.passphrases.new(), notes)

    def watch(self, address: Address) -> StoredWallet:
        self._must_be_new(address)
        path = self.folder / f"{address}.watch.json"
        if not self._create(path, json.dumps({"version": 1, "watch": address}).encode() + b"\n"):
            raise Refused(f"{address} is watched already, by {path}.")
        return StoredWallet(address, True, str(path))

    def _keep(self, key: SecretBytes, passphrase: SecretStr, notes: tuple[str, ...] = ()) -> StoredWallet:
        address = address_of(key)
        path = self._path(address)
        if not self._create(path, write_keystore(key, passphrase, self.rounds)):
            raise self._already_kept(address)
        return StoredWallet(address, False, str(path), notes)

    def _create(self, path: Path, content: bytes) -> bool:
        with translate_write_errors(path):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return create_file(path, content)

    def _must_be_new(self, address: Address) -> None:
        """Refuse early, before a passphrase is typed in vain; the exclusive write decides."""
        if self._path(address).exists():
            raise self._already_kept(address)

    def _already_kept(self, address: Address) -> Refused:
        return Refused(f"{address} is kept already, in {self._path(address)}; nothing was written.")

    def _path(self, address: Address) -> Path:
        return self.folder / f"{address}.json"


def _read_file(path: Path, missing: Exception, flags: int = 0) -> tuple[bytes, bool]:
    """The file's content, and whether others than its owner may read it."""
    try:
        with open(path, "rb", opener=lambda name, usual: os.open(name, usual | flags)) as file:
            mode, body = os.fstat(file.fileno()).st_mode, file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise missing from None
    except OSError as error:
        if error.errno == ELOOP:
            raise Refused(f"{path} is a symlink, and that is not a wallet; put the file itself there.") from None
        raise Unavailable(f"{path} cannot be read ({error.strerror}).") from error
    return body, bool(stat.S_IMODE(mode) & 0o077)
