"""Which pools of a chain pay: read in chunks, measured by their finished days, ranked by the low end of fee cover."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Final

from pydantic import Field

from zuno.amm.fees import PIPS
from zuno.amm.integers import Q96
from zuno.amm.liquidity import amounts_for_liquidity
from zuno.amm.model import Depth, PoolState, price_of, whole_price
from zuno.amm.ticks import sqrt_price_at_tick
from zuno.kernel.arguments import parse_amount
from zuno.kernel.errors import Broken, Malformed, Unavailable
from zuno.kernel.numbers_text import short_text
from zuno.kernel.text import base_and_quote, is_stable
from zuno.kernel.units import Address, HexId, Seconds
from zuno.kernel.view import ForeignText, View
from zuno.kernel.wire import pick
from zuno.lp.agents.pool_choice import depth_in, select_pools
from zuno.lp.agents.pool_past import OWN_PRICE, Growth, Reference, find_variances, measure_days
from zuno.lp.model.chains import market_name
from zuno.lp.model.cover import FeeCover, RankFault
from zuno.lp.model.market import HOUR, Pair
from zuno.lp.ports.chain import SurveyedChain, SurveyedPool
from zuno.lp.ports.market import Feeds
from zuno.lp.ports.samples import ReadBefore
from zuno.lp.rules import pool_rank
from zuno.lp.rules.fee_yield import DAY
from zuno.lp.rules.pool_rank import COVER_DAYS, RANGE_PERCENT, WEEK_DAYS, WINDOW_DAYS, WORTH, PastDay
from zuno.lp.service import arguments, to_views
from zuno.lp.service.phrase import token_named
from zuno.lp.service.views import ChainView, PoolKeyView, describe_place, format_moment, warn_unverified
from zuno.present.document import Act, Document, Mark, Value, document, lines, table
from zuno.present.values import count, foreign, good, number, quiet, share

CHUNK: Final = 50
DEPTH_TICKS: Final = 198
"""A price 2 % higher, or lower."""
PER: Final = 10_000.0


class RankedPoolView(View):
    """Figures that are not known are null. Sums are per $10,000 in range, in dollars."""

    pool: PoolKeyView
    fees_over_lvr: float | None = None
    ci80: tuple[float, float] | None = None
    pays: bool | None = None
    not_ranked: RankFault | None
    fees_per10k7d: Annotated[float | None, Field(alias="feesPer10k7d")]
    lvr_per10k7d: Annotated[float | None, Field(alias="lvrPer10k7d")]
    fees_per10k30d: Annotated[float | None, Field(alias="feesPer10k30d")]
    lvr_per10k30d: Annotated[float | None, Field(alias="lvrPer10k30d")]
    depth_usd: float | None = None
    """Of both tokens, within 2 % of the price."""
    volume_usd7d: Annotated[float | None, Field(alias="volumeUsd7d")] = None
    """By the fees and today's liquidity."""
    age_days: int | None
    """Finished days; 30: that or more."""
    dilution: float | None
    """The share of the liquidity in range that a position of the asked size would be."""
    measured_by: ForeignText

    @property
    def interval(self) -> Value:
        return quiet("–") if self.ci80 is None else Value(f"{self.ci80[0]:.2f}–{self.ci80[1]:.2f}")

    @property
    def cells(self) -> tuple[Value, ...]:
        sums = (self.fees_per10k7d, self.lvr_per10k7d, self.fees_per10k30d, self.lvr_per10k30d)
        dollars = (quiet("–") if usd is None else count(round(usd)) for usd in (self.depth_usd, self.volume_usd7d))
        age = "–" if self.age_days is None else f"{self.age_days} d{'+' if self.age_days >= WINDOW_DAYS else ''}"
        verdict = quiet(self.not_ranked or "no") if not self.pays else good("yes")
        first = (self.pool.name, number(self.fees_over_lvr), self.interval, verdict)
        return (*first, *map(number, sums), *dollars, Value(age), share(self.dilution))


