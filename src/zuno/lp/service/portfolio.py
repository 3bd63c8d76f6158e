"""All positions of all watched wallets in one currency: worth, fees, rates and time in range."""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import itemgetter
from typing import Final

from pydantic import Field

from zuno.amm.model import LpPosition, quote_worth
from zuno.kernel.arguments import parse_span
from zuno.kernel.errors import Malformed, Unavailable, UsageError, ZunoError
from zuno.kernel.numbers_text import decimal_text, money_text, short_text
from zuno.kernel.text import Token, base_and_quote, is_stable, plain_text, to_clause
from zuno.kernel.units import Address, Seconds
from zuno.kernel.view import ForeignText, View
from zuno.kernel.wire import derive
from zuno.lp.model.chains import chain_label, market_name
from zuno.lp.model.market import Fact, Pair
from zuno.lp.rules.portfolio import LifeFigures, WindowFigures, annual_rate
from zuno.lp.service import arguments, to_views
from zuno.lp.service.positions import LpDesk
from zuno.lp.service.summary_view import SummaryView
from zuno.lp.service.views import (
    MOST_ACTS,
    ChainView,
    PoolKeyView,
    bare_amount,
    draw_ranges,
    list_lineages,
    warn_unverified,
)
from zuno.lp.watch.monitor import Watch
from zuno.present.document import Act, Document, Facts, Mark, Tone, Value, document, facts, lines, section, table
from zuno.present.values import amount, bad, count, foreign, hours, id_, quiet, share

CURRENCY: Final = "USD"
DAY: Final = 86_400
SPANS: Final = (3_600, 30 * DAY)
_POINTS: Final = 56
"""Of the drawn worth, beside its first: every three hours of a week."""


class UnpricedView(View):
    id: str
    chain: str
    pool: str
    why: str


class PortfolioWalletView(View):
    label: str
    address: str
    chain: str
    positions: int
    worth: str | None
    """Of what could be priced; None: nothing could be read or priced."""
    complete: bool
    note: str

    @property
    def trouble(self) -> str:
        return f"{name_wallet(self.label, self.address)} on {self.chain} was not read in full: {self.note}".rstrip(": ")

    def to_facts(self) -> Facts:
        return facts(
            ("wallet", f"{self.label} {self.address}".strip() or "no wallet"),
            ("chain", self.chain),
            ("positions", count(self.positions)),
            ("worth", quiet("not read") if self.worth is None else amount(self.worth, CURRENCY)),
        )


class PortfolioPriceView(View):
    """What a quote token was counted at."""

    chain: str
    token: str
    usd: str
    source: str
    as_of: int
    age_seconds: int


class PortfolioPositionView(View):
    """One position; money in USD, rates as shares of one (0.25 is 25 %). What is not known is null."""

    id: str
    chain: str
    wallet: str
    label: str
    pool: PoolKeyView
    in_range: bool
    price: str
    price_lower: str
    price_upper: str
    worth: str | None
    """Principal and uncollected fees."""
    uncollected: str | None
    fees24h: str | None = Field(alias="fees24h")
    """Earned per day of the window."""
    lvr24h: str | None = Field(alias="lvr24h")
    mean_worth: str | None
    """Of the window: what the rates are of."""
    fee_apr: float | None
    net_apr: float | None
    """After LVR."""
    time_in_range: float | None
    window_hours: float | None
    """Time in the window with liquidity in the pool."""
    position_ids: tuple[str, ...]
    """This position and those it was rebalanced from in the window, oldest first."""
    how: str
    """What the window was read from, or why it is unknown."""
    quote: str
    """The token it is priced in; `prices` has its dollars."""
    block: int
    timestamp: int
    summary: SummaryView
    """What an owner asks first, in the token of `quote`."""
    result: str | None
    """In USD, since the first of the summary's positions was opened."""
    against_holding: str | None
    fees: str | None

    @property
    def reference(self) -> str:
        return f"{self.id} on {self.chain}"

    @property
    def cells(self) -> tuple[str | Value, ...]:
        amounts = (self.worth, self.result, self.against_holding, self.fees24h, self.fees, self.uncollected)
        tone = Tone.BAD if self.summary.state == "out_of_range" else Tone.GOOD
        return (
            id_(self.id),
            self.chain,
            name_wallet(self.label, self.wallet),
            self.pool.name,
            Value("\n".join(edge.text for edge in self.summary.edges), tone),
            *(bare_amount(text, CURRENCY) for text in amounts),
            share(self.time_in_range),
        )

    @property
    def detail(self) -> tuple[Value, ...]:
        fee_yield = share(self.fee_apr) if self.fee_apr is not None else quiet("under 7 d" if self.fees24h else "–")
        return (id_(self.id), fee_yield, bare_amount(self.lvr24h, CURRENCY), share(self.net_apr))


