"""From an instruction to exact transactions on top of the head, tried out before anybody is asked to approve them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from zuno.core.carry import MEASURED_GAS
from zuno.core.depth import quotes
from zuno.core.inventory import QuoteSwap
from zuno.core.planning import minting, positions
from zuno.core.planning.calls import Decoded
from zuno.core.planning.decoding import decode
from zuno.core.planning.effects import effects
from zuno.core.planning.policy import guarding, verify
from zuno.core.planning.sizing import most_proceeds
from zuno.core.planning.terms import Terms, flows
from zuno.domain.chains import SwapStruct
from zuno.domain.debate import GasStep
from zuno.domain.errors import PoolRefusal, Refused, Unavailable, Unknown
from zuno.domain.execution import Bounds, Flow, Step, StepKind, StepPlan
from zuno.domain.market import GasQuote
from zuno.domain.pool import LpPosition, PoolKey, PoolState
from zuno.domain.tokens import NATIVE
from zuno.domain.units import Address, HexId, Wei
from zuno.execution.hands import Hands
from zuno.messages.execution import Action, Draft, GasBound, Instruction, RecipeRecord, StepRecord
from zuno.ports.spending import Call, Fees, Purse, Rehearsal, Rehearsing

_TRIES: Final = 4
GAS_MARGIN: Final = 2
"""What a step may use at most, over what it used when it was tried: the pool may have moved a few ticks by then."""
ENVELOPE_BYTES: Final = 130
"""Of a signed transaction, beside its calldata."""
FEE_MARGIN: Final = 2
"""What a unit of gas may cost at most, over what it costs now: so far a transaction that waits may be sped up."""


@dataclass(frozen=True, slots=True)
class Drafted:
    """A draft, and how it went when it was tried."""

    draft: Draft
    rehearsal: Rehearsal
    swaps: SwapStruct

    @property
    def how(self) -> str:
        return "simulated" if self.rehearsal.how is Rehearsing.SIMULATED else "computed"

    @property
    def changes(self) -> Mapping[Address, int]:
        """What the wallet gains and loses, gas apart: as the node tried it, else by our own arithmetic."""
        if self.rehearsal.how is Rehearsing.SIMULATED:
            return self.rehearsal.changes
        said = (decode(step.to, step.value, step.data, self.swaps) for step in all_steps(self.draft))
        return effects(said, self.draft.pool, self.draft.position)

    @property
    def sqrt_price_after_x96(self) -> int | None:
        return self.rehearsal.sqrt_price_after_x96

    @property
    def error(self) -> str | None:
        """Why it would not go through, with the step that would not."""
        for index, call in enumerate(self.rehearsal.calls):
            if call.error is not None:
                steps = all_steps(self.draft)
                return f"step {index + 1} ({name_of(steps[index])}) would revert: {call.error}"
        return self._short

    @property
    def _short(self) -> str | None:
        """A token that delivers less than it was sent, as some charge for a transfer, breaks what the steps promise."""
        tried = all_steps(self.draft)[: len(self.rehearsal.calls)]
        for currency, change in self.rehearsal.changes.items():
            least = least_change(tried, currency)
            if change < least:
                return (
                    f"the wallet's {currency} would change by {change}, the bound is {least}: "
                    f"does the token charge for transfers?"
                )
        return None


@dataclass(frozen=True, slots=True)
class Sight:
    """A pool, perhaps a position in it, and the wallet, all of one block."""

    wallet: Address
    pool: PoolState
    position: LpPosition | None
    purse: Purse

    def terms(self, hands: Hands, bounds: Bounds) -> Terms:
        wrapper = next((token.address for token in hands.info.tokens if token.symbol == "WETH"), None)
        return Terms(
            hands.info.deployment,
            self.wallet,
            self.purse.block.timestamp,
            self.purse.holdings,
            self.purse.allowances,
            bounds,
            wrapper,
        )


async def look(hands: Hands, wanted_pool: HexId, position_id: int | None) -> Sight:
    """Everything a plan is made from, at one block."""
    at = hands.info.deployment
    for _ in range(_TRIES):
        position = None if position_id is None else await _position(hands, position_id)
        pool = await hands.chain.pool(wanted_pool) if position is None else position.pool
        if pool.id != wanted_pool:
            raise Refused(f"position {position_id} lies in pool {pool.id}, the plan is about {wanted_pool}")
        tokens = currencies(pool.key)
        purse = await hands.writer.purse(hands.wallet, tokens, (at.position_manager, at.universal_router))
        if purse.block.hash == pool.block.hash:
            return Sight(hands.wallet, pool, position, purse)
    raise Unavailable("The chain moved on each time it was read; try again.")


def currencies(key: PoolKey) -> tuple[Address, ...]:
    """The pair, and ether, which pays for gas."""
    return tuple(dict.fromkeys((key.currency0, key.currency1, NATIVE)))


async def write_draft(hands: Hands, plan_id: str, plan_hash: str, told: Instruction) -> Drafted:
    """The instruction as transactions, held to the policy and tried on the latest block."""
    bounds = hands.limits.bounds
    sight = await look(hands, HexId(told.pool_id), told.position_id)
    terms = sight.terms(hands, bounds)
    plan = await _planned(hands, sight, terms, told)
    caps, proceeds = _caps(plan, sight, bounds)
    _hold_to_policy(hands, plan, sight, terms, caps, proceeds)
    steps = (*plan.steps, *(plan.later.preview if plan.later else ()))
    rehearsal = await hands.writer.rehearse(
        hands.wallet, [call_of(step) for step in steps], currencies(sight.pool.key), sight.pool.id
    )
    gas = await hands.chain.gas()
    draft = Draft(
        plan_id=plan_id,
        plan_hash=plan_hash,
        instruction=told,
        chain_id=hands.info.id,
        genesis=await hands.writer.genesis(),
        wallet=hands.wallet,
        block=sight.purse.block,
        pool=sight.pool,
        position=sight.position,
        bounds=bounds,
        expires=terms.deadline,
        caps=tuple(Flow(currency, amount) for currency, amount in caps.items()),
        proceeds=proceeds,
        gas=GasBound(
            max_fee=Wei(FEE_MARGIN * first_fees(gas).max_fee),
            units=_units(steps, rehearsal),
            data_fee=Wei(FEE_MARGIN * data_fee(steps, gas)),
        ),
        steps=tuple(map(StepRecord.of, plan.steps)),
        later=None if plan.later is None else RecipeRecord.of(plan.later),
        notes=plan.notes,
    )
    return Drafted(draft, rehearsal, hands.info.deployment.swap_struct)


async def _planned(hands: Hands, sight: Sight, terms: Terms, told: Instruction) -> StepPlan:
    quote = await quoting(hands, sight.pool, sight.position)
    if quote is None:
        return _with_note(_built(sight, terms, told, None), _ESTIMATED)
    try:
        return _built(sight, terms, told, quote)
    except Unavailable:  # the swap would leave the ticks that were read
        return _with_note(_built(sight, terms, told, None), _ESTIMATED)


_ESTIMATED = "the swap is quoted from the liquidity at the price, not from the whole pool"


async def quoting(hands: Hands, pool: PoolState, position: LpPosition | None) -> QuoteSwap | None:
    """Exact quotes of the pool without our liquidity; None where its ticks cannot be read at that block."""
    try:
        depth = await hands.writer.depth(pool.id)
    except (Unavailable, PoolRefusal):
        return None
    return None if depth.pool.sqrt_price_x96 != pool.sqrt_price_x96 else quotes(depth, position)


def _built(sight: Sight, terms: Terms, told: Instruction, quote: QuoteSwap | None) -> StepPlan:
    band = told.range
    match told.action, sight.position, band:
        case Action.CREATE, None, band_ if band_ is not None:
            return minting.create(
                terms,
                sight.pool,
                band_,
                told.capital0,
                told.capital1,
                brings_ether=told.brings_ether,
                quotes=quote,
            )
        case Action.REBALANCE, LpPosition() as position, band_ if band_ is not None:
            return positions.rebalance(terms, position, band_, quotes=quote)
        case Action.CLOSE, LpPosition() as position, _:
            return positions.close(terms, position)
        case Action.COLLECT, LpPosition() as position, _:
            return positions.collect(terms, position)
        case Action.ADD, LpPosition() as position, _:
            return positions.add(terms, position, told.capital0, told.capital1)
        case Action.REMOVE, LpPosition() as position, _ if told.share is not None:
            return positions.remove(terms, position, told.share)
        case _:
            raise Refused(f"a {told.action} lacks what it is about")


def _caps(plan: StepPlan, sight: Sight, bounds: Bounds) -> tuple[dict[Address, int], tuple[Flow, ...]]:
    """The most of each currency that one step may take, and what a first half may pay for a second to spend."""
    caps: dict[Address, int] = {}
    for step in plan.steps:
        for flow in step.most_out:
            caps[flow.currency] = max(caps.get(flow.currency, 0), flow.amount)
    if plan.later is None or sight.position is None:
        return caps, ()
    key, paid = sight.pool.key, most_proceeds(sight.position, bounds.slippage_bps)
    return caps, flows((key.currency0, paid[0]), (key.currency1, paid[1]))


def _hold_to_policy(
    hands: Hands,
    plan: StepPlan,
    sight: Sight,
    terms: Terms,
    caps: dict[Address, int],
    proceeds: tuple[Flow, ...],
) -> None:
    policy = guarding(terms, sight.pool.key, caps, sight.position, hands.limits.hooks)
    for step in plan.steps:
        verify(step, policy)
    later = replace(policy, most_out={flow.currency: flow.amount for flow in proceeds})
    for step in plan.later.preview if plan.later else ():
        verify(step, later)


def _units(steps: Sequence[Step], rehearsal: Rehearsal) -> tuple[int, ...]:
    """What each step may use at most: by what it used when it was tried, or by what such steps were measured to use."""
    tried = rehearsal.calls if rehearsal.how is Rehearsing.SIMULATED else ()
    used = [*(call.gas_used for call in tried), *[0] * (len(steps) - len(tried))]
    return tuple(GAS_MARGIN * max(units, measured_gas(step.kind)) for units, step in zip(used, steps, strict=True))


def measured_gas(kind: StepKind) -> int:
    """As the contracts used it; kinds without a line of their own use no more than a mint."""
    lines = {str(line): units for line, units in MEASURED_GAS.items()}
    return lines.get(str(kind), MEASURED_GAS[GasStep.MINT])


async def _position(hands: Hands, position_id: int) -> LpPosition:
    found = await hands.chain.positions([position_id])
    if found.positions:
        return found.positions[0]
    missing = found.missing[0]
    if missing.unread:
        raise Unavailable(f"Position {position_id} could not be read: {missing.reason}; try again.")
    raise Unknown(f"Position {position_id} is gone ({missing.reason}).")


def least_change(steps: Sequence[Step], currency: Address) -> int:
    """What these steps do to the wallet's holding of one currency at worst, gas apart."""
    gained = sum(flow.amount for step in steps for flow in step.least_in if flow.currency == currency)
    return gained - sum(flow.amount for step in steps for flow in step.most_out if flow.currency == currency)


