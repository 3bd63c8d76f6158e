"""Compares the chain after the last receipt with the plan: positions, liquidity and wallet balances."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final, NamedTuple

from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import LpPosition, price_of
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.draft import currencies, decode_step, least_change, left_in_wallet, list_positions, plan_currencies
from zuno.lp.execute.plan_state import PlanPart, PlanProgress, StepProgress
from zuno.lp.model.chains import native_coin
from zuno.lp.model.plan import BPS, Flow, Leftover, Step, StepState, WalletState
from zuno.lp.model.plan_events import Action, Draft
from zuno.lp.plan.calls import Action as ChainAction
from zuno.lp.plan.calls import Burn, Decrease, Increase, IncreaseFromDeltas, Mint, MintFromDeltas
from zuno.lp.plan.context import amount_text
from zuno.lp.plan.inventory import worth_token1


class ChainOutcome(NamedTuple):
    """The new position, if any, every difference from the plan, and what stayed in the wallet."""

    new_id: int | None
    problems: tuple[str, ...]
    leftover: Leftover | None


async def verify_outcome(context: ExecutionContext, progress: PlanProgress, draft: Draft) -> ChainOutcome:
    """What the chain shows once the last step is final."""
    done = [step for step in progress.steps if step.state is StepState.FINAL]
    problems: list[str] = []
    new_id: int | None = None
    for step in done:
        actions = position_actions(context, step.step)
        for action in actions:
            match action:
                case Mint() | MintFromDeltas():
                    new_id = _minted_position_id(step, problems)
                    if new_id is not None:
                        problems += await _check_mint(context, new_id, action)
                case Burn(token_id=token_id):
                    if await _read_position(context, token_id) is not None:
                        problems.append(f"position {token_id} was burned and is still there")
                case Increase(token_id=token_id, liquidity=liquidity):
                    more = any(isinstance(each, IncreaseFromDeltas) for each in actions)
                    problems += await _check_liquidity(context, draft, token_id, liquidity, more=more)
                case Decrease(token_id=token_id, liquidity=liquidity):
                    problems += await _check_liquidity(context, draft, token_id, -liquidity)
                case _:
                    pass
    wallet_state = await context.writer.wallet_state(context.wallet, plan_currencies(draft), ())
    changes = _measure_changes(progress, wallet_state)
    problems += _check_balances(progress, draft, done, changes)
    if not problems and draft.instruction.action in (Action.ADD, Action.COMPOUND):
        problems += await _check_added(context, draft, changes)
    opened = None if new_id is None else await _read_position(context, new_id)
    leftover = draft.leftover
    if leftover is not None:  # what the wallet has more of, of all that was brought, or that burn and swap pay
        left0, left1 = left_in_wallet(draft, changes)
        leftover = replace(leftover, amount0=left0, amount1=left1) if changes else None
    if opened is not None and leftover is not None:
        problems += _check_put_in(draft, opened, leftover)
    return ChainOutcome(new_id, tuple(problems), leftover)


def position_actions(context: ExecutionContext, step: Step) -> tuple[ChainAction, ...]:
    """The position actions of a step, decoded from its calldata."""
    return decode_step(context, step).position_actions


def _minted_position_id(step: StepProgress, problems: list[str]) -> int | None:
    ids = () if step.mined is None else step.mined.minted
    if len(ids) != 1:
        problems.append(f"one position was to be opened, the receipt tells of {len(ids)}")
    return ids[0] if ids else None


async def _check_mint(context: ExecutionContext, token_id: int, asked: Mint | MintFromDeltas) -> list[str]:
    position = await _read_position(context, token_id)
    if position is None:
        return [f"position {token_id} was opened and cannot be found"]
    problems = []
    if position.range != asked.range:
        problems.append(
            f"position {token_id} lies in ticks {position.range.lower} to {position.range.upper}, asked for were "
            f"{asked.range.lower} to {asked.range.upper}"
        )
    if position.pool.key != asked.key:
        problems.append(f"position {token_id} lies in another pool than the plan's")
    if position.owner != context.wallet:
        problems.append(f"position {token_id} belongs to {position.owner}")
    least = asked.liquidity if isinstance(asked, Mint) else 1
    if position.liquidity < least:
        problems.append(f"position {token_id} holds liquidity {position.liquidity}, asked for was {least} at least")
    return problems


async def _check_liquidity(
    context: ExecutionContext, draft: Draft, token_id: int, by: int, *, more: bool = False
) -> list[str]:
    """`more`: what was left of the call's credit was added as well."""
    position = await _read_position(context, token_id)
    before = next((held for _, held in list_positions(draft) if held is not None and held.id == token_id), None)
    if position is None or before is None:
        return [f"position {token_id} cannot be found"]
    expected = before.liquidity + by
    if position.liquidity < expected or (position.liquidity > expected and not more):
        return [f"position {token_id} holds liquidity {position.liquidity}, {expected} was to be expected"]
    return []