_COLUMNS: Final = (
    *("position", "chain", "wallet", "pool", "edges", "worth", "result", "vs holding"),
    *("fees/day", "fees", "to collect", "time in range"),
)
_SPARE: Final = (
    *("wallet", "chain", "time in range", "fees/day", "to collect", "pool", "fees", "vs holding"),
    "edges",
)


def name_wallet(label: str, address: str) -> str:
    return label or (f"{address[:6]}…{address[-4:]}" if address else "no wallet")


class PortfolioTotalsView(View):
    currency: str
    worth: str | None
    uncollected: str | None
    unpriced: tuple[UnpricedView, ...]
    fees24h: str | None = Field(alias="fees24h")
    lvr24h: str | None = Field(alias="lvr24h")
    mean_worth: str | None
    """Of the window, of the positions whose fees are in the sums: what the rates are of."""
    fee_apr: float | None
    net_apr: float | None
    window_hours: float
    unknown: tuple[str, ...]
    """Positions whose fees are not in the sums."""
    result: str | None
    """Since each was opened."""
    against_holding: str | None
    fees: str | None
    """In all, at today's price."""
    positions: int
    """How many there are; those that could not be read among them."""
    worth_of: int
    """Of how many of them the worth is, and so on."""
    result_of: int
    fees24h_of: int = Field(alias="fees24hOf")
    yield_of: int
    """Those of seven days or more."""

    def to_facts(self) -> Facts:
        none = quiet("none under 7 d" if self.fees24h_of else "unknown")
        sums = (
            ("worth", self.worth, self.worth_of),
            ("result", self.result, self.result_of),
            ("against holding", self.against_holding, self.result_of),
            ("fees in all", self.fees, self.result_of),
            ("uncollected fees", self.uncollected, self.worth_of),
            ("fees per day", self.fees24h, self.fees24h_of),
        )
        return facts(
            *((label, self.count(amount(text, self.currency), counted)) for label, text, counted in sums),
            ("fee yield", none if self.fee_apr is None else self.count(share(self.fee_apr), self.yield_of)),
            ("window", hours(self.window_hours)),
        )

    def count(self, value: Value, counted: int) -> Value:
        """Said with how many of the positions it is of."""
        whole = f"{self.positions} position{'' if self.positions == 1 else 's'}"
        return replace(value, text=f"{value.text}, of {'' if counted == self.positions else f'{counted} of '}{whole}")

    def to_detail(self) -> Facts:
        return facts(
            ("LVR per day", amount(self.lvr24h, self.currency)),
            ("yield after LVR", share(self.net_apr)),
        )


class PortfolioPointView(View):
    """What was in the positions at a moment: principal in USD at today's price of their quote tokens, fees apart."""

    at: int
    worth: float


