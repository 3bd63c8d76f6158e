"""What the Scout reads before a debate: one pool or several at one block, and their market."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import median
from typing import Any, TypeVar

from zuno.amm.model import Block, LpPosition, PoolState
from zuno.kernel.errors import Broken, Malformed, NotFound, Refused, Unavailable
from zuno.kernel.text import base_and_quote
from zuno.kernel.units import HexId, Seconds, Wei
from zuno.kernel.wire import pick
from zuno.lp.agents.pool_choice import choose_pools, pool_label
from zuno.lp.agents.pool_past import OWN_PRICE, WINDOWS, Growth, Reference, add_rewards, hold_against, read_growth
from zuno.lp.model.ballot import HedgeTerms
from zuno.lp.model.chains import market_name
from zuno.lp.model.debate import Context, FeeWindow, FlowCreateStart, FlowStart, PoolCover, PoolFacts, SourceNote, Start
from zuno.lp.model.market import Fact, Pair
from zuno.lp.plan.sizing import check_tokens_used
from zuno.lp.ports.chain import Chain
from zuno.lp.ports.market import Feeds
from zuno.lp.ports.samples import Samples
from zuno.lp.rules.carry import native_token1_in_pool
from zuno.lp.rules.fee_yield import DAY, FORTNIGHT, WEEK
from zuno.lp.rules.limits import find_volatile_side, reference_gap
from zuno.lp.rules.own_range import place_in_pools, place_own_range
from zuno.lp.rules.regime import classify
from zuno.lp.rules.stress import BLOCK_HOURS
from zuno.lp.rules.volatility import hourly_returns, nano_returns, rolling_vol_bps

HISTORY_HOURS = 720
PATH_STEP = 300
"""Seconds between two prices of a pool's own that its variance is measured by."""
SEED = "seed"
T = TypeVar("T")

GAS_SAMPLED = WEEK
"""Seconds of our own gas samples that today's price is held against."""

OpenFeeds = Callable[[Chain, HexId], Feeds]


@dataclass(slots=True)
class Sources:
    """The facts asked for, in the order they were asked, whether they came or not."""

    now: Seconds
    notes: list[SourceNote] = field(default_factory=list)

    async def ask(self, feed: str, question: Awaitable[Fact[T]]) -> Fact[T] | None:
        """The fact, or None with the reason noted: a feed that fails never stops the desk."""
        try:
            fact = await question
        except (Unavailable, Malformed) as error:
            self.none(feed, str(error))
            return None
        self.plain(feed, fact.source, fact.as_of, fact.notes, fact.limit)
        return fact

    def none(self, feed: str, why: str) -> None:
        self.notes.append(
            SourceNote(
                feed=feed, source=None, as_of=None, age_seconds=None, limit_seconds=None, stale=None, notes=(why,)
            )
        )

    def plain(self, feed: str, source: str, at: Seconds, notes: Sequence[str] = (), limit: int = 60) -> None:
        """Note a source that answered; it is stale when older than `limit` seconds."""
        age = max(0, self.now - at)
        ages: dict[str, Any] = {"as_of": at, "age_seconds": age, "limit_seconds": limit, "stale": age > limit}
        self.notes.append(SourceNote(feed=feed, source=source, **ages, notes=tuple(notes)))

    @property
    def is_seeded(self) -> bool:
        return any(note.source == SEED for note in self.notes)


Reading = tuple[Block, tuple[PoolFacts, ...], Sources]


