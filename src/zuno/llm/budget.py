"""Token and dollar budgets: reserved before a call, settled after it, so that parallel calls cannot overspend."""

from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal

from zuno.kernel.clock import Clock
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Seconds
from zuno.llm.port import Ceiling, DailySpend, Spend

DAY = Seconds(86_400)
NOTHING = Spend()
NO_LIMIT = Ceiling()


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that may be spent, by one run and by everyone on one UTC day."""

    run: Ceiling = NO_LIMIT
    day: Ceiling = NO_LIMIT

    @property
    def dollars(self) -> bool:
        return self.run.usd is not None or self.day.usd is not None


@dataclass(frozen=True, slots=True)
class DayShare:
    """A part of the day's budget, with its own limit and book."""

    limit: Ceiling
    days: DailySpend


@dataclass(frozen=True, slots=True)
class Reservation:
    """What was set aside for one call.

    It counts as spent until it is settled, so a call that is cancelled or never returns has been paid for.
    """

    spend: Spend
    day: int


@dataclass(slots=True)
class RunBudget:
    """The budget of one run. Fails closed: an unknown price or an unreadable day book refuses too."""

    limits: Limits
    days: DailySpend
    clock: Clock
    share: DayShare | None = None
    """What this run may use of the day; None: all of it."""
    spent: Spend = NOTHING
    unpriced: int = 0
    """Calls of unknown price: their tokens are counted, their dollars are not."""

    async def reserve(self, tokens: int, usd: Decimal | None) -> Reservation | str:
        """Reserve the estimate, or return why not."""
        if usd is None and self.limits.dollars:
            return "its price is not known and dollars are limited (ZUNO_MODEL_PRICES can name it)"
        change = Spend(tokens, usd or Decimal(0))
        if self.limits.run.is_exceeded_by(self.spent + change):
            return f"the call could pass this run's budget of {self.limits.run}"
        # Counted before the day is asked: another call of this run may come in between.
        self.spent += change
        day = self.clock.now() // DAY
        try:
            refusal = await self._book_day(day, change)
        except Unavailable as error:
            refusal = f"what was spent today is not known: {error}"
        if refusal is not None:
            self.spent -= change
            return refusal
        self.unpriced += usd is None
        return Reservation(change, day)

    async def settle(self, reservation: Reservation, tokens: int, usd: Decimal | None) -> None:
        """Replace the estimate by the real usage; unknown dollars stay estimated."""
        change = Spend(tokens, reservation.spend.usd if usd is None else usd) - reservation.spend
        self.spent += change
        with suppress(Unavailable):  # the reservation stays in the book: too much is counted there, never too little
            await self.days.book(reservation.day, change, NO_LIMIT)
            if self.share is not None:
                await self.share.days.book(reservation.day, change, NO_LIMIT)

    async def _book_day(self, day: int, change: Spend) -> str | None:
        """None, or why it could not be booked."""
        if self.share is not None and not await self.share.days.book(day, change, self.share.limit):
            return _explain_day_limit(self.share.limit)
        if await self.days.book(day, change, self.limits.day):
            return None
        if self.share is not None:
            await self.share.days.book(day, NOTHING - change, NO_LIMIT)
        return _explain_day_limit(self.limits.day)


def _explain_day_limit(ceiling: Ceiling) -> str:
    return f"the call could pass today's budget of {ceiling}"
