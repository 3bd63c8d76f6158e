"""What the nodes of a cycle hand on: the officer reads what the rules left, and every mind is paid for."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.wire.cycling import ROLES, Desk, Talkative, market, rows
from tests.wire.fakes.series import MemorySeries
from zuno.adapters.venues.synthetic.path import END
from zuno.llm.port import ModelRequest, Usage
from zuno.markets.feeds import BINANCE, USDC_USDT
from zuno.markets.market import Symbol
from zuno.trading.agents.risk_manager import PASSED
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.measure.features import measure_features
from zuno.trading.model.cycle import Call, Outcome
from zuno.trading.model.market import Mode, rates
from zuno.trading.rules.price_menu import PriceMenu, build_price_menu

REVIEW = Decimal("0.0005")


class Paid(Talkative):
    """A tenth of a cent for a word, and half as much is expected for one to come."""

    def __init__(self, menu: PriceMenu, heard: dict[str, str]) -> None:
        super().__init__(menu, lambda request: 0)
        self._heard = heard

    async def price(self, tokens_in: int, tokens_out: int) -> Decimal:
        return REVIEW

    async def reply(self, request: ModelRequest) -> Any:
        self._heard[request.role] = request.turns[0].text
        said = await super().reply(request)
        return replace(said, usage=Usage(100, 50, Decimal("0.001")))


@pytest.fixture(scope="module")
def store() -> MemorySeries:
    return asyncio.run(market(thin=True))


@pytest.fixture(scope="module")
def menu(store: MemorySeries) -> PriceMenu:
    bundle = asyncio.run(build_bundle(store, Symbol("BTCUSDT"), Mode.POSITION, END))  # type: ignore[arg-type]
    return build_price_menu(bundle, measure_features(bundle))


async def run(home: Path, store: MemorySeries, menu: PriceMenu, heard: dict[str, str]) -> Outcome:
    """The Judge asks for 2×; a POSITION borrows nothing."""
    desk = Desk(home, store, models={role: (Paid(menu, heard),) for role in ROLES})
    outcome = await desk.cycles.run("BTCUSDT", mode="position")
    await desk.close()
    assert (outcome.decision.decision, outcome.decision.leverage) == (Call.LONG, 2)
    return outcome


@pytest.mark.slow
async def test_the_officer_reads_what_the_rules_left(tmp_path: Path, store: MemorySeries, menu: PriceMenu) -> None:
    heard: dict[str, str] = {}
    outcome = await run(tmp_path, store, menu, heard)
    assert outcome.ruling.leverage == 1.0
    assert "\n{draft.leverage} 1×\n" in heard["risk_manager"]
    assert "cro_1_leverage" in heard["risk_manager"]


@pytest.mark.slow
async def test_where_the_rules_hold_no_officer_is_asked(tmp_path: Path, store: MemorySeries, menu: PriceMenu) -> None:
    lost = MemorySeries(store.origin)
    await lost.write([batch for batch in rows(thin=True) if batch.series != rates(BINANCE, USDC_USDT)])
    heard: dict[str, str] = {}
    outcome = await run(tmp_path, lost, menu, heard)
    assert set(heard) == set(ROLES) - {"risk_manager"}
    assert (outcome.ruling.decision, outcome.ruling.veto) == (Call.HOLD, "cro_7_dollar")
    officer = outcome.voices[-1]
    assert (officer.role, officer.source, officer.why, officer.usd) == ("risk_manager", "deterministic", PASSED, 0.0)


@pytest.mark.slow
async def test_every_mind_is_paid_for(tmp_path: Path, store: MemorySeries, menu: PriceMenu) -> None:
    """What was spent before the officer, and what the officer is expected to cost."""
    outcome = await run(tmp_path, store, menu, {})
    assert outcome.expectation is not None
    assert [voice.usd for voice in outcome.voices] == [0.001] * 8
    assert outcome.expectation.llm_cost_usd == pytest.approx(7 * 0.001 + 0.0005)
