"""An ed25519 key in a file of its own: PKCS#8 PEM, 0600, never rewritten. The public key is beside it (`node.pub`
beside `node.key`), so that a copy of a journal can be verified."""

from __future__ import annotations

import os
import stat
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from zuno.adapters.atomic_file import create_file, translate_write_errors
from zuno.kernel.errors import Broken, Refused, Unavailable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_PUBLIC_BYTES = 32


class KeyFile:
    """The key is read when first needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._half = path.with_suffix(".pub")
        self._known: tuple[str, Ed25519PublicKey] | None = None

    def exists(self) -> bool:
        return self._path.exists()

    def ensure(self) -> None:
        if self.exists() and self._half.exists():
            return
        with translate_write_errors(self._path):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            named = self._half.exists()  # looked at first: whoever makes both at this moment makes the key first
            if not self.exists():
                if named:
                    raise Broken(f"The key {self._path} is missing; put it back from a copy.")
                create_file(self._path, _fresh())
            create_file(self._half, f"{_public_of(self._private)}\n".encode())

    @cached_property
    def public(self) -> str:
        """The key's own public half, else the one in the file beside it."""
        if self.exists() or not self._half.exists():
            return _public_of(self._private)
        return self._read_half()

    def _read_half(self) -> str:
        try:
            text = self._half.read_text(encoding="ascii").strip()
            if len(bytes.fromhex(text)) == _PUBLIC_BYTES:
                return text.lower()
        except (OSError, ValueError):
            pass
        raise Broken(f"{self._half} is not the public half of a key; put it back from a copy.")

    def sign(self, message: bytes) -> bytes:
        return self._private.sign(message)

    def verify(self, public: str, message: bytes, signature: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            known = self._known
            if known is None or known[0] != public:
                known = self._known = public, Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
            known[1].verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True

    def secret(self) -> bytes:
        """The private half, for a transport that proves the same key in its own handshake."""
        return self._private.private_bytes_raw()

    @cached_property
    def _private(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            with open(self._path, "rb") as file:
                mode, pem = os.fstat(file.fileno()).st_mode, file.read()
        except FileNotFoundError as error:
            raise Broken(f"The key {self._path} is missing; put it back from a copy.") from error
        except OSError as error:
            raise Unavailable(f"The key {self._path} cannot be read ({error.strerror}).") from error
        if stat.S_IMODE(mode) & 0o077:
            raise Refused(f"Others may read the key {self._path}; run `chmod 600` on it.")
        try:
            key = load_pem_private_key(pem, password=None)
        except Exception as error:  # the vendor raises half a dozen kinds for bytes that are no key
            raise Broken(f"{self._path} is not a key; put it back from a copy.") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise Broken(f"{self._path} is not an ed25519 key; put it back from a copy.")
        if self._half.exists() and self._read_half() != _public_of(key):
            raise Broken(f"{self._path} is not the key that {self._half.name} names; put the right one back.")
        return key


def _public_of(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes_raw().hex()


def _fresh() -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
