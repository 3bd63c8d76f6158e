"""Which venues are asked, as the settings say."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from zuno.kernel.errors import UsageError
from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE, BYBIT, CHANNELS, FRED, OKX, SEARCH
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.settings import read_settings
from zuno.trading.data.intake import is_streamed
from zuno.trading.model.market import Candle, Timeframe, candles
from zuno.trading.model.wanted import wanted_series
from zuno.trading.ports.series import Batch, Source
from zuno.wiring.markets import Markets
from zuno.wiring.recordings import Recordings


def markets(home: Path, monkeypatch: pytest.MonkeyPatch, **environment: str) -> Markets:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return Markets(read_settings(environment, home))


async def test_without_keys_three_are_not_asked_and_say_what_they_need(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = markets(home, monkeypatch)
    closed = opened.sources.closed
    assert set(closed) == {FRED, SEARCH, CHANNELS}
    for venue, variable in ((FRED, "FRED_API_KEY"), (SEARCH, "PERPLEXITY_API_KEY"), (CHANNELS, "NEWS_CHANNELS")):
        assert closed[venue].endswith(f"set ZUNO_{variable}")
    await opened.close()
    await opened.close()


async def test_with_them_somebody_is_asked_for_everything_the_desk_wants(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = markets(
        home,
        monkeypatch,
        ZUNO_FRED_API_KEY="0123456789abcdef0123456789abcdef",
        ZUNO_PERPLEXITY_API_KEY="key",
        ZUNO_NEWS_CHANNELS="coin_wire",
    )
    sources = opened.sources
    assert sources.closed == {}
    assert set(sources.tapes) == {BINANCE, BYBIT, OKX}
    kinds = (sources.candles, sources.derivatives, sources.books, sources.options, sources.macro, sources.levels)
    told = {venue for kind in (*kinds, sources.texts) for venue in kind}
    assert {series.venue for series in wanted_series(Symbol("BTCUSDT")) if not is_streamed(series)} <= told
    assert all(venue == feed.venue for kind in (*kinds, sources.texts) for venue, feed in kind.items())
    assert opened.sources is sources
    await opened.close()


async def test_a_clock_that_is_set_is_not_the_one_that_proves_minutes_of_streams(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = markets(home, monkeypatch)
    tapes = opened.sources.tapes.values()
    before = [tape.steady() for tape in tapes]  # type: ignore[attr-defined]
    tomorrow = time.time_ns() + 86_400 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: tomorrow)
    monkeypatch.setattr(time, "time", lambda: tomorrow / 10**9)
    passed = [tape.steady() - then for tape, then in zip(tapes, before, strict=True)]  # type: ignore[attr-defined]
    assert len(passed) == 3
    assert all(0 <= millis < 3_600_000 for millis in passed)
    await opened.close()


def test_a_collector_is_for_every_symbol_or_for_those_that_are_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, store = markets(home, monkeypatch), Recordings(read_settings({}, home)).own()
    assert opened.collector(store, (), DEFAULT_SYMBOLS)._symbols == tuple(DEFAULT_SYMBOLS)
    assert opened.collector(store, ("eth", "ETHUSDT"), DEFAULT_SYMBOLS)._symbols == (Symbol("ETHUSDT"),)
    with pytest.raises(UsageError, match="BTCUSDT, ETHUSDT"):
        opened.collector(store, ("DOGE",), DEFAULT_SYMBOLS)


@pytest.mark.parametrize(
    ("market", "recording", "folder"),
    [
        ("recorded", "synthetic", "synthetic"),
        ("recorded", "own", "own"),
        ("live", "synthetic", "own"),
        ("live", "own", "own"),
        ("recorded", "auto", "synthetic"),
        ("live", "auto", "own"),
    ],
)
def test_what_is_live_is_never_invented(
    home: Path, monkeypatch: pytest.MonkeyPatch, market: str, recording: str, folder: str
) -> None:
    monkeypatch.setenv("ZUNO_MARKET", market)
    monkeypatch.setenv("ZUNO_RECORDING", recording)
    chosen = Recordings(read_settings({}, home)).selected_store()
    assert chosen.origin.synthetic is (folder == "synthetic")


async def test_what_was_imported_is_read_from_then_on(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that were collected or downloaded choose nothing, and a setting chooses before anything else."""
    series = candles("binance", "BTCUSDT", Timeframe.H1)
    bar = Candle(Millis(1_704_067_200_000), 1.0, 1.0, 1.0, 1.0, 1.0, None)
    first = Recordings(read_settings({}, home))
    assert not first.reads_own
    for source, reads_own in ((Source.COLLECTED, False), (Source.DOWNLOADED, False), (Source.IMPORTED, True)):
        await first.own().write([Batch(series, [bar._replace(volume=len(source))], None, source)])
        assert Recordings(read_settings({}, home)).reads_own is reads_own
    late, now = first.describe_choice(), Recordings(read_settings({}, home)).describe_choice()
    assert late.startswith(f"{now} ")  # says that it reads something else than what was imported
    assert not first.reads_own  # a desk that runs goes on in the market it began in
    monkeypatch.setenv("ZUNO_RECORDING", "synthetic")
    assert not Recordings(read_settings({}, home)).reads_own
    await first.close()
