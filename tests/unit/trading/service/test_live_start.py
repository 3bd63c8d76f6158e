"""A start at an exchange: every missing piece is named, all at once, and nothing else lets it through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import cycle
from typing import Any

import pytest

from tests.wire.accounts import open_account
from tests.wire.trading_account import AccountStory, MemoryTradeRecord
from zuno.adapters.account.trade_log import MemoryTradeLog
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.markets.venues import DEFAULT_VENUES, VENUES, Venue
from zuno.trading.model.cycle import JudgeKind, RegimeFamily
from zuno.trading.model.market import DAY_MS, Side
from zuno.trading.model.memory import ClosedTrade
from zuno.trading.model.trade_events import Mandate, MandatedSleeve, MandateGranted, MandateRevoked, TradeEvent
from zuno.trading.rules.calibration import LIVE_TRADES
from zuno.trading.rules.performance import trace_account
from zuno.trading.rules.protections import hash_mandate
from zuno.trading.service.live_start import LiveBackends, LiveStart, check_account_choice, find_traded_exchanges

NOW = Millis(1_700_000_000_000)
BTC, PAPER, ORIGIN = (Symbol("BTCUSDT"),), "paper:recorded", "recorded"


def closed_trades(count: int) -> tuple[ClosedTrade, ...]:
    return tuple(
        ClosedTrade(
            opened=NOW - 1_001 - number,
            closed=NOW - 1_000 - number,
            judge=JudgeKind.RULES,
            family=RegimeFamily.RANGE,
            edge=0.1,
            profit_pct=4.0,
            loss_pct=2.0,
            exit_pct=4.0,
        )
        for number in range(count)
    )


async def granted_log(account: str = "live", **named: Any) -> MemoryTradeLog:
    fields: dict[str, Any] = {
        "symbols": BTC,
        "venues": (Venue("BINANCE"),),
        "max_margin_per_trade_usd": Decimal(100),
        "max_margin_per_day_usd": Decimal(300),
        "max_daily_loss_usd": Decimal(50),
        "granted": NOW - 1_000,
        "expires": NOW + DAY_MS,
    }
    mandate = Mandate(**{**fields, **named})
    log = MemoryTradeLog()
    events: list[TradeEvent] = [
        open_account(at=mandate.granted, usd=Decimal(0), krw=Decimal(0)),
        MandateGranted(at=mandate.granted, mandate=mandate, hash=hash_mandate(mandate)),
    ]
    await log.append(account, events, 0)
    return log


async def build_backends(trades: int = LIVE_TRADES, **named: Any) -> LiveBackends:
    """Everything is there."""

    async def find_failures() -> Sequence[str]:
        return ()

    async def find_fresh(venue: Venue) -> None:
        return None

    whole = LiveBackends(
        enabled=True,
        market_live=True,
        policy="record",
        demo=lambda venue: False,
        keys=lambda account: {Venue("BINANCE"): "BINANCE_KEYS", Venue("UPBIT"): "UPBIT_KEYS"},
        routed=VENUES,
        keyed=lambda account: (Venue("BINANCE"),),
        find_stale=find_fresh,
        log=await granted_log(),
        record=MemoryTradeRecord({ORIGIN: closed_trades(trades)}),
        find_failures=find_failures,
        now=lambda: NOW,
        find_transfer_gap=find_nothing,
    )
    return replace(whole, **named)


async def find_nothing(account: str, spot: Venue, perpetual: Venue) -> None:
    return None


def mandated(*sleeves: str) -> dict[str, Any]:
    share, fall = Decimal("0.4"), Decimal("0.2")
    return {"sleeves": tuple(MandatedSleeve(name=name, share=share, max_drawdown=fall) for name in sleeves)}


def nobody(account: str) -> tuple[Venue, ...]:
    return ()


async def find_old(venue: Venue) -> str:
    return "the list is 30 hours old"


def never(word: str, what: str) -> bool:
    raise AssertionError("nobody is asked before everything is there")


async def pieces(backends: LiveBackends, account: str = "live", symbols: Sequence[Symbol] = BTC) -> list[str]:
    with pytest.raises(Refused):
        await LiveStart(backends).permit(account, symbols, ORIGIN, PAPER, never)
    return [found.piece for found in await LiveStart(backends).find_missing(account, symbols)]


async def test_nothing_there_names_every_piece_at_once() -> None:
    async def fail() -> Sequence[str]:
        return ("the keys may withdraw",)

    bare = await build_backends(
        enabled=False, market_live=False, keyed=nobody, log=MemoryTradeLog(), find_failures=fail
    )
    assert await pieces(bare) == ["setting", "market", "keys", "mandate", "doctor"]


async def test_each_piece_alone_keeps_it_back() -> None:
    async def fail() -> Sequence[str]:
        return ("hedge mode",)

    for named, piece in (
        ({"enabled": False}, "setting"),
        ({"market_live": False}, "market"),
        ({"keyed": nobody}, "keys"),
        ({"demo": lambda venue: True}, "keys"),
        ({"log": MemoryTradeLog()}, "mandate"),
        ({"log": await granted_log(account=PAPER)}, "mandate"),
        ({"log": await granted_log(expires=NOW)}, "mandate"),
        ({"policy": "seed"}, "mandate"),
        ({"find_failures": fail}, "doctor"),
        ({"find_stale": find_old}, "list"),
    ):
        assert await pieces(await build_backends(**named)) == [piece], named
    assert await pieces(await build_backends(), symbols=tuple(DEFAULT_SYMBOLS)) == ["mandate"]
    named_policy = await build_backends(policy="seed", log=await granted_log(policy="seed"))
    assert await LiveStart(named_policy).find_missing("live", BTC) == []


async def test_upbit_is_traded_only_where_stops_may_be_watched() -> None:
    both: Any = {"venues": DEFAULT_VENUES}
    keyed = await build_backends(log=await granted_log(**both), keyed=lambda account: DEFAULT_VENUES)
    assert await pieces(keyed) == ["mandate"]
    watched = await granted_log(**both, stops="watched")
    assert await pieces(replace(keyed, log=watched, keyed=lambda account: (Venue("BINANCE"),))) == ["keys"]
    permit = await LiveStart(replace(keyed, log=watched)).permit("live", BTC, ORIGIN, PAPER, lambda word, what: True)
    assert permit.account == "live"
    assert find_traded_exchanges(trace_account(await watched.events("live")).mandates) == DEFAULT_VENUES
    assert find_traded_exchanges(trace_account(await (await granted_log(**both)).events("live")).mandates) == (
        Venue("BINANCE"),
    )


async def test_everything_there_still_wants_the_word() -> None:
    start = LiveStart(await build_backends())
    with pytest.raises(Refused):
        await start.permit("live", BTC, ORIGIN, PAPER, lambda word, what: False)
    asked: list[str] = []

    def confirm(word: str, what: str) -> bool:
        asked.append(word)
        return True

    assert (await start.permit("live", BTC, ORIGIN, PAPER, confirm)).account == "live"
    assert asked == ["live"]


async def test_without_a_record_in_real_time_it_stays_on_paper_and_says_so() -> None:
    start = LiveStart(await build_backends(trades=LIVE_TRADES - 1))
    permit = await start.permit("live", BTC, ORIGIN, PAPER, never)
    assert (permit.account, permit.option) == (PAPER, None)
    assert permit.notes


def spread_trades(count: int, days: float) -> tuple[ClosedTrade, ...]:
    """The first so many days ago."""
    return tuple(
        trade.model_copy(update={"closed": NOW - 1 - round(days * DAY_MS * (number + 1) / count)})
        for number, trade in enumerate(closed_trades(count))
    )


@pytest.mark.parametrize(
    ("count", "days", "left"),
    [
        (0, 0, None),
        (1, 90, None),  # of one trade there is no pace
        (12, 0.5, None),
        (12, 52, 28 * 52 / 12),
        (39, 39, 1),
        (LIVE_TRADES, 10, 0),
        (LIVE_TRADES + 5, 10, 0),
    ],
)
async def test_the_record_says_how_far_it_is_and_how_long_it_takes(count: int, days: float, left: float | None) -> None:
    own = [
        trade.model_copy(update={"family": family})
        for trade, family in zip(spread_trades(count, days), cycle(RegimeFamily), strict=False)
    ]
    other = (trade.model_copy(update={"judge": JudgeKind.MODEL}) for trade in spread_trades(count // 2, days or 1))
    record = MemoryTradeRecord({ORIGIN: (*own, *other)})
    gate = await LiveStart(await build_backends(record=record)).read_record(ORIGIN)
    assert (gate.closed, gate.open) == (count, count >= LIVE_TRADES)
    assert gate.days == (left if left is None else pytest.approx(left, abs=0.01))
    assert f"{count} of {LIVE_TRADES}" in str(gate)
    if (count, days) == (12, 52):
        assert "4 months" in str(gate)


@pytest.mark.parametrize("why", ["expired", "revoked", "no record"])
async def test_what_is_held_is_watched_though_nothing_may_be_opened(why: str) -> None:
    log = await granted_log(expires=NOW - 100 if why == "expired" else NOW + DAY_MS)
    if why == "revoked":
        (granted,) = [event for event in await log.events("live") if isinstance(event, MandateGranted)]
        await log.append("live", [MandateRevoked(at=NOW - 900, hash=granted.hash)], 2)
    backends = await build_backends(trades=0 if why == "no record" else LIVE_TRADES, log=log)
    if why != "no record":
        assert await pieces(backends) == ["mandate"], "nothing is held yet"
    story = AccountStory(log, "live")
    await story._writer.refresh()
    await story.open_trade(NOW - 500, BTC[0], Side.LONG, "0.01", "60000", "59400", "61200")
    start, asked = LiveStart(backends), list[str]()

    def confirm(word: str, what: str) -> bool:
        asked.append(word)
        return len(asked) > 1

    with pytest.raises(Refused):
        await start.permit("live", BTC, ORIGIN, PAPER, confirm)
    permit = await start.permit("live", BTC, ORIGIN, PAPER, confirm)
    assert (permit.account, asked) == ("live", ["live", "live"])
    assert permit.watch_only
    assert permit.watch_only in permit.notes[0]
    assert await pieces(replace(backends, keyed=nobody)) == (["keys"] if why == "no record" else ["keys", "mandate"])


async def test_demo_needs_keys_and_a_mandate_of_its_own() -> None:
    demo = await build_backends(trades=0, enabled=False, demo=lambda venue: True, log=await granted_log("demo"))
    assert (await LiveStart(demo).permit("demo", BTC, ORIGIN, PAPER, never)).account == "demo"
    assert await pieces(replace(demo, log=await granted_log("live")), "demo") == ["mandate"]
    assert await pieces(replace(demo, demo=lambda venue: False), "demo") == ["setting"]


async def test_a_venue_that_no_route_goes_to_is_said_before_anything_starts() -> None:
    backends = await build_backends(trades=0)
    [missing] = await LiveStart(replace(backends, routed=(Venue("BYBIT"),))).find_missing("live", BTC)
    assert (missing.piece, "ZUNO_ROUTE_BINANCE=binance" in missing.text) == ("setting", True)


async def test_demo_keys_of_any_venue_are_no_money() -> None:
    """And those of another venue say nothing of it."""
    bybit = Venue("BYBIT")
    parts: dict[str, Any] = {"keys": lambda account: {bybit: "BYBIT_KEYS"}, "keyed": lambda account: (bybit,)}
    demo = await build_backends(
        trades=0, demo=lambda venue: venue is bybit, log=await granted_log("demo", venues=(bybit,)), **parts
    )
    assert (await LiveStart(demo).permit("demo", BTC, ORIGIN, PAPER, never)).account == "demo"
    live = replace(demo, log=await granted_log("live", venues=(bybit,)))
    assert await pieces(live) == ["keys"]
    assert await pieces(replace(demo, demo=lambda venue: venue is not bybit), "demo") == ["setting"]
    [missing] = await LiveStart(live).find_missing("live", BTC)
    assert "ZUNO_BYBIT_DEMO" in missing.text


async def test_a_named_account_needs_its_own_keys_and_its_venues_say_what_they_cannot_do() -> None:
    spot = Venue("BYBIT-SPOT")
    log = await granted_log("live:swiss", venues=(spot,))
    backends = await build_backends(
        log=log, demo=lambda venue: True, keys=lambda account: {spot: "[accounts.swiss]"}, keyed=nobody
    )
    assert await pieces(backends, "live:swiss") == ["keys"]  # whosever demo keys the environment has
    start = LiveStart(replace(backends, keyed=lambda account: (spot,) if account == "live:swiss" else ()))
    permit = await start.permit("live:swiss", BTC, ORIGIN, PAPER, lambda word, what: word == "live")
    assert permit.account == permit.option == "live:swiss"
    assert [note for note in permit.notes if note.startswith("BYBIT-SPOT: ") and "sold short" in note]
    assert await pieces(replace(backends, log=await granted_log("live:swiss")), "live:swiss") == ["keys"]


async def test_an_old_list_opens_nothing_and_keeps_nobody_from_what_is_held() -> None:
    log = await granted_log()
    backends = await build_backends(log=log, find_stale=find_old)
    story = AccountStory(log, "live")
    await story._writer.refresh()
    await story.open_trade(NOW - 500, BTC[0], Side.LONG, "0.01", "60000", "59400", "61200")
    permit = await LiveStart(backends).permit("live", BTC, ORIGIN, PAPER, lambda word, what: True)
    assert permit.watch_only == await find_old(Venue("BINANCE"))


def test_live_is_said_and_not_named() -> None:
    assert check_account_choice(None, live=True) == "live"
    assert check_account_choice("own", live=False) == "own"
    assert check_account_choice("live:swiss", live=True) == "live:swiss"
    assert check_account_choice("demo:swiss", live=False) == "demo:swiss"
    for account, live in (("own", True), ("live", False), ("demo", True), ("live:swiss", False), ("demo:x", True)):
        with pytest.raises(UsageError):
            check_account_choice(account, live=live)


# -- sleeves


async def gaps(sleeve: str, log: MemoryTradeLog | None = None, trades: int = LIVE_TRADES, **named: Any) -> list[str]:
    backends = await build_backends(trades, **named)
    backends = backends if log is None else replace(backends, log=log)
    return await LiveStart(backends).find_sleeve_gaps("live", sleeve, ORIGIN)


async def test_other_sleeves_need_no_record_and_the_debate_does() -> None:
    log = await granted_log(**mandated("trend"))
    short = await build_backends(trades=3, log=log)
    permit = await LiveStart(short).permit("live", BTC, ORIGIN, PAPER, lambda word, what: True)
    assert (permit.account, permit.watch_only) == ("live", None)
    assert any("trend" in note and "debate" in note for note in permit.notes)
    assert await gaps("trend", log, trades=3) == []
    assert len(await gaps("debate", log, trades=3)) == 1
    assert await gaps("debate", log) == []
    assert await LiveStart(short).list_sleeves("live") == ("trend", "debate")
    assert await LiveStart(short).list_sleeves("demo", ("cash-carry",)) == ("cash-carry",)


@pytest.mark.parametrize(
    ("log", "named", "missing"),
    [
        ({}, {}, "mandate"),
        ({"expires": NOW} | mandated("trend"), {}, "mandate"),
        (mandated("trend"), {"keyed": nobody}, "keys"),
        (mandated("trend") | {"venues": (Venue("UPBIT"),)}, {"keyed": lambda account: DEFAULT_VENUES}, "stops"),
    ],
)
async def test_what_a_sleeve_lacks_is_named(log: dict[str, Any], named: dict[str, Any], missing: str) -> None:
    (gap,) = await gaps("trend", await granted_log(**log), **named)
    assert missing in gap


async def test_a_carry_needs_both_venues_their_keys_and_a_key_that_may_transfer() -> None:
    pair = (Venue("BINANCE-SPOT"), Venue("BINANCE"))
    one = await granted_log(**mandated("cash-carry"))
    both = await granted_log(**mandated("cash-carry"), venues=pair)
    (gap,) = await gaps("cash-carry", one)
    assert "spot" in gap
    (gap,) = await gaps("cash-carry", both)
    assert "keys for BINANCE-SPOT" in gap
    assert await gaps("cash-carry", both, keyed=lambda account: pair) == []
    asked: list[tuple[str, Venue, Venue]] = []

    async def refuse(account: str, spot: Venue, perpetual: Venue) -> str:
        asked.append((account, spot, perpetual))
        return "a key that may transfer"

    lacking = await gaps("cash-carry", both, keyed=lambda account: pair, find_transfer_gap=refuse)
    assert lacking == ["a key that may transfer"]
    assert asked == [("live", *pair)]
