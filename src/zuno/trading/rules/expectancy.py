"""Expected value of a trade: the edge that the record supports, less what the trade costs for as long as it lasts; and
what may be explored on paper while no edge is proven.

How long a trade lasts is drawn by a block bootstrap of the market's own bars without drift, in whole 1e-9 of log price;
of a bar that touches both levels the stop came first. Its shares are no probability of winning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import fsum, inf, sqrt
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zuno.markets.venues import Venue
from zuno.trading.measure.bars import LOOKBACK, Bars
from zuno.trading.measure.portable import NANO, exp, nano_log, round_digits
from zuno.trading.model.cycle import LEVERAGE_CAP, Decision, Expectation, Style, Target
from zuno.trading.model.known import Known, Missing
from zuno.trading.model.market import DAY_MS, HOUR_MS, Side
from zuno.trading.rules.account import group_side_usd
from zuno.trading.rules.calibration import LIVE_TRADES, EdgeSlope, breakeven_win_rate, clamp_edge
from zuno.trading.rules.draft import RuleName, RulingDraft, change_allocation, veto_trade
from zuno.trading.rules.exits import hold_hours
from zuno.trading.rules.inputs import RulingInputs
from zuno.trading.rules.price_menu import TradePrices
from zuno.trading.rules.routing import (
    MAX_EXPLORATION_RISK_PCT,
    leg_notional_usd,
    raise_to_minimum,
    stop_loss_pct,
    with_lots,
    with_margin,
)

FUNDING_INTERVAL_HOURS: Final = 8
"""Funding rates are quoted for this interval."""
MAX_LLM_COST_PCT: Final = 1e6
"""Per cent. A finite bound, because a record cannot hold infinity."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Of a whole trade, in per cent of its notional."""

    fees: float
    slippage: float
    funding: float = 0.0
    """Below zero where the holder is paid: at most what fees and slippage cost."""

    @property
    def total(self) -> float:
        return self.fees + self.slippage + self.funding


def trade_prices(decision: Decision, side: Side) -> TradePrices | None:
    """None where a price is missing, the stop not behind the entry or the target not ahead of it."""
    entry, stop, take = decision.entry_price, decision.stop_loss, decision.take_profit
    if entry is None or stop is None or take is None or min(entry, stop, take) <= 0:
        return None
    prices = TradePrices(side, round_digits(entry), round_digits(stop), round_digits(take))
    return prices if prices.is_ordered else None


def round_trip_costs(exchange: Venue, side: Side, style: Style, inputs: RulingInputs) -> Known[Costs]:
    """Entry by style, exit at market. A waiting order pays the maker fee and half a spread of adverse selection."""
    if isinstance(inputs.slippage, Missing):
        return inputs.slippage
    rates, patient = inputs.fees.at(exchange), style is Style.PASSIVE_MAKER
    buy, sell = inputs.slippage.buy, inputs.slippage.sell
    entry, leave = (buy, sell) if side is Side.LONG else (sell, buy)
    return Costs(
        fees=(rates.maker if patient else rates.taker) + rates.taker,
        slippage=(inputs.slippage.half_spread if patient else entry) + leave,
    )


def trade_costs(exchange: Venue, side: Side, style: Style, hours: float, inputs: RulingInputs) -> Known[Costs]:
    """Costs including funding at the predicted rate for these hours. Received funding offsets fees and slippage at
    most: a rate is known for one interval and is no proof of an edge."""
    costs = round_trip_costs(exchange, side, style, inputs)
    if isinstance(costs, Missing) or not exchange.funding_hours:
        return costs
    if isinstance(inputs.funding_next, Missing):
        return inputs.funding_next
    funding = inputs.funding_of(inputs.funding_next, side) * hours / FUNDING_INTERVAL_HOURS * 100
    return Costs(costs.fees, costs.slippage, max(funding, -costs.total))


def fill_probability(prices: TradePrices, style: Style, inputs: RulingInputs) -> Known[float]:
    """How often the market reaches a waiting order's price within one bar; 1 for an order that takes."""
    if style is not Style.PASSIVE_MAKER:
        return 1.0
    if isinstance(inputs.bars, Missing):
        return inputs.bars
    if isinstance(inputs.mark, Missing):
        return inputs.mark
    away = prices.side.sign * int(nano_log(inputs.mark) - nano_log(prices.entry))
    return 1.0 if away < 0 else fill_share(inputs.bars, away, prices.side)


