"""The last look before a signature: honest steps pass it, each dishonest one is refused for its own reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from zuno.amm.model import Range
from zuno.kernel.errors import Refused
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, Seconds, Tick
from zuno.lp.model.chains import SwapStruct
from zuno.lp.model.plan import Bounds, Flow, StepKind
from zuno.lp.plan import calldata, minting, positions
from zuno.lp.plan.calldata import OPEN_DELTA, SENDER, WHOLE_BALANCE
from zuno.lp.plan.calls import (
    Action,
    Burn,
    DecodedCall,
    Decrease,
    Increase,
    Mint,
    MintFromDeltas,
    ModifyLiquidities,
)
from zuno.lp.plan.decoding import decode
from zuno.lp.plan.policy import ITSELF, Policy, check, verify_step

FIVE = SwapStruct.FIVE_FIELDS
STRANGER = Address("0x" + "66" * 20)


def test_every_step_passes_and_says_of_itself_what_its_bytes_say(every_step: list[Any]) -> None:
    kinds = set()
    for planned in every_step:
        verify_step(planned.step, planned.policy)
        kinds.add(planned.step.kind)
    assert kinds == set(StepKind)


def test_a_step_that_says_something_else_of_itself_is_refused(every_step: list[Any]) -> None:
    for planned in every_step:
        step, policy = planned.step, planned.policy
        late = Seconds((step.deadline or 0) + 1)
        for lie, why in (
            (replace(step, deadline=late), "deadline"),
            (replace(step, recipients=(*step.recipients, STRANGER)), "recipients"),
        ):
            with pytest.raises(Refused, match=why):
                verify_step(lie, policy)
        if step.most_out:
            first, *rest = step.most_out
            less = replace(step, most_out=(Flow(first.currency, first.amount // 2), *rest))
            with pytest.raises(Refused, match="above the bound of"):
                verify_step(less, policy)


def loosened(action: Action) -> Iterator[Action]:
    """The same action with less to hold its price."""
    match action:
        case Burn() | Decrease():
            for field in ("amount0_min", "amount1_min"):
                if least := getattr(action, field):
                    yield replace(action, **{field: least - 1})
        case Increase():
            yield replace(action, liquidity=action.liquidity // 2)
            yield replace(action, amount0_max=action.amount0_max + 1)
            yield replace(action, amount1_max=action.amount1_max + 1)
        case Mint():
            yield replace(action, liquidity=action.liquidity // 2)
        case _:
            pass


def test_a_step_of_which_a_bound_was_loosened_is_refused(every_step: list[Any]) -> None:
    seen = Counter[type]()
    for planned in every_step:
        decoded = decode(planned.step.to, planned.step.value, planned.step.data, FIVE)
        if not isinstance(decoded.call, ModifyLiquidities):
            continue
        acts = decoded.call.actions
        for at, action in enumerate(acts):
            for loose in loosened(action):
                call = replace(decoded.call, actions=(*acts[:at], loose, *acts[at + 1 :]))
                with pytest.raises(Refused):
                    check(replace(decoded, call=call), planned.policy)
                seen[type(action)] += 1
    assert set(seen) == {Burn, Decrease, Increase, Mint}


def test_a_position_is_opened_in_the_plans_range_alone(every_step: list[Any]) -> None:
    seen = set()
    for planned in every_step:
        decoded = decode(planned.step.to, planned.step.value, planned.step.data, FIVE)
        for action in decoded.position_actions:
            if isinstance(action, Mint | MintFromDeltas):
                here = action.range
                check(decoded, replace(planned.policy, range=here))
                with pytest.raises(Refused, match="range"):
                    check(decoded, replace(planned.policy, range=Range(here.lower, Tick(here.upper + 60))))
                seen.add(planned.step.kind)
    assert seen == {StepKind.MINT, StepKind.SWAP_AND_MINT, StepKind.BURN_AND_MINT}


class Forger:
    """Calldata as a thief, or a bug, would write it."""

    def __init__(self, scene: Any, *, native: bool = True) -> None:
        self.scene = scene
        self.pool = scene.native if native else scene.wrapped
        self.key = self.pool.key
        self.manager, self.router = scene.at.position_manager, scene.at.universal_router
        self.deadline = scene.now + 60
        most = {NATIVE: 10**19, scene.weth.address: 10**19, scene.usdc.address: 10**11}
        self.policy = Policy(
            scene.at,
            scene.wallet,
            self.key,
            scene.now,
            position_id=7,
            most_out=most,
            wrapper=scene.weth.address,
        )

    def mint(self, owner: str | None = None, key: Any = None, most0: int = 10**18) -> calldata.EncodedAction:
        who = self.scene.wallet if owner is None else owner
        return calldata.mint_position(key or self.key, -201_600, -200_400, 10**9, most0, 10**9, who)

    def settle(self) -> calldata.EncodedAction:
        return calldata.settle_pair(self.key.currency0, self.key.currency1)

    def home(self, recipient: str | None = None) -> calldata.EncodedAction:
        return calldata.sweep(self.key.currency0, recipient or self.scene.wallet)

    def own(self, acts: Sequence[calldata.EncodedAction], value: int = 0, deadline: int | None = None) -> DecodedCall:
        data = calldata.modify_liquidities(acts, self.deadline if deadline is None else deadline)
        return decode(self.manager, value, data, FIVE)

    def swapped(
        self,
        least: int = 185_000_000,
        payer: bool = True,
        to: str | None = None,
        owed: int = OPEN_DELTA,
        due: int = OPEN_DELTA,
        back: int | None = 53 * 10**13,
        returned: int = 10**6,
    ) -> tuple[int, bytes]:
        key = self.key
        acts = [
            calldata.swap_exact_in_single(key, True, 10**17, least, FIVE),
            calldata.settle(key.currency0, owed, payer),
            *([] if back is None else [calldata.swap_exact_in_single(key, False, returned, back, FIVE)]),
            *(calldata.take(each, to or self.manager, due) for each in (key.currency0, key.currency1)),
        ]
        return calldata.v4_swap(acts)

    def opened(
        self,
        *more: calldata.EncodedAction,
        owner: str | None = None,
        home: str | None = None,
        paid: Sequence[int] = (0, 1),
        most: tuple[int, int] = (9 * 10**17, 185_000_000),
    ) -> tuple[int, bytes]:
        pair, who = (self.key.currency0, self.key.currency1), self.scene.wallet
        acts = [
            *(calldata.settle(pair[side], WHOLE_BALANCE, payer_is_user=False) for side in paid),
            *more,
            calldata.mint_from_deltas(self.key, self.scene.ticks(-201_600, -200_400), *most, owner or who),
            calldata.take_pair(*pair, home or who),
        ]
        return calldata.position_manager_call(acts, self.deadline)

    def routed(self, *commands: tuple[int, bytes], value: int = 10**18) -> DecodedCall:
        return decode(self.router, value, calldata.execute(commands, self.deadline), FIVE)

    def to(self, contract: str, data: bytes, value: int = 0) -> DecodedCall:
        return decode(Address(contract), value, data, FIVE)

    def refuses(self, said: DecodedCall, why: str, **changes: Any) -> None:
        with pytest.raises(Refused, match=why):
            check(said, replace(self.policy, **changes))


@pytest.fixture
def forger(scene: Any) -> Forger:
    return Forger(scene)


def test_what_the_forger_leaves_alone_is_honest(forger: Forger) -> None:
    check(forger.own([forger.mint(), forger.settle(), forger.home()], 10**18), forger.policy)
    check(forger.own([forger.mint(SENDER), forger.settle(), forger.home(SENDER)], 10**18), forger.policy)
    check(forger.routed(forger.swapped(), forger.opened()), forger.policy)


@pytest.mark.parametrize("owner", [STRANGER, ITSELF])
def test_a_position_goes_to_the_wallet_alone(forger: Forger, owner: str) -> None:
    forger.refuses(forger.own([forger.mint(owner), forger.settle()]), "the position would belong to")


@pytest.mark.parametrize("owner", [STRANGER, SENDER, ITSELF])
def test_inside_the_router_the_sender_is_not_the_wallet(forger: Forger, owner: str) -> None:
    forger.refuses(forger.routed(forger.swapped(), forger.opened(owner=owner)), "the position would belong to")
    kept = forger.opened(home=owner)
    forger.refuses(forger.routed(forger.swapped(), kept), "would receive what is the wallet's")


@pytest.mark.parametrize("recipient", [STRANGER, ITSELF])
def test_nothing_goes_to_anyone_else(forger: Forger, recipient: str) -> None:
    key, why = forger.key, "would receive what is the wallet's"
    forger.refuses(forger.own([forger.mint(), forger.settle(), forger.home(recipient)]), why)
    taken = calldata.take_pair(key.currency0, key.currency1, recipient)
    forger.refuses(forger.own([calldata.decrease(7, 1, 0, 0), taken]), why)
    forger.refuses(forger.routed(forger.swapped(to=recipient), forger.opened()), why)
    sent = calldata.permit2_transfer_from(key.currency1, recipient, 5)
    forger.refuses(forger.routed(forger.swapped(), sent, forger.opened()), why)


def test_nothing_stays_with_the_contracts(forger: Forger) -> None:
    stays = "would stay in PositionManager"
    forger.refuses(forger.own([forger.mint(), forger.settle()], 10**18), stays)
    forger.refuses(forger.own([forger.mint(), forger.home(), forger.settle()], 10**18), stays)
    for paid in ((0,), (1,), ()):
        forger.refuses(forger.routed(forger.swapped(), forger.opened(paid=paid)), stays)
    for acts in ((), (forger.mint(),), (forger.mint(), forger.home())):
        call = calldata.position_manager_call(acts, forger.deadline)
        forger.refuses(forger.routed(forger.swapped(), call), "does not end with a mint and what it leaves over")
    forger.refuses(forger.routed(forger.swapped()), "the router's last command does not mint")
    forger.refuses(forger.routed(), "called for nothing")
    forger.refuses(forger.routed(forger.opened(), forger.opened()), "called twice")


def test_only_the_plans_position_and_pool_are_touched(forger: Forger) -> None:
    for act in (calldata.increase(8, 1, 0, 0), calldata.decrease(8, 1, 0, 0), calldata.burn_position(8, 0, 0)):
        forger.refuses(forger.own([act]), "position 8 is not the plan's")
        forger.refuses(forger.own([act]), "position 8 is not the plan's", position_id=None)
    other = replace(forger.key, fee=500)
    forger.refuses(forger.own([forger.mint(key=other)]), "another pool than the plan's")
    weth, usdc = forger.scene.weth.address, forger.scene.usdc.address
    forger.refuses(forger.own([calldata.settle_pair(weth, usdc)]), "are not the pair")
    forger.refuses(forger.own([calldata.close_currency(weth)]), "is not of the pair")
    forger.refuses(forger.own([calldata.sweep(weth, forger.scene.wallet)]), "is not of the pair")
    sent = calldata.permit2_transfer_from(weth, forger.manager, 5)
    forger.refuses(forger.routed(forger.swapped(), sent, forger.opened()), "is not of the pair")
    strange = calldata.settle(weth, WHOLE_BALANCE, payer_is_user=False)
    forger.refuses(forger.routed(forger.swapped(), forger.opened(strange)), "is not of the pair")
    for act in (calldata.settle(weth, OPEN_DELTA, payer_is_user=True), calldata.take(weth, forger.scene.wallet, 0)):
        forger.refuses(forger.routed(calldata.v4_swap([act]), forger.opened()), "is not of the pair")


def test_a_hook_has_to_be_allowed(forger: Forger) -> None:
    hooked = replace(forger.key, hooks=STRANGER)
    minted = forger.own([forger.mint(key=hooked), forger.settle()])
    forger.refuses(minted, "nobody has allowed the hook", key=hooked)
    check(minted, replace(forger.policy, key=hooked, hooks=frozenset({STRANGER})))


def test_each_call_has_its_own_actions(forger: Forger) -> None:
    wallet, currency = forger.scene.wallet, forger.key.currency1
    for act in (
        calldata.settle(currency, 5, payer_is_user=False),
        calldata.take(currency, wallet, 0),
        calldata.swap_exact_in_single(forger.key, True, 1, 1, FIVE),
    ):
        forger.refuses(forger.own([act]), "is no action of a plan's own call")
    for act in (
        calldata.close_currency(currency),
        calldata.increase(7, 1, 0, 0),
        calldata.burn_position(7, 0, 0),
        calldata.take_pair(forger.key.currency0, currency, wallet),
        calldata.sweep(currency, wallet),
        calldata.increase_from_deltas(70, 1, 1),
        forger.mint(),
    ):
        forger.refuses(forger.routed(forger.swapped(), forger.opened(act)), "is no action of the router's call")
    forger.refuses(forger.routed(calldata.v4_swap([forger.home()]), forger.opened()), "is no action of a swap")


def test_a_swap_has_a_minimum_and_pays_what_it_owes(forger: Forger) -> None:
    opened = forger.opened()
    forger.refuses(forger.routed(forger.swapped(least=0), opened), "would take any price")
    forger.refuses(forger.routed(forger.swapped(back=0), opened), "would take any price")
    forger.refuses(forger.routed(forger.swapped(payer=False), opened), "happens to hold")
    forger.refuses(forger.routed(forger.swapped(owed=1 << 255), opened), "is not of what is owed")
    forger.refuses(forger.routed(forger.swapped(due=1), opened), "is not taking what is due")
    odd = forger.opened(calldata.settle(forger.key.currency1, 5, payer_is_user=False))
    forger.refuses(forger.routed(forger.swapped(), odd), "is not of all that was brought")
    by_user = forger.opened(calldata.settle(forger.key.currency1, 0, payer_is_user=True))
    forger.refuses(forger.routed(forger.swapped(), by_user), "ask the router to pay")


def test_a_router_s_mint_is_guarded_on_both_sides(forger: Forger) -> None:
    forger.refuses(forger.routed(forger.swapped(back=None), forger.opened()), "no swap each way")
    sent = calldata.permit2_transfer_from(forger.key.currency1, forger.manager, 5)
    forger.refuses(forger.routed(sent, forger.opened()), "no swap each way")
    whatever = calldata.swap_exact_in_single(forger.key, True, 0, 1, FIVE)
    forger.refuses(forger.routed(calldata.v4_swap([whatever]), forger.opened()), "whatever the router is owed")


def test_what_is_minted_from_credit_follows_what_pays_it(forger: Forger) -> None:
    burn, band = calldata.burn_position(7, 5, 6), forger.scene.ticks(-201_600, -200_400)
    closing = [calldata.close_currency(each) for each in (forger.key.currency0, forger.key.currency1)]

    most = (10**18, 10**9)
    credit = dict(zip((forger.key.currency0, forger.key.currency1), most, strict=True))
    forger.policy = replace(forger.policy, least_burn=(5, 6), proceeds=credit, fees=credit)

    def minted(owner: str = forger.scene.wallet, key: Any = forger.key) -> calldata.EncodedAction:
        return calldata.mint_from_deltas(key, band, most[0], most[1], owner)

    def added(token_id: int = 70) -> calldata.EncodedAction:
        return calldata.increase_from_deltas(token_id, *most)

    check(forger.own([burn, minted(), *closing]), forger.policy)
    forger.refuses(forger.own([burn, forger.mint(), added(), *closing]), "follows no addition")
    for owner in (STRANGER, ITSELF):
        forger.refuses(forger.own([burn, minted(owner), *closing]), "the position would belong to")
    forger.refuses(forger.own([burn, minted(key=replace(forger.key, fee=500)), *closing]), "another pool")
    forger.refuses(forger.own([minted(), *closing]), "follows no burn")
    for acts in ([burn, added()], [forger.mint(), added()], [burn, forger.mint(), forger.home(), added()]):
        forger.refuses(forger.own([*acts, *closing]), "follows no addition")
    for other in (6, 70):
        forger.refuses(forger.own([calldata.increase(7, 1, 0, 0), added(other), *closing]), "is not 7")
    check(forger.own([calldata.increase(7, 1, 0, 0), added(7), *closing]), forger.policy)


def test_what_is_paid_beforehand_is_bounded_and_put_in_at_a_held_price(forger: Forger) -> None:
    token, held = forger.key.currency1, calldata.increase(7, 100, 3, 4)
    closing = [calldata.close_currency(each) for each in (forger.key.currency0, token)]
    forger.policy = replace(
        forger.policy, most_out={token: 10}, fees={forger.key.currency0: 5, token: 2}, most_increase=lambda _: (3, 4)
    )

    def paid(amount: int, *acts: calldata.EncodedAction) -> DecodedCall:
        return forger.own([calldata.settle(token, amount, payer_is_user=True), *acts, *closing])

    def added(most1: int = 12) -> calldata.EncodedAction:
        return calldata.increase_from_deltas(7, 5, most1)

    check(paid(10, held, added()), forger.policy)
    forger.refuses(paid(11, held, added()), "would be paid")
    for unnamed in (OPEN_DELTA, WHOLE_BALANCE):
        forger.refuses(paid(unnamed, held, added()), "names no amount|would be paid")
    forger.refuses(paid(10, held, added(13)), "from credit, above the bound")
    forger.refuses(paid(10, held), "no addition from credit")
    forger.refuses(paid(10, forger.mint(most0=0)), "above the bound|no addition from credit")
    for loose in (calldata.increase(7, 100, 4, 4), calldata.increase(7, 100, 3, 5)):
        forger.refuses(paid(10, loose, added()), "holds no price")
    other = forger.scene.weth.address
    stray = forger.own([calldata.settle(other, 1, payer_is_user=True), held, added(), *closing])
    forger.refuses(stray, "is not of the pair", most_out={token: 10, other: 10})


def test_a_burn_s_minima_hold_the_price_of_what_is_minted_from_it(forger: Forger) -> None:
    pair, most = (forger.key.currency0, forger.key.currency1), (10**18, 10**9)
    allowed = {"least_burn": (5, 6), "proceeds": dict(zip(pair, most, strict=True))}

    def moved(least: tuple[int, int] = (5, 6), most: tuple[int, int] = most) -> DecodedCall:
        minted = calldata.mint_from_deltas(forger.key, forger.scene.ticks(-300_000, -299_940), *most, SENDER)
        return forger.own([calldata.burn_position(7, *least), minted, *map(calldata.close_currency, pair)])

    check(moved(), replace(forger.policy, **allowed))  # type: ignore[arg-type]
    for least in ((0, 0), (4, 6), (5, 5)):
        forger.refuses(moved(least), "is below the bound of", **allowed)
    forger.refuses(moved((5, 0)), "is below the bound of 1", **{**allowed, "least_burn": (5, 0)})
    for loose in ((most[0] + 1, most[1]), (most[0], most[1] + 1), (2**128 - 1, 2**128 - 1)):
        forger.refuses(moved(most=loose), "put in from credit, above the bound", **allowed)
    fees = [calldata.increase(7, 1, 0, 0), calldata.increase_from_deltas(7, 3, 4)]
    check(forger.own(fees), replace(forger.policy, fees=dict(zip(pair, (3, 4), strict=True))))
    forger.refuses(forger.own(fees), "put in from credit", fees=dict(zip(pair, (3, 3), strict=True)))


def test_the_minima_of_the_router_s_swaps_hold_the_price(forger: Forger) -> None:
    any_price = "of what goes there and back"
    forger.refuses(forger.routed(forger.swapped(least=10**8), forger.opened()), any_price)
    forger.refuses(forger.routed(forger.swapped(back=1), forger.opened()), any_price)
    forger.refuses(forger.routed(forger.swapped(least=1, returned=1, back=1), forger.opened()), "would be swapped back")
    large = forger.swapped(returned=2 * 10**6, back=106 * 10**13)
    forger.refuses(forger.routed(large, forger.opened()), "would be swapped back")


@pytest.mark.parametrize("side", [0, 1])
def test_the_maxima_of_the_router_s_mint_are_what_it_is_brought(forger: Forger, side: int) -> None:
    """They too hold the price: where the liquidity behind it is pulled, both swaps may still pay enough."""
    for most in (2**128 - 1, (901 * 10**15, 188_000_000)[side]):
        loose = (most, 185_000_000) if side == 0 else (9 * 10**17, most)
        forger.refuses(forger.routed(forger.swapped(), forger.opened(most=loose)), "put in from credit")


def test_amounts_have_a_cap(forger: Forger) -> None:
    plain = [forger.mint(), forger.settle(), forger.home()]
    forger.refuses(forger.own(plain, 10**19 + 1), "a value of 10000000000000000001 is above the bound of 1" + "0" * 19)
    forger.refuses(forger.own([forger.mint(most0=10**19 + 1), *plain[1:]]), "may be taken, above the bound of")
    dear = "may be taken, above the bound of"
    burned = forger.own([calldata.burn_position(7, 0, 0), forger.mint(most0=10**19 + 1), *plain[1:]])
    check(burned, replace(forger.policy, proceeds={NATIVE: 1}))
    forger.refuses(burned, dear, fees={NATIVE: 1})
    added = forger.own([calldata.increase(7, 1, 10**19 + 1, 0)])
    check(added, replace(forger.policy, fees={NATIVE: 1}, most_increase=lambda _: (10**19 + 1, 0)))
    forger.refuses(added, dear, proceeds={NATIVE: 1})
    usdc = forger.scene.usdc.address
    sent = calldata.permit2_transfer_from(usdc, forger.manager, 10**11 + 1)
    forger.refuses(forger.routed(forger.swapped(), sent, forger.opened()), "may be taken, above the bound of")


@pytest.mark.parametrize("deadline", [1_800_000_000 - 1, 1_800_000_000 + 901, 2**48])
def test_deadlines_are_near(forger: Forger, deadline: int) -> None:
    forger.refuses(forger.own([forger.settle()], deadline=deadline), f"a deadline of {deadline} is not between")
    forger.deadline = deadline
    forger.refuses(forger.routed(forger.swapped(), forger.opened()), f"a deadline of {deadline} is not between")
    inner = forger.opened()
    forger.deadline = forger.scene.now + 60
    forger.refuses(forger.routed(forger.swapped(), inner), f"a deadline of {deadline} is not between")
    inner, forger.deadline = forger.opened(), deadline
    forger.refuses(forger.routed(forger.swapped(), inner), f"a deadline of {deadline} is not between")


@pytest.mark.parametrize("after", [0, 1, 899, 900])
def test_a_deadline_may_be_now_or_as_late_as_its_bound(forger: Forger, after: int) -> None:
    forger.deadline = forger.scene.now + after
    check(forger.own([forger.mint(), forger.settle(), forger.home()], 10**18), forger.policy)
    check(forger.routed(forger.swapped(), forger.opened()), forger.policy)


def test_approvals_are_exact_short_and_for_the_right_contracts(forger: Forger) -> None:
    at, usdc = forger.scene.at, forger.scene.usdc.address
    soon = forger.scene.now + 1800
    check(forger.to(usdc, calldata.approve(at.permit2, 10**11)), forger.policy)
    check(forger.to(at.permit2, calldata.permit2_approve(usdc, at.universal_router, 10**11, soon)), forger.policy)
    for said, why in (
        (forger.to(usdc, calldata.approve(at.permit2, 10**11 + 1)), "above the bound of 100000000000"),
        (forger.to(usdc, calldata.approve(at.position_manager, 5)), "only Permit2 may"),
        (forger.to(usdc, calldata.approve(at.permit2, 5), value=1), "carries a value"),
        # On PositionManager the same words give position 7 away.
        (forger.to(at.position_manager, calldata.approve(at.permit2, 7)), "is not of the pair"),
        (forger.to(forger.scene.weth.address, calldata.approve(at.permit2, 7)), "is not of the pair"),
        (forger.to(at.permit2, calldata.permit2_approve(usdc, STRANGER, 5, soon)), "may not take tokens"),
        (forger.to(at.permit2, calldata.permit2_approve(usdc, at.permit2, 5, soon)), "may not take tokens"),
        (
            forger.to(at.permit2, calldata.permit2_approve(usdc, at.position_manager, 10**11 + 1, soon)),
            "above the bound of 100000000000",
        ),
        (
            forger.to(at.permit2, calldata.permit2_approve(usdc, at.position_manager, 5, soon + 1)),
            f"a permit lasts until {soon + 1}, past {soon}",
        ),
        (forger.to(STRANGER, calldata.permit2_approve(usdc, at.position_manager, 5, soon)), "is not Permit2"),
        (forger.to(at.permit2, calldata.permit2_approve(NATIVE, at.position_manager, 0, soon)), "needs no approval"),
    ):
        forger.refuses(said, why)


def test_calls_go_to_the_contracts_they_are_for(scene: Any) -> None:
    forger, at = Forger(scene, native=False), scene.at
    plain = calldata.modify_liquidities([forger.settle()], forger.deadline)
    routed = calldata.execute([forger.opened()], forger.deadline)
    for contract in (STRANGER, at.pool_manager, at.permit2, forger.key.currency1):
        forger.refuses(forger.to(contract, plain), "is not PositionManager")
        forger.refuses(forger.to(contract, routed), "is not the UniversalRouter")
        forger.refuses(forger.to(contract, calldata.wrap(), value=1), "does not wrap")
    check(forger.to(scene.weth.address, calldata.wrap(), value=1), forger.policy)
    Forger(scene).refuses(forger.to(scene.weth.address, calldata.wrap(), value=1), "the pool does not trade")


def test_another_plans_steps_are_refused(scene: Any) -> None:
    terms, pool = scene.terms(), scene.native
    held = scene.position_in(pool, scene.ticks(-201_600, -200_400))
    mine = positions.close(terms, held).steps
    policy = scene.policy(pool.key, mine, held)
    verify_step(mine[0], policy)
    for other in (
        positions.close(terms, replace(held, id=8)).steps[0],
        positions.close(replace(terms, now=Seconds(terms.now + 1)), held).steps[0],
        positions.close(terms, replace(held, pool=scene.wrapped)).steps[0],
        minting.create(terms, pool, held.range, 10**18, 3 * 10**9).steps[-1],
    ):
        with pytest.raises(Refused):
            verify_step(other, policy)


def test_bounds_are_those_of_the_plan(scene: Any) -> None:
    hasty = Bounds(deadline_seconds=60, permit2_seconds=60)
    held = scene.position_in(scene.native, scene.ticks(-201_600, -200_400))
    (step,) = positions.close(scene.terms(), held).steps
    policy = replace(scene.policy(scene.native.key, (step,), held), bounds=hasty)
    with pytest.raises(Refused, match=r"1800000000.*1800000060"):
        verify_step(step, policy)
