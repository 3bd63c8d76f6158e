"""What the LP desk pushes of plans and mandates: applied, stopped half way or failed; done, blocked, about to end."""

from collections.abc import Sequence
from typing import Final

from pydantic import ValidationError

from zuno.journal.port import Entry, Journal
from zuno.kernel.clock import iso
from zuno.kernel.errors import Broken
from zuno.kernel.notify import Button, Fact, Notice, NoticeKind, NoticeLabel, Severity
from zuno.kernel.units import Millis, Seconds
from zuno.lp.execute.checks import DAY_MILLIS
from zuno.lp.execute.mandate_book import load_mandates
from zuno.lp.model.chains import chain_label
from zuno.lp.model.mandate import (
    BLOCKED_ENTRY,
    MANDATE_ENTRY,
    ActBlocked,
    ActDecided,
    MandatedAct,
    MandateGranted,
    MandateRecord,
)
from zuno.lp.model.plan import PlanState
from zuno.lp.model.plan_events import PlanApplying, PlanOver, StepWaits
from zuno.pushes.endings import Ending, list_endings
from zuno.pushes.feed import KeyedNotice

_TITLES: Final = {
    PlanState.CONFIRMED: "Plan applied",
    PlanState.PARTIAL: "Plan stopped half way: its tokens rest in the wallet",
    PlanState.FAILED: "Plan failed",
}


class PlanNotices:
    """The LP desk's `NoticeSource`. A plan that ends before anything was signed is told to whoever asked, by nobody
    else; what is done under a mandate is told when it is decided, while it is blocked, and when it ends."""

    @property
    def kinds(self) -> Sequence[str]:
        return (PlanOver.kind, StepWaits.kind, MANDATE_ENTRY, BLOCKED_ENTRY)

    async def describe(self, entry: Entry, journal: Journal) -> Sequence[KeyedNotice]:
        try:
            if entry.kind == MANDATE_ENTRY:
                event = MandateRecord.model_validate(dict(entry.payload)).of
                notice = None
                if isinstance(event, ActDecided):
                    notice = describe_act(event, await _find_label(journal, event.hash), entry.at)
            elif entry.kind == BLOCKED_ENTRY:
                blocked = ActBlocked.model_validate(dict(entry.payload))
                notice = describe_block(blocked, await _find_label(journal, blocked.hash), entry.at)
            else:
                applying = await journal.latest(1, request_id=entry.request_id, kind=PlanApplying.kind)
                acted = await journal.latest(1, request_id=entry.request_id, kind=MANDATE_ENTRY)
                begun = PlanApplying.model_validate(dict(applying[0].payload)) if applying else None
                if entry.kind == StepWaits.kind and begun is not None:
                    waits = describe_wait(StepWaits.model_validate(dict(entry.payload)), begun, entry.at)
                    return (KeyedNotice(f"plan:{waits.reference}:{entry.seq}", waits),)
                over = PlanOver.model_validate(dict(entry.payload))
                if over.state not in _TITLES or begun is None:
                    return ()
                act = MandateRecord.model_validate(dict(acted[0].payload)).of if acted else None
                notice = describe_plan_end(over, begun, entry.at, act if isinstance(act, ActDecided) else None)
        except ValidationError as error:
            raise Broken(f"Entry {entry.seq} ({entry.kind}) cannot be read.") from error
        return () if notice is None else (KeyedNotice(f"plan:{notice.reference}:{entry.seq}", notice),)

    async def find_due(self, now: Millis, journal: Journal) -> Sequence[KeyedNotice]:
        """Mandates that end soon, or ended in the last day."""
        return [
            KeyedNotice(f"mandate:{granted.hash[:16]}:{ending.days}", _describe_ending(granted, ending))
            for granted in (await load_mandates(journal)).standing.values()
            for ending in list_endings(granted.mandate.granted, granted.mandate.expires, now - DAY_MILLIS, now)
        ]


