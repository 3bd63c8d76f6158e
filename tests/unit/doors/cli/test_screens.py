"""Screens are found by the names of their views, which nothing but this holds together."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module

import pytest

from zuno.doors.cli import render
from zuno.doors.cli.render import _SCREENS, _SCREENS_ELSEWHERE, _find_screen
from zuno.kernel.view import View

ROOMS = (
    "zuno.doors.agents",
    "zuno.doors.cli.demo_tour",
    "zuno.doors.doctor",
    "zuno.doors.export",
    "zuno.doors.logs",
    "zuno.doors.reading.parse_view",
    "zuno.journal.audit",
    "zuno.lab.model",
    "zuno.lab.invariance",
    "zuno.lab.lookahead",
    "zuno.lab.noedge",
    "zuno.lab.reports",
    "zuno.lp.service.archive",
    "zuno.lp.service.execution_view",
    "zuno.lp.service.mesh",
    "zuno.lp.service.mesh_peer",
    "zuno.lp.service.mesh_supervisor",
    "zuno.lp.service.plan_view",
    "zuno.lab.lp.views",
    "zuno.lab.memory_service",
    "zuno.lp.service.portfolio",
    "zuno.lp.service.views",
    "zuno.lp.service.wallets",
    "zuno.lp.watch.alerts",
    "zuno.lp.watch.monitor",
    "zuno.trading.service.account_view",
    "zuno.trading.service.trade_desk",
    "zuno.trading.service.collector",
    "zuno.trading.service.data",
    "zuno.trading.service.download",
    "zuno.trading.service.features_view",
    "zuno.trading.service.imports",
    "zuno.trading.service.paper_book",
    "zuno.trading.service.runs_view",
)


def find_views(kind: type[View] = View) -> Iterator[type[View]]:
    for below in kind.__subclasses__():
        yield below
        yield from find_views(below)


@pytest.mark.parametrize("name", sorted({*_SCREENS, *_SCREENS_ELSEWHERE}))
def test_a_screen_takes_the_view_it_is_found_by(name: str) -> None:
    for room in ROOMS:
        import_module(room)
    (kind,) = {kind for kind in find_views() if kind.__name__ == name and kind.__module__.startswith("zuno.")}
    taken, *_ = inspect.signature(_find_screen(kind)).parameters.values()
    assert taken.annotation in {name, "Any"}


def test_a_name_has_one_screen() -> None:
    assert not set(_SCREENS) & set(_SCREENS_ELSEWHERE)


def test_no_view_is_loaded_for_another_s_screen() -> None:
    """What a command does not show it need not load; the table is what keeps commands quick to start."""
    assert not [name for name, value in vars(render).items() if inspect.isclass(value) and issubclass(value, View)]
