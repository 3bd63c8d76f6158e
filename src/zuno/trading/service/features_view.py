"""What the trading desk measured, in the names and types of the public JSON: every figure beside its source and age.

Moments inside figures are Unix milliseconds; `asOf` is written as people read it. A figure that is missing is an object
with its reason, `{"missing": …}`, never a zero; among the gauges a null is one that the bars are too few for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import methodcaller
from typing import Any, Final

from zuno.kernel.numbers_text import format_number, format_span
from zuno.kernel.view import ForeignText, IsoTime, View
from zuno.present.document import (
    Block,
    Document,
    Fact,
    Mark,
    Picture,
    Table,
    Tone,
    Value,
    document,
    facts,
    lines,
    section,
    table,
)
from zuno.present.values import bad, count, foreign, percent, quiet
from zuno.trading.model.cycle import MissingInput
from zuno.trading.service.origin_view import OriginView

Read = Callable[[Any], Any]
"""A figure of a group, or what is printed of it."""

_GAUGES: Final = (
    ("close", "close"), ("RSI 14", "rsi"), ("stoch RSI %K", "stochRsiK"), ("stoch RSI %D", "stochRsiD"),
    ("MACD", "macd"), ("MACD signal", "macdSignal"), ("MACD histogram", "macdHistogram"), ("ADX 14", "adx"),
    ("ATR 14", "atr"), ("EMA 9", "ema9"), ("EMA 21", "ema21"), ("EMA 50", "ema50"), ("EMA 200", "ema200"),
    ("Bollinger upper", "bbUpper"), ("Bollinger middle", "bbMiddle"), ("Bollinger lower", "bbLower"),
    ("Bollinger width", "bbWidth"), ("Keltner upper", "keltnerUpper"), ("Keltner lower", "keltnerLower"),
    ("squeeze", "squeeze"), ("Supertrend", "supertrend"), ("Supertrend side", "supertrendSide"), ("tenkan", "tenkan"),
    ("kijun", "kijun"), ("span A", "spanA"), ("span B", "spanB"), ("chikou", "chikou"), ("MFI 14", "mfi"),
    ("CMF 20", "cmf"), ("OBV", "obv"), ("VWAP (day)", "vwap"), ("CVD", "cvd"), ("bars", "bars"),
)  # fmt: skip


MOST_LEVELS: Final = 6
"""On either side of the price."""


class SourceView(View):
    """Where a part of the figures comes from, and how old it is."""

    feed: str
    source: str
    series: str
    as_of: IsoTime
    age_seconds: int
    stale: bool
    rows: int
    notes: tuple[ForeignText, ...] = ()


class AnomalyView(View):
    """A rule of triage that fired, and how old the oldest is of what it was held against."""

    name: str
    rule: str
    label: str | None
    said: str
    source: str | None
    as_of: str | None
    age_seconds: int | None


class UnjudgedView(View):
    rule: str
    why: ForeignText


class ShockView(View):
    at: IsoTime
    age_seconds: int
    source: str
    price: float
    direction: str
    further: bool
    """It follows another by a further full threshold, not after quiet."""
    moves: tuple[dict[str, float], ...]


class _SymbolView(OriginView):
    symbol: str
    mode: str
    as_of: IsoTime
    bundle_hash: str

    @property
    def title(self) -> str:
        return f"SYNTHETIC · {self.symbol}" if self.synthetic else self.symbol

    @property
    def context(self) -> Value:
        return foreign(f"as of {self.as_of} · {self.market}")


class FeaturesView(_SymbolView):
    features: dict[str, Any]
    anomalies: tuple[AnomalyView, ...]
    unjudged: tuple[UnjudgedView, ...]
    shocks: tuple[ShockView, ...]
    sources: tuple[SourceView, ...]
    absent: tuple[MissingInput, ...]
    notes: tuple[str, ...] = ()

    def to_document(self) -> Document:
        figures = self.features
        frames = {name: _read_value(group) for name, group in figures["indicators"].items()}
        shapes = {name: _read_value(group) for name, group in figures["structure"].items()}
        gauges = [(name, methodcaller("get", key)) for name, key in _GAUGES]
        close = next((frame["close"] for frame in frames.values() if "close" in frame), None)
        source_notes = [foreign(f"{source.series}: {note}") for source in self.sources for note in source.notes]
        return document(
            f"{self.title}, {self.mode}",
            _frame_table(frames, gauges, ages=figures["indicators"]),
            section("Shape", _frame_table(shapes, _SHAPES)),
            section("Levels near the price", _level_table(figures["levels"], close)),
            section("Perpetuals", _perpetual_table(figures["derivatives"])),
            section("Market", _figure_table(_market_figures(figures))),
            section("Economy", _figure_table((name, group, _print_text) for name, group in figures["macro"].items())),
            section("Out of the ordinary", *self._alarm_blocks()),
            section("Sources", _source_table(self.sources)),
            context=self.context,
            notes=(*source_notes, *map(foreign, format_absent(self.absent)), *self.notes, f"bundle {self.bundle_hash}"),
            as_of=self.as_of,
        )

    def _alarm_blocks(self) -> Iterator[Block | None]:
        yield facts(*map(anomaly_fact, self.anomalies), *map(_shock_fact, self.shocks))
        yield None if self.anomalies or self.shocks else lines("nothing")
        yield lines(*(foreign(f"not judged: {rule.rule}: {rule.why}") for rule in self.unjudged), mark=Mark.NOTE)


class ChartView(_SymbolView):
    file: str
    """Where it was put; a name for it before."""
    numbers: dict[str, Any]
    notes: tuple[str, ...] = ()

    def to_document(self) -> Document:
        """The picture itself stands elsewhere: what it shows, and the numbers nearest to the price."""
        shown = self.numbers
        panels = [
            (panel["title"], f"{format_number(panel['last'])} {panel['unit']} {panel['note']}".rstrip())
            for panel in shown["panels"]
        ]
        levels, heat = None, None
        if (price := shown["price"]) is not None:
            panels.insert(0, ("close", format_number(price["last"]["close"])))
            levels = table(
                ("level", "kind", "price", "from the close"),
                [_level_row(level["label"], level, price["last"]["close"]) for level in reversed(price["levels"])],
            )
            heat = price["heat"]
        absent = (foreign(f"absent: {gone['what']}: {gone['why']}") for gone in shown["absent"])
        return document(
            f"{self.title}, {self.mode}: {shown['bars']} bars of {shown['timeframe']}",
            facts(*panels, ("bundle", self.bundle_hash)),
            levels,
            lines(quiet(f"liquidations: {heat['origin']} ({heat['note']})")) if heat is not None else None,
            context=self.context,
            notes=(*shown["notes"], *absent, *self.notes),
            pictures=(Picture(self.file, "chart"),),
            as_of=self.as_of,
        )


class CandleView(View):
    at: int
    """When it opened, Unix milliseconds."""
    open: float
    high: float
    low: float
    close: float
    volume: float
    taker_buy: float | None


class CandlesView(OriginView):
    symbol: str
    interval: str
    as_of: IsoTime
    source: str
    candles: tuple[CandleView, ...]


class MarketChartView(OriginView):
    """What a chart shows, as figures. Bars stand at `places`, the first of which opened at `first`; a line begins at
    its place `since`. Pools of the heat map are dollars by row (lowest first) of one column for each bar."""

    symbol: str
    mode: str
    interval: str
    interval_ms: int
    as_of: IsoTime
    source: str
    age_seconds: int | None
    stale: bool | None
    first: int | None
    places: tuple[int, ...]
    width: int
    price: dict[str, Any]
    """`{"title", "why"}` where there is no bar."""
    panels: tuple[dict[str, Any], ...]
    levels: tuple[dict[str, Any], ...]
    notes: tuple[ForeignText, ...] = ()


def anomaly_fact(anomaly: AnomalyView) -> Fact:
    value = foreign(f"{anomaly.name}: {anomaly.said}", Tone.BAD)
    return Fact("anomaly", value, anomaly.source or "", anomaly.age_seconds)


def format_absent(absent: Sequence[MissingInput]) -> list[str]:
    """What is absent, each with its reason; series of which nothing was recorded by feed, for they may be many."""
    lines: list[str] = []
    venues: dict[str, dict[str, None]] = {}
    for gone in absent:
        if gone.why.startswith("nothing is recorded of the "):
            feed, venue, *_ = f"{gone.what}/".split("/")
            venues.setdefault(feed, {})[venue] = None
        else:
            lines.append(f"absent: {gone.what}: {gone.why}")
    feeds = [f"{feed} ({', '.join(several)})" for feed, several in venues.items()]
    return [*lines, *([f"absent, nothing is recorded of it: {', '.join(feeds)}"] if feeds else [])]


# -- parts of a document. A figure stands in a group with its source and age; a missing one is an object with its reason


def _frame_table(
    frames: Mapping[str, Any], rows: Iterable[tuple[str, Read]], ages: Mapping[str, Any] | None = None
) -> Table:
    cells = [(name, *(_cell(read(frame)) for frame in frames.values())) for name, read in rows]
    aged = () if ages is None else (("age", *map(_age, ages.values())),)
    return table(("", *frames), (*cells, *aged))


def _level_table(levels: Sequence[Mapping[str, Any]], close: float | None) -> Table:
    """The nearest on either side of the newest close."""
    by_price = sorted(levels, key=lambda level: level["price"]) if close is not None else []
    above = [level for level in by_price if level["price"] >= close][:MOST_LEVELS]
    below = [level for level in by_price if level["price"] < close][-MOST_LEVELS:]
    rows = [(*_level_row(level["id"], level, close), level["since"]) for level in reversed((*below, *above))]
    return table(("level", "kind", "price", "from the price", "known since"), rows, spare=("known since",))


def _level_row(name: str, level: Mapping[str, Any], close: Any) -> tuple[str | Value, ...]:
    away = percent(100 * (level["price"] / close - 1), signed=True)
    return name, level["kind"], format_number(level["price"]), away


def _perpetual_table(venues: Mapping[str, Any]) -> Table:
    columns = ("venue", "next funding (8 h)", "week's mean (8 h)", "open interest", "accounts long", "basis", "age")
    rows = [
        (
            venue,
            _show(parts["fundingPredicted"], lambda value: f"{100 * value['per8H']:+.4f} %"),
            _show(parts["fundingWeek"], lambda value: f"{100 * value['per8H']:+.4f} %"),
            _show(parts["openInterest"], lambda value: f"{value['value']:,.0f}"),
            _show(parts["longShare"], lambda value: f"{100 * value:.1f} %"),
            _show(parts["basisBps"], lambda value: f"{value:+.1f} bps"),
            _age(parts["fundingPredicted"]),
        )
        for venue, parts in venues.items()
    ]
    return table(columns, rows)


def _figure_table(figures: Iterable[tuple[str, Any, Read]]) -> Table:
    return table(("", "figure", "age"), [(name, _show(group, write), _age(group)) for name, group, write in figures])


def _market_figures(figures: Mapping[str, Any]) -> Iterator[tuple[str, Any, Read]]:
    yield "24 h volatility", figures["volatility"], _volatility_text
    for span in ("hour", "day"):
        group = _inside(figures["openInterest"], span)
        yield f"open interest, {span}", group, lambda value: f"{100 * value['share']:+.2f} %"
    book = _inside(figures["book"], "figures")
    yield "spread", book, lambda value: f"{value['spreadBps']:.2f} bps"
    yield "imbalance", _inside(book, "imbalance"), "{:+.2f}".format
    yield "buy $100k", _inside(book, "buySlippageBps"), "{:+.2f} bps".format
    yield "sell $100k", _inside(book, "sellSlippageBps"), "{:+.2f} bps".format
    yield "fake walls", _inside(figures["book"], "fakeWalls"), _wall_text
    yield "longs liquidated, hour", _inside(figures["liquidations"], "longsHour"), _liquidation_text
    yield "shorts liquidated, hour", _inside(figures["liquidations"], "shortsHour"), _liquidation_text
    for span in ("hour", "day"):
        yield f"whales, {span}", _inside(figures["whales"], span), _whale_text
    yield "ATM IV 7 d / 30 d", figures["options"], _tenor_text
    yield "skew 25Δ 30 d", _inside(figures["options"], "month", "skew25"), "{:+.1f} points".format
    yield "put/call by interest", _inside(figures["options"], "putCallOpenInterest"), "{:.2f}".format
    yield "DVOL", figures["dvol"], "{0[value]:.1f} (mean {0[mean]:.1f} of {0[points]} h)".format
    yield "fear & greed", figures["sentiment"]["fearGreed"], lambda value: f"{value['value']:.0f}"
    for pair, group in figures["rates"].items():
        yield pair, group, lambda value: format_number(value["value"])


def _volatility_text(group: Mapping[str, Any]) -> str:
    rank = group["rank"]
    held = rank["missing"] if _is_missing(rank) else f"above {100 * rank:.0f} % of {group['days'] // 24} days"
    return f"{100 * group['value']:.2f} % ({held})"


def _wall_text(group: Mapping[str, Any]) -> str:
    return f"{len(group['fake'])}" + (f", {group['unjudged']} not judged" if group["unjudged"] else "")


def _liquidation_text(group: Mapping[str, Any]) -> str:
    return f"${group['usd']:,.0f} ({group['label']}{'' if group['complete'] else ', heard in part'})"


def _whale_text(group: Mapping[str, Any]) -> str:
    bought, sold = (
        f"{word} unknown" if _is_missing(usd) else f"{word} ${usd:,.0f}"
        for word, usd in (("bought", group["boughtUsd"]), ("sold", group["soldUsd"]))
    )
    return f"{bought}, {sold} in {group['trades']} trades" + ("" if group["complete"] else " (heard in part)")


def _tenor_text(group: Mapping[str, Any]) -> str:
    values = [group[tenor]["atm"] for tenor in ("week", "month")]
    return " / ".join(value["missing"] if _is_missing(value) else f"{value:.1f}" for value in values)


def _print_text(group: Mapping[str, Any]) -> str:
    if "last" in group:
        return format_number(group["last"]["value"])
    change = group["change"]
    moved = change["missing"] if _is_missing(change) else f"{change:+.2f} over 5 prints"
    return f"{group['value']:+.2f} pp ({moved})"


def _shock_fact(shock: ShockView) -> Fact:
    moves = ", ".join(f"{100 * move['share']:+.2f} % in {move['minutes']:.0f} min" for move in shock.moves)
    return Fact("shock", bad(f"{shock.direction} at {shock.at}: {moves}"), shock.source, shock.age_seconds)


def _source_table(sources: Sequence[SourceView]) -> Table:
    ages = ((source, _age_text(source.age_seconds, source.stale)) for source in sources)
    rows = [(source.series, source.as_of, age, count(source.rows)) for source, age in ages]
    return table(("series", "as of", "age", "rows"), rows, spare=("rows",))


def _area_text(profile: Any) -> str | None:
    return f"{format_number(profile['valueLow'])} – {format_number(profile['valueHigh'])}" if profile else None


_SHAPES: Final[tuple[tuple[str, Read], ...]] = (
    ("trend", lambda shape: shape.get("trend")),
    ("swings", lambda shape: " ".join(swing["step"] or "–" for swing in shape.get("swings", ()))),
    ("last break", lambda shape: " ".join(f"{last['kind']} {last['way']}" for last in shape.get("breaks", ())[-1:])),
    ("open gaps", lambda shape: len(shape.get("openGaps", ()))),
    ("POC", lambda shape: (shape.get("volumeProfile") or {}).get("poc")),
    ("value area", lambda shape: _area_text(shape.get("volumeProfile"))),
    ("divergences", lambda shape: " ".join(f"{gap['gauge']} {gap['way']}" for gap in shape.get("divergences", ()))),
    ("zones", lambda shape: len(shape.get("zones", ()))),
)


def _read_value(group: Mapping[str, Any]) -> Mapping[str, Any]:
    value = group["value"]
    return value if isinstance(value, dict) and not _is_missing(value) else {}


def _inside(group: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """A part of a group's value, with its source and age; what is missing stays missing."""
    for key in keys:
        if not _is_missing(group["value"]):
            group = {**group, "value": group["value"][key]}
    return group


def _is_missing(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"missing"}


def _show(group: Mapping[str, Any], write: Read) -> str | Value:
    value = group["value"]
    return foreign(f"missing: {value['missing']}", Tone.QUIET) if _is_missing(value) else str(write(value))


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format_number(value) if isinstance(value, float) else str(value)


def _age(group: Mapping[str, Any]) -> str:
    return "–" if group["ageSeconds"] is None else _age_text(group["ageSeconds"], group["stale"])


def _age_text(seconds: int, stale: bool) -> str:
    return format_span(seconds) + (" STALE" if stale else "")
