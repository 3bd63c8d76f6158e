"""Builds the exact transactions of an instruction on the latest block and simulates them before anyone approves."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from zuno.amm.model import LpPosition, PoolKey, PoolState, sqrt_price_for, whole_price
from zuno.kernel.errors import Malformed, NotFound, Refused, Unavailable
from zuno.kernel.numbers_text import decimal_text
from zuno.kernel.text import NATIVE, base_and_quote, format_units
from zuno.kernel.units import Address, HexId, Wei
from zuno.kernel.wire import pick
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.routes import find_route, load_swap_quotes
from zuno.lp.model.chains import NativeCoin, SwapStruct, market_name, native_coin
from zuno.lp.model.market import Fact, GasQuote, Pair
from zuno.lp.model.plan import MEASURED_GAS, Bounds, Flow, Leftover, Owns, Step, StepKind, StepPlan, WalletState
from zuno.lp.model.plan_events import Action, Draft, ExitWorth, GasBound, Instruction
from zuno.lp.plan import minting, positions
from zuno.lp.plan.approvals import build_revocations
from zuno.lp.plan.calls import DecodedCall, IncreaseFromDeltas, MintFromDeltas
from zuno.lp.plan.context import PlanContext, amount_text, flows
from zuno.lp.plan.decoding import decode
from zuno.lp.plan.effects import sum_effects
from zuno.lp.plan.inventory import QuoteSwap
from zuno.lp.plan.policy import Policy, build_policy, max_outflow, verify_step
from zuno.lp.plan.routing import SwapRoute
from zuno.lp.plan.sizing import check_tokens_used, most_proceeds, weigh_exit
from zuno.lp.ports.spending import Call, Fees, Simulation, SimulationMethod

_MAX_READS: Final = 4
GAS_MARGIN: Final = 2
"""What a step may use at most, over what it used when it was tried: the pool may have moved a few ticks by then."""
LIMIT_MARGIN: Final = Fraction(7, 4)
"""A step's gas limit when it is sent, over what it used when it was simulated. Refunds hide a fifth of the gas at most,
a node rounds its estimate up, and a quarter is added to that: on the contracts 1.26 to 1.61."""
ENVELOPE_BYTES: Final = 130
"""Bytes of a signed transaction without its calldata."""
FEE_MARGIN: Final = 2
"""What a unit of gas may cost at most, over what it costs now: so far a transaction that waits may be sped up."""


@dataclass(frozen=True, slots=True)
class SimulatedDraft:
    """A draft and its simulation."""

    draft: Draft
    simulation: Simulation
    swaps: SwapStruct

    @property
    def how(self) -> str:
        return "simulated" if self.simulation.how is SimulationMethod.SIMULATED else "computed"

    @property
    def changes(self) -> Mapping[Address, int]:
        """The wallet's balance changes without gas: as the node simulated them, else computed here."""
        if self.simulation.how is SimulationMethod.SIMULATED:
            return self.simulation.changes
        total: Counter[Address] = Counter()
        for pool, position in list_positions(self.draft):
            steps = (
                step for step in all_steps(self.draft) if find_position_of_step(self.draft, step) == (pool, position)
            )
            total.update(
                sum_effects((decode(step.to, step.value, step.data, self.swaps) for step in steps), pool, position)
            )
        return total

    @property
    def leftover(self) -> Leftover | None:
        """What stays in the wallet: as the node simulated it, else as the plan was built."""
        planned = self.draft.leftover
        if planned is None or self.simulation.how is not SimulationMethod.SIMULATED or self.error is not None:
            return planned
        left0, left1 = left_in_wallet(self.draft, self.changes)
        price = self.simulation.sqrt_price_after_x96 or planned.sqrt_price_x96
        return replace(planned, amount0=left0, amount1=left1, sqrt_price_x96=price)

    @property
    def gas_used(self) -> tuple[int, ...]:
        """By each step: as it was simulated, else as such steps were measured."""
        tried = self.simulation.calls if self.simulation.how is SimulationMethod.SIMULATED else ()
        steps = all_steps(self.draft)
        return (*(call.gas_used for call in tried), *(measured_gas(step.kind) for step in steps[len(tried) :]))

    @property
    def sqrt_price_after_x96(self) -> int | None:
        return self.simulation.sqrt_price_after_x96

    @property
    def error(self) -> str | None:
        """Which step would revert, and why; None where the simulation passed."""
        for index, call in enumerate(self.simulation.calls):
            if call.error is not None:
                steps = all_steps(self.draft)
                return f"step {index + 1} ({step_name(steps[index])}) would revert: {call.error}"
        return self._shortfall

    @property
    def _shortfall(self) -> str | None:
        """A fee-on-transfer token delivers less than it was sent, and breaks the bounds of the steps."""
        tried = all_steps(self.draft)[: len(self.simulation.calls)]
        for currency, change in self.simulation.changes.items():
            least = least_change(tried, currency)
            if change < least:
                pool = next((pool for pool, _ in list_positions(self.draft) if currency in currencies(pool.key)), None)
                about, coin = pool or self.draft.pool, native_coin(self.draft.instruction.chain)
                gain, bound = (amount_text(about, currency, each, coin) for each in (change, least))
                return f"the wallet would change by {gain}, the bound is {bound}: does the token charge for transfers?"
        return None


