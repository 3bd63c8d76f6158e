"""What stands under the price: volume, who took it, what is open and what holding it costs, bar by bar."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from typing import Any, Final

from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.trading.chart.scales import day_text, value_axis
from zuno.trading.measure.bars import Bars
from zuno.trading.measure.derivatives import FundingFigures, funding_figures
from zuno.trading.measure.indicators import cvd
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.chart import MissingPanel, Panel, PanelShape, Values
from zuno.trading.model.market import Funding, Level, Series, Symbol, funding, open_interest
from zuno.trading.model.venues import PERPETUALS

LEAST_SHARE: Final = 0.5
"""Of the bars that the best known venue speaks of: one that speaks of fewer would only shorten the sum."""
_WHY: Final = 160


@dataclass(frozen=True, slots=True)
class OpenInterest:
    """Base units at the end of each bar, over the same venues in all of them."""

    values: Values
    venues: tuple[str, ...]
    dropped: tuple[str, ...]


def panels(bundle: Bundle, bars: Bars, opened: OpenInterest | MissingPanel) -> tuple[Panel | MissingPanel, ...]:
    return (
        _volume(bars, bundle.symbol),
        _draw_cvd(bars, bundle.symbol),
        opened if isinstance(opened, MissingPanel) else _draw_open_interest(bundle, bars, opened),
        _funding(bundle, bars),
    )


def blank_panels(why: str) -> tuple[MissingPanel, ...]:
    return tuple(MissingPanel(title, why) for title in ("volume", "CVD", "open interest", "funding"))


def opened_by_bar(bundle: Bundle, bars: Bars) -> OpenInterest | MissingPanel:
    """The sum over the venues that are known at the end and at no less than half as many bars as the best known."""
    series = {venue: open_interest(venue, bundle.symbol) for venue in PERPETUALS}
    known = {venue: _last_within(bars, bundle.rows(rows)) for venue, rows in series.items()}
    counts = {venue: sum(value is not None for value in values) for venue, values in known.items()}
    most = max(counts.values())
    if not most:
        return MissingPanel("open interest", _why(bundle, series, "no reading is of a bar that is shown"))
    newest = max(place for values in known.values() for place, value in enumerate(values) if value is not None)
    kept = [venue for venue in PERPETUALS if counts[venue] >= LEAST_SHARE * most and known[venue][newest] is not None]
    sums = zip(*(known[venue] for venue in kept), strict=True)
    values = tuple(None if None in row else fsum(value for value in row if value is not None) for row in sums)
    return OpenInterest(values, tuple(kept), tuple(venue for venue in PERPETUALS if venue not in kept))


def newest(values: Values) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)


def _volume(bars: Bars, symbol: Symbol) -> Panel:
    values: tuple[float, ...] = tuple(bars.volume.tolist())
    rising = tuple((bars.close >= bars.open).tolist())
    axis = value_axis(values, from_zero=True)
    return Panel("volume", f"volume, {symbol.base}", PanelShape.BARS, axis, values, rising, values[-1], symbol.base, "")


def _draw_cvd(bars: Bars, symbol: Symbol) -> Panel | MissingPanel:
    values = tuple(value if isfinite(value) else None for value in cvd(bars).tolist())
    known = [value for value in values if value is not None]
    if not known:
        return MissingPanel("CVD", "the venue does not say in any bar shown who took its volume")
    gone = len(values) - len(known)
    note = f"unknown in {gone} bars, from zero again after each" if gone else ""
    title = f"CVD since the first bar shown, {symbol.base}"
    axis = value_axis(known, from_zero=True)
    return Panel("cvd", title, PanelShape.LINE, axis, values, (), known[-1], symbol.base, note)


def _draw_open_interest(bundle: Bundle, bars: Bars, opened: OpenInterest) -> Panel:
    known = [value for value in opened.values if value is not None]
    title = f"open interest, {bundle.symbol.base}, {' + '.join(opened.venues)}"
    notes = [*_since(bars, opened.values), *_stale(bundle, [open_interest(v, bundle.symbol) for v in opened.venues])]
    notes += [f"without {', '.join(opened.dropped)}"] if opened.dropped else []
    axis = value_axis(known, from_zero=False)
    unit = bundle.symbol.base
    return Panel("open_interest", title, PanelShape.LINE, axis, opened.values, (), known[-1], unit, "; ".join(notes))


def _funding(bundle: Bundle, bars: Bars) -> Panel | MissingPanel:
    """Of the first venue with a rate to believe: the mean of each bar's settled rates, as if paid every eight hours."""
    series = {venue: funding(venue, bundle.symbol) for venue in PERPETUALS}
    for venue, rates in series.items():
        values, dropped = _mean_within(bars, bundle.rows(rates))
        known = [value for value in values if value is not None]
        if known:
            notes = [*_since(bars, values), *_stale(bundle, [rates])]
            notes += [f"{dropped} rates could not be believed"] if dropped else []
            rising = tuple(value is not None and value >= 0 for value in values)
            title, axis = f"funding, % per 8 h, {venue}, mean of each bar", value_axis(known, from_zero=True)
            return Panel(
                "funding", title, PanelShape.BARS, axis, values, rising, known[-1], "% per 8 h", "; ".join(notes)
            )
    return MissingPanel(
        "funding", _why(bundle, series, "no rate that can be believed was settled in a bar that is shown")
    )


def _last_within(bars: Bars, rows: Sequence[Level]) -> Values:
    """The last reading of each bar, its end included."""
    sound = [row for row in rows if isfinite(row.value) and row.value > 0]
    at = [row.at for row in sound]
    found: list[float | None] = []
    for opened in bars.at.tolist():
        place = bisect_right(at, opened + bars.timeframe.millis) - 1
        found.append(sound[place].value if place >= 0 and at[place] > opened else None)
    return tuple(found)


def _mean_within(bars: Bars, rows: Sequence[Funding]) -> tuple[Values, int]:
    """Per cent for eight hours, and how many rates of the time shown were dropped."""
    at = [row.at for row in rows]
    found: list[float | None] = []
    dropped = 0
    for opened in bars.at.tolist():
        within = rows[bisect_right(at, opened) : bisect_right(at, opened + bars.timeframe.millis)]
        figures = [figure for figure in map(funding_figures, within) if isinstance(figure, FundingFigures)]
        dropped += len(within) - len(figures)
        found.append(100 * fsum(figure.per_8h for figure in figures) / len(figures) if figures else None)
    return tuple(found), dropped


def _since(bars: Bars, values: Values) -> list[str]:
    first = next(place for place, value in enumerate(values) if value is not None)
    return [f"absent before {day_text(int(bars.at[first]))}"] if first else []


def _stale(bundle: Bundle, series: Sequence[Series[Any]]) -> list[str]:
    blocks = [block for each in series if (block := bundle.block(each)) is not None and block.stale]
    return [f"STALE: {block.series.venue} of {ago(block.age)}" for block in blocks]


def _why(bundle: Bundle, series: Mapping[str, Series[Any]], otherwise: str) -> str:
    """Why none of these is here, each reason once."""
    reasons = {venue: bundle.why_absent(each) for venue, each in series.items()}
    told: dict[str, list[str]] = {}
    for venue, why in reasons.items():
        told.setdefault(plain_text(why, _WHY) if why else otherwise, []).append(venue)
    return "; ".join(f"{', '.join(venues)}: {why}" for why, venues in told.items())


def ago(seconds: int) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


def ends_at(bars: Bars) -> Millis:
    return Millis(int(bars.at[-1]) + bars.timeframe.millis)
