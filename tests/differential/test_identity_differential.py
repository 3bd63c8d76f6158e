"""Names, storage words and sizes of positions against PoolManager, PositionManager and StateView."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from eth_abi.abi import decode, encode

from tests.differential.onchain.engines import Engine
from tests.differential.onchain.v4 import KEY, PERIPHERY, V4, PoolOnChain, call_data, creation_code, returned
from zuno.amm import identity
from zuno.amm.liquidity import liquidity_for_amounts
from zuno.amm.pool import Pool, Slot0
from zuno.amm.ticks import MAX_SQRT_PRICE, MIN_SQRT_PRICE, floor_to_spacing, sqrt_price_at_tick

MINT_FROM_DELTAS, SETTLE, TAKE_PAIR = 0x05, 0x0B, 0x11
NOBODY = "0x" + "00" * 20


@dataclass(frozen=True, slots=True)
class PositionManager:
    engine: Engine
    address: str

    def mint(self, pool: PoolOnChain, lower: int, upper: int, amounts: tuple[int, int]) -> int:
        """Mint whatever these amounts pay for, and return the token's id."""
        for token, amount in zip(pool.key[:2], amounts, strict=True):
            pay = call_data("transfer", ["address", "uint256"], [self.address, amount])
            returned(self.engine.send(str(token), pay))
        limit = (1 << 128) - 1
        actions = [
            (SETTLE, ["address", "uint256", "bool"], [pool.key[0], amounts[0], False]),
            (SETTLE, ["address", "uint256", "bool"], [pool.key[1], amounts[1], False]),
            (
                MINT_FROM_DELTAS,
                [KEY, "int24", "int24", "uint128", "uint128", "address", "bytes"],
                [pool.key, lower, upper, limit, limit, self.engine.relay, b""],
            ),
            (TAKE_PAIR, ["address", "address", "address"], [pool.key[0], pool.key[1], self.engine.relay]),
        ]
        plan = encode(
            ["bytes", "bytes[]"],
            [bytes(code for code, _, _ in actions), [encode(types, values) for _, types, values in actions]],  # type: ignore[arg-type]
        )
        token_id = self._word("nextTokenId")
        payload = call_data("modifyLiquidities", ["bytes", "uint256"], [plan, 1 << 60])
        returned(self.engine.send(self.address, payload))
        return token_id

    def liquidity(self, token_id: int) -> int:
        return self._word("getPositionLiquidity", token_id)

    def info(self, token_id: int) -> int:
        return self._word("positionInfo", token_id)

    def _word(self, name: str, *arguments: int) -> int:
        payload = call_data(name, ["uint256"] * len(arguments), arguments)
        return int.from_bytes(returned(self.engine.peek(self.address, payload)), "big")


@pytest.fixture(scope="module")
def position_manager(v4: V4) -> PositionManager:
    code = creation_code(
        "PositionManager",
        ["address", "address", "uint256", "address", "address"],
        [v4.manager, NOBODY, 300_000, NOBODY, NOBODY],
        PERIPHERY,
    )
    return PositionManager(v4.engine, v4.engine.deploy(code))


@pytest.fixture(scope="module")
def state_view(v4: V4) -> str:
    return v4.engine.deploy(creation_code("StateView", ["address"], [v4.manager], PERIPHERY))


@pytest.fixture(scope="module")
def lived_in(v4: V4) -> tuple[PoolOnChain, Pool]:
    """A pool below price one, with fees in both tokens, a protocol fee and negative ticks."""
    price = sqrt_price_at_tick(-7_777)
    theirs, ours = v4.open_pool(3000, 60, price), Pool.initialize(3000, 60, price)
    for pool in (theirs, ours):
        pool.set_protocol_fee(700, 300)
        pool.modify_liquidity(v4.owners[0], -9_000, -6_000, 10**20, 5)
        pool.modify_liquidity(v4.owners[1], -8_040, -7_740, 10**21, 0)
        pool.swap(True, -(10**18), MIN_SQRT_PRICE + 1)
        pool.swap(False, 10**17, MAX_SQRT_PRICE - 1)
    return theirs, ours


@pytest.mark.parametrize("seed", range(40))
def test_liquidity_for_amounts_is_what_the_periphery_mints(
    v4: V4, position_manager: PositionManager, seed: int
) -> None:
    dice = random.Random(seed)
    spacing = dice.choice([1, 10, 60, 200])
    tick = dice.randint(-200_000, 200_000)
    price = sqrt_price_at_tick(tick) + dice.randint(0, 1_000)
    lower = floor_to_spacing(tick, spacing) + spacing * dice.randint(-40, 10)
    upper = lower + spacing * dice.randint(1, 60)
    amounts = (dice.randrange(1 << 60, 1 << 80), dice.randrange(1 << 60, 1 << 80))
    pool = v4.open_pool(3000, spacing, price)

    token_id = position_manager.mint(pool, lower, upper, amounts)

    ours = liquidity_for_amounts(price, sqrt_price_at_tick(lower), sqrt_price_at_tick(upper), *amounts)
    assert ours == position_manager.liquidity(token_id), f"seed {seed}"


