"""A plan whose steps are handed out to a signer elsewhere: one by one to a plain wallet, all at once to a Safe."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.numbers_text import time_text
from zuno.kernel.units import HexId, Wei
from zuno.lp.execute import checks
from zuno.lp.execute.draft import plan_currencies, step_name
from zuno.lp.execute.handed_out import explain_mismatch, find_step, is_incomplete_batch, number_step
from zuno.lp.execute.plan_run import AskOwner, PlanRun, is_final
from zuno.lp.execute.send import SigningInputs, check_may_begin
from zuno.lp.model.plan import Flow, PlanState, StepKind, StepState
from zuno.lp.model.plan_events import PlanOver, StepHandedOut
from zuno.lp.plan.context import amount_text
from zuno.lp.ports.spending import Fees

_PREPARING: Final = frozenset({StepKind.WRAP, StepKind.APPROVE_PERMIT2, StepKind.PERMIT2_APPROVE})
"""Steps after which the wallet still holds what it held, if wrapped."""


@dataclass(frozen=True, slots=True)
class HandedOutRun(PlanRun):
    """A plan that is signed elsewhere: nothing of it is sent from here, everything is looked for on the chain."""

    async def hand_out_next(self, ask_owner: AskOwner, tx: HexId | None) -> None:
        """Recognise what was handed out, then hand out what comes next: one step to a plain wallet, all to a Safe."""
        if tx is not None:
            sender = self.step_sender()
            for index in await self._find_named(tx):
                await sender.sync_handed_out(index, tx)
        await self._follow()
        if self.progress.handed_out and await self.end_if_over():
            if self.progress.over is not None and self.progress.over.state is not PlanState.CONFIRMED:
                raise Refused(self.describe_end(self.progress.over))
            return
        if any(self.progress.in_flight) and not is_incomplete_batch(self.progress):
            return  # the same bytes are shown again
        await self.confirm(ask_owner)
        await self.record_intent()
        batch = await self.context.writer.is_contract(self.context.wallet)
        if self.progress.halfway and self.progress.finishing is None:
            await self.build_second_half()
        try:
            for index, step in enumerate(self.progress.steps):
                if not step.in_flight and not is_final(step):
                    await self._hand_out(index, batch=batch)
                    self.notify(f"{number_step(self.progress, index)} ({step_name(step.step)}): handed out")
                    if not batch:
                        break
        except Refused as refusal:
            raise self.explain_unfinished(refusal) from refusal

    async def _hand_out(self, index: int, *, batch: bool) -> None:
        step, head = self.progress.steps[index].step, await self.context.chain.head()
        if batch:  # whoever runs a Safe's transaction chooses its number, gas and fees
            wallet_state = await self.context.writer.wallet_state(self.context.wallet, plan_currencies(self.draft), ())
            held = tuple(Flow(currency, amount) for currency, amount in wallet_state.holdings.items())
            ready = SigningInputs(0, 0, Fees(Wei(0), Wei(0)), held)
        else:
            ready = await self.prepare_signing(index)
        event = StepHandedOut(
            plan_id=self.progress.plan_id,
            step=index,
            to=step.to,
            value=step.value,
            data=step.data,
            deadline=self._deadline if step.deadline is None else step.deadline,
            block=head,
            batch=batch,
            **ready.describe(),
        )
        await check_may_begin(self.context, self.progress)
        await self.append(event)

    async def _find_named(self, tx: HexId) -> list[int]:
        """The steps that a transaction is to have done; `Refused` with what speaks against it."""
        steps = [(index, step) for index, step in self.progress.awaited_steps if step.state is not StepState.MINED]
        awaited = [(index, step.handed_out) for index, step in steps if step.handed_out is not None]
        if not awaited:
            raise Refused(f"No step of {self.progress.plan_id} is handed out and not seen yet: {tx} can be none.")
        seen = (await self.context.writer.find_transaction(self.context.wallet, tx)).transactions
        if not seen:
            raise Refused(f"{self.context.info.name} has no {tx} in a block: it is not known there, or waits still.")
        why = explain_mismatch(self.context, self.draft, seen[0], awaited[0][1])
        if why is None and not seen[0].mined.success:
            why = f"it reverted in block {seen[0].mined.block.number}"
        if why is not None:
            raise Refused(f"{tx} is not {number_step(self.progress, awaited[0][0])} of {self.progress.plan_id}: {why}.")
        return [index for index, _ in awaited]

    async def _follow(self) -> None:
        """Look for what was handed out, and wait for what is mined to be final."""
        begun = self.context.stopwatch()
        while True:
            await self.sync_with_chain()
            waits = any(step.state is StepState.MINED for step in self.progress.steps)
            if not waits or self.context.stopwatch() - begun >= self.context.timeouts.patience:
                return
            await self.context.sleep(self.context.timeouts.poll_interval)

    async def end_if_over(self) -> bool:
        """End a handed-out plan that is done, or that nobody can go on with; False where it goes on."""
        if self.is_complete():
            await self.conclude()
        elif (over := await self.find_expiry()) is not None:
            await self.append(over)
        return self.progress.over is not None

    async def find_expiry(self) -> PlanOver | None:
        """How a handed-out plan ends whose deadline has passed, by a block that is final where a step may be mined."""
        head = await self.context.chain.head()
        if self.progress.over is not None or head.timestamp <= self._deadline:
            return None
        seen = await self.context.writer.find_sent(self.context.wallet, head.number)
        moment = seen.settled if self.progress.awaited_steps else seen.head
        if self.is_complete() or moment.timestamp <= self._deadline:
            return None
        for _, step in self.progress.awaited_steps:  # once more: that block is younger than the last look
            _, mined = await find_step(self.context, self.progress, step)
            if mined is not None and mined.success:
                return None
        moved = any(is_final(step) and step.step.kind not in _PREPARING for step in self.progress.steps)
        ending = PlanState.PARTIAL if self.progress.halfway else PlanState.FAILED if moved else PlanState.EXPIRED
        done = sum(map(is_final, self.progress.steps))
        why = f"{done} of its {len(self.progress.steps)} steps were seen on the chain by its deadline"
        standing = await self._name_standing()
        return PlanOver(plan_id=self.progress.plan_id, state=ending, why=why + standing)

    async def call_off(self) -> None:
        await checks.check_chain(self.context, self.draft)
        why = "called off"
        try:
            await self._follow()
            if await self.end_if_over():
                return
        except Unavailable as error:  # the owner's no stands, whatever a node can tell
            why = f"called off; what was sent could not be looked for: {error}"
        why += " after its first half, its tokens are in the wallet" if self.progress.halfway else ""
        for index, step in self.progress.awaited_steps:
            until = "at any time" if step.step.deadline is None else f"until {time_text(step.step.deadline)}"
            what = f"{number_step(self.progress, index)} ({step_name(step.step)})"
            why += f"; whoever has {what} can still send it {until}"
        with suppress(Unavailable):
            why += await self._name_standing()
        await self.append(PlanOver(plan_id=self.progress.plan_id, state=PlanState.CANCELLED, why=why))

    async def _name_standing(self) -> str:
        """The allowances that the plan granted and that stand."""
        if (standing := await self.standing_allowances()) is None:
            return ""
        onchain, ours = standing
        names = [f"{amount_text(onchain.pool, token, amount)} to Permit2" for token, amount in ours.to_permit2.items()]
        names += [
            f"{amount_text(onchain.pool, token, grant.amount)} to {spender} through Permit2"
            for (token, spender), grant in ours.grants.items()
        ]
        return f"; still allowed: {', '.join(names)} (`zuno lp revoke` takes it back)" if names else ""

    @property
    def _deadline(self) -> int:
        """Until when a signer elsewhere may send. The second half has its own deadline, as many seconds after the first
        as the approved bounds say, and must be asked for within the same time."""
        seconds = self.draft.bounds.deadline_seconds
        if self.progress.finishing is not None:
            return self.progress.finishing.block.timestamp + seconds
        mined = [step.mined.block.timestamp for step in self.progress.steps if step.mined is not None]
        return max(mined) + seconds if self.progress.halfway else self.draft.expires
