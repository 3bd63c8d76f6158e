"""What a backtest of the core strategies answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from zuno.kernel.view import PartialView, View
from zuno.lab.model import figure, format_span, name_report, table_of, warn_partial
from zuno.lab.report_page import Charts, draw_down, line_chart
from zuno.present.document import Block, Document, Section, Value, document, lines, row, section, table
from zuno.present.values import count, number, share


class ResultView(View):
    sharpe: float | None
    """A year; null: it would mean nothing."""
    drawdown: float
    """The deepest fall from an earlier high, a fraction."""
    annual_return: float
    """Compounded, a fraction."""


class PathView(ResultView):
    """A path of daily returns."""

    sharpe_ci95: tuple[float, float] | None
    volatility: float
    """A year."""


class BenchmarkView(View):
    hold: PathView
    """Equal weights, re-set daily, without costs."""
    vol_hold: PathView
    """Sized by volatility alone, with the same band and costs."""


class DifferenceView(View):
    """A path's Sharpe ratio less another's (a strategy's less vol-hold's), over the same days drawn together."""

    sharpe: float | None
    ci95: tuple[float, float] | None
    smallest: float | None
    """The difference that four of five histories of this length would show."""

    def to_cells(self) -> tuple[str | Value, ...]:
        return figure(self.sharpe, signed=True), format_span(self.ci95), figure(self.smallest)


class TiltView(View):
    """The debate's tilt of the core's trend, scored each evening as the desk scores it and held on the day after."""

    beta: float | None
    se: float | None
    weight: float
    """λ_τ after the last day."""
    days: int
    weighed_days: int
    """Days on which the tilt had any weight."""
    core: PathView
    """Trend alone, without the scaler."""
    tilted: PathView
    gain: DifferenceView
    full: PathView
    """As if the tilt had had its whole weight on every day."""
    full_gain: DifferenceView

    def to_section(self) -> Section:
        slope = "not known" if self.beta is None else f"{self.beta:+.3f} ± {self.se or 0.0:.3f}"
        rows: list[tuple[str, PathView, DifferenceView | None]] = [
            ("core", self.core, None),
            ("with the tilt", self.tilted, self.gain),
            ("tilt at its whole weight", self.full, self.full_gain),
        ]
        return section(
            "What the debate says of the core",
            lines(
                f"Slope of the next day's move on the tilt {slope} over {self.days} days; weight {self.weight:.2f} in "
                f"the end, above zero on {self.weighed_days} days."
            ),
            table(
                ("path", "Sharpe", "95 %", "drawdown", "a year", "volatility", "less core's", "95 % of it", "shows"),
                [
                    (
                        *(name, figure(path.sharpe), format_span(path.sharpe_ci95), share(path.drawdown)),
                        *(share(path.annual_return, signed=True), share(path.volatility)),
                        *(("", "", "") if gain is None else gain.to_cells()),
                    )
                    for name, path, gain in rows
                ],
                spare=("volatility", "shows"),
            ),
        )


class StretchView(View):
    """Some of the days: a year, or all days of one kind of market."""

    name: str
    days: int
    gain: float
    """Compounded over those days, a fraction."""
    drawdown: float
    hold: float
    """What holding gained over the same days."""


class StrategyRowView(PathView):
    """Without the scaler, but for `scaled`."""

    name: str
    since: str
    days: int
    turns_per_year: float
    """How often the capital was bought or sold over."""
    costs: float
    """A year, a fraction of the capital."""
    funding: float
    """Received, a year."""
    scaled: ResultView
    """With the drawdown scaler."""
    benchmark: BenchmarkView
    difference: DifferenceView
    years: tuple[StretchView, ...]
    regimes: tuple[StretchView, ...]
    risks: tuple[str, ...]
    """What the figures leave out."""
    equity: tuple[float, ...]
    """From 1, at the end of every seventh day."""
    equity_hold: tuple[float, ...]


class StrategyLabView(PartialView):
    report: str
    data: str
    origin: str
    markets: tuple[str, ...]
    since: str
    until: str
    headline: str
    strategies: tuple[StrategyRowView, ...]
    not_run: tuple[str, ...]
    left_out: tuple[str, ...] = ()  # files of the folder that could not be imported, and why
    notes: tuple[str, ...]

    def to_document(self) -> Document:
        return document(
            f"{', '.join(self.markets)}, {self.since} to {self.until}",
            lines(self.headline),
            section("Strategies", self._path_table(), self._cost_table()),
            section("Against holding sized by volatility", self._describe_differences()),
            section("By year", *(self._stretch_table(each.name, each.years) for each in self.strategies)),
            section(
                "Bull, bear, sideways", *(self._stretch_table(each.name, each.regimes) for each in self.strategies)
            ),
            section(
                "Not in these figures",
                lines(*(f"{each.name}: {risk}" for each in self.strategies for risk in each.risks)),
            ),
            context=self.origin,
            urgent=(*warn_partial(self, left_out=self.left_out), *self.not_run),
            notes=(*self.notes, *name_report(self.report, self.data)),
        )

    def _path_table(self) -> Block:
        rows = []
        for each in self.strategies:
            named: dict[str, ResultView] = {
                each.name: each,
                f"{each.name}, scaled": each.scaled,
                f"hold, days of {each.name}": each.benchmark.hold,
                f"vol-hold, days of {each.name}": each.benchmark.vol_hold,
            }
            rows += [
                row(
                    name,
                    figure(path.sharpe),
                    format_span(path.sharpe_ci95) if isinstance(path, PathView) and path.sharpe is not None else "",
                    share(path.drawdown),
                    share(path.annual_return, signed=True),
                    share(path.volatility) if isinstance(path, PathView) else "",
                )
                for name, path in named.items()
            ]
        return table(("", "Sharpe", "95 %", "drawdown", "a year", "volatility"), rows, spare=("volatility",))

    def _cost_table(self) -> Block:
        return table_of(
            self.strategies,
            {
                "strategy": lambda each: each.name,
                "since": lambda each: each.since,
                "days": lambda each: count(each.days),
                "turns a year": lambda each: number(each.turns_per_year, 1),
                "costs a year": lambda each: share(each.costs),
                "funding a year": lambda each: share(each.funding, signed=True),
            },
        )

    def _describe_differences(self) -> Block | None:
        return lines(
            *(
                f"{each.name} less vol-hold: Sharpe {gain.sharpe:+.2f}, {format_span(gain.ci95)}; a difference of "
                f"{gain.smallest:.2f} is found in four of five histories of this length"
                for each in self.strategies
                if (gain := each.difference).sharpe is not None and gain.smallest is not None
            )
        )

    def _stretch_table(self, name: str, stretches: Sequence[StretchView]) -> Block:
        return table_of(
            stretches,
            {
                name: lambda each: each.name,
                "days": lambda each: count(each.days),
                "result": lambda each: share(each.gain, signed=True),
                "drawdown": lambda each: share(each.drawdown),
                "hold": lambda each: share(each.hold, signed=True),
            },
        )

    def draw_charts(self) -> Charts:
        curves = {
            name: list(zip(_list_weeks(each), worth, strict=False))
            for each in self.strategies
            for name, worth in ((each.name, each.equity), (f"hold, days of {each.name}", each.equity_hold))
        }
        falls = ((each.name, draw_down(curves[each.name])) for each in self.strategies)
        return {
            "Strategies": (
                line_chart("What 1 became", curves.items(), ""),
                line_chart("Drawdown", falls, "%"),
            ),
        }


def _list_weeks(strategy: StrategyRowView) -> range:
    first = round(datetime.fromisoformat(f"{strategy.since}T00:00+00:00").timestamp())
    return range(first, first + 7 * 86_400 * len(strategy.equity), 7 * 86_400)
