"""What an act costs beside what it moves: gas, and what its swap loses, in one line."""

from fractions import Fraction

from zuno.amm.model import LpPosition, price_of
from zuno.kernel.numbers_text import decimal_text
from zuno.kernel.text import Token, base_and_quote, is_stable
from zuno.kernel.view import ForeignText, View
from zuno.lp.execute.draft import SimulatedDraft, all_steps, data_fee
from zuno.lp.model.market import GasQuote
from zuno.lp.model.plan import StepKind
from zuno.lp.model.plan_events import Action, Draft
from zuno.lp.plan.inventory import burn_proceeds, worth_token1


class CostView(View):
    """In whole tokens of `unit`, as decimal strings; null where the gas has no price in it."""

    unit: str
    total: str | None
    percent: str | None
    """Of what is moved; null where nothing is, or where it has no price in the unit."""
    gas: str | None
    swap: str | None
    """Fee and impact; null where nothing is swapped."""
    stays_home_percent: str | None
    exceeds_moved: bool
    """It costs more than it moves: that is asked about a second time."""
    text: ForeignText
    """The line that every door shows."""


def weigh_cost(drafted: SimulatedDraft, gas: GasQuote, native: Fraction | None) -> CostView:
    """`native`: base units of token1 for one wei. Counted at the price before the plan; what the simulation did not
    try counts as such steps were measured."""
    draft, pool = drafted.draft, drafted.draft.pool
    _, quote = base_and_quote(pool.token0, pool.token1)
    unit = Fraction(10**quote.decimals) * (pool.price if quote == pool.token0 else 1)
    steps = all_steps(draft)
    wei = sum(drafted.gas_used) * gas.price + data_fee(steps, gas)
    spent = None if native is None else wei * native / unit
    swapped = any(step.kind in (StepKind.SWAP, StepKind.SWAP_AND_MINT) for step in steps)
    lost = (_swap_loss(drafted) if swapped else Fraction(0)) / unit
    moved = _moved(draft)
    total = None if spent is None else spent + lost
    share = total / (moved / unit) if total is not None and moved else None
    left = None if drafted.leftover is None else f"{float(100 * drafted.leftover.share):.2f}"
    percent = None if share is None else f"{float(100 * share):.3f}"
    total_text, gas_text, swap_text = _text(total, quote), _text(spent, quote), _text(lost, quote) if swapped else None
    parts = (
        f"costs {total_text} {quote.display_name}" + (f" ({percent} %)" if percent else "") + f": gas {gas_text}",
        f", swap fee and impact {swap_text}" if swapped else "",
        f"; stays home {left} %" if left else "",
    )
    return CostView(
        unit=quote.display_name,
        total=total_text,
        percent=percent,
        gas=gas_text,
        swap=swap_text,
        stays_home_percent=left,
        exceeds_moved=total is not None and moved is not None and total > moved / unit,
        text="costs: nobody can price its gas" if total is None else "".join(parts),
    )


def _swap_loss(drafted: SimulatedDraft) -> Fraction:
    draft, price = drafted.draft, drafted.draft.pool.sqrt_price_x96
    had = (draft.instruction.capital0, draft.instruction.capital1)
    if draft.position is not None:
        had = burn_proceeds(draft.position)
    planned, key = draft.leftover, draft.pool.key
    after = (0, 0) if planned is None else (planned.whole0, planned.whole1)
    if planned is None:  # all of it comes home
        after = drafted.changes.get(key.currency0, 0), drafted.changes.get(key.currency1, 0)
    return worth_token1(*had, price) - worth_token1(*after, price)


def _moved(draft: Draft) -> Fraction | None:
    """In base units of the first pool's token1; None where nothing is moved, or where it is of several pairs."""
    pool, instruction = draft.pool, draft.instruction
    held = [position for position in (draft.position, *draft.others) if position is not None]
    pairs = {(each.pool.token0.address, each.pool.token1.address) for each in held}
    if instruction.action is Action.REVOKE or len(pairs) > 1:
        return None
    if instruction.capital0 or instruction.capital1:
        return worth_token1(instruction.capital0, instruction.capital1, pool.sqrt_price_x96)
    return sum((_moved_of(draft, position) for position in held), Fraction(0))


def _moved_of(draft: Draft, position: LpPosition) -> Fraction:
    fees, price = (position.fees0, position.fees1), position.pool.sqrt_price_x96
    if draft.instruction.action in (Action.COLLECT, Action.COMPOUND):
        return worth_token1(*fees, price)
    share = draft.instruction.share or Fraction(1)
    principal = share * (position.amount0 * price_of(price) + position.amount1)
    return principal + worth_token1(*fees, price)


def _text(amount: Fraction | None, token: Token) -> str | None:
    if amount is None:
        return None
    return f"{float(amount):.2f}" if is_stable(token) else decimal_text(amount, 4)