def list_positions(draft: Draft) -> list[tuple[PoolState, LpPosition | None]]:
    """The plan's positions, each with its pool; a plan about none has its pool alone."""
    return [(draft.pool, draft.position), *((position.pool, position) for position in draft.others)]


def find_position_of_step(draft: Draft, step: Step) -> tuple[PoolState, LpPosition | None]:
    """The pool and the position that a step is about: the one it has to own, else the plan's first."""
    about = next((need.token_id for need in step.needs if isinstance(need, Owns)), None)
    return next(
        ((pool, position) for pool, position in list_positions(draft) if position is not None and position.id == about),
        (draft.pool, draft.position),
    )


def plan_currencies(draft: Draft) -> tuple[Address, ...]:
    """Every currency that the plan's pools trade, and the native coin for gas."""
    return tuple(dict.fromkeys(currency for pool, _ in list_positions(draft) for currency in currencies(pool.key)))


def left_in_wallet(draft: Draft, changes: Mapping[Address, int]) -> tuple[int, int]:
    """What of the capital, or of a burned position's proceeds, a plan that changes the wallet so leaves in it. The
    uncollected fees of a position that is added to have paid for a part of it."""
    key, instruction, position = draft.pool.key, draft.instruction, draft.position
    wrapper = draft.steps[0].to if instruction.brings_ether else None

    def change(currency: Address) -> int:
        return changes.get(currency, 0) + (changes.get(NATIVE, 0) if currency == wrapper else 0)

    left0, left1 = instruction.capital0 + change(key.currency0), instruction.capital1 + change(key.currency1)
    if position is not None and instruction.action is Action.ADD:
        left0, left1 = left0 - position.fees0, left1 - position.fees1
    counterpart = instruction.counterpart
    return 0 if counterpart == 0 else max(0, left0), 0 if counterpart == 1 else max(0, left1)


@dataclass(frozen=True, slots=True)
class OnChainState:
    """A pool, perhaps a position in it, and the wallet, all of one block."""

    wallet: Address
    pool: PoolState
    position: LpPosition | None
    wallet_state: WalletState
    coin: NativeCoin

    def terms(self, context: ExecutionContext, bounds: Bounds) -> PlanContext:
        at, seen, wrapper = context.info.deployment, self.wallet_state, wrapped_native(context)
        now = seen.block.timestamp
        return PlanContext(at, self.wallet, now, seen.holdings, seen.allowances, bounds, wrapper, self.coin)


async def read_onchain_state(
    context: ExecutionContext, wanted_pool: HexId, position_id: int | None, more: Sequence[Address] = ()
) -> OnChainState:
    """Pool, position and wallet at one block. `more`: currencies beside the pool's own."""
    at = context.info.deployment
    for _ in range(_MAX_READS):
        position = None if position_id is None else await _read_position(context, position_id)
        pool = await context.chain.pool(wanted_pool) if position is None else position.pool
        if pool.id != wanted_pool:
            raise Refused(f"position {position_id} lies in pool {pool.id}, the plan is about {wanted_pool}")
        tokens = tuple(dict.fromkeys((*currencies(pool.key), *more)))
        wallet_state = await context.writer.wallet_state(
            context.wallet, tokens, (at.position_manager, at.universal_router)
        )
        if wallet_state.block.hash == pool.block.hash:
            return OnChainState(context.wallet, pool, position, wallet_state, context.info.native)
    raise Unavailable("The chain moved on each time it was read; try again.")


