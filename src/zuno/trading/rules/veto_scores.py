"""What vetoes and cuts saved or cost: a trade that was wanted and vetoed or cut is played on the market that followed,
with its own levels, fees and funding, and totalled rule by rule.

It is filled at the open of the next bar, and ends at its stop, at its target or when its hold is over, whichever comes
first; a bar that touches both touched the stop, and one that opens beyond a level fills at its open, as at the paper
venue. Until one of them has happened, or where prices up to the end of its hold were not recorded, it has no score.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from zuno.kernel.units import Millis
from zuno.trading.measure.bars import SpanBar
from zuno.trading.measure.portable import round_digits
from zuno.trading.model.cycle import Decision, RuleChange
from zuno.trading.model.market import HOUR_MS, Funding, Side
from zuno.trading.model.memory import RuleShare, VetoScore
from zuno.trading.model.trade_events import account_mode
from zuno.trading.rules.draft import RuleName, RuleOwner
from zuno.trading.rules.inputs import ASSUMED_FUNDING
from zuno.trading.rules.realised_path import percent_move

_FUNDING_MS: Final = 8 * HOUR_MS
_EXPECTANCY: Final = (RuleName.JUDGE_EV, RuleName.EXPECTANCY, RuleName.EXPLORATION)


@dataclass(frozen=True, slots=True)
class PlannedTrade:
    """What was wanted at a moment."""

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
    """Bars of one market in order of time, as columns."""

    def __init__(self, bars: Sequence[SpanBar] | NDArray[np.float64]) -> None:
        table: NDArray[np.float64] = np.array(bars, dtype=np.float64).reshape(len(bars), 6)
        self.start, self.end, self.open, self.high, self.low, self.close = table.T


def simulate_trade(
    wanted: PlannedTrade, bars: BarColumns, funding: Sequence[Funding], fees_pct: float, now: Millis, *, assumed: bool
) -> SimulatedTrade | None:
    """How it came out by `now`; None while that is open. `assumed`: no funding was recorded, and the usual rate is
    charged to either side."""
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
    elif now >= wanted.hold_until and _reaches(bars, int(inside[-1]), wanted.hold_until):
        price, ended = float(bars.close[inside[-1]]), wanted.hold_until
    else:
        return None
    paid = _funding_pct(opened, ended, funding, sign, assumed=assumed)
    net = round_digits(percent_move(price, fill, sign) - fees_pct - paid)
    risk = -percent_move(wanted.stop, fill, sign)
    return SimulatedTrade(how, Millis(ended), net, round_digits(net / risk))


def _reaches(bars: BarColumns, last: int, end: int) -> bool:
    """Whether prices are known up to the end of the hold: no bar is missing behind the last one before it, or a coarser
    one covers it."""
    return bool(2 * bars.end[last] - bars.start[last] > end or ((bars.start < end) & (bars.end >= end)).any())


def _funding_pct(since: int, until: int, funding: Sequence[Funding], sign: int, *, assumed: bool) -> float:
    """What was paid from the fill to the exit, in per cent of the notional; below zero: received."""
    if assumed:
        return 100 * ASSUMED_FUNDING * (until // _FUNDING_MS - since // _FUNDING_MS)
    return 100 * sign * sum(row.rate for row in funding if since < row.at <= until)


# -- who took it away


def share_of_veto(rule: str) -> RuleShare:
    return RuleShare(rule=_rule_name(rule), owner=_owner_of(rule), share=1.0)


def shares_of_cuts(decision: Decision, changes: Sequence[RuleChange]) -> tuple[RuleShare, ...]:
    """What each rule took of a trade that was opened all the same, as shares of the notional that was wanted. Legs at
    two exchanges count half each."""
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
    """Whether it is the margin of one leg."""
    return field.startswith("legs.") and field.endswith(".margin")


def _rule_name(by: str) -> str:
    """Without the remark that its input was missing."""
    return by.partition(" ")[0]


def _owner_of(by: str) -> Literal["expectancy", "cro", "guard", "desk"]:
    try:
        rule = RuleName(_rule_name(by))
    except ValueError:  # of an older edition
        return "desk"
    if rule in _EXPECTANCY:
        return "expectancy"
    return "cro" if rule.owner is RuleOwner.CRO else "guard" if rule.owner is RuleOwner.GUARD else "desk"


@dataclass(frozen=True, slots=True)
class VetoTotals:
    """Of one rule. Above zero is saved, below zero is cost; a cut counts by the share it took."""

    rule: str
    owner: str
    n: int
    vetoes: int
    """The rest are cuts."""
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


def belongs_to_account(account: str, acted: str | None) -> bool:
    """Whether the veto of a run is of an account. `acted`: the account that acts on the run; a run that nobody acts on
    is of paper accounts alone."""
    return acted == account or (acted is None and account_mode(account) == "paper")


def total_vetoes(scores: Iterable[VetoScore]) -> tuple[VetoTotals, ...]:
    """Expectancy, CRO, guard, then the desk's other rules; the most frequent first."""
    groups: dict[tuple[str, str], list[tuple[VetoScore, float]]] = {}
    for score in scores:
        for part in score.rules:
            groups.setdefault((part.owner, part.rule), []).append((score, part.share))
    owners = ("expectancy", "cro", "guard", "desk")
    keys = sorted(groups, key=lambda key: (owners.index(key[0]), -len(groups[key]), key[1]))
    return tuple(_total(owner, rule, groups[owner, rule]) for owner, rule in keys)


def _total(owner: str, rule: str, found: list[tuple[VetoScore, float]]) -> VetoTotals:
    saved = [-score.r * share for score, share in found]
    n = len(saved)
    mean = fsum(saved) / n
    spread = None if n < 2 else sqrt(fsum((each - mean) ** 2 for each in saved) / (n - 1) / n)
    return VetoTotals(
        rule=rule,
        owner=owner,
        n=n,
        vetoes=sum(share == 1 for _, share in found),
        unfilled=sum(score.exit == "unfilled" for score, _ in found),
        saved_trades=sum(each > 0 for each in saved),
        cost_trades=sum(each < 0 for each in saved),
        total_r=round_digits(fsum(saved)),
        mean_r=round_digits(mean),
        error_r=None if spread is None else round_digits(spread),
        mean_pct=round_digits(-fsum(score.pct * share for score, share in found) / n),
    )
