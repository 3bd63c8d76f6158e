"""Exchange rates from FRED: holes at weekends and holidays, rates that are too old, answers that are none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.wire.model_server import http
from tests.wire.vendors import figures
from tests.wire.vendors.questions import QUICK
from tests.wire.vendors.serving import Vendor, said, vendor
from tests.wire.vendors.world import World
from zuno.adapters.venues.macro import Fred, fetch_rates
from zuno.adapters.venues.web import WebService
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.taxable import Amount, FiatRates
from zuno.kernel.units import Millis
from zuno.trading.model.market import DAY_MS, MacroRelease

FRIDAY = date(2025, 10, 10)
HUNDRED = Amount(Decimal(100), "USD")


def on(day: date, rate: float) -> MacroRelease:
    at = Millis(int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1_000)
    return MacroRelease(at, rate, Millis(at + DAY_MS))


@asynccontextmanager
async def asking(*prints: MacroRelease) -> AsyncIterator[tuple[Vendor, Fred]]:
    world = World(prints=list(prints))
    async with vendor(figures.fred(world)) as here:
        feed = Fred(WebService("FRED", here.url + "/fred", patience=QUICK), figures.KEY, lambda: Millis(world.now))
        yield here, feed
        await feed.close()


async def fetch(feed: Fred) -> FiatRates:
    return await fetch_rates(feed, ["EUR"], FRIDAY - timedelta(30), FRIDAY + timedelta(30))


async def test_a_weekend_and_a_holiday_have_the_rate_of_the_day_before() -> None:
    """2025-10-01 is in every answer of the server, with a point for its value."""
    async with asking(on(date(2025, 9, 30), 1.25), on(FRIDAY, 1.6)) as (here, feed):
        rates = await fetch(feed)
        for day, expected in ((date(2025, 10, 1), "80"), (FRIDAY, "62.5"), (FRIDAY + timedelta(2), "62.5")):
            converted = rates.convert(HUNDRED, day, "EUR")
            assert converted is not None
            assert converted[0] == Decimal(expected)
        (_, query) = here.asked[-1]
        assert (query["series_id"], query["observation_start"]) == ("DEXUSEU", "2025-09-10")


async def test_a_rate_older_than_a_week_is_none() -> None:
    async with asking(on(FRIDAY, 1.6)) as (_, feed):
        rates = await fetch(feed)
        assert rates.convert(HUNDRED, FRIDAY + timedelta(7), "EUR") is not None
        assert rates.convert(HUNDRED, FRIDAY + timedelta(8), "EUR") is None
        assert rates.convert(HUNDRED, FRIDAY - timedelta(1), "EUR") is None


@pytest.mark.parametrize(
    ("mood", "kind"),
    [
        (said({"error": "no such path"}, 404), Unavailable),
        (figures.NO_KEY, Unavailable),
        (http(200, b"<html><body>Sign in</body></html>"), Malformed),
        (said({"observations": "none"}), Malformed),
        (said({"count": 1, "observations": [{"date": "2025-10-10", "value": "soon"}]}), Malformed),
        (said({"count": 1, "observations": [{"date": "today", "value": "1.1"}]}), Malformed),
        (said({"count": 1, "observations": [{"date": "2025-10-10", "value": "0"}]}), Malformed),
        (said({"count": 2, "observations": [{"date": "2025-10-10", "value": "1.1"}]}), Malformed),
    ],
)
async def test_what_is_no_answer_is_no_rate(mood: Any, kind: type[Exception]) -> None:
    async with asking() as (here, feed):
        here.mood = mood
        with pytest.raises(kind) as refused:
            await fetch(feed)
        assert figures.KEY not in str(refused.value)
