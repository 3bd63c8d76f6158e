"""Hedged liquidity from the command line, on the simulated chain with a paper account: both legs of one approval."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

ACCOUNT = ("--account", "lp-hedge")
CREATE = ("lp", "recommend", "create", "3000 USDC", "--pair", "ETH/USDC", "--hedged", "--json")


def read_short(zuno: Any) -> Decimal:
    positions = zuno("trade", "positions", *ACCOUNT, "--json").document["positions"]
    assert [each["sleeve"] for each in positions] == ["lp-hedge"] * len(positions)
    assert [each["stop"] for each in positions] == [None] * len(positions)
    return sum((Decimal(str(each["quantity"])) for each in positions), Decimal(0))


@pytest.fixture(autouse=True)
def _market(home: Path, invented_market: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "market").symlink_to(invented_market)


def open_hedged(zuno: Any) -> str:
    """The id of a hedged position."""
    plan = zuno(*CREATE, "--candidate", "1").document
    assert zuno("plan", "approve", plan["planId"], "--yes").code == 0
    applied = zuno("plan", "apply", plan["planId"], "--yes", "--json")
    assert applied.code == 0, applied.err
    return str(applied.document["newPositionId"])


def holds(zuno: Any, position: str) -> Decimal:
    return Decimal(zuno("lp", "inspect", position, "--json").document["amount0Human"])


def test_both_legs_are_argued_approved_kept_and_ended_together(zuno: Any) -> None:
    plan = zuno(*CREATE, "--candidate", "1").document
    assert [("hedge" in each, each["kind"]) for each in plan["candidates"]] == [
        (each["kind"] == "open", each["kind"]) for each in plan["candidates"]
    ]
    chosen = plan["candidates"][1]
    assert chosen["hedge"]["market"] == "ETHUSDT"
    assert Decimal(chosen["hedge"]["beginCost"]) > 0 < Decimal(chosen["hedge"]["resetCost"])
    card = zuno("plan", "simulate", plan["planId"], "--json").document
    assert "ETH short by ETHUSDT" in card["hedge"]

    position = open_hedged(zuno)
    assert abs(read_short(zuno) - holds(zuno, position)) < Decimal("0.002")

    zuno("sim", "move", "--percent", "-4")
    zuno("monitor", "once")
    assert abs(read_short(zuno) - holds(zuno, position)) < Decimal("0.002")
    before = read_short(zuno)
    zuno("sim", "move", "--percent", "0.2")
    zuno("monitor", "once")
    assert read_short(zuno) == before, "a difference within the band is left alone"

    pnl = zuno("lp", "pnl", position, "--json").document
    for side in ("inToken0", "inToken1"):
        assert pnl[side]["residual"] == "0"
        assert pnl[side]["exact"]["residual"] == "0"
        assert pnl[side]["hedge"] != "0"
        assert pnl[side]["funding"] == "0"
    assert "hedge" not in zuno("lp", "pnl", "1", "--json").document["inToken1"]

    again = zuno("lp", "recommend", "rebalance", position, "--json").document
    assert ["hedge" in each for each in again["candidates"]] == [
        each["kind"] != "close" for each in again["candidates"]
    ], "what is hedged stays so"
    assert zuno("replay", again["planId"], "--json").document["identical"] is True

    closing = zuno("lp", "close", position, "--json").document
    zuno("plan", "approve", closing["planId"], "--yes")
    assert zuno("plan", "apply", closing["planId"], "--yes").code == 0
    assert read_short(zuno) == 0
    sleeves = {each["name"]: each for each in zuno("trade", "sleeves", *ACCOUNT, "--json").document["sleeves"]}
    assert abs(Decimal(str(sleeves["lp-hedge"]["equityUsd"] or 0))) < Decimal("0.02"), "its margin went back"


def test_a_rebalance_carries_the_hedge_to_the_new_position(zuno: Any) -> None:
    position = open_hedged(zuno)
    plan = zuno("lp", "recommend", "rebalance", position, "--candidate", "2", "--json").document
    assert zuno("plan", "approve", plan["planId"], "--yes").code == 0
    applied = zuno("plan", "apply", plan["planId"], "--yes", "--json").document
    assert abs(read_short(zuno) - holds(zuno, applied["newPositionId"])) < Decimal("0.1")
    pnl = zuno("lp", "pnl", applied["newPositionId"], "--json").document
    assert (pnl["inToken1"]["residual"], pnl["positionIds"]) == ("0", [position, applied["newPositionId"]])


def test_a_perpetual_that_is_refused_after_the_liquidity_is_pushed_each_round_until_it_is_there(zuno: Any) -> None:
    plan = zuno(*CREATE, "--candidate", "1").document
    zuno("plan", "approve", plan["planId"], "--yes")
    zuno("trade", "pause", *ACCOUNT)
    applied = zuno("plan", "apply", plan["planId"], "--yes")
    assert applied.code == 0
    assert "unhedged" in applied.err
    for _ in range(2):
        notes = zuno("monitor", "once", "--json").document["notes"]
        assert [note for note in notes if "unhedged" in note and "paused" in note]
    assert read_short(zuno) == 0
    zuno("trade", "resume", *ACCOUNT)
    assert not [note for note in zuno("monitor", "once", "--json").document["notes"] if "unhedged" in note]
    assert read_short(zuno) > 0


def test_a_kill_names_what_becomes_unhedged_and_the_monitor_goes_on_saying_so(zuno: Any) -> None:
    position = open_hedged(zuno)
    killed = zuno("trade", "kill", *ACCOUNT, "--yes", "--json", TYPED="kill")
    if killed.code != 0:
        killed = zuno("trade", "kill", *ACCOUNT)
    said = json.dumps(killed.document) if killed.out.startswith("{") else killed.out + killed.err
    assert f"position {position} on sim" in said
    notes = zuno("monitor", "once", "--json").document["notes"]
    assert [note for note in notes if "unhedged" in note]


def test_what_has_no_perpetual_or_no_dollar_is_refused_with_its_reason(zuno: Any) -> None:
    refused = zuno("lp", "recommend", "create", "1 ETH", "--pair", "ETH/WBTC", "--hedged")
    assert refused.code == 3


@pytest.mark.parametrize("option", [(), ("--hedged",)])
def test_a_plan_without_a_hedge_is_as_it_was(zuno: Any, option: tuple[str, ...]) -> None:
    plan = zuno("lp", "recommend", "rebalance", "2", "--json", *option).document
    assert any("hedge" in each for each in plan["candidates"]) is bool(option)
