"""What has to be there before the desk trades at an exchange. Everything that is missing is named at once."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import product
from typing import Literal, NamedTuple

from zuno.kernel.accounts import DEMO_ACCOUNT, LIVE_ACCOUNT, account_mode, short_name
from zuno.kernel.clock import iso
from zuno.kernel.errors import Refused, UsageError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol, describe_venue
from zuno.markets.venues import Venue, sort_venues
from zuno.trading.model.cycle import EvPolicy
from zuno.trading.model.market import DAY_MS
from zuno.trading.model.sleeves import CASH_CARRY, DEBATE, DEBATE_ALONE, TREND
from zuno.trading.model.trade_events import Mandate, MandatedSleeve, MandateGranted
from zuno.trading.ports.trade_log import TradeRecord
from zuno.trading.rules.calibration import LIVE_TRADES, list_closed_trades
from zuno.trading.rules.performance import AccountLog
from zuno.trading.rules.trading_book import TradingBook

Confirm = Callable[[str, str], bool]
"""Asks a person to type a word: the word, and what it means. False: it was not typed."""


@dataclass(frozen=True, slots=True)
class LiveBackends:
    enabled: bool
    market_live: bool
    policy: EvPolicy
    demo: Callable[[Venue], bool]
    """Whether the keys of the venue's own settings are of demo trading."""
    keys: Callable[[str], Mapping[Venue, str]]
    """The settings that hold the keys of an account's venues."""
    keyed: Callable[[str], Sequence[Venue]]
    routed: Sequence[Venue]
    """Venues that a route goes to."""
    find_stale: Callable[[Venue], Awaitable[str | None]]
    """Why the venue's list of markets does not serve for live orders, if so. It is read again first."""
    log: AccountLog
    record: TradeRecord
    """Of paper trades that were ruled in real time."""
    find_failures: Callable[[], Awaitable[Sequence[str]]]
    """The failing lines of `zuno doctor --live`, without those about keys and mandate that are not there."""
    now: Callable[[], Millis]
    find_transfer_gap: Callable[[str, Venue, Venue], Awaitable[str | None]]
    """Why money may not be moved from an account's spot wallet into the margin of its perpetuals, if so."""


@dataclass(frozen=True, slots=True)
class RecordGate:
    """How far the record is that live trades on: the closed trades of the judge with the most."""

    closed: int
    days: float | None
    """Until there are enough, at the pace of those that are closed; None before two trades and a day are behind it."""

    @property
    def open(self) -> bool:
        return self.closed >= LIVE_TRADES

    def __str__(self) -> str:
        if self.open or self.days is None:
            return f"{self.closed} of {LIVE_TRADES}" + ("" if self.open else ", no pace yet")
        left = f"{max(2, self.days):.0f} days" if self.days < 60 else f"{self.days / 30.44:.0f} months"
        return f"{self.closed} of {LIVE_TRADES}, at this pace about {left}"


def parse_mandated_sleeve(word: str) -> MandatedSleeve:
    """`trend:0.6:0.25`: the name, its share, and the largest fall."""
    name, _, rest = plain_text(word, 80).partition(":")
    share, _, fall = rest.partition(":")
    try:
        figures = Decimal(share), Decimal(fall)
    except InvalidOperation:
        raise UsageError(f"{plain_text(word, 80)!r} is no sleeve of a mandate; write trend:0.6:0.25.") from None
    if not all(figure.is_finite() and 0 < figure <= 1 for figure in figures):
        raise UsageError(f"Share and largest fall of {name} are above 0 and at most 1, as in trend:0.6:0.25.")
    return MandatedSleeve(name=name, share=figures[0], max_drawdown=figures[1])


Piece = Literal["setting", "market", "keys", "mandate", "list", "doctor"]


class MissingPiece(NamedTuple):
    """Something that a start at an exchange needs, and how it is got."""

    piece: Piece
    text: str


