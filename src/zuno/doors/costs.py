"""What models cost, by role and day, as the journal has it: every attempt is in it, whatever came of it."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from zuno.journal.port import Entry, Journal
from zuno.kernel.clock import iso
from zuno.kernel.units import Millis
from zuno.kernel.view import ForeignText, View
from zuno.llm.port import Attempt

MOST_ATTEMPTS: Final = 5_000
"""The newest of them; older days are left out."""


class RoleCostView(View):
    """One role on one UTC day."""

    day: str
    role: ForeignText
    attempts: int
    failed: int
    """Attempts without a usable answer."""
    tokens_in: int
    tokens_out: int
    usd: float
    unpriced: int
    """Attempts whose price is not known; they add nothing to `usd`."""
    models: tuple[ForeignText, ...]


class CostsView(View):
    """Newest day first, then by role. Peers of a mesh keep their attempts in journals of their own."""

    as_of: str | None
    """Of the newest attempt; null where none was made. The journal is the source."""
    attempts: int
    usd: float
    unpriced: int
    cut: bool
    """Whether older attempts were left out."""
    rows: tuple[RoleCostView, ...]


class ModelCosts:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def show(self) -> CostsView:
        entries = await self._journal.latest(MOST_ATTEMPTS, kind="model_attempt")
        return sum_costs(entries, cut=len(entries) == MOST_ATTEMPTS)


def sum_costs(entries: Iterable[Entry], *, cut: bool) -> CostsView:
    groups: dict[tuple[str, str], list[Attempt]] = {}
    newest: int | None = None
    for entry in entries:
        newest = entry.at if newest is None else max(newest, entry.at)
        attempt = Attempt.model_validate(dict(entry.payload), strict=False)
        groups.setdefault((iso(Millis(entry.at))[:10], attempt.role), []).append(attempt)
    days = sorted(groups, key=lambda key: key[1])
    days.sort(key=lambda key: key[0], reverse=True)
    rows = tuple(_sum_role(day, role, groups[day, role]) for day, role in days)
    return CostsView(
        as_of=None if newest is None else iso(Millis(newest)),
        attempts=sum(row.attempts for row in rows),
        usd=float(sum((_sum_usd(attempts) for attempts in groups.values()), Decimal(0))),
        unpriced=sum(row.unpriced for row in rows),
        cut=cut,
        rows=rows,
    )


def _sum_role(day: str, role: str, attempts: list[Attempt]) -> RoleCostView:
    return RoleCostView(
        day=day,
        role=role,
        attempts=len(attempts),
        failed=sum(attempt.outcome != "ok" for attempt in attempts),
        tokens_in=sum(attempt.tokens_in for attempt in attempts),
        tokens_out=sum(attempt.tokens_out for attempt in attempts),
        usd=float(_sum_usd(attempts)),
        unpriced=sum(attempt.usd is None for attempt in attempts),
        models=tuple(dict.fromkeys(attempt.model for attempt in attempts)),
    )


def _sum_usd(attempts: Iterable[Attempt]) -> Decimal:
    return sum((attempt.usd for attempt in attempts if attempt.usd is not None), Decimal(0))
