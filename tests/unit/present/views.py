"""Views with made-up fields: every type that a view's field may have, and text of strangers that can be recognised."""

from __future__ import annotations

import dataclasses
import pkgutil
import types
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import Enum
from importlib import import_module
from random import Random
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, BaseModel
from pydantic.fields import FieldInfo

from tests.unit.present.left_out import LEFT_OUT
from zuno.kernel.text import Token
from zuno.kernel.view import View, sanitise
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import VENUES, Venue

STRANGER = "§"
"""Stands in every text of a stranger, and nowhere else."""
ROOMS = ("doors", "journal", "lab", "lp.service", "lp.watch", "trading.service", "trading.watch")
EXCERPTS = ("zuno.doors.cli.demo_tour", "zuno.doors.web.home_view")
OPTIONAL = ("zuno.doors.web", "zuno.doors.mcp", "zuno.doors.telegram")
"""Need a vendor that may be absent; their views are no answers."""


def features(close: float) -> dict[str, Any]:
    """What `FeaturesView` holds where next to nothing could be measured."""
    about = {"source": "binance", "asOf": "2026-01-01T00:00:00Z", "ageSeconds": 60, "stale": True}
    gone = {**about, "ageSeconds": None, "value": {"missing": "no rows"}}
    level = {"id": "1h.pivot", "kind": "pivot", "price": close + 1, "since": "2026-01-01T00:00:00Z"}
    whole = ("volatility", "openInterest", "book", "liquidations", "whales", "options", "dvol")
    perpetual = ("fundingPredicted", "fundingWeek", "openInterest", "longShare", "basisBps")
    return {
        "indicators": {"1h": {**about, "value": {"close": close, "squeeze": True}}, "4h": gone},
        "structure": {"1h": gone},
        "levels": [level],
        "derivatives": {"binance": dict.fromkeys(perpetual, gone)},
        **dict.fromkeys(whole, gone),
        "macro": {"fred/DGS2": gone},
        "sentiment": {"fearGreed": gone},
        "rates": {"USDT/KRW": gone},
    }


def chart_numbers(close: float) -> dict[str, Any]:
    level = {"label": "POC", "kind": "poc", "price": close + 1}
    price = {"last": {"close": close}, "levels": [level], "heat": None}
    panel = {"title": "CVD", "last": None, "unit": "BTC", "note": ""}
    return {"bars": 120, "timeframe": "1h", "price": price, "panels": [panel], "notes": [], "absent": []}


KNOWN: dict[str, tuple[Any, ...]] = {
    "symbol": ("BTCUSDT", "ETHUSDT"),
    "symbols": (("BTCUSDT",), ("ETHUSDT", "BTCUSDT")),
    "currency": ("USD", "KRW"),
    "regime": ("all", "TREND"),
    "account": ("live", "demo", "paper:SYNTHETIC", "paper:SYNTHETIC:alpha"),
    "stops": ("venue", "desk"),
    "RunView.mode": ("swing", "position"),
    "FeaturesView.features": tuple(map(features, (100.0, 200.0))),
    "ShockView.moves": (({"minutes": 5.0, "share": 0.02},), ({"minutes": 15.0, "share": -0.03},)),
    "ChartView.numbers": tuple(map(chart_numbers, (100.0, 200.0))),
    "severity": ("critical", "warning", "info"),
}
"""Fields whose value is one of a few, though their type does not say so; with the name of the class, in that alone."""


