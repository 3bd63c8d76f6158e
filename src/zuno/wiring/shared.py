"""What both desks share: settings, the journal and its key, wallets, chains, models and the outbox."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from zuno.adapters.atomic_file import keep_files_private
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.file_lock import compaction_lock
from zuno.adapters.kill_lock import KillLockFile
from zuno.adapters.store.lease import Fences
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.units import Address
from zuno.kernel.wire import FIRST_EDITION
from zuno.settings import Settings
from zuno.wiring.chains import LOCAL_CHAINS, Chains
from zuno.wiring.models import Models
from zuno.wiring.outbox import PushSources, print_line
from zuno.wiring.version import code_version

if TYPE_CHECKING:
    from zuno.adapters.keys.ed25519 import KeyFile
    from zuno.adapters.keys.passphrases import Ask, Passphrase, Passphrases
    from zuno.adapters.keys.wallets import WalletFolder
    from zuno.adapters.store.outbox import SqliteOutbox
    from zuno.adapters.store.table_store import TableStore
    from zuno.journal.compaction import HomeCompaction
    from zuno.journal.journal import ChainedJournal
    from zuno.journal.port import Journal
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
        nobody is asked. None: it stays locked, or there is none. `Refused` for a wrong passphrase."""
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
        """The signer on a chain: of a local one its built-in wallet, else the configured or only wallet."""
        name = chain.strip().lower()
        if name in LOCAL_CHAINS:
            from zuno.adapters.chain.dev_signer import DevSigner
            from zuno.adapters.chain.world import DEVNET, SIM

            return DevSigner((SIM if name == SIM.name else DEVNET).id)
        if self._own_signer is None:  # one for all chains, so that its passphrase is asked for once
            self._own_signer = self.folder().signer(self._acting_wallet())
        return self._own_signer

    def unattended(self, chain: str) -> Signer:
        """The same for a process that acts by itself: nobody is asked for a passphrase."""
        from zuno.adapters.keys.passphrases import Passphrases

        if chain in LOCAL_CHAINS or self.typed is not None:
            return self.of(chain)
        silent = Passphrases(self._settings.passphrase_file, lambda prompt: None)
        return self._open_folder(silent).signer(self._acting_wallet())

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


class SharedWiring(ABC):
    def __init__(self, settings: Settings, sealed: str | None = None) -> None:
        """`sealed`: why nothing can be written in the home, if so."""
        keep_files_private()
        self._settings = settings
        self._signers = Signers(settings)
        self._chains = Chains(settings, sealed, self._signers.own_wallet)
        self._models = Models(settings)
        self._journal: ChainedJournal | None = None
        self._own_store: TableStore | None = None
        self._started = False
        self._fences = Fences()
        url = settings.database_url
        secret = None if url is None else url.get_secret_value()
        self.kill_lock = KillLockFile(settings.home, secret, settings.accounts)
        self._own_outbox: SqliteOutbox | None = None

    @cached_property
    def restored(self) -> int:
        """The newest entry of the journal when this home was restored from a backup; 0: it never was."""
        from zuno.adapters.home_files import read_mark

        return int(read_mark(self._settings.home).get("restored", 0))

    @abstractmethod
    def _push_sources(self) -> PushSources:
        """What pushes are made of: both desks send some."""

    def journal(self) -> ChainedJournal:
        """The journal of this process: SQLite in the home, or Postgres where a URL is set."""
        self._chains.require_writable()
        return self._journal_to_read()

    def _journal_to_read(self) -> ChainedJournal:
        """As `journal`, also where the home cannot be written."""
        from zuno.journal.journal import ChainedJournal

        if self._journal is None:
            key = self._key()
            secrets = self._settings.secrets()
            self._own_store = self._store(key)
            self._journal = ChainedJournal(self._own_store, key, code=code_version, now=unix_millis, secrets=secrets)
        return self._journal

    async def _open_journal(self) -> Journal:
        """The journal after repairing what a crash left; notes go to stderr."""
        if not self._started:
            await check_editions(self.journal())
            for note in await self.journal().start():
                print_line(note)
            self._started = True
        return self.journal()

    async def _probe_journal(self) -> None:
        """Reads the newest entry under the lock that every write takes. Raises where the journal cannot be used."""
        await self._open_journal()
        await self.journal().start()

    async def _read_journal(self) -> Journal:
        """The journal for reading: nothing is repaired in a home that cannot be written or has no room."""
        if self._chains.writable:
            try:
                return await self._open_journal()
            except Unavailable:
                if self._settings.database_url is not None:
                    raise
        await check_editions(self._journal_to_read())
        return self._journal_to_read()

    def _key(self) -> KeyFile:
        from zuno.adapters.keys.ed25519 import KeyFile

        home = self._settings.home
        own, peer = home / "keys" / "node.key", home / "peer.key"
        return KeyFile(peer if peer.exists() and not own.exists() else own)  # a peer's folder is a home to look at

    def compaction(self) -> HomeCompaction:
        from zuno.adapters.home_files import measure_home
        from zuno.journal.compaction import HomeCompaction
        from zuno.lp.model.plan_events import PlanApproved

        home, journal = self._settings.home, self.journal()
        assert self._own_store is not None
        return HomeCompaction(
            journal=journal,
            store=self._own_store,
            lock=lambda: compaction_lock(home),
            measure=lambda: measure_home(home),
            now=unix_millis,
            keep=(PlanApproved.kind,),
        )

    def _store(self, key: KeyFile) -> TableStore:
        from zuno.adapters.home_files import check_moved

        url = self._settings.database_url
        check_moved(self._settings.home, in_postgres=url is not None)
        if url is not None:
            from zuno.adapters.store.postgres import open_postgres

            return open_postgres(url.get_secret_value(), self._settings.home, key, self._fences)
        from zuno.adapters.store.sqlite import open_sqlite

        return open_sqlite(self._settings.home)

    def _outbox(self) -> SqliteOutbox:
        from zuno.adapters.store.outbox import SqliteOutbox

        self._own_outbox = self._own_outbox or SqliteOutbox(self._settings.home)
        return self._own_outbox

    def _build_ping(self, part: str) -> Callable[[bool], Awaitable[None]] | None:
        """What is asked after each round of a part; None where no URL is set."""
        from zuno.adapters.http import DeadManPing

        url = self._settings.ping_url
        return None if url is None else DeadManPing(url.get_secret_value(), part)


async def check_editions(journal: Journal) -> None:
    """`Refused` for a home in which a newer Zuno has written entries that this one may not read."""
    from zuno.lp.model import ballot
    from zuno.lp.model.debate import Kind
    from zuno.trading.model import cycle

    desks = (
        ("LP", ballot.EDITION, (Kind.FLOW_START.value, Kind.FLOW_CREATE_START.value)),
        ("trading", cycle.EDITION, (cycle.STARTED,)),
    )
    for desk, edition, kinds in desks:
        for kind in kinds:
            for entry in await journal.latest(1, kind=kind):
                written = entry.payload.get("edition", FIRST_EDITION)
                if not isinstance(written, int) or written > edition:
                    raise Refused(
                        f"A newer Zuno has written in this home (edition {written} of the {desk} desk, this Zuno knows "
                        f"{edition}): update Zuno, or take another --home; nothing was written."
                    )
