"""Carrying plans out: try, approve, apply, cancel, follow; and the plans an owner makes without a debate."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from zuno.amm.model import LpPosition
from zuno.journal.port import Journal
from zuno.kernel.canonical import canonical, to_json
from zuno.kernel.errors import Broken, Refused, Usage, ZunoError
from zuno.kernel.text import parse_units
from zuno.lp.agents.pool_choice import means, to_wrap
from zuno.lp.execute.checks import approval_hash
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.draft import SimulatedDraft
from zuno.lp.execute.gate import Gate
from zuno.lp.execute.plan_state import PlanProgress, append_event, load_progress
from zuno.lp.execute.send import Notify
from zuno.lp.execute.verify_outcome import gas_spent
from zuno.lp.model.ballot import CandidateKind, PlanVerdict
from zuno.lp.model.debate import Context, PlanReady
from zuno.lp.model.plan import PlanState
from zuno.lp.model.plan_events import Action, Approval, Instruction, PlanInstructed, PlanOutcome
from zuno.lp.plan.positions import check_owed
from zuno.lp.plan.sizing import fix_capital
from zuno.lp.service import arguments
from zuno.lp.service.archive import Archive
from zuno.lp.service.execution_view import (
    ApprovalView,
    ExecutionView,
    SimulationView,
    UnsignedView,
    approval_view,
    execution_view,
    simulation_view,
    unsigned_view,
)
from zuno.lp.service.positions import LpDesk

OpenHands = Callable[[str], Awaitable[ExecutionContext]]
"""What it takes to act on a chain, by its name."""


@dataclass(frozen=True, slots=True)
class Consent:
    """How the owner is asked: they see what it is about and say yes or no."""

    to_approve: Callable[[ApprovalView], bool]
    to_apply: Callable[[ApprovalView], bool]
    scripted: bool = False
    """Somebody's script says yes for them, which is heard only where money is play money."""
    who: str = "cli"


@dataclass(frozen=True, slots=True)
class Told:
    """A plan as something to be done."""

    plan_id: str
    plan_hash: str
    instruction: Instruction
    reject: str | None = None
    """Why the desk advises against it."""


