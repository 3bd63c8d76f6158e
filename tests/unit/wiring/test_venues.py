"""Venues from the settings: none without keys, and what `zuno doctor` says of those that have some."""

from __future__ import annotations

from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.wire.exchanges import binance, bybit, upbit
from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.bybit import FakeBybit
from tests.wire.exchanges.serving import DOWN, HTML, serve_exchange
from tests.wire.exchanges.upbit import FakeUpbit
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.http import is_loopback
from zuno.doors.doctor import Doctor, DoctorView
from zuno.kernel.errors import Refused, UsageError
from zuno.markets.venues import DEFAULT_VENUES, VENUES, Venue
from zuno.settings import Settings
from zuno.trading.rules.trading_book import TradingBook
from zuno.wiring import Application
from zuno.wiring.venues import (
    build_venue,
    build_venue_check,
    environment_account,
    exchanges_with_keys,
    list_markets,
)


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[tuple[FakeBinance, FakeUpbit, Settings]]:
    fakes = FakeBinance(), FakeUpbit()
    async with serve_exchange(fakes[0].server), serve_exchange(fakes[1].server):
        settings = Settings(
            home=tmp_path,
            binance_api_key=SecretStr(binance.KEY),
            binance_api_secret=SecretStr(binance.SECRET),
            binance_order_url=fakes[0].server.url,
            upbit_access_key=SecretStr(upbit.KEY),
            upbit_secret_key=SecretStr(upbit.SECRET),
            upbit_order_url=fakes[1].server.url,
        )
        yield (*fakes, settings)


async def read_book(account: str) -> TradingBook:
    return TradingBook()


async def examine(settings: Settings, *, live: bool = True) -> DoctorView:
    return await Doctor([build_venue_check(settings, unix_millis, read_book)]).examine(live=live)


def failures(view: DoctorView) -> list[str]:
    return [line.text for line in view.checks if line.state == "fail"]


