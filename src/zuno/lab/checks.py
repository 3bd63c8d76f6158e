"""Statistical checks of both desks. Each returns a view and saves a report."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from zuno.kernel.canonical import Digest, canonical, digest
from zuno.kernel.text import plain_text
from zuno.kernel.view import write_document
from zuno.lab.market_study import MarketStudy
from zuno.lab.model import CheckView
from zuno.lab.reports import LabReports, report_id
from zuno.lab.workers import Progress, check_any_done, write_command
from zuno.lp.model.ballot import EDITION as LP_EDITION
from zuno.trading.model.cycle import EDITION

if TYPE_CHECKING:
    from zuno.lab.invariance import InvarianceMoment, InvarianceView
    from zuno.lab.lookahead import LookaheadMoment, LookaheadView
    from zuno.lab.lp.debate_checks import DebateChecks
    from zuno.lab.noedge import NoEdgeStudy, NoEdgeView
    from zuno.trading.service.learning_view import TradeCalibrationView, VetoesView

V = TypeVar("V", bound=CheckView)
_TITLES: Final = {"calibration": "Calibration", "vetoes": "Vetoes and cuts"}


@dataclass(frozen=True, slots=True)
class DeskChecks:
    reports: LabReports
    no_edge: NoEdgeStudy
    lookahead_study: MarketStudy[LookaheadMoment, LookaheadView]
    invariance_study: MarketStudy[InvarianceMoment, InvarianceView]
    debates: DebateChecks
    """The same of the LP desk, over a recorded pool."""

    async def noedge(
        self, worlds: int, workers: int, tell: Progress, stop: asyncio.Event, *, resume: bool = False
    ) -> NoEdgeView:
        """False-positive rate on markets without an edge. `resume` keeps the worlds of a stopped run."""
        from zuno.lab.noedge import WorldResult, fingerprint_pools

        title, asked = "Does the desk claim an edge where there is none?", {"worlds": worlds}
        pools = await self.no_edge.read_pools()
        data = fingerprint_pools(pools)
        report = report_id("noedge", asked, data, EDITION)
        done = self.reports.load_parts(report, WorldResult, resume=resume)
        keep = partial(self.reports.keep_part, report)
        view = await self.no_edge.study(worlds, pools, workers, tell, stop, done, keep)
        check_any_done(view.worlds)
        return self._save("noedge", title, report, asked, view)

    async def lookahead(
        self, moments: int, seeds: str, data: str | None, workers: int, tell: Progress, stop: asyncio.Event
    ) -> LookaheadView:
        """Look-ahead and warm-up bias. `data`: a recorded pool, to check the LP desk too."""
        title, asked = "Does a decision know anything of what came after it?", {"moments": moments, "seeds": seeds}
        record = None if data is None else await self.debates.read(data)
        view = await self.lookahead_study.study(moments, seeds, workers, tell, stop)
        check_any_done(view.moments)
        if data is not None:
            pool, stopped = await self.debates.lookahead(data, moments, workers, tell, stop)
            both = {"pool": pool, "stopped": stopped or view.stopped, "ok": view.ok and not pool.leaks}
            view = view.model_copy(update=both | {"leaks": view.leaks + pool.leaks})
        report = _name_check("lookahead", asked, view.origin, record)
        return self._save("lookahead", title, report, asked, view, data)

    async def invariance(
        self, moments: int, seeds: str, data: str | None, workers: int, tell: Progress, stop: asyncio.Event
    ) -> InvarianceView:
        """Rulings that flip under changes that should not matter. `data`: a recorded pool, to check the LP desk too."""
        title, asked = "Does a ruling hang on what should not matter?", {"moments": moments, "seeds": seeds}
        record = None if data is None else await self.debates.read(data)
        view = await self.invariance_study.study(moments, seeds, workers, tell, stop)
        check_any_done(view.moments)
        if data is not None:
            pool, stopped = await self.debates.invariance(data, moments, workers, tell, stop)
            view = view.model_copy(update={"pool": pool, "stopped": stopped or view.stopped})
        report = _name_check("invariance", asked, view.origin, record)
        return self._save("invariance", title, report, asked, view, data)

    def report_scores(self, kind: str, view: TradeCalibrationView | VetoesView, options: str = "") -> None:
        """Save a report of calibration or vetoes. Its id is a hash of its content. `options`: of the command."""
        report = report_id(kind, {}, digest(write_document(view).encode()), EDITION)
        title = f"{_TITLES[kind]} of {view.account}"
        self.reports.save_view(report, kind, title, f"zuno lab {kind}{options}", view)

    def _save(
        self, kind: str, title: str, report: str, asked: Mapping[str, object], view: V, data: str | None = None
    ) -> V:
        command = write_command(kind, {**asked, "data": data and shlex.quote(plain_text(data, 200))})
        named = view.model_copy(update={"report": report})
        self.reports.save_view(report, kind, title, command, named)
        return named


def _name_check(kind: str, asked: Mapping[str, object], origin: str, record: Digest | None) -> str:
    """Report id of a check. `record`: the fingerprint of the LP desk's recorded pool."""
    if record is None:
        return report_id(kind, dict(asked), digest(canonical([origin])), EDITION)
    data = digest(canonical([origin, record]))
    return report_id(kind, {**asked, "lpEdition": LP_EDITION}, data, EDITION)
