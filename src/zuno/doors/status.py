"""`zuno status`: what runs, last and next cycle, last monitor look, open risk, locks, disk and record at a glance."""

from zuno.doors.serve import PartView
from zuno.kernel.clock import iso
from zuno.kernel.numbers_text import format_span
from zuno.kernel.units import Millis
from zuno.kernel.view import ForeignText, View
from zuno.present.document import Document, Tone, Value, document, facts
from zuno.present.values import foreign, quiet


class StatusView(View):
    """The service in ten lines. What could not be read is null, and `notes` says why. Times are Unix milliseconds."""

    at: int
    """When it was asked."""
    home: ForeignText
    ready: bool
    troubles: tuple[ForeignText, ...]
    """Why it is not ready."""
    pid: int | None
    """Of `zuno serve`; null: none runs."""
    since: int | None
    parts: tuple[PartView, ...]
    """Of `zuno serve`, or the commands that run by themselves."""
    last_cycle: int | None
    last_run: ForeignText
    next_cycle: int | None
    """Null where no desk runs."""
    last_look: int | None
    """Of the monitor."""
    alerts: int | None
    account: ForeignText
    open_trades: int | None
    open_orders: int | None
    locks: tuple[ForeignText, ...] | None
    """Kills, pauses and protections that are written down; what only a price tells is not among them."""
    used_bytes: int
    free_bytes: int
    entries: int | None
    newest: int | None
    notes: tuple[ForeignText, ...]

    def to_document(self) -> Document:
        state = Value("ready", Tone.GOOD) if self.ready else Value("not ready", Tone.BAD)
        state = quiet("not running") if self.pid is None else state
        risk = f"{_count(self.open_trades)} trades, {_count(self.open_orders)} orders, {self.account}"
        locks = "unknown" if self.locks is None else "; ".join(self.locks) or "none"
        service = "" if self.pid is None else f", process {self.pid} since {_time(self.since)}"
        return document(
            Value(f"Zuno is {state.text}{service}", state.tone),
            facts(
                ("parts", self._describe_parts()),
                ("last cycle", foreign(f"{_time(self.last_cycle)} {self.last_run}")),
                ("next cycle", _time(self.next_cycle)),
                ("monitor", f"last look {_time(self.last_look)}, alerts: {_count(self.alerts)}"),
                ("open risk", foreign(risk)),
                ("locks", foreign(locks, Tone.GOOD if self.locks == () else Tone.BAD)),
                ("disk", f"{self.used_bytes / 1e6:,.1f} MB used, {self.free_bytes / 1e6:,.1f} MB free"),
                ("record", f"{_count(self.entries)} entries, newest {_time(self.newest)}"),
            ),
            context=foreign(self.home),
            urgent=[foreign(trouble, Tone.BAD) for trouble in self.troubles],
            notes=map(foreign, self.notes),
        )

    def _describe_parts(self) -> str:
        """Those that are ready with how long they have run, then the others by their state."""
        named: dict[str, list[str]] = {}
        for part in self.parts:
            restarts = f" ({part.restarts} restarts)" if part.restarts else ""
            ready = part.state == "ready" and part.since is not None
            span = f" {format_span(max(0, self.at - (part.since or 0)) // 1_000)}" if ready else ""
            named.setdefault("" if ready else f"{part.state}: ", []).append(f"{part.name}{span}{restarts}")
        return "; ".join(f"{state}{', '.join(parts)}" for state, parts in sorted(named.items())) or "none"


def _time(millis: int | None) -> str:
    return "–" if millis is None else iso(Millis(millis))


def _count(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"
