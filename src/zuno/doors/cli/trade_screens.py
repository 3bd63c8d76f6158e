"""How the trading desk's figures look on a screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from zuno.doors.cli.layout import BAD, QUIET, Rows, heading, notes_block
from zuno.trading.service.features_view import ChartView, FeaturesView
from zuno.trading.service.report import format_absent

_GAUGES = (
    ("close", "close"),
    ("RSI 14", "rsi"),
    ("stoch RSI %K", "stochRsiK"),
    ("stoch RSI %D", "stochRsiD"),
    ("MACD", "macd"),
    ("MACD signal", "macdSignal"),
    ("MACD histogram", "macdHistogram"),
    ("ADX 14", "adx"),
    ("ATR 14", "atr"),
    ("EMA 9", "ema9"),
    ("EMA 21", "ema21"),
    ("EMA 50", "ema50"),
    ("EMA 200", "ema200"),
    ("Bollinger upper", "bbUpper"),
    ("Bollinger middle", "bbMiddle"),
    ("Bollinger lower", "bbLower"),
    ("Bollinger width", "bbWidth"),
    ("Keltner upper", "keltnerUpper"),
    ("Keltner lower", "keltnerLower"),
    ("squeeze", "squeeze"),
    ("Supertrend", "supertrend"),
    ("Supertrend side", "supertrendSide"),
    ("tenkan", "tenkan"),
    ("kijun", "kijun"),
    ("span A", "spanA"),
    ("span B", "spanB"),
    ("chikou", "chikou"),
    ("MFI 14", "mfi"),
    ("CMF 20", "cmf"),
    ("OBV", "obv"),
    ("VWAP (day)", "vwap"),
    ("CVD", "cvd"),
)


def show_features(view: FeaturesView) -> RenderableType:
    found = view.features
    return Group(
        heading(f"{view.symbol}, {view.mode}, as of {view.as_of} · {view.market}"),
        _gauges(found["indicators"]),
        heading("Shape"),
        _shape(found["structure"]),
        heading("Levels near the price"),
        _levels(view),
        heading("Perpetuals"),
        _perpetuals(found["derivatives"]),
        heading("Market"),
        _market(found),
        heading("Economy"),
        _economy(found["macro"]),
        heading("Out of the ordinary"),
        *_alarms(view),
        heading("Sources"),
        _sources(view),
        *notes_block([f"{source.series}: {note}" for source in view.sources for note in source.notes]),
        *notes_block((*format_absent(view.absent), *view.notes)),
        Text(f"bundle {view.bundle_hash}", style=QUIET),
    )


def show_chart(view: ChartView) -> RenderableType:
    """The picture itself stands elsewhere: what it shows, and the numbers nearest to the price."""
    numbers = view.numbers
    parts: list[RenderableType] = [Text(f"{numbers['bars']} bars of {numbers['timeframe']} · {view.file}")]
    if (price := numbers["price"]) is not None:
        close = price["last"]["close"]
        table = Rows("level", "kind", "price", "from the close")
        for level in reversed(price["levels"]):
            away = f"{100 * (level['price'] / close - 1):+.2f} %"
            table.add_row(level["label"], level["kind"], _number(level["price"]), away)
        parts += [Text(f"close {_number(close)}"), table]
        if (heat := price["heat"]) is not None:
            parts.append(Text(f"liquidations: {heat['origin']} ({heat['note']})", style=QUIET))
    rest = [
        f"{panel['title']}: {_number(panel['last'])} {panel['unit']} {panel['note']}".rstrip()
        for panel in numbers["panels"]
    ]
    absent = [f"absent: {gone['what']}: {gone['why']}" for gone in numbers["absent"]]
    title = heading(f"{view.symbol}, {view.mode}, as of {view.as_of} · {view.market}")
    return Group(title, *parts, *map(Text, rest), *notes_block((*numbers["notes"], *absent, *view.notes)))


def _gauges(frames: dict[str, Any]) -> Rows:
    table = Rows("", *frames)
    for name, key in _GAUGES:
        table.add_row(name, *(_cell(_value(frame).get(key)) for frame in frames.values()))
    table.add_row("bars", *(_cell(_value(frame).get("bars")) for frame in frames.values()))
    table.add_row("age", *(_age(frame) for frame in frames.values()))
    return table


def _shape(frames: dict[str, Any]) -> Rows:
    table = Rows("", *frames)
    parts = (
        ("trend", lambda shape: shape.get("trend")),
        ("swings", lambda shape: " ".join(swing["step"] or "–" for swing in shape.get("swings", ()))),
        ("last break", lambda shape: _break(shape.get("breaks", ()))),
        ("open gaps", lambda shape: len(shape.get("openGaps", ()))),
        ("POC", lambda shape: (shape.get("volumeProfile") or {}).get("poc")),
        ("value area", lambda shape: _area(shape.get("volumeProfile"))),
        (
            "divergences",
            lambda shape: " ".join(
                f"{divergence['gauge']} {divergence['way']}" for divergence in shape.get("divergences", ())
            ),
        ),
        ("zones", lambda shape: len(shape.get("zones", ()))),
    )
    for name, read in parts:
        table.add_row(name, *(_cell(read(_value(frame))) for frame in frames.values()))
    return table


def _break(breaks: Any) -> str | None:
    return f"{breaks[-1]['kind']} {breaks[-1]['way']}" if breaks else None


def _area(profile: Any) -> str | None:
    return f"{_number(profile['valueLow'])} – {_number(profile['valueHigh'])}" if profile else None


def _levels(view: FeaturesView, each_side: int = 6) -> Rows:
    """The nearest on either side of the newest close."""
    frames = list(view.features["indicators"].values())
    close = next((_value(frame)["close"] for frame in frames if "close" in _value(frame)), None)
    table = Rows("level", "kind", "price", "from the price", "known since", spare=("known since",))
    if close is None:
        return table
    by_price = sorted(view.features["levels"], key=lambda level: level["price"])
    above = [level for level in by_price if level["price"] >= close][:each_side]
    below = [level for level in by_price if level["price"] < close][-each_side:]
    for level in reversed((*below, *above)):
        away = f"{100 * (level['price'] / close - 1):+.2f} %"
        table.add_row(level["id"], level["kind"], _number(level["price"]), away, level["since"])
    return table


def _perpetuals(venues: dict[str, Any]) -> Rows:
    table = Rows("venue", "next funding (8 h)", "week's mean (8 h)", "open interest", "accounts long", "basis", "age")
    for venue, parts in venues.items():
        table.add_row(
            venue,
            _part(parts["fundingPredicted"], lambda value: f"{100 * value['per8H']:+.4f} %"),
            _part(parts["fundingWeek"], lambda value: f"{100 * value['per8H']:+.4f} %"),
            _part(parts["openInterest"], lambda value: f"{value['value']:,.0f}"),
            _part(parts["longShare"], lambda value: f"{100 * value:.1f} %"),
            _part(parts["basisBps"], lambda value: f"{value:+.1f} bps"),
            _age(parts["fundingPredicted"]),
        )
    return table


def _market(found: dict[str, Any]) -> Rows:
    table = Rows("", "figure", "age")
    for name, group, said in _lines(found):
        table.add_row(name, _part(group, said), _age(group))
    return table


def _lines(found: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], Any]]:
    yield "24 h volatility", found["volatility"], _volatility
    for span in ("hour", "day"):
        yield (
            f"open interest, {span}",
            _inside(found["openInterest"], span),
            lambda value: f"{100 * value['share']:+.2f} %",
        )
    book = _inside(found["book"], "figures")
    yield "spread", book, lambda value: f"{value['spreadBps']:.2f} bps"
    for name, key in (("imbalance", "imbalance"), ("buy $100k", "buySlippageBps"), ("sell $100k", "sellSlippageBps")):
        unit = "" if key == "imbalance" else " bps"
        inner = book if _missing(book["value"]) else _inside(book, key)
        yield name, inner, lambda value, unit=unit: f"{value:+.2f}{unit}"
    yield "fake walls", _inside(found["book"], "fakeWalls"), _walls
    for name, key in (("longs liquidated, hour", "longsHour"), ("shorts liquidated, hour", "shortsHour")):
        yield name, _inside(found["liquidations"], key), _liquidations
    for span in ("hour", "day"):
        yield f"whales, {span}", _inside(found["whales"], span), _whales
    yield "ATM IV 7 d / 30 d", found["options"], _tenors
    yield "skew 25Δ 30 d", _deep(found["options"], "month", "skew25"), lambda value: f"{value:+.1f} points"
    yield "put/call by interest", _deep(found["options"], "putCallOpenInterest"), lambda value: f"{value:.2f}"
    yield "DVOL", found["dvol"], lambda value: f"{value['value']:.1f} (mean {value['mean']:.1f} of {value['points']} h)"
    yield "fear & greed", found["sentiment"]["fearGreed"], lambda value: f"{value['value']:.0f}"
    for pair, group in found["rates"].items():
        yield pair, group, lambda value: _number(value["value"])


def _volatility(group: dict[str, Any]) -> str:
    rank = group["rank"]
    held = rank["missing"] if _missing(rank) else f"above {100 * rank:.0f} % of {group['days'] // 24} days"
    return f"{100 * group['value']:.2f} % ({held})"


def _walls(group: dict[str, Any]) -> str:
    return f"{len(group['fake'])}" + (f", {group['unjudged']} not judged" if group["unjudged"] else "")


def _liquidations(group: dict[str, Any]) -> str:
    return f"${group['usd']:,.0f} ({group['label']}{'' if group['complete'] else ', heard in part'})"


def _whales(group: dict[str, Any]) -> str:
    bought, sold = (
        f"{word} unknown" if _missing(usd) else f"{word} ${usd:,.0f}"
        for word, usd in (("bought", group["boughtUsd"]), ("sold", group["soldUsd"]))
    )
    return f"{bought}, {sold} in {group['trades']} trades" + ("" if group["complete"] else " (heard in part)")


def _tenors(group: dict[str, Any]) -> str:
    said = [group[tenor]["atm"] for tenor in ("week", "month")]
    return " / ".join(value["missing"] if _missing(value) else f"{value:.1f}" for value in said)


def _economy(figures: dict[str, Any]) -> Rows:
    table = Rows("figure", "value", "age")
    for name, group in figures.items():
        table.add_row(name, _part(group, _macro_print), _age(group))
    return table


def _macro_print(group: dict[str, Any]) -> str:
    if "last" in group:
        return _number(group["last"]["value"])
    change = group["change"]
    moved = change["missing"] if _missing(change) else f"{change:+.2f} over 5 prints"
    return f"{group['value']:+.2f} pp ({moved})"


def _alarms(view: FeaturesView) -> Iterator[RenderableType]:
    for anomaly in view.anomalies:
        old = "" if anomaly.age_seconds is None else f" ({anomaly.source}, {_span(anomaly.age_seconds)} old)"
        yield Text(f"{anomaly.name}: {anomaly.said}{old}", style=BAD)
    for shock in view.shocks:
        moves = ", ".join(f"{100 * move['share']:+.2f} % in {move['minutes']:.0f} min" for move in shock.moves)
        old = f"({shock.source}, {_span(shock.age_seconds)} ago)"
        yield Text(f"shock {shock.direction} at {shock.at}: {moves} {old}", style=BAD)
    if not view.anomalies and not view.shocks:
        yield Text("nothing")
    yield from notes_block([f"not judged: {rule.rule}: {rule.why}" for rule in view.unjudged])


def _sources(view: FeaturesView) -> Rows:
    table = Rows("series", "as of", "age", "rows", spare=("rows",))
    for source in view.sources:
        old = f"{_span(source.age_seconds)}{' STALE' if source.stale else ''}"
        table.add_row(source.series, source.as_of, old, f"{source.rows:,}")
    return table


# -- one cell


def _value(group: dict[str, Any]) -> dict[str, Any]:
    value = group["value"]
    return value if isinstance(value, dict) and not _missing(value) else {}


def _inside(group: dict[str, Any], key: str) -> dict[str, Any]:
    return {**group, "value": group["value"][key]}


def _deep(group: dict[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        if _missing(group["value"]):
            return group
        group = _inside(group, key)
    return group


def _missing(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"missing"}


def _part(group: dict[str, Any], said: Any) -> str | Text:
    value = group["value"]
    return Text(f"missing: {value['missing']}", style=QUIET) if _missing(value) else str(said(value))


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    size = abs(value)
    return f"{value:,.0f}" if size >= 100_000 else f"{value:,.2f}" if size >= 10 else f"{value:,.4f}"


def _age(group: dict[str, Any]) -> str:
    if group["ageSeconds"] is None:
        return "–"
    return _span(group["ageSeconds"]) + (" STALE" if group["stale"] else "")


def _span(seconds: int) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
