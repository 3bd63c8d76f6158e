"""A view that an earlier Zuno stored is shown by every door, and by no code that computes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.paths import GOLDEN
from tests.wire.told import told
from zuno.doors.chat.facts import FactWriter
from zuno.doors.telegram.render import render as telegram_message
from zuno.journal.decision_view import DecisionRecord, _unpack_view, pack_view
from zuno.kernel.view import RecordedView, View, write_document
from zuno.lp.service.archive import WhyView
from zuno.lp.service.plan_view import PlanView
from zuno.present.document import document_of
from zuno.present.text import to_text
from zuno.trading.service.report import page
from zuno.trading.service.run_view import RunView
from zuno.trading.service.runs_view import why_view

VIEWS = GOLDEN / "views"
RUNS = sorted(VIEWS.glob("run_*.json"))
PLANS = sorted(VIEWS.glob("plan_*.json"))
RUN_FIGURES = ("70,830.1", "29.1")
"""The entry, and the ADX that the regime cites."""
PLAN_FIGURES = ("36 h", "2,927.79")
"""What the chosen range lasts, and the edge of one that the round before proposed."""


def screen(view: View) -> str:
    return to_text(document_of(view), 200)


async def never() -> Any:
    raise AssertionError("a stored view is not computed")


def stored(file: Any, shape: type[Any]) -> Any:
    payload = json.loads(file.read_text())
    return asyncio.run(DecisionRecord(shape, payload["decided"], payload, never).show("today"))


def of_run(view: RunView) -> dict[str, str]:
    why = why_view(replace(told(), view=view))
    return {
        "screen": to_text(view.to_document(), 200),
        "why": to_text(why.to_document(), 200),
        "document": write_document(why),
        "message": telegram_message(why).html,
        "page": page(view, None),
        "chat": FactWriter("run").document(why.to_document()).model_dump_json(),
    }


def of_plan(view: PlanView) -> dict[str, str]:
    why = WhyView(
        request_id=view.request_id, code="1", messages=(), transcript=(), sources=view.sources, plan=view, failed=None
    )
    return {
        "screen": screen(view),
        "why": screen(why),
        "document": write_document(view),
        "message": telegram_message(why).html,
        "chat": FactWriter("plan").document(view.to_document()).model_dump_json(),
    }


def test_every_version_has_its_fixtures() -> None:
    assert [file.stem for file in RUNS] == [f"run_{version}" for version in range(1, RunView.VERSION + 1)]
    assert [file.stem for file in PLANS] == [f"plan_{version}" for version in range(1, PlanView.VERSION + 1)]


@pytest.mark.parametrize("file", RUNS, ids=lambda file: file.stem)
def test_a_stored_run_is_shown_by_every_door(file: Any) -> None:
    view = stored(file, RunView)
    assert (view.computed_by, view.symbol, view.execution.state) == (None, "BTCUSDT", "open")
    shown = of_run(view)
    for figure in RUN_FIGURES:
        assert [door for door, text in shown.items() if figure not in text] == []
    assert str(view.ruling.card.entry) in write_document(view)
    assert "by Zuno" not in "".join(shown.values())


@pytest.mark.parametrize("file", PLANS, ids=lambda file: file.stem)
def test_a_stored_plan_is_shown_by_every_door(file: Any) -> None:
    view = stored(file, PlanView)
    assert (view.computed_by, view.plan_id, view.rounds) == (None, "plan_d6c816905c8a", 1)
    shown = of_plan(view)
    for figure in PLAN_FIGURES:
        assert [door for door, text in shown.items() if figure not in text and door != "chat"] == []
    assert view.plan_id in shown["chat"]
    assert "by Zuno" not in "".join(shown.values())


@pytest.mark.parametrize(("file", "shape"), [(RUNS[-1], RunView), (PLANS[-1], PlanView)])
def test_a_computed_view_says_so_on_every_door(file: Any, shape: type[RecordedView]) -> None:
    marked = stored(file, shape).model_copy(update={"computed_by": "9.9", "computed_why": "its view is not on record"})
    doors: Callable[[Any], dict[str, str]] = of_run if shape is RunView else of_plan
    shown = doors(marked)
    document = json.loads(shown.pop("document"))
    assert (document.get("run") or document)["computedBy"] == "9.9"
    assert [door for door, text in shown.items() if "Zuno 9.9" not in text] == []


@pytest.mark.parametrize(("file", "shape"), [(RUNS[-1], RunView), (PLANS[-1], PlanView)])
def test_what_is_read_is_what_would_be_stored(file: Any, shape: type[RecordedView]) -> None:
    """Nothing is lost on the way: the newest version packs to the content it was read from."""
    payload, view = json.loads(file.read_text()), stored(file, shape)
    content = _unpack_view(shape, payload["decided"], payload)
    assert _unpack_view(shape, payload["decided"], pack_view(view, content["facts"]).model_dump()) == content
    assert all(fact.keys() == {"value", "unit", "printed"} for fact in content["facts"].values())
    assert len(content["facts"]) > 10
