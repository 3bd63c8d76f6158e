"""What a backtest of the trading desk answers: figures of every arm, and what the debate gains over each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from math import fsum
from typing import TYPE_CHECKING, Final

from zuno.kernel.clock import iso
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.kernel.view import PartialView, View
from zuno.lab.comparisons import compare_pairs, correct_p_values, interval_of_sum
from zuno.lab.cutoffs import ModelCutoffView, describe_models, judge_models
from zuno.lab.model import figure, format_span, name_report, table_of, warn_partial
from zuno.lab.replies import describe_unanswered
from zuno.lab.report_page import Charts, bar_chart, draw_down, interval_chart, line_chart
from zuno.lab.returns import deflated_sharpe, estimate_trial_variance, measure_returns
from zuno.lab.strategies_view import TiltView
from zuno.lab.trading.arm_result import MICRO, ArmResult, DecisionLine, PriceSeries, Span
from zuno.lab.trading.arms import MODELS_FOR, NEED_MODEL, NO_MODEL, NO_REPLY, Arm, describe_arm
from zuno.lab.trading.order_arms import SEED, draw_trades
from zuno.markets.market import Symbol
from zuno.markets.venues import DEFAULT_VENUE
from zuno.present.document import Block, Document, document, lines, section, table
from zuno.present.values import count, quiet, share
from zuno.trading.model.cycle import EDITION, Call
from zuno.trading.model.known import derive
from zuno.trading.model.market import DAY_MS, Side
from zuno.trading.rules.inputs import ASSUMED_FUNDING, ASSUMED_SLIPPAGE, Fees

if TYPE_CHECKING:
    from zuno.lab.trading.question import TradeMarket, TradeQuestion

BLOCK_DAYS: Final = 10
"""Drawn together by the bootstrap: as long as two holds."""
DAYS_PER_YEAR: Final = 365
TREND_DAYS: Final = 30
TREND: Final = 0.10
"""A day is bull or bear where the market had moved so far in the thirty days before it, else sideways."""
FLIP_MS: Final = DAY_MS
"""A decision that two arms see differently is judged by the day that followed."""
SIGNIFICANT: Final = 0.05
DRAWS: Final = 1_000
KINDS: Final = ("bull", "bear", "sideways")


class GainView(View):
    """An arm less another, day by day over the same prices."""

    net_pnl_usd: float
    ci95: tuple[float, float] | None
    p: float | None
    """Two-sided, of the days resampled."""
    p_holm: float | None
    """Corrected for as many comparisons as the report makes."""
    better: int
    worse: int
    """Decisions that the two saw differently, by the day that followed."""


class RegimeView(View):
    """Net PnL in USD of the days of each kind of market."""

    bull: float
    bear: float
    sideways: float

    def list_nets(self) -> tuple[float, float, float]:
        return self.bull, self.bear, self.sideways


class TradeArmView(View):
    arm: str
    by: str
    until: str
    """How far it has come: a run that was cut short ends earlier."""
    net_pnl_usd: float
    sharpe: float | None
    deflated_sharpe: float | None
    """The chance that the true Sharpe ratio is above what the best of so many tries would show by luck."""
    sortino: float | None
    calmar: float | None
    max_drawdown: float
    trades: int
    open_trades: int
    refused: int
    """Orders of an arm without a desk that did not end filled."""
    hit_rate: float | None
    profit_factor: float | None
    expectancy_r: float | None
    exposure: float
    market_change: float
    fees: float
    funding: float
    model_cost_usd: float
    model_tokens: int
    unanswered: int
    """Questions to models that nobody answered, so that rules did: the day's budget was spent, or nobody was there."""
    exits: dict[str, int]
    exploration: int
    """Trades that were explorations: a quarter of the size, because nothing is proven."""
    cycles: int
    lessons: int
    recalled: int
    ci95: tuple[float, float] | None
    regimes: RegimeView
    vs_debate: GainView | None
    equity: tuple[float, ...]
    """At the beginning, every midnight and the end."""


class SkippedArmView(View):
    arm: str
    reason: str


class RandomDrawsView(View):
    """The debate's closed trades among random ones with the same sides, sizes and holds, before funding."""

    draws: int
    debate_usd: float
    mean_usd: float
    middle90_usd: tuple[float, float]
    share_below: float
    """Of the draws: those that came to less than the debate."""

    def describe(self) -> str:
        low, high = self.middle90_usd
        return (
            f"Chance with the same sides, sizes and holds, {self.draws:,} draws before funding: mean "
            f"{self.mean_usd:+,.2f} USD, nine of ten between {low:+,.2f} and {high:+,.2f}; the debate's "
            f"{self.debate_usd:+,.2f} is above {self.share_below:.0%} of them."
        )