class PortfolioView(View):
    wallets: tuple[PortfolioWalletView, ...]
    totals: PortfolioTotalsView
    positions: tuple[PortfolioPositionView, ...]
    chains: tuple[ChainView, ...]
    """Where positions were found, and the oldest block they were read at."""
    prices: tuple[PortfolioPriceView, ...]
    notes: tuple[str, ...]
    history: tuple[PortfolioPointView, ...] = ()
    """Over the window, of the positions whose fees are in the sums."""
    urgent: tuple[ForeignText, ...] = ()
    """What its owner has to know before any figure."""

    def to_document(self) -> Document:
        totals, known = self.totals, self.positions
        worth = "unknown" if totals.worth is None else f"{short_text(totals.worth)} {totals.currency}"
        out = ", ".join(line.reference for line in known if line.summary.state == "out_of_range")
        openings = (
            line.summary.open(line.id, Tone.PLAIN if line.in_range else Tone.BAD, ours=line.pool.verified)
            for line in known
        )
        unpriced = (
            foreign(f"not priced: position {line.id} on {line.chain} ({line.pool}): {line.why}")
            for line in totals.unpriced
        )
        reasons = {line.reference: line.how for line in known}
        unknown = (foreign(f"fees unknown: position {line}: {reasons.get(line, '')}") for line in totals.unknown)
        labels = dict.fromkeys(chain_label(wallet.chain).value for wallet in self.wallets)
        spans = ((line.id, line.price_lower, line.price_upper, line.price) for line in known)
        return document(
            f"Worth {worth}, in range: {sum(line.in_range for line in known)} of {len(known)}",
            lines(*openings),
            totals.to_facts(),
            section(
                "Positions",
                table(_COLUMNS, (line.cells for line in known), spare=_SPARE, joiners={"edges": ", "}, whole=True)
                if known
                else None,
                draw_ranges(spans),
            ),
            section(
                "Yield and LVR",
                totals.to_detail(),
                table(("position", "fee yield", "LVR/day", "after LVR"), (line.detail for line in known)),
            )
            if known
            else None,
            section("Wallets", *(wallet.to_facts() for wallet in self.wallets)),
            lines(*warn_unverified(line.pool for line in known), mark=Mark.WARNING),
            context=f"{', '.join(labels)} · Portfolio in {totals.currency}",
            urgent=[
                *([bad(f"out of range: position {out}")] if out else []),
                *map(foreign, self.urgent),
                *(foreign(wallet.trouble, Tone.BAD) for wallet in self.wallets if not wallet.complete),
            ],
            notes=(
                *(foreign(wallet.note) for wallet in self.wallets if wallet.complete),
                *unpriced,
                *unknown,
                *map(foreign, self.notes),
                *list_lineages((line.id, line.summary) for line in known),
            ),
            acts=(
                *(line.summary.act(line.id, line.chain) for line in known[:MOST_ACTS]),
                Act("Positions", "lp positions"),
                Act("Alerts", "alerts"),
            ),
        )


@dataclass(slots=True)
class _WalletRead:
    watch: Watch
    address: str
    label: str
    positions: tuple[LpPosition, ...] = ()
    complete: bool = False
    note: str = ""
    missing: int = 0
    """Positions it holds that could not be read."""


@dataclass(slots=True)
class _Line:
    wallet: _WalletRead
    position: LpPosition
    summary: SummaryView
    window: WindowFigures | None
    how: str
    """What its window was read from, or why it is unknown."""
    money: Mapping[str, Fraction]
    """In USD by the names of the view; what is not known is absent."""
    why_unpriced: str
    usd: Fraction | None
    """For one base unit of its quote token."""


