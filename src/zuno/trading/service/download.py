"""The past of a symbol from the venues that have one, page by page, and only what is not here yet."""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

from zuno.kernel import arguments
from zuno.kernel.errors import ZunoError
from zuno.kernel.units import Millis, Seconds
from zuno.kernel.view import ForeignText, VerdictView, View
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol, parse_symbol
from zuno.present.document import Document, Tone, document, table
from zuno.present.values import count, foreign
from zuno.trading.data import intake
from zuno.trading.model.market import DAY_MS, Candle, Feed, Series, timeframe_of
from zuno.trading.model.wanted import wanted_series
from zuno.trading.ports.series import Batch, SeriesStore, Source
from zuno.trading.service.data import format_minute, format_spans

Tell = Callable[[str], None]
BARS_A_PAGE: Final = 5_000
"""Asked for and written at once: what a crash may cost, and what a line of progress tells of."""
DAYS_A_PAGE: Final[dict[Feed, int]] = {Feed.OPEN_INTEREST: 30, Feed.LONG_SHORT: 30, Feed.RATES: 30}
OTHER_DAYS: Final = 365
_EVER: Final = Millis(2**62)


class DownloadedView(View):
    series: str
    new: int
    here: int
    """Rows of that time that are kept now."""
    failure: ForeignText
    """Why it is not complete, if so."""
    beyond: ForeignText = ""
    """What of that time the venue no longer keeps, if any."""


