"""Bytes say one thing or nothing: what was built is read back, and no changed byte reads the same."""

from __future__ import annotations

from typing import Any

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from zuno.amm.model import PoolKey, Range
from zuno.kernel.errors import Refused
from zuno.kernel.units import Address, Pips, Seconds, Tick
from zuno.lp.model.chains import SwapStruct
from zuno.lp.plan import calldata, calls
from zuno.lp.plan.decoding import decode, read_abi
from zuno.lp.plan.policy import check

FIVE = SwapStruct.FIVE_FIELDS
TO = Address("0x" + "dd" * 20)

addresses = st.binary(min_size=20, max_size=20).map(lambda raw: Address("0x" + raw.hex()))
uint128 = st.integers(0, 2**128 - 1)
uint256 = st.integers(0, 2**256 - 1)
int24 = st.integers(-(2**23), 2**23 - 1)
keys = st.builds(PoolKey, addresses, addresses, st.integers(0, 2**24 - 1).map(Pips), int24, addresses)
ranges = st.builds(Range, int24.map(Tick), int24.map(Tick))
action = st.one_of(
    st.builds(calls.Mint, keys, ranges, uint256, uint128, uint128, addresses),
    st.builds(calls.MintFromDeltas, keys, ranges, uint128, uint128, addresses),
    st.builds(calls.Increase, uint256, uint256, uint128, uint128),
    st.builds(calls.IncreaseFromDeltas, uint256, uint128, uint128),
    st.builds(calls.Decrease, uint256, uint256, uint128, uint128),
    st.builds(calls.Burn, uint256, uint128, uint128),
    st.builds(calls.SwapIn, keys, st.booleans(), uint128, uint128),
    st.builds(calls.Settle, addresses, uint256, st.booleans()),
    st.builds(calls.SettlePair, addresses, addresses),
    st.builds(calls.Take, addresses, addresses, uint256),
    st.builds(calls.TakePair, addresses, addresses, addresses),
    st.builds(calls.CloseCurrency, addresses),
    st.builds(calls.Sweep, addresses, addresses),
)
actions = st.lists(action, max_size=6).map(tuple)
deadlines = uint256.map(Seconds)
modify = st.builds(calls.ModifyLiquidities, actions, deadlines)
command = st.one_of(
    st.builds(calls.RouterSwap, actions),
    st.builds(calls.TransferFrom, addresses, addresses, st.integers(0, 2**160 - 1)),
    modify,
)
call = st.one_of(
    st.just(calls.Wrap()),
    st.builds(calls.Approve, addresses, uint256),
    st.builds(calls.Permit, addresses, addresses, st.integers(0, 2**160 - 1), st.integers(0, 2**48 - 1).map(Seconds)),
    modify,
    st.builds(calls.Execute, st.lists(command, max_size=4).map(tuple), deadlines),
)


def written(said: calls.Action, struct: SwapStruct) -> calldata.EncodedAction:
    """An action in the words of the builders, which share nothing with the reader."""
    match said:
        case calls.Mint(key, band, liquidity, most0, most1, owner):
            return calldata.mint_position(key, band.lower, band.upper, liquidity, most0, most1, owner)
        case calls.MintFromDeltas(key, band, most0, most1, owner):
            return calldata.mint_from_deltas(key, band, most0, most1, owner)
        case calls.IncreaseFromDeltas(token, most0, most1):
            return calldata.increase_from_deltas(token, most0, most1)
        case calls.Increase(token, liquidity, most0, most1):
            return calldata.increase(token, liquidity, most0, most1)
        case calls.Decrease(token, liquidity, least0, least1):
            return calldata.decrease(token, liquidity, least0, least1)
        case calls.Burn(token, least0, least1):
            return calldata.burn_position(token, least0, least1)
        case calls.SwapIn(key, zero_for_one, amount_in, least):
            return calldata.swap_exact_in_single(key, zero_for_one, amount_in, least, struct)
        case calls.Settle(currency, amount, payer_is_user):
            return calldata.settle(currency, amount, payer_is_user)
        case calls.SettlePair(currency0, currency1):
            return calldata.settle_pair(currency0, currency1)
        case calls.Take(currency, recipient, amount):
            return calldata.take(currency, recipient, amount)
        case calls.TakePair(currency0, currency1, recipient):
            return calldata.take_pair(currency0, currency1, recipient)
        case calls.CloseCurrency(currency):
            return calldata.close_currency(currency)
        case calls.Sweep(currency, recipient):
            return calldata.sweep(currency, recipient)


def bytes_of(said: calls.Call, struct: SwapStruct) -> bytes:
    match said:
        case calls.Wrap():
            return calldata.wrap()
        case calls.Approve(spender, amount):
            return calldata.approve(spender, amount)
        case calls.Permit(token, spender, amount, expiration):
            return calldata.permit2_approve(token, spender, amount, expiration)
        case calls.ModifyLiquidities(acts, deadline):
            return calldata.modify_liquidities([written(act, struct) for act in acts], deadline)
        case calls.Execute(commands, deadline):
            return calldata.execute([_command(each, struct) for each in commands], deadline)


def _command(said: calls.Command, struct: SwapStruct) -> tuple[int, bytes]:
    match said:
        case calls.RouterSwap(acts):
            return calldata.v4_swap([written(act, struct) for act in acts])
        case calls.TransferFrom(token, recipient, amount):
            return calldata.permit2_transfer_from(token, recipient, amount)
        case calls.WrapEther(recipient, amount):
            return calldata.wrap_eth(recipient, amount)
        case calls.UnwrapEther(recipient, least):
            return calldata.unwrap_weth(recipient, least)
        case calls.ModifyLiquidities(acts, deadline):
            return calldata.position_manager_call([written(act, struct) for act in acts], deadline)


