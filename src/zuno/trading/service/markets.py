"""What venues list: markets with their rules, where each list comes from and how old it is."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from zuno.kernel import arguments
from zuno.kernel.errors import NotFound, ZunoError
from zuno.kernel.numbers_text import format_span, plain_digits
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.kernel.view import ForeignText, IsoTime, VerdictView, View
from zuno.markets.market import Catalogue, Market, describe_limits, describe_unit
from zuno.markets.venues import VENUES, Kind, Venue, find_near, parse_venue
from zuno.present.document import Document, document, table
from zuno.present.values import amount, bad, count, foreign, hours, percent, quiet
from zuno.trading.model.known import derive
from zuno.trading.model.market import SECOND_MS

MOST_SHOWN: Final = 60
"""Markets that a screen lists."""


class MarketRowView(View):
    name: ForeignText
    kind: Kind
    tick: float
    lot: float
    min_notional: float
    """The least order, in `quote`."""
    quote: ForeignText
    base: ForeignText
    maker: float
    """Of the notional, in per cent."""
    taker: float
    funding_hours: int
    """Between two payments of funding; 0: there are none."""
    contract_size: float
    trading: bool
    """False: it was listed once, and nothing can be ordered."""


class VenueListView(View):
    venue: Venue
    source: str
    """The venue itself, or the built-in rules where its list was never read."""
    read_at: IsoTime | None
    age_seconds: int | None
    stale: bool
    """It does not serve for live orders."""
    markets: int
    limits: tuple[str, ...]
    """What the venue cannot do."""
    failure: ForeignText = ""
    """Why it was not read just now, if so; the list of before stays."""
    skipped: tuple[ForeignText, ...] = ()
    """Markets without a tick or a lot, which are left out."""


class MarketsView(VerdictView):
    """`ok` false: a venue that was asked did not answer; exit code 4."""

    lists: tuple[VenueListView, ...]
    markets: tuple[MarketRowView, ...]

    def to_document(self) -> Document:
        rows = (
            (
                foreign(market.name),
                amount(plain_digits(Decimal(f"{market.tick:.12g}")), "", exact=True),
                amount(plain_digits(Decimal(f"{market.lot:.12g}")), "", exact=True),
                foreign(f"{market.min_notional:,.10g} {market.quote}"),
                percent(market.maker, 3),
                percent(market.taker, 3),
                hours(market.funding_hours or None),
                quiet("trading") if market.trading else bad("not traded"),
            )
            for market in self.markets[:MOST_SHOWN]
        )
        lists = (
            (
                listed.venue.lower(),
                listed.source,
                quiet("–")
                if listed.age_seconds is None
                else (bad if listed.stale else quiet)(format_span(listed.age_seconds)),
                count(listed.markets),
                bad("not for live orders") if listed.stale else quiet("for live orders too"),
                "; ".join(listed.limits),
            )
            for listed in self.lists
        )
        more = len(self.markets) - MOST_SHOWN
        return document(
            f"Markets: {len(self.markets):,} at {len(self.lists)} venue{'s' * (len(self.lists) != 1)}",
            table(
                ("market", "tick", "lot", "least order", "maker", "taker", "funding", "state"),
                rows,
                spare=("state", "funding", "maker", "taker"),
            )
            if self.markets
            else None,
            table(("venue", "list", "age", "markets", "use", "limits"), lists, spare=("use", "limits")),
            urgent=(foreign(f"{listed.venue.lower()}: {listed.failure}") for listed in self.lists if listed.failure),
            notes=(
                f"{more:,} more; --search, --venue and --kind choose" if more > 0 else "",
                "built-in rules are assumed, ticks in other currencies above all; `--refresh` reads the venues' lists"
                if any(listed.read_at is None for listed in self.lists)
                else "",
                *map(foreign, filter(None, dict.fromkeys(describe_unit(market.base) for market in self.markets))),
                *(
                    foreign(f"{listed.venue.lower()} lists markets without a tick or lot: {', '.join(listed.skipped)}")
                    for listed in self.lists
                    if listed.skipped
                ),
            ),
        )


@dataclass(frozen=True, slots=True)
class MarketDesk:
    """The catalogue of a home. `ask`: one venue's list, from itself."""

    read: Callable[[], Catalogue]
    renew: Callable[[Venue, Sequence[Market], Millis], object]
    """Keep a venue's list as it was read at a moment, beside those of the others."""
    ask: Callable[[Venue], Awaitable[Sequence[Market]]]
    now: Callable[[], Millis]

    async def list(
        self, venue: str | None = None, kind: str | None = None, search: str = "", *, refresh: bool = False
    ) -> MarketsView:
        """`NotFound` with the nearest names where nothing is called so."""
        place = None if venue is None else parse_venue(venue)
        of_kind = None if kind is None else arguments.parse_word(Kind, kind, "kind of market; write spot or perp")
        places = [asked for asked in VENUES if place in (None, asked) and of_kind in (None, asked.kind)]
        failures, skipped = dict[Venue, str](), dict[Venue, tuple[str, ...]]()
        if refresh:
            answers = await asyncio.gather(*(self._ask(asked) for asked in places))
            for asked, answer in zip(places, answers, strict=True):
                if isinstance(answer, str):
                    failures[asked] = answer
                    continue
                usable = [market for market in answer if market.usable]
                skipped[asked] = tuple(f"{market.base}/{market.quote}" for market in answer if market not in usable)
                if usable:
                    self.renew(asked, usable, self.now())
                else:
                    failures[asked] = "its list holds no market that can be traded"
        catalogue = self.read()
        markets = list(catalogue.search(place, of_kind, search))
        if search and not markets:
            bases = {market.base for market in catalogue.search(place, of_kind)}
            near = find_near(search.upper(), sorted(bases), 3, 0.4)
            names = f"; the nearest: {', '.join(near)}" if near else ""
            raise NotFound(f"No market is called {plain_text(search, 40)!r}{names}.")
        lists = (self._view_list(catalogue, asked, failures.get(asked, ""), skipped.get(asked, ())) for asked in places)
        rows = (derive(MarketRowView, market) for market in markets)
        return MarketsView(ok=not failures, lists=tuple(lists), markets=tuple(rows))

    async def _ask(self, venue: Venue) -> Sequence[Market] | str:
        try:
            return await self.ask(venue)
        except ZunoError as error:
            return str(error)

    def _view_list(self, catalogue: Catalogue, venue: Venue, failure: str, skipped: tuple[str, ...]) -> VenueListView:
        at, now = catalogue.read_at.get(venue), self.now()
        return VenueListView(
            venue=venue,
            source="built-in rules" if at is None else "the venue's own",
            read_at=at,
            age_seconds=None if at is None else max(0, now - at) // SECOND_MS,
            stale=catalogue.find_stale(venue, now) is not None,
            markets=len(catalogue.list_at(venue)),
            limits=describe_limits(venue),
            failure=failure,
            skipped=skipped,
        )
