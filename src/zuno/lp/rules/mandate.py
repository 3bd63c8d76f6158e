"""What a mandate covers: its grant, its levels, and every bound of an act. Nothing here reads or acts."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from zuno.amm.model import PoolState, price_of, sqrt_price_for, whole_price
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.canonical import Digest, canonical, digest
from zuno.kernel.clock import iso
from zuno.kernel.errors import Refused
from zuno.kernel.numbers_text import decimal_text
from zuno.kernel.units import Millis, Tick, Wei
from zuno.lp.model.mandate import ExitTerms, LpMandate, MandatedAct
from zuno.lp.model.plan_events import Action, Instruction, SwapHome

LONGEST_MANDATE: Final = 30 * 86_400_000
ACT_OF: Final = {
    Action.CLOSE: MandatedAct.EXIT,
    Action.REBALANCE: MandatedAct.REBALANCE,
    Action.COMPOUND: MandatedAct.COMPOUND,
}
_PREFIX: Final = b"zuno mandate of a wallet's liquidity, version 1\n"


def mandate_bytes(mandate: LpMandate) -> bytes:
    """What the node signs."""
    return _PREFIX + canonical(mandate)


def hash_mandate(mandate: LpMandate) -> Digest:
    return digest(mandate_bytes(mandate))


def check_grant(mandate: LpMandate, now: Millis) -> None:
    """`Refused` for a mandate that nobody may grant."""
    ends = mandate.exit
    if not mandate.positions and not mandate.pools:
        raise Refused("A mandate names the positions or the pools it is for.")
    if not mandate.acts:
        raise Refused("A mandate allows something: an exit, --rebalance, --compound or --hedge.")
    if mandate.expires <= max(now, mandate.granted):
        raise Refused(f"A mandate that ended at {iso(mandate.expires)} allows nothing.")
    if mandate.expires - mandate.granted > LONGEST_MANDATE:
        raise Refused("A mandate lasts 30 days at most; grant it for less, and again when it ends.")
    if (MandatedAct.EXIT in mandate.acts) != (ends is not None):
        raise Refused("An exit needs its terms.")
    if ends is not None and ends.below and ends.above and ends.below >= ends.above:
        raise Refused(f"Below {ends.below} and above {ends.above}: every price is one or the other.")


def find_level(mandate: LpMandate, pool: PoolState) -> Decimal | None:
    """The level that the pool's price is beyond; none of a pair that the levels are not about."""
    ends, price = mandate.exit, whole_price(pool.sqrt_price_x96, pool.token0, pool.token1)
    if ends is None or mandate.pair not in (None, (pool.key.currency0, pool.key.currency1)):
        return None
    if ends.below is not None and price < ends.below:
        return ends.below
    return ends.above if ends.above is not None and price > ends.above else None


def plan_swap(mandate: LpMandate, pool: PoolState, tick: int) -> SwapHome | None:
    """What an exit swaps, and its worst rate: beyond its level, or beyond the price of the decision."""
    ends, level = mandate.exit, find_level(mandate, pool)
    if ends is None or ends.to == "as-is":
        return None
    at = sqrt_price_at_tick(Tick(tick)) if level is None else sqrt_price_for(Fraction(level), pool.token0, pool.token1)
    rate, kept = price_of(at), 1 - Fraction(ends.worst_percent) / 100
    return SwapHome(to=0, least_rate=kept / rate) if ends.to == "token0" else SwapHome(to=1, least_rate=kept * rate)


@dataclass(frozen=True, slots=True)
class ProposedAct:
    """An act as the gate would approve it, and what was done before it."""

    instruction: Instruction
    pool: PoolState
    covered: bool
    """It is about a position that the mandate names, or one of its pools."""
    worth_usd: Fraction | None
    gas: Wei
    moved_today_usd: Decimal
    gas_today: int
    last_act: Millis | None


def find_act_refusal(mandate: LpMandate, act: ProposedAct, now: Millis) -> str | None:
    told, ends = act.instruction, mandate.exit
    kind = ACT_OF.get(told.action)
    if not mandate.granted <= now < mandate.expires:
        return f"the mandate is good from {iso(mandate.granted)} to {iso(mandate.expires)}"
    if not act.covered or told.others or told.position_id is None:
        return f"the mandate does not name position {told.position_id}"
    if kind is None or kind not in mandate.acts or told.anyway:
        return f"the mandate allows {', '.join(mandate.acts)}, not {told.action}"
    if told.hedge is not None and MandatedAct.HEDGE not in mandate.acts:
        return "it comes with a hedge, and the mandate allows none (`--hedge`)"
    level = find_level(mandate, act.pool) if kind is MandatedAct.EXIT else None
    if kind is MandatedAct.EXIT and ends is not None:
        if (why := _find_exit_refusal(mandate, ends, act, level)) is not None:
            return why
    elif told.swap_home is not None or told.in_a_crash:
        return "only an exit swaps into one token, or is done in a crash"
    if act.worth_usd is None:
        return "nobody can say what the position is worth in dollars, so the cap of a day cannot be held"
    if Fraction(act.moved_today_usd) + act.worth_usd > Fraction(mandate.worth_usd_per_day):
        return (
            f"${float(act.worth_usd):,.2f} on top of ${act.moved_today_usd:,.2f} in 24 hours would be more than the "
            f"mandate's ${mandate.worth_usd_per_day:,.2f} a day"
        )
    if act.gas_today + act.gas > mandate.gas_cap(kind):
        return (
            f"gas of up to {act.gas} wei on top of {act.gas_today} wei in 24 hours would be more than the mandate's "
            f"{mandate.gas_cap(kind)} wei a day"
        )
    if level is None and act.last_act is not None and now - act.last_act < 1_000 * mandate.least_gap:
        return f"the last act was at {iso(act.last_act)}, and {mandate.least_gap} s lie between two"
    return None


def _find_exit_refusal(mandate: LpMandate, ends: ExitTerms, act: ProposedAct, level: Decimal | None) -> str | None:
    told, price = act.instruction, whole_price(act.pool.sqrt_price_x96, act.pool.token0, act.pool.token1)
    if level is None and not ends.when_close_wins:
        return f"the price is {decimal_text(price, 8)} {ends.unit}, and no level is reached"
    if level is not None and abs(price / Fraction(level) - 1) > Fraction(ends.worst_percent) / 100:
        return (
            f"the price is {decimal_text(price, 8)} {ends.unit}, more than {ends.worst_percent} % beyond the level "
            f"{level}: that is worse than the worst price"
        )
    if told.in_a_crash and not ends.in_a_crash:
        return "the mandate says nothing of a crash (`--in-a-crash`)"
    if told.swap_home != plan_swap(mandate, act.pool, told.tick):
        return f"the mandate exits into {ends.to} at its worst price, and this is another swap"
    return None
