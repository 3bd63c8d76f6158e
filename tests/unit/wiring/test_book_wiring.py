"""The paper book charges, and a cycle reckons with, the fees of the settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.wire.accounts import build_fees
from zuno.settings import read_settings
from zuno.trading.rules.inputs import FeeRates, Fees
from zuno.wiring import Application


async def test_the_book_has_the_fees_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fees() -> Fees:
        house = Application(read_settings(os.environ, tmp_path))
        found = house.book().fees
        await house.close()
        return found

    assert await fees() == Fees()
    for name, value in (("BINANCE_MAKER", "0.01"), ("BINANCE_TAKER", "0.04"), ("UPBIT", "0.1")):
        monkeypatch.setenv(f"ZUNO_FEE_{name}_PCT", value)
    assert await fees() == build_fees(FeeRates(0.01, 0.04), FeeRates(0.1, 0.1))