def test_position_info_and_key_of_a_token(v4: V4, position_manager: PositionManager) -> None:
    pool = v4.open_pool(500, 10, 1 << 96)
    token_id = position_manager.mint(pool, -120, 340, (10**18, 10**18))

    info = identity.decode_position_info(position_manager.info(token_id))
    assert info == identity.PositionManagerInfo(pool.id[:52], -120, 340, has_subscriber=False)

    key = (position_manager.address, -120, 340, token_id)
    read = pool.read([], [], [key]).positions[key]
    assert read.liquidity == position_manager.liquidity(token_id) > 0


def test_a_subscribed_token_says_so(v4: V4, position_manager: PositionManager) -> None:
    pool = v4.open_pool(500, 10, 1 << 96)
    token_id = position_manager.mint(pool, -120, 340, (10**18, 10**18))
    subscriber = v4.engine.deploy(creation_code("MockSubscriber", ["address"], [position_manager.address], PERIPHERY))
    subscribe = call_data("subscribe", ["uint256", "address", "bytes"], [token_id, subscriber, b""])
    returned(v4.engine.send(position_manager.address, subscribe))

    info = identity.decode_position_info(position_manager.info(token_id))
    assert info == identity.PositionManagerInfo(pool.id[:52], -120, 340, has_subscriber=True)


def test_storage_words_are_where_the_contract_keeps_them(
    v4: V4, state_view: str, lived_in: tuple[PoolOnChain, Pool]
) -> None:
    """What we read at our addresses is what StateView, which has its own, reports."""
    pool, _ = lived_in
    pool_id = bytes.fromhex(pool.id[2:])
    key = (v4.owners[0], -9_000, -6_000, 5)
    read = pool.read([-9_000, -8_040, -7_740, -6_000], [-1], [key])

    def view(name: str, types: list[str], values: list[object], results: list[str]) -> tuple[int, ...]:
        data = returned(v4.engine.peek(state_view, call_data(name, ["bytes32", *types], [pool_id, *values])))
        return tuple(decode(results, data))

    assert Slot0(*view("getSlot0", [], [], ["uint160", "int24", "uint24", "uint24"])) == read.slot0
    assert read.slot0.tick < 0
    assert read.slot0.protocol_fee == 300 << 12 | 700
    assert view("getLiquidity", [], [], ["uint128"]) == (read.liquidity,)
    growth = (read.fee_growth_global0_x128, read.fee_growth_global1_x128)
    assert view("getFeeGrowthGlobals", [], [], ["uint256", "uint256"]) == growth
    assert min(growth) > 0
    for tick, info in read.ticks.items():
        results = ["uint128", "int128", "uint256", "uint256"]
        assert view("getTickInfo", ["int24"], [tick], results) == info
        assert info.liquidity_gross > 0
    assert view("getTickBitmap", ["int16"], [-1], ["uint256"]) == (read.words[-1],)
    assert read.words[-1] > 0
    position = bytes.fromhex(identity.position_key(*key)[2:])
    assert view("getPositionInfo", ["bytes32"], [position], ["uint128", "uint256", "uint256"]) == read.positions[key]


def test_protocol_fees_are_where_the_contract_keeps_them(v4: V4, lived_in: tuple[PoolOnChain, Pool]) -> None:
    pool, ours = lived_in
    for token, accrued in zip(pool.key[:2], (ours.protocol_fees_accrued0, ours.protocol_fees_accrued1), strict=True):
        payload = call_data("protocolFeesAccrued", ["address"], [token])
        assert int.from_bytes(returned(v4.engine.peek(v4.manager, payload)), "big") == accrued > 0


@pytest.mark.parametrize("ticks", [(-9_000, -6_000), (-8_040, -7_740), (-60_000, 60_000)])
def test_fee_growth_inside_equals_the_view(
    v4: V4, state_view: str, lived_in: tuple[PoolOnChain, Pool], ticks: tuple[int, int]
) -> None:
    pool, ours = lived_in
    payload = call_data("getFeeGrowthInside", ["bytes32", "int24", "int24"], [bytes.fromhex(pool.id[2:]), *ticks])
    inside = decode(["uint256", "uint256"], returned(v4.engine.peek(state_view, payload)))
    assert ours.fee_growth_inside(*ticks) == inside
