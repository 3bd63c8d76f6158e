"""Going through the market's past for what is wrong with it, finest bars first, and mending what a rule can mend: a
coarse bar becomes what its finer bars make, any other missing bar is fetched again or stays a gap. Nothing is
interpolated. What is mended is known from its mending: who looks at an earlier moment sees what was known then."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final, TypeAlias

from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Millis
from zuno.markets.feeds import QUIET
from zuno.trading.measure.bars import aggregate, bars_inside, bars_per_bar
from zuno.trading.measure.columns import measure_overlaps, to_columns
from zuno.trading.measure.data_quality import (
    FROZEN_AFTER,
    FrozenFeedDetector,
    RowRun,
    describe_disagreement,
    find_gaps,
    print_interval,
)
from zuno.trading.model.market import MINUTE_MS, Candle, Feed, MacroRelease, Series, Timeframe, timeframe_of
from zuno.trading.ports.series import Batch, Flaw, SeriesStore, Source, Span

Fetch: TypeAlias = Callable[[Series[Candle], Millis, Millis], Awaitable[Sequence[Candle]]]
"""Asks the venue again for the bars that opened in that time."""
Now: TypeAlias = Callable[[], Millis]
EVER: Final = Millis(2**62)
WINDOW: Final = 4 * Timeframe.W1.millis
"""How much is held at a time; whole weeks, so that no bar lies in two windows."""
KEPT_NEWER: Final = "the newer is kept"
STANDS: Final = "another row stands in its place"


@dataclass(slots=True)
class Market:
    """The candles of one symbol at one venue, within one window."""

    venue: str
    spans: Mapping[Timeframe, Span]
    bars: dict[Timeframe, Sequence[Candle]] = field(default_factory=dict)
    """Oldest first, of the lengths that were gone through already, the finest first."""

    def build_bar(self, timeframe: Timeframe, at: Millis, *, partly: bool = False) -> tuple[Candle, str] | None:
        """The bar that the nearest finer bars make, and their name; None where one is missing. `partly`:
        from whatever bars there are, for venues that make none without a trade."""
        for fine, bars in reversed(self.bars.items()):
            parts = bars_inside(timeframe, at, bars)
            if len(parts) >= (1 if partly else bars_per_bar(timeframe, fine)):
                return aggregate(at, parts), f"its {len(parts)} {fine} bars"
        return None


class Check:
    def __init__(self, store: SeriesStore, now: Now, *, repair: bool, fetch: Fetch | None) -> None:
        self._store = store
        self._now = now
        self._repair = repair
        self._fetch = fetch
        self._found: list[Flaw] = []
        self._earlier: dict[tuple[str, Millis], list[Candle]] = {}
        self._settled: dict[tuple[str, Millis], str] = {}
        self._still: dict[str, FrozenFeedDetector] = {}
        self._present: Millis | None = None
        """An invented market's present is the moment after its end, so that its end stays what it was; ours is now."""

    async def run(self) -> tuple[tuple[Flaw, ...], int]:
        """What is wrong, with what was done about it, and how many notes were settled before."""
        noted = await self._store.flaws()
        for flaw in noted:
            if isinstance(flaw.replaced, Candle):
                self._earlier.setdefault((str(flaw.series), flaw.first), []).append(flaw.replaced)
        spans = await self._store.spans()
        if self._store.origin.synthetic:
            series = [span.series for span in spans if span.series.row is not MacroRelease]
            known = [moment for moment in await self._store.newest_known(series) if moment is not None]
            self._present = Millis(max(known) + 1) if known else None
        for span in spans:
            if span.series.feed in FROZEN_AFTER and span.series.row is not Candle:
                await self._watch(span)
            if doubled := await find_doubled(self._store, span):
                detail = "their intervals have another row: a window sums to more hours than it has"
                self._found.append(Flaw(span.series, "doubled", doubled[0], doubled[-1], len(doubled), detail))
        for market in _markets(spans):
            await self._check_candles(market)
        open_notes = [flaw for flaw in noted if flaw.mended is None]
        if self._repair:
            open_notes = await self._settle(open_notes)
        flaws = [*_join_gaps(self._found), *open_notes]
        return tuple(sorted(flaws, key=_order)), len(noted) - len(open_notes)

    # -- feeds that are no candles

    async def _watch(self, span: Span) -> None:
        for since in range(span.first, span.last + 1, WINDOW):
            rows = await self._store.read(span.series, Millis(since), Millis(since + WINDOW - 1), EVER)
            self._look(span.series, rows)
        self._look(span.series, (), ends=True)

    def _look(self, series: Series[Any], rows: Iterable[Any], *, ends: bool = False) -> None:
        still = self._still.setdefault(str(series), FrozenFeedDetector(series))
        stretches = [*map(still.see, rows), still.end() if ends else None]
        for stretch in filter(None, stretches):
            detail = f"{stretch.count} rows with the very same numbers"
            self._found.append(Flaw(series, "frozen", stretch.first, stretch.last, stretch.count, detail))

    # -- candles

    async def _check_candles(self, market: Market) -> None:
        first = min(span.first for span in market.spans.values())
        last = max(span.last for span in market.spans.values())
        for since in range(Timeframe.W1.floor(first), last + 1, WINDOW):
            until = since + WINDOW - 1
            market.bars = {}
            for timeframe, span in market.spans.items():  # finest first: what is mended counts for the next
                rows = await self._store.read(span.series, Millis(since), Millis(until), EVER)
                self._look(span.series, rows)
                bars = {bar.at: bar for bar in rows}
                await self._check_timeframe(market, timeframe, bars, max(span.first, since), min(span.last, until))
                market.bars[timeframe] = sorted(bars.values())
        for span in market.spans.values():
            self._look(span.series, (), ends=True)

    async def _check_timeframe(
        self, market: Market, timeframe: Timeframe, bars: dict[Millis, Candle], first: int, last: int
    ) -> None:
        """The bars of one length: what is missing, and what disagrees; mended, they stand among the others."""
        series = market.spans[timeframe].series
        for hole in find_gaps(timeframe, bars, first, last):
            await self._handle_gap(market, timeframe, bars, hole)
        mended: list[Candle] = []
        for at in sorted(bars) if market.bars else ():  # the finest have nobody to ask
            better = self._compare_with_finer(market, timeframe, bars[at])
            if better is not None and self._repair:
                bars[at] = better
                mended.append(better)
        await self._put(series, mended)

    def _compare_with_finer(self, market: Market, timeframe: Timeframe, bar: Candle) -> Candle | None:
        """The bar that should replace this one; None where none should."""
        series = market.spans[timeframe].series
        summed = timeframe.millis // MINUTE_MS  # whoever made either of them may have added up its minutes
        known = market.build_bar(timeframe, bar.at)
        if known is None:
            if market.venue in QUIET and (some := market.build_bar(timeframe, bar.at, partly=True)) is not None:
                self._note_disagreement(series, bar.at, describe_disagreement(bar, some[0], summed), None)
            return None
        whole, made_by = known
        place = (str(series), bar.at)
        fault = describe_disagreement(bar, whole, summed)
        if fault is None:
            self._settled.setdefault(place, f"kept, as {made_by} make it")
            return None
        agreeing = [bar for bar in self._earlier.get(place, ()) if describe_disagreement(bar, whole, summed) is None]
        done = f"put back the earlier bar, which {made_by} make" if agreeing else f"rebuilt from {made_by}"
        self._settled[place] = done
        self._note_disagreement(series, bar.at, fault, done)
        return agreeing[-1] if agreeing else whole

    def _note_disagreement(self, series: Series[Candle], at: Millis, fault: str | None, done: str | None) -> None:
        if fault is not None:
            mended = done if self._repair else None
            self._found.append(Flaw(series, "disagreement", at, at, 1, fault, mended))

    async def _handle_gap(self, market: Market, timeframe: Timeframe, bars: dict[Millis, Candle], hole: RowRun) -> None:
        """Bars that are not here: made of finer ones, asked for again, or said to be missing."""
        series = market.spans[timeframe].series
        left: Sequence[int] = range(hole.first, hole.last + 1, timeframe.millis)
        if any(market.bars.values()):
            left = await self._rebuild_bars(market, timeframe, bars, left)
            if market.venue in QUIET:
                left = [at for at in left if market.build_bar(timeframe, Millis(at), partly=True) is not None]
        elif market.venue in QUIET:
            left = ()
        fetched, why = await self._fetch_again(series, left)
        bars.update(fetched)
        if fetched:
            self._note_missing(series, [at for at in left if at in fetched], why, "fetched again")
            left = [at for at in left if at not in fetched]
        self._note_missing(series, left, why, None)

    async def _rebuild_bars(
        self, market: Market, timeframe: Timeframe, bars: dict[Millis, Candle], missing: Sequence[int]
    ) -> list[int]:
        """Rebuild missing bars from finer ones; returns those that stay missing."""
        series = market.spans[timeframe].series
        rebuilt: list[Candle] = []
        left: list[int] = []
        for moment in missing:
            at = Millis(moment)
            if (known := market.build_bar(timeframe, at)) is None:
                left.append(at)
                continue
            done = f"rebuilt from {known[1]}"
            self._note_missing(series, (at,), f"{known[1]} are here", done if self._repair else None)
            if self._repair:
                self._settled[str(series), at] = done
                bars[at] = known[0]
                rebuilt.append(known[0])
        await self._put(series, rebuilt)
        return left

    def _note_missing(self, series: Series[Candle], moments: Sequence[int], detail: str, mended: str | None) -> None:
        """One note for each run of them: of years there may be millions."""
        step = timeframe_of(series).millis
        for first, last in _runs(moments, step):
            count = (last - first) // step + 1
            self._found.append(Flaw(series, "gap", Millis(first), Millis(last), count, detail, mended))

    async def _fetch_again(self, series: Series[Candle], missing: Sequence[int]) -> tuple[Mapping[Millis, Candle], str]:
        """What the venue has of these, and the reason for the rest."""
        if not missing or not self._repair or self._fetch is None:
            return {}, "no finer bars make them" if timeframe_of(series) is not Timeframe.M1 else "nothing was recorded"
        since, until = Millis(missing[0]), Millis(missing[-1])
        try:
            rows = await self._fetch(series, since, until)
        except (Unavailable, Malformed) as error:
            return {}, f"asked for again in vain: {error}"
        wanted = frozenset(missing)
        await self._put(series, [row for row in rows if row.at in wanted])
        stored = await self._store.read(series, since, until, EVER)
        return {row.at: row for row in stored}, "the venue has none either"

    async def _put(self, series: Series[Candle], rows: Sequence[Candle]) -> None:
        if rows:
            closed = max(row.at for row in rows) + timeframe_of(series).millis
            known = Millis(max(closed, self._now() if self._present is None else self._present))
            await self._store.write([Batch(series, rows, known, Source.REPAIRED)])

    # -- what the store had noted

    async def _settle(self, open_notes: Sequence[Flaw]) -> list[Flaw]:
        """Note what became of conflicts and of rows that were set aside, those included that mending made."""
        done: dict[tuple[str, Millis, str, str], Flaw] = {}
        for flaw in await self._store.flaws():
            if flaw.mended is None and (word := await self._word(flaw)) is not None:
                done[_order(flaw)] = replace(flaw, mended=word)
        await self._store.mend(list(done.values()))
        return [done.get(_order(flaw), flaw) for flaw in open_notes]

    async def _word(self, flaw: Flaw) -> str | None:
        if flaw.kind == "conflict":
            return self._settled.get((str(flaw.series), flaw.first), KEPT_NEWER)
        stands = flaw.kind == "bad" and await self._store.read(flaw.series, flaw.first, flaw.first, EVER)
        return self._settled.get((str(flaw.series), flaw.first), STANDS) if stands else None