class PoolRankingView(ChainView):
    """By the low end of fee cover; pools that are not ranked come last."""

    pools: tuple[RankedPoolView, ...]
    ranked: int
    amount_usd: str
    range_percent: int
    until: int
    """The end of the last finished day."""
    notes: tuple[ForeignText, ...]

    def to_document(self) -> Document:
        paying = [row for row in self.pools if row.pays]
        columns = ("pool", "fee cover", "80 %", "pays", "fees 7 d", "LVR 7 d", "fees 30 d", "LVR 30 d")
        spare = ("age", "volume 7 d", "dilutes", "depth ±2 %", "LVR 30 d", "fees 30 d", "LVR 7 d", "fees 7 d")
        if paying:
            cover = f"{number(paying[0].fees_over_lvr).text} × LVR ({paying[0].interval.text})"
            best = f"{len(paying)} of {self.ranked} pools pay; first {paying[0].pool.label}, fees {cover}"
            headline = paying[0].pool.sentence(best)
        else:
            why = "None of them pays" if self.ranked else "Nothing could be ranked"
            headline = Value(f"{why}: {self.ranked} of {len(self.pools)} pools ranked")
        how = (
            f"Sums are dollars per $10,000 in a range of ±{self.range_percent} % that is in range all the time, by UTC "
            f"days to {format_moment(self.until)[:10]}. `dilutes`: by a position of ${short_text(self.amount_usd)}.",
            f"A pool pays where the low end of fee cover at 1 − 0.10/{max(1, self.ranked)}, over {COVER_DAYS} days, is "
            "above 1: the best of many looks good by chance.",
        )
        return document(
            headline,
            table(
                (*columns, "depth ±2 %", "volume 7 d", "age", "dilutes"), (row.cells for row in self.pools), spare=spare
            ),
            lines(*warn_unverified(row.pool for row in self.pools), mark=Mark.WARNING),
            context=describe_place(self.chain, self.block),
            notes=(*how, *map(foreign, self.notes)),
            acts=(Act("Pool", f"lp pool {row.pool.id} --chain {self.chain}") for row in paying[:1]),
            as_of=format_moment(self.timestamp),
        )


@dataclass(slots=True)
class Measured:
    """A pool with its last finished days, one after the other."""

    pool: PoolState
    days: tuple[PastDay, ...] = ()
    until: int = 0
    """The end of the last."""
    source: str = ""
    """Whose price their LVR is by."""
    depth: Depth | None = None
    age: int | None = None
    fault: RankFault | None = RankFault.UNREAD
    cover: FeeCover | None = None

    def load(self, record: dict[str, Any]) -> None:
        days = tuple(PastDay(*map(float, day)) for day in record["days"])
        self.days, self.until, self.source = days, int(record["until"]), str(record["source"])

    def judge(self, unpriced: RankFault | None) -> None:
        """`unpriced`: why its days have no LVR."""
        fault = pool_rank.find_fault(self.pool, self.days)
        self.cover = None if fault else pool_rank.measure_cover(self.days)
        self.fault = unpriced if unpriced and fault is RankFault.FEW_DAYS else fault
        if self.fault is None and self.cover is None:
            self.fault = RankFault.NO_REFERENCE

    def add_days(self, read: SurveyedPool, reference: Reference | None) -> RankFault | None:
        """Those since the last that is known; or say why they have no LVR."""
        marks = tuple(mark for mark in read.marks if mark.at >= self.until - HOUR)
        if len(marks) < 2:
            return None
        if reference is None:
            reference = Reference.by_pool(read.path or ())
        growth, variances, _ = find_variances(self.pool, Growth(marks, "", ""), reference)
        joined = growth.marks[0].at <= self.until + HOUR
        if not variances or (joined and self.source != reference.source) or (reference.own and read.path is None):
            self.days, self.until = (), 0
            idle = any((a.growth0_x128, a.growth1_x128) == (b.growth0_x128, b.growth1_x128) for a, b in pairwise(marks))
            return RankFault.NO_SWAPS if idle else RankFault.NO_REFERENCE
        measured = zip(measure_days(growth.marks, variances), pairwise(growth.marks), strict=True)
        new = (PastDay(day.fees, day.lvr, (a.sqrt_price_x96 + b.sqrt_price_x96) / 2 / Q96) for day, (a, b) in measured)
        self.days = (*(self.days if joined else ()), *new)[-WINDOW_DAYS:]
        self.until, self.source = marks[-1].at, reference.source
        return None


