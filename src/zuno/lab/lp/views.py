"""What a backtest of the LP desk says, in dollars."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Final, TypeAlias, TypeVar

from zuno.kernel.numbers_text import time_text
from zuno.kernel.view import PartialView, View
from zuno.kernel.wire import derive, pick
from zuno.lab.comparisons import estimate_total
from zuno.lab.cutoffs import ModelCutoffView, describe_models
from zuno.lab.lp.arms import Arm, Move
from zuno.lab.lp.backtest import ArmResult, HeldSpan
from zuno.lab.lp.cover import WeeksView
from zuno.lab.lp.fast import USD
from zuno.lab.lp.ranges import RangeView
from zuno.lab.lp.scores import HEDGE_COST, Days, Score, ScoredRecord, count_fees, score_hedges, score_positions
from zuno.lab.lp.tape import Replay
from zuno.lab.model import figure, format_span, name_report, remark, table_of, warn_partial
from zuno.lab.report_page import Charts, bar_chart, draw_down, interval_chart, line_chart
from zuno.lp.model.market import HOUR
from zuno.lp.model.minutes import MinuteRepairs
from zuno.lp.rules.fee_cover import GRIDS
from zuno.present.document import Block, Document, Section, Value, document, lines, section, table
from zuno.present.values import bad, count, good, number, percent, quiet, share

Spans: TypeAlias = Sequence[HeldSpan]


class GainView(View):
    """USD over all days."""

    usd: float
    ci95: tuple[float, float] | None
    """By day; null where there are too few."""
    smallest: float | None
    """What four of five records of this length would show."""


class HedgedView(View):
    """An arm's positions with a short perpetual of what they held of the volatile token, on the recorded path."""

    alone: GainView
    """Without the short: fees, and what the price did."""
    hedged: GainView
    """With it, its costs and its funding."""
    resets: int
    turnover_usd: float
    cost_usd: float
    funding_usd: float


class ReplayView(View):
    """Fees of the same positions with their liquidity in the pool: every swap goes less far."""

    fees_usd: float
    fees_less_lvr: float
    """LVR by the recorded path."""
    difference_pct: float
    """Of the fees on the recorded path."""


class TapeView(View):
    """What a replay knows of a tape's pool."""

    swaps: int
    ticks_known: int
    """Between the traded prices, whose net liquidity follows from where swaps ended."""
    ticks_unknown: int


class ArmView(View):
    """USD; `residual` is what balances show and the terms do not explain, and anything but 0 is a fault."""

    name: str
    by: str
    """Who decided: nobody, a rule, or the debate by rules."""
    fees_less_lvr: float
    ci95: tuple[float, float] | None
    """By day; null where there are too few."""
    smallest: float | None
    """What four of five records of this length would show."""
    vs_rule: GainView | None
    """The same less that of the arm `fee-cover`; null where that was not run, and for itself."""
    net_pnl_usd: float
    vs_hold: GainView | None
    """Net result less that of holding."""
    scored_fees: float
    """That `feesLessLvr` is of: all minutes at once, or swap by swap."""
    lvr: float
    fees: float
    """By the integer pool, every minute swapped."""
    price_effect: float
    divergence_loss: float
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
    hedged: HedgedView | None
    """Null where it held no position."""
    replayed: ReplayView | None
    """Of a tape."""
    carry_usd: tuple[float, ...]
    """Fees less LVR, by day."""
    equity_usd: tuple[float, ...]
    """At the end of every hour, the start first."""

    @property
    def arm(self) -> str:
        return self.name

    def list_terms(self) -> tuple[float, ...]:
        """What the net result is the sum of, in the order of `TERMS`."""
        costs = (self.divergence_loss, self.gas, self.swap_cost, self.model_cost_usd)
        return self.fees, self.price_effect, *(-cost for cost in costs)

    def list_changes(self, count: int) -> list[int]:
        """From day to day, in millionths of a dollar; the last of `count` days takes what is left over."""
        worths = [round(self.equity_usd[24 * day] * USD) for day in range(count)] + [round(self.equity_usd[-1] * USD)]
        return [after - before for before, after in pairwise(worths)]


