"""Routes of plans: look, simulate, approve, apply, cancel."""

from __future__ import annotations

from fastapi import APIRouter, Response

from zuno.doors.web.routes.parameters import Cursor, Id, Limit
from zuno.doors.web.services import PageView, Services, cut_page, document, respond
from zuno.lp.service.archive import PlanDiffView
from zuno.lp.service.execution_view import ExecutionView
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.stress_fan import StressFanView


def build_plan_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix="/lp/plans", tags=["plans"])

    @router.get("", **document(PageView))
    async def list_plans(cursor: Cursor = None, limit: Limit = 50) -> Response:
        """Plans, newest first."""
        view = await services.fetch(lambda zuno: zuno.archive().plans())
        return respond(cut_page(view, "plans", lambda plan: str(plan["planId"]), cursor, limit))

    @router.get("/{plan}", **document(PlanView))
    async def get_plan(plan: Id) -> Response:
        """A plan with its ballot, its candidates and the argument."""
        return await services.answer(lambda zuno: zuno.archive().plan(plan))

    @router.get("/{plan}/status", **document(ExecutionView))
    async def get_plan_status(plan: Id) -> Response:
        """How far it has come, checked against the chain."""
        return await services.answer(lambda zuno: zuno.execution().status(plan))

    @router.get("/{plan}/fan", **document(StressFanView))
    async def get_stress_fan(plan: Id) -> Response:
        """The paths its ranges were judged against, as quantiles of the price."""
        return await services.answer(lambda zuno: zuno.archive().stress_fan(plan))

    @router.get("/{plan}/diff/{other}", **document(PlanDiffView))
    async def get_plan_diff(plan: Id, other: Id) -> Response:
        return await services.answer(lambda zuno: zuno.archive().diff(plan, other))

    return router
