"""The signer of each chain."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from zuno.kernel.errors import Refused
from zuno.kernel.units import Address
from zuno.settings import Settings
from zuno.wiring.chains import LOCAL_CHAINS

if TYPE_CHECKING:
    from zuno.adapters.keys.passphrases import Ask, Passphrase, Passphrases
    from zuno.adapters.keys.wallets import WalletFolder
    from zuno.lp.ports.spending import Signer


class Signers:
    """The built-in wallet on local chains, the owner's elsewhere."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._own_signer: Signer | None = None
        self._may_ask = True
        self.typed: Passphrase | None = None
        """The typed passphrase, for a helper process."""

    def unlock(self, ask: Ask | None = None) -> Address | None:
        """Unlock the owner's wallet for the life of this process, by the passphrase file or at the terminal; afterwards
        nobody is asked. None: it stays locked (an empty line, the end of input, a background process), or there is
        none. `Refused` for a wrong passphrase."""
        from zuno.adapters.keys.passphrases import InputEnded, Passphrases, ask_hidden

        address, typed = self.own_wallet(), None
        if address is not None and not self.folder().signer(address).watch_only:
            if self._settings.passphrase_file is None:
                with suppress(InputEnded):
                    typed = (ask or ask_hidden)(f"Passphrase of {address} (empty: stay locked): ")
            if self._settings.passphrase_file is not None or (typed is not None and typed.get_secret_value()):
                signer = self._open_folder(Passphrases(self._settings.passphrase_file, lambda prompt: typed)).signer(
                    address
                )
                signer.ready()
                self._own_signer, self.typed = signer, typed
        self._may_ask = False
        return None if self._own_signer is None else address

    def of(self, chain: str) -> Signer:
        """The signer on a chain: the built-in wallet of a local one, else the configured wallet or the only one
        kept."""
        name = chain.strip().lower()
        if name in LOCAL_CHAINS:
            from zuno.adapters.chain.dev_signer import DevSigner
            from zuno.adapters.chain.world import DEVNET, SIM

            return DevSigner((SIM if name == SIM.name else DEVNET).id)
        if self._own_signer is None:  # one for all chains, so that its passphrase is asked for once
            self._own_signer = self.folder().signer(self._acting_wallet())
        return self._own_signer

    def own_wallet(self) -> Address | None:
        """The configured wallet, else the only one kept; None if that leaves a choice or nothing."""
        wanted = self._settings.agent_wallet_address
        if wanted is not None:
            return Address(wanted)
        kept = self.folder().all()
        return kept[0].address if len(kept) == 1 else None

    def folder(self) -> WalletFolder:
        from zuno.adapters.keys.passphrases import Passphrases, ask_hidden

        ask = ask_hidden if self._may_ask else lambda prompt: None
        return self._open_folder(Passphrases(self._settings.passphrase_file, ask))

    def _open_folder(self, passphrases: Passphrases) -> WalletFolder:
        from zuno.adapters.keys.wallets import WalletFolder

        return WalletFolder(self._settings.home / "wallets", passphrases)

    def _acting_wallet(self) -> Address:
        address = self.own_wallet()
        if address is not None:
            return address
        kept = self.folder().all()
        if not kept:
            raise Refused("There is no wallet yet; `zuno wallet create` or `zuno wallet import` makes one.")
        addresses = ", ".join(wallet.address for wallet in kept)
        raise Refused(f"Which of {len(kept)} wallets acts? Set ZUNO_AGENT_WALLET_ADDRESS to one of {addresses}.")
