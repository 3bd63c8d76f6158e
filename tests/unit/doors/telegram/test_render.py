"""Views as messages: held against those on file, well-formed, no wider than a phone, and hostile words in every one.

`WRITE_GOLDEN=1` writes the files anew; read what changed before it is kept.
"""

from __future__ import annotations

import ast
import asyncio
import html
import inspect
import os
import re
from collections.abc import Iterator
from types import ModuleType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from tests import paths
from tests.unit.doors.telegram.test_reply import read
from tests.wire.telegram_views import ChatViews, collect_views
from zuno.doors.metrics import DeskMetrics
from zuno.doors.telegram import analysis_commands, lp_commands, trading_commands
from zuno.doors.telegram.analysis_commands import show_progress
from zuno.doors.telegram.lp_commands import show_debate_progress
from zuno.doors.telegram.render import render, render_document
from zuno.doors.telegram.reply import Reply, split_reply
from zuno.doors.zuno import Zuno
from zuno.kernel.view import View
from zuno.lp.model.debate import Role
from zuno.lp.service.recommend import Waiting
from zuno.present.document import select_columns
from zuno.present.html import PHONE_WIDTH
from zuno.trading.model.cycle import Node, NodeEvent
from zuno.trading.service.account import AccountDesk
from zuno.trading.service.account_view import TradePositionsView
from zuno.trading.service.report import Reports
from zuno.trading.service.run_view import RunView

GOLDEN = paths.GOLDEN / "telegram"
ON_FILE = (
    *("run", "run_held", "run_why", "status", "trade_positions", "trades", "profit_by_day"),
    *("positions", "pnl", "whatif"),
)
MONEY = re.compile(r"[$₩]\d|\d (USDC|USD|WETH|ETH)\b")
EVIL = "<b>evil</b>&amp;\u202e/kill@bot evil.com </pre>`x`"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> ChatViews:
    return asyncio.run(collect_views(tmp_path_factory.mktemp("chat")))


def replies(seen: ChatViews) -> Iterator[tuple[str, Reply]]:
    yield from ((name, message(view)) for name, view in seen.views.items())
    run, positions = seen.views["run"], seen.views["trade_positions"]
    assert isinstance(run, RunView)
    assert isinstance(positions, TradePositionsView)
    yield "whole run", render(run)
    yield "experts", render_document(run.to_experts_document())
    yield "position table", render_document(select_columns(positions.to_document(), trading_commands.SHORT_COLUMNS))


def message(view: View) -> Reply:
    """A run as it stands under its picture."""
    return render_document(view.to_summary()) if isinstance(view, RunView) else render(view)


def check_message(reply: Reply) -> None:
    for part in split_reply(reply):
        read(part.html)
        for table in re.findall("<pre>(.*?)</pre>", part.html, re.DOTALL):
            assert max(map(len, html.unescape(table).split("\n"))) <= PHONE_WIDTH, table


@pytest.mark.slow
def test_messages_are_those_on_file(seen: ChatViews) -> None:
    shown = {name: message(seen.views[name]).html + "\n" for name in ON_FILE}
    if os.environ.get("WRITE_GOLDEN"):
        for name, html_text in shown.items():
            (GOLDEN / f"{name}.html").write_text(html_text, encoding="utf-8")
    assert shown == {name: (GOLDEN / f"{name}.html").read_text(encoding="utf-8") for name in ON_FILE}


@pytest.mark.slow
def test_every_message_is_well_formed_and_as_wide_as_a_phone(seen: ChatViews) -> None:
    for _, reply in replies(seen):
        check_message(reply)


@pytest.mark.slow
def test_every_message_that_shows_money_says_whose_it_is(seen: ChatViews) -> None:
    shown = {name: read(reply.html).text for name, reply in replies(seen)}
    assert len([name for name, told in shown.items() if MONEY.search(told)]) > 12
    for name, told in shown.items():
        if MONEY.search(told):
            assert re.search("SYNTHETIC|PAPER|DEMO|LIVE", told.split("\n\n")[0]) or name == "action", name


@pytest.mark.slow
def test_a_card_fits_under_its_picture(seen: ChatViews) -> None:
    for name in ("run", "run_held"):
        assert len(split_reply(Reply(message(seen.views[name]).html, photo=b"png"))) == 1


@pytest.mark.slow
def test_every_button_is_a_command_with_its_ids(seen: ChatViews) -> None:
    buttons = [button for _, reply in replies(seen) for button in reply.buttons]
    assert len(buttons) > 20
    assert all(re.fullmatch(r"/[a-z]+( [\w.]+)*", button.words) and len(button.label) <= 20 for button in buttons)


