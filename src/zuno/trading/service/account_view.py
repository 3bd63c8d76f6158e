"""A trading account as it is shown: status, positions, orders, fills, trades, ledger, balances, profit, locks, mandate.

Money in an exchange's own currency unless a name says USD. What is not known is null.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeVar

from zuno.kernel.numbers_text import quantity_text
from zuno.kernel.view import ForeignText, IsoTime, View
from zuno.markets.market import Symbol
from zuno.present.document import (
    Act,
    Block,
    Document,
    Facts,
    Lines,
    Part,
    Picture,
    Section,
    Table,
    Tone,
    Value,
    document,
    facts,
    lines,
    row,
    section,
    table,
)
from zuno.present.values import bad, count, foreign, gain, good, hours, id_, money, number, percent, price, quiet, share
from zuno.trading.model.orders import ExchangeAnswer
from zuno.trading.model.sleeves import DEBATE
from zuno.trading.model.trade_events import PAPER_WORD, account_word
from zuno.trading.service.desk_view import ProtectionView
from zuno.trading.service.origin_view import OriginView

_MODE_TONES = {"live": Tone.BAD, "demo": Tone.WARN, "paper": Tone.STRONG}


class MarkView(View):
    """A price that positions are valued at, in the exchange's own currency."""

    symbol: str
    exchange: str
    price: float
    source: str
    """Series of the store, or the exchange itself."""
    as_of: str
    age_seconds: int


class UncoveredView(View):
    """What of a sleeve's position no stop at the exchange covers, for sleeves net there."""

    sleeve: str
    exchange: str
    symbol: str
    quantity: float
    value: float | None
    """At the mark."""
    stop: float
    currency: str

    def write(self) -> Value:
        coins = f"{quantity_text(self.quantity, 6)} {Symbol(self.symbol).base}"
        worth, stop = money(self.value, self.currency).text, price(self.stop, self.currency).text
        held = f"{coins} ({worth}) of {self.sleeve} at {self.exchange}"
        return bad(f"{held} without a stop there: this stop ({stop}) acts only while the desk runs")


class AccountView(OriginView):
    """What every answer about an account says. Cash, fees and what is closed are the account's own log at `asOf`;
    what is open is valued at `marks`."""

    account: str
    mode: Literal["paper", "demo", "live"]
    as_of: str
    recorded: bool = False
    """Whether the account is in recorded time: `asOf` is its own last moment, and the market may go on after it."""
    marks: tuple[MarkView, ...] = ()
    uncovered: tuple[UncoveredView, ...] = ()
    """What only a running desk stops."""
    protections: tuple[ProtectionView, ...]
    exchanges: tuple[ExchangeAnswer, ...] | None = None
    """What the exchanges of a live or demo account answered; null: none was asked."""
    notes: tuple[ForeignText, ...] = ()

    @property
    def label(self) -> str:
        """Whose money: a paper account on a synthetic market is marked as both, and one of several by its name."""
        label = f"SYNTHETIC {self.mode.upper()}" if self.synthetic else self.mode.upper()
        name = account_word(self.account).removeprefix(PAPER_WORD) if self.mode == "paper" else ""
        return f"{label} {name}".rstrip()

    def act(self, label: str, command: str) -> Act:
        word = account_word(self.account).removeprefix(PAPER_WORD)
        return Act(label, f"{command} --account {word}" if word else command)

    def write(self, title: str, *parts: Part, acts: Iterable[Act] = (), pictures: Iterable[Picture] = ()) -> Document:
        """Write whose money it is; then what only a running desk stops, and what keeps it from new risk."""
        return document(
            foreign(f"{self.label} · {title}", _MODE_TONES[self.mode]),
            *parts,
            context=foreign(f"as of {self.as_of} · {self.market}"),
            urgent=[
                *(part.write() for part in self.uncovered),
                *(lock.write(Tone.WARN) for lock in self.protections),
            ],
            notes=map(foreign, self.notes),
            acts=acts,
            pictures=pictures,
            as_of=self.as_of,
        )

    @property
    def complete(self) -> bool:
        """Whether nothing is held but what the log has: on paper always, else by the exchanges' own word."""
        return self.mode == "paper" or not (self.exchanges is None or any(map(ExchangeAnswer.describe, self.exchanges)))


