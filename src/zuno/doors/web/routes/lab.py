"""Routes of the lab."""

from __future__ import annotations

from fastapi import APIRouter, Response

from zuno.doors.web.services import Services, document, respond
from zuno.kernel.view import View


class LabReportsView(View):
    """Reports that the lab has written in this home; none does yet: `zuno lab` prints its studies."""

    reports: tuple[str, ...] = ()


def build_lab_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix="/lab", tags=["lab"])

    @router.get("/reports", **document(LabReportsView))
    async def list_reports() -> Response:
        return respond(LabReportsView())

    return router
