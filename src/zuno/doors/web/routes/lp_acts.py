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

Answer = Literal["remove", "ack", "snooze"]
Act = Literal["collect", "compound", "close", "add", "remove"]
ALL: Final = "all"
AGAIN_MS: Final = 600_000
"""For so long the same act again (a double click, another tab, the way back, a lost answer) is the first one's plan."""
Amount = Annotated[str, Field(max_length=TEXT_CHARS)]


class ActBody(Body):
    amounts: Annotated[tuple[Amount, ...], Field(max_length=2, strict=False)] = ()
    """Of what is added: "0.5 WETH"."""
    percent: ShortText = None
    """Of what is removed."""
    anyway: bool = False
    """As `--anyway` does at the terminal."""
    chain: ShortText = None


class LevelBody(Body):
    position: Annotated[str, Field(max_length=TEXT_CHARS)]
    condition: Literal["price_above", "price_below", "fees_above"]
    level: Annotated[str, Field(max_length=TEXT_CHARS)]
    chain: ShortText = None


class AnswerBody(Body):
    span: ShortText = None


class ChainBody(Body):
    chain: ShortText = None


@dataclass(eq=False)
class OncePlans:
    """Plans by what they were asked for with, so that a request that is repeated makes none of its own."""

    services: Services
    jobs: Jobs
    _made: dict[tuple[str, ...], tuple[Millis, asyncio.Task[ExecutionView]]] = field(default_factory=dict)

    async def make(self, act: str, about: str, body: ActBody, work: Callable[[Zuno], Awaitable[ExecutionView]]) -> View:
        key, now = (act, about, body.model_dump_json()), self.jobs.now()
        self._made = {known: made for known, made in self._made.items() if now - made[0] < AGAIN_MS}
        if key in self._made:
            plan = (await asyncio.shield(self._made[key][1])).plan_id
            kept = await self.services.fetch(lambda zuno: zuno.execution().status(plan))
            if kept.state in (PlanState.DRAFTED, PlanState.SIMULATED):
                return kept
        making = asyncio.create_task(self.jobs.finish(self.jobs.new_id("job_"), act, about, work))
        self._made[key] = now, making
        try:
            return await asyncio.shield(making)
        except Exception:
            self._made.pop(key, None)
            raise


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
        """Tell the owner when the price or the uncollected fees of a position reach a level."""
        levels = {Condition(body.condition): body.level}
        return respond(await services.ask(lambda zuno: zuno.alerts().add(body.position, body.chain, levels)))

    @router.post("/alerts/{id}/{answer}", **document(RuleView | AnsweredView))
    async def answer_alert(id: Id, answer: Annotated[Answer, Path()], body: AnswerBody) -> Response:
        """Remove a level; acknowledge an alert until it recovers or gets worse, or snooze it for a span such as 6h."""

        async def answer_it(zuno: Zuno) -> View:
            desk = zuno.alerts()
            match answer:
                case "remove":
                    return await desk.remove(id)
                case "ack":
                    return await desk.ack(id)
                case "snooze":
                    return await desk.snooze(id, body.span or "")

        return respond(await services.ask(answer_it))

    return router
