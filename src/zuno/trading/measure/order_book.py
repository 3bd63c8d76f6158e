"""What an order book offers now, and what it only pretends to: spread, lean, the price of size, walls that vanish."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum, isfinite
from statistics import median
from typing import Final, TypeAlias

from zuno.kernel.units import Millis
from zuno.trading.measure.portable import PRICE_PLACES
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import MINUTE_MS, SECOND_MS, STALE_AFTER, Book, Candle, Feed, Quote, Side

NEAR_BPS: Final = 10
SIZE_USD: Final = 100_000.0
WALL: Final = 5
"""A level so many times the median of its side is a wall."""
TRADED_AWAY: Final = 0.2
"""The share of a wall that must have traded for its end to be honest."""
SNAPSHOTS: Final = 5
WITHIN_MS: Final = 60_000 + STALE_AFTER[Feed.BOOK] * SECOND_MS
"""Five snapshots over a minute, and as late as a book may be."""
_BEFORE_MS: Final = (15_000, 30_000, 45_000, 60_000)
"""How long before the newest snapshot the others are wanted."""

Traded: TypeAlias = Callable[[Side, float, Millis, Millis], Known[float]]
"""How much takers of that side took at that price between two moments, or at most: in base units."""


@dataclass(frozen=True, slots=True)
class BookFigures:
    """A book that can be believed, in numbers."""

    at: Millis
    mid: float
    spread_bps: float
    imbalance: Known[float]
    """(bids − asks) / (bids + asks) of the notional near the mid: 1 when only bids stand there."""
    buy_slippage_bps: Known[float]
    sell_slippage_bps: Known[float]
    """What the size costs against the mid, half the spread included."""


@dataclass(frozen=True, slots=True)
class FakeWall:
    """A level that stood out and was withdrawn, not traded."""

    side: Side
    """LONG: a wall of bids."""
    price: float
    size: float
    times_median: float
    seen: Millis
    gone: Millis


@dataclass(frozen=True, slots=True)
class Walls:
    fake: tuple[FakeWall, ...]
    unjudged: int
    """Prices at which one vanished, and nobody can say whether it traded."""


@dataclass(frozen=True, slots=True)
class _SideSnapshot:
    at: Millis
    sizes: Mapping[float, float]
    last: float
    middle: float


def book_figures(book: Book) -> Known[BookFigures]:
    """The book's figures, or why it is refused as a whole."""
    if flaw := find_book_fault(book):
        return Missing(flaw)
    bid, ask = book.bids[0].price, book.asks[0].price
    mid = (bid + ask) / 2
    buy, sell = (_slippage(levels, mid) for levels in (book.asks, book.bids))
    return BookFigures(book.at, mid, (ask - bid) / mid * 1e4, _imbalance(book, mid), buy, sell)


def find_book_fault(book: Book) -> str | None:
    """What is wrong with a book, if anything: half a market, a number that is none, levels out of order, a cross."""
    for name, side, sign in (("bids", book.bids, -1), ("asks", book.asks, 1)):
        if not side:
            return f"the book has no {name}"
        for price, size in side:
            if not (isfinite(price) and isfinite(size) and price > 0 and size > 0):
                return f"the book has {size} for {price} among its {name}"
        if any(sign * (further.price - nearer.price) <= 0 for nearer, further in pairwise(side)):
            return f"the book's {name} are not in order, best first"
    if book.bids[0].price >= book.asks[0].price:
        return f"the book is crossed: {book.bids[0].price} is bid, {book.asks[0].price} is asked"
    return None


def sample_minute(snapshots: Sequence[Book]) -> tuple[Book, ...]:
    """Five snapshots, oldest first: the newest, and the valid ones nearest to 15, 30, 45 and 60 s before."""
    moments = {book.at: book for book in snapshots}
    if len(moments) <= SNAPSHOTS:
        return tuple(moments[at] for at in sorted(moments))
    newest = max(moments)
    left = sorted((at for at, book in moments.items() if at == newest or find_book_fault(book) is None), reverse=True)
    taken = left[:1]
    for before in _BEFORE_MS:
        left = [at for at in left if at not in taken]
        taken += sorted(left, key=lambda at: abs(taken[0] - before - at))[:1]
    return tuple(moments[at] for at in sorted(taken))


