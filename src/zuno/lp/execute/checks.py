"""Checks before a signature. Every refusal names the bound and the figure that broke it; nothing here acts."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from zuno.amm.model import LpPosition, PoolState
from zuno.kernel.canonical import canonical, digest
from zuno.kernel.errors import Malformed, Refused, Unavailable
from zuno.kernel.signing import NodeKey
from zuno.kernel.text import NATIVE, is_stable
from zuno.kernel.units import Address, Seconds, Wei
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.draft import (
    LIMIT_MARGIN,
    OnChainState,
    SimulatedDraft,
    all_steps,
    data_fee,
    find_position_of_step,
    read_reference,
    suggest_fees,
)
from zuno.lp.execute.plan_state import PlanProgress, draft_digest
from zuno.lp.model.chains import market_name
from zuno.lp.model.market import GasQuote, Pair
from zuno.lp.model.plan import Allows, Bounds, Flow, Holds, Need, Owns, Permits, PlanState, Step, StepKind, TickWithin
from zuno.lp.model.plan_events import Action, Approval, Draft, Instruction, PlanApplying, PlanOver
from zuno.lp.plan.context import amount_text
from zuno.lp.plan.policy import build_policy, verify_step
from zuno.lp.rules.limits import CRASH_LIMIT, REFERENCE_LIMIT, reference_gap

_SIGNING_PREFIX: Final = b"zuno approval of a plan, version 1\n"
DAY_MILLIS: Final = 24 * 3600 * 1000
_MOST_A_DAY: Final = 10_000


def signing_bytes(approval: Approval) -> bytes:
    return _SIGNING_PREFIX + canonical(approval)


def approval_hash(approval: Approval) -> str:
    """The hash the owner is shown and the node signs."""
    return digest(signing_bytes(approval))


def check_approval(progress: PlanProgress, key: NodeKey) -> Draft:
    """The approved draft. Only this node's signature over exactly this draft counts as an approval."""
    approved, draft = progress.approved, progress.draft
    if approved is None or draft is None:
        raise Refused(
            f"{progress.plan_id} was not approved; `zuno plan approve {progress.plan_id}` shows what it would do."
        )
    approval = approved.approval
    if not key.verify(key.public, signing_bytes(approval), bytes.fromhex(approved.signature)):
        raise Refused(
            f"The approval of {progress.plan_id} does not carry this node's signature; approve the plan again."
        )
    if approval.draft != draft_digest(draft):
        raise Refused(f"What was approved of {progress.plan_id} is not what is on record; approve the plan again.")
    if {approval.plan_id, draft.plan_id} != {progress.plan_id}:
        raise Refused(f"The approval is of {approval.plan_id}, not of {progress.plan_id}.")
    bound = (approval.plan_hash, approval.chain_id, approval.genesis, approval.wallet, approval.expires)
    if bound != (draft.plan_hash, draft.chain_id, draft.genesis, draft.wallet, draft.expires):
        raise Refused(f"The approval of {progress.plan_id} and its transactions differ; approve the plan again.")
    return draft


class ApprovalExpired(Refused):
    """The approval has run out."""


def check_not_expired(draft: Draft, now: Seconds) -> None:
    if now > draft.expires:
        raise ApprovalExpired(
            f"The approval of {draft.plan_id} expired at {draft.expires}, {now - draft.expires} s ago by the chain's "
            f"own time; approve the plan again."
        )


async def check_chain(context: ExecutionContext, draft: Draft) -> None:
    """The chain must be the approved one, by id and by genesis hash."""
    if context.info.id != draft.chain_id:
        raise Refused(f"The approval is for chain id {draft.chain_id}, this is {context.info.id}.")
    genesis = await context.writer.genesis()
    if genesis != draft.genesis:
        raise Refused(f"The approval is for a chain that began with {draft.genesis[:12]}…, this one {genesis[:12]}….")
    if context.wallet != draft.wallet:
        raise Refused(f"The approval is for the wallet {draft.wallet}, the wallet here is {context.wallet}.")


async def check_market(context: ExecutionContext, instruction: Instruction, pool: PoolState, bounds: Bounds) -> None:
    """Tick drift since the decision and the reference price; fees may be collected, and allowances revoked, at any
    price, and a position left where the owner says so."""
    if instruction.action not in (Action.COLLECT, Action.REVOKE):
        check_drift(instruction, pool, bounds)
        if not instruction.leaves_anyway:
            await check_reference(context, pool, reference_limit(instruction))


def reference_limit(instruction: Instruction) -> Fraction:
    """How far the pool may be off the reference for this."""
    return CRASH_LIMIT if instruction.in_a_crash else REFERENCE_LIMIT


def check_drift(instruction: Instruction, pool: PoolState, bounds: Bounds) -> None:
    """How far the pool has moved since the decision was made."""
    moved = abs(pool.tick - instruction.tick)
    if moved > bounds.tick_drift:
        raise Refused(
            f"The pool is at tick {pool.tick}, {moved} ticks from the {instruction.tick} this was decided at; "
            f"the bound is {bounds.tick_drift} (tick drift). Ask for a new plan."
        )


