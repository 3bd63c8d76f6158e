"""What a screen or a script is shown: closed read models in the names and types of the public JSON.

Amounts, liquidity and ids are strings because JSON numbers lose digits; each amount has a human twin beside it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import compress
from typing import Final

from pydantic import Field

from zuno.kernel.clock import iso
from zuno.kernel.numbers_text import short_text, thousands_text
from zuno.kernel.text import Token
from zuno.kernel.units import Millis
from zuno.kernel.view import ForeignText, View
from zuno.lp.model.chains import chain_label
from zuno.lp.service.summary_view import SummaryView
from zuno.present.document import (
    Act,
    Block,
    Document,
    Fact,
    Mark,
    Section,
    Tone,
    Value,
    document,
    facts,
    lines,
    section,
    table,
)
from zuno.present.values import amount, bad, count, foreign, good, id_, name, quiet, share

MOST_ACTS: Final = 5
_BAR_WIDTH: Final = 24
"""Characters of a range between its edges."""
_JOINERS: Final = dict.fromkeys(("edges", "holds", "result", "to collect"), ", ") | {"range": " – "}
_COLUMNS: Final = (
    *("id", "pool", "edges", "range", "price", "worth", "result", "vs holding", "fees 7 d", "fees", "to collect"),
    "holds",
)
_RESULTS: Final = ("result", "vs holding", "fees 7 d", "fees")
_SPARE: Final = ("holds", "price", "range", "to collect", "fees 7 d", "vs holding", "fees")


def describe_place(chain: str, block: int) -> str:
    """Whose money it is, and where it was read."""
    return f"{chain_label(chain)} · {chain} at block {block}"


def format_moment(timestamp: int) -> str:
    """Of a block; a clock beyond every calendar stays a number."""
    try:
        return iso(Millis(timestamp * 1_000))
    except OverflowError:
        return str(timestamp)


def fee_text(pips: int) -> str:
    """Pips as people say them: 0.05 %, 0.30 %, 0.0123 %."""
    return f"{pips / 10_000:.2f} %" if pips % 100 == 0 else f"{pips / 10_000:.4f} %"


def bare_amount(text: str | None, unit: str) -> Value:
    """An amount in a table whose heading or headline names the unit; None: not known."""
    return quiet("?") if text is None else replace(amount(text, unit), text=short_text(text))


def range_bar(low: float, high: float, price: float) -> str:
    """The price within its range, by the logarithm: `├──●─────┤`, outside it `● ├───────┤`."""
    share = (math.log(price) - math.log(low)) / (math.log(high) - math.log(low))
    if share < 0:
        return f"● ├{'─' * _BAR_WIDTH}┤"
    if share > 1:
        return f"├{'─' * _BAR_WIDTH}┤ ●"
    place = min(_BAR_WIDTH - 1, int(share * _BAR_WIDTH))
    return f"├{'─' * place}●{'─' * (_BAR_WIDTH - 1 - place)}┤"


def draw_range(low: str, high: str, price: str) -> str:
    """Empty for the widest ranges, which have no figures a float can hold."""
    try:
        return range_bar(float(low), float(high), float(price))
    except (ValueError, OverflowError, ZeroDivisionError):
        return ""


def draw_ranges(positions: Iterable[tuple[str, str, str, str]]) -> Block | None:
    """By id, lower edge, upper edge and price: one under another."""
    bars = [(id_, draw_range(low, high, price)) for id_, low, high, price in positions]
    width = max((len(id_) for id_, _ in bars), default=0)
    drawn = (f"{id_:<{width}} {'' if bar.startswith('●') else '  '}{bar}" for id_, bar in bars if bar)
    return lines(*drawn, mark=Mark.VERBATIM)


def draw_edges(low: str, high: str, price: str) -> Block | None:
    """A range with its edges under it."""
    bar, left, right = draw_range(low, high, price), short_text(low), short_text(high)
    between = max(_BAR_WIDTH + 2 - len(left), len(right) + 1)
    edges = f"{' ' * bar.find('├')}{left}{right:>{between}}"
    return lines(bar, edges, mark=Mark.VERBATIM) if bar else None


class ChainView(View):
    """What was read of one chain at one block."""

    chain: str
    block: int
    timestamp: int


class PoolKeyView(View):
    """A pool's identity."""

    id: str
    currency0: Token
    currency1: Token
    fee: int
    tick_spacing: int
    hooks: str
    dynamic_fee: bool
    label: str

    @property
    def verified(self) -> bool:
        """Whether its tokens are known by more than their own contracts' word."""
        return self.currency0.verified and self.currency1.verified

    @property
    def name(self) -> Value:
        return name(self.label) if self.verified else foreign(self.label)

    def sentence(self, text: str, tone: Tone = Tone.PLAIN) -> Value:
        """Words of ours that name its tokens."""
        return Value(text, tone) if self.verified else foreign(text, tone)

    def pair(self, amount0: str, amount1: str, between: str = ", ") -> Value:
        """Amounts of its two tokens."""
        return self.sentence(between.join(side.text for side in self.amounts(amount0, amount1)))

    def exact_pair(self, amount0: str, amount1: str) -> Value:
        """The same to the last digit."""
        return self.sentence(f"{amount0} {self.currency0.display_name}, {amount1} {self.currency1.display_name}")

    def amounts(self, amount0: str, amount1: str) -> tuple[Value, Value]:
        sides = ((amount0, self.currency0), (amount1, self.currency1))
        first, second = (self.amount_of(text, token.display_name) for text, token in sides)
        return first, second

    def amount_of(self, text: str, unit: str) -> Value:
        return replace(amount(text, unit), unit=self.trust_unit(unit))

    def price_of(self, text: str, unit: str) -> Value:
        """A price in `USDC per ETH`."""
        return replace(amount(text, unit), unit=self.trust_unit(unit.partition(" per ")[0]), digits=2)

    def trust_unit(self, unit: str) -> str:
        """The unit of a figure that a model may repeat: the symbol of a stranger's token is none."""
        symbols = {token.symbol for token in (self.currency0, self.currency1) if token.verified}
        return unit if unit in symbols else "?"


