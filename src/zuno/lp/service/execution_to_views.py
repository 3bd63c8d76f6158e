"""Drafts and the progress of plans as views: every call in words, every bound, every number that will be signed."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from zuno.amm.model import PoolState, whole_price
from zuno.kernel.errors import Refused
from zuno.kernel.numbers_text import decimal_text, short_text, time_text
from zuno.kernel.text import NATIVE, Token, format_units
from zuno.kernel.units import Address, HexId, Millis
from zuno.kernel.wire import derive
from zuno.lp.execute import draft as drafts
from zuno.lp.execute.checks import approval_hash
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.handed_out import explain_waiting, is_incomplete_batch
from zuno.lp.execute.plan_state import PlanPart, PlanProgress, StepProgress
from zuno.lp.execute.verify_outcome import gas_spent, measure_proceeds, position_actions
from zuno.lp.model.chains import NativeCoin
from zuno.lp.model.market import GasQuote
from zuno.lp.model.plan import Flow, PlanState, Step, StepState
from zuno.lp.model.plan_events import Action, Approval, Draft, Instruction
from zuno.lp.plan.calls import Mint, MintFromDeltas
from zuno.lp.plan.describe import AddressBook, describe_call
from zuno.lp.plan.unsigned import build_unsigned, safe_batch
from zuno.lp.service import execution_view as views
from zuno.lp.service.act_cost import weigh_cost
from zuno.lp.service.to_views import key_view, leftover_view, price_unit, tick_prices

IMPACT_DIGITS = 4


def approval_view(
    execution: ExecutionContext,
    drafted: drafts.SimulatedDraft,
    gas: GasQuote,
    approval: Approval,
    native: Fraction | None,
) -> views.ApprovalView:
    same = approval.model_dump(include={"plan_hash", "chain_id", "genesis", "who"}, by_alias=False)
    shown = simulation_view(execution, drafted, gas, native)
    first = "anyway" if drafted.draft.instruction.anyway else "approve"
    asks = (first, *(["costs-more"] if shown.cost.exceeds_moved else []))
    return views.ApprovalView(
        **dict(shown), asks=asks, **same, draft_hash=approval.draft, approval_hash=approval_hash(approval)
    )


def simulation_view(
    execution: ExecutionContext, drafted: drafts.SimulatedDraft, gas: GasQuote, native: Fraction | None
) -> views.SimulationView:
    """`native`: base units of the pool's token1 for one wei, where it has a price."""
    draft, simulation = drafted.draft, drafted.simulation
    pool, tokens = draft.pool, draft_tokens(execution, draft)
    steps, used = drafts.all_steps(draft), [call.gas_used for call in simulation.calls]
    after = drafted.sqrt_price_after_x96
    before = whole_price(pool.sqrt_price_x96, pool.token0, pool.token1)
    then = None if after is None else whole_price(after, pool.token0, pool.token1)
    opened = (
        action.range
        for step in steps
        for action in position_actions(execution, step)
        if isinstance(action, Mint | MintFromDeltas)
    )
    span = next(opened, None)
    edges = None if span is None else tick_prices(pool, span.lower, span.upper)
    return derive(
        views.SimulationView,
        draft,
        drafted,
        action=draft.instruction.action,
        chain=draft.instruction.chain,
        play_money=execution.local,
        position_id=_id(draft.instruction.position_id),
        other_position_ids=tuple(str(position.id) for position in draft.others),
        pool=key_view(pool.key, pool.token0, pool.token1),
        block=simulation.block.number,
        ok=drafted.error is None,
        changes=tuple(
            flow_view(Flow(currency, amount), tokens) for currency, amount in drafted.changes.items() if amount
        ),
        gas_used=sum(used),
        gas_cost=format_units(sum(used) * gas.price + drafts.data_fee(steps, gas), 18),
        gas_coin=execution.info.native.symbol,
        price_before=decimal_text(before, 10),
        price_after=None if then is None else decimal_text(then, 10),
        price_impact_bps=None if then is None else decimal_text(abs(then / before - 1) * 10_000, IMPACT_DIGITS),
        price_unit=price_unit(pool.token0, pool.token1),
        range_low=None if edges is None else edges[0],
        range_high=None if edges is None else edges[1],
        leftover=None if drafted.leftover is None else leftover_view(drafted.leftover, pool),
        steps=tuple(_call_view(execution, draft, index, step, drafted, tokens) for index, step in enumerate(steps)),
        bounds=bounds_view(draft, tokens),
        hedge=_describe_hedge(draft),
        cost=weigh_cost(drafted, gas, native),
    )