async def check_reference(context: ExecutionContext, pool: PoolState, limit: Fraction = REFERENCE_LIMIT) -> str:
    """The pool's price against the reference price; returns the source of the reference."""
    spot = await read_reference(context, pool)
    gap = reference_gap(pool, spot.value)
    if gap > limit:
        raise Refused(
            f"The pool's price is {_percent(gap)} off the reference ({spot.source}); the bound is "
            f"{_percent(limit)}. Wait until the two agree; a position can be left at any price with "
            f"`zuno lp close ID --anyway`, or a part of it with `zuno lp remove ID --percent P --anyway`."
        )
    return spot.source


def check_needs(step: Step, onchain: OnChainState, after: Sequence[Step] = ()) -> None:
    """What has to hold before this step, read from the chain; `after`: earlier steps that bring it about."""
    wrapped = {flow.currency for earlier in after if earlier.kind is StepKind.WRAP for flow in earlier.least_in}
    for need in step.needs:
        match need:
            case Allows() | Permits() if after:
                continue  # the plan's own approvals come first
            case Holds(currency, _) if currency in wrapped:
                continue
            case _:
                _check_need(need, onchain)


def _check_need(need: Need, onchain: OnChainState) -> None:
    wallet_state, position, pool = onchain.wallet_state, onchain.position, onchain.pool
    match need:
        case Holds(currency, amount):
            have = wallet_state.holdings.get(currency, 0)
            if have < amount:
                holds, takes = (amount_text(pool, currency, each, onchain.coin) for each in (have, amount))
                raise Refused(f"The wallet holds {holds}, the step may take {takes}.")
        case Allows(token, amount):
            have = wallet_state.allowances.to_permit2.get(token, 0)
            if have < amount:
                raise Refused(f"Permit2 may take {amount_text(pool, token, have)}, the step needs "
                              f"{amount_text(pool, token, amount)}.")  # fmt: skip
        case Permits(token, spender, amount, until):
            grant = wallet_state.allowances.grant(token, spender)
            if grant.amount < amount:
                raise Refused(f"{spender} may take {amount_text(pool, token, grant.amount)} through Permit2, "
                              f"the step needs {amount_text(pool, token, amount)}.")  # fmt: skip
            if grant.until < until:
                raise Refused(f"The permit for {spender} ends at {grant.until}, the step may run until {until}.")
        case Owns(token_id, liquidity):
            if position is None or position.id != token_id:
                raise Refused(f"Position {token_id} is not there any more.")
            if position.owner != onchain.wallet:
                raise Refused(f"Position {token_id} belongs to {position.owner} now.")
            if position.liquidity != liquidity:
                raise Refused(
                    f"Position {token_id} holds liquidity {position.liquidity}, the approval is for {liquidity}."
                )
        case TickWithin(_, low, high):
            if not low <= pool.tick <= high:
                away = low - pool.tick if pool.tick < low else pool.tick - high
                raise Refused(
                    f"The pool is at tick {pool.tick}, {away} outside the approved {low} to {high} "
                    f"(tick drift {(high - low) // 2})."
                )


def check_policy(
    context: ExecutionContext, step: Step, onchain: OnChainState, draft: Draft, caps: tuple[Flow, ...]
) -> None:
    """Decodes the calldata and checks it against the policy, just before it is signed."""
    pool, approved = find_position_of_step(draft, step)
    _check_fees(step, onchain.position, approved)
    position = onchain.position if onchain.position is not None else approved
    allowed = {flow.currency: flow.amount for flow in caps}
    terms = onchain.terms(context, draft.bounds)
    revocable = frozenset(map(Address, draft.instruction.tokens))
    hooks, band, swap = context.limits.hooks, draft.instruction.range, draft.instruction.swap_home
    about = (position, hooks, revocable, approved, pool, band, swap, draft.route)
    verify_step(step, build_policy(terms, pool.key, allowed, *about))


def _check_fees(step: Step, position: LpPosition | None, approved: LpPosition | None) -> None:
    """Liquidity that is paid for with a position's fees would be paid for by the wallet where they are gone."""
    if step.kind not in (StepKind.INCREASE, StepKind.BURN_AND_MINT) or position is None or approved is None:
        return
    if position.fees0 < approved.fees0 or position.fees1 < approved.fees1:
        raise Refused(
            f"The fees of position {position.id} were collected since, and were to pay for a part of this; approve the "
            f"plan again."
        )


def check_gas(onchain: OnChainState, step: Step, units: int, bound_units: int, max_fee: int, data_fee: int = 0) -> None:
    """Units of gas against their bound, and the native coin there is; `data_fee` is a rollup's for posting the step."""
    if units > bound_units:
        raise Refused(f"The step would use up to {units} gas; the bound is {bound_units}.")
    _check_native(onchain, units * max_fee + data_fee + step.value)


