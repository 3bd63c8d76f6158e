"""The LP desk's reading side: pools, positions, one position in full, and where its money went."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from zuno.amm.identity import pool_id
from zuno.amm.model import NO_HOOKS, Block, LpPosition, sqrt_price_for, whole_price
from zuno.amm.ticks import MAX_SQRT_PRICE, MIN_SQRT_PRICE
from zuno.kernel.arguments import parse_moment
from zuno.kernel.errors import (
    Broken,
    Malformed,
    NotFound,
    PoolNotInitialized,
    Refused,
    Unavailable,
    UsageError,
    ZunoError,
)
from zuno.kernel.numbers_text import decimal_text, money_text
from zuno.kernel.text import base_and_quote, plain_text
from zuno.kernel.units import Address, HexId, Seconds
from zuno.lp.model.chains import FEE_TIERS, market_name
from zuno.lp.model.market import HOUR, Fact, GasQuote, Pair
from zuno.lp.ports.chain import STALE, Chain, Missing, OwnedPositions, Snapshot
from zuno.lp.ports.market import Feeds
from zuno.lp.ports.samples import Samples
from zuno.lp.rules.attribution import attribute
from zuno.lp.rules.volatility import realized_vol_bps
from zuno.lp.service import arguments, to_views, views
from zuno.lp.service.desk_state import DeskState
from zuno.lp.service.position_past import Figures, PastReader, ReadHedge
from zuno.lp.service.result_views import ClosedPositionsView, ClosedPositionView, PnlView, PriceCaseView, WhatIfView
from zuno.lp.service.summary_view import SummaryView
from zuno.lp.service.to_views import liquidity_view

if TYPE_CHECKING:
    from zuno.kernel.taxable import TaxableEvent
    from zuno.lp.service.archive import EndedPosition

VOLATILITY_HOURS = 720
DAY = 24 * HOUR
FEE_DAYS = 7
WHATIF_PERCENTS = (-50, -40, -30, -20, -10, -5, 0, 5, 10, 20, 30, 40, 50)
MOST_CLOSED = 20
"""Positions that are gone of which one answer tells: each is a search of its own."""
CLOSED_TERMS = ("result", "fees", "divergence_loss", "gas", "swap_cost", "lvr")
AHEAD = 60
"""Seconds by which a block may be ahead of our clock, as much as clocks differ."""
_BEHIND_BLOCKS = 100
"""A head that is so many blocks old is told, where that is longer than clocks differ."""
T = TypeVar("T")
ReadEnds = Callable[[str], Awaitable["Mapping[int, EndedPosition]"]]


@dataclass(frozen=True, slots=True, eq=False)
class LpDesk:
    """Questions about one chain. Every answer belongs to one block."""

    chain: Chain
    feeds_of: Callable[[HexId], Feeds]
    now: Callable[[], Seconds] | None = None
    """What a head is held against; None for local chains, which keep their own time."""
    hedge_of: ReadHedge | None = None
    samples: Samples | None = None
    read_state: Callable[[str, Block], Awaitable[DeskState]] | None = None
    """What its owner has to know of positions of a chain before their figures."""

    @property
    def past(self) -> PastReader:
        return PastReader(self.chain, self.feeds_of, self.hedge_of, self.samples)

    async def pools(self) -> views.PoolsView:
        pools = await self.chain.pools()
        name = self.chain.info.name
        return views.PoolsView(
            **to_views.place(name, pools.block),
            pools=tuple(to_views.pool_view(pool, name) for pool in pools.pools),
            notes=(*pools.notes, *self._clock_notes(pools.block.timestamp)),
        )

    async def pool(self, which: str, fee: str | None = None) -> views.PoolView:
        """One pool by its id, or by its pair and fee."""
        name, description = self.chain.info.name, " ".join(filter(None, (which, fee)))
        wanted = self._pool_of(which, fee) if re.search("[/-]", which) else arguments.pool_id(which)
        if wanted == which.lower() and fee is not None:
            raise UsageError("A pool's id says its fee already; give the id alone, or a pair and a fee.")
        try:
            state = await self.chain.pool(wanted)
        except PoolNotInitialized as error:
            raise PoolNotInitialized(
                f"The pool {description} on {name} is not initialised: nobody has given it a price yet; "
                f"`zuno lp pools --chain {name}` lists those that have one."
            ) from error
        except NotFound as error:
            raise NotFound(f"No pool {description} on {name}; `zuno lp pools --chain {name}` lists them.") from error
        return to_views.pool_view(state, name)

    async def liquidity(self, which: str) -> views.LiquidityView:
        """How a pool's liquidity lies around its price."""
        return liquidity_view(self.chain.info.name, await self.chain.depth(arguments.pool_id(which)))

    async def history(self, text: str) -> views.PositionHistoryView:
        """The price of the last 30 days beside a position's range, and what it earned on each of the last 7."""
        position = await self.position(arguments.position_id(text))
        pool, now, notes = position.pool, position.block.timestamp, []
        base, quote = base_and_quote(pool.token0, pool.token1)
        pair = Pair(market_name(base), market_name(quote))
        series, why_not = await _ask(self.feeds_of(pool.id).prices.history(pair, VOLATILITY_HOURS, now))
        if series is None:
            notes.append(f"no price history: {why_not}")
        try:
            fees = await self._fees_by_day(position)
        except (Unavailable, Malformed) as error:
            fees = ()
            notes.append(f"no fees by day: {error}")
        return views.PositionHistoryView(
            **to_views.place_position(position),
            price_now=to_views.price_text(pool.sqrt_price_x96, pool.token0, pool.token1),
            price_unit=to_views.price_unit(pool.token0, pool.token1),
            unit=quote.display_name,
            prices=() if series is None else to_views.price_points(series.value),
            prices_source=None if series is None else series.source,
            fees=fees,
            notes=tuple(notes),
        )

    async def _fees_by_day(self, position: LpPosition) -> tuple[views.FeePeriodView, ...]:
        """A day is the difference of two windows that end now."""
        now = position.block.timestamp
        moments = [Seconds(now - day * DAY) for day in range(FEE_DAYS, -1, -1)]
        earned = [*[await self._earned_since(position, moment) for moment in moments[:-1]], (0, 0)]
        days = []
        for index, (since, until) in enumerate(pairwise(moments)):
            first, second = earned[index], earned[index + 1]
            if first is not None and second is not None:
                days.append(to_views.fee_period_view(position, since, until, first, second))
        return tuple(days)

    async def _earned_since(self, position: LpPosition, moment: Seconds) -> tuple[int, int] | None:
        """With what it earned as the positions it was rebalanced from; None where neither was there a day later."""
        window = await self.chain.window([position], moment)
        if window.opened.timestamp > moment + HOUR:
            return None
        if position.id in window.fees:
            return window.fees[position.id]
        try:
            history = await self.chain.history(position.id, moment)
            result = attribute(history)
        except (Unavailable, Malformed, Broken):
            return None
        begun = history.events[0].block.timestamp if history.start is None and history.events else moment
        return (result.fees0, result.fees1) if begun < moment + DAY else None

    async def positions(self, ids: Sequence[str] = (), wallet: str | None = None) -> views.PositionsView:
        """The positions named, or all that the wallet holds, as they stand on chain."""
        view, _ = await self._read_positions(ids, wallet)
        note = "; ".join(filter(None, (view.note, *self._clock_notes(Seconds(view.timestamp)))))
        return view.model_copy(update={"note": note})

    async def list_positions(
        self, ids: Sequence[str] = (), wallet: str | None = None, only: str | None = None
    ) -> views.PositionsView:
        """The same with what each made and what to do next; `only`: those in one state."""
        keep = arguments.state(only)
        whole, snapshot = await self._read_positions(ids, wallet)
        pairs = zip(whole.positions, snapshot.positions, strict=True)
        kept = [(view, held) for view, held in pairs if keep(view.in_range, view.edge_distance_percent)]
        summaries, urgent, notes = await self.summarise([held for _, held in kept], snapshot.block)
        if len(kept) < len(whole.positions):
            notes += (f"{len(kept)} of {len(whole.positions)} positions are {only}",)
        told = {"urgent": urgent, "note": "; ".join(filter(None, (whole.note, *notes)))}
        lines = tuple(view.model_copy(update={"summary": summaries[view.id]}) for view, _ in kept)
        return whole.model_copy(update={"positions": lines, **told})

    async def summarise(
        self, positions: Sequence[LpPosition], head: Block, figures: Figures | None = None
    ) -> tuple[dict[str, SummaryView], tuple[str, ...], tuple[str, ...]]:
        """By id, what an owner asks first; what is urgent, and notes. `figures`: where they were read already."""
        figures = figures or await self.past.read_figures(positions, to_views.YIELD_SECONDS)
        state = DeskState() if self.read_state is None else await self.read_state(self.chain.info.name, head)
        summaries, urgent = dict[str, SummaryView](), list(state.urgent)
        for position in positions:
            plan, off = state.plans.get(position.id), state.unhedged.get(position.id)
            summaries[str(position.id)] = to_views.summary_view(position, figures, plan)
            urgent += [f"position {position.id} on {position.chain}: {off}"] if off else []
            urgent += [plan.warn(str(position.id))] if plan is not None and plan.waits else []
        return summaries, (*urgent, *self._clock_notes(head.timestamp)), tuple(figures.notes)

    async def _read_positions(self, ids: Sequence[str], wallet: str | None) -> tuple[views.PositionsView, Snapshot]:
        if ids and wallet is not None:
            raise UsageError("Give --id or --wallet, not both: an id is read whoever holds it.")
        owned: OwnedPositions | None = None
        if ids:
            snapshot = await self.chain.positions([arguments.position_id(text) for text in ids])
            if not snapshot.positions:
                raise self._absent(snapshot.missing[0])
        else:
            owner = await self._find_owner(wallet)
            if owner is None:
                raise UsageError("Whose positions? Give --wallet ADDRESS or --id ID, or set ZUNO_AGENT_WALLET_ADDRESS.")
            holdings = await self.chain.holdings(owner)
            owned, snapshot = holdings.owned, holdings.snapshot
            if not (owned.complete or snapshot.positions):
                raise Unavailable(f"No position of this wallet could be read: {owned.note}.")
        view = views.PositionsView(
            **to_views.place(self.chain.info.name, snapshot.block),
            wallet=owned.owner if owned else None,
            complete=(owned is None or owned.complete) and not snapshot.missing,
            note=owned.note if owned else "",
            positions=tuple(to_views.position_view(position) for position in snapshot.positions),
            missing=tuple(views.MissingView(id=str(missing.id), reason=missing.reason) for missing in snapshot.missing),
        )
        return view, snapshot

    async def _find_owner(self, wallet: str | None) -> Address | None:
        return await self.chain.wallet() if wallet is None else arguments.wallet_address(wallet)

    def _clock_notes(self, head: Seconds) -> tuple[str, ...]:
        """What the head's time says against the node that gave it."""
        if self.now is None:
            return ()
        age, block_millis = self.now() - head, self.chain.info.block_millis
        if age > min(STALE, max(2 * AHEAD, _BEHIND_BLOCKS * block_millis // 1000)):
            old = f"{age // 60} min" if age >= 120 else f"{age} s"
            blocks = age * 1000 // block_millis
            return (f"the node is behind: its newest block is {old} old, about {blocks} blocks",)
        if age < -AHEAD:
            return (f"the node's newest block is {-age} s in the future",)
        return ()

    async def list_closed(self, wallet: str | None, read_ends: ReadEnds) -> ClosedPositionsView:
        """Positions the wallet had and has no more, and what became of them; `read_ends` is what the journal knows."""
        owner = await self._find_owner(wallet)
        if owner is None:
            raise UsageError("Whose positions? Give --wallet ADDRESS, or set ZUNO_AGENT_WALLET_ADDRESS.")
        past = await self.chain.past_positions(owner)
        notes = [past.note] if past.note else []
        ends: Mapping[int, EndedPosition] = {}
        try:
            ends = await read_ends(self.chain.info.name)
        except ZunoError as error:
            notes.append(f"the journal was not read: {str(error).rstrip('.')}")
        newest = sorted(past.ids, reverse=True)
        if len(newest) > MOST_CLOSED:
            notes.append(f"the newest {MOST_CLOSED} of {len(newest)}")
        lines = [
            await self._closed_position(position_id, ends.get(position_id)) for position_id in newest[:MOST_CLOSED]
        ]
        followed = {ancestor: line.id for line in lines for ancestor in line.position_ids[:-1]}
        return ClosedPositionsView(
            **to_views.place(self.chain.info.name, past.block),
            wallet=owner,
            complete=past.complete,
            note="; ".join(notes),
            positions=tuple(_with_successor(line, followed.get(line.id)) for line in lines),
        )

    async def _closed_position(self, position_id: int, end: EndedPosition | None) -> ClosedPositionView:
        new = None if end is None or end.new_position_id is None else str(end.new_position_id)
        known = {"id": str(position_id), "new_position_id": new, "plan_id": None if end is None else end.plan_id}
        try:
            history, result, _ = await self.past.attribute(position_id, None)
        except (Unavailable, Malformed, Broken, NotFound) as error:
            nothing = dict.fromkeys(("pool", "opened_at", "closed_at", "unit", *CLOSED_TERMS))
            became = "gone" if end is None else end.what
            return ClosedPositionView(
                **known, **nothing, became=became, position_ids=(str(position_id),), why=str(error)
            )
        pnl = to_views.pnl_view(self.chain.info.name, position_id, history, result)
        terms = pnl.in_token1 if base_and_quote(history.token0, history.token1)[1] is history.token1 else pnl.in_token0
        became = "transferred" if pnl.open else "closed" if end is None else end.what
        return ClosedPositionView(
            **known,
            became=became,
            pool=pnl.pool,
            position_ids=pnl.position_ids,
            opened_at=pnl.from_timestamp,
            closed_at=None if pnl.open else pnl.to_timestamp,
            unit=terms.token,
            **{name: getattr(terms, name) for name in CLOSED_TERMS},
            why="" if result.adds_up else "its terms do not add up; do not trust these figures",
        )

    async def list_taxable_events(self, wallet: str | None) -> tuple[list[TaxableEvent], list[str]]:
        """Of every position the wallet holds or held, oldest first; and what could not be read."""
        from zuno.lp.rules.taxable import list_taxable_events

        owner = await self._find_owner(wallet)
        if owner is None:
            return [], []
        name = self.chain.info.name
        native = self.chain.info.native.symbol
        owned, past = await self.chain.owned(owner), await self.chain.past_positions(owner)
        notes = [f"{name}: {note}" for note in (owned.note, past.note) if note]
        events: dict[object, tuple[TaxableEvent, ...]] = {}  # a position's history holds those it was rebalanced from
        for position_id in sorted({*owned.ids, *past.ids}):
            try:
                history = await self.chain.history(position_id, None)
            except (Unavailable, Malformed, Broken, NotFound) as error:
                notes.append(f"{name}, position {position_id}: {plain_text(str(error), 300)}")
                continue
            for event in history.events:
                if event not in events:
                    events[event] = tuple(list_taxable_events(name, native, owner, history, event))
            foreign = {flow.tx for flow in history.externals}
            notes += [f"{name}, {tx}: other wallets paid or received a part of this transaction" for tx in foreign]
        rows = [row for group in events.values() for row in group]
        return sorted(rows, key=lambda row: row.at), list(dict.fromkeys(notes))

    async def inspect(self, text: str) -> views.InspectView:
        position = await self.position(arguments.position_id(text))
        summaries, urgent, notes = await self.summarise([position], position.block)
        return views.InspectView(
            **dict(to_views.position_view(position)) | {"summary": summaries[str(position.id)]},
            urgent=urgent,
            notes=notes,
            pool_state=to_views.pool_view(position.pool, self.chain.info.name),
            market=await self._market(position),
        )

    async def pnl(self, text: str, since: str | None) -> PnlView:
        position_id = arguments.position_id(text)
        start = None if since is None else parse_moment(since, (await self.chain.head()).timestamp)
        history, result, note = await self.past.attribute(position_id, start)
        view = to_views.pnl_view(self.chain.info.name, position_id, history, result, note)
        if not result.adds_up:
            known = "".join(f" Note: {note}." for note in (*view.notes, *view.computed))
            raise Broken(
                f"Position {position_id}: {view.in_token1.residual} {view.in_token1.token} unexplained; "
                f"do not trust these figures and report the position id and chain.{known}"
            )
        return view

    async def whatif(self, text: str, price: str | None = None) -> WhatIfView:
        """The position at a price, or at today's changed by a percentage, and at a row of others around today's."""
        from zuno.lp.rules.worth import position_at_price

        position = await self.position(arguments.position_id(text))
        pool = position.pool
        if position.liquidity == 0:
            raise Refused(f"Position {position.id} is empty: no price changes what it holds.")
        today = whole_price(pool.sqrt_price_x96, pool.token0, pool.token1)
        wanted = today if price is None else arguments.hypothetical_price(price, today)
        deposited, notes = await self._read_deposits(position)

        def case(at: Fraction) -> PriceCaseView:
            sqrt_price = sqrt_price_for(at, pool.token0, pool.token1)
            if not MIN_SQRT_PRICE <= sqrt_price < MAX_SQRT_PRICE:
                raise Refused("No pool can have that price.")
            change = decimal_text((at / today - 1) * 100, 6)
            return to_views.price_case_view(position, change, position_at_price(position, sqrt_price), deposited)

        put_in = deposited or (None, None)
        return WhatIfView(
            **dict(case(wanted)),
            **to_views.place_position(position),
            price_now=to_views.price_text(pool.sqrt_price_x96, pool.token0, pool.token1),
            price_unit=to_views.price_unit(pool.token0, pool.token1),
            unit=base_and_quote(pool.token0, pool.token1)[1].display_name,
            deposited0_human=None if put_in[0] is None else money_text(put_in[0], pool.token0.decimals, 18),
            deposited1_human=None if put_in[1] is None else money_text(put_in[1], pool.token1.decimals, 18),
            table=tuple(case(today * (100 + percent) / 100) for percent in WHATIF_PERCENTS),
            notes=notes,
        )

    async def _read_deposits(self, position: LpPosition) -> tuple[tuple[Fraction, Fraction] | None, tuple[str, ...]]:
        """What was put into the position, or why nobody can say."""
        from zuno.lp.rules.worth import deposited_amounts

        try:
            put_in = deposited_amounts(await self.chain.history(position.id, None), position.id)
        except (Unavailable, Malformed) as error:
            return None, (f"what was put in at the mint is unknown: {error}",)
        return put_in, () if put_in else ("what was put in at the mint is unknown: its mint is not on record",)

    def _pool_of(self, pair: str, fee: str | None) -> HexId:
        """The id of the plain pool of a pair at one of the usual fees."""
        names = arguments.pair_of(pair)
        if fee is None:
            raise UsageError(f"Which fee? A pair has several pools: write it like {'/'.join(names)} 0.3%.")
        pips, usual = arguments.fee_of(fee), dict(FEE_TIERS)
        if pips not in usual:
            tiers = ", ".join(map(views.fee_text, usual))
            raise UsageError(f"{fee[:40]} is not one of the usual fees ({tiers}); give that pool's id instead.")
        low, high = sorted(map(self._currency, names), key=lambda address: int(address, 16))
        if low == high:
            raise UsageError(f"{'/'.join(names)} is no pair: a pool trades two tokens.")
        return HexId(pool_id(low, high, pips, usual[pips], NO_HOOKS))

    def _currency(self, name: str) -> Address:
        """A token's address; by symbol only those we named ourselves."""
        if name.lower().startswith("0x"):
            return arguments.wallet_address(name)
        info = self.chain.info
        for token in info.tokens:
            if token.symbol == name:
                return token.address
        known = ", ".join(token.symbol for token in info.tokens)
        raise NotFound(f"No token on {info.name} is called {name}; Zuno knows {known} there, others by their address.")

    async def position(self, position_id: int) -> LpPosition:
        """One position, or why it cannot be had."""
        snapshot = await self.chain.positions([position_id])
        if not snapshot.positions:
            raise self._absent(snapshot.missing[0])
        return snapshot.positions[0]

    def _absent(self, missing: Missing) -> NotFound | Unavailable:
        """What to say of a position that is not in the answer."""
        name = self.chain.info.name
        if missing.unread:
            return Unavailable(f"Position {missing.id} on {name} could not be read: {missing.reason}; try again.")
        return NotFound(
            f"No position {missing.id} on {name} ({missing.reason}); `zuno lp positions --chain {name}` lists yours."
        )

    async def _market(self, position: LpPosition) -> views.MarketView:
        """What is known around the position; a feed that fails leaves its reason, never a number."""
        pool, now = position.pool, position.block.timestamp
        feeds = self.feeds_of(pool.id)
        base, quote = base_and_quote(pool.token0, pool.token1)
        pair, unit = Pair(market_name(base), market_name(quote)), to_views.price_unit(pool.token0, pool.token1)
        gas, no_gas = await _ask(feeds.gas.gas(now))
        return views.MarketView(
            reference_price=await _fact(feeds.prices.spot(pair, now), unit),
            realized_vol=await self._volatility(feeds, pair, now),
            gas_price=to_views.fact_view(None if gas is None else _gwei(gas, gas.value.price), "gwei", no_gas),
            l1_data_fee=_data_fee(gas, no_gas),
            native_price=await _fact(
                feeds.native.native(pair.quote, now), f"{quote.display_name} per {self.chain.info.native.symbol}"
            ),
        )

    async def _volatility(self, feeds: Feeds, pair: Pair, now: Seconds) -> views.FactView:
        unit = "bps per day"
        series, why_not = await _ask(feeds.prices.history(pair, VOLATILITY_HOURS, now))
        if series is None:
            return to_views.fact_view(None, unit, why_not)
        try:
            vol = realized_vol_bps(series.value)
        except Unavailable as error:
            return to_views.fact_view(None, unit, str(error))
        notes = (*series.notes, f"{vol.returns} hourly returns, {vol.gaps} hours missing")
        fact = Fact(Fraction(vol.bps), series.source, series.as_of, series.read_at, series.limit, notes)
        return to_views.fact_view(fact, unit, digits=4)


def _with_successor(line: ClosedPositionView, successor: str | None) -> ClosedPositionView:
    """A position that another one's record goes back to was rebalanced, whoever did it."""
    if successor is None or line.new_position_id is not None:
        return line
    return line.model_copy(update={"became": "rebalanced", "new_position_id": successor})


async def _ask(question: Awaitable[Fact[T]]) -> tuple[Fact[T] | None, str]:
    try:
        return await question, ""
    except (Unavailable, Malformed) as error:
        return None, str(error)


async def _fact(question: Awaitable[Fact[Fraction]], unit: str) -> views.FactView:
    fact, why_not = await _ask(question)
    return to_views.fact_view(fact, unit, why_not)


def _gwei(gas: Fact[GasQuote], wei: int) -> Fact[Fraction]:
    return Fact(Fraction(wei, 10**9), gas.source, gas.as_of, gas.read_at, gas.limit, gas.notes)


def _data_fee(gas: Fact[GasQuote] | None, why_not: str) -> views.FactView:
    unit = "gwei per byte"
    if gas is None:
        return to_views.fact_view(None, unit, why_not)
    if gas.value.l1_fee_per_byte is None:
        return to_views.fact_view(None, unit, "this chain charges no separate data fee")
    return to_views.fact_view(_gwei(gas, gas.value.l1_fee_per_byte), unit)


def token_amounts(view: views.PositionsView) -> dict[str, Decimal]:
    """The amounts in these positions by verified token symbol, uncollected fees included. `Unavailable` where some
    positions could not be read."""
    if not view.complete:
        why = view.note or f"{len(view.missing)} positions could not be read"
        raise Unavailable(f"Not all liquidity positions of the wallet on {view.chain} are known: {why}.")
    amounts: dict[str, Decimal] = {}
    for position in view.positions:
        sides = (
            (position.pool.currency0, position.amount0_human, position.fees0_human),
            (position.pool.currency1, position.amount1_human, position.fees1_human),
        )
        for token, amount, fees in sides:
            if token.verified:
                amounts[token.symbol] = amounts.get(token.symbol, Decimal(0)) + Decimal(amount) + Decimal(fees)
    return amounts