@dataclass(frozen=True, slots=True)
class StartPermit:
    """The account that may be traded, and what is to be said about it."""

    account: str
    notes: tuple[str, ...] = ()
    watch_only: str | None = None
    """Why nothing may be opened: what is held is watched, protected and closed. None where entries may be."""

    @property
    def option(self) -> str | None:
        """As `--account` names it."""
        return None if account_mode(self.account) == "paper" else self.account


class LiveStart:
    """Judges whether the desk may trade at an exchange. It opens nothing."""

    def __init__(self, backends: LiveBackends) -> None:
        self._with = backends

    async def permit(
        self, account: str, symbols: Sequence[Symbol], origin: str, paper: str, confirm: Confirm
    ) -> StartPermit:
        """The account itself; or, where live has no record yet to trade on, the paper account, which is said. What is
        held there is looked after without a mandate or a record, too, and nothing is opened then.

        `Refused` with everything that is missing, or where the word was not typed.
        """
        book = await self._with.log.history(account)
        over = self._why_mandate_is_over(book.mandate) if _is_in_use(book) else None
        missing = await self.find_missing(account, symbols)
        if _is_in_use(book):  # what is held is looked after whatever may be opened
            over = over or next((found.text for found in missing if found.piece in ("list", "doctor")), None)
            missing = [found for found in missing if over is None or found.piece not in ("mandate", "list", "doctor")]
        if missing:
            raise Refused(
                f"{account_mode(account).upper()} trading is not started, and nothing was opened. Missing: "
                + "; ".join(f"({number}) {found.text}" for number, found in enumerate(missing, 1))
                + ". Without --live the desk trades on paper."
            )
        if over is not None:
            return self._permit_watch(account, over, confirm)
        granted = book.mandate
        assert granted is not None
        limits = tuple(map(describe_venue, granted.mandate.venues))
        if account_mode(account) == "demo":
            return StartPermit(account, ("DEMO: orders go to the exchange's demo trading, without money", *limits))
        record = await self.read_record(origin, account)
        if not record.open:
            short = f"live needs trades of one judge that were closed in real time: {record}"
            if core := [sleeve.name for sleeve in granted.mandate.sleeves if sleeve.name != DEBATE]:
                limits = (f"{', '.join(core)} alone: the debate opens nothing; {short}", *limits)
            elif _is_in_use(book):
                return self._permit_watch(account, short, confirm)
            else:
                return StartPermit(paper, (f"PAPER: {short}, and until then the desk trades on paper",))
        mandate = granted.mandate
        what = (
            f"The desk trades {', '.join(symbols)} with REAL MONEY at {', '.join(mandate.venues)} under the mandate "
            f"{granted.hash[:16]}…: at most ${mandate.max_margin_per_trade_usd:,.2f} of margin per trade, "
            f"${mandate.max_margin_per_day_usd:,.2f} per day, ${mandate.max_daily_loss_usd:,.2f} of loss per day."
        )
        if not confirm("live", what):
            raise Refused("The word was not typed; nothing was opened.")
        said = f"LIVE: orders are placed with real money, under mandate {granted.hash[:16]}…"
        return StartPermit(account, (said, *limits))

    def _permit_watch(self, account: str, why: str, confirm: Confirm) -> StartPermit:
        what = "what is held is watched, protected and closed, and nothing is opened"
        terms = f"The desk looks after REAL MONEY: {what}, because {why}."
        if account_mode(account) == "live" and not confirm("live", terms):
            raise Refused("The word was not typed; nothing was begun.")
        return StartPermit(account, (f"WATCH ONLY: {why}; {what}",), why)

    async def find_missing(self, account: str, symbols: Sequence[Symbol]) -> list[MissingPiece]:
        """Everything that stands between the account and its first order; a person's word is asked for last."""
        missing: list[MissingPiece] = []
        here, live, named = self._with, account_mode(account) == "live", account not in (LIVE_ACCOUNT, DEMO_ACCOUNT)
        if live and not here.enabled:
            missing.append(MissingPiece("setting", "ZUNO_LIVE=1"))
        if not here.market_live:
            missing.append(MissingPiece("market", "ZUNO_MARKET=live"))
        book = await self._with.log.history(account)
        granted, used = book.mandate, list_used_exchanges(book)
        keys, keyed = here.keys(account), tuple(here.keyed(account))
        good = self._why_mandate_is_over(granted) is None
        usual = tuple(keys)[:1] if granted is None else granted.mandate.venues
        wanted = used if used and not good else usual
        for exchange in wanted:
            setting = f"ZUNO_{exchange.house.upper()}_DEMO"
            if live and not named and here.demo(exchange):
                text = f"keys of the real {exchange.label}: {setting} is set (`--account demo` trades there)"
                missing.append(MissingPiece("keys", text))
            elif not live and not named and exchange.sandbox and not here.demo(exchange):
                text = f"{setting}=true, with keys of the demo trading of {exchange.label}"
                missing.append(MissingPiece("setting", text))
            elif exchange not in keyed:
                where = keys.get(exchange, f"the account {account} is none of {exchange.label}")
                missing.append(MissingPiece("keys", f"keys for {exchange}: {where}"))
            elif live and good and (stale := await here.find_stale(exchange)) is not None:
                missing.append(MissingPiece("list", stale))
        if wanted and not used and not any(exchange in here.routed for exchange in wanted):
            text = f"a route to {', '.join(wanted)}, as ZUNO_ROUTE_BINANCE={wanted[0].lower()}"
            missing.append(MissingPiece("setting", text))
        missing += [MissingPiece("mandate", text) for text in self._judge_mandate(account, symbols, granted)]
        failures = await here.find_failures()
        return missing + [MissingPiece("doctor", f"`zuno doctor --live` fails: {line}") for line in failures]

    async def list_sleeves(self, account: str, planned: Iterable[str] = ()) -> tuple[str, ...]:
        """Those that an account trades or is to trade: with a share, or named by its mandate; before it has either,
        those that are `planned`."""
        book = await self._with.log.history(account)
        if book.mandate is None and book.shares == DEBATE_ALONE and planned:
            return tuple(planned)
        mandated = () if book.mandate is None else (sleeve.name for sleeve in book.mandate.mandate.sleeves)
        return tuple(dict.fromkeys((*mandated, *book.shares)))

    async def find_sleeve_gaps(self, account: str, sleeve: str, origin: str) -> list[str]:
        """Everything that stands between a sleeve and its first order with money, beside what every order needs."""
        granted, keyed = (await self._with.log.history(account)).mandate, self._with.keyed(account)
        venues = tuple(self._with.keys(account))[:1] if granted is None else granted.mandate.venues
        gaps = []
        named = granted is not None and any(each.name == sleeve for each in granted.mandate.sleeves)
        if (over := self._why_mandate_is_over(granted)) is not None:
            gaps.append(f"a mandate that is good now ({over})")
        elif not named and sleeve != DEBATE:
            gaps.append(f"a mandate that names it: `zuno trade mandate grant --account {account} --sleeve {sleeve}:…`")
        if sleeve == DEBATE and not (record := await self.read_record(origin, account)).open:
            gaps.append(f"closed trades in real time: {record}")
        if sleeve == CASH_CARRY:
            return [*gaps, *await self._find_carry_gaps(account, venues, keyed)]
        if not any(venue in keyed for venue in venues):
            gaps.append(f"keys of a spot or perpetual venue that the mandate names: {', '.join(venues)}")
        watched = granted is not None and granted.mandate.stops == "watched"
        if sleeve == TREND and not watched and not any(venue.holds_stops for venue in venues):
            gaps.append(f"`--stops watched` in the mandate, because {venues[0]} has no stop orders")
        return gaps

    async def _find_carry_gaps(self, account: str, venues: Sequence[Venue], keyed: Sequence[Venue]) -> list[str]:
        sides = product((each for each in venues if each.spot), (each for each in venues if each.shorts))
        pairs = [(a, b) for a, b in sides if (a.house, a.currency) == (b.house, b.currency)]
        if not pairs:
            return ["the spot and the perpetuals of one exchange in the mandate"]
        both = [pair for pair in pairs if all(venue in keyed for venue in pair)]
        if not both:
            return [f"keys for {' and '.join(venue for venue in pairs[0] if venue not in keyed)}"]
        whys = [await self._with.find_transfer_gap(account, spot, perpetual) for spot, perpetual in both]
        return [] if None in whys else [why for why in whys[:1] if why]

    def _judge_mandate(self, account: str, symbols: Sequence[Symbol], granted: MandateGranted | None) -> list[str]:
        grant = f"`zuno trade mandate grant --account {account}`"
        if granted is None:
            return [f"a mandate: {grant}"]
        mandate = granted.mandate
        if self._why_mandate_is_over(granted) is not None:
            return [f"a mandate that is good now, not until {iso(mandate.expires)}: {grant}"]
        stands, demo = ", ".join(mandate.symbols), account_mode(account) == "demo"
        strange = (symbol for symbol in symbols if symbol not in mandate.symbols)
        found = [f"a mandate for {symbol}; the one that stands is for {stands}: {grant}" for symbol in strange]
        if self._with.policy == "seed" != mandate.policy and not demo:
            found.append(f"`--policy seed` in the mandate, or ZUNO_EV=record: {grant}")
        unfit = (venue for venue in mandate.venues if demo and not venue.sandbox)
        found += [f"a mandate without {venue}, which has no demo trading: {grant}" for venue in unfit]
        watched = [venue for venue in mandate.venues if not venue.holds_stops]
        if watched and mandate.stops != "watched" and not demo:
            found.append(f"`--stops watched` in the mandate, because {watched[0]} has no stop orders: {grant}")
        return found

    def _why_mandate_is_over(self, granted: MandateGranted | None) -> str | None:
        if granted is None:
            return "no mandate stands"
        mandate = granted.mandate
        if mandate.granted <= self._with.now() < mandate.expires:
            return None
        return f"the mandate is good from {iso(mandate.granted)} to {iso(mandate.expires)}"

    async def read_record(self, origin: str, account: str = LIVE_ACCOUNT) -> RecordGate:
        """Of the market's paper account in real time, and of the account itself."""
        now, groups = self._with.now(), dict[str, list[Millis]]()
        own = list_closed_trades((await self._with.log.history(account)).closed, now)
        for trade in (*await self._with.record.closed_trades(origin, now), *own):
            groups.setdefault(trade.judge, []).append(trade.closed)
        closed = max(groups.values(), key=len, default=[])
        span = (now - min(closed, default=now)) / DAY_MS
        paced = len(closed) > 1 and span >= 1
        return RecordGate(len(closed), max(0, LIVE_TRADES - len(closed)) * span / len(closed) if paced else None)


