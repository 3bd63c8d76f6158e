"""What the monitor does under a mandate on the simulated chain, and what keeps it from doing it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lp.execute.test_carrying import Full
from tests.wire.mandates import MandatedHome, agree, mandated_home
from zuno.kernel.canonical import canonical
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.notify import NoticeKind, Severity
from zuno.kernel.units import Seconds, Wei
from zuno.lp.execute.context import ExecutionContext
from zuno.lp.execute.hedges import name_of_set
from zuno.lp.execute.mandates import MONITOR, GasTooHigh, append_mandate_event, check_gas_of_day
from zuno.lp.model.hedges import HedgeApproved, HedgeSet, Short
from zuno.lp.model.mandate import ActsPaused, MandatedAct, MandateRevoked
from zuno.lp.model.market import Fact
from zuno.lp.model.plan import PlanState, StepKind
from zuno.lp.model.plan_events import PlanOver

DAY = 86_400_000
FALLING = {"below": "3000"}


@pytest.fixture
async def home(tmp_path: Path, invented_market: Path) -> AsyncIterator[MandatedHome]:
    (tmp_path / "market").symlink_to(invented_market)
    async with mandated_home(tmp_path) as opened:
        yield opened


# -- exits at a price


async def test_an_exit_takes_two_looks_at_different_blocks(home: MandatedHome) -> None:
    await home.grant(**FALLING)
    await home.look()
    assert (await home.book()).seen == {}
    await home.move("-5")
    await home.look()
    await home.look()  # the same block again
    assert await home.held() == {1, 2}
    await home.move("-0.1")
    await home.look()
    assert await home.held() == {2}
    (plan,) = await home.plans()
    (granted,) = (await home.book()).standing.values()
    assert plan.state is PlanState.CONFIRMED
    assert plan.approved is not None
    assert plan.approved.approval.mandate == granted.hash
    assert [step.step.kind for step in plan.steps] == [StepKind.BURN]


async def test_a_price_that_came_back_is_looked_at_anew(home: MandatedHome) -> None:
    await home.grant(**FALLING)
    await home.move("-5")
    await home.look()
    await home.move("6")
    await home.look()
    await home.move("-6")
    await home.look()
    assert await home.held() == {1, 2}
    await home.move("-0.1")
    await home.look()
    assert await home.held() == {2}


async def test_everything_ends_in_the_token_that_was_named(home: MandatedHome) -> None:
    await home.grant(**FALLING, to="token1", worst="4")
    await home.fall()
    (plan,) = await home.plans()
    assert (plan.state, plan.steps[-1].step.kind) == (PlanState.CONFIRMED, StepKind.SWAP)
    swap = plan.draft.instruction.swap_home  # type: ignore[union-attr]
    pool = plan.draft.pool  # type: ignore[union-attr]
    assert swap is not None
    worst = swap.least_rate * 10**pool.token0.decimals / 10**pool.token1.decimals
    assert abs(float(worst) - 3000 * 0.96) < 0.01


async def test_every_act_is_pushed_with_the_argument_and_what_can_be_done(home: MandatedHome) -> None:
    await home.grant(**FALLING)
    await home.fall()
    began, ended = await home.pushes()
    assert (began.kind, began.severity) == (NoticeKind.MANDATE, Severity.CRITICAL)
    argued = [fact.value.partition(":")[0] for fact in began.facts if fact.name == "argued"]
    assert {"scout", "strategist", "critic"} <= set(argued)
    assert [button.words for button in began.buttons][1:] == ["/pause lp", "/revoke lp"]
    assert (ended.kind, ended.facts[1].name) == (NoticeKind.PLAN, "by mandate")
    assert ended.reference == began.reference


@pytest.mark.parametrize(("first", "worst", "held"), [("-8", "8", {2}), ("-8", "3", {1, 2})])
async def test_an_exit_is_not_done_beyond_the_worst_price(
    home: MandatedHome, first: str, worst: str, held: set[int]
) -> None:
    await home.grant(**FALLING, worst=worst)
    await home.fall(first=first)
    assert await home.held() == held
    blocked = [push for push in await home.pushes() if "blocked" in push.title]
    assert len(blocked) == (0 if held == {2} else 1)


async def test_without_a_mandate_nothing_is_done_or_written(home: MandatedHome) -> None:
    await home.fall()
    assert await home.held() == {1, 2}
    assert await (await home.zuno._read_journal()).latest() == []


# -- a reference that disagrees


@dataclass
class Elsewhere:
    """The pair's price at an exchange: the feed's own times a factor."""

    feed: Any
    factor: Fraction

    def __getattr__(self, name: str) -> Any:
        return getattr(self.feed, name)

    async def spot(self, pair: Any, at: Seconds) -> Fact[Fraction]:
        spot = await self.feed.spot(pair, at)
        return replace(spot, value=spot.value * self.factor)


def off_by(percent: int) -> Any:
    def change(context: ExecutionContext) -> ExecutionContext:
        def feeds(pool: Any) -> Any:
            own = context.feeds_of(pool)
            return replace(own, prices=Elsewhere(own.prices, 1 + Fraction(percent, 100)))

        return replace(context, feeds_of=feeds)

    return change


@pytest.mark.parametrize(
    ("percent", "crash", "exits"), [(2, False, False), (2, True, True), (4, True, True), (6, True, False)]
)
async def test_a_reference_that_is_off_blocks_an_exit_and_pushes_each_round(
    home: MandatedHome, percent: int, crash: bool, exits: bool
) -> None:
    await home.grant(**FALLING, in_a_crash=crash)
    home.change = off_by(percent)
    await home.fall()
    if exits:
        assert await home.held() == {2}
        return
    await home.look()
    assert await home.held() == {1, 2}
    blocked = await home.pushes()
    assert [push.severity for push in blocked] == [Severity.CRITICAL] * 2
    assert await home.plans() == []
    home.change = lambda context: context
    await home.look()
    assert await home.held() == {2}


# -- gas


@dataclass
class Dear:
    chain: Any
    factor: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.chain, name)

    async def gas(self) -> Any:
        quote = await self.chain.gas()
        return replace(
            quote,
            base_fee=Wei(quote.base_fee * self.factor),
            priority_fee=Wei(quote.priority_fee * self.factor),
        )


async def test_gas_that_triples_after_the_approval_is_decided_anew_inside_the_cap(home: MandatedHome) -> None:
    await home.grant(**FALLING, gas_per_day="1")
    home.change = _dear_after(1)
    await home.fall()
    assert await home.held() == {1, 2}
    (plan,) = await home.plans()
    assert not plan.begun
    home.change = lambda context: replace(context, chain=Dear(context.chain, 3))
    await home.look()
    assert await home.held() == {2}
    first, second = await home.plans()
    assert (first.state, second.state) == (PlanState.CANCELLED, PlanState.CONFIRMED)


def _dear_after(quotes: int) -> Any:
    """Three times as dear from the second question on: the draft was made at the old price."""
    asked: list[int] = []

    class Rising(Dear):
        async def gas(self) -> Any:
            asked.append(1)
            return await (Dear.gas(self) if len(asked) > quotes else self.chain.gas())

    return lambda context: replace(context, chain=Rising(context.chain, 3))


async def test_gas_beyond_the_cap_of_a_day_blocks(home: MandatedHome) -> None:
    await home.grant(**FALLING, gas_per_day="1", exit_gas_per_day="0.00001")
    await home.fall()
    assert await home.held() == {1, 2}
    (push,) = await home.pushes()
    assert (push.severity, "gas" in push.reason) == (Severity.CRITICAL, True)


async def test_a_tip_above_the_cap_of_exits_blocks_and_is_pushed_with_what_raises_it(home: MandatedHome) -> None:
    class Tipped(Dear):
        async def gas(self) -> Any:
            return replace(await self.chain.gas(), priority_fee=Wei(10**9 * self.factor))

    await home.grant(**FALLING, gas_per_day="9", exit_gas_per_day="9")
    home.change = lambda context: replace(context, chain=Tipped(context.chain, 80))  # and two bumps: 101.25 gwei
    await home.fall()
    assert await home.held() == {1, 2}
    assert "ZUNO_MAX_EXIT_TIP_GWEI=sim=101.25" in (await home.pushes())[-1].reason
    home.change = lambda context: replace(context, chain=Tipped(context.chain, 79))
    await home.look()
    assert await home.held() == {2}


async def test_exits_have_gas_of_their_own_a_day(home: MandatedHome) -> None:
    """What other acts used up strands no exit; a mandate of before counts all together."""
    await home.grant(**FALLING, gas_per_day="0.00001", exit_gas_per_day="0.01")
    await home.fall()
    assert await home.held() == {2}
    (granted,) = (await home.book()).standing.values()
    mandate = granted.mandate
    before = mandate.model_copy(update={"exit_gas_per_day": None})
    assert b"exitGas" not in canonical(before)
    assert [mandate.gas_cap(act) for act in (MandatedAct.EXIT, MandatedAct.REBALANCE)] == [10**16, 10**13]
    assert before.gas_cap(MandatedAct.EXIT) == 10**13


async def test_what_a_cancel_and_revocations_cost_counts_toward_the_gas_of_a_day(home: MandatedHome) -> None:
    """Signed under the mandate beyond what its approval bounds: the next cancel waits."""
    await home.grant(**FALLING)
    home.change = lambda context: replace(context, journal=Full(context.journal, "step_sent"))
    await home.fall()
    (plan,) = await home.plans()
    assert plan.draft is not None
    context = await home.actor().execution.context_of("sim")
    (act,) = [act for _, act in (await home.book()).acts]
    (granted,) = (await home.book()).standing.values()
    left = granted.mandate.gas_cap(MandatedAct.EXIT) - act.gas
    await check_gas_of_day(context, plan.draft, left)
    signed = plan.steps[0].newest
    dear = signed.model_copy(update={"gas": act.gas // signed.max_fee + 1, "nonce": signed.nonce + 1})
    await context.journal.append(kind=dear.kind, author=MONITOR, payload=dear, request_id=plan.plan_id)
    with pytest.raises(GasTooHigh, match="--exit-gas-per-day"):
        await check_gas_of_day(context, plan.draft, left)


# -- who stops it


@pytest.mark.parametrize("how", ["pause", "revoke", "kill", "expiry"])
async def test_what_is_stopped_is_not_begun(home: MandatedHome, how: str) -> None:
    await home.grant(**FALLING, lasts="1d")
    match how:
        case "pause":
            await home.zuno.mandates().pause()
        case "revoke":
            await home.zuno.mandates().revoke()
        case "kill":
            home.zuno.kill_lock.lock("live", "terminal")
        case _:
            home.later = DAY + 1
    await home.fall()
    assert await home.held() == {1, 2}
    assert await home.plans() == []
    if how == "pause":
        assert (await home.zuno.mandates().resume(agree)).paused is False
        await home.fall(first="-0.1")
        assert await home.held() == {2}


class Between:
    """A journal before whose entry of this kind something else is written."""

    def __init__(self, journal: Any, kind: str, event: Any) -> None:
        self._journal, self._kind, self._event = journal, kind, event

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def append(self, *, kind: str, **entry: Any) -> Any:
        if kind == self._kind:
            await append_mandate_event(self._journal, self._event)
        return await self._journal.append(kind=kind, **entry)


@pytest.mark.parametrize("stop", ["revoke", "pause"])
@pytest.mark.parametrize("kind", ["plan_instructed", "plan_approved", "plan_applying"])
async def test_revocation_wins_over_an_act_that_is_not_signed(home: MandatedHome, kind: str, stop: str) -> None:
    await home.grant(**FALLING)
    (granted,) = (await home.book()).standing.values()
    event = MandateRevoked(hash=granted.hash) if stop == "revoke" else ActsPaused(paused=True)
    home.change = lambda context: replace(context, journal=Between(context.journal, kind, event))
    await home.fall()
    assert await home.held() == {1, 2}
    home.change = lambda context: context
    await home.look()
    assert not any(plan.begun for plan in await home.plans())


async def test_an_act_that_is_signed_goes_on_though_its_mandate_is_revoked(home: MandatedHome) -> None:
    await home.grant(**FALLING, to="token1")
    (granted,) = (await home.book()).standing.values()
    event = MandateRevoked(hash=granted.hash)
    home.change = lambda context: replace(context, journal=Between(context.journal, "plan_finishing", event))
    await home.fall()
    (plan,) = await home.plans()
    assert plan.state is PlanState.CONFIRMED


# -- monitors that die, and two of them


KINDS = ("lp_mandate", "plan_approved", "plan_applying", "step_signed", "step_sent", "step_mined", "plan_over")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_monitor_that_dies_at_any_entry_leaves_one_exit(home: MandatedHome, kind: str) -> None:
    await home.grant(**FALLING)
    await home.move("-5")
    await home.look()
    await home.move("-0.1")
    home.change = lambda context: replace(context, journal=Full(context.journal, kind))
    await home.look()
    home.change = lambda context: context
    await home.look()
    await home.look()
    assert await home.held() == {2}
    ended = [plan.state for plan in await home.plans()]
    assert ended.count(PlanState.CONFIRMED) == 1
    assert set(ended) <= {PlanState.CONFIRMED, PlanState.CANCELLED}


async def test_two_monitors_exit_once(home: MandatedHome) -> None:
    await home.grant(**FALLING)
    await home.move("-5")
    await home.look()
    await home.move("-0.1")
    await asyncio.gather(home.look(), home.look(), return_exceptions=True)
    await home.look()
    assert await home.held() == {2}
    assert sum(plan.begun for plan in await home.plans()) == 1


async def test_a_desk_that_does_not_answer_keeps_no_exit_waiting(home: MandatedHome) -> None:
    await home.grant(**FALLING)
    actor = home.actor()

    async def silent(position: str, chain: str) -> Any:
        raise Unavailable("the desk is away")

    actor.argue = silent
    await home.fall(actor)
    assert await home.held() == {2}


# -- what the debate wants


async def test_the_desk_is_asked_once_in_a_gap_and_moves_what_it_wants(home: MandatedHome) -> None:
    await home.grant(acts=[MandatedAct.REBALANCE])
    await home.move("-9")
    await home.look()
    moved = await home.held()
    assert moved != {1, 2}
    (new,) = moved - {1, 2}
    asked = [entry async for entry in (await home.zuno._open_journal()).entries(kind="plan")]
    await home.move("-9")
    await home.look()
    assert [entry async for entry in (await home.zuno._open_journal()).entries(kind="plan")] == asked
    home.later = 7 * 3_600_000
    await home.look()
    assert new not in await home.held()  # what came of its own act is the mandate's as well


async def test_a_cap_of_a_day_holds_over_acts_and_ends_with_it(home: MandatedHome) -> None:
    await home.grant(acts=[MandatedAct.REBALANCE], worth_per_day="30000", gap="1h")
    await home.move("-9")
    await home.look()
    moved = await home.held()
    await home.move("-9")
    home.later = 2 * 3_600_000
    await home.look()
    assert await home.held() == moved
    assert any("24 hours" in push.reason for push in await home.pushes())
    home.later = DAY + 3_600_000
    await home.look()
    assert await home.held() != moved


async def test_a_mandate_for_another_position_covers_nothing_else(home: MandatedHome) -> None:
    await home.grant(positions=["2"], below="2900")
    await home.fall(first="-7")
    assert await home.held() == {1}


async def test_a_desk_that_only_exits_at_a_price_is_not_asked(home: MandatedHome) -> None:
    await home.grant(**FALLING)
    await home.look()
    assert (await home.book()).asked == {}


async def test_an_exit_that_the_debate_wants_swaps_from_the_price_there_is_afterwards(home: MandatedHome) -> None:
    await home.grant(when_close_wins=True, to="token1", worst="4")
    actor = home.actor()

    async def argue(position: str, chain: str) -> Any:
        view = await home.zuno.advice().rebalance(position, chain=chain, candidate=1)
        await home.move("0.3")
        return view

    actor.argue = argue
    await home.look(actor)
    assert [push.reason for push in await home.pushes() if "blocked" in push.title] == []
    assert await home.held() == {2}


@pytest.mark.parametrize("allowed", [False, True])
async def test_a_hedge_goes_along_where_the_mandate_allows_it_alone(home: MandatedHome, allowed: bool) -> None:
    await home.grant(acts=[MandatedAct.REBALANCE, *([MandatedAct.HEDGE] if allowed else [])])
    await hedge_position(home)
    await home.move("-9")
    actor, reserved = home.actor(), list[str]()
    keeper = actor.execution.hedges
    assert keeper is not None
    actor.execution = replace(actor.execution, hedges=replace(keeper, shorts=Rich(keeper.shorts, reserved)))
    await home.look(actor)
    assert len(reserved) == allowed, "no margin is set aside for what is refused"
    assert (await home.held() != {1, 2}) is allowed
    assert len([push for push in await home.pushes() if "blocked" in push.title]) == (not allowed)


@dataclass
class Rich:
    """An account that has any margin."""

    shorts: Any
    reserved: list[str]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shorts, name)

    async def reserve(self, account: str, most: Any, request: str) -> None:
        self.reserved.append(request)


async def hedge_position(home: MandatedHome) -> None:
    """As a hedged plan leaves it that opened position 1."""
    journal, desk = await home.zuno._open_journal(), home.zuno._shorts
    chain = home.zuno._chains.current_chain(home.chain)
    account, plan = await desk.choose_account(chain.info), "plan_" + "a" * 12
    (position,) = (await chain.positions([1])).positions
    terms: dict[str, Any] = {"plan_id": plan, "chain": home.chain, "position_id": 1, "market": "ETHUSDT"}
    terms |= {"symbol": "ETH", "side": 0, "decimals": 18, "most": Decimal(1)}
    short = Short(**terms, quantity=Decimal(position.amount0).scaleb(-18))
    for record in (
        HedgeApproved(**terms, account=account),
        PlanOver(plan_id=plan, state=PlanState.CONFIRMED, new_position_id=1),
    ):
        await journal.append(kind=record.kind, author=MONITOR, payload=record, request_id=plan)
    kept = HedgeSet(account=account, decided=1, shorts=(short,), ended=())
    await journal.append(kind=kept.kind, author=MONITOR, payload=kept, request_id=name_of_set(account))


# -- endings


@pytest.mark.parametrize(("days", "pushed"), [(22, 0), (23.5, 1), (29.5, 1), (30.5, 1), (32, 0)])
async def test_its_end_is_pushed_a_week_and_a_day_before_and_when_it_comes(
    home: MandatedHome, days: float, pushed: int
) -> None:
    from zuno.lp.watch.plan_notices import PlanNotices

    await home.grant(**FALLING, lasts="30d")
    (granted,) = (await home.book()).standing.values()
    at = granted.mandate.granted + int(days * DAY)
    due = await PlanNotices().find_due(at, await home.zuno._open_journal())  # type: ignore[arg-type]
    assert len(due) == pushed


async def test_nothing_is_granted_where_the_word_is_not_typed(home: MandatedHome) -> None:
    from zuno.lp.service.mandates import MandateRequest

    with pytest.raises(Refused):
        await home.zuno.mandates().grant(MandateRequest(positions=["1"], below="2000"), lambda word, what: False)
    assert (await home.book()).standing == {}