async def read_reference(context: ExecutionContext, pool: PoolState) -> Fact[Fraction]:
    """The pair's price elsewhere, as people quote it."""
    base, quote = base_and_quote(pool.token0, pool.token1)
    prices = context.feeds_of(pool.id).prices
    return await prices.spot(Pair(market_name(base), market_name(quote)), pool.block.timestamp)


async def _weigh_exit(context: ExecutionContext, instruction: Instruction, position: LpPosition) -> ExitWorth:
    pool, liquidity = position.pool, int(position.liquidity * (instruction.share or 1))
    price = whole_price(pool.sqrt_price_x96, pool.token0, pool.token1)
    try:
        spot = await read_reference(context, pool)
        reference, source = spot.value, spot.source
    except (Unavailable, Malformed) as error:
        reference, source = price, f"the pool itself, for there is no reference: {error}"
    at_reference = sqrt_price_for(reference, pool.token0, pool.token1)
    worth, worst = weigh_exit(position, liquidity, context.limits.bounds.slippage_bps, at_reference)
    texts = [format_units(amount, pool.token1.decimals) for amount in (worth, worst, worth - worst)]
    return ExitWorth(
        position_id=str(position.id),
        reference_price=decimal_text(reference, 10),
        source=source,
        gap_percent=decimal_text(100 * (price / reference - 1), 4),
        unit=pool.token1.display_name,
        worth=texts[0],
        worst=texts[1],
        sandwich_cost=texts[2],
        sandwich_percent=decimal_text(Fraction(100 * (worth - worst), max(1, worth)), 4),
    )


def wrapped_native(context: ExecutionContext) -> Address | None:
    """The token that wraps the chain's own currency."""
    return context.info.wrapper.address if context.info.wrapper else None


def currencies(key: PoolKey) -> tuple[Address, ...]:
    """The pool's two currencies, and the native coin for gas."""
    return tuple(dict.fromkeys((key.currency0, key.currency1, NATIVE)))


