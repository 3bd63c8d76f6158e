"""The mandates of a home as the journal has them, and the check of an act under one: before its approval, and again
before its first signature."""

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from zuno.amm.model import LpPosition, PoolState
from zuno.journal.port import Author, Journal
from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis, Wei
from zuno.lp.execute.checks import DAY_MILLIS, usd_value
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.mandate_book import MandateBook, Place, load_mandates
from zuno.lp.model.mandate import (
    MANDATE_ENTRY,
    ActDecided,
    LpMandate,
    MandatedAct,
    MandateEvent,
    MandateGranted,
    MandateRecord,
)
from zuno.lp.model.plan import Flow
from zuno.lp.model.plan_events import Action, Draft, PlanOver, StepSigned
from zuno.lp.plan.inventory import burn_proceeds
from zuno.lp.rules.mandate import ACT_OF, ProposedAct, find_act_refusal, hash_mandate, mandate_bytes

MONITOR = Author("monitor")


async def find_end(journal: Journal, plan_id: str) -> PlanOver | None:
    """How a plan ended, without what led there."""
    found = await journal.latest(1, request_id=plan_id, kind=PlanOver.kind)
    return PlanOver.model_validate(dict(found[0].payload)) if found else None


async def list_opened(journal: Journal, book: MandateBook, name: str) -> set[int | None]:
    """The positions that came of a mandate's own acts."""
    ends = [await find_end(journal, act.plan_id) for _, act in book.acts if act.hash == name]
    return {end.new_position_id for end in ends if end is not None}


async def append_mandate_event(journal: Journal, event: MandateEvent, author: Author = MONITOR) -> None:
    plan = event.plan_id if isinstance(event, ActDecided) else None
    await journal.append(kind=MANDATE_ENTRY, author=author, payload=MandateRecord(of=event), request_id=plan)


@dataclass(frozen=True, slots=True)
class CheckedAct:
    worth_usd: Decimal
    gas: Wei


async def check_act(context: ExecutionContext, draft: Draft, name: str, *, verify: bool = False) -> CheckedAct:
    """`Refused` unless the mandate of this hash stands as it was signed, and covers this draft today. Whether it is
    revoked or acts are paused is asked last of all. `verify`: no entry since its grant was taken out."""
    journal, now = context.journal, context.now()
    book = await load_mandates(journal)
    granted = await check_standing(context, book, name)
    if verify:
        await journal.verify_range(book.numbers[name], None)
    position, told = draft.position, draft.instruction
    since = now - max(DAY_MILLIS, 1_000 * granted.mandate.least_gap)
    spent = await _list_spent(journal, book, draft, since)
    recent = [act for at, act in spent if at >= now - DAY_MILLIS]
    opened = await list_opened(journal, book, name)
    covered = position is not None and is_covered(granted, position.id, position.pool, opened)
    fees_alone = told.action is Action.COMPOUND
    worth = None if position is None else await count_worth(context, position, fees_alone=fees_alone)
    gas = Wei(draft.gas.max_fee * sum(draft.gas.units) + draft.gas.data_fee)
    proposed = ProposedAct(
        told,
        draft.pool,
        covered,
        worth,
        gas,
        sum((act.worth_usd for act in recent), Decimal(0)),
        await _sum_gas(journal, granted.mandate, ACT_OF.get(told.action), recent),
        max((at for at, _ in spent), default=None),
    )
    if (why := find_act_refusal(granted.mandate, proposed, now)) is not None or worth is None:
        raise Refused(f"{draft.plan_id} is not done under mandate {name[:16]}…: {why}.")
    latest = await load_mandates(journal)
    find_standing(latest, (context.info.name, context.wallet), name)
    if latest.paused:
        raise Refused("Acts under mandates are paused; `zuno lp resume` lets them go on.")
    return CheckedAct(Decimal(worth.numerator) / Decimal(worth.denominator), gas)


class GasTooHigh(Refused):
    """What it would cost is above a bound: nothing is signed, and it is tried again."""


