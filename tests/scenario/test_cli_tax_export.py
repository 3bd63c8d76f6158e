"""`zuno export events`: what a tax office may ask for, of both desks."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from zuno.doors.tax_export import TaxYear, export_taxable_events
from zuno.kernel.taxable import TaxableEvent
from zuno.kernel.units import Millis


def read_rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_rebalance_is_burnt_collected_and_minted(zuno: Any, tmp_path: Path) -> None:
    assert zuno("sim", "move", "--percent", "-6").code == 0
    plan = zuno("lp", "recommend", "rebalance", "1", "--candidate", "2", "--json").document["planId"]
    for step in ("approve", "apply"):
        assert zuno("plan", step, plan, "--yes", "--json").code == 0
    rows = [row for year in ("2025", "2026") for row in read_rows(zuno("export", "events", "--year", year).out)]
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
    of_first = [row for row in rows if row["reference"] == "position 1"]
    assert {row["kind"] for row in of_first} == {"mint", "burn", "collect", "gas"}
    assert {row["kind"] for row in rows if row["reference"] == "position 4"} >= {"mint"}
    assert {row["currency"] for row in rows} == {"USD"}
    pnl = zuno("lp", "pnl", "4", "--json").document
    assert (
        Decimal(pnl["inToken1"]["gas"])
        == pytest.approx(
            -sum(Decimal(row["value"]) for row in rows if row["kind"] == "gas" and row["reference"] != "position 2"),
            abs=Decimal("0.0001"),
        )
        or Decimal(pnl["inToken1"]["gas"]) < 0
    )
    keys = [(row["id"], row["kind"], row["reference"]) for row in rows]
    assert len(keys) == len(set(keys))  # a history holds the positions before it: nothing is listed twice

    rates = tmp_path / "rates.csv"
    rates.write_text("observation_date,DEXUSEU\n" + "".join(f"2026-01-{day:02},1.25\n" for day in range(1, 32)))
    words = ("export", "events", "--year", "2026", "--currency", "eur", "--rates", str(rates))
    in_euro = {(row["id"], row["kind"], row["reference"]): row for row in read_rows(zuno(*words).out)}
    for row in rows:
        euro = in_euro.get((row["id"], row["kind"], row["reference"]))
        if euro is not None:
            assert euro["currency"] == "EUR"
            assert Decimal(euro["value"]) == pytest.approx(Decimal(row["value"]) / Decimal("1.25"), abs=Decimal("1e-5"))
    assert in_euro


def test_without_rates_values_stay_in_dollars_and_it_is_noted(zuno: Any) -> None:
    view = zuno("export", "events", "--year", "2026", "--currency", "EUR", "--json").document
    place = view["columns"].index("currency")
    assert {row[place] for row in view["rows"]} == {"USD"}
    assert any("ZUNO_FRED_API_KEY" in note for note in view["notes"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--year", "1999"), 2),
        (("--year", "soon"), 2),
        ((), 2),
        (("--year", "2026", "--currency", "DOGE"), 2),
        (("--year", "2026", "--timezone", "Mars/Base"), 2),
        (("--year", "2026", "--timezone", "../etc"), 2),
        (("--year", "2026", "--chain", "nowhere"), 2),
        (("--year", "2026", "--rates", "missing.csv"), 3),
    ],
)
def test_bad_requests_have_exit_codes(zuno: Any, words: tuple[str, ...], code: int) -> None:
    assert zuno("export", "events", *words).code == code


@pytest.mark.parametrize(
    "content", [b"", b"date\n", b"date,DEXUSEU\n2026-01-01\n", b"date,DEXUSEU\nsoon,1\n", b"\xff\xfe"]
)
def test_a_file_that_holds_no_rates_is_refused(zuno: Any, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "rates.csv"
    file.write_bytes(content)
    ran = zuno("export", "events", "--year", "2026", "--currency", "EUR", "--rates", str(file), "--json")
    assert (ran.code, ran.document["error"]["kind"]) == (2, "usage")


def test_currency_and_time_zone_are_those_of_the_settings(zuno: Any, tmp_path: Path) -> None:
    rates = tmp_path / "rates.csv"
    rates.write_text("date,DEXUSEU\n" + "".join(f"2026-01-{day:02},1.25\n" for day in range(1, 32)))
    words = ("export", "events", "--year", "2026", "--rates", str(rates))
    set_here = {"ZUNO_REPORTING_CURRENCY": "eur", "ZUNO_TIME_ZONE": "Asia/Seoul"}
    rows = read_rows(zuno(*words, **set_here).out)
    assert {(row["currency"], row["time"][-6:]) for row in rows} == {("EUR", "+09:00")}
    rows = read_rows(zuno(*words, "--currency", "USD", "--timezone", "UTC", **set_here).out)
    assert {(row["currency"], row["time"][-6:]) for row in rows} == {("USD", "+00:00")}


@pytest.mark.parametrize(("account", "notes"), [("demo", 1), ("live", 0)])
async def test_money_that_is_none_is_said(account: str, notes: int) -> None:
    event = TaxableEvent(Millis(1_767_225_600_000), "fee", "BINANCE", account, (), (), None, "", "", "")

    async def answer(value: object, *given: object) -> Any:
        return value

    desk = SimpleNamespace(
        list_exchange_accounts=partial(answer, (account,)), list_taxable_events=partial(answer, (event,))
    )
    home: Any = SimpleNamespace(account=lambda name=None: desk, list_chains=tuple)
    view = await export_taxable_events(home, TaxYear(2026, "UTC", "USD"), None, None, None, None)
    assert len(view.rows) == 1
    assert len([note for note in view.notes if "no money moved" in note]) == notes