class LpLabView(PartialView):
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
    fees_over_lvr: float | None
    """Fee cover of the whole record; null: it cannot be known without a reference price."""
    ci80: tuple[float, float] | None
    minutes: int | None
    """That a return spans: as many as the pool's fee asks for."""
    by_minutes: dict[int, float]
    """The same over returns of other spans: a pool's own price stands idle inside its fee."""
    weeks: WeeksView
    funding_bp: float
    tape: TapeView | None
    repairs: MinuteRepairs
    models: tuple[str, ...]
    """Who argued beside the rules; none: nobody."""
    arms: tuple[ArmView, ...]

    def to_document(self) -> Document:
        unexplained = [arm.name for arm in self.arms if arm.residual]
        return document(
            describe_cover(self.fees_over_lvr, self.ci80),
            section(
                "Fees less LVR",
                self._score_table(),
                self._rule_table(),
                remark(
                    "What a position is paid for the price of being in range, without luck of the price. LVR over "
                    f"returns of {self.minutes or GRIDS[-1]} minutes."
                ),
            ),
            section(
                "Against holding",
                self._result_table(),
                lines(
                    bad(f"UNEXPLAINED  {', '.join(unexplained)}")
                    if unexplained
                    else good("Every arm's result is explained by its terms to the last unit.")
                ),
            ),
            section("Where the money went", self._cost_table()),
            section(
                "Beside a short",
                remark(
                    f"The same positions with a short of their token1, on the recorded path: {HEDGE_COST:.2%} of what "
                    f"it trades, funding received {self.funding_bp:g} bp every 8 h (assumed)."
                ),
                self._hedge_table(),
            ),
            self._describe_tape(),
            section(
                "Fee cover by the span of a return",
                remark(", ".join(f"{minutes} min: {ratio:.2f}" for minutes, ratio in sorted(self.by_minutes.items()))),
            ),
            self.weeks.describe(),
            describe_repairs(self.repairs),
            context=f"{time_text(self.since)} to {time_text(self.until)} ({self.hours} h), {self.capital_usd:,} USD, "
            f"decided every {self.every_hours} h; ranges of ±{self.half_width_pct:g} %; profile {self.profile}; gas "
            f"{self.gas_gwei:g} gwei; edition {self.edition}; models: "
            f"{', '.join(self.models) or 'none, the agents argue by rules'}",
            urgent=warn_partial(self, self.arms),
            notes=(
                "every arm begins with half of the capital in each token; fees, price effect, divergence loss, gas, "
                "swap cost and models add up to the net result",
                "intervals are 95 %, by day: one that holds zero shows nothing; beside it what four of five records of "
                "this length would show",
                *name_report(self.report, self.data),
            ),
        )

    def _score_table(self) -> Block:
        return table_of(
            self.arms,
            {
                "arm": lambda arm: arm.name,
                "fees − LVR, USD": lambda arm: figure(arm.fees_less_lvr, signed=True),
                "95 %": lambda arm: format_span(arm.ci95),
                "would show": lambda arm: figure(arm.smallest),
                "fees": lambda arm: figure(arm.scored_fees),
                "LVR": lambda arm: figure(arm.lvr),
                "in range": lambda arm: share(arm.time_in_range),
                "decided by": lambda arm: arm.by,
            },
            spare=("decided by", "in range"),
        )

    def _rule_table(self) -> Block | None:
        others = [arm for arm in self.arms if arm.vs_rule is not None]
        gains = _gain_columns("less fee-cover's", attrgetter("vs_rule"))
        return table_of(others, {"arm": attrgetter("name"), **gains}) if others else None

    def _hedge_table(self) -> Block:
        return table_of(
            [(arm.name, arm.hedged) for arm in self.arms if arm.hedged is not None],
            {
                "arm": lambda pair: pair[0],
                **_gain_columns("alone", lambda pair: pair[1].alone),
                **_gain_columns("hedged", lambda pair: pair[1].hedged, " of it"),
                "resets": lambda pair: count(pair[1].resets),
                "traded": lambda pair: figure(pair[1].turnover_usd, 0),
                "cost": lambda pair: figure(pair[1].cost_usd),
                "funding": lambda pair: figure(pair[1].funding_usd, signed=True),
            },
            spare=("traded", "resets"),
        )

    def _describe_tape(self) -> Section | None:
        if self.tape is None:
            return None
        return section(
            "Replay with the position in the pool",
            remark(
                f"{self.tape.swaps:,} swaps, amounts as recorded. Of the ticks between the traded prices the net "
                f"liquidity of {self.tape.ticks_known} follows from where swaps ended; that of "
                f"{self.tape.ticks_unknown} is not known, nor any beyond."
            ),
            table_of(
                [(arm.name, arm.replayed) for arm in self.arms if arm.replayed is not None],
                {
                    "arm": lambda pair: pair[0],
                    "fees − LVR, USD": lambda pair: figure(pair[1].fees_less_lvr, signed=True),
                    "fees": lambda pair: figure(pair[1].fees_usd),
                    "of those on the recorded path": lambda pair: percent(pair[1].difference_pct, 4, signed=True),
                },
            ),
        )

    def _result_table(self) -> Block:
        return table_of(
            self.arms,
            {
                "arm": lambda arm: arm.name,
                "net USD": lambda arm: figure(arm.net_pnl_usd, signed=True),
                **_gain_columns("against hold", lambda arm: arm.vs_hold),
                "moves": lambda arm: f"{arm.rebalances} of {arm.decisions}",
                "refused": lambda arm: count(arm.refused),
                "drawdown": lambda arm: percent(100 * arm.max_drawdown),
            },
            spare=("refused", "drawdown"),
        )

    def _cost_table(self) -> Block:
        return table_of(
            self.arms,
            {
                "arm": lambda arm: arm.name,
                "fees": lambda arm: figure(arm.fees),
                "price": lambda arm: figure(arm.price_effect, signed=True),
                "divergence loss": lambda arm: figure(arm.divergence_loss),
                "gas": lambda arm: figure(arm.gas),
                "swap cost": lambda arm: figure(arm.swap_cost),
                "models": lambda arm: figure(arm.model_cost_usd),
                "tokens": lambda arm: count(arm.model_tokens),
                "unanswered": lambda arm: count(arm.unanswered),
                "residual": lambda arm: f"{arm.residual:g}",
            },
            spare=("unanswered", "tokens", "models", "residual", "swap cost", "gas"),
        )

    def draw_charts(self) -> Charts:
        equity = {
            arm.name: [(self.since + HOUR * hour, worth) for hour, worth in enumerate(arm.equity_usd)]
            for arm in self.arms
        }
        against = [(arm.name, arm.vs_hold.usd, arm.vs_hold.ci95) for arm in self.arms if arm.vs_hold]
        scores = [(arm.name, arm.fees_less_lvr, arm.ci95) for arm in self.arms]
        return {
            "Fees less LVR": (interval_chart("Fees less LVR", scores),),
            "Against holding": (
                line_chart("Equity", equity.items()),
                line_chart("Drawdown", ((arm, draw_down(points)) for arm, points in equity.items()), "%"),
                interval_chart("Net result less that of holding", against),
            ),
            "Where the money went": (
                bar_chart("Attribution", TERMS, [(arm.name, arm.list_terms()) for arm in self.arms]),
            ),
        }