async def build_draft(
    context: ExecutionContext, plan_id: str, plan_hash: str, instruction: Instruction
) -> SimulatedDraft:
    """The instruction as transactions, checked against the policy and simulated on the latest block."""
    bounds, more = context.limits.bounds, tuple(map(Address, instruction.tokens))
    first, *rest = instruction.each()
    onchain = await read_onchain_state(context, HexId(first.pool_id), first.position_id, more)
    terms = onchain.terms(context, bounds)
    check_named_tokens_used(instruction, onchain)
    hooks = context.limits.hooks

    def judge(plan: StepPlan) -> tuple[dict[Address, int], tuple[Flow, ...]]:
        caps, proceeds = _spending_caps(plan, onchain, bounds)
        pool, revocable, swap = onchain.pool, frozenset(more), first.swap_home
        about = (onchain.position, hooks, revocable, None, pool, first.range, swap, plan.route)
        _check_steps_against_policy(plan, build_policy(terms, pool.key, caps, *about), proceeds)
        return caps, proceeds

    plan = await _plan_steps(context, onchain, terms, first, judge)
    caps, proceeds = judge(plan)
    others: list[LpPosition] = []
    for single in rest:
        seen = await read_onchain_state(context, HexId(single.pool_id), single.position_id)
        if seen.position is None:
            raise Refused(f"a {single.action} lacks what it is about")
        added = await _plan_steps(context, seen, terms, single, judge)
        _check_steps_against_policy(added, build_policy(terms, seen.pool.key, {}, seen.position, hooks), ())
        plan = replace(plan, steps=(*plan.steps, *added.steps), notes=(*plan.notes, *added.notes))
        others.append(seen.position)
    check_capital_limits(instruction, onchain.pool, terms.wrapper, plan.steps)
    steps = (*plan.steps, *(plan.later.preview if plan.later else ()))
    pools = (onchain.pool, *(position.pool for position in others))
    left = [position for position in (onchain.position, *others) if position and instruction.leaves_anyway]
    exits = tuple([await _weigh_exit(context, instruction, position) for position in left])
    costs = (
        f"position {exit_.position_id}: the pool's price is {exit_.gap_percent} % off the reference ({exit_.source}), "
        f"where what it pays is worth {exit_.worth} {exit_.unit}; a sandwich could cost {exit_.sandwich_cost} "
        f"{exit_.unit} of it, {exit_.sandwich_percent} %"
        for exit_ in exits
    )
    plan = replace(plan, notes=(*plan.notes, *costs))
    simulation = await context.writer.simulate(
        context.wallet,
        [step_call(step) for step in steps],
        tuple(dict.fromkeys(currency for pool in pools for currency in currencies(pool.key))),
        onchain.pool.id,
    )
    gas = await context.read_gas()
    swaps = context.info.deployment.swap_struct
    draft = Draft(
        plan_id=plan_id,
        plan_hash=plan_hash,
        instruction=instruction,
        chain_id=context.info.id,
        genesis=await context.writer.genesis(),
        wallet=context.wallet,
        block=onchain.wallet_state.block,
        pool=onchain.pool,
        position=onchain.position,
        bounds=bounds,
        expires=terms.deadline,
        caps=tuple(Flow(currency, amount) for currency, amount in caps.items()),
        proceeds=proceeds,
        gas=GasBound(
            max_fee=Wei(FEE_MARGIN * suggest_fees(gas).max_fee),
            units=_gas_limits(steps, simulation),
            data_fee=Wei(FEE_MARGIN * data_fee(steps, gas)),
        ),
        **pick(plan, "steps", "later", "notes", "leftover", "route"),
        others=tuple(others),
        exits=exits,
    )
    tried = SimulatedDraft(draft, simulation, swaps)
    if tried.error is not None:
        return tried
    notes = (*plan.notes, *_left_notes(tried, terms.wrapper))
    return replace(tried, draft=draft.model_copy(update={"notes": notes}))


async def _plan_steps(
    context: ExecutionContext,
    onchain: OnChainState,
    terms: PlanContext,
    instruction: Instruction,
    judge: Callable[[StepPlan], object],
) -> StepPlan:
    """`judge` is `Refused` where the policy does not admit the steps, so that a route that loses too much is none."""
    quote = await load_swap_quotes(context, onchain.pool, onchain.position)
    try:
        plan = _build_steps(onchain, terms, instruction, quote)
    except Unavailable:  # the swap would leave the ticks that were read
        plan, quote = _build_steps(onchain, terms, instruction, None), None
    if (route := await find_route(context, onchain.pool, onchain.position, quote, plan)) is not None:
        with suppress(Refused, Unavailable):  # then it goes through the own pool
            routed = _build_steps(onchain, terms, instruction, quote, route)
            judge(routed)
            return routed
    return plan if quote is not None else _add_note(plan, _ESTIMATED_QUOTE_NOTE)


_ESTIMATED_QUOTE_NOTE = "the swap is quoted from the liquidity at the price, not from the whole pool"


def _build_steps(
    onchain: OnChainState,
    terms: PlanContext,
    instruction: Instruction,
    quote: QuoteSwap | None,
    route: SwapRoute | None = None,
) -> StepPlan:
    band = instruction.range
    match instruction.action, onchain.position, band:
        case Action.CREATE, None, band_ if band_ is not None:
            capital = (instruction.capital0, instruction.capital1)
            how = pick(instruction, "brings_ether", "use_all")
            return minting.create(terms, onchain.pool, band_, *capital, **how, quotes=quote, route=route)
        case Action.REBALANCE, LpPosition() as position, band_ if band_ is not None:
            return positions.rebalance(terms, position, band_, quotes=quote, route=route)
        case Action.CLOSE, LpPosition() as position, _:
            return positions.close(terms, position, instruction.swap_home, quotes=quote, route=route)
        case Action.COLLECT, LpPosition() as position, _:
            return positions.collect(terms, position)
        case Action.COMPOUND, LpPosition() as position, _:
            return positions.compound(terms, position)
        case Action.ADD, LpPosition() as position, _:
            plan = positions.add(terms, position, instruction.capital0, instruction.capital1)
            return replace(plan, leftover=_count_named(plan.leftover, instruction.counterpart))
        case Action.REVOKE, None, _:
            steps = build_revocations(terms, tuple(map(Address, instruction.tokens)))
            if not steps:
                raise Refused("Nobody may take any of these tokens: there is nothing to revoke.")
            return StepPlan(steps, terms.bounds)
        case Action.REMOVE, LpPosition() as position, _ if instruction.share is not None:
            return positions.remove(terms, position, instruction.share)
        case _:
            raise Refused(f"a {instruction.action} lacks what it is about")


