"""What the dollar and stocks did: of the venue that is asked first, else of the one that stands in for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.wire.desk_bundles import AS_OF, bundle_of, without
from zuno.kernel.units import Millis, Seconds
from zuno.markets.feeds import FRED, YAHOO
from zuno.trading.measure.features import DOLLAR, PRINTS, STOCKS, FigureChange, MacroQuote, read_price_context
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import DAY_MS, MacroRelease, macro

WHOLE = bundle_of()
MOVES = {"DXY": 0.01, "DTWEXBGS": -0.02, "NASDAQ": 0.03, "NASDAQCOM": -0.04}
"""Of five prints, as a share: every one another, so that it shows whose a change is."""


def printed(figure: str, count: int = 20) -> tuple[MacroRelease, ...]:
    """The move is of the last five days; the days before stood still."""
    start = {"DXY": 103.0, "DTWEXBGS": 121.0}.get(figure, 17_000.0)
    days = range(count, 0, -1)
    values = [start * (1 + MOVES[figure] * max(0, PRINTS + 1 - day) / PRINTS) for day in days]
    at = [Millis(AS_OF - day * DAY_MS) for day in days]
    return tuple(MacroRelease(day, value, day) for day, value in zip(at, values, strict=True))


def told(**changed: tuple[MacroRelease, ...]) -> Bundle:
    rows = {figure: printed(figure) for figure in MOVES} | changed
    blocks = tuple(replace(one, rows=rows.get(one.series.name, one.rows)) for one in WHOLE.blocks)
    return replace(WHOLE, blocks=blocks)


def stale(bundle: Bundle, *names: str) -> Bundle:
    blocks = tuple(
        replace(one, age=Seconds(one.limit + 1)) if str(one.series) in names else one for one in bundle.blocks
    )
    return replace(bundle, blocks=blocks)


def name(one: MacroQuote) -> str:
    return str(macro(one.venue, one.figure))


def found(bundle: Bundle) -> tuple[Known[FigureChange], Known[FigureChange]]:
    signs = read_price_context(bundle)
    return signs.dollar, signs.stocks


def of(one: MacroQuote) -> FigureChange:
    return FigureChange(one, pytest.approx(MOVES[one.figure]))  # type: ignore[arg-type]


@pytest.mark.parametrize("lose", [without, stale])
@pytest.mark.parametrize("lost", [(), (0,), (1,)])
def test_the_first_venue_is_believed_and_the_second_stands_in(
    lose: Callable[..., Bundle], lost: tuple[int, ...]
) -> None:
    bundle = lose(told(), *(name(several[place]) for several in (DOLLAR, STOCKS) for place in lost))
    whose = 1 if lost == (0,) else 0
    assert found(bundle) == (of(DOLLAR[whose]), of(STOCKS[whose]))


def test_each_is_replaced_alone() -> None:
    assert found(without(told(), name(DOLLAR[0]))) == (of(DOLLAR[1]), of(STOCKS[0]))
    assert found(without(told(), name(STOCKS[0]))) == (of(DOLLAR[0]), of(STOCKS[1]))


def test_too_few_prints_are_never_filled_up_with_those_of_another_index() -> None:
    few = printed("DXY", PRINTS)
    assert found(told(DXY=few))[0] == of(DOLLAR[1])
    both = found(told(DXY=few, DTWEXBGS=printed("DTWEXBGS", PRINTS)))[0]
    said = f"{PRINTS} prints are known, {PRINTS + 1} are needed"
    assert both == Missing(f"yahoo/DXY: {said}; fred/DTWEXBGS: {said}")


def test_where_neither_is_known_both_reasons_are_told() -> None:
    bundle = stale(without(told(), name(DOLLAR[0])), name(DOLLAR[1]))
    dollar, stocks = found(bundle)
    assert stocks == of(STOCKS[0])
    assert isinstance(dollar, Missing)
    first, second = dollar.reason.split("; ")
    assert "yahoo/DXY: " in first
    assert "fred/DTWEXBGS: " in second


def test_what_stands_in_has_a_name_of_its_own() -> None:
    assert [one.venue for several in (DOLLAR, STOCKS) for one in several] == [YAHOO, FRED] * 2
    assert DOLLAR[1].called != DOLLAR[0].called
    assert "not DXY" in DOLLAR[1].called, "the broad dollar index is another one"
    assert "FRED" in STOCKS[1].called
