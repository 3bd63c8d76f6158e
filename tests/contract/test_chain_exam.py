"""The exam of `Chain`: every adapter sits it unchanged, each on its own telling of the same story.

A case is a chain with a few facts known beforehand. To seat another adapter, add a function that makes a case and
name it in CASES; nothing else changes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.engine import SimWorld
from zuno.adapters.chain.sim.ledger import VAULT
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.chain.world import (
    DEFAULT_SEED,
    DEVNET,
    GENESIS_TIME,
    HOUR,
    HOURS,
    MINT_HOUR,
    OTHERS,
    USDC,
    WALLET,
    WETH,
    pool_specs,
)
from zuno.adapters.prices.feeds import ChainGas, NativePrice, SeededFeed
from zuno.amm import identity
from zuno.amm.ticks import MAX_TICK, MIN_TICK
from zuno.kernel.errors import NotFound, PoolNotInitialized, Refused, Unavailable, UsageError
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Seconds
from zuno.lp.agents.observe import Observer
from zuno.lp.model.ballot import RiskProfile
from zuno.lp.model.chains import ETHER, curated_keys
from zuno.lp.model.debate import Context, FlowStart
from zuno.lp.model.history import PositionEvent
from zuno.lp.model.market import Pair
from zuno.lp.plan import calldata
from zuno.lp.ports.chain import Chain, SurveyedChain
from zuno.lp.ports.market import Feeds
from zuno.lp.rules.attribution import attribute
from zuno.lp.rules.fee_yield import sample_of

MINTED = Seconds(GENESIS_TIME + MINT_HOUR * HOUR)
ENDED = Seconds(GENESIS_TIME + HOURS * HOUR)
NOBODY = Address("0x" + "77" * 20)
NO_POOL = HexId("0x" + "5a" * 32)


@dataclass(frozen=True)
class ChainCase:
    """A chain and what is known of it without asking."""

    chain: SurveyedChain
    wallet: Address = WALLET
    held: tuple[int, ...] = (1, 2)
    foreign: tuple[int, Address] = (3, OTHERS)
    unknown_id: int = 4_000
    pools: tuple[HexId, ...] = tuple(spec.id for spec in pool_specs())
    unknown_pool: HexId = NO_POOL
    pool_of: tuple[int, int] = (0, 2)
    """Which pool each held position is in."""
    minted: Seconds = MINTED
    ended: Seconds = ENDED


def sim(tmp_path: Path, request: pytest.FixtureRequest) -> ChainCase:
    return ChainCase(SimChain(SimFile(tmp_path / "home")))


def rpc_on_devnet(tmp_path: Path, request: pytest.FixtureRequest) -> ChainCase:
    from zuno.adapters.chain.rpc import RpcChain

    return ChainCase(RpcChain(DEVNET, [request.getfixturevalue("devnet_url")], tmp_path / "cache", WALLET))


CASES: dict[str, Callable[[Path, pytest.FixtureRequest], ChainCase]] = {"sim": sim, "rpc on devnet": rpc_on_devnet}


@pytest.fixture(scope="module")
def node_of_devnet(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip("eth", reason="py-evm is the devnet extra")
    from zuno.adapters.chain.devnet.serve_world import open_node
    from zuno.adapters.chain.world import DEFAULT_SEED
    from zuno_devnet.artifacts import find_artifacts

    cache: Path = request.getfixturevalue("world_cache")
    return open_node(find_artifacts(request.getfixturevalue("node_modules")), cache, DEFAULT_SEED)[0]


@pytest.fixture(scope="module")
def devnet_url(node_of_devnet: Any) -> Iterator[str]:
    from zuno_devnet.server import serve

    with serve(node_of_devnet) as url:
        yield url


@pytest.fixture(params=CASES, ids=str)
async def chain_case(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ChainCase]:
    case = CASES[request.param](tmp_path, request)
    yield case
    await case.chain.close()


async def test_it_knows_itself_and_its_wallet(chain_case: ChainCase) -> None:
    info = chain_case.chain.info
    assert (info.id, bool(info.name), bool(info.title)) == (31337, True, True)
    assert await chain_case.chain.wallet() == chain_case.wallet


async def test_now_is_a_block(chain_case: ChainCase) -> None:
    head = await chain_case.chain.head()
    assert head.timestamp == chain_case.ended
    assert head.hash.startswith("0x")
    assert len(head.hash) == 66
    assert (await chain_case.chain.head()) == head


async def test_pools_are_complete_and_of_one_block(chain_case: ChainCase) -> None:
    found = await chain_case.chain.pools()
    assert {pool.id for pool in found.pools} == set(chain_case.pools)
    assert len(found.pools) == len(chain_case.pools)
    assert found.notes == ()
    keys = [pool.key for pool in found.pools]
    assert keys == sorted(keys, key=lambda key: key.order)
    assert {pool.block for pool in found.pools} == {found.block}
    for pool in found.pools:
        assert int(pool.key.currency0, 16) < int(pool.key.currency1, 16)
        assert (pool.token0.address, pool.token1.address) == (pool.key.currency0, pool.key.currency1)
        assert pool.sqrt_price_x96 > 0
        assert pool.liquidity > 0
        assert pool.lp_fee == pool.key.fee
        assert await chain_case.chain.pool(pool.id) == pool


async def test_a_pool_id_may_be_typed_in_capitals(chain_case: ChainCase) -> None:
    wanted = chain_case.pools[0]
    assert (await chain_case.chain.pool(HexId("0x" + wanted[2:].upper()))).id == wanted


async def test_an_id_that_names_no_pool(chain_case: ChainCase) -> None:
    with pytest.raises(NotFound):
        await chain_case.chain.pool(chain_case.unknown_pool)
    with pytest.raises(NotFound):
        await chain_case.chain.price_path(chain_case.unknown_pool, chain_case.minted)
    with pytest.raises(NotFound):
        await chain_case.chain.depth(chain_case.unknown_pool)


async def test_depth_is_the_pool_with_the_ticks_around_its_price(chain_case: ChainCase) -> None:
    for pool_id in chain_case.pools:
        depth = await chain_case.chain.depth(pool_id)
        assert depth.pool == await chain_case.chain.pool(pool_id)
        assert depth.known.contains(depth.pool.tick)
        assert all(depth.known.lower <= tick < depth.known.upper for tick in depth.net)
        entered = sum(net for tick, net in depth.net.items() if tick <= depth.pool.tick)
        left = -sum(net for tick, net in depth.net.items() if tick > depth.pool.tick)
        unread = depth.pool.liquidity - entered, depth.pool.liquidity - left
        assert min(unread) >= 0, "more entered or leaves around the price than is in range"
        if depth.known.lower <= MIN_TICK and depth.known.upper >= MAX_TICK:
            assert unread == (0, 0)


async def test_a_pool_that_could_be_and_has_no_price(chain_case: ChainCase) -> None:
    """Every usual tier of the curated pairs has an id before anybody gives it a price."""
    info, priced = chain_case.chain.info, 0
    for key in curated_keys(info):
        wanted = HexId(identity.pool_id(key.currency0, key.currency1, key.fee, key.tick_spacing, key.hooks))
        if wanted in chain_case.pools:
            priced += 1
            assert (await chain_case.chain.pool(wanted)).key == key
        else:
            with pytest.raises(PoolNotInitialized):
                await chain_case.chain.pool(wanted)
    assert priced == len(chain_case.pools)


async def test_a_pool_s_past_is_of_the_last_block_not_later(chain_case: ChainCase) -> None:
    chain, pool_id = chain_case.chain, chain_case.pools[0]
    now, then = await chain.pool(pool_id), await chain.pool_at(pool_id, Seconds(chain_case.minted + 1))
    assert then.block.timestamp == chain_case.minted
    assert (then.id, then.key, then.token0) == (now.id, now.key, now.token0)
    assert 0 < then.fee_growth_global0_x128 < now.fee_growth_global0_x128
    assert await chain.pool_at(pool_id, Seconds(chain_case.ended + 10**6)) == now
    with pytest.raises(Unavailable):
        await chain.pool_at(pool_id, Seconds(GENESIS_TIME - 5))
    with pytest.raises(NotFound):
        await chain.pool_at(chain_case.unknown_pool, chain_case.ended)


async def test_who_holds_what(chain_case: ChainCase) -> None:
    owned = await chain_case.chain.owned(chain_case.wallet)
    assert (owned.ids, owned.balance, owned.complete, owned.note) == (
        chain_case.held,
        len(chain_case.held),
        True,
        "",
    )
    assert await chain_case.chain.owned(Address(to_checksum_address(chain_case.wallet))) == owned
    nothing = await chain_case.chain.owned(NOBODY)
    assert (nothing.ids, nothing.balance, nothing.complete) == ((), 0, True)


async def test_holdings_are_found_and_read_at_one_block(chain_case: ChainCase) -> None:
    chain = chain_case.chain
    holdings = await chain.holdings(Address(to_checksum_address(chain_case.wallet)))
    assert holdings.owned == await chain.owned(chain_case.wallet)
    assert holdings.snapshot == await chain.positions(chain_case.held)
    assert holdings.owned.block == holdings.snapshot.block == await chain.head()
    nothing = await chain.holdings(NOBODY)
    assert (nothing.owned.ids, nothing.snapshot.positions, nothing.snapshot.missing) == ((), (), ())
    assert nothing.owned.block == nothing.snapshot.block


async def test_many_wallets_are_read_as_each_alone_and_at_one_block(chain_case: ChainCase) -> None:
    chain, (_, other) = chain_case.chain, chain_case.foreign
    asked = [NOBODY, chain_case.wallet, other, Address(to_checksum_address(chain_case.wallet))]
    every = await chain.holdings_of(asked)
    assert every == tuple([await chain.holdings(owner) for owner in asked[:3]])
    assert every == await chain.holdings_of(asked)
    assert {holdings.snapshot.block for holdings in every} == {every[0].owned.block}
    assert await chain.holdings_of([]) == ()


async def test_a_snapshot_keeps_order_and_names_what_is_missing(chain_case: ChainCase) -> None:
    token, owner = chain_case.foreign
    asked = [token, chain_case.unknown_id, *reversed(chain_case.held), token]
    snapshot = await chain_case.chain.positions(asked)
    assert [position.id for position in snapshot.positions] == [token, *reversed(chain_case.held)]
    assert [missing.id for missing in snapshot.missing] == [chain_case.unknown_id]
    assert snapshot.missing[0].reason
    assert {position.block for position in snapshot.positions} == {snapshot.block}
    assert snapshot.positions[0].owner == owner
    assert {position.chain for position in snapshot.positions} == {chain_case.chain.info.name}
    for position in snapshot.positions:
        assert position.pool == await chain_case.chain.pool(position.pool.id)
        assert position.liquidity > 0


async def test_a_block_that_somebody_names_is_read_as_it_was(chain_case: ChainCase) -> None:
    chain, held = chain_case.chain, chain_case.held
    now = await chain.positions(held)
    seen = await chain.witness(now.block, chain_case.pools, held)
    assert seen.positions == {position.id: position for position in now.positions}
    assert seen.pools == {pool_id: await chain.pool(pool_id) for pool_id in chain_case.pools}
    then = (await chain.pool_at(chain_case.pools[0], Seconds(chain_case.minted + 1))).block
    past = await chain.witness(then, chain_case.pools, (*held, chain_case.unknown_id))
    assert past.block == then
    assert set(past.positions) == set(held), "what never was is left out"
    assert past.pools[chain_case.pools[0]] == await chain.pool_at(chain_case.pools[0], then.timestamp)
    assert all(past.positions[token].fees0 <= seen.positions[token].fees0 for token in held)


async def test_a_block_of_another_chain_is_no_witness(chain_case: ChainCase) -> None:
    chain, head = chain_case.chain, await chain_case.chain.head()
    for lie in (
        replace(head, hash=HexId("0x" + "ab" * 32)),
        replace(head, number=head.number + 5),
        replace(head, number=head.number - 1),
        replace(head, timestamp=Seconds(head.timestamp - 1)),
    ):
        with pytest.raises(Refused, match="block"):
            await chain.witness(lie, chain_case.pools, chain_case.held)


async def test_nothing_asked_nothing_missing(chain_case: ChainCase) -> None:
    snapshot = await chain_case.chain.positions([])
    assert (snapshot.positions, snapshot.missing) == ((), ())
    alone = await chain_case.chain.positions([chain_case.unknown_id])
    assert ([missing.id for missing in alone.missing], alone.positions) == ([chain_case.unknown_id], ())


async def test_a_history_from_the_mint_explains_itself(chain_case: ChainCase) -> None:
    for token, pool in zip(chain_case.held, chain_case.pool_of, strict=True):
        (position,) = (await chain_case.chain.positions([token])).positions
        history = await chain_case.chain.history(token, None)
        (mint,) = history.events
        assert isinstance(mint, PositionEvent)
        assert history.start is None
        assert history.end is not None
        assert (history.opened, history.opened.timestamp) == (mint.block, chain_case.minted)
        assert history.closed == position.block
        assert (mint.liquidity_delta, mint.range) == (position.liquidity, position.range)
        assert mint.gas > 0
        assert (history.end.worth0, history.end.worth1) == (
            position.amount0 + position.fees0,
            position.amount1 + position.fees1,
        )
        assert history.key == position.pool.key
        assert position.pool.id == chain_case.pools[pool]
        assert [point.block.number for point in history.path] == sorted({point.block.number for point in history.path})
        assert history.path[0].block.number == history.opened.number
        assert history.path[-1].sqrt_price_x96 == position.pool.sqrt_price_x96
        assert attribute(history).exact, history.computed


async def test_a_window_opens_at_the_last_block_not_later(chain_case: ChainCase) -> None:
    for since in (chain_case.minted, chain_case.minted + 7 * HOUR + 1, chain_case.ended):
        history = await chain_case.chain.history(chain_case.held[0], Seconds(since))
        assert history.start is not None
        assert history.opened == history.start.block
        assert since - HOUR < history.opened.timestamp <= since
        assert history.events == ()
        assert attribute(history).exact, history.computed
    early = await chain_case.chain.history(chain_case.held[0], Seconds(chain_case.minted - 3 * HOUR))
    assert early.start is None
    assert early.opened.timestamp == chain_case.minted


async def test_histories_of_nothing(chain_case: ChainCase) -> None:
    with pytest.raises(NotFound):
        await chain_case.chain.history(chain_case.unknown_id, None)
    with pytest.raises(UsageError):
        await chain_case.chain.history(chain_case.held[0], Seconds(chain_case.ended + HOUR))


async def test_prices_come_hourly_oldest_first(chain_case: ChainCase) -> None:
    since = Seconds(chain_case.minted + HOUR // 2)
    for pool_id in chain_case.pools:
        path = await chain_case.chain.price_path(pool_id, since)
        times = [point.block.timestamp for point in path]
        assert times == sorted(times)
        assert times[0] >= since
        hours = [at // HOUR for at in times]
        assert len(set(hours)) == len(hours)
        assert path[-1].sqrt_price_x96 == (await chain_case.chain.pool(pool_id)).sqrt_price_x96


@pytest.mark.parametrize("days", [1, 7])
async def test_what_swaps_tell_of_fees_is_what_the_state_shows(chain_case: ChainCase, days: int) -> None:
    chain, since = chain_case.chain, Seconds(chain_case.ended - days * 24 * HOUR)
    evenly = 0
    for pool_id in chain_case.pools:
        told, now = await chain.swap_fees(pool_id, since), await chain.pool(pool_id)
        assert (told.closed, told.opened.timestamp >= since) == (now.block, True)
        then = await chain.pool_at(pool_id, told.opened.timestamp)
        assert then.block == told.opened
        assert told.swaps > 10
        grown = (
            (told.growth0_x128, now.fee_growth_global0_x128 - then.fee_growth_global0_x128),
            (told.growth1_x128, now.fee_growth_global1_x128 - then.fee_growth_global1_x128),
        )
        evenly += not told.uneven
        assert [mark.at - now.block.timestamp for mark in told.days[-days:]] == [
            -ago * 24 * HOUR for ago in reversed(range(days))
        ]
        for mark in told.days:
            past = await chain.pool_at(pool_id, mark.at)
            assert mark.sqrt_price_x96 == past.sqrt_price_x96
            for said, true in (
                (mark.growth0_x128, past.fee_growth_global0_x128 - then.fee_growth_global0_x128),
                (mark.growth1_x128, past.fee_growth_global1_x128 - then.fee_growth_global1_x128),
            ):
                assert abs(said - true) * (100 if told.uneven else 10**6) <= true
        for said, true in grown:
            # Exact but for rounding within one stretch of liquidity; half a percent where ticks were crossed.
            assert abs(said - true) * (200 if told.uneven else 10**6) <= true
    assert 0 < evenly < len(chain_case.pools)


@pytest.mark.parametrize("days", [1, 7])
async def test_a_window_has_the_fees_that_attribution_finds(chain_case: ChainCase, days: int) -> None:
    chain, since = chain_case.chain, Seconds(chain_case.ended - days * 24 * HOUR)
    held = (await chain.positions(chain_case.held)).positions
    window = await chain.window(held, since)
    assert (window.opened.timestamp, window.closed) == (since, await chain.head())
    assert window.fees.keys() == set(chain_case.held)
    for position in held:
        earned = attribute(await chain.history(position.id, since))
        pairs = zip(window.fees[position.id], (earned.fees0, earned.fees1), strict=True)
        assert all(0 <= told - ours <= 1 for ours, told in pairs)  # a difference of floors, or the floor of it
        path = window.paths[position.pool.id]
        assert (path[0].block, path[-1].block) == (window.opened, window.closed)
        assert path[-1].sqrt_price_x96 == position.pool.sqrt_price_x96
        times = [point.block.timestamp for point in path]
        assert times == sorted(set(times))
        assert len(times) >= days * 24


async def test_a_window_asked_again_is_the_same_and_its_past_is_not_read_again(chain_case: ChainCase) -> None:
    chain, since = chain_case.chain, Seconds(chain_case.ended - 7 * 24 * HOUR)
    held = (await chain.positions(chain_case.held)).positions
    first = await chain.window(held, since)
    before = getattr(chain, "requests", 0)
    assert await chain.window(held, since) == first
    assert getattr(chain, "requests", 0) - before <= 1
    later = await chain.window(held, Seconds(since + 600))
    hours = [point for path in first.paths.values() for point in path[1:]]
    assert all(point in hours for path in later.paths.values() for point in path[1:])


async def test_a_window_leaves_out_what_was_not_there(chain_case: ChainCase) -> None:
    chain = chain_case.chain
    held = (await chain.positions(chain_case.held)).positions
    window = await chain.window(held, Seconds(chain_case.minted - HOUR))
    assert window.fees == {}


async def test_no_swap_no_fees(chain_case: ChainCase) -> None:
    with pytest.raises(Unavailable):
        await chain_case.chain.swap_fees(chain_case.pools[0], Seconds(chain_case.ended + 1))
    with pytest.raises(NotFound):
        await chain_case.chain.swap_fees(chain_case.unknown_pool, chain_case.minted)


async def test_balances_on_sim_are_those_of_the_contracts(node_of_devnet: Any) -> None:
    """PoolManager's to the wei, and the wallet's of every token that does not pay for gas."""
    from zuno_devnet.execution import CallMessage

    def held(holder: Address, currency: Address) -> int:
        if currency == NATIVE:
            return int(node_of_devnet.chain.balance(bytes.fromhex(holder[2:])))
        question = calldata.call("balanceOf(address)", holder)
        return int.from_bytes(
            node_of_devnet.chain.call(CallMessage(bytes(20), bytes.fromhex(currency[2:]), question)), "big"
        )

    book = SimWorld.play(DEFAULT_SEED).ledger
    tokens = (NATIVE, WETH.address, USDC.address)
    assert [book.of(VAULT, token) for token in tokens] == [held(VAULT, token) for token in tokens]
    assert [book.of(WALLET, token) for token in tokens[1:]] == [held(WALLET, token) for token in tokens[1:]]


async def test_gas_has_a_price(chain_case: ChainCase) -> None:
    quote = await chain_case.chain.gas()
    assert quote.base_fee > 0
    assert quote.priority_fee >= 0
    assert quote.l1_fee_per_byte is None


async def test_closing_twice_is_harmless(chain_case: ChainCase) -> None:
    await chain_case.chain.head()
    await chain_case.chain.close()
    await chain_case.chain.close()


async def test_a_desk_without_an_archive_knows_what_a_pool_pays(
    tmp_path: Path, request: pytest.FixtureRequest, node_of_devnet: Any
) -> None:
    """A full node that keeps the head's state only: fees come from the Swap logs, say so, and are close."""
    from zuno.adapters.chain.rpc import RpcChain
    from zuno_devnet.methods import METHODS
    from zuno_devnet.rpc_errors import RpcError
    from zuno_devnet.server import serve

    head = "0x" + node_of_devnet.chain.head.hash.hex()

    def pruned(node: Any, given: Any) -> Any:
        block = given.get(1)
        if block != "latest" and (not isinstance(block, dict) or block.get("blockHash") != head):
            raise RpcError(-32000, "missing trie node 0xab (path ) state is gone")
        return METHODS["eth_call"](node, given)

    ours = SimChain(SimFile(tmp_path / "home"))
    prices = SeededFeed(Pair("ETH", "USDC"), ours.reference_closes)
    start = FlowStart(chain="devnet", position_id=1, profile=RiskProfile.BALANCED, max_rounds=2)

    async def observed(chain: Chain) -> Context:
        observer = Observer(chain, lambda opened, _: Feeds(prices, ChainGas(opened), NativePrice(prices, ETHER)))
        return await observer.observe(start)

    with serve(node_of_devnet, extra={"eth_call": pruned}) as url:
        chain = RpcChain(DEVNET, [url], tmp_path / "cache", WALLET)
        try:
            (scene,) = (context := await observed(chain)).scenes
        finally:
            await chain.close()
    (known,) = (await observed(ours)).scenes
    assert scene.fees
    assert known.fees
    assert (scene.fees.label, known.fees.label) == ("14 d of Swap logs", "14 d of archive")
    for said, true in (
        (scene.fees.growth0_x128 * known.fees.seconds, known.fees.growth0_x128 * scene.fees.seconds),
        (scene.fees.growth1_x128 * known.fees.seconds, known.fees.growth1_x128 * scene.fees.seconds),
    ):
        assert abs(said - true) * 50 <= true
    (note,) = [one for one in context.sources if one.feed.startswith("fee growth")]
    assert "14 d" in str(note.source)
    assert "estimated from" in note.notes[0]
    assert "shared" in note.notes[1]