def estimate_expectation(
    decision: Decision,
    side: Side,
    exchanges: tuple[Venue, ...],
    style: Style,
    inputs: RulingInputs,
    slope: EdgeSlope,
    cost_usd: float,
    notional_usd: float,
) -> Known[Expectation]:
    """At the dearest of the exchanges it is routed to, whether or not each can carry its leg today."""
    prices = trade_prices(decision, side)
    if prices is None:
        return Missing("its stop is not behind its entry, or its target not ahead of it")
    hold, bars = hold_hours(decision.hold_duration, inputs.mode), inputs.bars
    if isinstance(bars, Missing):
        return bars
    bars_held = max(1, round(hold * HOUR_MS / bars.timeframe.millis))
    touch = first_touch(bars, prices.entry, prices.stop, prices.take, side, bars_held, inputs.seed)
    if isinstance(touch, Missing):
        return touch
    hours = min(float(hold), touch.bars * bars.timeframe.millis / HOUR_MS)
    execution = _estimate_execution(prices, exchanges, style, hours, inputs)
    if isinstance(execution, Missing):
        return execution
    profit, loss = round_digits(prices.reward * 100), round_digits(prices.risk * 100)
    opinion, fair = decision.win_probability_pct / 100, round_digits(breakeven_win_rate(profit, loss))
    edge = round_digits(clamp_edge(opinion, fair))
    believed = opinion - fair if inputs.policy == "seed" else slope.weight * edge
    expectation = Expectation(
        p_judge=opinion,
        fair=fair,
        edge=edge,
        lambda_=slope.weight,
        gross_pct=round_digits(believed * (profit + loss)),
        policy=inputs.policy,
        beta=None if slope.beta is None else round_digits(slope.beta),
        beta_se=None if slope.error is None else round_digits(slope.error),
        n=slope.n,
        duration_hours=round_digits(hours),
        resolved=round_digits(touch.target + touch.stop),
        timed_out=touch.time,
        standard_error=round_digits(touch.error),
        profit_pct=profit,
        loss_pct=loss,
        llm_cost_usd=cost_usd,
        ev_pct=0.0,
        **execution,
    )
    return apply_llm_cost(expectation, notional_usd)


def _estimate_execution(
    prices: TradePrices, exchanges: Iterable[Venue], style: Style, hours: float, inputs: RulingInputs
) -> Known[dict[str, float]]:
    """The probability of a fill and the costs at the dearest of the exchanges, as an expectation names them."""
    estimates = [trade_costs(exchange, prices.side, style, hours, inputs) for exchange in exchanges]
    fill = fill_probability(prices, style, inputs)
    missing = next((figure for figure in (*estimates, fill) if isinstance(figure, Missing)), None)
    known = [costs for costs in estimates if not isinstance(costs, Missing)]
    if missing is not None or isinstance(fill, Missing) or not known:
        return missing or Missing("no exchange carries it")
    dearest = max(known, key=lambda costs: costs.total)
    parts = {f"{name}_pct": round_digits(getattr(dearest, name)) for name in ("fees", "slippage", "funding")}
    return {"fill": fill, **parts}


def list_choices(draft: RulingDraft, inputs: RulingInputs) -> dict[tuple[Style, Target], Expectation]:
    """Styles and routes that a draft might take instead and that stay above zero after their costs, with what it is
    worth then. None for a draft without a proven edge, and no route that cannot carry its side."""
    side, worth = draft.call.side, draft.expectation
    prices = None if side is None else trade_prices(draft.decision, side)
    if worth is None or prices is None or draft.exploration or worth.ev_pct <= 0 or draft.style is None:
        return {}
    size = fsum(leg_notional_usd(leg, inputs) for leg in draft.legs)
    choices: dict[tuple[Style, Target], Expectation] = {}
    for route, venues in inputs.routes.shares.items():
        if side is Side.SHORT and not all(venue.shorts for venue in venues):
            continue
        for style in filter(lambda style: style.opens, Style):
            execution = _estimate_execution(prices, venues, style, worth.duration_hours, inputs)
            if (style, route) != (draft.style, draft.routed_to) and not isinstance(execution, Missing):
                choices[style, Target(route)] = apply_llm_cost(worth.model_copy(update=execution), size)
    return {choice: priced for choice, priced in choices.items() if priced.ev_pct > 0}


