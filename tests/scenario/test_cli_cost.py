"""What an act costs, through the command line: one line at the end, and a second yes where it is more than it moves."""

from __future__ import annotations

from typing import Any


def test_what_costs_more_than_it_moves_needs_a_second_yes(zuno: Any) -> None:
    first = zuno("lp", "collect", "1", "--json").document["planId"]
    shown = zuno("plan", "simulate", first, "--json").document["cost"]
    assert (shown["exceedsMoved"], shown["swap"], shown["staysHomePercent"]) == (False, None, None)
    assert shown["text"] in zuno("plan", "simulate", first).out
    for act in ("approve", "apply"):
        assert zuno("plan", act, first, "--yes", "--json").code == 0
    zuno("sim", "move", "--percent", "0.01")
    dust = zuno("lp", "collect", "1", "--json").document["planId"]
    cost = zuno("plan", "simulate", dust, "--json").document["cost"]
    assert cost["exceedsMoved"]
    assert float(cost["percent"]) > 100
    assert zuno("plan", "approve", dust, "--yes", "--json").code == 3
    assert zuno("plan", "status", dust, "--json").document["state"] == "simulated"
    agreed = zuno("plan", "approve", dust, "--yes", "--costs-more", "--json")
    assert (agreed.code, agreed.document["state"]) == (0, "approved")


def test_a_range_beside_the_price_takes_its_own_token_against_a_veto(zuno: Any) -> None:
    asked = ("lp", "recommend", "create", "--pair", "WETH/USDC", "--fee", "0.3%", "--range", "3300", "3600")
    one = (*asked, "--token", "WETH", "--amount", "1")
    seen = zuno(*one, "--json").document
    (own,) = [candidate for candidate in seen["candidates"] if candidate["own"]]
    assert own["verdict"] == "veto"
    assert zuno(*one, "--candidate", str(own["index"]), "--json").code == 3
    taken = zuno(*one, "--anyway", "--json").document
    assert (taken["decidedBy"], taken["recommended"]["index"]) == ("owner", own["index"])
    assert zuno("replay", taken["planId"], "--json").document["identical"] is True
    tried = zuno("plan", "simulate", taken["planId"], "--json").document
    assert [step["kind"] for step in tried["steps"]] == ["mint"]
    assert zuno(*asked, "--token", "USDC", "--amount", "1000", "--anyway", "--json").code == 3
    assert zuno(*one, "--with", "1000 USDC", "--anyway", "--json").code == 3
    plain = ("lp", "recommend", "rebalance", "1", "--anyway", "--json")
    assert zuno(*plain).code == 3


def test_all_of_two_tokens_goes_in_on_request(zuno: Any) -> None:
    asked = ("lp", "recommend", "create", "--token", "WETH", "--amount", "0.5", "--with", "1000 USDC", "--pair")
    terms = ("WETH/USDC", "--fee", "0.3%", "--range", "2900", "3300", "--anyway", "--json")
    left = []
    for more in ((), ("--use-all",)):
        plan = zuno(*asked, *terms, *more).document["planId"]
        left.append(zuno("plan", "simulate", plan, "--json").document["leftover"]["share"])
    assert left[0] > 0.1
    assert left[1] < 0.001