class Execution:
    """Everything a person can do with a plan beyond reading it."""

    def __init__(
        self,
        open_journal: Callable[[], Awaitable[Journal]],
        archive: Archive,
        hands_of: OpenHands,
        desk_of: Callable[[str], LpDesk],
        default_chain: str,
        random: Callable[[int], bytes],
    ) -> None:
        self._open_journal = open_journal
        self._archive = archive
        self._hands_of = hands_of
        self._desk_of = desk_of
        self._default_chain = default_chain
        self._random = random

    async def simulate(self, plan_id: str) -> SimulationView:
        """Exact calldata on the latest block: balance changes, gas, price impact."""
        told = await self._told(plan_id, current=True)
        hands = await self._hands_of(told.instruction.chain)
        drafted = await Gate(hands).simulate(told.plan_id, told.plan_hash, told.instruction)
        return simulation_view(hands, drafted, await hands.chain.gas())

    async def approve(self, plan_id: str, consent: Consent) -> ExecutionView:
        told = await self._told(plan_id, current=True)
        hands = await self._hands_of(told.instruction.chain)
        _check_scripted(hands, consent)
        gate = Gate(hands)
        if told.reject is not None:
            await gate.reject(told.plan_id, told.reject)
            raise Refused(f"The desk rejected {plan_id}: {told.reject}. Ask it again, or take another candidate.")
        drafted = await gate.draft(told.plan_id, told.plan_hash, told.instruction)
        approval = gate.approval(drafted.draft, consent.who)
        shown = approval_view(hands, drafted, await hands.chain.gas(), approval, approval_hash(approval))
        if not consent.to_approve(shown):
            raise Refused(f"{plan_id} was not approved: the word was not given.")
        book = await gate.approve(drafted.draft, approval)
        return await execution_view(hands, book, told.instruction)

    async def apply(self, plan_id: str, consent: Consent, tell: Notify) -> ExecutionView | UnsignedView:
        told = await self._told(plan_id, current=True)
        hands = await self._hands_of(told.instruction.chain)
        _check_scripted(hands, consent)
        gate = Gate(hands)
        if hands.signer.watch_only:
            _, draft = await gate.load_approved(plan_id)
            return unsigned_view(hands, draft, await gate.prepare_unsigned(draft), hands.now())
        gas = await hands.chain.gas()

        def agreed(drafted: SimulatedDraft, approval: Approval) -> bool:
            return consent.to_apply(approval_view(hands, drafted, gas, approval, approval_hash(approval)))

        try:
            await gate.apply(plan_id, agreed, tell)
        finally:
            await self._note_outcome(hands, plan_id)
        book = await load_progress(hands.journal, plan_id)
        view = await execution_view(hands, book, told.instruction)
        if view.problems:
            raise Broken(f"{plan_id} was applied, and the chain shows something else: {'; '.join(view.problems)}.")
        return view

    async def cancel(self, plan_id: str, tell: Notify) -> ExecutionView:
        told = await self._told(plan_id)
        hands = await self._hands_of(told.instruction.chain)
        try:
            await Gate(hands).cancel(plan_id, tell)
        finally:
            await self._note_outcome(hands, plan_id)
        return await execution_view(hands, await load_progress(hands.journal, plan_id), told.instruction)

    async def status(self, plan_id: str) -> ExecutionView:
        told = await self._told(plan_id, holding=True)
        hands = await self._hands_of(told.instruction.chain)
        book, late = await Gate(hands).status(plan_id)
        return await execution_view(hands, book, told.instruction, late=late)

    # -- plans without a debate

    async def collect(self, position: str, chain: str | None) -> ExecutionView:
        return await self._instruct(Action.COLLECT, position, chain)

    async def close(self, position: str, chain: str | None) -> ExecutionView:
        return await self._instruct(Action.CLOSE, position, chain)

    async def remove(self, position: str, percent: str, chain: str | None) -> ExecutionView:
        """Take a share of the liquidity out; all of it is a close."""
        share = arguments.share(percent)
        action = Action.CLOSE if share == 1 else Action.REMOVE
        return await self._instruct(action, position, chain, share=None if share == 1 else share)

    async def add(self, position: str, amounts: Sequence[str], chain: str | None) -> ExecutionView:
        """Bring at most so much; of a token that is not named, what goes with it is fixed now."""
        if not amounts:
            raise Usage('How much? Give --amount, such as --amount "0.5 WETH"; once or for both tokens.')
        return await self._instruct(Action.ADD, position, chain, amounts=amounts)

    async def _instruct(
        self,
        action: Action,
        position: str,
        chain: str | None,
        *,
        share: Fraction | None = None,
        amounts: Sequence[str] = (),
    ) -> ExecutionView:
        hands = await self._hands_of(chain or self._default_chain)
        found = await self._desk_of(hands.info.name).position(arguments.position_id(position))
        if found.owner != hands.wallet:
            raise Refused(f"Position {found.id} belongs to {found.owner}, not to {hands.wallet}.")
        if action is Action.COLLECT:
            check_owed(found)
        capital, counterpart = await _fix_capital(hands, found, amounts) if amounts else ((0, 0), None)
        told = Instruction(
            action=action,
            chain=hands.info.name,
            pool_id=found.pool.id,
            tick=found.pool.tick,
            position_id=found.id,
            capital0=capital[0],
            capital1=capital[1],
            counterpart=counterpart,
            share=share,
        )
        digest = hashlib.sha256(canonical(told)).hexdigest()
        plan_id = "plan_" + hashlib.sha256(self._random(16) + digest.encode()).hexdigest()[:12]
        book = PlanProgress(plan_id)
        event = PlanInstructed(plan_id=plan_id, plan_hash=digest, instruction=told)
        await append_event(hands.journal, book, event)
        return await execution_view(hands, book, told)

    # -- from a plan's name to what is to be done

    async def _told(self, plan_id: str, *, holding: bool = False, current: bool = False) -> Told:
        """`current`: unless something of it is signed, it must have been argued by today's rules."""
        journal = await self._open_journal()
        arguments.plan_id(plan_id)
        book = await load_progress(journal, plan_id)
        if book.instructed is not None:
            return Told(plan_id, book.instructed.plan_hash, book.instructed.instruction)
        if book.draft is not None and book.signed_anything:  # whatever edition argued it, what was approved is known
            return Told(plan_id, book.draft.plan_hash, book.draft.instruction)
        plan, context, ready = await self._archive.decided(plan_id, current=current and book.over is None)
        told = _from_debate(context, ready)
        if told is None:
            if not holding:
                raise Refused(f"{plan_id} says hold: there is nothing to do.")
            told = _nothing(context)
        verdict = ready.decision.verdict
        why = "; ".join(plan.cautions) or "no move passed its rules"
        return Told(plan_id, plan.hash, told, why if verdict is PlanVerdict.REJECT else None)

    async def _note_outcome(self, hands: ExecutionContext, plan_id: str) -> None:
        """What came of it in money; a question that fails here must not hide what was done."""
        book = await load_progress(hands.journal, plan_id)
        draft = book.draft
        if book.over is None or book.outcome is not None or draft is None or draft.position is None:
            return
        if book.over.state is not PlanState.CONFIRMED and not book.halfway:
            return  # nothing became of the position
        attribution: dict[str, Any] | None = None
        why = ""
        try:
            view = await self._desk_of(draft.instruction.chain).pnl(str(draft.position.id), None)
            lowered = to_json(view)
            attribution = lowered if isinstance(lowered, dict) else None
        except ZunoError as error:
            why = str(error)
        outcome = PlanOutcome(
            plan_id=plan_id,
            position_id=draft.position.id,
            gas_cost=gas_spent(book),
            attribution=attribution,
            why=why,
        )
        await append_event(hands.journal, book, outcome)


