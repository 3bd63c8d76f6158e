"""The one door to money: a plan is simulated, approved by its owner, and applied once, exactly as approved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Final

from zuno.kernel.errors import Malformed, NotFound, Refused, Unavailable
from zuno.kernel.numbers_text import time_text
from zuno.kernel.units import Address, HexId, Seconds, Wei
from zuno.lp.execute import checks
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.draft import (
    FEE_MARGIN,
    GAS_MARGIN,
    OnChainState,
    SimulatedDraft,
    all_steps,
    build_draft,
    check_capital_limits,
    check_named_tokens_used,
    data_fee,
    decode_step,
    find_position_of_step,
    list_positions,
    load_swap_quotes,
    measured_gas,
    plan_currencies,
    read_onchain_state,
    step_call,
    step_name,
    suggest_fees,
    wrapped_native,
)
from zuno.lp.execute.handed_out import explain_mismatch, explain_waiting, find_step, is_incomplete_batch, number_step
from zuno.lp.execute.plan_state import (
    PlanPart,
    PlanProgress,
    StepProgress,
    append_event,
    catch_up,
    draft_digest,
    load_progress,
    unfinished_plans,
)
from zuno.lp.execute.send import Notify, SigningInputs, StepSender, check_not_killed
from zuno.lp.execute.verify_outcome import measure_proceeds, position_actions, verify_outcome
from zuno.lp.model.plan import Allowances, Flow, Owns, PlanState, SecondHalf, Step, StepKind, StepState
from zuno.lp.model.plan_events import (
    Approval,
    Draft,
    Instruction,
    PlanApplying,
    PlanApproved,
    PlanCalledOff,
    PlanEvent,
    PlanFinishing,
    PlanOver,
    PlanRevoking,
    PlanSimulated,
    StepHandedOut,
)
from zuno.lp.plan.approvals import build_revocations
from zuno.lp.plan.calls import Approve, Execute, Mint, MintFromDeltas, Permit, RouterSwap, SwapIn
from zuno.lp.plan.context import amount_text
from zuno.lp.plan.positions import finish_rebalance
from zuno.lp.ports.spending import Fees, Simulation, SimulationMethod

AskOwner = Callable[[SimulatedDraft, Approval], bool]
"""Shows the owner the draft and its newest simulation; False means no."""


_PREPARING: Final = frozenset({StepKind.WRAP, StepKind.APPROVE_PERMIT2, StepKind.PERMIT2_APPROVE})
"""Steps after which the wallet still holds what it held, if wrapped."""


class Gate:
    """Simulates, approves, applies and cancels plans of one wallet on one chain, one plan at a time."""

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context

    # -- before anything is signed

    async def simulate(self, plan_id: str, plan_hash: str, instruction: Instruction) -> SimulatedDraft:
        """The plan as exact calldata on the latest block, and what it would do there."""
        progress = await self._load_progress(plan_id)
        _check_not_ended(progress)
        drafted = await build_draft(self._context, plan_id, plan_hash, instruction)
        if not progress.begun:
            event = PlanSimulated(
                plan_id=plan_id, block=drafted.draft.block, ok=drafted.error is None, why=drafted.error or ""
            )
            await self._append(progress, event)
        return drafted

    async def draft(self, plan_id: str, plan_hash: str, instruction: Instruction) -> SimulatedDraft:
        """What an approval would be about; `Refused` where it would be refused anyway."""
        progress = await self._load_progress(plan_id)
        _check_not_ended(progress)
        if progress.begun:
            raise Refused(f"{plan_id} is {progress.state} already; `zuno plan apply {plan_id}` goes on with it.")
        drafted = await build_draft(self._context, plan_id, plan_hash, instruction)
        for single, (pool, _) in zip(instruction.each(), list_positions(drafted.draft), strict=True):
            await checks.check_market(self._context, single, pool, drafted.draft.bounds)
        await checks.check_spend(self._context, drafted.draft)
        if drafted.error is not None:
            raise Refused(_as_sentence(drafted.error))
        return drafted

    def approval(self, draft: Draft, who: str) -> Approval:
        """The approval as it would be signed."""
        return Approval(
            plan_id=draft.plan_id,
            plan_hash=draft.plan_hash,
            draft=draft_digest(draft),
            chain_id=draft.chain_id,
            genesis=draft.genesis,
            wallet=draft.wallet,
            expires=draft.expires,
            who=f"{who} at node {self._context.key.public[:16]}",
        )

    async def approve(self, draft: Draft, approval: Approval) -> PlanProgress:
        """Sign and journal the approval. The expiry is checked again: the owner may have taken long to read."""
        with self._context.lock(self._lock_name):
            progress = await self._load_progress(draft.plan_id)
            _check_not_ended(progress)
            if progress.begun:
                raise Refused(f"{draft.plan_id} is {progress.state} already.")
            checks.check_not_expired(draft, (await self._context.chain.head()).timestamp)
            signature = self._context.key.sign(checks.signing_bytes(approval)).hex()
            event = PlanApproved(plan_id=draft.plan_id, approval=approval, signature=signature)
            await self._append(progress, event, draft)
            return progress

    async def reject(self, plan_id: str, why: str) -> None:
        """The desk itself advised against it: nothing is ever signed for this plan."""
        progress = await self._load_progress(plan_id)
        if progress.over is None and not progress.begun:
            await self._append(progress, PlanOver(plan_id=plan_id, state=PlanState.REJECTED, why=why))

    # -- applying

    async def load_approved(self, plan_id: str, progress: PlanProgress | None = None) -> tuple[PlanProgress, Draft]:
        """The plan with its approval, checked; `Refused` where there is nothing to apply. `progress`: loaded before."""
        progress = PlanProgress(plan_id) if progress is None else progress
        await catch_up(self._context.journal, progress)
        _check_not_ended(progress)
        draft = checks.check_approval(progress, self._context.key)
        await checks.check_chain(self._context, draft)
        check_not_killed(self._context, progress)
        return progress, draft

    async def offer(self, progress: PlanProgress) -> tuple[SimulatedDraft, Approval]:
        """What `apply` asks the owner about, after the same checks. A look, as `status` is."""
        await self.reconcile(_discard_message, but=progress.plan_id, looks=True)
        _, draft = await self.load_approved(progress.plan_id, progress)
        if (over := await self._look(progress, draft)) is not None:
            raise Refused(_describe_end(progress, draft, over))
        return await self._simulate_again(progress, draft)

    async def _simulate_again(self, progress: PlanProgress, draft: Draft) -> tuple[SimulatedDraft, Approval]:
        if progress.approved is None:
            raise Refused(f"{progress.plan_id} was not approved.")
        if not progress.begun:
            return await self._check_fresh(draft), progress.approved.approval
        # Its first steps are done, so that the whole cannot be tried any more.
        untried = Simulation(await self._context.chain.head(), SimulationMethod.FIRST_CALL, (), {}, None)
        return self._with_simulation(draft, untried), progress.approved.approval

    async def apply(
        self,
        plan_id: str,
        ask_owner: AskOwner,
        notify: Notify,
        tx: HexId | None = None,
        *,
        progress: PlanProgress | None = None,
    ) -> PlanProgress:
        """Apply an approved plan, or continue it; a plan that has ended is refused. `progress`: loaded before.

        Where the wallet is watched only, the next step is handed out, once; `tx`: the transaction that did the one
        handed out before.
        """
        with self._context.lock(self._lock_name):
            await self.reconcile(notify, but=plan_id)
            progress, draft = await self.load_approved(plan_id, progress)
            if progress.handed_out or (self._context.signer.watch_only and not progress.signed_anything):
                await self._run_elsewhere(progress, draft, ask_owner, notify, tx)
                return progress
            if tx is not None:
                raise Refused(f"Nothing of {plan_id} was handed out: there is no step that {tx} could be.")
            await self._confirm(progress, draft, ask_owner)
            self._context.signer.ready()  # whatever takes a person's time comes before the last look at the chain
            await self._record_intent(progress, draft)
            await self._run_plan(progress, draft, notify)
            return progress

    async def _confirm(self, progress: PlanProgress, draft: Draft, ask_owner: AskOwner) -> None:
        if not ask_owner(*await self._simulate_again(progress, draft)):
            raise Refused(f"{progress.plan_id} was not applied: it was not confirmed.")

    async def _record_intent(self, progress: PlanProgress, draft: Draft) -> None:
        if progress.applying is None:
            spend = await checks.check_spend(self._context, draft)
            head, local = await self._context.chain.head(), self._context.local
            intent = PlanApplying(plan_id=progress.plan_id, block=head, spend_usd=spend, play_money=local)
            await self._append(progress, intent)

    async def cancel(self, plan_id: str, notify: Notify) -> PlanProgress:
        """Cancel a plan: replace transactions in flight by empty ones of the same nonce, and revoke its allowances."""
        with self._context.lock(self._lock_name):
            progress = await self._load_progress(plan_id)
            _check_not_ended(progress)
            draft = progress.draft
            if draft is not None and progress.handed_out:
                await self._call_off_handed_out(progress, draft, notify)
                return progress
            if draft is None or not progress.signed_anything:
                event = PlanOver(
                    plan_id=plan_id, state=PlanState.CANCELLED, why="called off before anything was signed"
                )
                await self._append(progress, event)
                return progress
            await checks.check_chain(self._context, draft)
            self._context.signer.ready()
            if progress.called_off is None:
                await self._append(progress, PlanCalledOff(plan_id=plan_id))
            await self._cancel_in_flight(progress, draft, notify)
            return progress

    async def reconcile(self, notify: Notify, *, but: str | None = None, looks: bool = False) -> None:
        """Compare every unfinished step of this wallet with the chain, before anything else is done.

        `but`: the plan that is about to go on anyway. Others must have nothing in flight: their number would be ours.
        """
        for plan_id in await unfinished_plans(self._context.journal):
            if plan_id == but:
                continue
            progress = await self._load_progress(plan_id)
            draft = progress.draft
            if draft is None or not await self._is_for_this_wallet(draft):
                continue
            if looks:
                over = await self._look(progress, draft) is not None
            else:
                await self._sync_with_chain(progress, self._step_sender(progress, draft, notify))
                over = progress.handed_out and await self._end_handed_out(progress, draft)
            if over:
                continue
            for _, step in progress.in_flight:
                way = explain_waiting(progress) or f"still has a transaction on its way ({step.tx})"
                raise Refused(f"{plan_id} {way}; `zuno plan apply {plan_id}` or `zuno plan cancel {plan_id}` first.")

    async def status(self, plan_id: str) -> tuple[PlanProgress, bool]:
        """The plan as the journal and the chain have it; and whether its approval has run out.

        A look: it takes no lock, so that it cannot keep an owner from applying, and writes nothing down.
        """
        progress = await self._load_progress(plan_id)
        draft = progress.draft
        if draft is not None and self._list_awaited(progress) and await self._is_for_this_wallet(draft):
            if (over := await self._look(progress, draft)) is not None:
                progress.apply_event(over)
            newest, *_ = await self._context.journal.latest(1, request_id=plan_id)
            if newest.seq != progress.seq:  # it is being applied: the journal knows more
                progress = await self._load_progress(plan_id)
        late = False
        if progress.draft is not None and progress.state is PlanState.APPROVED:
            late = (await self._context.chain.head()).timestamp > progress.draft.expires
        return progress, late

    async def _look(self, progress: PlanProgress, draft: Draft) -> PlanOver | None:
        """Update a plan from the chain and write nothing down; how it ends, if nobody can go on with what was handed
        out."""
        await self._sync_with_chain(progress, self._step_sender(progress, draft, _discard_message, looks=True))
        return await self._find_expiry(progress, draft) if progress.handed_out else None

    async def _sync_with_chain(self, progress: PlanProgress, sender: StepSender) -> None:
        """Update a plan's steps in flight from the chain."""
        for index, step in self._list_awaited(progress):
            while (step.in_flight or step.awaited) and await sender.sync_step(index):
                pass

    def _list_awaited(self, progress: PlanProgress) -> list[tuple[int, StepProgress]]:
        """What may still be mined; one that a signer elsewhere saw revert can be sent again. Nothing after its end."""
        steps = enumerate(progress.steps) if progress.over is None else ()
        return [(index, step) for index, step in steps if step.in_flight or step.awaited]

    # -- the run itself

    async def _run_plan(self, progress: PlanProgress, draft: Draft, notify: Notify) -> None:
        if progress.called_off is not None:
            await self._cancel_in_flight(progress, draft, notify)
            raise Refused(f"{progress.plan_id} was called off before, and is {progress.state} now.")
        try:
            await self._run_part(progress, draft, PlanPart.FIRST, notify)
            if draft.later is not None:
                await self._build_second_half(progress, draft)
                await self._run_part(progress, draft, PlanPart.LATER, notify)
        except checks.ApprovalExpired as late:
            if not progress.begun:
                raise
            ending = PlanState.PARTIAL if progress.halfway else PlanState.FAILED
            over = await self._end_plan(progress, draft, ending, "its approval ran out half-way", notify)
            raise Refused(f"{late} {_describe_end(progress, draft, over)}") from late
        await self._conclude(progress, draft)

    async def _run_part(self, progress: PlanProgress, draft: Draft, part: PlanPart, notify: Notify) -> None:
        sender, prepare = self._step_sender(progress, draft, notify), partial(self._prepare_signing, progress, draft)
        for index, step in enumerate(progress.steps):
            if step.part is part:
                try:
                    done = await sender.run_step(index, prepare)
                except checks.ApprovalExpired:
                    raise
                except Refused as refusal:
                    raise self._explain_unfinished(progress, draft, refusal) from refusal
                if not _is_final(done):
                    await self._end_failed_plan(progress, draft, step, notify)

    async def _build_second_half(self, progress: PlanProgress, draft: Draft) -> None:
        """From what the first half really paid; once more wherever nothing of it is under way or over."""
        under_way = any(step.in_flight or step.has_failed for step in _later_steps(progress))
        if not under_way and not _later_mint_is_final(progress):
            paid, steps, onchain = await self._build_later_steps(progress, draft)
            event = PlanFinishing(plan_id=progress.plan_id, block=onchain.wallet_state.block, paid=paid, steps=steps)
            await self._append(progress, event)

    async def _build_later_steps(
        self, progress: PlanProgress, draft: Draft
    ) -> tuple[tuple[Flow, ...], tuple[Step, ...], OnChainState]:
        if draft.later is None:
            raise Refused(f"{progress.plan_id} has no second half")
        onchain = await read_onchain_state(self._context, HexId(draft.later.pool_id), None)
        paid = measure_proceeds(progress, draft, onchain.wallet_state.holdings)
        half = draft.later
        terms = onchain.terms(self._context, draft.bounds)
        amounts = {flow.currency: flow.amount for flow in paid}
        have = tuple(amounts.get(currency, 0) for currency in (half.key.currency0, half.key.currency1))
        try:
            if not progress.handed_out:  # one that a signer elsewhere sends gets a deadline of its own
                checks.check_not_expired(draft, onchain.wallet_state.block.timestamp)
            quote = await load_swap_quotes(self._context, onchain.pool, None)
            steps = finish_rebalance(half, terms, onchain.pool, have[0], have[1], quotes=quote)
            for step in steps:
                self._check_later(draft, step)
        except checks.ApprovalExpired:
            raise
        except Refused as refusal:
            raise self._explain_unfinished(progress, draft, refusal) from refusal
        return paid, steps, onchain

    def _check_later(self, draft: Draft, step: Step) -> None:
        """A later step must decode to what was approved: this range of this pool, this way round, at this rate."""
        if draft.later is None:
            raise Refused("no later steps were approved")
        kinds = (StepKind.APPROVE_PERMIT2, StepKind.PERMIT2_APPROVE, StepKind.MINT, StepKind.SWAP_AND_MINT)
        if step.kind not in kinds:
            raise Refused(f"a {step.kind} was not approved as a later step")
        for action in position_actions(self._context, step):
            if not isinstance(action, Mint | MintFromDeltas):
                continue
            if (action.range, action.key) != (draft.later.range, draft.later.key):
                raise Refused(f"ticks {action.range.lower} to {action.range.upper} were not approved")
        call = decode_step(self._context, step).call
        commands = call.commands if isinstance(call, Execute) else ()
        called = [action for command in commands if isinstance(command, RouterSwap) for action in command.actions]
        if swaps := [action for action in called if isinstance(action, SwapIn)]:
            _check_approved_swaps(swaps, draft.later)

    async def _prepare_signing(self, progress: PlanProgress, draft: Draft, index: int) -> SigningInputs:
        """Repeats every check just before a signature."""
        at = progress.steps[index]
        step = at.step
        about = next((need.token_id for need in step.needs if isinstance(need, Owns)), None)
        more = (*plan_currencies(draft), *map(Address, draft.instruction.tokens))
        onchain = await read_onchain_state(self._context, HexId(find_position_of_step(draft, step)[0].id), about, more)
        if at.part is PlanPart.FIRST or (at.part is PlanPart.LATER and not progress.handed_out):
            checks.check_not_expired(draft, onchain.wallet_state.block.timestamp)
        checks.check_needs(step, onchain)
        checks.check_policy(self._context, step, onchain, draft, self._step_caps(progress, draft, at.part))
        if step.needs and step.kind is not StepKind.COLLECT and not draft.instruction.leaves_anyway:
            await checks.check_reference(self._context, onchain.pool)
        gas = await self._context.writer.estimate(self._context.wallet, step_call(step))
        price = await self._context.chain.gas()
        fees = suggest_fees(price)
        most_fee = (
            max(draft.gas.max_fee, FEE_MARGIN * fees.max_fee) if at.part is PlanPart.REVOKING else draft.gas.max_fee
        )
        checks.check_gas(
            onchain, step, gas, fees.max_fee, self._gas_bound(draft, at), most_fee, data_fee([step], price)
        )
        wallet_state = onchain.wallet_state
        held = tuple(Flow(each, wallet_state.holdings.get(each, 0)) for each in plan_currencies(draft))
        return SigningInputs(wallet_state.next_nonce, gas, fees, held)

    def _step_caps(self, progress: PlanProgress, draft: Draft, part: PlanPart) -> tuple[Flow, ...]:
        if part is PlanPart.LATER and progress.finishing is not None:
            return progress.finishing.paid
        return draft.caps if part is PlanPart.FIRST else ()

    def _gas_bound(self, draft: Draft, at: StepProgress) -> int:
        """The bound of the steps of this kind; a second half may have lost its swap and mint alone."""
        bounds = zip(draft.gas.units, all_steps(draft), strict=True)
        of_kind = (units for units, step in bounds if step.kind is at.step.kind)
        return max(of_kind, default=GAS_MARGIN * measured_gas(at.step.kind))

    # -- signed elsewhere

    async def _run_elsewhere(
        self, progress: PlanProgress, draft: Draft, ask_owner: AskOwner, notify: Notify, tx: HexId | None
    ) -> None:
        """Recognise what was handed out, then hand out what comes next: one step to a plain wallet, all to a Safe."""
        sender = self._step_sender(progress, draft, notify)
        if tx is not None:
            for index in await self._find_named(progress, draft, tx):
                await sender.sync_handed_out(index, tx)
        await self._follow(progress, sender)
        if progress.handed_out and await self._end_handed_out(progress, draft):
            if progress.over is not None and progress.over.state is not PlanState.CONFIRMED:
                raise Refused(_describe_end(progress, draft, progress.over))
            return
        if any(progress.in_flight) and not is_incomplete_batch(progress):
            return  # the same bytes are shown again
        await self._confirm(progress, draft, ask_owner)
        await self._record_intent(progress, draft)
        batch = await self._context.writer.is_contract(self._context.wallet)
        if progress.halfway and progress.finishing is None:
            await self._build_second_half(progress, draft)
        try:
            for index, step in enumerate(progress.steps):
                if not step.in_flight and not _is_final(step):
                    await self._hand_out(progress, draft, index, batch=batch)
                    notify(f"{number_step(progress, index)} ({step_name(step.step)}): handed out")
                    if not batch:
                        break
        except Refused as refusal:
            raise self._explain_unfinished(progress, draft, refusal) from refusal

    async def _hand_out(self, progress: PlanProgress, draft: Draft, index: int, *, batch: bool) -> None:
        step, head = progress.steps[index].step, await self._context.chain.head()
        if batch:  # whoever runs a Safe's transaction chooses its number, gas and fees
            wallet_state = await self._context.writer.wallet_state(self._context.wallet, plan_currencies(draft), ())
            held = tuple(Flow(currency, amount) for currency, amount in wallet_state.holdings.items())
            ready = SigningInputs(0, 0, Fees(Wei(0), Wei(0)), held)
        else:
            ready = await self._prepare_signing(progress, draft, index)
        event = StepHandedOut(
            plan_id=progress.plan_id,
            step=index,
            to=step.to,
            value=step.value,
            data=step.data,
            deadline=_deadline(progress, draft) if step.deadline is None else step.deadline,
            block=head,
            nonce=ready.nonce,
            gas=ready.gas,
            max_fee=ready.fees.max_fee,
            tip=ready.fees.tip,
            batch=batch,
            holdings=ready.holdings,
        )
        check_not_killed(self._context, progress)
        await self._append(progress, event)

    async def _find_named(self, progress: PlanProgress, draft: Draft, tx: HexId) -> list[int]:
        """The steps that a transaction is to have done; `Refused` with what speaks against it."""
        steps = [(index, step) for index, step in self._list_awaited(progress) if step.state is not StepState.MINED]
        awaited = [(index, step.handed_out) for index, step in steps if step.handed_out is not None]
        if not awaited:
            raise Refused(f"No step of {progress.plan_id} is handed out and not seen yet: {tx} can be none.")
        seen = (await self._context.writer.find_transaction(self._context.wallet, tx)).transactions
        if not seen:
            raise Refused(f"{self._context.info.name} has no {tx} in a block: it is not known there, or waits still.")
        why = explain_mismatch(self._context, draft, seen[0], awaited[0][1])
        if why is None and not seen[0].mined.success:
            why = f"it reverted in block {seen[0].mined.block.number}"
        if why is not None:
            raise Refused(f"{tx} is not {number_step(progress, awaited[0][0])} of {progress.plan_id}: {why}.")
        return [index for index, _ in awaited]

    async def _follow(self, progress: PlanProgress, sender: StepSender) -> None:
        """Look for what was handed out, and wait for what is mined to be final."""
        begun = self._context.stopwatch()
        while True:
            await self._sync_with_chain(progress, sender)
            waits = any(step.state is StepState.MINED for step in progress.steps)
            if not waits or self._context.stopwatch() - begun >= self._context.timeouts.patience:
                return
            await self._context.sleep(self._context.timeouts.poll_interval)

    async def _end_handed_out(self, progress: PlanProgress, draft: Draft) -> bool:
        """End a handed-out plan that is done, or that nobody can go on with; False where it goes on."""
        if self._is_complete(progress, draft):
            await self._conclude(progress, draft)
        elif (over := await self._find_expiry(progress, draft)) is not None:
            await self._append(progress, over)
        return progress.over is not None

    async def _find_expiry(self, progress: PlanProgress, draft: Draft) -> PlanOver | None:
        """How a handed-out plan ends whose deadline has passed, by a block that is final where a step may be mined."""
        head = await self._context.chain.head()
        if progress.over is not None or head.timestamp <= _deadline(progress, draft):
            return None
        seen = await self._context.writer.find_sent(self._context.wallet, head.number)
        moment = seen.settled if self._list_awaited(progress) else seen.head
        if self._is_complete(progress, draft) or moment.timestamp <= _deadline(progress, draft):
            return None
        for _, step in self._list_awaited(progress):  # once more: that block is younger than the last look
            _, mined = await find_step(self._context, progress, step)
            if mined is not None and mined.success:
                return None
        moved = any(_is_final(step) and step.step.kind not in _PREPARING for step in progress.steps)
        ending = PlanState.PARTIAL if progress.halfway else PlanState.FAILED if moved else PlanState.EXPIRED
        done = sum(map(_is_final, progress.steps))
        why = f"{done} of its {len(progress.steps)} steps were seen on the chain by its deadline"
        standing = await self._name_standing(progress, draft)
        return PlanOver(plan_id=progress.plan_id, state=ending, why=why + standing)

    async def _call_off_handed_out(self, progress: PlanProgress, draft: Draft, notify: Notify) -> None:
        await checks.check_chain(self._context, draft)
        why = "called off"
        try:
            await self._follow(progress, self._step_sender(progress, draft, notify))
            if await self._end_handed_out(progress, draft):
                return
        except Unavailable as error:  # the owner's no stands, whatever a node can tell
            why = f"called off; what was sent could not be looked for: {error}"
        why += " after its first half, its tokens are in the wallet" if progress.halfway else ""
        for index, step in self._list_awaited(progress):
            until = "at any time" if step.step.deadline is None else f"until {time_text(step.step.deadline)}"
            why += f"; whoever has {number_step(progress, index)} ({step_name(step.step)}) can still send it {until}"
        with suppress(Unavailable):
            why += await self._name_standing(progress, draft)
        await self._append(progress, PlanOver(plan_id=progress.plan_id, state=PlanState.CANCELLED, why=why))

    async def _name_standing(self, progress: PlanProgress, draft: Draft) -> str:
        """The allowances that the plan granted and that stand."""
        if not any(_granted_allowances(progress, self._context)):
            return ""
        onchain, ours = await self._standing_allowances(progress, draft)
        names = [f"{amount_text(onchain.pool, token, amount)} to Permit2" for token, amount in ours.to_permit2.items()]
        names += [
            f"{amount_text(onchain.pool, token, grant.amount)} to {spender} through Permit2"
            for (token, spender), grant in ours.grants.items()
        ]
        return f"; still allowed: {', '.join(names)} (`zuno lp revoke` takes it back)" if names else ""

    # -- held against the world

    async def _simulate(self, draft: Draft, steps: Sequence[Step]) -> SimulatedDraft:
        calls, traded = [step_call(step) for step in steps], plan_currencies(draft)
        simulation = await self._context.writer.simulate(self._context.wallet, calls, traded, HexId(draft.pool.id))
        return self._with_simulation(draft, simulation)

    async def _check_fresh(self, draft: Draft) -> SimulatedDraft:
        """Nothing is signed yet: the whole plan is held against the world as it is now, and tried once more."""
        instruction, states = draft.instruction, dict[int | None, OnChainState]()
        for single in instruction.each():
            try:
                seen = await read_onchain_state(
                    self._context, HexId(single.pool_id), single.position_id, tuple(map(Address, single.tokens))
                )
            except NotFound as gone:
                raise Refused(f"What {draft.plan_id} is about has changed: {gone}") from gone
            checks.check_not_expired(draft, seen.wallet_state.block.timestamp)
            await checks.check_market(self._context, single, seen.pool, draft.bounds)
            states[single.position_id] = seen
        onchain = states[instruction.position_id]
        check_named_tokens_used(instruction, onchain)
        steps = draft.steps
        check_capital_limits(instruction, onchain.pool, wrapped_native(self._context), steps)
        for index, step in enumerate(steps):
            _, position = find_position_of_step(draft, step)
            state = onchain if position is None else states[position.id]
            checks.check_needs(step, state, after=steps[:index])
            checks.check_policy(self._context, step, state, draft, draft.caps)
        simulated = await self._simulate(draft, all_steps(draft))
        batch = self._context.signer.watch_only and await self._context.writer.is_contract(self._context.wallet)
        if simulated.error is not None and draft.later is not None and not batch:
            # The second half is built anew from what the first pays: what was approved of it need not go through as is.
            simulated = await self._simulate(draft, steps)
        if simulated.error is not None:
            raise Refused(_as_sentence(simulated.error))
        if not batch:  # whoever runs a Safe's transaction pays for its gas
            limit = await self._context.writer.estimate(self._context.wallet, step_call(steps[0]))
            checks.check_whole_gas(onchain, simulated, await self._context.chain.gas(), limit)
        return simulated

    # -- endings

    async def _conclude(self, progress: PlanProgress, draft: Draft) -> None:
        outcome = await verify_outcome(self._context, progress, draft)
        event = PlanOver(
            plan_id=progress.plan_id,
            state=PlanState.CONFIRMED,
            new_position_id=outcome.new_id,
            problems=outcome.problems,
            leftover=outcome.leftover,
        )
        await self._append(progress, event)

    async def _end_failed_plan(self, progress: PlanProgress, draft: Draft, step: StepProgress, notify: Notify) -> None:
        why = f"{step_name(step.step)}: {step.why}{await self._revert_reason(step)}"
        late = step.is_cancelled and step.mined is not None and step.mined.block.timestamp > draft.expires
        if step.is_cancelled:
            why = "its deadline passed before it was mined" if late else "called off before it was mined"
        ending = PlanState.PARTIAL if progress.halfway else PlanState.FAILED
        if step.is_cancelled and not late:
            ending = PlanState.CANCELLED
        over = await self._end_plan(progress, draft, ending, why, notify)
        raise Refused(_describe_end(progress, draft, over))

    async def _cancel_in_flight(self, progress: PlanProgress, draft: Draft, notify: Notify) -> None:
        """Replace transactions in flight by empty ones, then end the plan as the chain shows it."""
        sender = self._step_sender(progress, draft, notify)
        for index, step in list(progress.in_flight):
            if step.part is PlanPart.REVOKING:
                continue  # taking back goes on below
            if step.state is not StepState.MINED and not await sender.sync_step(index, send=False):
                await sender.cancel(index)
            await sender.run_step(index, None)
        if self._is_complete(progress, draft):
            await self._conclude(progress, draft)
            return
        why = "called off after its first half, its tokens are in the wallet" if progress.halfway else "called off"
        await self._end_plan(progress, draft, PlanState.CANCELLED, why, notify)

    async def _revert_reason(self, step: StepProgress) -> str:
        """Why a step reverted, as far as trying it on the head tells; nothing where it would go through by now."""
        if step.state is not StepState.REVERTED:
            return ""
        try:
            again = await self._context.writer.estimate(self._context.wallet, step_call(step.step))
        except Refused as refusal:
            return f" ({str(refusal).rstrip('.')})"
        except (Unavailable, Malformed):
            return ""
        limit = step.newest.gas
        return f" (it had {limit} gas, and needs {again})" if again > limit else ""

    async def _end_plan(
        self, progress: PlanProgress, draft: Draft, ending: PlanState, why: str, notify: Notify
    ) -> PlanOver:
        """Revoke unused allowances, then journal the end of the plan."""
        found = await self._revoke_allowances(progress, draft, notify)
        over = PlanOver(plan_id=progress.plan_id, state=ending, why=why, problems=found)
        await self._append(progress, over)
        return over

    async def _revoke_allowances(self, progress: PlanProgress, draft: Draft, notify: Notify) -> tuple[str, ...]:
        if not any(step.part is PlanPart.REVOKING for step in progress.steps):
            steps = await self._revocation_steps(progress, draft)
            if not steps:
                return ()
            await self._append(progress, PlanRevoking(plan_id=progress.plan_id, steps=steps))
        sender = self._step_sender(progress, draft, notify, anyhow=True)
        prepare = partial(self._prepare_signing, progress, draft)
        left = []
        for index, step in enumerate(progress.steps):
            if step.part is PlanPart.REVOKING:
                try:
                    done = await sender.run_step(index, prepare)
                except Refused as refusal:
                    left.append(f"an allowance could not be taken back: {refusal}")
                    continue
                if not _is_final(done):
                    left.append(f"an allowance could not be taken back: {done.why}")
        return tuple(left)

    async def _revocation_steps(self, progress: PlanProgress, draft: Draft) -> tuple[Step, ...]:
        """Revokes only what this plan granted; earlier allowances stay."""
        if not any(_granted_allowances(progress, self._context)):
            return ()
        onchain, ours = await self._standing_allowances(progress, draft)
        terms = replace(onchain.terms(self._context, draft.bounds), allowances=ours)
        return build_revocations(terms, tuple(dict.fromkeys((*ours.to_permit2, *(token for token, _ in ours.grants)))))

    async def _standing_allowances(self, progress: PlanProgress, draft: Draft) -> tuple[OnChainState, Allowances]:
        """What this plan granted and nobody has used up."""
        tokens, spenders = _granted_allowances(progress, self._context)
        onchain = await read_onchain_state(self._context, HexId(draft.pool.id), None)
        standing = onchain.wallet_state.allowances
        return onchain, Allowances(
            {token: amount for token, amount in standing.to_permit2.items() if token in tokens and amount},
            {pair: grant for pair, grant in standing.grants.items() if pair in spenders and grant.amount},
        )

    def _explain_unfinished(self, progress: PlanProgress, draft: Draft, refusal: Refused) -> Refused:
        """Refused on the way: finished steps and their allowances stay in place, and between the halves the tokens are
        in the wallet."""
        if not progress.begun:
            return refusal
        where = _explain_where_tokens_are(draft) if progress.halfway else ""
        return Refused(
            f"{refusal} {progress.plan_id} is {progress.state}. Apply it again while its approval lasts, or `zuno plan "
            f"cancel {progress.plan_id}` ends it.{where}"
        )

    # -- lookups

    async def _append(self, progress: PlanProgress, event: PlanEvent, draft: Draft | None = None) -> None:
        await append_event(self._context.journal, progress, event, draft)

    async def _load_progress(self, plan_id: str) -> PlanProgress:
        return await load_progress(self._context.journal, plan_id)

    async def _is_for_this_wallet(self, draft: Draft) -> bool:
        """Of this wallet on this very chain: bytes signed for a world that is gone would be good in the next one."""
        same = (draft.chain_id, draft.wallet) == (self._context.info.id, self._context.wallet)
        named = same and draft.instruction.chain == self._context.info.name
        return named and draft.genesis == await self._context.writer.genesis()

    def _is_complete(self, progress: PlanProgress, draft: Draft) -> bool:
        """Nothing that was approved is left to do."""
        parts = [step for step in progress.steps if step.part is not PlanPart.REVOKING]
        done = all(step.state is StepState.FINAL for step in parts)
        return done and (draft.later is None or _later_mint_is_final(progress))

    def _step_sender(
        self, progress: PlanProgress, draft: Draft, notify: Notify, *, anyhow: bool = False, looks: bool = False
    ) -> StepSender:
        most = Wei(1 << 255) if anyhow else draft.gas.max_fee
        return StepSender(self._context, progress, Seconds(draft.expires), most, notify, looks=looks)

    def _with_simulation(self, draft: Draft, simulation: Simulation) -> SimulatedDraft:
        return SimulatedDraft(draft, simulation, self._context.info.deployment.swap_struct)

    @property
    def _lock_name(self) -> str:
        return f"{self._context.info.name}-{self._context.wallet}"


