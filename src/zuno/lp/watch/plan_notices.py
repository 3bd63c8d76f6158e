"""What the LP desk pushes of plans: applied, stopped half way, or failed."""

from collections.abc import Sequence
from typing import Final

from pydantic import ValidationError

from zuno.journal.port import Entry, Journal
from zuno.kernel.errors import Broken
from zuno.kernel.notify import Button, Fact, Notice, NoticeKind, NoticeLabel, Severity
from zuno.kernel.units import Millis, Seconds
from zuno.lp.model.plan import PlanState
from zuno.lp.model.plan_events import PlanApplying, PlanOver
from zuno.pushes.feed import KeyedNotice

_TITLES: Final = {
    PlanState.CONFIRMED: "Plan applied",
    PlanState.PARTIAL: "Plan stopped half way: its tokens rest in the wallet",
    PlanState.FAILED: "Plan failed",
}


class PlanNotices:
    """The LP desk's `NoticeSource`. A plan that ends before anything was signed is told to whoever asked, by nobody
    else."""

    @property
    def kinds(self) -> Sequence[str]:
        return (PlanOver.kind,)

    async def describe(self, entry: Entry, journal: Journal) -> Sequence[KeyedNotice]:
        applying = await journal.latest(1, request_id=entry.request_id, kind=PlanApplying.kind)
        try:
            over = PlanOver.model_validate(dict(entry.payload))
            begun = PlanApplying.model_validate(dict(applying[0].payload)) if applying else None
        except ValidationError as error:
            raise Broken(f"Entry {entry.seq} ({entry.kind}) cannot be read.") from error
        if over.state not in _TITLES or begun is None:
            return ()
        return (KeyedNotice(f"plan:{over.plan_id}:{entry.seq}", describe_plan_end(over, begun, entry.at)),)

    async def find_due(self, now: Millis, journal: Journal) -> Sequence[KeyedNotice]:
        return ()


def describe_plan_end(over: PlanOver, begun: PlanApplying, at: Millis) -> Notice:
    facts = [Fact("state", over.state)]
    if over.new_position_id is not None:
        facts.append(Fact("new position", str(over.new_position_id)))
    facts += [Fact("differs", problem) for problem in over.problems]
    clean = over.state is PlanState.CONFIRMED and not over.problems
    return Notice(
        kind=NoticeKind.PLAN,
        title=_TITLES[PlanState(over.state)],
        severity=Severity.INFO if clean else Severity.CRITICAL,
        label=NoticeLabel.SYNTHETIC if begun.play_money else NoticeLabel.LIVE,
        at=Seconds(at // 1_000),
        facts=tuple(facts),
        reason=over.why,
        reference=over.plan_id,
        buttons=(Button("Plan", f"/plan {over.plan_id}"),),
    )