@dataclass(slots=True)
class _ChainLines:
    name: str
    lines: list[_Line] = field(default_factory=list)
    prices: list[PortfolioPriceView] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    urgent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioDesk:
    """Reads every wallet of every chain; one that fails is named and stops no other."""

    watches: Callable[[], Sequence[Watch]]
    desk_of: Callable[[str], LpDesk]
    labels: Mapping[Address, str]

    async def portfolio(
        self, wallets: Sequence[str] = (), window: str = "7d", chain: str | None = None
    ) -> PortfolioView:
        """Everything watched, or the wallets named (`cold=0x…`), on all chains or on one."""
        seconds = parse_span(window)
        if not SPANS[0] <= seconds <= SPANS[1]:
            raise UsageError(f"A window lasts from 1h to {SPANS[1] // DAY}d, not {plain_text(window, 40)}.")
        watches, labels = self._choose_wallets(wallets, chain)
        if not watches:
            raise UsageError("There is no wallet to look at; give --wallet ADDRESS, or set ZUNO_AGENT_WALLET_ADDRESS.")
        by_chain: dict[str, list[Watch]] = {}
        for watch in watches:
            by_chain.setdefault(watch.chain, []).append(watch)
        reads = await asyncio.gather(*(self._read_wallets(name, mine, labels) for name, mine in by_chain.items()))
        every = [wallet for wallets_read in reads for wallet in wallets_read]
        if every and all(not wallet.complete and not wallet.positions for wallet in every):
            failures = "; ".join(f"{wallet.watch.chain}: {wallet.note}" for wallet in every)
            raise Unavailable(f"Nothing could be read: {failures}.")
        chains = await asyncio.gather(
            *(self._read_chain(name, mine, seconds) for name, mine in zip(by_chain, reads, strict=True))
        )
        return _portfolio_view(every, chains, seconds)

    def _choose_wallets(self, wallets: Sequence[str], chain: str | None) -> tuple[list[Watch], Mapping[Address, str]]:
        watched = list(self.watches())
        if chain is not None:
            name = self.desk_of(chain).chain.info.name
            watched = [watch for watch in watched if watch.chain == name] or [Watch(name)]
        if not wallets:
            return watched, self.labels
        named: dict[Address, str] = {}
        for text in wallets:
            label, _, address = text.rpartition("=")
            owner = arguments.wallet_address(address.strip())
            named[owner] = plain_text(label, 40) if label.strip() else named.get(owner, self.labels.get(owner, ""))
        chains = dict.fromkeys((watch.chain, watch.local) for watch in watched)
        return [Watch(name, owner, local) for name, local in chains for owner in named], {**self.labels, **named}

    async def _read_wallets(
        self, name: str, watches: Sequence[Watch], labels: Mapping[Address, str]
    ) -> list[_WalletRead]:
        reads = []
        for watch in watches:
            read = _WalletRead(watch, watch.wallet or "", "")
            reads.append(read)
            try:
                chain = self.desk_of(name).chain
                owner = await chain.wallet() if watch.wallet is None else watch.wallet
                if owner is None:
                    raise Unavailable("no wallet is configured; set ZUNO_AGENT_WALLET_ADDRESS")
                read.address, read.label = owner, labels.get(owner, "")
                holdings = await chain.holdings(owner)
            except ZunoError as error:
                read.note = to_clause(error)
                continue
            missing = [f"position {gap.id}: {gap.reason}" for gap in holdings.snapshot.missing]
            read.positions = holdings.snapshot.positions
            read.complete = holdings.owned.complete and not missing
            read.missing = max(len(missing), len(holdings.owned.ids) - len(read.positions))
            read.note = "; ".join(filter(None, (holdings.owned.note, *missing)))
        return reads

    async def _read_chain(self, name: str, wallets: Sequence[_WalletRead], seconds: int) -> _ChainLines:
        seen = _ChainLines(name)
        held = {position.id: position for wallet in wallets for position in wallet.positions}
        if not held:
            return seen
        desk, every = self.desk_of(name), list(held.values())
        week = await desk.past.read_figures(every, to_views.YIELD_SECONDS)
        figures = week if seconds == to_views.YIELD_SECONDS else await desk.past.read_window(every, seconds)
        summaries, seen.urgent, _ = await desk.summarise(every, every[0].block, week)
        seen.notes += dict.fromkeys((*week.notes, *figures.notes))
        prices: dict[str, tuple[Fraction | None, str]] = {}
        for wallet in wallets:
            for position in wallet.positions:
                usd, why = await self._usd(desk, position, prices, seen)
                window, life = figures.windows.get(position.id), week.lives.get(position.id)
                unknown = figures.why_no_window.get(position.id, "it holds no liquidity")
                how = unknown if window is None else window.how
                money = {} if usd is None else {name: each * usd for name, each in _sums(position, window, life)}
                seen.lines.append(_Line(wallet, position, summaries[str(position.id)], window, how, money, why, usd))
        return seen

    async def _usd(
        self, desk: LpDesk, position: LpPosition, prices: dict[str, tuple[Fraction | None, str]], seen: _ChainLines
    ) -> tuple[Fraction | None, str]:
        """USD for one base unit of the quote token. A pool of tokens nobody vouches for can have any price."""
        tokens = (position.pool.token0, position.pool.token1)
        for token in tokens:
            if not token.verified:
                return None, f"nobody vouches for {token.display_name} ({token.address})"
        quote = base_and_quote(*tokens)[1]
        if quote.symbol not in prices:
            prices[quote.symbol] = await self._usd_price(desk, quote, position, seen)
        price, why = prices[quote.symbol]
        return None if price is None else price / 10**quote.decimals, why

    async def _usd_price(
        self, desk: LpDesk, token: Token, position: LpPosition, seen: _ChainLines
    ) -> tuple[Fraction | None, str]:
        now = position.block.timestamp
        if is_stable(token):
            fact = Fact(Fraction(1), "counted as one dollar", as_of=now, read_at=now, limit=Seconds(0))
        else:
            prices = desk.feeds_of(position.pool.id).prices
            try:
                fact = await prices.spot(Pair(market_name(token), "USDC"), now)
            except (Unavailable, Malformed) as error:
                return None, to_clause(error)
        if fact.stale:
            return None, f"the newest price of {token.symbol} is {fact.age} s old"
        usd, name = decimal_text(fact.value, to_views.PRICE_DIGITS), token.display_name
        seen.prices.append(derive(PortfolioPriceView, fact, chain=seen.name, token=name, usd=usd, age_seconds=fact.age))
        return fact.value, ""


