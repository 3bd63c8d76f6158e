"""The built-in wallet of both local chains: its key is derived from a public label and protects nothing."""

from pydantic import SecretBytes

from zuno.adapters.chain.world import WALLET
from zuno.adapters.signing import sign
from zuno.kernel.errors import Refused
from zuno.kernel.units import Address
from zuno.lp.ports.spending import Signed, Unsigned

ROLE = "wallet"
"""The label its key is derived from."""


class DevSigner:
    """Signs for one local chain alone: anybody can derive this key."""

    watch_only = False
    address: Address = WALLET

    def __init__(self, chain_id: int) -> None:
        self._chain_id = chain_id

    def ready(self) -> None:
        """There is nothing to unlock."""

    def sign(self, tx: Unsigned) -> Signed:
        from zuno_devnet.keys import dev_key

        if tx.chain_id != self._chain_id:
            raise Refused(f"The built-in wallet signs for chain {self._chain_id} alone, not for chain {tx.chain_id}.")
        return sign(SecretBytes(dev_key(ROLE).to_bytes()), tx)