def _check_approved_swaps(swaps: Sequence[SwapIn], half: SecondHalf) -> None:
    """One swap the approved way, then one back of no more than the first pays, each at its approved rate at least."""
    if [swap.zero_for_one for swap in swaps] != [half.zero_for_one, not half.zero_for_one]:
        raise Refused("the swaps go another way round than was approved")
    for swap, rate in zip(swaps, (half.least_rate, half.guard_rate), strict=True):
        if rate is not None and Fraction(swap.amount_out_min, swap.amount_in) < rate:
            raise Refused(f"the swap takes {swap.amount_out_min} for {swap.amount_in}, less than the approved rate")
    if swaps[1].amount_in > swaps[0].amount_out_min:
        raise Refused(f"a swap back of {swaps[1].amount_in} is more than the {swaps[0].amount_out_min} there will be")


def _discard_message(line: str) -> None:
    """Ignores progress messages."""


def _as_sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}."


def _deadline(progress: PlanProgress, draft: Draft) -> int:
    """Of what a signer elsewhere may still send. A second half has one of its own, as far away as the approved bounds
    have it, and has to be asked for as soon after the first."""
    if progress.finishing is not None:
        return progress.finishing.block.timestamp + draft.bounds.deadline_seconds
    mined = [step.mined.block.timestamp for step in progress.steps if step.mined is not None]
    return max(mined) + draft.bounds.deadline_seconds if progress.halfway else draft.expires


