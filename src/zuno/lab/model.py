"""What a study finds: of one moment, and of all of them together."""

from __future__ import annotations

from dataclasses import dataclass

from zuno.kernel.units import Millis
from zuno.kernel.view import PartialView, View


@dataclass(frozen=True, slots=True)
class TradeScore:
    """A decision to open something, and how it would have ended on the hours the desk could not see."""

    side: str
    fair: float
    """The share of wins that distances alone give: L / (G + L)."""
    y: float
    """(exit % + L) / (G + L), from 0 at the stop to 1 at the target; its mean without drift is `fair`."""
    span_pct: float
    """G + L, in per cent of the entry."""


@dataclass(frozen=True, slots=True)
class RulingSummary:
    """What a cycle decided and ruled."""

    decision: str
    ruling: str
    veto: str | None
    ev_pct: float | None
    score: float | None = None
    """Of the blackboard, from -1 to 1."""


@dataclass(frozen=True, slots=True)
class MomentResult:
    """What one moment of a study came to."""

    seed: int
    number: int
    kind: str
    symbol: str
    mode: str
    at: Millis
    holding: str
    """What the account held: nothing, long, short, other, heavy."""
    own: RulingSummary
    mirrored: RulingSummary | None
    """The same moment of the mirrored market; None where account or venue have no mirror image."""
    rules: tuple[str, ...]
    anomalies: tuple[str, ...]
    regime: str
    exploration: bool
    trade: TradeScore | None


class CountView(View):
    name: str
    count: int
    share: float
    """Of all moments."""


class KindView(View):
    """Moments that were chosen for one reason."""

    kind: str
    moments: int
    active: int
    """How many rulings are not HOLD."""


class BucketView(View):
    """Trades whose fair rate lies in [low, high)."""

    low: float
    high: float
    trades: int
    fair: float
    realised: float
    """The mean of y."""
    se: float
    """Of the realised mean, in a market without drift."""


class CalibrationView(View):
    """How the decisions to open would have ended, beside the fair rate."""

    trades: int
    fair: float | None
    realised: float | None
    difference: float | None
    se: float | None
    """The larger of two: of independent trades, and of independent markets."""
    inside: bool | None
    """Whether the difference lies within 1.96 standard errors of zero."""
    buckets: tuple[BucketView, ...]


class PowerView(View):
    """Which edge the study could have seen."""

    trades: int
    smallest_edge: float | None
    """In points of the win rate: found in four of five studies of this size."""
    smallest_edge_pct: float | None
    """The same in per cent of the notional of an average trade."""
    said: str


class MirrorDifferenceView(View):
    """A moment whose mirror image was not ruled the other way round."""

    seed: int
    at: str
    symbol: str
    mode: str
    ruling: str
    mirrored: str
    """As the mirrored market was ruled."""
    ev_pct: float | None
    mirrored_ev_pct: float | None
    veto: str | None
    mirrored_veto: str | None
    score: float | None
    mirrored_score: float | None
    small: bool
    """Whether the two differ by no more than 0.15 % of EV; what was not to be opened is worth nothing."""


class SymmetryView(View):
    """Whether the desk prefers a side."""

    long: int
    """Decisions of the Judge, before any rule."""
    short: int
    chance: float | None
    """How likely so uneven a split is where both sides are alike."""
    ruled_long: int
    ruled_short: int
    compared: int
    """Moments that were also ruled in the mirrored market."""
    mirrored: int
    """Of these, how many were ruled the other way round."""
    share: float | None
    differences: tuple[MirrorDifferenceView, ...]


class MarketStudyView(PartialView):
    """What a study of synthetic markets found."""

    synthetic: bool
    origin: str
    edition: int
    seeds: tuple[int, ...]
    moments: int
    asked: int
    judged: bool
    missed: tuple[str, ...]


class StudyView(MarketStudyView):
    """`ok`: no bar was missed; a bar is judged from 200 moments on. `stopped`: Ctrl-C came before the end."""

    decisions: tuple[CountView, ...]
    rulings: tuple[CountView, ...]
    exploration: int
    """How many of the rulings open on paper alone, to be learned from."""
    vetoes: tuple[CountView, ...]
    regimes: tuple[CountView, ...]
    triage: tuple[CountView, ...]
    rules: dict[str, tuple[CountView, ...]]
    """By owner: how often each rule changed or vetoed something; a rule that never fired has count 0."""
    kinds: tuple[KindView, ...]
    open_positions: int
    """Moments at which a position of the symbol was open."""
    closed: int
    """Of these, how many were closed."""
    symmetry: SymmetryView
    calibration: CalibrationView
    power: PowerView


class CheckView(PartialView):
    """What a check of the desk found."""

    report: str = ""
    """The id of its report in the home."""


class MarketCheckView(CheckView):
    """What a check over synthetic markets found."""

    synthetic: bool
    origin: str
    edition: int
    seeds: tuple[int, ...]
    asked: int
    moments: int


class RateView(View):
    """How often something happened, of as many times as it could."""

    count: int
    total: int
    rate: float | None
    ci95: tuple[float, float] | None
    """Wilson's."""


def format_rate(rate: RateView) -> tuple[str, str]:
    """With its interval; blank where nothing was counted."""
    if rate.rate is None or rate.ci95 is None:
        return "", ""
    return f"{rate.rate:.1%}", f"{rate.ci95[0]:.1%} to {rate.ci95[1]:.1%}"