def warn_unverified(pools: Iterable[PoolKeyView]) -> Iterator[Value]:
    """A warning for each token that only its own contract vouches for."""
    return warn_tokens(token for pool in pools for token in (pool.currency0, pool.currency1))


def warn_tokens(tokens: Iterable[Token]) -> Iterator[Value]:
    for token in {token.address: token for token in tokens}.values():
        if not token.verified:
            about = "its contract alone gives it this name, so no price is looked up"
            yield foreign(f"{token.display_name} is {token.address}: {about}", Tone.BAD)


class LeftoverView(View):
    """What a plan leaves in the wallet of the tokens it was to put to work, in whole tokens."""

    token0: str
    token1: str
    symbol0: str
    symbol1: str
    share: float
    """Of what burn and swap paid, or of what was brought, by worth."""
    why: str

    @property
    def text(self) -> str:
        return f"{self.amounts}: {self.why}"

    @property
    def amounts(self) -> str:
        tokens = ((self.token0, self.symbol0), (self.token1, self.symbol1))
        amounts = " and ".join(f"{short_text(f'{Decimal(amount):.9f}')} {symbol}" for amount, symbol in tokens)
        return f"{amounts}, {100 * self.share:.2f} %"


class PoolView(PoolKeyView):
    """A pool at a block."""

    chain: str
    sqrt_price_x96: str
    tick: int
    lp_fee: int
    protocol_fee: int
    liquidity: str
    price: str
    price_unit: str
    block: int
    timestamp: int

    def to_document(self) -> Document:
        tokens = (
            (self.sentence(token.display_name), id_(token.address), count(token.decimals))
            for token in (self.currency0, self.currency1)
        )
        return document(
            self.sentence(f"{self.label}: {short_text(self.price)} {self.price_unit}"),
            facts(
                ("pool id", id_(self.id)),
                ("price", self.price_of(self.price, self.price_unit)),
                ("tick", str(self.tick)),
                ("liquidity", thousands_text(self.liquidity)),
                ("fee now", self.fee_now),
                ("spacing", f"{self.tick_spacing} ticks"),
                ("hooks", id_(self.hooks) if int(self.hooks, 16) else "none"),
            ),
            table(("token", "address", "decimals"), tokens),
            lines(*warn_unverified([self]), mark=Mark.WARNING),
            context=describe_place(self.chain, self.block),
            as_of=format_moment(self.timestamp),
        )

    @property
    def fee_now(self) -> str:
        return f"{fee_text(self.lp_fee)}{' (set by its hook)' if self.dynamic_fee else ''}"