@pytest.mark.slow
@given(call, st.sampled_from(SwapStruct), uint256)
def test_what_was_written_is_read(said: calls.Call, struct: SwapStruct, value: int) -> None:
    assert decode(TO, value, bytes_of(said, struct), struct) == calls.DecodedCall(TO, value, said)


@pytest.mark.slow
def test_no_changed_byte_of_any_step_reads_the_same(every_step: list[Any]) -> None:
    for planned in every_step:
        step = planned.step
        said = decode(step.to, step.value, step.data, FIVE)
        for at in range(len(step.data)):
            changed = bytearray(step.data)
            changed[at] ^= 1 << at % 8
            try:
                assert decode(step.to, step.value, bytes(changed), FIVE) != said, (planned.name, at)
            except Refused:
                continue


@pytest.mark.slow
def test_no_changed_address_of_any_step_passes_the_policy(every_step: list[Any]) -> None:
    """Whoever is named in the calldata is named for a reason: the policy alone knows all of them."""
    looked = 0
    for planned in every_step:
        step, policy = planned.step, planned.policy
        contracts = policy.deployment
        known = {policy.wallet, contracts.position_manager, contracts.universal_router, contracts.permit2, *policy.pair}
        for name in known - {Address("0x" + "00" * 20)}:
            raw, start = bytes.fromhex(name[2:]), 0
            while (start := step.data.find(raw, start)) >= 0:
                for at in range(start, start + 20):
                    changed = bytearray(step.data)
                    changed[at] ^= 0x10
                    with pytest.raises(Refused):
                        check(decode(step.to, step.value, bytes(changed), FIVE), policy)
                    looked += 1
                start += 20
    assert looked > 3_000, looked


@pytest.mark.slow
def test_nothing_may_be_missing_or_left_over(every_step: list[Any]) -> None:
    for planned in every_step:
        step = planned.step
        for odd in (step.data + b"\0", step.data + bytes(32), b"\0" + step.data):
            with pytest.raises(Refused):
                decode(step.to, step.value, odd, FIVE)
        for length in range(0, len(step.data), 7):
            with pytest.raises(Refused):
                decode(step.to, step.value, step.data[:length], FIVE)


def test_a_swap_of_another_shape_is_refused() -> None:
    key = PoolKey(Address("0x" + "11" * 20), Address("0x" + "22" * 20), Pips(500), 10)
    for struct, other in ((FIVE, SwapStruct.MIN_HOP_PRICE), (SwapStruct.MIN_HOP_PRICE, FIVE)):
        data = calldata.execute([calldata.v4_swap([calldata.swap_exact_in_single(key, True, 5, 4, struct)])], 9)
        assert decode(TO, 0, data, struct)
        with pytest.raises(Refused):
            decode(TO, 0, data, other)


def test_a_least_price_of_a_hop_is_not_ours(scene: Any) -> None:
    shape = f"({calldata.KEY},bool,uint128,uint128,uint256,bytes)"
    params = encode((shape,), ((calldata.key_tuple(scene.native.key), True, 5, 4, 3, b""),))
    data = calldata.execute([calldata.v4_swap([calldata.EncodedAction(0x06, params)])], 9)
    with pytest.raises(Refused, match=r"\bprice .*\b3\b"):
        decode(TO, 0, data, SwapStruct.MIN_HOP_PRICE)


def acts(action: int, params: bytes) -> bytes:
    return calldata.modify_liquidities([calldata.EncodedAction(action, params)], 9)


HOOKED = encode(("uint256", "uint128", "uint128", "bytes"), (1, 0, 0, b"hi"))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "begins with 0x,"),
        (b"\xac\x96\x50\xd8" + bytes(64), "begins with 0xac9650d8"),  # multicall
        (acts(0x07, bytes(32)), "action 0x07"),
        (acts(0x05, bytes(32)), "ends at byte 32"),
        (acts(0x13, bytes(64)), "action 0x13"),
        (acts(0x15, bytes(32)), "action 0x15"),
        (acts(0x03, HOOKED), "2 bytes are meant for a hook"),
        (calldata.execute([(0x90, b"")], 9), "command 0x90"),  # a swap that may fail quietly
        (calldata.execute([(0x21, b"")], 9), "command 0x21"),
        (calldata.execute([(0x14, calldata.approve(TO, 1))], 9), "not by modifyLiquidities"),
        (calldata.call("execute(bytes,bytes[],uint256)", b"\x10\x10", [b""], 9), "2 commands have 1 inputs"),
        (
            calldata.call("modifyLiquidities(bytes,uint256)", encode(("bytes", "bytes[]"), (b"\x12", [])), 9),
            "1 actions have 0 parameters",
        ),
    ],
)
def test_what_no_plan_does_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(Refused, match=why):
        decode(TO, 0, data, FIVE)


@pytest.mark.parametrize(
    ("kind", "word"),
    [("address", 1 << 160), ("bool", 2), ("uint24", 1 << 24), ("int24", 1 << 23), ("uint128", 1 << 128)],
)
def test_a_value_too_large_for_its_type_is_refused(kind: str, word: int) -> None:
    with pytest.raises(Refused, match=rf"\b{kind}\b"):
        read_abi((kind,), word.to_bytes(32, "big"))


def test_absurd_lengths_are_refused_at_once() -> None:
    for types in (("bytes",), ("bytes[]",)):
        with pytest.raises(Refused, match="promised"):
            read_abi(types, (32).to_bytes(32, "big") + (2**255).to_bytes(32, "big"))
