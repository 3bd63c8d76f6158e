"""The exam of `AccountBook` and `PaperBook`: the journal's book and the one in memory sit it unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.wire.fakes.account import BookInMemory
from zuno.adapters.account.paper import JournalBook
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.sqlite import open_sqlite
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author, Journal
from zuno.kernel.errors import Broken, Refused
from zuno.kernel.units import Millis
from zuno.trading.model.account import (
    BOOK_CHANGE,
    BookChange,
    Holding,
    LiquidityStated,
    OrderCancelled,
    OrderPlaced,
    PositionClosed,
    PositionOpened,
    RestingOrder,
)
from zuno.trading.model.cycle import Exchange
from zuno.trading.model.market import Side, Symbol
from zuno.trading.ports.account import PaperBook
from zuno.trading.rules.paper_book import STARTING_ACCOUNT

HERE, THERE = "SYNTHETIC seed 1", "SYNTHETIC seed 2"
Open = Callable[[], PaperBook]


def journal_in(folder: Path) -> ChainedJournal:
    key = KeyFile(folder / "node.key")
    return ChainedJournal(open_sqlite(folder), key, code=lambda: "test", now=lambda: Millis(1_700_000_000_000))


@pytest.fixture(params=["journal", "memory"])
def another(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Another handle on the same book, as another process would hold."""
    if request.param == "memory":
        only = BookInMemory()
        return lambda: only

    def opened() -> PaperBook:
        journal = journal_in(tmp_path)

        async def own() -> Journal:
            return journal

        return JournalBook(own)

    return opened


def opened(id: str, at: int, symbol: Symbol = Symbol.BTCUSDT, quantity: float = 0.01) -> PositionOpened:
    position = Holding(
        id=id,
        symbol=symbol,
        exchange=Exchange.BINANCE,
        side=Side.LONG,
        quantity=quantity,
        entry=60_000.0,
        leverage=2.0,
        opened=at,
    )
    return PositionOpened(at=at, position=position, fee=0.3)


def rested(id: str, at: int) -> OrderPlaced:
    order = RestingOrder(
        id=id,
        symbol=Symbol.ETHUSDT,
        exchange=Exchange.UPBIT,
        side=Side.LONG,
        quantity=0.1,
        price=4_000_000.0,
        leverage=1.0,
        placed=at,
    )
    return OrderPlaced(at=at, order=order)


STORY: tuple[BookChange, ...] = (
    opened("pos_1", 10),
    rested("ord_1", 20),
    LiquidityStated(at=20, symbol=Symbol.ETHUSDT, quantity=1.5),
    PositionClosed(at=30, id="pos_1", price=61_000.0, fee=0.305),
    OrderCancelled(at=40, id="ord_1"),
)


async def test_a_book_nobody_wrote_holds_what_it_began_with(another: Open) -> None:
    assert await another().at(HERE, Millis(2**50)) == STARTING_ACCOUNT
    assert await another().changes(HERE) == ()


async def test_what_was_written_comes_back_in_order_through_another_handle(another: Open) -> None:
    for place, change in enumerate(STORY):
        await another().write(HERE, change, place)
    assert await another().changes(HERE) == STORY


async def test_what_stands_at_a_moment_is_what_was_written_of_strictly_before(another: Open) -> None:
    for place, change in enumerate(STORY):
        await another().write(HERE, change, place)
    book = another()
    assert await book.at(HERE, Millis(10)) == STARTING_ACCOUNT
    assert [one.id for one in (await book.at(HERE, Millis(11))).positions] == ["pos_1"]
    assert (await book.at(HERE, Millis(20))).pending == ()
    both = await book.at(HERE, Millis(21))
    assert [one.id for one in both.pending] == ["ord_1"]
    assert [(one.symbol, one.quantity) for one in both.liquidity] == [(Symbol.ETHUSDT, 1.5)]
    after = await book.at(HERE, Millis(31))
    assert after.positions == ()
    assert after.usd == pytest.approx(2_000 - 0.3 + 10 - 0.305, abs=1e-9)
    assert (await book.at(HERE, Millis(41))).pending == ()


