"""How the market's past looks on a screen."""

from __future__ import annotations

from collections import Counter
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, GOOD, QUIET, Rows, heading, notes_block
from zuno.trading.service.collector import CollectedView, CollectView, RoundView
from zuno.trading.service.data import DataCheckView, DataStatusView, FlawView, SpanView, SynthView, format_minute
from zuno.trading.service.download import DownloadView
from zuno.trading.service.imports import ImportView

MOST_SHOWN: Final = 60
MOST_NAMED: Final = 6
MOST_LINES: Final = 10


def show_data(view: DataStatusView) -> RenderableType:
    table = Rows("series", "rows", "from – to", "came from", "missing", "in files", spare=("in files", "came from"))
    lines = []
    for span in view.series:
        sealed, missing = f"{span.sealed:,}" if span.sealed else "", f"{span.missing:,}" if span.missing else ""
        table.add_row(span.series, f"{span.count:,}", span.place, _came_from(span), missing, sealed)
        shown = [f"{gap.place} ({gap.count:,})" for gap in span.gaps[:MOST_NAMED]]
        more = f" and {len(span.gaps) - MOST_NAMED} more" if len(span.gaps) > MOST_NAMED else ""
        lines += [f"missing of {span.series}: {', '.join(shown)}{more}"] if shown else []
    lines += [f"{count:,} × {kind} noted; `zuno data check` tells more" for kind, count in view.unsettled.items()]
    title = heading(f"The market's past, {view.origin}: {view.rows:,} rows")
    return Group(title, *([table] if view.series else []), *notes_block((*lines, *view.notes)))


def _came_from(span: SpanView) -> str:
    """Each way once; of imported files the first and how many more."""
    ways = list(dict.fromkeys(source.source for source in span.sources if not source.file))
    files = [source.file for source in span.sources if source.file]
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    return ", ".join([*ways, *([f"{files[0]}{more}"] if files else [])])


def show_synth(view: SynthView) -> RenderableType:
    dirt = f"{view.set_aside} rows no market can have made, {view.repeated} repeated, {view.corrected} corrected"
    return Group(heading(view.said), *notes_block((dirt, *view.notes)))


def show_check(view: DataCheckView) -> RenderableType:
    table = Rows("series", "what", "when", "rows", "how", "done", spare=("done",))
    for flaw in view.flaws[:MOST_SHOWN]:
        table.add_row(flaw.series, flaw.kind, flaw.place, f"{flaw.count:,}", flaw.detail, _repair_text(flaw))
    left = Counter(flaw.kind for flaw in view.flaws[MOST_SHOWN:])
    more = [f"{count:,} more × {kind}; `--json` has all of them" for kind, count in left.items()]
    title = heading(f"{view.checked} series of the market's past, {view.origin}")
    return Group(title, *([table] if view.flaws else []), *notes_block(more), _sum(view))


def _repair_text(flaw: FlawView) -> Text:
    return Text(flaw.rule, style=QUIET) if flaw.mended is None else Text(flaw.mended, style=GOOD)


def _sum(view: DataCheckView) -> Text:
    if not view.flaws:
        return Text("Nothing is wrong.", style=GOOD)
    mended = f"{view.mended:,} mended, " if view.mended else ""
    return Text(f"{mended}{view.remaining:,} remain.", style=BAD if view.remaining else GOOD)


# -- the collector


def collect_line(view: CollectView) -> str:
    """How it stands, as one line of a log."""
    heard = [stream for stream in view.streams if stream.heard]
    parts = [
        f"{view.fresh} of {view.series} series fresh",
        f"{len(heard)} of {len(view.streams)} streams heard",
        f"{view.rows:,} new rows",
    ]
    parts += [f"{view.unwritten} unwritten"] if view.unwritten else []
    parts += [f"the store: {view.store}"] if view.store else []
    parts += [
        f"the stream of {stream.venue} since {_clock(stream.since)}: {stream.why}"
        for stream in view.streams
        if not stream.heard
    ]
    parts += [
        f"{series.series} fails since {_clock(series.since)}: {series.why}" for series in view.failing[:MOST_NAMED]
    ]
    if len(view.failing) > MOST_NAMED:
        parts.append(f"{len(view.failing) - MOST_NAMED} more fail")
    if view.waiting_for:
        parts.append(f"{len(view.waiting_for)} are waited for")
    parts += [f"{series} is given up {where}" for series, where in view.given_up.items()]
    return f"{_clock(view.at)} UTC  {'; '.join(parts)}"


def show_round(view: RoundView) -> RenderableType:
    table = Rows("series", "why")
    for series in view.failing:
        table.add_row(series.series, Text(series.why, style=BAD))
    left = [f"{venue} is not asked: {why}" for venue, why in view.unasked.items()]
    left += [f"{series} is given up {where}" for series, where in view.given_up.items()]
    notes = (*left, *view.notes)
    return Group(heading(view.said), *([table] if view.failing else []), *notes_block(notes))


def show_collected(view: CollectedView) -> RenderableType:
    return Text(view.said)


def show_download(view: DownloadView) -> RenderableType:
    table = Rows("series", "rows", "new", "why it is not complete", spare=("new",))
    for row in view.series:
        table.add_row(row.series, f"{row.here:,}", f"{row.new:,}", Text(row.failure, style=BAD))
    reasons: dict[str, list[str]] = {}
    for series, why in view.not_downloadable.items():
        reasons.setdefault(why, []).append(series)
    left = [f"not downloadable: {', '.join(several)} ({why})" for why, several in reasons.items()]
    left += [f"{series.series}: {series.beyond}" for series in view.series if series.beyond]
    return Group(heading(f"{view.symbol}: {view.said}"), table, *notes_block((*left, *view.notes)))


def show_import(view: ImportView) -> RenderableType:
    table = Rows("file", "series", "rows", "new", "changed", "from – to", spare=("changed", "from – to"))
    lines: list[str] = []
    for file in view.files:
        name = file.file.rpartition("/")[2]
        for part in file.series:
            table.add_row(name, part.series, f"{part.rows:,}", f"{part.new:,}", f"{part.changed:,}", part.place)
        lines += [f"{name}: {note}" for note in file.notes]
        lines += [f"{name}: {file.repeated:,} rows stood in it twice"] if file.repeated else []
        lines += [f"{name}: {file.blank:,} rows have no value"] if file.blank else []
        lines += [f"{name}, line {line.line:,}: {line.reason}" for line in file.lines[:MOST_LINES]]
        rest = file.set_aside - min(MOST_LINES, len(file.lines))
        lines += [f"{name}: {rest:,} more lines set aside; `--json` has them by reason"] if rest else []
    failed = [Text(f"{file.file}: {file.failure}", style=BAD) for file in view.files if file.failure]
    made = [f"{count:,} bars of {series} made" for series, count in view.made.items()]
    shown = [table] if any(file.series for file in view.files) else []
    return Group(heading(view.said), *shown, *failed, *notes_block((*lines, *made, *view.notes)))


def _clock(at: int) -> str:
    return format_minute(at // 1_000 * 1_000)
