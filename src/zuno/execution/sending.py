"""Carries one step to its end: signed, stored, sent, mined, final. Every turn of the loop begins from the book alone,
so that a process that died anywhere in it goes on as if it had not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from zuno.domain.errors import Refused, Unavailable
from zuno.domain.execution import Flow, StepState
from zuno.domain.units import HexId, Seconds, Wei
from zuno.execution.book import Book, Part, StepBook, say
from zuno.execution.drafting import all_steps, call_of, first_fees, name_of
from zuno.execution.hands import Hands
from zuno.messages.execution import Said, StepMined, StepOver, StepSent, StepSigned, StepUnmined
from zuno.ports.spending import Call, Fees, Mined, Sending, Trace, Unsigned

Tell = Callable[[str], None]
CANCEL_GAS: Final = 21_000


@dataclass(frozen=True, slots=True)
class Ready:
    """What a signature needs, after every check has passed."""

    nonce: int
    gas: int
    fees: Fees
    holdings: tuple[Flow, ...]


Prepare = Callable[[int], Awaitable[Ready]]
"""Checks a step against the chain once more; `Refused` names what does not hold."""


class Courier:
    """One plan's transactions, one after the other."""

    def __init__(self, hands: Hands, book: Book, expires: Seconds, most_fee: Wei, tell: Tell) -> None:
        self._hands = hands
        self._book = book
        self._expires = expires
        self._most_fee = most_fee
        self._tell = tell

    async def carry(self, index: int, prepare: Prepare | None) -> StepBook:
        """Until the step is over; `Unavailable` where the chain keeps it waiting too long, and it stays in flight.

        Without `prepare` nothing new is signed: a step whose number somebody else took is over, too.
        """
        begun = bid = self._hands.stopwatch()
        while True:
            step = self._book.steps[index]
            match step.state:
                case StepState.FINAL | StepState.REVERTED:
                    return step
                case StepState.SUPERSEDED if step.cancelled:
                    return step
                case StepState.PLANNED | StepState.SUPERSEDED:
                    if prepare is None:
                        return step
                    await self._sign(index, await prepare(index))
                    await self._send(index)
                    bid = self._hands.stopwatch()
                case StepState.SIGNED | StepState.SENT | StepState.MINED:
                    if await self.settle(index):
                        continue
                    now = self._hands.stopwatch()
                    if step.state is StepState.SENT and now - bid >= self._hands.pace.speed_up:
                        await self._outbid(index)
                        bid = now
                    if now - begun >= self._hands.pace.patience:
                        raise Unavailable(self._waiting(index))
                    await self._hands.sleep(self._hands.pace.look)

    async def settle(self, index: int, *, send: bool = True) -> bool:
        """One look at the chain for a step in flight; True if the book knows more than before.

        `send=False` only looks: what a node forgot is not given to it again.
        """
        step = self._book.steps[index]
        trace = await self._hands.writer.trace(self._hands.wallet, step.nonce, [HexId(one.hash) for one in step.signed])
        if trace.mined is not None:
            return await self._found(index, trace, trace.mined)
        if step.state is StepState.MINED:
            await self._say(StepUnmined(plan_id=self._book.plan_id, step=index, hash=step.newest.hash))
            self._tell(f"{self._name(index)}: its block was reorganised away; it is sent again")
            return True
        if trace.settled_nonce > step.nonce:
            why = f"a transaction from elsewhere took the wallet's number {step.nonce}"
            await self._over(index, StepState.SUPERSEDED, why)
            return True
        if not send or trace.nonce > step.nonce:
            return False
        if self._late(step, trace) and not step.newest.cancels:
            await self.cancel(index)  # never to be done any more; its number must be freed
        elif step.newest.hash not in trace.waiting:
            await self._send(index)  # never arrived, or evicted: the same bytes again
        elif step.state is StepState.SIGNED:
            await self._sent(index)  # whoever sent it did not live to say so
        return False

    async def cancel(self, index: int) -> None:
        """Bytes with the step's own nonce that do nothing: whichever is mined first, the other never is."""
        step = self._book.steps[index]
        newest = step.newest
        fees = self._bid(newest, first_fees(await self._hands.chain.gas()))
        call = Call(self._hands.wallet, 0, b"")
        empty = Ready(newest.nonce, CANCEL_GAS, fees, newest.holdings)
        await self._store(index, call, empty, cancels=True)
        self._tell(f"{self._name(index)}: cancelling by an empty transaction of the same number")
        await self._send(index)

    # -- one transition each

    async def _sign(self, index: int, ready: Ready) -> None:
        await self._store(index, call_of(self._book.steps[index].step), ready, cancels=False)

    async def _store(self, index: int, call: Call, ready: Ready, *, cancels: bool) -> None:
        signed = self._hands.signer.sign(Unsigned(self._hands.info.id, ready.nonce, call, ready.gas, ready.fees))
        await self._say(
            StepSigned(
                plan_id=self._book.plan_id,
                step=index,
                nonce=ready.nonce,
                hash=signed.hash,
                raw="0x" + signed.raw.hex(),
                gas=ready.gas,
                max_fee=ready.fees.max_fee,
                tip=ready.fees.tip,
                cancels=cancels,
                holdings=ready.holdings,
            )
        )

    async def _send(self, index: int) -> None:
        step = self._book.steps[index]
        newest = step.newest
        said = await self._hands.writer.send(bytes.fromhex(newest.raw[2:]))
        if said is Sending.UNDERPRICED and step.state is StepState.SIGNED and not newest.cancels:
            await self._outbid(index)
        elif step.state is StepState.SIGNED:
            await self._sent(index)

    async def _sent(self, index: int) -> None:
        newest = self._book.steps[index].newest
        await self._say(StepSent(plan_id=self._book.plan_id, step=index, hash=newest.hash))
        self._tell(f"{self._name(index)}: sent {newest.hash}")

    async def _outbid(self, index: int) -> None:
        """The same bytes at a higher fee, inside the approved bound."""
        newest = self._book.steps[index].newest
        fees = self._bid(newest, first_fees(await self._hands.chain.gas()))
        if fees.max_fee > self._most_fee:
            if self._book.steps[index].state is StepState.SIGNED:
                raise Refused(
                    f"No node takes {self._name(index)} at {newest.max_fee} wei for a unit of gas, and the bound is "
                    f"{self._most_fee} wei."
                )
            self._tell(f"{self._name(index)}: still waiting; a higher fee would pass the bound of {self._most_fee} wei")
            return
        again = Ready(newest.nonce, newest.gas, fees, newest.holdings)
        call = Call(self._hands.wallet, 0, b"") if newest.cancels else call_of(self._book.steps[index].step)
        await self._store(index, call, again, cancels=newest.cancels)
        self._tell(f"{self._name(index)}: sped up to {fees.max_fee} wei for a unit of gas")
        await self._send(index)

    def _bid(self, newest: StepSigned, now: Fees) -> Fees:
        """Nodes want a tenth more of both; an eighth is certainly more."""
        return Fees(
            Wei(max(now.max_fee, newest.max_fee + newest.max_fee // 8 + 1)),
            Wei(max(now.tip, newest.tip + newest.tip // 8 + 1)),
        )

    async def _found(self, index: int, trace: Trace, mined: Mined) -> bool:
        step = self._book.steps[index]
        if step.mined is None or (step.mined.hash, step.mined.block.hash) != (mined.tx, mined.block.hash):
            await self._say(
                StepMined(
                    plan_id=self._book.plan_id,
                    step=index,
                    hash=mined.tx,
                    block=mined.block,
                    success=mined.success,
                    gas_used=mined.gas_used,
                    cost=mined.cost,
                    minted=mined.minted,
                )
            )
            how = "" if mined.success else " and reverted"
            self._tell(f"{self._name(index)}: mined in block {mined.block.number}{how}, {mined.gas_used} gas")
            return True
        if trace.depth < self._hands.depth:
            return False
        if step.cancelled:
            await self._over(index, StepState.SUPERSEDED, "cancelled by an empty transaction of the same number")
        elif mined.success:
            await self._over(index, StepState.FINAL, "")
        else:
            await self._over(index, StepState.REVERTED, f"it reverted in block {mined.block.number}")
        return True

    async def _over(self, index: int, state: StepState, why: str) -> None:
        await self._say(StepOver(plan_id=self._book.plan_id, step=index, state=state, why=why))
        self._tell(f"{self._name(index)}: {state}" + (f" ({why})" if why else ""))

    async def _say(self, event: Said) -> None:
        await say(self._hands.journal, self._book, event)

    def _late(self, step: StepBook, trace: Trace) -> bool:
        """Past its own deadline, or the approval's; taking an allowance back is never too late."""
        deadline = self._expires if step.step.deadline is None else step.step.deadline
        return step.part is not Part.REVOKING and trace.head.timestamp > deadline

    def _name(self, index: int) -> str:
        draft = self._book.draft
        known = 0 if draft is None or self._book.finishing is not None else len(all_steps(draft))
        return f"step {index + 1} of {max(known, len(self._book.steps))} ({name_of(self._book.steps[index].step)})"

    def _waiting(self, index: int) -> str:
        newest = self._book.steps[index].newest
        return (
            f"{self._name(index).capitalize()} is not final after {self._hands.pace.patience:g} s: {newest.hash} is "
            f"still on its way; `zuno plan apply {self._book.plan_id}` waits on, `zuno plan cancel` calls it off."
        )
