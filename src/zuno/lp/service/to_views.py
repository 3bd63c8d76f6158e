"""Facts of the world shaped into read models; nothing is computed here that money depends on."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from zuno.amm.identity import pool_id
from zuno.amm.model import Block, Depth, LpPosition, PoolKey, PoolState, quote_worth, whole_price
from zuno.amm.ticks import MAX_TICK, MIN_TICK, sqrt_price_at_tick
from zuno.kernel.numbers_text import decimal_text, money_text
from zuno.kernel.text import Token, base_and_quote, format_units
from zuno.kernel.wire import derive
from zuno.lp.model.history import PositionHistory
from zuno.lp.model.market import Fact, PriceSeries
from zuno.lp.model.plan import Leftover
from zuno.lp.rules.attribution import Attribution, PnlTerms
from zuno.lp.rules.portfolio import WindowFigures, annual_rate, list_lineage
from zuno.lp.service import views
from zuno.lp.service.position_past import Figures
from zuno.lp.service.result_views import ExactTermsView, HodlView, PnlView, PriceCaseView, TermsView
from zuno.lp.service.summary_view import YIELD_DAYS, PlannedView, SummaryView

if TYPE_CHECKING:
    from zuno.lp.rules.worth import PositionAtPrice

PRICE_DIGITS = 10
YIELD_SECONDS: Final = YIELD_DAYS * 86_400


def leftover_view(left: Leftover, pool: PoolState) -> views.LeftoverView:
    return views.LeftoverView(
        token0=format_units(left.amount0, pool.token0.decimals),
        token1=format_units(left.amount1, pool.token1.decimals),
        symbol0=pool.token0.display_name,
        symbol1=pool.token1.display_name,
        share=round(float(left.share), 6),
        why=left.why,
    )


@lru_cache(maxsize=1 << 10)
def key_view(key: PoolKey, token0: Token, token1: Token) -> views.PoolKeyView:
    fee = "dynamic fee" if key.dynamic_fee else views.fee_text(key.fee)
    hooks = " hooked" if key.has_hooks else ""
    id_ = pool_id(key.currency0, key.currency1, key.fee, key.tick_spacing, key.hooks)
    label = f"{token0.display_name}/{token1.display_name} {fee}{hooks}"
    return derive(views.PoolKeyView, key, id=id_, currency0=token0, currency1=token1, label=label)


def place(chain: str, block: Block) -> dict[str, Any]:
    """The fields of a `ChainView`."""
    return {"chain": chain, "block": block.number, "timestamp": block.timestamp}


def place_position(position: LpPosition) -> dict[str, Any]:
    """What every view of a position says of it: where it was read, its pool and its range in prices."""
    pool = position.pool
    lower, upper = tick_prices(pool, position.range.lower, position.range.upper)
    named = {"id": str(position.id), "pool": key_view(pool.key, pool.token0, pool.token1)}
    return place(position.chain, position.block) | named | {"price_lower": lower, "price_upper": upper}


def both_ways(name: str, amount0: int, amount1: int, token0: Token, token1: Token) -> dict[str, str]:
    """Amounts of both tokens in base units, and in whole tokens under the name of the human twin."""
    sides = ((f"{name}0", amount0, token0), (f"{name}1", amount1, token1))
    whole = {f"{side}_human": format_units(amount, token.decimals) for side, amount, token in sides}
    return {side: str(amount) for side, amount, _ in sides} | whole


def price_unit(token0: Token, token1: Token) -> str:
    base, quote = base_and_quote(token0, token1)
    return f"{quote.display_name} per {base.display_name}"


def price_text(sqrt_price_x96: int, token0: Token, token1: Token) -> str:
    return decimal_text(whole_price(sqrt_price_x96, token0, token1), PRICE_DIGITS)


def tick_prices(pool: PoolState, *ticks: int) -> list[str]:
    """Prices at ticks, the lowest first: where the price is told the other way round, the upper tick is the lower."""
    within = [max(MIN_TICK, min(MAX_TICK, tick)) for tick in ticks]
    prices = sorted(whole_price(sqrt_price_at_tick(tick), pool.token0, pool.token1) for tick in within)
    return [decimal_text(price, PRICE_DIGITS) for price in prices]


def pool_view(pool: PoolState, chain: str) -> views.PoolView:
    return derive(
        views.PoolView,
        pool,
        **dict(key_view(pool.key, pool.token0, pool.token1)),
        **place(chain, pool.block),
        sqrt_price_x96=str(pool.sqrt_price_x96),
        liquidity=str(pool.liquidity),
        price=price_text(pool.sqrt_price_x96, pool.token0, pool.token1),
        price_unit=price_unit(pool.token0, pool.token1),
    )


def position_view(position: LpPosition) -> views.PositionView:
    pool = position.pool
    token0, token1 = pool.token0, pool.token1
    to_edge = min(pool.tick - position.range.lower, position.range.upper - pool.tick)
    return derive(
        views.PositionView,
        position,
        **place_position(position),
        **both_ways("amount", position.amount0, position.amount1, token0, token1),
        **both_ways("fees", position.fees0, position.fees1, token0, token1),
        tick_lower=position.range.lower,
        tick_upper=position.range.upper,
        tick=pool.tick,
        liquidity=str(position.liquidity),
        value_human=_value_text(position),
        value_unit=base_and_quote(token0, token1)[1].display_name,
        price=price_text(pool.sqrt_price_x96, token0, token1),
        price_unit=price_unit(token0, token1),
        edge_distance_percent=decimal_text(Fraction(100 * to_edge, position.range.width), 4),
    )


def summary_view(position: LpPosition, figures: Figures, plan: PlannedView | None) -> SummaryView:
    """`figures`: of the last seven days."""
    pool, life, week = position.pool, figures.lives.get(position.id), figures.windows.get(position.id)
    now, quote = position.block.timestamp, base_and_quote(pool.token0, pool.token1)[1]
    lower, upper = range_changes(position)
    owed = (position.fees0, position.fees1)

    def money(value: Fraction) -> str:
        return money_text(value, quote.decimals)

    def worth(amount0: int, amount1: int) -> str:
        return money(quote_worth(amount0, amount1, pool.sqrt_price_x96, pool.token0, pool.token1))

    def collected(earned: tuple[int, int]) -> str:
        """What was earned beyond what lies there still: fees are paid whole."""
        return worth(*(max(0, every - left) for every, left in zip(earned, owed, strict=True)))

    fields: dict[str, Any] = {}
    if life is not None:
        fields |= {name: money(getattr(life, name)) for name in ("result", "against_holding", "fees", "lvr")}
        fields |= {"opened_at": life.opened_at, "fees_collected": collected(life.earned), "guessed": life.guessed}
        fields["result_share"] = rate_of(life.result / life.put_in) if life.put_in > 0 else None
        fields["out_for_hours"] = None if life.out_since is None else round((now - life.out_since) / 3_600, 2)
    if week is not None:
        fields |= {"fees7d": money(week.fees), "lvr7d": money(week.lvr), "fees7d_collected": collected(week.earned)}
        fields |= dict(zip(("fee_apr", "net_apr"), yields_of(week), strict=True))
    missing = [reasons.get(position.id, "") for reasons in (figures.why_no_life, figures.why_no_window)]
    age = week.seconds if week is not None else now if life is None else now - life.opened_at
    return SummaryView(
        state="empty" if not position.liquidity else "in_range" if position.in_range else "out_of_range",
        to_lower_percent=lower,
        to_upper_percent=upper,
        unit=quote.display_name,
        uncollected=worth(*owed),
        young=age < YIELD_SECONDS,
        position_ids=tuple(map(str, (position.id,) if life is None else life.lineage)),
        plan=plan,
        why="; ".join(dict.fromkeys(filter(None, missing))),
        **fields,
    )


def yields_of(window: WindowFigures) -> tuple[float | None, float | None]:
    """Of fees, and after LVR; none of less than seven days."""
    if window.seconds < YIELD_SECONDS:
        return None, None
    fees, net = window.fees, window.fees - window.lvr
    rates = [rate_of(annual_rate(gain, window.mean_worth, window.seconds)) for gain in (fees, net)]
    return rates[0], rates[1]


def range_changes(position: LpPosition) -> list[str]:
    """By how many percent the price must change to be at the lower and at the upper edge."""
    pool = position.pool
    prices = [whole_price(sqrt, pool.token0, pool.token1) for sqrt in position.range.edges_x96]
    here = whole_price(pool.sqrt_price_x96, pool.token0, pool.token1)
    return [decimal_text((price / here - 1) * 100, 6) for price in sorted(prices)]


def rate_of(value: Fraction | None) -> float | None:
    return None if value is None else float(decimal_text(value, 6))


def _value_text(position: LpPosition) -> str:
    pool = position.pool
    _, quote = base_and_quote(pool.token0, pool.token1)
    total0, total1 = position.amount0 + position.fees0, position.amount1 + position.fees1
    worth = quote_worth(total0, total1, pool.sqrt_price_x96, pool.token0, pool.token1)
    return money_text(worth, quote.decimals)


def fact_view(fact: Fact[Fraction] | None, unit: str, why_not: str = "", digits: int = PRICE_DIGITS) -> views.FactView:
    if fact is None:
        notes = (why_not,) if why_not else ()
        return views.FactView(value=None, unit=unit, source=None, as_of=None, age_seconds=None, stale=None, notes=notes)
    return derive(views.FactView, fact, value=decimal_text(fact.value, digits), unit=unit, age_seconds=fact.age)


def pnl_view(chain: str, position_id: int, history: PositionHistory, result: Attribution, note: str = "") -> PnlView:
    token0, token1 = history.token0, history.token1
    notes = [*history.notes, *filter(None, (note,))]
    if not result.gas_valued and result.gas_wei:
        notes.append("nothing here prices the chain's own currency, so gas stands outside the sum")
    return PnlView(
        id=str(position_id),
        chain=chain,
        pool=key_view(history.key, token0, token1),
        position_ids=tuple(map(str, list_lineage(history))),
        from_block=history.opened.number,
        from_timestamp=history.opened.timestamp,
        to_block=history.closed.number,
        to_timestamp=history.closed.timestamp,
        open=history.end is not None,
        **both_ways("fees", result.fees0, result.fees1, token0, token1),
        gas_wei=str(result.gas_wei),
        gas_valued=result.gas_valued,
        in_token0=_terms_view(token0, result.in_token0, result.lvr_token0),
        in_token1=_terms_view(token1, result.in_token1, result.lvr_token1),
        lineage=history.lineage,
        exact=result.exact and history.lineage != "chain guess",
        computed=history.computed,
        notes=tuple(notes),
    )


def price_case_view(
    position: LpPosition, percent: str, case: PositionAtPrice, deposited: tuple[Fraction, Fraction] | None
) -> PriceCaseView:
    token0, token1 = position.pool.token0, position.pool.token1
    _, quote = base_and_quote(token0, token1)

    def money(value: Fraction) -> str:
        return money_text(value, quote.decimals)

    put_in = None if deposited is None else quote_worth(*deposited, case.sqrt_price_x96, token0, token1)
    return PriceCaseView(
        percent=percent,
        price=price_text(case.sqrt_price_x96, token0, token1),
        **both_ways("amount", case.amount0, case.amount1, token0, token1),
        worth=money(case.worth),
        hodl_worth=money(case.hodl_worth),
        divergence_loss=money(case.divergence_loss),
        fees_worth=money(case.fees_worth),
        in_range=case.in_range,
        since_mint=None
        if put_in is None
        else HodlView(hodl_worth=money(put_in), divergence_loss=money(put_in - case.worth)),
    )


def price_points(series: PriceSeries) -> tuple[views.PricePointView, ...]:
    return tuple(
        views.PricePointView(at=point.at, price=decimal_text(point.price, PRICE_DIGITS)) for point in series.points
    )


def fee_period_view(
    position: LpPosition, since: int, until: int, from_start: tuple[int, int], from_end: tuple[int, int]
) -> views.FeePeriodView:
    """What was earned between two moments, from what was earned since each of them."""
    pool = position.pool
    fees0, fees1 = from_start[0] - from_end[0], from_start[1] - from_end[1]
    _, quote = base_and_quote(pool.token0, pool.token1)
    worth = quote_worth(fees0, fees1, pool.sqrt_price_x96, pool.token0, pool.token1)
    return views.FeePeriodView(
        from_timestamp=since,
        to_timestamp=until,
        fees0_human=format_units(fees0, pool.token0.decimals),
        fees1_human=format_units(fees1, pool.token1.decimals),
        worth=money_text(worth, quote.decimals),
    )


def _terms_view(token: Token, terms: PnlTerms, lvr: float) -> TermsView:
    def money(value: Fraction) -> str:
        return money_text(value, token.decimals, places=8 if token.decimals > 8 else 6)

    every = {name: getattr(terms, name) for name in ExactTermsView.model_fields}
    exact = {name: term for name, term in every.items() if term is not None}
    return TermsView(
        token=token.display_name,
        **{name: money(term) for name, term in exact.items() if name != "residual"},
        result=money(terms.result),
        residual="0" if terms.residual == 0 else decimal_text(terms.residual / 10**token.decimals, 6),
        lvr=money(Fraction(lvr)),
        exact=ExactTermsView(**{name: str(term) for name, term in exact.items()}),
    )


REACH: Final = 6_932
"""Ticks to each side of the price: from half of it to twice."""


def list_bands(depth: Depth, reach: int = REACH) -> Iterator[tuple[int, int, int]]:
    """Lower tick, upper tick and liquidity between neighbouring initialised ticks around the price."""
    pool = depth.pool
    low = max(int(depth.known.lower), pool.tick - reach)
    high = min(int(depth.known.upper), pool.tick + reach)
    liquidity = int(pool.liquidity) - sum(net for tick, net in depth.net.items() if low < tick <= pool.tick)
    lower = low
    for upper in (*(tick for tick in sorted(depth.net) if low < tick < high), high):
        yield lower, upper, liquidity
        liquidity += depth.net.get(upper, 0)
        lower = upper


def liquidity_view(chain: str, depth: Depth) -> views.LiquidityView:
    pool = depth.pool
    bands = []
    for lower, upper, liquidity in list_bands(depth):
        low, high = tick_prices(pool, lower, upper)
        edges: dict[str, Any] = {"tick_lower": lower, "tick_upper": upper, "price_lower": low, "price_upper": high}
        bands.append(views.LiquidityBandView(**edges, liquidity=str(liquidity)))
    return views.LiquidityView(
        **place(chain, pool.block),
        pool=key_view(pool.key, pool.token0, pool.token1),
        price=price_text(pool.sqrt_price_x96, pool.token0, pool.token1),
        price_unit=price_unit(pool.token0, pool.token1),
        tick=pool.tick,
        bands=tuple(bands),
    )