class ExchangeBalanceView(View):
    exchange: str
    currency: str
    cash: float
    """That is not margin."""
    margin: float
    pending_margin: float
    inventory: float
    """Coins at cost, of a spot exchange."""
    unrealised: float | None
    equity: float | None
    free: float | None
    """What a new position may use; below zero so much is missing."""


class ExposureView(View):
    """A symbol's part of the risk book: positions, pending entries and LP inventory. Above zero is long."""

    symbol: str
    positions: float
    pending: float
    lp: float
    delta: float
    """In the base currency."""
    delta_usd: float | None
    gross_usd: float | None


class RiskBookView(View):
    """Trading and liquidity positions taken together, as the leverage guard counts them."""

    rows: tuple[ExposureView, ...]
    delta_usd: float | None
    gross_usd: float | None
    equity_usd: float | None
    leverage: float | None
    max_leverage: float
    lp_simulated: bool = False
    """The liquidity is that of a simulated chain."""


class MandatedSleeveView(View):
    name: str
    share: float
    """Of the account, a fraction."""
    max_drawdown: float
    """Below its highest equity, a fraction: nothing is added from there on."""

    def write(self) -> str:
        return f"{self.name} {self.share:.0%}, fall at most {self.max_drawdown:.0%}"


class MandateView(View):
    hash: str
    symbols: tuple[str, ...]
    venues: tuple[str, ...]
    max_margin_per_trade_usd: float
    max_margin_per_day_usd: float
    max_daily_loss_usd: float
    stops: str
    judge_fallback: bool
    policy: str
    sleeves: tuple[MandatedSleeveView, ...] = ()
    granted: IsoTime
    expires: IsoTime
    active: bool

    def summarise(self) -> Value:
        if not self.active:
            return Value(f"expired at {self.expires}: paper only", Tone.WARN)
        return Value(f"{self.hash[:16]}… until {self.expires}")

    def write_facts(self) -> Facts:
        return facts(
            ("hash", id_(self.hash)),
            ("symbols", ", ".join(self.symbols)),
            ("exchanges", ", ".join(self.venues)),
            ("most margin per trade", money(self.max_margin_per_trade_usd)),
            ("most margin per day", money(self.max_margin_per_day_usd)),
            ("most loss per day", money(self.max_daily_loss_usd)),
            ("stops", "at the exchange" if self.stops == "venue" else "may be watched by the desk"),
            ("failed Judge", "rules may decide" if self.judge_fallback else "no new trade"),
            ("policy", self.policy),
            *(("sleeve", sleeve.write()) for sleeve in self.sleeves),
            ("granted", self.granted),
            ("expires", self.expires if self.active else bad(f"{self.expires}, past")),
        )


class _TradedView(View):
    id: str
    exchange: str
    symbol: str
    side: str
    quantity: float
    currency: str


class TradeOrderView(_TradedView):
    """An order: as it was planned, and as the exchange has it."""

    venue_id: str | None
    type: str
    purpose: str
    filled: float
    price: float | None
    """Limit or trigger."""
    average_price: float | None
    time_in_force: str
    reduce_only: bool
    status: str
    sleeve: str
    planned: IsoTime
    expires: IsoTime | None
    intent: str | None
    decision: str | None
    reason: ForeignText


class HedgeLegView(View):
    exchange: str
    side: str
    quantity: float
    entry: float


class HedgeView(View):
    """What is known of a position of two legs beside what every position has."""

    legs: tuple[HedgeLegView, ...]
    net: float
    """What is not hedged, in the base currency; a short below zero."""
    basis_pnl: float | None
    """Of both legs, with what was cut so far; before fees and funding."""
    distance_pct: float | None
    """How far the mark may rise until the short is liquidated."""


class _TradeView(_TradedView):
    entry: float
    r: float | None
    """PnL over the risk at the first stop."""
    opened: IsoTime
    fees: float
    funding: float
    exploration: bool
    decision: str | None


