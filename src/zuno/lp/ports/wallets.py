"""Storing wallet keys. Keys cannot be read back: signing goes through the Signer port in `spending.py`."""

from dataclasses import dataclass
from typing import Protocol

from zuno.kernel.units import Address


@dataclass(frozen=True, slots=True)
class StoredWallet:
    """A wallet that is stored in Zuno's home directory."""

    address: Address
    watch_only: bool
    """True: only the address is known here; the key is held elsewhere."""
    place: str
    """Path of the file that holds it; empty: the settings alone name it."""
    notes: tuple[str, ...] = ()


class Wallets(Protocol):
    """A stored wallet is never overwritten. No key and no passphrase is passed in, returned or named in an error: the
    adapter asks the owner for them where nobody else can read.

    `Refused` if the wallet is stored already, the passphrase is wrong or there is nobody to ask.
    """

    def all(self) -> tuple[StoredWallet, ...]:
        """Sorted by address. A wallet that is both watched and stored with its key is listed once, with its key."""

    def create(self) -> StoredWallet:
        """Create a key and store it, encrypted by a passphrase that the owner is asked for."""

    def add_key(self) -> StoredWallet:
        """Ask the owner for a private key and a passphrase, and store the key encrypted."""

    def add_keystore(self, file: str) -> StoredWallet:
        """Store the key of a keystore file (version 3) under a new passphrase; that file is not changed."""

    def watch(self, address: Address) -> StoredWallet:
        """Store an address without its key."""
