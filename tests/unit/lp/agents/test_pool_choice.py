"""Which pools a wish is argued about: of those with hooks only such as the owner trusts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest

from tests.wire.debating import surveyed
from zuno.adapters.chain.world import SIM
from zuno.amm.fees import DYNAMIC_FEE_FLAG
from zuno.amm.model import PoolState
from zuno.kernel.errors import Refused
from zuno.kernel.units import Address, HexId, Pips
from zuno.lp.agents.pool_choice import choose_pools, pool_label, split_capital, to_wrap
from zuno.lp.model.chains import chain_named
from zuno.lp.model.debate import Capital, FlowStart, PositionRequest

HOOK = Address("0x" + "0c" * 20)
WISH = PositionRequest(capital=(Capital(token="WETH", amount=Decimal(1)),))


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> list[PoolState]:
    """A plain pool, the same with a hook, and with a hook that sets its fee."""
    plain = asyncio.run(surveyed(tmp_path_factory.mktemp("sim"), ("WETH", "1"))).scenes[0].pool
    hooked = replace(plain, id=HexId("0x" + "01" * 32), key=replace(plain.key, hooks=HOOK))
    moody = replace(
        plain,
        id=HexId("0x" + "02" * 32),
        key=replace(plain.key, hooks=HOOK, fee=Pips(DYNAMIC_FEE_FLAG)),
        lp_fee=Pips(700),
    )
    return [plain, hooked, moody]


@pytest.mark.slow
def test_pools_with_hooks_take_part_once_their_hook_is_trusted(pools: list[PoolState]) -> None:
    plain, hooked, moody = pools
    assert [option.pool for option in choose_pools(WISH, pools, SIM)] == [plain]
    assert {option.pool.id for option in choose_pools(WISH, pools, SIM, [HOOK])} == {plain.id, hooked.id, moody.id}
    other = ["0x" + "0d" * 20]
    assert [option.pool for option in choose_pools(WISH, pools, SIM, other)] == [plain]
    for pool in (hooked, moody):
        assert split_capital(WISH, pool, SIM.name) == ()
        assert split_capital(WISH, pool, SIM.name, [HOOK]) == split_capital(WISH, plain, SIM.name)


def test_a_fee_that_a_hook_sets_is_the_one_it_charges_now(pools: list[PoolState]) -> None:
    wish = WISH.model_copy(update={"fee": 700})
    assert [option.pool.id for option in choose_pools(wish, pools, SIM, [HOOK])] == [pools[2].id]
    assert pool_label(pools[2]).endswith("0.07 % hooked")
    with pytest.raises(Refused):
        choose_pools(wish, pools, SIM)


def test_a_dynamic_fee_without_a_hook_is_nobodys(pools: list[PoolState]) -> None:
    nobodys = replace(pools[0], key=replace(pools[0].key, fee=Pips(DYNAMIC_FEE_FLAG)))
    with pytest.raises(Refused):
        choose_pools(WISH, [nobodys], SIM, [HOOK])


def test_a_question_without_trusted_hooks_keeps_its_bytes() -> None:
    start = FlowStart.model_validate({"chain": "sim", "positionId": 1, "profile": "balanced", "maxRounds": 2})
    assert "hooks" not in start.model_dump(by_alias=True)
    assert FlowStart.model_validate({**start.model_dump(by_alias=True), "hooks": [HOOK]}).hooks == (HOOK,)


def test_only_the_coin_that_pays_for_gas_is_wrapped(pools: list[PoolState]) -> None:
    polygon = chain_named("polygon")
    assert polygon is not None
    tokens = {token.symbol: token for token in polygon.tokens}

    def wraps(name: str, traded: str, chain: str) -> bool:
        pool = replace(pools[0], token0=tokens[traded], token1=tokens["USDC"])
        wish = PositionRequest(capital=(Capital(token=name, amount=Decimal(1)),))
        assert len(split_capital(wish, pool, chain)) == 1
        return to_wrap(wish, pool, chain) is not None

    assert wraps("pol", "WPOL", "polygon")
    assert not wraps("POL", "POL", "polygon")
    assert not wraps("WPOL", "WPOL", "polygon")
    assert not wraps("ETH", "WETH", "polygon")
    assert wraps("ETH", "WETH", "unichain")
    assert wraps("ETH", "WETH", "sim")
