"""An account at the market's marks: what it is worth, what moves with the market, and what cannot be told."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.accounts import FUTURES, SPOT, build_account, won_rates
from zuno.kernel.units import Millis, Seconds
from zuno.markets.feeds import BINANCE, UPBIT, USDT_KRW
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import Venue
from zuno.trading.measure.features import measure_features
from zuno.trading.model.account import Account, Holding, Liquidity, RestingOrder, account_slots
from zuno.trading.model.bundle import Absent, Block, Bundle, Slot, content, read_bundle
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import Level, MarkAndIndex, Mode, Side, basis, rates
from zuno.trading.rules.account import (
    MarkedAccount,
    account_of,
    margin_at,
    mark_bundle_account,
    mark_of,
    mark_to_market,
    position_in,
    unrealised_pnl,
)

BTC, ETH = Symbol("BTCUSDT"), Symbol("ETHUSDT")
NOW = Millis(1_767_225_600_000)
MARKS: dict[Symbol, Known[float]] = {BTC: 60_000.0, ETH: 3_000.0}


def held(
    symbol: Symbol = BTC,
    exchange: Venue = Venue("BINANCE"),
    side: Side = Side.LONG,
    quantity: float = 0.01,
    entry: float = 50_000.0,
    leverage: float = 2.0,
    id: str = "pos_1",
) -> Holding:
    return Holding(
        id=id,
        symbol=symbol,
        exchange=exchange,
        side=side,
        quantity=quantity,
        entry=entry,
        leverage=leverage,
        opened=Millis(NOW - 1),
    )


def resting(quantity: float = 0.1, reduce_only: bool = False, symbol: Symbol = ETH) -> RestingOrder:
    return RestingOrder(
        id="ord_1",
        symbol=symbol,
        exchange=Venue("BINANCE"),
        side=Side.LONG,
        quantity=quantity,
        price=2_900.0,
        leverage=2.0,
        placed=Millis(NOW - 1),
        reduce_only=reduce_only,
    )


def stood(account: Account, symbol: Symbol | None = BTC, won: Known[float] = 1_400.0, **marks: Any) -> MarkedAccount:
    found = mark_to_market(
        account, symbol, {**MARKS, **{Symbol(name): mark for name, mark in marks.items()}}, won_rates(won)
    )
    assert isinstance(found, MarkedAccount)
    return found


def test_cash_alone_is_its_own_equity() -> None:
    found = stood(build_account(2_000.0, 2_800_000.0))
    assert found.equity == {Venue("BINANCE"): 2_000.0, Venue("UPBIT"): 2_800_000.0}
    assert found.equity_usd == 4_000.0
    assert (found.exposure_usd, found.leverage, found.position, found.gain_pct) == (0.0, 0.0, None, None)


def test_an_account_of_every_kind_adds_up() -> None:
    account = build_account(
        usd=2_000.0,
        krw=1_000_000.0,
        positions=(
            held(),
            held(ETH, Venue("UPBIT"), quantity=0.1, entry=4_000_000.0, leverage=1.0, id="pos_2"),
        ),
        pending=(resting(), resting(5.0, reduce_only=True)),
        liquidity=(Liquidity(symbol=ETH, quantity=1.5),),
    )
    found = stood(account)
    assert found.equity[Venue("BINANCE")] == pytest.approx(2_000 + 0.01 * 10_000)
    assert found.equity[Venue("UPBIT")] == pytest.approx(1_000_000 + 0.1 * 3_000 * 1_400)
    assert found.equity_usd == pytest.approx(2_100 + 1_420_000 / 1_400)
    assert found.exposure_usd == pytest.approx(0.01 * 60_000 + 0.1 * 3_000 + 0.1 * 3_000 + 1.5 * 3_000)
    assert found.leverage == pytest.approx(found.exposure_usd / found.equity_usd)
    assert found.margin[Venue("BINANCE")].open == pytest.approx(250.0)
    assert found.margin[Venue("BINANCE")].pending == pytest.approx(145.0)
    assert found.margin[Venue("BINANCE")].total == pytest.approx(395.0)
    assert found.margin[Venue("UPBIT")].total == pytest.approx(400_000.0)
    assert found.gain_pct == pytest.approx(20.0)
    assert found.pending == ()
    assert stood(account, ETH).pending == account.pending


def test_a_short_gains_where_the_price_falls() -> None:
    short = held(side=Side.SHORT, entry=66_000.0)
    found = stood(build_account(2_000.0, 0.0, (short,)))
    assert unrealised_pnl(short, 60_000.0) == pytest.approx(60.0)
    assert found.equity[Venue("BINANCE")] == pytest.approx(2_060.0)
    assert found.gain_pct == pytest.approx(100 * 6_000 / 66_000)
    assert found.exposure_usd == pytest.approx(600.0)


def test_one_position_of_several_parts_is_weighed_by_their_size() -> None:
    parts = (
        held(quantity=0.03, entry=60_000.0),
        held(exchange=Venue("UPBIT"), quantity=0.01, entry=42_000_000.0, leverage=1.0, id="pos_2"),
    )
    found = stood(build_account(2_000.0, 0.0, parts))
    assert found.position is not None
    assert found.position.quantity == pytest.approx(0.04)
    assert found.gain_pct == pytest.approx((0.03 * 0 + 0.01 * 100) / 0.04)
    alone = mark_to_market(build_account(2_000.0, 0.0, parts), BTC, MARKS, won_rates(Missing("no rate")))
    assert isinstance(alone, MarkedAccount)
    assert alone.gain_pct == pytest.approx(0.0)
    assert stood(build_account(0.0, 0.0, parts[1:]), won=Missing("no rate")).gain_pct is None


def test_nothing_left_to_carry_an_exposure_is_leverage_without_end() -> None:
    assert stood(build_account(-1.0, 0.0, (held(),), ()), BTCUSDT=49_000.0).leverage == inf


@pytest.mark.parametrize("holding", ["position", "order", "liquidity", "symbol"])
def test_a_missing_mark_of_anything_held_makes_the_whole_unknown(holding: str) -> None:
    account = {
        "position": build_account(2_000.0, 0.0, (held(ETH),)),
        "order": build_account(2_000.0, 0.0, (), (resting(),)),
        "liquidity": build_account(2_000.0, 0.0, (), (), (Liquidity(symbol=ETH, quantity=1.0),)),
        "symbol": build_account(2_000.0, 0.0),
    }[holding]
    found = mark_to_market(
        account, ETH if holding == "symbol" else BTC, {**MARKS, ETH: Missing("silent")}, won_rates(1_400.0)
    )
    assert isinstance(found, Missing)
    assert "ETHUSDT" in found.reason


def test_an_order_that_only_reduces_needs_no_mark() -> None:
    account = build_account(2_000.0, 0.0, (), (resting(reduce_only=True),))
    assert isinstance(mark_to_market(account, BTC, {BTC: 60_000.0}, won_rates(1_400.0)), MarkedAccount)


@pytest.mark.parametrize("won", [Missing("stale"), 0.0, -1.0, inf])
def test_without_a_rate_what_is_at_upbit_counts_nothing_and_says_so(won: Known[float]) -> None:
    account = build_account(2_000.0, 2_000_000.0, (held(exchange=Venue("UPBIT"), leverage=1.0, entry=7e7),))
    found = stood(account, won=won)
    assert found.equity[Venue("UPBIT")] == 0.0
    assert found.equity_usd == 2_000.0
    assert found.exposure_usd == pytest.approx(600.0)
    assert any("UPBIT" in note for note in found.notes)


prices = st.floats(1.0, 1e6)
holdings = st.builds(
    held,
    symbol=st.sampled_from(DEFAULT_SYMBOLS),
    exchange=st.just(Venue("BINANCE")),
    side=st.sampled_from(Side),
    quantity=st.floats(1e-6, 100.0),
    entry=prices,
    leverage=st.floats(1.0, 3.0),
)
spots = st.builds(
    held,
    symbol=st.sampled_from(DEFAULT_SYMBOLS),
    exchange=st.just(Venue("UPBIT")),
    quantity=st.floats(1e-6, 100.0),
    entry=st.floats(1e3, 1e9),
    leverage=st.just(1.0),
)
pools = st.builds(
    lambda symbol, quantity: Liquidity(symbol=symbol, quantity=quantity),
    st.sampled_from(DEFAULT_SYMBOLS),
    st.floats(0, 10),
)
accounts = st.builds(
    build_account,
    usd=st.floats(-1e5, 1e5),
    krw=st.floats(0, 1e9),
    positions=st.lists(holdings | spots, max_size=5).map(tuple),
    liquidity=st.lists(pools, max_size=2).map(tuple),
)


@pytest.mark.slow
@given(accounts, prices, prices, st.floats(500.0, 3_000.0))
def test_equity_is_cash_and_what_is_not_yet_realised(account: Account, btc: float, eth: float, won: float) -> None:
    found = stood(account, won=won, BTCUSDT=btc, ETHUSDT=eth)
    price = {BTC: btc, ETH: eth}
    futures = [one for one in account.positions if one.exchange is Venue("BINANCE")]
    gains = sum(unrealised_pnl(one, price[one.symbol]) for one in futures)
    assert found.equity[Venue("BINANCE")] == pytest.approx(account.cash[FUTURES] + gains, rel=1e-11, abs=1e-6)
    bought = [one for one in account.positions if one.exchange is Venue("UPBIT")]
    gains = sum(unrealised_pnl(one, price[one.symbol] * won) for one in bought)
    spent = margin_at(account, Venue("UPBIT")).open
    assert found.equity[Venue("UPBIT")] == pytest.approx(account.cash[SPOT] + spent + gains, rel=1e-11, abs=1e-3)
    assert found.exposure_usd >= 0


@given(accounts, prices, prices, st.floats(500.0, 3_000.0))
def test_removing_the_won_never_raises_equity(account: Account, btc: float, eth: float, won: float) -> None:
    known = stood(account, won=won, BTCUSDT=btc, ETHUSDT=eth)
    without = stood(account, won=Missing("gone"), BTCUSDT=btc, ETHUSDT=eth)
    assert without.equity_usd <= known.equity_usd
    assert without.equity[Venue("UPBIT")] <= known.equity[Venue("UPBIT")]
    assert without.exposure_usd == known.exposure_usd
    assert without.leverage >= known.leverage


# -- in a bundle


def bundle_of(account: Account | None, *, without: str = "", age: int = 0, **slot: Any) -> Bundle:
    series = {
        "btc": (basis(BINANCE, BTC), MarkAndIndex(NOW, 60_000.0, 60_010.0)),
        "eth": (basis(BINANCE, ETH), MarkAndIndex(NOW, 3_000.0, 3_001.0)),
        "won": (rates(UPBIT, USDT_KRW), Level(NOW, 1_400.0)),
    }
    blocks = tuple(
        Block(name, (row,), NOW, Seconds(age if key == "eth" else 0), Seconds(600))  # type: ignore[arg-type]
        for key, (name, row) in series.items()
        if key != without
    )
    slots = () if account is None else tuple(account_slots(account, NOW, **slot))
    absent = (Absent(str(series[without][0]), "the venue is away"),) if without else ()
    return Bundle(BTC, Mode.SWING, NOW, "SYNTHETIC seed 1", blocks, absent, slots)


HELD = build_account(
    2_000.0,
    1_000_000.0,
    (held(), held(ETH, id="pos_2", entry=3_100.0)),
    (resting(),),
    (Liquidity(symbol=ETH, quantity=1.5),),
)


def test_a_bundle_holds_the_account_whole_through_its_bytes() -> None:
    again = read_bundle(content(bundle_of(HELD)))
    assert account_of(again) == HELD
    found = mark_bundle_account(again, measure_features(again))
    assert found == mark_to_market(HELD, BTC, MARKS, won_rates(1_400.0))
    assert isinstance(found, MarkedAccount)
    assert found.position == position_in(HELD, BTC)


@pytest.mark.parametrize("name", ["positions", "equity"])
def test_a_missing_slot_is_missing(name: str) -> None:
    whole = bundle_of(HELD)
    less = replace(
        whole,
        slots=tuple(slot for slot in whole.slots if slot.name != name),
        absent=(Absent(name, "none is kept yet"),),
    )
    for found in (mark_bundle_account(less, measure_features(less)), account_of(less)):
        assert isinstance(found, Missing)
        assert name in found.reason
        assert "none is kept yet" in found.reason


@pytest.mark.parametrize("gone", ["btc", "eth"])
def test_without_a_mark_the_standing_is_missing_and_the_account_is_not(gone: str) -> None:
    less = bundle_of(HELD, without=gone)
    found = mark_bundle_account(less, measure_features(less))
    assert isinstance(found, Missing)
    assert "the venue is away" in found.reason
    assert account_of(less) == HELD


def test_a_stale_mark_is_no_mark() -> None:
    old = bundle_of(HELD, age=601)
    assert isinstance(mark_of(old, ETH), Missing)
    assert isinstance(mark_bundle_account(old, measure_features(old)), Missing)
    assert mark_of(bundle_of(HELD, age=600), ETH) == 3_000.0


def test_without_the_won_the_bundle_still_stands() -> None:
    less = bundle_of(HELD, without="won")
    found = mark_bundle_account(less, measure_features(less))
    assert isinstance(found, MarkedAccount)
    assert found.equity[Venue("UPBIT")] == 0.0


def test_liquidity_that_could_not_be_read_makes_the_standing_unknown() -> None:
    unread = bundle_of(HELD, unread="the chain did not answer")
    found = mark_bundle_account(unread, measure_features(unread))
    assert isinstance(found, Missing)
    assert "the chain did not answer" in found.reason
    assert account_of(unread) == HELD
    noted = bundle_of(HELD, notes=("nobody looked",))
    told = mark_bundle_account(noted, measure_features(noted))
    assert isinstance(told, MarkedAccount)
    assert told.notes == ("nobody looked",)


POSITION = {
    "id": "pos_1", "symbol": "BTCUSDT", "exchange": "BINANCE", "side": "long", "quantity": 0.01, "entry": 50_000.0,
    "leverage": 2.0, "opened": 1, "stop": None, "take": None,
}  # fmt: skip


@pytest.mark.parametrize(
    "flaw",
    [
        {"quantity": 0.0},
        {"quantity": -0.1},
        {"quantity": "0.01"},
        {"quantity": True},
        {"entry": 0.0},
        {"leverage": 0.5},
        {"side": "both"},
        {"symbol": "DOGE?"},
        {"exchange": "MOON"},
        {"id": "../x"},
        {"more": 1},
    ],
    ids=str,
)
def test_a_slot_nobody_writes_is_missing(flaw: dict[str, Any]) -> None:
    whole = bundle_of(build_account(2_000.0, 0.0))
    for position, sound in ((POSITION, True), ({**POSITION, **flaw}, False)):
        held_slot: Any = {"positions": [position], "pending": [], "liquidity": [], "unread": None, "notes": []}
        given_slots = tuple(
            Slot(slot.name, held_slot, slot.as_of, slot.source) if slot.name == "positions" else slot
            for slot in whole.slots
        )
        assert isinstance(account_of(replace(whole, slots=given_slots)), Account if sound else Missing)
