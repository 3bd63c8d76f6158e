"""What a backtest of the LP desk says, in dollars."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, Final

from zuno.amm.model import price_of
from zuno.kernel.numbers_text import time_text
from zuno.kernel.view import PartialView, View
from zuno.kernel.wire import derive
from zuno.lab.comparisons import interval_of_sum
from zuno.lab.cutoffs import ModelCutoffView, describe_models
from zuno.lab.lp.arms import Arm, Move
from zuno.lab.lp.backtest import ArmResult
from zuno.lab.lp.fast import USD, Convention, MinuteColumns, earn_fees
from zuno.lab.lp.ranges import RangeView
from zuno.lab.model import figure, format_span, name_report, table_of, warn_partial
from zuno.lab.report_page import Charts, bar_chart, draw_down, interval_chart, line_chart
from zuno.lp.model.market import HOUR
from zuno.lp.model.minutes import MinuteRepairs
from zuno.present.document import Block, Document, Section, document, lines, section, table
from zuno.present.values import bad, count, good, number, percent, quiet, share

BLOCK_HOURS: Final = 24


class ComparisonView(View):
    """Against holding the same tokens, hour by hour over the same prices."""

    net_pnl_usd: float
    ci95: tuple[float, float] | None


class FastFeesView(View):
    """Fees by both engines, at the last price: the exact one plays every minute on the integer pool."""

    convention: str
    exact_usd: float
    fast_usd: float
    difference_pct: float | None
    """Of the exact figure."""


class ArmView(View):
    """USD; `residual` is what balances show and the terms do not explain, and anything but 0 is a fault."""

    LEFT_OUT: ClassVar = frozenset({"equity_usd", "moves"})
    arm: str
    by: str
    """Who decided: nobody, a rule, or the debate by rules."""
    net_pnl_usd: float
    fees: float
    price_effect: float
    divergence_loss: float
    lvr: float
    gas: float
    swap_cost: float
    residual: float
    model_tokens: int
    model_cost_usd: float
    unanswered: int
    """Questions to models that nobody answered, so that rules did."""
    time_in_range: float
    max_drawdown: float
    """Largest fall from a peak, as a share of it, between two hours' ends."""
    decisions: int
    rebalances: int
    refused: int
    moves: tuple[Move, ...]
    """Where each rebalance put the range, in ticks from the price; null: it closed the position."""
    ci95: tuple[float, float] | None
    """Of the net result, days resampled; null where there are too few."""
    vs_hold: ComparisonView | None
    fast_fees: FastFeesView | None
    """Null where it held no position, or is the mean of several runs."""
    equity_usd: tuple[float, ...]
    """At the end of every hour, the start first."""

    def list_terms(self) -> tuple[float, ...]:
        """What the net result is the sum of, in the order of `TERMS`."""
        costs = (self.divergence_loss, self.gas, self.swap_cost, self.model_cost_usd)
        return self.fees, self.price_effect, *(-cost for cost in costs)

    @property
    def changes(self) -> list[int]:
        """From hour to hour, in millionths of a dollar."""
        worths = [round(worth * USD) for worth in self.equity_usd]
        return [after - before for before, after in pairwise(worths)]