_Row = TypeVar("_Row")


def _gain_columns(
    name: str, read: Callable[[_Row], GainView | None], mark: str = ""
) -> dict[str, Callable[[_Row], str | Value]]:
    """A gain, its interval and what would show; blank where there is none."""

    def cell(show: Callable[[GainView], str | Value]) -> Callable[[_Row], str | Value]:
        return lambda item: "" if (gain := read(item)) is None else show(gain)

    return {
        name: cell(lambda gain: figure(gain.usd, signed=True)),
        f"95 %{mark}": cell(lambda gain: format_span(gain.ci95)),
        f"would show{mark}": cell(lambda gain: figure(gain.smallest)),
    }


def describe_cover(ratio: float | None, ci80: tuple[float, float] | None) -> str:
    if ratio is None:
        return "Whether this pool paid is not known: its fee is too high for its own price to tell."
    span = "" if ci80 is None else f" ({ci80[0]:.2f} to {ci80[1]:.2f})"
    return f"This pool's fees paid {ratio:.2f} of what arbitrage took{span}."


TERMS: Final = ("fees", "price", "divergence loss", "gas", "swap cost", "models")


def describe_repairs(repairs: MinuteRepairs) -> Section:
    return section(
        "Data",
        remark(
            f"{repairs.rows:,} rows in {repairs.files} files. Put right: {repairs.sorted_rows} out of order, "
            f"{repairs.repeated} repeated, {repairs.contradicted} contradicted (the first stands), "
            f"{repairs.widened} with open or close outside of lowest and highest. Nothing traded where a row is "
            f"missing: {repairs.missing} minutes, whole days: {', '.join(repairs.missing_days) or 'none'}. Without "
            f"liquidity, so without fees: {repairs.without_liquidity} rows."
        ),
    )


DECIDED_BY: Final = {
    Arm.HOLD: "nobody",
    Arm.PASSIVE: "nobody",
    Arm.RESET: "rule",
    Arm.COVER: "rule",
    Arm.RANDOM: "chance",
    Arm.SCORE: "rule",
    Arm.NO_CRITIC: "Strategist by rules",
    Arm.PLACEBO: "debate by rules",
    Arm.DEBATE: "debate by rules",
}


