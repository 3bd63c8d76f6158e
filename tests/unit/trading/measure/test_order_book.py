"""Order books: figures against an exact walk, books that are refused, and walls that were never meant."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.kernel.units import Millis
from zuno.trading.measure.order_book import (
    BookFigures,
    FakeWall,
    Traded,
    Walls,
    book_figures,
    find_fake_walls,
    sample_minute,
    traded_in_minutes,
)
from zuno.trading.model.known import Missing, or_none
from zuno.trading.model.market import Book, Candle, Quote, Side, TapeEvent

NOW = 1_767_225_600_000
"""The start of a minute."""


def book(bids: list[tuple[float, float]], asks: list[tuple[float, float]], at: int = NOW) -> Book:
    return Book(Millis(at), tuple(Quote(*level) for level in bids), tuple(Quote(*level) for level in asks))


def figures(one: Book) -> BookFigures:
    found = book_figures(one)
    assert not isinstance(found, Missing)
    return found


def why(figure: object) -> str:
    assert isinstance(figure, Missing)
    return figure.reason


def naive_slippage_bps(levels: list[tuple[Fraction, Fraction]], mid: Fraction) -> Fraction | None:
    """A twentieth of the money at a time, exactly."""
    spent, bought, step = Fraction(0), Fraction(0), Fraction(5_000)
    queue = [[price, size] for price, size in levels]
    while spent < 100_000:
        need = min(step, 100_000 - spent)
        while need > 0:
            if not queue:
                return None
            price, size = queue[0]
            take = min(size, need / price)
            need, spent, bought = need - take * price, spent + take * price, bought + take
            queue[0][1] -= take
            if queue[0][1] == 0:
                queue.pop(0)
    return abs(spent / bought - mid) / mid * 10_000


def test_golden_book() -> None:
    found = figures(book([(99.95, 600.0), (99.5, 1000.0)], [(100.05, 200.0), (100.1, 800.0), (101.0, 500.0)]))
    assert found.mid == 100.0
    assert found.spread_bps == pytest.approx(10.0)
    # Within 0.1 of 100: bids 59,970, asks 20,010 + 80,080.
    assert or_none(found.imbalance) == pytest.approx((59_970 - 100_090) / (59_970 + 100_090))
    # Buying: 20,010 for 200, then 79,990 / 100.1 = 799.1009: 999.1009 coins for 100,000.
    assert or_none(found.buy_slippage_bps) == pytest.approx((100_000 / (200 + 79_990 / 100.1) - 100) * 100)
    assert or_none(found.sell_slippage_bps) == pytest.approx((100 - 100_000 / (600 + 40_030 / 99.5)) * 100)


sizes = st.integers(1, 60_000).map(lambda n: Fraction(n, 100))


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(sizes, min_size=1, max_size=12), st.lists(sizes, min_size=1, max_size=12), st.integers(1, 40))
def test_slippage_agrees_with_a_walk_in_fractions(bids: list[Fraction], asks: list[Fraction], step: int) -> None:
    sold = [(Fraction(1000) - 1 - n * step, size) for n, size in enumerate(bids)]
    bought = [(Fraction(1000) + 1 + n * step, size) for n, size in enumerate(asks)]
    found = figures(book([(float(p), float(s)) for p, s in sold], [(float(p), float(s)) for p, s in bought]))
    for side, levels in ((found.sell_slippage_bps, sold), (found.buy_slippage_bps, bought)):
        exact = naive_slippage_bps(levels, Fraction(1000))
        if exact is None:
            assert "depth" in why(side)
        else:
            assert or_none(side) == pytest.approx(float(exact), rel=1e-6)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(st.lists(sizes, min_size=1, max_size=12), st.lists(sizes, min_size=1, max_size=12))
def test_a_book_turned_round_leans_as_far_the_other_way(bids: list[Fraction], asks: list[Fraction]) -> None:
    def levels(rows: list[Fraction], sign: int) -> list[tuple[float, float]]:
        # Notional, not size, is mirrored, so that prices do not tilt it.
        near = [(price, float(size) / price) for n, size in enumerate(rows) for price in [1000 + sign * (n + 1) / 8]]
        return [*near, (1000 + sign * 3.0, 1.0)]

    there, back = figures(book(levels(bids, -1), levels(asks, 1))), figures(book(levels(asks, -1), levels(bids, 1)))
    lean, mirrored = or_none(there.imbalance), or_none(back.imbalance)
    assert lean is not None
    assert mirrored is not None
    assert lean == pytest.approx(-mirrored, abs=1e-9)
    assert -1 <= lean <= 1


def test_behaviour_13_a_thin_book_says_insufficient_depth() -> None:
    found = figures(book([(99.0, 100.0)], [(101.0, 900.0), (102.0, 1.0)]))
    assert "$91,002 of $100,000" in why(found.buy_slippage_bps)
    assert "$9,900 of $100,000" in why(found.sell_slippage_bps)


def test_depth_that_just_suffices_suffices_and_a_dollar_less_does_not() -> None:
    enough, short = (figures(book([(100.0, 1.0)], [(200.0, size)])) for size in (500.0, 499.995))
    assert or_none(enough.buy_slippage_bps) == pytest.approx(50 / 150 * 1e4)
    assert "$99,999 of $100,000" in why(short.buy_slippage_bps)


def test_the_lean_counts_ten_basis_points_and_no_further() -> None:
    asks = [(1000.5, 1.0), (1002.0, 7.0)]
    at, beyond = (figures(book([(999.5, 1.0), (price, 50.0)], asks)) for price in (999.0, 998.99))
    assert or_none(at.imbalance) == pytest.approx((999.5 + 999 * 50 - 1000.5) / (999.5 + 999 * 50 + 1000.5))
    assert or_none(beyond.imbalance) == pytest.approx(-1 / 2000)


def test_a_spread_wider_than_the_band_has_no_lean() -> None:
    assert "10 bps" in why(figures(book([(99.0, 1.0)], [(101.0, 1.0)])).imbalance)


@pytest.mark.parametrize(
    ("bids", "asks", "reason"),
    [
        ([], [(1.0, 1.0)], "the book has no bids"),
        ([(1.0, 1.0)], [], "the book has no asks"),
        ([(2.0, 1.0)], [(1.0, 1.0)], "the book is crossed: 2.0 is bid, 1.0 is asked"),
        ([(2.0, 1.0)], [(2.0, 1.0)], "the book is crossed: 2.0 is bid, 2.0 is asked"),
        ([(-1.0, 1.0)], [(1.0, 1.0)], "the book has 1.0 for -1.0 among its bids"),
        ([(1.0, 1.0)], [(2.0, -3.0)], "the book has -3.0 for 2.0 among its asks"),
        ([(1.0, 0.0)], [(2.0, 1.0)], "the book has 0.0 for 1.0 among its bids"),
        ([(math.nan, 1.0)], [(2.0, 1.0)], "the book has 1.0 for nan among its bids"),
        ([(1.0, 1.0)], [(2.0, math.inf)], "the book has inf for 2.0 among its asks"),
        ([(1.0, 1.0)], [(2.0, 1.0), (math.inf, 1.0)], "the book has 1.0 for inf among its asks"),
        ([(1.0, 1.0), (1.5, 1.0)], [(2.0, 1.0)], "the book's bids are not in order, best first"),
        ([(1.0, 1.0)], [(3.0, 1.0), (2.0, 1.0)], "the book's asks are not in order, best first"),
        ([(1.0, 1.0), (1.0, 1.0)], [(2.0, 1.0)], "the book's bids are not in order, best first"),
    ],
)
def test_a_book_that_cannot_be_is_refused_with_its_reason(
    bids: list[tuple[float, float]], asks: list[tuple[float, float]], reason: str
) -> None:
    assert why(book_figures(book(bids, asks))) == reason


# -- five snapshots over a minute


def chosen(*seconds_before: float) -> list[float]:
    """Of books so long before now, in whatever order: which are taken."""
    books = [ladder(NOW - round(seconds * 1_000)) for seconds in seconds_before]
    return [(NOW - one.at) / 1_000 for one in sample_minute(books)]


def test_five_of_a_collectors_books_are_spread_over_the_minute() -> None:
    assert chosen(*range(0, 73, 9)) == [63, 45, 27, 18, 0]
    assert chosen(*range(8, 70, 9)) == [62, 53, 35, 26, 8]
    assert chosen(*range(70)) == [60, 45, 30, 15, 0]


def test_the_nearest_counts_however_irregular_they_came() -> None:
    assert chosen(1, 2, 3, 4, 17, 33, 40, 47, 58, 66) == [58, 47, 33, 17, 1]
    assert chosen(0, 10, 20, 30, 45, 60) == [60, 45, 30, 10, 0]  # of two as near, the later
    assert chosen(0, 1, 2, 3, 4, 50) == [50, 4, 3, 2, 0]  # each once, though one is the nearest to two


@pytest.mark.parametrize("few", [(), (0,), (7, 0), (1, 2, 3, 4), (48.5, 36.5, 24.5, 12.5, 0.5), (0, 1, 2, 3, 70)])
def test_no_more_than_five_are_all_taken_oldest_first(few: tuple[float, ...]) -> None:
    assert chosen(*few) == sorted(few, reverse=True)


def test_a_book_told_twice_is_taken_once() -> None:
    assert chosen(0, 0, 15, 15, 30, 30) == [30, 15, 0]
    assert chosen(0, 0, 14, 14, 29, 44, 59, 61) == [59, 44, 29, 14, 0]


def test_a_book_that_is_none_stands_in_no_ones_place() -> None:
    books = [ladder(NOW - late * 1_000) for late in range(0, 73, 9)]
    crossed = replace(books[5], bids=books[5].asks, asks=books[5].bids)
    assert [(NOW - one.at) // 1_000 for one in sample_minute([*books[:5], crossed, *books[6:]])] == [63, 36, 27, 18, 0]
    newest = replace(books[0], bids=books[0].asks, asks=books[0].bids)
    assert sample_minute([newest, *books[1:]])[-1] == newest  # what is wrong now is to be seen


@pytest.mark.slow
@given(st.lists(st.integers(0, 70_000), max_size=16))
def test_of_any_books_five_or_all_are_taken_and_the_newest_is(before: list[int]) -> None:
    taken = sample_minute([ladder(NOW - late) for late in before])
    moments = [book.at for book in taken]
    assert moments == sorted(set(moments))
    assert len(moments) == min(5, len(set(before)))
    assert moments[-1:] == ([NOW - min(before)] if before else [])


# -- walls


def on_tape(trades: list[TapeEvent]) -> Traded:
    """What was taken, from every trade of the time."""

    def taken(side: Side, price: float, since: Millis, until: Millis) -> float:
        of_it = (one for one in trades if one.side is side and one.price == price and since < one.at <= until)
        return sum(one.quantity for one in of_it)

    return taken


NO_TRADE = on_tape([])


def ladder(at: int, wall: float | None = None, side: Side = Side.SHORT, levels: int = 9) -> Book:
    """Ten a level on both sides; on one, the third level may be something else."""
    bids = [(100.0 - n, 10.0) for n in range(1, levels + 1)]
    asks = [(100.0 + n, 10.0) for n in range(1, levels + 1)]
    rows = asks if side is Side.SHORT else bids
    if wall is not None:
        rows[2:3] = [(rows[2][0], wall)] if wall else []
    return book(bids, asks, at)


def minute(*walls: float | None, side: Side = Side.SHORT, step: int = 15_000) -> list[Book]:
    return [ladder(NOW + n * step, wall, side) for n, wall in enumerate(walls)]


def found_in(snapshots: list[Book], trades: list[TapeEvent] | None = None) -> tuple[FakeWall, ...]:
    return walls_of(snapshots, on_tape(trades or [])).fake


def walls_of(snapshots: list[Book], traded: Traded) -> Walls:
    walls = find_fake_walls(snapshots, traded)
    assert not isinstance(walls, Missing)
    return walls


def trade(at: int, price: float, quantity: float, side: Side = Side.LONG) -> TapeEvent:
    return TapeEvent(Millis(at), side, price, quantity, price * quantity, str(at))


@pytest.mark.parametrize("side", list(Side))
def test_a_wall_that_vanishes_untraded_is_fake(side: Side) -> None:
    (wall,) = found_in(minute(None, 60.0, 60.0, 0.0, 0.0, side=side))
    price = 103.0 if side is Side.SHORT else 97.0
    assert (wall.side, wall.price, wall.size, wall.times_median) == (side, price, 60.0, 6.0)
    assert (wall.seen, wall.gone) == (NOW + 15_000, NOW + 45_000)


def test_five_times_the_median_is_a_wall_and_less_is_not() -> None:
    assert len(found_in(minute(None, 50.0, 0.0, None, None))) == 1
    assert found_in(minute(None, 49.9, 0.0, None, None)) == ()


def test_a_wall_of_which_a_fifth_traded_was_honest() -> None:
    walls = minute(50.0, 50.0, 50.0, 0.0, 0.0)
    inside = NOW + 40_000
    assert found_in(walls, [trade(inside, 103.0, 10.0)]) == ()
    assert len(found_in(walls, [trade(inside, 103.0, 9.9)])) == 1


def test_only_takers_of_the_other_side_at_that_price_and_in_that_time_eat_a_wall() -> None:
    walls, inside = minute(50.0, 50.0, 50.0, 0.0, 0.0), NOW + 40_000
    elsewhere = [trade(inside, 104.0, 50.0), trade(inside, 103.0, 50.0, Side.SHORT), trade(NOW + 46_000, 103.0, 50.0)]
    assert len(found_in(walls, elsewhere)) == 1
    assert found_in(minute(50.0, 50.0, 50.0, 0.0, 0.0, side=Side.LONG), [trade(inside, 97.0, 50.0, Side.SHORT)]) == ()


def test_a_wall_that_stands_or_shrinks_to_less_is_not_fake_until_only_the_ordinary_is_left() -> None:
    assert found_in(minute(50.0, 50.0, 50.0, 50.0, 50.0)) == ()
    assert found_in(minute(50.0, 30.0, 20.0, 11.0, 10.5)) == ()
    assert len(found_in(minute(50.0, 30.0, 20.0, 11.0, 10.0))) == 1


def test_a_wall_may_come_and_go_between_neighbouring_snapshots() -> None:
    (wall,) = found_in(minute(None, None, None, 50.0, 0.0))
    assert (wall.seen, wall.gone) == (NOW + 45_000, NOW + 60_000)


def test_a_wall_is_told_once_however_often_it_was_seen() -> None:
    assert len(found_in(minute(50.0, 60.0, 70.0, 0.0, 0.0))) == 1


def test_a_wall_beyond_the_end_of_a_later_book_is_not_judged() -> None:
    check_nesting = [ladder(NOW, 50.0), *(ladder(NOW + n * 15_000, levels=2) for n in range(1, 5))]
    assert found_in(check_nesting) == ()


def test_the_last_level_a_book_shows_is_shown() -> None:
    for side in Side:
        wall = [ladder(NOW, 50.0, side), *(ladder(NOW + n * 15_000, 10.0, side, levels=3) for n in range(1, 5))]
        assert len(found_in(wall)) == 1


def test_a_minute_is_sixty_seconds_and_the_ten_a_book_may_be_late() -> None:
    walls = minute(50.0, 50.0, 50.0, 0.0, 0.0)
    just, late = ([*walls[:-1], ladder(NOW + at, 0.0)] for at in (70_000, 70_001))
    assert len(found_in(walls)) == 1
    assert len(found_in(just)) == 1
    assert "4 sound" in why(find_fake_walls(late, NO_TRADE))


def test_fewer_than_five_sound_snapshots_of_a_minute_show_no_wall_vanish() -> None:
    walls = minute(50.0, 50.0, 50.0, 0.0, 0.0)
    crossed = book([(2.0, 1.0)], [(1.0, 1.0)], NOW + 15_000)
    assert "4 sound" in why(find_fake_walls([walls[0], crossed, *walls[2:]], NO_TRADE))
    assert why(find_fake_walls([], NO_TRADE)).startswith("0 sound")
    assert why(find_fake_walls(minute(50.0, 50.0, 50.0, 0.0, 0.0, step=17_501), NO_TRADE)).startswith("4 sound")


def test_the_last_five_snapshots_count_in_whatever_order_they_come() -> None:
    walls = [ladder(NOW - 60_000, 90.0), *minute(None, 50.0, 0.0, None, None)]
    assert [wall.size for wall in found_in(walls[::-1])] == [50.0]


def candle(at: int, low: float, high: float, volume: float, taker_buy: float | None) -> Candle:
    return Candle(Millis(at), low, high, low, high, volume, taker_buy)


def test_without_a_tape_the_minutes_bound_what_can_have_traded() -> None:
    walls = minute(50.0, 50.0, 50.0, 0.0, 0.0)
    untouched = traded_in_minutes([candle(NOW, 99.0, 102.9, 1000.0, 1000.0)])
    touched = traded_in_minutes([candle(NOW, 99.0, 103.0, 1000.0, 10.0)])
    sold = traded_in_minutes([candle(NOW, 99.0, 103.0, 1000.0, 9.9999)])
    unsaid = traded_in_minutes([candle(NOW, 99.0, 103.0, 10.0, None)])
    assert len(walls_of(walls, untouched).fake) == 1
    assert walls_of(walls, touched) == Walls((), 0)
    assert len(walls_of(walls, sold).fake) == 1
    assert walls_of(walls, unsaid) == Walls((), 0)
    bids = minute(50.0, 50.0, 50.0, 0.0, 0.0, side=Side.LONG)
    assert walls_of(bids, traded_in_minutes([candle(NOW, 97.0, 99.0, 1000.0, 990.0)])).fake == ()
    assert len(walls_of(bids, traded_in_minutes([candle(NOW, 97.0, 99.0, 1000.0, 991.0)])).fake) == 1
    assert walls_of(walls, traded_in_minutes([])) == Walls((), 1)


def test_a_wall_that_vanished_within_the_running_minute_is_not_judged() -> None:
    closed = traded_in_minutes([candle(NOW - 60_000, 99.0, 102.0, 1000.0, 1000.0)])
    before, within = (
        [ladder(NOW - 45_000 + n * 15_000, 50.0 if n < gone else 0.0) for n in range(5)] for gone in (3, 4)
    )
    assert [wall.gone for wall in walls_of(before, closed).fake] == [NOW]
    assert walls_of(within, closed) == Walls((), 1)


def test_a_wall_nobody_can_judge_does_not_hide_another() -> None:
    books = [ladder(NOW + n * 15_000, wall) for n, wall in enumerate((50.0, 0.0, None, None, None))]
    bids = [ladder(NOW + n * 15_000, wall, Side.LONG) for n, wall in enumerate((60.0, 60.0, 60.0, 0.0, 0.0))]
    both = [replace(ask, bids=bid.bids) for ask, bid in zip(books, bids, strict=True)]

    def known_late(side: Side, price: float, since: Millis, until: Millis) -> float | Missing:
        return 0.0 if until > NOW + 15_000 else Missing("not heard yet")

    found = walls_of(both, known_late)
    assert ([wall.price for wall in found.fake], found.unjudged) == ([97.0], 1)


def test_minutes_that_are_missing_only_matter_where_a_wall_vanished() -> None:
    assert walls_of(minute(None, None, None, None, None), traded_in_minutes([])) == Walls((), 0)


@pytest.mark.parametrize("far", [9.9, 10.0])
def test_a_lean_needs_a_book_that_reaches_as_far_as_it_is_read(far: float) -> None:
    near, end = 10_000 * 1e-4, 10_000 * far / 1e4
    whole = [(10_000 - near, 1.0), (10_000 - 20.0, 1.0)]
    cut = [(10_000 + near, 1.0), (10_000 + end, 1.0)]
    found = book_figures(book(whole, cut))
    assert not isinstance(found, Missing)
    assert isinstance(found.imbalance, Missing) == (far < 10)
