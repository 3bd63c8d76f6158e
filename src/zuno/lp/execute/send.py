"""Runs one step to its end: signed, stored, sent, mined, final. Every iteration starts from the journaled progress, so
that a restarted process continues where the last one stopped."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from zuno.amm.model import Block
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.units import HexId
from zuno.kernel.wire import derive
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.draft import data_fee, step_call, step_name, suggest_fees
from zuno.lp.execute.gas import bound_fees, replace_fees
from zuno.lp.execute.handed_out import find_step, number_step
from zuno.lp.execute.mandates import GasTooHigh, check_act
from zuno.lp.execute.plan_state import PlanPart, PlanProgress, StepProgress, append_event
from zuno.lp.model.chains import DataFee
from zuno.lp.model.gas import BUMPS, FeeBound
from zuno.lp.model.plan import Flow, StepState
from zuno.lp.model.plan_events import (
    LEAVING,
    Draft,
    PlanEvent,
    StepExpired,
    StepMined,
    StepOver,
    StepSent,
    StepSigned,
    StepUnmined,
    StepWaits,
)
from zuno.lp.ports.spending import Call, Fees, Mined, NonceStatus, SendResult, Unsigned

Notify = Callable[[str], None]
CANCEL_GAS: Final = 21_000


@dataclass(frozen=True, slots=True)
class SigningInputs:
    """Nonce, gas and fees of a transaction that has passed every check."""

    nonce: int
    gas: int
    fees: Fees
    holdings: tuple[Flow, ...]
    bound: FeeBound | None = None  # None where it is signed elsewhere, by somebody who chooses the fees

    def describe(self) -> dict[str, Any]:
        """The fields of the event that records it."""
        fees = {"max_fee": self.fees.max_fee, "tip": self.fees.tip}
        return {"nonce": self.nonce, "gas": self.gas, "holdings": self.holdings, **fees}


PrepareStep = Callable[[int], Awaitable[SigningInputs]]
"""Checks a step against the chain once more; `Refused` names what does not hold."""


async def check_may_begin(context: ExecutionContext, progress: PlanProgress) -> None:
    """`Refused` while an account is killed, and where the mandate of the approval no longer covers it; in a restored
    home for all but what leaves. A plan that has begun goes on: half-way it would be worse."""
    if progress.begun:
        return
    if progress.approved is not None and progress.draft is not None and progress.approved.approval.mandate is not None:
        await check_act(context, progress.draft, progress.approved.approval.mandate)
    leaves = progress.draft is not None and progress.draft.instruction.action in LEAVING
    if (lock := context.killed()) is not None and not (leaves and lock.kind == "restored"):
        raise Refused(f"{lock.why}: {progress.plan_id} is not begun. `{lock.lifted_by}` lifts it.")


@dataclass(frozen=True, slots=True)
class StepSender:
    """Signs, sends and confirms one plan's transactions, one after the other."""

    context: ExecutionContext
    progress: PlanProgress
    draft: Draft
    notify: Notify
    looks: bool = False
    """Nothing is sent, and what is found changes `progress` alone, not the journal."""

    async def run_step(self, index: int, prepare: PrepareStep | None) -> StepProgress:
        """Until the step is over; `Unavailable` where the chain keeps it waiting too long, and it stays in flight.
        Without `prepare` nothing new is signed: a step whose number somebody else took is over, too. What is
        above a bound of gas is `GasTooHigh`, and tried again with the next call."""
        begun = bid = self.context.stopwatch()
        while True:
            step = self.progress.steps[index]
            match step.state:
                case StepState.FINAL | StepState.REVERTED:
                    return step
                case StepState.SUPERSEDED if step.has_failed:
                    return step
                case StepState.PLANNED | StepState.SUPERSEDED:
                    if prepare is None:
                        return step
                    try:
                        ready = await prepare(index)
                    except GasTooHigh as excess:
                        if self.progress.begun:
                            await self._wait_for_gas(index, excess)
                        raise
                    await check_may_begin(self.context, self.progress)
                    await self._sign_and_store(index, step_call(step.step), ready, cancels=False)
                    await self._broadcast(index)
                    bid = self.context.stopwatch()
                case StepState.SIGNED | StepState.SENT | StepState.MINED:
                    if await self.sync_step(index):
                        continue
                    now = self.context.stopwatch()
                    if step.state is StepState.SENT and now - bid >= self.context.timeouts.speed_up:
                        await self._raise_fee(index)
                        bid = now
                    if now - begun >= self.context.timeouts.patience:
                        raise Unavailable(self._timeout_message(index))
                    await self.context.sleep(self.context.timeouts.poll_interval)

    async def sync_step(self, index: int, *, send: bool = True) -> bool:
        """Polls the chain once for a step in flight; True if its progress changed. `send=False` only looks: what a node
        forgot is not given to it again."""
        step = self.progress.steps[index]
        if step.handed_out is not None:
            return await self.sync_handed_out(index)
        trace = await self.context.writer.trace(
            self.context.wallet, step.nonce, [HexId(signed.hash) for signed in step.signed]
        )
        if trace.mined is not None:
            return await self._record_mined(index, trace, trace.mined)
        if step.state is StepState.MINED:
            await self._append_event(StepUnmined(plan_id=self.progress.plan_id, step=index, hash=step.newest.hash))
            self.notify(f"{self._step_label(index)}: its block was reorganised away; it is sent again")
            return True
        if trace.settled_nonce > step.nonce:
            why = f"a transaction from elsewhere took the wallet's number {step.nonce}"
            await self._record_end(index, StepState.SUPERSEDED, why)
            return True
        if not send or self.looks or trace.nonce > step.nonce:
            return False
        if step.step.deadline is not None and trace.head.timestamp > step.step.deadline:
            return await self._expire(index, trace.head)
        unwanted = self.progress.called_off is not None or trace.head.timestamp > self.draft.expires
        if unwanted and step.part is not PlanPart.REVOKING and not step.newest.cancels:
            return await self.cancel(index)  # to take an allowance back it is never too late
        if step.newest.hash not in trace.waiting:
            await self._broadcast(index)  # never arrived, or evicted: the same bytes again
        elif step.state is StepState.SIGNED:
            await self._record_sent(index)  # whoever sent it did not live to say so
        return False

    async def sync_handed_out(self, index: int, tx: HexId | None = None) -> bool:
        """Looks for a step that a signer elsewhere was to send; True if its progress changed."""
        step = self.progress.steps[index]
        seen, mined = await find_step(self.context, self.progress, step, tx)
        if mined is not None and (mined.success or step.state is not StepState.REVERTED):
            return await self._record_mined(index, NonceStatus(seen.head, mined, (), 0, 0), mined)
        if mined is None and step.mined is not None and step.state is StepState.MINED:
            await self._append_event(StepUnmined(plan_id=self.progress.plan_id, step=index, hash=step.mined.hash))
            self.notify(f"{self._step_label(index)}: its block was reorganised away; it is awaited again")
            return True
        return False

    async def _expire(self, index: int, head: Block) -> bool:
        """Give up a step that its own deadline has killed: nothing is paid to cancel it. Only once no reorganisation
        can bring it back and, where there is real money, by this machine's clock as well."""
        deadline = self.progress.steps[index].step.deadline or 0
        settled = deadline + (self.context.depth - 1) * self.context.info.block_millis // 1_000
        if head.timestamp <= settled or not (self.context.local or self.context.now() > 1_000 * settled):
            return False
        await self._append_event(StepExpired(plan_id=self.progress.plan_id, step=index))
        self.notify(f"{self._step_label(index)}: its deadline passed; what is sent next takes its number")
        return True

    async def cancel(self, index: int) -> bool:
        """Send an empty transaction with the step's nonce: only one of the two can be mined. False where it would cost
        more than its bound: then it waits."""
        newest, nothing, gas = self.progress.steps[index].newest, Call(self.context.wallet, 0, b""), CANCEL_GAS
        if self.context.info.data_fee is DataFee.ARBITRUM:  # there gas pays for the data, too
            gas = max(gas, await self.context.writer.estimate(self.context.wallet, nothing))
        fees = replace_fees(newest, suggest_fees(await self.context.read_gas()))
        try:
            bound = await bound_fees(self.context, self.draft, fees, gas, unplanned=True)
        except GasTooHigh as excess:
            await self._wait_for_gas(index, excess)
            return False
        await self._sign_and_store(
            index, nothing, SigningInputs(newest.nonce, gas, fees, newest.holdings, bound), cancels=True
        )
        self.notify(f"{self._step_label(index)}: cancelling by an empty transaction of the same number")
        await self._broadcast(index)
        return True

    async def _wait_for_gas(self, index: int, excess: GasTooHigh) -> None:
        """Journal that a step waits for gas, once until something is signed: the entry is pushed to the owner."""
        plan, journal = self.progress.plan_id, self.context.journal
        last = await journal.latest(1, request_id=plan, kind=StepWaits.kind)
        signed = await journal.latest(1, request_id=plan, kind=StepSigned.kind)
        since = signed[0].seq if signed else 0
        if not last or last[0].seq < since or last[0].payload["step"] != index:
            await self._append_event(StepWaits(plan_id=plan, step=index, why=str(excess)))
            self.notify(f"{self._step_label(index)}: waits. {excess}")

    async def _sign_and_store(self, index: int, call: Call, ready: SigningInputs, *, cancels: bool) -> None:
        signed = self.context.signer.sign(
            Unsigned(self.context.info.id, ready.nonce, call, ready.gas, ready.fees, ready.bound)
        )
        plan, raw = self.progress.plan_id, "0x" + signed.raw.hex()
        await self._append_event(
            StepSigned(plan_id=plan, step=index, hash=signed.hash, raw=raw, cancels=cancels, **ready.describe())
        )

    async def _broadcast(self, index: int) -> None:
        step = self.progress.steps[index]
        newest = step.newest
        result = await self.context.writer.send(bytes.fromhex(newest.raw[2:]))
        if result is SendResult.UNDERPRICED and step.state is StepState.SIGNED and not newest.cancels:
            await self._raise_fee(index)
        elif step.state is StepState.SIGNED:
            await self._record_sent(index)

    async def _record_sent(self, index: int) -> None:
        newest = self.progress.steps[index].newest
        await self._append_event(StepSent(plan_id=self.progress.plan_id, step=index, hash=newest.hash))
        self.notify(f"{self._step_label(index)}: sent {newest.hash}")

    async def _raise_fee(self, index: int) -> None:
        """The same bytes at a higher fee, inside the approved bound, which keeps room for a cancel."""
        step = self.progress.steps[index]
        newest, unplanned = step.newest, step.newest.cancels or step.part is PlanPart.REVOKING
        price = await self.context.read_gas(late=True)
        fees, posting = replace_fees(newest, suggest_fees(price)), data_fee([step.step], price)
        room = 0 if unplanned else BUMPS - 1
        try:
            bound = await bound_fees(
                self.context, self.draft, fees, newest.gas, data_fee=posting, unplanned=unplanned, bumps=room
            )
        except GasTooHigh as excess:
            await self._wait_for_gas(index, excess)
            if step.state is StepState.SIGNED:
                raise  # no node takes it for less
            return
        again = SigningInputs(newest.nonce, newest.gas, fees, newest.holdings, bound)
        call = Call(self.context.wallet, 0, b"") if newest.cancels else step_call(step.step)
        await self._sign_and_store(index, call, again, cancels=newest.cancels)
        self.notify(f"{self._step_label(index)}: sped up to {fees.max_fee} wei for a unit of gas")
        await self._broadcast(index)

    async def _record_mined(self, index: int, trace: NonceStatus, mined: Mined) -> bool:
        step = self.progress.steps[index]
        if step.mined is None or (step.mined.hash, step.mined.block.hash) != (mined.tx, mined.block.hash):
            await self._append_event(derive(StepMined, mined, plan_id=self.progress.plan_id, step=index, hash=mined.tx))
            how = "" if mined.success else " and reverted"
            self.notify(f"{self._step_label(index)}: mined in block {mined.block.number}{how}, {mined.gas_used} gas")
            return True
        if trace.depth < self.context.depth:
            return False
        if step.is_cancelled:
            await self._record_end(index, StepState.SUPERSEDED, "cancelled by an empty transaction of the same number")
        elif mined.success:
            await self._record_end(index, StepState.FINAL, "")
        else:
            await self._record_end(index, StepState.REVERTED, f"it reverted in block {mined.block.number}")
        return True

    async def _record_end(self, index: int, state: StepState, why: str) -> None:
        await self._append_event(StepOver(plan_id=self.progress.plan_id, step=index, state=state, why=why))
        self.notify(f"{self._step_label(index)}: {state}" + (f" ({why})" if why else ""))

    async def _append_event(self, event: PlanEvent) -> None:
        if self.looks:
            self.progress.apply_event(event)
            return
        await append_event(self.context.journal, self.progress, event)

    def _step_label(self, index: int) -> str:
        return f"{number_step(self.progress, index)} ({step_name(self.progress.steps[index].step)})"

    def _timeout_message(self, index: int) -> str:
        newest = self.progress.steps[index].newest
        return (
            f"{self._step_label(index).capitalize()} is not final after {self.context.timeouts.patience:g} s: "
            f"{newest.hash} is still on its way; `zuno plan apply {self.progress.plan_id}` waits on, "
            f"`zuno plan cancel` calls it off."
        )
