"""Keys for worlds with thousands of debates: seals that only their owner can make, at a tenth of the price.

They keep the promise of `NodeKey` among those who share a ring. What a signature costs a forger is tested elsewhere,
with the keys that are used.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b, sha256

from zuno.lp.model.debate import Role


class SealKey:
    """`ring`: every public half there is, and the secret that belongs to it. Nobody but this class looks into it."""

    def __init__(self, name: str, ring: dict[str, bytes]) -> None:
        self._secret = sha256(f"secret of {name}".encode()).digest()
        self.public = sha256(self._secret).hexdigest()
        self._ring = ring
        ring[self.public] = self._secret

    def exists(self) -> bool:
        return True

    def ensure(self) -> None:
        return None

    def sign(self, message: bytes) -> bytes:
        return blake2b(message, key=self._secret).digest()

    def verify(self, public: str, message: bytes, signature: bytes) -> bool:
        secret = self._ring.get(public)
        return secret is not None and blake2b(message, key=secret).digest() == signature


def seals(roles: Iterable[Role]) -> dict[Role, SealKey]:
    ring: dict[str, bytes] = {}
    return {role: SealKey(role.value, ring) for role in roles}
