"""Entries by hand on the command line: several processes, one ledger, exit codes and the screens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.wire.commands import Ran, run_zuno
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.journal.port import Author
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, UPBIT, USDT_KRW
from zuno.markets.market import Symbol
from zuno.settings import Settings
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, Level, MarkAndIndex, basis, rates
from zuno.trading.ports.series import Batch, Origin
from zuno.wiring import Application

END = Millis(1_767_225_600_000)
Trade = Callable[..., Ran]


@pytest.fixture
def trade(tmp_path: Path) -> Trade:
    """A home with a recorded past of marks, and `zuno trade` in it."""

    async def recorded() -> None:
        store = SqliteSeries(tmp_path / "market" / "own", Origin(False, "recorded"))
        times = [Millis(at) for at in range(END - DAY_MS, END + 1, 5 * MINUTE_MS)]
        await store.write(
            [
                Batch(basis(BINANCE, Symbol("BTCUSDT")), [MarkAndIndex(at, 60_000.0, 60_010.0) for at in times]),
                Batch(basis(BINANCE, Symbol("ETHUSDT")), [MarkAndIndex(at, 3_000.0, 3_001.0) for at in times]),
                Batch(rates(UPBIT, USDT_KRW), [Level(at, 1_400.0) for at in times]),
            ]
        )
        await store.close()

    asyncio.run(recorded())
    return lambda *words: run_zuno(tmp_path, "trade", *words, ZUNO_RECORDING="own")


def test_an_account_is_kept_across_commands(trade: Trade) -> None:
    empty = trade("status", "--json")
    assert empty.code == 0, empty.err
    assert empty.document["equityUsd"] == pytest.approx(20_000 + 2_000_000 / 1_400)
    assert [(part["name"], part["equityUsd"]) for part in empty.document["sleeves"][1:]] == [("trend", 12_000)]
    opened = trade("book", "add", "BTCUSDT", "long", "--margin", "500", "--leverage", "2", "--json")
    assert opened.code == 0, opened.err
    (position,) = opened.document["positions"]
    assert (position["entry"], position["manual"]) == (60_000.0, True)
    rested = trade("book", "add", "ETHUSDT", "long", "--margin", "100", "--entry", "2800", "--pending", "--json")
    (order,) = rested.document["orders"]
    assert trade("book", "lp", "ETHUSDT", "1.5").code == 0
    shown = trade("positions", "--json").document
    assert [one["id"] for one in shown["positions"]] == [position["id"]]
    assert trade("orders", "--json").document["orders"] == [order]
    status = trade("status", "--json").document
    assert status["risk"]["grossUsd"] == pytest.approx(1_000 + 100 / 2_800 * 3_000 + 4_500)
    assert status["risk"]["leverage"] == pytest.approx(status["risk"]["grossUsd"] / status["equityUsd"])
    assert [row["lp"] for row in status["risk"]["rows"]] == [0.0, 1.5]
    closed = trade("book", "close", position["id"], "--at", "66000", "--json").document
    assert closed["positions"] == []
    assert trade("cancel", order["id"], "--json").document["orders"] == []
    assert trade("balance", "--json").document["purses"][0]["cash"] == pytest.approx(8_000 - 0.5 + 100 - 0.55)
    assert [row["netPnl"] for row in trade("trades", "--json").document["trades"]] == [pytest.approx(100 - 1.05)]


def test_the_screens_name_the_market_and_every_figure(trade: Trade) -> None:
    trade("book", "add", "BTCUSDT", "short", "--margin", "500", "--entry", "57000")
    trade("book", "add", "ETHUSDT", "long", "--margin", "420000", "--exchange", "upbit")
    entered = trade("book", "add", "BTCUSDT", "short", "--margin", "100", "--entry", "61000", "--pending").out
    positions = trade("positions").out
    for words in ("as of 2026-01-01T00:00:00Z · recorded", "-$26.32", "long 0.1 ETH 1× UPBIT", "₩4,200,000", "by hand"):
        assert words in positions, words
    for screen in (entered, trade("orders").out):
        assert "$61,000.00" in screen
        assert "ord_" in screen
    assert "₩1,579,790" in trade("balance").out
    assert "leverage" in trade("status").out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("add", "BTCUSDT", "long", "--margin", "8001"), 3, "more than the $8,000.00 that are free at BINANCE"),
        (("add", "BTCUSDT", "long", "--margin", "5", "--leverage", "4"), 3, "not between 1 and 3"),
        (("add", "BTCUSDT", "short", "--margin", "5", "--exchange", "upbit"), 3, "sold short"),
        (("add", "BTCUSDT", "long", "--margin", "5", "--as-of", "2999-01-01"), 2, "lies after"),
        (("add", "BTCUSDT", "long", "--margin", "5", "--as-of", "2d"), 3, "is not known at"),
        (("close", "pos_00000000"), 3, "No position pos_00000000"),
        (("lp", "ETHUSDT", "lots"), 2, "not an amount"),
    ],
)
def test_a_refusal_is_one_sentence_with_its_code(trade: Trade, words: tuple[str, ...], code: int, said: str) -> None:
    ran = trade("book", *words, "--json")
    assert ran.code == code
    assert said in ran.document["error"]["message"]
    assert ran.err.count("\n") == 1


def test_the_journal_holds_the_entries_and_verifies(trade: Trade, tmp_path: Path) -> None:
    trade("book", "add", "BTCUSDT", "long", "--margin", "500")
    trade("book", "close", "BTCUSDT")
    tail = run_zuno(tmp_path, "journal", "tail", "--json").document["entries"]
    assert [entry["kind"] for entry in tail] == ["trade_events", "trade_events"]
    assert run_zuno(tmp_path, "journal", "verify").code == 0


def test_an_old_home_counts_its_entries_once(trade: Trade, tmp_path: Path) -> None:
    """As the first edition wrote them: entries of kind `book_change`, before there were accounts."""
    opened = {
        "kind": "opened",
        "at": END - HOUR_MS,
        "position": {
            "id": "pos_1",
            "symbol": "BTCUSDT",
            "exchange": "BINANCE",
            "side": "long",
            "quantity": 0.01,
            "entry": 58_000.0,
            "leverage": 2.0,
            "opened": END - HOUR_MS,
            "stop": None,
            "take": 64_000.0,
        },
        "fee": 0.29,
    }
    pools = {"kind": "liquidity", "at": END - HOUR_MS, "symbol": "ETHUSDT", "quantity": 1.5}

    async def write_old_entries() -> None:
        zuno = Application(Settings(home=tmp_path))
        journal = await zuno._open_journal()
        for number, change in enumerate((opened, pools), 1):
            payload = {"origin": "recorded", "number": number, "change": change}
            await journal.append(kind="book_change", author=Author("owner"), payload=payload)
        await zuno.close()

    asyncio.run(write_old_entries())
    for _ in range(2):
        (position,) = trade("positions", "--json").document["positions"]
        assert (position["id"], position["unrealised"], position["manual"]) == ("pos_1", pytest.approx(20.0), True)
        assert trade("status", "--json").document["risk"]["rows"][1]["lp"] == 1.5
    assert trade("book", "add", "BTCUSDT", "long", "--margin", "100").code == 0
    assert trade("positions", "--json").document["positions"][0]["id"] == "pos_1"
    assert trade("book", "close", "pos_1", "--at", "60000").code == 0
    assert len(trade("positions", "--json").document["positions"]) == 1
    (closed,) = trade("trades", "--json").document["trades"]
    assert (closed["id"], closed["netPnl"]) == ("pos_1", pytest.approx(20 - 0.29 - 0.3))
    assert run_zuno(tmp_path, "journal", "verify").code == 0


def test_the_risk_book_counts_simulated_liquidity_until_it_is_stated_by_hand(trade: Trade, tmp_path: Path) -> None:
    held = run_zuno(tmp_path, "lp", "positions", "--json").document["positions"]
    coins = sum(float(position["amount0Human"]) + float(position["fees0Human"]) for position in held)
    before = trade("status", "--json").document
    assert before["risk"]["lpSimulated"] is True
    assert [(row["symbol"], row["lp"]) for row in before["risk"]["rows"]] == [("ETHUSDT", pytest.approx(coins))]
    assert before["risk"]["deltaUsd"] == pytest.approx(coins * 3_000)
    assert trade("book", "lp", "ETHUSDT", "1.5").code == 0
    after = trade("status", "--json").document["risk"]
    assert ([row["lp"] for row in after["rows"]], after["lpSimulated"]) == ([1.5], False)
