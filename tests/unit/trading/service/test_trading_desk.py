"""The desk's moment: the newest of what is kept, or now; and a live bundle is asked for again by its own moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.wire.collecting import END, OWN, market, sources
from tests.wire.fakes.series import MemorySeries
from tests.wire.leaping import leaping
from tests.wire.resampling import resample_bars
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.memory import MemoryStore
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Journal
from zuno.kernel.clock import iso
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.units import Millis
from zuno.markets.feeds import ALTERNATIVE, BINANCE, FRED
from zuno.markets.market import Symbol
from zuno.trading.chart.charting import describe
from zuno.trading.data.intake import Intake
from zuno.trading.model.chart import PricePanel
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    Candle,
    Heartbeat,
    Level,
    MacroRelease,
    MarkAndIndex,
    Mode,
    Timeframe,
    candles,
    fear_greed,
    macro,
)
from zuno.trading.model.wanted import neighbour_series, tape
from zuno.trading.ports.series import PUBLIC_HISTORY, Batch, Origin, SeriesStore, Source
from zuno.trading.service.data import DataDesk
from zuno.trading.service.features import FrozenBundle, TradingDesk

START = Millis(END - 4 * HOUR_MS + 17_123)
M1, H1 = (candles(BINANCE, "BTCUSDT", length) for length in (Timeframe.M1, Timeframe.H1))
INVENTED = Origin(True, "SYNTHETIC seed 11")
BTC, SWING = Symbol("BTCUSDT"), Mode.SWING


@pytest.fixture
def desk(tmp_path: Path) -> Callable[..., TradingDesk]:
    key = KeyFile(tmp_path / "desk.key")
    key.ensure()
    book = ChainedJournal(MemoryStore(), key, code=lambda: "test", now=lambda: START)

    async def journal() -> Journal:
        return book

    def made(store: SeriesStore, **more: Any) -> TradingDesk:
        return TradingDesk(store, journal, None, **more)  # type: ignore[arg-type]  # nobody paints here

    return made


@pytest.mark.slow
def test_a_live_bundle_is_asked_for_again_by_its_moment(desk: Callable[..., TradingDesk]) -> None:
    async def story(now: Callable[[], Millis]) -> None:
        store = MemorySeries(OWN)
        await store.write(
            [Batch(one, [Heartbeat(Millis(START - 2 * MINUTE_MS))], START) for one in tape(BTC) if one.row is Heartbeat]
        )

        async def keep(batch: Batch[Any]) -> None:
            await store.write([batch])

        intake = Intake(sources(await market(), now), store, keep, now)

        async def refresh(symbol: Symbol) -> Any:
            return await intake.refresh_market(symbol)

        live = desk(store, refresh=refresh, now=now)
        first = await live.freeze(BTC, SWING, None)
        moment = first.bundle.as_of
        assert moment == START
        assert len(first.bundle.blocks) > 30
        later = Millis(moment + SECOND_MS)
        await store.write([Batch(M1, [Candle(Millis(END), 1.0, 1.0, 1.0, 1.0, 1.0, 0.5)], Millis(END + DAY_MS))])
        recorded = desk(store, now=lambda: later)
        for again in (live, recorded):
            for written in (iso(moment), str(moment)):
                assert (await again.freeze(BTC, SWING, written)).name == first.name
        with pytest.raises(UsageError, match=rf"\b{END + DAY_MS + 1}\b"):
            await desk(store, refresh=refresh, now=lambda: moment).freeze(BTC, SWING, str(END + DAY_MS + 1))

    leaping(START, story)


async def test_the_newest_row_of_any_series_is_the_end_of_what_is_kept(desk: Callable[..., TradingDesk]) -> None:
    store = MemorySeries(OWN)
    with pytest.raises(Refused, match="recorded"):
        await desk(store).freeze(BTC, SWING, None)
    bar = Candle(Millis(END - MINUTE_MS), 1.0, 1.0, 1.0, 1.0, 1.0, 0.5)
    mood = Level(Millis(END + 12_345), 50.0)
    coming = MacroRelease(Millis(END + DAY_MS), 3.0, END)
    await store.write([Batch(M1, [bar._replace(at=Millis(END - 3 * HOUR_MS)), bar])])
    assert (await desk(store).freeze(BTC, SWING, None)).bundle.as_of == END
    await store.write([Batch(fear_greed(ALTERNATIVE), [mood]), Batch(macro(FRED, "DGS2"), [coming], END)])
    assert (await desk(store).freeze(BTC, SWING, None)).bundle.as_of == mood.at
    assert (await desk(store).freeze(BTC, SWING, "1h")).bundle.as_of == mood.at - HOUR_MS
    with pytest.raises(UsageError, match="after"):
        await desk(store).freeze(BTC, SWING, str(mood.at + 1))


async def test_what_goes_on_after_the_candles_is_no_end(desk: Callable[..., TradingDesk]) -> None:
    store = MemorySeries(OWN)
    bar = Candle(Millis(END - HOUR_MS), 1.0, 1.0, 1.0, 1.0, 1.0, None)
    moods = fear_greed(ALTERNATIVE)
    past: list[Batch[Any]] = [
        Batch(H1, [bar], source=Source.IMPORTED),
        Batch(moods, [Level(Millis(END + DAY_MS), 50.0)]),
    ]
    await store.write(past)
    assert (await desk(store).freeze(BTC, SWING, None)).bundle.as_of == END
    await store.write([Batch(moods, [Level(Millis(END + 3 * DAY_MS), 50.0)]), Batch(M1, MINUTES)])
    later = desk(store, now=lambda: Millis(END + 9 * DAY_MS))
    assert (await later.freeze(BTC, SWING, None)).bundle.as_of == END
    assert (await later.freeze(BTC, SWING, str(END + DAY_MS))).bundle.as_of == END + DAY_MS  # who asks for it gets it


async def test_a_moment_before_the_first_candle_had_closed_is_refused(desk: Callable[..., TradingDesk]) -> None:
    store = MemorySeries(OWN)
    bars = [Candle(Millis(END - n * HOUR_MS), 1.0, 1.0, 1.0, 1.0, 1.0, None) for n in (2, 1)]
    await store.write([Batch(H1, bars), Batch(fear_greed(ALTERNATIVE), [Level(Millis(END - 9 * DAY_MS), 50.0)])])
    assert (await desk(store).freeze(BTC, SWING, str(END - HOUR_MS))).bundle.as_of == END - HOUR_MS
    for early in (str(END - HOUR_MS - 1), "2010-01-01"):
        with pytest.raises(UsageError, match=iso(Millis(END - HOUR_MS))[:10]):
            await desk(store).freeze(BTC, SWING, early)


async def test_a_bundle_of_public_history_is_candles_only(desk: Callable[..., TradingDesk]) -> None:
    store = MemorySeries(OWN)
    bar = Candle(Millis(END - HOUR_MS), 1.0, 1.0, 1.0, 1.0, 1.0, None)
    await store.write([Batch(H1, [bar], source=Source.IMPORTED, file="btc.csv")])
    view = await desk(store).features("BTC")
    assert view.origin == PUBLIC_HISTORY.label
    assert view.model_dump(by_alias=True)["candlesOnly"] is True
    assert (await desk(store).freeze(BTC, SWING, None)).bundle.candles_only
    await store.write([Batch(H1, [bar], END)])
    assert (await desk(store).features("BTC")).candles_only is False


MINUTES = [Candle(Millis(END - n * MINUTE_MS), 1.0, 1.0, 1.0, 1.0, 1.0, 0.5) for n in range(5, 0, -1)]
"""The last of them closed at the end."""


def known(frozen: FrozenBundle) -> list[int]:
    """The minutes that are in a bundle."""
    return [row.at for block in frozen.bundle.blocks if block.series == M1 for row in block.rows]


async def test_what_was_collected_is_known_from_its_arrival_and_the_desk_waits_for_all_of_one_round(
    desk: Callable[..., TradingDesk],
) -> None:
    store, came = MemorySeries(OWN), Millis(END + 2_345)
    rates, other = macro(FRED, "DGS2"), neighbour_series(BTC)[0]
    await store.write([Batch(M1, MINUTES, came)])
    frozen = await desk(store).freeze(BTC, SWING, None)
    assert (frozen.bundle.as_of, known(frozen), frozen.notes) == (came, [one.at for one in MINUTES], ())
    await store.write(
        [Batch(rates, [MacroRelease(Millis(END - 2 * DAY_MS), 3.0, Millis(END - DAY_MS))], Millis(came + 700))]
    )
    assert (await desk(store).freeze(BTC, SWING, None)).bundle.as_of == came + 700
    await store.write([Batch(other, [MarkAndIndex(END, 1.0, 1.0)], Millis(came + 900))])
    frozen = await desk(store).freeze(BTC, SWING, None)
    assert frozen.bundle.as_of == came + 900
    assert {rates, other} <= {block.series for block in frozen.bundle.blocks}
    await store.write([Batch(other, [MarkAndIndex(Millis(END + DAY_MS), 1.0, 1.0)], Millis(END + DAY_MS))])
    assert (await desk(store).freeze(BTC, SWING, None)).bundle.as_of == came + 700  # it is of another round


async def test_what_was_mended_much_later_does_not_make_a_past_stale_and_is_told(
    desk: Callable[..., TradingDesk],
) -> None:
    store, mended = MemorySeries(OWN), Millis(END + DAY_MS)
    await store.write([Batch(M1, [*MINUTES[:2], *MINUTES[3:]])])
    await store.write([Batch(M1, [MINUTES[2]], mended)])
    recorded = desk(store, now=lambda: mended)
    frozen = await recorded.freeze(BTC, SWING, None)
    assert (frozen.bundle.as_of, MINUTES[2].at in known(frozen)) == (END, False)
    (note,) = frozen.notes
    assert "1 series" in note
    assert iso(mended) in note
    later = await recorded.freeze(BTC, SWING, iso(mended))
    assert (MINUTES[2].at in known(later), later.notes) == (True, ())
    await store.write([Batch(M1, [MINUTES[4]._replace(volume=2.0)], Millis(mended + 1))])  # the newest row of all
    assert (await recorded.freeze(BTC, SWING, None)).bundle.as_of == END


async def test_an_invented_market_that_was_mended_is_still_what_it_was_at_its_end(
    desk: Callable[..., TradingDesk],
) -> None:
    store = MemorySeries(INVENTED)
    minutes = [Candle(Millis(END - n * MINUTE_MS), 1.0, 1.0, 1.0, 1.0, 1.0 + n, 0.5) for n in range(180, 0, -1)]
    hours = list(resample_bars(Timeframe.H1, Timeframe.M1, minutes))
    wrong = [hours[0], hours[1]._replace(volume=99.0), hours[2]]
    await store.write([Batch(M1, minutes), Batch(H1, wrong)])
    before, hour_ago = [await desk(store).freeze(BTC, SWING, moment) for moment in (None, "1h")]
    assert (before.bundle.as_of, before.bundle.rows(H1)) == (END, tuple(wrong))
    assert (await DataDesk(store, lambda: END).check(repair=True)).ok
    for written in ("2026-01-01T00:00", str(END)):
        assert (await desk(store).freeze(BTC, SWING, written)).name == before.name
    assert (await desk(store).freeze(BTC, SWING, "1h")).name == hour_ago.name
    after = await desk(store).freeze(BTC, SWING, None)
    assert (after.bundle.as_of, after.bundle.rows(H1)) == (END + 1, tuple(hours))
    assert (await desk(store).freeze(BTC, SWING, iso(after.bundle.as_of))).name == after.name
    with pytest.raises(UsageError, match=rf"\b{END + 2}\b"):
        await desk(store).freeze(BTC, SWING, str(END + 2))
    await DataDesk(store, lambda: END).check(repair=True)
    assert (await desk(store).freeze(BTC, SWING, None)).name == after.name


async def test_a_past_that_goes_on_is_counted_from_its_end_and_known_until_now(
    desk: Callable[..., TradingDesk],
) -> None:
    store, now = MemorySeries(OWN), Millis(END + DAY_MS)
    bar = Candle(Millis(END - MINUTE_MS), 1.0, 1.0, 1.0, 1.0, 1.0, 0.5)
    await store.write([Batch(M1, [bar._replace(at=Millis(END - DAY_MS)), bar])])

    async def refresh(symbol: Symbol) -> Any:
        raise AssertionError

    recorded, live = desk(store, now=lambda: now), desk(store, refresh=refresh, now=lambda: now)
    for one, hour_ago in ((recorded, END - HOUR_MS), (live, now - HOUR_MS)):
        assert (await one.freeze(BTC, SWING, "1h")).bundle.as_of == hour_ago
        assert (await one.freeze(BTC, SWING, str(now))).bundle.as_of == now
        with pytest.raises(UsageError, match=rf"\b{now + 1}\b"):
            await one.freeze(BTC, SWING, str(now + 1))
        with pytest.raises(UsageError, match="2009-01-03"):
            await one.freeze(BTC, SWING, "999999w")


@pytest.mark.slow
async def test_a_chart_of_figures_is_what_the_picture_shows(desk: Callable[..., TradingDesk]) -> None:
    here = desk(await market())
    view = await here.market_chart("BTCUSDT", "4h", as_of=iso(END), bars=60)
    frozen = await here.freeze(BTC, SWING, iso(END))
    picture = describe(frozen.bundle, Timeframe.H4, 60)
    assert isinstance(picture.price, PricePanel)
    assert view.first == picture.first
    assert view.price["candles"]["close"] == list(picture.price.candles.close)
    assert [level["id"] for level in view.levels] == [mark.id for mark in picture.price.marks]
    assert view.synthetic
    assert view.stale is False
    shown = await here.candles("BTCUSDT", "4h", "2d", iso(END))
    assert len(shown.candles) == 12
    assert [bar.close for bar in shown.candles] == view.price["candles"]["close"][-12:]


@pytest.mark.parametrize(("interval", "bars"), [("1w", 60), ("7m", 60), ("4h", 5), ("4h", 301)])
async def test_a_chart_of_other_bars_is_refused(desk: Callable[..., TradingDesk], interval: str, bars: int) -> None:
    with pytest.raises(UsageError):
        await desk(await market()).market_chart("BTCUSDT", interval, bars=bars)