async def test_there_is_no_venue_without_keys(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert exchanges_with_keys(settings) == ()
    for exchange in DEFAULT_VENUES:
        with pytest.raises(Refused):
            build_venue(settings, exchange)
    assert (await examine(settings, live=False)).ok
    assert not (await examine(settings, live=True)).ok
    with pytest.raises(UsageError):
        build_venue(Settings(home=tmp_path, upbit_access_key=SecretStr("half")), Venue("UPBIT"))


@pytest.mark.parametrize("url", ["http://exchange.example", "http://127.0.0.1.example"])
def test_keys_travel_encrypted(tmp_path: Path, url: str) -> None:
    keys = SecretStr("key")
    with pytest.raises(UsageError):
        build_venue(
            Settings(home=tmp_path, binance_api_key=keys, binance_api_secret=keys, binance_order_url=url),
            Venue("BINANCE"),
        )


@pytest.mark.slow
async def test_the_doctor_reads_both_exchanges_and_changes_nothing(
    both: tuple[FakeBinance, FakeUpbit, Settings],
) -> None:
    futures, spot, settings = both
    view = await examine(settings)
    assert view.ok
    assert {line.state for line in view.checks if line.text.startswith("UPBIT")} == {"ok"}
    warned = [line.text for line in view.checks if line.state == "warn"]
    assert len(warned) == 1  # cross margin, which the first order mends
    text = view.model_dump_json()
    assert not any(secret in text for secret in settings.secrets())
    posts = [name for fake in (futures, spot) for name in fake.server.asked if name.startswith("POST")]
    assert set(posts) <= {"POST /v1/orders/test"}


@pytest.mark.slow
async def test_the_doctor_says_what_is_wrong(both: tuple[FakeBinance, FakeUpbit, Settings]) -> None:
    futures, spot, settings = both
    futures.withdrawals = True
    futures.hedge = True
    spot.engine.cash = Decimal(-5)
    del spot.engine.markets["KRW-ETH"]
    futures.engine.markets["ETHUSDT"].trading = False
    futures.clock.ahead = 60_000
    view = await examine(settings)
    assert len(failures(view)) == 5
    assert any("+60" in line.text for line in view.checks if line.state == "warn")
    assert all(line.advice for line in view.checks if line.state in ("fail", "warn"))


@pytest.mark.parametrize("ahead", [3_600_000, -3_600_000])
async def test_a_clock_an_hour_off_is_a_failure_that_says_by_how_much(
    both: tuple[FakeBinance, FakeUpbit, Settings], ahead: int
) -> None:
    futures, _, settings = both
    futures.clock.ahead = ahead
    (failed,) = failures(await examine(settings))
    skew = float(failed.split("clock ")[1].split()[0])
    assert skew == pytest.approx(ahead / 1_000, abs=60)


async def test_the_doctor_asks_for_positions_and_open_orders(both: tuple[FakeBinance, FakeUpbit, Settings]) -> None:
    futures, spot, settings = both
    futures.engine.take("BTCUSDT", Decimal("-0.5"), Decimal(60_000))
    futures.engine.place("stranger", "ETHUSDT", "BUY", "LIMIT", Decimal("0.1"), Decimal(1_000))
    spot.engine.take("KRW-ETH", Decimal(2), Decimal(4_000_000))
    warned = [line.text for line in (await examine(settings)).checks if line.state == "warn"]
    assert [line for line in warned if line.startswith("BINANCE") and "-0.5" in line]
    assert [line for line in warned if line.startswith("BINANCE") and "stranger" in line]
    assert [line for line in warned if line.startswith("UPBIT") and "2 ETH" in line]
    futures.server.fail("GET /fapi/v3/positionRisk", HTML, times=9)
    assert len(failures(await examine(settings))) == 1


@pytest.mark.slow
async def test_an_exchange_that_cannot_be_read_is_a_failure_of_its_own(
    both: tuple[FakeBinance, FakeUpbit, Settings],
) -> None:
    futures, _, settings = both
    futures.server.fail("GET /fapi/v3/balance", HTML, times=9)
    view = await examine(settings)
    assert len(failures(view)) == 1
    assert failures(view)[0].startswith("BINANCE: ")


@pytest.mark.slow
async def test_demo_trading_goes_to_its_own_address(tmp_path: Path) -> None:
    """Without an address of the tests' it is the exchange's: nothing is asked here, only where it would be."""
    keys = SecretStr("key")
    venue = build_venue(
        Settings(home=tmp_path, binance_api_key=keys, binance_api_secret=keys, binance_demo=True), Venue("BINANCE")
    )
    assert venue.paper
    assert not venue.simulated
    opened = venue._client.opened  # type: ignore[attr-defined]
    assert {url.split("/")[2] for name, url in opened.urls["api"].items() if name.startswith("fapi")} == {
        "demo-fapi.binance.com"
    }
    assert not opened.isSandboxModeEnabled
    await venue.close()


@pytest.mark.slow
async def test_demo_trading_needs_no_permissions_of_a_wallet(both: tuple[FakeBinance, FakeUpbit, Settings]) -> None:
    futures, _, settings = both
    venue = build_venue(settings.model_copy(update={"binance_demo": True}), Venue("BINANCE"))
    rights = await venue.rights()
    await venue.close()
    assert (rights.can_trade, rights.can_withdraw, rights.paper) == (True, False, True)
    assert futures.server.count("GET /sapi/v1/account/apiRestrictions") == 0


@pytest.mark.parametrize(
    ("url", "local"),
    [
        (None, False),
        ("http://127.0.0.1:8080", True),
        ("http://[::1]:8080", True),
        ("http://localhost", True),
        ("https://relay.example", False),
        ("https://127.0.0.1.example", False),
    ],
)
def test_requests_go_without_pace_to_this_machine_alone(url: str | None, local: bool) -> None:
    assert is_loopback(url) is local


async def test_a_venues_own_list_is_read_without_keys(
    both: tuple[FakeBinance, FakeUpbit, Settings], tmp_path: Path
) -> None:
    futures, spot, keyed = both
    settings = Settings(home=tmp_path, binance_order_url=keyed.binance_order_url, upbit_order_url=keyed.upbit_order_url)
    futures.engine.markets["ETHUSDT"].lot = Decimal(0)
    desk = Application(settings).market_desk()
    view = await desk.list("binance", refresh=True)
    assert view.ok
    assert [market.name for market in view.markets] == ["binance:BTC/USDT:USDT"]
    assert view.lists[0].skipped == ("ETH/USDT",)
    assert {market.base for market in await list_markets(settings, Venue("UPBIT"))} == {"BTC", "ETH"}
    assert not [name for name in spot.server.asked if "chance" in name]
    for answer in (HTML, DOWN):
        futures.server.fail("GET /fapi/v1/exchangeInfo", answer, times=9)
        view = await desk.list("binance", refresh=True)
        assert not view.ok
        assert view.lists[0].failure
        assert [market.name for market in view.markets] == ["binance:BTC/USDT:USDT"]


async def test_a_named_account_has_its_own_keys_and_ledger(tmp_path: Path) -> None:
    fake = FakeBybit()
    async with serve_exchange(fake.server):
        account = {"venues": ["bybit"], "key": bybit.KEY, "secret": bybit.SECRET, "url": fake.server.url}
        settings = Settings(home=tmp_path, accounts={"swiss": account, "empty": {"venues": ["okx"], "key": ""}})
        assert settings.find_account("swiss") == "live:swiss"
        assert settings.find_account("other") == "other"
        assert exchanges_with_keys(settings, "live:swiss") == (Venue("BYBIT"),)
        assert exchanges_with_keys(settings, "live:empty") == exchanges_with_keys(settings, "live") == ()
        assert {bybit.KEY, bybit.SECRET} <= set(settings.secrets())
        venue = build_venue(settings, Venue("BYBIT"), "live:swiss")
        assert (await venue.rights()).can_trade
        await venue.close()
        for exchange, name in ((Venue("BYBIT"), "live"), (Venue("OKX"), "live:swiss"), (Venue("OKX"), "live:empty")):
            with pytest.raises(Refused):
                build_venue(settings, exchange, name)
        zuno = Application(settings)
        assert zuno.account("swiss")._reader.account == "live:swiss"
        limits = ("10", "30", "5", "1d", "venue")
        mandate = zuno.account("swiss").build_mandate((), (), *limits, judge_fallback=False)
        assert (mandate.venues, mandate.symbols) == ((Venue("BYBIT"),), settings.markets)


async def test_keys_of_a_venue_that_no_route_names_are_told(tmp_path: Path) -> None:
    keys = SecretStr("key")
    settings = Settings(home=tmp_path, bybit_api_key=keys, bybit_api_secret=keys)
    lines = (await examine(settings, live=False)).checks
    assert [line.state for line in lines if "bybit" in line.text] == ["warn"]
    routed = settings.model_copy(update={"route_split": ("bybit-spot", "binance")})
    assert exchanges_with_keys(routed) == (Venue("BYBIT-SPOT"),)
    half = Settings(home=tmp_path, bybit_api_key=keys)
    assert "fail" in [line.state for line in (await examine(half, live=False)).checks]


def test_each_venue_has_a_demo_setting_of_its_own(tmp_path: Path) -> None:
    keys = SecretStr("key")
    settings = Settings(
        home=tmp_path,
        bybit_api_key=keys,
        bybit_api_secret=keys,
        bybit_demo=True,
        okx_api_key=keys,
        okx_api_secret=keys,
        okx_passphrase=keys,
    )
    assert exchanges_with_keys(settings, "demo") == (Venue("BYBIT"), Venue("BYBIT-SPOT"))
    assert exchanges_with_keys(settings, "live") == (Venue("OKX"), Venue("OKX-SPOT"))
    assert not settings.is_demo(Venue("BINANCE"))
    assert all(hasattr(settings, f"{venue.house}_demo") for venue in VENUES if venue.sandbox)


def test_the_account_of_the_environment_is_of_demo_trading_where_all_its_keys_are(tmp_path: Path) -> None:
    def account(**given: Any) -> str:
        return environment_account(Settings(home=tmp_path, **given))

    key = SecretStr("key")
    bybit: dict[str, Any] = {"bybit_api_key": key, "bybit_api_secret": key, "bybit_demo": True}
    assert (account(), account(**bybit), account(binance_demo=True)) == ("live", "demo", "demo")
    binance: dict[str, Any] = {"binance_api_key": key, "binance_api_secret": key, "binance_demo": True}
    assert account(**binance) == "demo"
    keyed = exchanges_with_keys(Settings(home=tmp_path, **binance), "demo")
    assert keyed == (Venue("BINANCE"),), "its spot has no demo trading, and these keys are none of the real one"
    assert exchanges_with_keys(Settings(home=tmp_path, **binance), "live") == ()
    assert account(**bybit, binance_api_key=key, binance_api_secret=key) == "live"
    assert exchanges_with_keys(Settings(home=tmp_path, **bybit), "demo") == (Venue("BYBIT"), Venue("BYBIT-SPOT"))
    assert exchanges_with_keys(Settings(home=tmp_path, **bybit), "live") == ()


def test_half_a_key_of_one_house_keeps_nobody_from_another(tmp_path: Path) -> None:
    key = SecretStr("key")
    settings = Settings(home=tmp_path, binance_api_key=key, binance_api_secret=key, okx_api_key=key)
    assert exchanges_with_keys(settings, "live") == (Venue("BINANCE"), Venue("BINANCE-SPOT"))
    with pytest.raises(UsageError, match="ZUNO_OKX_API_SECRET"):
        build_venue(settings, Venue("OKX"), "live")
    with pytest.raises(Refused, match=r"accounts\.gone"):
        build_venue(settings, Venue("BINANCE"), "live:gone")