def find_traded_exchanges(mandates: Sequence[Mandate]) -> tuple[Venue, ...]:
    """Exchanges that a mandate of the account ever opened: what is held there is watched when it has ended, too."""
    named = ((mandate, venue) for mandate in mandates for venue in mandate.venues)
    return sort_venues(venue for mandate, venue in named if venue.holds_stops or mandate.stops == "watched")


def check_account_choice(account: str | None, *, live: bool) -> str | None:
    """The account that is meant; `UsageError` where `--live` and `--account` contradict each other."""
    money = account is not None and account_mode(account) == "live"
    if live and account is not None and not money:
        raise UsageError(f"--live trades with money, which {short_name(account)} does not.")
    if money and not live:
        raise UsageError(f"The account {short_name(account or '')} trades with money: say --live.")
    return account or (LIVE_ACCOUNT if live else None)


def _is_in_use(book: TradingBook) -> bool:
    return bool(book.positions or book.open_orders or book.open_intents)


def list_used_exchanges(book: TradingBook) -> tuple[Venue, ...]:
    used = {trade.exchange for trade in book.trades.values()}
    used |= {order.request.exchange for order in book.open_orders.values()}
    used |= {leg.exchange for tracked in book.open_intents.values() for leg in tracked.intent.legs}
    return sort_venues(used)
