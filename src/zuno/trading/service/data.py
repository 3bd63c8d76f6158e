"""The market's past as a person asks about it: what is here, what is wrong with it, and what was done about that."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.view import ForeignText, VerdictView, View
from zuno.markets.feeds import FOREIGN_SPOT
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol, parse_markets
from zuno.present.document import Document, document, lines, table
from zuno.present.values import bad, count, foreign, good, quiet
from zuno.trading.data.check import Check, Fetch, Now, count_missing, find_doubled, find_holes, rule_for
from zuno.trading.model.known import derive
from zuno.trading.model.market import Series
from zuno.trading.model.wanted import is_read
from zuno.trading.ports.series import Flaw, Origin, RenewedStore, SeriesStore, Span
from zuno.trading.service.origin_view import OriginView

Invent: TypeAlias = Callable[[int, Sequence[Symbol]], Awaitable[RenewedStore]]
"""Fills the store of invented markets anew from a seed."""
LARGEST_SEED: Final = 2**63 - 1
MOST_GAPS: Final = 20
_INVENT: Final = "`zuno data synth` invents a market"
_KEEP: Final = (
    "`zuno data import` reads files, `zuno data download` fetches the past venues keep, `zuno data collect` keeps what "
    "comes"
)
MOST_SHOWN: Final = 60
"""Flaws of one check that are listed."""
MOST_NAMED: Final = 6
"""Gaps, or series that fail, named in one sentence."""


class SourceOfRowsView(View):
    source: str
    """collected, downloaded, imported or repaired."""
    file: ForeignText
    """Of what was imported: the name of its file, or the bars they were made of."""
    rows: int
    first: int
    last: int


class StretchView(View):
    """Rows from one moment to another, in Unix milliseconds."""

    first: int
    last: int
    count: int
    place: str
    """From when to when, for people."""


class SpanView(StretchView):
    """How much of a series is here."""

    series: str
    sealed: int
    """Of these, how many rest in files of history."""
    sources: tuple[SourceOfRowsView, ...] = ()
    missing: int | None = None
    """Bars that should be between the first and the last and are not; null of what are no bars or need not be there."""
    gaps: tuple[StretchView, ...] = ()
    """The longest of them, oldest first."""
    used: bool
    """Whether the desk reads this series; what it reads ends at `last`."""
    used_from: ForeignText
    """How the newest of its rows came in, and from which file."""
    doubled: int
    """Rows of an interval that has another one: hours that would be counted twice."""

    @property
    def came_from(self) -> str:
        """Each way once; of imported files the first and how many more."""
        ways = list(dict.fromkeys(source.source for source in self.sources if not source.file))
        files = [source.file for source in self.sources if source.file]
        more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
        return ", ".join([*ways, *([f"{files[0]}{more}"] if files else [])])

    def describe_gaps(self) -> str:
        shown = ", ".join(f"{gap.place} ({gap.count:,})" for gap in self.gaps[:MOST_NAMED])
        more = f" and {len(self.gaps) - MOST_NAMED} more" if len(self.gaps) > MOST_NAMED else ""
        return f"missing of {self.series}: {shown}{more}" if self.gaps else ""


class DataStatusView(OriginView):
    chosen_by: str
    """Why the desk reads this store and not the other."""
    series: tuple[SpanView, ...]
    rows: int
    unsettled: dict[str, int]
    """What was noted when rows came in and nothing was done about yet, by kind."""
    notes: tuple[str, ...] = ()

    def to_document(self) -> Document:
        rows = (
            (
                span.series,
                count(span.count),
                span.place,
                foreign(span.came_from),
                *(count(some) if some else "" for some in (span.missing, span.sealed)),
            )
            for span in self.series
        )
        columns = ("series", "rows", "from – to", "came from", "missing", "in files")
        noted = (f"{number:,} × {kind} noted; `zuno data check` tells more" for kind, number in self.unsettled.items())
        return document(
            foreign(f"The market's past, {self.origin}: {self.rows:,} rows"),
            table(columns, rows, spare=("in files", "came from")) if self.series else None,
            notes=(*filter(None, (span.describe_gaps() for span in self.series)), *noted, *self.notes),
        )


class FlawView(StretchView):
    series: str
    kind: str
    detail: ForeignText
    rule: str
    """What is done about such a flaw."""
    mended: str | None
    """What was done about this one."""


class DataCheckView(VerdictView):
    """`ok`: nothing is wrong, or everything was mended; else exit code 3."""

    synthetic: bool
    origin: str
    checked: int
    flaws: tuple[FlawView, ...]
    mended: int
    remaining: int
    settled_before: int
    """Notes about which something was done earlier."""

    def to_document(self) -> Document:
        rows = (
            (
                flaw.series,
                flaw.kind,
                flaw.place,
                count(flaw.count),
                foreign(flaw.detail),
                quiet(flaw.rule) if flaw.mended is None else good(flaw.mended),
            )
            for flaw in self.flaws[:MOST_SHOWN]
        )
        rest = Counter(flaw.kind for flaw in self.flaws[MOST_SHOWN:])
        mended = f"{self.mended:,} mended, " if self.mended else ""
        total = f"{mended}{self.remaining:,} remain." if self.flaws else "Nothing is wrong."
        return document(
            f"{self.checked} series of the market's past, {self.origin}",
            table(("series", "what", "when", "rows", "how", "done"), rows, spare=("done",)) if self.flaws else None,
            lines(bad(total) if self.remaining else good(total)),
            notes=(f"{number:,} more × {kind}; `--json` has all of them" for kind, number in rest.items()),
        )


class SynthView(View):
    """A market that was invented, and what became of the rows it offered."""

    synthetic: bool
    origin: str
    seed: int
    series: int
    rows: int
    last: int
    """The market's last moment, in Unix milliseconds."""
    set_aside: int
    """Rows no market can have made: an invented market has its dirt too."""
    repeated: int
    corrected: int
    said: str
    notes: tuple[str, ...] = ()

    def to_document(self) -> Document:
        dirt = f"{self.set_aside} rows no market can have made, {self.repeated} repeated, {self.corrected} corrected"
        return document(self.said, notes=(dirt, *self.notes))