class PoolsView(ChainView):
    pools: tuple[PoolView, ...]
    notes: tuple[str, ...]

    def to_document(self) -> Document:
        rows = (
            (
                pool.name,
                pool.price_of(pool.price, pool.price_unit),
                Value(f"{int(pool.liquidity):.4g}"),
                str(pool.tick),
                pool.fee_now,
            )
            for pool in self.pools
        )
        return document(
            f"Pools: {len(self.pools)}",
            table(("pool", "price", "liquidity", "tick", "fee now"), rows, spare=("liquidity", "tick", "fee now")),
            lines(*warn_unverified(self.pools), mark=Mark.WARNING),
            context=describe_place(self.chain, self.block),
            notes=map(foreign, self.notes),
            as_of=format_moment(self.timestamp),
        )


class PositionView(View):
    """A position at a block, worth what a full burn would pay."""

    id: str
    chain: str
    owner: str
    pool: PoolKeyView
    tick_lower: int
    tick_upper: int
    tick: int
    liquidity: str
    amount0: str
    amount1: str
    fees0: str
    fees1: str
    amount0_human: str
    amount1_human: str
    fees0_human: str
    fees1_human: str
    value_human: str
    """Principal and fees together in the quote token."""
    value_unit: str
    price: str
    price_lower: str
    price_upper: str
    price_unit: str
    in_range: bool
    edge_distance_percent: str
    """Ticks to the nearer edge as a share of the width; negative outside the range."""
    subscribed: bool
    block: int
    timestamp: int
    summary: SummaryView | None = Field(None, exclude_if=lambda summary: summary is None)
    """What an owner asks first; absent where the position alone was asked for."""

    @property
    def is_out(self) -> bool:
        return self.liquidity != "0" and not self.in_range

    def open(self, name: str = "") -> Value:
        """What it opens with."""
        tone = Tone.BAD if self.is_out else Tone.PLAIN
        return Value("") if self.summary is None else self.summary.open(name, tone, ours=self.pool.verified)

    @property
    def act(self) -> Act:
        if self.summary is None:
            return Act(f"Recommend {self.id}", f"lp recommend rebalance {self.id} --chain {self.chain}")
        return self.summary.act(self.id, self.chain)

    @property
    def worth(self) -> Value:
        return self.pool.amount_of(self.value_human, self.value_unit)

    def describe_state(self) -> Value:
        if self.liquidity == "0":
            return quiet("empty")
        return good("in range") if self.in_range else bad("out of range")

    @property
    def cells(self) -> tuple[Value, ...]:
        summary, unit = self.summary, self.pool.trust_unit(self.value_unit)
        amounts = ("result", "against_holding", "fees7d", "fees")
        made, *others = (bare_amount(None if summary is None else getattr(summary, name), unit) for name in amounts)
        if summary is not None and made.number is not None:
            part = "" if summary.result_share is None else f"\n{share(summary.result_share, signed=True).text}"
            made = replace(made, text=f"{made.text}{part}", tone=Tone.BAD if made.number < 0 else Tone.GOOD)
        edges = "\n".join(() if summary is None else (edge.text for edge in summary.edges))
        return (
            id_(self.id),
            replace(self.pool.name, text=self.pool.label.replace(" ", "\n", 1)),
            Value(edges or self.describe_state().text, self.describe_state().tone),
            Value(f"{short_text(self.price_lower)}\n{short_text(self.price_upper)}"),
            self.pool.price_of(self.price, self.price_unit),
            replace(self.worth, text=f"{short_text(self.value_human)}\n{self.value_unit}"),
            made,
            *others,
            self.pool.pair(self.fees0_human, self.fees1_human, "\n"),
            self.pool.pair(self.amount0_human, self.amount1_human, "\n"),
        )


