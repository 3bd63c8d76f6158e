"""Routes of what the desks can be relied on for: calibration, vetoes, memories, the journal, costs, the mesh."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Response

from zuno.doors.agents import AgentsView
from zuno.doors.costs import CostsView
from zuno.doors.web.look_route import Account, AsOf, Cursor, Id, Limit, LookRoute, Text
from zuno.doors.web.problems import Problem
from zuno.doors.web.services import PageView, Services, document
from zuno.doors.zuno import Zuno
from zuno.journal.audit import JournalVerdictView, WholeEntryView
from zuno.journal.decision_view import ReplayView
from zuno.kernel.errors import Refused
from zuno.kernel.view import View
from zuno.lab.reports import LabReport, LabReportsView
from zuno.lp.service.mesh import IN_PROCESS, MeshView
from zuno.trading.service.learning_view import TradeCalibrationView, VetoesView
from zuno.trading.service.memory_view import LessonsView, PostMortemView, SearchView


def build_trust_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix="/trust", tags=["trust"], route_class=LookRoute)

    @router.get("/calibration", **document(TradeCalibrationView))
    async def get_calibration(account: Account = None, as_of: AsOf = None) -> Response:
        """How far each agent's probabilities can be relied on."""
        return await services.answer(lambda zuno: zuno.learning(account).reliability(as_of))

    @router.get("/vetoes", **document(VetoesView))
    async def get_vetoes(account: Account = None, as_of: AsOf = None) -> Response:
        """What vetoes and cuts saved or cost, by rule."""
        return await services.answer(lambda zuno: zuno.learning(account).vetoes(as_of))

    @router.get("/memories", **document(PageView))
    async def list_memories(cursor: Cursor = None, limit: Limit = 50) -> Response:
        """Post-mortems of closed trades, newest first."""
        return await services.page(lambda zuno: zuno.memory().list(limit + 1, before=cursor), "memories", "id", limit)

    @router.get("/memories/{memory}", **document(PostMortemView))
    async def get_memory(memory: Id) -> Response:
        return await services.answer(lambda zuno: zuno.memory().show(memory))

    @router.get("/search", **document(SearchView))
    async def search_memories(
        query: Annotated[str, Query(max_length=500)], lines: Annotated[int, Query(ge=1, le=20)] = 5
    ) -> Response:
        """Post-mortems by words of symbol, side, exit, outcome and setup, best first."""
        return await services.answer(lambda zuno: zuno.memory().search(query, lines))

    @router.get("/lessons", **document(LessonsView))
    async def list_lessons() -> Response:
        return await services.answer(lambda zuno: zuno.memory().lessons())

    @router.get("/journal", **document(PageView))
    async def list_entries(
        cursor: Cursor = None, limit: Limit = 50, kind: Text = None, request: Text = None
    ) -> Response:
        """Entries, newest first: all, those of a kind, those of a request."""
        about: dict[str, Any] = {"before": _read_number(cursor), "kind": kind, "request_id": request}
        return await services.page(lambda zuno: zuno.audit().page(limit + 1, **about), "entries", "seq", limit)

    @router.get("/journal/{seq:int}", **document(WholeEntryView))
    async def get_entry(seq: Annotated[int, Path(ge=1, lt=2**53)]) -> Response:
        return await services.answer(lambda zuno: zuno.audit().find(seq))

    @router.get("/journal/verify", **document(JournalVerdictView))
    async def verify_journal() -> Response:
        """The hash chain, and the signatures of checkpoints and of what none of them seals."""
        return await services.answer(lambda zuno: zuno.audit().verify())

    @router.get("/replay/{decision}", **document(ReplayView))
    async def replay_decision(decision: Id) -> Response:
        """A debate, a run or a chat answer given again from the record, and compared."""

        async def replay(zuno: Zuno) -> View:
            if decision.startswith("run_"):
                return await zuno.cycles().replay(decision)
            return await zuno.replay_chat(decision) or await zuno.archive().replay(decision)

        return await services.answer(replay)

    @router.get("/costs", **document(CostsView))
    async def get_costs() -> Response:
        """What models cost, by role and day."""
        return await services.answer(lambda zuno: zuno.costs().show())

    @router.get("/agents", **document(AgentsView))
    async def list_agents() -> Response:
        """Who sits at the desks, and which models they ask."""
        return await services.answer(lambda zuno: zuno.agents().status())

    @router.get("/mesh", **document(MeshView))
    async def get_mesh() -> Response:
        """Each peer and whether it answers; none where no mesh is set up and every agent runs in this process."""

        async def look(zuno: Zuno) -> View:
            try:
                return await zuno.mesh().status(None)
            except Refused:
                return MeshView(transport=IN_PROCESS, kept_by=None, peers=())

        return await services.answer(look)

    return router


def _read_number(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 15:
        raise Problem(400, "This cursor names no entry; ask without one.")
    return int(cursor)


_STYLED: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
PAGE_POLICY: Final = f"{_STYLED}frame-ancestors 'none'; sandbox"
"""Of a report's page: it has its own styles and pictures inside, and nothing in it is ever run."""
FRAME_HEADERS: Final = {
    "Content-Security-Policy": f"{_STYLED}frame-ancestors 'self'; sandbox allow-same-origin",
    "X-Frame-Options": "SAMEORIGIN",
}
"""Of the empty document around a report's page in ours: the policy that the page inherits."""


def build_lab_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix="/lab", tags=["lab"], route_class=LookRoute)

    @router.get("/reports", **document(LabReportsView))
    async def list_reports() -> Response:
        """Reports of this home without their bodies."""
        return await services.answer(lambda zuno: zuno.lab().reports.list())

    @router.get("/reports/{report}", **document(LabReport))
    async def get_report(report: Id) -> Response:
        """One report; `body` is the document that its command printed."""
        return await services.answer(lambda zuno: zuno.lab().reports.read(report))

    @router.get("/reports/{report}/page", responses={200: {"content": {"text/html": {}}}}, response_class=Response)
    async def get_report_page(report: Id) -> Response:
        """The page that was written with it: tables and charts, no script."""
        page = await services.fetch(lambda zuno: zuno.lab().reports.read_page(report))
        return Response(page, media_type="text/html", headers={"Content-Security-Policy": PAGE_POLICY})

    return router
