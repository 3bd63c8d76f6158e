"""Exchange rates of currencies: from FRED, or from a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

from zuno.adapters.venues.macro import Fred
from zuno.kernel.errors import Malformed, NotFound, Unavailable, UsageError
from zuno.kernel.taxable import PER_USD, USD_PER, FiatRates, read_series

_MOST_BYTES: Final = 20_000_000
_NO_RATE: Final = frozenset({"", ".", "ND"})
"""How FRED and the Federal Reserve write a day without a rate."""


async def fetch_rates(fred: Fred, currencies: Sequence[str], first: date, last: date) -> FiatRates:
    series = {**USD_PER, **PER_USD}
    names = [series[currency] for currency in currencies]
    return FiatRates(
        dict([read_series(name, await fred.read_rates(name, first, last)) for name in names]), "FRED's noon rate,"
    )


def read_rates_file(file: Path) -> FiatRates:
    """A header, then a row for each day: the date first, a rate in each other column. `UsageError` names the line."""
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{file} has more than {_MOST_BYTES // 1_000_000} MB; that is no file of rates.")
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError as error:
        raise NotFound(f"There is no file {file}.") from error
    except OSError as error:
        raise Unavailable(f"{file} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text.") from error
    header, *rows = csv.reader(lines) if lines else [[]]
    if len(header) < 2:
        raise UsageError(f"{file}: the first line names the columns, as in date,DEXUSEU.")
    columns: list[list[tuple[date, Decimal]]] = [[] for _ in header[1:]]
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        try:
            day = date.fromisoformat(row[0].strip())
            for column, text in zip(columns, row[1:], strict=True):
                if text.strip() not in _NO_RATE:
                    column.append((day, Decimal(text.strip())))
        except (ValueError, InvalidOperation) as error:
            raise UsageError(
                f"{file}, line {number}: expected a date (2026-01-31) and {len(columns)} rates."
            ) from error
    try:
        series = dict(read_series(name.strip(), column) for name, column in zip(header[1:], columns, strict=True))
    except Malformed as error:
        raise UsageError(f"{file}: {error}") from error
    return FiatRates(series, file.name)