_PER_DAY: Final = ("fees24h", "lvr24h")
_RESULTS: Final = ("result", "against_holding", "fees")
_MONEY: Final = ("worth", "uncollected", *_PER_DAY, "mean_worth", *_RESULTS)


def _sums(
    position: LpPosition, window: WindowFigures | None, life: LifeFigures | None
) -> Iterator[tuple[str, Fraction]]:
    """What is known of a position, in base units of its quote token."""
    pool, owed = position.pool, (position.fees0, position.fees1)
    whole = (position.amount0 + position.fees0, position.amount1 + position.fees1)
    for name, amounts in (("worth", whole), ("uncollected", owed)):
        yield name, quote_worth(*amounts, pool.sqrt_price_x96, pool.token0, pool.token1)
    if window is not None:
        yield from zip(_PER_DAY, (each * DAY / window.seconds for each in (window.fees, window.lvr)), strict=True)
        yield "mean_worth", window.mean_worth
    if life is not None:
        yield from ((name, getattr(life, name)) for name in _RESULTS)


def _total(lines: Iterable[_Line], name: str) -> Fraction | None:
    """The sum of what is known; None where nothing is."""
    known = [line.money[name] for line in lines if name in line.money]
    return sum(known, Fraction(0)) if known else None


def _portfolio_view(wallets: Sequence[_WalletRead], chains: Sequence[_ChainLines], seconds: int) -> PortfolioView:
    lines = [line for chain in chains for line in chain.lines]
    notes = [note for chain in chains for note in chain.notes]
    if any(line.money for line in lines):
        notes.append("USDC, USDT and DAI count as one dollar each")
    return PortfolioView(
        wallets=tuple(_wallet_view(wallet, lines) for wallet in wallets),
        totals=_totals_view(lines, seconds, wallets),
        positions=tuple(map(_position_view, lines)),
        chains=tuple(_chain_view(chain) for chain in chains if chain.lines),
        prices=tuple(price for chain in chains for price in chain.prices),
        notes=tuple(notes),
        history=tuple(_draw_worth(_count_lineages(lines), seconds)),
        urgent=tuple(dict.fromkeys(warning for chain in chains for warning in chain.urgent)),
    )


def _chain_view(seen: _ChainLines) -> ChainView:
    oldest = min((line.position.block for line in seen.lines), key=lambda block: block.number)
    return ChainView(**to_views.place(seen.name, oldest))


def _wallet_view(wallet: _WalletRead, lines: Sequence[_Line]) -> PortfolioWalletView:
    worth = _total((line for line in lines if line.wallet is wallet), "worth")
    if wallet.complete and not wallet.positions:
        worth = Fraction(0)
    return derive(
        PortfolioWalletView,
        wallet,
        chain=wallet.watch.chain,
        positions=len(wallet.positions),
        worth=_usd_text(worth),
    )


