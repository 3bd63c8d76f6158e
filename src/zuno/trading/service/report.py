"""Runs of the trading desk as people look at them: a view, its picture, and one page that needs nothing beside it."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from zuno.kernel.numbers_text import format_number, format_span
from zuno.kernel.numbers_text import format_signed as format_signed
from zuno.trading.model.market import Symbol
from zuno.trading.rules.score import Entry as Entry
from zuno.trading.service.run_view import (
    ARROW,
    SPOKE,
    STANCE,
    RunView,
    bias_text,
    expert_entries,
    feed_ages,
    headline_notes,
    judge_reasons,
    key_factors,
    price_distances,
    shared_reason,
)
from zuno.trading.service.runs_view import CycleWhyView, run_view, why_view

if TYPE_CHECKING:
    from jinja2 import Template

    from zuno.trading.service.runs import Cycles, Listen
    from zuno.trading.service.runs_view import RunRecord


@dataclass(frozen=True, slots=True)
class Report:
    view: RunView
    page: str
    image: bytes | None
    trade: bytes | None = None
    """The picture of what was to be opened."""


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
        """`execute`: the ruling is acted on, in an account by its name. `notes`: what is to be said about that.
        `run_id`: of a run that has a name before it begins."""
        whole = await self._cycles.account_name(symbol, as_of, account) if execute else None
        outcome = await self._cycles.run(symbol, mode, as_of, listen, chart=chart, account=whole, run_id=run_id)
        report = await self.show(outcome.run_id)
        return replace(report, view=report.view.model_copy(update={"notes": (*notes, *report.view.notes)}))

    async def resume(self, run_id: str, listen: Listen) -> Report:
        """The rest of a run that was broken off; one that has ended is shown as it is."""
        if not await self._cycles.has_ended(run_id):
            await self._cycles.resume(run_id, listen)
        return await self.show(run_id)

    async def show(self, run_id: str) -> Report:
        """A run that has ended; `Refused` for another."""
        record = await self._cycles.record(run_id)
        return build_report(record, await self._cycles.paint_trade(record))

    async def why(self, run_id: str) -> CycleWhyView:
        return why_view(await self._cycles.record(run_id))


def build_report(record: RunRecord, trade: bytes | None = None) -> Report:
    """`trade`: its picture, where something was to be opened."""
    view = run_view(record)
    chart = None if record.outcome is None else record.outcome.chart
    image = record.picture if chart is not None and chart.media_type == "image/png" else None
    return Report(view, page(view, image, trade), image, trade)


def page(view: RunView, image: bytes | None, trade: bytes | None = None) -> str:
    """One self-contained HTML document: no script, nothing fetched, every foreign word escaped."""
    return _page_template().render(
        run=view,
        picture=None if image is None else _data_url(image),
        trade_picture=None if trade is None else _data_url(trade),
        arrow=ARROW,
        stance=STANCE,
        experts=expert_entries(view),
        ages=feed_ages(view.sources),
        legs=price_distances(view.decision),
        reasons=tuple(judge_reasons(view)),
        factors=key_factors(view),
        base=Symbol(view.symbol).base,
        cost=view.llm_cost_usd,
        headline=headline_notes(view),
        shared=shared_reason(view),
    )


@cache
def _page_template() -> Template:
    """Compiled once: that takes longer than to fill it."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= _FILTERS
    return environment.from_string(
        (files("zuno.trading.service") / "templates" / "run.html").read_text(encoding="utf-8")
    )


def _data_url(image: bytes) -> str:
    return f"data:image/png;base64,{b64encode(image).decode('ascii')}"


_FILTERS: Final = {
    "leaning": bias_text,
    "number": format_number,
    "signed": format_signed,
    "span": format_span,
    "spoke": SPOKE.__getitem__,
}
