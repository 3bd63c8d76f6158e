"""Taxable events of both desks, and the rates that put them into one currency."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final, Literal, NamedTuple

from zuno.kernel.errors import Malformed, UsageError
from zuno.kernel.units import Millis

TaxableKind = Literal["trade", "pnl", "fee", "funding", "swap", "mint", "burn", "collect", "gas", "adjustment"]
"""`trade`: a fill. `pnl`: what closing a futures position realised, before fees and funding. `adjustment`: a difference
to the venue that its owner adopted."""
_STALE: Final = timedelta(days=7)
"""A rate of a day without one is that of the last day before it, within a week."""
_CONTEXT: Final = Context(prec=40, rounding=ROUND_HALF_EVEN)

USD_PER: Final[Mapping[str, str]] = {"EUR": "DEXUSEU", "GBP": "DEXUSUK", "AUD": "DEXUSAL", "NZD": "DEXUSNZ"}
"""FRED's series in dollars for one unit."""
PER_USD: Final[Mapping[str, str]] = {
    "KRW": "DEXKOUS", "JPY": "DEXJPUS", "CHF": "DEXSZUS", "CAD": "DEXCAUS", "CNY": "DEXCHUS", "SEK": "DEXSDUS",
    "NOK": "DEXNOUS", "DKK": "DEXDNUS", "SGD": "DEXSIUS", "HKD": "DEXHKUS", "INR": "DEXINUS", "BRL": "DEXBZUS",
    "MXN": "DEXMXUS", "TWD": "DEXTAUS", "THB": "DEXTHUS", "ZAR": "DEXSFUS", "MYR": "DEXMAUS",
}  # fmt: skip
"""FRED's series in units for one dollar."""
CURRENCIES: Final = ("USD", *USD_PER, *PER_USD)


def parse_currency(text: str) -> str:
    """`UsageError` for one without daily rates."""
    currency = text.strip().upper()
    if currency not in CURRENCIES:
        raise UsageError(f"There are no daily rates of this currency; write one of {', '.join(CURRENCIES)}.")
    return currency


class Amount(NamedTuple):
    quantity: Decimal
    asset: str


@dataclass(frozen=True, slots=True)
class TaxableEvent:
    at: Millis
    kind: TaxableKind
    venue: str
    """The exchange or the chain."""
    account: str
    """The trading account, or the wallet."""
    received: tuple[Amount, ...]
    given: tuple[Amount, ...]
    value: Amount | None
    """What moved, in dollars, won or a coin that has a dollar price; None: nobody can say."""
    source: str
    """Where the value comes from."""
    id: str
    """Transaction hash, or the venue's id of the fill or payment."""
    reference: str
    """The order, trade or position it belongs to."""


class FiatRates:
    """Daily exchange rates to the dollar."""

    def __init__(self, per_usd: Mapping[str, Mapping[date, Decimal]], source: str) -> None:
        """`per_usd`: by currency, units for one dollar by day."""
        self._days = {currency: sorted(days) for currency, days in per_usd.items()}
        self._per_usd = per_usd
        self._source = source

    def convert(self, amount: Amount, day: date, currency: str) -> tuple[Decimal, str] | None:
        """The amount in another currency at the day's rates, and which rates; None where one is missing."""
        value, used = amount.quantity, []
        for unit, multiply in ((amount.asset, False), (currency, True)):
            if unit == "USD" or amount.asset == currency:
                continue
            rate = self._find_rate(unit, day)
            if rate is None:
                return None
            value = _CONTEXT.multiply(value, rate[1]) if multiply else _CONTEXT.divide(value, rate[1])
            used.append(f"{self._source} {unit} per USD of {rate[0]}")
        return value, "; ".join(used)

    def _find_rate(self, currency: str, day: date) -> tuple[date, Decimal] | None:
        days = self._days.get(currency, [])
        place = bisect_right(days, day)
        if place == 0 or day - days[place - 1] > _STALE:
            return None
        return days[place - 1], self._per_usd[currency][days[place - 1]]


NO_RATES: Final = FiatRates({}, "")


def read_series(series: str, rows: Sequence[tuple[date, Decimal]]) -> tuple[str, dict[date, Decimal]]:
    """A currency and its units for one dollar by day, from a series by FRED's name, `EUR_PER_USD` or `USD_PER_EUR`.
    `Malformed` for another name or a rate that is not above zero."""
    names = {name: (currency, True) for currency, name in USD_PER.items()}
    names |= {name: (currency, False) for currency, name in PER_USD.items()}
    names |= {f"USD_PER_{currency}": (currency, True) for currency in CURRENCIES}
    names |= {f"{currency}_PER_USD": (currency, False) for currency in CURRENCIES}
    if series.upper() not in names:
        raise Malformed(f"{series!r} is not a rate: name it as FRED does (DEXUSEU) or as USD_PER_EUR, EUR_PER_USD.")
    currency, inverse = names[series.upper()]
    if any(not rate.is_finite() or rate <= 0 for _, rate in rows):
        raise Malformed(f"A rate of {series} is not above zero.")
    return currency, {day: _CONTEXT.divide(Decimal(1), rate) if inverse else rate for day, rate in rows}
