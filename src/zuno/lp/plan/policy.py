"""What no step may do, however it was built: the last check of the bytes before they are signed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

from zuno.amm.fees import MAX_PROTOCOL_FEE, PIPS
from zuno.amm.model import NO_HOOKS, LpPosition, PoolKey, PoolState, Range, price_of
from zuno.amm.ticks import MAX_TICK, MIN_TICK, sqrt_price_at_tick
from zuno.kernel.errors import Refused
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, Seconds
from zuno.lp.model.chains import Deployment
from zuno.lp.model.plan import BPS, Bounds, Step
from zuno.lp.model.plan_events import SwapHome
from zuno.lp.plan import calls
from zuno.lp.plan.calldata import OPEN_DELTA, SENDER, WHOLE_BALANCE
from zuno.lp.plan.context import PlanContext
from zuno.lp.plan.decoding import decode
from zuno.lp.plan.inventory import GUARD_LIMIT
from zuno.lp.plan.routing import MOST_IMPACT, may_route
from zuno.lp.plan.sizing import least_principal, most_cost, most_proceeds

ITSELF = Address("0x0000000000000000000000000000000000000002")
"""As a recipient: the contract that reads it."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What one plan may touch."""

    deployment: Deployment
    wallet: Address
    key: PoolKey
    now: Seconds
    """The head block's time."""
    bounds: Bounds = field(default_factory=Bounds)
    position_id: int | None = None
    """The position the plan is about; None where it opens one."""
    most_out: Mapping[Address, int] = field(default_factory=dict)
    """The most of each currency that may leave the wallet: the cap of value and of every approval."""
    proceeds: Mapping[Address, int] = field(default_factory=dict)
    """The most that burning the plan's position can pay inside the bounds: its new range may cost that much besides."""
    least_burn: tuple[int, int] = (0, 0)
    """What burning it pays of each token at the worst price in the bounds, fees apart."""
    least_decrease: Callable[[int], tuple[int, int]] = lambda liquidity: (0, 0)
    """The same of taking so much liquidity out of it."""
    fees: Mapping[Address, int] = field(default_factory=dict)
    """What touching the plan's position pays: an addition may cost that much besides."""
    most_increase: Callable[[int], tuple[int, int]] = lambda liquidity: (0, 0)
    """What adding so much liquidity to it costs of each token at the worst price in the bounds."""
    range: Range | None = None
    """Where the plan opens a position; None where it is not said."""
    drift: tuple[int, int] | None = None
    """The lowest and the highest square-root price in the tick drift around the approved one."""
    wrapper: Address | None = None
    hooks: frozenset[Address] = frozenset()
    """Hooks the owner has reviewed; a pool with any other hook is shown and not touched."""
    revocable: frozenset[Address] = frozenset()
    """Further tokens, of which nothing may be allowed and everything taken back."""
    swap_home: SwapHome | None = None
    """What a close may swap into one token, and at what rate at least; None: nothing."""
    route: PoolKey | None = None
    """Another pool of the pair that the main swap may go through."""

    @property
    def pair(self) -> tuple[Address, Address]:
        return self.key.currency0, self.key.currency1


def build_policy(
    terms: PlanContext,
    key: PoolKey,
    most_out: Mapping[Address, int],
    position: LpPosition | None = None,
    hooks: frozenset[Address] = frozenset(),
    revocable: frozenset[Address] = frozenset(),
    approved: LpPosition | None = None,
    pool: PoolState | None = None,
    band: Range | None = None,
    swap: SwapHome | None = None,
    route: PoolKey | None = None,
) -> Policy:
    """The policy of a plan in this pool, about this position where it has one already. `approved` is the position as it
    was when its plan was approved: the bounds of burning it are those of that price, not of one it has drifted to.
    `pool` is the pool as it was then, and `band` where the plan opens a position."""
    pair, slippage, bound = (key.currency0, key.currency1), terms.bounds.slippage_bps, approved or position
    paid = (0, 0) if bound is None else most_proceeds(bound, slippage)
    least = (0, 0) if bound is None else least_principal(bound, bound.liquidity, slippage)
    earned = (0, 0) if position is None else (position.fees0, position.fees1)

    def least_decrease(liquidity: int) -> tuple[int, int]:
        return (0, 0) if bound is None else least_principal(bound, liquidity, slippage)

    def most_increase(liquidity: int) -> tuple[int, int]:
        return (0, 0) if bound is None else most_cost(bound.pool.sqrt_price_x96, bound.range, liquidity, slippage)

    drift: tuple[int, int] | None = None
    if pool is not None:
        low, high = pool.tick - terms.bounds.tick_drift, pool.tick + terms.bounds.tick_drift + 1
        drift = sqrt_price_at_tick(max(MIN_TICK, low)), sqrt_price_at_tick(min(MAX_TICK, high))
    return Policy(
        terms.deployment,
        terms.wallet,
        key,
        terms.now,
        terms.bounds,
        None if position is None else position.id,
        most_out,
        dict(zip(pair, paid, strict=True)),
        least,
        least_decrease,
        dict(zip(pair, earned, strict=True)),
        most_increase,
        band,
        drift,
        terms.wrapper,
        hooks,
        revocable,
        swap,
        route,
    )


