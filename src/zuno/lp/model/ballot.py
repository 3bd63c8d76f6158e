"""The nouns of the debate: what is proposed, what is measured about it, how it is judged, what is decided."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Final, Literal

from pydantic import Field

from zuno.amm.model import Range
from zuno.kernel.units import Wei
from zuno.lp.model.cover import FeeCover
from zuno.lp.model.plan import StepKind

EDITION: Final = 6
"""Of the LP desk's rules, reasons, prompts and schemas: raised when a change of theirs changes decided bytes."""


NewerAmount = Annotated[Fraction | None, Field(exclude_if=lambda value: value is None)]
"""A field that records of editions 1 and 2 do not have; left out without a value, so that they keep their bytes."""


class RiskProfile(StrEnum):
    """How much risk the owner wants to carry."""

    CONSERVATIVE = "conservative"
    BALANCED = "balanced"
    AGGRESSIVE = "aggressive"


class Regime(StrEnum):
    """The market's mood, computed from numbers."""

    RANGING = "ranging"
    TRENDING = "trending"
    VOLATILE = "volatile"
    STRESSED = "stressed"


class Exposure(StrEnum):
    """What the owner wants to be left holding."""

    LONG_TOKEN = "long-token"
    NEUTRAL = "neutral"


class CandidateKind(StrEnum):
    """What a candidate would do. `hold` and `close` are always on the ballot; the others are moves."""

    HOLD = "hold"
    CLOSE = "close"
    WIDEN = "widen"
    TIGHTEN = "tighten"
    SHIFT = "shift"
    OPEN = "open"

    @property
    def move(self) -> bool:
        return self not in (CandidateKind.HOLD, CandidateKind.CLOSE)


class Verdict(StrEnum):
    """The Critic's word on one candidate, mildest first."""

    ACCEPT = "accept"
    REVISE = "revise"
    VETO = "veto"

    @property
    def severity(self) -> int:
        return (Verdict.ACCEPT, Verdict.REVISE, Verdict.VETO).index(self)


class Overall(StrEnum):
    ACCEPT = "accept"
    REVISE = "revise"
    VETO_ALL = "veto_all"


class PlanVerdict(StrEnum):
    """The desk's word to the owner, mildest first."""

    APPROVE = "approve"
    APPROVE_WITH_CAUTION = "approve_with_caution"
    REJECT = "reject"

    @property
    def severity(self) -> int:
        return (PlanVerdict.APPROVE, PlanVerdict.APPROVE_WITH_CAUTION, PlanVerdict.REJECT).index(self)


class NextStep(StrEnum):
    DECIDE = "decide"
    """The proposal was accepted: the Critic closes the debate."""
    REVISE = "revise"
    """Back to the Strategist."""
    DEADLOCK = "deadlock"
    """On to the Arbiter."""


class DecidedBy(StrEnum):
    """Who had the last word."""

    CRITIC = "critic"
    ARBITER = "arbiter"
    OWNER = "owner"


class Fault(StrEnum):
    """What a judgment found wrong, so that a revision can answer it without reading prose."""

    NONE = "none"
    OUTSIDE = "outside"
    """The price starts outside the range."""
    THIN_2X = "thin_2x"
    """The 2× buffer is under its floor."""
    THIN_1X = "thin_1x"
    """The 1× buffer is under its floor."""
    DEAR = "dear"
    """Gas is above the ceiling of what 24 h of fees pay for."""
    UNKNOWN = "unknown"
    """There is no price history to stress the range with."""
    EMPTY = "empty"
    """The tokens buy no liquidity in this range."""
    UNPAID = "unpaid"
    """The pool does not pay, or is not known to: no other width mends that."""
    OPINION = "opinion"
    """The rules found nothing; the Critic did."""


@dataclass(frozen=True, slots=True)
class StressPoint:
    """How long a range lasts when the market moves `multiple` times as much as it did."""

    multiple: int
    median_hours: int
    """The hour by which half of the paths have left: the buffer. The horizon itself when `censored`."""
    p10_hours: int
    """The hour by which a tenth of them have left."""
    p_exit_24h: Fraction
    """Share of paths that leave before hour 24."""
    in_range_share: Fraction
    """Share of all hours up to the horizon spent in range, coming back included."""
    in_range_share_24h: Fraction
    """The same for the first 24 hours."""
    censored: bool = False
    """Half of the paths have not left by the horizon: the buffer is at least this long."""


@dataclass(frozen=True, slots=True)
class Stress:
    """A range at one, two and three times the market's own volatility."""

    x1: StressPoint
    x2: StressPoint
    x3: StressPoint
    horizon_hours: int
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[StressPoint]:
        return iter((self.x1, self.x2, self.x3))

    @property
    def expected_hours_in_range(self) -> Fraction:
        """Of the hours up to the horizon, at the market's own volatility."""
        return self.x1.in_range_share * self.horizon_hours


@dataclass(frozen=True, slots=True)
class PrepSwap:
    """A swap that has to come before the mint, priced against the pool without us."""

    zero_for_one: bool
    amount_in: int
    amount_out: int
    fee_in: int
    """Part of `amount_in` that goes to fees."""
    fee_token1: Fraction
    impact_token1: Fraction
    """What the swap's own push on the price costs."""
    sqrt_price_after_x96: int
    exact: bool
    """Quoted on the whole pool rather than estimated from the liquidity at its price."""


