"""What came of trades that were taken, and of those that a rule vetoed or cut.

Of a closed trade only candles wholly between entry and exit count, and for a level only those in which it stood; one
that touched both levels touched the stop first. What a level ended has touched it, by its exchange's word.
A vetoed or cut trade is played on the market that followed, from the next bar's open to its stop, target or hold time;
a bar that opens beyond a level fills at its open. Until then, or without prices up to then, it has no score."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from math import fsum, sqrt
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.kernel.view import View
from zuno.trading.measure.bars import SpanBar
from zuno.trading.measure.portable import round_digits
from zuno.trading.model.cycle import Decision, RuleChange
from zuno.trading.model.market import HOUR_MS, Funding, Side
from zuno.trading.model.memory import RealisedPath, RuleShare, Verdict, VetoScore
from zuno.trading.model.trade_events import ExitReason, LevelsSet, TradeSummary, account_mode
from zuno.trading.rules.calibration import LEAST_OUTCOMES
from zuno.trading.rules.draft import RuleName
from zuno.trading.rules.inputs import ASSUMED_FUNDING
from zuno.trading.rules.performance import risk_multiple

FLAT_R: Final = 0.1
"""Below this many R either way a trade came to nothing."""
SLIPPAGE_SHARE: Final = 0.0025
"""Of the entry: how far from its level an exit by stop or target may have been filled."""

Touch = Literal["stop", "target"]


def trace_path(summary: TradeSummary, bars: Iterable[SpanBar], changes: Sequence[LevelsSet] = ()) -> RealisedPath:
    """The path of a closed trade. `bars` in its exchange's currency, in any order; `changes`: of its levels, in the
    order of time."""
    sign = summary.side.sign
    entry, last = float(summary.entry), float(summary.exit)
    levels = _list_levels(summary, changes)
    target = _price(levels[-1][3])
    inside = sorted(bar for bar in bars if summary.opened <= bar.start and bar.end <= summary.closed)
    whole = inside[:-1] if _ends_in(summary, inside) else inside
    prices = [last, *(price for bar in whole for price in (bar.high, bar.low))]
    if len(whole) < len(inside):  # what it went through before the level: the way it hurts comes first
        prices += [inside[-1].open]
        if summary.reason is ExitReason.TARGET:
            reached = bar_touch(inside[-1], sign, None, target) is not None
            prices += [_worst(inside[-1], sign), *([target] if target is not None and reached else [])]
    moves = [percent_move(price, entry, sign) for price in prices]
    multiple = risk_multiple(summary)
    held = summary.closed - summary.opened
    return RealisedPath(
        first_touch=_find_first_touch(summary, whole, levels, parted=any(change.by == "trail" for change in changes)),
        mfe_pct=round_digits(max(0.0, *moves)),
        mae_pct=round_digits(-min(0.0, *moves)),
        exit_pct=moves[0],
        r=None if multiple is None else round_digits(float(multiple)),
        hold_hours=round_digits(held / HOUR_MS),
        bars=len(inside),
        uncovered_hours=round_digits((held - _sum_covered_time(inside)) / HOUR_MS),
    )


def judge_outcome(path: RealisedPath, net_pnl: Decimal) -> Verdict:
    """By R after fees and funding; without a stop, by the sign of the money."""
    if path.r is None:
        return Verdict.SUCCESS if net_pnl > 0 else Verdict.FAILURE if net_pnl < 0 else Verdict.FLAT
    if abs(path.r) < FLAT_R:
        return Verdict.FLAT
    return Verdict.SUCCESS if path.r > 0 else Verdict.FAILURE


def percent_move(price: float, entry: float, sign: int) -> float:
    """From the entry, above zero where it went the trade's way."""
    return round_digits(100 * sign * (price / entry - 1))


def bar_touch(bar: SpanBar, sign: int, stop: float | None, target: float | None) -> Touch | None:
    """What a bar touched; the stop where it touched both."""
    if stop is not None and sign * (_worst(bar, sign) - stop) <= 0:
        return "stop"
    if target is not None and sign * ((bar.high if sign > 0 else bar.low) - target) >= 0:
        return "target"
    return None


# Since when and until when levels stood, the stop and the target.
_Levels = tuple[Millis, Millis, Decimal | None, Decimal | None]


def _list_levels(summary: TradeSummary, changes: Sequence[LevelsSet]) -> list[_Levels]:
    """As they stood one after the other."""
    moments = [summary.opened, *(change.at for change in changes), summary.closed]
    prices = [(summary.stop, summary.target), *((change.stop, change.target) for change in changes)]
    return [(*span, *pair) for span, pair in zip(pairwise(moments), prices, strict=True)]