def _check_scripted(hands: ExecutionContext, consent: Consent) -> None:
    if consent.scripted and not hands.local:
        raise Refused(f"--yes is for sim, devnet and test networks; on {hands.info.name} the word has to be typed.")


def _from_debate(context: Context, ready: PlanReady) -> Instruction | None:
    """What a debate decided, as something to be done; None where it decided to do nothing."""
    chosen = ready.debate.rounds[-1].candidates[ready.decision.index]
    scene = context.scenes[chosen.pool_index]
    if chosen.kind is CandidateKind.HOLD:
        return None
    if chosen.kind is CandidateKind.OPEN:
        wraps = context.wish is not None and to_wrap(context.wish, scene.pool) is not None
        return Instruction(
            action=Action.CREATE,
            chain=context.chain,
            pool_id=scene.pool.id,
            tick=scene.pool.tick,
            range=chosen.range,
            capital0=scene.capital0,
            capital1=scene.capital1,
            brings_ether=wraps,
        )
    if scene.position is None:
        raise Broken(f"A {chosen.kind} of no position was decided; run `zuno journal verify`.")
    return Instruction(
        action=Action.CLOSE if chosen.kind is CandidateKind.CLOSE else Action.REBALANCE,
        chain=context.chain,
        pool_id=scene.pool.id,
        tick=scene.pool.tick,
        position_id=scene.position.id,
        range=chosen.range,
    )


def _nothing(context: Context) -> Instruction:
    """A hold, so that its status can be asked for like any other's."""
    scene = context.scenes[0]
    return Instruction(
        action=Action.HOLD,
        chain=context.chain,
        pool_id=scene.pool.id,
        tick=scene.pool.tick,
        position_id=None if scene.position is None else scene.position.id,
    )


async def _fix_capital(
    hands: ExecutionContext, position: LpPosition, amounts: Sequence[str]
) -> tuple[tuple[int, int], Literal[0, 1] | None]:
    """What the owner named in base units; of a token that was not named, what goes with it at the worst price in the
    bounds. What the plan may take is fixed here, before anybody is asked."""
    tokens = (position.pool.token0, position.pool.token1)
    named: dict[int, int] = {}
    for text in amounts:
        amount, name = arguments.capital(text)
        side = next((side for side, token in enumerate(tokens) if means(name, token)), None)
        if side is None:
            raise Usage(f"Position {position.id} is of {tokens[0].symbol} and {tokens[1].symbol}, not of {name}.")
        if side in named:
            raise Usage(f"{name} is named twice.")
        try:
            named[side] = parse_units(f"{amount:f}", tokens[side].decimals)
        except ValueError:
            raise Usage(f"{tokens[side].symbol} has {tokens[side].decimals} decimals; {amount:f} has more.") from None
    purse = await hands.writer.purse(hands.wallet, [token.address for token in tokens], ())
    holdings = (purse.holdings.get(tokens[0].address, 0), purse.holdings.get(tokens[1].address, 0))
    capital = fix_capital(position, named, holdings, hands.limits.bounds.slippage_bps)
    return capital, None if len(named) == len(tokens) else 0 if 1 in named else 1