def _count_named(left: Leftover | None, counterpart: int | None) -> Leftover | None:
    """The unused part of a token that was not named is no leftover: it is room for the price to move."""
    match counterpart:
        case 0 if left is not None:
            return replace(left, amount0=0, whole0=left.whole0 - left.amount0)
        case 1 if left is not None:
            return replace(left, amount1=0, whole1=left.whole1 - left.amount1)
        case _:
            return left


def _spending_caps(
    plan: StepPlan, onchain: OnChainState, bounds: Bounds
) -> tuple[dict[Address, int], tuple[Flow, ...]]:
    """The most of each currency that one step may take, and what a first half may pay for a second to spend."""
    caps: dict[Address, int] = {}
    for step in plan.steps:
        for flow in step.most_out:
            caps[flow.currency] = max(caps.get(flow.currency, 0), flow.amount)
    if plan.later is None or onchain.position is None:
        return caps, ()
    key, paid = onchain.pool.key, most_proceeds(onchain.position, bounds.slippage_bps)
    return caps, flows((key.currency0, paid[0]), (key.currency1, paid[1]))


def _check_steps_against_policy(plan: StepPlan, policy: Policy, proceeds: tuple[Flow, ...]) -> None:
    for step in plan.steps:
        verify_step(step, policy)
    later = replace(policy, most_out={flow.currency: flow.amount for flow in proceeds})
    for step in plan.later.preview if plan.later else ():
        verify_step(step, later)


def check_named_tokens_used(instruction: Instruction, onchain: OnChainState) -> None:
    """Every named token must be used at this block's price; one token alone may be swapped, so always is."""
    band = instruction.range if onchain.position is None else onchain.position.range
    added = instruction.action is Action.ADD
    if band is not None and (added or (len(instruction.named_amounts) > 1 and not instruction.use_all)):
        check_tokens_used(onchain.pool, band, instruction.named_amounts)


def check_capital_limits(
    instruction: Instruction, pool: PoolState, wrapper: Address | None, steps: Sequence[Step]
) -> None:
    """All steps together take no more of any currency than the instruction names. A later half is held to what the
    first half paid when it is built."""
    taken: dict[Address, int] = {}
    for step in steps:
        for flow in step.most_out:
            taken[flow.currency] = taken.get(flow.currency, 0) + flow.amount
        if step.to == wrapper:  # by the policy only native coin that is wrapped goes there
            taken[step.to] = taken.get(step.to, 0) - step.value
    key, brings, coin = pool.key, instruction.action in (Action.CREATE, Action.ADD), native_coin(instruction.chain)
    most = {key.currency0: instruction.capital0, key.currency1: instruction.capital1} if brings else {}
    if instruction.brings_ether and wrapper is not None:
        most[NATIVE] = most.pop(wrapper, 0)
    for currency, amount in taken.items():
        if amount > most.get(currency, 0):
            named, would = (amount_text(pool, currency, each, coin) for each in (most.get(currency, 0), amount))
            raise Refused(f"The plan would take {would} from the wallet; {named} was named or shown when it was made.")


