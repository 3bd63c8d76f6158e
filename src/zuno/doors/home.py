"""The home as files: what it holds, its backup, its restore and its move."""

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from zuno.kernel.view import ForeignText, View
from zuno.present.document import Document, Tone, document, facts, lines, table
from zuno.present.values import count, foreign, good, number, when


def megabytes(size: float) -> str:
    return f"{size / 1_000_000:,.1f} MB" if size >= 100_000 else f"{size / 1_000:,.1f} kB"


class PlaceView(View):
    """A file or a folder of the home."""

    name: ForeignText
    kind: str
    """record, money, key, login, cache, lock, log, or other: not Zuno's."""
    files: int
    bytes: int
    in_backup: bool
    """Whether a backup takes it, or a part of it."""


class HomeUsageView(View):
    home: ForeignText
    free_bytes: int
    places: tuple[PlaceView, ...]
    """Largest first."""
    entries: int
    journal_bytes: int | None
    """Null where the journal is in Postgres."""
    days: float
    """From the first entry to the newest."""
    cycles: int

    def to_document(self) -> Document:
        kinds: Counter[str] = Counter()
        for place in self.places:
            kinds[place.kind] += place.bytes
        size = self.journal_bytes
        rows = (
            (foreign(row.name), row.kind, count(row.files), megabytes(row.bytes), "yes" if row.in_backup else "")
            for row in self.places
        )
        return document(
            f"{megabytes(kinds.total())} in the home, {megabytes(self.free_bytes)} free on its disk",
            facts(
                ("by kind", ", ".join(f"{kind} {megabytes(held)}" for kind, held in kinds.items())),
                ("journal", "in Postgres" if size is None else megabytes(size)),
                ("entries", count(self.entries)),
                ("recorded", number(self.days, 1, unit="d")),
                ("growth per day", megabytes(size / self.days)) if size and self.days >= 1 else None,
                ("trading cycles", count(self.cycles)),
                ("per cycle", megabytes(size / self.cycles)) if size and self.cycles else None,
            ),
            table(("place", "kind", "files", "size", "in backup"), rows, spare=("files", "in backup")),
            context=foreign(self.home),
        )


class BackupView(View):
    file: ForeignText
    bytes: int
    files: int
    node: str
    seq: int
    """Of the journal's newest entry in it."""
    left_out: tuple[ForeignText, ...]
    """Files that are not Zuno's, and wallets that are not encrypted."""
    removed: tuple[ForeignText, ...]
    """Older backups of this home, by --keep."""

    def to_document(self) -> Document:
        return document(
            good(f"{self.files:,} files, {megabytes(self.bytes)}; the journal to entry {self.seq:,}."),
            facts(("file", foreign(self.file)), ("node", self.node[:12])),
            lines(*(foreign(f"removed {name}", Tone.QUIET) for name in self.removed)),
            notes=(
                "Private keys are not in it: keep a copy of keys/ elsewhere. Wallets are, encrypted.",
                *(foreign(f"left out: {name}") for name in self.left_out),
            ),
        )


class RestoreView(View):
    home: ForeignText
    node: str
    files: int
    bytes: int
    made_at: int
    """Unix seconds."""
    zuno: ForeignText
    """The version that made the backup."""
    entries: int
    """All of them verified, each signature."""
    killed: tuple[ForeignText, ...]
    """Accounts that were killed; they are locked here as well."""
    missing: tuple[ForeignText, ...]
    """Private keys that are to be put back by hand."""
    todo: tuple[str, ...]

    def to_document(self) -> Document:
        return document(
            good(f"{self.files:,} files, {megabytes(self.bytes)}; the journal is whole: {self.entries:,} entries."),
            facts(
                ("home", foreign(self.home)),
                ("backup of", when(self.made_at)),
                ("made by", foreign(f"Zuno {self.zuno}, node {self.node[:12]}")),
                ("killed", foreign(", ".join(self.killed))) if self.killed else None,
                ("missing keys", foreign(", ".join(self.missing))) if self.missing else None,
            ),
            lines(*self.todo),
        )


class HomeMoveView(View):
    moved_to: ForeignText
    entries: int
    """Of the journal, verified at the new place."""
    bytes: int | None
    """Of the files that were copied; null where only the journal moved."""
    todo: ForeignText

    def to_document(self) -> Document:
        size = "" if self.bytes is None else f", {megabytes(self.bytes)}"
        moved = good(f"Moved and verified: {self.entries:,} entries{size}.")
        return document(moved, facts(("to", foreign(self.moved_to))), lines(foreign(self.todo)))


class HomeUnlockView(View):
    revoked: tuple[ForeignText, ...]  # accounts whose mandates were older than the restore

    def to_document(self) -> Document:
        older = lines(*(foreign(f"the mandate of {account} is revoked; grant it anew") for account in self.revoked))
        return document(good("The home is unlocked: both desks may take new risk."), older)


class HomeDesk(Protocol):
    async def usage(self) -> HomeUsageView: ...

    async def backup(self, file: str, keep: int | None) -> BackupView:
        """While everything runs. After an error older backups are as they were."""

    async def restore(self, file: str) -> RestoreView:
        """Into an empty home: `Refused` otherwise. `Malformed` or `Broken` for a backup that is not whole."""

    async def unlock(self, confirm: Callable[[str, str], bool]) -> HomeUnlockView:
        """Let a restored home take new risk, once the word `unlock` was typed. Mandates of before are revoked first."""

    async def move(self, folder: str | None, to: str | None) -> HomeMoveView:
        """To another folder, or the journal to a database. `Refused` while something runs here."""
