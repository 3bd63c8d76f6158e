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
from zuno.kernel.errors import Refused, ZunoError
from zuno.kernel.numbers_text import decimal_text
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.lp.execute.checks import check_reference, reference_limit
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.gate import ActReason
from zuno.lp.execute.mandates import (
    MONITOR,
    MandateBook,
    append_mandate_event,
    check_standing,
    is_covered,
    load_mandates,
)
from zuno.lp.execute.plan_state import PlanProgress, load_progress
from zuno.lp.model.mandate import BLOCKED_ENTRY, ActBlocked, DeskAsked, LevelSeen, MandatedAct, MandateGranted
from zuno.lp.model.plan_events import Action, Instruction
from zuno.lp.rules.mandate import find_level, plan_swap
from zuno.lp.service.execution import Consent, Execution
from zuno.lp.service.plan_view import PlanView
from zuno.lp.watch.rules import WalletReading

SEEN_FOR_MS: Final = 3_600_000
"""A look at a price beyond its level counts as the first of two for so long."""
ARGUED_FOR_MS: Final = 3_600_000
"""What the four agents said of an exit that is blocked is not asked again for so long."""
ARGUING: Final = 60.0
"""Seconds that an exit at a price waits for the debate."""
_MOVES: Final = ("widen", "tighten", "shift")
Argue = Callable[[str, str], Awaitable[PlanView]]
"""A debate about a position, by its id and its chain."""