@dataclass(frozen=True, slots=True, eq=False)
class PoolRanking:
    chain: SurveyedChain
    feeds_of: Callable[[HexId], Feeds]
    kept: ReadBefore | None = None
    """Finished days that were read before; None: another chain may come under the same name."""

    async def rank(self, wanted: str | None, amount: str, tell: Callable[[int, int], None]) -> PoolRankingView:
        """`wanted`: a token or a pair; `tell`: how many pools of how many are read."""
        size, info = parse_amount(amount), self.chain.info
        names: tuple[str, ...] = () if wanted is None else (token_named(wanted.strip()),)
        if wanted is not None and re.search("[/-]", wanted):
            names = arguments.pair_of(wanted)
        found = await self.chain.pools()
        pools, notes = select_pools(names, found.pools, info), dict.fromkeys(found.notes)
        midnight = found.block.timestamp // DAY * DAY
        moments = [Seconds(midnight - day * DAY) for day in range(WINDOW_DAYS, -1, -1)]
        prices, rows = price_in_dollars(found.pools), list[tuple[FeeCover | None, RankedPoolView]]()
        for begin in range(0, len(pools), CHUNK):
            chunk = [Measured(pool) for pool in pools[begin : begin + CHUNK]]
            await self._measure(chunk, moments, notes)
            rows += [(each.cover, _build_row(each, prices, float(size))) for each in chunk]  # their days are done with
            if len(pools) > CHUNK:
                tell(len(rows), len(pools))
        ranked = sum(cover is not None for cover, _ in rows)
        rows.sort(key=lambda each: -1.0 if each[0] is None else each[0].low, reverse=True)
        return PoolRankingView(
            **to_views.place(info.name, found.block),
            pools=tuple(
                row if cover is None else row.model_copy(update={"pays": pool_rank.pays(cover, ranked)})
                for cover, row in rows
            ),
            ranked=ranked,
            amount_usd=f"{size:f}",
            range_percent=RANGE_PERCENT,
            until=midnight,
            notes=tuple(notes),
        )

    async def _measure(self, chunk: Sequence[Measured], moments: Sequence[Seconds], notes: dict[str, None]) -> None:
        """In as few requests as one pool takes; why something was not read is added to the notes."""
        if self.kept is not None:
            for each in chunk:
                self.kept.load(each.pool.id, each.load)
        stale = [each for each in chunk if abs(each.until - moments[-1]) > HOUR]
        references = await self._read_references([each.pool for each in stale], moments[0], notes)
        for each in stale:
            if each.until > moments[-1] or (each.source == OWN_PRICE and each.pool.id in references):
                each.days, each.until = (), 0
        since = {each.pool.id: next(at for at in moments if at > each.until - HOUR) for each in stale}
        by_id = {each.pool.id: each for each in chunk}
        try:
            surveyed = await self.chain.survey(list(by_id), moments, since, since.keys() - references.keys())
        except (Unavailable, Malformed, Broken) as error:
            notes[f"{len(chunk)} pools could not be read: {error}"] = None
            return
        for read in surveyed:
            each, why = by_id[read.depth.pool.id], None
            each.pool, each.depth = read.depth.pool, read.depth
            if each in stale:
                why = each.add_days(read, references.get(each.pool.id))
                if self.kept is not None and each.days:
                    self.kept.save(each.pool.id, pick(each, "days", "until", "source"))
            each.age = max(len(each.days), len(read.marks) - 1)
            each.judge(why)

    async def _read_references(
        self, pools: Sequence[PoolState], since: Seconds, notes: dict[str, None]
    ) -> dict[HexId, Reference]:
        by_pair: dict[Pair, list[PoolState]] = {}
        for pool in pools:
            by_pair.setdefault(Pair(*map(market_name, base_and_quote(pool.token0, pool.token1))), []).append(pool)
        references: dict[HexId, Reference] = {}
        for pair, traded in by_pair.items():
            if (feed := self.feeds_of(traded[0].id).reference) is None:
                continue
            try:
                fact = await feed.path(pair, since, traded[0].block.timestamp)
            except (Unavailable, Malformed) as error:
                notes[f"no reference price of {pair}: {error}"] = None
                continue
            if not fact.stale:
                references |= dict.fromkeys((pool.id for pool in traded), Reference.by_feed(fact))
        return references