def apply_llm_cost(expectation: Expectation, notional_usd: float) -> Expectation:
    """EV after the model cost, which is a smaller share of a larger trade."""
    costs = trading_costs(expectation) + llm_cost_pct(expectation, notional_usd)
    return expectation.model_copy(update={"ev_pct": round_digits(expectation.fill * (gross_ev(expectation) - costs))})


def gross_ev(expectation: Expectation) -> float:
    """In per cent of the notional, before costs; nothing where the Judge claims no more than the distances give."""
    assert expectation.gross_pct is not None  # of an older edition, which nobody rules by again
    return expectation.gross_pct


def judged_ev(expectation: Expectation, notional_usd: float) -> float:
    costs = trading_costs(expectation) + llm_cost_pct(expectation, notional_usd)
    odds = expectation.p_judge
    return round_digits(odds * (expectation.profit_pct - costs) - (1 - odds) * (expectation.loss_pct + costs))


def trading_costs(expectation: Expectation) -> float:
    """Never below zero, not even by the last digit of a rounded part."""
    return max(0.0, expectation.fees_pct + expectation.slippage_pct + expectation.funding_pct)


def llm_cost_pct(expectation: Expectation, notional_usd: float) -> float:
    """Of the notional."""
    cost = expectation.llm_cost_usd
    share = cost / notional_usd * 100 if notional_usd > 0 else inf if cost else 0.0
    return min(share, MAX_LLM_COST_PCT)


SIZE_FRACTION: Final = 0.25
"""Of the size that was decided."""
MAX_PER_DAY: Final = 2
KELLY_SHARE: Final = 0.25
"""Of the bet that makes an account grow fastest."""


def require_expectancy(draft: RulingDraft, inputs: RulingInputs) -> RulingDraft:
    """Veto a trade without positive EV at its size or by the Judge's own odds; explore what lacks a proven edge."""
    if not draft.opens:
        return draft
    expectation = draft.expectation
    entry, stop = draft.decision.entry_price or 0.0, draft.decision.stop_loss
    size = fsum(leg_notional_usd(with_lots(leg, entry, stop, inputs) or leg, inputs) for leg in draft.legs)
    if expectation is None or not size > 0:
        return veto_trade(draft, RuleName.NO_SIZE, "no money is left to place")
    expectation = apply_llm_cost(expectation, size)
    draft = replace(draft, expectation=expectation)
    if (judged := judged_ev(expectation, size)) <= 0:
        why = f"{judged:+.4f} % of the notional by the Judge's own {100 * expectation.p_judge:.0f} %"
        return veto_trade(draft, RuleName.JUDGE_EV, why)
    if not inputs.paper and expectation.n < LIVE_TRADES:
        why = f"{expectation.n} of the {LIVE_TRADES} closed trades in real time that live needs: it stays on paper"
        return veto_trade(draft, RuleName.EXPECTANCY, why)
    if draft.exploration:
        return draft
    if expectation.ev_pct > 0:
        return _limit_to_kelly(draft, expectation, size, inputs)
    refusal = explain_refusal(draft, inputs)
    if refusal is not None:
        return veto_trade(draft, RuleName.EXPECTANCY, f"{_describe_ev(expectation)}; {refusal}")
    return _explore(draft, expectation, inputs)


def find_kelly_cap(expectation: Expectation, size: float, equity: float, held: float) -> float:
    """The largest notional in dollars that, with what is `held`, is a quarter of the Kelly bet at its own EV, fill
    aside; 0 where a trade of this size pays more for models than its EV bears."""
    bet = KELLY_SHARE * max(0.0, equity) / (expectation.profit_pct * expectation.loss_pct / 10_000)
    room = bet * (gross_ev(expectation) - trading_costs(expectation)) / 100 - held
    root = room * room - 4 * bet * expectation.llm_cost_usd
    if room <= 0 or root < 0 or size < (room - sqrt(root)) / 2:
        return 0.0
    return round_digits((room + sqrt(root)) / 2)


def _limit_to_kelly(draft: RulingDraft, expectation: Expectation, size: float, inputs: RulingInputs) -> RulingDraft:
    account, book, side = inputs.marked_account, inputs.account, draft.call.side
    if isinstance(account, Missing) or isinstance(book, Missing) or side is None:
        return veto_trade(draft, RuleName.KELLY, "the account is not known", unknown=True)
    held = group_side_usd(account, book, inputs.group | {inputs.symbol}, side)
    most = find_kelly_cap(expectation, size, account.equity_usd, held)
    why = (
        f"a quarter of the Kelly bet at an EV of {expectation.ev_pct / expectation.fill:+.4f} % is ${most:,.2f} "
        f"beside ${held:,.2f} that are open on this side"
    )
    if most <= 0:
        return veto_trade(draft, RuleName.KELLY, why)
    draft = replace(draft, kelly_cap_usd=most)
    if size <= most:
        return draft
    share = most / fsum(leg_notional_usd(leg, inputs) for leg in draft.legs)  # lots would round what is cut up again
    legs = tuple(with_margin(leg, leg.margin * share) for leg in draft.legs)
    draft = change_allocation(draft, RuleName.KELLY, draft.allocation_pct * share, why)
    return replace(draft, legs=legs, expectation=apply_llm_cost(expectation, most))


