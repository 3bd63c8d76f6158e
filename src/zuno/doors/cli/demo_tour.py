"""The tour: the simulated world, a position that drifts to its edge, a debate, its PnL, and the plan carried out."""

from dataclasses import replace

from zuno.doors.zuno import Zuno
from zuno.kernel.errors import Broken
from zuno.kernel.view import View
from zuno.lp.service.execution import Consent
from zuno.lp.service.execution_view import ExecutionView
from zuno.lp.service.local_chains import MoveView
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.recommend import Listen
from zuno.lp.service.result_views import PnlView
from zuno.lp.service.views import PoolsView, PositionsView
from zuno.present.document import Document, Value, document, include, lines
from zuno.present.values import quiet

TOUR_MOVE = "-0.6"
TOUR_POSITION = "1"
TOUR_PROFILE = "conservative"
"""The one whose floors the first proposal does not clear, so that the visitor sees an argument."""


NEXT = (
    ("zuno web --home {home}", "this world in a browser"),
    ("zuno", "the shell: show positions, why"),
    ("zuno telegram setup", "both desks in a Telegram chat"),
    ("zuno mcp", "the door for your own assistant"),
    ("zuno lab study", "the lab: what the rules decide"),
)
"""What a visitor may try after the tour, each in fewer than 80 columns."""


class DemoOpening(View):
    pools: PoolsView
    before: PositionsView
    move: MoveView
    after: PositionsView

    def to_document(self) -> Document:
        pools, move = self.pools.to_document(), replace(self.move.to_document(), context=Value(""))
        sections = (*pools.sections, *include(move), *include(self.after.to_document()))
        end = lines(quiet("Position 1 is at its edge. The desk argues:"))
        return document("A simulated market", *sections, end, context=pools.context, notes=pools.notes)


class CarriedOut(View):
    """The plan, applied; play money needs nobody's word."""

    execution: ExecutionView
    after: PositionsView

    def to_document(self) -> Document:
        parts = (*include(self.execution.to_document()), *include(self.after.to_document()))
        return document("The plan, approved and applied", *parts)


class DemoView(View):
    """The whole tour in one document."""

    opening: DemoOpening
    plan: PlanView
    pnl: PnlView
    carried: CarriedOut
    next: tuple[str, ...]
    """Commands to try."""


async def opening(zuno: Zuno) -> DemoOpening:
    """Needs a home of its own: it pushes the price of the simulated world it finds there."""
    desk = zuno.lp("sim")
    pools, before = await desk.pools(), await desk.positions()
    move = await zuno.sim().move(TOUR_MOVE)
    return DemoOpening(pools=pools, before=before, move=move, after=await desk.positions())


async def argument(zuno: Zuno, listen: Listen) -> PlanView:
    """Always by rule: the tour needs no key and no network."""
    return await zuno.advice(offline=True).rebalance(TOUR_POSITION, chain="sim", profile=TOUR_PROFILE, listen=listen)


async def accounts(zuno: Zuno) -> PnlView:
    return await zuno.lp("sim").pnl(TOUR_POSITION, None)


async def carried_out(zuno: Zuno) -> CarriedOut:
    """Approve and apply the newest plan of this home."""
    newest = (await zuno.archive().plans()).plans[0].plan_id
    yes = Consent(lambda view: True, lambda view: True, scripted=True, who="the tour")
    await zuno.execution().approve(newest, yes)
    done = await zuno.execution().apply(newest, yes, lambda line: None)
    if not isinstance(done, ExecutionView):
        raise Broken("the tour's own wallet is only watched")
    return CarriedOut(execution=done, after=await zuno.lp("sim").positions())


async def tour(zuno: Zuno) -> DemoView:
    return DemoView(
        opening=await opening(zuno),
        plan=await argument(zuno, lambda thought: None),
        pnl=await accounts(zuno),
        carried=await carried_out(zuno),
        next=tuple(command for command, _ in NEXT),
    )
