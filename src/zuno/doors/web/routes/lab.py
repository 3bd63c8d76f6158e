"""Routes of the lab: reports of this home, as documents and as the pages that were written with them."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Response

from zuno.doors.web.look_route import LookRoute
from zuno.doors.web.routes.parameters import Id
from zuno.doors.web.services import Services, document
from zuno.lab.reports import LabReport, LabReportsView

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
