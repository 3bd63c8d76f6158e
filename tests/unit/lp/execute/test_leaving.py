"""A pool off its reference: nothing is opened there, and whoever wants to leave can, within every other bound."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from tests.unit.lp.execute.test_handed_out import WATCHED, send_step
from zuno.adapters.prices.feeds import WithReference
from zuno.amm.model import price_of, sqrt_price_for
from zuno.kernel.canonical import canonical
from zuno.kernel.errors import Refused, Unavailable
from zuno.lp.execute import checks
from zuno.lp.model.market import Pair
from zuno.lp.model.plan import PlanState
from zuno.lp.model.plan_events import Action, Instruction

OFF = Fraction(1015, 1000)


def shift_reference(bench: Any, factor: Fraction | None) -> Fraction:
    """The feed that every pool is held against says another price from here on; None: nobody says any."""
    honest, told = bench.hands.feeds_of, list[Fraction]()
    micro = bench.chain.latest().reference
    told.append(Fraction(micro, 10**6) * (factor or 1))

    async def reference() -> Fraction:
        if factor is None:
            raise Unavailable("no price service answers")
        return told[0]

    def feeds(pool_id: Any) -> Any:
        own = honest(pool_id)
        return replace(own, prices=WithReference(own.prices, Pair("ETH", "USDC"), reference, "elsewhere"))

    bench.hands = replace(bench.hands, feeds_of=feeds)
    return told[0]


async def leaving(bench: Any, action: Action, *, anyway: bool) -> Instruction:
    share = {"share": Fraction(1, 3)} if action is Action.REMOVE else {}
    return await bench.told(action, anyway=anyway, **share)


@pytest.mark.parametrize("factor", [OFF, 1 / OFF])
@pytest.mark.parametrize("action", [Action.CLOSE, Action.REMOVE])
async def test_leaving_a_pool_off_its_reference_takes_the_owners_word_for_it(
    bench: Any, action: Action, factor: Fraction
) -> None:
    reference = shift_reference(bench, factor)
    with pytest.raises(Refused, match=r"1\.\d\d %.*--anyway"):
        await bench.drafted(await leaving(bench, action, anyway=False))
    drafted = await bench.drafted(await leaving(bench, action, anyway=True))
    (shown,) = drafted.draft.exits
    assert Decimal(shown.reference_price) == pytest.approx(Decimal(str(float(reference))))
    assert 1 < abs(Decimal(shown.gap_percent)) < 2
    worth, worst = Decimal(shown.worth), Decimal(shown.worst)
    assert worst <= worth
    assert Decimal(shown.sandwich_cost) == worth - worst
    assert Decimal(shown.sandwich_percent) == pytest.approx(100 * (worth - worst) / worth, abs=Decimal("0.0001"))
    assert any(shown.sandwich_cost in note for note in drafted.draft.notes), "every door shows it"
    gate = bench.gate()
    await gate.approve(drafted.draft, gate.approval(drafted.draft, "test"))
    book = await bench.apply(drafted.draft.plan_id)
    assert (book.state, book.over.problems) == (PlanState.CONFIRMED, ())
    assert (bench.edge in await bench.owned()) is (action is Action.REMOVE)


async def test_what_is_left_anyway_is_handed_out_to_a_signer_elsewhere_too(bench: Any) -> None:
    shift_reference(bench, OFF)
    plan_id = await bench.approved(await leaving(bench, Action.CLOSE, anyway=True))
    await send_step(bench, await bench.apply(plan_id, signer=WATCHED))
    assert (await bench.apply(plan_id, signer=WATCHED)).state is PlanState.CONFIRMED
    assert bench.edge not in await bench.owned()


async def test_minimums_come_from_the_pool_and_what_is_paid_is_never_below_the_worst(bench: Any) -> None:
    """The pool is moved, as far as the minimums let it, between the approval and the burn."""
    reference = shift_reference(bench, OFF)
    before = await bench.position()
    drafted = await bench.drafted(await leaving(bench, Action.CLOSE, anyway=True))
    gate = bench.gate()
    await gate.approve(drafted.draft, gate.approval(drafted.draft, "test"))
    await bench.chain.move(Decimal("0.45"))
    moved = await bench.position()
    assert moved.pool.sqrt_price_x96 != before.pool.sqrt_price_x96
    assert (await bench.apply(drafted.draft.plan_id)).state is PlanState.CONFIRMED
    pool = before.pool
    at = price_of(sqrt_price_for(reference, pool.token0, pool.token1))
    paid = (moved.amount0 + moved.fees0) * at + moved.amount1 + moved.fees1
    (shown,) = drafted.draft.exits
    assert paid >= Decimal(shown.worst) * 10**pool.token1.decimals


async def test_the_word_is_part_of_what_is_signed(bench: Any) -> None:
    shift_reference(bench, OFF)
    told = await leaving(bench, Action.CLOSE, anyway=True)
    plain = told.model_copy(update={"anyway": False})
    assert b"anyway" in canonical(told)
    assert b"anyway" not in canonical(plain), "plans from before keep their bytes"
    drafted = await bench.drafted(told)
    approval = bench.gate().approval(drafted.draft, "test")
    changed = drafted.draft.model_copy(update={"instruction": plain})
    assert checks.approval_hash(approval) != checks.approval_hash(bench.gate().approval(changed, "test"))


async def test_drift_beyond_the_bounds_is_refused_all_the_same(bench: Any) -> None:
    shift_reference(bench, OFF)
    plan_id = await bench.approved(await leaving(bench, Action.CLOSE, anyway=True))
    await bench.chain.move(Decimal("-1.2"))
    with pytest.raises(Refused, match=r"\btick -?\d+\b.*\bdrift\b"):
        await bench.apply(plan_id)
    assert bench.edge in await bench.owned()
    assert (await bench.book(plan_id)).applying is None


async def test_the_word_opens_nothing(bench: Any) -> None:
    shift_reference(bench, OFF)
    made = await bench.every_kind()
    for name, told in made.items():
        if told.action in (Action.COLLECT, Action.CLOSE, Action.REMOVE):
            continue
        with pytest.raises(Refused, match="reference"):
            await bench.drafted(told.model_copy(update={"anyway": True}))
        assert name
    compound = await bench.told(Action.COMPOUND, anyway=True)
    with pytest.raises(Refused, match="reference"):
        await bench.drafted(compound)


@pytest.mark.parametrize("factor", [OFF, None])
async def test_fees_are_collected_at_any_price_and_without_one(bench: Any, factor: Fraction | None) -> None:
    shift_reference(bench, factor)
    book = await bench.apply(await bench.approved(await bench.told(Action.COLLECT)))
    assert book.state is PlanState.CONFIRMED


async def test_without_any_reference_a_position_can_be_left_and_the_card_says_so(bench: Any) -> None:
    shift_reference(bench, None)
    with pytest.raises(Unavailable):
        await bench.drafted(await leaving(bench, Action.CLOSE, anyway=False))
    drafted = await bench.drafted(await leaving(bench, Action.CLOSE, anyway=True))
    (shown,) = drafted.draft.exits
    assert (shown.gap_percent, shown.sandwich_cost) == ("0", "0"), "counted at its own price a pool pays least there"
    assert "no reference" in shown.source
    gate = bench.gate()
    await gate.approve(drafted.draft, gate.approval(drafted.draft, "test"))
    assert (await bench.apply(drafted.draft.plan_id)).state is PlanState.CONFIRMED


async def test_every_position_of_a_plan_has_its_own_figure(bench: Any) -> None:
    from zuno.lp.model.plan_events import PlanPosition

    shift_reference(bench, OFF)
    other = await bench.position(bench.inside)
    told = await leaving(bench, Action.CLOSE, anyway=True)
    target = PlanPosition(position_id=other.id, pool_id=other.pool.id, tick=other.pool.tick)
    drafted = await bench.drafted(told.model_copy(update={"others": (target,)}))
    assert [shown.position_id for shown in drafted.draft.exits] == [str(bench.edge), str(bench.inside)]
