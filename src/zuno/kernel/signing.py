"""The node key port: one ed25519 key that signs messages and journal entries, never transactions."""

from typing import Protocol


class NodeKey(Protocol):
    """Deterministic ed25519 signatures of 64 bytes; the private key never leaves the adapter.

    A key that is missing or unreadable is `Broken` when first needed: a node must not change its identity silently.
    `Refused` when other users could read the file.
    """

    def exists(self) -> bool: ...

    def ensure(self) -> None:
        """Create the key if there is none; concurrent callers end up with the same key."""

    @property
    def public(self) -> str:
        """The public key, 64 lower-case hex digits."""

    def sign(self, message: bytes) -> bytes: ...

    def verify(self, public: str, message: bytes, signature: bytes) -> bool:
        """Whether the owner of `public` signed exactly this message; False for a key or signature that is none."""
