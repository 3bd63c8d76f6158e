"""Whether a decision knows anything of what came after it, and how much it hangs on where its history begins.

A moment is ruled as a backtest rules it, over the whole market and with later moments prepared beside it. It is ruled
again where nothing after it exists, and where everything after it was other: inputs, figures and rulings must be the
same bytes.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from hashlib import sha256
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from zuno.kernel.canonical import digest
from zuno.kernel.units import Millis
from zuno.kernel.view import View
from zuno.kernel.wire import derive
from zuno.lab.comparisons import measure_rate
from zuno.lab.lp.debate_checks import PoolLookaheadView
from zuno.lab.market_study import MarketPlan, describe_markets
from zuno.lab.market_views import ChangedSeries
from zuno.lab.model import MarketCheckView, MomentView, RateView, StudiedMoment, describe_study, table_of, warn_partial
from zuno.lab.moments import Moment, StudyMarket, choose_moments
from zuno.lab.rulings import make_account
from zuno.lab.trading.cycles import BacktestCycles, BacktestHistory
from zuno.lab.trading.figures import MarketFigures
from zuno.llm.ask import ModelContext
from zuno.present.document import Document, Tone, Value, document, lines, section, table
from zuno.present.values import bad, count, percent, quiet
from zuno.trading.agents.case import Case
from zuno.trading.measure.data_quality import complete_at
from zuno.trading.measure.indicators import Indicators
from zuno.trading.model.account import Account, account_slots
from zuno.trading.model.bundle import BundleEncoder, Slot
from zuno.trading.model.cycle import Node, Outcome, content_for_hash
from zuno.trading.model.known import Missing
from zuno.trading.model.market import Candle, Feed, Row, Series
from zuno.trading.ports.series import SeriesSnapshot, SeriesStore, Slice
from zuno.trading.run.record import RunJournal

R = TypeVar("R", bound=Row)
OpenModelContext: TypeAlias = Callable[[RunJournal], ModelContext]
CODE: Final = "lookahead"
STARTUPS: Final = (199, 399, 499, 999, 1_999)
"""Bars of each timeframe that a history is cut to."""
CUMULATIVE: Final = frozenset({"obv", "cvd"})
"""Sums since the first bar: their level says nothing, and nothing reads it."""
SHOWN: Final = 15
"""Indicators of each length that a screen lists, the largest first."""
PREPARED: Final = 3
"""Later moments that are prepared together with the one that is ruled."""


class _DatedSeries(ChangedSeries):
    def __init__(self, store: SeriesStore, at: Millis) -> None:
        super().__init__(store)
        self._at = at

    def _is_known(self, series: Series[Any], row: Any) -> bool:
        return complete_at(series, row) <= self._at

    def _all_known(self, series: Series[Any], rows: Sequence[Any]) -> bool:
        """For series in order of time the last row decides."""
        decisive = rows if series.feed is Feed.MACRO else rows[-1:]
        return all(self._is_known(series, row) for row in decisive)


class CutSeries(_DatedSeries):
    """A store in which nothing happened after a moment, whatever it is asked for."""

    async def read(
        self, series: Series[R], since: Millis, until: Millis, known_by: Millis, newest: int | None = None
    ) -> tuple[R, ...]:
        return await super().read(series, since, until, Millis(min(known_by, self._at)), newest)

    async def read_many(self, slices: Sequence[Slice[Any]], known_by: Millis) -> SeriesSnapshot:
        return await super().read_many(slices, Millis(min(known_by, self._at)))

    def change_rows(self, series: Series[R], rows: Sequence[R]) -> Sequence[R]:
        return rows if self._all_known(series, rows) else [row for row in rows if self._is_known(series, row)]


class ScrambledSeries(_DatedSeries):
    """A store in which everything after a moment is different: numbers 7 % higher, documents gone."""

    def change_rows(self, series: Series[R], rows: Sequence[R]) -> Sequence[R]:
        if self._all_known(series, rows):
            return rows
        changed = []
        for row in rows:
            if self._is_known(series, row):
                changed.append(row)
            elif isinstance(row, tuple) and hasattr(row, "_replace"):
                numbers = {name: value for name, value in row._asdict().items() if isinstance(value, float)}
                changed.append(row._replace(**{name: 1.07 * value for name, value in numbers.items()}))
        return changed


class ShortSeries(ChangedSeries):
    """A store whose candles begin so many bars before a moment."""

    def __init__(self, store: SeriesStore, bars: int) -> None:
        super().__init__(store)
        self._bars = bars

    def change_rows(self, series: Series[R], rows: Sequence[R]) -> Sequence[R]:
        return rows[-self._bars :] if series.row is Candle else rows


@dataclass(frozen=True, slots=True)
class RuledMoment:
    case: Case
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class StartupResult:
    bars: int
    ruling: str
    decision: str
    differences: Mapping[str, float]
    """By timeframe and indicator: the share by which it differs from that of the whole history."""


@dataclass(frozen=True, slots=True)
class LookaheadMoment(StudiedMoment):
    decision: str
    ruling: str
    leaks: tuple[str, ...]
    """What differs, and where: `cut inputs`, `scrambled ruling`."""
    startups: tuple[StartupResult, ...]


async def rule_moment(
    figures: MarketFigures,
    at: Millis,
    account: Account,
    model_context: OpenModelContext,
    code: str = CODE,
    order: Sequence[Node] = tuple(Node),
) -> RuledMoment:
    """Run one cycle without earlier runs. `order`: of its nodes."""
    seen: list[Case] = []

    async def look(case: Case) -> Sequence[Slot]:
        seen.append(case)
        return ()

    cycles = BacktestCycles(figures, model_context, BacktestHistory(), code=code, order=order)
    outcome = await cycles.run(at, account_slots(account, at, code), recall=look)
    return RuledMoment(seen[0], outcome)


async def study_lookahead(
    market: StudyMarket, count: int, model_context: OpenModelContext
) -> AsyncIterator[LookaheadMoment]:
    moments = sorted(await choose_moments(market, count), key=lambda moment: (moment.at, moment.number))
    for place, moment in enumerate(moments):
        later = [other.at for other in moments[place:] if other.at > moment.at][:PREPARED]
        _, account = await make_account(market.store, moment)
        yield await compare_moment(market.store, market.seed, moment, account, later, model_context)


async def compare_moment(
    store: SeriesStore,
    seed: int,
    moment: Moment,
    account: Account,
    later: Sequence[Millis],
    model_context: OpenModelContext,
    lengths: Sequence[int] = STARTUPS,
) -> LookaheadMoment:
    at, ahead = moment.at, [moment.at, *later]

    async def rule(market: SeriesStore, prepared: Sequence[Millis]) -> RuledMoment:
        figures = MarketFigures(market, moment.symbol, moment.mode)
        await figures.load(prepared)
        return await rule_moment(figures, at, account, model_context)

    whole = await rule(store, ahead)
    own = dict(fingerprint(whole))
    leaks = []
    for name, market, prepared in (
        ("cut", CutSeries(store, at), [at]),
        ("scrambled", ScrambledSeries(store, at), ahead),
    ):
        other = dict(fingerprint(await rule(market, prepared)))
        leaks += [f"{name} {part}" for part in own if own[part] != other[part]]
    startups = [
        _compare_startup(bars, whole, await rule(ShortSeries(CutSeries(store, at), bars), [at])) for bars in lengths
    ]
    return LookaheadMoment(
        *moment.place_in(seed),
        decision=whole.outcome.decision.decision.value,
        ruling=whole.outcome.ruling.decision.value,
        leaks=tuple(leaks),
        startups=tuple(startups),
    )


def fingerprint(ruled: RuledMoment) -> Iterator[tuple[str, str]]:
    """Hashes of inputs, figures and ruling."""
    yield "inputs", digest(BundleEncoder().encode(ruled.case.bundle))
    figures = sha256()
    for part in (ruled.case.features, ruled.case.menu, ruled.case.context):
        _hash_value(part, figures.update)
    yield "figures", figures.hexdigest()
    yield "ruling", digest(content_for_hash(ruled.outcome.model_copy(update={"bundle": ""})))


def _hash_value(value: object, update: Callable[[bytes], None]) -> None:
    if isinstance(value, np.ndarray):
        update(np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value) and not isinstance(value, type):
        update(type(value).__name__.encode())
        for field in fields(value):
            if field.repr:
                _hash_value(getattr(value, field.name), update)
    elif isinstance(value, Mapping):
        for key in value:
            update(repr(key).encode())
            _hash_value(value[key], update)
    elif isinstance(value, tuple | list):
        update(str(len(value)).encode())
        for item in value:
            _hash_value(item, update)
    else:
        update(repr(value).encode())


def _compare_startup(bars: int, whole: RuledMoment, short: RuledMoment) -> StartupResult:
    ruling, decision = short.outcome.ruling.decision.value, short.outcome.decision.decision.value
    differences = {}
    there = {frame: seen for frame, seen in short.case.features.frames if not isinstance(seen, Missing)}
    for timeframe, seen in whole.case.features.frames:
        if isinstance(seen, Missing) or timeframe not in there:
            continue
        for field in fields(Indicators):
            own, other = (getattr(each.readings, field.name) for each in (seen, there[timeframe]))
            if field.name in CUMULATIVE or own is None:
                continue
            differences[f"{timeframe.value} {field.name}"] = _relative(own, other)
    return StartupResult(bars, ruling, decision, differences)


def _relative(own: float, other: float | None) -> float:
    """The share by which it differs; 1 where it cannot be known from so few bars."""
    if other is None:
        return 1.0
    largest = max(abs(own), abs(other))
    return round(min(1.0, abs(own - other) / largest), 9) if largest else 0.0


class LeakView(MomentView):
    differs: tuple[str, ...]


class DriftView(View):
    """How far an indicator depends on the length of its history."""

    indicator: str
    largest: float
    mean: float
    """Share by which it differs from that of the whole history; 1 also where it cannot be known from so few bars."""


class StartupView(View):
    bars: int
    decisions: RateView
    rulings: RateView
    """How many differ from those of the whole history."""
    indicators: tuple[DriftView, ...]
    """Those that differ by more than a thousandth anywhere, the largest first."""


class LookaheadView(MarketCheckView):
    """`ok`: no ruling differs when the future is cut off or changed."""

    compared: int
    """Rulings that were compared with one that cannot know the future."""
    leaks: int
    """Moments of which anything differs, of both desks."""
    differences: tuple[LeakView, ...]
    startups: tuple[StartupView, ...]
    pool: PoolLookaheadView | None = None
    """Of the LP desk, where a recorded pool was named."""

    def to_document(self) -> Document:
        return document(
            Value(
                f"{self.leaks} leaks: {self.compared:,} rulings with the future cut off or scrambled, compared by the "
                "bytes of inputs, figures and ruling",
                Tone.BAD if self.leaks else Tone.GOOD,
            ),
            lines(
                *(bad(f"LEAK  {leak.describe()}: {', '.join(leak.differs)}") for leak in self.differences),
                *(self.pool.list_leaks() if self.pool else ()),
            ),
            section(
                "How much hangs on where the history begins",
                table_of(
                    self.startups,
                    {
                        "bars of each timeframe": lambda short: count(short.bars),
                        "decisions differ": lambda short: short.decisions.to_cells()[0],
                        "95 %": lambda short: short.decisions.to_cells()[1],
                        "rulings differ": lambda short: short.rulings.to_cells()[0],
                        "95 % of it": lambda short: short.rulings.to_cells()[1],
                        "indicators": lambda short: count(len(short.indicators)),
                    },
                ),
                lines(quiet("Indicators that differ by more than a thousandth from those of the whole history:")),
                table(
                    ("bars, indicator", "largest difference", "mean difference"),
                    [
                        (
                            f"{short.bars:,} {drift.indicator}",
                            percent(100 * drift.largest),
                            percent(100 * drift.mean, 3),
                        )
                        for short in self.startups
                        for drift in short.indicators[:SHOWN]
                    ],
                ),
            ),
            context=describe_study(self),
            urgent=warn_partial(self),
            notes=self.name_report(),
        )


def build_lookahead_view(
    moments: Sequence[LookaheadMoment], plans: Sequence[MarketPlan], stopped: bool
) -> LookaheadView:
    leaky = [moment for moment in moments if moment.leaks]
    return LookaheadView(
        ok=not leaky,
        stopped=stopped,
        **describe_markets([plan.seed for plan in plans], sum(plan.moments for plan in plans), len(moments)),
        compared=2 * len(moments),
        leaks=len(leaky),
        differences=tuple(derive(LeakView, moment, differs=moment.leaks) for moment in leaky),
        startups=tuple(_sum_startups(bars, moments) for bars in STARTUPS),
    )


def _sum_startups(bars: int, moments: Sequence[LookaheadMoment]) -> StartupView:
    pairs = [(moment, short) for moment in moments for short in moment.startups if short.bars == bars]
    names = dict.fromkeys(name for _, short in pairs for name in short.differences)
    drifts = []
    for name in names:
        shares = [short.differences[name] for _, short in pairs if name in short.differences]
        drifts.append(DriftView(indicator=name, largest=max(shares), mean=round(sum(shares) / len(shares), 9)))
    drifts.sort(key=lambda drift: (-drift.largest, drift.indicator))
    return StartupView(
        bars=bars,
        decisions=measure_rate(sum(moment.decision != short.decision for moment, short in pairs), len(pairs)),
        rulings=measure_rate(sum(moment.ruling != short.ruling for moment, short in pairs), len(pairs)),
        indicators=tuple(drift for drift in drifts if drift.largest > 0.001),
    )