@dataclass(frozen=True, slots=True)
class Deposit:
    """What goes into a range and what stays out, in base units. Nothing deposited: liquidity 0, all left."""

    liquidity: int
    amount0: int
    amount1: int
    left0: int
    left1: int
    prep: PrepSwap | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """What acting costs, once, in base units of token1. A part that cannot be priced is None, never 0."""

    steps: tuple[StepKind, ...]
    gas_units: int
    gas_wei: Wei | None
    gas_token1: Fraction | None
    swap_fee_token1: Fraction
    impact_token1: Fraction
    label: str
    """Where the gas units come from."""
    hedge_token1: NewerAmount = None
    """Of beginning, changing or ending a hedge; None where there is none."""

    @property
    def total_token1(self) -> Fraction | None:
        if self.gas_token1 is None:
            return None
        return self.gas_token1 + self.swap_fee_token1 + self.impact_token1 + (self.hedge_token1 or 0)


@dataclass(frozen=True, slots=True)
class Carry:
    """What a candidate pays and costs, in base units of token1. None is "not known"."""

    fees24h_token1: Fraction | None
    lvr24h_token1: Fraction | None
    cost: Cost
    breakeven_hours: Fraction | None = None
    """Hours until the cost is earned back against holding; None when the horizon comes first, or it is not known."""
    notes: tuple[str, ...] = ()
    fees_hour_token1: NewerAmount = None
    """Of an hour in range, whatever share of the hours that is."""
    lvr_hour_token1: NewerAmount = None

    @property
    def net24h_token1(self) -> Fraction | None:
        if self.fees24h_token1 is None or self.lvr24h_token1 is None:
            return None
        return self.fees24h_token1 - self.lvr24h_token1

    @property
    def net_hour_token1(self) -> Fraction | None:
        if self.fees_hour_token1 is None or self.lvr_hour_token1 is None:
            return None
        return self.fees_hour_token1 - self.lvr_hour_token1

    @property
    def gas_yield(self) -> Fraction | None:
        """Gas cost over 24 h of fees; None when either is unknown or there are no fees to divide by."""
        if self.cost.gas_token1 is None or not self.fees24h_token1:
            return None
        return self.cost.gas_token1 / self.fees24h_token1


@dataclass(frozen=True, slots=True)
class HedgeTerms:
    """What a perpetual costs that a pool's volatile token can be sold short by."""

    market: str
    """As the trading desk calls it."""
    side: Literal[0, 1]
    """Of the pool's tokens the one that is sold."""
    cost: Fraction
    """Taker fee and slippage, as a share of what is traded."""
    funding_hour: Fraction
    """What a short receives an hour, as a share of what it is worth; negative: it pays."""
    source: str
    held: int = 0
    """Sold short for this very position already, in base units of the token."""

    def __post_init__(self) -> None:
        if not 0 <= self.cost < 1 or abs(self.funding_hour) >= 1 or self.held < 0:
            raise ValueError("no perpetual costs, pays or holds that")


@dataclass(frozen=True, slots=True)
class Hedge:
    """The short perpetual beside a range. What is counted along the paths is in parts of 2^15 of `most`."""

    market: str
    side: Literal[0, 1]
    amount: int
    """Sold short to begin with, in base units of that token: what the range holds of it."""
    most: int
    begin_token1: Fraction
    """The cost of getting there."""
    reset_token1: Fraction
    """What trading one part of it costs."""
    funding_hour_token1: Fraction
    """What one part receives an hour."""
    mean_turnover: Fraction
    """Parts traded until the horizon, on the average of the paths."""
    mean_short_hours: Fraction

    @property
    def resets_token1(self) -> Fraction:
        return self.reset_token1 * self.mean_turnover

    @property
    def funding_token1(self) -> Fraction:
        return self.funding_hour_token1 * self.mean_short_hours

    @property
    def net_token1(self) -> Fraction:
        """Funding less re-sets until the horizon; the beginning is in the candidate's cost."""
        return self.funding_token1 - self.resets_token1


@dataclass(frozen=True, slots=True)
class Candidate:
    """One line of the ballot, with every figure it is judged by."""

    index: int
    kind: CandidateKind
    range: Range | None
    """None for `close`, and for the `hold` of a create debate, which opens nothing."""
    in_range: bool
    deposit: Deposit
    stress: Stress | None
    """None without a range, or without a price history to draw from."""
    carry: Carry
    capital_token1: Fraction
    """What the owner brings, in this pool's token1: candidates of different pools are compared per unit of it."""
    pool_index: int = 0
    """Which of the surveyed pools (create debates)."""
    cover: Annotated[FeeCover | None, Field(exclude_if=lambda cover: cover is None)] = None
    """Of its pool; None: unknown, or nothing is to be opened."""
    hedge: Annotated[Hedge | None, Field(exclude_if=lambda hedge: hedge is None)] = None
    """None: it is not hedged."""


@dataclass(frozen=True, slots=True)
class Judgment:
    index: int
    verdict: Verdict
    reason: str
    """With slots for the figures it rests on."""
    fault: Fault = Fault.NONE


@dataclass(frozen=True, slots=True)
class Decision:
    index: int
    verdict: PlanVerdict
    decided_by: DecidedBy
    cautions: tuple[str, ...] = ()
    """Why it is not a plain approval."""