def _find_first_touch(
    summary: TradeSummary, whole: Iterable[SpanBar], levels: Sequence[_Levels], *, parted: bool
) -> Touch | None:
    """`parted`: a part left at the target, and the stop of the rest followed the price."""
    if parted or summary.reason is ExitReason.TARGET:
        return "target"
    if summary.reason is ExitReason.STOP:
        return "stop"
    sign, last = summary.side.sign, float(summary.exit)
    for bar in whole:
        stood = [prices for since, until, *prices in levels if since < bar.end and bar.start < until]
        stop, target = map(_find_unmoved, zip(*stood, strict=True))
        if (touch := bar_touch(bar, sign, stop, target)) is not None:
            return touch
    at_exit = SpanBar(summary.closed, summary.closed, last, last, last, last)
    return bar_touch(at_exit, sign, _price(levels[-1][2]), _price(levels[-1][3]))


def _find_unmoved(prices: Iterable[Decimal | None]) -> float | None:
    """The price of a level that was one and the same; else none."""
    found = {*prices}
    return _price(found.pop()) if len(found) == 1 else None


def _ends_in(summary: TradeSummary, inside: Sequence[SpanBar]) -> bool:
    """Whether the last candle is the one in which a level ended the trade."""
    if summary.reason not in (ExitReason.STOP, ExitReason.TARGET, ExitReason.LIQUIDATION) or not inside:
        return False
    last, slipped = float(summary.exit), SLIPPAGE_SHARE * float(summary.entry)
    return inside[-1].low - slipped <= last <= inside[-1].high + slipped


def _sum_covered_time(bars: Sequence[SpanBar]) -> int:
    """Milliseconds that bars in order of time cover, overlaps once."""
    covered, until = 0, 0
    for bar in bars:
        covered += max(0, bar.end - max(bar.start, until))
        until = max(until, bar.end)
    return covered


def _worst(bar: SpanBar, sign: int) -> float:
    return bar.low if sign > 0 else bar.high


def _price(level: Decimal | None) -> float | None:
    return None if level is None else float(level)


_FUNDING_MS: Final = 8 * HOUR_MS
_EXPECTANCY: Final = (RuleName.JUDGE_EV, RuleName.EXPECTANCY, RuleName.EXPLORATION)


@dataclass(frozen=True, slots=True)
class PlannedTrade:
    at: Millis
    side: Side
    stop: float
    target: float
    hold_until: Millis


@dataclass(frozen=True, slots=True)
class SimulatedTrade:
    exit: Literal["stop", "target", "time", "unfilled"]
    resolved: Millis
    pct: float
    """Of the notional, net of fees and funding."""
    r: float


class BarColumns:
    def __init__(self, bars: Sequence[SpanBar] | NDArray[np.float64]) -> None:
        table: NDArray[np.float64] = np.array(bars, dtype=np.float64).reshape(len(bars), 6)
        self.start, self.end, self.open, self.high, self.low, self.close = table.T


