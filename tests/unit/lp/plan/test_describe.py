"""No blind signing: what a person reads is in the bytes, and whoever is not known by name is an address."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from zuno.kernel.units import Address
from zuno.lp.model.chains import SwapStruct
from zuno.lp.plan import calldata, minting, positions
from zuno.lp.plan.decoding import decode
from zuno.lp.plan.describe import AddressBook, describe_call

STRANGER = Address("0x" + "66" * 20)


@pytest.fixture
def names(scene: Any) -> AddressBook:
    return AddressBook(scene.at, scene.wallet, {token.address: token for token in (scene.eth, scene.weth, scene.usdc)})


def spoken(step: Any, names: AddressBook, key: Any) -> tuple[str, ...]:
    return describe_call(decode(step.to, step.value, step.data, SwapStruct.FIVE_FIELDS), names, key)


def test_a_close_in_words(scene: Any, names: AddressBook) -> None:
    held = scene.position_in(scene.native, scene.ticks(-201_600, -200_400))
    (step,) = positions.close(scene.terms(), held).steps
    wallet = "your wallet"
    lines = spoken(step, names, scene.native.key)
    assert lines == (
        f"call PositionManager ({scene.at.position_manager})",
        lines[1],
        f"take the ETH left to {wallet}, or pay what is missing from there",
        f"take the USDC left to {wallet}, or pay what is missing from there",
        "not after 1800000900",
    )
    assert lines[1].startswith("burn position 7 ")
    assert lines[1].endswith("USDC + fees")


def test_a_swap_and_mint_in_words(scene: Any, names: AddressBook) -> None:
    (*allowing, step) = minting.create(
        scene.terms(), scene.wrapped, scene.ticks(-201_600, -200_400), 10**18, 0, brings_ether=True
    ).steps
    wrap, approve, permit = (spoken(each, names, scene.wrapped.key) for each in allowing)
    assert wrap[0] == f"call WETH ({scene.weth.address}) with {wrap[1].split()[1]} ETH"
    assert wrap[1].endswith("ETH into WETH for your wallet")
    assert approve[1].startswith("allow Permit2 to take up to 1 WETH")
    assert permit[1].startswith("let UniversalRouter take up to 1 WETH")
    assert permit[1].endswith("WETH until 1800001800")
    lines = spoken(step, names, scene.wrapped.key)
    manager, wallet = "PositionManager", "your wallet"
    assert lines[1].startswith("swap 0.")
    assert lines[1].endswith("USDC in WETH/USDC 0.3 % (spacing 60)")
    assert lines[2] == f"pay the WETH owed from {wallet}"
    assert lines[3].startswith("swap 0.")
    assert lines[3].endswith("WETH in WETH/USDC 0.3 % (spacing 60)")
    assert lines[4:6] == (f"take the WETH due to {manager}", f"take the USDC due to {manager}")
    assert lines[6].startswith("send 0.")
    assert lines[6].endswith(f"WETH from {wallet} to {manager}")
    assert lines[7:9] == (f"pay all WETH it has from {manager}", f"pay all USDC it has from {manager}")
    assert "-201600 to -200400" in lines[9]
    assert lines[9].endswith(f"the position is given to {wallet}")
    assert lines[10:] == (
        f"take the WETH and USDC due to {wallet}",
        "the mint not after 1800000900",
        "not after 1800000900",
    )


def test_a_placeholder_is_said_as_whom_it_means(scene: Any, names: AddressBook) -> None:
    """Inside the router "the sender" is the router, which would keep what it gets."""
    swept = calldata.sweep(scene.usdc.address, calldata.SENDER)
    own = calldata.modify_liquidities([swept], 9)
    routed = calldata.execute([calldata.position_manager_call([swept], 9)], 9)
    for to, data, who in (
        (scene.at.position_manager, own, "your wallet"),
        (scene.at.universal_router, routed, "UniversalRouter"),
    ):
        lines = describe_call(decode(to, 0, data, SwapStruct.FIVE_FIELDS), names, scene.native.key)
        assert lines[1].endswith(f"to {who}")


def test_times_are_told_as_the_reader_wants_them(scene: Any, names: AddressBook) -> None:
    held = scene.position_in(scene.native, scene.ticks(-201_600, -200_400))
    (step,) = positions.close(scene.terms(), held).steps
    lines = spoken(step, replace(names, moment=lambda at: f"<{at}>"), scene.native.key)
    assert lines[-1].endswith(" <1800000900>")


def test_a_stranger_is_an_address_and_his_token_is_marked(scene: Any, names: AddressBook) -> None:
    fake = replace(scene.usdc, verified=False)
    sly = replace(names, tokens={scene.usdc.address: fake})
    data = calldata.modify_liquidities([calldata.sweep(scene.usdc.address, STRANGER)], 9)
    lines = describe_call(decode(STRANGER, 5, data, SwapStruct.FIVE_FIELDS), sly, scene.native.key)
    assert lines[0].startswith(f"call {STRANGER} with 5 ")
    assert lines[0].endswith(f" 0x{'00' * 20}")
    assert "USDC?" in lines[1]
    assert lines[1].endswith(f"to {STRANGER}")


def test_every_step_has_words_for_everything_it_does(every_step: list[Any], names: AddressBook) -> None:
    for planned in every_step:
        said = decode(planned.step.to, planned.step.value, planned.step.data, SwapStruct.FIVE_FIELDS)
        lines = describe_call(said, names, planned.key)
        assert len(lines) >= 2
        assert all("base units" not in line for line in lines), "every token of the pair is known"
        if planned.step.deadline is not None:
            assert lines[-1].endswith(f" {planned.step.deadline}")
