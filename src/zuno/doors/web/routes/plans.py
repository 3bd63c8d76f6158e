"""Routes of plans: look, simulate, approve, apply, cancel."""

from functools import partial

from fastapi import APIRouter, Response

from zuno.doors.web.confirm import (
    WHO,
    ApprovalBody,
    ApproveBody,
    Body,
    ConfirmBody,
    Offers,
    is_word,
    mark_shown,
    need_word,
)
from zuno.doors.web.events import EventFeed
from zuno.doors.web.jobs import Jobs
from zuno.doors.web.look_route import Cursor, Id, Limit, LookRoute
from zuno.doors.web.services import PageView, Services, document, respond
from zuno.doors.web.stops import Helper
from zuno.doors.zuno import Zuno
from zuno.kernel.view import View, sanitise
from zuno.lp.service.archive import PlanDiffView, PlanListView
from zuno.lp.service.execution import Consent
from zuno.lp.service.execution_view import ApprovalView, ExecutionView, SimulationView, UnsignedView
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.stress_fan import StressFanView


def build_plan_routes(services: Services, feed: EventFeed, jobs: Jobs, helper: Helper) -> APIRouter:
    router = APIRouter(prefix="/lp/plans", tags=["plans"], route_class=LookRoute)
    offers = Offers()

    def tell_step(plan: str, line: str) -> None:
        feed.publish("step", {"planId": plan, "text": sanitise(line)})

    @router.get("", **document(PageView))
    async def list_plans(cursor: Cursor = None, limit: Limit = 50) -> Response:
        """Plans, newest first."""
        return await services.page(lambda zuno: zuno.archive().plans(limit + 1, cursor), "plans", "planId", limit)

    @router.get("/waiting", **document(PlanListView))
    async def list_waiting_plans() -> Response:
        """Those that can still be approved or applied, checked against the chain; `notes`: which others cannot."""
        return await services.answer(lambda zuno: zuno.execution().list_waiting())

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

    @router.post("/{plan}/simulate", **document(SimulationView))
    async def simulate_plan(plan: Id, body: Body) -> Response:
        """Its calldata on the latest block: balance changes, gas, price impact."""
        return await services.answer(lambda zuno: zuno.execution().simulate(plan))

    @router.post("/{plan}/approve", **document(ApprovalView | ExecutionView))
    async def approve_plan(plan: Id, body: ApproveBody) -> Response:
        """Without a hash everything that an approval is bound to; with it and the words it asks for, sign that. They
        are `approve`, or `anyway`, and `costs-more` as the second for what costs more than it moves."""
        if body.approval_hash is None:
            offer = await services.fetch(lambda zuno: zuno.execution().offer_approval(plan, WHO))
            offers.keep(offer)
            return mark_shown(respond(offer.view))
        if body.word is None:
            raise need_word("approve", f"{sanitise(plan)} is approved as it was shown.")
        shown = offers.take(plan, body.approval_hash)
        for typed, word in zip((body.word, body.second_word), shown.view.asks, strict=False):
            if not is_word(typed, word):
                offers.keep(shown)
                raise need_word(word, f"{sanitise(plan)} is approved as it was shown. It {shown.view.cost.text}.")
        return respond(await jobs.finish(jobs.new_id("job_"), "approve", plan, lambda zuno: shown.sign()))

    @router.post("/{plan}/apply", **document(ApprovalView | ExecutionView | UnsignedView))
    async def apply_plan(plan: Id, body: ApprovalBody) -> Response:
        """Without a word what is about to be applied; with the word `apply` it is, exactly once. With real money the
        hash of what was shown is needed too."""
        if body.word is None:
            return mark_shown(await services.answer(lambda zuno: zuno.execution().offer_apply(plan)))
        if not is_word(body.word, "apply"):
            raise need_word("apply", f"{sanitise(plan)} is applied.")

        def agree(view: ApprovalView) -> bool:
            if body.approval_hash is None:
                return view.play_money
            return view.approval_hash == body.approval_hash

        async def apply(zuno: Zuno) -> View:
            consent = Consent(lambda view: False, agree, who=WHO)
            return await zuno.execution().apply(plan, consent, partial(tell_step, plan))

        return respond(await jobs.finish(jobs.new_id("job_"), "apply", plan, apply))

    @router.post("/{plan}/cancel", **document(ExecutionView))
    async def cancel_plan(plan: Id, body: ConfirmBody) -> Response:
        """Replace pending transactions, revoke allowances; with real money the word `cancel` is needed."""
        if not is_word(body.word, "cancel") and not await helper.ask(("uses_play_money", plan)):
            what = "is called off: transactions that wait are replaced and allowances revoked, for gas."
            raise need_word("cancel", f"{sanitise(plan)} {what}")
        cancelling = helper.ask(("cancel", plan), partial(tell_step, plan))
        return respond(await jobs.follow(jobs.new_id("job_"), "cancel", plan, cancelling))

    return router
