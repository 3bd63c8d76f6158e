"""On the simulated chain, as a person runs it: gas of allowances, lineage, closing all at once, leaving anyway."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.wire.commands import run_zuno
from zuno.adapters.chain.world import SIM


@pytest.fixture
def zuno(tmp_path: Path) -> Any:
    def command(*words: str) -> Any:
        ran = run_zuno(tmp_path, *words, "--json")
        assert ran.code == 0, ran.out + ran.err
        return ran.document

    return command


def carry_out(zuno: Any, plan: Any) -> Any:
    zuno("plan", "approve", plan["planId"], "--yes")
    return zuno("plan", "apply", plan["planId"], "--yes")


def wei(ether: str) -> int:
    return int(Decimal(ether) * 10**18)


def test_a_create_after_a_close_is_a_position_of_its_own_with_all_its_gas(zuno: Any) -> None:
    carry_out(zuno, zuno("lp", "close", "1"))
    made = zuno("lp", "recommend", "create", "--pair", "WETH/USDC", "--token", "WETH", "--amount", "1")
    done = carry_out(zuno, made)
    kinds = [step["kind"] for step in done["steps"]]
    assert "permit2_approve" in kinds
    pnl = zuno("lp", "pnl", done["newPositionId"])
    assert (pnl["positionIds"], pnl["lineage"], pnl["exact"]) == ([done["newPositionId"]], "journal", True)
    assert int(pnl["gasWei"]) == wei(done["gasCost"])
    assert pnl["inToken1"]["residual"] == pnl["inToken0"]["residual"] == "0"


def test_a_rebalance_follows_its_plan_and_the_story_s_positions_say_nothing_of_one(zuno: Any) -> None:
    before = zuno("lp", "pnl", "1")
    assert (before["lineage"], before["exact"]) == (None, True)
    done = carry_out(zuno, zuno("lp", "recommend", "rebalance", "1"))
    pnl = zuno("lp", "pnl", done["newPositionId"])
    assert (pnl["positionIds"], pnl["lineage"], pnl["exact"]) == (["1", done["newPositionId"]], "journal", True)
    assert int(pnl["gasWei"]) - int(before["gasWei"]) == wei(done["gasCost"])


def test_closing_everything_names_its_plan_for_each_position(zuno: Any) -> None:
    plan = zuno("lp", "close", "--all")
    held = {plan["positionId"], *plan["otherPositionIds"]}
    assert len(held) > 1
    carry_out(zuno, plan)
    closed = zuno("lp", "positions", "--closed")["positions"]
    assert {line["id"]: (line["planId"], line["became"]) for line in closed} == dict.fromkeys(
        held, (plan["planId"], "closed")
    )


def test_anyway_is_for_leaving_alone(tmp_path: Path, zuno: Any) -> None:
    plan = zuno("lp", "remove", "1", "--percent", "40", "--anyway")
    card = zuno("plan", "simulate", plan["planId"])
    (shown,) = card["exits"]
    assert (shown["positionId"], shown["source"]) == ("1", "seed")
    assert Decimal(shown["sandwichCost"]) == Decimal(shown["worth"]) - Decimal(shown["worst"]) >= 0
    assert carry_out(zuno, plan)["state"] == "confirmed"
    plain = zuno("lp", "remove", "1", "--percent", "40")
    assert zuno("plan", "simulate", plain["planId"])["exits"] == []
    assert run_zuno(tmp_path, "lp", "add", "1", "--amount", "1 WETH", "--anyway").code == 2
    assert SIM.testnet, "--yes stands for the typed word here alone"