def list_lineages(positions: Iterable[tuple[str, SummaryView | None]]) -> Iterator[str]:
    for position, made in positions:
        if made is not None and made.lineage:
            yield f"position {position} is counted with those it came from: {made.lineage}"


class MissingView(View):
    id: str
    reason: str


class PositionsView(ChainView):
    wallet: str | None
    complete: bool
    note: str
    positions: tuple[PositionView, ...]
    missing: tuple[MissingView, ...]

    urgent: tuple[ForeignText, ...] = ()
    """What its owner has to know before any figure."""

    def to_document(self) -> Document:
        known, note = self.positions, [foreign(self.note)]
        whose = "" if self.wallet is None else f" of {self.wallet}"
        urgent = [*map(foreign, self.urgent)]
        urgent += [foreign(f"position {line.id} was not read: {line.reason}") for line in self.missing]
        if not self.complete:
            urgent.append(foreign(f"the positions{whose} could not all be listed: {self.note}".rstrip(": ")))
            note = []
        if out := [position.id for position in known if position.is_out]:
            urgent.insert(0, bad(f"out of range: position{'s' if out[1:] else ''} {', '.join(out)}"))
        inside = sum(position.in_range and position.liquidity != "0" for position in known)
        spans = ((position.id, position.price_lower, position.price_upper, position.price) for position in known)
        empty = f"No positions{whose}" if self.complete else f"No position{whose} could be listed"
        return document(
            f"Positions in range: {inside} of {len(known)}" if known else empty,
            lines(*(line.open(line.id) for line in known)),
            _write_table(known) if known else None,
            draw_ranges(spans),
            lines(*warn_unverified(position.pool for position in known), mark=Mark.WARNING),
            context=describe_place(self.chain, self.block),
            urgent=urgent,
            notes=(*note, *list_lineages((line.id, line.summary) for line in known)),
            acts=(*(line.act for line in known[:MOST_ACTS]), Act("Portfolio", "lp portfolio") if known else None),
            as_of=format_moment(self.timestamp),
        )


def _write_table(known: Sequence[PositionView]) -> Block:
    """Without results where none was asked for."""
    made = any(line.summary for line in known)
    kept = [made or name not in _RESULTS for name in _COLUMNS]
    rows = (tuple(compress(line.cells, kept)) for line in known)
    spare = [name for name in _SPARE if made or name not in _RESULTS]
    return table(tuple(compress(_COLUMNS, kept)), rows, spare=spare, joiners=_JOINERS, whole=made)


class FactView(View):
    """A market fact, or the reason why there is none."""

    value: str | None
    unit: str
    source: str | None
    as_of: int | None
    age_seconds: int | None
    stale: bool | None
    notes: tuple[str, ...] = ()

    def to_fact(self, label: str) -> Fact:
        unit = "?" if "?" in self.unit else self.unit  # of a token that nobody vouches for
        value = quiet("none") if self.value is None else replace(amount(self.value, self.unit), unit=unit)
        return Fact(label, value, self.source or "", self.age_seconds, bool(self.stale), self.notes)


class MarketView(View):
    reference_price: FactView
    realized_vol: FactView
    gas_price: FactView
    l1_data_fee: FactView
    native_price: FactView

    def to_facts(self) -> Iterator[Fact]:
        labels = ("reference", "volatility", "gas", "data fee", "native")
        for label, (_, fact) in zip(labels, self, strict=True):
            yield fact.to_fact(label)


