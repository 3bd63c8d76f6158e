"""A run on a screen: held against the screens on file, in a wide and a narrow window, and with a hostile model in it.

`WRITE_GOLDEN=1` writes the files anew; read what changed before it is kept.
"""

from __future__ import annotations

import os
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tests import paths
from tests.wire.told import RUN, board, decided, held, left, spoilt, told, unfinished
from zuno.doors.cli import layout
from zuno.doors.cli.cycle_progress import Progress
from zuno.doors.cli.render import render
from zuno.kernel.view import View
from zuno.present.document import document_of
from zuno.present.text import to_text
from zuno.trading.model.cycle import Call, Node, NodeEvent
from zuno.trading.service.report import page
from zuno.trading.service.runs_view import RunsView, run_view, why_view

GOLDEN = paths.GOLDEN / "trade"
HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]\u202eevil\u2066\u200b\x00\r\nsecond line"


def screen(view: View, width: int = 120) -> str:
    return f"{to_text(document_of(view), width)}\n"


@pytest.mark.soak(every=4)
@pytest.mark.slow
@pytest.mark.parametrize("width", [120, 60])
@pytest.mark.parametrize("name", ["long", "held", "hold", "exit", "why", "broken_off", "runs"])
def test_a_screen_is_the_one_on_file(name: str, width: int) -> None:
    long, kept = told(), told(ruling=held())
    hold = told(decision=decided(Call.HOLD), expectation=None, ruling=held(veto=None, changes=()), picture=None)
    out = told(decision=decided(Call.CANCEL_AND_CLOSE), expectation=None, ruling=left(), picture=None)
    shown = {
        "long": run_view(long).model_copy(update={"chart": "reports/a.png", "report": "reports/a.html"}),
        "held": run_view(kept),
        "hold": run_view(hold),
        "exit": run_view(out),
        "why": why_view(kept),
        "broken_off": why_view(unfinished()),
        "runs": RunsView(
            runs=(
                long.line,
                kept.line,
                unfinished().line,
            )
        ),
    }[name]
    file = GOLDEN / f"{name}_{width}.txt"
    if os.environ.get("WRITE_GOLDEN"):
        file.write_text(screen(shown, width), encoding="utf-8")
    assert screen(shown, width) == file.read_text(encoding="utf-8")
    assert max(map(len, screen(shown, width).splitlines())) <= width


def test_a_list_of_runs_says_their_mode_at_eighty_columns() -> None:
    _, head, *rows = screen(
        RunsView(
            runs=(
                told().line,
                told(ruling=left()).line,
                unfinished().line,
            )
        ),
        80,
    ).splitlines()
    assert head.split() == ["run", "symbol", "mode", "as", "of", "ruling", "market"]
    assert [row.split()[-2] for row in rows[:3]] == ["LONG", "CLOSE", "unfinished"]


@pytest.mark.slow
def test_a_risk_officer_whose_model_failed_is_named_beside_the_ruling() -> None:
    view = run_view(told())
    officer = view.voices[0].model_copy(update={"role": "risk_manager", "source": "fallback", "why": "it timed out"})
    failed = (*view.voices, officer)
    (warning,) = view.model_copy(update={"voices": failed}).to_summary().urgent
    assert "it timed out" in warning.text
    assert view.to_document().urgent == ()


@pytest.mark.slow
def test_why_no_model_spoke_is_said_once() -> None:
    view, why = run_view(told()), "no key for a model"
    rules = {"source": "deterministic", "why": why, "model": None}
    quiet = view.model_copy(
        update={
            "voices": tuple(voice.model_copy(update=rules) for voice in view.voices),
            "decision": view.decision.model_copy(update={"source": "deterministic", "why": why}),
        }
    )
    for width in (120, 60):
        assert screen(quiet, width).replace("\n", " ").count(why) == 1
    assert page(quiet, None).count(why) == 1