def verify_step(step: Step, policy: Policy) -> calls.DecodedCall:
    """Read a step's bytes, hold them to the policy and to what the step says of itself; `Refused` names what is off."""
    decoded = decode(step.to, step.value, step.data, policy.deployment.swap_struct)
    check(decoded, policy)
    if decoded.deadline != step.deadline:
        raise Refused(f"the step says its deadline is {step.deadline}, its bytes say {decoded.deadline}")
    decoded_recipients = tuple(recipients(decoded, policy.deployment, policy.wallet))
    if decoded_recipients != step.recipients:
        raise Refused(f"the step names the recipients {step.recipients}, its bytes {decoded_recipients}")
    claimed = replace(policy, most_out={flow.currency: flow.amount for flow in step.most_out})
    if not isinstance(decoded.call, calls.Approve | calls.Permit):
        _check_outflow(decoded, claimed)
    return decoded


def check(decoded: calls.DecodedCall, policy: Policy) -> None:
    """`Refused`, with the bound and the number, unless everything the bytes say is allowed."""
    _check_pool(policy)
    _check_outflow(decoded, policy)
    at = policy.deployment
    match decoded.call:
        case calls.Wrap():
            _require(
                policy.wrapper is not None and decoded.to == policy.wrapper,
                f"{decoded.to} does not wrap the native coin",
            )
            _require(decoded.to in policy.pair, f"the pool does not trade {decoded.to}")
        case calls.Approve(spender, amount):
            # The same selector on PositionManager would give a position away.
            _check_allowed(decoded.to, amount, policy)
            _require(spender == at.permit2, f"{spender} may not be allowed to take tokens; only Permit2 may")
        case calls.Permit(token, spender, amount, expiration):
            _require(decoded.to == at.permit2, f"{decoded.to} is not Permit2")
            _check_allowed(token, amount, policy)
            _require(spender in (at.position_manager, at.universal_router), f"{spender} may not take tokens")
            last = policy.now + policy.bounds.permit2_seconds
            _require(expiration <= last, f"a permit lasts until {expiration}, past {last}")
        case calls.ModifyLiquidities(actions, deadline):
            _require(decoded.to == at.position_manager, f"{decoded.to} is not PositionManager")
            _check_deadline(deadline, policy)
            _check_own_call(actions, decoded.value, policy)
        case calls.Execute():
            _require(decoded.to == at.universal_router, f"{decoded.to} is not the UniversalRouter")
            _check_deadline(decoded.call.deadline, policy)
            _check_router_call(decoded.call, decoded.value, policy)
    if not isinstance(decoded.call, calls.Wrap | calls.ModifyLiquidities | calls.Execute):
        _require(decoded.value == 0, f"an approval carries a value of {decoded.value}")


def recipients(decoded: calls.DecodedCall, at: Deployment, wallet: Address) -> Iterator[Address]:
    """Recipients in the calldata's order, with the contracts' two placeholders resolved."""
    match decoded.call:
        case calls.ModifyLiquidities(actions):
            yield from _recipients(actions, caller=wallet, itself=at.position_manager)
        case calls.Execute(commands):
            for command in commands:
                match command:
                    case calls.RouterSwap(actions):
                        yield from _recipients(actions, caller=wallet, itself=at.universal_router)
                    case (
                        calls.TransferFrom(recipient=recipient)
                        | calls.WrapEther(recipient=recipient)
                        | calls.UnwrapEther(recipient=recipient)
                    ):
                        yield resolve_recipient(recipient, wallet, at.universal_router)
                    case calls.ModifyLiquidities(actions):
                        # PositionManager sees the router: "the sender" is not the wallet here.
                        yield from _recipients(actions, caller=at.universal_router, itself=at.position_manager)
        case _:
            return