def find_fake_walls(snapshots: Sequence[Book], traded: Traded) -> Known[Walls]:
    """Levels of five times their side's median or more that fell to it with less than a fifth traded, in five
    snapshots. A level a later book is too shallow to show, or of unknown trades, is not judged."""
    sound = [book for book in sorted(snapshots, key=lambda book: book.at) if find_book_fault(book) is None][-SNAPSHOTS:]
    if len(sound) < SNAPSHOTS or sound[-1].at - sound[0].at > WITHIN_MS:
        near = sum(sound[-1].at - book.at <= WITHIN_MS for book in sound) if sound else 0
        return Missing(f"{near} sound snapshots within a minute are known, {SNAPSHOTS} are needed to see a wall vanish")
    sides = [_find_fakes(side, [_read_side(side, book) for book in sound], traded) for side in Side]
    return Walls(tuple(fake for side in sides for fake in side.fake), sum(side.unjudged for side in sides))


def traded_in_minutes(minutes: Sequence[Candle]) -> Traded:
    """An upper bound of takers' volume at a price, from closed minutes that touched it; else unknown."""
    known = {row.at: row for row in minutes}

    def at_most(side: Side, price: float, since: Millis, until: Millis) -> Known[float]:
        total = 0.0
        for at in range(since // MINUTE_MS * MINUTE_MS, until, MINUTE_MS):
            row = known.get(Millis(at))
            if row is None:
                return Missing("the minutes in which a wall vanished are not known: whether it traded cannot be said")
            if round(row.low - price, PRICE_PLACES) <= 0 <= round(row.high - price, PRICE_PLACES):
                bought = row.volume if row.taker_buy is None else row.taker_buy
                sold = row.volume if row.taker_buy is None else row.volume - row.taker_buy
                total += bought if side is Side.LONG else sold
        return total

    return at_most


def _imbalance(book: Book, mid: float) -> Known[float]:
    within = mid * NEAR_BPS / 1e4
    for name, side in (("bids", book.bids), ("asks", book.asks)):
        if abs(side[-1].price - mid) < within:
            far = abs(side[-1].price - mid) / mid * 1e4
            return Missing(f"the {name} we were shown end {far:.2f} bps from the mid, before {NEAR_BPS}")
    sides = (book.bids, book.asks)
    bids, asks = (fsum(price * size for price, size in side if abs(price - mid) <= within) for side in sides)
    if not bids + asks:
        return Missing(f"nothing stands within {NEAR_BPS} bps of the mid")
    return (bids - asks) / (bids + asks)


def _slippage(levels: Sequence[Quote], mid: float) -> Known[float]:
    """How far from the mid, in basis points, $100k fill on average."""
    left, quantity = SIZE_USD, 0.0
    for price, size in levels:
        if price * size >= left:
            quantity += left / price
            return abs(SIZE_USD / quantity - mid) / mid * 1e4
        left -= price * size
        quantity += size
    return Missing(f"insufficient depth: ${SIZE_USD - left:,.0f} of ${SIZE_USD:,.0f} are on offer")


def _read_side(side: Side, book: Book) -> _SideSnapshot:
    levels = book.bids if side is Side.LONG else book.asks
    return _SideSnapshot(book.at, dict(levels), levels[-1].price, median(level.size for level in levels))


def _find_fakes(side: Side, shown: Sequence[_SideSnapshot], traded: Traded) -> Walls:
    """Each price once: as it was first seen."""
    fakes: dict[float, FakeWall] = {}
    unjudged: set[float] = set()
    taker = Side.SHORT if side is Side.LONG else Side.LONG
    for position, book in enumerate(shown):
        for price, size in book.sizes.items():
            if price in fakes or size < WALL * book.middle:
                continue
            gone = _find_removal(side, price, book.middle, shown[position + 1 :])
            if gone is None:
                continue
            taken = traded(taker, price, book.at, gone)
            if isinstance(taken, Missing):
                unjudged.add(price)
            elif taken < TRADED_AWAY * size:
                fakes[price] = FakeWall(side, price, size, size / book.middle, book.at, gone)
    return Walls(tuple(fakes.values()), len(unjudged - fakes.keys()))


def _find_removal(side: Side, price: float, middle: float, later: Sequence[_SideSnapshot]) -> Millis | None:
    """When no more than an ordinary level was first seen there, in a book deep enough to show it."""
    for book in later:
        hidden = price < book.last if side is Side.LONG else price > book.last
        if not hidden and book.sizes.get(price, 0.0) <= middle:
            return book.at
    return None
