"""The signer of each chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zuno.kernel.errors import Refused
from zuno.kernel.units import Address
from zuno.settings import Settings
from zuno.wiring.chains import LOCAL

if TYPE_CHECKING:
    from zuno.adapters.keys.wallets import WalletFolder
    from zuno.lp.ports.spending import Signer


class Signers:
    """The built-in wallet of a local world; elsewhere the owner's."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._own_signer: Signer | None = None

    def of(self, chain: str) -> Signer:
        """Who acts on a chain: the built-in wallet of a local world, else the wallet set or the only one kept."""
        local = {wallet.name: wallet for wallet in LOCAL}.get(chain.strip().lower())
        if local is not None:
            from zuno.adapters.chain.dev_signer import DevSigner

            return DevSigner(local.id)
        if self._own_signer is None:  # one for all chains, so that its passphrase is asked for once
            self._own_signer = self.folder().signer(self._acting_wallet())
        return self._own_signer

    def own_wallet(self) -> Address | None:
        """The wallet set, else the only one kept; None where that leaves a choice, or nothing."""
        wanted = self._settings.agent_wallet_address
        if wanted is not None:
            return Address(wanted)
        kept = self.folder().all()
        return kept[0].address if len(kept) == 1 else None

    def folder(self) -> WalletFolder:
        from zuno.adapters.keys.passphrases import Passphrases
        from zuno.adapters.keys.wallets import WalletFolder

        return WalletFolder(self._settings.home / "wallets", Passphrases(self._settings.passphrase_file))

    def _acting_wallet(self) -> Address:
        address = self.own_wallet()
        if address is not None:
            return address
        kept = self.folder().all()
        if not kept:
            raise Refused("There is no wallet yet; `zuno wallet create` or `zuno wallet import` makes one.")
        addresses = ", ".join(wallet.address for wallet in kept)
        raise Refused(f"Which of {len(kept)} wallets acts? Set ZUNO_AGENT_WALLET_ADDRESS to one of {addresses}.")
