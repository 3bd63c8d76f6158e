"""Whether a ruling hangs on what should not matter: names, the unit of a price, the side, the order, the wording.

Each moment is ruled as it was and again after one change; a ruling that is not what the change asks for is a flip.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, TypeVar

from zuno.kernel.view import View
from zuno.kernel.wire import derive
from zuno.lab.comparisons import measure_rate
from zuno.lab.lookahead import OpenModelContext, rule_moment
from zuno.lab.lp.debate_checks import PoolInvarianceView
from zuno.lab.market_study import MarketPlan, describe_markets
from zuno.lab.market_views import ChangedSeries
from zuno.lab.mirror import mirror_account, mirror_call, open_mirror
from zuno.lab.model import MarketCheckView, MomentView, RateView, StudiedMoment, describe_study, table_of, warn_partial
from zuno.lab.moments import Moment, MomentKind
from zuno.lab.report_page import Charts, rate_chart
from zuno.lab.rulings import make_account
from zuno.lab.trading.figures import MarketFigures
from zuno.markets.market import Symbol
from zuno.present.document import Document, document, lines, section, table
from zuno.present.values import count, good
from zuno.trading.model.account import Account
from zuno.trading.model.cycle import Call, Node
from zuno.trading.model.market import Book, Candle, Feed, Level, MarkAndIndex, OptionChain, Row, Series, TapeEvent, Text
from zuno.trading.ports.series import SeriesStore

R = TypeVar("R", bound=Row)
CODE: Final = "invariance"
FACTOR: Final = 10.0
LISTED: Final = 20
"""Flips of each change that are listed."""
_OTHER: Final = {Symbol("BTCUSDT"): Symbol("ETHUSDT"), Symbol("ETHUSDT"): Symbol("BTCUSDT")}
EXPERTS: Final = (Node.LIQUIDITY_EXPERT, Node.MICROSTRUCTURE_EXPERT, Node.MACRO_EXPERT, Node.VLM_EXPERT)
_BASES: Final = re.compile("BTC|ETH")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
SYNONYMS: Final[Mapping[str, str]] = {
    "rises": "climbs",
    "falls": "drops",
    "up": "higher",
    "down": "lower",
    "buy": "purchase",
    "sell": "offload",
    "large": "big",
    "traders": "market participants",
    "after": "following",
    "says": "states",
    "report": "account",
}


class Change(StrEnum):
    MASKED = "symbols masked"
    """Each market under the other's name."""
    SCALED = "price × 10"
    MIRRORED = "mirrored"
    PARAPHRASED = "text paraphrased"
    REORDERED = "experts reordered"
    """They speak in the opposite order."""


class RenamedSeries(ChangedSeries):
    """BTC's market under ETH's name, and the other way round."""

    def find_source(self, series: Series[R]) -> Series[R]:
        return replace(series, name=_BASES.sub(lambda base: "ETH" if base[0] == "BTC" else "BTC", series.name))


class ScaledSeries(ChangedSeries):
    """Prices times ten, quantities a tenth: notionals in dollars stay the same."""

    def change_rows(self, series: Series[R], rows: Sequence[R]) -> Sequence[R]:
        scale = _SCALES.get(series.feed)
        return rows if scale is None or series.row not in _SCALED else [scale(row) for row in rows]


class ParaphrasedSeries(ChangedSeries):
    """Texts in other words and another order of sentences."""

    def change_rows(self, series: Series[R], rows: Sequence[R]) -> Sequence[R]:
        return [paraphrase_text(row) for row in rows] if series.row is Text else rows


def paraphrase_text(row: Any) -> Any:
    body = " ".join(reversed(_SENTENCE.split(row.body)))
    return replace(row, body=re.sub(r"[A-Za-z]+", lambda word: SYNONYMS.get(word[0], word[0]), body))


def _scale_candle(bar: Candle) -> Candle:
    opened, high, low, close = (FACTOR * price for price in (bar.open, bar.high, bar.low, bar.close))
    taken = None if bar.taker_buy is None else bar.taker_buy / FACTOR
    return Candle(bar.at, opened, high, low, close, bar.volume / FACTOR, taken)