def _position_view(line: _Line) -> PortfolioPositionView:
    position, window = line.position, line.window
    pool, rates = position.pool, (None, None) if window is None else to_views.yields_of(window)
    return derive(
        PortfolioPositionView,
        line,
        **to_views.place_position(position),
        **{name: _usd_text(line.money.get(name)) for name in _MONEY},
        wallet=line.wallet.address,
        label=line.wallet.label,
        in_range=position.in_range,
        price=to_views.price_text(pool.sqrt_price_x96, pool.token0, pool.token1),
        fee_apr=rates[0],
        net_apr=rates[1],
        time_in_range=None if window is None else to_views.rate_of(window.in_range),
        window_hours=None if window is None else round(window.seconds / 3_600, 2),
        position_ids=tuple(map(str, (position.id,) if window is None else window.lineage)),
        quote=base_and_quote(pool.token0, pool.token1)[1].display_name,
    )


def _count_lineages(lines: Iterable[_Line]) -> list[_Line]:
    """Those whose window is known; a lineage of rebalances counts once."""
    counted, seen = list[_Line](), set[tuple[str, int]]()
    for line in lines:
        if line.money and line.window is not None:
            lineage = {(line.position.chain, ancestor) for ancestor in line.window.lineage}
            if not lineage & seen:
                counted.append(line)
            seen |= lineage
    return counted


def _draw_worth(lines: Sequence[_Line], seconds: int) -> Iterator[PortfolioPointView]:
    """Each at its newest price on record by then; nothing before it was opened."""
    known = [(line.window.worths, float(line.usd)) for line in lines if line.window and line.usd is not None]
    if not known:
        return
    end = max(worths[-1][0] for worths, _ in known)
    for place in range(_POINTS + 1):
        at = end - seconds + seconds * place // _POINTS
        moments = ((bisect_right(worths, at, key=itemgetter(0)), worths, usd) for worths, usd in known)
        yield PortfolioPointView(at=at, worth=round(sum(worths[m - 1][1] * usd for m, worths, usd in moments if m), 2))


def _totals_view(lines: Sequence[_Line], seconds: int, wallets: Sequence[_WalletRead]) -> PortfolioTotalsView:
    priced, counted = [line for line in lines if line.money], _count_lineages(lines)
    aged = [line for line in counted if line.window and line.window.seconds >= to_views.YIELD_SECONDS]
    lived = [line for line in priced if "result" in line.money]
    among = {"worth": priced, "uncollected": priced} | dict.fromkeys(_RESULTS, lived)
    sums = {name: _total(among.get(name, counted), name) for name in _MONEY}
    if not lines and all(wallet.complete for wallet in wallets):
        sums |= {"worth": Fraction(0), "uncollected": Fraction(0)}
    fees, lvr, worth = (_total(aged, name) or Fraction(0) for name in (*_PER_DAY, "mean_worth"))
    fee_apr, net_apr = (to_views.rate_of(annual_rate(gain, worth, DAY)) for gain in (fees, fees - lvr))
    unknown = [line.position for line in priced if line.window is None and line.position.liquidity]
    return PortfolioTotalsView(
        **{name: _usd_text(total) for name, total in sums.items()},
        currency=CURRENCY,
        unpriced=tuple(_unpriced_view(line) for line in lines if not line.money),
        fee_apr=fee_apr,
        net_apr=net_apr,
        window_hours=round(seconds / 3_600, 2),
        unknown=tuple(f"{position.id} on {position.chain}" for position in unknown),
        positions=len(lines) + sum(wallet.missing for wallet in wallets),
        worth_of=len(priced),
        result_of=len(lived),
        fees24h_of=len(counted),
        yield_of=len(aged),
    )


def _unpriced_view(line: _Line) -> UnpricedView:
    position, pool = line.position, line.position.pool
    label = to_views.key_view(pool.key, pool.token0, pool.token1).label
    return UnpricedView(id=str(position.id), chain=position.chain, pool=label, why=line.why_unpriced)


def _usd_text(value: Fraction | None) -> str | None:
    return None if value is None else money_text(value * 10**6, 6)
