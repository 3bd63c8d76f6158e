"""Signing as this node: one ed25519 key that stays behind the socket. It signs words, never money."""

from __future__ import annotations

from typing import Protocol


class NodeKey(Protocol):
    """Promises deterministic ed25519 signatures of 64 bytes; the private half never crosses this socket.

    A key that is missing or cannot be read is `Broken` when it is first needed: whoever signed before must not become
    somebody else in silence. `Refused` when others could read it.
    """

    def exists(self) -> bool: ...

    def ensure(self) -> None:
        """Make the key where there is none; of several who do so at once, all end up with the same."""
        ...

    @property
    def public(self) -> str:
        """The public key, 64 lower-case hex digits."""
        ...

    def sign(self, message: bytes) -> bytes: ...

    def verify(self, public: str, message: bytes, signature: bytes) -> bool:
        """Whether the owner of `public` signed exactly this message; False for a key or signature that is none."""
        ...