def _build_row(each: Measured, prices: Mapping[Address, Fraction], size: float) -> RankedPoolView:
    """Whether it pays hangs on how many are ranked, and is not in it yet."""
    pool, cover, price = each.pool, each.cover, price_of(each.pool.sqrt_price_x96)
    dollar = float(prices.get(pool.token1.address) or prices.get(pool.token0.address, Fraction(0)) / price)
    mine = size / (pool.sqrt_price_x96 / Q96 * WORTH * dollar) if dollar else None

    def round_money(amount: float | None, unit: float = PER) -> float | None:
        return None if amount is None or not unit else round(amount * unit, 2)

    known: dict[str, Any] = {}
    for days in (WEEK_DAYS, WINDOW_DAYS):
        shares = zip(("fees", "lvr"), pool_rank.share_out(each.days, days), strict=True)
        known |= {f"{name}_per10k{days}d": round_money(amount) for name, amount in shares}
    if cover is not None:
        interval = (round(cover.low, 4), round(cover.high, 4))
        known |= {"fees_over_lvr": round(cover.ratio, 4), "ci80": interval}
    if each.depth is not None:
        known["depth_usd"] = round_money(_add_near(each.depth), dollar)
    if len(each.days) >= WEEK_DAYS and not pool.key.dynamic_fee:
        paid = sum(day.fees for day in each.days[-WEEK_DAYS:]) * pool.liquidity
        known["volume_usd7d"] = round_money(paid, dollar * PIPS / max(1, pool.lp_fee))
    return RankedPoolView(
        **known,
        pool=to_views.key_view(pool.key, pool.token0, pool.token1),
        not_ranked=each.fault,
        age_days=each.age,
        dilution=None if mine is None else round(mine / (mine + pool.liquidity), 6),
        measured_by=each.source,
    )


def price_in_dollars(pools: Sequence[PoolState]) -> dict[Address, Fraction]:
    """Of a base unit of each token, by the deepest pool against a stablecoin."""
    deepest: dict[Address, tuple[Fraction, Fraction]] = {}
    for pool in pools:
        base, quote = base_and_quote(pool.token0, pool.token1)
        if is_stable(quote) and not pool.key.has_hooks and pool.liquidity:
            price = whole_price(pool.sqrt_price_x96, pool.token0, pool.token1)
            rank = (depth_in(pool, int(quote is pool.token1)), price / 10**base.decimals)
            deepest[base.address] = max(rank, deepest.get(base.address, rank))
            deepest[quote.address] = (Fraction(2**256), Fraction(1, 10**quote.decimals))
    return {address: price for address, (_, price) in deepest.items()}


def _add_near(depth: Depth) -> float:
    """What lies within 2 % of the price, in base units of token1."""
    price = depth.pool.sqrt_price_x96
    sides = [
        amounts_for_liquidity(price, sqrt_price_at_tick(lower), sqrt_price_at_tick(upper), liquidity, round_up=False)
        for lower, upper, liquidity in to_views.list_bands(depth, DEPTH_TICKS)
    ]
    return float(sum(amount0 for amount0, _ in sides) * price_of(price) + sum(amount1 for _, amount1 in sides))
