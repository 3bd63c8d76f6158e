"""`zuno trade` about an account, in one process: documents, tables, files, and the exit codes of bad wishes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.wire.trading_account import write_story
from zuno.adapters.account.trade_log import JournalTradeLog
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.doors.cli.main import run
from zuno.kernel.units import Millis
from zuno.settings import Settings
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Candle,
    Level,
    MarkAndIndex,
    Symbol,
    Timeframe,
    basis,
    candles,
    rates,
)
from zuno.trading.model.trade_events import paper_account
from zuno.trading.model.venues import BINANCE, UPBIT, USDT_KRW
from zuno.trading.ports.series import Batch, Origin
from zuno.wiring.house import Application

END = Millis(1_767_225_600_000)
Say = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")

    async def record() -> None:
        store = SqliteSeries(folder / "market" / "own", Origin(False, "recorded"))
        times = [Millis(at) for at in range(END - DAY_MS, END + 1, 5 * MINUTE_MS)]
        prices = {Symbol.BTCUSDT: 60_000.0, Symbol.ETHUSDT: 3_000.0}
        batches: list[Batch[Any]] = [Batch(rates(UPBIT, USDT_KRW), [Level(at, 1_400.0) for at in times])]
        for symbol, price in prices.items():
            bars = [
                Candle(Millis(at), price, price, price, price, 1.0, 0.5) for at in range(END - 2 * DAY_MS, END, HOUR_MS)
            ]
            batches.append(Batch(basis(BINANCE, symbol), [MarkAndIndex(at, price, price) for at in times]))
            batches.append(Batch(candles(BINANCE, symbol, Timeframe.H1), bars))
        await store.write(batches)
        await store.close()
        zuno = Application(Settings(home=folder))
        await write_story(JournalTradeLog(zuno._open_journal), paper_account("recorded"), END)
        await zuno.close()

    asyncio.run(record())
    return folder


@pytest.fixture
def say(home: Path, capsys: pytest.CaptureFixture[str]) -> Say:
    def ask(*words: str) -> tuple[int, str]:
        code = run(words, lambda given: Application(Settings(home=home, recording="own")))
        return code, capsys.readouterr().out

    return ask


def test_every_table_says_whose_money_it_is(say: Say) -> None:
    for command in ("status", "positions", "orders", "fills", "trades", "ledger", "balance", "profit", "locks"):
        code, out = say("trade", command)
        assert code == 0, command
        assert out.startswith("PAPER · "), command
        assert "recorded" in out.splitlines()[0], command


def test_positions_as_a_document(say: Say) -> None:
    code, out = say("trade", "positions", "--json")
    (position,) = json.loads(out)["positions"]
    assert code == 0
    assert (position["stop"], position["target"], position["unrealised"]) == (58_900.0, 61_500.0, 10.0)
    assert sorted((position["stopOrder"], position["targetOrder"])) == sorted(position["orders"])


def test_a_picture_and_a_spreadsheet(say: Say, tmp_path: Path) -> None:
    code, out = say("trade", "performance", "--out", str(tmp_path / "equity.png"), "--json")
    assert code == 0
    assert json.loads(out)["maxDrawdownUsd"] > 0
    assert (tmp_path / "equity.png").read_bytes().startswith(b"\x89PNG")
    code, out = say("export", "trades", "--csv")
    assert code == 0
    assert [line.split(",")[14] for line in out.splitlines()] == ["exit_reason", "target", "stop"]
    code, out = say("export", "ledger", "--out", str(tmp_path / "ledger.csv"))
    assert code == 0
    rows = [line.split(",") for line in (tmp_path / "ledger.csv").read_text().splitlines()[1:]]
    for currency in ("USD", "KRW"):
        debits, credits = (sum(float(row[place] or 0) for row in rows if row[7] == currency) for place in (5, 6))
        assert debits == pytest.approx(credits)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("close", "trd_nothing"), 3),
        (("cancel", "nothing"), 3),
        (("set", "trd_nothing"), 2),
        (("set", "trd_nothing", "--stop", "1e"), 2),
        (("set", "trd_nothing", "--stop", "100"), 3),
        (("profit", "--by", "colour"), 2),
        (("fills", "--lines", "0"), 2),
        (("unlock", "luck"), 2),
        (("kill",), 2),
        (("mandate", "grant"), 2),
        (("mandate", "grant", "--symbol", "DOGE"), 2),
        (("mandate", "grant", "--for", "31d"), 3),
        (("mandate", "revoke"), 3),
        (("status", "--account", "a b"), 2),
    ],
)
def test_bad_wishes_have_exit_codes(say: Say, words: tuple[str, ...], code: int) -> None:
    assert say("trade", *words)[0] == code