class InspectView(PositionView):
    """A position with its pool's state and the market around it."""

    summary: SummaryView
    pool_state: PoolView
    market: MarketView
    urgent: tuple[ForeignText, ...] = ()
    notes: tuple[ForeignText, ...] = ()

    def to_document(self) -> Document:
        state, pool = self.describe_state(), self.pool
        held0, held1 = pool.amounts(self.amount0_human, self.amount1_human)
        lower, upper = (pool.price_of(edge, self.price_unit) for edge in (self.price_lower, self.price_upper))
        about = f"{self.id} --chain {self.chain}"
        urgent = [bad("out of range: it earns nothing")] if self.is_out else []
        urgent += map(foreign, self.urgent)
        if self.subscribed:
            urgent.append(bad("this position is subscribed (staked): burning it unsubscribes"))
        if self.market.reference_price.stale:
            urgent.append(bad(f"the reference price is {self.market.reference_price.age_seconds} s old"))
        return document(
            pool.sentence(f"Position {self.id}: {state.text}, worth {self.worth.text}", state.tone),
            lines(self.open()),
            draw_edges(self.price_lower, self.price_upper, self.price),
            facts(
                ("position", id_(self.id)),
                ("pool", pool.name),
                ("worth", self.worth),
                *self._list_results(),
                ("price", pool.price_of(self.price, self.price_unit)),
                ("from", lower),
                ("to", upper),
                ("holds", held0),
                ("holds", held1),
            ),
            section("Market", facts(*self.market.to_facts())),
            self._write_detail(),
            lines(*warn_unverified([pool]), mark=Mark.WARNING),
            context=describe_place(self.chain, self.block),
            urgent=urgent,
            notes=map(foreign, self.notes),
            acts=(
                self.act,
                Act("Recommend", f"lp recommend rebalance {about}") if self.summary.plan else None,
                Act("PnL", f"lp pnl {about}"),
                Act("What if", f"lp whatif {about}"),
            ),
            as_of=format_moment(self.timestamp),
        )

    def _list_results(self) -> Iterator[tuple[str, str | Value]]:
        """What it made, what it earned, and how far the price may go."""
        made = self.summary
        since = "" if made.result_share is None else f", {share(made.result_share, signed=True).text}"
        result = self._amount_of(made.result)
        yield "result", replace(result, text=f"{result.text}{since}")
        yield "against holding", self._amount_of(made.against_holding)
        yield "fees, 7 d", self._amount_of(made.fees7d)
        yield "of that collected", self._amount_of(made.fees7d_collected)
        yield "fees in all", self._amount_of(made.fees)
        yield "of that collected", self._amount_of(made.fees_collected)
        yield "uncollected", self._amount_of(made.uncollected)
        yield "fee yield", made.yield_of_fees
        yield from zip(("to the lower edge", "to the upper edge"), made.edges, strict=True)
        if made.lineage:
            yield "counted with", made.lineage

    def _amount_of(self, text: str | None) -> Value:
        return quiet("?") if text is None else self.pool.amount_of(text, self.value_unit)

    def _write_detail(self) -> Section:
        pool, made = self.pool, self.summary
        return section(
            "Detail",
            facts(
                ("LVR, 7 d", self._amount_of(made.lvr7d)),
                ("LVR in all", self._amount_of(made.lvr)),
                ("yield after LVR", share(made.net_apr)),
                ("liquidity", thousands_text(self.liquidity)),
                ("exactly", pool.exact_pair(self.amount0_human, self.amount1_human)),
                ("exact fees", pool.exact_pair(self.fees0_human, self.fees1_human)),
                ("tick", f"{self.tick}, range {self.tick_lower} to {self.tick_upper}"),
                ("of its width to the edge", f"{Decimal(self.edge_distance_percent):.1f} %"),
                ("pool id", pool.id),
                ("owner", self.owner),
            ),
        )


class PricePointView(View):
    at: int
    price: str


class FeePeriodView(View):
    """Fees a position earned between two moments."""

    from_timestamp: int
    to_timestamp: int
    fees0_human: str
    fees1_human: str
    worth: str
    """Both in the quote token at today's price."""


class PositionHistoryView(ChainView):
    """The price of the last days with the position's range, and what it earned day by day."""

    id: str
    pool: PoolKeyView
    price_now: str
    price_lower: str
    price_upper: str
    price_unit: str
    unit: str
    prices: tuple[PricePointView, ...]
    prices_source: str | None
    fees: tuple[FeePeriodView, ...]
    """By day, the oldest first, with what the positions earned that it was rebalanced from; days before the first mint
    are left out."""
    notes: tuple[str, ...]


class LiquidityBandView(View):
    tick_lower: int
    tick_upper: int
    price_lower: str
    price_upper: str
    liquidity: str


class LiquidityView(ChainView):
    """A pool's liquidity from half its price to twice, between initialised ticks."""

    pool: PoolKeyView
    price: str
    price_unit: str
    tick: int
    bands: tuple[LiquidityBandView, ...]
    """By tick, the lowest first."""
