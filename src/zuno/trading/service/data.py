"""The market's past as a person asks about it: what is here, what is wrong with it, and what was done about that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.view import ForeignText, VerdictView, View
from zuno.trading.data.check import Check, Fetch, Now, count_missing, find_doubled, find_holes, rule_for
from zuno.trading.model.market import Series
from zuno.trading.model.venues import is_read
from zuno.trading.ports.series import Flaw, Origin, RenewedStore, SeriesStore, Span
from zuno.trading.service.origin_view import OriginView

Invent: TypeAlias = Callable[[int], Awaitable[RenewedStore]]
"""Fills the store of invented markets anew from a seed."""
LARGEST_SEED: Final = 2**63 - 1
MOST_GAPS: Final = 20


class SourceOfRowsView(View):
    """How rows of a series came in."""

    source: str
    """collected, downloaded, imported or repaired."""
    file: ForeignText
    """Of what was imported: the name of its file, or the bars they were made of."""
    rows: int
    first: int
    last: int


class GapView(View):
    """Bars in a row that are missing."""

    first: int
    last: int
    count: int
    place: str


class SpanView(View):
    """How much of a series is here; times are Unix milliseconds."""

    series: str
    count: int
    first: int
    last: int
    sealed: int
    """Of these, how many rest in files of history."""
    place: str
    """From when to when, for people."""
    sources: tuple[SourceOfRowsView, ...] = ()
    missing: int | None = None
    """Bars that should be between the first and the last and are not; null of what are no bars or need not be there."""
    gaps: tuple[GapView, ...] = ()
    """The longest of them, oldest first."""
    used: bool
    """Whether the desk reads this series; what it reads ends at `last`."""
    used_from: ForeignText
    """How the newest of its rows came in, and from which file."""
    doubled: int
    """Rows of an interval that has another one: hours that would be counted twice."""


class DataStatusView(OriginView):
    """What is here, and where it came from."""

    chosen_by: str
    """Why the desk reads this store and not the other."""
    series: tuple[SpanView, ...]
    rows: int
    unsettled: dict[str, int]
    """What was noted when rows came in and nothing was done about yet, by kind."""
    notes: tuple[str, ...] = ()


class FlawView(View):
    series: str
    kind: str
    first: int
    last: int
    count: int
    place: str
    """When, for people."""
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
    """How many series were gone through."""
    flaws: tuple[FlawView, ...]
    mended: int
    remaining: int
    settled_before: int
    """Notes about which something was done earlier."""


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


class DataDesk:
    """One store of the market's past."""

    def __init__(
        self, store: SeriesStore, now: Now, fetch: Fetch | None = None, invent: Invent | None = None, choice: str = ""
    ) -> None:
        """`fetch`: a live source to ask again for bars that are missing; `choice`: why the desk reads this store."""
        self._choice = choice
        self._store = store
        self._now = now
        self._fetch = fetch
        self._invent = invent

    async def status(self) -> DataStatusView:
        spans, flaws = await self._store.spans(), await self._store.flaws()
        sources: dict[Series[Any], list[SourceOfRowsView]] = {}
        for found in await self._store.sources():
            sources.setdefault(found.series, []).append(SourceOfRowsView.model_validate(found, from_attributes=True))
        views = tuple([await self._span_view(span, sources.get(span.series, [])) for span in spans])
        doubled = [f"{view.series} counts {view.doubled:,} intervals twice" for view in views if view.doubled]
        filled = [self._choice] if spans else [f"nothing is here yet: {_how_to_fill(self._store.origin)}"]
        return DataStatusView(
            **_origin_fields(self._store.origin),
            chosen_by=self._choice,
            series=views,
            rows=sum(span.count for span in spans),
            unsettled=dict(sorted(Counter(flaw.kind for flaw in flaws if flaw.mended is None).items())),
            notes=(*filter(None, filled), *doubled),
        )

    async def _span_view(self, span: Span, sources: Sequence[SourceOfRowsView]) -> SpanView:
        missing = count_missing(span)
        runs = await find_holes(self._store, span) if missing else []
        newest = max(sources, key=lambda source: source.last, default=None)
        longest = sorted(sorted(runs, key=lambda run: -run.count)[:MOST_GAPS], key=lambda run: run.first)
        return SpanView(
            series=str(span.series),
            **{name: getattr(span, name) for name in ("count", "first", "last", "sealed")},
            place=format_stretch(span.first, span.last),
            sources=tuple(sources),
            missing=missing,
            gaps=tuple(GapView(**asdict(run), place=format_stretch(run.first, run.last)) for run in longest),
            used=is_read(span.series),
            used_from="" if newest is None else f"{newest.source} {newest.file}".strip(),
            doubled=len(await find_doubled(self._store, span)),
        )

    async def check(self, *, repair: bool = False) -> DataCheckView:
        flaws, before = await Check(self._store, self._now, repair=repair, fetch=self._fetch).run()
        mended = sum(flaw.mended is not None for flaw in flaws)
        return DataCheckView(
            ok=mended == len(flaws),
            **_origin_fields(self._store.origin),
            checked=len(await self._store.spans()),
            flaws=tuple(map(_flaw_view, flaws)),
            mended=mended,
            remaining=len(flaws) - mended,
            settled_before=before,
        )

    async def synth(self, seed: int) -> SynthView:
        """Forget the invented market that is here, and invent another."""
        if not 0 <= seed <= LARGEST_SEED:
            raise UsageError(f"{seed} is no seed; give a whole number from 0 to {LARGEST_SEED}.")
        if self._invent is None:
            raise Refused("No market can be invented here: this desk has no store for one.")
        begun = await self._invent(seed)
        count, last = sum(span.count for span in begun.spans), max(span.last for span in begun.spans)
        elsewhere = () if self._store.origin.synthetic else ("the desk reads what was recorded: ZUNO_RECORDING is own",)
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


def _how_to_fill(origin: Origin) -> str:
    if origin.synthetic:
        return "`zuno data synth` invents a market"
    return (
        "`zuno data import` reads files, `zuno data download` fetches the past venues keep, `zuno data collect` keeps "
        "what comes"
    )


def _origin_fields(origin: Origin) -> dict[str, bool | str]:
    return {"synthetic": origin.synthetic, "origin": origin.label}


def _flaw_view(flaw: Flaw) -> FlawView:
    plain = {name: getattr(flaw, name) for name in ("kind", "first", "last", "count", "detail", "mended")}
    place = format_stretch(flaw.first, flaw.last)
    return FlawView(series=str(flaw.series), place=place, rule=rule_for(flaw), **plain)


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
