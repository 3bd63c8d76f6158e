"""How things are called: functions are verbs, a class name means one thing in a desk, JSON keys follow one rule."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import zuno
from tests.paths import CHECKOUT, DEVNET, SOURCE
from tests.wire.source_nodes import read_nodes
from zuno.kernel.text import Token
from zuno.kernel.view import View
from zuno.llm.question import Opinion
from zuno.markets.feeds import OPTIONS
from zuno.markets.venues import VENUES
from zuno.trading.model.cycle import Part

IRREGULAR = frozenset(
    "told held said made given taken kept seen found shown known heard written drawn begun done gone left lost met paid"
    " sent spent stood thought understood won bought built brought caught chosen dealt driven fallen felt grown hidden"
    " laid meant risen sold sought spoken struck sworn taught thrown bound fed".split()
)
VERBS_AND_NOUNS = frozenset("need seed feed speed embed proceed exceed succeed".split())
MOST_PARTICIPLES = 0.02
PAGE_LINES = 60
SNAKE_PREFIX = "zuno.trading."
"""The seed's schemas, `ruling` and `ev` keep the seed's snake_case: the trading desk's opinions and records."""


@cache
def trees() -> list[tuple[Path, tuple[ast.AST, ...]]]:
    return [(path, read_nodes(path)) for path in [*sorted(SOURCE.rglob("*.py")), *sorted(DEVNET.rglob("*.py"))]]


def is_bare_participle(name: str) -> bool:
    word = name.strip("_")
    return word in IRREGULAR or (word.endswith("ed") and "_" not in word and word not in VERBS_AND_NOUNS)


def functions() -> Iterator[tuple[str, str]]:
    for path, tree in trees():
        for node in tree:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.relative_to(SOURCE.parent)}:{node.lineno}", node.name


@pytest.mark.slow
def test_few_functions_are_one_bare_participle() -> None:
    every = list(functions())
    bare = [f"{where} {name}" for where, name in every if is_bare_participle(name)]
    assert len(bare) < MOST_PARTICIPLES * len(every), bare


@pytest.mark.slow
def test_nothing_is_called_one() -> None:
    def named_one(node: ast.AST) -> bool:
        stored = isinstance(node, ast.Name) and node.id == "one" and isinstance(node.ctx, ast.Store)
        return stored or (isinstance(node, ast.arg) and node.arg == "one")

    found = [str(path.relative_to(SOURCE.parent)) for path, tree in trees() for node in tree if named_one(node)]
    assert found == []


@pytest.mark.slow
def test_a_class_name_means_one_thing_in_a_desk() -> None:
    for desk in ("lp", "trading"):
        places = defaultdict(list)
        for path, tree in trees():
            if path.is_relative_to(SOURCE / desk):
                for node in tree:
                    if isinstance(node, ast.ClassDef):
                        places[node.name].append(str(path.relative_to(SOURCE.parent)))
        assert {name: where for name, where in places.items() if len(where) > 1} == {}


def import_everything() -> None:
    for module in pkgutil.walk_packages(zuno.__path__, "zuno."):
        if not module.name.startswith("zuno.adapters.") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def subclasses(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


def keys(model: type[BaseModel]) -> list[str]:
    by_alias = model.model_config.get("serialize_by_alias", False)
    return [(field.serialization_alias if by_alias else None) or name for name, field in model.model_fields.items()]


def nested(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from nested(argument)


@cache
def shown_models() -> frozenset[type[BaseModel]]:
    """Every view, and what its fields are made of."""
    import_everything()
    pending: list[type[BaseModel]] = [*subclasses(View)]
    assert len(pending) > 50
    seen: set[type[BaseModel]] = set()
    while pending:
        if (model := pending.pop()) not in seen:
            seen.add(model)
            pending += [inner for field in model.model_fields.values() for inner in nested(field.annotation)]
    return frozenset(seen)


def test_json_keys_are_camel_case_but_for_the_seeds_schemas() -> None:
    wrong = [
        f"{model.__module__}.{model.__name__}.{key}"
        for model in shown_models()
        if not (issubclass(model, Part | Opinion) and model.__module__.startswith(SNAKE_PREFIX))
        for key in keys(model)
        if "_" in key
    ]
    assert wrong == []
    assert any(issubclass(model, Part) for model in shown_models())


def test_the_page_about_json_names_fields_that_are_there() -> None:
    page = (CHECKOUT / "docs" / "json.md").read_text()
    named = {field for row in re.findall(r"(?m)^\| (`.+?) \|", page) for field in re.findall(r"`(\w+)`", row)}
    there = {key for model in shown_models() for key in keys(model)} | {field.name for field in fields(Token)}
    assert len(named) > 60
    assert named - there == set()


def test_the_glossary_is_short() -> None:
    rows = re.findall(r"(?m)^\| (?!term )", (CHECKOUT / "docs" / "glossary.md").read_text())
    assert 40 < len(rows) < 70


def test_every_decision_is_one_page() -> None:
    records = sorted((CHECKOUT / "docs" / "decisions").glob("*.md"))
    assert len(records) > 20
    assert [record.name for record in records if len(record.read_text().splitlines()) > PAGE_LINES] == []


ROUTE_WORDS = {
    ("model/cycle.py", "BINANCE"),
    ("model/cycle.py", "UPBIT"),
    ("model/trade_events.py", "krw:"),
    ("model/trade_events.py", "older"),
    ("rules/draft.py", "RATE"),
    ("service/live_start.py", "text"),
}
"""How lines begin that have the seed's routes, fields of records from before there was a third venue, and a setting."""
LOCAL_MONEY = ("krw", "cro_5_won")


def exchange_names() -> set[str]:
    """Houses and feeds of every venue, and the sources that are read beside them."""
    named = {name for venue in VENUES for name in (venue.house, *venue.feed.split("-"))} | {*OPTIONS.values()}
    return named - {"spot"}


def test_the_trading_desk_asks_what_a_venue_can_do_and_never_what_it_is_called() -> None:
    names = re.compile("|".join(sorted({*exchange_names(), *LOCAL_MONEY})), re.IGNORECASE)
    assert names.search("ZUNO_BYBIT_KEY")
    room = SOURCE / "trading"
    said = [
        (str(path.relative_to(room)), line.split()[0])
        for path in sorted(room.rglob("*"))
        if path.suffix in (".py", ".md", ".html", ".toml")
        for line in path.read_text().splitlines()
        if names.search(line)
    ]
    assert len(exchange_names()) > 5
    assert [place for place in said if place not in ROUTE_WORDS] == []


def test_the_trading_desk_has_no_amounts_in_won() -> None:
    """The currency, by the words that money in it goes with; a trade may be won."""
    money = re.compile(r"\b(?:in|of|the|for|with|KRW|rate) won\b|\bwon (?:are|is|rate)\b|\bWON\b|₩")
    room = SOURCE / "trading"
    assert [str(path) for path in sorted(room.rglob("*.py")) if money.search(path.read_text())] == []
