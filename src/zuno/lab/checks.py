"""Checks of the desks as a person asks for them: each answers with a view and leaves a report in the home."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from zuno.kernel.canonical import Digest, canonical, digest
from zuno.kernel.text import plain_text
from zuno.kernel.view import View, write_document
from zuno.lab.market_study import MarketStudy
from zuno.lab.model import CheckView
from zuno.lab.reports import LabReport, LabReports, build_report, report_id
from zuno.lab.workers import Progress, check_any_done
from zuno.lp.model.ballot import EDITION as LP_EDITION
from zuno.trading.model.cycle import EDITION

if TYPE_CHECKING:
    from zuno.lab.invariance import InvarianceMoment, InvarianceView
    from zuno.lab.lookahead import LookaheadMoment, LookaheadView
    from zuno.lab.lp.debate_checks import DebateChecks
    from zuno.lab.noedge import NoEdgeStudy, NoEdgeView
    from zuno.trading.service.learning_view import TradeCalibrationView, VetoesView

V = TypeVar("V", bound=CheckView)


class DeskChecks:
    def __init__(
        self,
        reports: LabReports,
        noedge: NoEdgeStudy,
        lookahead: MarketStudy[LookaheadMoment, LookaheadView],
        invariance: MarketStudy[InvarianceMoment, InvarianceView],
        debates: DebateChecks,
    ) -> None:
        """`debates`: the same of the LP desk, over a recorded pool."""
        self._reports = reports
        self._noedge = noedge
        self._lookahead = lookahead
        self._invariance = invariance
        self._debates = debates

    async def noedge(
        self, worlds: int, workers: int, tell: Progress, stop: asyncio.Event, *, resume: bool = False
    ) -> NoEdgeView:
        """Does the desk claim an edge where there is none? `resume` keeps the worlds that a stopped run had done."""
        from zuno.lab.check_pages import list_no_edge_sections
        from zuno.lab.noedge import WorldResult, fingerprint_pools

        title, asked = "Does the desk claim an edge where there is none?", {"worlds": worlds}
        pools = await self._noedge.read_pools()
        data = fingerprint_pools(pools)
        report = report_id("noedge", asked, data, EDITION)
        done = self._reports.load_parts(report, WorldResult, resume=resume)
        keep = partial(self._reports.keep_part, report)
        view = await self._noedge.study(worlds, pools, workers, tell, stop, done, keep)
        check_any_done(view.worlds)
        return self._save("noedge", title, report, asked, view, list_no_edge_sections(view))

    async def lookahead(
        self, moments: int, seeds: str, data: str | None, workers: int, tell: Progress, stop: asyncio.Event
    ) -> LookaheadView:
        """Does a decision know anything of what came after it? `data`: a recorded pool, for the LP desk."""
        from zuno.lab.check_pages import list_lookahead_sections

        title, asked = "Does a decision know anything of what came after it?", {"moments": moments, "seeds": seeds}
        record = None if data is None else await self._debates.read(data)
        view = await self._lookahead.study(moments, seeds, workers, tell, stop)
        check_any_done(view.moments)
        if data is not None:
            pool, stopped = await self._debates.lookahead(data, moments, workers, tell, stop)
            found = {"pool": pool, "stopped": stopped or view.stopped, "ok": view.ok and not pool.leaks}
            view = view.model_copy(update=found | {"leaks": view.leaks + pool.leaks})
        report = _name_check("lookahead", asked, view.origin, record)
        return self._save("lookahead", title, report, asked, view, list_lookahead_sections(view), data)

    async def invariance(
        self, moments: int, seeds: str, data: str | None, workers: int, tell: Progress, stop: asyncio.Event
    ) -> InvarianceView:
        """Does a ruling hang on what should not matter? `data`: a recorded pool, for the LP desk."""
        from zuno.lab.check_pages import list_invariance_sections

        title, asked = "Does a ruling hang on what should not matter?", {"moments": moments, "seeds": seeds}
        record = None if data is None else await self._debates.read(data)
        view = await self._invariance.study(moments, seeds, workers, tell, stop)
        check_any_done(view.moments)
        if data is not None:
            pool, stopped = await self._debates.invariance(data, moments, workers, tell, stop)
            view = view.model_copy(update={"pool": pool, "stopped": stopped or view.stopped})
        report = _name_check("invariance", asked, view.origin, record)
        return self._save("invariance", title, report, asked, view, list_invariance_sections(view), data)

    def report_calibration(self, view: TradeCalibrationView, options: str = "") -> None:
        """Keep what the trading desk says of its agents' calibration. `options`: of the command."""
        from zuno.lab.check_pages import list_calibration_sections

        self._keep("calibration", f"Calibration of {view.account}", options, view, list_calibration_sections(view))

    def report_vetoes(self, view: VetoesView, options: str = "") -> None:
        """Keep what the trading desk says of its vetoes."""
        from zuno.lab.check_pages import list_veto_sections

        self._keep("vetoes", f"Vetoes and cuts of {view.account}", options, view, list_veto_sections(view))

    def _keep(self, kind: str, title: str, options: str, view: View, sections: Sequence[str]) -> None:
        """A report of what is recorded: its id changes with what is known."""
        from zuno.lab.report_page import build_page

        document = write_document(view)
        command = f"zuno lab {kind}{options}"
        name = report_id(kind, {}, digest(document.encode()), EDITION)
        report = LabReport(id=name, kind=kind, title=title, command=command, partial=False, body=json.loads(document))
        self._reports.save(report, build_page(title, command, sections))

    def _save(
        self,
        kind: str,
        title: str,
        report: str,
        asked: Mapping[str, object],
        view: V,
        sections: Sequence[str],
        data: str | None = None,
    ) -> V:
        from zuno.lab.report_page import build_page

        options = {**asked, **({} if data is None else {"data": shlex.quote(plain_text(data, 200))})}
        command = " ".join(["zuno", "lab", kind, *(f"--{name} {given}" for name, given in options.items())])
        named = view.model_copy(update={"report": report})
        self._reports.save(build_report(report, kind, title, command, named), build_page(title, command, sections))
        return named


def _name_check(kind: str, asked: Mapping[str, object], origin: str, record: Digest | None) -> str:
    """`record`: of the pool that the LP desk is looked at over, whatever its folder is called."""
    if record is None:
        return report_id(kind, dict(asked), digest(canonical([origin])), EDITION)
    data = digest(canonical([origin, record]))
    return report_id(kind, {**asked, "lpEdition": LP_EDITION}, data, EDITION)
