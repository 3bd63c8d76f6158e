"""What a person reads of the collector and of a download."""

from __future__ import annotations

import re
from typing import Any

import pytest

from zuno.doors.cli.render import render
from zuno.trading.service.collector import CollectedView, CollectView, FailingView, RoundView, StreamView
from zuno.trading.service.download import DownloadedView, DownloadView

AT = 1_767_225_600_000


def status(**more: Any) -> CollectView:
    plain: dict[str, Any] = {
        "at": AT + 61_500,
        "series": 40,
        "fresh": 40,
        "waiting_for": (),
        "failing": (),
        "streams": (),
        "unasked": {},
        "given_up": {},
        "rows": 1_234,
        "unwritten": 0,
        "store": "",
    }
    return CollectView(**{**plain, **more})


def failing(name: str) -> FailingView:
    return FailingView(series=name, since=AT, why="Binance could not be reached")


def test_a_line_says_what_is_fresh() -> None:
    heard = StreamView(venue="binance", heard=True, since=AT, proven=AT, why="")
    line = status(streams=(heard,)).write_line()
    assert line.startswith("2026-01-01 00:01:01 UTC ")
    assert all(part in line for part in ("40 of 40 ", "1 of 1 ", "1,234 "))


def test_a_line_says_what_fails_and_why_and_since_when() -> None:
    lost = StreamView(venue="bybit", heard=False, since=AT, proven=None, why="the stream was lost")
    several = tuple(failing(f"basis/binance/{n}") for n in range(8))
    line = (
        status(
            fresh=30, streams=(lost,), failing=several, waiting_for=("a", "b"), unwritten=7, store="The disk is full"
        )
    ).write_line()
    assert "30 of 40 " in line
    assert "0 of 1 " in line
    assert "7 unwritten" in line
    assert "The disk is full" in line
    assert "bybit since 2026-01-01 00:00: " in line
    assert re.search(r"basis/binance/0 .*2026-01-01 00:00: Binance\b", line)
    assert "basis/binance/5" in line
    assert "basis/binance/6" not in line
    assert re.search(r"\b2 more\b.*\b2 are\b[^;]*$", line)


def test_a_round_and_an_end_have_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    view = RoundView(
        ok=False,
        at=AT,
        series=2,
        answered=1,
        rows=3,
        failing=(failing("basis/okx/BTCUSDT"),),
        unasked={"fred": "FRED needs a key"},
        given_up={"funding/okx/BTCUSDT": "from here to there"},
        said="1 of 2 series answered; 3 new rows are kept.",
        notes=("streams are heard by a collector that stays",),
    )
    render(view)
    render(CollectedView(rows=3, said="The collector ended."))
    shown = capsys.readouterr().out
    for words in ("1 of 2 series answered", "basis/okx/BTCUSDT", "could not be reached", "fred is not asked", "ended."):
        assert words in shown
    assert re.search(r"funding/okx/BTCUSDT .*from here to there", " ".join(shown.split()))
    line = status(given_up={"funding/okx/BTCUSDT": "from here to there"}).write_line()
    assert re.search(r"1,234 .*; funding/okx/BTCUSDT .*from here to there$", line)


def test_a_download_shows_what_came_and_what_cannot(capsys: pytest.CaptureFixture[str]) -> None:
    view = DownloadView(
        ok=False,
        symbol="BTCUSDT",
        since=AT,
        until=AT + 1,
        series=(
            DownloadedView(series="dvol/deribit/BTC", new=5, here=7, failure="Deribit is away"),
            DownloadedView(series="funding/okx/BTCUSDT", new=0, here=3, failure="", beyond="okx keeps nothing of then"),
        ),
        not_downloadable={"book/binance/BTCUSDT": "of now alone", "options/deribit/BTC": "of now alone"},
        new=5,
        said="7 rows are here.",
        notes=("a note",),
    )
    render(view)
    shown = " ".join(capsys.readouterr().out.split())
    assert "BTCUSDT: 7 " in shown
    assert "dvol/deribit/BTC 7 5 Deribit is away" in shown
    assert "funding/okx/BTCUSDT: okx keeps nothing of then" in shown
    assert "dvol/deribit/BTC:" not in shown
    assert re.search(r"book/binance/BTCUSDT, options/deribit/BTC\b", shown)
