"""What an LP looks up beside positions and PnL: a position at another price, the portfolio, and what is gone."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

WHATIF = {"price", "amount0", "amount1", "worth", "hodlWorth", "divergenceLoss", "sinceMint", "inRange"}


def test_whatif_holds_one_token_below_its_range(zuno: Any) -> None:
    ran = zuno("lp", "whatif", "1", "--price", "-20%", "--json")
    assert (ran.code, ran.err) == (0, "")
    seen = ran.document
    assert seen.keys() >= WHATIF
    assert seen["inRange"] is False
    assert (int(seen["amount0"]) > 0, seen["amount1"]) == (True, "0")
    assert Decimal(seen["price"]) == pytest.approx(Decimal(seen["priceNow"]) * Decimal("0.8"), rel=Decimal("1e-8"))
    loss = Decimal(seen["hodlWorth"]) - Decimal(seen["worth"])
    assert Decimal(seen["divergenceLoss"]) == pytest.approx(loss, abs=Decimal("0.00001"))
    assert loss > 0
    assert [row["percent"] for row in seen["table"]] == [
        *("-50", "-40", "-30", "-20", "-10", "-5", "0", "5", "10", "20", "30", "40", "50")
    ]
    assert seen["table"][3]["amount0"] == seen["amount0"]


def test_whatif_of_today_loses_what_attribution_says_since_the_mint(zuno: Any) -> None:
    today = zuno("lp", "whatif", "1", "--json").document
    pnl = zuno("lp", "pnl", "1", "--json").document
    assert (today["percent"], today["divergenceLoss"]) == ("0", "0")
    measured = Decimal(pnl["inToken1"]["divergenceLoss"])
    assert Decimal(today["sinceMint"]["divergenceLoss"]) == pytest.approx(measured, abs=Decimal("0.00001"))


def test_whatif_takes_a_price(zuno: Any) -> None:
    seen = zuno("lp", "whatif", "2", "--price", "2,400.5", "--json").document
    assert seen["price"] == "2400.5"
    assert zuno("lp", "whatif", "2", "--price", "2400").code == 0


@pytest.mark.parametrize("price", ["-99.1%", "-100%", "-200", "+1001%", "30", "310000000", "cheap", "", "0", "1e99"])
def test_whatif_refuses_what_is_no_price_or_too_far(zuno: Any, price: str) -> None:
    ran = zuno("lp", "whatif", "1", "--price", price, "--json")
    assert (ran.code, ran.document["error"]["kind"]) == (2, "usage")


def test_the_portfolio_adds_up_and_agrees_with_attribution(zuno: Any) -> None:
    ran = zuno("lp", "portfolio", "--json")
    assert (ran.code, ran.err) == (0, "")
    seen = ran.document
    totals = seen["totals"]
    assert (totals["currency"], totals["windowHours"], totals["unpriced"]) == ("USD", 168, [])
    held = zuno("lp", "positions", "--json").document["positions"]
    assert [chain["block"] for chain in seen["chains"]] == [held[0]["block"]]
    assert {line["quote"] for line in seen["positions"]} == {price["token"] for price in seen["prices"]}
    assert all(price["source"] and price["ageSeconds"] >= 0 for price in seen["prices"])
    assert Decimal(totals["worth"]) == sum(Decimal(position["valueHuman"]) for position in held)
    for line in seen["positions"]:
        pnl = zuno("lp", "pnl", line["id"], "--since", "7d", "--json").document["inToken1"]
        for ours, theirs in (("fees24h", "fees"), ("lvr24h", "lvr")):
            assert Decimal(line[ours]) * 7 == pytest.approx(Decimal(pnl[theirs]), abs=Decimal("0.00001"))
        assert line["netApr"] < line["feeApr"]
        yearly = Decimal(line["fees24h"]) * 365 / Decimal(line["meanWorth"])
        assert float(yearly) == pytest.approx(line["feeApr"], rel=1e-3)
    assert Decimal(totals["meanWorth"]) == pytest.approx(
        sum(Decimal(line["meanWorth"]) for line in seen["positions"]), abs=Decimal("0.00001")
    )
    assert Decimal(totals["fees24h"]) == pytest.approx(
        sum(Decimal(line["fees24h"]) for line in seen["positions"]), abs=Decimal("0.00001")
    )
    day = zuno("lp", "portfolio", "--window", "24h", "--json").document
    assert (day["totals"]["windowHours"], day["totals"]["feeApr"], day["totals"]["yieldOf"]) == (24, None, 0)
    assert {line["feeApr"] for line in day["positions"]} == {None}  # never a day times 365
    assert "young" not in zuno("lp", "portfolio", "--window", "24h").out  # it is the window that is short


def test_a_position_opens_with_its_result_and_the_plan_that_waits(zuno: Any) -> None:
    def look(which: str) -> tuple[dict[str, Any], dict[str, Any]]:
        document = zuno("lp", "positions", "--json").document
        return document, next(line["summary"] for line in document["positions"] if line["id"] == which)

    assert zuno("sim", "move", "--percent", "-6").code == 0
    pnl = zuno("lp", "pnl", "1", "--json").document["inToken1"]
    document, before = look("1")
    assert (before["state"], before["plan"], document["urgent"]) == ("out_of_range", None, [])
    assert before["why"] == ""  # nothing is missing
    assert (before["result"], before["openedAt"]) == (pnl["result"], 1_768_953_600)
    assert before["resultShare"] == pytest.approx(float(before["result"]) / 20_000, rel=1e-3)
    kept = sum(Decimal(pnl[term]) * sign for term, sign in (("fees", 1), ("divergenceLoss", -1), ("gas", -1)))
    assert Decimal(before["againstHolding"]) == pytest.approx(kept, abs=1)  # gas at the price of then, and of now
    assert 0 < float(before["toLowerPercent"]) < float(before["toUpperPercent"])
    assert (before["feesCollected"], before["uncollected"]) == ("0", before["fees"])
    plan = zuno("lp", "recommend", "rebalance", "1", "--candidate", "2", "--json").document
    document, waiting = look("1")
    assert (waiting["plan"]["planId"], waiting["plan"]["state"]) == (plan["planId"], "drafted")
    assert waiting["plan"]["priceLower"] == plan["recommended"]["priceLower"]
    assert any(plan["planId"] in line for line in document["urgent"])
    assert f"plan approve {plan['planId']}" in zuno("lp", "inspect", "1").out
    for step in ("approve", "apply"):
        assert zuno("plan", step, plan["planId"], "--yes", "--json").code == 0
    assert zuno("sim", "move", "--percent", "1").code == 0
    document, after = look("4")
    assert (after["positionIds"], after["guessed"], after["plan"], document["urgent"]) == (["1", "4"], False, None, [])
    assert Decimal(after["fees"]) == pytest.approx(
        Decimal(after["feesCollected"]) + Decimal(after["uncollected"]), abs=Decimal("0.00001")
    )
    assert Decimal(after["feesCollected"]) > 100 * Decimal(after["uncollected"])
    totals = zuno("lp", "portfolio", "--json").document["totals"]
    assert [totals[name] for name in ("positions", "worthOf", "resultOf", "fees24hOf", "yieldOf")] == [2] * 5


def test_a_position_without_a_past_is_missing_from_the_sums(zuno: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zuno.lp.service.position_past.MOST_LIVES", 1)
    totals = zuno("lp", "portfolio", "--json").document["totals"]
    assert (totals["positions"], totals["worthOf"], totals["resultOf"], totals["result"]) == (2, 2, 0, None)
    assert "of 0 of 2 positions" in zuno("lp", "portfolio").out


def test_locks_and_paused_mandates_stand_above_the_figures(zuno: Any) -> None:
    granted = zuno(
        "lp", "mandate", "grant", "--position", "1", "--exit-below", "2000", "--worth-per-day", "50000", "--yes"
    )
    assert granted.code == 0, granted.err
    assert zuno("lp", "positions", "--json").document["urgent"] == []
    assert zuno("lp", "pause").code == 0
    assert len(zuno("lp", "positions", "--json").document["urgent"]) == 1
    assert zuno("trade", "kill", "--yes").code == 0
    for asked in (("positions",), ("inspect", "1"), ("portfolio",)):
        assert len(zuno("lp", *asked, "--json").document["urgent"]) == 2


def test_two_moves_within_an_hour_are_both_in_lvr(zuno: Any) -> None:
    """An 8 % fall and a 9 % rise end near where they began; the price went there and back all the same."""
    fell, rose = list[Decimal](), list[Decimal]()
    for percent, lost in (("-8", fell), ("9", rose)):
        assert zuno("sim", "move", "--percent", percent).code == 0
        lost.append(Decimal(zuno("lp", "pnl", "2", "--since", "24h", "--json").document["inToken1"]["lvr"]))
        week = zuno("lp", "inspect", "2", "--json").document["summary"]["lvr7d"]
        day = zuno("lp", "portfolio", "--window", "24h", "--json").document["positions"][1]["lvr24h"]
        assert Decimal(day) == pytest.approx(lost[0], rel=Decimal("0.001"))
        lost.append(Decimal(week))
    assert rose[0] > fell[0] + 25
    assert rose[1] - fell[1] == pytest.approx(rose[0] - fell[0], rel=Decimal("0.2"))


def test_a_rebalance_is_one_lineage_of_the_portfolio(zuno: Any) -> None:
    assert zuno("sim", "move", "--percent", "-6").code == 0
    plan = zuno("lp", "recommend", "rebalance", "1", "--candidate", "2", "--json").document["planId"]
    for step in ("approve", "apply"):
        assert zuno("plan", step, plan, "--yes", "--json").code == 0
    seen = zuno("lp", "portfolio", "--window", "24h", "--json").document
    lines = {line["id"]: line for line in seen["positions"]}
    assert lines.keys() == {"2", "4"}
    assert lines["4"]["positionIds"] == ["1", "4"]
    pnl = zuno("lp", "pnl", "4", "--since", "24h", "--json").document["inToken1"]
    gone = zuno("lp", "positions", "--closed", "--json").document
    assert [(line["id"], line["became"], line["newPositionId"]) for line in gone["positions"]] == [
        ("1", "rebalanced", "4")
    ]
    assert (gone["positions"][0]["planId"], gone["complete"]) == (plan, True)
    hours = Decimal(str(lines["4"]["windowHours"]))
    assert Decimal(lines["4"]["fees24h"]) * hours / 24 == pytest.approx(Decimal(pnl["fees"]), rel=Decimal("0.001"))


@pytest.mark.soak
def test_lvr_never_falls_along_a_lineage_of_rebalances(zuno: Any) -> None:
    """The hour of a rebalance may close nearer to where it opened: what was lost until the burn stays lost."""
    token, lost = "1", [Decimal(0)]
    for percent in ("5", "-7"):
        assert zuno("sim", "move", "--percent", percent).code == 0
        lost.append(Decimal(zuno("lp", "pnl", token, "--json").document["inToken1"]["lvr"]))
        plan = zuno("lp", "recommend", "rebalance", token, "--candidate", "2", "--json").document["planId"]
        assert zuno("plan", "approve", plan, "--yes", "--json").code == 0
        token = zuno("plan", "apply", plan, "--yes", "--json").document["newPositionId"]
        lost.append(Decimal(zuno("lp", "pnl", token, "--json").document["inToken1"]["lvr"]))
    assert lost == sorted(lost)


def test_nothing_is_gone_until_it_is_closed(zuno: Any) -> None:
    assert zuno("lp", "positions", "--closed", "--json").document["positions"] == []
    other, plan = (zuno("lp", what, "2", "--json").document["planId"] for what in ("collect", "close"))
    waiting = zuno("plan", "list", "--waiting", "--json").document
    assert ([line["planId"] for line in waiting["plans"]], waiting["notes"]) == ([plan, other], [])
    for step in ("approve", "apply"):
        assert zuno("plan", step, plan, "--yes", "--json").code == 0
    waiting = zuno("plan", "list", "--waiting", "--json").document
    assert (waiting["plans"], len(waiting["notes"])) == ([], 1)
    assert other in zuno("plan", "list", "--waiting").out
    (line,) = zuno("lp", "positions", "--closed", "--json").document["positions"]
    assert (line["id"], line["became"], line["planId"], line["why"]) == ("2", "closed", plan, "")
    assert line["closedAt"] > line["openedAt"]
    pnl = zuno("lp", "pnl", "2", "--json").document["inToken1"]
    assert (line["result"], line["fees"]) == (pnl["result"], pnl["fees"])
    assert zuno("lp", "positions", "--closed").code == 0
    assert zuno("lp", "positions", "--closed", "--id", "2").code == 2


def test_several_wallets_have_labels_and_nothing_is_nothing(zuno: Any) -> None:
    other, own = "0x" + "11" * 20, zuno("lp", "positions", "--json").document["wallet"]
    named = f"cold={other}, main={own}"
    both = zuno("lp", "portfolio", "--wallet", other, "--wallet", own, "--json", ZUNO_WATCHED_WALLETS=named).document
    assert [(wallet["label"], wallet["address"], wallet["positions"]) for wallet in both["wallets"]] == [
        ("cold", other, 0),
        ("main", own, 2),
    ]
    assert Decimal(both["wallets"][1]["worth"]) == Decimal(both["totals"]["worth"])
    empty = zuno("lp", "portfolio", "--wallet", f"cold={other}", "--json").document
    assert (empty["wallets"][0]["worth"], empty["totals"]["worth"], empty["positions"]) == ("0", "0", [])
    assert (empty["totals"]["fees24h"], empty["totals"]["feeApr"]) == (None, None)


@pytest.mark.parametrize("option", [["--window", "5m"], ["--window", "60d"], ["--wallet", "cold=0x12"]])
def test_a_portfolio_refuses_what_it_cannot_read(zuno: Any, option: list[str]) -> None:
    assert zuno("lp", "portfolio", *option).code == 2
