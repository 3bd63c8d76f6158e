"""What closed trades made, and how the account's equity went."""

from zuno.kernel.numbers_text import sparkline
from zuno.kernel.view import IsoTime, View
from zuno.present.document import (
    Document,
    Facts,
    Lines,
    Mark,
    Picture,
    Row,
    Table,
    Tone,
    facts,
    lines,
    row,
    section,
    table,
)
from zuno.present.values import count, foreign, gain, hours, money, multiple, number, percent, quiet, share
from zuno.trading.service.account_view import AccountView

_CURVE_WIDTH = 30


class ProfitRowView(View):
    """Figures over closed trades, in USD."""

    name: str
    trades: int
    wins: int
    losses: int
    win_rate: float | None
    net_pnl: float
    gross_pnl: float
    profit_factor: float | None
    expectancy_usd: float | None
    """Mean net PnL of a trade: larger trades weigh more."""
    expectancy_r: float | None
    """Mean net PnL over the risk at the first stop, of the `rTrades` that had one: each counts alike."""
    r_trades: int
    mean_duration_hours: float | None
    fees: float
    funding: float
    model_cost: float
    best: float | None
    worst: float | None
    unconverted: int

    def write_facts(self) -> Facts:
        return facts(
            ("net PnL", gain(self.net_pnl)),
            ("trades", count(self.trades)),
            ("won", count(self.wins)),
            ("lost", count(self.losses)),
            ("win rate", share(self.win_rate)),
            ("profit factor", number(self.profit_factor)),
            ("mean net PnL of a trade", gain(self.expectancy_usd)),
            ("mean R of a trade with a stop", multiple(self.expectancy_r)),
            ("trades with a stop", count(self.r_trades)),
            ("mean duration", hours(self.mean_duration_hours)),
            ("best", money(self.best)),
            ("worst", money(self.worst)),
            ("gross PnL", money(self.gross_pnl)),
            ("fees", money(self.fees)),
            ("funding", money(self.funding)),
            ("models, not in the PnL", money(self.model_cost)),
        )

    def note_unconverted(self) -> Lines | None:
        if not self.unconverted:
            return None
        return lines(f"{self.unconverted} trades in other currencies are left out: no rate is known", mark=Mark.NOTE)


class EquityLineView(View):
    """What the account's first equity became: of the desk, the whole account; of the core, its sleeves without the
    debate; of hold, the desk's markets at equal weights; or of one sleeve."""

    name: str
    return_pct: float | None
    max_drawdown_pct: float | None
    sharpe: float | None
    """A year, of daily returns; null for fewer than 30 of them."""


class EquityCurveView(EquityLineView):
    usd: tuple[float, ...]


class EquityCurvesView(AccountView):
    """The same lines as they went, at the same moments: desk, core, hold and every sleeve."""

    at: tuple[IsoTime, ...]
    lines: tuple[EquityCurveView, ...]


class DrawdownView(AccountView):
    """The deepest fall of the account's equity, open positions included, by its share of the peak."""

    lines: tuple[EquityLineView, ...]
    """Over the same days, in dollars, each from the account's first equity on."""

    max_drawdown_usd: float | None
    max_drawdown_pct: float | None
    peak_at: str | None
    trough_at: str | None

    def write_lines(self) -> Table | None:
        rows = (
            (
                line.name,
                percent(line.return_pct, signed=True),
                percent(line.max_drawdown_pct),
                quiet("–") if line.sharpe is None else number(line.sharpe, signed=True),
            )
            for line in self.lines
        )
        return table(("equity", "return", "max drawdown", "Sharpe"), rows) if len(self.lines) > 1 else None

    def write_drawdown(self) -> Facts:
        if not self.max_drawdown_usd:
            return facts(("max drawdown of the equity", "none"))
        return facts(
            ("max drawdown of the equity", money(self.max_drawdown_usd)),
            ("max drawdown, % of the peak", percent(self.max_drawdown_pct)),
            ("from peak to trough", f"{self.peak_at} to {self.trough_at}"),
        )


class ProfitView(DrawdownView):
    by: str | None
    whole: ProfitRowView
    groups: tuple[ProfitRowView, ...]

    def to_document(self) -> Document:
        title = "Profit of closed trades, USD" + ("" if self.by is None else f", by {self.by}")
        if not self.whole.trades:
            return self.write(title, lines("no trade was closed yet"), self.whole.note_unconverted())
        columns = ("trades", "won", "net PnL", "profit factor", "mean", "R", "held", "fees", "funding", "models")
        groups = table(
            (self.by or "group", *columns),
            (_profit_row(line, total=line is self.whole) for line in (*self.groups, self.whole)),
            spare=("models", "funding", "fees", "held", "profit factor", "R", "mean", "won"),
        )
        figures = groups if self.groups else self.whole.write_facts()
        return self.write(title, figures, self.write_drawdown(), self.write_lines(), self.whole.note_unconverted())


def _profit_row(line: ProfitRowView, *, total: bool) -> Row:
    return row(
        foreign(line.name) if not total else line.name,
        count(line.trades),
        share(line.win_rate),
        gain(line.net_pnl),
        number(line.profit_factor),
        gain(line.expectancy_usd),
        number(line.expectancy_r, unit="R", signed=True),
        hours(line.mean_duration_hours),
        money(line.fees),
        money(line.funding),
        money(line.model_cost),
        tone=Tone.STRONG if total else Tone.PLAIN,
    )


class EquityPointView(View):
    at: str
    equity_usd: float
    drawdown_pct: float | None
    core_usd: float | None
    hold_usd: float | None


class PerformanceView(DrawdownView):
    """Equity of the account at the closes that are stored, and how far it fell."""

    file: str | None
    whole: ProfitRowView
    start_usd: float | None
    equity_usd: float | None
    return_pct: float | None
    points: tuple[EquityPointView, ...]

    def to_document(self) -> Document:
        if not self.points:
            return self.write("Performance", lines("nothing was traded yet: there is no curve"))
        closed = section("Closed trades, USD", self.whole.write_facts()) if self.whole.trades else None
        return self.write(
            "Performance",
            facts(
                ("equity at the start", money(self.start_usd)),
                ("equity", money(self.equity_usd)),
                ("return", percent(self.return_pct, signed=True)),
            ),
            self.write_drawdown(),
            self.write_lines(),
            lines(sparkline([point.equity_usd for point in self.points], _CURVE_WIDTH), mark=Mark.VERBATIM),
            closed,
            section("", self.whole.note_unconverted()),
            pictures=() if self.file is None else (Picture(self.file),),
        )
