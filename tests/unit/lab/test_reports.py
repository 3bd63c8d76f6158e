"""Reports of the lab: files that hold, parts that are gone on from, trials that are counted once."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from zuno.adapters.store.report_files import FolderOfReports
from zuno.kernel.canonical import Digest
from zuno.kernel.errors import Broken, NotFound
from zuno.lab.report_page import bar_chart, build_page, draw_down, heat_map, interval_chart, line_chart
from zuno.lab.reports import LabReport, LabReports, ReportRow, report_id, trial_id
from zuno.lab.workers import write_command
from zuno.present.document import document, facts, lines, section, table
from zuno.present.values import bad

DATA = Digest("d" * 64)
ID = report_id("lp", {"capital": 100}, DATA, 4)


def report(*, partial: bool = False) -> LabReport:
    return LabReport(id=ID, kind="lp", title="t", command="zuno lab lp", partial=partial, body={"arms": [1.5, None]})


def part(number: int) -> ReportRow:
    return ReportRow(id=str(number), kind="lp", title="", command="", partial=True)


@pytest.fixture
def reports(tmp_path: Path) -> LabReports:
    return LabReports(FolderOfReports(tmp_path / "lab"))


async def test_a_report_is_read_as_it_was_saved_and_the_same_again_in_the_same_bytes(
    reports: LabReports, tmp_path: Path
) -> None:
    assert (await reports.list()).reports == ()
    reports.save(report(), "<p>page</p>")
    files = {path.name: path.read_bytes() for path in (tmp_path / "lab").iterdir()}
    assert set(files) == {f"{ID}.json", f"{ID}.html"}
    reports.save(report(), "<p>page</p>")
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "lab").iterdir()}
    assert await reports.read(ID) == report()
    assert await reports.read_page(ID) == "<p>page</p>"
    assert [row.id for row in (await reports.list()).reports] == [ID]
    for name in ("lp-000000000000", "../secret", ID + ".json", ""):
        with pytest.raises(NotFound):
            await reports.read(name)
    (tmp_path / "lab" / f"{ID}.json").write_text("{")
    with pytest.raises(Broken):
        await reports.read(ID)
    listed = await reports.list()
    assert (listed.reports, listed.damaged) == ((), (ID,))


def test_parts_stay_until_the_report_is_whole_and_half_a_line_is_none(reports: LabReports, tmp_path: Path) -> None:
    reports.keep_part(ID, part(1))
    path = tmp_path / "lab" / f"{ID}.part.jsonl"
    path.write_bytes(path.read_bytes() + b'{"id":"2"')  # a kill in the middle of a write
    reports.keep_part(ID, part(3))
    reports.keep_part(ID, part(3))
    assert [ReportRow.model_validate_json(line).id for line in reports.read_parts(ID)] == ["1", "3"]
    assert reports.load_parts(ID, LabReport) == ()  # of another form
    assert [row.id for row in reports.load_parts(ID, ReportRow)] == ["1", "3"]
    reports.save(report(partial=True), "")
    assert len(reports.read_parts(ID)) == 2
    reports.save(report(), "")
    assert reports.read_parts(ID) == ()


async def test_an_unfinished_report_leaves_a_whole_one(reports: LabReports) -> None:
    reports.save(report(partial=True), "half")
    reports.save(report(), "whole")
    reports.save(report(partial=True), "half")
    assert (await reports.read_page(ID), (await reports.read(ID)).partial) == ("whole", False)


def test_a_trial_counts_once_however_often_it_is_run(reports: LabReports) -> None:
    first = {trial_id("trade", arm, {"from": 1}, DATA, 5): arm for arm in ("hold", "sma")}
    for _ in range(2):
        reports.note_trials("trade", first)
    reports.note_trials("trade", {trial_id("trade", "sma", {"from": 2}, DATA, 5): "sma"})
    reports.note_trials("lp", {trial_id("lp", "sma", {"from": 2}, DATA, 5): "sma"})
    assert (reports.count_trials("trade"), reports.count_trials("lp")) == (3, 1)


def test_an_id_changes_with_question_data_and_edition() -> None:
    ids = {
        report_id(kind, question, Digest(data), edition)
        for kind in ("lp", "trade")
        for question in ({"a": 1}, {"a": 2})
        for data in ("0" * 64, "1" * 64)
        for edition in (4, 5)
    }
    assert len(ids) == 16


class _Checker(HTMLParser):
    """Every tag that is opened is closed, and nothing is fetched or run."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "img", "iframe", "link")
        assert not {name for name, _ in attrs} & {"src", "href"}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_needs_nothing_but_itself_and_runs_nothing_it_is_given() -> None:
    evil = "<script>alert(1)</script>"
    days = [(86_400 * day, 100.0 + day * (-1) ** day) for day in range(4_000)]
    written = document(
        evil,
        lines(bad(evil)),
        section(evil, table((evil, "b"), [(evil, "1")]), facts((evil, evil))),
        context=evil,
        urgent=(evil,),
        notes=(evil,),
    )
    charts = (
        line_chart(evil, [(evil, days), ("flat", [(0, 5.0), (1, 5.0)])]),
        line_chart("drawdown", [("a", draw_down(days))], "%"),
        bar_chart(evil, (evil, "cost"), [(evil, (3.0, -0.001)), ("none", (0.0, 0.0))]),
        interval_chart(evil, [(evil, 0.5, (-1.0, 2.0)), ("few", 0.0, None)]),
        heat_map(evil, (evil, "b"), [(evil, (1.0, None))], (evil, evil), (evil, evil)),
    )
    page = build_page(evil, evil, written, {evil: charts})
    checker = _Checker()
    checker.feed(page.removeprefix("<!doctype html>\n"))
    assert checker.open == []
    assert evil not in page
    assert "http" not in page.replace("http-equiv", "")
    assert len(page) < 200_000
    assert page.count("<figure>") == len(charts)
    assert line_chart("empty", [("one point", [(0, 1.0)])]) is None


def test_drawdown_is_measured_from_the_highest_value_so_far() -> None:
    assert draw_down([(0, 100.0), (1, 50.0), (2, 200.0), (3, 190.0)]) == [(0, 0.0), (1, -50.0), (2, 0.0), (3, -5.0)]


def test_a_command_names_every_option_that_was_given() -> None:
    options = {"seeds": 0, "from": "", "until": None, "funding": "0"}
    assert write_command("trade", options, models=True) == "zuno lab trade --seeds 0 --funding 0 --models"
