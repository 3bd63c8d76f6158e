"""Whatever can go wrong between a vendor and us becomes one of our errors: bounded, without quoting it or a key."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

import pytest

from tests.wire.bot_api import drip
from tests.wire.model_server import Answer, cut, endless, hang_up, http, never
from tests.wire.vendors import binance, bybit, deribit, figures, okx, upbit, words
from tests.wire.vendors.questions import QUESTIONS, QUICK, Question, asking
from tests.wire.vendors.serving import said
from zuno.adapters.venues.binance import VENDOR, BinanceTape
from zuno.adapters.venues.exchange import MAPPED, PAUSE, WORTH_RETRYING, ExchangeClient, NotListed, nearest_known
from zuno.kernel.errors import Malformed, Unavailable, Unreachable, ZunoError
from zuno.kernel.units import Millis

ONE_EACH = [
    question
    for question in QUESTIONS
    if question.name
    in (
        "binance basis",
        "bybit basis",
        "okx basis",
        "upbit candles",
        "deribit chain",
        "fred prints",
        "yahoo prints",
        "fear and greed",
        "search",
    )
]
"""One question of every vendor: what happens below a document is the same for all of its others."""
PORTAL = http(200, b"<html>Please log in to the portal</html>", "text/html")
FAULTS: dict[str, tuple[Answer, type[ZunoError]]] = {
    "500": (http(500, b"<html>oops</html>", "text/html"), Unavailable),
    "503 with nothing": (http(503, b""), Unavailable),
    "403": (http(403, b"<html>blocked</html>", "text/html"), Unavailable),
    "hang up": (hang_up, Unavailable),
    "cut in the middle": (cut, Unavailable),
    "a portal's page": (PORTAL, Malformed),
    "half of a document": (http(200, b'{"retCode": 0, "code": "0", "resu'), Malformed),
    "not a number": (http(200, b'{"retCode": NaN, "code": NaN, "result": [NaN], "data": [NaN]}'), Malformed),
    "deep": (http(200, b"[" * 30_000 + b"]" * 30_000), Malformed),
    "null": (http(200, b"null"), Malformed),
    "another document": (said({"hello": "world"}), Malformed),
    "an empty list": (said([]), Malformed),
    "a gateway's word": (said({"code": "AccessDenied", "message": "the portal is closed"}), ZunoError),
}
FORMS: list[object] = [None, [], [1], {}, "AccessDenied", 1, -1.5, True, "", 10**30]
HASTY = replace(QUICK, timeout=0.15)
NARROW = replace(QUICK, timeout=30.0, max_bytes=100_000)


def of_all(questions: list[Question] = ONE_EACH) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("question", questions, ids=lambda question: question.name)


@pytest.mark.soak(every=3)
@pytest.mark.slow
@of_all()
async def test_every_fault_is_one_of_our_errors(question: Question) -> None:
    for name, (mood, expected) in FAULTS.items():
        async with asking(question) as (here, feed):
            here.mood = mood
            with pytest.raises(expected) as told:
                await question.ask(feed)
        for word in ("portal", "oops", "hello", figures.KEY, words.KEY, "127.0.0.1"):
            assert word not in str(told.value), name


@pytest.mark.soak(every=2)
@pytest.mark.slow
@of_all(
    [question for question in ONE_EACH if question.name.split()[0] in ("binance", "bybit", "okx", "upbit", "deribit")]
)
async def test_no_form_of_an_exchanges_error_is_our_own_bug(question: Question) -> None:
    """Gateways answer in an exchange's place, with its fields and other things in them."""
    async with asking(question) as (here, feed):
        for form in FORMS:
            for document in (
                {"code": form, "msg": form, "message": form},
                {"retCode": form, "retMsg": form, "result": form},
                {"code": form, "data": form},
                {"code": "1", "data": [{"sCode": form, "sMsg": form}], "msg": form},
                {"error": form},
                {"error": {"code": form, "message": form, "name": form}},
                form,
            ):
                for status in (200, 400, 403):
                    here.mood = said(document, status)
                    feed._exchange._quiet_until = -1e18
                    with pytest.raises((Unavailable, Malformed)):
                        await question.ask(feed)


