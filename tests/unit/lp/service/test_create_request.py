"""A wish in a sentence or in flags is read the same way every time, and never guessed."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.kernel.arguments import parse_amount
from zuno.kernel.errors import UsageError
from zuno.lp.service.create_request import Flags, parse_create_request, parse_sentence

ETH = (("ETH", "0.05"),)


def read(text: str, **flags: Any) -> dict[str, Any]:
    """What was understood, nothing else."""
    found = parse_create_request(text, Flags(**flags))
    said = {
        "capital": tuple((line.token, format(line.amount, "f")) for line in found.position.capital),
        "pair": found.position.pair,
        "fee": found.position.fee,
        "exposure": found.position.exposure,
        "chain": found.chain,
        "profile": found.profile,
    }
    return {name: value for name, value in said.items() if value is not None}


UNDERSTOOD: list[tuple[str, dict[str, Any]]] = [
    ("0.05 ETH", {"capital": ETH}),
    ("0.05 ETH passively", {"capital": ETH, "profile": "conservative"}),
    ("0.05 eth passive", {"capital": ETH, "profile": "conservative"}),
    ("0.05ETH safe", {"capital": ETH, "profile": "conservative"}),
    ("put .05 ether to work, cautiously", {"capital": ETH, "profile": "conservative"}),
    ("Please open a position with 0.05 ETH!", {"capital": ETH}),
    ("0.05 ETH, moderate", {"capital": ETH, "profile": "balanced"}),
    ("balanced 0.05 ETH", {"capital": ETH, "profile": "balanced"}),
    ("0.05 ETH yolo", {"capital": ETH, "profile": "aggressive"}),
    ("degen 0.05 ETH", {"capital": ETH, "profile": "aggressive"}),
    ("0.05 ETH actively", {"capital": ETH, "profile": "aggressive"}),
    ("DEPLOY 0.05 ETH ACTIVELY", {"capital": ETH, "profile": "aggressive"}),
    ("+0.05 ETH", {"capital": ETH}),
    ("about 0.05 ETH", {"capital": ETH}),
    ("~0.05 ETH 🚀", {"capital": ETH}),
    ("0.05 ethereum", {"capital": ETH}),
    ("0,05 ETH", {"capital": ETH}),
    ("one ETH", {"capital": (("ETH", "1"),)}),
    ("1.5k USDC", {"capital": (("USDC", "1500"),)}),
    ("2 thousand usdc", {"capital": (("USDC", "2000"),)}),
    ("keep my ETH exposure, 0.05 ETH", {"capital": ETH, "exposure": "long-token"}),
    ("0.05 WETH", {"capital": (("WETH", "0.05"),)}),
    ("1,250.5 USDC", {"capital": (("USDC", "1250.5"),)}),
    ("12,345,678 usdc", {"capital": (("USDC", "12345678"),)}),
    ("50 USDC and 0.01 WETH", {"capital": (("USDC", "50"), ("WETH", "0.01"))}),
    ("0.01 WETH + 50 USDC", {"capital": (("WETH", "0.01"), ("USDC", "50"))}),
    ("50 USDC, 0.01 WETH.", {"capital": (("USDC", "50"), ("WETH", "0.01"))}),
    ("50 USDC plus 0.01 weth safely", {"capital": (("USDC", "50"), ("WETH", "0.01")), "profile": "conservative"}),
    ("0.05 ETH ETH/USDC", {"capital": ETH, "pair": ("ETH", "USDC")}),
    ("0.05 ETH in eth-usdc", {"capital": ETH, "pair": ("ETH", "USDC")}),
    ("0.05 ETH on the ETH / USDC pool", {"capital": ETH, "pair": ("ETH", "USDC")}),
    ("0.05 ETH on ETH/USDC", {"capital": ETH, "pair": ("ETH", "USDC")}),
    ("0.05 ETH/USDC", {"capital": ETH, "pair": ("ETH", "USDC")}),
    ("0.05 eth-usdc", {"capital": ETH, "pair": ("ETH", "USDC")}),
    ("0.05 ETH against DAI", {"capital": ETH, "pair": ("ETH", "DAI")}),
    ("vs usdt 0.05 ETH", {"capital": ETH, "pair": ("ETH", "USDT")}),
    ("0.05 ETH PEPE/ETH", {"capital": ETH, "pair": ("PEPE", "ETH")}),
    ("0.05 WETH in ETH/USDC", {"capital": (("WETH", "0.05"),), "pair": ("ETH", "USDC")}),
    ("ETH/USDC 5bps with 0.05 ETH", {"capital": ETH, "pair": ("ETH", "USDC"), "fee": 500}),
    ("0.05 ETH 5 bps", {"capital": ETH, "fee": 500}),
    ("0.05 ETH at 30 bps", {"capital": ETH, "fee": 3000}),
    ("0.05 ETH 30bp", {"capital": ETH, "fee": 3000}),
    ("0.05 ETH 5 basis points", {"capital": ETH, "fee": 500}),
    ("0.05 ETH 0.3%", {"capital": ETH, "fee": 3000}),
    ("0.05 ETH fee tier 0.05 %", {"capital": ETH, "fee": 500}),
    ("0.05 ETH 1 percent", {"capital": ETH, "fee": 10_000}),
    ("0.05 ETH 0.01%", {"capital": ETH, "fee": 100}),
    ("0.05 ETH 500 pips", {"capital": ETH, "fee": 500}),
    ("0.05 ETH on sepolia", {"capital": ETH, "chain": "sepolia"}),
    (
        "create a position with 0.05 ETH passively on sepolia",
        {"capital": ETH, "chain": "sepolia", "profile": "conservative"},
    ),
    ("0.05 ETH on base", {"capital": ETH, "chain": "base"}),
    ("0.05 ETH on Base Sepolia", {"capital": ETH, "chain": "base-sepolia"}),
    ("0.05 ETH on base-sepolia", {"capital": ETH, "chain": "base-sepolia"}),
    ("0.05 ETH arbitrum sepolia", {"capital": ETH, "chain": "arbitrum-sepolia"}),
    ("0.05 ETH on Arbitrum One", {"capital": ETH, "chain": "arbitrum"}),
    ("0.05 ETH on arb", {"capital": ETH, "chain": "arbitrum"}),
    ("0.05 ETH on ethereum", {"capital": ETH, "chain": "mainnet"}),
    ("0.05 ETH on eth mainnet", {"capital": ETH, "chain": "mainnet"}),
    ("0.05 ETH @base", {"capital": ETH, "chain": "base"}),
    ("0.05 ETH on sim", {"capital": ETH, "chain": "sim"}),
    ("devnet: 0.05 ETH", {"capital": ETH, "chain": "devnet"}),
    ("0.05 ETH, stay long ETH", {"capital": ETH, "exposure": "long-token"}),
    ("0.05 ETH long", {"capital": ETH, "exposure": "long-token"}),
    ("0.05 WETH stay long eth", {"capital": (("WETH", "0.05"),), "exposure": "long-token"}),
    ("0.05 ETH neutral", {"capital": ETH, "exposure": "neutral"}),
    ("0.05 ETH for the long term", {"capital": ETH}),
    # The token to keep comes first, whatever the order it was named in.
    ("50 USDC and 0.05 ETH, long ETH", {"capital": (*ETH, ("USDC", "50")), "exposure": "long-token"}),
    ("keep my ETH: 0.05 ETH", {"capital": ETH}),
    ("0.05 ETH low risk", {"capital": ETH, "profile": "conservative"}),
    ("0.05 ETH, lower risk please", {"capital": ETH, "profile": "conservative"}),
    ("low-risk 0.05 ETH", {"capital": ETH, "profile": "conservative"}),
    ("0.05 ETH with little risk", {"capital": ETH, "profile": "conservative"}),
    ("I am risk averse: 0.05 ETH", {"capital": ETH, "profile": "conservative"}),
    ("risk-averse, 0.05 ETH", {"capital": ETH, "profile": "conservative"}),
    ("0.05 ETH medium risk", {"capital": ETH, "profile": "balanced"}),
    ("0.05 ETH with a balanced risk profile", {"capital": ETH, "profile": "balanced"}),
    ("0.05 ETH high risk", {"capital": ETH, "profile": "aggressive"}),
    ("high-risk 0.05 ETH", {"capital": ETH, "profile": "aggressive"}),
    ("0.05 ETH risk profile aggressive", {"capital": ETH, "profile": "aggressive"}),
    ("0.05 ETH medium risk on base", {"capital": ETH, "profile": "balanced", "chain": "base"}),
    ("I would like to put 0.05 ETH to work, fairly safely, thanks", {"capital": ETH, "profile": "conservative"}),
    ("I have 0.05 ETH sitting idle in my wallet", {"capital": ETH}),
    ("0.05 ETH 3% fee", {"capital": ETH, "fee": 30_000}),
    ("0.05 FOO", {"capital": (("FOO", "0.05"),)}),
    ("0.05 0x" + "Ab" * 20, {"capital": (("0x" + "ab" * 20, "0.05"),)}),
]

ASKED_BACK = [
    "",
    "   ",
    "hello there",
    "0.05",
    "0.05 passively",
    "passively 12",
    "ETH",
    "ETH passively",
    "some USDC please",
    "0.05 ETH with USDC",
    "ETH 0.05",
    "ETH 0.05 USDC 50",
    "0 ETH",
    "0.000 ETH",
    "-0.05 ETH",
    "−1 ETH",
    "1.2.3 ETH",
    "1_000 USDC",
    "2x ETH",
    "1e18 ETH",
    "1e-3 ETH",
    "999999999999999999 ETH",
    "$50",
    "€50 of ETH",
    "50 dollars",
    "50 USD",
    "half my ETH",
    "all ETH",
    "50% of my ETH",
    "0.05 ETH 10% width",
    "not passive 0.05 ETH",
    "0.05 ETH but don't yolo",
    "0.05 ETH or 50 USDC",
    "short 1 ETH",
    "swap 1 ETH",
    "0.05 ETH passively yolo",
    "0.05 ETH 5bps 30bps",
    "0.05 ETH on base on sepolia",
    "0.05 ETH long neutral",
    "0.05 ETH ETH/USDC ETH/DAI",
    "0.05 ETH on solana",
    "0.05 ETH on solana",
    "0.05 ETH into PEPE",
    "0.05 eth into pepe",
    "0.05 ETH SHIB",
    "0.05 ЕТН",
    "0.05 ETH 90%",
    "0.05 ETH 0.00001%",
    "0.05 ETH 0bps",
    "0.05 ETH fee 500",
    "50 USDC stay long ETH",
    "0.05 DAI in ETH/USDC",
    "0.05 ETH ETH/ETH",
    "1 ETH 2 USDC 3 DAI",
    "1 ETH and 2 ETH",
    "and/or 1 ETH",
    "0.05 ETH, far from passive",
    "0.05 ETH, anything but conservative",
    "0.05 ETH hardly aggressive",
    "0.05 ETH barely active",
    "0.05 ETH rather than passive",
    "0.05 ETH less risky",
    "0.05 ETH not too safe",
    "0.05 ETH instead of passive",
    "0.05 ETH too risky",
    "0.05 ETH unsafe",
    "0.05 ETH with some risk",
    "0.05 ETH risk-free",
    "0.05 ETH high",
    "0.05 ETH low risk high risk",
    "0.05 ETH no risk",
    "0.05 ETH leaving 10 USDC",
    "0.05 ETH and keep 10 USDC",
    "0.05 ETH at 3000 USDC",
    "0.05 ETH from 2000 USDC to 3000 USDC",
    "0.05 ETH to 3000 USDC",
    "0.05 ETH keeping 10 USDC",
    "0.05 ETH for 10 USDC",
    "0.05 ETH besides 10 USDC",
    "0.05 ETH minus 10 USDC",
    "0.05 ETH frobbing 10 USDC",
    "0.05 ETH while 10 USDC stays",
    "10 each of ETH and USDC",
    "0.05 ETH each",
    "0.05 ETH tight",
    "0.05 ETH in a wide range",
    "0.05 ETH full range",
    "0.05 ETH for 30 days",
    "0.05 ETH 30days",
    "0.05 ETH for a week",
    "0.05 ETH until Friday",
    "0.05 ETH within 10%",
    "0.05 ETH under 1%",
    "0.05 ETH 10%",
    "0.05 ETH at least 5bps",
    "0.05 ETH if gas is cheap",
    "0.05 ETH whatever",
    "0." + "1" * 80 + " ETH",
    "1 ETH " + "x" * 500,
    "1,500 USDC",
    "1.000,5 USDC",
    "0.05 ETH on 8453",
    "everything",
    "0.05 ETH by monday",
]
"""Each is asked back: something is missing, or a word is not understood."""


@pytest.mark.parametrize(("text", "wanted"), UNDERSTOOD)
def test_a_sentence_is_understood(text: str, wanted: dict[str, Any]) -> None:
    assert read(text) == wanted


@pytest.mark.parametrize("text", ASKED_BACK)
def test_what_is_missing_or_unclear_is_asked_back(text: str) -> None:
    with pytest.raises(UsageError):
        parse_create_request(text)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("0.05 ETH into PEPE", "'PEPE'"),
        ("0.05 ETH, far from passive", "'far'"),
        ("0.05 ETH and keep 10 USDC", "'keep 10 USDC'"),
        ("0.05 ETH on solana", "'solana'"),
        ("50 USDC stay long ETH", "USDC, not ETH"),
        ("0.05 ETH passively yolo", "profile"),
        ("1,500 USDC", "'1,500'"),
    ],
)
def test_the_word_that_is_not_understood_is_named(text: str, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        parse_create_request(text)


def test_amounts_are_exact() -> None:
    assert parse_amount("0.050000000000000001") == Decimal("0.050000000000000001")
    assert read("123456789.123456789123456789 ETH")["capital"] == (("ETH", "123456789.123456789123456789"),)


def test_what_was_understood_is_told_word_by_word() -> None:
    notes = parse_create_request("0.05 ETH passively on base at 5bps").notes
    assert notes == (
        "'0.05 ETH' is capital",
        "'passively' is profile conservative",
        "'base' is the chain base",
        "'5bps' is a fee of 500 pips",
    )


class TestFlags:
    def test_alone_they_are_enough(self) -> None:
        wanted = {"capital": (("WETH", "0.05"), ("USDC", "50")), "pair": ("ETH", "USDC"), "fee": 500}
        flags = {"token": "weth", "amount": "0.05", "with_": "50 usdc", "pair": "eth/usdc", "fee": "5bps"}
        assert read("", **flags) == wanted

    def test_each_wins_over_the_sentence(self) -> None:
        text = "1 ETH ETH/DAI 30bps long"
        assert read(text, token="WETH")["capital"] == (("WETH", "1"),)
        assert read(text, amount="2")["capital"] == (("ETH", "2"),)
        assert read(text, pair="ETH/USDC")["pair"] == ("ETH", "USDC")
        assert read(text, fee="0.05%")["fee"] == 500
        assert read(text, exposure="neutral")["exposure"] == "neutral"
        assert read("1 ETH and 3 USDC", with_="50 USDC")["capital"] == (("ETH", "1"), ("USDC", "50"))
        assert read("1 ETH and 3 USDC", token="DAI", amount="9")["capital"] == (("DAI", "9"),)

    def test_they_complete_what_the_sentence_leaves_open(self) -> None:
        assert read("passively", token="ETH", amount="0.05") == {"capital": ETH, "profile": "conservative"}
        assert read("0.05 passively", token="ETH")["capital"] == ETH
        assert read("ETH passively", amount="0.05")["capital"] == ETH

    @pytest.mark.parametrize(
        ("flags", "said"),
        [
            ({"token": "ETH"}, "How much ETH"),
            ({"amount": "0.05"}, "of which token"),
            ({"with_": "50 USDC", "token": "ETH"}, "How much ETH"),
            ({"token": "ETH", "amount": "abc"}, "not an amount"),
            ({"token": "ETH", "amount": "nan"}, "not an amount"),
            ({"token": "ETH", "amount": "1e3"}, "not an amount"),
            ({"token": "ETH", "amount": "-1"}, "above zero"),
            ({"token": "ETH", "amount": "0"}, "opens nothing"),
            ({"token": "E T H", "amount": "1"}, "not a token"),
            ({"token": "ETH", "amount": "1", "fee": "500"}, "with its unit"),
            ({"token": "ETH", "amount": "1", "fee": "cheap"}, "with its unit"),
            ({"token": "ETH", "amount": "1", "pair": "ETHUSDC"}, "not a pair"),
            ({"token": "ETH", "amount": "1", "exposure": "short"}, "no exposure"),
            ({"token": "ETH", "amount": "1", "with_": "USDC"}, "--with"),
            ({"token": "ETH", "amount": "1", "with_": "2 eth"}, "named twice"),
            ({"token": "ETH", "amount": "1", "use_all": True}, "two tokens"),
        ],
    )
    def test_what_cannot_be_read_is_named(self, flags: dict[str, Any], said: str) -> None:
        with pytest.raises(UsageError, match=said):
            parse_create_request("", Flags(**flags))

    def test_one_half_of_two_lines_is_ambiguous(self) -> None:
        with pytest.raises(UsageError, match="together"):
            parse_create_request("1 ETH and 2 USDC", Flags(amount="3"))


@given(st.text(max_size=120))
def test_nonsense_never_breaks_the_reader(text: str) -> None:
    with suppress(UsageError):
        parse_create_request(text)


@given(
    st.lists(st.sampled_from("0.05 5 bps % / - ETH usdc eth-usdc on base long passively into , @".split()), max_size=9)
)
def test_no_capital_appears_that_was_not_said(words: list[str]) -> None:
    try:
        heard = parse_sentence(" ".join(words))
    except UsageError:
        return
    said = {Decimal(word) for word in words if word[0].isdigit()}
    assert {line.amount for line in heard.lines if line.amount is not None} <= said