def _is_final(step: StepProgress) -> bool:
    return step.state is StepState.FINAL


def _check_not_ended(progress: PlanProgress) -> None:
    if progress.over is not None:
        ended = f"{progress.plan_id} is {progress.over.state} already"
        raise Refused(f"{ended}{f' ({progress.over.why})' if progress.over.why else ''}; it is never applied again.")


def _describe_end(progress: PlanProgress, draft: Draft, over: PlanOver) -> str:
    where = _explain_where_tokens_are(draft) if progress.halfway else ""
    return f"{over.plan_id} ended as {over.state}: {over.why}.{where}"


def _later_steps(progress: PlanProgress) -> list[StepProgress]:
    return [step for step in progress.steps if step.part is PlanPart.LATER]


def _later_mint_is_final(progress: PlanProgress) -> bool:
    mints = (StepKind.MINT, StepKind.SWAP_AND_MINT)
    return any(step.step.kind in mints and step.state is StepState.FINAL for step in _later_steps(progress))


def _granted_allowances(
    progress: PlanProgress, context: ExecutionContext
) -> tuple[set[Address], set[tuple[Address, Address]]]:
    """The tokens whose allowance to Permit2 this plan set, and the pairs of token and spender it let through there."""
    tokens: set[Address] = set()
    spenders: set[tuple[Address, Address]] = set()
    for step in progress.steps:
        if step.state is not StepState.FINAL:
            continue
        match decode_step(context, step.step).call:
            case Approve(_, amount) if amount:
                tokens.add(step.step.to)
            case Permit(token, spender, amount, _) if amount:
                spenders.add((token, spender))
            case _:
                pass
    return tokens, spenders


def _explain_where_tokens_are(draft: Draft) -> str:
    names = (draft.pool.token0.symbol, draft.pool.token1.symbol)
    return (
        f" Its {' and '.join(names)} rest in the wallet; to open a new position with them: "
        f"`zuno lp recommend create --chain {draft.instruction.chain} --pair {'/'.join(names)} …`"
    )
