"""Runs of the trading desk as people look at them: a view, its picture, and one page that needs nothing beside it."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from zuno.trading.model.cycle import CONVICTION, Call, Decision, Expert, LiquidityEntry, MacroEntry
from zuno.trading.model.market import Mode, Symbol
from zuno.trading.model.outcome import MissingInput
from zuno.trading.rules.score import Entry as Entry
from zuno.trading.rules.score import board_entries
from zuno.trading.service.features_view import SourceView
from zuno.trading.service.runs_view import CycleWhyView, RunsView, RunView, run_view, runs_view, why_view

if TYPE_CHECKING:
    from jinja2 import Template

    from zuno.trading.service.runs import Cycles, Listen
    from zuno.trading.service.runs_view import RunRecord


ROLES: Final = {
    Expert.LIQUIDITY: "liquidity",
    Expert.MICROSTRUCTURE: "microstructure",
    Expert.MACRO: "macro",
    Expert.GEOMETRY: "vlm_geometric",
}
"""Whose voice an entry of the blackboard is."""
REVIEWER: Final = "risk_manager"
SPOKE: Final = {
    "model": "model",
    "repaired": "model, repaired",
    "fallback": "rules: the model failed",
    "deterministic": "rules",
}
ARROW: Final = {Call.LONG: "▲", Call.SHORT: "▼", Call.HOLD: "■", Call.CANCEL_AND_CLOSE: "✕"}
STANCE: Final = {1: "▲ up", 0: "● neither", -1: "▼ down"}


@dataclass(frozen=True, slots=True)
class Report:
    """A run to be shown."""

    view: RunView
    page: str
    image: bytes | None
    trade: bytes | None = None
    """The picture of what was to be opened."""


@dataclass(frozen=True, slots=True)
class FeedAges:
    """One feed's series together."""

    feed: str
    sources: str
    series: int
    newest: str
    oldest_seconds: int
    stale: int


class Reports:
    """What a person asks of the desk's runs."""

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

    async def runs(self, count: int | None = None, before: str | None = None) -> RunsView:
        from zuno.trading.service.runs import MOST

        most = count or MOST
        return runs_view(await self._cycles.runs(most + 1, before), most)


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


def expert_entries(view: RunView) -> tuple[tuple[Expert, Entry | None, str | None], ...]:
    """What each expert wrote and the model that spoke for it, whose word weighs most first."""
    models, there = {voice.role: voice.model for voice in view.voices}, board_entries(view.blackboard)
    return tuple((expert, there.get(expert), models.get(ROLES[expert])) for expert in CONVICTION[Mode(view.mode)])


def bias_text(entry: Entry) -> str:
    """What it says itself; the liquidity expert names no direction."""
    match entry:
        case LiquidityEntry():
            return "" if entry.target_entry is None else f"entry {format_number(entry.target_entry)}"
        case MacroEntry():
            return entry.options_bias
        case _:
            return entry.directional_bias


def shared_reason(view: RunView) -> str:
    """Why no model spoke, where several roles give the same reason: it is told once."""
    reasons = Counter(voice.why for voice in view.voices if voice.source == "deterministic" and voice.why)
    reason, count = reasons.most_common(1)[0] if reasons else ("", 0)
    return reason if count > 1 else ""


def headline_notes(view: RunView) -> tuple[str, ...]:
    """What a reader must know beside the ruling: who of those that could have cut it did not speak."""
    failed = [voice for voice in view.voices if voice.role == REVIEWER and voice.source == "fallback"]
    return tuple(f"the risk officer's model failed, the rules alone reviewed it: {voice.why}" for voice in failed)


def judge_reasons(view: RunView) -> Iterator[tuple[str, str]]:
    """What the Judge gives as reasons, by subject; what an expert's rationale says already is not said again."""
    reasoning, told = view.decision.reasoning, _rationales(view)
    named = (
        ("regime", reasoning.meta_agent_context),
        ("technical", reasoning.technical),
        ("derivatives", reasoning.derivatives),
        ("experts", reasoning.experts),
        ("narrative", reasoning.narrative),
        ("expectancy", view.decision.ev_rationale),
    )
    yield from ((name, text) for name, text in named if text and not _repeats(text, told))


def key_factors(view: RunView) -> tuple[str, ...]:
    told = _rationales(view)
    return tuple(factor for factor in view.decision.key_factors if not _repeats(factor, told))


def _rationales(view: RunView) -> frozenset[str]:
    """What stands on the page above the Judge's own words."""
    entries = (entry for _, entry, _ in expert_entries(view) if entry is not None)
    return frozenset(text.rstrip(". ") for text in (view.meta.rationale, *(entry.rationale for entry in entries)))


def _repeats(text: str, told: frozenset[str]) -> bool:
    """Whether it is a part of one of these, with or without the name of who said it."""
    plain = text.rstrip(". ")
    unnamed = plain.partition(": ")[2] or plain
    return any(plain in said or unnamed in said for said in told)


def price_distances(decision: Decision) -> tuple[float, float] | None:
    """From entry to stop and to target, in percent of the entry as they stand; None where nothing is to be opened."""
    entry, stop, take = decision.entry_price, decision.stop_loss, decision.take_profit
    if entry is None or stop is None or take is None:
        return None
    return 100 * (stop / entry - 1), 100 * (take / entry - 1)


def feed_ages(sources: Sequence[SourceView]) -> tuple[FeedAges, ...]:
    """Feed by feed, in the order they stand in: where many series are one line, the oldest speaks for them."""
    feeds: dict[str, list[SourceView]] = {}
    for source in sources:
        feeds.setdefault(source.feed, []).append(source)
    return tuple(
        FeedAges(
            feed,
            ", ".join(dict.fromkeys(source.source for source in found)),
            len(found),
            max(source.as_of for source in found),
            max(source.age_seconds for source in found),
            sum(source.stale for source in found),
        )
        for feed, found in feeds.items()
    )


# -- figures for eyes


def format_number(value: float | str | None) -> str:
    """Rounded for eyes: a price, a share, or a word that stands in a figure's place."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    size = abs(value)
    if value == int(value) and size < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if size >= 100_000 else f"{value:,.2f}" if size >= 10 else f"{value:,.4g}"


def format_signed(value: float | None, places: int = 2) -> str:
    if value is None:
        return "–"
    return f"{value:+,.{places}f}".replace("-", "−") if round(value, places) else f"{0:.{places}f}"


def format_span(seconds: int) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


_FILTERS: Final = {
    "leaning": bias_text,
    "number": format_number,
    "signed": format_signed,
    "span": format_span,
    "spoke": SPOKE.__getitem__,
}


def format_absent(absent: Sequence[MissingInput]) -> list[str]:
    """What is absent, each with its reason; series of which nothing was recorded by feed, for they may be many."""
    venues: dict[str, list[str]] = {}
    for gone in absent:
        if gone.why.startswith("nothing is recorded of the "):
            feed, _, rest = gone.what.partition("/")
            venue = rest.partition("/")[0]
            if venue not in venues.setdefault(feed, []):
                venues[feed].append(venue)
    feeds = [f"{feed} ({', '.join(several)})" for feed, several in venues.items()]
    named = [gone for gone in absent if not gone.why.startswith("nothing is recorded of the ")]
    lines = [f"absent: {gone.what}: {gone.why}" for gone in named]
    return [*lines, *([f"absent, nothing is recorded of it: {', '.join(feeds)}"] if feeds else [])]