@dataclass(frozen=True, slots=True)
class Observer:
    """Reads a chain and its market; `samples` are our own, where there are any of this very world."""

    chain: Chain
    feeds_of: OpenFeeds
    samples: Samples | None = None
    rewards: Mapping[HexId, Fraction] = field(default_factory=dict)
    """What a pool pays its liquidity in range beside fees, a day, in whole quote tokens: by the owner's own word."""

    async def observe(self, start: Start) -> Context:
        """The world behind a request, at one block. `Refused` where there is nothing to argue about."""
        read = self._observe_position(start) if isinstance(start, FlowStart) else self._observe_request(start)
        block, scenes, sources = await read
        return Context(
            flow="rebalance" if isinstance(start, FlowStart) else "create",
            chain=self.chain.info.name,
            chain_id=self.chain.info.id,
            block=block,
            **pick(start, "profile", "max_rounds", "own_range"),
            scenes=scenes,
            wish=None if isinstance(start, FlowStart) else start.wish,
            sources=tuple(dict.fromkeys(sources.notes)),  # what several pools share is noted once
            seeded=sources.is_seeded,
        )

    async def observe_again(self, context: Context) -> tuple[PoolFacts, ...]:
        """Our own reading of pools at the block somebody else read them, with fees over the window they used."""
        seen = []
        for pool_facts in context.scenes:
            pool, sources = pool_facts.pool, Sources(context.block.timestamp)
            feeds = self.feeds_of(self.chain, pool.id)
            facts = await self.observe_pool(pool, feeds, sources, pool_facts.position)
            claimed, own = pool_facts.fees, facts.fees
            if claimed is None:
                own = None
            elif own is None or own.seconds != claimed.seconds:
                with suppress(Unavailable):
                    same = ((claimed.seconds, "the same time"),)
                    own = (await self._read_growth(pool, same, own_last=True)).measure()
            facts = facts.model_copy(update={"fees": own})
            if pool_facts.hedge is not None:
                facts = await self._add_hedge(facts, feeds, sources, pool_facts.hedge.held)
            seen.append(facts)
        return tuple(seen)

    async def _observe_position(self, start: FlowStart) -> Reading:
        position = await self._read_position(start.position_id, start.hooks)
        if start.own_range is not None and place_own_range(start.own_range, position.pool) == position.range:
            raise Refused(f"{start.own_range} is the range that position {position.id} has now.")
        sources = self._open_sources("position", position.block)
        feeds = self.feeds_of(self.chain, position.pool.id)
        pool_facts = await self.observe_pool(position.pool, feeds, sources, position)
        if start.hedged:
            pool_facts = await self._add_hedge(pool_facts, feeds, sources, start.short)
        return position.block, (pool_facts,), sources

    async def _observe_request(self, start: FlowCreateStart) -> Reading:
        """The pools that fit the request, all read at the survey's block."""
        survey = await self.chain.pools()
        spots = choose_pools(start.wish, survey.pools, self.chain.info, start.hooks)
        sources = self._open_sources("pools", survey.block, survey.notes)
        seen, unhedged = [], list[Refused]()
        for spot in spots:
            feeds, capital = self.feeds_of(self.chain, spot.pool.id), (spot.capital0, spot.capital1)
            facts = await self.observe_pool(spot.pool, feeds, sources, capital=capital)
            try:
                seen.append(await self._add_hedge(facts, feeds, sources) if start.hedged else facts)
            except Refused as error:
                unhedged.append(error)
        if unhedged and not seen:
            raise unhedged[0]
        # How wide a new range must be is read from the past: a pool without one cannot take part.
        usable = tuple(pool_facts for pool_facts in seen if len(pool_facts.returns_nano) >= BLOCK_HOURS)
        if not usable:
            chain = self.chain.info.name
            raise Refused(f"No pool that fits the wish has a price history on {chain}; name another pair.")
        if start.own_range is not None:
            # `Refused` before anybody argues; beside the price a range takes one of the tokens alone.
            for index, band in place_in_pools(start.own_range, [facts.pool for facts in usable]).items():
                brought = enumerate((usable[index].capital0, usable[index].capital1))
                check_tokens_used(usable[index].pool, band, {side: amount for side, amount in brought if amount})
        return survey.block, usable, sources

    def _open_sources(self, feed: str, block: Block, notes: Sequence[str] = ()) -> Sources:
        sources = Sources(block.timestamp)
        sources.plain(feed, f"{self.chain.info.name} block {block.number}", block.timestamp, notes)
        return sources

    async def _read_position(self, position_id: int, hooks: Sequence[str]) -> LpPosition:
        snapshot = await self.chain.positions([position_id])
        if not snapshot.positions:
            missing = snapshot.missing[0]
            kind = Unavailable if missing.unread else NotFound
            raise kind(f"No position {position_id} on {self.chain.info.name}: {missing.reason}.")
        position = snapshot.positions[0]
        if not position.liquidity:
            raise Refused(f"Position {position_id} holds no liquidity: there is nothing to rebalance.")
        key = position.pool.key
        if key.has_hooks and key.hooks not in hooks:
            raise Refused(
                f"Position {position_id} lies in a pool with hooks that nobody allow-listed; Zuno only shows it. "
                f"ZUNO_ALLOWED_HOOKS={key.hooks} trusts them."
            )
        return position

    async def observe_pool(
        self,
        pool: PoolState,
        feeds: Feeds,
        sources: Sources,
        position: LpPosition | None = None,
        capital: tuple[int, int] = (0, 0),
    ) -> PoolFacts:
        """One pool's facts, each with its source, none invented."""
        # A survey has several pools of one pair.
        now, label = sources.now, f"{pool.token0.symbol}/{pool.token1.symbol}" if position else pool_label(pool)
        base, quote = base_and_quote(pool.token0, pool.token1)
        pair = Pair(market_name(base), market_name(quote))
        series = await sources.ask(f"price history {label}", feeds.prices.history(pair, HISTORY_HOURS + 1, now))
        returns = () if series is None else hourly_returns(series.value)
        if base is pool.token1:
            returns = tuple(-value for value in returns)
        reference = await sources.ask(f"reference price {label}", feeds.prices.spot(pair, now))
        gas = await sources.ask("gas", feeds.gas.gas(now))
        sampled = await self._gas_samples(sources)
        volatility = rolling_vol_bps(returns) if len(returns) >= 24 else ()
        reading = classify(
            vol_bps=volatility[-1] if volatility else None,
            vol_history_bps=volatility,
            gas_price_wei=None if gas is None else gas.value.price,
            gas_history_wei=sampled,
            returns_24h=returns[-24:],
            tick=None if position is None else pool.tick,
            position=None if position is None else position.range,
        )
        fees, cover = await self._fees(pool, feeds, pair, label, sources)
        return PoolFacts(
            pool=pool,
            position=position,
            capital0=capital[0],
            capital1=capital[1],
            returns_nano=nano_returns(returns),
            fees=fees,
            cover=cover,
            gas=None if gas is None else gas.value,
            gas_median=Fraction(median(sampled)) if sampled else None,
            native_token1=await self._native(pool, feeds, sources),
            reference_gap=None if reference is None else reference_gap(pool, reference.value),
            regime=reading.regime,
            regime_why=reading.why,
            regime_notes=reading.notes,
        )

    async def _add_hedge(self, facts: PoolFacts, feeds: Feeds, sources: Sources, held: int = 0) -> PoolFacts:
        """The perpetual that hedges this pool. `Refused` where there is none."""
        tokens = (facts.pool.token0, facts.pool.token1)
        side = find_volatile_side(*tokens)
        if feeds.perpetual is None:
            raise Refused(f"{tokens[side].display_name} cannot be hedged: no perpetual can be sold short here.")
        if not (tokens[side].verified or tokens[side].native):
            raise Refused(f"{tokens[side].display_name} cannot be hedged: nobody verified what token it is.")
        quote = await feeds.perpetual.quote(market_name(tokens[side]), self.chain.info)
        sources.plain(f"perpetual {quote.market}", quote.source, sources.now)
        terms = HedgeTerms(**pick(quote, "market", "cost", "funding_hour", "source"), side=side, held=held)
        return facts.model_copy(update={"hedge": terms})

    async def _read_growth(
        self, pool: PoolState, windows: Sequence[tuple[int, str]] = WINDOWS, *, own_last: bool = False
    ) -> Growth:
        """The pool's fee growth, with the rewards that the owner named."""
        growth = await read_growth(pool, self.chain, self.samples, windows, own_last=own_last)
        reward = self.rewards.get(pool.id)
        return growth if reward is None else add_rewards(growth, pool, reward)

    async def _fees(
        self, pool: PoolState, feeds: Feeds, pair: Pair, label: str, sources: Sources
    ) -> tuple[FeeWindow | None, PoolCover | None]:
        """Fee growth over fourteen days, seven or one, and the same days held against the LVR of a reference price."""
        try:
            growth = await self._read_growth(pool)
        except Unavailable as error:
            sources.none(f"fee growth {label}", str(error))
            return None, None
        reference = await self._reference(pool, feeds, pair, label, sources)
        cover: PoolCover | None = None
        if reference is not None:
            growth, cover = hold_against(pool, growth, reference)
            cover = cover.model_copy(update={"rewarded": pool.id in self.rewards})
        window = growth.measure()
        sources.plain(f"fee growth {label}", window.label, pool.block.timestamp, growth.notes)
        if cover is not None and not cover.days:
            sources.none(f"fee cover {label}", "no returns of the pool's own price are five fees wide")
        return window, cover

    async def _reference(
        self, pool: PoolState, feeds: Feeds, pair: Pair, label: str, sources: Sources
    ) -> Reference | None:
        """The price that arbitrage follows; where nobody tells it, the pool's own."""
        feed, since = f"price path {label}", Seconds(sources.now - FORTNIGHT)
        if feeds.reference is not None:
            fact = await sources.ask(feed, feeds.reference.path(pair, since, sources.now))
            if fact is not None and not fact.stale:
                return Reference.by_feed(fact)
        try:
            swapped = await self.chain.price_path(pool.id, since, PATH_STEP)
        except (Unavailable, Malformed, Broken) as error:
            sources.none(feed, str(error))
            return None
        notes = ["no reference price: returns are as long as the fee asks"]
        if pool.key.dynamic_fee or pool.key.has_hooks:
            notes.append(f"the fee may change, it is {pool.lp_fee} pips now")
        sources.plain(feed, OWN_PRICE, pool.block.timestamp, notes)
        return Reference.by_pool(swapped)

    async def _gas_samples(self, sources: Sources) -> tuple[Wei, ...]:
        if self.samples is None:
            return ()
        now = sources.now
        try:
            kept = await self.samples.gas(self.chain.info.name, Seconds(now - GAS_SAMPLED), now)
        except (Unavailable, Broken) as error:
            sources.none("gas samples", str(error))
            return ()
        if kept:
            sources.plain("gas samples", "own samples", now, (f"{len(kept)} of the last {GAS_SAMPLED // DAY} days",))
        return tuple(sample.price for sample in kept)

    async def _native(self, pool: PoolState, feeds: Feeds, sources: Sources) -> Fraction | None:
        """Base units of token1 for one wei: from the pool where it trades the chain's own currency, else a feed's."""
        own = native_token1_in_pool(pool, self.chain.info.native_side(pool.key))
        if own is not None:
            sources.plain("native price", "the pool itself", pool.block.timestamp)
            return own
        fact = await sources.ask("native price", feeds.native.native(market_name(pool.token1), sources.now))
        return None if fact is None else fact.value * Fraction(10**pool.token1.decimals, 10**18)