def check_whole_gas(onchain: OnChainState, simulated: SimulatedDraft, gas: GasQuote, first_limit: int) -> None:
    """Native coin for every step at its whole gas limit, before the first: stopping half-way leaves a wallet out of the
    market. `first_limit`: of the first step as sent now; the others count by their simulation."""
    draft = simulated.draft
    steps, max_fee = all_steps(draft), suggest_fees(gas).max_fee
    spent, most = 0, 0
    for index, (step, used) in enumerate(zip(steps, simulated.gas_used, strict=True)):
        limit = first_limit if index == 0 else int(used * LIMIT_MARGIN)
        value = step.value if index < len(draft.steps) else 0  # a second half spends what the first brought
        posting = data_fee([step], gas)
        most = max(most, spent + limit * max_fee + posting + value)
        spent += used * gas.price + posting + value
    posting = data_fee(steps, gas)
    if posting > draft.gas.data_fee:
        raise Refused(
            f"Posting the plan's data costs {onchain.coin.amount_text(posting)}; "
            f"the bound is {onchain.coin.amount_text(draft.gas.data_fee)}."
        )
    _check_native(onchain, most)


def _check_native(onchain: OnChainState, need: int) -> None:
    have, coin = onchain.wallet_state.holdings.get(NATIVE, 0), onchain.coin
    if have < need:
        raise Refused(
            f"The wallet holds {coin.amount_text(have)}; gas and value may take {coin.amount_text(need)}: "
            f"send {coin.amount_text(need - have)} to {onchain.wallet}."
        )


async def check_spend(context: ExecutionContext, draft: Draft) -> Decimal | None:
    """What leaves the wallet by this plan in dollars, against the owner's caps; None where it is play money."""
    worth: Fraction = Fraction(0)
    for flow in (flow for step in draft.steps if step.kind is not StepKind.WRAP for flow in step.most_out):
        usd = await usd_value(context, draft.pool, flow)
        if usd is None:
            if context.local:
                return None
            raise Refused(
                f"Nobody can say what {amount_text(draft.pool, flow.currency, flow.amount, context.info.native)} is "
                f"worth in dollars, so the spending caps cannot be held."
            )
        worth += usd
    spend = Decimal(worth.numerator) / Decimal(worth.denominator)
    if not spend:
        return spend  # an exit is never held up by what was spent before
    if spend > context.limits.usd_per_plan:
        raise Refused(
            f"The plan may take ${spend:,.2f} from the wallet; the cap for one plan is "
            f"${context.limits.usd_per_plan:,.2f} (ZUNO_SPEND_USD_PER_PLAN)."
        )
    today = await _spent_today(context, draft.plan_id)
    if today + spend > context.limits.usd_per_day:
        raise Refused(
            f"The plan may take ${spend:,.2f} on top of ${today:,.2f} in the last 24 hours; the cap for a day is "
            f"${context.limits.usd_per_day:,.2f} (ZUNO_SPEND_USD_PER_DAY)."
        )
    return spend


async def _spent_today(context: ExecutionContext, plan_id: str) -> Decimal:
    """Plans begun in the last 24 hours, in full unless nothing was seen by their deadline; play money apart."""
    entries = await context.journal.latest(_MOST_A_DAY, kind=PlanOver.kind)
    ended = [PlanOver.model_validate(dict(entry.payload)) for entry in entries]
    total, seen = Decimal(0), {plan_id, *(over.plan_id for over in ended if over.state is PlanState.EXPIRED)}
    for entry in await context.journal.latest(_MOST_A_DAY, kind=PlanApplying.kind):
        applying = PlanApplying.model_validate(dict(entry.payload))
        if entry.at < context.now() - DAY_MILLIS or applying.plan_id in seen or applying.play_money != context.local:
            continue
        seen.add(applying.plan_id)
        total += applying.spend_usd or 0
    return total


async def usd_value(context: ExecutionContext, pool: PoolState, flow: Flow) -> Fraction | None:
    """The dollar value of an amount of a pool's token, or of the native coin; None where there is no price."""
    first = flow.currency == pool.key.currency0
    token, other = (pool.token0, pool.token1) if first else (pool.token1, pool.token0)
    if flow.currency == NATIVE:
        token = context.info.native.token
    whole = Fraction(flow.amount, 10**token.decimals)
    if is_stable(token):
        return whole
    if is_stable(other) and flow.currency in (pool.key.currency0, pool.key.currency1):
        price = pool.price if first else 1 / pool.price
        return flow.amount * price / Fraction(10**other.decimals)
    if not token.verified:
        return None
    try:
        spot = await context.feeds_of(pool.id).prices.spot(Pair(market_name(token), "USDC"), pool.block.timestamp)
    except (Unavailable, Malformed):
        return None
    return whole * spot.value


async def gas_usd(context: ExecutionContext, pool: PoolState, wei: Wei) -> Fraction:
    """What gas costs in dollars; `Unavailable` where nobody knows the native coin's price."""
    usd = await usd_value(context, pool, Flow(NATIVE, wei))
    if usd is None:
        native = await context.feeds_of(pool.id).native.native("USDC", pool.block.timestamp)
        usd = Fraction(wei, 10**context.info.native.token.decimals) * native.value
    return usd


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.2f} %"