def name_of(step: Step) -> str:
    """What a step is called where people read."""
    return step.kind.replace("_", " ")


def said_by(hands: Hands, step: Step) -> Decoded:
    """What a step's bytes say."""
    return decode(step.to, step.value, step.data, hands.info.deployment.swap_struct)


def call_of(step: Step) -> Call:
    return Call(step.to, step.value, step.data)


def all_steps(draft: Draft) -> tuple[Step, ...]:
    """The first half as it would be signed, and the second as it would be if nothing moved."""
    later = () if draft.later is None else draft.later.preview
    return tuple(record.step() for record in (*draft.steps, *later))


def data_fee(steps: Sequence[Step], gas: GasQuote) -> int:
    """What a rollup adds for posting these steps, where its own estimates of gas do not hold it already."""
    size = sum(len(step.data) + ENVELOPE_BYTES for step in steps)
    return gas.cost(0, size, estimated_here=True)


def first_fees(gas: GasQuote) -> Fees:
    """Room for the base fee to double, which takes six full blocks."""
    return Fees(Wei(2 * gas.base_fee + gas.priority_fee), gas.priority_fee)


def _with_note(plan: StepPlan, note: str) -> StepPlan:
    return replace(plan, notes=(*plan.notes, note)) if plan.later is not None else plan