def explain_refusal(draft: RulingDraft, inputs: RulingInputs) -> str | None:
    """Why a trade may not be explored; None if it may."""
    record = inputs.record
    if not inputs.paper:
        return "nothing is explored live"
    if isinstance(record, Missing):
        return f"the record is not known: {record.reason}"
    if draft.family is None:
        return "its regime is not known"
    day = sum(exploration.at > inputs.as_of - DAY_MS for exploration in record.explorations)
    return f"{day} explorations in 24 h are all there may be" if day >= MAX_PER_DAY else None


def _explore(draft: RulingDraft, expectation: Expectation, inputs: RulingInputs) -> RulingDraft:
    leverage = min(draft.leverage, LEVERAGE_CAP[inputs.mode])
    loss = stop_loss_pct(expectation)
    allocation = min(SIZE_FRACTION * draft.allocation_pct, 100 * MAX_EXPLORATION_RISK_PCT / (leverage * loss))
    why = f"{_describe_ev(expectation)} with {expectation.n} closed trades"
    share = allocation / draft.allocation_pct if draft.allocation_pct > 0 else 0.0
    legs = tuple(with_margin(leg, leg.margin * share) for leg in draft.legs)
    explored = expectation.model_copy(update={"exploration": True})
    why += ": a quarter of its size on paper, for the record"
    smaller = change_allocation(draft, RuleName.EXPLORATION, allocation, why)
    return raise_to_minimum(replace(smaller, legs=legs, expectation=explored, exploration=True), inputs)


def _describe_ev(expectation: Expectation) -> str:
    gross, costs = gross_ev(expectation), trading_costs(expectation)
    return f"{gross:+.4f} % of the notional less {costs:.4f} % of costs is not above zero"


Ints: TypeAlias = NDArray[np.int64]
PATHS: Final = 10_000
"""A share's standard error is then 0.005 at most."""
BLOCK: Final = 24
_STRIDES: Final = (16, 8, 4, 2, 1)
"""That add up to any bar of a block."""
MIN_RETURNS: Final = 10 * BLOCK
"""Consecutive bars needed for the bootstrap."""
MAX_HOLD_BARS: Final = 6_000
"""Longer holds are cut to this."""


@dataclass(frozen=True, slots=True)
class TouchOdds:
    """Shares of all paths, and how long they took."""

    target: float
    stop: float
    time: float
    """Neither was touched before the hold was over."""
    bars: float
    """How many a path lasts on average."""
    error: float
    """Standard error: of the shares and of the duration as a share of the hold, the largest."""


def first_touch(
    bars: Bars, entry: float, stop: float, take: float, side: Side, hold_bars: int, seed: int
) -> Known[TouchOdds]:
    """Of the last thousand bars, sound ones. `ValueError` where the stop is not behind, or the target not ahead."""
    if not (0 < stop < entry < take if side is Side.LONG else 0 < take < entry < stop):
        raise ValueError(f"a {side} from {entry} cannot stop at {stop} and take at {take}")
    steps = log_returns(bars)
    if isinstance(steps, Missing):
        return steps
    hold = min(hold_bars, MAX_HOLD_BARS)
    reached, lost, lasted, squared = _walk_paths(
        _bootstrap_blocks(steps, side),
        abs(int(nano_log(take) - nano_log(entry))),
        -abs(int(nano_log(stop) - nano_log(entry))),
        hold,
        seed,
    )
    shares = reached / PATHS, lost / PATHS, (PATHS - reached - lost) / PATHS
    mean = lasted / PATHS
    spread = max(0.0, squared / PATHS - mean * mean) / hold**2
    error = sqrt(max(spread, *(share * (1 - share) for share in shares)) / PATHS)
    return TouchOdds(*shares, mean, error)


