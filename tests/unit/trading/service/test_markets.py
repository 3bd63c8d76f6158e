"""`zuno markets`: lists with their age, asked for anew, kept in a file of the home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from zuno.adapters.home_files import FileKind, classify_file
from zuno.adapters.store.markets_file import MarketsFile
from zuno.kernel.errors import Broken, NotFound, Unavailable, UsageError
from zuno.kernel.units import Millis
from zuno.markets.market import MAX_LIST_AGE, Market, assume_market
from zuno.markets.venues import VENUES, Venue
from zuno.trading.service.markets import MarketDesk, MarketsView

BINANCE, BYBIT = Venue("BINANCE"), Venue("BYBIT")
DAY = 24 * 3_600_000


class Exchanges:
    """Venues whose lists a test writes; one without a list is not reached."""

    def __init__(self, home: Path) -> None:
        self.file = MarketsFile(home)
        self.now = 1_800_000_000_000
        self.lists: dict[Venue, list[Market]] = {}
        self.desk = MarketDesk(self.file.read, self.file.renew, self.ask, lambda: Millis(self.now))

    async def ask(self, venue: Venue) -> Sequence[Market]:
        if venue not in self.lists:
            raise Unavailable(f"{venue.label} could not be reached.")
        return self.lists[venue]


@pytest.fixture
def exchanges(tmp_path: Path) -> Exchanges:
    return Exchanges(tmp_path)


def find_list(view: MarketsView, venue: Venue) -> tuple[str, bool, int]:
    (found,) = [each for each in view.lists if each.venue is venue]
    return found.source, found.stale, found.markets


async def test_without_a_list_there_are_built_in_rules_that_do_not_serve_for_live_orders(exchanges: Exchanges) -> None:
    view = await exchanges.desk.list(search="SOL")
    assert view.ok
    assert len(view.markets) == len(VENUES)
    assert all(each.stale and each.age_seconds is None and each.source == "built-in rules" for each in view.lists)
    (futures,) = [market for market in view.markets if market.name == "binance:SOL/USDT:USDT"]
    assert (futures.tick, futures.lot, futures.min_notional, futures.funding_hours) == (0.01, 0.01, 5.0, 8)


async def test_a_list_is_kept_with_its_time_and_grows_old(exchanges: Exchanges, tmp_path: Path) -> None:
    exchanges.lists[BINANCE] = [replace(assume_market(BINANCE, "SOL"), tick=0.005, maker=0.018)]
    view = await exchanges.desk.list("binance", refresh=True)
    assert view.ok
    assert find_list(view, BINANCE) == ("the venue's own", False, 1)
    again = Exchanges(tmp_path)  # another process
    again.now += 3 * 3_600_000
    (listed,) = (await again.desk.list("binance")).lists
    assert (listed.age_seconds, listed.stale) == (3 * 3_600, False)
    (market,) = again.file.read().list_at(BINANCE)
    assert market == exchanges.lists[BINANCE][0]
    again.now += MAX_LIST_AGE
    assert find_list(await again.desk.list(), BINANCE)[1]
    assert (tmp_path / "markets.json").stat().st_mode & 0o077 == 0
    assert classify_file("markets.json") == (FileKind.CACHE, False)
    assert classify_file("markets.lock")[0] is FileKind.LOCK


async def test_a_venue_that_is_not_reached_keeps_the_list_of_before(exchanges: Exchanges) -> None:
    exchanges.lists = {BINANCE: [assume_market(BINANCE, "SOL")], BYBIT: [assume_market(BYBIT, "SOL")]}
    assert (await exchanges.desk.list(kind="perp", refresh=True)).ok is False  # OKX and Hyperliquid
    del exchanges.lists[BINANCE]
    exchanges.lists[BYBIT].append(assume_market(BYBIT, "XRP"))
    exchanges.now += DAY + 1
    view = await exchanges.desk.list(kind="perp", refresh=True)
    assert not view.ok
    assert {each.venue for each in view.lists if each.failure} == {BINANCE, Venue("OKX"), Venue("HYPERLIQUID")}
    assert find_list(view, BINANCE) == ("the venue's own", True, 1)
    assert find_list(view, BYBIT) == ("the venue's own", False, 2)


@pytest.mark.parametrize(
    "broken",
    [{"lot": 0.0}, {"tick": 0.0}, {"tick": -1.0}, {"tick": float("nan")}, {"lot": float("inf")}, {"base": "a b"}],
)
async def test_a_market_without_tick_or_lot_is_left_out_and_said(
    exchanges: Exchanges, broken: dict[str, float]
) -> None:
    bad = replace(assume_market(BINANCE, "BAD"), **broken)  # type: ignore[arg-type]
    exchanges.lists[BINANCE] = [assume_market(BINANCE, "SOL"), bad]
    view = await exchanges.desk.list("binance", refresh=True)
    assert view.ok
    assert [market.base for market in view.markets] == ["SOL"]
    assert len(view.lists[0].skipped) == 1
    exchanges.lists[BINANCE] = [bad]
    view = await exchanges.desk.list("binance", refresh=True)
    assert not view.ok
    assert find_list(view, BINANCE)[2] == 1  # a list of nothing replaces none


async def test_what_is_asked_for_wrongly_is_said_with_the_nearest_names(exchanges: Exchanges) -> None:
    with pytest.raises(NotFound, match="SOL"):
        await exchanges.desk.list(search="SOLL")
    with pytest.raises(UsageError, match="bybit"):
        await exchanges.desk.list("bibit")
    with pytest.raises(UsageError):
        await exchanges.desk.list(kind="future")


async def test_a_coin_is_found_by_whatever_a_venue_calls_it(exchanges: Exchanges) -> None:
    names = {BINANCE: "1000PEPE", BYBIT: "1000PEPE", Venue("OKX"): "PEPE", Venue("HYPERLIQUID"): "1000PEPE"}
    exchanges.lists = {venue: [assume_market(venue, base)] for venue, base in names.items()}
    for venue in names:
        assert (await exchanges.desk.list(venue, refresh=True)).ok
    for search in ("PEPE", "pepe", "1000PEPE", "kPEPE"):
        view = await exchanges.desk.list(kind="perp", search=search)
        assert [market.base for market in view.markets] == ["1000PEPE", "1000PEPE", "PEPE", "1000PEPE"], search
        assert [note.text for note in view.to_document().notes if "1,000 PEPE" in note.text]
    assert {market.base for market in (await exchanges.desk.list("upbit", search="XBT")).markets} == {"BTC"}


async def test_a_coin_that_was_delisted_is_shown_and_cannot_be_traded(exchanges: Exchanges) -> None:
    exchanges.lists[BINANCE] = [assume_market(BINANCE, "SOL"), assume_market(BINANCE, "LUNA")]
    assert (await exchanges.desk.list("binance", refresh=True)).ok
    del exchanges.lists[BINANCE][1]
    view = await exchanges.desk.list("binance", search="LUNA", refresh=True)
    assert [(market.base, market.trading) for market in view.markets] == [("LUNA", False)]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}{", b'{"BINANCE":{"readAt":1,"markets":[{"base":"X"}]}}', b'{"BINANCE":3}']
)
def test_a_damaged_file_is_broken_and_not_replaced(tmp_path: Path, content: bytes) -> None:
    file = MarketsFile(tmp_path)
    (tmp_path / "markets.json").write_bytes(content)
    with pytest.raises(Broken):
        file.read()
    with pytest.raises(Broken):
        file.renew(BINANCE, [assume_market(BINANCE, "SOL")], Millis(1))
    assert (tmp_path / "markets.json").read_bytes() == content


def test_lists_of_venues_that_are_gone_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "markets.json").write_text('{"FTX":{"readAt":1,"markets":[]}}')
    assert MarketsFile(tmp_path).read().read_at == {}
