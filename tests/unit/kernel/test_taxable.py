"""Rates that put taxable events into one currency."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.kernel.errors import Malformed
from zuno.kernel.taxable import CURRENCIES, PER_USD, USD_PER, Amount, FiatRates, read_series

FRIDAY = date(2026, 1, 2)
RATES = FiatRates(
    dict(
        [
            read_series("DEXUSEU", [(FRIDAY, Decimal("1.25"))]),
            read_series("KRW_PER_USD", [(FRIDAY, Decimal(1_400)), (FRIDAY + timedelta(3), Decimal(1_500))]),
        ]
    ),
    "file",
)


@pytest.mark.parametrize(
    ("amount", "day", "currency", "value"),
    [
        (Amount(Decimal(100), "USD"), FRIDAY, "EUR", "80"),
        (Amount(Decimal(-100), "USD"), FRIDAY + timedelta(2), "EUR", "-80"),  # a weekend has Friday's rate
        (Amount(Decimal(2_800), "KRW"), FRIDAY, "USD", "2"),
        (Amount(Decimal(3_000), "KRW"), FRIDAY + timedelta(3), "EUR", "1.6"),
        (Amount(Decimal(7), "KRW"), date(1999, 1, 1), "KRW", "7"),  # its own currency needs no rate
        (Amount(Decimal(100), "USD"), FRIDAY - timedelta(1), "EUR", None),
        (Amount(Decimal(100), "USD"), FRIDAY + timedelta(8), "EUR", None),  # older than a week
        (Amount(Decimal(100), "USD"), FRIDAY, "CHF", None),
    ],
)
def test_an_amount_is_converted_by_the_rate_of_its_day(
    amount: Amount, day: date, currency: str, value: str | None
) -> None:
    converted = RATES.convert(amount, day, currency)
    assert (None if converted is None else converted[0]) == (None if value is None else Decimal(value))


@given(
    st.decimals("0.0001", "100000", places=4),
    st.sampled_from([*USD_PER, *PER_USD]),
    st.decimals(-(10**6), 10**6, places=2),
)
def test_there_and_back_is_the_same_amount(rate: Decimal, currency: str, quantity: Decimal) -> None:
    """Whichever way a series is quoted."""
    for name in (f"USD_PER_{currency}", f"{currency}_PER_USD"):
        rates = FiatRates(dict([read_series(name, [(FRIDAY, rate)])]), "file")
        there = rates.convert(Amount(quantity, "USD"), FRIDAY, currency)
        assert there is not None
        expected = quantity / rate if name.startswith("USD") else quantity * rate
        assert abs(there[0] - expected) <= abs(expected) * Decimal("1e-20")
        back = rates.convert(Amount(there[0], currency), FRIDAY, "USD")
        assert back is not None
        assert abs(back[0] - quantity) <= abs(quantity) * Decimal("1e-30")


@pytest.mark.parametrize(("series", "rate"), [("DEXMOON", "1"), ("EURUSD", "1"), ("DEXUSEU", "0"), ("DEXUSEU", "NaN")])
def test_what_is_no_rate_is_malformed(series: str, rate: str) -> None:
    with pytest.raises(Malformed):
        read_series(series, [(FRIDAY, Decimal(rate))])


def test_every_currency_has_one_series() -> None:
    names = [*USD_PER.values(), *PER_USD.values()]
    assert len(names) == len(set(names)) == len(CURRENCIES) - 1
