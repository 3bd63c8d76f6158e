"""Steps in the hands of a signer elsewhere, recognised on the chain by what they do: a plain wallet's by sender,
target, value and calldata, a Safe's by the position's events and its owner."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from zuno.kernel.errors import NotFound, Unavailable
from zuno.kernel.units import HexId, Wei
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.draft import all_steps, decode_step, find_position_of_step
from zuno.lp.execute.plan_state import PlanProgress, StepProgress
from zuno.lp.model.plan import StepState
from zuno.lp.model.plan_events import Draft, StepHandedOut
from zuno.lp.plan.calls import Burn, Decrease, Increase, Mint, MintFromDeltas
from zuno.lp.ports.spending import LiquidityTouch, Mined, SentTransaction, SentTransactions


async def find_step(
    context: ExecutionContext, progress: PlanProgress, step: StepProgress, tx: HexId | None = None
) -> tuple[SentTransactions, Mined | None]:
    """The transaction that did the step, a successful one first. `tx`: its hash where it is known."""
    handed, draft = step.handed_out, progress.draft
    if handed is None or draft is None:
        raise NotFound(f"a step of {progress.plan_id} was not handed out")
    after = _last_block_before(context, handed)
    if tx is None and step.mined is not None and step.mined.success:
        tx = HexId(step.mined.hash)
    try:
        if tx is not None:
            seen = await context.writer.find_transaction(context.wallet, tx)
        elif handed.batch and (touches := _expected_touches(context, draft)):
            seen = await context.writer.find_touching(context.wallet, after, draft.pool.id, touches[0].range)
        else:
            seen = await context.writer.find_sent(context.wallet, after)
    except Unavailable as error:
        raise Unavailable(
            f"{error} `zuno plan apply {progress.plan_id} --tx HASH` names what was sent, `zuno plan cancel "
            f"{progress.plan_id}` gives it up."
        ) from error
    matches = [sent.mined for sent in seen.transactions if explain_mismatch(context, draft, sent, handed) is None]
    mined = next((mined for mined in matches if mined.success), matches[-1] if matches else None)
    if mined is not None and handed.batch:  # whoever runs a Safe's transaction pays for it, once for all its calls
        mined = replace(mined, cost=Wei(0), gas_used=0 if handed.step else mined.gas_used)
    return seen, mined


def explain_mismatch(
    context: ExecutionContext, draft: Draft, sent: SentTransaction, handed: StepHandedOut
) -> str | None:
    """Why a transaction is not the step that was handed out; None where it is."""
    if sent.mined.block.number <= _last_block_before(context, handed):
        return f"it was mined in block {sent.mined.block.number}, before the step was handed out"
    if handed.batch:
        return _explain_other_batch(sent, _expected_touches(context, draft), handed)
    if sent.sender != context.wallet:
        return f"it was sent by {sent.sender}, not by {context.wallet}"
    if sent.call.to != handed.to:
        return f"it calls {sent.call.to}, the step calls {handed.to}"
    if sent.call.value != handed.value:
        return f"it sends {sent.call.value} wei, the step sends {handed.value} wei"
    return None if sent.call.data == handed.data else "its calldata is not the step's"


def _explain_other_batch(sent: SentTransaction, touches: Sequence[LiquidityTouch], handed: StepHandedOut) -> str | None:
    if not touches:  # about no position, as a revocation: known by its bytes alone
        return None if handed.data in sent.call.data else "its calldata does not hold the step's"
    opened = [
        replace(touch, position_id=_NEW, change=0) for touch in sent.touches if touch.position_id in sent.mined.minted
    ]
    if all(touch in (*sent.touches, *opened) for touch in touches):
        return None
    return "it does not do to the position what the batch does"


def _expected_touches(context: ExecutionContext, draft: Draft) -> list[LiquidityTouch]:
    """What a batch does to positions, all of it; none where it is about no position."""
    touches = []
    for step in all_steps(draft):
        _, position = find_position_of_step(draft, step)
        for action in decode_step(context, step).position_actions:
            match action:
                case Burn() if position is not None:
                    touches.append(LiquidityTouch(position.id, position.range, -position.liquidity))
                case Decrease(liquidity=liquidity) if position is not None:
                    touches.append(LiquidityTouch(position.id, position.range, -liquidity))
                case Increase(liquidity=liquidity) if position is not None:
                    touches.append(LiquidityTouch(position.id, position.range, liquidity))
                case Mint(range=band) | MintFromDeltas(range=band):
                    touches.append(LiquidityTouch(_NEW, band, 0))
                case _:
                    pass
    return touches


_NEW: Final = 0
"""The number of a position that is yet to be minted, by however much comes to it."""


def _last_block_before(context: ExecutionContext, handed: StepHandedOut) -> int:
    """A reorganisation may take back as many blocks as a receipt waits for, so they are searched too."""
    return max(0, handed.block.number - context.depth + 1)


def is_incomplete_batch(progress: PlanProgress) -> bool:
    """A crash came between the entries of a batch's calls: the batch was not shown yet."""
    first = progress.steps[0].handed_out if progress.steps else None
    return first is not None and first.batch and any(step.state is StepState.PLANNED for step in progress.steps)


def explain_waiting(progress: PlanProgress) -> str:
    """What a plan waits for that was handed out; empty where it waits for no signer."""
    waiting = [step.handed_out for step in progress.steps if step.handed_out and step.state is StepState.HANDED_OUT]
    if not waiting or progress.draft is None:
        return ""
    numbered = number_step(progress, waiting[0].step)
    what = f"the batch of {len(waiting)} calls" if waiting[0].batch else numbered
    return f"handed out: waiting for {progress.draft.wallet} to send {what}"


def number_step(progress: PlanProgress, index: int) -> str:
    """Which step of how many; a second half that is not built yet counts as it was approved."""
    draft = progress.draft
    known = 0 if draft is None or progress.finishing is not None else len(all_steps(draft))
    return f"step {index + 1} of {max(known, len(progress.steps))}"
