"""The page of a run: whole by itself, true to its run, and deaf to what strangers write."""

from __future__ import annotations

from base64 import b64encode
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.wire.told import PNG, board, decided, held, left, outcome, spoilt, told
from zuno.kernel.numbers_text import format_number, format_signed, format_span
from zuno.trading.model.cycle import Call, Chart, MissingInput, TradeCard
from zuno.trading.model.market import Side
from zuno.trading.service.features_view import format_absent
from zuno.trading.service.report import build_report
from zuno.trading.service.run_view import feed_ages

VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
FETCHING = frozenset("script link iframe object embed base form video audio".split())
ATTACK = "</td></style><script>alert('x')</script><img src=x onerror=alert(1)>{{ 7 * 7 }}&lt;\" onload='a"


class Page(HTMLParser):
    """Checks that every element is closed where it was opened, and gathers what could reach out."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.outward: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name.startswith("on") or (name in ("src", "href") and not str(value).startswith("data:image/png;")):
                self.outward.append(f"{tag} {name}={value}")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> was never opened"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def page(**changed: Any) -> Page:
    return Page(build_report(told(**changed)).page)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"ruling": held()},
        {"decision": decided(Call.HOLD), "expectation": None, "ruling": held(veto=None, changes=())},
        {"decision": decided(Call.CANCEL_AND_CLOSE), "expectation": None, "ruling": left()},
        {"board": board(vlm_geometry=None, liquidity=None, synthesis=None), "chart": None, "picture": None},
        {"degraded": (), "anomalies": (), "voices": ()},
    ],
)
def test_a_page_is_whole_and_needs_nothing_beside_itself(changed: dict[str, Any]) -> None:
    found = page(**changed)
    assert found.open == []
    assert found.outward == []
    assert not FETCHING & set(found.tags)
    text = build_report(told(**changed)).page
    assert "url(" not in text
    assert "@import" not in text


def test_it_tells_what_was_decided_and_what_it_rests_on() -> None:
    words = page().words
    for said in (
        "SYNTHETIC seed 1",
        "▲ LONG",
        "SIDEWAYS_ACCUMULATION",
        "In a range the book speaks first.",
        "liquidity ⇄ macro",
        "Against it:",
        "a macro print breaks 92,400",
        "93,600",
        "+0.243 %",
        "cro_volatility",
        "12 % of the equity as margin, at 2×",
        "PASSIVE_MAKER",
        "1 STALE",
        "rules: the model failed",
        "claude-sonnet-4-6",
        outcome().hash,
    ):
        assert said in words, said


def test_a_ruling_that_was_held_says_by_what() -> None:
    words = page(ruling=held()).words
    assert "■ HOLD" in words
    assert "▲ LONG" in words


def test_an_exit_says_what_it_ends() -> None:
    words = page(decision=decided(Call.CANCEL_AND_CLOSE), expectation=None, ruling=left()).words
    for said in ("position pos_1", "▼ short", "0.02", "order ord_2", "▲ long", "0.5"):
        assert said in words, said


@pytest.mark.slow
def test_the_picture_is_inside() -> None:
    text = build_report(told()).page
    assert f"data:image/png;base64,{b64encode(PNG).decode()}" in text
    assert "data:image" not in build_report(told(picture=None)).page


CARD = TradeCard(
    side=Side.LONG,
    entry=93_600.0,
    stop=92_289.6,
    target=95_827.7,
    stop_pct=-1.4,
    target_pct=2.38,
    quantity=0.004,
    notional_usd=374.4,
    margin_usd=187.2,
    leverage=2.0,
    loss_at_stop_usd=5.71,
    loss_at_stop_pct=0.14,
    reward_risk=1.7,
    liquidation=47_268.0,
    hold="5d",
    duration_hours=31.4,
    fair=0.37,
    edge=0.08,
    ev_pct=-0.12,
    gross_pct=0.0,
    fees_pct=0.07,
    slippage_pct=0.03,
    funding_pct=0.02,
    llm_cost_pct=0.0,
    fill=1.0,
    exploration=True,
)


def test_the_trade_card_stands_in_the_ruling() -> None:
    words = page(ruling=outcome().ruling.model_copy(update={"card": CARD})).words
    for said in (
        "EXPLORATION",
        "entry 93,600",
        "stop loss 92,289.60 −1.40 %",
        "take profit 95,827.70 +2.38 %",
        "reward:risk 1.70",
        "quantity 0.004 BTC",
        "notional $374.40",
        "loss at stop $5.71 0.14 % of equity",
        "liquidation price 47,268",
        "expected time 31.4 h 5d at most",
        "fair rate 37.0 %",
        "edge +8.0 points",
        "EV −0.120 %",
        "0.000 edge · −0.070 fees · −0.030 slippage · −0.020 funding · 0.000 models",
    ):
        assert said in words, said


def test_the_trade_is_drawn_on_the_page_and_named_for_what_it_is() -> None:
    opened = outcome().ruling.model_copy(update={"card": CARD})
    for ruling, name in ((opened, "The trade on the last bars"), (held(), "The trade that was not opened")):
        made = build_report(told(ruling=ruling), PNG + b"trade")
        assert made.trade == PNG + b"trade"
        assert b64encode(PNG + b"trade").decode() in made.page
        assert name in Page(made.page).words
    assert "The trade" not in page().words


def test_a_rationale_is_told_once() -> None:
    said = "4h structure points up, and nothing is against it"
    plain = outcome()
    macro = plain.board.macro
    assert macro is not None
    changed = plain.board.model_copy(update={"macro": macro.model_copy(update={"rationale": said})})
    decision = decided()
    repeated = decision.model_copy(
        update={
            "key_factors": [f"macro: {said}.", "something else"],
            "reasoning": decision.reasoning.model_copy(update={"technical": f"{said}."}),
        }
    )
    words = page(board=changed, decision=repeated).words
    assert words.count(said) == 1
    assert "something else" in words


def test_what_is_no_picture_is_not_shown_as_one() -> None:
    made = build_report(told(chart=Chart(sha256="0" * 64, media_type="text/plain")))
    assert made.image is None
    assert "data:" not in made.page.replace("img-src data:", "")


def test_a_market_that_was_not_invented_has_no_banner() -> None:
    text = build_report(told(origin="binance and others")).page
    assert "SYNTHETIC" not in text
    assert "binance and others" in text


@pytest.mark.slow
def test_what_a_stranger_writes_is_text_and_nothing_else() -> None:
    calm, found = Page(build_report(spoilt("calm")).page), Page(build_report(spoilt(ATTACK)).page)
    assert found.tags == calm.tags
    assert found.open == []
    assert found.outward == []
    assert "{{ 7 * 7 }}" in found.words
    assert found.words.count("alert('x')") >= 30  # it stands wherever there is room for it, to be read
    assert page(origin='"><b onload="x').outward == []


def test_direction_is_told_by_a_sign_beside_the_colour() -> None:
    words = page(decision=decided(Call.SHORT), ruling=held(decision=Call.SHORT, veto=None)).words
    assert words.count("▼ SHORT") >= 2
    assert "▼ down" in words
    assert "▲ up" in words


def test_a_feed_is_as_old_as_its_oldest_series() -> None:
    rates, mood = feed_ages(build_report(told()).view.sources)
    assert (rates.feed, rates.series, rates.oldest_seconds, rates.stale) == ("rates", 2, 900, 1)
    assert rates.newest == "2026-01-01T00:00:00Z"
    assert (mood.series, mood.stale) == (1, 0)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "–"),
        ("LONG", "LONG"),
        (0.0, "0"),
        (12.0, "12"),
        (93_120.5, "93,120.50"),
        (0.12345, "0.1235"),
        (123_456.7, "123,457"),
        (-3.25, "-3.25"),
    ],
)
def test_figures_are_rounded_for_eyes(value: float | str | None, said: str) -> None:
    assert format_number(value) == said


def test_signs_and_spans() -> None:
    assert (format_signed(0.5), format_signed(-0.5, 3), format_signed(None)) == ("+0.50", "−0.500", "–")
    assert (format_span(4), format_span(900), format_span(7_200), format_span(200_000)) == (
        "4 s",
        "15 min",
        "2 h",
        "2 d",
    )


def test_series_of_which_nothing_is_recorded_are_told_by_feed():
    absent = (
        MissingInput(what="basis/binance/BTCUSDT", why="nothing is recorded of the 8 days before"),
        MissingInput(what="basis/okx/BTCUSDT", why="nothing is recorded of the 1440 minutes before"),
        MissingInput(what="book/binance/BTCUSDT", why="asked now: no answer"),
        MissingInput(what="memory", why="none is kept yet"),
    )
    assert format_absent(absent) == [
        "absent: book/binance/BTCUSDT: asked now: no answer",
        "absent: memory: none is kept yet",
        "absent, nothing is recorded of it: basis (binance, okx)",
    ]
