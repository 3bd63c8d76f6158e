"""The small rules behind a record's payments: transfers and claims added up, whole shares, fees told apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zuno.adapters.chain.rpc import abi
from zuno.adapters.chain.rpc.ledger import ETHER, amount_given, received_by_pools
from zuno.adapters.chain.rpc.node import Log
from zuno.adapters.chain.rpc.payments import PoolEffects, expected_payment
from zuno.adapters.chain.rpc.replay import LiquidityEvent, PoolBlock, ReplayedChange, split_fees
from zuno.adapters.chain.states import Share
from zuno.amm.fees import earned_rounding_down
from zuno.amm.model import PoolKey, Range
from zuno.amm.pool import PositionInfo
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Pips, SqrtPriceX96, Tick

POOLS, WALLET, OTHER, COIN = (Address("0x" + digit * 40) for digit in "abcd")
CLAIM = abi.topic("Transfer(address,address,address,uint256,uint256)")
ZERO = HexId("0x" + "00" * 32)


def log(address: Address, *topics: HexId, data: bytes = b"", index: int = 0) -> Log:
    return Log(address, topics, data, 1, ZERO, ZERO, 0, index, None)


def transfer(currency: Address, sender: Address, receiver: Address, amount: int) -> Log:
    return log(
        currency, abi.TRANSFER, abi.address_word(sender), abi.address_word(receiver), data=amount.to_bytes(32, "big")
    )


def claim(sender: Address, receiver: Address, currency: Address, amount: int) -> Log:
    topics = (CLAIM, abi.address_word(sender), abi.address_word(receiver), abi.id_word(int(currency, 16)))
    return log(POOLS, *topics, data=bytes(32) + amount.to_bytes(32, "big"))


def test_transfers_add_up_for_each_party() -> None:
    deed = log(COIN, abi.TRANSFER, abi.address_word(WALLET), abi.address_word(OTHER), abi.id_word(5))
    logs = [
        transfer(COIN, WALLET, POOLS, 100),
        transfer(COIN, POOLS, OTHER, 30),
        transfer(COIN, POOLS, WALLET, 7),
        transfer(OTHER, WALLET, POOLS, 1_000),  # another token
        deed,
    ]
    assert amount_given(logs, COIN, WALLET) == 93
    assert amount_given(logs, COIN, OTHER) == -30
    assert received_by_pools(logs, COIN, POOLS) == 63


def test_what_is_left_with_the_manager_as_a_claim_is_no_pool_s() -> None:
    logs = [
        transfer(COIN, WALLET, POOLS, 100),
        claim(NATIVE, OTHER, COIN, 40),  # minted: owed to its holder
        claim(OTHER, NATIVE, COIN, 5),  # burnt: used up
        claim(WALLET, OTHER, COIN, 9),  # changes hands
        claim(NATIVE, OTHER, OTHER, 1_000),  # of another token
    ]
    assert received_by_pools(logs, COIN, POOLS) == 65


def test_simulated_native_coin_has_an_address_of_its_own() -> None:
    logs = [transfer(ETHER, POOLS, WALLET, 12), transfer(COIN, POOLS, WALLET, 5)]
    assert received_by_pools(logs, NATIVE, POOLS) == -12


@given(st.sets(st.integers(1, 99), min_size=1, max_size=6), st.integers(-(10**30), 10**30))
def test_shares_are_near_equal_and_make_the_whole(tokens: set[int], amount: int) -> None:
    parts = [Share({token}, tokens).of(amount) for token in tokens]
    assert sum(parts) == amount
    assert max(parts) - min(parts) <= 1
    assert Share(tokens, tokens).of(amount) == amount


legs = st.lists(
    st.tuples(st.integers(0, 10**24), st.integers(0, 1 << 160), st.integers(0, 1 << 160)), min_size=2, max_size=5
)


@given(legs, st.integers(0, (1 << 256) - 1))
def test_fees_tell_where_growth_stood_between_changes(steps: list[tuple[int, int, int]], start: int) -> None:
    """Any split that is found pays out exactly the fees that were seen, and the true growth is always one such."""
    through, fees, seen = PoolBlock(SqrtPriceX96(1 << 96), ()), dict[int, tuple[int | None, int | None]](), []
    span, growth = Range(Tick(-60), Tick(60)), [start, start]
    final = [(start + sum(step[side] for step in steps)) & ((1 << 256) - 1) for side in (1, 2)]
    for index, (liquidity, grown0, grown1) in enumerate(steps):
        before = PositionInfo(liquidity, *growth)
        growth = [(growth[0] + grown0) & ((1 << 256) - 1), (growth[1] + grown1) & ((1 << 256) - 1)]
        following = steps[index + 1][0] if index + 1 < len(steps) else 0
        change = LiquidityEvent(log(POOLS, ZERO, index=index), ZERO, 7, span, following - liquidity)
        after = PositionInfo(following, final[0], final[1])
        last = index + 1 == len(steps)
        through.replayed[index] = ReplayedChange(change, SqrtPriceX96(1 << 96), before, after, 0, 0, 0, 0, certain=last)
        paid = (
            earned_rounding_down(growth[0], before.fee_growth_inside0_last_x128, liquidity),
            earned_rounding_down(growth[1], before.fee_growth_inside1_last_x128, liquidity),
        )
        seen.append(paid)
        fees[index] = paid
    split_fees(through, 7, fees)
    again = [through.replayed[index] for index in range(len(steps))]
    assert all(item.certain for item in again)
    for item, paid in zip(again, seen, strict=True):
        assert (item.principal0 - item.owed0, item.principal1 - item.owed1) == paid
    assert again[-1].after.fee_growth_inside0_last_x128 == final[0]


def test_fees_that_no_growth_explains_leave_the_split_unknown() -> None:
    for paid, known in (((3, 2), True), ((3, 1), True), ((3, 3), False), ((6, 0), False), ((None, 2), False)):
        through, span, final = PoolBlock(SqrtPriceX96(1 << 96), ()), Range(Tick(-60), Tick(60)), 5 << 128
        for index in (0, 1):
            change = LiquidityEvent(log(POOLS, ZERO, index=index), ZERO, 7, span, 0)
            info = PositionInfo(1, 0 if index == 0 else final, 0)
            after = PositionInfo(1, final, 0)
            through.replayed[index] = ReplayedChange(
                change, SqrtPriceX96(1 << 96), info, after, 0, 0, 0, 0, certain=index == 1
            )
        split_fees(through, 7, {index: (fee, 0) for index, fee in enumerate(paid)})
        assert through.replayed[0].certain == known
        assert [-item.owed0 for item in through.replayed.values()] == (list(paid) if known else [5, 0])


def test_what_a_wallet_sent_it_donated_itself() -> None:
    key = PoolKey(COIN, OTHER, Pips(500), 10)
    doings = PoolEffects([], [], {COIN: 5, OTHER: 7, POOLS: 9}, strange=False)
    assert expected_payment(doings, key, (100, 200), (0, 0), (False, False), sent=True) == ((105, 207), False)
    assert expected_payment(doings, key, (100, 200), (0, 0), (False, False), sent=False) == ((100, 200), False)
