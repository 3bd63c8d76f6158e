"""The LP desk's reading side on the embedded world: what it says of pools, of positions, and of what it cannot say."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.chain.world import pool_specs
from zuno.kernel.errors import NotFound, PoolNotInitialized, UsageError
from zuno.kernel.units import HexId, Seconds
from zuno.lp.ports.market import Feeds
from zuno.lp.rules.attribution import attribute
from zuno.lp.service import to_views
from zuno.lp.service.positions import LpDesk

WETH_005, WETH_030, ETH_030 = (spec.id for spec in pool_specs())
GAS_NOTE = "nothing here prices the chain's own currency, so gas stands outside the sum"


def no_feeds(pool_id: HexId) -> Feeds:
    raise AssertionError("nothing here asks a market")


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> SimChain:
    return SimChain(SimFile(tmp_path_factory.mktemp("sim")))


@pytest.fixture(scope="module")
def desk(chain: SimChain) -> LpDesk:
    return LpDesk(chain, no_feeds)


@pytest.mark.parametrize(
    ("which", "fee", "found"),
    [
        (WETH_005, None, WETH_005),
        (WETH_005.upper().replace("0X", "0x"), None, WETH_005),
        ("WETH/USDC", "5bps", WETH_005),
        ("usdc/weth", "0.30 %", WETH_030),
        ("ETH/USDC", "0.3%", ETH_030),
        ("ETH-USDC", "3000 pips", ETH_030),
        (f"{'0x' + '00' * 20}/USDC", "30bps", ETH_030),
    ],
)
async def test_one_pool_by_its_id_or_by_pair_and_fee(desk: LpDesk, which: str, fee: str | None, found: str) -> None:
    assert (await desk.pool(which, fee)).id == found


@pytest.mark.parametrize(
    ("which", "fee", "said"),
    [
        ("0x12", None, "64 hex digits"),
        (WETH_005[:-1] + "g", None, "64 hex digits"),
        ("USDC", "0.3%", "64 hex digits"),
        ("", None, "64 hex digits"),
        ("ETH/USDC", None, "Which fee"),
        ("ETH/USDC", "500", "with its unit"),
        ("ETH/USDC", "0.02%", "usual fees"),
        ("ETH/ETH", "0.3%", "two tokens"),
        ("0x12/USDC", "0.3%", "40 hex digits"),
        (WETH_005, "0.3%", "id alone"),
    ],
)
async def test_what_names_no_pool_is_a_mistake(desk: LpDesk, which: str, fee: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        await desk.pool(which, fee)


async def test_a_pool_without_a_price_is_said_to_have_none(desk: LpDesk) -> None:
    said = "The pool ETH/USDC 0.01% on sim is not initialised: nobody has given it a price yet; `zuno lp pools"
    with pytest.raises(PoolNotInitialized, match=said):
        await desk.pool("ETH/USDC", "0.01%")


@pytest.mark.parametrize(
    ("which", "fee", "said"),
    [
        ("0x" + "5a" * 32, None, "No pool 0x5a5a.* on sim; `zuno lp pools"),
        ("ETH/PEPE", "0.3%", "No token on sim is called PEPE; Zuno knows ETH, WETH, USDC there"),
        (f"{'0x' + '77' * 20}/USDC", "0.3%", "No pool 0x7777.*/USDC 0.3% on sim"),
    ],
)
async def test_what_does_not_exist_is_refused(desk: LpDesk, which: str, fee: str | None, said: str) -> None:
    with pytest.raises(NotFound, match=said):
        await desk.pool(which, fee)


async def test_a_position_is_worth_its_principal_and_its_fees(chain: SimChain) -> None:
    for position in (await chain.positions([1, 2])).positions:
        pool, shown = position.pool, to_views.position_view(position)
        assert shown.value_unit == pool.token1.symbol == "USDC"
        assert position.fees0 * pool.price + position.fees1 > 10**6  # a dollar or more, so that leaving it out shows
        whole = (position.amount0 + position.fees0) * pool.price + position.amount1 + position.fees1
        assert abs(Fraction(shown.value_human) * 10**6 - whole) <= Fraction(1, 2)


async def test_an_answer_with_a_hole_is_not_complete(desk: LpDesk) -> None:
    whole = await desk.positions(["1", "2"])
    assert (whole.complete, whole.missing) == (True, ())
    part = await desk.positions(["1", "4000"])
    assert [one.id for one in part.positions] == ["1"]
    assert [one.id for one in part.missing] == ["4000"]
    assert part.complete is False


async def test_gas_that_nothing_prices_is_said_to_stand_outside(chain: SimChain) -> None:
    history = await chain.history(1, None)
    assert GAS_NOTE not in to_views.pnl_view("sim", 1, history, attribute(history)).notes
    foreign = replace(history, native_side=None)
    shown = to_views.pnl_view("sim", 1, foreign, attribute(foreign))
    assert GAS_NOTE in shown.notes
    assert (shown.gas_valued, shown.in_token1.gas) == (False, "0")
    free = replace(foreign, events=tuple(replace(event, gas=0) for event in foreign.events))  # type: ignore[arg-type]
    assert GAS_NOTE not in to_views.pnl_view("sim", 1, free, attribute(free)).notes


async def test_anyone_can_add_the_exact_terms(chain: SimChain) -> None:
    history = await chain.history(1, None)
    shown = to_views.pnl_view("sim", 1, history, attribute(history))
    for terms in (shown.in_token0, shown.in_token1):
        exact = {name: Fraction(text) for name, text in terms.exact.model_dump(by_alias=False).items()}
        explained = exact["fees"] + exact["price_effect"] - exact["divergence_loss"] - exact["gas"] - exact["swap_cost"]
        assert exact["nav_end"] - exact["nav_start"] - exact["flows"] == explained + exact["residual"]
        assert exact["residual"] == 0
        assert exact["fees"] > 0


@pytest.mark.parametrize(
    ("ahead", "said"),
    [(0, ""), (900, ""), (901, "behind"), (-60, ""), (-61, "in the future"), (-(10**9), "in the future")],
)
async def test_a_head_that_is_old_or_not_yet_is_told(chain: SimChain, ahead: int, said: str) -> None:
    """As of a chain with a market; local ones keep their own time."""
    head = await chain.head()
    desk = LpDesk(chain, no_feeds, lambda: Seconds(head.timestamp + ahead))
    for note in ((await desk.positions()).note, "; ".join((await desk.pools()).notes)):
        assert said in note if said else note == ""


@pytest.mark.parametrize(
    ("millis", "age", "told"), [(2_000, 200, False), (2_000, 201, True), (250, 120, False), (250, 121, True)]
)
async def test_a_head_a_hundred_blocks_behind_is_told(
    chain: SimChain, monkeypatch: pytest.MonkeyPatch, millis: int, age: int, told: bool
) -> None:
    """On a fast chain that is sooner than a quarter of an hour, and never sooner than clocks differ."""
    head = await chain.head()
    info = replace(chain.info, block_millis=millis)
    monkeypatch.setattr(type(chain), "info", property(lambda self: info))
    desk = LpDesk(chain, no_feeds, lambda: Seconds(head.timestamp + age))
    assert ("blocks" in (await desk.positions()).note) is told