async def check_gas_of_day(context: ExecutionContext, draft: Draft, cost: int) -> None:
    """Raise `GasTooHigh` where a cancel or a revocation of this cost would be more than the mandate that its plan was
    approved under allows for gas in 24 hours. Other plans have no such cap."""
    journal, book = context.journal, await load_mandates(context.journal)
    own = [act for _, act in book.acts if act.plan_id == draft.plan_id]
    if not own:
        return
    mandate, since = book.granted[own[-1].hash].mandate, context.now() - DAY_MILLIS
    others = [act for _, act in await _list_spent(journal, book, draft, since)]
    total = cost + await _sum_gas(journal, mandate, own[-1].act, [*others, own[-1]])
    if total > (cap := mandate.gas_cap(own[-1].act)):
        raise GasTooHigh(
            f"Gas of up to {cost} wei makes up to {total} wei in 24 hours; the mandate's cap is {cap} wei "
            f"(`zuno lp mandate grant` with a higher --gas-per-day or --exit-gas-per-day raises it)."
        )


async def _list_spent(journal: Journal, book: MandateBook, draft: Draft, since: int) -> list[tuple[Millis, ActDecided]]:
    """Other acts of the draft's wallet since then that count toward its caps."""
    return [
        (at, act)
        for at, act in book.acts_at((draft.instruction.chain, draft.wallet))
        if at >= since and act.plan_id != draft.plan_id and await _counts(journal, act.plan_id)
    ]


async def _sum_gas(journal: Journal, mandate: LpMandate, kind: MandatedAct | None, acts: Collection[ActDecided]) -> int:
    """What acts that count toward the cap may cost: each as it was approved or, where that is more, by what was signed
    for it, cancels and revocations too. Of the transactions of one number one is mined."""
    total = 0
    for act in acts:
        most: dict[int, int] = {}
        async for entry in journal.entries(request_id=act.plan_id, kind=StepSigned.kind):
            signed = StepSigned.model_validate(dict(entry.payload))
            most[signed.nonce] = max(most.get(signed.nonce, 0), signed.gas * signed.max_fee)
        if act.act is kind or kind is not MandatedAct.EXIT or mandate.exit_gas_per_day is None:
            total += max(act.gas, sum(most.values()))
    return total


def find_standing(book: MandateBook, place: Place, name: str) -> MandateGranted:
    granted = book.standing.get(place)
    if granted is None or granted.hash != name:
        raise Refused(f"Mandate {name[:16]}… is revoked or replaced, or is of another wallet or chain.")
    return granted


async def check_standing(context: ExecutionContext, book: MandateBook, name: str) -> MandateGranted:
    """The mandate of this hash: not revoked or replaced, for this very wallet and chain, and as this node signed it."""
    granted = find_standing(book, (context.info.name, context.wallet), name)
    mandate = granted.mandate
    signed = context.key.verify(context.key.public, mandate_bytes(mandate), bytes.fromhex(granted.signature))
    if hash_mandate(mandate) != name or not signed:
        raise Refused(f"Mandate {name[:16]}… is not what this node signed; grant it anew.")
    if (mandate.chain_id, mandate.genesis) != (context.info.id, await context.writer.genesis()):
        raise Refused(f"Mandate {name[:16]}… is for another chain than this {context.info.name}; grant it anew.")
    if book.numbers[name] <= context.restored:
        raise Refused(f"Mandate {name[:16]}… is older than the backup of this home; grant it anew.")
    return granted


def is_covered(granted: MandateGranted, position: int, pool: PoolState, opened: Collection[int | None]) -> bool:
    return position in granted.mandate.positions or pool.id in granted.mandate.pools or position in opened


async def _counts(journal: Journal, plan_id: str) -> bool:
    """Whether an act counts toward the caps: it was signed, or may still be."""
    if await find_end(journal, plan_id) is None:
        return True
    return bool(await journal.latest(1, request_id=plan_id, kind=StepSigned.kind))


async def count_worth(context: ExecutionContext, position: LpPosition, *, fees_alone: bool = False) -> Fraction | None:
    """What an act moves, in dollars: the position with its fees; None where nobody knows their price."""
    pool, total = position.pool, Fraction(0)
    held = (position.fees0, position.fees1) if fees_alone else burn_proceeds(position)
    for currency, amount in zip((pool.key.currency0, pool.key.currency1), held, strict=True):
        usd = await usd_value(context, pool, Flow(currency, amount)) if amount else Fraction(0)
        if usd is None:
            return None
        total += usd
    return total
