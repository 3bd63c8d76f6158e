"""What a transaction may cost before it is signed: its bound, or a refusal that names the figure and what raises it."""

from contextlib import suppress
from fractions import Fraction
from typing import Any, Final

from zuno.kernel.numbers_text import decimal_text
from zuno.kernel.units import Wei
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.mandates import GasTooHigh, check_gas_of_day
from zuno.lp.execute.plan_state import load_progress
from zuno.lp.model.gas import FeeBound, GasExcess, bump_fee
from zuno.lp.model.plan import WalletState
from zuno.lp.model.plan_events import Action, Draft, PlanApproved, StepExpired, StepSigned
from zuno.lp.ports.spending import Fees

_SATURATED: Final = 1_000  # blocks after which a fee that rises as fast as it can is above every cap
_REMEMBERED: Final = 5  # expired transactions, among which one is looked for that still holds a number


async def bound_fees(
    context: ExecutionContext,
    draft: Draft,
    fees: Fees,
    gas: int,
    *,
    data_fee: int = 0,
    unplanned: bool = False,
    bumps: int = 0,
) -> FeeBound:
    """Return the bound of a plan's transaction; raise `GasTooHigh` where it is above it, or would be after so many
    replacements. `unplanned`: a cancel or a revocation, which nobody approved for a time: since the approval its fee
    may have risen as fast as the chain allows, and a mandate counts it."""
    rules, most = context.limits.gas or context.info.gas, draft.gas.max_fee
    leaves = draft.instruction.action in (Action.CLOSE, Action.REMOVE)
    if unplanned:
        approved, *_ = await context.journal.latest(1, request_id=draft.plan_id, kind=PlanApproved.kind)
        blocks = min(_SATURATED, -(-max(0, context.now() - approved.at) // context.info.block_millis))
        most = Wei(most * rules.rise.numerator**blocks // rules.rise.denominator**blocks)
        await check_gas_of_day(context, draft, gas * fees.max_fee + data_fee)
    tip, whole = rules.tip, rules.whole
    if leaves:  # its caps are never the lower ones
        tip, whole = max(tip, rules.exit_tip), max(whole, rules.exit_whole)
    bound = FeeBound(most, tip, Wei(whole - data_fee))
    if (excess := bound.find_excess(fees.max_fee, fees.tip, gas, bumps)) is not None:
        compare = "" if await context.writer.list_gas() else " One node says so: compare with a block explorer first."
        raise GasTooHigh(_explain(context, draft, excess, "EXIT_" if leaves else "") + compare)
    return bound


def _explain(context: ExecutionContext, draft: Draft, excess: GasExcess, exit_: str) -> str:
    """The figure, its bound, and the command that raises it. Room for replacements is counted in."""
    if excess[0] == "max_fee":
        return (
            f"A unit of gas costs up to {excess[1]} wei; the bound is {excess[2]} wei, from the approval "
            f"(`zuno plan approve {draft.plan_id}` makes a new one before anything is signed)."
        )
    words = {"tip": ("tip", "gwei", "TIP_GWEI", 9), "whole": ("transaction", context.info.native.symbol, "GAS", 18)}
    what, unit, name, digits = words[excess[0]]
    asked, most = (decimal_text(Fraction(figure, 10**digits), digits) for figure in excess[1:])
    return (
        f"The {what} would cost up to {asked} {unit}; the cap is {most} {unit}. "
        f"`ZUNO_MAX_{exit_}{name}={context.info.name}={asked} zuno plan apply {draft.plan_id}` raises it."
    )


async def choose_fees(
    context: ExecutionContext, draft: Draft, now: Fees, gas: int, dead: StepSigned | None, **terms: Any
) -> tuple[Fees, FeeBound]:
    """Return what is bid for a unit of gas, and its bound: what replaces a transaction that its deadline killed or,
    where that one was dearer than the bound, what gas costs now. Whoever still holds such a dear one mines it soon."""
    if dead is not None:
        dearer = replace_fees(dead, now)
        with suppress(GasTooHigh):
            return dearer, await bound_fees(context, draft, dearer, gas, **terms)
    return now, await bound_fees(context, draft, now, gas, **terms)


async def find_held_number(context: ExecutionContext, draft: Draft, wallet: WalletState) -> StepSigned | None:
    """Return the newest transaction of this wallet that its own deadline killed and that may still hold its number: the
    next one takes that number, so that only one of them can ever be mined."""
    for entry in await context.journal.latest(_REMEMBERED, kind=StepExpired.kind):
        (signed,) = await context.journal.latest(1, request_id=entry.request_id, kind=StepSigned.kind)
        if StepSigned.model_validate(dict(signed.payload)).nonce < wallet.nonce:
            continue  # whatever the plan signed is over; to load it, all that was journaled since is verified
        progress = await load_progress(context.journal, str(entry.request_id))
        expired = progress.steps[StepExpired.model_validate(dict(entry.payload)).step]
        other = progress.draft or draft
        same = (other.chain_id, other.genesis, other.wallet) == (draft.chain_id, draft.genesis, draft.wallet)
        if same and expired.nonce >= wallet.nonce:
            return expired.newest
    return None


def replace_fees(before: StepSigned, now: Fees) -> Fees:
    """Return fees that a node takes in place of those before, and that are what gas costs now."""
    return Fees(max(now.max_fee, bump_fee(before.max_fee)), max(now.tip, bump_fee(before.tip)))
