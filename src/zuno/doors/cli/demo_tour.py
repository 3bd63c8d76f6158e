"""The tour: the simulated world, a position that drifts to its edge, a debate, its PnL, and the plan carried out."""

from collections.abc import Iterable, Iterator

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
from zuno.present.document import Document, Lines, Mark, Section, Table, Value, document, facts, lines
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
        after = self.after.to_document()
        end = lines(quiet("Position 1 is at its edge. The desk argues:"))
        moved = f"A simulated market, after ETH moved by {TOUR_MOVE} %"
        return document(moved, *_tables(after.sections), end, context=after.context)


class Argument(View):
    plan: PlanView

    def to_document(self) -> Document:
        """What was decided and why, the candidates, and what was said of the ranges that were proposed."""
        whole, plan = self.plan.to_document(), self.plan
        proposed = [
            f"Candidate {each.index}, " for each in plan.candidates if each.index and each.tick_lower is not None
        ]
        quotes = [line for line in _quotes(whole) if any(candidate in line.text for candidate in proposed)]
        why = next(fact for fact in whole.facts if fact.label == "why")
        return document(
            whole.headline,
            facts(why),
            *_tables(whole.sections),
            lines(*quotes, mark=Mark.QUOTE),
            context=f"{whole.context.text.partition(', req_')[0]}; the tour asks no model",
        )


class Result(View):
    pnl: PnlView

    def to_document(self) -> Document:
        whole = self.pnl.to_document()
        return document(whole.headline, *whole.sections[1:2])


class CarriedOut(View):
    """The plan, applied; play money needs nobody's word."""

    execution: ExecutionView
    after: PositionsView

    def to_document(self) -> Document:
        done, after = self.execution.to_document(), self.after.to_document()
        kept = [fact for fact in done.facts if fact.label in ("new position", "gas paid")]
        return document("The plan, approved and applied", facts(*kept), *_tables(after.sections), context=done.headline)


def _tables(sections: Iterable[Section]) -> tuple[Table, ...]:
    return tuple(block for section in sections for block in section.blocks if isinstance(block, Table))


def _quotes(whole: Document) -> Iterator[Value]:
    for section in whole.sections:
        for block in section.blocks:
            yield from block.lines if isinstance(block, Lines) and block.mark is Mark.QUOTE else ()


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


async def show_argument(zuno: Zuno, listen: Listen) -> Argument:
    return Argument(plan=await argument(zuno, listen))


async def show_result(zuno: Zuno) -> Result:
    return Result(pnl=await accounts(zuno))


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