def max_outflow(decoded: calls.DecodedCall, pair: tuple[Address, Address]) -> dict[Address, int]:
    """The most of each currency that the bytes can cost, before what a position of the same call pays towards it.

    `pair` are the currencies of the plan's pool: an increase does not name its own. What is minted or added from the
    credit of a call costs the wallet nothing: without that credit the contracts refuse it.
    """
    out = dict[Address, int]()
    match decoded.call:
        case calls.Wrap():
            out[NATIVE] = decoded.value
        case calls.ModifyLiquidities(actions):
            for action in actions:
                if isinstance(action, calls.Mint | calls.Increase):
                    _add_amount(out, pair[0], action.amount0_max)
                    _add_amount(out, pair[1], action.amount1_max)
            # What is paid beforehand pays for these, and where it is more, that much is taken.
            for currency, amount in paid_beforehand(actions).items():
                out[currency] = max(amount, out.get(currency, 0))
        case calls.Execute(commands):
            for command in commands:
                match command:
                    case calls.RouterSwap(actions):
                        for currency, amount in settle_swaps(actions)[0].items():
                            _add_amount(out, currency, amount)
                    case calls.TransferFrom(token, _, amount):
                        _add_amount(out, token, amount)
            # The router's mint pays with what was sent after it: ether is all in the value.
            out[NATIVE] = max(out.get(NATIVE, 0), decoded.value)
        case _:
            pass
    return out


def _check_pool(policy: Policy) -> None:
    hooks = policy.key.hooks
    _require(hooks == NO_HOOKS or hooks in policy.hooks, f"nobody has allowed the hook {hooks}")
    if policy.route is not None:
        usable = may_route(policy.key, policy.route, policy.wrapper)
        _require(usable, f"{policy.route} is no pool to swap this pair in")


def _check_outflow(decoded: calls.DecodedCall, policy: Policy) -> None:
    own: Mapping[Address, int] = {}
    if isinstance(decoded.call, calls.ModifyLiquidities):
        burns = any(isinstance(action, calls.Burn) for action in decoded.call.actions)
        own = policy.proceeds if burns else policy.fees
        for currency, amount in paid_beforehand(decoded.call.actions).items():
            most = policy.most_out.get(currency, 0)
            _require(amount <= most, f"{amount} of {currency} would be paid, above the bound of {most}")
    most = policy.most_out.get(NATIVE, 0)
    _require(decoded.value <= most, f"a value of {decoded.value} is above the bound of {most}")
    for currency, amount in max_outflow(decoded, policy.pair).items():
        most = policy.most_out.get(currency, 0) + own.get(currency, 0)
        _require(amount <= most, f"{amount} of {currency} may be taken, above the bound of {most}")


def _check_own_call(actions: tuple[calls.Action, ...], value: int, policy: Policy) -> None:
    at = policy.deployment
    for action in actions:
        match action:
            case calls.Mint() | calls.MintFromDeltas() | calls.Increase() | calls.Decrease() | calls.Burn():
                _check_change(action, policy, policy.wallet)
                _check_change_bounds(action, policy)
            case calls.IncreaseFromDeltas():
                pass  # looked at below, with what it follows
            case calls.SettlePair(currency0, currency1) | calls.TakePair(currency0, currency1, _):
                _check_pair(currency0, currency1, policy)
            case calls.CloseCurrency(currency) | calls.Sweep(currency, _):
                _check_currency(currency, policy)
            case calls.Settle(currency, amount, payer_is_user) if payer_is_user:
                _check_currency(currency, policy)
                _require(amount not in (OPEN_DELTA, WHOLE_BALANCE), "a payment beforehand names no amount")
            case calls.Take(currency) if any(isinstance(each, calls.IncreaseFromDeltas) for each in actions):
                _check_currency(currency, policy)
            case calls.Settle() | calls.Take() | calls.SwapIn():
                raise Refused(f"{type(action).__name__} is no action of a plan's own call of PositionManager")
    _check_from_credit(actions, policy)
    _check_credit_bounds(actions, policy)
    for recipient in _recipients(actions, caller=policy.wallet, itself=at.position_manager):
        _require(recipient == policy.wallet, f"{recipient} would receive what is the wallet's")
    if value:
        _check_swept(actions, {NATIVE}, policy)