@dataclass(slots=True)
class MandateActor:
    """Acts for the wallets of one look at a chain; one round of a chain at a time."""

    read_journal: Callable[[], Awaitable[Journal]]
    """Which makes none where nothing was ever written."""
    open_journal: Callable[[], Awaitable[Journal]]
    execution: Execution
    argue: Argue
    now: Callable[[], Millis]
    killed: Callable[[], str | None]
    tell: Callable[[str], None]
    _argued: dict[tuple[str, int], tuple[Millis, tuple[str, ...]]] = field(default_factory=dict)

    async def act(self, chain: str, readings: Sequence[WalletReading]) -> None:
        book = await load_mandates(await self.read_journal())
        if not book.granted:
            return
        journal = await self.open_journal()
        for reading in readings:
            place = (chain, reading.wallet)
            done = [await load_progress(journal, act.plan_id) for _, act in book.acts_at(place)]
            await self._settle(book, place, done)
            granted = book.standing.get(place)
            if granted is None or granted.mandate.expires <= self.now() or book.paused or self.killed() is not None:
                continue
            await self._act_for(journal, book, granted, reading, done)

    async def _settle(self, book: MandateBook, place: tuple[str, str], done: Sequence[PlanProgress]) -> None:
        """Go on with what is signed, whether its mandate still stands or not; drop what is not."""
        decided = {act.plan_id: act for _, act in book.acts_at(place)}
        for progress in done:
            if progress.over is not None:
                continue
            act = decided[progress.plan_id]
            try:
                if progress.begun:
                    await self.execution.apply(progress.plan_id, _agree(progress), self.tell)
                else:
                    await self.execution.cancel(progress.plan_id, self.tell)
            except ZunoError as error:
                again = await load_progress(await self.open_journal(), progress.plan_id)
                if again.over is None and again.begun:
                    await self._record_block(act.hash, act.position_id, act.act, str(error), progress.plan_id)

    async def _act_for(
        self,
        journal: Journal,
        book: MandateBook,
        granted: MandateGranted,
        reading: WalletReading,
        done: Sequence[PlanProgress],
    ) -> None:
        mandate = granted.mandate
        own = {act.plan_id for _, act in book.acts if act.hash == granted.hash}
        under = [progress for progress in done if progress.plan_id in own]
        for position in reading.positions:
            if not position.liquidity or not is_covered(granted, position.id, position.pool.id, under):
                continue
            key = position.pool.key
            priced = mandate.pair in (None, (key.currency0, key.currency1))
            try:
                execution = await self.execution.context_of(mandate.chain)
                await check_standing(execution, book, granted.hash)
                if not (priced and await self._exit_at_level(execution, book, granted, position)):
                    await self._ask_desk(journal, book, granted, position)
            except ZunoError as error:
                act = MandatedAct.EXIT if find_level(mandate.exit, position.pool) else mandate.acts[-1]
                await self._record_block(granted.hash, position.id, act, str(error))

    async def _exit_at_level(
        self, execution: ExecutionContext, book: MandateBook, granted: MandateGranted, position: LpPosition
    ) -> bool:
        """Whether the price is beyond a level: then nothing else is done. It takes two looks a block apart."""
        mandate, key = granted.mandate, (granted.hash, position.id)
        level, block = find_level(mandate.exit, position.pool), position.pool.block
        at, seen = book.seen.get(key, (0, None))
        if level is None or mandate.exit is None:
            if seen is not None and seen.block is not None:
                await append_mandate_event(
                    execution.journal, LevelSeen(hash=granted.hash, position_id=position.id, block=None)
                )
            return False
        if seen is None or seen.block is None or self.now() - at > SEEN_FOR_MS:
            first = LevelSeen(hash=granted.hash, position_id=position.id, block=block)
            await append_mandate_event(execution.journal, first)
            return True
        if block.number <= seen.block.number:
            return True
        price = decimal_text(whole_price(position.pool.sqrt_price_x96, position.pool.token0, position.pool.token1), 8)
        why = f"the price is {price} {mandate.exit.unit}, beyond {level:f} at two looks"
        await self._exit(execution, granted, position, why, self._argue_shortly)
        return True

    async def _exit(
        self,
        execution: ExecutionContext,
        granted: MandateGranted,
        position: LpPosition,
        why: str,
        argue: Callable[[str, LpPosition, str], Awaitable[tuple[str, ...]]],
    ) -> None:
        ends, pool = granted.mandate.exit, position.pool
        assert ends is not None
        swap = plan_swap(ends, pool, pool.tick, find_level(ends, pool))
        if swap is not None and not (position.amount0 + position.fees0, position.amount1 + position.fees1)[1 - swap.to]:
            self.tell(f"position {position.id} is all {ends.to} already")
        terms = Instruction(
            action=Action.CLOSE, chain=execution.info.name, pool_id=pool.id, tick=pool.tick, in_a_crash=ends.in_a_crash
        )
        await check_reference(execution, pool, reference_limit(terms))  # before a plan is made, or the desk asked
        argument = await argue(granted.hash, position, execution.info.name)
        plan = await self.execution.close_under_mandate(str(position.id), execution.info.name, swap, ends.in_a_crash)
        await self._carry_out(granted, position, MandatedAct.EXIT, plan.plan_id, ActReason(why, argument))

    async def _ask_desk(
        self, journal: Journal, book: MandateBook, granted: MandateGranted, position: LpPosition
    ) -> None:
        """What the debate wants, as often as acts may follow one another."""
        mandate, now = granted.mandate, self.now()
        wanted = {MandatedAct.REBALANCE, MandatedAct.COMPOUND} & set(mandate.acts)
        on_close = mandate.exit is not None and mandate.exit.when_close_wins
        last = max((at for at, _ in book.acts_at((mandate.chain, mandate.wallet))), default=Millis(0))
        waits = max(last, book.asked.get((granted.hash, position.id), Millis(0))) + 1_000 * mandate.least_gap
        if not (wanted or on_close) or now < waits:
            return
        view = await self.argue(str(position.id), mandate.chain)
        choice, argument = view.recommended.kind, _quote(view)
        asked = DeskAsked(hash=granted.hash, position_id=position.id, plan_id=view.plan_id, choice=choice)
        await append_mandate_event(journal, asked)
        if view.verdict == "reject":
            return
        if choice == "close" and on_close:

            async def quote(*about: object) -> tuple[str, ...]:
                return argument

            execution = await self.execution.context_of(mandate.chain)
            await self._exit(execution, granted, position, f"close won the debate: {view.because}", quote)
        elif choice in _MOVES and MandatedAct.REBALANCE in wanted:
            reason = ActReason(f"{choice} won the debate: {view.because}", argument)
            await self._carry_out(granted, position, MandatedAct.REBALANCE, view.plan_id, reason)
        elif choice == "hold" and MandatedAct.COMPOUND in wanted:
            try:
                plan = await self.execution.compound(str(position.id), mandate.chain)
            except Refused:
                return  # it does not pay, or nothing is owed
            reason = ActReason("the desk holds, and the fees pay for being put back", argument)
            await self._carry_out(granted, position, MandatedAct.COMPOUND, plan.plan_id, reason)

    async def _carry_out(
        self, granted: MandateGranted, position: LpPosition, act: MandatedAct, plan_id: str, reason: ActReason
    ) -> None:
        """Approve and apply, at once. What is refused before its first signature is called off."""
        self.tell(f"{act} of position {position.id} under mandate {granted.hash[:16]}…: {reason.why}")
        try:
            offer = await self.execution.offer_approval(plan_id, "the monitor", mandate=granted.hash, reason=reason)
            await offer.sign()
            await self.execution.apply(plan_id, Consent.bound_to(offer.view.approval_hash, "the monitor"), self.tell)
        except ZunoError as error:
            progress = await load_progress(await self.open_journal(), plan_id)
            if progress.over is not None and progress.begun:
                return  # how it ended is pushed by itself
            await self._record_block(
                granted.hash, position.id, act, str(error), plan_id if progress.begun else None, reason.argument
            )
            if not progress.begun and progress.over is None:
                await self.execution.cancel(plan_id, self.tell)

    async def _record_block(
        self,
        name: str,
        position: int,
        act: MandatedAct,
        why: str,
        plan_id: str | None = None,
        argument: tuple[str, ...] = (),
    ) -> None:
        self.tell(f"{act} of position {position} is blocked: {why}")
        event = ActBlocked(
            hash=name, position_id=position, act=act, why=plain_text(why, 400), plan_id=plan_id, argument=argument
        )
        await (await self.open_journal()).append(kind=BLOCKED_ENTRY, author=MONITOR, payload=event)

    async def _argue_shortly(self, name: str, position: LpPosition, chain: str) -> tuple[str, ...]:
        """What the agents say of leaving; an exit at a price does not hang on them."""
        at, known = self._argued.get((name, position.id), (None, ()))
        if at is not None and self.now() - at < ARGUED_FOR_MS:
            return known
        try:
            async with asyncio.timeout(ARGUING):
                argument = _quote(await self.argue(str(position.id), chain))
        except TimeoutError:
            argument = (f"the desk did not answer within {ARGUING:g} s",)
        except ZunoError as error:
            argument = (f"the desk could not be asked: {plain_text(str(error), 200)}",)
        self._argued[name, position.id] = self.now(), argument
        return argument


def _agree(progress: PlanProgress) -> Consent:
    """To what was approved under the mandate, and is signed in part."""
    approved = progress.approved is not None and progress.approved.approval.mandate is not None
    return Consent(lambda view: False, lambda view: approved, who="the monitor")


def _quote(view: PlanView) -> tuple[str, ...]:
    """The last word of each agent, and the winner."""
    last = {thought.role: thought.text for thought in view.transcript}
    verdict = view.verdict.replace("_", " ")
    return (
        f"{verdict}: {view.recommended.kind} ({view.because})",
        *(f"{role}: {plain_text(text, 200)}" for role, text in last.items()),
    )