class TradePositionView(_TradeView):
    """A position, traded by the desk or entered by hand, at the market's price; legs that hedge each other are one."""

    leverage: float
    margin: float
    mark: float | None
    unrealised: float | None
    """Before fees."""
    gain_pct: float | None
    """Of the entry, before leverage."""
    stop: float | None
    target: float | None
    liquidation: float | None
    """The mark at which the exchange takes the position; null where nothing is borrowed."""
    hold_until: IsoTime | None
    manual: bool
    stop_order: str | None
    target_order: str | None
    """Client ids of the protective orders; null where the desk watches the level itself."""
    orders: tuple[str, ...]
    """Client ids of every open order of this position."""
    hedge: HedgeView | None
    sleeve: str


class SleeveHoldingView(View):
    """What a sleeve has of a market, below zero if it is short; legs that hedge each other are netted."""

    symbol: str
    quantity: float


class SleeveView(View):
    """A sleeve in dollars. Capital, realised and open result add up to its equity."""

    name: str
    share: float
    """Of the account's capital, as it was set; 0: none was."""
    weight: float | None
    """Its equity as a share of the account's."""
    capital_usd: float
    """Given to it, less what it gave back."""
    realised_usd: float
    """Fees and funding included."""
    open_usd: float | None
    equity_usd: float | None
    balanced: bool
    holds: tuple[SleeveHoldingView, ...]

    def write_row(self) -> tuple[str | Value, ...]:
        held = [f"{quantity_text(part.quantity, 6)} {Symbol(part.symbol).base}" for part in self.holds]
        return (
            self.name,
            share(self.share),
            share(self.weight),
            money(self.equity_usd),
            money(self.capital_usd),
            gain(self.realised_usd),
            gain(self.open_usd),
            "\n".join(held) or quiet("cash"),
            good("equal") if self.balanced else bad("NOT equal"),
        )


class _EquityView(AccountView):
    equity_usd: float | None
    unknown: ForeignText | None
    """Why equity cannot be told."""
    sleeves: tuple[SleeveView, ...]

    def write_equity(self) -> Value:
        return money(self.equity_usd) if self.unknown is None else foreign(f"unknown: {self.unknown}", Tone.BAD)


class TradeStatusView(_EquityView):
    running: ForeignText | None
    """The process that trades here, where one does."""
    unrealised_usd: float | None
    net_pnl_usd: float
    """Of closed trades."""
    today_usd: float
    """Of trades that were closed since midnight UTC."""
    open_trades: int
    open_orders: int
    closed_trades: int
    risk: RiskBookView
    mandate: MandateView | None

    def describe(self) -> str:
        """One sentence: what there is, what is open, and how today went."""
        if self.equity_usd is None:
            return "Trading: equity unknown."
        made = self.net_pnl_usd + (self.unrealised_usd or 0)
        closed = f", {'up' if made >= 0 else 'down'} {money(abs(made)).text} on {self.closed_trades} closed trades"
        closed = f"{closed} and what is open" if self.closed_trades else ""
        held = f"{self.open_trades or 'no'} position{'' if self.open_trades == 1 else 's'} open"
        return f"Trading: {money(self.equity_usd).text}{closed}; {held}."

    def to_document(self) -> Document:
        return self.write(
            "Trading status",
            lines(self.describe()),
            facts(
                ("desk", quiet("not running") if self.running is None else foreign(self.running, Tone.GOOD)),
                ("equity", self.write_equity()),
                ("unrealised PnL", gain(self.unrealised_usd)),
                ("realised PnL", gain(self.net_pnl_usd)),
                ("today", gain(self.today_usd)),
                ("open positions", count(self.open_trades)),
                ("open orders", count(self.open_orders)),
                ("closed trades", count(self.closed_trades)),
                ("mandate", quiet("none: paper only") if self.mandate is None else self.mandate.summarise()),
            ),
            section("Risk book", *self._write_risk()),
            _sleeves_section(self.sleeves),
            acts=(
                self.act("Positions", "trade positions"),
                self.act("Profit", "trade profit"),
                self.act("Balance", "trade balance"),
            ),
        )

    def _write_risk(self) -> list[Block | None]:
        """Positions and liquidity in one table: signed for the delta, added up for what the guard allows."""
        risk = self.risk
        if not risk.rows:
            return [lines(quiet("nothing is at risk" if self.complete else "the log has nothing at risk"))]
        rows = [
            row(
                exposure.symbol,
                *(
                    f"{'+' if amount > 0 else ''}{quantity_text(amount)} {Symbol(exposure.symbol).base}"
                    if amount
                    else "–"
                    for amount in (exposure.positions, exposure.pending, exposure.lp, exposure.delta)
                ),
                money(exposure.delta_usd),
                money(exposure.gross_usd),
            )
            for exposure in risk.rows
        ]
        rows.append(row("all", "", "", "", "", money(risk.delta_usd), money(risk.gross_usd), tone=Tone.STRONG))
        lp = "in LP (simulated)" if risk.lp_simulated else "in LP"
        columns = ("symbol", "positions", "orders", lp, "delta", "delta in USD", "gross in USD")
        over = risk.leverage is None or risk.leverage > risk.max_leverage
        leverage = bad("unknown") if risk.leverage is None else number(risk.leverage, unit="×")
        return [
            table(columns, rows, spare=("orders", "positions", lp, "delta")),
            facts(
                ("leverage", leverage.with_tone(Tone.BAD) if over else leverage),
                ("most leverage", number(risk.max_leverage, 1, unit="×")),
            ),
        ]


