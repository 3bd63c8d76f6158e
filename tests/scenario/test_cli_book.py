"""The paper book as a person keeps it on the command line: two processes, one book, exit codes and the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.wire.commands import Ran, run_zuno
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, UPBIT, USDT_KRW
from zuno.markets.market import Symbol
from zuno.trading.model.market import DAY_MS, MINUTE_MS, Level, MarkAndIndex, basis, rates
from zuno.trading.ports.series import Batch, Origin

END = Millis(1_767_225_600_000)
Book = Callable[..., Ran]


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """A home with a recorded past of marks, and `zuno trade book` in it."""

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
    return lambda *words: run_zuno(tmp_path, "trade", "book", *words, ZUNO_RECORDING="own")


def test_a_book_is_kept_across_commands(book: Book) -> None:
    empty = book("show", "--json")
    assert empty.code == 0, empty.err
    assert empty.document["equityUsd"] == pytest.approx(2_000 + 2_000_000 / 1_400)
    opened = book("add", "BTCUSDT", "long", "--margin", "500", "--leverage", "2", "--json")
    assert opened.code == 0, opened.err
    (position,) = opened.document["positions"]
    assert position["entry"] == 60_000.0
    assert book("add", "ETHUSDT", "long", "--margin", "100", "--entry", "2800", "--pending").code == 0
    assert book("lp", "ETHUSDT", "1.5").code == 0
    shown = book("show", "--json").document
    assert [one["id"] for one in shown["positions"]] == [position["id"]]
    assert shown["exposureUsd"] == pytest.approx(1_000 + 100 / 2_800 * 3_000 + 4_500)
    assert shown["leverage"] == pytest.approx(shown["exposureUsd"] / shown["equityUsd"])
    assert book("show", "--as-of", "1h", "--json").document["positions"] == []
    closed = book("close", position["id"], "--at", "66000", "--json").document
    assert closed["purses"][0]["cash"] == pytest.approx(2_000 - 0.5 + 100 - 0.55)
    assert closed["positions"] == []


def test_the_screen_names_the_market_and_every_figure(book: Book) -> None:
    book("add", "BTCUSDT", "short", "--margin", "500", "--entry", "57000")
    book("add", "ETHUSDT", "long", "--margin", "420000", "--exchange", "upbit")
    book("add", "BTCUSDT", "short", "--margin", "100", "--entry", "61000", "--pending")
    screen = book("show").out
    for words in (
        "as of 2026-01-01T00:00:00Z · recorded",
        "short 0.00877193 BTC 1× BINANCE",
        "-$26.32",
        "-5.26 %",
        "long 0.1 ETH 1× UPBIT",
        "₩4,200,000",
        "Orders that rest",
        "$61,000.00",
        "₩1,579,790",
        "leverage",
    ):
        assert words in screen, words


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("add", "BTCUSDT", "long", "--margin", "2001"), 3, "more than the $2,000.00 that are free at BINANCE"),
        (("add", "BTCUSDT", "long", "--margin", "5", "--leverage", "4"), 3, "not between 1 and 3"),
        (("add", "BTCUSDT", "short", "--margin", "5", "--exchange", "upbit"), 3, "sold short"),
        (("add", "BTCUSDT", "long", "--margin", "5", "--as-of", "2999-01-01"), 2, "lies after"),
        (("add", "BTCUSDT", "long", "--margin", "5", "--as-of", "2d"), 3, "is not known at"),
        (("close", "pos_00000000"), 3, "No position pos_00000000"),
        (("lp", "ETHUSDT", "lots"), 2, "not an amount"),
    ],
)
def test_a_refusal_is_one_sentence_with_its_code(book: Book, words: tuple[str, ...], code: int, said: str) -> None:
    ran = book(*words, "--json")
    assert ran.code == code
    assert said in ran.document["error"]["message"]
    assert ran.err.count("\n") == 1


def test_the_journal_holds_the_book_and_verifies(book: Book, tmp_path: Path) -> None:
    book("add", "BTCUSDT", "long", "--margin", "500")
    book("close", "BTCUSDT")
    tail = run_zuno(tmp_path, "journal", "tail", "--json").document["entries"]
    assert [entry["kind"] for entry in tail] == ["trade_events", "trade_events"]
    assert run_zuno(tmp_path, "journal", "verify").code == 0