def _check_router_call(call: calls.Execute, value: int, policy: Policy) -> None:
    at = policy.deployment
    _require(bool(call.commands), "the router is called for nothing")
    *before, last = call.commands
    if policy.swap_home is not None:
        _check_swap_home(call.commands, value, policy, policy.swap_home)
        return
    if not isinstance(last, calls.ModifyLiquidities):
        raise Refused("the router's last command does not mint, so that what it holds would stay there")
    parked = {NATIVE} if value else set()
    for command in before:
        match command:
            case calls.RouterSwap(actions):
                parked |= _check_swap(actions, policy)
            case calls.WrapEther() | calls.UnwrapEther():
                pass  # looked at below, with the swap it is for
            case calls.TransferFrom(recipient=recipient) if (
                policy.route is not None and recipient == at.universal_router
            ):
                pass
            case calls.TransferFrom(token, recipient, _):
                _check_token(token, policy)
                _require(recipient == at.position_manager, f"{recipient} would receive what is the wallet's")
                parked.add(token)
            case calls.ModifyLiquidities():
                raise Refused("PositionManager is called twice in one transaction")
    _check_deadline(last.deadline, policy)
    main, probe, guard = _guarded_swaps(before, policy)
    _check_conversions(before, main, policy, at.position_manager)
    if main.currencies[1] not in policy.pair:  # in the other form it is converted for PositionManager
        parked.add(policy.pair[1 if main.sells_first(policy.pair) else 0])
    *paid, minted, taken = last.actions if len(last.actions) > 1 else (None, None)
    for action in paid:
        if not isinstance(action, calls.Settle):
            raise Refused(f"{type(action).__name__} is no action of the router's call of PositionManager")
        _check_currency(action.currency, policy)
        _require(not action.payer_is_user, "PositionManager would ask the router to pay")
        _require(action.amount == WHOLE_BALANCE, f"a settlement of {action.amount} is not of all that was brought")
    if not isinstance(minted, calls.MintFromDeltas) or not isinstance(taken, calls.TakePair):
        raise Refused("the router's call of PositionManager does not end with a mint and what it leaves over")
    _check_change(minted, policy, at.universal_router)
    _check_pair(taken.currency0, taken.currency1, policy)
    got = resolve_recipient(taken.recipient, at.universal_router, at.position_manager)
    _require(got == policy.wallet, f"{got} would receive what is the wallet's")
    for currency in sorted(parked - {action.currency for action in paid if isinstance(action, calls.Settle)}):
        raise Refused(f"what is left of {currency} would stay in PositionManager, where anyone can take it")
    brought = {currency: _sum_brought(before, currency, value, policy) for currency in policy.pair}
    swapped = 0 if probe is None else main.amount_in
    _check_guard(probe or main, guard, brought, policy, swapped)
    if probe is not None:
        _check_there_and_back(main, guard, policy)
    _check_maxima(minted, _most_for_mint((main, *([probe] if probe else []), guard), brought, policy))


def _check_swap_home(commands: Sequence[calls.Command], value: int, policy: Policy, approved: SwapHome) -> None:
    """One exact swap the approved way at the approved rate, paid by the wallet and taken to it whole."""
    actions = [each for command in commands if isinstance(command, calls.RouterSwap) for each in command.actions]
    match actions:
        case [calls.SwapIn() as swap, calls.Settle() as paid, calls.Take() as taken]:
            parked = _check_swap(actions, policy)
        case _:
            raise Refused("the router is called for more than one swap into the wallet")
    converted = _check_conversions(commands, swap, policy, policy.wallet)
    _require(len(commands) == 1 + converted, "the router is called for more than one swap into the wallet")
    sells_first = swap.sells_first(policy.pair)
    given = policy.pair[0 if sells_first else 1]
    _require(sells_first == (approved.to == 1), "the swap goes another way round than was approved")
    _require((paid.currency, taken.currency) == swap.currencies and not parked, "what is swapped does not come home")
    rate = Fraction(swap.amount_out_min, swap.amount_in)
    least = approved.least_rate
    _require(rate >= least, f"the swap takes {float(rate):.6g} for one, less than the {float(least):.6g} approved")
    _require(value == (swap.amount_in if given == NATIVE else 0), f"a value of {value} is not what is swapped")


