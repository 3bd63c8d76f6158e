"""What stands above the figures of positions: locks, mandates that do nothing, hedges that are off, plans that wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from zuno.amm.model import Block
from zuno.journal.port import Journal
from zuno.kernel.accounts import HomeLock
from zuno.kernel.errors import ZunoError
from zuno.kernel.text import to_clause
from zuno.kernel.units import Millis
from zuno.lp.execute.mandate_book import load_mandates
from zuno.lp.model.plan import INSTRUCTED_KIND, PLAN_KIND, PlanState
from zuno.lp.service.summary_view import PlannedView

if TYPE_CHECKING:
    from zuno.lp.service.archive import Archive, PlanLine

MOST_PLANS: Final = 20
"""The newest, that are looked through for each position's own."""
PLAN_SECONDS: Final = 86_400
"""What the desk would do is of a day; an older plan is asked for anew."""
_UNDER_WAY: Final = (PlanState.APPLYING, PlanState.HANDED_OUT, PlanState.PARTIAL)


@dataclass(frozen=True, slots=True)
class DeskState:
    plans: Mapping[int, PlannedView] = field(default_factory=dict)
    """The newest of each position."""
    unhedged: Mapping[int, str] = field(default_factory=dict)
    urgent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskStateReader:
    """Reads the journal and the account of hedges; nothing is changed."""

    open_journal: Callable[[], Awaitable[Journal]]
    open_archive: Callable[[], Archive]
    """Where there are plans: loading what can show them takes as long as all the rest."""
    list_unhedged: Callable[[str], Awaitable[Mapping[int, str]]]
    """By position of a chain, what its short is off by."""
    killed: Callable[[], HomeLock | None]
    now: Callable[[], Millis]
    restored: int = 0  # the newest entry when this home was restored from a backup

    async def read(self, chain: str, head: Block) -> DeskState:
        urgent, plans = list[str](), dict[int, PlannedView]()
        unhedged: Mapping[int, str] = {}
        if (lock := self.killed()) is not None:
            urgent.append(f"locked: {lock.why}; `{lock.lifted_by}` lifts it")
        try:
            journal = await self.open_journal()
            book = await load_mandates(journal)
            standing = [granted.mandate for (name, _), granted in book.standing.items() if name == chain]
            if standing and book.paused:
                urgent.append("acts under mandates are paused; `zuno lp resume` lets them go on")
            if any(
                place[0] == chain and book.numbers[each.hash] <= self.restored for place, each in book.standing.items()
            ):
                urgent.append(f"the mandate on {chain} is older than the backup of this home: nothing is done under it")
            if any(mandate.expires <= self.now() for mandate in standing):
                urgent.append(f"the mandate on {chain} has expired: nothing is done under it")
            has_plans = [await journal.latest(1, kind=kind) for kind in (PLAN_KIND, INSTRUCTED_KIND)]
            for line in (await self.open_archive().plans(MOST_PLANS)).plans if any(has_plans) else ():
                if line.chain == chain and line.position_id is not None and int(line.position_id) not in plans:
                    planned = await self._read_plan(journal, line, head)
                    plans |= {} if planned is None else {int(line.position_id): planned}
            unhedged = await self.list_unhedged(chain)
        except ZunoError as error:
            urgent.append(f"plans, mandates and hedges were not read in full: {to_clause(error)}")
        return DeskState(plans, unhedged, tuple(urgent))

    async def _read_plan(self, journal: Journal, line: PlanLine, head: Block) -> PlannedView | None:
        """None: it is over, rejected or of yesterday, or its approval has run out."""
        state, choice = PlanState(line.state), line.choice
        if state.over or line.verdict == "reject":
            return None
        if state is PlanState.APPROVED:
            from zuno.lp.model.plan_events import PlanApproved

            entries = await journal.latest(1, request_id=line.plan_id, kind=PlanApproved.kind)
            approval = PlanApproved.model_validate(dict(entries[0].payload)).approval if entries else None
            if approval is None or approval.expires < head.timestamp:
                return None
        own, old = line.verdict is None, (self.now() - line.at) // 1_000
        planned = PlannedView(plan_id=line.plan_id, choice=choice, state=state, by_owner=own)
        if not own:
            plan = await self.open_archive().plan(line.plan_id)
            old, chosen = head.timestamp - plan.timestamp, plan.recommended
            moves = choice not in ("hold", "close")
            edges = {"price_lower": chosen.price_lower, "price_upper": chosen.price_upper} if moves else {}
            planned = planned.model_copy(update={**edges, "by_owner": line.decided_by == "owner"})
        return planned if old <= PLAN_SECONDS or state in _UNDER_WAY else None
