"""Nobody overspends: not one call, not two at once, not two processes, not a book that cannot be read."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.asking import CENT, GOOD, Desk, question, twin
from tests.wire.fakes.clock import FixedClock
from tests.wire.fakes.model import ScriptedModel, Silence, in_order
from zuno.adapters.model.daily_spend import KEPT_DAYS, DailySpendFile, DailySpendInMemory
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Seconds
from zuno.llm.ask import ask
from zuno.llm.budget import DAY, DayShare, Limits, Reservation, RunBudget
from zuno.llm.port import Ceiling, DailySpend, Failed, Spend

TODAY = 20_000


def endless(name: str = "scripted", **how: object) -> ScriptedModel:
    return ScriptedModel(lambda request: GOOD, name, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("ceiling", [Ceiling(tokens=1_500), Ceiling(usd=Decimal(1))], ids=str)
@pytest.mark.parametrize("span", ["run", "day"])
async def test_a_call_that_could_pass_the_limit_is_not_made(tmp_path: Path, span: str, ceiling: Ceiling) -> None:
    desk = Desk(tmp_path, Limits(**{span: ceiling}))
    model = endless(usd_per_token=CENT)
    spoken = await ask(question(), desk.model_context(model))
    assert (spoken.source, spoken.value, model.asked) == ("fallback", twin(), [])
    assert desk.outcomes() == ["budget"]
    assert "budget" in spoken.why
    assert str(ceiling) in spoken.why
    assert desk.budget.spent == Spend()
    assert await desk.days.total(TODAY) == Spend()


async def test_the_next_model_may_still_fit(tmp_path: Path) -> None:
    desk = Desk(tmp_path, Limits(run=Ceiling(usd=Decimal(1))))
    spoken = await ask(question(), desk.model_context(endless("dear", usd_per_token=CENT), endless("free")))
    assert (spoken.source, spoken.model) == ("model", "free")
    assert desk.outcomes() == ["budget", "ok"]


async def test_an_unknown_price_is_closed_while_dollars_are_limited(tmp_path: Path) -> None:
    model = endless(usd_per_token=None)
    for limits in (Limits(run=Ceiling(usd=Decimal(1000))), Limits(day=Ceiling(usd=Decimal(1000)))):
        desk = Desk(tmp_path, limits)
        spoken = await ask(question(), desk.model_context(model))
        assert (desk.outcomes(), model.asked) == (["budget"], [])
        assert "ZUNO_MODEL_PRICES" in spoken.why


async def test_an_unknown_price_without_a_dollar_limit_is_shown_as_unknown(tmp_path: Path) -> None:
    desk = Desk(tmp_path, Limits(run=Ceiling(tokens=10_000)))
    spoken = await ask(question(), desk.model_context(endless(usd_per_token=None)))
    assert (spoken.source, spoken.attempts[0].usd, desk.budget.unpriced) == ("model", None, 1)
    assert desk.budget.spent.tokens == 150


async def test_two_questions_at_once_cannot_overspend(tmp_path: Path) -> None:
    """Each alone fits; together they would not. The second finds the first one's reservation."""
    desk = Desk(tmp_path, Limits(run=Ceiling(tokens=3_000)))
    model_context = desk.model_context(endless(seconds=0.05))
    spoken = await asyncio.gather(*(ask(question(round=at), model_context) for at in range(5)))
    assert [one.source for one in spoken].count("model") == 1
    assert desk.outcomes().count("budget") == 4
    assert desk.budget.spent.tokens == 150
    again = await ask(question(round=9), model_context)
    assert again.source == "model"


async def test_two_runs_at_once_cannot_overspend_the_day(tmp_path: Path) -> None:
    day = DailySpendFile(tmp_path / "spent.json")
    limits = Limits(day=Ceiling(tokens=3_000))
    desks = [Desk(tmp_path, limits, days=day) for _ in range(4)]
    spoken = await asyncio.gather(*(ask(question(), desk.model_context(endless(seconds=0.05))) for desk in desks))
    assert [one.source for one in spoken].count("model") == 1
    assert await day.total(TODAY) == Spend(150)


async def test_failed_calls_are_counted(tmp_path: Path) -> None:
    desk = Desk(tmp_path, timeout=0.02)
    lines = in_order([Silence(), Failed("unavailable", "it broke off"), "prose", "prose"])
    model_context = desk.model_context(ScriptedModel(lines, usd_per_token=CENT))
    spent = [desk.budget.spent]
    for at in range(3):
        await ask(question(round=at), model_context)
        spent.append(desk.budget.spent)
    assert all(later.tokens > before.tokens and later.usd > before.usd for before, later in pairwise(spent))
    assert await desk.days.total(TODAY) == spent[-1]


async def test_a_new_day_is_a_new_budget(tmp_path: Path) -> None:
    desk = Desk(tmp_path, Limits(day=Ceiling(tokens=2_500)))
    model_context = desk.model_context(ScriptedModel(lambda request: GOOD, usage=(1_000, 500)))
    assert [(await ask(question(round=at), model_context)).source for at in range(3)] == [
        "model",
        "fallback",
        "fallback",
    ]
    desk.clock.advance(DAY)
    assert (await ask(question(round=3), model_context)).source == "model"
    assert await desk.days.total(TODAY + 1) == Spend(1_500)


