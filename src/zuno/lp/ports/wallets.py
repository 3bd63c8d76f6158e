"""Storing wallet keys. Keys cannot be read back: signing goes through the Signer port in `spending.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from zuno.kernel.units import Address


@dataclass(frozen=True, slots=True)
class StoredWallet:
    """A wallet of this home."""

    address: Address
    watch_only: bool
    """True: only the address is known here; the key is held elsewhere."""
    place: str
    """The file."""
    notes: tuple[str, ...] = ()


class Wallets(Protocol):
    """Promises that a wallet once kept is never written over, and that neither a key nor a passphrase is ever in an
    argument, an answer or an error: whoever keeps them asks for them where nobody else can read.

    `Refused` where a wallet is kept already, a passphrase is wrong or nobody can be asked for it.
    """

    def all(self) -> tuple[StoredWallet, ...]:
        """By address. A wallet that is both kept with its key and watched is listed once, with its key."""

    def create(self) -> StoredWallet:
        """A new key, under a passphrase that is asked for."""

    def add_key(self) -> StoredWallet:
        """A key that is asked for, under a passphrase that is asked for."""

    def add_keystore(self, file: str) -> StoredWallet:
        """The key in a keystore file of version 3, under a new passphrase; the file stays as it is."""

    def watch(self, address: Address) -> StoredWallet:
        """An address without its key."""