@pytest.mark.slow
@of_all()
async def test_an_answer_without_an_end_is_left(question: Question) -> None:
    for mood, patience, expected in (
        (endless, NARROW, Malformed),
        (drip, HASTY, Unavailable),
        (never, HASTY, Unavailable),
    ):
        async with asking(question, patience) as (here, feed):
            here.mood = mood
            with pytest.raises(expected):
                async with asyncio.timeout(60):
                    await question.ask(feed)


@pytest.mark.slow
@of_all()
async def test_a_failure_that_passes_is_asked_about_again(question: Question) -> None:
    async with asking(question) as (here, feed):
        usual = await question.ask(feed)
        for failure in (http(502, b""), hang_up, cut):
            here.next = [failure]
            assert await question.ask(feed) == usual


# -- limits

LIMITS = {
    "binance basis": (binance.LIMITED, 7),
    "bybit basis": (bybit.LIMITED, PAUSE),
    "okx basis": (okx.LIMITED, PAUSE),
    "upbit candles": (upbit.LIMITED, PAUSE),
    "deribit chain": (deribit.LIMITED, PAUSE),
}


@of_all([question for question in ONE_EACH if question.name in LIMITS])
async def test_an_exchange_that_limits_us_is_left_alone(question: Question) -> None:
    """For as long as it says; what is asked in between is not sent."""
    answer, _ = LIMITS[question.name]
    async with asking(question) as (here, feed):
        here.mood = answer
        with pytest.raises(Unavailable, match="limits"):
            await question.ask(feed)
        here.mood = None
        sent = len(here.asked)
        assert sent == 1
        with pytest.raises(Unavailable, match="limits"):
            await question.ask(feed)
        assert len(here.asked) == sent


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [(binance.LIMITED, 7.0), (binance.BANNED, 120.0), (http(429, b""), PAUSE), (http(418, b""), PAUSE)],
)
async def test_a_limit_lasts_as_long_as_the_exchange_says(answer: bytes, seconds: float) -> None:
    clock = [1_000.0]
    question = next(question for question in QUESTIONS if question.name == "binance basis")
    async with asking(question) as (here, _):
        exchange = ExchangeClient(VENDOR, here.url, patience=QUICK, throttled=False, monotonic=lambda: clock[0])
        here.mood = answer
        with pytest.raises(Unavailable, match=f"wait {seconds:.0f} s"):
            await exchange.ask("fapiPublicGetTime", "time")
        here.mood = None
        clock[0] += seconds - 0.5
        with pytest.raises(Unavailable, match=r"\b1 s\b"):
            await exchange.ask("fapiPublicGetTime", "time")
        clock[0] += 0.5
        assert await exchange.ask("fapiPublicGetTime", "time")
        await exchange.close()


async def test_okx_limits_within_a_good_answer_too() -> None:
    question = next(question for question in QUESTIONS if question.name == "okx basis")
    async with asking(question) as (here, feed):
        here.mood = okx.LIMITED_POLITELY
        with pytest.raises(Unavailable, match="limits"):
            await question.ask(feed)


# -- the vendor's own refusals


@pytest.mark.parametrize(
    ("name", "refusal", "words_of_it"),
    [
        ("binance basis", binance.NO_SYMBOL, "does not know that symbol"),
        ("bybit basis", bybit.NO_SYMBOL, "Bybit"),
        ("okx basis", okx.NO_SYMBOL, "does not know that symbol"),
        ("upbit candles", upbit.NO_MARKET, "Upbit"),
        ("deribit chain", deribit.NO_CURRENCY, "Deribit"),
        ("fred prints", figures.NO_KEY, "check what was asked for and the key"),
        ("search", said({"error": {"message": "Invalid API key", "code": 401}}, 401), "the key"),
    ],
)
async def test_a_refusal_is_said_and_not_repeated(name: str, refusal: bytes, words_of_it: str) -> None:
    question = next(question for question in QUESTIONS if question.name == name)
    async with asking(question) as (here, feed):
        here.mood = refusal
        with pytest.raises(Unavailable, match=words_of_it):
            await question.ask(feed)
        assert len(here.asked) == 1