def _check_conversions(commands: Sequence[calls.Command], main: calls.SwapIn, policy: Policy, receiver: Address) -> int:
    """The native coin is turned into its wrapper, or back, as much as the main swap takes just before it and all that
    it pays just after it, and nowhere else; by how many commands."""
    router, (gives, gets) = policy.deployment.universal_router, main.currencies
    paid, got = policy.pair if main.sells_first(policy.pair) else policy.pair[::-1]
    before: list[calls.Command] = []
    after: list[calls.Command] = []
    if gives != paid:
        moved = calls.TransferFrom(paid, router, main.amount_in)
        before = [moved, calls.UnwrapEther(router, main.amount_in)]
        if paid == NATIVE:
            before = [calls.WrapEther(router, main.amount_in)]
    if gets != got and got == NATIVE:
        to = router if receiver == policy.deployment.position_manager else receiver
        after = [calls.UnwrapEther(to, main.amount_out_min)]
    elif gets != got:
        after = [calls.WrapEther(receiver, WHOLE_BALANCE)]
    swapping = [at for at, command in enumerate(commands) if isinstance(command, calls.RouterSwap)]
    _require(len(swapping) == 1, "the router swaps at several times")
    converted = [
        command
        for command in commands
        if isinstance(command, calls.WrapEther | calls.UnwrapEther)
        or (isinstance(command, calls.TransferFrom) and command.recipient == router)
    ]
    at = swapping[0]
    beside = [*commands[at - len(before) : at], *commands[at + 1 : at + 1 + len(after)]]
    _require(converted == [*before, *after] == beside, "what is wrapped is not what the swap takes and pays")
    return len(converted)


def _check_swap(actions: Sequence[calls.Action], policy: Policy) -> set[Address]:
    """What the swap leaves with PositionManager."""
    at, parked = policy.deployment, set[Address]()
    inside = set() if policy.route is None else {policy.route.currency0, policy.route.currency1} - set(policy.pair)
    for action in actions:
        match action:
            case calls.SwapIn(key, _, amount_in, amount_out_min):
                _require(key in (policy.key, policy.route), f"{key} is another pool than the plan's")
                _require(amount_in > 0, "the swap would take whatever the router is owed")
                _require(amount_out_min > 0, "the swap would take any price")
            case calls.Settle(currency, amount, payer_is_user):
                if payer_is_user or currency not in inside:  # what is converted in the router is paid from there
                    _check_currency(currency, policy)
                    _require(payer_is_user, "the router would pay with what it happens to hold")
                _require(amount == OPEN_DELTA, f"a settlement of {amount} is not of what is owed")
            case calls.Take(currency, recipient, amount) if currency in inside:
                _require(recipient == at.universal_router, f"{recipient} would receive what is the wallet's")
                _require(amount == OPEN_DELTA, f"taking {amount} is not taking what is due")
            case calls.Take(currency, recipient, amount):
                _check_currency(currency, policy)
                got = resolve_recipient(recipient, policy.wallet, at.universal_router)
                allowed = (policy.wallet, at.position_manager)
                _require(got in allowed, f"{got} would receive what is the wallet's")
                _require(amount == OPEN_DELTA, f"taking {amount} is not taking what is due")
                if got == at.position_manager:
                    parked.add(currency)
            case _:
                raise Refused(f"{type(action).__name__} is no action of a swap")
    return parked


