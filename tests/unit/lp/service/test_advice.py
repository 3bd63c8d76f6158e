"""The desk as an owner asks it, in process on the simulated chain: settings, then words, then flags."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from zuno.lp.service.create_request import Flags
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.recommend import RecommendService
from zuno.settings import read_settings
from zuno.wiring import Application

pytestmark = pytest.mark.slow

Ask = Callable[[RecommendService], Awaitable[PlanView]]
Asked = Callable[..., Awaitable[PlanView]]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """`asked(what, ZUNO_…="…")`: one question to a house with these settings."""

    async def answered(ask: Ask, **environment: str) -> PlanView:
        with monkeypatch.context() as patch:
            for name, value in {"ZUNO_DETERMINISTIC": "true", **environment}.items():
                patch.setenv(name, value)
            house = Application(read_settings(os.environ, tmp_path))
        try:
            return await ask(house.advice())
        finally:
            await house.close()

    return answered


@pytest.mark.soak(every=3)
@pytest.mark.parametrize("profile", ["conservative", "balanced", "aggressive"])
async def test_the_configured_profile_is_obeyed_and_a_flag_wins(asked: Asked, profile: str) -> None:
    configured = await asked(lambda advice: advice.rebalance("1"), ZUNO_RISK_PROFILE=profile)
    assert configured.profile == profile
    flagged = await asked(lambda advice: advice.rebalance("1", profile="aggressive"), ZUNO_RISK_PROFILE=profile)
    assert flagged.profile == "aggressive"
    assert (flagged.hash == configured.hash) is (profile == "aggressive")


@pytest.mark.soak
async def test_words_win_over_settings_and_flags_over_words(asked: Asked) -> None:
    setting = {"ZUNO_RISK_PROFILE": "aggressive"}
    plain = await asked(lambda advice: advice.create("2 ETH"), **setting)
    worded = await asked(lambda advice: advice.create("2 ETH passively"), **setting)
    flagged = await asked(lambda advice: advice.create("2 ETH passively", profile="balanced"), **setting)
    assert [plan.profile for plan in (plain, worded, flagged)] == ["aggressive", "conservative", "balanced"]


async def test_another_amount_is_another_decision(asked: Asked) -> None:
    two, again, more = [
        await asked(lambda advice, amount=amount: advice.create("", Flags(token="WETH", amount=amount)))
        for amount in ("2", "2", "2.1")
    ]
    assert two.hash == again.hash
    assert two.hash != more.hash


async def test_no_round_allowed_means_the_arbiter_decides_what_is_not_accepted(asked: Asked) -> None:
    """Conservative floors, which the first proposal of the simulation's seed does not clear."""
    argued = await asked(lambda advice: advice.rebalance("1", profile="conservative"))
    cut_short = await asked(lambda advice: advice.rebalance("1", profile="conservative"), ZUNO_MAX_DEBATE_ROUNDS="0")
    assert argued.rounds > 0
    assert (cut_short.decided_by, cut_short.rounds) == ("arbiter", 0)