class TradePositionsView(AccountView):
    by: str | None
    """`sleeve`: each sleeve's stand together."""
    positions: tuple[TradePositionView, ...]
    unrealised_usd: float | None

    def to_document(self) -> Document:
        if not self.positions:
            return self.write("Positions", lines("no position is open"))
        total = facts(("unrealised PnL", gain(self.unrealised_usd)))
        return self.write("Positions", *_write_parts(self.positions, self.by, _write_positions), total)


class TradeOrdersView(AccountView):
    by: str | None
    """`sleeve`: each sleeve's stand together."""
    orders: tuple[TradeOrderView, ...]

    def to_document(self) -> Document:
        if not self.orders:
            return self.write("Orders", lines("no order is open"))
        return self.write("Orders", *_write_parts(self.orders, self.by, _write_orders))


class FillView(_TradedView):
    order: str
    price: float
    fee: float
    maker: bool
    liquidation: bool
    at: IsoTime


class FillsView(AccountView):
    """Newest first."""

    fills: tuple[FillView, ...]
    total: int

    def to_document(self) -> Document:
        if not self.fills:
            return self.write("Fills", lines("nothing was filled yet"), note_rest(0, self.total))
        columns = ("time", "fill", "price", "fee", "kind", "order", "id")
        rows = (
            (
                Value(fill.at, short=fill.at[5:16].replace("T", " ")),
                _describe(fill.side, fill.quantity, fill.symbol, fill.exchange, digits=8),
                price(fill.price, fill.currency),
                money(fill.fee, fill.currency),
                bad("liquidation") if fill.liquidation else "maker" if fill.maker else "taker",
                fill.order,
                fill.id,
            )
            for fill in self.fills
        )
        filled = table(columns, rows, spare=("id", "order", "kind", "fee"))
        return self.write("Fills", filled, note_rest(len(self.fills), self.total))


class ClosedTradeView(_TradeView):
    mode: str | None
    exit: float
    gross_pnl: float
    net_pnl: float
    exit_reason: str
    closed: IsoTime
    duration_hours: float
    sleeve: str


class TradesView(AccountView):
    """Newest first."""

    trades: tuple[ClosedTradeView, ...]
    total: int

    def to_document(self) -> Document:
        if not self.trades:
            return self.write("Closed trades", lines("no trade was closed yet"), note_rest(0, self.total))
        columns = ("closed", "trade", "entry", "exit", "net PnL", "R", "fees", "funding", "exit by", "held", "id")
        rows = (
            (
                Value(trade.closed, short=trade.closed[5:10]),
                _describe(trade.side, trade.quantity, trade.symbol, trade.exchange, explored=trade.exploration),
                price(trade.entry, trade.currency),
                price(trade.exit, trade.currency),
                gain(trade.net_pnl, trade.currency),
                number(trade.r, unit="R", signed=True),
                money(trade.fees, trade.currency),
                money(trade.funding, trade.currency),
                trade.exit_reason,
                hours(trade.duration_hours),
                trade.id,
                id_(trade.decision or ""),
            )
            for trade in self.trades
        )
        spare = ("run", "funding", "fees", "id", "held", "exit by", "entry", "exit")
        closed = table((*columns, "run"), rows, spare=spare)
        return self.write("Closed trades", closed, note_rest(len(self.trades), self.total))