async def test_a_later_change_alters_no_earlier_answer(another: Open) -> None:
    moments = [Millis(moment) for moment in (0, 10, 11, 20, 21, 30)]
    before: list[list[object]] = []
    for place, change in enumerate(STORY):
        await another().write(HERE, change, place)
        before.append([await another().at(HERE, moment) for moment in moments if moment <= change.at])
    for place, change in enumerate(STORY):
        assert [await another().at(HERE, moment) for moment in moments if moment <= change.at] == before[place]


async def test_another_market_has_another_book(another: Open) -> None:
    await another().write(HERE, STORY[0], 0)
    assert await another().at(THERE, Millis(2**50)) == STARTING_ACCOUNT
    await another().write(THERE, opened("pos_2", 5), 0)
    assert [one.id for one in (await another().at(HERE, Millis(99))).positions] == ["pos_1"]


async def test_whoever_writes_second_to_a_place_is_refused_and_changes_nothing(another: Open) -> None:
    await another().write(HERE, STORY[0], 0)
    with pytest.raises(Refused, match="more than 0"):
        await another().write(HERE, opened("pos_2", 10), 0)
    await another().write(HERE, STORY[0], 0)  # the same again is no other
    assert await another().changes(HERE) == STORY[:1]


async def test_a_place_that_would_leave_a_gap_is_refused(another: Open) -> None:
    with pytest.raises(Refused, match="has 0 changes, not 1"):
        await another().write(HERE, STORY[0], 1)
    assert await another().changes(HERE) == ()


async def test_of_many_at_once_one_is_written(another: Open) -> None:
    wishes = [opened(f"pos_{number}", 10) for number in range(4)]
    ends = await asyncio.gather(*(another().write(HERE, wish, 0) for wish in wishes), return_exceptions=True)
    assert [type(end) for end in ends if end is not None] == [Refused] * 3
    assert len(await another().changes(HERE)) == 1


@pytest.mark.parametrize(
    "second",
    [
        PositionClosed(at=30, id="pos_9", price=1.0, fee=0.0),
        opened("pos_1", 30),
        opened("pos_2", 30, quantity=10.0),
        LiquidityStated(at=9, symbol=Symbol.ETHUSDT, quantity=1.0),
    ],
    ids=["closes what is not open", "the same name twice", "more than there is", "backward"],
)
async def test_a_book_that_contradicts_itself_is_broken(another: Open, second: BookChange) -> None:
    await another().write(HERE, STORY[0], 0)
    await another().write(HERE, second, 1)
    with pytest.raises(Broken, match="contradicts itself"):
        await another().at(HERE, Millis(99))


# -- what only the journal can do


@pytest.mark.parametrize(
    "payload",
    [
        {"origin": HERE, "number": 2, "change": {"kind": "cancelled", "at": 1, "id": "ord_1"}},
        {"origin": HERE, "number": 1, "change": {"kind": "cancelled", "at": "1", "id": "ord_1"}},
        {"origin": HERE, "number": 1, "change": {"kind": "doubled", "at": 1, "id": "ord_1"}},
        {"origin": HERE, "number": 1, "change": {"kind": "cancelled", "at": 1, "id": "ord_1", "more": 1}},
    ],
    ids=["a gap", "another type", "a change nobody knows", "more than is known"],
)
async def test_an_entry_no_book_writes_is_broken(tmp_path: Path, payload: dict[str, object]) -> None:
    journal = journal_in(tmp_path)

    async def own() -> Journal:
        return journal

    await journal.append(kind=BOOK_CHANGE, author=Author("owner"), payload=payload)
    with pytest.raises(Broken):
        await JournalBook(own).changes(HERE)
