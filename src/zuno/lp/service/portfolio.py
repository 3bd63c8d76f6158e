"""All positions of all watched wallets in one currency: worth, fees, rates and time in range."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from pydantic import Field

from zuno.amm.model import LpPosition, quote_worth
from zuno.kernel.arguments import parse_span
from zuno.kernel.errors import Broken, Malformed, Unavailable, UsageError, ZunoError
from zuno.kernel.numbers_text import decimal_text, money_text, short_text
from zuno.kernel.text import Token, base_and_quote, is_stable, plain_text
from zuno.kernel.units import Address, HexId, Seconds
from zuno.kernel.view import View
from zuno.kernel.wire import derive
from zuno.lp.model.chains import market_name
from zuno.lp.model.history import PricedBlock
from zuno.lp.model.market import Fact, Pair
from zuno.lp.ports.chain import Chain
from zuno.lp.ports.market import Feeds
from zuno.lp.ports.samples import PoolSample, Samples
from zuno.lp.rules.portfolio import WindowFigures, annual_rate, fees_from_samples, figures_of_history, figures_of_window
from zuno.lp.service import arguments, to_views
from zuno.lp.service.views import ChainView, PoolKeyView, bare_amount, draw_ranges, warn_unverified
from zuno.lp.watch.alerts import chain_label
from zuno.lp.watch.monitor import Watch, to_clause
from zuno.present.document import Act, Document, Facts, Mark, Tone, Value, document, facts, lines, section, table
from zuno.present.values import amount, bad, count, foreign, good, hours, id_, quiet, share

CURRENCY: Final = "USD"
DAY: Final = 86_400
SPANS: Final = (3_600, 30 * DAY)
LEAST_SECONDS: Final = 3_600
"""A rate of less time than this is noise."""
MOST_HISTORIES: Final = 10
"""Positions of a chain that changed in the window and are read one by one; further ones are left out and named."""
SAMPLE_REACH: Final = Fraction(1, 8)


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

    @property
    def reference(self) -> str:
        return f"{self.id} on {self.chain}"

    @property
    def cells(self) -> tuple[str | Value, ...]:
        return (
            id_(self.id),
            self.chain,
            name_wallet(self.label, self.wallet),
            self.pool.name,
            good("in") if self.in_range else bad("out"),
            bare_amount(self.worth, CURRENCY),
            bare_amount(self.uncollected, CURRENCY),
            bare_amount(self.fees24h, CURRENCY),
            bare_amount(self.lvr24h, CURRENCY),
            share(self.fee_apr),
            share(self.net_apr),
            share(self.time_in_range),
        )


_COLUMNS: Final = (
    *("position", "chain", "wallet", "pool", "range", "worth"),
    *("uncollected", "fees/day", "LVR/day", "fee APR", "net APR", "time in range"),
)
_SPARE: Final = ("wallet", "uncollected", "fee APR", "chain", "LVR/day", "time in range", "fees/day", "pool")


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

    def to_facts(self) -> Facts:
        return facts(
            ("worth", amount(self.worth, self.currency)),
            ("uncollected fees", amount(self.uncollected, self.currency)),
            ("fees per day", amount(self.fees24h, self.currency)),
            ("LVR per day", amount(self.lvr24h, self.currency)),
            ("fee APR", share(self.fee_apr)),
            ("net APR, after LVR", share(self.net_apr)),
            ("window", hours(self.window_hours)),
        )


class PortfolioView(View):
    wallets: tuple[PortfolioWalletView, ...]
    totals: PortfolioTotalsView
    positions: tuple[PortfolioPositionView, ...]
    chains: tuple[ChainView, ...]
    """Where positions were found, and the oldest block they were read at."""
    prices: tuple[PortfolioPriceView, ...]
    notes: tuple[str, ...]

    def to_document(self) -> Document:
        totals, known = self.totals, self.positions
        worth = "unknown" if totals.worth is None else f"{short_text(totals.worth)} {totals.currency}"
        out = ", ".join(line.reference for line in known if not line.in_range)
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
            totals.to_facts(),
            section(
                "Positions",
                table(_COLUMNS, (line.cells for line in known), spare=_SPARE) if known else None,
                draw_ranges(spans),
            ),
            section("Wallets", *(wallet.to_facts() for wallet in self.wallets)),
            lines(*warn_unverified(line.pool for line in known), mark=Mark.WARNING),
            context=f"{', '.join(labels)} · Portfolio in {totals.currency}",
            urgent=[
                *([bad(f"out of range: position {out}")] if out else []),
                *(foreign(wallet.trouble, Tone.BAD) for wallet in self.wallets if not wallet.complete),
            ],
            notes=(
                *(foreign(wallet.note) for wallet in self.wallets if wallet.complete),
                *unpriced,
                *unknown,
                *map(foreign, self.notes),
            ),
            acts=(Act("Positions", "lp positions"), Act("Alerts", "alerts")),
        )


@dataclass(slots=True)
class _WalletRead:
    watch: Watch
    address: str
    label: str
    positions: tuple[LpPosition, ...] = ()
    complete: bool = False
    note: str = ""


@dataclass(slots=True)
class _Line:
    """A position with what it is worth in USD and what its window shows in its own quote token."""

    wallet: _WalletRead
    position: LpPosition
    usd: Fraction | None
    """USD for one base unit of its quote token."""
    why_unpriced: str
    figures: WindowFigures | None
    why_unknown: str

    @property
    def reference(self) -> str:
        return f"{self.position.id} on {self.position.chain}"

    def in_usd(self, amount: Fraction) -> Fraction | None:
        return None if self.usd is None else amount * self.usd

    def worth(self, *, fees: bool, principal: bool) -> Fraction | None:
        position, pool = self.position, self.position.pool
        amount0 = position.amount0 * principal + position.fees0 * fees
        amount1 = position.amount1 * principal + position.fees1 * fees
        return self.in_usd(quote_worth(amount0, amount1, pool.sqrt_price_x96, pool.token0, pool.token1))


@dataclass(slots=True)
class _ChainLines:
    name: str
    lines: list[_Line] = field(default_factory=list)
    prices: list[PortfolioPriceView] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioDesk:
    """Reads every wallet of every chain; one that fails is named and stops no other."""

    watches: Callable[[], Sequence[Watch]]
    chain_of: Callable[[str], Chain]
    feeds_of: Callable[[Chain, HexId], Feeds]
    samples: Samples
    labels: Mapping[Address, str]

    async def portfolio(
        self, wallets: Sequence[str] = (), window: str = "24h", chain: str | None = None
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
            name = self.chain_of(chain).info.name
            watched = [watch for watch in watched if watch.chain == name] or [Watch(name)]
        if not wallets:
            return watched, self.labels
        labels = dict(self.labels)
        for text in wallets:
            label, _, address = text.rpartition("=")
            owner = arguments.wallet_address(address.strip())
            labels[owner] = plain_text(label, 40) if label.strip() else labels.get(owner, "")
        named = [arguments.wallet_address(text.rpartition("=")[2].strip()) for text in wallets]
        chains = dict.fromkeys((watch.chain, watch.local) for watch in watched)
        return [Watch(name, owner, local) for name, local in chains for owner in dict.fromkeys(named)], labels

    async def _read_wallets(
        self, name: str, watches: Sequence[Watch], labels: Mapping[Address, str]
    ) -> list[_WalletRead]:
        reads = []
        for watch in watches:
            read = _WalletRead(watch, watch.wallet or "", "")
            reads.append(read)
            try:
                chain = self.chain_of(name)
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
            read.note = "; ".join(filter(None, (holdings.owned.note, *missing)))
        return reads

    async def _read_chain(self, name: str, wallets: Sequence[_WalletRead], seconds: int) -> _ChainLines:
        seen = _ChainLines(name)
        held = {position.id: position for wallet in wallets for position in wallet.positions}
        if not held:
            return seen
        chain = self.chain_of(name)
        working = [position for position in held.values() if position.liquidity]
        figures, reasons = await self._figures(chain, working, seconds, seen)
        prices: dict[str, tuple[Fraction | None, str]] = {}
        for wallet in wallets:
            for position in wallet.positions:
                usd, why = await self._usd(chain, position, prices, seen)
                unknown = "" if position.id in figures else reasons.get(position.id, "it holds no liquidity")
                seen.lines.append(_Line(wallet, position, usd, why, figures.get(position.id), unknown))
        return seen

    async def _figures(
        self, chain: Chain, positions: Sequence[LpPosition], seconds: int, seen: _ChainLines
    ) -> tuple[dict[int, WindowFigures], dict[int, str]]:
        """What each position did in the window: fee growth at both ends of it, else our own samples, else its history
        where it changed in between."""
        if not positions:
            return {}, {}
        since = Seconds(positions[0].block.timestamp - seconds)
        try:
            window = await chain.window(positions, since)
            fees, paths, how = window.fees, window.paths, "fee growth at both ends of the window"
        except (Unavailable, Malformed) as error:
            seen.notes.append(f"{seen.name}: {to_clause(error)}")
            return await self._from_samples(positions, since)
        known, reasons = dict[int, WindowFigures](), dict[int, str]()
        changed = [position for position in positions if position.id not in fees]
        for position in positions:
            if position.id in fees:
                figures = figures_of_window(position, fees[position.id], paths[position.pool.id], how)
                _keep(position.id, figures, known, reasons)
        for place, position in enumerate(changed):
            if place >= MOST_HISTORIES:
                reasons[position.id] = (
                    f"it changed in the window: `zuno lp pnl {position.id} --since 24h` has its figures"
                )
                continue
            try:
                history = await chain.history(position.id, max(since, window.opened.timestamp))
                figures = figures_of_history(history, "its history in the window")
            except (Unavailable, Malformed, Broken) as error:
                reasons[position.id] = to_clause(error)
                continue
            _keep(position.id, figures, known, reasons)
        return known, reasons

    async def _from_samples(
        self, positions: Sequence[LpPosition], since: Seconds
    ) -> tuple[dict[int, WindowFigures], dict[int, str]]:
        known, reasons = dict[int, WindowFigures](), dict[int, str]()
        kept: dict[HexId, tuple[PoolSample, ...]] = {}
        for position in positions:
            pool, now = position.pool, position.block
            if pool.id not in kept:
                try:
                    kept[pool.id] = await self.samples.pools(position.chain, pool.id, since, now.timestamp)
                except (Unavailable, Broken) as error:
                    reasons[position.id] = to_clause(error)
                    continue
            samples = kept[pool.id]
            late = Fraction(samples[0].block.timestamp - since, now.timestamp - since) if samples else Fraction(1)
            if late > SAMPLE_REACH:
                reasons[position.id] = "the past is not kept by this node, nor in our own samples"
                continue
            path = [PricedBlock(sample.block, sample.sqrt_price_x96) for sample in samples]
            how = "own samples, as if its liquidity had been the same throughout"
            figures = figures_of_window(position, fees_from_samples(samples, position), path, how)
            _keep(position.id, figures, known, reasons)
        return known, reasons

    async def _usd(
        self, chain: Chain, position: LpPosition, prices: dict[str, tuple[Fraction | None, str]], seen: _ChainLines
    ) -> tuple[Fraction | None, str]:
        """USD for one base unit of the quote token. A pool of tokens nobody vouches for can have any price."""
        tokens = (position.pool.token0, position.pool.token1)
        for token in tokens:
            if not token.verified:
                return None, f"nobody vouches for {token.display_name} ({token.address})"
        quote = base_and_quote(*tokens)[1]
        if quote.symbol not in prices:
            prices[quote.symbol] = await self._usd_price(chain, quote, position, seen)
        price, why = prices[quote.symbol]
        return None if price is None else price / 10**quote.decimals, why

    async def _usd_price(
        self, chain: Chain, token: Token, position: LpPosition, seen: _ChainLines
    ) -> tuple[Fraction | None, str]:
        now = position.block.timestamp
        if is_stable(token):
            fact = Fact(Fraction(1), "counted as one dollar", as_of=now, read_at=now, limit=Seconds(0))
        else:
            prices = self.feeds_of(chain, position.pool.id).prices
            try:
                fact = await prices.spot(Pair(market_name(token), "USDC"), now)
            except (Unavailable, Malformed) as error:
                return None, to_clause(error)
        if fact.stale:
            return None, f"the newest price of {token.symbol} is {fact.age} s old"
        usd, name = decimal_text(fact.value, to_views.PRICE_DIGITS), token.display_name
        seen.prices.append(derive(PortfolioPriceView, fact, chain=seen.name, token=name, usd=usd, age_seconds=fact.age))
        return fact.value, ""


def _keep(
    position_id: int, figures: WindowFigures | None, known: dict[int, WindowFigures], reasons: dict[int, str]
) -> None:
    if figures is None or figures.seconds < LEAST_SECONDS:
        reasons[position_id] = "it has been in the pool for less than an hour"
    else:
        known[position_id] = figures


def _portfolio_view(wallets: Sequence[_WalletRead], chains: Sequence[_ChainLines], seconds: int) -> PortfolioView:
    lines = [line for chain in chains for line in chain.lines]
    notes = [note for chain in chains for note in chain.notes]
    if any(line.usd is not None for line in lines):
        notes.append("USDC, USDT and DAI count as one dollar each")
    return PortfolioView(
        wallets=tuple(_wallet_view(wallet, lines) for wallet in wallets),
        totals=_totals_view(lines, seconds, complete=all(wallet.complete for wallet in wallets)),
        positions=tuple(map(_position_view, lines)),
        chains=tuple(_chain_view(chain) for chain in chains if chain.lines),
        prices=tuple(price for chain in chains for price in chain.prices),
        notes=tuple(notes),
    )


def _chain_view(seen: _ChainLines) -> ChainView:
    oldest = min((line.position.block for line in seen.lines), key=lambda block: block.number)
    return ChainView(chain=seen.name, block=oldest.number, timestamp=oldest.timestamp)


def _wallet_view(wallet: _WalletRead, lines: Sequence[_Line]) -> PortfolioWalletView:
    worths = [line.worth(fees=True, principal=True) for line in lines if line.wallet is wallet]
    nothing = Fraction(0) if wallet.complete and not wallet.positions else None
    worth = _usd_text(_sum_known([*worths, nothing]))
    return derive(PortfolioWalletView, wallet, chain=wallet.watch.chain, positions=len(wallet.positions), worth=worth)


def _position_view(line: _Line) -> PortfolioPositionView:
    position, figures = line.position, line.figures
    window = dict.fromkeys(_WINDOW_FIELDS) if figures is None else _window_fields(line, figures)
    pool = position.pool
    return PortfolioPositionView(
        **to_views.place_position(position),
        wallet=line.wallet.address,
        label=line.wallet.label,
        in_range=position.in_range,
        price=to_views.price_text(pool.sqrt_price_x96, pool.token0, pool.token1),
        worth=_usd_text(line.worth(fees=True, principal=True)),
        uncollected=_usd_text(line.worth(fees=True, principal=False)),
        **window,
        position_ids=tuple(map(str, (position.id,) if figures is None else figures.lineage)),
        how=line.why_unknown if figures is None else figures.how,
        quote=base_and_quote(pool.token0, pool.token1)[1].display_name,
    )


_WINDOW_FIELDS: Final = ("fees24h", "lvr24h", "mean_worth", "fee_apr", "net_apr", "time_in_range", "window_hours")


def _window_fields(line: _Line, figures: WindowFigures) -> dict[str, Any]:
    per_day, worth = Fraction(DAY, figures.seconds), figures.mean_worth
    amounts = (figures.fees * per_day, figures.lvr * per_day, worth)
    gains = (annual_rate(gain, worth, figures.seconds) for gain in (figures.fees, figures.fees - figures.lvr))
    rates = (_rate(rate) for rate in (*gains, figures.in_range))
    texts = (_usd_text(line.in_usd(amount)) for amount in amounts)
    return dict(zip(_WINDOW_FIELDS, (*texts, *rates, round(figures.seconds / 3_600, 2)), strict=True))


def _totals_view(lines: Sequence[_Line], seconds: int, *, complete: bool) -> PortfolioTotalsView:
    priced = [line for line in lines if line.usd is not None]
    counted, unknown, seen = list[tuple[_Line, WindowFigures]](), list[str](), set[tuple[str, int]]()
    for line in priced:
        figures = line.figures
        if figures is None:
            unknown += [line.reference] if line.position.liquidity else []
            continue
        lineage = {(line.position.chain, ancestor) for ancestor in figures.lineage}
        if not lineage & seen:  # a lineage of rebalances counts once
            counted.append((line, figures))
        seen |= lineage
    fees, lvr, mean_worth = Fraction(0), Fraction(0), Fraction(0)
    for line, figures in counted:
        usd, per_day = line.usd or Fraction(0), Fraction(DAY, figures.seconds)
        fees += figures.fees * per_day * usd
        lvr += figures.lvr * per_day * usd
        mean_worth += figures.mean_worth * usd
    sums = [_sum_known([line.worth(fees=True, principal=with_it) for line in priced]) for with_it in (True, False)]
    if not lines and complete:
        sums = [Fraction(0), Fraction(0)]
    return PortfolioTotalsView(
        currency=CURRENCY,
        worth=_usd_text(sums[0]),
        uncollected=_usd_text(sums[1]),
        unpriced=tuple(map(_unpriced_view, (line for line in lines if line.usd is None))),
        fees24h=_usd_text(fees) if counted else None,
        lvr24h=_usd_text(lvr) if counted else None,
        mean_worth=_usd_text(mean_worth) if counted else None,
        fee_apr=_rate(annual_rate(fees, mean_worth, DAY)),
        net_apr=_rate(annual_rate(fees - lvr, mean_worth, DAY)),
        window_hours=round(seconds / 3_600, 2),
        unknown=tuple(unknown),
    )


def _unpriced_view(line: _Line) -> UnpricedView:
    pool = line.position.pool
    return UnpricedView(
        id=str(line.position.id),
        chain=line.position.chain,
        pool=to_views.key_view(pool.key, pool.token0, pool.token1).label,
        why=line.why_unpriced,
    )


def _sum_known(values: Sequence[Fraction | None]) -> Fraction | None:
    """The sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known, Fraction(0)) if known else None


def _usd_text(value: Fraction | None) -> str | None:
    return None if value is None else money_text(value * 10**6, 6)


def _rate(value: Fraction | None) -> float | None:
    return None if value is None else float(decimal_text(value, 6))