class TradeBalanceView(_EquityView):
    purses: tuple[ExchangeBalanceView, ...]

    def to_document(self) -> Document:
        columns = ("exchange", "equity", "free", "cash", "margin", "pending", "coins at cost", "unrealised")
        rows = []
        for balance in self.purses:
            amounts = (balance.cash, balance.margin, balance.pending_margin, balance.inventory)
            free = money(balance.free, balance.currency)
            rows.append(
                row(
                    balance.exchange,
                    money(balance.equity, balance.currency),
                    free.with_tone(Tone.BAD) if balance.free is not None and balance.free < 0 else free,
                    *(money(held, balance.currency) for held in amounts),
                    gain(balance.unrealised, balance.currency),
                )
            )
        balances, whole = table(columns, rows, spare=("pending", "coins at cost")), self.write_equity()
        return self.write("Balance", balances, facts(("equity in USD", whole)), _sleeves_section(self.sleeves))


class SleevesView(_EquityView):
    """Parts of the account's capital, each with its own strategy."""

    def to_document(self) -> Document:
        return self.write(
            "Sleeves",
            _write_sleeves(self.sleeves),
            facts(("equity of the account", self.write_equity())),
            acts=[self.act("Performance by sleeve", "trade performance --by sleeve")],
        )


class LocksView(AccountView):
    """Protections that stand now; the same as `protections`, for whoever asked for nothing else."""

    def to_document(self) -> Document:
        if not self.protections:
            return self.write("Locks", lines(good("nothing is locked: new trades may be opened")))
        unlock = lines(quiet("`zuno trade unlock [PROTECTION]` lifts them, `zuno home unlock` a restored home's"))
        return self.write("Locks", unlock, acts=(self.act("Unlock…", "trade unlock"),))


class MandateStateView(AccountView):
    mandate: MandateView | None
    said: str

    def to_document(self) -> Document:
        return self.write("Mandate", lines(self.said), None if self.mandate is None else self.mandate.write_facts())


class ActionView(AccountView):
    """What was done, and the positions and orders that are left."""

    said: tuple[ForeignText, ...]
    positions: tuple[TradePositionView, ...]
    orders: tuple[TradeOrderView, ...]

    def to_document(self) -> Document:
        left = _write_positions(self.positions) if self.positions else lines("no position is open")
        orders = section("Orders", _write_orders(self.orders)) if self.orders else None
        answer, *more = self.said or ("nothing was done",)
        return self.write(answer, lines(*map(foreign, more)), left, orders)


# -- parts of several documents


def _write_sleeves(sleeves: Sequence[SleeveView]) -> Table:
    columns = ("sleeve", "share", "weight", "equity", "capital", "realised", "open", "holds", "debits = credits")
    spare = ("debits = credits", "capital", "weight", "share", "realised", "open")
    return table(columns, (sleeve.write_row() for sleeve in sleeves), spare=spare, joiners={"holds": ", "})


def _sleeves_section(sleeves: Sequence[SleeveView]) -> Section | None:
    """Nothing where the debate is all there is."""
    return section("Sleeves", _write_sleeves(sleeves)) if len(sleeves) > 1 else None


Listed = TypeVar("Listed", TradePositionView, TradeOrderView)


def _write_parts(
    items: Sequence[Listed], by: str | None, write: Callable[[Sequence[Listed], str | None], Table]
) -> Iterator[Part]:
    """One table, or one for each sleeve."""
    if by is None:
        yield write(items, by)
        return
    for sleeve in dict.fromkeys(item.sleeve for item in items):
        yield section(sleeve, write([item for item in items if item.sleeve == sleeve], by))


