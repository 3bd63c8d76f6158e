"""The past of a chain's positions: what they did over a window, and what they made since they were opened."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from zuno.amm.identity import pool_id
from zuno.amm.model import LpPosition, price_of
from zuno.kernel.errors import Broken, Malformed, NotFound, Unavailable
from zuno.kernel.text import to_clause
from zuno.kernel.units import HexId, Seconds
from zuno.lp.model.chains import market_name
from zuno.lp.model.hedges import ShortResult
from zuno.lp.model.history import PositionEvent, PositionHistory, PricedBlock
from zuno.lp.ports.chain import Chain
from zuno.lp.ports.market import Feeds
from zuno.lp.ports.samples import PoolSample, Samples
from zuno.lp.rules.attribution import Attribution, HedgeAmounts, attribute
from zuno.lp.rules.portfolio import (
    LifeFigures,
    WindowFigures,
    fees_from_samples,
    figures_of_history,
    figures_of_life,
    figures_of_window,
    list_lineage,
)

LEAST_SECONDS: Final = 3_600
"""A rate of less time than this is noise."""
MOST_HISTORIES: Final = 10
"""Positions that changed in the window and are read one by one; further ones are left out and named."""
MOST_LIVES: Final = 25
"""Each is a search of its own: of more positions none is read."""
PATIENCE: Final = 20.0
"""Seconds for the results of all of them together; a node that is slow goes on from there the next time."""
SAMPLE_REACH: Final = Fraction(1, 8)

ReadHedge = Callable[[str, frozenset[int]], Awaitable[tuple[ShortResult, str] | None]]


@dataclass(slots=True)
class Figures:
    """Of positions by id; one that has none has the reason."""

    windows: dict[int, WindowFigures] = field(default_factory=dict)
    lives: dict[int, LifeFigures] = field(default_factory=dict)
    why_no_window: dict[int, str] = field(default_factory=dict)
    why_no_life: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def keep_window(self, position_id: int, figures: WindowFigures | None) -> None:
        if figures is None or figures.seconds < LEAST_SECONDS:
            self.why_no_window[position_id] = "it has been in the pool for less than an hour"
        else:
            self.windows[position_id] = figures


@dataclass(frozen=True, slots=True, eq=False)
class PastReader:
    chain: Chain
    feeds_of: Callable[[HexId], Feeds]
    hedge_of: ReadHedge | None = None
    """What hedges of positions of a chain have made, and what is to be said of it."""
    samples: Samples | None = None

    async def attribute(self, position_id: int, since: Seconds | None) -> tuple[PositionHistory, Attribution, str]:
        """Where its money went, and what is to be said of its hedge."""
        history = await self._with_native_price(await self.chain.history(position_id, since))
        hedge, note = await self._read_hedge(history)
        return history, attribute(history, hedge), note

    async def read_figures(self, positions: Sequence[LpPosition], seconds: int) -> Figures:
        """Of a window that ends now, and since each was opened."""
        figures = await self.read_window(positions, seconds)
        await self._read_lives(positions, figures)
        return figures

    async def read_window(self, positions: Sequence[LpPosition], seconds: int) -> Figures:
        figures = Figures()
        if working := [position for position in positions if position.liquidity]:
            await self._read_windows(working, Seconds(working[0].block.timestamp - seconds), figures)
        return figures

    async def _read_lives(self, positions: Sequence[LpPosition], figures: Figures) -> None:
        many = len(positions) > MOST_LIVES
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                for position in () if many else positions:
                    try:
                        history, result, _ = await self.attribute(position.id, None)
                        if not result.adds_up:
                            raise Broken("its terms do not add up")
                        figures.lives[position.id] = figures_of_life(history, position, result)
                    except (Unavailable, Malformed, Broken, NotFound) as error:
                        figures.why_no_life[position.id] = to_clause(error)
        late = f"not read of more than {MOST_LIVES} positions" if many else f"not read within {PATIENCE:.0f} s"
        for id_ in {position.id for position in positions} - figures.lives.keys():
            figures.why_no_life.setdefault(id_, f"{late}; `zuno lp pnl {id_}` reads it")

    async def _read_windows(self, positions: Sequence[LpPosition], since: Seconds, figures: Figures) -> None:
        """Fee growth at both ends of the window, else our own samples, else the history where it changed in between."""
        try:
            window = await self.chain.window(positions, since)
            how = "fee growth at both ends of the window"
        except (Unavailable, Malformed) as error:
            figures.notes.append(f"{self.chain.info.name}: {to_clause(error)}")
            await self._read_samples(positions, since, figures)
            return
        changed = [position for position in positions if position.id not in window.fees]
        for position in positions:
            if position.id in window.fees:
                path = window.paths[position.pool.id]
                figures.keep_window(position.id, figures_of_window(position, window.fees[position.id], path, how))
        for position in changed[MOST_HISTORIES:]:
            where = f"`zuno lp pnl {position.id} --since 7d` has its figures"
            figures.why_no_window[position.id] = f"it changed in the window: {where}"
        for position in changed[:MOST_HISTORIES]:
            try:
                history = await self.chain.history(position.id, max(since, window.opened.timestamp))
                figures.keep_window(position.id, figures_of_history(history, "its history in the window"))
            except (Unavailable, Malformed, Broken) as error:
                figures.why_no_window[position.id] = to_clause(error)

    async def _read_samples(self, positions: Sequence[LpPosition], since: Seconds, figures: Figures) -> None:
        kept: dict[HexId, tuple[PoolSample, ...]] = {}
        for position in positions:
            pool, now = position.pool, position.block
            if pool.id not in kept:
                try:
                    read = self.samples and await self.samples.pools(position.chain, pool.id, since, now.timestamp)
                    kept[pool.id] = read or ()
                except (Unavailable, Broken) as error:
                    figures.why_no_window[position.id] = to_clause(error)
                    continue
            samples = kept[pool.id]
            late = Fraction(samples[0].block.timestamp - since, now.timestamp - since) if samples else Fraction(1)
            if late > SAMPLE_REACH:
                figures.why_no_window[position.id] = "the past is not kept by this node, nor in our own samples"
                continue
            path = [PricedBlock(sample.block, sample.sqrt_price_x96) for sample in samples]
            how = "own samples, as if its liquidity had been the same throughout"
            fees = fees_from_samples(samples, position)
            figures.keep_window(position.id, figures_of_window(position, fees, path, how))

    async def _read_hedge(self, history: PositionHistory) -> tuple[HedgeAmounts | None, str]:
        """What the short beside it made since it was hedged; dollars count as the pool's dollar token."""
        ids = frozenset(list_lineage(history))
        found = None if self.hedge_of is None else await self.hedge_of(self.chain.info.name, ids)
        if found is None:
            return None, ""
        result, note = found
        from zuno.lp.rules.limits import find_volatile_side

        side = 1 - find_volatile_side(history.token0, history.token1)
        unit = 10 ** (history.token0, history.token1)[side].decimals
        ledger, trades, funding = (Fraction(each) * unit for each in (result.ledger, result.trades, result.funding))
        touches = [event for event in history.events if isinstance(event, PositionEvent)]
        price = (history.end or touches[-1]).sqrt_price_x96
        return HedgeAmounts(ledger, trades, funding, side, price), note

    async def _with_native_price(self, history: PositionHistory) -> PositionHistory:
        """A pool that cannot price gas gets today's price of the native coin, if anybody knows it."""
        if history.native_side is not None or not any(event.gas for event in history.events):
            return history
        key, now, why_not = history.key, history.closed.timestamp, ""
        own_id = HexId(pool_id(key.currency0, key.currency1, key.fee, key.tick_spacing, key.hooks))
        native = self.feeds_of(own_id).native
        in_token1 = {history.token1: Fraction(1), history.token0: price_of(history.path[-1].sqrt_price_x96)}
        for token, rate in in_token1.items():
            try:
                fact = await native.native(market_name(token), now)
            except (Unavailable, Malformed) as error:
                why_not = str(error)
                continue
            note = f"all gas is priced at one price of the native coin, the newest of {fact.source}"
            price = fact.value * 10**token.decimals / 10**18 * rate
            return replace(history, native_in_token1=price, notes=(*history.notes, note))
        return replace(history, notes=(*history.notes, f"gas has no price here: {why_not}"))
