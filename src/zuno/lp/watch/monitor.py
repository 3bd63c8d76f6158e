"""The monitor: reads every watched wallet, stores alerts and samples, notifies the owner, and has `act` do what
mandates allow; without one it spends nothing. A failing chain is retried with backoff and never delays another one
beyond the timeout."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from zuno.amm.model import Block
from zuno.journal.port import Journal
from zuno.kernel.backoff import Backoff
from zuno.kernel.clock import Clock
from zuno.kernel.errors import Broken, Malformed, Unavailable, UsageError, ZunoError
from zuno.kernel.lock import ProcessLock
from zuno.kernel.notify import NoticeKind, Outbox
from zuno.kernel.numbers_text import time_text
from zuno.kernel.text import to_clause
from zuno.kernel.units import Address, Seconds
from zuno.kernel.view import View
from zuno.kernel.wire import pick
from zuno.lp.model.alerts import AlertBook, Condition, Event, Subject
from zuno.lp.ports.chain import STALE, Chain, Holdings
from zuno.lp.ports.samples import AlertStore, GasSample, PoolSample, Samples
from zuno.lp.watch import rules
from zuno.lp.watch.alerts import (
    AlertEventView,
    AlertView,
    alert_view,
    append_alerts,
    event_view,
    journal_events,
    list_alerts,
)
from zuno.present.document import Document, Value, document, facts, lines, section, table
from zuno.present.values import count, foreign
from zuno.pushes.drain import OutboxDrain
from zuno.pushes.feed import JournalFeed

PATIENCE: Final = 300.0
"""Seconds one chain may take; what a search has found by then is kept, and it goes on from there."""
LONGEST_BACKOFF: Final = 900.0
WALLETS_AT_ONCE: Final = 500
"""Wallets read together: their Transfer events are one query, and geth takes no more than 1,000 in one."""
TOLD_EVERY: Final = 10.0
"""Seconds between two lines of progress."""
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Watch:
    """A wallet on a chain. Without a wallet: the one the chain is configured for."""

    chain: str
    wallet: Address | None = None
    local: bool = False
    """A world with a clock of its own, which may be made anew: ages mean nothing there."""


class ChainLookView(View):
    chain: str
    block: int | None
    timestamp: int | None
    wallets: int
    positions: int
    in_range: int
    near_edge: int
    out_of_range: int
    empty: int
    unread: int
    failure: str
    notes: tuple[str, ...]

    @property
    def cells(self) -> tuple[str | Value, ...]:
        counts = (self.positions, self.in_range, self.near_edge, self.out_of_range, self.empty, self.unread)
        block = "" if self.block is None else count(self.block)
        return self.chain, block, *map(count, counts), foreign("; ".join(self.notes))


class TickView(View):
    """One look at everything."""

    at: int
    chains: tuple[ChainLookView, ...]
    resting: tuple[str, ...]
    """Chains that failed and are left alone for now."""
    events: tuple[AlertEventView, ...]
    alerts: tuple[AlertView, ...]
    waiting: int
    notes: tuple[str, ...]

    @property
    def read_nothing(self) -> bool:
        """Every chain failed, or is left alone because it did."""
        return bool(self.chains or self.resting) and all(chain.failure and not chain.wallets for chain in self.chains)

    def to_document(self) -> Document:
        columns = ("chain", "block", "positions", "in range", "near edge", "out of range", "empty", "unread", "note")
        rows = (look.cells for look in self.chains)
        out, positions = sum(look.out_of_range for look in self.chains), sum(look.positions for look in self.chains)
        resting = ", ".join(self.resting)
        return document(
            f"Positions out of range: {out} of {positions}",
            table(columns, rows, spare=("empty", "block", "unread", "near edge")) if self.chains else None,
            lines(*(event.line for event in self.events)),
            section("Alerts that are on", list_alerts(self.alerts)),
            facts(("not delivered yet", count(self.waiting))) if self.waiting else None,
            context=f"looked at {time_text(self.at)}",
            urgent=(
                *(foreign(f"{look.chain} was not read: {look.failure}") for look in self.chains if look.failure),
                *([f"left alone for now: {resting}"] if resting else []),
            ),
            notes=map(foreign, self.notes),
        )


class StoppedView(View):
    """The monitor ended because it was asked to."""

    ticks: int
    said: str

    def to_document(self) -> Document:
        return document(self.said)


@dataclass(slots=True)
class _ChainRead:
    chain: str
    block: Block | None = None
    wallets: list[rules.WalletReading] = field(default_factory=list)
    gas: GasSample | None = None
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _RetryPause:
    failures: int = 0
    until: float = 0.0


@dataclass(slots=True, kw_only=True)
class Monitor:
    """One at a time per home. `chain_of` opens a chain afresh where the world behind it may have been replaced."""

    watches: Callable[[], Sequence[Watch]]
    chain_of: Callable[[str], Chain]
    store: AlertStore
    samples: Samples
    lock: ProcessLock
    journal: Callable[[], Awaitable[Journal]]
    outbox: Outbox | None
    drain: OutboxDrain | None
    feed: JournalFeed | None = None
    clock: Clock
    period: float
    tell: Callable[[str], None]
    limits: rules.AlertThresholds = rules.LIMITS
    patience: float = PATIENCE
    ping: Callable[[bool], Awaitable[None]] | None = None
    """Asked after each round, with whether anything could be read. It never raises."""
    act: Callable[[str, Sequence[rules.WalletReading]], Awaitable[None]] | None = None
    """What mandates allow after a look at a chain."""
    _acting: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """By chain; looks and alerts go on meanwhile."""
    hedge: Callable[[], Awaitable[tuple[str, ...]]] | None = None
    """Sets the hedges of positions again, after each look; what is not hedged is said."""
    _pauses: dict[str, _RetryPause] = field(default_factory=dict)
    _next_wallet: dict[str, int] = field(default_factory=dict)
    """By chain, where a round was cut short: the next one begins there."""

    async def once(self) -> TickView:
        """One look, with its alerts delivered if the notifier answers; `Unavailable` where nothing could be read."""
        self.lock.take()
        try:
            await self._push_news()
            tick = await self.tick()
            await asyncio.gather(*self._acting.values())
            await self._push_news()
            if self.drain is not None:
                await self.drain.deliver_once()
        finally:
            self.lock.leave()
            await self._close()
        if tick.read_nothing:
            raise Unavailable(
                "Nothing could be read: " + "; ".join(f"{chain.chain}: {chain.failure}" for chain in tick.chains)
            )
        return tick

    async def run(self, hear: Callable[[TickView], None], stop: asyncio.Event) -> StoppedView:
        """Look every period until `stop`; a tick under way is finished and stored first."""
        self.lock.take()
        await self._push_news()
        beside = [asyncio.create_task(task.run(stop)) for task in (self.drain, self.feed) if task is not None]
        ticks = 0
        try:
            while not stop.is_set():
                began, ok = asyncio.get_running_loop().time(), False
                try:
                    tick = await self.tick()
                    hear(tick)
                    ticks, ok = ticks + 1, not tick.read_nothing
                except Unavailable as error:
                    self.tell(str(error))
                if self.ping is not None:
                    await self.ping(ok)
                spent = asyncio.get_running_loop().time() - began
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), max(0.0, self.period - spent))
        finally:
            stop.set()
            for acting in self._acting.values():  # what is signed goes on at the next start
                acting.cancel()
            await asyncio.gather(*self._acting.values(), return_exceptions=True)
            await asyncio.gather(*beside)
            await self._close()
            self.lock.leave()
        return StoppedView(ticks=ticks, said=f"The monitor ended after {ticks} looks; what it saw is stored.")

    async def tick(self) -> TickView:
        """Look at every chain at the same time; each is judged and stored as it is read."""
        watches = self.watches()
        if not watches:
            raise UsageError("There is nothing to watch; set ZUNO_AGENT_WALLET_ADDRESS and an RPC URL.")
        by_chain: dict[str, list[Watch]] = {}
        for watch in watches:
            by_chain.setdefault(watch.chain, []).append(watch)
        moment = asyncio.get_running_loop().time()
        resting = {name for name in by_chain if name in self._pauses and moment < self._pauses[name].until}
        awake = {name: mine for name, mine in by_chain.items() if name not in resting}
        done = await asyncio.gather(
            *(self._read_chain(name, mine) for name, mine in awake.items()), return_exceptions=True
        )
        looks = [look for look in done if not isinstance(look, BaseException)]
        if fault := next((look for look in done if isinstance(look, BaseException)), None):
            raise fault  # the book cannot be kept; every look has ended by now
        for look, _ in looks:
            self._start_acting(look)
        events = [event for _, happened in looks for event in happened]
        events += await self._end_unwatched(by_chain)
        notes = (*await self._append_alerts(), *await self._journal_events(), *await self._hedge())
        book, now = await self.store.book(), self.clock.now()
        return TickView(
            at=now,
            chains=tuple(_chain_view(seen, book) for seen, _ in looks),
            resting=tuple(sorted(resting)),
            events=tuple(map(event_view, events)),
            alerts=tuple(alert_view(alert, now) for alert in book.active),
            waiting=len(rules.pending_events(book)) + await self._count_waiting(),
            notes=notes,
        )

    async def _push_news(self) -> None:
        """A feed that never ran begins at the journal's end: before anything is done, so that it is pushed."""
        if self.feed is not None and self.act is not None:
            with suppress(ZunoError):
                await self.feed.step()

    def _start_acting(self, seen: _ChainRead) -> None:
        """One round of a chain at a time."""
        under_way = self._acting.get(seen.chain)
        if self.act is None or not seen.wallets or (under_way is not None and not under_way.done()):
            return
        self._acting[seen.chain] = asyncio.create_task(self._act(self.act, seen))

    async def _act(self, act: Callable[..., Awaitable[None]], seen: _ChainRead) -> None:
        try:
            await act(seen.chain, tuple(seen.wallets))
        except ZunoError as error:
            self.tell(f"{seen.chain}: nothing is done under mandates: {to_clause(error)}")
        except Exception as bug:  # ending here would silence every alert
            _LOG.exception("acting on %s failed", seen.chain)
            self.tell(f"{seen.chain}: nothing is done under mandates: Zuno has a bug ({type(bug).__name__})")

    async def _read_chain(self, name: str, watches: Sequence[Watch]) -> tuple[_ChainRead, tuple[Event, ...]]:
        seen = _ChainRead(name)
        try:
            async with asyncio.timeout(self.patience):
                await self._read_wallets(seen, watches)
        except TimeoutError:
            seen.failures.append(f"it took more than {self.patience:g} s")
        except ZunoError as error:
            seen.failures.append(to_clause(error))
        except Exception as bug:  # one chain's bug must not silence the others
            _LOG.exception("looking at %s failed", name)
            seen.failures.append(f"Zuno has a bug ({type(bug).__name__})")
        self._record_result(name, failed=bool(seen.failures))
        now = self.clock.now()
        look = rules.ChainReading(
            name, tuple(seen.wallets), "; ".join(seen.failures), None if seen.block is None else seen.block.timestamp
        )
        happened = await self.store.change(lambda book: rules.record_reading(book, look, now, self.limits))
        if happened:
            seen.notes += await self._append_alerts()  # what this chain has to say does not wait for a slower one
        try:
            await self.samples.keep(_pool_samples(seen), [] if seen.gas is None else [seen.gas], now)
        except (Unavailable, Broken) as error:
            seen.notes.append(f"no sample was kept: {to_clause(error)}")
        return seen, happened

    async def _read_wallets(self, seen: _ChainRead, watches: Sequence[Watch]) -> None:
        chain = self.chain_of(seen.chain)
        known = (await self.store.book()).chains.get(seen.chain)
        before = None if known is None else known.block_time
        named = dict.fromkeys([watch.wallet or await chain.wallet() for watch in watches])
        wallets, local = [wallet for wallet in named if wallet is not None], all(watch.local for watch in watches)
        if None in named:
            seen.notes.append("no wallet to watch; set ZUNO_AGENT_WALLET_ADDRESS")
        first, told = self._next_wallet.pop(seen.chain, 0), asyncio.get_running_loop().time()
        wallets = [*wallets[first:], *wallets[:first]]
        for start in range(0, len(wallets), WALLETS_AT_ONCE):
            self._next_wallet[seen.chain] = (first + start) % len(wallets)
            await self._read_together(chain, seen, wallets[start : start + WALLETS_AT_ONCE], local, before)
            if (done := start + WALLETS_AT_ONCE) < len(wallets):
                _LOG.info("%s: %d of %d wallets read", seen.chain, done, len(wallets))
                if (now := asyncio.get_running_loop().time()) - told >= TOLD_EVERY:
                    told = now
                    self.tell(f"{seen.chain}: {done:,} of {len(wallets):,} wallets read")
        self._next_wallet.pop(seen.chain, None)
        if seen.block is None:
            return
        try:
            quote = await chain.gas()
            seen.gas = GasSample(seen.chain, seen.block.timestamp, quote.price)
        except ZunoError as error:
            seen.notes.append(f"no gas price: {to_clause(error)}")

    async def _read_together(
        self, chain: Chain, seen: _ChainRead, wallets: Sequence[Address], local: bool, before: Seconds | None
    ) -> None:
        """Some wallets at one block. One whose answer is malformed hides no other: they are read by halves."""
        try:
            every = await chain.holdings_of(wallets)
            if not local:
                self._check_fresh(every[0], before)
        except ZunoError as error:
            if len(wallets) == 1 or not isinstance(error, Malformed):
                seen.failures.append(to_clause(error))
                return
            for half in (wallets[: len(wallets) // 2], wallets[len(wallets) // 2 :]):
                await self._read_together(chain, seen, half, local, before)
            return
        for wallet, holdings in zip(wallets, every, strict=True):
            self._add_wallet(seen, wallet, holdings)

    def _check_fresh(self, holdings: Holdings, before: Seconds | None) -> None:
        """`Unavailable` where the node is behind, went back behind a block seen before, or is ahead of our clock."""
        at = holdings.snapshot.block.timestamp
        age = self.clock.now() - at
        if age > STALE:
            raise Unavailable(f"its newest block is of {time_text(at)}, more than {STALE // 60} min ago")
        if age < -STALE:  # kept as the newest one seen, it would make every honest block after it an old one
            raise Unavailable(f"its newest block is of {time_text(at)}, more than {STALE // 60} min from now")
        if before is not None and at < before:
            raise Unavailable(f"its newest block is of {time_text(at)}, older than one seen before")

    def _add_wallet(self, seen: _ChainRead, wallet: Address, holdings: Holdings) -> None:
        owned, snapshot = holdings.owned, holdings.snapshot
        seen.block = snapshot.block
        if not owned.complete:
            seen.notes.append(owned.note)
            if not snapshot.positions:
                seen.failures.append(owned.note)
                return
        seen.wallets.append(
            rules.WalletReading(
                wallet,
                snapshot.positions,
                gone=frozenset(missing.id for missing in snapshot.missing if not missing.unread),
                complete=owned.complete,
                unread=frozenset(missing.id for missing in snapshot.missing if missing.unread),
            )
        )

    async def _end_unwatched(self, by_chain: Mapping[str, Sequence[Watch]]) -> tuple[Event, ...]:
        """End alerts of wallets and chains that left the list. A chain's own wallet is whichever it names."""
        wallets = {name: {watch.wallet for watch in mine} for name, mine in by_chain.items()}

        def is_watched(subject: Subject) -> bool:
            mine = wallets.get(subject.chain, set())
            return bool(mine) and (subject.wallet is None or not mine.isdisjoint({None, subject.wallet}))

        now = self.clock.now()
        return await self.store.change(lambda book: rules.end_unwatched(book, is_watched, now))

    async def _append_alerts(self) -> tuple[str, ...]:
        """An outbox that cannot be written is reported; what it lacks waits in the book for the next look."""
        try:
            await append_alerts(self.store, self.outbox)
        except ZunoError as error:
            return (f"alerts are not sent yet: {to_clause(error)}",)
        if self.drain is not None:
            self.drain.wake()
        return ()

    async def _count_waiting(self) -> int:
        try:
            return 0 if self.outbox is None else (await self.outbox.status(NoticeKind.ALERT)).waiting
        except ZunoError:
            return 0  # told of where it was appended to

    async def _close(self) -> None:
        if self.drain is not None:
            await self.drain.close()

    async def _journal_events(self) -> tuple[str, ...]:
        """A journal that cannot be written is reported, and stops no alert."""
        try:
            book = await self.store.book()
            if book.last_number > book.journaled:  # a journal that nothing is written in is not even made
                await journal_events(self.store, await self.journal())
        except ZunoError as error:
            return (f"the journal was not written: {to_clause(error)}",)
        return ()

    async def _hedge(self) -> tuple[str, ...]:
        try:
            return () if self.hedge is None else await self.hedge()
        except ZunoError as error:
            return (f"hedges were not looked at: {to_clause(error)}",)

    def _record_result(self, name: str, *, failed: bool) -> None:
        """From the third failure on a chain is left alone for one period, then two, four …"""
        rest = self._pauses.setdefault(name, _RetryPause())
        rest.failures = rest.failures + 1 if failed else 0
        pause = Backoff(self.period, LONGEST_BACKOFF).delay(rest.failures - self.limits.failures + 1)
        rest.until = asyncio.get_running_loop().time() + pause


def _pool_samples(seen: _ChainRead) -> list[PoolSample]:
    pools = {position.pool.id: position.pool for wallet in seen.wallets for position in wallet.positions}
    growth = ("fee_growth_global0_x128", "fee_growth_global1_x128")
    return [
        PoolSample(seen.chain, pool.id, **pick(pool, "block", "sqrt_price_x96", "tick", "liquidity", *growth))
        for pool in pools.values()
    ]


def _chain_view(seen: _ChainRead, book: AlertBook) -> ChainLookView:
    held = [(wallet.wallet, position) for wallet in seen.wallets for position in wallet.positions]
    filled = [(wallet, position) for wallet, position in held if position.liquidity]
    conditions = {
        (alert.subject.wallet, alert.subject.position): alert.condition
        for alert in book.active
        if alert.subject.chain == seen.chain and alert.subject.rule is None
    }
    return ChainLookView(
        chain=seen.chain,
        block=None if seen.block is None else seen.block.number,
        timestamp=None if seen.block is None else seen.block.timestamp,
        wallets=len(seen.wallets),
        positions=len(held),
        in_range=sum(position.in_range for _, position in filled),
        near_edge=sum(conditions.get((wallet, position.id)) is Condition.NEAR_EDGE for wallet, position in filled),
        out_of_range=sum(not position.in_range for _, position in filled),
        empty=len(held) - len(filled),
        unread=sum(len(wallet.unread) for wallet in seen.wallets),
        failure="; ".join(dict.fromkeys(seen.failures)),
        notes=tuple(dict.fromkeys(seen.notes)),
    )
