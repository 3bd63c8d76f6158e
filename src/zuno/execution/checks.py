"""Why the gate says no: every refusal names the bound and the number that broke it. Nothing here acts."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from zuno.core.planning.policy import guarding, verify
from zuno.core.reference import REFERENCE_LIMIT, reference_gap
from zuno.domain.errors import Malformed, Refused, Unavailable
from zuno.domain.execution import Allows, Bounds, Flow, Holds, Need, Owns, Permits, Step, StepKind, TickWithin
from zuno.domain.market import GasQuote, Pair
from zuno.domain.pool import PoolState
from zuno.domain.tokens import NATIVE, human, is_stable, market_name, quoted
from zuno.domain.units import Address, Seconds
from zuno.execution.book import Book, draft_digest
from zuno.execution.drafting import GAS_MARGIN, Sight, all_steps, data_fee
from zuno.execution.hands import Hands
from zuno.messages.codec import canonical, digest
from zuno.messages.execution import Action, Approval, Draft, Instruction, PlanApplying, PlanApproved
from zuno.ports.signing import NodeKey

_SEAL: Final = b"zuno approval of a plan, version 1\n"
DAY_MILLIS: Final = 24 * 3600 * 1000
_MOST_A_DAY: Final = 10_000


# -- the approval


def signing_bytes(approval: Approval) -> bytes:
    return _SEAL + canonical(approval)


def approval_hash(approval: Approval) -> str:
    """What a person is shown and what is signed is this."""
    return digest(signing_bytes(approval))


def check_approval(book: Book, key: NodeKey) -> Draft:
    """What was approved, if it was: a row in a database is no approval, a signature over exactly this is."""
    approved, draft = book.approved, book.draft
    if approved is None or draft is None:
        raise Refused(f"{book.plan_id} was not approved; `zuno plan approve {book.plan_id}` shows what it would do.")
    said = approved.approval
    if not _signed(approved, key):
        raise Refused(f"The approval of {book.plan_id} does not carry this node's signature; approve the plan again.")
    if said.draft != draft_digest(draft):
        raise Refused(f"What was approved of {book.plan_id} is not what is on record; approve the plan again.")
    if {said.plan_id, draft.plan_id} != {book.plan_id}:
        raise Refused(f"The approval is of {said.plan_id}, not of {book.plan_id}.")
    bound = (said.plan_hash, said.chain_id, said.genesis, said.wallet, said.expires)
    if bound != (draft.plan_hash, draft.chain_id, draft.genesis, draft.wallet, draft.expires):
        raise Refused(f"The approval of {book.plan_id} and its transactions differ; approve the plan again.")
    return draft


def _signed(approved: PlanApproved, key: NodeKey) -> bool:
    return key.verify(key.public, signing_bytes(approved.approval), bytes.fromhex(approved.signature))


class Expired(Refused):
    """The approval has run out."""


def check_in_time(draft: Draft, now: Seconds) -> None:
    if now > draft.expires:
        raise Expired(
            f"The approval of {draft.plan_id} expired at {draft.expires}, {now - draft.expires} s ago by the chain's "
            f"own time; approve the plan again."
        )


async def check_chain(hands: Hands, draft: Draft) -> None:
    """The chain that was approved, not another of the same id."""
    if hands.info.id != draft.chain_id:
        raise Refused(f"The approval is for chain id {draft.chain_id}, this is {hands.info.id}.")
    genesis = await hands.writer.genesis()
    if genesis != draft.genesis:
        raise Refused(f"The approval is for a chain that began with {draft.genesis[:12]}…, this one {genesis[:12]}….")
    if hands.wallet != draft.wallet:
        raise Refused(f"The approval is for the wallet {draft.wallet}, the wallet here is {hands.wallet}.")


# -- the world


async def check_market(hands: Hands, told: Instruction, pool: PoolState, bounds: Bounds) -> None:
    """The pool against the decision and against the rest of the world; fees are collected at any price."""
    if told.action is not Action.COLLECT:
        check_drift(told, pool, bounds)
        await check_reference(hands, pool)


def check_drift(told: Instruction, pool: PoolState, bounds: Bounds) -> None:
    """How far the pool has moved since the decision was made."""
    moved = abs(pool.tick - told.tick)
    if moved > bounds.tick_drift:
        raise Refused(
            f"The pool is at tick {pool.tick}, {moved} ticks from the {told.tick} this was decided at; "
            f"the bound is {bounds.tick_drift} (tick drift). Ask for a new plan."
        )


async def check_reference(hands: Hands, pool: PoolState) -> str:
    """The pool's price against the rest of the world's; returns who said so."""
    base, quote = quoted(pool.token0, pool.token1)
    spot = await hands.feeds_of(pool.id).prices.spot(Pair(market_name(base), market_name(quote)), pool.block.timestamp)
    gap = reference_gap(pool, spot.value)
    if gap > REFERENCE_LIMIT:
        raise Refused(
            f"The pool's price is {_percent(gap)} off the reference ({spot.source}); the bound is "
            f"{_percent(REFERENCE_LIMIT)}. Wait until the two agree."
        )
    return spot.source


def check_needs(step: Step, sight: Sight, after: Sequence[Step] = ()) -> None:
    """Whatever has to hold before this step, read from the chain again; `after`: steps that come before it and bring
    some of it about."""
    wrapped = {flow.currency for one in after if one.kind is StepKind.WRAP for flow in one.least_in}
    for need in step.needs:
        match need:
            case Allows() | Permits() if after:
                continue  # the plan's own approvals come first
            case Holds(currency, _) if currency in wrapped:
                continue
            case _:
                _check_need(need, sight)


def _check_need(need: Need, sight: Sight) -> None:
    purse, position, pool = sight.purse, sight.position, sight.pool
    match need:
        case Holds(currency, amount):
            have = purse.holdings.get(currency, 0)
            if have < amount:
                raise Refused(f"The wallet holds {_told(have, currency, pool)}, the step may take "
                              f"{_told(amount, currency, pool)}.")  # fmt: skip
        case Allows(token, amount):
            have = purse.allowances.to_permit2.get(token, 0)
            if have < amount:
                raise Refused(f"Permit2 may take {_told(have, token, pool)}, the step needs "
                              f"{_told(amount, token, pool)}.")  # fmt: skip
        case Permits(token, spender, amount, until):
            grant = purse.allowances.grant(token, spender)
            if grant.amount < amount:
                raise Refused(f"{spender} may take {_told(grant.amount, token, pool)} through Permit2, the step needs "
                              f"{_told(amount, token, pool)}.")  # fmt: skip
            if grant.until < until:
                raise Refused(f"The permit for {spender} ends at {grant.until}, the step may run until {until}.")
        case Owns(token_id, liquidity):
            if position is None or position.id != token_id:
                raise Refused(f"Position {token_id} is not there any more.")
            if position.owner != sight.wallet:
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


def check_policy(hands: Hands, step: Step, sight: Sight, draft: Draft, caps: tuple[Flow, ...]) -> None:
    """The last look at the bytes before they are signed."""
    position = sight.position if sight.position is not None else draft.position
    allowed = {flow.currency: flow.amount for flow in caps}
    terms = sight.terms(hands, draft.bounds)
    verify(step, guarding(terms, draft.pool.key, allowed, position, hands.limits.hooks))


def check_gas(
    sight: Sight, step: Step, units: int, max_fee: int, bound_units: int, bound_fee: int, data_fee: int = 0
) -> None:
    """Gas against its bounds, and against the ether that is there to pay for it; `data_fee` is a rollup's for posting
    the step."""
    if units > bound_units:
        raise Refused(f"The step would use up to {units} gas; the bound is {bound_units}.")
    if max_fee > bound_fee:
        raise Refused(f"A unit of gas costs up to {max_fee} wei; the bound is {bound_fee} wei.")
    need, have = units * max_fee + data_fee + step.value, sight.purse.holdings.get(NATIVE, 0)
    if have < need:
        raise Refused(f"The wallet holds {human(have, 18)} ETH; gas and value may take {human(need, 18)} ETH.")


def check_whole_gas(sight: Sight, draft: Draft, gas: GasQuote) -> None:
    """Ether for all of the plan at today's price of gas, before its first step: stopping half-way costs gas, too."""
    units = sum(draft.gas.units) // GAS_MARGIN
    value = sum(record.value for record in draft.steps)
    posting = data_fee(all_steps(draft), gas)
    if posting > draft.gas.data_fee:
        raise Refused(
            f"Posting the plan's data costs {human(posting, 18)} ETH; the bound is {human(draft.gas.data_fee, 18)} ETH."
        )
    need, have = units * gas.price + posting + value, sight.purse.holdings.get(NATIVE, 0)
    if have < need:
        raise Refused(
            f"The wallet holds {human(have, 18)} ETH; gas and value of the whole plan take about {human(need, 18)} "
            f"ETH. Send some ether to {sight.wallet} first."
        )