def _describe_hedge(draft: Draft) -> str | None:
    if (hedge := draft.instruction.hedge) is None:
        return None
    token = (draft.pool.token0, draft.pool.token1)[hedge.side]
    amount, most = (short_text(format_units(each, token.decimals)) for each in (hedge.amount, hedge.most))
    return f"about {amount} {token.symbol} short by {hedge.market} within a minute of the liquidity, margin for {most}"


def bounds_view(draft: Draft, tokens: Mapping[Address, Token]) -> views.BoundsView:
    bounds, instruction = draft.bounds, draft.instruction
    low, high = tick_prices(draft.pool, instruction.tick - bounds.tick_drift, instruction.tick + bounds.tick_drift)
    return derive(
        views.BoundsView,
        bounds,
        draft,
        tick_low=instruction.tick - bounds.tick_drift,
        tick_high=instruction.tick + bounds.tick_drift,
        price_low=low,
        price_high=high,
        expires_text=time_text(draft.expires),
        max_fee_gwei=decimal_text(Fraction(draft.gas.max_fee, 10**9), 9),
        most_gas=format_units(draft.gas.max_fee * sum(draft.gas.units) + draft.gas.data_fee, 18),
        most_out=tuple(flow_view(flow, tokens) for flow in (*draft.caps, *draft.proceeds)),
    )


def _call_view(
    execution: ExecutionContext,
    draft: Draft,
    index: int,
    step: Step,
    drafted: drafts.SimulatedDraft,
    tokens: Mapping[Address, Token],
) -> views.CallView:
    tried = drafted.simulation.calls
    return views.CallView(
        index=index,
        kind=step.kind,
        later=index >= len(draft.steps),
        to=step.to,
        value=str(step.value),
        data="0x" + step.data.hex(),
        words=in_words(execution, draft, step, tokens),
        most_out=tuple(flow_view(flow, tokens) for flow in step.most_out),
        least_in=tuple(flow_view(flow, tokens) for flow in step.least_in),
        gas_used=tried[index].gas_used if index < len(tried) else None,
        error=tried[index].error if index < len(tried) else None,
    )


def in_words(execution: ExecutionContext, draft: Draft, step: Step, tokens: Mapping[Address, Token]) -> tuple[str, ...]:
    """A call from its bytes alone; times as people read them."""
    names = AddressBook(execution.info.deployment, execution.wallet, tokens, time_text)
    return describe_call(drafts.decode_step(execution, step), names, drafts.find_position_of_step(draft, step)[0].key)


def tokens_of(pool: PoolState, coin: NativeCoin) -> dict[Address, Token]:
    return {NATIVE: coin.token, pool.key.currency0: pool.token0, pool.key.currency1: pool.token1}


def draft_tokens(execution: ExecutionContext, draft: Draft) -> dict[Address, Token]:
    """The tokens of the chain and of all the plan's pools."""
    tokens = {token.address: token for token in execution.info.tokens}
    for pool, _ in drafts.list_positions(draft):
        tokens |= tokens_of(pool, execution.info.native)
    return tokens


def flow_view(flow: Flow, tokens: Mapping[Address, Token]) -> views.FlowView:
    token = tokens[flow.currency]
    return views.FlowView(
        currency=flow.currency,
        symbol=token.display_name,
        amount=str(flow.amount),
        amount_human=format_units(flow.amount, token.decimals),
    )