def _scale_book(book: Book) -> Book:
    bids, asks = (
        tuple(quote._replace(price=FACTOR * quote.price, size=quote.size / FACTOR) for quote in side)
        for side in (book.bids, book.asks)
    )
    return Book(book.at, bids, asks)


def _scale_event(event: TapeEvent) -> TapeEvent:
    return event._replace(price=FACTOR * event.price, quantity=event.quantity / FACTOR)


def _scale_chain(chain: OptionChain) -> OptionChain:
    return OptionChain(
        chain.at,
        tuple(
            replace(
                quote,
                strike=FACTOR * quote.strike,
                underlying=None if quote.underlying is None else FACTOR * quote.underlying,
                open_interest=quote.open_interest / FACTOR,
                volume=quote.volume / FACTOR,
            )
            for quote in chain.quotes
        ),
    )


_SCALES: Final[Mapping[Feed, Callable[[Any], Any]]] = {
    Feed.CANDLES: _scale_candle,
    Feed.OPEN_INTEREST: lambda row: Level(row.at, row.value / FACTOR),
    Feed.BASIS: lambda row: MarkAndIndex(row.at, FACTOR * row.mark, FACTOR * row.spot),
    Feed.BOOK: _scale_book,
    Feed.LIQUIDATIONS: _scale_event,
    Feed.WHALES: _scale_event,
    Feed.OPTIONS: _scale_chain,
}
_SCALED: Final = frozenset({Candle, Level, MarkAndIndex, Book, TapeEvent, OptionChain})
"""Beside the minutes in which a stream was alive, which have no price."""


def rename_account(account: Account) -> Account:
    return replace(
        account,
        positions=tuple(each.model_copy(update={"symbol": _OTHER[each.symbol]}) for each in account.positions),
        liquidity=tuple(each.model_copy(update={"symbol": _OTHER[each.symbol]}) for each in account.liquidity),
    )


def scale_account(account: Account) -> Account:
    def scale(holding: Any) -> Any:
        prices = {name: getattr(holding, name) for name in ("entry", "stop", "take")}
        scaled = {name: FACTOR * price for name, price in prices.items() if price is not None}
        return holding.model_copy(update={"quantity": holding.quantity / FACTOR, **scaled})

    return replace(
        account,
        positions=tuple(map(scale, account.positions)),
        liquidity=tuple(each.model_copy(update={"quantity": each.quantity / FACTOR}) for each in account.liquidity),
    )


def reverse_experts() -> tuple[Node, ...]:
    """The nodes of a cycle with the experts from the last to the first; the chart is drawn before them."""
    others = [node for node in Node if node not in EXPERTS]
    before = others.index(Node.GENERATE_CHART) + 1
    return (*others[:before], *reversed(EXPERTS), *others[before:])


@dataclass(frozen=True, slots=True)
class ChangedRuling:
    change: Change
    ruling: str
    veto: str | None
    decision_kept: bool
    ruling_kept: bool


@dataclass(frozen=True, slots=True)
class InvarianceMoment(StudiedMoment):
    ruling: str
    veto: str | None
    changes: tuple[ChangedRuling, ...]


async def change_moment(
    store: SeriesStore, seed: int, moment: Moment, model_context: OpenModelContext
) -> InvarianceMoment:
    _, account = await make_account(store, moment)

    async def rule(
        market: SeriesStore, held: Account, symbol: Symbol = moment.symbol, order: Sequence[Node] = tuple(Node)
    ) -> tuple[Call, Call, str | None]:
        ruled = await rule_moment(
            MarketFigures(market, symbol, moment.mode), moment.at, held, model_context, CODE, order
        )
        outcome = ruled.outcome
        return outcome.decision.decision, outcome.ruling.decision, outcome.ruling.veto

    own = await rule(store, account)
    markets: list[tuple[Change, SeriesStore, Account, Symbol]] = [
        (Change.MASKED, RenamedSeries(store), rename_account(account), _OTHER[moment.symbol]),
        (Change.SCALED, ScaledSeries(store), scale_account(account), moment.symbol),
        (Change.PARAPHRASED, ParaphrasedSeries(store), account, moment.symbol),
        (Change.REORDERED, store, account, moment.symbol),
    ]
    if not account.liquidity and moment.kind is not MomentKind.NO_KRW:  # else there is no mirror image
        mirror = await open_mirror(store, moment.at)
        markets.append((Change.MIRRORED, mirror, mirror_account(account, mirror), moment.symbol))
    changes = []
    for change, market, held, symbol in markets:
        order = reverse_experts() if change is Change.REORDERED else tuple(Node)
        decision, ruling, veto = await rule(market, held, symbol, order)
        wanted = [mirror_call(call) if change is Change.MIRRORED else call for call in own[:2]]
        changes.append(ChangedRuling(change, ruling.value, veto, decision is wanted[0], ruling is wanted[1]))
    return InvarianceMoment(*moment.place_in(seed), ruling=own[1].value, veto=own[2], changes=tuple(changes))