def simulate_trade(
    wanted: PlannedTrade, bars: BarColumns, funding: Sequence[Funding], fees_pct: float, now: Millis, *, assumed: bool
) -> SimulatedTrade | None:
    """How it came out by `now`; None while open. `assumed`: no funding was recorded, the usual rate is charged."""
    sign, until = wanted.side.sign, min(wanted.hold_until, now)
    first = int(np.searchsorted(bars.start, wanted.at, side="left"))
    if first == len(bars.start):
        return None
    if bars.end[first] > until:
        return SimulatedTrade("unfilled", wanted.hold_until, 0.0, 0.0) if now >= wanted.hold_until else None
    fill, opened = float(bars.open[first]), int(bars.start[first])
    if not (sign * (fill - wanted.stop) > 0 and sign * (wanted.target - fill) > 0):
        return SimulatedTrade("unfilled", Millis(int(bars.end[first])), 0.0, 0.0)
    inside = np.flatnonzero((bars.start >= opened) & (bars.end <= until))
    worst, best = (bars.low, bars.high) if sign > 0 else (bars.high, bars.low)
    opens = bars.open[inside]
    leapt = sign * (opens - wanted.target) >= 0
    stopped = (sign * (worst[inside] - wanted.stop) <= 0) & ~leapt
    reached = sign * (best[inside] - wanted.target) >= 0
    touches = np.flatnonzero(stopped | reached)
    how: Literal["stop", "target", "time"] = "time"
    if len(touches):
        touch = touches[0]
        how = "stop" if stopped[touch] else "target"
        gapped = leapt[touch] or sign * (opens[touch] - wanted.stop) <= 0
        level = wanted.stop if how == "stop" else wanted.target
        price, ended = float(opens[touch]) if gapped else level, int(bars.end[inside[touch]])
    elif now >= wanted.hold_until and (  # prices are known up to the end of the hold
        2 * bars.end[inside[-1]] - bars.start[inside[-1]] > wanted.hold_until
        or ((bars.start < wanted.hold_until) & (bars.end >= wanted.hold_until)).any()
    ):
        price, ended = float(bars.close[inside[-1]]), wanted.hold_until
    else:
        return None
    paid = 100 * sign * sum(row.rate for row in funding if opened < row.at <= ended)
    if assumed:
        paid = 100 * ASSUMED_FUNDING * (ended // _FUNDING_MS - opened // _FUNDING_MS)
    net = round_digits(percent_move(price, fill, sign) - fees_pct - paid)
    risk = -percent_move(wanted.stop, fill, sign)
    return SimulatedTrade(how, Millis(ended), net, round_digits(net / risk))


# -- who took it away


def share_of_veto(rule: str) -> RuleShare:
    return RuleShare(rule=_rule_name(rule), owner=_owner_of(rule), share=1.0)


def shares_of_cuts(decision: Decision, changes: Sequence[RuleChange]) -> tuple[RuleShare, ...]:
    """What each rule took of an opened trade, as shares of the wanted notional; two legs count half each."""
    size, leverage = float(decision.allocation_pct), float(decision.leverage)
    whole = size * leverage
    legs = max(1, len({change.field for change in changes if _is_margin(change.field)}))
    cuts: dict[str, float] = {}
    for change in changes:
        before, old, new = size * leverage, change.from_, change.to
        if not isinstance(new, int | float):
            continue
        if change.field == "allocation_pct":
            size = float(new)
        elif change.field == "leverage":
            leverage = float(new)
        elif _is_margin(change.field) and isinstance(old, int | float) and old > 0:
            size *= 1 + (new / old - 1) / legs
        taken = before - size * leverage
        if taken > 0 and whole > 0:
            name = _rule_name(change.by)
            cuts[name] = cuts.get(name, 0.0) + taken / whole
    return tuple(
        RuleShare(rule=name, owner=_owner_of(name), share=round_digits(min(1.0, share))) for name, share in cuts.items()
    )


def _is_margin(field: str) -> bool:
    return field.startswith("legs.") and field.endswith(".margin")


def _rule_name(by: str) -> str:
    """Without the remark that its input was missing."""
    return by.partition(" ")[0]


def _owner_of(by: str) -> str:
    try:
        rule = RuleName(_rule_name(by))
    except ValueError:  # of an older edition
        return "desk"
    return "expectancy" if rule in _EXPECTANCY else rule.owner.value


class VetoTotals(View):
    """Of one rule. Above zero is saved, below zero is cost; a cut counts by the share it took."""

    rule: str
    owner: str
    n: int
    vetoes: int
    cuts: int
    unfilled: int
    """Would not have been filled: they count with nothing."""
    saved_trades: int
    cost_trades: int
    total_r: float
    mean_r: float
    error_r: float | None
    """Standard error of the mean; None for one alone."""
    mean_pct: float
    """Of the notional that was wanted."""
    total_usd: float | None
    """Of what was wanted and its size is known; null: of none it is."""
    enough: bool


def belongs_to_account(account: str, acted: str | None) -> bool:
    """Whether a run's veto counts for an account. `acted`: the run's account; without one, paper accounts."""
    return acted == account or (acted is None and account_mode(account) == "paper")


def total_vetoes(scores: Iterable[VetoScore]) -> tuple[VetoTotals, ...]:
    """Expectancy, CRO, guard, then the desk's other rules; the most frequent first."""
    groups: dict[tuple[str, str], list[tuple[VetoScore, float]]] = {}
    for score in scores:
        for part in score.rules:
            groups.setdefault((part.owner, part.rule), []).append((score, part.share))
    owners = ("expectancy", "cro", "guard", "desk")
    keys = sorted(groups, key=lambda key: (owners.index(key[0]), -len(groups[key]), key[1]))
    return tuple(_total(*key, groups[key]) for key in keys)


def _total(owner: str, rule: str, scored: list[tuple[VetoScore, float]]) -> VetoTotals:
    saved = [-score.r * share for score, share in scored]
    money = [-score.pct / 100 * share * score.wanted_usd for score, share in scored if score.wanted_usd is not None]
    n = len(saved)
    mean = fsum(saved) / n
    spread = None if n < 2 else sqrt(fsum((each - mean) ** 2 for each in saved) / (n - 1) / n)
    return VetoTotals(
        rule=rule,
        owner=owner,
        n=n,
        vetoes=sum(share == 1 for _, share in scored),
        cuts=sum(share != 1 for _, share in scored),
        unfilled=sum(score.exit == "unfilled" for score, _ in scored),
        saved_trades=sum(each > 0 for each in saved),
        cost_trades=sum(each < 0 for each in saved),
        total_r=round_digits(fsum(saved)),
        mean_r=round_digits(mean),
        error_r=None if spread is None else round_digits(spread),
        mean_pct=round_digits(-fsum(score.pct * share for score, share in scored) / n),
        total_usd=round_digits(fsum(money)) if money else None,
        enough=n >= LEAST_OUTCOMES,
    )