def answers() -> list[type[View]]:
    """Every view that writes itself as a document."""
    for room in ROOMS:
        package = import_module(f"zuno.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"zuno.{room}."):
            if not module.name.startswith(OPTIONAL):
                import_module(module.name)
    return sorted({kind for kind in _below(View) if hasattr(kind, "to_document")}, key=lambda kind: kind.__name__)


def _below(kind: type[View]) -> Iterator[type[View]]:
    for below in kind.__subclasses__():
        if below.__module__.startswith("zuno."):
            yield below
        yield from _below(below)


class Maker:
    """Makes values by their type. With `strangers` the texts we did not write are marked."""

    def __init__(self, seed: str, *, strangers: bool = False) -> None:
        self._random = Random(seed)
        self._strangers = strangers

    def view(self, kind: type[BaseModel]) -> Any:
        kind.model_rebuild()
        fields = {name: self.field(kind, name, info) for name, info in kind.model_fields.items()}
        return kind(**fields) if issubclass(kind, View) else kind.model_construct(**fields)  # without its bounds

    def field(self, owner: type[BaseModel], name: str, info: FieldInfo) -> Any:
        if known := KNOWN.get(f"{owner.__name__}.{name}"):
            return self._random.choice(known)
        if name in KNOWN and info.annotation in (str, tuple[str, ...]):
            return self._random.choice(KNOWN[name])
        foreign = any(isinstance(part, AfterValidator) and part.func is sanitise for part in info.metadata)
        return self._text(foreign=True) if foreign else self.value(info.annotation)

    def value(self, kind: Any) -> Any:
        origin, inner = get_origin(kind), get_args(kind)
        if origin is Annotated:
            base, *rules = inner
            if any(isinstance(part, AfterValidator) and part.func is sanitise for part in rules):
                return self._text(foreign=True)
            return self.value(base)
        if origin in (Union, types.UnionType):
            return self.value(self._random.choice(inner))
        if origin is Literal:
            return self._random.choice(inner)
        if origin is tuple:
            if inner[1:] == (...,):
                return tuple(self.value(inner[0]) for _ in range(self._random.choice((0, 1, 2, 3))))
            return tuple(map(self.value, inner))
        if origin is list or getattr(origin, "__name__", "") in ("Sequence", "frozenset"):
            return tuple(self.value(inner[0]) for _ in range(self._random.choice((1, 2))))
        if origin is dict or getattr(origin, "__name__", "") == "Mapping":
            return {self.value(inner[0]): self.value(inner[1]) for _ in range(2)}
        if hasattr(kind, "__supertype__"):
            return self.value(kind.__supertype__)
        return self._plain(kind)

    def _plain(self, kind: Any) -> Any:
        makers: dict[Any, Callable[[], Any]] = {
            type(None): lambda: None,
            bool: lambda: self._random.random() < 0.5,
            int: lambda: self._random.randrange(1, 999_999),
            float: lambda: self._random.uniform(0.01, 900.0),
            Decimal: lambda: Decimal(self._random.randrange(1, 999_999)) / 100,
            str: lambda: self._text(foreign=False),
            bytes: lambda: b"",
            Any: lambda: None,
            Venue: lambda: self._random.choice(VENUES),
            Symbol: lambda: self._random.choice(DEFAULT_SYMBOLS),
        }
        if kind in makers:
            return makers[kind]()
        if kind is Token:
            verified = not self._strangers
            symbol = f"T{STRANGER}" if self._strangers else f"T{self._random.randrange(1000)}"
            return Token(f"0x{self._random.randrange(16**40):040x}", symbol, 18, verified)  # type: ignore[arg-type]
        if kind in (Venue, Symbol):
            return self._random.choice(VENUES if kind is Venue else DEFAULT_SYMBOLS)
        if issubclass(kind, Enum):
            return self._random.choice(list(kind))
        if issubclass(kind, BaseModel):
            return self.view(kind)
        if dataclasses.is_dataclass(kind):
            hints = get_type_hints(kind, include_extras=True)
            return kind(
                **{  # type: ignore[operator]
                    part.name: self.value(hints[part.name]) for part in dataclasses.fields(kind) if part.init
                }
            )
        raise TypeError(f"no made-up {kind}")

    def _text(self, *, foreign: bool) -> str:
        """Digits, so that a field that holds a number as text can be read."""
        number = str(self._random.randrange(100, 999_999))
        if foreign and self._random.random() < 0.1:
            return ""
        return f"{STRANGER}{number}" if foreign and self._strangers else number


def left_out(owner: type[View], name: str, answer: type[View]) -> bool:
    """Listed of the view itself, or of the answer that it is a part of; tour and Home show excerpts of others."""
    return (
        (answer.__module__ in EXCERPTS and owner is not answer)
        or name in _list_left_out(owner)
        or f"{owner.__name__}.{name}" in _list_left_out(answer)
    )


def _list_left_out(kind: type[View]) -> frozenset[str]:
    """Of a class that lists none what the one it is made from lists."""
    names = (name for base in kind.__mro__ for name in (f"{base.__module__}.{base.__name__}", base.__name__))
    return next((LEFT_OUT[name] for name in names if name in LEFT_OUT), frozenset())


def changes(view: Any, maker: Maker) -> Iterator[tuple[type[View], str, Callable[[], Any]]]:
    """Each field of the view and of the views in it, and what makes the same view with another value there."""

    def walk(node: Any, rebuild: Callable[[Any], Any]) -> Iterator[tuple[type[View], str, Callable[[], Any]]]:
        if isinstance(node, View):
            for name, info in type(node).model_fields.items():

                def replace(value: Any, name: str = name) -> Any:
                    return rebuild(node.model_copy(update={name: value}))

                def change(replace: Any = replace, name: str = name, info: FieldInfo = info) -> Any:
                    return replace(maker.field(type(node), name, info))

                yield type(node), name, change
                if not left_out(type(node), name, type(view)):
                    yield from walk(getattr(node, name), replace)
        elif isinstance(node, tuple):
            for place, part in enumerate(node):
                yield from walk(
                    part,
                    lambda value, place=place: rebuild((*node[:place], value, *node[place + 1 :])),  # type: ignore[misc]
                )

    yield from walk(view, lambda value: value)