class FlipView(MomentView):
    ruling: str
    veto: str | None
    changed: str
    """As it was ruled after the change."""
    changed_veto: str | None


class ChangeView(View):
    change: str
    decisions: RateView
    """The Judge's that flipped, before any rule."""
    rulings: RateView
    active: RateView
    """The same of rulings that are not HOLD on either side."""
    flips: tuple[FlipView, ...]


class InvarianceView(MarketCheckView):
    """`ok` is always true: flip rates are reported, not judged."""

    changes: tuple[ChangeView, ...]
    pool: PoolInvarianceView | None = None
    """Of the LP desk, where a recorded pool was named."""

    def to_document(self) -> Document:
        flips = [
            (
                *(f"{change.change}: {flip.describe()}", flip.ruling, flip.veto or "", flip.changed),
                flip.changed_veto or "",
            )
            for change in self.changes
            for flip in change.flips
        ]
        return document(
            describe_study(self),
            section(
                "Rulings that flip",
                table_of(
                    self.changes,
                    {
                        "change": lambda change: change.change,
                        "moments": lambda change: count(change.rulings.total),
                        "decisions flip": lambda change: change.decisions.to_cells()[0],
                        "rulings flip": lambda change: change.rulings.to_cells()[0],
                        "95 %": lambda change: change.rulings.to_cells()[1],
                        "not HOLD: flip": lambda change: change.active.to_cells()[0],
                        "95 % of it": lambda change: change.active.to_cells()[1],
                    },
                    spare=("95 % of it", "95 %"),
                ),
            ),
            None if self.pool is None else self.pool.describe(),
            section("Flips", table(("flip", "ruling", "veto", "after the change", "its veto"), flips))
            if flips
            else lines(good("No ruling flips.")),
            urgent=warn_partial(self),
            notes=self.name_report(),
        )

    def draw_charts(self) -> Charts:
        rates = [(change.change, change.rulings) for change in self.changes]
        return {"Rulings that flip": (rate_chart("Rulings that flip", rates),)}


def build_invariance_view(
    moments: Sequence[InvarianceMoment], plans: Sequence[MarketPlan], stopped: bool
) -> InvarianceView:
    return InvarianceView(
        ok=True,
        stopped=stopped,
        **describe_markets([plan.seed for plan in plans], sum(plan.moments for plan in plans), len(moments)),
        changes=tuple(_sum_change(change, moments) for change in Change),
    )


def _sum_change(change: Change, moments: Sequence[InvarianceMoment]) -> ChangeView:
    pairs = [(moment, each) for moment in moments for each in moment.changes if each.change is change]
    active = [(moment, each) for moment, each in pairs if {moment.ruling, each.ruling} != {Call.HOLD.value}]
    flipped = [(moment, each) for moment, each in pairs if not each.ruling_kept]
    return ChangeView(
        change=change.value,
        decisions=measure_rate(sum(not each.decision_kept for _, each in pairs), len(pairs)),
        rulings=measure_rate(len(flipped), len(pairs)),
        active=measure_rate(sum(not each.ruling_kept for _, each in active), len(active)),
        flips=tuple(
            derive(FlipView, moment, changed=each.ruling, changed_veto=each.veto) for moment, each in flipped[:LISTED]
        ),
    )