async def test_both_worlds_tell_the_same_story(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Our integers and the contracts': equal to the wei, after 720 hours of trades."""
    ours, theirs = sim(tmp_path, request).chain, rpc_on_devnet(tmp_path, request).chain
    try:
        for facts in (_positions, _pool_numbers, _past_pools, _touches, _prices, _swap_fees):
            assert await facts(ours) == await facts(theirs)
    finally:
        await theirs.close()


async def _past_pools(chain: Chain) -> Any:
    moments = (Seconds(MINTED - 7 * 24 * HOUR), Seconds(ENDED - 7 * 24 * HOUR + 59))
    states = [await chain.pool_at(spec.id, moment) for spec in pool_specs() for moment in moments]
    return [(s.sqrt_price_x96, s.fee_growth_global0_x128, s.fee_growth_global1_x128, s.block.number) for s in states]


async def _positions(chain: Chain) -> Any:
    snapshot = await chain.positions([1, 2, 3])
    return snapshot.block.number, [
        (p.id, p.owner, p.range, p.liquidity, p.amount0, p.amount1, p.fees0, p.fees1) for p in snapshot.positions
    ]


async def _pool_numbers(chain: Chain) -> Any:
    return [
        (
            *(pool.id, pool.key, pool.token0, pool.token1, pool.sqrt_price_x96, pool.tick, pool.protocol_fee),
            *(pool.lp_fee, pool.liquidity, pool.fee_growth_global0_x128, pool.fee_growth_global1_x128),
        )
        for pool in (await chain.pools()).pools
    ]


async def _touches(chain: Chain) -> Any:
    return [
        (
            *(touch.block.number, touch.sqrt_price_x96, touch.liquidity_delta, touch.paid0, touch.paid1),
            *(touch.fee_growth_inside0_x128, touch.fee_growth_inside1_x128),
        )
        for token in (1, 2, 3)
        for touch in (await chain.history(token, Seconds(MINTED - HOUR))).events
        if isinstance(touch, PositionEvent)
    ]


async def _swap_fees(chain: Chain) -> Any:
    told = [await chain.swap_fees(spec.id, Seconds(ENDED - 7 * 24 * HOUR)) for spec in pool_specs()]
    return [(one.opened.number, one.growth0_x128, one.growth1_x128, one.swaps, one.uneven) for one in told]


async def _prices(chain: Chain) -> Any:
    return {
        (spec.id, point.block.timestamp, point.sqrt_price_x96)
        for spec in pool_specs()
        for point in await chain.price_path(spec.id, Seconds(MINTED - HOUR))
    }


async def test_a_survey_tells_of_all_pools_what_one_by_one_would(chain_case: ChainCase) -> None:
    moments = [Seconds(ENDED - day * 24 * HOUR) for day in range(20, -1, -1)]
    since = dict.fromkeys(chain_case.pools, moments[0]) | {chain_case.pools[0]: moments[-3]}
    surveyed = await chain_case.chain.survey(chain_case.pools, moments, since, chain_case.pools[1:])
    assert tuple(pool.depth.pool.id for pool in surveyed) == chain_case.pools
    for pool in surveyed:
        now, depth = pool.depth.pool, await chain_case.chain.depth(pool.depth.pool.id)
        assert now == depth.pool
        near = range(now.tick - 200, now.tick + 201)
        assert {tick: net for tick, net in pool.depth.net.items() if tick in near} == {
            tick: net for tick, net in depth.net.items() if tick in near
        }
        assert [mark.at for mark in pool.marks] == [moment for moment in moments if moment >= since[now.id]]
        for mark in pool.marks[::7]:
            assert mark == sample_of(await chain_case.chain.pool_at(now.id, mark.at))
    assert surveyed[0].path is None
    for pool in surveyed[1:]:
        alone = await chain_case.chain.price_path(pool.depth.pool.id, moments[0], 300)
        assert pool.path is not None
        assert [step.sqrt_price_x96 for step in pool.path][-100:] == [step.sqrt_price_x96 for step in alone][-100:]


async def test_a_survey_without_a_past_is_of_the_present(chain_case: ChainCase) -> None:
    surveyed = await chain_case.chain.survey(chain_case.pools, [], {})
    assert [(len(pool.marks), pool.path) for pool in surveyed] == [(0, None)] * len(chain_case.pools)