def _guarded_swaps(
    commands: Sequence[calls.Command], policy: Policy
) -> tuple[calls.SwapIn, calls.SwapIn | None, calls.SwapIn]:
    """The swap and the one the other way round after it: their minima stop at a price that moved up or down. Where the
    first goes through another pool, a small one each way in the plan's own does."""
    swaps = [action for command in commands if isinstance(command, calls.RouterSwap) for action in command.actions]
    match [swap for swap in swaps if isinstance(swap, calls.SwapIn)]:
        case [main, guard] if main.key == guard.key == policy.key and main.zero_for_one != guard.zero_for_one:
            return main, None, guard
        case [main, probe, guard] if (main.key, probe.key, guard.key) == (
            policy.route,
            policy.key,
            policy.key,
        ) and main.sells_first(policy.pair) == probe.zero_for_one != guard.zero_for_one:
            return main, probe, guard
        case _:
            raise Refused("no swap each way holds the price at which the router mints")


def _sum_brought(commands: Sequence[calls.Command], currency: Address, value: int, policy: Policy) -> int:
    """What of a currency is brought beside what a swap pays; of ether, what is swapped is in the value as well."""
    if currency == NATIVE:
        return value
    at = policy.deployment.position_manager
    moved = (each for each in commands if isinstance(each, calls.TransferFrom) and each.recipient == at)
    return sum(each.amount for each in moved if each.token == currency)


def _check_guard(
    main: calls.SwapIn, guard: calls.SwapIn, brought: Mapping[Address, int], policy: Policy, swapped: int
) -> None:
    """The swap back is small beside the swap, or both are beside what is brought, as they are where there is a route;
    and their minima leave no more room between them than the slippage bound, on either side, and the fees, around a
    price in the drift. `swapped`: in another pool before."""
    paid = policy.pair[0 if main.zero_for_one else 1]
    whole = brought[paid] + (0 if paid == NATIVE else main.amount_in + swapped)
    small = main.amount_in * GUARD_LIMIT <= whole or (
        policy.route is None and guard.amount_in * GUARD_LIMIT <= main.amount_out_min
    )
    _require(
        small and guard.amount_in <= main.amount_out_min,
        f"{guard.amount_in} would be swapped back, more than one part in {GUARD_LIMIT} of {main.amount_out_min}",
    )
    _check_there_and_back(main, guard, policy)
    for swap in (main, guard) if swapped else (guard,):  # a main swap moves the price before its guard meets it
        _check_in_drift(swap, policy)


def _check_in_drift(swap: calls.SwapIn, policy: Policy) -> None:
    """In the pool minted into it takes no worse price than those around the approved one."""
    if policy.drift is None or policy.key.dynamic_fee:
        return
    low, high = map(price_of, policy.drift)
    kept = Fraction(max(0, PIPS - swap.key.fee - MAX_PROTOCOL_FEE), PIPS)
    kept *= Fraction(BPS - policy.bounds.slippage_bps, BPS) ** 2
    rate, least = Fraction(swap.amount_out_min, swap.amount_in), kept * (low if swap.zero_for_one else 1 / high)
    _require(rate >= least, f"the swap takes {float(rate):.6g} for one, less than the {float(least):.6g} in the drift")


def _check_there_and_back(main: calls.SwapIn, guard: calls.SwapIn, policy: Policy) -> None:
    if policy.key.dynamic_fee:
        return  # set by the pool's hook: what the fee is to be is not written in the key
    kept = Fraction(1) if main.key == policy.key else 1 - MOST_IMPACT
    for key in (main.key, guard.key):
        kept *= Fraction(max(0, PIPS - key.fee - MAX_PROTOCOL_FEE), PIPS)
    # The third of the room is for rounding, of which the builder allows a fifth to a unit.
    least = Fraction(BPS - policy.bounds.slippage_bps, BPS) ** 3 * kept
    there_and_back = Fraction(main.amount_out_min * guard.amount_out_min, main.amount_in * guard.amount_in)
    _require(
        there_and_back >= least,
        f"the swaps' minima keep {float(there_and_back):.4f} of what goes there and back, below {float(least):.4f}",
    )


def _most_for_mint(swaps: Sequence[calls.SwapIn], brought: Mapping[Address, int], policy: Policy) -> tuple[int, int]:
    """The most of each token that a mint after the swaps may cost: what is brought, and what they pay at best."""
    room = Fraction(BPS, BPS - policy.bounds.slippage_bps) ** 2
    most = dict(brought)
    for swap in swaps:
        given, got = policy.pair if swap.sells_first(policy.pair) else policy.pair[::-1]
        most[got] += ceil((swap.amount_out_min + 1) * room) + 1
        if swap is not swaps[-1] and given == NATIVE:
            most[given] -= swap.amount_in
    return most[policy.pair[0]], most[policy.pair[1]]