class LpLabView(PartialView):
    LEFT_OUT: ClassVar = frozenset({"ok"})
    report: str
    """The id of its files in the home: `lab/ID.json`, `lab/ID.html`."""
    data: str
    edition: int
    since: int
    until: int
    """Unix seconds of the first and the last moment that counted."""
    hours: int
    capital_usd: int
    every_hours: int
    half_width_pct: float
    profile: str
    gas_gwei: float
    repairs: MinuteRepairs
    models: tuple[str, ...]
    """Who argued beside the rules; none: nobody."""
    arms: tuple[ArmView, ...]

    def to_document(self) -> Document:
        unexplained = [arm.arm for arm in self.arms if arm.residual]
        return document(
            f"{time_text(self.since)} to {time_text(self.until)} ({self.hours} h), {self.capital_usd:,} USD, decided "
            f"every {self.every_hours} h",
            section(
                "Result",
                self._result_table(),
                lines(
                    bad(f"UNEXPLAINED  {', '.join(unexplained)}")
                    if unexplained
                    else good("Every arm's result is explained by its terms to the last unit.")
                ),
            ),
            section("Where the money went", self._cost_table()),
            section(
                "Two engines",
                lines(
                    quiet(
                        "Fees of the same positions at the last price: exact (every minute swapped on the integer "
                        "pool) and fast (all minutes at once)."
                    )
                ),
                self._engine_table(),
            ),
            describe_repairs(self.repairs),
            context=f"ranges of ±{self.half_width_pct:g} %; profile {self.profile}; gas {self.gas_gwei:g} gwei; "
            f"edition {self.edition}; models: {', '.join(self.models) or 'none, the agents argue by rules'}",
            urgent=warn_partial(self, self.arms),
            notes=(
                "every arm begins with half of the capital in each token; fees, price effect, divergence loss, gas, "
                "swap cost and models add up to the net result, LVR stands beside it",
                "intervals are 95 %, days resampled: an interval that holds zero shows nothing",
                *name_report(self.report, self.data),
            ),
        )

    def _result_table(self) -> Block:
        return table_of(
            self.arms,
            {
                "arm": lambda arm: arm.arm,
                "decided by": lambda arm: arm.by,
                "net USD": lambda arm: figure(arm.net_pnl_usd, signed=True),
                "95 %": lambda arm: format_span(arm.ci95),
                "against hold": lambda arm: "" if arm.vs_hold is None else figure(arm.vs_hold.net_pnl_usd, signed=True),
                "95 % of it": lambda arm: "" if arm.vs_hold is None else format_span(arm.vs_hold.ci95),
                "in range": lambda arm: share(arm.time_in_range),
                "moves": lambda arm: f"{arm.rebalances} of {arm.decisions}",
                "refused": lambda arm: count(arm.refused),
                "drawdown": lambda arm: percent(100 * arm.max_drawdown),
            },
            spare=("refused", "drawdown", "decided by"),
        )

    def _cost_table(self) -> Block:
        return table_of(
            self.arms,
            {
                "arm": lambda arm: arm.arm,
                "fees": lambda arm: figure(arm.fees),
                "price": lambda arm: figure(arm.price_effect, signed=True),
                "divergence loss": lambda arm: figure(arm.divergence_loss),
                "gas": lambda arm: figure(arm.gas),
                "swap cost": lambda arm: figure(arm.swap_cost),
                "models": lambda arm: figure(arm.model_cost_usd),
                "tokens": lambda arm: count(arm.model_tokens),
                "unanswered": lambda arm: count(arm.unanswered),
                "LVR": lambda arm: figure(arm.lvr),
                "residual": lambda arm: f"{arm.residual:g}",
            },
            spare=("unanswered", "tokens", "models", "residual", "swap cost", "gas"),
        )

    def _engine_table(self) -> Block:
        return table(
            ("fees by both engines", "convention", "exact", "fast", "difference"),
            [
                (
                    *(arm.arm, fees.convention, figure(fees.exact_usd, 4), figure(fees.fast_usd, 4)),
                    "" if fees.difference_pct is None else percent(fees.difference_pct, 4, signed=True),
                )
                for arm in self.arms
                if (fees := arm.fast_fees) is not None
            ],
        )

    def draw_charts(self) -> Charts:
        equity = {
            arm.arm: [(self.since + HOUR * hour, worth) for hour, worth in enumerate(arm.equity_usd)]
            for arm in self.arms
        }
        against = [(arm.arm, arm.vs_hold.net_pnl_usd, arm.vs_hold.ci95) for arm in self.arms if arm.vs_hold]
        return {
            "Result": (
                line_chart("Equity", equity.items()),
                line_chart("Drawdown", ((arm, draw_down(points)) for arm, points in equity.items()), "%"),
                interval_chart("Net result less that of holding", against),
            ),
            "Where the money went": (
                bar_chart("Attribution", TERMS, [(arm.arm, arm.list_terms()) for arm in self.arms]),
            ),
        }


