"""The one door to money: a plan is simulated, approved by its owner, and applied once, exactly as approved."""

from dataclasses import dataclass

from zuno.kernel.errors import Refused
from zuno.kernel.units import HexId
from zuno.kernel.wire import derive
from zuno.lp.execute import checks
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.draft import SimulatedDraft, build_draft, list_positions
from zuno.lp.execute.handed_out import explain_waiting
from zuno.lp.execute.mandates import append_mandate_event, check_act
from zuno.lp.execute.plan_run import AskOwner, PlanRun, as_sentence
from zuno.lp.execute.plan_state import PlanProgress, append_event, catch_up, draft_digest, unfinished_plans
from zuno.lp.execute.send import Notify, check_may_begin
from zuno.lp.execute.signed_elsewhere import HandedOutRun
from zuno.lp.model.mandate import ActDecided
from zuno.lp.model.plan import PlanState
from zuno.lp.model.plan_events import Approval, Draft, Instruction, PlanApproved, PlanCalledOff, PlanOver, PlanSimulated
from zuno.lp.rules.mandate import ACT_OF


@dataclass(frozen=True, slots=True)
class ActReason:
    """Why something is done under a mandate, and what the four agents said of it."""

    why: str = ""
    argument: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gate:
    """Simulates, approves, applies and cancels plans of one wallet on one chain, one plan at a time.

    `progress` is the plan as a caller loaded it before: what was journaled since is added to it.
    """

    context: ExecutionContext

    async def simulate(
        self,
        plan_id: str,
        plan_hash: str,
        instruction: Instruction,
        progress: PlanProgress | None = None,
        *,
        looks: bool = False,
    ) -> SimulatedDraft:
        """The plan as exact calldata on the latest block, and what it would do there. `looks`: not journaled."""
        progress = await self._load(plan_id, progress)
        _check_not_ended(progress)
        drafted = await build_draft(self.context, plan_id, plan_hash, instruction)
        if not progress.begun and not looks:
            event = PlanSimulated(
                plan_id=plan_id, block=drafted.draft.block, ok=drafted.error is None, why=drafted.error or ""
            )
            await append_event(self.context.journal, progress, event)
        return drafted

    async def draft(
        self, plan_id: str, plan_hash: str, instruction: Instruction, progress: PlanProgress | None = None
    ) -> SimulatedDraft:
        """What an approval would be about; `Refused` where it would be refused anyway."""
        progress = await self._load(plan_id, progress)
        _check_not_ended(progress)
        if progress.begun:
            raise Refused(f"{plan_id} is {progress.state} already; `zuno plan apply {plan_id}` goes on with it.")
        drafted = await build_draft(self.context, plan_id, plan_hash, instruction)
        for single, (pool, _) in zip(instruction.each(), list_positions(drafted.draft), strict=True):
            await checks.check_market(self.context, single, pool, drafted.draft.bounds)
        await checks.check_spend(self.context, drafted.draft)
        if drafted.error is not None:
            raise Refused(as_sentence(drafted.error))
        return drafted

    def approval(self, draft: Draft, who: str, mandate: str | None = None) -> Approval:
        """The approval as it would be signed."""
        same = draft.model_dump(include=set(Approval.model_fields), by_alias=False)
        who = f"{who} at node {self.context.key.public[:16]}"
        return Approval(**same, draft=draft_digest(draft), who=who, mandate=mandate)

    async def approve(
        self,
        draft: Draft,
        approval: Approval,
        progress: PlanProgress | None = None,
        reason: ActReason | None = None,
    ) -> PlanProgress:
        """Sign and journal the approval. The expiry is checked again: the owner may have taken long to read. Under a
        mandate its bounds are checked and the act is journaled first, in the same turn of the wallet."""
        with self.context.lock(self._lock_name):
            progress = await self._load(draft.plan_id, progress)
            _check_not_ended(progress)
            if progress.begun:
                raise Refused(f"{draft.plan_id} is {progress.state} already.")
            checks.check_not_expired(draft, (await self.context.chain.head()).timestamp)
            await self._record_act(draft, approval, reason or ActReason())
            signature = self.context.key.sign(checks.signing_bytes(approval)).hex()
            event = PlanApproved(plan_id=draft.plan_id, approval=approval, signature=signature)
            await append_event(self.context.journal, progress, event, draft)
            return progress

    async def _record_act(self, draft: Draft, approval: Approval, reason: ActReason) -> None:
        if approval.mandate is None:
            if draft.instruction.in_a_crash:
                raise Refused("Only a mandate may act in a crash.")
            return
        self._check_signs_here()
        checked = await check_act(self.context, draft, approval.mandate, verify=True)
        about, kind = draft.instruction.position_id, ACT_OF[draft.instruction.action]
        assert about is not None  # or the mandate would not cover it
        event = derive(
            ActDecided, checked, reason, hash=approval.mandate, plan_id=draft.plan_id, position_id=about, act=kind
        )
        await append_mandate_event(self.context.journal, event)

    def _check_signs_here(self) -> None:
        if self.context.signer.watch_only:
            raise Refused(f"{self.context.wallet} is signed for elsewhere: nothing acts for it under a mandate.")

    async def reject(self, plan_id: str, why: str, progress: PlanProgress | None = None) -> None:
        """The desk itself advised against it: nothing is ever signed for this plan."""
        progress = await self._load(plan_id, progress)
        if progress.over is None and not progress.begun:
            await append_event(
                self.context.journal, progress, PlanOver(plan_id=plan_id, state=PlanState.REJECTED, why=why)
            )

    async def _load_approved(self, plan_id: str, progress: PlanProgress | None) -> tuple[PlanProgress, Draft]:
        """The plan with its approval, checked; `Refused` where there is nothing to apply."""
        progress = await self._load(plan_id, progress)
        _check_not_ended(progress)
        draft = checks.check_approval(progress, self.context.key)
        await checks.check_chain(self.context, draft)
        await check_may_begin(self.context, progress)
        approved, *_ = await self.context.journal.latest(1, request_id=plan_id, kind=PlanApproved.kind)
        if approved.seq <= self.context.restored:
            act = "cancel it, then" if progress.begun else "look at the positions, then approve it again, or"
            raise Refused(f"{plan_id} is older than the backup of this home and may be done by now: {act} ask anew.")
        return progress, draft

    async def offer(self, progress: PlanProgress) -> tuple[SimulatedDraft, Approval]:
        """What `apply` asks the owner about, after the same checks. A look, as `status` is."""
        await self.reconcile(_discard_message, but=progress.plan_id, looks=True)
        _, draft = await self._load_approved(progress.plan_id, progress)
        run = PlanRun(self.context, progress, draft, _discard_message)
        if (over := await self._look(progress, draft)) is not None:
            raise Refused(run.describe_end(over))
        return await run.simulate_again()

    async def apply(
        self,
        plan_id: str,
        ask_owner: AskOwner,
        notify: Notify,
        tx: HexId | None = None,
        *,
        progress: PlanProgress | None = None,
    ) -> PlanProgress:
        """Apply an approved plan, or continue it; a plan that has ended is refused.

        Where the wallet is watched only, the next step is handed out, once; `tx`: the transaction that did the one
        handed out before.
        """
        with self.context.lock(self._lock_name):
            await self.reconcile(notify, but=plan_id)
            progress, draft = await self._load_approved(plan_id, progress)
            if self._signs_elsewhere(progress):
                await HandedOutRun(self.context, progress, draft, notify).hand_out_next(ask_owner, tx)
                return progress
            if tx is not None:
                raise Refused(f"Nothing of {plan_id} was handed out: there is no step that {tx} could be.")
            run = PlanRun(self.context, progress, draft, notify)
            await run.confirm(ask_owner)
            self.context.signer.ready()  # whatever takes a person's time comes before the last look at the chain
            await run.record_intent()
            await run.run()
            return progress

    def _signs_elsewhere(self, progress: PlanProgress) -> bool:
        return progress.handed_out or (self.context.signer.watch_only and not progress.signed_anything)

    async def hand_out(self, progress: PlanProgress) -> None:
        """The next step of an approved plan to its signer elsewhere, as `apply` does but without asking the owner once
        more. Nothing is signed, sent or concluded: `Refused` where that is what comes next."""
        plan_id = progress.plan_id
        with self.context.lock(self._lock_name):
            await self.reconcile(_discard_message, but=plan_id, looks=True)
            _, draft = await self._load_approved(plan_id, progress)
            if not self._signs_elsewhere(progress):
                raise Refused(f"{self.context.wallet} signs here: `zuno plan apply {plan_id}` does it.")
            looked = await self._load(plan_id)
            over = await self._look(looked, draft)
            if over is not None or HandedOutRun(self.context, looked, draft, _discard_message).is_complete():
                raise Refused(f"Nothing of {plan_id} is left to hand out; `zuno plan apply {plan_id}` ends it.")
            await HandedOutRun(self.context, progress, draft, _discard_message).hand_out_next(lambda *shown: True, None)

    async def cancel(self, plan_id: str, notify: Notify, progress: PlanProgress | None = None) -> PlanProgress:
        """Cancel a plan: replace transactions in flight by empty ones of the same nonce, and revoke its allowances."""
        with self.context.lock(self._lock_name):
            progress = await self._load(plan_id, progress)
            _check_not_ended(progress)
            draft = progress.draft
            if draft is not None and progress.handed_out:
                await HandedOutRun(self.context, progress, draft, notify).call_off()
                return progress
            if draft is None or not progress.signed_anything:
                event = PlanOver(
                    plan_id=plan_id, state=PlanState.CANCELLED, why="called off before anything was signed"
                )
                await append_event(self.context.journal, progress, event)
                return progress
            await checks.check_chain(self.context, draft)
            self.context.signer.ready()
            if progress.called_off is None:
                await append_event(self.context.journal, progress, PlanCalledOff(plan_id=plan_id))
            await PlanRun(self.context, progress, draft, notify).cancel_in_flight()
            return progress

    async def reconcile(self, notify: Notify, *, but: str | None = None, looks: bool = False) -> None:
        """Compare every unfinished step of this wallet with the chain, before anything else is done.

        `but`: the plan that is about to go on anyway. Others must have nothing in flight: their number would be ours.
        """
        for plan_id in await unfinished_plans(self.context.journal):
            if plan_id == but:
                continue
            progress = await self._load(plan_id)
            draft = progress.draft
            if draft is None or not await self._is_for_this_wallet(draft):
                continue
            if looks:
                over = await self._look(progress, draft) is not None
            else:
                run = HandedOutRun(self.context, progress, draft, notify)
                await run.sync_with_chain()
                over = progress.handed_out and await run.end_if_over()
            if over:
                continue
            for _, step in progress.in_flight:
                way = explain_waiting(progress) or f"still has a transaction on its way ({step.tx})"
                raise Refused(f"{plan_id} {way}; `zuno plan apply {plan_id}` or `zuno plan cancel {plan_id}` first.")

    async def status(self, plan_id: str, progress: PlanProgress | None = None) -> tuple[PlanProgress, bool]:
        """The plan as the journal and the chain have it; and whether its approval has run out.

        A look: it takes no lock, so that it cannot keep an owner from applying, and writes nothing down.
        """
        progress = await self._load(plan_id, progress)
        draft = progress.draft
        if draft is not None and progress.awaited_steps and await self._is_for_this_wallet(draft):
            if (over := await self._look(progress, draft)) is not None:
                progress.apply_event(over)
            newest, *_ = await self.context.journal.latest(1, request_id=plan_id)
            if newest.seq != progress.seq:  # it is being applied: the journal knows more
                progress = await self._load(plan_id)
        late = False
        if progress.draft is not None and progress.state is PlanState.APPROVED:
            late = (await self.context.chain.head()).timestamp > progress.draft.expires
        return progress, late

    async def _look(self, progress: PlanProgress, draft: Draft) -> PlanOver | None:
        """Update a plan from the chain and write nothing down; how it ends, if nobody can go on with what was handed
        out."""
        run = HandedOutRun(self.context, progress, draft, _discard_message)
        await run.sync_with_chain(looks=True)
        return await run.find_expiry() if progress.handed_out else None

    async def _load(self, plan_id: str, progress: PlanProgress | None = None) -> PlanProgress:
        progress = progress or PlanProgress(plan_id)
        await catch_up(self.context.journal, progress)
        return progress

    async def _is_for_this_wallet(self, draft: Draft) -> bool:
        """Of this wallet on this very chain: bytes signed for a world that is gone would be good in the next one."""
        same = (draft.chain_id, draft.wallet) == (self.context.info.id, self.context.wallet)
        named = same and draft.instruction.chain == self.context.info.name
        return named and draft.genesis == await self.context.writer.genesis()

    @property
    def _lock_name(self) -> str:
        return f"{self.context.info.name}-{self.context.wallet}"


def _discard_message(line: str) -> None:
    """Ignores progress messages."""


def _check_not_ended(progress: PlanProgress) -> None:
    if progress.over is not None:
        ended = f"{progress.plan_id} is {progress.over.state} already"
        raise Refused(f"{ended}{f' ({progress.over.why})' if progress.over.why else ''}; it is never applied again.")