def _name_sleeves(items: Sequence[TradePositionView] | Sequence[TradeOrderView], by: str | None) -> tuple[str, ...]:
    """The column of sleeves, where there is more than the debate and no section names them."""
    return ("sleeve",) if by is None and any(item.sleeve != DEBATE for item in items) else ()


def _write_positions(positions: Sequence[TradePositionView], by: str | None = None) -> Table:
    columns = ("position", "entry", "mark", "unrealised", "R", "gain", "stop", "target", "levels", "id", "hold until")
    sleeves = _name_sleeves(positions, by)
    return table(
        (*sleeves, *columns, "opened", "orders", "margin"),
        ((*(position.sleeve for _ in sleeves), *_position_row(position)) for position in positions),
        spare=("margin", "orders", "opened", "hold until", "gain", "levels", "id"),
        joiners={"orders": ", "},
    )


def _position_row(position: TradePositionView) -> tuple[str | Value, ...]:
    currency = position.currency
    levels = Value("at the exchange" if position.stop_order else "by hand" if position.manual else "watched")
    if position.stop_order and position.target is not None and not position.target_order:
        levels = Value("stop at the exchange, target watched", short="stop at the exchange")
    where = f"{position.leverage:g}× {position.exchange}"
    if (hedge := position.hedge) is not None:
        legs = (f"{leg.side} {quantity_text(leg.quantity, 6)} {leg.exchange} at {leg.entry:g}" for leg in hedge.legs)
        where, levels = f"({', '.join(legs)})", _describe_hedge(position, hedge)
    return (
        _describe(position.side, position.quantity, position.symbol, where, explored=position.exploration),
        price(position.entry, currency),
        price(position.mark, currency),
        gain(position.unrealised, currency),
        number(position.r, unit="R", signed=True),
        percent(position.gain_pct, signed=True),
        quiet("–") if position.stop is None else price(position.stop, currency),
        quiet("–") if position.target is None else price(position.target, currency),
        levels,
        id_(position.id),
        position.hold_until or "–",
        position.opened,
        "\n".join(position.orders) or "–",
        money(position.margin, currency),
    )


def _describe_hedge(position: TradePositionView, hedge: HedgeView) -> Value:
    """What is watched of it instead of levels."""
    currency = position.currency
    parts = [
        f"net {quantity_text(hedge.net, 6)} {Symbol(position.symbol).base}",
        f"basis {gain(hedge.basis_pnl, currency).text}",
        f"funding {gain(position.funding, currency).text}",
        f"liquidation {percent(hedge.distance_pct, signed=True).text} away",
    ]
    return Value("; ".join(parts), short=parts[0])


def _write_orders(orders: Sequence[TradeOrderView], by: str | None = None) -> Table:
    columns = ("for", "order", "price", "filled", "status", "id", "expires", "at the exchange", "placed")
    sleeves = _name_sleeves(orders, by)
    rows = (
        (
            *(order.sleeve for _ in sleeves),
            order.purpose,
            _describe(order.side, order.quantity, order.symbol, f"{order.type.lower()} {order.exchange}", digits=8),
            "market" if order.price is None else price(order.price, order.currency),
            quantity_text(order.filled, 8),
            foreign(
                f"{order.status}: {order.reason}" if order.reason else order.status,
                Tone.BAD if order.status == "REJECTED" else Tone.PLAIN,
            ),
            id_(order.id),
            order.expires or "–",
            order.venue_id or "–",
            order.planned,
        )
        for order in orders
    )
    return table((*sleeves, *columns), rows, spare=("placed", "at the exchange", "expires", "id"))


def _describe(side: str, quantity: float, symbol: str, where: str, *, digits: int = 6, explored: bool = False) -> Value:
    base = Symbol(symbol).base
    text = f"{side} {quantity_text(quantity, digits)} {base} {where}{' exploration' if explored else ''}"
    return Value(text, short=f"{side} {base}")


def note_rest(shown: int, total: int) -> Lines | None:
    return lines(quiet(f"{shown} of {total}; `--lines` shows more")) if shown < total else None
