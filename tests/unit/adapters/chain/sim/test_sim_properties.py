"""Whatever is sent to sim: money is only moved, a revert leaves no trace, and every record adds up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.adapters.chain.sim.engine import SimWorld
from zuno.adapters.chain.sim.history import position_history
from zuno.adapters.chain.sim.ledger import VAULT
from zuno.adapters.chain.sim.state import PositionChange, SimState
from zuno.adapters.chain.sim.transactions import SimTransaction
from zuno.adapters.chain.world import DEFAULT_SEED, DEPLOYMENT, OTHERS, USDC, WALLET, WETH, pool_specs
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Wei
from zuno.lp.plan import calldata
from zuno.lp.ports.spending import Call
from zuno.lp.rules.attribution import attribute

pytestmark = pytest.mark.slow

MANAGER, ROUTER = DEPLOYMENT.position_manager, DEPLOYMENT.universal_router
CURRENCIES = (NATIVE, WETH.address, USDC.address)
KEYS = [spec.key for spec in pool_specs()]
AMPLE = 1 << 100
FOREVER = (1 << 48) - 1
WORLD = SimWorld.play(DEFAULT_SEED)
Command = tuple[int, bytes]

pools = st.integers(0, 2)
tokens = st.sampled_from((1, 1, 2, 2, 3, 4, 9))
liquidities = st.one_of(st.integers(1, 10**14), st.sampled_from((0, 10**16, 10**22)))
currencies = st.sampled_from(CURRENCIES)
people = st.sampled_from((WALLET, WALLET, OTHERS, MANAGER, ROUTER, calldata.SENDER, f"0x{2:040x}"))
amounts = st.one_of(st.just(0), st.integers(1, 10**19), st.just(1 << 255))
most = st.sampled_from((AMPLE, AMPLE, AMPLE, 10**6))
least = st.sampled_from((0, 0, 0, 10**6, AMPLE))


def _mint(pool: int, liquidity: int, below: int, above: int, most: int, owner: str) -> calldata.EncodedAction:
    key = KEYS[pool]
    here = WORLD.pools[pool].slot0.tick // key.tick_spacing * key.tick_spacing
    lower, upper = here - below * key.tick_spacing, here + above * key.tick_spacing
    return calldata.mint_position(key, lower, upper, liquidity, most, most, owner)


def _swap(pool: int, down: bool, amount: int, least: int) -> calldata.EncodedAction:
    return calldata.swap_exact_in_single(KEYS[pool], down, amount, least, DEPLOYMENT.swap_struct)


positioned = st.one_of(
    st.builds(_mint, pools, liquidities, st.integers(-5, 20), st.integers(1, 20), most, people),
    st.builds(calldata.increase, tokens, liquidities, most, most),
    st.builds(calldata.decrease, tokens, liquidities, least, least),
    st.builds(calldata.burn_position, tokens, least, least),
)
paid = st.one_of(
    st.builds(calldata.settle, currencies, amounts, st.booleans()),
    st.builds(calldata.take, currencies, people, amounts),
)
settled = st.one_of(
    paid,
    st.builds(calldata.settle_pair, currencies, currencies),
    st.builds(calldata.take_pair, currencies, currencies, people),
    st.builds(calldata.sweep, currencies, people),
)
closed = [calldata.close_currency(currency) for currency in CURRENCIES]
rarely = st.sampled_from((False, False, False, True))


def _modify(
    acts: list[calldata.EncodedAction], rest: list[calldata.EncodedAction], messy: bool
) -> list[calldata.EncodedAction]:
    return [*acts, *(rest if messy else closed)]


modifying = st.builds(_modify, st.lists(positioned, min_size=1, max_size=3), st.lists(settled, max_size=3), rarely)


def _swapping(
    pool: int, down: bool, amount: int, least: int, to: str, rest: list[calldata.EncodedAction], messy: bool
) -> Command:
    pair = (KEYS[pool].currency0, KEYS[pool].currency1)
    given, got = pair if down else pair[::-1]
    honest = [calldata.settle(given, 0, payer_is_user=True), calldata.take(got, to, 0)]
    return calldata.v4_swap([_swap(pool, down, amount, least), *(rest if messy else honest)])


swapping = st.builds(
    *(_swapping, pools, st.booleans(), st.integers(1, 10**11), least, people, st.lists(paid, max_size=3), rarely)
)
handing = st.builds(
    calldata.permit2_transfer_from, st.sampled_from(CURRENCIES[1:]), st.just(MANAGER), st.integers(10**6, 10**12)
)


def _entering(mint: calldata.EncodedAction, messy: list[calldata.EncodedAction]) -> Command:
    """Paid by PositionManager itself, out of what it was handed; what is left goes home."""
    acts = [
        mint,
        *(calldata.settle(currency, 0, payer_is_user=False) for currency in CURRENCIES),
        *(calldata.sweep(currency, WALLET) for currency in CURRENCIES),
        *messy,
    ]
    return calldata.position_manager_call(acts, FOREVER)


small_mint = st.builds(
    *(_mint, pools, st.integers(1, 10**11), st.integers(1, 9), st.integers(1, 9), st.just(AMPLE), people)
)
entering = st.builds(_entering, small_mint, st.lists(positioned, max_size=1))
routed = st.one_of(
    st.lists(st.one_of(swapping, handing, entering), max_size=3),
    st.tuples(swapping, handing, entering).map(list),
)
values = st.sampled_from((0, 10**18, 10**18, 10**26))
spending = st.one_of(
    st.builds(lambda acts, value: Call(MANAGER, value, calldata.modify_liquidities(acts, FOREVER)), modifying, values),
    st.builds(lambda orders, value: Call(ROUTER, value, calldata.execute(orders, FOREVER)), routed, values),
)


def total(books: SimState) -> Counter[Address]:
    whole: Counter[Address] = Counter()
    for (_, currency), held in books.ledger.entries():
        assert held > 0
        whole[currency] += held
    return whole


def image(books: SimState) -> tuple[object, ...]:
    return books.canonical_text(), [pool.copy() for pool in books.pools]


@pytest.fixture(scope="module")
def trusting() -> SimWorld:
    """A wallet that lets the router move its tokens as well."""
    world = deepcopy(WORLD)
    for token in CURRENCIES[1:]:
        grant = world.books.permissions.grant(WALLET, token, MANAGER)
        world.books.permissions.permit(WALLET, token, ROUTER, grant)
    return world


@settings(max_examples=examples(300), deadline=None)
@given(calls=st.lists(spending, min_size=1, max_size=3))
def test_money_is_only_moved_and_a_revert_leaves_no_trace(trusting: SimWorld, calls: list[Call]) -> None:
    before, whole = image(trusting.books), total(trusting.books)
    books = trusting.books
    for one in trusting.attempt(WALLET, calls):
        if one.error is not None:
            assert one.books is books
            assert (one.pool_events, one.minted, one.burnt) == ((), (), ())
        assert total(one.books) == whole
        owed: Counter[Address] = Counter()
        for doing in one.pool_events:
            key = KEYS[doing.nft.pool if isinstance(doing, PositionChange) else doing.pool]
            owed[key.currency0] += doing.owed0
            owed[key.currency1] += doing.owed1
        for currency in CURRENCIES:
            received = one.books.ledger.of(VAULT, currency) - books.ledger.of(VAULT, currency)
            assert received == owed[currency], "the pools get exactly what their arithmetic says"
        assert set(books.nfts) - set(one.burnt) <= set(one.books.nfts)
        books = one.books
    assert image(trusting.books) == before


# -- records of whatever a wallet does to its positions


def opened(world: SimWorld, pool: int, width: int, liquidity: int) -> Call:
    key = KEYS[pool]
    here = world.pools[pool].slot0.tick // key.tick_spacing * key.tick_spacing
    reach = width * key.tick_spacing
    mint = calldata.mint_position(key, here - reach, here + reach, liquidity, AMPLE, AMPLE, WALLET)
    ether = 10**18 if key.currency0 == NATIVE else 0
    rest = [*closed, *([calldata.sweep(NATIVE, WALLET)] if ether else [])]
    return Call(MANAGER, ether, calldata.modify_liquidities([mint, *rest], FOREVER))


def changed(
    world: SimWorld, acts: Callable[[int, int], list[calldata.EncodedAction]], which: int, value: int = 0
) -> Call:
    mine = sorted(nft.id for nft in world.nfts.values() if nft.owner == WALLET)
    token = mine[which % len(mine)] if mine else 0
    held = world.position(world.nfts[token]).liquidity if mine else 0
    rest = [*closed, calldata.sweep(NATIVE, WALLET)]
    return Call(MANAGER, value, calldata.modify_liquidities([*acts(token, held), *rest], FOREVER))


def moved(world: SimWorld, which: int, width: int) -> Call:
    mine = sorted(nft.id for nft in world.nfts.values() if nft.owner == WALLET)
    if not mine:
        return opened(world, 0, width, 10**13)
    nft = world.nfts[mine[which % len(mine)]]
    key = KEYS[nft.pool]
    here = world.pools[nft.pool].slot0.tick // key.tick_spacing * key.tick_spacing
    reach = width * key.tick_spacing
    acts = [
        calldata.burn_position(nft.id, 0, 0),
        calldata.mint_position(key, here - reach, here + reach, 10**12, AMPLE, AMPLE, WALLET),
    ]
    value = 10**18 if key.currency0 == NATIVE else 0
    rest = [*closed, calldata.sweep(NATIVE, WALLET)]
    return Call(MANAGER, value, calldata.modify_liquidities([*acts, *rest], FOREVER))


Deed = tuple[str, int, int]
deeds = st.tuples(
    st.sampled_from(("open", "add", "take", "collect", "close", "move", "push", "push", "revert")),
    st.integers(0, 3),
    st.integers(1, 12),
)


def call_of(world: SimWorld, deed: Deed) -> Call:
    kind, which, size = deed
    match kind:
        case "open":
            return opened(world, which % 3, size, 10**12 * size)
        case "add":
            return changed(world, lambda id_, _: [calldata.increase(id_, 10**10 * size, AMPLE, AMPLE)], which, 10**18)
        case "take":
            return changed(world, lambda id_, held: [calldata.decrease(id_, held // size, 0, 0)], which)
        case "collect":
            return changed(world, lambda id_, _: [calldata.decrease(id_, 0, 0, 0)], which)
        case "close":
            return changed(world, lambda id_, _: [calldata.burn_position(id_, 0, 0)], which)
        case "move":
            return moved(world, which, size)
    return Call(MANAGER, 0, calldata.modify_liquidities([calldata.burn_position(10**6, 0, 0)], FOREVER))


@pytest.mark.soak
@settings(max_examples=examples(25), deadline=None)
@given(st.lists(deeds, min_size=1, max_size=10))
def test_every_record_adds_up_whatever_was_done(story: list[Deed]) -> None:
    world = SimWorld.play(DEFAULT_SEED)
    for at, deed in enumerate(story):
        if deed[0] == "push":
            world.apply(world.next_move(world.reference * (990 + 2 * deed[2]) // 1000))
            continue
        call = call_of(world, deed)
        tx = HexId(f"0x{at:064x}")
        world.transact(
            SimTransaction(tx, b"", WALLET, world.nonces[WALLET], call, 3_000_000, Wei(2 * 10**9), Wei(10**9)),
            world.next_time,
        )
    for token_id, nft in world.all_nfts.items():
        if nft.owner == WALLET:
            told = position_history(world, token_id, None)
            assert attribute(told).exact, (token_id, told.notes)
            assert told.externals == ()
    window = position_history(world, max(world.nfts), WORLD.head.timestamp)
    assert attribute(window).exact