def fill_share(bars: Bars, away: int, side: Side) -> Known[float]:
    """How often a driftless market trades `away` (1e-9 of log price) within one bar, by the rule of succession."""
    steps = log_returns(bars)
    if isinstance(steps, Missing):
        return steps
    reached = sum(int((low < -away).sum()) for _, _, low in _both_ways_up(steps, side))
    return (reached + 1) / (2 * len(steps[0]) + 2)


def log_returns(bars: Bars) -> Known[Ints]:
    """Close, high, low of the last thousand consecutive bars against the close before, in 1e-9 of log price."""
    bars = bars.last(LOOKBACK)
    follows = np.flatnonzero(np.diff(bars.at) == bars.timeframe.millis) + 1
    if len(follows) < MIN_RETURNS:
        return Missing(f"{len(follows)} bars that follow one another are known, {MIN_RETURNS} are needed")
    close, high, low = nano_log(np.stack((bars.close, bars.high, bars.low)))
    steps: Ints = np.stack((close[follows], high[follows], low[follows])) - close[follows - 1]
    return steps


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Every block of the past by how far it goes from where it begins: a row for each bar, a column for each block."""

    close: Ints
    highest: Ints
    """So far."""
    lowest: Ints


def _both_ways_up(steps: Ints, side: Side) -> tuple[Ints, Ints]:
    """The past and its mirror image without mean return, seen from the side: a SHORT's gain is up."""
    pasts: list[Ints] = []
    for given in (steps, -steps[[0, 2, 1]]):
        returns = exp(given[0] / NANO)
        fair = given - nano_log(fsum(returns.tolist()) / len(returns))
        pasts.append(fair if side is Side.LONG else -fair[[0, 2, 1]])
    return pasts[0], pasts[1]


def _bootstrap_blocks(steps: Ints, side: Side) -> _Blocks:
    past = len(steps[0])
    blocks = _Blocks(*(np.empty((BLOCK, 2 * past), dtype=np.int64) for _ in range(3)))
    for place, seen in enumerate(_both_ways_up(steps, side)):
        # The past wraps round, so that its ends are drawn as often as the rest.
        close, high, low = np.concatenate((seen, seen[:, : BLOCK - 1]), axis=1)
        ends = np.cumsum(close)
        begins = ends - close
        start, highs, lows = begins[:past], begins + high, begins + low
        highest, lowest = highs[:past], lows[:past]
        own = slice(place * past, (place + 1) * past)
        for bar in range(BLOCK):
            highest = np.maximum(highest, highs[bar : bar + past])
            lowest = np.minimum(lowest, lows[bar : bar + past])
            blocks.close[bar, own] = ends[bar : bar + past] - start
            blocks.highest[bar, own] = highest - start
            blocks.lowest[bar, own] = lowest - start
    return blocks


def _walk_paths(blocks: _Blocks, target: int, stop: int, hold: int, seed: int) -> tuple[int, int, int, int]:
    """Paths that touched the target and the stop first, the bars all of them lasted, and the sum of their squares."""
    generator, count = np.random.PCG64(seed), blocks.close.shape[1]
    close, highest, lowest = (table.ravel() for table in (blocks.close, blocks.highest, blocks.lowest))
    at = np.zeros(PATHS, dtype=np.int64)
    reached = lost = lasted = squared = 0
    for start in range(0, hold, BLOCK):
        last = min(BLOCK, hold - start) - 1
        # Raw words: numpy promises them for ever, its bounded integers only for a version.
        drawn = (generator.random_raw(len(at)) % np.uint64(count)).astype(np.int64)
        up, down, end = target - at, stop - at, drawn + last * count
        done = (highest.take(end) >= up) | (lowest.take(end) <= down)
        block, up, down = drawn[done], up[done], down[done]
        # Highest and lowest so far only grow: the bar that reaches a bound is found by halving.
        before = np.zeros(len(block), dtype=np.int64)
        for stride in _STRIDES:
            further = before + stride
            bar = block + np.minimum(further - 1, last) * count
            inside = (highest.take(bar) < up) & (lowest.take(bar) > down) & (further <= last)
            before = np.where(inside, further, before)
        losing = int((lowest.take(block + before * count) <= down).sum())
        ended = start + 1 + before
        reached, lost = reached + len(block) - losing, lost + losing
        lasted, squared = lasted + int(ended.sum()), squared + int((ended * ended).sum())
        at = (at + close.take(end))[~done]
        if not len(at):
            break
    return reached, lost, lasted + hold * len(at), squared + hold * hold * len(at)
