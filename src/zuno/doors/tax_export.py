"""Taxable events of both desks in one table, with their value in one currency."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from zuno.doors.export import ExportView
from zuno.kernel.errors import Unavailable, UsageError, ZunoError
from zuno.kernel.taxable import CURRENCIES, NO_RATES, Amount, FiatRates, TaxableEvent, parse_currency
from zuno.kernel.text import plain_text
from zuno.pushes.rules import parse_zone
from zuno.trading.model.trade_events import account_mode

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno

_FIRST_YEAR: Final = 2009
_LAST_YEAR: Final = 2100
_CONTEXT: Final = Context(prec=40)
_CENTS: Final = Decimal("1e-6")
_WEEK: Final = timedelta(days=7)
_LOCAL: Final = frozenset({"sim", "devnet"})
COLUMNS: Final = (
    *("time", "kind", "venue", "account", "received", "received_asset", "received2", "received2_asset"),
    *("given", "given_asset", "given2", "given2_asset", "value", "currency", "value_source", "id", "reference"),
)


class TaxYear:
    """A calendar year of a time zone, and the currency of its values. `UsageError` for one that does not exist."""

    def __init__(self, year: int, timezone: str, currency: str) -> None:
        if not _FIRST_YEAR <= year < _LAST_YEAR:
            raise UsageError(f"--year is between {_FIRST_YEAR} and {_LAST_YEAR - 1}.")
        self.currency, self.zone = parse_currency(currency), parse_zone(timezone)
        self.first, self.last = date(year, 1, 1), date(year, 12, 31)

    def day_of(self, at: int) -> date:
        return datetime.fromtimestamp(at / 1_000, self.zone).date()

    def holds(self, event: TaxableEvent) -> bool:
        return self.first <= self.day_of(event.at) <= self.last


async def export_taxable_events(
    zuno: Zuno, year: TaxYear, rates: Path | None, account: str | None, wallet: str | None, chain: str | None
) -> ExportView:
    """Every taxable event of a year, oldest first. A value that cannot be converted stays as it is, with a note."""
    events, notes = await _list_events(zuno, account, wallet, chain)
    events = sorted((event for event in events if year.holds(event)), key=lambda event: event.at)
    known = await _read_rates(zuno, year, rates, events, notes)
    rows, kept, unknown = [], set[str](), 0
    for event in events:
        value, source = await _in_dollars(zuno, event)
        if value is None:
            unknown += 1
        elif (converted := known.convert(value, year.day_of(event.at), year.currency)) is None:
            kept.add(value.asset)
        else:
            value = Amount(converted[0], year.currency)
            source = "; ".join(filter(None, (source, converted[1])))
        worth = ("", "") if value is None else (_plain(value.quantity.quantize(_CENTS, context=_CONTEXT)), value.asset)
        time = datetime.fromtimestamp(event.at / 1_000, year.zone).isoformat(timespec="seconds")
        amounts = (*_amount_cells(event.received), *_amount_cells(event.given))
        rows.append((time, event.kind, event.venue, event.account, *amounts, *worth, source, event.id, event.reference))
    if kept:
        notes.append(f"no rate to {year.currency} of the day or the week before: left in {', '.join(sorted(kept))}")
    if unknown:
        notes.append(f"{unknown} events have no value: their tokens have no price here")
    return ExportView(what="events", columns=COLUMNS, rows=tuple(rows), notes=tuple(notes))


async def _list_events(
    zuno: Zuno, account: str | None, wallet: str | None, chain: str | None
) -> tuple[list[TaxableEvent], list[str]]:
    accounts = (account,) if account is not None else await zuno.account().list_exchange_accounts() or (None,)
    events: list[TaxableEvent] = []
    notes: list[str] = []
    for name in accounts:
        own = await zuno.account(name).list_taxable_events()
        events += own
        if own and (mode := account_mode(own[0].account)) != "live":
            notes.append(f"{own[0].account} is a {mode} account: no money moved")
    for name in (chain,) if chain is not None else zuno.list_chains():
        if name in _LOCAL:
            notes.append(f"{name} is a local chain: no money moved")
        try:
            listed, unread = await zuno.lp(name).list_taxable_events(wallet)
        except (UsageError, Unavailable) as error:
            if chain is not None:
                raise
            listed, unread = [], [f"{name}: {plain_text(str(error), 300)}"]
        events += listed
        notes += unread
    return events, notes


async def _read_rates(
    zuno: Zuno, year: TaxYear, file: Path | None, events: Sequence[TaxableEvent], notes: list[str]
) -> FiatRates:
    """None where none are needed; where FRED gives none, values stay in dollars and won."""
    assets = {event.value.asset for event in events if event.value is not None}
    needed = {year.currency, *("KRW" for asset in assets if asset == "KRW")} - {"USD"}
    if file is not None:
        return await zuno.read_rates((), year.first, year.last, file)
    if not needed or assets == {year.currency}:
        return NO_RATES
    try:
        return await zuno.read_rates(sorted(needed), year.first - _WEEK, year.last, None)
    except ZunoError as error:
        notes.append(f"no exchange rates, values stay in USD and KRW: {plain_text(str(error), 300)}")
        return NO_RATES


async def _in_dollars(zuno: Zuno, event: TaxableEvent) -> tuple[Amount | None, str]:
    """The event's value, of a coin in dollars at the hour's close."""
    value = event.value
    if value is None or value.asset in CURRENCIES:
        return value, event.source
    price = await zuno.account().read_hour_close(value.asset, event.at)
    if price is None:
        return None, ""
    close = f"{value.asset} at the hour's close of BINANCE"
    return Amount(value.quantity * price, "USD"), "; ".join(filter(None, (event.source, close)))


def _amount_cells(amounts: Sequence[Amount]) -> tuple[str, ...]:
    cells = [cell for amount in amounts for cell in (_plain(amount.quantity), amount.asset)]
    return (*cells, *[""] * (4 - len(cells)))


def _plain(quantity: Decimal) -> str:
    text = format(quantity, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