async def _find_label(journal: Journal, name: str) -> NoticeLabel:
    granted = (await load_mandates(journal)).granted.get(name)
    return NoticeLabel.SYNTHETIC if granted is None else chain_label(granted.mandate.chain)


def describe_act(event: ActDecided, label: NoticeLabel, at: Millis) -> Notice:
    """Before the first signature: why, and what the four agents said."""
    facts = (
        Fact("position", str(event.position_id)),
        Fact("moves", f"${event.worth_usd:,.2f} at most"),
        *(Fact("argued", line) for line in event.argument),
        Fact("you can", f"`zuno plan cancel {event.plan_id}` calls it off, `zuno lp pause` stops the next"),
    )
    return Notice(
        kind=NoticeKind.MANDATE,
        title=f"By your mandate: {event.act}",
        severity=Severity.CRITICAL if event.act is MandatedAct.EXIT else Severity.WARNING,
        label=label,
        at=Seconds(at // 1_000),
        facts=facts,
        reason=event.why,
        reference=event.plan_id,
        buttons=(Button("Plan", f"/plan {event.plan_id}"), *_STOPS),
    )


def describe_block(event: ActBlocked, label: NoticeLabel, at: Millis) -> Notice:
    """Of each round in which it is blocked."""
    exits, about = event.act is MandatedAct.EXIT, event.position_id
    act = f"`zuno lp close {about}`" if exits else f"`zuno lp recommend rebalance {about}`"
    signed = () if event.plan_id is None else (Fact("signed in part", f"`zuno plan status {event.plan_id}`"),)
    return Notice(
        kind=NoticeKind.MANDATE,
        title=f"Your mandate's {event.act} is blocked",
        severity=Severity.CRITICAL if exits or signed else Severity.WARNING,
        label=label,
        at=Seconds(at // 1_000),
        facts=(
            Fact("position", str(about)),
            *signed,
            *(Fact("argued", line) for line in event.argument),
            Fact("you can", f"{act} yourself; it is tried again at the next look"),
        ),
        reason=event.why,
        reference=event.hash[:16],
        buttons=(Button("Position", f"/positions {about}"), *_STOPS),
    )


def _describe_ending(granted: MandateGranted, ending: Ending) -> Notice:
    mandate = granted.mandate
    return Notice(
        kind=NoticeKind.MANDATE,
        title=f"LP {ending.title[0].lower()}{ending.title[1:]}",
        severity=Severity.WARNING,
        label=chain_label(mandate.chain),
        at=Seconds(ending.at // 1_000),
        facts=(Fact("chain", mandate.chain), Fact("ends", iso(mandate.expires)), Fact("acts", ", ".join(mandate.acts))),
        reason="after its end the monitor only watches",
        reference=granted.hash[:16],
    )


def describe_wait(waits: StepWaits, begun: PlanApplying, at: Millis) -> Notice:
    """Once, while something of a plan under way would cost more than its bound."""
    return Notice(
        kind=NoticeKind.PLAN,
        title="Plan waits: gas is above its bound",
        severity=Severity.CRITICAL,
        label=NoticeLabel.SYNTHETIC if begun.play_money else NoticeLabel.LIVE,
        at=Seconds(at // 1_000),
        facts=(Fact("step", str(waits.step + 1)),),
        reason=waits.why,
        reference=waits.plan_id,
        buttons=(Button("Plan", f"/plan {waits.plan_id}"),),
    )


_STOPS: Final = (Button("Pause", "/pause lp"), Button("Revoke", "/revoke lp"))


def describe_plan_end(over: PlanOver, begun: PlanApplying, at: Millis, act: ActDecided | None = None) -> Notice:
    """`act`: what it was decided as, under a mandate."""
    facts = [Fact("state", over.state)]
    if act is not None:
        facts += [Fact("by mandate", f"{act.act} of position {act.position_id}"), Fact("why", act.why)]
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