def _check_balances(
    progress: PlanProgress, draft: Draft, done: list[StepProgress], changes: Mapping[Address, int]
) -> list[str]:
    """The wallet's balance changes against the least the steps allow, gas apart."""
    problems = []
    for currency, change in changes.items():
        if currency == NATIVE and progress.handed_out:
            continue  # what else a signer elsewhere paid gas for is not ours to know
        least = least_change([step.step for step in done], currency)
        if change < least:
            pool = next(pool for pool, _ in list_positions(draft) if currency in currencies(pool.key))
            coin = native_coin(draft.instruction.chain)
            gain, bound = (amount_text(pool, currency, each, coin) for each in (change, least))
            problems.append(
                f"the wallet changed by {gain}, the steps allow {bound} at worst: something is missing, or something "
                f"else was spent meanwhile"
            )
    return problems


def _measure_changes(progress: PlanProgress, wallet_state: WalletState) -> dict[Address, int]:
    """The wallet's balance changes since the plan's first signature without gas; empty if not recorded."""
    before = next((step.holdings for step in progress.steps if step.holdings), ())
    changes = {flow.currency: wallet_state.holdings.get(flow.currency, 0) - flow.amount for flow in before}
    return changes and {**changes, NATIVE: changes.get(NATIVE, 0) + gas_spent(progress)}


async def _check_added(context: ExecutionContext, draft: Draft, changes: Mapping[Address, int]) -> list[str]:
    """What has left the wallet, and the fees that did not come there, are in the position that was added to. Counted at
    the price of the plan, as a new position is. Fees that were earned meanwhile only come on top."""
    before = draft.position
    after = None if before is None else await _read_position(context, before.id)
    if not changes or before is None or after is None:
        return []
    price, key = draft.pool.sqrt_price_x96, draft.pool.key
    spent = worth_token1(
        before.fees0 - changes.get(key.currency0, 0), before.fees1 - changes.get(key.currency1, 0), price
    )
    added = max(0, after.liquidity - before.liquidity)
    put_in = worth_token1(*amounts_for_liquidity(price, *before.range.edges_x96, added, round_up=False), price)
    missing = spent - put_in
    if missing <= _rounding(price) + spent * draft.bounds.slippage_bps / BPS:
        return []
    return [_describe_missing(draft, missing, spent, before.id)]


def _check_put_in(draft: Draft, opened: LpPosition, leftover: Leftover) -> list[str]:
    """The new position and what stayed in the wallet are together what was brought, or what burn and swap pay, counted
    at the plan's price; a swap may pay less by its slippage."""
    planned = draft.leftover
    if planned is None:
        return []
    price = planned.sqrt_price_x96
    inside = amounts_for_liquidity(price, *opened.range.edges_x96, opened.liquidity, round_up=False)
    whole = worth_token1(planned.whole0, planned.whole1, price)
    put_in, left = worth_token1(*inside, price), worth_token1(leftover.amount0, leftover.amount1, price)
    room_bps = draft.bounds.slippage_bps + (0 if draft.later is None else draft.bounds.tick_drift)
    problems, token = [], draft.pool.key.currency1
    missing = whole - put_in - left
    if missing > whole * room_bps / BPS + _rounding(price):
        problems.append(_describe_missing(draft, missing, whole, opened.id))
    if put_in < whole * (1 - planned.share) * _LEAST_PUT_IN:
        texts = [amount_text(draft.pool, token, int(each)) for each in (put_in, whole)]
        problems.append(f"position {opened.id} holds {texts[0]} of {texts[1]}, far less than was planned")
    return problems


def _describe_missing(draft: Draft, missing: Fraction, whole: Fraction, position_id: int) -> str:
    texts = [amount_text(draft.pool, draft.pool.key.currency1, int(each)) for each in (missing, whole)]
    return (
        f"{texts[0]} of {texts[1]} are neither in position {position_id} nor in the wallet: something is missing, or "
        f"something else was spent meanwhile"
    )


def _rounding(sqrt_price_x96: int) -> Fraction:
    return _ROUNDING * (price_of(sqrt_price_x96) + 1)


_ROUNDING: Final = 4
"""Base units of either token: a burn and a mint round twice each."""
_LEAST_PUT_IN: Final = Fraction(9, 10)


def measure_proceeds(progress: PlanProgress, draft: Draft, holdings: Mapping[Address, int]) -> tuple[Flow, ...]:
    """What the first half brought, gas added back, and never more than the approval knew it could bring."""
    first = next(step for step in progress.steps if step.part is PlanPart.FIRST and (step.signed or step.handed_out))
    before = {flow.currency: flow.amount for flow in first.holdings}
    paid = []
    for flow in draft.proceeds:
        now = holdings.get(flow.currency, 0) + (gas_spent(progress) if flow.currency == NATIVE else 0)
        paid.append(Flow(flow.currency, min(flow.amount, max(0, now - before.get(flow.currency, 0)))))
    return tuple(paid)


def gas_spent(progress: PlanProgress) -> int:
    """Gas cost of all transactions of the plan, including cancelled and reverted ones."""
    return sum(step.reverted_cost + (step.mined.cost if step.mined else 0) for step in progress.steps)


async def _read_position(context: ExecutionContext, token_id: int) -> LpPosition | None:
    held = await context.chain.positions([token_id])
    return held.positions[0] if held.positions else None
