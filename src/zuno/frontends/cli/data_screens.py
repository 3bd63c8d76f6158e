"""How the market's past looks on a screen."""

from __future__ import annotations

from collections import Counter
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.app.data import DataCheckView, DataStatusView, FlawView, SynthView
from zuno.frontends.cli.layout import BAD, GOOD, QUIET, Rows, heading, noted

MOST_SHOWN: Final = 60


def shown_data(view: DataStatusView) -> RenderableType:
    table = Rows("series", "rows", "from – to", "in files", spare=("in files",))
    for span in view.series:
        table.add_row(span.series, f"{span.count:,}", span.place, f"{span.sealed:,}" if span.sealed else "")
    lines = [f"{count:,} × {kind} noted; `zuno data check` tells more" for kind, count in view.unsettled.items()]
    title = heading(f"The market's past, {view.origin}: {view.rows:,} rows")
    return Group(title, *([table] if view.series else []), *noted((*lines, *view.notes)))


def shown_synth(view: SynthView) -> RenderableType:
    dirt = f"{view.set_aside} rows no market can have made, {view.repeated} repeated, {view.corrected} corrected"
    return Group(heading(view.said), *noted((dirt, *view.notes)))


def shown_check(view: DataCheckView) -> RenderableType:
    table = Rows("series", "what", "when", "rows", "how", "done", spare=("done",))
    for flaw in view.flaws[:MOST_SHOWN]:
        table.add_row(flaw.series, flaw.kind, flaw.place, f"{flaw.count:,}", flaw.detail, _done(flaw))
    left = Counter(flaw.kind for flaw in view.flaws[MOST_SHOWN:])
    more = [f"{count:,} more × {kind}; `--json` has all of them" for kind, count in left.items()]
    title = heading(f"{view.checked} series of the market's past, {view.origin}")
    return Group(title, *([table] if view.flaws else []), *noted(more), _sum(view))


def _done(flaw: FlawView) -> Text:
    return Text(flaw.rule, style=QUIET) if flaw.mended is None else Text(flaw.mended, style=GOOD)


def _sum(view: DataCheckView) -> Text:
    if not view.flaws:
        return Text("Nothing is wrong.", style=GOOD)
    mended = f"{view.mended:,} mended, " if view.mended else ""
    return Text(f"{mended}{view.remaining:,} remain.", style=BAD if view.remaining else GOOD)