TERMS: Final = ("fees", "price", "divergence loss", "gas", "swap cost", "models")


def describe_repairs(repairs: MinuteRepairs) -> Section:
    return section(
        "Data",
        lines(
            quiet(
                f"{repairs.rows:,} rows in {repairs.files} files. Put right: {repairs.sorted_rows} out of order, "
                f"{repairs.repeated} repeated, {repairs.contradicted} contradicted (the first stands), "
                f"{repairs.widened} with open or close outside of lowest and highest. Nothing traded where a row is "
                f"missing: {repairs.missing} minutes, whole days: {', '.join(repairs.missing_days) or 'none'}. Without "
                f"liquidity, so without fees: {repairs.without_liquidity} rows."
            )
        ),
    )


DECIDED_BY: Final = {
    Arm.HOLD: "nobody",
    Arm.PASSIVE: "nobody",
    Arm.RESET: "rule",
    Arm.RANDOM: "chance",
    Arm.SCORE: "rule",
    Arm.NO_CRITIC: "Strategist by rules",
    Arm.PLACEBO: "debate by rules",
    Arm.DEBATE: "debate by rules",
}


def build_arm_view(result: ArmResult, columns: MinuteColumns, fee_pips: int, convention: Convention) -> ArmView:
    """View of one arm; `complete_arm` adds what needs the other arms."""
    terms = result.terms
    return derive(
        ArmView,
        result,
        by=", ".join(sorted(result.used.models)) or DECIDED_BY[result.arm],
        net_pnl_usd=to_usd(result.net - Fraction(result.used.usd) * USD),
        fees=to_usd(terms.fees),
        price_effect=to_usd(terms.price_effect + result.idle_effect),
        divergence_loss=to_usd(terms.divergence_loss),
        lvr=round(result.lvr / USD, 6),
        gas=to_usd(terms.gas),
        swap_cost=to_usd(terms.swap_cost),
        residual=float(result.residual / USD),
        model_tokens=result.used.tokens,
        model_cost_usd=float(result.used.usd),
        unanswered=result.used.unanswered,
        time_in_range=round(result.minutes_in_range / result.minutes, 6),
        max_drawdown=measure_drawdown(result.hourly),
        ci95=None,
        vs_hold=None,
        fast_fees=compare_engines(result, columns, fee_pips, convention),
        equity_usd=tuple(worth / USD for worth in result.hourly),
    )


def complete_arm(arm: ArmView, held: ArmView | None) -> ArmView:
    """Add the confidence interval and the comparison with holding."""
    against = None
    if held is not None and held.arm != arm.arm:
        differences = [ours - theirs for ours, theirs in zip(arm.changes, held.changes, strict=True)]
        against = ComparisonView(
            net_pnl_usd=round(arm.net_pnl_usd - held.net_pnl_usd, 6), ci95=usd_interval(differences)
        )
    return arm.model_copy(update={"ci95": usd_interval(arm.changes), "vs_hold": against})


def compare_engines(
    result: ArmResult, columns: MinuteColumns, fee_pips: int, convention: Convention
) -> FastFeesView | None:
    """Fees of the same positions over the same minutes, computed all at once."""
    if not result.spans:
        return None
    price = price_of(result.sqrt_price_x96)
    earned = [
        earn_fees(columns.select_minutes(span.start, span.end), span.range, span.liquidity, fee_pips, convention)
        for span in result.spans
    ]
    exact = result.fees0 + result.fees1 / price
    fast = sum((Fraction(fees.fees0) + Fraction(fees.fees1) / price for fees in earned), Fraction(0))
    return FastFeesView(
        convention=convention,
        exact_usd=to_usd(exact),
        fast_usd=to_usd(fast),
        difference_pct=round(float(100 * (fast / exact - 1)), 6) if exact else None,
    )