async def test_a_share_of_the_day_is_counted_in_both_books_and_leaves_the_rest_alone() -> None:
    clock, days, part = FixedClock(Seconds(TODAY * DAY)), DailySpendInMemory(), DailySpendInMemory()
    limits = Limits(day=Ceiling(tokens=1_000))
    share = DayShare(Ceiling(tokens=300), part)
    first = await RunBudget(limits, days, clock, share).reserve(300, Decimal(0))
    assert isinstance(first, Reservation)
    second = RunBudget(limits, days, clock, share)
    assert isinstance(await second.reserve(1, Decimal(0)), str)
    assert (second.spent, await days.total(TODAY), await part.total(TODAY)) == (Spend(), Spend(300), Spend(300))
    await second.settle(first, 200, Decimal(0))
    assert await days.total(TODAY) == await part.total(TODAY) == Spend(200)
    assert isinstance(await RunBudget(limits, days, clock).reserve(790, Decimal(0)), Reservation)
    assert isinstance(await second.reserve(90, Decimal(0)), str), "the whole day's limit holds as well"
    assert (await days.total(TODAY), await part.total(TODAY)) == (Spend(990), Spend(200))


async def test_a_call_over_midnight_is_settled_on_the_day_it_began(tmp_path: Path) -> None:
    clock = FixedClock(Seconds(TODAY * DAY))
    days = DailySpendInMemory()
    budget = RunBudget(Limits(), days, clock)
    reservation = await budget.reserve(1_000, Decimal(1))
    assert isinstance(reservation, Reservation)
    clock.advance(DAY)
    await budget.settle(reservation, 300, Decimal("0.5"))
    assert await days.total(TODAY) == budget.spent == Spend(300, Decimal("0.5"))
    assert await days.total(TODAY + 1) == Spend()


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b"3", b'{"20000": 3}', b'{"x": {}}', b'{"20000": {"tokens": 1, "usd": "NaN"}}', b"\xff"],
)
async def test_a_damaged_book_is_closed_and_says_so(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "spent.json").write_bytes(damage)
    desk = Desk(tmp_path, days=DailySpendFile(tmp_path / "spent.json"))
    model = endless()
    spoken = await ask(question(), desk.model_context(model))
    assert (desk.outcomes(), model.asked, desk.budget.spent) == (["budget"], [], Spend())
    assert "spent.json" in spoken.why


async def test_a_book_that_breaks_during_the_call_keeps_the_reservation(tmp_path: Path) -> None:
    path = tmp_path / "spent.json"
    desk = Desk(tmp_path, days=DailySpendFile(path))

    def breaks(request: object) -> str:
        self_damage = json.loads(path.read_text())
        assert self_damage[str(TODAY)]["tokens"] > 1_500
        path.write_text("{")
        return GOOD

    spoken = await ask(question(), desk.model_context(ScriptedModel(breaks)))
    assert spoken.source == "model"


@pytest.fixture(params=["memory", "file"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> DailySpend:
    return DailySpendInMemory() if request.param == "memory" else DailySpendFile(tmp_path / "spent.json")


async def test_a_book_adds_up_and_refuses_what_does_not_fit(book: DailySpend) -> None:
    ceiling = Ceiling(100, Decimal("0.3"))
    assert await book.book(1, Spend(60, Decimal("0.1")), ceiling)
    assert not await book.book(1, Spend(41, Decimal(0)), ceiling)
    assert not await book.book(1, Spend(0, Decimal("0.21")), ceiling)
    assert await book.book(1, Spend(40, Decimal("0.2")), ceiling)
    assert await book.book(1, Spend(-50, Decimal("-0.1")), Ceiling())
    assert await book.total(1) == Spend(50, Decimal("0.2"))
    assert await book.total(2) == Spend()


async def test_the_file_forgets_old_days(tmp_path: Path) -> None:
    book = DailySpendFile(tmp_path / "spent.json")
    for day in range(KEPT_DAYS + 10):
        await book.book(day, Spend(1), Ceiling())
    assert len(json.loads((tmp_path / "spent.json").read_text())) == KEPT_DAYS
    assert await book.total(KEPT_DAYS + 9) == Spend(1)


async def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "gone").touch()
    with pytest.raises(Unavailable, match=r"spent\.json"):
        await DailySpendFile(tmp_path / "gone" / "spent.json").book(1, Spend(1), Ceiling())


@given(
    calls=st.lists(
        st.tuples(st.integers(1, 500), st.integers(0, 500), st.booleans()),
        max_size=30,
    ),
    limit=st.integers(0, 3_000),
)
async def test_whatever_happens_no_more_than_the_limit_is_spent(calls: list[tuple[int, int, bool]], limit: int) -> None:
    """As long as a call takes no more than was set aside for it, the sum stays under the ceiling at every moment."""
    days = DailySpendInMemory()
    budget = RunBudget(Limits(Ceiling(limit), Ceiling(limit)), days, FixedClock(Seconds(0)))
    for reserved, share, settled in calls:
        reservation = await budget.reserve(reserved, Decimal(0))
        if isinstance(reservation, Reservation) and settled:
            await budget.settle(reservation, reserved * share // 500, Decimal(0))
        assert 0 <= budget.spent.tokens <= limit
        assert await days.total(0) == budget.spent


BOOKING = """
import asyncio, sys
from pathlib import Path
from zuno.adapters.model.daily_spend import DailySpendFile
from zuno.llm.port import Ceiling, Spend

async def main():
    book = DailySpendFile(Path(sys.argv[1]))
    print(sum([await book.book(1, Spend(1), Ceiling(tokens=350)) for _ in range(200)]))

asyncio.run(main())
"""


@pytest.mark.slow
def test_two_processes_share_one_book(tmp_path: Path) -> None:
    """Four hundred bookings race for three hundred and fifty tokens: not one too many, not one lost."""
    command = [sys.executable, "-c", BOOKING, str(tmp_path / "spent.json")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    booked = [int(process.communicate(timeout=60)[0]) for process in both]
    assert sum(booked) == 350
    assert json.loads((tmp_path / "spent.json").read_text())["1"]["tokens"] == 350