async def execution_view(
    execution: ExecutionContext, progress: PlanProgress, instruction: Instruction, *, late: bool = False
) -> views.ExecutionView:
    draft, over = progress.draft, progress.over
    state = PlanState.EXPIRED if late else progress.state
    outcome = progress.outcome
    resting = await _resting_tokens(execution, progress)
    left = (None if draft is None else draft.leftover) if over is None else over.leftover
    return views.ExecutionView(
        plan_id=progress.plan_id,
        state=state,
        action=instruction.action,
        chain=instruction.chain,
        wallet=execution.wallet if draft is None else draft.wallet,
        position_id=_id(instruction.position_id),
        other_position_ids=tuple(str(target.position_id) for target in instruction.others),
        capital=await _capital_views(execution, draft, instruction),
        new_position_id=None if over is None else _id(over.new_position_id),
        leftover=None if draft is None or left is None else leftover_view(left, draft.pool),
        why=explain_waiting(progress) if over is None else over.why,
        steps=tuple(
            _step_view(execution, index, step, draft) for index, step in enumerate(_list_steps_to_show(progress))
        ),
        gas_cost=format_units(gas_spent(progress), 18),
        gas_coin=execution.info.native.symbol,
        expires=None if draft is None else draft.expires,
        expires_text=None if draft is None else time_text(draft.expires),
        problems=() if over is None else over.problems,
        outcome=None if outcome is None else outcome.attribution,
        other_outcomes=() if outcome is None else tuple(other.attribution for other in outcome.others),
        outcome_note=""
        if outcome is None or not outcome.why
        else f"the result of position {outcome.position_id} could not be attributed: {outcome.why}",
        in_wallet=tuple(resting),
        next=("" if over else _next(progress.plan_id, state, instruction.action, progress.begun))
        or _offer_create(instruction.chain, resting),
    )


async def _resting_tokens(execution: ExecutionContext, progress: PlanProgress) -> list[views.FlowView]:
    """What a plan that is half done, or ended so, has left in the wallet."""
    draft, over = progress.draft, progress.over
    if draft is None or not progress.halfway or (over is not None and over.state is PlanState.CONFIRMED):
        return []
    wallet_state = await execution.writer.wallet_state(execution.wallet, drafts.plan_currencies(draft), ())
    paid = measure_proceeds(progress, draft, wallet_state.holdings)
    return [flow_view(flow, tokens_of(draft.pool, execution.info.native)) for flow in paid if flow.amount]


def _offer_create(chain: str, resting: Sequence[views.FlowView]) -> str:
    """The command that puts tokens that rest in the wallet to work again."""
    if not resting:
        return ""
    first, *rest = resting
    beside = "".join(f' --with "{flow.amount_human} {flow.symbol}"' for flow in rest)
    brought = f"--token {first.symbol} --amount {first.amount_human}{beside}"
    return f"`zuno lp recommend create --chain {chain} {brought}` opens a position with them"


async def _capital_views(
    execution: ExecutionContext, draft: Draft | None, instruction: Instruction
) -> tuple[views.CapitalView, ...]:
    if not instruction.capital0 and not instruction.capital1:
        return ()
    pool = await execution.chain.pool(HexId(instruction.pool_id)) if draft is None else draft.pool
    tokens = tokens_of(pool, execution.info.native)
    wrapper = drafts.wrapped_native(execution) if instruction.brings_ether else None
    sides = ((pool.key.currency0, instruction.capital0), (pool.key.currency1, instruction.capital1))
    taken = (Flow(NATIVE if currency == wrapper else currency, amount) for currency, amount in sides)
    flows = ((side, flow_view(flow, tokens)) for side, flow in enumerate(taken) if flow.amount)
    return tuple(
        views.CapitalView(**flow.model_dump(), named=side in instruction.named_amounts) for side, flow in flows
    )