def count_missing(span: Span) -> int | None:
    """Bars that should be between the first and the last and are not; None of what are no bars or need not be there."""
    if span.series.row is not Candle or span.series.venue in QUIET:
        return None
    return (span.last - span.first) // timeframe_of(span.series).millis + 1 - span.count


async def find_doubled(store: SeriesStore, span: Span) -> list[Millis]:
    """Rows of an interval that has another one, as a file on a local clock leaves them."""
    if print_interval(span.series) is None:
        return []
    rows = await store.read(span.series, span.first, span.last, EVER)
    _, beside = measure_overlaps(to_columns(span.series, rows), to_columns(span.series, ()))
    return [row.at for row, gap in zip(rows, beside, strict=True) if gap]


async def find_holes(store: SeriesStore, span: Span) -> list[RowRun]:
    timeframe, missing = timeframe_of(span.series), count_missing(span)
    holes: list[RowRun] = []
    for since in range(span.first, span.last + 1, WINDOW):
        until = min(since + WINDOW - timeframe.millis, span.last)
        rows = await store.read(span.series, Millis(since), Millis(until), EVER)
        for hole in find_gaps(timeframe, [row.at for row in rows], since, until):
            if holes and holes[-1].last + timeframe.millis == hole.first:
                before = holes.pop()
                hole = RowRun(before.first, hole.last, before.count + hole.count)
            holes.append(hole)
        if sum(hole.count for hole in holes) == missing:
            break
    return holes


