"""Rows no market can have made, holes, and feeds that froze."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.kernel.units import Millis
from zuno.trading.measure.data_quality import (
    FROZEN_AFTER,
    LATEST,
    FrozenFeedDetector,
    RowRun,
    complete_at,
    count_repeated_rows,
    find_gaps,
    find_row_fault,
    is_valid_candle,
    row_id,
)
from zuno.trading.model.market import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Book,
    Candle,
    Feed,
    Funding,
    Heartbeat,
    Level,
    MacroRelease,
    MarkAndIndex,
    OptionChain,
    OptionQuote,
    Quote,
    Series,
    Side,
    TapeEvent,
    Text,
    Timeframe,
    alive,
    basis,
    books,
    candles,
    fear_greed,
    funding,
    liquidations,
    macro,
    open_interest,
    options,
    rates,
    texts,
)

AT = Millis(1_767_225_600_000)
NAN, INF = math.nan, math.inf

HOURS = candles("binance", "BTCUSDT", Timeframe.H1)
BAR = Candle(AT, 100.0, 110.0, 90.0, 105.0, 10.0, 4.0)
OPTION = OptionQuote("BTC-30JAN26-100000-C", Millis(AT + 30 * DAY_MS), 100_000.0, True, 45.0, 12.0, 3.0, 101_000.0)

SOUND: list[tuple[Series[Any], Any]] = [
    (HOURS, BAR),
    (HOURS, BAR._replace(volume=0.0, taker_buy=0.0)),
    (HOURS, BAR._replace(taker_buy=None)),
    (HOURS, Candle(AT, 5, 5, 5, 5, 0, None)),  # whole numbers are numbers
    (funding("okx", "BTCUSDT"), Funding(AT, -0.01, 8.0)),  # percent as a fraction is the reader's to doubt
    (open_interest("okx", "BTCUSDT"), Level(AT, 0.0)),
    (basis("okx", "BTCUSDT"), MarkAndIndex(AT, 100.0, 99.0)),
    (macro("fred", "T10Y2Y"), MacroRelease(Millis(-(10**12)), -0.4, AT)),
    (liquidations("okx", "BTCUSDT"), TapeEvent(AT, Side.LONG, 100.0, 0.1, 10.0, "a")),
    (books("okx", "BTCUSDT"), Book(AT, (Quote(101.0, 1.0),), (Quote(100.0, 0.0),))),  # crossed: the rules say so
    (books("okx", "BTCUSDT"), Book(AT, (), ())),
    (funding("okx", "BTCUSDT"), Funding(AT, 0.0, 24.0)),
    (options("deribit", "BTC"), OptionChain(AT, (OptionQuote("x", None, 1.0, True, 0.0, 0.0, 0.0, 0.0),))),  # unsaid
    (options("deribit", "BTC"), OptionChain(AT, (OPTION, OptionQuote("x", None, 1.0, False, None, 0.0, 0.0, None)))),
    (texts(Feed.NEWS, "telegram", "BTC"), Text(AT, "channel", "1", "words 🙂")),
    (alive(Feed.WHALES, "binance", "BTCUSDT"), Heartbeat(AT)),
]

BAD: list[tuple[Series[Any], Any, str]] = [
    (HOURS, BAR._replace(close=NAN), "close is nan"),
    (HOURS, BAR._replace(high=INF), "high is inf"),
    (HOURS, BAR._replace(low=0.0), "low is 0.0"),
    (HOURS, BAR._replace(open=-1.0), "open is -1.0"),
    (HOURS, BAR._replace(volume=-1.0), "volume is -1.0"),
    (HOURS, BAR._replace(volume=NAN), "volume is nan"),
    (HOURS, BAR._replace(high=80.0), "high 80.0 is below low 90.0"),
    (HOURS, BAR._replace(open=89.0), "open 89.0 is outside 90.0 to 110.0"),
    (HOURS, BAR._replace(close=111.0), "close 111.0 is outside"),
    (HOURS, BAR._replace(taker_buy=-0.1), "taker_buy is -0.1"),
    (HOURS, BAR._replace(taker_buy=10.5), "buyers took 10.5 of 10.0"),
    (HOURS, BAR._replace(taker_buy=NAN), "taker_buy is nan"),
    (HOURS, BAR._replace(open="100"), "open is '100', no number"),  # type: ignore[arg-type]
    (HOURS, BAR._replace(open=Decimal(100)), "no number"),  # type: ignore[arg-type]
    (HOURS, BAR._replace(at=Millis(AT + 60_000)), "no 1h bar opens then"),
    (HOURS, BAR._replace(at=1.5), "not a whole number"),  # type: ignore[arg-type]
    (HOURS, BAR._replace(at=Millis(AT * 1000)), "no moment in milliseconds"),
    (candles("binance", "BTCUSDT", Timeframe.W1), BAR, "no 1w bar opens then"),
    (HOURS, Level(AT, 1.0), "it is a Level, not a Candle"),
    (funding("okx", "BTCUSDT"), Funding(AT, NAN, 8.0), "rate is nan"),
    (funding("okx", "BTCUSDT"), Funding(AT, 0.0, 0.0), "interval_hours is 0.0"),
    (open_interest("okx", "BTCUSDT"), Level(AT, -1.0), "value is -1.0"),
    (rates("upbit", "KRW-USDT"), Level(AT, INF), "value is inf"),
    (basis("okx", "BTCUSDT"), MarkAndIndex(AT, 100.0, 0.0), "spot is 0.0"),
    (macro("fred", "DGS2"), MacroRelease(AT, NAN, AT), "value is nan"),
    (macro("fred", "DGS2"), MacroRelease(AT, 4.0, Millis(LATEST)), "its release is"),
    (liquidations("okx", "BTCUSDT"), TapeEvent(AT, Side.LONG, 100.0, 0.0, 10.0, "a"), "quantity is 0.0"),
    (liquidations("okx", "BTCUSDT"), TapeEvent(AT, Side.LONG, 100.0, 1.0, NAN, "a"), "usd is nan"),
    (liquidations("okx", "BTCUSDT"), TapeEvent(AT, Side.LONG, 100.0, 1.0, 1.0, 7), "id is 7, no text"),  # type: ignore[arg-type]
    (books("okx", "BTCUSDT"), Book(AT, (Quote(1.0, 1.0), Quote(0.0, 1.0)), ()), "bid 2: price is 0.0"),
    (books("okx", "BTCUSDT"), Book(AT, (), (Quote(1.0, -1.0),)), "ask 1: size is -1.0"),
    (books("okx", "BTCUSDT"), Book(AT, (), (Quote(NAN, 1.0),)), "ask 1: price is nan"),
    (books("okx", "BTCUSDT"), Book(AT, (), (Quote(2.0, 1.0), Quote(NAN, 1.0), Quote(3.0, 1.0))), "ask 2: price is nan"),
    (books("okx", "BTCUSDT"), Book(AT, (), (Quote(2.0, 1.0), Quote(3.0, NAN))), "ask 2: size is nan"),
    (books("okx", "BTCUSDT"), Book(AT, (), (Quote(2.0, 1.0), Quote(3.0, 1e-19))), "ask 2: size is 1e-19"),
    (books("okx", "BTCUSDT"), Book(AT, (Quote(2.0, 1.0), Quote(3.0, True)), ()), "bid 2: size is True"),
    (books("okx", "BTCUSDT"), Book(AT, (Quote(2.0, 1.0), Quote(INF, 1.0)), ()), "bid 2: price is inf"),
    (texts(Feed.NEWS, "telegram", "BTC"), Text(AT, "channel", "1", "\ud800"), "body holds half a character"),
    # finite, and nothing a market has
    (HOURS, BAR._replace(high=1.1e18), "high is 1.1e+18, not between 1e-09 and 1e+18"),
    (HOURS, BAR._replace(low=9e-10), "low is 9e-10"),
    (HOURS, BAR._replace(volume=1.1e18), "volume is 1.1e+18"),
    (HOURS, BAR._replace(volume=9e-19, taker_buy=None), "volume is 9e-19, above 0 and below 1e-18"),
    (HOURS, BAR._replace(open=10**400), "not between"),
    (funding("okx", "BTCUSDT"), Funding(AT, 1e305, 8.0), "rate is 1e+305"),
    (funding("okx", "BTCUSDT"), Funding(AT, -1e305, 8.0), "rate is -1e+305"),
    (funding("okx", "BTCUSDT"), Funding(AT, 1e-4, 24.5), "interval_hours is 24.5"),
    (funding("okx", "BTCUSDT"), Funding(AT, 1e-4, 0.016), "interval_hours is 0.016"),
    (open_interest("okx", "BTCUSDT"), Level(AT, 1.7e308), "value is 1.7e+308"),
    (basis("okx", "BTCUSDT"), MarkAndIndex(AT, 1e19, 1.0), "mark is 1e+19"),
    (macro("fred", "DGS2"), MacroRelease(AT, -1e19, AT), "value is -1e+19"),
    (liquidations("okx", "BTCUSDT"), TapeEvent(AT, Side.LONG, 100.0, 1.0, 1e308, "a"), "usd is 1e+308"),
    (liquidations("okx", "BTCUSDT"), TapeEvent(AT, Side.LONG, 100.0, 1e-300, 1.0, "a"), "quantity is 1e-300"),
    (books("okx", "BTCUSDT"), Book(AT, (Quote(1.0, 1e19),), ()), "bid 1: size is 1e+19"),
    (books("okx", "BTCUSDT"), Book(AT, (Quote(1e-300, 1.0),), ()), "bid 1: price is 1e-300"),
    *(
        (options("deribit", "BTC"), OptionChain(AT, (OPTION, quote)), f"option 2: {said}")
        for quote, said in (
            (OptionQuote("x", None, -1.0, True, None, 0.0, 0.0, None), "strike is -1.0"),
            (OptionQuote("x", None, 1.0, True, NAN, 0.0, 0.0, None), "mark_iv is nan"),
            (OptionQuote("x", None, 1.0, True, None, -1.0, 0.0, None), "open_interest is -1.0"),
            (OptionQuote("x", None, 1.0, True, None, 0.0, INF, None), "volume is inf"),
            (OptionQuote("x", None, 1.0, True, None, 0.0, 0.0, -1.0), "underlying is -1.0"),
            (OptionQuote("x", None, 9e-10, True, None, 0.0, 0.0, None), "strike is 9e-10"),
            (OptionQuote("x", None, 1e19, True, None, 0.0, 0.0, None), "strike is 1e+19"),
            (OptionQuote("x", None, 1.0, True, None, 1e308, 0.0, None), "open_interest is 1e+308"),
            (OptionQuote("x", None, 1.0, True, None, 0.0, 1e-300, None), "volume is 1e-300"),
            (OptionQuote("x", None, 1.0, True, 1e308, 0.0, 0.0, None), "mark_iv is 1e+308"),
            (OptionQuote("x", None, 1.0, True, None, 0.0, 0.0, 1e-300), "underlying is 1e-300"),
            (OptionQuote("x", Millis(10**400), 1.0, True, None, 0.0, 0.0, None), "its expiry is 1000"),
            (OptionQuote("x", None, "1", True, None, 0.0, 0.0, None), "strike is '1', no number"),  # type: ignore[arg-type]
        )
    ),
]


@pytest.mark.parametrize(("series", "row"), SOUND)
def test_what_a_market_can_have_made(series: Series[Any], row: Any) -> None:
    assert find_row_fault(series, row, None) is None


@pytest.mark.parametrize(("series", "row", "said"), BAD)
def test_what_no_market_can_have_made(series: Series[Any], row: Any, said: str) -> None:
    fault = find_row_fault(series, row, None)
    assert fault is not None
    assert said in fault


def test_a_bar_must_have_closed_when_it_was_read() -> None:
    assert find_row_fault(HOURS, BAR, Millis(AT + HOUR_MS)) is None
    assert "1 ms" in str(find_row_fault(HOURS, BAR, Millis(AT + HOUR_MS - 1)))


odd = st.sampled_from(
    [NAN, INF, -INF, -1.0, 0.0, 5e-324, 9e-19, 1e-18, 9e-10, 1e-9, 1.0, 2.0, 3.0, 1e18, 1.1e18, 1.7e308]
)


@given(
    st.builds(Candle, st.sampled_from([0, 1, HOUR_MS, -HOUR_MS, AT, LATEST]), odd, odd, odd, odd, odd, odd | st.none()),
    st.none() | st.sampled_from([AT, AT + HOUR_MS, AT + HOUR_MS - 1]),
)
def test_the_quick_way_says_the_same(bar: Candle, known: Millis | None) -> None:
    quick = is_valid_candle(HOUR_MS, 0, bar, INF if known is None else known)
    assert quick == (find_row_fault(HOURS, bar, known) is None)


@pytest.mark.parametrize(
    ("series", "row", "after"),
    [
        (HOURS, BAR, HOUR_MS),
        (macro("fred", "DGS2"), MacroRelease(AT, 4.0, Millis(AT + DAY_MS)), DAY_MS),
        (alive(Feed.WHALES, "binance", "BTCUSDT"), Heartbeat(AT), MINUTE_MS),
        (open_interest("okx", "BTCUSDT"), Level(AT, 1.0), 0),
    ],
)
def test_when_a_row_is_complete(series: Series[Any], row: Any, after: int) -> None:
    assert complete_at(series, row) == AT + after


def test_what_tells_rows_of_one_time_apart() -> None:
    assert row_id(BAR) == ""
    assert row_id(TapeEvent(AT, Side.LONG, 1.0, 1.0, 1.0, "77")) == "77"
    assert row_id(MacroRelease(AT, 1.0, Millis(5))) == "5"
    assert row_id(Text(AT, "a/b", "c", "")) != row_id(Text(AT, "a", "b/c", ""))


# -- holes


def test_holes_between_bars_and_at_both_ends() -> None:
    opened = [Millis(AT + n * HOUR_MS) for n in (1, 2, 5)]
    assert find_gaps(Timeframe.H1, opened, AT, AT + 6 * HOUR_MS) == [
        RowRun(AT, AT, 1),
        RowRun(Millis(AT + 3 * HOUR_MS), Millis(AT + 4 * HOUR_MS), 2),
        RowRun(Millis(AT + 6 * HOUR_MS), Millis(AT + 6 * HOUR_MS), 1),
    ]


@given(st.sets(st.integers(0, 40), max_size=41))
def test_bars_and_holes_are_everything(here: set[int]) -> None:
    opened = [Millis(AT + n * HOUR_MS) for n in here]
    missing = [
        at
        for hole in find_gaps(Timeframe.H1, opened, AT, AT + 40 * HOUR_MS)
        for at in range(hole.first, hole.last + 1, HOUR_MS)
    ]
    assert sorted([*opened, *missing]) == [AT + n * HOUR_MS for n in range(41)]
    assert sum(hole.count for hole in find_gaps(Timeframe.H1, opened, AT, AT + 40 * HOUR_MS)) == len(missing)


# -- frozen feeds


def frozen(series: Series[Any], rows: list[Any]) -> list[RowRun]:
    still = FrozenFeedDetector(series)
    seen = [still.see(row) for row in rows]
    return [stretch for stretch in (*seen, still.end()) if stretch is not None]


def test_a_feed_that_stood_still_is_noticed_at_its_limit() -> None:
    moving = [BAR._replace(at=Millis(AT + n * HOUR_MS), volume=10.0 + n) for n in range(20)]
    assert frozen(HOURS, moving) == []
    limit = FROZEN_AFTER[Feed.CANDLES]
    still = [*moving[:3], *(moving[3]._replace(at=moving[3 + n].at) for n in range(limit)), *moving[3 + limit :]]
    assert frozen(HOURS, still) == [RowRun(moving[3].at, moving[2 + limit].at, limit)]
    assert frozen(HOURS, still[: 2 + limit]) == []  # one fewer
    assert frozen(HOURS, still[: 3 + limit]) == [RowRun(moving[3].at, moving[2 + limit].at, limit)]  # at the end


def test_books_freeze_and_rates_of_funding_repeat_themselves() -> None:
    book = Book(AT, (Quote(1.0, 1.0),), (Quote(2.0, 1.0),))
    same = [Book(Millis(AT + n), book.bids, book.asks) for n in range(6)]
    assert frozen(books("okx", "BTCUSDT"), same) == [RowRun(AT, Millis(AT + 5), 6)]
    rate = [Funding(Millis(AT + n), 0.0001, 8.0) for n in range(200)]
    assert frozen(funding("okx", "BTCUSDT"), rate) == []


def test_a_feed_stands_still_from_its_limit_on_and_only_at_its_end() -> None:
    series, limit = open_interest("okx", "BTCUSDT"), FROZEN_AFTER[Feed.OPEN_INTEREST]
    still = [Level(Millis(at * MINUTE_MS), 7.0) for at in range(limit)]
    moved = Level(Millis(limit * MINUTE_MS), 7.5)
    before = Level(Millis(-MINUTE_MS), 6.5)
    assert count_repeated_rows(series, still) == limit
    assert count_repeated_rows(series, [before, *still]) == limit
    assert count_repeated_rows(series, still[1:]) is None
    assert count_repeated_rows(series, [before, *still[1:]]) is None
    assert count_repeated_rows(series, [*still, moved]) is None
    assert count_repeated_rows(series, []) is None
    assert count_repeated_rows(fear_greed("alternative.me"), still) is None
