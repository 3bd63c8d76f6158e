"""What vetoes and cuts saved or cost, rule by rule: the loss that was not made, or the gain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum, sqrt

from zuno.trading.measure.portable import round_digits
from zuno.trading.model.memory import VetoScore
from zuno.trading.model.trade_events import account_mode


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