_RULES: Final = {
    "gap": "fetched again where a live source is configured, else it stays a gap",
    "disagreement": "becomes what its finer bars make, where all of them are here",
    "conflict": "the one that agrees with its finer bars, else the newer",
    "bad": "set aside; what is missing then is a gap",
}


def rule_for(flaw: Flaw) -> str:
    """What is done about such a flaw by `--repair`."""
    rebuilt = flaw.kind == "gap" and flaw.detail.endswith("are here")
    return "rebuilt from its finer bars" if rebuilt else _RULES.get(flaw.kind, "left as it came")


def _markets(spans: Sequence[Span]) -> list[Market]:
    grouped: dict[tuple[str, str], dict[Timeframe, Span]] = {}
    for span in spans:
        if span.series.feed is Feed.CANDLES:
            symbol, _, length = span.series.name.rpartition("/")
            grouped.setdefault((span.series.venue, symbol), {})[Timeframe(length)] = span
    return [
        Market(venue, {timeframe: held[timeframe] for timeframe in Timeframe if timeframe in held})
        for (venue, _), held in grouped.items()
    ]


def _runs(moments: Sequence[int], step: int) -> Iterator[tuple[int, int]]:
    """The first and the last of those that follow each other at that step; they are in order."""
    if isinstance(moments, range):
        yield from [(moments[0], moments[-1])] if moments else []
        return
    for _, run in groupby(enumerate(moments), lambda item: item[1] - item[0] * step):
        times = [at for _, at in run]
        yield times[0], times[-1]


def _join_gaps(flaws: Sequence[Flaw]) -> list[Flaw]:
    """Neighbouring gaps of one cause as one."""
    joined: list[Flaw] = []
    for flaw in sorted(flaws, key=_order):
        if joined and _continues(joined[-1], flaw):
            held = joined.pop()
            flaw = replace(held, last=flaw.last, count=held.count + flaw.count)
        joined.append(flaw)
    return joined


def _continues(held: Flaw, flaw: Flaw) -> bool:
    if (held.kind, flaw.kind) != ("gap", "gap") or held.series != flaw.series:
        return False
    near = flaw.first == held.last + timeframe_of(flaw.series).millis
    return near and (held.detail, held.mended) == (flaw.detail, flaw.mended)


def _order(flaw: Flaw) -> tuple[str, Millis, str, str]:
    return str(flaw.series), flaw.first, flaw.kind, flaw.detail
