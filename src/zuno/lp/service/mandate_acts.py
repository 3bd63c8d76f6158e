"""The monitor as an actor: what a mandate lets it do after a look at a chain, through the same gate as everybody else.

Whatever is not begun when a round starts is dropped and decided anew; what is begun goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from zuno.amm.model import LpPosition, whole_price
from zuno.journal.port import Journal
from zuno.kernel.accounts import HomeLock
from zuno.kernel.errors import Refused, ZunoError
from zuno.kernel.numbers_text import decimal_text
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.lp.execute.checks import check_reference
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.gate import ActReason
from zuno.lp.execute.mandate_book import MandateBook, load_mandates
from zuno.lp.execute.mandates import MONITOR, append_mandate_event, check_standing, find_end, is_covered, list_opened
from zuno.lp.execute.plan_state import load_progress
from zuno.lp.model.mandate import BLOCKED_ENTRY, ActBlocked, DeskAsked, LevelSeen, MandatedAct, MandateGranted
from zuno.lp.rules.limits import CRASH_LIMIT, REFERENCE_LIMIT
from zuno.lp.rules.mandate import find_level, plan_swap
from zuno.lp.service.execution import Consent, Execution
from zuno.lp.service.plan_view import PlanView
from zuno.lp.watch.rules import WalletReading

FRESH_MS: Final = 3_600_000
"""For so long a look counts as the first of two, and what the desk said of a blocked exit is not asked again."""
ARGUING: Final = 60.0
"""Seconds that an exit at a price waits for the debate."""
_MOVES: Final = ("widen", "tighten", "shift")
Argue = Callable[[str, str], Awaitable[PlanView]]
"""A debate about a position, by its id and its chain."""


@dataclass(frozen=True, slots=True)
class _Case:
    execution: ExecutionContext
    book: MandateBook
    granted: MandateGranted
    position: LpPosition

    @property
    def key(self) -> tuple[str, int]:
        return self.granted.hash, self.position.id


@dataclass(slots=True)
class MandateActor:
    """Acts for the wallets of one look at a chain; one round of a chain at a time."""

    read_journal: Callable[[], Awaitable[Journal]]
    """Which makes none where nothing was ever written."""
    execution: Execution
    argue: Argue
    now: Callable[[], Millis]
    killed: Callable[[], HomeLock | None]
    tell: Callable[[str], None]
    _argued: dict[tuple[str, int], tuple[Millis, tuple[str, ...]]] = field(default_factory=dict)

    async def act(self, chain: str, readings: Sequence[WalletReading]) -> None:
        journal = await self.read_journal()
        book = await load_mandates(journal)
        for reading in readings:
            place = (chain, reading.wallet)
            await self._settle(book, place)
            granted, lock = book.standing.get(place), self.killed()
            killed = lock is not None and lock.kind != "restored"  # there exits go on, and the gate refuses the rest
            if granted is None or granted.mandate.expires <= self.now() or book.paused or killed:
                continue
            own = await list_opened(journal, book, granted.hash)
            for position in reading.positions:
                if position.liquidity and is_covered(granted, position.id, position.pool, own):
                    await self._act_for(book, granted, position)

    async def _settle(self, book: MandateBook, place: tuple[str, str]) -> None:
        """Go on with what is signed, whether its mandate still stands or not; drop what is not."""
        for _, act in book.acts_at(place):
            journal = await self.execution.open_journal()
            if await find_end(journal, act.plan_id) is not None:
                continue
            progress = await load_progress(journal, act.plan_id)
            try:
                if progress.begun:
                    agreed = Consent(lambda view: False, lambda view: True, who="the monitor")
                    await self.execution.apply(act.plan_id, agreed, self.tell)
                else:
                    await self.execution.cancel(act.plan_id, self.tell)
            except ZunoError as error:
                await self._record_block(act.hash, act.position_id, act.act, str(error), act.plan_id)

    async def _act_for(self, book: MandateBook, granted: MandateGranted, position: LpPosition) -> None:
        try:
            execution = await self.execution.context_of(granted.mandate.chain)
            await check_standing(execution, book, granted.hash)
            case = _Case(execution, book, granted, position)
            if not await self._exit_at_level(case):
                await self._ask_desk(case)
        except ZunoError as error:
            act = MandatedAct.EXIT if find_level(granted.mandate, position.pool) else granted.mandate.acts[-1]
            await self._record_block(granted.hash, position.id, act, str(error))

    async def _exit_at_level(self, case: _Case) -> bool:
        """Whether the price is beyond a level: then nothing else is done. It takes two looks a block apart."""
        pool, (name, about) = case.position.pool, case.key
        level = find_level(case.granted.mandate, pool)
        at, first = case.book.seen.get(case.key, (0, None))
        if level is None and first is None:
            return False
        if level is None or first is None or self.now() - at > FRESH_MS:
            seen = LevelSeen(hash=name, position_id=about, block=None if level is None else pool.block)
            await append_mandate_event(case.execution.journal, seen)
        elif pool.block.number > first.number:
            price = decimal_text(whole_price(pool.sqrt_price_x96, pool.token0, pool.token1), 8)
            await self._exit(case, f"the price is {price}, beyond {level:f} at two looks")
        return level is not None

    async def _exit(self, case: _Case, why: str, argument: tuple[str, ...] | None = None) -> None:
        mandate, pool, position = case.granted.mandate, case.position.pool, str(case.position.id)
        ends = mandate.exit
        assert ends is not None
        # Asked before a plan is made, and before the desk is.
        await check_reference(case.execution, pool, CRASH_LIMIT if ends.in_a_crash else REFERENCE_LIMIT)
        said = await self._argue_shortly(case) if argument is None else argument
        plan = await self.execution.close_under_mandate(
            position, mandate.chain, lambda now: plan_swap(mandate, now, now.tick), ends.in_a_crash
        )
        await self._carry_out(case, MandatedAct.EXIT, plan.plan_id, ActReason(why, said))

    async def _ask_desk(self, case: _Case) -> None:
        """What the debate wants, as often as acts may follow one another."""
        mandate, now, (name, about) = case.granted.mandate, self.now(), case.key
        wanted = {MandatedAct.REBALANCE, MandatedAct.COMPOUND} & set(mandate.acts)
        on_close = mandate.exit is not None and mandate.exit.when_close_wins
        last = max((at for at, _ in case.book.acts_at((mandate.chain, mandate.wallet))), default=0)
        waits = max(last, case.book.asked.get(case.key, 0)) + 1_000 * mandate.least_gap
        if not (wanted or on_close) or now < waits:
            return
        await append_mandate_event(case.execution.journal, DeskAsked(hash=name, position_id=about))
        view = await self.argue(str(about), mandate.chain)
        choice, argument = view.recommended.kind, _quote(view)
        won = f"{choice} won the debate: {view.because}"
        if view.verdict == "reject":
            return
        if choice == "close" and on_close:
            await self._exit(case, won, argument)
        elif choice in _MOVES and MandatedAct.REBALANCE in wanted:
            await self._carry_out(case, MandatedAct.REBALANCE, view.plan_id, ActReason(won, argument))
        elif choice == "hold" and MandatedAct.COMPOUND in wanted:
            try:
                plan = await self.execution.compound(str(about), mandate.chain)
            except Refused:
                return  # it does not pay, or nothing is owed
            reason = ActReason("the desk holds, and the fees pay for being put back", argument)
            await self._carry_out(case, MandatedAct.COMPOUND, plan.plan_id, reason)

    async def _carry_out(self, case: _Case, act: MandatedAct, plan_id: str, reason: ActReason) -> None:
        """Approve and apply, at once. What is refused before its first signature is called off."""
        name, about = case.key
        self.tell(f"{act} of position {about} under mandate {name[:16]}…: {reason.why}")
        try:
            offer = await self.execution.offer_approval(plan_id, "the monitor", mandate=name, reason=reason)
            await offer.sign()
            await self.execution.apply(plan_id, Consent.bound_to(offer.view.approval_hash, "the monitor"), self.tell)
        except ZunoError as error:
            progress = await load_progress(await self.execution.open_journal(), plan_id)
            if progress.over is None or not progress.begun:  # else how it ended is pushed by itself
                signed = plan_id if progress.begun else None
                await self._record_block(name, about, act, str(error), signed, reason.argument)
            if progress.over is None and not progress.begun:
                await self.execution.cancel(plan_id, self.tell)

    async def _record_block(
        self, name: str, about: int, act: MandatedAct, why: str, plan: str | None = None, said: tuple[str, ...] = ()
    ) -> None:
        self.tell(f"{act} of position {about} is blocked: {why}")
        why = plain_text(why, 400)
        event = ActBlocked(hash=name, position_id=about, act=act, why=why, plan_id=plan, argument=said)
        await (await self.execution.open_journal()).append(kind=BLOCKED_ENTRY, author=MONITOR, payload=event)

    async def _argue_shortly(self, case: _Case) -> tuple[str, ...]:
        """What the agents say of leaving; an exit at a price does not hang on them."""
        at, argument = self._argued.get(case.key, (0, ()))
        if argument and self.now() - at < FRESH_MS:
            return argument
        try:
            async with asyncio.timeout(ARGUING):
                argument = _quote(await self.argue(str(case.position.id), case.granted.mandate.chain))
        except TimeoutError:
            argument = (f"the desk did not answer within {ARGUING:g} s",)
        except ZunoError as error:
            argument = (f"the desk could not be asked: {plain_text(str(error), 200)}",)
        self._argued[case.key] = self.now(), argument
        return argument


def _quote(view: PlanView) -> tuple[str, ...]:
    """The verdict, and the last word of each agent."""
    last = {thought.role: thought.text for thought in view.transcript}
    verdict = f"{view.verdict.replace('_', ' ')}: {view.recommended.kind} ({view.because})"
    return (verdict, *(f"{role}: {plain_text(text, 200)}" for role, text in last.items()))
