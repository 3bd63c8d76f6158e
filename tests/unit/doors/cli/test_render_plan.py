"""The card of a plan: what it decided in ticks and prices, who spoke, and what that cost."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from tests.wire.debating import Table, observed, scout_says, surveyed
from tests.wire.fakes.model import ScriptedModel
from zuno.doors.cli.render import render
from zuno.lp.model.ballot import RiskProfile

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


async def card(folder: Path, capsys: pytest.CaptureFixture[str], usd_per_token: Decimal | None) -> str:
    table = Table(folder, await observed(folder))
    if usd_per_token is not None:
        model = ScriptedModel(lambda request: scout_says(), "a scout", usd_per_token=usd_per_token)
        table.models["scout"] = model
    plan = await table.plan()
    render(plan)
    shown = capsys.readouterr().out
    assert f"{plan.recommended.tick_lower} to {plan.recommended.tick_upper}" in shown
    return shown


async def test_a_model_is_named_with_its_tokens_and_dollars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = await card(tmp_path, capsys, Decimal("0.00001"))
    assert "scout: model a scout" in shown
    assert " tokens, $0.00" in shown


async def test_a_free_model_costs_its_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert " tokens, $0" in await card(tmp_path, capsys, Decimal(0))


async def test_rules_cost_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = await card(tmp_path, capsys, None)
    assert "tokens" not in shown
    assert "deterministic" in shown


async def test_what_earlier_rounds_rejected_is_on_the_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(tmp_path, await observed(tmp_path))
    plan = await table.plan(RiskProfile.CONSERVATIVE)
    assert plan.rounds == 1
    render(plan)
    shown = " ".join(capsys.readouterr().out.split())
    assert len(plan.earlier) == 3
    for one in plan.earlier:
        assert f"{one.verdict}: {one.reason}" in shown
        assert f"Candidate {one.index}, {one.kind}: " in shown


async def test_opening_nothing_is_called_so_and_names_the_pools_it_turned_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Too little ether to pay for its own gas: several pools were argued about, none is entered."""
    plan = await Table(tmp_path, await surveyed(tmp_path, ("ETH", "0.05"))).plan(RiskProfile.CONSERVATIVE)
    assert plan.recommended.tick_lower is None
    render(plan)
    shown = capsys.readouterr().out
    assert ": open nothing" in shown
    assert "puts" not in shown
    turned_down = {one.pool.label for one in plan.candidates if one.tick_lower is not None}
    assert len(turned_down) > 1
    said = [one.text for one in plan.transcript if one.role == "strategist" and one.round == 0]
    for pool in turned_down:
        assert pool in shown
        assert any("in pool " in text for text in said), said
