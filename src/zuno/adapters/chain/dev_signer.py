"""The wallet that both local worlds are born with: its key is derived from a public label and protects nothing."""

from __future__ import annotations

from pydantic import SecretBytes

from zuno.adapters.chain.world import WALLET
from zuno.adapters.signing import sign
from zuno.kernel.errors import Refused
from zuno.kernel.units import Address
from zuno.lp.ports.spending import Signed, Unsigned

ROLE = "wallet"
"""The story's own name for it; the story itself cannot be asked where there is no EVM."""


class DevSigner:
    """Signs for one local chain, and for no other: whatever that wallet holds elsewhere is anybody's."""

    watch_only = False
    address: Address = WALLET

    def __init__(self, chain_id: int) -> None:
        self._chain_id = chain_id

    def ready(self) -> None:
        """Its key is no secret: there is nothing to unlock."""

    def sign(self, tx: Unsigned) -> Signed:
        from zuno_devnet.keys import dev_key

        if tx.chain_id != self._chain_id:
            raise Refused(f"The built-in wallet signs for chain {self._chain_id} alone, not for chain {tx.chain_id}.")
        return sign(SecretBytes(dev_key(ROLE).to_bytes()), tx)
