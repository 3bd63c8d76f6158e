"""The report of a trading run: its view, its pictures, and one HTML page that needs no other file."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from zuno.kernel.numbers_text import format_number, format_signed, format_span
from zuno.markets.market import Symbol
from zuno.trading.service import run_view, runs_view

if TYPE_CHECKING:
    from jinja2 import Template

    from zuno.trading.service.runs import Cycles, Listen
    from zuno.trading.service.runs_view import RunRecord


@dataclass(frozen=True, slots=True)
class Report:
    view: run_view.RunView
    page: str
    image: bytes | None
    """The market's chart, a PNG; None if the run drew none."""
    trade: bytes | None = None
    """The planned trade drawn as a PNG; None if the run opened nothing."""


class Reports:
    def __init__(self, cycles: Cycles) -> None:
        self._cycles = cycles

    async def run(
        self,
        symbol: str,
        mode: str,
        as_of: str | None,
        listen: Listen,
        *,
        chart: bool = True,
        execute: bool = False,
        account: str | None = None,
        notes: tuple[str, ...] = (),
        run_id: str | None = None,
    ) -> Report:
        """Run a cycle and report it. With `execute` the ruling is traded in `account`; without, nothing is sent.
        `notes` are put before the view's own. `run_id` is given when the caller has announced the run already."""
        full_name = await self._cycles.account_name(symbol, as_of, account) if execute else None
        outcome = await self._cycles.run(symbol, mode, as_of, listen, chart=chart, account=full_name, run_id=run_id)
        report = await self.show(outcome.run_id)
        return replace(report, view=report.view.model_copy(update={"notes": (*notes, *report.view.notes)}))

    async def resume(self, run_id: str, listen: Listen) -> Report:
        """Finish a run that was interrupted, and report it; a run that has ended is only reported."""
        if not await self._cycles.has_ended(run_id):
            await self._cycles.resume(run_id, listen)
        return await self.show(run_id)

    async def show(self, run_id: str) -> Report:
        """Report a run that has ended; `Refused` for one that has not."""
        record = await self._cycles.record(run_id)
        return build_report(record, await self._cycles.paint_trade(record))


def build_report(record: RunRecord, trade: bytes | None = None) -> Report:
    """`trade` is the picture of the planned trade. A chart that is no PNG is left out."""
    view = runs_view.run_view(record)
    chart = None if record.outcome is None else record.outcome.chart
    image = record.picture if chart is not None and chart.media_type == "image/png" else None
    return Report(view, page(view, image, trade), image, trade)


def page(view: run_view.RunView, image: bytes | None, trade: bytes | None = None) -> str:
    """One self-contained HTML document: no script, nothing fetched, all text escaped."""
    return _page_template().render(
        run=view,
        picture=None if image is None else _data_url(image),
        trade_picture=None if trade is None else _data_url(trade),
        arrow=run_view.ARROW,
        stance=run_view.STANCE,
        experts=run_view.expert_entries(view),
        ages=run_view.feed_ages(view.sources),
        legs=run_view.price_distances(view.decision),
        reasons=tuple(run_view.judge_reasons(view)),
        factors=run_view.key_factors(view),
        base=Symbol(view.symbol).base,
        cost=view.llm_cost_usd,
        headline=run_view.headline_notes(view),
        shared=run_view.shared_reason(view),
    )


@cache
def _page_template() -> Template:
    """Cached, because compiling the template takes longer than filling it."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= _FILTERS
    template = files("zuno.trading.service") / "templates" / "run.html"
    return environment.from_string(template.read_text(encoding="utf-8"))


def _data_url(image: bytes) -> str:
    return f"data:image/png;base64,{b64encode(image).decode('ascii')}"


_FILTERS: Final = {
    "leaning": run_view.bias_text,
    "number": format_number,
    "signed": format_signed,
    "span": format_span,
    "spoke": run_view.SPOKE.__getitem__,
}
