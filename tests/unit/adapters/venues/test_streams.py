"""A stream tells what it heard and which minutes it was there for; other minutes are not said to be quiet."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.server import ServerConnection

from tests.wire.vendors import binance, bybit, okx
from tests.wire.vendors.serving import fields, without
from tests.wire.vendors.stream import Play, streaming
from tests.wire.vendors.world import NOON, SYMBOL
from zuno.adapters.venues.binance import BinanceTape
from zuno.adapters.venues.bybit import BybitTape
from zuno.adapters.venues.okx import OkxTape
from zuno.adapters.venues.streams import MARGIN_MS, ProvenMinutes, StreamTiming
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Millis
from zuno.trading.model.market import MINUTE_MS, Heartbeat, Side, TapeEvent

HASTY = StreamTiming(open_within=5.0, ping_every=0.02, pong_within=30.0)
DEAF = StreamTiming(open_within=5.0, ping_every=0.02, pong_within=0.1)
PATIENT = StreamTiming(open_within=5.0, ping_every=30.0, pong_within=30.0)


def at(seconds: float) -> Millis:
    return Millis(round(NOON + seconds * 1_000))


def clock(*seconds: float) -> Callable[[], Millis]:
    """Each look at it gives the next of these times; the last stays."""
    left = [at(second) for second in seconds]
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def saying(*messages: str) -> Play:
    async def play(socket: ServerConnection) -> None:
        for message in messages:
            await socket.send(message)

    return play


async def heard(feed: Any, symbols: Iterable[str] = (SYMBOL,)) -> tuple[list[Any], Exception]:
    """Everything until the end, and the end."""
    found: list[Any] = []
    try:
        async with asyncio.timeout(20):
            async for _, row in feed.listen(list(symbols)):
                found.append(row)
    except (Unavailable, Malformed) as error:
        return found, error
    raise AssertionError("a stream ends with an error")


async def of_binance(*messages: str, seconds: tuple[float, ...] = (-1, 1)) -> tuple[list[Any], Exception]:
    async with streaming(saying(*messages)) as venue:
        return await heard(BinanceTape(clock(*seconds), venue.url, timing=PATIENT))


# -- which minutes


def since_noon(found: Iterable[Heartbeat]) -> list[float]:
    """Seconds after noon at which minutes began."""
    return [(minute.at - NOON) / 1_000 for minute in found]


def stamped(watch: ProvenMinutes, *stamps: float, late: float = 0) -> list[float]:
    """Messages of these times, each read so much later by our clock, which may be wrong by as much."""
    return since_noon(minute for stamp in stamps for minute in watch.prove_by_stamp(at(stamp), at(stamp + late)))


def answered(watch: ProvenMinutes, asked: float) -> list[float]:
    return since_noon(watch.prove_by_pong(at(asked)))


def begun(*stamps: float, late: float = 0) -> ProvenMinutes:
    watch = ProvenMinutes()
    watch.begin()
    assert stamped(watch, *stamps, late=late) == []
    return watch


def test_a_minute_is_proven_by_a_stamp_after_its_end() -> None:
    assert stamped(begun(-1), 30, 60.9) == []
    assert stamped(begun(-1), 61) == [0]
    assert stamped(begun(0), 200) == [0, 60, 120]


def test_a_minute_is_proven_by_an_answer_to_a_ping_that_was_sent_after_its_end() -> None:
    assert answered(begun(-1, 5), 60.9) == []
    assert answered(begun(-1, 5), 61) == [0]


def test_a_ping_proves_a_minute_beyond_the_last_stamp_and_no_more() -> None:
    """A venue that forgot a symbol answers pings for ever."""
    assert answered(begun(-1, 0.9), 3_600) == []
    watch = begun(-1, 1)
    assert answered(watch, 3_600) == [0]
    assert answered(watch, 7_200) == []
    assert stamped(watch, 121) == [60]


def test_news_of_another_symbol_prove_a_minute_beyond_the_last_stamp_and_no_more() -> None:
    watch = begun(-1, 1)
    assert since_noon(watch.prove_by_stamp(at(3_600), at(3_600), own=False)) == [0]
    assert stamped(watch, 3_601)[-1] == 3_540
    unheard = begun()
    assert since_noon(unheard.prove_by_stamp(at(0), at(0), own=False)) == stamped(unheard, 600) == []


def test_the_minute_in_which_it_was_opened_is_not() -> None:
    assert stamped(begun(0.001), 119) == []
    assert stamped(begun(0.001), 121) == [60]


def test_nothing_is_proven_before_the_venue_took_our_wish() -> None:
    watch = ProvenMinutes()
    assert stamped(watch, 0, 500) == []
    watch.begin()
    assert answered(watch, 600) == []
    assert stamped(watch, 601) == []
    assert stamped(watch, 721) == [660]


def test_nothing_is_proven_before_the_venues_clock_was_seen() -> None:
    watch = begun()
    assert answered(watch, 500) == []
    assert stamped(watch, 501, 545) == []
    assert answered(watch, 601) == [540]


def test_the_venues_clock_decides_where_a_minute_ends() -> None:
    fast, slow = begun(0, 5, late=90), begun(0, 5, late=-60)  # what our clock shows more than the venue's
    assert answered(fast, 61 + 89) == []
    assert answered(fast, 61 + 90) == [0]
    assert answered(slow, 0.9) == []
    assert answered(slow, 1) == [0]


def test_a_message_that_waited_for_us_proves_no_minute_that_nobody_heard() -> None:
    """We stood still for eight hours; the message was sent twenty seconds after we stopped."""
    watch = begun(-1)
    assert stamped(watch, 20, late=8 * 3_600) == []
    assert answered(watch, 8 * 3_600) == []
    assert stamped(watch, 8 * 3_600)[-1] == 8 * 3_600 - 120


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 200_000), st.integers(0, 5_000_000)),
        min_size=1,
        max_size=30,
    ),
    st.integers(-100_000, 100_000),
    st.integers(0, 5),
)
def test_no_minute_ends_after_the_newest_stamp_or_answered_ping(
    events: list[tuple[bool, int, int]], skew: int, opened: int
) -> None:
    """Each event is sent so long after the one before, by the venue or by us, and read whenever we come to it: on one
    connection in order. `skew` is how far our clock is fast."""
    watch = ProvenMinutes()
    sent = read = proof = heard = int(NOON)
    first: int | None = None
    told: list[int] = []
    for place, (is_stamp, gap, wait) in enumerate(events):
        if place == opened:
            watch.begin()
        sent += gap
        read = max(read, sent + wait)
        proof = max(proof, sent)
        heard = sent if is_stamp else heard
        if is_stamp and first is None and place >= opened:
            first = sent
        new = (
            watch.prove_by_stamp(Millis(sent), Millis(read + skew))
            if is_stamp
            else watch.prove_by_pong(Millis(sent + skew))
        )
        for minute in new:
            assert minute.at + MINUTE_MS + MARGIN_MS <= min(proof, heard + MINUTE_MS)
            told.append(minute.at)
    assert told == sorted(set(told))
    assert all(first is not None and start >= first for start in told)


# -- what was heard


async def test_a_sale_liquidates_a_long_and_counts_what_was_filled_at_its_average() -> None:
    """The order was for 0.020 at 59,910; 0.014 were filled at 60,000.5."""
    found, _ = await of_binance(binance.forced(at(1)), binance.forced(at(2), "BUY", "2", "61000"))
    assert [(row.side, row.price, row.quantity, row.usd) for row in found] == [
        (Side.LONG, 60_000.5, 0.014, 60_000.5 * 0.014),
        (Side.SHORT, 61_000.0, 2.0, 122_000.0),
    ]


async def test_a_forced_order_that_filled_nothing_is_no_trade() -> None:
    found, _ = await of_binance(binance.forced(at(1), filled="0"))
    assert found == []


async def test_whales_trade_a_hundred_thousand_dollars_at_once() -> None:
    small, exact = binance.traded(at(1), "1.9999", "50000"), binance.traded(at(2), "2", "50000", number=8)
    sold = binance.traded(at(3), "3", "50000", seller=True, number=9)
    found, _ = await of_binance(small, exact, sold)
    assert found == [
        TapeEvent(at(2), Side.LONG, 50_000.0, 2.0, 100_000.0, "8"),
        TapeEvent(at(3), Side.SHORT, 50_000.0, 3.0, 150_000.0, "9"),
    ]


async def test_bybit_names_the_position_itself() -> None:
    async def play(socket: ServerConnection) -> None:
        wish = json.loads(await socket.recv())
        assert wish == {"op": "subscribe", "args": ["allLiquidation.BTCUSDT", "tickers.BTCUSDT"]}
        for message in (bybit.taken(), bybit.forced(at(1), "Buy"), bybit.forced(at(2), "Sell")):
            await socket.send(message)

    async with streaming(play) as venue:
        found, _ = await heard(BybitTape(clock(-1), venue.url, timing=PATIENT))
        assert venue.paths == ["/v5/public/linear"]
    assert [row.side for row in found] == [Side.LONG, Side.SHORT]
    assert {row.usd for row in found} == {30_000.25}


async def test_binance_is_heard_under_market() -> None:
    async with streaming(saying()) as venue:
        await heard(BinanceTape(clock(0), venue.url, timing=PATIENT), ["BTCUSDT", "ETHUSDT"])
    streams = "btcusdt@forceOrder/btcusdt@aggTrade/ethusdt@forceOrder/ethusdt@aggTrade"
    assert venue.paths == [f"/market/stream?streams={streams}"]


@pytest.mark.parametrize(
    ("message", "reads"),
    [
        (binance.forced(at(1)), {"data", "e", "E", "o", "s", "S", "ap", "z", "T"}),
        (binance.traded(at(1), "5"), {"data", "e", "E", "s", "a", "p", "q", "T", "m"}),
    ],
)
async def test_a_renamed_field_of_a_message_is_missed(message: str, reads: set[str]) -> None:
    document = json.loads(message)
    usual, _ = await of_binance(message)
    assert len(usual) == 1
    missed = set()
    for name in fields(document):
        found, error = await of_binance(json.dumps(without(document, name)))
        if isinstance(error, Malformed):
            missed.add(name)
        else:
            assert found == usual
    assert missed == reads


async def test_a_renamed_field_of_bybits_message_is_missed() -> None:
    document = json.loads(bybit.forced(at(1)))
    missed = set()
    for name in fields(document):

        async def play(socket: ServerConnection, name: Any = name) -> None:
            await socket.recv()
            await socket.send(bybit.taken())
            await socket.send(json.dumps(without(document, name)))

        async with streaming(play) as venue:
            _, error = await heard(BybitTape(clock(-1), venue.url, timing=PATIENT))
        if isinstance(error, Malformed):
            missed.add(name)
    assert missed == {"topic", "ts", "data", "T", "s", "S", "v", "p"}


async def contract(symbol: str) -> float:
    return okx.CONTRACT


async def of_okx(*messages: str) -> tuple[list[Any], Exception]:
    async def play(socket: ServerConnection) -> None:
        wish = json.loads(await socket.recv())
        channels = [
            {"channel": "liquidation-orders", "instType": "SWAP"},
            {"channel": "mark-price", "instId": okx.SWAP},
        ]
        assert wish == {"op": "subscribe", "args": channels}
        for message in messages:
            await socket.send(message)

    async with streaming(play) as venue:
        found = await heard(OkxTape(clock(-1), venue.url, contract=contract, timing=PATIENT))
        assert venue.paths == ["/ws/v5/public"]
    return found


async def test_okx_names_the_order_and_counts_in_contracts() -> None:
    other = okx.forced(at(3)).replace(okx.SWAP, "DOGE-USDT-SWAP")
    net = okx.forced(at(4), "sell", posSide="net")
    found, error = await of_okx(okx.taken(), okx.forced(at(1), "sell"), okx.forced(at(2), "buy"), other, net)
    assert isinstance(error, Unavailable), "the connection ended"
    assert [(row.at, row.side) for row in found] == [(at(1), Side.LONG), (at(2), Side.SHORT), (at(4), Side.LONG)]
    assert {(row.quantity, row.price, row.usd) for row in found} == {(0.5, 60_000.5, 30_000.25)}


async def test_a_position_that_its_order_cannot_have_closed_is_malformed() -> None:
    _, error = await of_okx(okx.taken(), okx.forced(at(1), "sell", posSide="short"))
    assert isinstance(error, Malformed)


async def test_a_wish_that_okx_does_not_take_is_told() -> None:
    _, error = await of_okx(okx.taken("mark-price"), okx.refused())
    assert "wish" in str(error)


@pytest.mark.parametrize(
    ("message", "reads"),
    [
        (okx.forced(at(1)), {"arg", "channel", "data", "instId", "details", "side", "posSide", "sz", "bkPx", "ts"}),
        (okx.mark(at(1)), {"arg", "channel", "data", "instId", "ts"}),
    ],
)
async def test_a_renamed_field_of_okxs_message_is_missed(message: str, reads: set[str]) -> None:
    document = json.loads(message)
    missed = set()
    for name in dict.fromkeys(fields(document)):
        _, error = await of_okx(okx.taken(), json.dumps(without(document, name)))
        if isinstance(error, Malformed):
            missed.add(name)
    assert missed == reads


async def test_okx_answers_a_ping_with_a_bare_word() -> None:
    """Two marks, then silence in which pings are answered: the minute between is proven."""

    async def play(socket: ServerConnection) -> None:
        await socket.recv()
        for message in (okx.taken(), okx.mark(at(-1)), okx.mark(at(1))):
            await socket.send(message)
        for _ in range(2):
            assert await socket.recv() == "ping"
            await socket.send("pong")

    async with streaming(play) as venue:
        tape = OkxTape(clock(-1, 1, 61, 121, 3_600), venue.url, contract=contract, timing=HASTY)
        found, _ = await heard(tape)
    assert found == [Heartbeat(NOON)]


@pytest.mark.parametrize("message", ["<html>", '{"stream": "x"', "[1]", "null", '{"data": {"e": NaN}}', "[" * 5_000])
async def test_what_is_no_message_is_malformed(message: str) -> None:
    found, error = await of_binance(message)
    assert (found, type(error)) == ([], Malformed)


# -- silence and loss


@pytest.mark.slow
async def test_a_minutes_silence_with_answers_to_pings_is_proven_and_no_more() -> None:
    """The server says two things and nothing more; its library answers pings."""

    async def play(socket: ServerConnection) -> None:
        for seconds in (-1, 1):
            await socket.send(binance.traded(at(seconds)))
        await asyncio.sleep(0.3)

    async with streaming(play) as venue:
        found, _ = await heard(BinanceTape(clock(-1, 1, 61, 121, 3_600), venue.url, timing=HASTY))
    assert found == [Heartbeat(NOON), Heartbeat(NOON)]  # of both kinds of trades


@pytest.mark.slow
async def test_answers_to_pings_alone_prove_nothing_of_a_stream_that_never_served_us() -> None:
    """A venue that moved its streams elsewhere still answers pings at the old place."""

    async def play(socket: ServerConnection) -> None:
        await asyncio.sleep(0.3)

    async with streaming(play) as venue:
        found, _ = await heard(BinanceTape(clock(-1, 61, 121, 3_600), venue.url, timing=HASTY))
    assert found == []


async def test_a_symbol_that_was_never_heard_is_not_proven_by_another() -> None:
    messages = binance.traded(at(-1)), binance.traded(at(62))
    async with streaming(saying(*messages)) as venue:
        tape = BinanceTape(clock(-1, 62), venue.url, timing=PATIENT).listen(["ETHUSDT", SYMBOL])
        found = [await anext(tape) for _ in range(2)]
        with pytest.raises(Unavailable):
            await anext(tape)
    assert {series.name for series, _ in found} == {f"{SYMBOL}/alive"}


async def test_a_symbol_that_fell_silent_is_not_proven_by_another() -> None:
    async def play(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(bybit.taken())
        for seconds, symbol in ((-1, SYMBOL), (-1, "ETHUSDT"), (1, "ETHUSDT"), (200, SYMBOL)):
            await socket.send(bybit.ticker(at(seconds)).replace(SYMBOL, symbol))

    proven: dict[str, list[float]] = {}
    async with streaming(play) as venue:
        tape = BybitTape(clock(-1, -1, 1, 200), venue.url, timing=PATIENT).listen(["ETHUSDT", SYMBOL])
        with suppress(Unavailable):
            async for series, row in tape:
                proven.setdefault(series.name, []).append((row.at - NOON) / 1_000)
    assert proven == {f"{SYMBOL}/alive": [0, 60, 120], "ETHUSDT/alive": [0]}


async def test_news_of_a_symbol_nobody_asked_for_prove_nothing() -> None:
    found, error = await of_binance(binance.forced(at(-1), symbol="SOLUSDT"), binance.forced(at(62)), seconds=(-1, 62))
    assert [type(row) for row in found] == [TapeEvent, TapeEvent]
    assert isinstance(error, Unavailable)


async def test_silence_without_answers_is_a_lost_stream_and_proves_nothing() -> None:
    """Bybit is asked in its own words and does not answer; an hour passes on our clock."""
    asked = []

    async def play(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(bybit.taken())
        asked.append(await socket.recv())
        await socket.wait_closed()

    async with streaming(play) as venue:
        found, error = await heard(BybitTape(clock(-1, 3_600), venue.url, timing=DEAF))
    assert found == []
    assert "lost" in str(error)
    assert asked == ['{"op":"ping"}']


@pytest.mark.parametrize(("asked", "proven"), [(60.9, []), (61, [Heartbeat(NOON)])])
async def test_bybits_own_answer_to_a_ping_proves_until_it_was_asked(asked: float, proven: list[Heartbeat]) -> None:
    """Our clock is read with each ticker and with the ping."""

    async def play(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(bybit.taken())
        for seconds in (-1, 5):
            await socket.send(bybit.ticker(at(seconds)))
        await socket.recv()
        await socket.send(bybit.taken(op="ping"))

    async with streaming(play) as venue:
        found, _ = await heard(BybitTape(clock(-1, 5, asked), venue.url, timing=HASTY))
    assert found == proven


async def test_bybits_pings_prove_nothing_before_it_told_its_time() -> None:
    async def play(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(bybit.taken())
        for _ in range(3):
            await socket.recv()
            await socket.send(bybit.taken(op="ping"))

    async with streaming(play) as venue:
        found, _ = await heard(BybitTape(clock(-1, 61, 3_600), venue.url, timing=HASTY))
    assert found == []


async def test_bybits_tickers_are_no_answer_to_a_ping() -> None:
    """They may have been under way when we asked."""

    async def play(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(bybit.taken())
        await socket.send(bybit.ticker(at(-1)))
        await socket.recv()
        while True:
            await socket.send(bybit.ticker(at(1)))
            await asyncio.sleep(0.01)

    async with streaming(play) as venue:
        found, error = await heard(BybitTape(clock(-1, 3_600), venue.url, timing=DEAF))
    assert found == []
    assert "lost" in str(error)


async def test_a_message_read_an_hour_late_proves_only_the_minutes_before_it_was_sent() -> None:
    messages = binance.traded(at(-1)), binance.traded(at(62)), binance.traded(at(80))
    found, _ = await of_binance(*messages, seconds=(-1, 62, 3_680))
    assert found == [Heartbeat(NOON), Heartbeat(NOON)]


async def test_minutes_before_a_reconnect_stay_unproven() -> None:
    """Lost in the second minute, heard again in the fourth: the second, third and fourth are not known."""
    first, _ = await of_binance(binance.traded(at(-1)), binance.traded(at(65)), seconds=(-1, 65))
    again, _ = await of_binance(binance.traded(at(200)), binance.traded(at(310)), seconds=(200, 310))
    told = sorted({row.at for row in (*first, *again)})
    assert told == [at(0), at(240)]


async def test_a_venue_that_is_not_there_is_unavailable() -> None:
    found, error = await heard(BinanceTape(clock(0), "ws://127.0.0.1:1", timing=HASTY))
    assert found == []
    assert "lost" in str(error)


async def test_a_server_that_is_no_stream_is_unavailable() -> None:
    from tests.wire.model_server import http, serving

    async with serving(lambda heard: http(404, b"no")) as server:
        _, error = await heard(BinanceTape(clock(0), server.origin.replace("http", "ws"), timing=HASTY))
    assert isinstance(error, Unavailable)


async def test_a_wish_that_is_not_taken_is_unavailable() -> None:
    async def play(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send(bybit.taken(success=False))

    async with streaming(play) as venue:
        _, error = await heard(BybitTape(clock(0), venue.url, timing=PATIENT), ["NOPE"])
    assert isinstance(error, Unavailable)
    assert "symbols" in str(error)


async def test_a_message_without_an_end_is_unavailable() -> None:
    found, error = await of_binance('{"data": "' + "x" * 2_000_000 + '"}')
    assert (found, type(error)) == ([], Unavailable)


async def test_leaving_a_stream_leaves_nothing_behind() -> None:
    async def play(socket: ServerConnection) -> None:
        await socket.send(binance.forced(at(1)))
        await socket.wait_closed()

    async with streaming(play) as venue:
        tape: AsyncIterator[Any] = BinanceTape(clock(-1, 1), venue.url, timing=PATIENT).listen([SYMBOL])
        before = asyncio.all_tasks()
        await anext(tape)
        await tape.aclose()  # type: ignore[attr-defined]
    await asyncio.sleep(0)
    assert not [task for task in asyncio.all_tasks() - before if "recv" in repr(task)]