class DownloadView(VerdictView):
    """`ok`: everything that can be downloaded is here; else exit code 4."""

    symbol: str
    since: int
    until: int
    series: tuple[DownloadedView, ...]
    not_downloadable: dict[str, ForeignText]
    """Series that no venue keeps a past of that time of, and why."""
    new: int
    said: str
    notes: tuple[str, ...] = ()

    def to_document(self) -> Document:
        lines = ((line, foreign(line.failure, Tone.BAD)) for line in self.series)
        rows = ((line.series, count(line.here), count(line.new), why) for line, why in lines)
        reasons: dict[str, list[str]] = {}
        for series, why in self.not_downloadable.items():
            reasons.setdefault(why, []).append(series)
        absent = (foreign(f"not downloadable: {', '.join(several)} ({why})") for why, several in reasons.items())
        beyond = (foreign(f"{line.series}: {line.beyond}") for line in self.series if line.beyond)
        return document(
            f"{self.symbol}: {self.said}",
            table(("series", "rows", "new", "why it is not complete"), rows, spare=("new",)),
            notes=(*absent, *beyond, *self.notes),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Downloads:
    """From every venue into one store, as history: each row is known from the moment it was complete. What lies among
    rows that are here already mends them or fills a hole, and is known from now."""

    sources: intake.Sources
    store: SeriesStore
    now: intake.Now
    _: KW_ONLY
    read_here: bool
    """The desk reads that store."""
    patience: float = intake.PATIENCE
    markets: tuple[Symbol, ...] = DEFAULT_SYMBOLS

    async def download(self, symbol: str, since: str, until: str | None, tell: Tell) -> DownloadView:
        """Venues are asked at the same time, each for one thing after the other. What fails is told, and the rest goes
        on; a second call asks for what is missing alone."""
        chosen = parse_symbol(symbol, self.markets)
        first, last = arguments.parse_period(since, until, Seconds(self.now() // 1_000))
        low, high = Millis(first * 1_000), Millis(last * 1_000 - 1)
        refused = dict(self._skipped_venues(chosen, high))
        by_venue: dict[str, list[Series[Any]]] = {}
        for series in wanted_series(chosen):
            if str(series) not in refused:
                by_venue.setdefault(series.venue, []).append(series)
        kept = {span.series: range(span.first, span.last + 1) for span in await self.store.spans()}
        found = await asyncio.gather(*(self._venue(mine, low, high, kept, tell) for mine in by_venue.values()))
        done = sorted((download for several in found for download in several), key=lambda download: download.series)
        return self._view(chosen, low, high, done, refused)

    def _skipped_venues(self, symbol: Symbol, until: Millis) -> Iterator[tuple[str, str]]:
        for series in wanted_series(symbol):
            if intake.is_streamed(series):
                yield str(series), "a stream has no past: `zuno data collect` hears it from now on"
            elif intake.is_snapshot_only(series) or series.feed in (Feed.NARRATIVE, Feed.NEWS):
                yield str(series), "venues tell it of now alone: `zuno data collect` keeps it from now on"
            elif (why := self.sources.closed.get(series.venue)) is not None:
                yield str(series), why
            elif until < (kept := intake.kept_since(series, self.now())):
                yield str(series), _gone_note(series, kept)

    async def _venue(
        self,
        several: Sequence[Series[Any]],
        since: Millis,
        until: Millis,
        kept: Mapping[Series[Any], range],
        tell: Tell,
    ) -> list[DownloadedView]:
        """`kept`: from the first row to the last that were here before, whenever they are of."""
        done = []
        for series in several:
            oldest = intake.kept_since(series, self.now())
            download = await self._series(series, Millis(max(since, oldest)), until, kept.get(series, range(0)), tell)
            if since < oldest:
                download = download.model_copy(update={"beyond": _gone_note(series, oldest)})
            result = download.failure or f"{download.here:,} rows, {download.new:,} of them new"
            tell(f"{download.series}: {result}{download.beyond and f'; {download.beyond}'}")
            done.append(download)
        return done

    async def _series(
        self, series: Series[Any], since: Millis, until: Millis, kept: range, tell: Tell
    ) -> DownloadedView:
        new, failure, began = 0, "", self.now()
        try:
            here = [row.at for row in await self.store.read(series, since, until, _EVER)]
            for low, high in _pages(series, since, until):
                there = here[bisect_left(here, low) : bisect_right(here, high)]
                for first, last in intake.find_missing(series, there, low, high):
                    fetched = await self.sources.ask_within(self.patience, series, first, last)
                    past = Batch(series, [row for row in fetched if row.at not in kept], source=Source.DOWNLOADED)
                    amended = [row for row in fetched if row.at in kept]
                    mending = Batch(series, amended, self.now(), Source.DOWNLOADED)
                    new += (await self.store.write([past, mending])).new
                if high < until and new:
                    tell(f"{series}: {new:,} new rows up to {format_minute(high + 1)} UTC")
        except ZunoError as error:
            failure = intake.clause(error)
        rows = await self.store.read(series, since, until, _EVER)
        # A venue that leaves something out without a word is told like one that fails.
        if not failure and (spans := intake.find_missing_spans(series, [row.at for row in rows], since, until, began)):
            failure = f"{series.venue} told nothing {format_spans(spans)}"
        return DownloadedView(series=str(series), new=new, here=len(rows), failure=failure)

    def _view(
        self, symbol: Symbol, since: Millis, until: Millis, done: Sequence[DownloadedView], refused: dict[str, str]
    ) -> DownloadView:
        new, here = sum(download.new for download in done), sum(download.here for download in done)
        failed = [download for download in done if download.failure]
        when = f"from {format_minute(since)} to {format_minute(until + 1)} UTC"
        said = f"{here:,} rows of {len(done)} series are here {when}, {new:,} of them new."
        notes = [] if self.read_here else ["the desk reads another store: ZUNO_RECORDING=own makes it read this one"]
        if failed:
            again = "the same command again asks for what is missing alone"
            notes.append(f"{len(failed)} series are not complete; {again}")
        return DownloadView(
            ok=not failed,
            symbol=symbol,
            since=since,
            until=until,
            series=tuple(done),
            not_downloadable=refused,
            new=new,
            said=said,
            notes=tuple(notes),
        )


def _gone_note(series: Series[Any], kept: Millis) -> str:
    return f"{series.venue} keeps nothing of before {format_minute(kept)} UTC"


def _pages(series: Series[Any], since: Millis, until: Millis) -> Iterator[tuple[Millis, Millis]]:
    if series.row is Candle:
        span = BARS_A_PAGE * timeframe_of(series).millis
    else:
        span = DAYS_A_PAGE.get(series.feed, OTHER_DAYS) * DAY_MS
    for low in range(since, until + 1, span):
        yield Millis(low), Millis(min(until, low + span - 1))