def _list_steps_to_show(progress: PlanProgress) -> list[StepProgress]:
    """The steps there are, and those of a second half that is not built yet as they were approved."""
    draft = progress.draft
    built = any(step.part is PlanPart.LATER for step in progress.steps)
    if draft is None or draft.later is None or built or progress.over is not None:
        return progress.steps
    return [*progress.steps, *(StepProgress(step, PlanPart.LATER) for step in draft.later.preview)]


def _step_view(execution: ExecutionContext, index: int, step: StepProgress, draft: Draft | None) -> views.StepView:
    mined = step.mined
    newest = step.signed[-1] if step.signed else None
    return derive(
        views.StepView,
        step,
        index=index,
        kind=step.step.kind,
        tx_hash=step.tx,
        nonce=newest.nonce if newest else None,
        block=mined.block.number if mined else None,
        gas_used=mined.gas_used if mined else None,
        gas_cost=format_units(mined.cost, 18) if mined else None,
        attempts=len(step.signed),
        words=() if draft is None else in_words(execution, draft, step.step, draft_tokens(execution, draft)),
    )


def _next(plan_id: str, state: PlanState, action: Action, begun: bool) -> str:
    match state:
        case _ if action is Action.HOLD:
            return "nothing to do"
        case PlanState.DRAFTED:
            return f"`zuno plan simulate {plan_id}`, then `zuno plan approve {plan_id}`"
        case PlanState.SIMULATED:
            return f"`zuno plan approve {plan_id}`"
        case PlanState.EXPIRED:
            return f"the approval has run out: `zuno plan approve {plan_id}` again"
        case PlanState.APPROVED:
            return f"`zuno plan apply {plan_id}`"
        case PlanState.HANDED_OUT:
            return f"`zuno plan apply {plan_id}` once it is mined, `zuno plan cancel {plan_id}` calls it off"
        case PlanState.APPLYING | PlanState.PARTIAL if begun:
            return f"`zuno plan apply {plan_id}` goes on, `zuno plan cancel {plan_id}` calls it off"
        case _:
            return ""


def unsigned_view(progress: PlanProgress) -> views.UnsignedView:
    """What was handed out and is not on the chain yet, as it was handed out: asked for again, the same bytes."""
    draft = progress.draft
    events = [step.handed_out for step in progress.steps if step.handed_out and step.state is StepState.HANDED_OUT]
    if progress.approved is None or draft is None or not events or is_incomplete_batch(progress):
        raise Refused(f"Nothing of {progress.plan_id} is handed out yet; `zuno plan apply {progress.plan_id}` does so.")
    chain_id, wallet, first = draft.chain_id, Address(draft.wallet), events[0]
    moment, name = Millis(1_000 * first.block.timestamp), f"Zuno {progress.plan_id}"
    what = _describe_batch(draft, [progress.steps[event.step].step for event in events])
    batch = safe_batch(chain_id=chain_id, wallet=wallet, calls=events, created_at=moment, name=name, description=what)
    gas, max_fee, tip = first.gas, first.max_fee, first.tip
    advised = build_unsigned(
        chain_id=chain_id, wallet=wallet, nonce=first.nonce, call=first, gas=gas, max_fee=max_fee, tip=tip
    )
    return views.UnsignedView(
        plan_id=progress.plan_id,
        plan_hash=draft.plan_hash,
        approval_hash=approval_hash(progress.approved.approval),
        state=progress.state,
        chain=draft.instruction.chain,
        wallet=wallet,
        transactions=() if first.batch else (advised,),
        safe=batch if first.batch else None,
        deadline=first.deadline,
        notes=(
            explain_waiting(progress),
            f"good until {time_text(first.deadline)}; `zuno plan apply {progress.plan_id}` goes on once it is mined",
        ),
    )


def _describe_batch(draft: Draft, steps: Sequence[Step]) -> str:
    kinds = ", ".join(map(drafts.step_name, steps))
    about = "" if draft.instruction.position_id is None else f" of position {draft.instruction.position_id}"
    return f"{draft.instruction.action}{about} on {draft.instruction.chain}: {kinds}"


def _id(number: int | None) -> str | None:
    return None if number is None else str(number)