def _left_notes(tried: SimulatedDraft, wrapper: Address | None) -> Iterator[str]:
    """Of every named amount that goes in only in part: how much of it does at this block's price, and why no more."""
    draft, changes = tried.draft, tried.changes
    instruction, pool, position = draft.instruction, draft.pool, draft.position
    last = all_steps(draft)[-1]
    decoded = decode(last.to, last.value, last.data, tried.swaps)
    most = max_outflow(decoded, (pool.key.currency0, pool.key.currency1))
    from_credit = any(isinstance(action, MintFromDeltas | IncreaseFromDeltas) for action in decoded.position_actions)
    for side, amount in instruction.named_amounts.items():
        sides = ((pool.token0, instruction.capital0), (pool.token1, instruction.capital1))
        (token, _), (other, beside) = sides[side], sides[1 - side]
        fees = 0 if position is None else (position.fees0, position.fees1)[side]
        wrapped = changes.get(NATIVE, 0) if instruction.brings_ether and token.address == wrapper else 0
        goes_in = fees - changes.get(token.address, 0) - wrapped
        if amount - goes_in <= amount // _NOTED:
            continue
        why, with_it = f"room for the price to move by {draft.bounds.slippage_bps} bps", ""
        if beside and (from_credit or amount - most.get(token.address, 0) > amount // _NOTED):
            with_it = f"{format_units(beside, other.decimals)} {other.symbol}"
            fixed = instruction.counterpart == 1 - side
            with_it = f"{with_it} at most were set to go with it" if fixed else f"there are {with_it} to go with it"
        if from_credit:
            why = with_it or ("" if draft.leftover is None else draft.leftover.why)
        elif with_it:
            why = f"{with_it}, and {why}"
        yield (
            f"of {format_units(amount, token.decimals)} {token.symbol} {format_units(goes_in, token.decimals)} go in "
            f"at this price, the rest stays in the wallet: {why}"
        )


_NOTED: Final = 1_000
"""A note is added when more than one part in so many of a named amount stays in the wallet."""


def _gas_limits(steps: Sequence[Step], simulation: Simulation) -> tuple[int, ...]:
    """What each step may use at most: by what it used when it was tried, or by what such steps were measured to use."""
    tried = simulation.calls if simulation.how is SimulationMethod.SIMULATED else ()
    used = [*(call.gas_used for call in tried), *[0] * (len(steps) - len(tried))]
    return tuple(GAS_MARGIN * max(units, measured_gas(step.kind)) for units, step in zip(used, steps, strict=True))


def measured_gas(kind: StepKind) -> int:
    """As the contracts used it; kinds without a line of their own use no more than a mint."""
    return MEASURED_GAS.get(kind, MEASURED_GAS[StepKind.MINT])


async def _read_position(context: ExecutionContext, position_id: int) -> LpPosition:
    held = await context.chain.positions([position_id])
    if held.positions:
        return held.positions[0]
    missing = held.missing[0]
    if missing.unread:
        raise Unavailable(f"Position {position_id} could not be read: {missing.reason}; try again.")
    raise NotFound(f"Position {position_id} is gone ({missing.reason}).")


def least_change(steps: Sequence[Step], currency: Address) -> int:
    """What these steps do to the wallet's holding of one currency at worst, gas apart."""
    gained = sum(flow.amount for step in steps for flow in step.least_in if flow.currency == currency)
    return gained - sum(flow.amount for step in steps for flow in step.most_out if flow.currency == currency)


def step_name(step: Step) -> str:
    """A step's name on screens."""
    return step.kind.replace("_", " ")


def decode_step(context: ExecutionContext, step: Step) -> DecodedCall:
    """A step's calldata, decoded."""
    return decode(step.to, step.value, step.data, context.info.deployment.swap_struct)


def step_call(step: Step) -> Call:
    return Call(step.to, step.value, step.data)


def all_steps(draft: Draft) -> tuple[Step, ...]:
    """The first half as it would be signed, and the second as it would be if nothing moved."""
    return (*draft.steps, *(() if draft.later is None else draft.later.preview))


def data_fee(steps: Sequence[Step], gas: GasQuote) -> int:
    """What a rollup adds for posting these steps, where its own estimates of gas do not hold it already."""
    size = sum(len(step.data) + ENVELOPE_BYTES for step in steps)
    return gas.cost(0, size, estimated_here=True)


def suggest_fees(gas: GasQuote) -> Fees:
    """Room for the base fee to double, which takes six full blocks."""
    return Fees(Wei(2 * gas.base_fee + gas.priority_fee), gas.priority_fee)


def _add_note(plan: StepPlan, note: str) -> StepPlan:
    return replace(plan, notes=(*plan.notes, note)) if plan.later is not None else plan
