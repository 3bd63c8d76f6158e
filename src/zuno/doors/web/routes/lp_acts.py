"""What is done about positions beside arguing: plans without a debate, mandates, levels that are watched."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Path, Response
from pydantic import Field

from zuno.doors.web.confirm import Body, ConfirmBody, ShortText, confirm_by
from zuno.doors.web.jobs import Jobs
from zuno.doors.web.look_route import TEXT_CHARS, Id, LookRoute
from zuno.doors.web.problems import Problem
from zuno.doors.web.services import Services, document, respond
from zuno.doors.web.stops import Helper
from zuno.doors.zuno import Zuno
from zuno.kernel.units import Millis
from zuno.kernel.view import View
from zuno.lp.model.alerts import Condition
from zuno.lp.model.plan import PlanState
from zuno.lp.service.execution_view import ExecutionView
from zuno.lp.service.mandates import LpMandatesView
from zuno.lp.watch.alerts import AnsweredView, RuleView

Act = Literal["collect", "compound", "close", "add", "remove"]
ALL: Final = "all"
AGAIN_MS: Final = 120_000
"""For so long the same act again, from another tab or by the back button, is the plan that was made for the first."""
MOST_KEPT: Final = 200
Amount = Annotated[str, Field(max_length=TEXT_CHARS)]


class ActBody(Body):
    amounts: Annotated[tuple[Amount, ...], Field(max_length=2, strict=False)] = ()
    """Of what is added: "0.5 WETH"."""
    percent: ShortText = None
    """Of what is removed."""
    anyway: bool = False
    """As `--anyway` does at the terminal."""
    chain: ShortText = None
    once: ShortText = None
    """A name for this very request: however often it is sent, one plan is made."""


class LevelBody(Body):
    position: Annotated[str, Field(max_length=TEXT_CHARS)]
    price_above: ShortText = None
    price_below: ShortText = None
    fees_above: ShortText = None
    chain: ShortText = None


class SnoozeBody(Body):
    span: Annotated[str, Field(max_length=TEXT_CHARS)]


class ChainBody(Body):
    chain: ShortText = None


@dataclass(eq=False)
class OncePlans:
    """Plans by what they were asked for with, so that a request that is repeated makes none of its own."""

    services: Services
    jobs: Jobs
    _made: dict[tuple[str, ...], tuple[Millis, asyncio.Task[ExecutionView]]] = field(default_factory=dict)

    async def make(self, act: str, about: str, body: ActBody, work: Callable[[Zuno], Awaitable[ExecutionView]]) -> View:
        same = act, about, body.model_copy(update={"once": None}).model_dump_json()
        keys = {same} if body.once is None else {same, (*same, body.once)}
        for key in sorted(keys, key=len, reverse=True):
            at, making = self._made.get(key, (Millis(0), None))
            if making is not None and (key != same or self.jobs.now() - at < AGAIN_MS):
                kept = await self._look_again((await asyncio.shield(making)).plan_id)
                if key != same or kept.state == PlanState.DRAFTED:
                    self._made |= dict.fromkeys(keys - {same}, (at, making))
                    return kept
        making = asyncio.create_task(self.jobs.finish(self.jobs.new_id("job_"), act, about, work))
        self._made |= dict.fromkeys(keys, (self.jobs.now(), making))
        while len(self._made) > MOST_KEPT:
            del self._made[next(iter(self._made))]
        try:
            return await asyncio.shield(making)
        except Exception:
            self._made = {key: made for key, made in self._made.items() if made[1] is not making}
            raise

    async def _look_again(self, plan: str) -> ExecutionView:
        return await self.services.fetch(lambda zuno: zuno.execution().status(plan))


def build_lp_act_routes(services: Services, jobs: Jobs, helper: Helper) -> APIRouter:
    router = APIRouter(prefix="/lp", tags=["lp"], route_class=LookRoute)
    plans = OncePlans(services, jobs)

    @router.post("/positions/{position}/{act}", **document(ExecutionView))
    async def plan_act(position: Id, act: Annotated[Act, Path()], body: ActBody) -> Response:
        """Plan to collect, compound, close, add to or remove from a position; `all`: to collect or close every one.
        Nothing is signed: the plan is approved and applied as any other. The same again is the same plan."""
        if position == ALL and act not in ("collect", "close"):
            raise Problem(422, "Every position at once can be collected from, or closed.")

        async def instruct(zuno: Zuno) -> ExecutionView:
            desk, every = zuno.execution(), position == ALL
            which = None if every else position
            match act:
                case "collect":
                    return await desk.collect(which, body.chain, every=every)
                case "close":
                    return await desk.close(which, body.chain, every=every, anyway=body.anyway)
                case "compound":
                    return await desk.compound(position, body.chain, anyway=body.anyway)
                case "add":
                    return await desk.add(position, body.amounts, body.chain)
                case "remove":
                    return await desk.remove(position, body.percent or "", body.chain, body.anyway)

        return respond(await plans.make(act, position, body, instruct))

    @router.post("/allowances/revoke", **document(ExecutionView))
    async def revoke_allowances(body: ActBody) -> Response:
        """Plan to set every allowance of the wallet to zero."""
        return respond(await plans.make("revoke", "", body, lambda zuno: zuno.execution().revoke(body.chain)))

    @router.get("/mandates", **document(LpMandatesView))
    async def list_mandates() -> Response:
        """What the monitor may do with positions by itself; it is granted at a terminal alone."""
        return await services.answer(lambda zuno: zuno.mandates().show())

    @router.post("/mandates/revoke", **document(LpMandatesView))
    async def revoke_mandates(body: ChainBody) -> Response:
        """Of a chain, or all: nothing that is not signed yet is begun."""
        return respond(await helper.ask(("revoke_mandates", body.chain)))

    @router.post("/mandates/pause", **document(LpMandatesView))
    async def pause_mandates(body: Body) -> Response:
        return respond(await helper.ask(("pause_mandates", None)))

    @router.post("/mandates/resume", **document(LpMandatesView))
    async def resume_mandates(body: ConfirmBody) -> Response:
        """With real money a word is needed."""
        return respond(await services.ask(lambda zuno: zuno.mandates().resume(confirm_by(body.word))))

    @router.post("/alerts", **document(RuleView))
    async def add_level(body: LevelBody) -> Response:
        """Tell the owner when the price or the uncollected fees of a position reach a level: one of the three."""
        levels = {
            Condition.PRICE_ABOVE: body.price_above,
            Condition.PRICE_BELOW: body.price_below,
            Condition.FEES_ABOVE: body.fees_above,
        }
        return respond(await services.ask(lambda zuno: zuno.alerts().add(body.position, body.chain, levels)))

    @router.post("/alerts/{rule}/remove", **document(RuleView))
    async def remove_level(rule: Id, body: Body) -> Response:
        return respond(await services.ask(lambda zuno: zuno.alerts().remove(rule)))

    @router.post("/alerts/{alert}/ack", **document(AnsweredView))
    async def acknowledge(alert: Id, body: Body) -> Response:
        """Silent until it recovers or gets worse."""
        return respond(await services.ask(lambda zuno: zuno.alerts().ack(alert)))

    @router.post("/alerts/{alert}/snooze", **document(AnsweredView))
    async def snooze(alert: Id, body: SnoozeBody) -> Response:
        """For a span such as 6h."""
        return respond(await services.ask(lambda zuno: zuno.alerts().snooze(alert, body.span)))

    return router
