"""The settings of this home as a person may see them, and what is wrong with their file: no secret in either."""

from zuno.kernel.view import ForeignText, VerdictView, View
from zuno.present.document import Document, Mark, document, facts, lines, table
from zuno.present.values import bad, foreign, id_, name


class SettingView(View):
    name: str
    """Of its environment variable."""
    key: str
    """In `zuno.toml`: `[table] key`."""
    value: ForeignText
    """`set` where the value itself is nobody's to see."""
    origin: str
    """default, environment, or the file with its line."""


class ConfigView(View):
    home: ForeignText
    file: ForeignText | None
    """The settings file of the home; None: there is none."""
    chain: str
    """The default one."""
    chains: tuple[str, ...]
    """Every one that may be read: the default one, and those with an RPC."""
    market: str
    """`live` or `recorded`."""
    recording: str
    live: bool
    """Whether trading with money is allowed at all."""
    settings: tuple[SettingView, ...]
    """Those that are set."""

    def to_document(self) -> Document:
        rows = ((name(line.name), id_(line.key), foreign(line.value), line.origin) for line in self.settings)
        return document(
            f"Settings that are set: {len(self.settings)}",
            facts(
                ("home", foreign(self.home)),
                ("file", foreign(self.file) if self.file else "none; `zuno config init` writes one"),
                ("default chain", self.chain),
                ("chains", ", ".join(self.chains)),
                ("market data", f"{self.market}, {self.recording}"),
                ("live trading", bad("allowed") if self.live else "off"),
            ),
            table(("variable", "in zuno.toml", "value", "from"), rows, spare=("in zuno.toml",))
            if self.settings
            else None,
        )


class ConfigCheckView(VerdictView):
    """Everything that is wrong with a settings file, by line; `ok` false is exit code 2."""

    file: ForeignText
    found: bool
    settings: int
    """How many it sets."""
    wallets: int
    """In its list and in its file of wallets."""
    faults: tuple[ForeignText, ...]
    notes: tuple[ForeignText, ...]
    """What is worth knowing and stops nothing."""

    def to_document(self) -> Document:
        headline = "The settings file can be used" if self.ok else f"Faults in the settings: {len(self.faults)}"
        return document(
            headline if self.found else "There is no settings file",
            facts(
                ("file", foreign(self.file)),
                ("settings in it", str(self.settings)),
                ("wallets in it", f"{self.wallets:,}") if self.wallets else None,
            ),
            lines(*(foreign(fault) for fault in self.faults), mark=Mark.WARNING) if self.faults else None,
            notes=(*map(foreign, self.notes), *(() if self.found else ("`zuno config init` writes one",))),
        )