# -- how much may be spent


async def check_spend(hands: Hands, draft: Draft) -> Decimal | None:
    """What leaves the wallet by this plan in dollars, against the owner's caps; None where it is play money."""
    out = [
        flow
        for record in draft.steps
        if record.kind is not StepKind.WRAP
        for flow in record.most_out
    ]  # fmt: skip
    worth: Fraction = Fraction(0)
    for flow in out:
        usd = await _usd(hands, draft.pool, flow)
        if usd is None:
            if hands.local:
                return None
            raise Refused(
                f"Nobody can say what {_told(flow.amount, flow.currency, draft.pool)} is worth in dollars, so the "
                f"spending caps cannot be held."
            )
        worth += usd
    spend = Decimal(worth.numerator) / Decimal(worth.denominator)
    if spend > hands.limits.usd_per_plan:
        raise Refused(
            f"The plan may take ${spend:,.2f} from the wallet; the cap for one plan is "
            f"${hands.limits.usd_per_plan:,.2f} (ZUNO_SPEND_USD_PER_PLAN)."
        )
    today = await _spent_today(hands, draft.plan_id)
    if today + spend > hands.limits.usd_per_day:
        raise Refused(
            f"The plan may take ${spend:,.2f} on top of ${today:,.2f} in the last 24 hours; the cap for a day is "
            f"${hands.limits.usd_per_day:,.2f} (ZUNO_SPEND_USD_PER_DAY)."
        )
    return spend


