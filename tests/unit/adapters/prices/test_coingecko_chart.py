"""Reading a market chart: which rows count, which are refused, and which hour a row closes."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zuno.adapters.prices.coingecko import Observation, hourly_closes, parse_chart
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Seconds
from zuno.lp.model.market import HOUR

# The form of https://docs.coingecko.com/v3.0.1/reference/coins-id-market-chart: rows of [milliseconds, number],
# hourly ones stamped seconds to minutes after the hour, the last one at the time of asking.
CHART = (
    b'{"prices":[[1767229266845,2976.4413869871934],[1767232946430,2981.0],[1767236494402,2969.96]],'
    b'"market_caps":[[1767229266845,359241065537.90063],[1767232946430,359801286751.31885],[1767236494402,3.58e11]],'
    b'"total_volumes":[[1767229266845,25119903547.056973],[1767232946430,25750000000.1],[1767236494402,2.6e10]]}'
)
QUARTER_MS = 900_000


def chart(prices: object) -> bytes:
    return json.dumps({"prices": prices, "market_caps": [], "total_volumes": []}).encode()


def test_prices_keep_every_digit_that_was_sent() -> None:
    assert parse_chart(CHART, "ethereum") == (
        Observation(1767229266845, Decimal("2976.4413869871934")),
        Observation(1767232946430, Decimal("2981.0")),
        Observation(1767236494402, Decimal("2969.96")),
    )


@pytest.mark.parametrize("renamed", [b"price", b"Prices", b"prices_usd"])
def test_a_renamed_field_is_malformed(renamed: bytes) -> None:
    with pytest.raises(Malformed, match="prices"):
        parse_chart(CHART.replace(b"prices", renamed), "ethereum")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Just a moment...</html>",
        CHART[:100],
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"prices":[[1,' + b"9" * 5000 + b"]]}",
    ],
    ids=["empty", "html", "cut", "bytes", "deep", "long integer"],
)
def test_what_is_not_json_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed, match="not JSON"):
        parse_chart(body, "ethereum")


@pytest.mark.parametrize("body", [b"null", b"[]", b"3", b'"prices"', b"{}", b'{"prices":null}', b'{"prices":{"1":2}}'])
def test_another_shape_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed, match="prices"):
        parse_chart(body, "ethereum")


@pytest.mark.parametrize(
    "row",
    [
        "[1767229266845,0]",
        "[1767229266845,-2976.4]",
        "[1767229266845,-0.0]",
        "[1767229266845,true]",
        '[1767229266845,"2976.4"]',
        "[1767229266845,[2976.4]]",
        "[1767229266845]",
        "[1767229266845,2976.4,1]",
        "[1767229266.845,2976.4]",
        '["1767229266845",2976.4]',
        "[true,2976.4]",
        "[-1,2976.4]",
        "[null,2976.4]",
        "[-1,null]",
        "{}",
        "null",
        "2976.4",
        "[1767229266845,1e400]",
        "[1767229266845,1e-400]",
        "[1767229266845,1e999999999]",
        "[1767229266845,1." + "1" * 5000 + "]",
        "[1767229266845,1" + "0" * 40 + "]",
    ],
)
def test_a_row_that_is_not_a_time_and_a_price_is_malformed_and_named(row: str) -> None:
    body = b'{"prices":[[1767225600000,1.5],' + row.encode() + b"]}"
    with pytest.raises(Malformed, match="row 1"):
        parse_chart(body, "ethereum")


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e99999999999999999999"])
def test_what_json_has_no_number_for_is_malformed(constant: str) -> None:
    with pytest.raises(Malformed):
        parse_chart(b'{"prices":[[1767225600000,' + constant.encode() + b"]]}", "ethereum")


@pytest.mark.parametrize(
    "body",
    [
        # An error in a body of HTTP 200; the form of https://docs.coingecko.com/v3.0.1/reference/common-errors-rate-limit
        b'{"status":{"error_code":429,"error_message":"slower, please"}}',
        b'{"error":{"status":{"timestamp":"2026-03-05T08:16:12.383+00:00","error_code":10012,"error_message":"older"}}}',
        b'{"error":"coin not found"}',
    ],
)
def test_a_refusal_dressed_as_success_is_unavailable(body: bytes) -> None:
    with pytest.raises(Unavailable, match=r"declined.*ethereum"):
        parse_chart(body, "ethereum")


def test_rows_out_of_order_are_sorted_and_of_two_at_one_time_the_later_row_holds() -> None:
    rows = [[3000, 3], [1000, 1], [2000, 2], [1000, 10]]
    assert [(seen.at_ms, seen.usd) for seen in parse_chart(chart(rows), "dai")] == [(1000, 10), (2000, 2), (3000, 3)]


def test_a_null_price_is_a_price_the_service_does_not_have() -> None:
    assert parse_chart(chart([[1000, None], [2000, 2]]), "dai") == (Observation(2000, Decimal(2)),)


def test_an_empty_chart_is_an_answer() -> None:
    assert parse_chart(chart([]), "dai") == ()


def at(*stamps: int) -> list[Observation]:
    """Observations whose price tells which one it is."""
    return [Observation(stamp, Decimal(number + 1)) for number, stamp in enumerate(stamps)]


NOON = 490_908 * HOUR
LATER = Seconds(NOON + 5 * HOUR)


def test_a_row_minutes_after_the_hour_closes_that_hour() -> None:
    assert hourly_closes(at(NOON * 1000 + 66_845), LATER) == {NOON: 1}


def test_rows_slipping_over_the_edge_of_an_hour_make_no_gap() -> None:
    stamps = [NOON * 1000 + 2_000, (NOON + HOUR) * 1000 - 3_000, (NOON + 2 * HOUR) * 1000 + 5_000]
    assert hourly_closes(at(*stamps), LATER) == {NOON: 1, NOON + HOUR: 2, NOON + 2 * HOUR: 3}


def test_the_nearest_row_closes_the_hour_and_of_two_equally_near_the_earlier() -> None:
    assert hourly_closes(at(NOON * 1000 - 60_000, NOON * 1000 + 10_000, NOON * 1000 + 700_000), LATER) == {NOON: 2}
    assert hourly_closes(at(NOON * 1000 - 60_000, NOON * 1000 + 60_000), LATER) == {NOON: 1}


@pytest.mark.parametrize(
    ("offset", "closes"), [(QUARTER_MS, 1), (QUARTER_MS + 1, 0), (-QUARTER_MS, 1), (-QUARTER_MS - 1, 0)]
)
def test_a_row_further_than_a_quarter_from_the_hour_closes_none(offset: int, closes: int) -> None:
    assert len(hourly_closes(at(NOON * 1000 + offset), LATER)) == closes


@pytest.mark.parametrize("now", [NOON - 1, NOON, NOON + 66])
def test_what_is_dated_after_now_is_not_used(now: int) -> None:
    assert hourly_closes(at(NOON * 1000 + 66_845), Seconds(now)) == {}


def test_an_hour_that_has_not_ended_has_no_close_even_if_a_row_is_near_its_end() -> None:
    assert hourly_closes(at(NOON * 1000 - 5_000), Seconds(NOON - 1)) == {}
    assert hourly_closes(at(NOON * 1000 - 5_000), Seconds(NOON)) == {NOON: 1}


@given(
    stamps=st.lists(st.integers((NOON - 5 * HOUR) * 1000, (NOON + 5 * HOUR) * 1000), unique=True, max_size=40),
    now=st.integers(NOON - 4 * HOUR, NOON + 6 * HOUR),
)
@example(stamps=[], now=NOON)
def test_alignment_agrees_with_searching_every_hour(stamps: list[int], now: int) -> None:
    observations = at(*sorted(stamps))
    expected = {}
    for hour in range(NOON - 6 * HOUR, now + 1, HOUR):
        near = [
            (abs(seen.at_ms - hour * 1000), seen.at_ms, seen.usd)
            for seen in observations
            if abs(seen.at_ms - hour * 1000) <= QUARTER_MS and seen.at_ms <= now * 1000
        ]
        if near:
            expected[hour] = min(near)[2]
    assert hourly_closes(observations, Seconds(now)) == expected
