"""When the book of an account is held against its exchanges, and what becomes of one that does not answer."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from zuno.kernel.backoff import Backoff
from zuno.kernel.errors import Broken, Unavailable, ZunoError
from zuno.kernel.units import Millis
from zuno.trading.execute.gate_state import GateState
from zuno.trading.execute.reconcile import find_cash_difference, reconcile_venue
from zuno.trading.model.cycle import Exchange
from zuno.trading.model.market import MINUTE_MS, SECOND_MS
from zuno.trading.model.trade_events import LockSet, Protection

RECONCILE_AGAIN: Final = Backoff(5 * SECOND_MS, 5 * MINUTE_MS)
"""Between two tries to compare the book with an exchange that did not answer."""
UNCOMPARED_MS: Final = 30 * MINUTE_MS
"""How long the lock of an exchange that could not be compared lasts; set anew while it cannot be."""


class VenueComparison:
    """Compares at the start, every few minutes, and again after an outage."""

    def __init__(self, state: GateState) -> None:
        self._state = state
        self._uncompared: dict[Exchange, str] = {}
        """Exchanges that reconciliation could not ask, and why: asked again from `_compare_at`."""
        self._compare_at, self._failures = Millis(0), 0
        self._compared: dict[Exchange, Millis] = {}
        """When each exchange was last found comparable, or this process began to look."""

    async def compare_if_due(self) -> None:
        """What could not be compared is asked again ever more seldom; what could be, every few minutes: somebody may
        trade there by hand. An outage in between locks nothing until it has lasted."""
        now, every = self._state.now(), self._state.context.compare_every
        if self._uncompared:
            if now >= self._compare_at:
                await self.compare(tuple(self._uncompared))
        elif every is not None:
            due = [
                exchange
                for exchange in self._state.venues
                if now - self._compared.setdefault(exchange, now) >= every and now >= self._compare_at
            ]
            if due:
                self._compare_at = Millis(now + MINUTE_MS)
                await self._state.worker.advance(settle=True, entries=False)
                await self.compare(due, patience=UNCOMPARED_MS)

    async def compare(self, exchanges: Sequence[Exchange], patience: int = 0) -> list[str]:
        """Hold the book against exchanges. One that does not answer, for longer than `patience` since it was compared,
        locks the desk until it does: it is asked again by the watch, and the lock has an end of its own should nobody
        ask."""
        said, unknown = list[str](), False
        for exchange in exchanges:
            try:
                said += await reconcile_venue(
                    self._state.venues[exchange], self._state.writer, self._state.worker, self._state.event_time
                )
                self._uncompared.pop(exchange, None)
                self._compared[exchange] = self._state.now()
            except Broken:
                raise
            except ZunoError as error:
                if patience and self._state.now() - self._compared.get(exchange, self._state.now()) < patience:
                    unknown = True
                    continue
                self._uncompared[exchange] = str(error)
                said.append(f"{exchange} cannot be compared with the book yet: {error}")
        if self._uncompared:
            self._failures += 1
            self._compare_at = Millis(self._state.now() + round(RECONCILE_AGAIN.delay(self._failures)))
        else:
            self._failures = 0
        if self._uncompared or not unknown:  # else no lock is set, and none that stands is lifted
            await self._lock_uncompared()
        return said

    async def _lock_uncompared(self) -> None:
        """A difference that somebody has to look at locks for longer, and stays."""
        known = self._state.book.locks.get((Protection.RECONCILIATION, None))
        if known is not None and known.until is None:
            return
        if not self._uncompared:
            if known is not None:
                await self._state.lift(Protection.RECONCILIATION, None, "the exchanges answered")
            return
        if known is None or known.until is None or known.until < self._compare_at + UNCOMPARED_MS // 2:
            lock = LockSet(
                at=self._state.event_time(),
                protection=Protection.RECONCILIATION,
                symbol=None,
                until=Millis(self._state.event_time() + UNCOMPARED_MS),
                reason="; ".join(
                    f"{exchange} is not compared yet: {why}" for exchange, why in self._uncompared.items()
                )[:600],
            )
            await self._state.write([lock])

    async def find_cash_differences(self) -> dict[Exchange, Decimal]:
        if not self._state.venues:
            raise Unavailable("No exchange of this account can be asked here: its keys, or a mandate, are missing.")
        await self._state.worker.advance(settle=True, entries=False)
        found = {
            exchange: await find_cash_difference(venue, self._state.writer, self._state.worker, self._state.event_time)
            for exchange, venue in self._state.venues.items()
        }
        return {exchange: cash for exchange, cash in found.items() if cash}