async def _spent_today(hands: Hands, plan_id: str) -> Decimal:
    """Every plan that began in the last 24 hours counts in full, however it ended; play money is counted apart."""
    total, seen = Decimal(0), {plan_id}
    for entry in await hands.journal.latest(_MOST_A_DAY, kind=PlanApplying.kind):
        said = PlanApplying.model_validate(dict(entry.payload))
        if entry.at < hands.now() - DAY_MILLIS or said.plan_id in seen or said.play_money != hands.local:
            continue
        seen.add(said.plan_id)
        total += said.spend_usd or 0
    return total


async def _usd(hands: Hands, pool: PoolState, flow: Flow) -> Fraction | None:
    first = flow.currency == pool.key.currency0
    token, other = (pool.token0, pool.token1) if first else (pool.token1, pool.token0)
    if flow.currency == NATIVE:
        token = next(one for one in hands.info.tokens if one.native)
    whole = Fraction(flow.amount, 10**token.decimals)
    if is_stable(token):
        return whole
    if is_stable(other) and flow.currency in (pool.key.currency0, pool.key.currency1):
        price = pool.price if first else 1 / pool.price
        return flow.amount * price / Fraction(10**other.decimals)
    if market_name(token) != "ETH":
        return None
    try:
        native = await hands.feeds_of(pool.id).native.native("USDC", pool.block.timestamp)
    except (Unavailable, Malformed):
        return None
    return whole * native.value


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.2f} %"


def _told(amount: int, currency: Address, pool: PoolState) -> str:
    for token in (pool.token0, pool.token1):
        if token.address == currency:
            return f"{human(amount, token.decimals)} {token.symbol}"
    return f"{human(amount, 18)} ETH" if currency == NATIVE else f"{amount} of {currency}"
