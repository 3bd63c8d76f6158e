"""The trading desk as a person asks it: a run, its page and its picture, why it ruled so, and the list of runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.wire.commands import Ran, run_process, run_zuno
from zuno.trading.model.cycle import Node, NodeEvent
from zuno.trading.service.report import Reports
from zuno.wiring import open_zuno

SEED = "7"


def trade(home: Path, *words: str) -> Ran:
    return run_zuno(home, "trade", *words)


@pytest.fixture(scope="module")
def ran(invented: Path) -> Any:
    """One run as a script gets it, by a process of its own: nothing but the document on stdout."""
    said = run_process(invented, "trade", "run", "BTCUSDT", "--json")
    assert said.code == 0, said.err
    assert said.err == ""
    return said.document


def test_the_document_of_a_run_is_whole(ran: Any, invented: Path) -> None:
    assert ran["symbol"] == "BTCUSDT"
    assert ran["synthetic"] is True
    assert ran["origin"].startswith("SYNTHETIC")
    assert ran["regime"] == ran["meta"]["regime"]
    assert ran["meta"]["source"] == "deterministic"
    assert set(ran["blackboard"]) == {"liquidity", "microstructure", "macro", "vlm_geometry", "synthesis"}
    assert ran["ruling"]["decision"] in ("LONG", "SHORT", "HOLD", "CANCEL_AND_CLOSE")
    assert {source["feed"] for source in ran["sources"]} >= {"candles", "book", "funding"}
    assert len(ran["hash"]) == len(ran["bundleHash"]) == 64
    picture, page = Path(ran["chart"]), Path(ran["report"])
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert page.read_text(encoding="utf-8").count(ran["runId"]) >= 1
    assert {picture.parent, page.parent} == {invented / "reports"}


def test_the_same_bundle_gives_the_same_hash(ran: Any, invented: Path) -> None:
    again = trade(invented, "run", "BTCUSDT", "--as-of", ran["asOf"], "--json").document
    assert again["runId"] != ran["runId"]
    assert (again["bundleHash"], again["hash"]) == (ran["bundleHash"], ran["hash"])


@pytest.mark.soak
def test_in_a_pipe_each_step_has_its_line_before_the_report(invented: Path, tmp_path: Path) -> None:
    page = tmp_path / "deep" / "page.html"
    said = trade(invented, "run", "ethusdt", "--mode", "position", "--no-chart", "--html", str(page))
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert sorted(line.split()[0] for line in lines[: len(Node)]) == sorted(Node)
    assert any(line.startswith("execute_trade") and "enabled" in line for line in lines)
    assert "SYNTHETIC" in said.out
    for part in ("Ruling:", "Regime", "Blackboard", "The Judge", "What it is worth", "Data", "Who spoke"):
        assert part in said.out
    assert "\x1b" not in said.out
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in page.parent.iterdir()) == ["page.html"]
    run_id = trade(invented, "runs", "--json").document["runs"][0]["runId"]
    assert not (invented / "reports" / f"{run_id}.png").exists()


def test_why_is_told_from_the_journal(ran: Any, invented: Path) -> None:
    why = trade(invented, "why", ran["runId"], "--json").document
    assert why["state"] == "ended"
    assert why["run"]["hash"] == ran["hash"]
    assert why["rules"] == ran["ruling"]["changes"]
    assert why["attempts"] == []
    shown = trade(invented, "why", ran["runId"])
    assert shown.code == 0
    assert "None: " in shown.out


@pytest.mark.soak
def test_the_newest_run_stands_first(ran: Any, invented: Path) -> None:
    newest = trade(invented, "run", "BTCUSDT", "--no-chart", "--json").document
    assert newest["chart"] is None
    lines = trade(invented, "runs", "--json").document["runs"]
    assert lines[0]["runId"] == newest["runId"]
    (line,) = (one for one in lines if one["runId"] == ran["runId"])
    assert (line["state"], line["hash"], line["ruling"]) == ("ended", ran["hash"], ran["ruling"]["decision"])
    assert newest["runId"] in trade(invented, "runs").out


def test_a_run_that_ended_is_shown_again(ran: Any, invented: Path) -> None:
    again = trade(invented, "resume", ran["runId"], "--json").document
    assert {**again, "notes": None} == {**ran, "notes": None}


def test_a_run_that_was_broken_off_is_listed_explained_and_taken_up(ran: Any, invented: Path) -> None:
    def lost(event: NodeEvent) -> None:
        if event.node is Node.JUDGE_AGENT:
            raise ConnectionAbortedError

    async def broken_off() -> None:
        zuno = open_zuno(str(invented))
        try:
            await Reports(zuno.cycles()).run("BTCUSDT", "swing", ran["asOf"], lost, chart=False)
        finally:
            await zuno.close()

    with pytest.raises(ConnectionAbortedError):
        asyncio.run(broken_off())
    broken = trade(invented, "runs", "--json").document["runs"][0]
    assert (broken["state"], broken["ruling"], broken["asOf"]) == ("unfinished", None, ran["asOf"])
    why = trade(invented, "why", broken["runId"])
    assert why.code == 0, why.err
    assert f"`zuno trade resume {broken['runId']}`" in why.out
    taken = trade(invented, "resume", broken["runId"])
    assert taken.code == 0, taken.err
    assert taken.out.splitlines()[0].split() == ["collect_data", "done"]
    assert broken["runId"] in taken.out
    assert trade(invented, "runs", "--json").document["runs"][0]["state"] == "ended"


@pytest.mark.parametrize("command", ["why", "resume"])
@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ("run_0000000000000000", 3),
        ("run_00", 2),
        ("plan_0123456789ab", 2),
        ("req_0123456789abcdef", 2),
        ("\x1b[2Jrun", 2),
        ("", 2),
    ],
)
def test_an_id_that_names_no_run_is_told_in_one_sentence(
    invented: Path, command: str, reference: str, code: int
) -> None:
    said = trade(invented, command, reference)
    assert said.code == code, said.err
    assert said.out == ""
    assert said.err.startswith("zuno: ")
    assert said.err.count("\n") == 1
    assert "zuno trade runs" in said.err
    assert "\x1b" not in said.err


def test_a_page_that_cannot_be_written_leaves_the_run_on_record(invented: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = trade(invented, "run", "BTCUSDT", "--no-chart", "--html", str(tmp_path / "file" / "page.html"), "--json")
    assert said.code == 3
    message = json.loads(said.out)["error"]["message"]
    newest = trade(invented, "runs", "--json").document["runs"][0]
    assert newest["state"] == "ended"
    assert f"zuno trade resume {newest['runId']} --html" in message


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("DOGEUSDT",), 2),
        (("BTCUSDT", "--mode", "scalp"), 2),
        (("BTCUSDT", "--as-of", "tomorrow"), 2),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_on_record(
    invented: Path, words: tuple[str, ...], code: int
) -> None:
    before = trade(invented, "runs", "--json").document
    said = trade(invented, "run", *words)
    assert (said.code, said.out) == (code, "")
    assert trade(invented, "runs", "--json").document == before