# -- ccxt's errors


def leaves() -> list[type[BaseException]]:
    import ccxt.async_support as vendors

    known = {kind for kind in vars(vendors).values() if isinstance(kind, type) and issubclass(kind, vendors.BaseError)}
    return sorted((kind for kind in known if not kind.__subclasses__()), key=lambda kind: kind.__name__)


def test_every_error_of_ccxt_has_words() -> None:
    found = leaves()
    assert len(found) >= 25
    assert [kind.__name__ for kind in found if nearest_known(kind("x")) is None] == []
    assert set(MAPPED) >= WORTH_RETRYING


def test_every_word_is_for_an_error_that_ccxt_has() -> None:
    import ccxt.async_support as vendors

    assert [name for name in MAPPED if not hasattr(vendors, name)] == []


@pytest.mark.parametrize(
    ("name", "tree"),
    [
        ("BadSymbol", NotListed),
        ("NullResponse", Malformed),
        ("ChecksumError", Malformed),
        ("OnMaintenance", Unavailable),
        ("AccountSuspended", Unavailable),
        ("OrderNotFound", Unavailable),
    ],
)
def test_errors_of_ccxt_by_their_nearest_ancestor(name: str, tree: type[ZunoError]) -> None:
    import ccxt.async_support as vendors

    assert MAPPED[nearest_known(getattr(vendors, name)("x")) or ""][0] is tree


async def test_our_own_bugs_are_not_the_exchanges() -> None:
    exchange = ExchangeClient(replace(VENDOR, host=None), patience=QUICK, throttled=False)
    with pytest.raises(AttributeError):
        await exchange.ask("fapiPublicGetNothing", "nothing")
    await exchange.close()


# -- without the extra


@pytest.mark.parametrize("module", ["ccxt", "websockets"])
async def test_without_the_extra_it_says_how_to_get_it(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    asked = {
        "ccxt": lambda: ExchangeClient(replace(VENDOR, host=None)).ask("fapiPublicGetTime", "time"),
        "websockets": lambda: anext(aiter(BinanceTape(lambda: Millis(0), "wss://127.0.0.1:9").listen(["BTCUSDT"]))),
    }
    with pytest.raises(Unavailable, match="`make exchanges`"):
        await asked[module]()


@pytest.mark.slow
def test_reading_the_adapters_loads_no_vendor() -> None:
    """Of those that only this room needs."""
    import subprocess

    code = (
        "import sys\n"
        "import zuno.adapters.venues.binance, zuno.adapters.venues.bybit, tests.wire.fakes.venues\n"
        "print([name for name in ('ccxt', 'aiohttp', 'websockets') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


async def test_the_pace_is_ccxts_unless_told_otherwise() -> None:
    question = next(question for question in QUESTIONS if question.name == "binance basis")
    async with asking(question) as (here, _):
        waited: dict[bool, int] = {}
        for throttled in (True, False):
            exchange = ExchangeClient(VENDOR, here.url, patience=QUICK, throttled=throttled)
            opened = exchange.opened
            waits: list[float] = []

            async def throttle(cost: float, waits: list[float] = waits) -> None:
                waits.append(cost)

            opened.throttle = throttle
            await exchange.ask("fapiPublicGetTime", "time")
            waited[throttled] = len(waits)
            await exchange.close()
        assert waited == {True: 1, False: 0}


async def test_an_exchange_nobody_can_reach_is_told_before_ccxt_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(self: ExchangeClient) -> None:
        raise AssertionError("ccxt is loaded")

    monkeypatch.setattr(ExchangeClient, "opened", property(load))
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    closed = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = closed.sockets[0].getsockname()[1]
    closed.close()
    await closed.wait_closed()
    for client in (
        ExchangeClient(replace(VENDOR, host=f"127.0.0.1:{port}"), sleep=sleep),
        ExchangeClient(VENDOR, f"http://127.0.0.1:{port}", sleep=sleep),
    ):
        with pytest.raises(Unreachable):
            await client.ask("fapiPublicGetTime", "time")
    assert len(waits) == 4