def usd_interval(changes: Sequence[int]) -> tuple[float, float] | None:
    ends = interval_of_sum(changes, BLOCK_HOURS)
    return None if ends is None else (ends[0] / USD, ends[1] / USD)


def measure_drawdown(worths: Sequence[int]) -> float:
    peak, worst = worths[0], Fraction(0)
    for worth in worths:
        peak = max(peak, worth)
        worst = max(worst, 1 - Fraction(worth, peak))
    return round(float(worst), 6)


def to_usd(amount: Fraction) -> float:
    return round(float(amount / USD), 6)


class RegimeGainView(View):
    """Of the episodes of one kind of market, told by the price over the same horizon that is scored: nobody knew it
    when deciding."""

    regime: str
    episodes: int
    gain_usd: float
    """A decision."""
    ci95: tuple[float, float] | None


class ArmGainView(View):
    """An arm, and what the full debate gained over it; USD a decision, models and trading paid."""

    arm: str
    by: str
    episodes: int
    moved: int
    """Episodes in which it did something."""
    net_usd: float
    model_tokens: int
    model_cost_usd: float
    unanswered: int
    """Questions to models that nobody answered, so that rules did."""
    gain_usd: float | None
    """Of the debate over it; null for the debate itself."""
    ci95: tuple[float, float] | None
    p: float | None
    p_corrected: float | None
    """For all of these comparisons together (Holm)."""
    better: int | None
    """Decisions of the debate that differ and came out better; null where there is no decision to compare."""
    worse: int | None
    verdict: str
    """gain, loss, not shown."""
    regimes: tuple[RegimeGainView, ...]


class NotRunView(View):
    arm: str
    why: str


class LpAblationView(PartialView):
    LEFT_OUT: ClassVar = frozenset({"ok", "desk"})
    report: str
    desk: str
    data: str
    edition: int
    since: int
    until: int
    episodes: int
    asked: int
    every_hours: int
    horizon_hours: int
    capital_usd: int
    half_width_pct: float
    profile: str
    repairs: MinuteRepairs
    reference: str
    """What the others are held against."""
    noise_floor_usd: float | None
    """Mean absolute difference, a decision, of the debate and the debate with fresh replies; null: not measured."""
    noise_floor_said: str
    headline: str
    models: tuple[ModelCutoffView, ...]
    arms: tuple[ArmGainView, ...]
    not_run: tuple[NotRunView, ...]

    def to_document(self) -> Document:
        floor = "" if self.noise_floor_usd is None else f"{self.noise_floor_usd:.2f} USD a decision, "
        return document(
            self.headline,
            section(
                f"What {self.reference} gains over each arm",
                self._gain_table(),
                lines(quiet(f"Noise floor: {floor}{self.noise_floor_said}.")),
            ),
            section(
                "By market",
                lines(quiet(f"By whether the price moved 2 % in the same {self.horizon_hours} h that are scored.")),
                self._regime_table(),
            ),
            describe_models(self.models, self.arms),
            section("Not run", table(("arm", "why"), [(arm.arm, arm.why) for arm in self.not_run]))
            if self.not_run
            else None,
            describe_repairs(self.repairs),
            context=f"{self.episodes} of {self.asked} moments, {self.every_hours} h apart; at each of them every arm "
            f"decides about the same position of {self.capital_usd:,} USD (as resetting ±{self.half_width_pct:g} % at "
            f"the edge has left it), and its decision is played for {self.horizon_hours} h. USD a decision; gas, swaps "
            f"and models are paid. {time_text(self.since)} to {time_text(self.until)}, profile {self.profile}, edition "
            f"{self.edition}.",
            urgent=warn_partial(self, self.arms),
            notes=name_report(self.report, self.data),
        )

    def _gain_table(self) -> Block:
        return table_of(
            self.arms,
            {
                "arm": lambda arm: arm.arm,
                "decided by": lambda arm: arm.by,
                "moved": lambda arm: f"{arm.moved} of {arm.episodes}",
                "net": lambda arm: figure(arm.net_usd, signed=True),
                "gain": lambda arm: figure(arm.gain_usd, signed=True),
                "95 %": lambda arm: "" if arm.gain_usd is None else format_span(arm.ci95),
                "p": lambda arm: figure(arm.p, 3),
                "p (Holm)": lambda arm: figure(arm.p_corrected, 3),
                "better": lambda arm: figure(arm.better, 0),
                "worse": lambda arm: figure(arm.worse, 0),
                "verdict": lambda arm: arm.verdict,
            },
            spare=("p", "decided by", "better", "worse"),
        )

    def _regime_table(self) -> Block:
        return table_of(
            [(arm.arm, regime) for arm in self.arms for regime in arm.regimes if regime.episodes],
            {
                "arm": lambda pair: pair[0],
                "market": lambda pair: pair[1].regime,
                "episodes": lambda pair: count(pair[1].episodes),
                "gain": lambda pair: figure(pair[1].gain_usd, signed=True),
                "95 %": lambda pair: format_span(pair[1].ci95),
            },
        )

    def draw_charts(self) -> Charts:
        gains = [(arm.arm, arm.gain_usd, arm.ci95) for arm in self.arms if arm.gain_usd is not None]
        return {f"What {self.reference} gains over each arm": (interval_chart("Gain a decision, 95 %", gains),)}


