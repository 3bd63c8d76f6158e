"""The owner's own range, through the command line: judged like the others, replayed, and refused where it is none."""

from __future__ import annotations

from typing import Any

import pytest


def test_the_owners_range_is_judged_chosen_and_replayed(zuno: Any) -> None:
    asked = ("lp", "recommend", "rebalance", "1", "--profile", "conservative", "--range", "2800", "3400", "--json")
    seen = zuno(*asked).document
    (own,) = [candidate for candidate in seen["candidates"] if candidate["own"]]
    assert (own["tickLower"] % 10, own["tickUpper"] % 10) == (0, 0)
    assert float(own["priceLower"]) <= 2800.001
    assert float(own["priceUpper"]) >= 3399.999
    assert "2800 to 3400" in seen["ownRange"]
    plain = zuno("lp", "recommend", "rebalance", "1", "--profile", "conservative", "--json").document
    assert plain["ownRange"] is None
    assert not any(candidate["own"] for candidate in plain["candidates"])
    taken = zuno(*asked, "--candidate", str(own["index"])).document
    assert taken["decidedBy"] == "owner"
    for plan in (seen, taken):
        replayed = zuno("replay", plan["planId"], "--json")
        assert (replayed.code, replayed.document["identical"]) == (0, True)
    assert "(yours)" in zuno("plan", "show", seen["planId"]).out


def test_a_new_position_takes_an_own_range_too(zuno: Any) -> None:
    asked = (
        "lp",
        "recommend",
        "create",
        "1 WETH",
        "--pair",
        "WETH/USDC",
        "--fee",
        "0.3%",
        "--ticks",
        "-196801",
        "-195001",
    )
    seen = zuno(*asked, "--json").document
    (own,) = [candidate for candidate in seen["candidates"] if candidate["own"]]
    assert (own["kind"], own["tickLower"], own["tickUpper"]) == ("open", -196_860, -195_000)


def test_without_a_pool_the_own_range_is_judged_in_each_that_is_surveyed(zuno: Any) -> None:
    seen = zuno("lp", "recommend", "create", "5 ETH", "--range", "2400", "3400", "--json").document
    own = [candidate["pool"]["label"] for candidate in seen["candidates"] if candidate["own"]]
    assert own == [each["pool"] for each in seen["feeCover"]]
    assert len(own) == 3
    assert zuno("replay", seen["planId"], "--json").document["identical"] is True


@pytest.mark.parametrize(
    ("option", "code"),
    [
        (["--range", "3400", "2800"], 2),
        (["--range", "2.8", "3.4"], 3),
        (["--range", "0.0003", "0.0004"], 3),
        (["--ticks", "-196010", "-195220"], 3),
        (["--ticks", "1.5", "2"], 2),
        (["--ticks", "0", "10", "--range", "1", "2"], 2),
    ],
    ids=["upside down", "decimals", "turned round", "held now", "no tick", "both"],
)
def test_what_is_no_range_is_refused(zuno: Any, option: list[str], code: int) -> None:
    assert zuno("lp", "recommend", "rebalance", "1", *option, "--json").code == code
