"""The real contracts as Polygon: its chain id, its row, gas in POL, and a WETH that is a token like any other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from tests.scenario.rpc.conftest import LIQUIDITY, START_PRICE, Stage
from tests.wire.stage_plans import Plans, id_of
from zuno.adapters.prices.feeds import ChainGas, DeepestPool, FirstThatAnswers, NativePrice, PoolHistory
from zuno.kernel.errors import Refused, Unavailable
from zuno.kernel.text import NATIVE, Token
from zuno.kernel.units import Address, HexId, Wei
from zuno.lp.agents.observe import Observer
from zuno.lp.execute import checks
from zuno.lp.execute.draft import read_onchain_state
from zuno.lp.model.ballot import RiskProfile
from zuno.lp.model.chains import POL, chain_named
from zuno.lp.model.debate import FlowStart
from zuno.lp.model.plan import Flow, StepKind
from zuno.lp.plan import calldata
from zuno.lp.ports.market import Feeds
from zuno.lp.rules.carry import cost_of
from zuno.lp.service.execution_to_views import execution_view, simulation_view
from zuno.present.text import to_text
from zuno.settings import Settings
from zuno.wiring.application import Application
from zuno_devnet.node import DevnetNode

ETHER = 10**18


@pytest.fixture(scope="module")
def polygon(artifacts: Any) -> Any:
    """POL and WPOL at 2,000 USDC, bridged WETH at 4,500; blocks of the row's own time."""
    row = chain_named("polygon")
    assert row is not None
    stage: Any = Stage(artifacts, row.id)
    stage.node = DevnetNode(stage.chain, clock=lambda: stage.chain.head.timestamp + row.block_millis // 1_000)
    bridged = stage.token_named("WETH")
    tokens = (("WPOL", stage.weth, 18), ("USDC", stage.usdc, 6), ("WETH", bridged, 18))
    curated = (POL.token, *(Token(Address(at), symbol, decimals, verified=True) for symbol, at, decimals in tokens))
    stage.info = replace(row, deployment=stage.info.deployment, tokens=curated)
    stage.weth_usdc = stage.key(bridged, stage.usdc, 3000, 60)
    dear = START_PRICE * 3 // 2
    stage.initialize(stage.weth_usdc, dear if stage.weth_usdc.currency0 == bridged else 2**192 // dear)
    # The wallet's own position there: the first of a token that nobody may spend yet.
    at = stage.info.deployment
    permit = "approve(address,address,uint160,uint48)"
    stage.send("wallet", bridged, calldata.call("mint(address,uint256)", stage.wallet, 10**24))
    stage.send("wallet", bridged, calldata.call("approve(address,uint256)", at.permit2, 2**256 - 1))
    stage.send("wallet", at.permit2, calldata.call(permit, bridged, at.position_manager, 2**160 - 1, 2**48 - 1))
    (stage.position,) = stage.mint(stage.weth_usdc, -887_220, 887_220, LIQUIDITY)
    return stage


@pytest.fixture
def stage(polygon: Any) -> Iterator[Any]:
    first = polygon.node.snapshot()
    yield polygon
    assert polygon.node.revert(first)


class PolygonPlans(Plans):
    async def _sleep(self, seconds: float) -> None:
        await super()._sleep(seconds)
        for _ in range(8):
            self.stage.pass_time(2)


def feeds_of(chain: Any) -> Any:
    """As wired where no price service answers."""

    def feeds(pool: HexId) -> Feeds:
        own = PoolHistory(chain, pool)
        native = NativePrice(FirstThatAnswers((own, DeepestPool(chain))), chain.info.native)
        return Feeds(own, ChainGas(chain), native)

    return feeds


@pytest.fixture
async def plans(desk: Any, stage: Any, tmp_path: Path) -> Plans:
    chain = desk.chain(await desk.node())
    made = PolygonPlans(stage, chain, tmp_path)
    made.hands = replace(made.hands, feeds_of=feeds_of(chain))
    return made


def close(one: Fraction, other: int | Fraction) -> bool:
    return abs(one / other - 1) < Fraction(1, 1000)


async def test_gas_is_priced_by_pol_in_a_pool_that_does_not_trade_it(plans: Plans, stage: Any) -> None:
    context, key = plans.hands, stage.weth_usdc
    pool = await context.chain.pool(id_of(key))
    assert close(await checks.gas_usd(context, pool, Wei(3 * ETHER)), 6_000)
    feeds = context.feeds_of(pool.id)
    assert close((await feeds.native.native("USDC", pool.block.timestamp)).value, 2_000)
    with pytest.raises(Unavailable, match="POL/ETH"):  # nobody trades POL against ether here
        await feeds.native.native("ETH", pool.block.timestamp)


async def test_the_debates_cost_is_gas_at_the_price_of_pol(plans: Plans, stage: Any) -> None:
    """Gas in the pool's dollars: units times price of a unit in POL, times what POL costs; nothing of WETH's price."""
    chain = plans.hands.chain
    start = FlowStart(chain="polygon", position_id=stage.position, profile=RiskProfile.BALANCED, max_rounds=1)
    seen = await Observer(chain, lambda opened, pool: feeds_of(opened)(pool)).observe(start)
    (scene,) = seen.scenes
    assert seen.chain_id == 137
    assert scene.native_token1 is not None
    gas = await chain.gas()
    assert scene.gas == gas
    cost = cost_of([StepKind.MINT], gas=gas, native_token1=scene.native_token1)
    assert cost.gas_token1 is not None
    turned = stage.weth_usdc.currency1 != stage.usdc
    dollars = cost.gas_token1 / (scene.pool.price if turned else 1) / 10**6
    assert cost.gas_wei == gas.price * cost.gas_units > 0
    assert close(dollars, Fraction(cost.gas_wei, ETHER) * 2_000)
    source = next(note for note in seen.sources if note.feed == "native price")
    assert source.source == "deepest pool"


async def test_a_missing_price_is_said_and_no_other_coins_is_taken(plans: Plans, stage: Any) -> None:
    """Without pools of POL nobody knows what gas costs; the price of ether is no answer."""
    chain = plans.hands.chain
    lone = replace(stage.info, tokens=tuple(token for token in stage.info.tokens if token.symbol in ("USDC", "WETH")))
    pool = await chain.pool(id_of(stage.weth_usdc))
    blind: Any = type("Blind", (), {"info": lone, "pool": chain.pool, "head": chain.head, "gas": chain.gas})()
    context = replace(plans.hands, feeds_of=feeds_of(blind))
    assert await checks.usd_value(context, pool, Flow(NATIVE, ETHER)) is None
    with pytest.raises(Unavailable, match="POL/USDC"):
        await checks.gas_usd(context, pool, Wei(ETHER))


async def test_pol_is_wrapped_and_paid_and_every_text_says_so(plans: Plans, stage: Any) -> None:
    """A position in the pool of the wrapper, opened with native POL, waits for the row's sixteen blocks."""
    key = stage.weth_pool
    side = (key.currency0, key.currency1).index(stage.weth)
    capital = [4_000 * 10**6, 4_000 * 10**6]
    capital[side] = 2 * ETHER
    told = (await plans.creation(key, capital[0], capital[1])).model_copy(update={"brings_ether": True})
    drafted = await plans.draft(told)
    shown = simulation_view(plans.hands, drafted, await plans.hands.chain.gas(), None)
    assert shown.ok
    assert (shown.gas_coin, shown.chain) == ("POL", "polygon")
    texts = [to_text(shown.to_document(), 120), str(shown.steps), shown.bounds.model_dump_json()]
    assert "POL" in texts[0]
    assert not [text for text in texts if "ETH" in text]
    book = await plans.done(told)
    kinds = [step.step.kind for step in book.steps]
    assert StepKind.WRAP in kinds
    head = await plans.hands.chain.head()
    mined = [step.mined.block.number for step in book.steps if step.mined is not None]
    assert len(mined) == len(kinds)
    assert head.number - max(mined) + 1 >= stage.info.confirmations == 16
    done = await execution_view(plans.hands, book, told)
    assert (done.gas_coin, Fraction(done.gas_cost) > 0) == ("POL", True)
    assert "ETH" not in to_text(done.to_document(), 120)


async def test_too_little_for_gas_is_named_in_pol(plans: Plans, stage: Any) -> None:
    context = plans.hands
    onchain = await read_onchain_state(context, id_of(stage.weth_pool), None)
    poor = replace(onchain, wallet_state=replace(onchain.wallet_state, holdings={NATIVE: 1}))
    step = (await plans.draft(await plans.creation(stage.weth_pool, 10**9, 10**9))).draft.steps[0]
    with pytest.raises(Refused, match=r"POL.*POL.*POL") as refused:
        checks.check_gas(poor, step, 10**6, 10**6, 10**9)
    assert "ETH" not in str(refused.value)


async def test_the_doctor_reads_the_row_and_refuses_a_node_of_another_chain(desk: Any, tmp_path: Path) -> None:
    url = (await desk.node()).url
    for chain, states in (("polygon", ["warn"]), ("unichain", ["fail"])):
        settings = Settings(home=tmp_path, **{f"{chain}_rpc_url": url})
        assert settings.default_chain() == chain
        zuno = Application(settings)
        try:
            lines = [line for line in (await zuno.doctor().examine()).checks if line.topic == "chains"]
            assert [line.state for line in lines] == states  # its blocks are years old
            assert lines[0].text.startswith(f"{chain}: ")
        finally:
            await zuno.close()
