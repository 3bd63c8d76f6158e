"""Whatever is missing of the market, the rules of the trading desk stay in their own bounds and risk no more."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples, mark_all_but
from tests.wire.desk_bundles import World, bundle_of, minds_of, saying, without
from tests.wire.desk_roles import ROLES, Argued, argued
from zuno.trading.agents import meta
from zuno.trading.agents.case import build_case
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import Call, Regime
from zuno.trading.model.market import Mode

BEAR = World(drift=-0.01, lean=-0.8, whales=-0.5, stocks=-0.03)
WHOLE = {mode: bundle_of(BEAR, mode) for mode in Mode}
SERIES = sorted(str(block.series) for block in WHOLE[Mode.SWING].blocks)
FEEDS = sorted({name if name.startswith("candles") else name.partition("/")[0] for name in SERIES})
"""What is missing together: a feed of all venues, or one length of bars."""


@pytest.fixture(scope="module")
def budget() -> int:
    return meta.regime_of(build_case(WHOLE[Mode.SWING])).budget


def ruled(bundle: Bundle) -> Argued:
    return asyncio.run(argued(bundle))


def within_bounds(debate: Argued) -> None:
    """Each twin passes as a model's answer would: shape, bounds, provenance."""
    for role in ROLES:
        if role != "risk_manager" or debate.draft.opens:
            heard = asyncio.run(_asked(debate, role))
            assert heard == ("model", ""), role


async def _asked(debate: Argued, role: str) -> tuple[str, str]:
    heard = await debate.ask(role, minds_of(saying(debate.twin(role).model_dump_json())))
    return heard.voice.source, heard.voice.why


@pytest.mark.soak(every=5)
@pytest.mark.slow
@pytest.mark.parametrize("feed", mark_all_but(2, FEEDS, pytest.mark.soak))
def test_whatever_is_missing_the_rules_stay_in_bounds_and_risk_no_more(feed: str, budget: int) -> None:
    gone = [name for name in SERIES if name == feed or name.startswith(f"{feed}/")]
    debate = ruled(without(WHOLE[Mode.SWING], *gone))
    within_bounds(debate)
    assert debate.meta.risk_budget_pct <= budget


@pytest.mark.slow
@settings(max_examples=examples(6), deadline=None)
@given(gone=st.sets(st.sampled_from(SERIES), min_size=2), mode=st.sampled_from(Mode))
def test_any_part_of_the_market_may_be_missing(gone: set[str], mode: Mode) -> None:
    within_bounds(ruled(without(WHOLE[mode], *gone)))


def test_with_nothing_known_nothing_is_risked() -> None:
    bundle = replace(without(WHOLE[Mode.SWING], *SERIES), slots=())
    debate = ruled(bundle)
    within_bounds(debate)
    assert debate.decision.decision is Call.HOLD
    assert (debate.meta.regime, debate.meta.risk_budget_pct) == (Regime.RANGE_BOUND, 0)
    entries = (
        debate.board.liquidity,
        debate.board.microstructure,
        debate.board.macro,
        debate.board.vlm_geometry,
    )
    assert [entry.stance if entry else None for entry in entries] == [0, 0, 0, 0]
