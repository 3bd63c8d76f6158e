"""What the trading desk measured, turned into views: every figure beside its source and age."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from typing import Any, Final

from pydantic.alias_generators import to_camel

from zuno.kernel.clock import iso
from zuno.kernel.view import sanitise
from zuno.markets.feeds import ALTERNATIVE, perpetual_feeds
from zuno.markets.market import Symbol
from zuno.trading.measure.events import EventKind, ShockScan
from zuno.trading.measure.features import Features, Perpetual, fresh_rows
from zuno.trading.measure.frames import Frame
from zuno.trading.measure.levels import Structure
from zuno.trading.measure.triage import Rule
from zuno.trading.model import market
from zuno.trading.model.bundle import Block, Bundle
from zuno.trading.model.chart import Heat, MissingPanel, Picture, PricePanel
from zuno.trading.model.cycle import MissingInput
from zuno.trading.model.known import Known, Missing, derive, pick
from zuno.trading.model.market import SECOND_MS, Feed, Series, Timeframe
from zuno.trading.model.wanted import RATE_SERIES, forced_trades, large_trades, options_of, own_book, own_candles
from zuno.trading.service.features_view import (
    AnomalyView,
    ChartView,
    FeaturesView,
    MarketChartView,
    ShockView,
    SourceView,
    UnjudgedView,
)

_SHOWN: Final = {"pivots": 8, "swings": 6, "breaks": 3, "divergences": 4}
"""Of what a structure has many of, how many of the newest are shown."""


def market_chart_view(bundle: Bundle, picture: Picture, notes: tuple[str, ...] = ()) -> MarketChartView:
    series = own_candles(bundle.symbol, picture.timeframe)
    block = bundle.block(series)
    price = plain(picture.price)
    if isinstance(picture.price, PricePanel) and isinstance(picture.price.heat, Heat):
        for name in ("columns", "forced"):
            price["heat"][name] = [[round(cell) for cell in column] for column in price["heat"][name]]
    return derive(
        MarketChartView,
        bundle,
        picture,
        interval=picture.timeframe,
        interval_ms=picture.timeframe.millis,
        source=str(series),
        age_seconds=None if block is None else block.age,
        stale=None if block is None else block.stale,
        price=price,
        panels=tuple(map(plain, picture.panels)),
        levels=() if isinstance(picture.price, MissingPanel) else tuple(plain(mark) for mark in picture.price.marks),
        notes=(*picture.notes, *notes),
    )


def chart_view(bundle: Bundle, name: str, numbers: dict[str, Any], notes: tuple[str, ...] = ()) -> ChartView:
    moment = iso(bundle.as_of).replace(":", "").replace("-", "")
    file = f"{bundle.symbol}-{bundle.mode}-{moment}.png"
    return derive(ChartView, bundle, bundle_hash=name, file=file, numbers=numbers, notes=notes)


def features_view(bundle: Bundle, name: str, features: Features, notes: tuple[str, ...] = ()) -> FeaturesView:
    return derive(
        FeaturesView,
        bundle,
        bundle_hash=name,
        features=_all_features(bundle, features),
        anomalies=tuple(anomaly_view(bundle, each.rule, each.label, each.said) for each in features.triage.anomalies),
        unjudged=(
            *(UnjudgedView(rule=gap.rule, why=gap.reason) for gap in features.triage.unknown),
            *_unwatched_shocks(features.watch),
        ),
        shocks=tuple(
            derive(
                ShockView,
                shock,
                age_seconds=(bundle.as_of - shock.at) // SECOND_MS,
                source=bundle.symbol.venue.feed,
                direction="up" if shock.up else "down",
                moves=tuple(pick(move, "minutes", "share", "threshold") for move in shock.moves),
            )
            for shock in (() if isinstance(features.watch, Missing) else features.watch.shocks)
        ),
        sources=source_views(bundle),
        absent=absent_views(bundle),
        notes=notes,
    )


def source_views(bundle: Bundle) -> tuple[SourceView, ...]:
    return tuple(
        derive(
            SourceView,
            block,
            feed=block.series.feed,
            source=block.series.venue,
            series=str(block.series),
            age_seconds=block.age,
            rows=len(block.rows),
        )
        for block in bundle.blocks
    )


def absent_views(bundle: Bundle) -> tuple[MissingInput, ...]:
    return tuple(MissingInput(what=gone.what, why=sanitise(gone.why)) for gone in bundle.absent)


def anomaly_view(bundle: Bundle, rule: str, label: str | None, said: str) -> AnomalyView:
    symbol = bundle.symbol
    interest = (market.open_interest(venue, symbol) for venue in perpetual_feeds(symbol))
    held_against: Mapping[str, Sequence[Series[Any]]] = {
        Rule.SPIKE: [own_candles(symbol, Timeframe.H1), *interest],
        EventKind.SHOCK: [own_candles(symbol, Timeframe.M1), own_candles(symbol, Timeframe.H1)],
        Rule.LIQUIDATION_CLUSTER: forced_trades(symbol),
        Rule.MICROSTRUCTURE_IMBALANCE: [own_book(symbol)],
        Rule.OPTIONS_PANIC: options_of(symbol),
    }
    used = [series for series in held_against[rule] if not isinstance(fresh_rows(bundle, series), Missing)]
    group = _group(bundle, used, None)
    held = {name: group[to_camel(name)] for name in ("source", "as_of", "age_seconds")}
    return AnomalyView(name=label or rule, rule=rule, label=label, said=said, **held)


def _unwatched_shocks(watch: Known[ShockScan]) -> Iterable[UnjudgedView]:
    if isinstance(watch, Missing):
        yield UnjudgedView(rule="shock", why=watch.reason)
    elif watch.unjudged:
        why = f"{watch.unjudged} of the last {watch.minutes} minutes could not be judged"
        yield UnjudgedView(rule="shock", why=why)


def _all_features(bundle: Bundle, features: Features) -> dict[str, Any]:
    symbol = bundle.symbol
    group = partial(_group, bundle)

    def bars(timeframe: Timeframe) -> list[Series[Any]]:
        return [own_candles(symbol, timeframe)]

    def by_timeframe(shape: Any) -> dict[str, Any]:
        return {
            timeframe.value: group(bars(timeframe), frame if isinstance(frame, Missing) else shape(frame))
            for timeframe, frame in features.frames
        }

    tape = [*forced_trades(symbol)]
    interest = [market.open_interest(venue, symbol) for venue in _interest_venues(features)]
    return {
        "indicators": by_timeframe(lambda frame: frame.readings),
        "structure": by_timeframe(lambda frame: _structure(frame.structure)),
        "levels": list(_levels(bundle, [frame for _, frame in features.frames if isinstance(frame, Frame)])),
        "volatility": group(bars(Timeframe.H1), features.volatility),
        "derivatives": {perpetual.venue: _perpetual(bundle, symbol, perpetual) for perpetual in features.perpetuals},
        "openInterest": group(interest, {"hour": features.open_interest_hour, "day": features.open_interest_day}),
        "book": group([own_book(symbol)], {"figures": features.book, "fakeWalls": features.walls}),
        "liquidations": group(tape, features.forced),
        "whales": group([large_trades(symbol)], {"hour": features.whales_hour, "day": features.whales_day}),
        "options": group([options_of(symbol)[0]], features.surface),
        "shocks": group(bars(Timeframe.M1), features.watch),
        "dvol": group([options_of(symbol)[1]], features.dvol),
        "macro": {
            **{name: group([market.macro(*name.split("/", 1))], figure) for name, figure in features.economy.figures},
            "2s10s": group([market.macro("fred", "DGS2"), market.macro("fred", "DGS10")], features.economy.slope),
        },
        "sentiment": {"fearGreed": group([market.fear_greed(ALTERNATIVE)], features.mood)},
        "rates": {series.name: group([series], features.rates[currency]) for currency, series in RATE_SERIES.items()},
        "words": {
            feed.value: [
                {"series": str(block.series), **_age(block), "count": len(block.rows)}
                for block in bundle.blocks
                if block.series.feed is feed
            ]
            for feed in (Feed.NARRATIVE, Feed.NEWS)
        },
    }


def _interest_venues(features: Features) -> list[str]:
    """The venues whose open interest is in the changes; all that were asked where there is no change."""
    changes = (features.open_interest_hour, features.open_interest_day)
    counted = {venue for change in changes if not isinstance(change, Missing) for venue in change.venues}
    asked = [perpetual.venue for perpetual in features.perpetuals]
    return [venue for venue in asked if venue in counted] if counted else asked


def _perpetual(bundle: Bundle, symbol: Symbol, perpetual: Perpetual) -> dict[str, Any]:
    venue, group = perpetual.venue, partial(_group, bundle)
    return {
        "fundingPredicted": group([market.funding_next(venue, symbol)], perpetual.predicted),
        "fundingWeek": group([market.funding(venue, symbol)], perpetual.week),
        "openInterest": group([market.open_interest(venue, symbol)], perpetual.open_interest),
        "longShare": group([market.long_short(venue, symbol)], perpetual.long_share),
        "basisBps": group([market.basis(venue, symbol)], perpetual.basis_bps),
        "longRank": group([market.long_short(venue, symbol)], perpetual.long_rank),
        "basisRank": group([market.basis(venue, symbol)], perpetual.basis_rank),
    }


def _structure(structure: Structure) -> dict[str, Any]:
    newest = {name: getattr(structure, name)[-count:] for name, count in _SHOWN.items()}
    return {
        "trend": structure.trend,
        **newest,
        "openGaps": [gap for gap in structure.gaps if gap.filled_at is None],
        "fibonacci": structure.fibonacci,
        "lines": [line for line in structure.lines if line.broken_at is None],
        "volumeProfile": structure.profile,
        "anchoredVwaps": structure.anchored,
        "zones": structure.zones,
    }


def _levels(bundle: Bundle, frames: Iterable[Frame]) -> Iterable[dict[str, Any]]:
    for frame in frames:
        block = bundle.block(own_candles(bundle.symbol, frame.timeframe))
        for level in frame.structure.levels:
            yield {
                "id": level.id,
                "kind": level.kind.value,
                "price": level.price,
                "since": iso(level.since),
                "source": bundle.symbol.venue.feed,
                **_age(block),
            }


def _age(block: Block | None) -> dict[str, Any]:
    as_of, age = (None, None) if block is None else (iso(block.as_of), block.age)
    return {"asOf": as_of, "ageSeconds": age}


def _group(bundle: Bundle, series: Iterable[Series[Any]], value: Any) -> dict[str, Any]:
    """Figures beside where they come from; they are as old as the oldest of what they rest on."""
    blocks = [block for name in series if (block := bundle.block(name)) is not None]
    oldest = min(blocks, key=lambda block: block.as_of, default=None)
    return {
        "source": ", ".join(dict.fromkeys(block.series.venue for block in blocks)) or None,
        **_age(oldest),
        "stale": any(block.stale for block in blocks) if blocks else None,
        "value": plain(value),
    }


def plain(value: Any) -> Any:
    """A figure in JSON's own types."""
    if isinstance(value, Missing):
        return {"missing": value.reason}
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {to_camel(field.name): plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {to_camel(name): plain(item) for name, item in value._asdict().items()}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value