def build_arm_view(
    result: ArmResult, record: ScoredRecord, days: Days, funding_bp: Decimal, replay: Callable[[Spans], Replay] | None
) -> ArmView:
    """View of one arm; `complete_arm` adds what needs the other arms."""
    terms, score = result.terms, score_positions(record, result.spans, days)
    own = measure_gain(score.carry)
    return derive(
        ArmView,
        result,
        name=result.arm,
        by=", ".join(sorted(result.used.models)) or DECIDED_BY[result.arm],
        fees_less_lvr=own.usd,
        **pick(own, "ci95", "smallest"),
        vs_rule=None,
        net_pnl_usd=to_usd(result.net - Fraction(result.used.usd) * USD),
        scored_fees=sum(score.fees) / USD,
        lvr=sum(score.lvr) / USD,
        fees=to_usd(terms.fees),
        price_effect=to_usd(terms.price_effect + result.idle_effect),
        divergence_loss=to_usd(terms.divergence_loss),
        gas=to_usd(terms.gas),
        swap_cost=to_usd(terms.swap_cost),
        residual=float(result.residual / USD),
        model_tokens=result.used.tokens,
        model_cost_usd=float(result.used.usd),
        unanswered=result.used.unanswered,
        time_in_range=round(result.minutes_in_range / result.minutes, 6),
        max_drawdown=measure_drawdown(result.hourly),
        vs_hold=None,
        hedged=_hedge(record, result.spans, days, funding_bp) if result.spans else None,
        replayed=_replay(record, result.spans, score, replay) if replay and result.spans else None,
        carry_usd=tuple(value / USD for value in score.carry),
        equity_usd=tuple(worth / USD for worth in result.hourly),
    )


def _hedge(record: ScoredRecord, spans: Spans, days: Days, funding_bp: Decimal) -> HedgedView:
    found = score_hedges(record, spans, days, float(funding_bp) / 10_000)
    return derive(
        HedgedView,
        found,
        alone=measure_gain(found.alone),
        hedged=measure_gain(found.hedged),
        turnover_usd=found.turnover / USD,
        cost_usd=found.cost / USD,
        funding_usd=found.funding / USD,
    )


def _replay(record: ScoredRecord, spans: Spans, score: Score, replay: Callable[[Spans], Replay]) -> ReplayView:
    found, last = replay(spans), float(record.columns.roots[-1])
    earned = sum(count_fees(record, span, last) for span in spans)
    ratio = (found.fees0 + found.fees1 / (last * last)) / earned if earned else 1.0
    fees = round(sum(score.fees) * ratio)
    return ReplayView(
        fees_usd=fees / USD,
        fees_less_lvr=(fees - sum(score.lvr)) / USD,
        difference_pct=round(100 * (ratio - 1), 4),
    )


def complete_arm(arm: ArmView, held: ArmView | None, rule: ArmView | None) -> ArmView:
    """Add the comparisons with holding, and with being in or out by fee cover."""
    count, found = len(arm.carry_usd), dict[str, GainView]()
    for name, other, read in (
        ("vs_hold", held, lambda each: each.list_changes(count)),
        ("vs_rule", rule, lambda each: [round(usd * USD) for usd in each.carry_usd]),
    ):
        if other is not None and other.name != arm.name:
            found[name] = measure_gain([ours - theirs for ours, theirs in zip(read(arm), read(other), strict=True)])
    return arm.model_copy(update=found)


def measure_gain(days: Sequence[int]) -> GainView:
    if (found := estimate_total(days)) is None:
        return GainView(usd=sum(days) / USD, ci95=None, smallest=None)
    low, high, smallest = (round(amount / USD, 6) for amount in (found.low, found.high, found.smallest))
    return GainView(usd=sum(days) / USD, ci95=(low, high), smallest=smallest)


def measure_drawdown(worths: Sequence[int]) -> float:
    falls = (1 - Fraction(worth, peak) for worth, peak in zip(worths, accumulate(worths, max), strict=True))
    return round(float(max(falls)), 6)


def to_usd(amount: Fraction) -> float:
    return round(float(amount / USD), 6)


class RegimeGainView(View):
    """Of one kind of market, by the price over the horizon that is scored: nobody knew it when deciding."""

    regime: str
    episodes: int
    gain_usd: float
    """A decision."""


class ArmGainView(View):
    """An arm, and what the full debate gained over it in fees less LVR; USD a decision, models and trading paid."""

    arm: str
    by: str
    episodes: int
    moved: int
    """Episodes in which it did something."""
    fees_less_lvr: float
    net_usd: float
    """With what the price did."""
    model_tokens: int
    model_cost_usd: float
    unanswered: int
    """Questions to models that nobody answered, so that rules did."""
    gain_usd: float | None
    """Of the debate over it; null for the debate itself."""
    ci95: tuple[float, float] | None
    smallest: float | None
    """What four of five such studies would find."""
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
                remark(f"Noise floor: {floor}{self.noise_floor_said}."),
            ),
            section(
                "By market",
                remark(f"By whether the price moved 2 % in the same {self.horizon_hours} h that are scored."),
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
                "fees − LVR": lambda arm: figure(arm.fees_less_lvr, signed=True),
                "gain": lambda arm: figure(arm.gain_usd, signed=True),
                "95 %": lambda arm: "" if arm.gain_usd is None else format_span(arm.ci95),
                "would show": lambda arm: figure(arm.smallest),
                "net": lambda arm: figure(arm.net_usd, signed=True),
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
