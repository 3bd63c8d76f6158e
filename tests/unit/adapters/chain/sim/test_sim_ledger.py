"""What is paid on the simulated chain is measured on balances: a number wrong on either side is a residual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.engine import SimWorld
from zuno.adapters.chain.sim.ledger import PROPOSER, VAULT, Ledger
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.chain.world import (
    DEFAULT_SEED,
    DEPLOYMENT,
    LIQUIDITY_ROUTER,
    OTHERS,
    USDC,
    WALLET,
    pool_specs,
    write_script,
)
from zuno.amm import fees, liquidity, pool
from zuno.kernel.errors import Broken
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, Seconds, Wei
from zuno.lp.model.history import PositionEvent
from zuno.lp.rules.attribution import Attribution, attribute

ERC20, COIN = 1, 2
"""The wallet's two positions: one in wrapped ether, one in ether."""


async def told(home: Path, position: int = ERC20) -> Attribution:
    return attribute(await SimChain(SimFile(home)).history(position, None))


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize("position", [ERC20, COIN])
@pytest.mark.parametrize("wrong", [-1, 1])
async def test_a_receipt_wrong_by_a_wei_is_a_residual(tmp_path: Path, position: int, wrong: int) -> None:
    history = await SimChain(SimFile(tmp_path)).history(position, None)
    assert attribute(history).exact
    (mint,) = history.events
    assert isinstance(mint, PositionEvent)
    assert mint.gas_paid is not None
    assert not attribute(replace(history, events=(replace(mint, gas=Wei(mint.gas + wrong)),))).adds_up


@pytest.mark.slow
async def test_gas_that_takes_more_from_the_wallet_than_its_receipt_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Ledger.pay_gas

    def a_unit_more(self: Ledger, sender: Address, units: int, base_fee: Wei, tip: Wei) -> None:
        honest(self, sender, units + 1, base_fee, tip)

    monkeypatch.setattr(Ledger, "pay_gas", a_unit_more)
    for position in (ERC20, COIN):
        assert not (await told(tmp_path, position)).adds_up


def doubled(honest: Callable[..., int]) -> Callable[..., int]:
    return lambda *arguments: 2 * honest(*arguments)


def a_wei_short(honest: Callable[..., tuple[int, int]]) -> Callable[..., tuple[int, int]]:
    def short(*arguments: Any, round_up: bool) -> tuple[int, int]:
        amount0, amount1 = honest(*arguments, round_up=round_up)
        return amount0, amount1 - (not round_up)

    return short


@pytest.mark.slow
async def test_fees_that_the_pool_pays_twice_are_a_residual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_script(DEFAULT_SEED)  # the story is written on honest pools
    right = await told(tmp_path)
    monkeypatch.setattr(fees, "earned_rounding_down", doubled(fees.earned_rounding_down))
    wrong = await told(tmp_path)
    assert right.exact
    assert not wrong.adds_up
    assert (wrong.fees0, wrong.fees1) == (right.fees0, right.fees1)
    assert wrong.in_token1.residual > wrong.in_token1.fees // 2


@pytest.mark.slow
async def test_a_principal_that_the_pool_pays_short_is_a_residual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_script(DEFAULT_SEED)
    monkeypatch.setattr(pool, "amounts_for_liquidity", a_wei_short(liquidity.amounts_for_liquidity))
    assert (await told(tmp_path)).in_token1.residual == -1


@pytest.mark.slow
async def test_a_window_is_measured_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_script(DEFAULT_SEED)
    chain = SimChain(SimFile(tmp_path))
    since = Seconds((await chain.head()).timestamp - 24 * 3600)
    assert attribute(await chain.history(ERC20, since)).exact
    monkeypatch.setattr(fees, "earned_rounding_down", doubled(fees.earned_rounding_down))
    assert not attribute(await chain.history(ERC20, since)).adds_up


@pytest.mark.slow
def test_nothing_is_made_and_the_vault_can_pay_everyone_with_dust_to_spare() -> None:
    """The growth that both sides read is held against the money: a fee credited twice would empty the vault."""
    world, funded = SimWorld.play(DEFAULT_SEED), Ledger()
    assert sum(world.ledger.of(who, USDC.address) for who in (WALLET, OTHERS, VAULT)) == sum(
        funded.of(who, USDC.address) for who in (WALLET, OTHERS)
    )
    assert world.ledger.of(PROPOSER, NATIVE) > 0
    script = write_script(DEFAULT_SEED)
    opened = [(LIQUIDITY_ROUTER, step.pool, step.lower, step.upper, salt) for salt, step in enumerate(script.opening)]
    minted = [
        (DEPLOYMENT.position_manager, nft.pool, nft.range.lower, nft.range.upper, nft.id) for nft in world.nfts.values()
    ]
    swaps = sum(map(len, world.swaps))
    for owner, index, lower, upper, salt in [*opened, *minted]:
        held = world.pools[index].position(owner, lower, upper, salt).liquidity
        burn = world.pools[index].modify_liquidity(owner, lower, upper, -held, salt)
        world.ledger.settle(OTHERS, world.specs[index].key, burn.amount0, burn.amount1)
    for currency in {side for spec in world.specs for side in (spec.key.currency0, spec.key.currency1)}:
        assert 0 <= world.ledger.of(VAULT, currency) < 10 * swaps


def test_who_cannot_pay_is_broken_and_nothing_below_zero() -> None:
    book = Ledger()
    key = pool_specs()[COIN].key
    with pytest.raises(Broken, match=r"\bpay\b"):
        book.settle(WALLET, key, 0, 1)  # the vault is empty
    book.settle(WALLET, key, -5, -7)
    twin = book.copy()
    twin.settle(WALLET, key, 5, 0)
    assert book.of_pair(VAULT, key) == (5, 7)
    assert twin.of_pair(VAULT, key) == (0, 7)
    assert twin.of(WALLET, NATIVE) == Ledger().of(WALLET, NATIVE)