class QuantileView(View):
    share: int
    """Per cent of the ranges that did no better."""
    vs_hold_usd: float


class SweepView(PartialView):
    LEFT_OUT: ClassVar = frozenset({"ok"})
    report: str
    data: str
    since: int
    until: int
    capital_usd: int
    asked: int
    ranges: int
    """That were played, each once: narrow ones that are alike after rounding to the pool's tick spacing are one."""
    above_hold: float
    """Share of the ranges that ended above holding."""
    quantiles: tuple[QuantileView, ...]
    best: tuple[RangeView, ...]
    worst: tuple[RangeView, ...]
    repairs: MinuteRepairs
    trials: int
    """Ranges that were ever tried in this home: the best of so many is no forecast."""

    def to_document(self) -> Document:
        alike = (
            f"Of {self.asked:,} ranges {self.asked - self.ranges:,} narrow ones are the same as another after rounding "
            f"to the pool's tick spacing: {self.ranges:,} distinct ones were played."
        )
        return document(
            f"{self.ranges:,} ranges opened once and kept, {self.capital_usd:,} USD: the best and the worst",
            section(
                "Against holding",
                lines(
                    f"{self.above_hold:.1%} of the ranges ended above holding.",
                    quiet("" if self.stopped or self.ranges == self.asked else alike),
                ),
                table(
                    ("share of the ranges", "against hold, at most"),
                    [(f"{row.share} %", number(row.vs_hold_usd, signed=True)) for row in self.quantiles],
                ),
            ),
            section("The best", _range_table(self.best)),
            section("The worst", _range_table(self.worst)),
            describe_repairs(self.repairs),
            context=f"{time_text(self.since)} to {time_text(self.until)}; half of the capital in each token before. "
            "Fees by the fast engine, the first swap at the pool's fee without impact, no gas.",
            urgent=warn_partial(self),
            notes=(
                f"{self.trials:,} ranges were ever tried in this home: the best of so many is no forecast",
                *name_report(self.report, self.data),
            ),
        )


def _range_table(ranges: Sequence[RangeView]) -> Block:
    return table_of(
        ranges,
        {
            "range in ticks": lambda held: f"{held.lower}…{held.upper}",
            "net USD": lambda held: figure(held.net_pnl_usd, signed=True),
            "against hold": lambda held: figure(held.vs_hold_usd, signed=True),
            "fees": lambda held: figure(held.fees),
            "in range": lambda held: share(held.time_in_range),
            "drawdown": lambda held: percent(100 * held.max_drawdown),
        },
    )