class TradeLabView(PartialView):
    report: str
    """Its id: `zuno lab reports` says where its page is."""
    data: str
    origin: str
    symbols: tuple[str, ...]
    since: str
    until: str
    days: int
    capital_usd: float
    edition: int
    trials: int
    market_change: float
    regime_days: dict[str, int]
    headline: str
    noise_floor_usd: float | None
    """By how much the debate and the debate with fresh replies differ in the end; null: not measured."""
    noise_floor_said: str
    models: tuple[ModelCutoffView, ...]
    random: RandomDrawsView | None
    tilt: TiltView | None
    """Null: the debate was not an arm, has not come to the end, or the core had no history."""
    arms: tuple[TradeArmView, ...]
    not_run: tuple[SkippedArmView, ...]
    left_out: tuple[str, ...] = ()  # files of the folder that could not be imported, and why
    notes: tuple[str, ...]

    def to_document(self) -> Document:
        floor = "" if self.noise_floor_usd is None else f", {self.noise_floor_usd:,.2f} USD"
        reasons = sorted({reason for arm in self.arms for reason in arm.exits})
        kinds = ", ".join(f"{days} days {kind}" for kind, days in self.regime_days.items())
        return document(
            f"{', '.join(self.symbols)}, {self.since[:10]} to {self.until[:10]} ({self.days} days), "
            f"{self.capital_usd:,.0f} USD; the market {100 * self.market_change:+.1f} %",
            lines(self.headline),
            section("Arms", self._result_table()),
            section("Who decides", self._desk_table()),
            section(
                "Trades and costs",
                self._trade_table(),
                table(
                    ("ended by", *(reason.replace("_", " ") for reason in reasons)),
                    [(arm.arm, *(count(arm.exits.get(reason, 0)) for reason in reasons)) for arm in self.arms],
                ),
            ),
            section(
                "Against the debate", self._gain_table(), lines("" if self.random is None else self.random.describe())
            ),
            None if self.tilt is None else self.tilt.to_section(),
            section("Bull, bear, sideways", self._regime_table()),
            describe_models(self.models, self.arms),
            lines(quiet(f"Noise floor of every gain: {self.noise_floor_said}{floor}.")),
            section("Not run", table(("arm", "why"), [(arm.arm, arm.reason) for arm in self.not_run]))
            if self.not_run
            else None,
            context=f"{self.origin}; {kinds}; edition {self.edition}; net of fees, slippage, funding and models",
            urgent=(
                *warn_partial(self, self.arms, left_out=self.left_out),
                *(f"{arm.arm} has come to {arm.until}" for arm in self.arms if arm.until != self.until),
            ),
            notes=(
                *self.notes,
                f"deflated: how probable a true Sharpe ratio above zero is after {self.trials} trials of the lab",
                "R: a result as a multiple of the planned loss",
                *name_report(self.report, self.data),
            ),
        )

    def _result_table(self) -> Block:
        return table_of(
            self.arms,
            {
                "arm": lambda arm: arm.arm,
                "net USD": lambda arm: figure(arm.net_pnl_usd, signed=True),
                "95 %": lambda arm: format_span(arm.ci95),
                "Sharpe": lambda arm: figure(arm.sharpe),
                "deflated": lambda arm: figure(arm.deflated_sharpe),
                "Sortino": lambda arm: figure(arm.sortino),
                "Calmar": lambda arm: figure(arm.calmar),
                "drawdown": lambda arm: share(arm.max_drawdown),
                "exposure": lambda arm: figure(arm.exposure),
            },
            spare=("exposure", "Calmar", "Sortino", "deflated"),
        )

    def _desk_table(self) -> Block:
        return table_of(
            self.arms,
            {
                "arm": lambda arm: arm.arm,
                "who decides": lambda arm: arm.by,
                "cycles": lambda arm: count(arm.cycles),
                "lessons": lambda arm: count(arm.lessons),
                "recalled": lambda arm: count(arm.recalled),
                "unanswered": lambda arm: count(arm.unanswered),
            },
            spare=("unanswered", "recalled", "lessons", "cycles"),
        )

    def _trade_table(self) -> Block:
        return table_of(
            self.arms,
            {
                "arm": lambda arm: arm.arm,
                "trades": lambda arm: count(arm.trades),
                "open": lambda arm: count(arm.open_trades),
                "refused": lambda arm: count(arm.refused),
                "explorations": lambda arm: count(arm.exploration),
                "hits": lambda arm: "" if arm.hit_rate is None else share(arm.hit_rate),
                "profit factor": lambda arm: figure(arm.profit_factor),
                "mean R": lambda arm: figure(arm.expectancy_r),
                "fees": lambda arm: figure(arm.fees),
                "funding": lambda arm: figure(arm.funding, signed=True),
                "models": lambda arm: figure(arm.model_cost_usd),
            },
            spare=("models", "refused", "explorations", "profit factor"),
        )

    def _gain_table(self) -> Block:
        return table(
            ("arm", "less debate, USD", "95 %", "p", "p (Holm)", "flips for better", "for worse"),
            [
                (
                    *(arm.arm, figure(gain.net_pnl_usd, signed=True), format_span(gain.ci95)),
                    *(figure(gain.p, 3), figure(gain.p_holm, 3)),
                    # Only a desk decides cycle by cycle.
                    *(count(flips) if arm.cycles else "" for flips in (gain.better, gain.worse)),
                )
                for arm in self.arms
                if (gain := arm.vs_debate) is not None
            ],
        )

    def _regime_table(self) -> Block:
        return table(
            ("net USD by market", *KINDS),
            [(arm.arm, *(figure(net, signed=True) for net in arm.regimes.list_nets())) for arm in self.arms],
        )

    def draw_charts(self) -> Charts:
        curves = {arm.arm: self._equity_points(arm) for arm in self.arms}
        desks = {arm.arm: curves[arm.arm] for arm in self.arms if arm.cycles}
        gains = [(arm.arm, arm.vs_debate.net_pnl_usd, arm.vs_debate.ci95) for arm in self.arms if arm.vs_debate]
        return {
            "Arms": (
                line_chart("Equity at midnight", curves.items()),
                line_chart("Equity of the desks alone", desks.items()),
                line_chart("Drawdown", ((arm, draw_down(points)) for arm, points in curves.items()), "%"),
            ),
            "Against the debate": (interval_chart("Arm less debate, 95 % by blocks of days", gains),),
            "Bull, bear, sideways": (
                bar_chart(
                    "Net PnL by kind of market", KINDS, [(arm.arm, arm.regimes.list_nets()) for arm in self.arms]
                ),
            ),
        }

    def _equity_points(self, arm: TradeArmView) -> list[tuple[int, float]]:
        begin, end = (round(datetime.fromisoformat(text).timestamp()) for text in (self.since, arm.until))
        day = DAY_MS // 1_000
        times = [begin, *range((begin // day + 1) * day, end, day), end]
        return list(zip(times, arm.equity, strict=False))


def build_view(
    report: str,
    question: TradeQuestion,
    market: TradeMarket,
    span: Span,
    results: Sequence[ArmResult],
    *,
    stopped: bool,
    trials: int | None = None,
) -> TradeLabView:
    """`trials`: arms that were ever tried, of the lab's run log; None: those of this report."""
    prices = {symbol: market.prices[symbol] for symbol in question.symbols}
    marks = span.marks()
    kinds = classify_days(prices, marks)
    debate = next((result for result in results if result.arm is Arm.DEBATE), None)
    gains = {} if debate is None else compare_with_debate(debate, results, prices)
    tries = max(trials or 0, len(results))
    sharpes = [value for result in results if (value := measure_returns(_returns(result), 1).sharpe) is not None]
    variance = estimate_trial_variance(sharpes, len(marks) - 1)
    change = round(_mean_change(prices, span.begin, span.end), 6)
    models = judge_models(frozenset(name for result in results for name in result.models), span.begin // 1_000)
    cannot_run = NEED_MODEL if not question.models else () if stopped else MODELS_FOR
    floor, floor_said = _noise_floor(gains, bool(models))
    return TradeLabView(
        ok=not market.left_out,
        stopped=stopped,
        report=report,
        data=plain_text(market.folder, 200) if market.folder else "",
        origin=market.origin,
        symbols=tuple(symbol.value for symbol in question.symbols),
        since=iso(span.begin),
        until=iso(span.end),
        days=len(marks) - 1,
        capital_usd=float(DEFAULT_VENUE.paper_cash),
        edition=EDITION,
        trials=tries,
        market_change=change,
        regime_days=dict(sorted(Counter(kinds).items())),
        headline=_headline(models, gains, sum(result.unanswered for result in results)),
        noise_floor_usd=floor,
        noise_floor_said=floor_said,
        models=models,
        random=None if debate is None or not debate.trades else _compare_with_chance(debate, prices, span),
        tilt=None if debate is None else debate.tilt,
        arms=tuple(_arm_view(result, kinds, gains.get(result.arm), change, tries, variance) for result in results),
        not_run=tuple(
            SkippedArmView(arm=arm.value, reason=f"{MODELS_FOR[arm]}: {NO_REPLY if question.models else NO_MODEL}")
            for arm in question.arms
            if arm in cannot_run and all(result.arm is not arm for result in results)
        ),
        left_out=tuple(plain_text(file, 300) for file in market.left_out),
        notes=_list_notes(question, market, span),
    )


def _arm_view(
    result: ArmResult, kinds: Sequence[str], gain: GainView | None, change: float, trials: int, variance: float
) -> TradeArmView:
    returns = _returns(result)
    figures = measure_returns(returns, DAYS_PER_YEAR)
    by_kind = {
        kind: sum(change for change, each in zip(result.changes, kinds, strict=False) if each == kind) for kind in KINDS
    }
    return derive(
        TradeArmView,
        result,
        figures,
        by=describe_arm(result.arm, bool(result.models)),
        until=iso(Millis(result.until)),
        net_pnl_usd=_usd(result.net),
        deflated_sharpe=deflated_sharpe(returns, trials, variance),
        trades=len(result.trades),
        market_change=change,
        fees=_usd(result.fees),
        funding=_usd(result.funding),
        model_cost_usd=round(result.model_cost / MICRO, 4),
        exits=dict(sorted(Counter(trade.reason.value for trade in result.trades).items())),
        exploration=sum(trade.exploration for trade in result.trades),
        ci95=_interval(result.changes),
        regimes=RegimeView(**{kind: _usd(amount) for kind, amount in by_kind.items()}),
        vs_debate=gain,
        equity=tuple(round(worth / MICRO, 2) for worth in result.worth),
    )


def compare_with_debate(
    debate: ArmResult, results: Sequence[ArmResult], prices: Mapping[Symbol, PriceSeries]
) -> dict[Arm, GainView]:
    """Each other arm less the debate, over the days that both have come to."""
    others = [result for result in results if result is not debate]
    changes = [list(zip(other.changes, debate.changes, strict=False)) for other in others]
    pairs = [compare_pairs([own for own, _ in days], [debated for _, debated in days], BLOCK_DAYS) for days in changes]
    corrected = iter(correct_p_values([pair.p for pair in pairs if pair is not None]))
    gains: dict[Arm, GainView] = {}
    for other, days, pair in zip(others, changes, pairs, strict=True):
        better, worse = (0, 0)
        if other.cycles:
            better, worse = count_flips(debate.decisions, other.decisions, prices, min(debate.until, other.until))
        gains[other.arm] = GainView(
            net_pnl_usd=_usd(sum(own - debated for own, debated in days)),
            ci95=None if pair is None else (_usd(pair.low), _usd(pair.high)),
            p=None if pair is None else pair.p,
            p_holm=None if pair is None else next(corrected),
            better=better,
            worse=worse,
        )
    return gains


def _compare_with_chance(debate: ArmResult, prices: Mapping[Symbol, PriceSeries], span: Span) -> RandomDrawsView:
    cost = 2 * Fees().at(DEFAULT_VENUE).taker + ASSUMED_SLIPPAGE.buy + ASSUMED_SLIPPAGE.sell
    ours = sum(trade.net - trade.funding for trade in debate.trades)
    drawn = []
    for draw in range(DRAWS):
        nets = []
        for trade in draw_trades(debate.trades, span, SEED + draw):
            entry, exit = (prices[trade.like.symbol].at(moment) for moment in (trade.begin, trade.end))
            if entry is not None and exit is not None:
                move = (exit / entry - 1) * (1 if trade.like.side is Side.LONG else -1)
                nets.append(trade.like.notional * (move - cost / 100))
        drawn.append(round(fsum(nets)))
    drawn.sort()
    return RandomDrawsView(
        draws=DRAWS,
        debate_usd=_usd(ours),
        mean_usd=_usd(round(Fraction(sum(drawn), DRAWS))),
        middle90_usd=(_usd(drawn[DRAWS // 20]), _usd(drawn[-1 - DRAWS // 20])),
        share_below=round(sum(net < ours for net in drawn) / DRAWS, 4),
    )


def _noise_floor(gains: Mapping[Arm, GainView], models: bool) -> tuple[float | None, str]:
    if not models:
        return 0.0, "rules give the same answer twice"
    again = gains.get(Arm.AA)
    return (None, "not measured: add the arm aa") if again is None else (abs(again.net_pnl_usd), "measured by aa")


def _headline(models: Sequence[ModelCutoffView], gains: Mapping[Arm, GainView], unanswered: int) -> str:
    """No verdict where days are in-sample for a model or questions to models went unanswered."""
    if unanswered:
        return f"Not judged: {describe_unanswered(unanswered)}"
    if known := [model.model for model in models if model.in_sample]:
        names = ", ".join(known)
        return f"Not provable here: of these days some lie before the end of what {names} was trained on."
    if not gains:
        return "Not judged: nothing was compared with the debate."
    if all(gain.p_holm is None for gain in gains.values()):
        return "Not judged: too few days for any comparison."
    who = "the debate" if models else "the debate by rules"
    shown = [
        f"{arm} {gain.net_pnl_usd:+,.2f} USD less {who}"
        for arm, gain in gains.items()
        if gain.p_holm is not None and gain.p_holm < SIGNIFICANT
    ]
    if not shown:
        return f"No arm differs from {who} by more than chance, all comparisons taken together."
    return f"Shown, all comparisons taken together: {'; '.join(shown)}."


def count_flips(
    debate: Sequence[DecisionLine], other: Sequence[DecisionLine], prices: Mapping[Symbol, PriceSeries], until: int
) -> tuple[int, int]:
    """Decisions that the two arms saw differently, for better and for worse by the move of the day after."""
    ours, theirs = (
        {(line.at, line.symbol): side.sign for line in lines if (side := Call(line.call).side) is not None}
        for lines in (debate, other)
    )
    better = worse = 0
    for at, symbol in sorted({*ours, *theirs}):
        before, after = prices[symbol].at(at), prices[symbol].at(at + FLIP_MS)
        if before is None or after is None or after == before or at + FLIP_MS > until:
            continue
        way = 1 if after > before else -1
        gain = (theirs.get((at, symbol), 0) - ours.get((at, symbol), 0)) * way
        better += gain > 0
        worse += gain < 0
    return better, worse


def classify_days(prices: Mapping[Symbol, PriceSeries], marks: Sequence[int]) -> tuple[str, ...]:
    """Kind of market of each day between two marks, by what was known when it began."""
    return tuple(name_kind(round(_mean_change(prices, mark - TREND_DAYS * DAY_MS, mark), 9)) for mark in marks[:-1])


def name_kind(move: float) -> str:
    """The kind of a market that moved so far."""
    return "bull" if move >= TREND else "bear" if move <= -TREND else "sideways"


def _mean_change(prices: Mapping[Symbol, PriceSeries], begin: int, end: int) -> float:
    """Of the symbols whose prices are known at both moments, a fraction."""
    ends = [(series.at(begin), series.at(end)) for series in prices.values()]
    changes = [last / first - 1 for first, last in ends if first is not None and last is not None]
    return fsum(changes) / len(changes) if changes else 0.0


def _list_notes(question: TradeQuestion, market: TradeMarket, span: Span) -> tuple[str, ...]:
    notes = ["decided when a bar has closed, filled at the open of the next with slippage of 5 basis points"]
    if market.candles_only:
        notes.append("candles alone: what books, options and liquidations would have said is missing, not zero")
    days = range(span.begin // DAY_MS, (span.end - 1) // DAY_MS + 1)
    charged = (
        f"{100 * ASSUMED_FUNDING:g} % per 8 h is charged to either side" if market.candles_only else "none is charged"
    )
    for symbol in question.symbols:
        if unfunded := sum(day not in market.funded_days[symbol] for day in days):
            notes.append(f"no funding of {symbol} was recorded on {unfunded} of {len(days)} days: {charged}")
    if not market.synthetic:
        last = max(market.prices[symbol].times[-1] for symbol in question.symbols)
        notes.append(
            f"the record ends in {iso(Millis(last))[:7]}: a model trained later may know it, so an edge of its debate "
            "is not provable here; arms by rules have read nothing"
        )
    return tuple(notes)


def _returns(result: ArmResult) -> list[float]:
    """Daily returns, rounded to be the same on every machine."""
    return [
        round((after - before) / before, 12) if before > 0 else 0.0
        for before, after in zip(result.worth, result.worth[1:], strict=False)
    ]


def _interval(changes: Sequence[int]) -> tuple[float, float] | None:
    ends = interval_of_sum(changes, BLOCK_DAYS)
    return None if ends is None else (_usd(ends[0]), _usd(ends[1]))


def _usd(amount: int) -> float:
    return round(amount / MICRO, 2)
