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
