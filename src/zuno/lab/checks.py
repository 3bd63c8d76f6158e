"""Checks of the trading desk as a person asks for them: each answers with a view and leaves a report in the home."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from zuno.kernel.canonical import Digest
from zuno.lab.model import CheckView
from zuno.lab.reports import LabReports, build_report, report_id
from zuno.lab.service import Progress
from zuno.trading.model.cycle import EDITION

if TYPE_CHECKING:
    from zuno.lab.noedge import NoEdgeStudy, NoEdgeView

V = TypeVar("V", bound=CheckView)


class DeskChecks:
    def __init__(self, reports: LabReports, noedge: NoEdgeStudy) -> None:
        self._reports = reports
        self._noedge = noedge

    async def noedge(self, worlds: int, workers: int, tell: Progress, stop: asyncio.Event) -> NoEdgeView:
        """Does the desk claim an edge where there is none?"""
        from zuno.lab.check_pages import list_no_edge_sections

        title = "Does the desk claim an edge where there is none?"
        view, data = await self._noedge.study(worlds, workers, tell, stop)
        return self._save("noedge", title, {"worlds": worlds}, data, view, list_no_edge_sections(view))

    def _save(
        self, kind: str, title: str, question: Mapping[str, object], data: Digest, view: V, sections: Sequence[str]
    ) -> V:
        from zuno.lab.report_page import build_page

        command = " ".join(["zuno", "lab", kind, *(f"--{name} {given}" for name, given in question.items())])
        named = view.model_copy(update={"report": report_id(kind, dict(question), data, EDITION)})
        report = build_report(named.report, kind, title, command, named)
        self._reports.save(report, build_page(title, command, sections))
        return named