def settle_swaps(actions: tuple[calls.Action, ...]) -> tuple[dict[Address, int], dict[Address, int]]:
    """What the swaps of one command, at their minima, make the wallet pay of each currency, and what is taken."""
    paid, taken, net = dict[Address, int](), dict[Address, int](), dict[Address, int]()
    for action in actions:
        match action:
            case calls.SwapIn(_, _, amount_in, amount_out_min):
                given, got = action.currencies
                _add_amount(net, given, -amount_in)
                _add_amount(net, got, amount_out_min)
            case calls.Settle(currency, _, payer_is_user):
                owed = max(0, -net.get(currency, 0))
                _add_amount(paid, currency, owed if payer_is_user else 0)
                _add_amount(net, currency, owed)
            case calls.Take(currency):
                _add_amount(taken, currency, max(0, net.pop(currency, 0)))
            case _:
                pass
    return paid, taken


def paid_beforehand(actions: Sequence[calls.Action]) -> dict[Address, int]:
    """What the wallet pays of each currency for whatever follows in the same call of PositionManager."""
    paid = dict[Address, int]()
    for action in actions:
        if isinstance(action, calls.Settle) and action.payer_is_user:
            _add_amount(paid, action.currency, action.amount)
    return paid


def _check_from_credit(actions: tuple[calls.Action, ...], policy: Policy) -> None:
    """A burn pays for what is minted from credit; an addition from credit follows the mint, or the addition, whose
    bounds hold the price it relies on, and is of the same position."""
    burnt = False
    last: calls.Action | None = None
    if paid_beforehand(actions):
        used = any(isinstance(action, calls.IncreaseFromDeltas) for action in actions)
        _require(used, "a payment beforehand is followed by no addition from credit")
    for action in actions:
        if isinstance(action, calls.MintFromDeltas):
            _require(burnt, "a mint from credit follows no burn")
        if isinstance(action, calls.IncreaseFromDeltas):
            _require(isinstance(last, calls.Increase), "an addition from credit follows no addition")
            why = f"position {action.token_id} is not {policy.position_id}"
            _require(action.token_id == policy.position_id, why)
        burnt, last = burnt or isinstance(action, calls.Burn), last if isinstance(action, calls.Take) else action


def _check_change_bounds(
    action: calls.Mint | calls.MintFromDeltas | calls.Increase | calls.Decrease | calls.Burn, policy: Policy
) -> None:
    """What is taken out pays at least, and what is put in costs at most, what it does at the worst price in the bounds:
    so each holds the price, an addition also for what is added from credit after it."""
    match action:
        case calls.Increase(_, liquidity, amount0, amount1):
            most0, most1 = policy.most_increase(liquidity)
            within = amount0 <= most0 and amount1 <= most1
            _require(within, f"an addition for {amount0} and {amount1} at most holds no price")
        case calls.Mint(_, band, liquidity, amount0, amount1) if policy.drift is not None:
            at_edges = (most_cost(edge, band, liquidity, policy.bounds.slippage_bps) for edge in policy.drift)
            (most0, _), (_, most1) = at_edges
            within = amount0 <= most0 and amount1 <= most1
            _require(within, f"a mint for {amount0} and {amount1} at most holds no price")
        case calls.Burn(_, amount0, amount1) | calls.Decrease(_, _, amount0, amount1):
            least = policy.least_burn if isinstance(action, calls.Burn) else policy.least_decrease(action.liquidity)
            for amount, bound in zip((amount0, amount1), least, strict=True):
                _require(amount >= bound, f"{amount} at least of what is taken out is below the bound of {bound}")
        case _:
            pass