def spoil(value: Any) -> Any:
    """The same with hostile words wherever a plain text stands that is no number, no time and no known word."""
    if isinstance(value, View | BaseModel):
        return value.model_copy(update={name: spoil(getattr(value, name)) for name in type(value).model_fields})
    if isinstance(value, list | tuple):
        return type(value)(map(spoil, value))
    return f"{value} {EVIL}" if type(value) is str and " " in value else value


@pytest.mark.slow
def test_hostile_words_in_every_view_stay_words(seen: ChatViews) -> None:
    spoilt = 0
    for name, view in seen.views.items():
        reply = render(spoil(view))
        check_message(reply)
        told = html.unescape(read(reply.html).text)
        assert "\u202e" not in told, name
        assert not re.search(r"(?<![\w/])/kill|evil\.com", re.sub("<(code|pre)>.*?</(code|pre)>", "", reply.html)), name
        spoilt += "evil" in told
    assert spoilt > 15


def test_who_waits_and_who_spoke() -> None:
    heard = {
        Node.COLLECT_DATA: NodeEvent(Node.COLLECT_DATA, "done"),
        Node.META_AGENT: NodeEvent(Node.META_AGENT, "speaks", "model", 0.0123, "a <note>"),
        Node.MACRO_EXPERT: NodeEvent(Node.MACRO_EXPERT, "waits"),
    }
    told = read(show_progress("BTCUSDT", "swing", heard)).text
    assert re.search(r"✓ meta agent .*model, \$0\.0123, a <note>", told)
    assert "⏳ macro expert" in told
    assert re.search(rf"\b{len(Node) - 3} steps .*\$0\.0123", told)
    assert " steps " not in show_progress("BTCUSDT", "swing", heard, over=True)


@pytest.mark.slow
def test_a_debate_shows_its_newest_thoughts_and_whom_it_waits_for(seen: ChatViews) -> None:
    assert "⏳" not in show_debate_progress("Argues position 1", [])
    told = show_debate_progress("Argues position 1", seen.thoughts[:4], Waiting((Role.CRITIC,), 12))
    assert told.endswith(f"⏳ {Waiting((Role.CRITIC,), 12)}")
    whole = show_debate_progress("Argues position 1", seen.thoughts * 5)
    assert len(split_reply(Reply(whole))) == 1


# -- every answer of a command has a message

LOCALS = {"reports": Reports}


def services() -> dict[str, Any]:
    named = {"DeskMetrics": DeskMetrics}
    methods = inspect.getmembers(Zuno, inspect.isfunction)
    return {name: get_type_hints(method, localns=named).get("return") for name, method in methods}


def rendered_calls(module: ModuleType) -> Iterator[tuple[Any, str]]:
    """The service and the method of every `render(await service.method(...))`, and of what is asked of an account."""
    known = services()
    tree = ast.parse(inspect.getsource(module))
    kept = dict(LOCALS)
    for node in ast.walk(tree):
        kind = service_of(node.value, known) if isinstance(node, ast.Assign) else None
        if kind is not None and isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            kept[node.targets[0].id] = kind
    for node in ast.walk(tree):
        asked: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "render":
            asked = node.args[0].value if isinstance(node.args[0], ast.Await) else None
        elif isinstance(node, ast.Lambda) and [argument.arg for argument in node.args.args] == ["zuno", "name"]:
            asked = node.body
        if isinstance(asked, ast.Call) and isinstance(asked.func, ast.Attribute):
            owner = asked.func.value
            kind = kept.get(owner.id) if isinstance(owner, ast.Name) else service_of(owner, known)
            yield kind or AccountDesk, asked.func.attr  # what is opened in another way is an account


def service_of(node: ast.expr, known: dict[str, Any]) -> Any:
    """`zuno.memory()`, with any arguments."""
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    if called and isinstance(node.func.value, ast.Name) and node.func.value.id == "zuno":  # type: ignore[attr-defined]
        return known[node.func.attr]  # type: ignore[attr-defined]
    return None


def views_of(annotation: Any) -> list[type]:
    if get_origin(annotation) in (Union, UnionType, tuple):
        return [kind for part in get_args(annotation) for kind in views_of(part)]
    return [annotation] if isinstance(annotation, type) and issubclass(annotation, View) else []


@pytest.mark.parametrize(
    "module", [analysis_commands, lp_commands, trading_commands], ids=lambda module: module.__name__
)
def test_every_view_that_a_command_answers_with_has_a_message(module: ModuleType) -> None:
    for service, method in rendered_calls(module):
        answers = views_of(get_type_hints(getattr(service, method))["return"])
        assert answers, (service, method)
        for kind in answers:
            assert hasattr(kind, "to_document"), kind


def test_a_view_without_a_message_is_our_mistake() -> None:
    with pytest.raises(TypeError):
        render(View())