def test_why_of_a_run_that_was_killed_says_how_far_it_came() -> None:
    record = replace(unfinished(), nodes=(Node.COLLECT_DATA, Node.CONTEXT_GATHERING, Node.TRIAGE))
    view = why_view(record)
    assert view.reached == ("collect_data", "context_gathering", "triage")
    assert set(view.reached) | set(view.waiting) == set(Node)
    facts = {fact.label: fact.value.text for fact in view.to_document().facts}
    assert facts["on record"] == "collect_data, context_gathering, triage"
    assert facts["not reached"].startswith("meta_agent")


@pytest.mark.slow
def test_a_hostile_model_cannot_move_the_cursor() -> None:
    found = spoilt(HOSTILE)
    for view in (run_view(found), why_view(found), RunsView(runs=(found.line,))):
        text = screen(view, 200)
        assert "evil" in text
        assert not set("\x1b\x07\u202e\u2066\u200b\x00\r") & set(text)


def test_an_absent_expert_weighs_nothing_and_says_so() -> None:
    text = screen(run_view(told(board=board(vlm_geometry=None, synthesis=None))))
    assert "vlm_geometry: absent" in text
    assert "Agreement and conflict" not in text


def test_where_no_model_was_asked_it_is_said() -> None:
    assert "None: the rules spoke for everybody." in screen(why_view(replace(told(), attempts=())))


def test_an_empty_list_says_how_to_fill_it() -> None:
    assert "zuno trade run BTCUSDT" in screen(RunsView(runs=()))


@pytest.mark.slow
def test_every_view_has_its_screen(capsys: pytest.CaptureFixture[str]) -> None:
    for view in (run_view(told()), why_view(told()), RunsView(runs=(told().line,))):
        render(view)
    assert capsys.readouterr().out.count(RUN) >= 3


# -- while it runs


def events() -> list[NodeEvent]:
    return [
        NodeEvent(Node.COLLECT_DATA, "done"),
        NodeEvent(Node.META_AGENT, "waits"),
        NodeEvent(Node.META_AGENT, "speaks", "model", 0.0011, "RANGE_BOUND"),
        NodeEvent(Node.MACRO_EXPERT, "waits"),
        NodeEvent(Node.MACRO_EXPERT, "speaks", "fallback", None, HOSTILE),
        NodeEvent(Node.EXECUTE_TRADE, "skipped", note="execution not enabled"),
    ]


def test_in_a_pipe_every_node_that_is_over_has_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        for event in events():
            progress.hear(event)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["collect_data", "done"],
        ["meta_agent", "spoke"],
        ["macro_expert", "spoke"],
        ["execute_trade", "skipped"],
    ]
    assert lines[1].endswith("model  $0.0011  RANGE_BOUND")
    assert "rules: " in lines[2]
    assert lines[3].endswith("execution not enabled")
    assert not set("\x1b\x07\u202e") & set("".join(lines))


def test_why_no_model_sits_is_told_by_the_first_node_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        for node in (Node.META_AGENT, Node.MACRO_EXPERT, Node.JUDGE_AGENT):
            progress.hear(NodeEvent(node, "speaks", "deterministic", None, "no key for a model"))
    assert capsys.readouterr().out.count("no key for a model") == 1


def test_on_a_terminal_a_board_says_who_waits_and_what_was_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    out = StringIO()
    terminal = Console(file=out, width=100, height=40, force_terminal=True, color_system=None)
    monkeypatch.setattr("zuno.doors.cli.layout.console", lambda: terminal)
    with Progress() as progress:
        for event in events()[:4]:
            progress.hear(event)
        printed = StringIO()
        Console(file=printed, width=100, color_system=None).print(progress._board())
        board = printed.getvalue()
    assert "✓ meta_agent" in board
    assert "model  $0.0011  RANGE_BOUND" in board
    assert "spent $0.0011" in board
    assert "· judge_agent" in board
    waits = next(line for line in board.splitlines() if "macro_expert" in line)
    assert waits[0] not in "·✓–"
    assert "macro_expert" in out.getvalue()


def test_a_closed_pipe_silences_the_board_and_not_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("zuno.doors.cli.layout.console", lambda: layout._Console(file=Closed(), width=80, markup=False))
    with Progress() as progress:
        for event in events():
            progress.hear(event)