def _check_credit_bounds(actions: tuple[calls.Action, ...], policy: Policy) -> None:
    """Where nothing but a burn's minima holds the price of a mint, they are those of the bounds, and of both tokens;
    and what is put in from credit costs no more than the burn, or the fees, pay."""
    burn = next((action for action in actions if isinstance(action, calls.Burn)), None)
    for action in actions:
        if not isinstance(action, calls.MintFromDeltas | calls.IncreaseFromDeltas):
            continue
        credit, paid = policy.fees if burn is None else policy.proceeds, paid_beforehand(actions)
        most0, most1 = (credit.get(currency, 0) + paid.get(currency, 0) for currency in policy.pair)
        _check_maxima(action, (most0, most1))
        if burn is not None and isinstance(action, calls.MintFromDeltas):
            for least, bound in zip((burn.amount0_min, burn.amount1_min), policy.least_burn, strict=True):
                _require(least >= max(1, bound), f"a burn for {least} at least is below the bound of {max(1, bound)}")


def _check_maxima(action: calls.MintFromDeltas | calls.IncreaseFromDeltas, most: tuple[int, int]) -> None:
    for amount, bound in zip((action.amount0_max, action.amount1_max), most, strict=True):
        _require(amount <= bound, f"{amount} may be put in from credit, above the bound of {bound}")


def _check_pair(currency0: Address, currency1: Address, policy: Policy) -> None:
    _require((currency0, currency1) == policy.pair, f"{currency0} and {currency1} are not the pair")


def _check_change(
    action: calls.Mint | calls.MintFromDeltas | calls.Increase | calls.Decrease | calls.Burn,
    policy: Policy,
    caller: Address,
) -> None:
    if isinstance(action, calls.Mint | calls.MintFromDeltas):
        _require(action.key == policy.key, f"{action.key} is another pool than the plan's")
        owner = resolve_recipient(action.owner, caller, policy.deployment.position_manager)
        _require(owner == policy.wallet, f"the position would belong to {owner}")
        where = f"ticks {action.range.lower} to {action.range.upper}"
        _require(policy.range in (None, action.range), f"{where} are another range than the plan's")
    else:
        _require(
            action.token_id == policy.position_id,
            f"position {action.token_id} is not the plan's ({policy.position_id})",
        )


def _check_swept(actions: tuple[calls.Action, ...], parked: set[Address], policy: Policy) -> None:
    """What lies in PositionManager after a transaction is anyone's to take."""
    payments = [
        at
        for at, action in enumerate(actions)
        if isinstance(action, calls.Settle | calls.SettlePair | calls.CloseCurrency)
    ]
    after = actions[max(payments, default=-1) + 1 :]
    swept = {action.currency for action in after if isinstance(action, calls.Sweep)}
    for currency in sorted(parked - swept):
        raise Refused(f"what is left of {currency} would stay in PositionManager, where anyone can take it")


def _check_deadline(deadline: int, policy: Policy) -> None:
    last = policy.now + policy.bounds.deadline_seconds
    _require(policy.now <= deadline <= last, f"a deadline of {deadline} is not between {policy.now} and {last}")


def _check_currency(currency: Address, policy: Policy) -> None:
    _require(currency in policy.pair, f"{currency} is not of the pair")


def _check_token(token: Address, policy: Policy) -> None:
    _check_currency(token, policy)
    _require(token != NATIVE, "the native coin needs no approval")


def _check_allowed(token: Address, amount: int, policy: Policy) -> None:
    if amount == 0 and token in policy.revocable - {policy.deployment.position_manager}:
        return
    _check_token(token, policy)
    most = policy.most_out.get(token, 0)
    _require(amount <= most, f"an approval of {amount} of {token} is above the bound of {most}")


def _recipients(actions: tuple[calls.Action, ...], *, caller: Address, itself: Address) -> Iterator[Address]:
    for action in actions:
        match action:
            case calls.Mint(owner=recipient) | calls.MintFromDeltas(owner=recipient):
                yield resolve_recipient(recipient, caller, itself)
            case (
                calls.Take(recipient=recipient) | calls.TakePair(recipient=recipient) | calls.Sweep(recipient=recipient)
            ):
                yield resolve_recipient(recipient, caller, itself)
            case calls.CloseCurrency():
                yield caller
            case _:
                pass


def resolve_recipient(recipient: Address, caller: Address, itself: Address) -> Address:
    return {SENDER: caller, ITSELF: itself}.get(recipient, recipient)


def _add_amount(out: dict[Address, int], currency: Address, amount: int) -> None:
    out[currency] = out.get(currency, 0) + amount


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Refused(otherwise)