@dataclass(frozen=True, slots=True, eq=False)
class DataDesk:
    store: SeriesStore
    now: Now
    fetch: Fetch | None = None
    invent: Invent | None = None
    choice: str = ""
    markets: tuple[Symbol, ...] = DEFAULT_SYMBOLS
    """`fetch`: a live source to ask again for bars that are missing; `choice`: why the desk reads this store."""

    async def status(self) -> DataStatusView:
        spans, flaws = await self.store.spans(), await self.store.flaws()
        sources: dict[Series[Any], list[SourceOfRowsView]] = {}
        for found in await self.store.sources():
            sources.setdefault(found.series, []).append(SourceOfRowsView.model_validate(found, from_attributes=True))
        views = tuple([await self._span_view(span, sources.get(span.series, [])) for span in spans])
        doubled = [f"{view.series} counts {view.doubled:,} intervals twice" for view in views if view.doubled]
        fill = _INVENT if self.store.origin.synthetic else _KEEP
        filled = [self.choice] if spans else [f"nothing is here yet: {fill}"]
        return DataStatusView(
            **_origin_fields(self.store.origin),
            chosen_by=self.choice,
            series=views,
            rows=sum(span.count for span in spans),
            unsettled=dict(sorted(Counter(flaw.kind for flaw in flaws if flaw.mended is None).items())),
            notes=(*filter(None, filled), *doubled),
        )

    async def _span_view(self, span: Span, sources: Sequence[SourceOfRowsView]) -> SpanView:
        missing = count_missing(span)
        runs = await find_holes(self.store, span) if missing else []
        newest = max(sources, key=lambda source: source.last, default=None)
        longest = sorted(sorted(runs, key=lambda run: -run.count)[:MOST_GAPS], key=lambda run: run.first)
        return derive(
            SpanView,
            span,
            series=str(span.series),
            place=format_stretch(span.first, span.last),
            sources=tuple(sources),
            missing=missing,
            gaps=tuple(derive(StretchView, run, place=format_stretch(run.first, run.last)) for run in longest),
            used=is_read(span.series),
            used_from="" if newest is None else f"{newest.source} {newest.file}".strip(),
            doubled=len(await find_doubled(self.store, span)),
        )

    async def check(self, *, repair: bool = False) -> DataCheckView:
        flaws, before = await Check(self.store, self.now, repair=repair, fetch=self.fetch).run()
        mended = sum(flaw.mended is not None for flaw in flaws)
        return DataCheckView(
            ok=mended == len(flaws),
            **_origin_fields(self.store.origin),
            checked=len(await self.store.spans()),
            flaws=tuple(map(_flaw_view, flaws)),
            mended=mended,
            remaining=len(flaws) - mended,
            settled_before=before,
        )

    async def synth(self, seed: int, markets: str | None = None) -> SynthView:
        """Forget the invented market that is here, and invent another: of the desk's markets, or of these, separated by
        commas. What one market does depends on the seed alone, not on which others are asked for."""
        if not 0 <= seed <= LARGEST_SEED:
            raise UsageError(f"{seed} is no seed; give a whole number from 0 to {LARGEST_SEED}.")
        if self.invent is None:
            raise Refused("No market can be invented here: this desk has no store for one.")
        symbols = self.markets if markets is None else parse_markets(filter(str.strip, markets.split(",")))
        if abroad := [symbol for symbol in symbols if symbol.venue.feed == FOREIGN_SPOT]:
            raise UsageError(f"Markets are invented in dollars, and {abroad[0]} is priced in {abroad[0].quote}.")
        begun = await self.invent(seed, symbols)
        count, last = sum(span.count for span in begun.spans), max(span.last for span in begun.spans)
        elsewhere = () if self.store.origin.synthetic else ("the desk reads what was recorded: ZUNO_RECORDING is own",)
        return SynthView(
            **_origin_fields(begun.origin),
            seed=seed,
            series=len(begun.spans),
            rows=count,
            last=last,
            set_aside=begun.written.bad,
            repeated=begun.written.same,
            corrected=begun.written.changed,
            said=f"{begun.origin.label}: {count:,} rows of {len(begun.spans)} series, up to {format_minute(last)} UTC.",
            notes=("its injected faults are listed by `zuno data check`", *elsewhere),
        )


def _flaw_view(flaw: Flaw) -> FlawView:
    place = format_stretch(flaw.first, flaw.last)
    return derive(FlawView, flaw, series=str(flaw.series), place=place, rule=rule_for(flaw))


def _origin_fields(origin: Origin) -> dict[str, bool | str]:
    return {"synthetic": origin.synthetic, "origin": origin.label}


def format_spans(spans: Sequence[tuple[int, int]]) -> str:
    (first, last), more = spans[0], len(spans) - 1
    return f"from {format_minute(first)} to {format_minute(last)} UTC" + (f" (and {more:,} more)" if more else "")


def format_minute(at: int) -> str:
    """A moment as people read it: as fine as it needs to be."""
    try:
        time = datetime.fromtimestamp(at / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{at} ms (unix)"
    if at % 60_000 == 0:
        return f"{time:%Y-%m-%d %H:%M}"
    return f"{time:%Y-%m-%d %H:%M:%S}" + (f".{at % 1000:03}" if at % 1000 else "")


def format_stretch(first: int, last: int) -> str:
    return f"{format_minute(first)} UTC" if first == last else f"{format_minute(first)} – {format_minute(last)} UTC"
