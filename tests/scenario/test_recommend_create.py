"""Opening a position is argued about: the same desk, from the command line, on the embedded world and the devnet."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.wire.commands import Zuno, run_zuno
from zuno.kernel.numbers_text import short_text

BOLD = ("5 ETH",)
"""Enough that gas is small beside the fees."""


def create(zuno: Zuno, *arguments: str, **environment: str) -> Any:
    ran = zuno("lp", "recommend", "create", *arguments, "--json", **environment)
    assert ran.code == 0, ran.err
    return ran.document


@pytest.fixture(scope="module")
def bold(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The plan for it, argued once."""
    home = tmp_path_factory.mktemp("bold")
    return create(lambda *arguments, **environment: run_zuno(home, *arguments, **environment), *BOLD)


def moves(plan: Any) -> list[Any]:
    return [one for one in plan["candidates"] if one["kind"] == "open"]


def width(one: Any) -> int:
    return int(one["tickUpper"]) - int(one["tickLower"])


def test_the_document_says_everything_a_script_needs(bold: Any) -> None:
    plan = bold
    assert plan["kind"] == "create"
    assert plan["chain"] == "sim"
    assert plan["positionId"] is None
    assert plan["profile"] == "balanced"
    assert plan["verdict"] == "approve_with_caution"  # the embedded world's prices are seeded
    assert 0 <= plan["confidence"] <= 1
    hold, *opened = plan["candidates"]
    assert (hold["kind"], hold["tickLower"], hold["tickUpper"], hold["stress"]) == ("hold", None, None, None)
    assert opened
    assert {one["kind"] for one in opened} == {"open"}
    assert all(isinstance(one["tickLower"], int) for one in opened)
    chosen = plan["recommended"]
    assert chosen["index"] in [one["index"] for one in plan["candidates"]]
    assert chosen["tickLower"] % chosen["pool"]["tickSpacing"] == 0
    assert int(chosen["amount0"]) > 0
    assert Decimal(chosen["carry"]["cost"]) > 0
    assert [one["role"] for one in plan["transcript"]][:2] == ["scout", "strategist"]
    assert plan["sources"][0]["feed"] == "pools"


def test_the_same_wish_twice_gives_the_same_hash(zuno: Zuno, bold: Any) -> None:
    first, second = bold, create(zuno, *BOLD)  # the same state in another home
    assert first["hash"] == second["hash"]
    assert first["requestId"] != second["requestId"]
    by_flags = create(zuno, "--token", "ETH", "--amount", "5")
    assert by_flags["hash"] == first["hash"]


def test_the_profile_is_obeyed_by_word_and_by_flag(zuno: Zuno) -> None:
    widths = []
    for text, profile in (("5 ETH yolo", "aggressive"), ("5 ETH", "balanced"), ("5 ETH passively", "conservative")):
        plan = create(zuno, text, "--pair", "ETH/USDC", "--fee", "5bps")
        assert plan["profile"] == profile
        widths.append(min(width(one) for one in moves(plan)))
    assert widths[0] < widths[1] < widths[2]
    assert create(zuno, "5 ETH yolo", "--profile", "conservative")["profile"] == "conservative"


@pytest.mark.parametrize(
    "asked", [("5 ETH", "--fee", "5bps"), ("5 ETH 5bps",), ("5 ETH 30bps", "--fee", "0.05%")], ids=str
)
def test_five_basis_points_is_the_pool_of_0_05_percent(zuno: Zuno, asked: tuple[str, ...]) -> None:
    plan = create(zuno, *asked)
    assert {one["pool"]["fee"] for one in moves(plan)} == {500}
    assert plan["recommended"]["pool"]["label"] == "WETH/USDC 0.05 %"


def test_ether_is_surveyed_native_first_and_wrapped_after(zuno: Zuno, bold: Any) -> None:
    plan = bold
    assert [(one["pool"], one["pays"]) for one in plan["feeCover"]] == [
        ("ETH/USDC 0.30 %", False),
        ("WETH/USDC 0.05 %", True),
        ("WETH/USDC 0.30 %", True),
    ]
    assert {one["pool"]["label"] for one in moves(plan)} <= {"WETH/USDC 0.05 %", "WETH/USDC 0.30 %"}
    action = plan["recommended"]["prepAction"]
    assert action.startswith("wrap 5 ETH → WETH, then swap ")
    assert action.endswith(" WETH → USDC first")
    swapped = action.split("swap ")[1].split(" WETH")[0]
    assert swapped == short_text(swapped), "as every amount is shown"
    wrapped = create(zuno, "5 WETH")
    assert {one["pool"]["currency0"]["symbol"] for one in moves(wrapped)} == {"WETH"}
    assert wrapped["recommended"]["prepAction"].startswith("swap ")


@pytest.mark.soak
def test_long_token_leaves_more_room_where_the_token_is_sold(zuno: Zuno) -> None:
    def share_above(plan: Any) -> float:
        one = plan["recommended"]
        pools = zuno("lp", "pools", "--json").document["pools"]
        tick = next(pool["tick"] for pool in pools if pool["id"] == one["pool"]["id"])
        return float((one["tickUpper"] - tick) / width(one))

    pool = ("--pair", "ETH/USDC", "--fee", "5bps")
    neutral = create(zuno, "5 WETH", *pool)
    ether = create(zuno, "5 WETH", *pool, "--exposure", "long-token")
    dollars = create(zuno, "12000 USDC stay long USDC", *pool)
    assert share_above(dollars) < 0.45 < share_above(neutral) < 0.55 < share_above(ether)
    # More of the token stays in, and less of it is sold first.
    assert int(ether["recommended"]["amount0"]) > int(neutral["recommended"]["amount0"])
    both = create(zuno, "9000 USDC and 1 WETH, stay long WETH", *pool)
    assert share_above(both) > 0.55


def test_two_tokens_go_in_as_they_are(zuno: Zuno) -> None:
    plan = create(zuno, "2 WETH and 5000 USDC", "--fee", "5bps", "--candidate", "1")
    chosen = plan["recommended"]
    assert chosen["kind"] == "open"
    assert chosen["prepAction"].endswith("and back (it holds the price) first")
    assert 1.99 * 10**18 < int(chosen["amount0"]) <= 2 * 10**18 or int(chosen["amount1"]) > 4_990 * 10**6
    assert int(chosen["amount1"]) < 5001 * 10**6, "a ten-thousandth of the other was swapped into it"
    flags = create(zuno, "--token", "WETH", "--amount", "2", "--with", "5000 USDC", "--fee", "5bps", "--candidate", "1")
    assert flags["hash"] == plan["hash"]


@pytest.mark.soak
def test_so_little_that_gas_eats_it_is_better_kept(zuno: Zuno) -> None:
    plan = create(zuno, "0.05 ETH passively")
    assert plan["recommended"]["kind"] == "hold"
    assert plan["recommended"]["prepAction"] is None
    assert plan["rounds"] >= 1
    assert any("gas is" in one["text"] for one in plan["transcript"] if one["role"] == "critic")


@pytest.mark.soak
def test_without_rounds_what_is_not_accepted_goes_to_the_arbiter(zuno: Zuno) -> None:
    plan = create(zuno, "0.05 ETH passively", ZUNO_MAX_DEBATE_ROUNDS="0")
    assert (plan["decidedBy"], plan["rounds"]) == ("arbiter", 0)
    assert plan["transcript"][-1]["role"] == "arbiter"
    assert plan["recommended"]["kind"] == "hold"
    accepted = create(zuno, *BOLD, ZUNO_MAX_DEBATE_ROUNDS="0")
    assert (accepted["decidedBy"], accepted["rounds"]) == ("critic", 0)


@pytest.mark.soak
def test_the_owner_may_choose_another(zuno: Zuno) -> None:
    nothing = create(zuno, *BOLD, "--candidate", "0")
    assert (nothing["decidedBy"], nothing["recommended"]["kind"]) == ("owner", "hold")
    assert nothing["recommended"]["tickLower"] is None
    assert (nothing["recommended"]["amount0"], nothing["recommended"]["amount1"]) == ("0", "0")
    other = create(zuno, *BOLD, "--candidate", "3")
    assert other["recommended"]["index"] == 3
    assert zuno("lp", "recommend", "create", *BOLD, "--candidate", "99").code == 3


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        (("0.05 FOO",), 3, "No token on sim is called FOO; Zuno knows ETH, USDC, WETH there."),
        (("0.05 ETH", "--pair", "ETH/DAI"), 3, "No token on sim is called DAI"),
        (("0.05 ETH", "--pair", "ETH/WETH"), 3, "there is ETH/USDC at 0.3 %, WETH/USDC at 0.05 %, WETH/USDC at 0.3 %"),
        (("0.05 ETH", "--fee", "1%"), 3, "charges 1 %; there is 0.05 %, 0.3 %"),
        (("0.05 0x" + "11" * 20,), 3, "No token on sim is called 0x1111"),
        (("0.05",), 2, "of which token"),
        (("ETH passively",), 2, "How much ETH"),
        ((), 2, "which token"),
        (("0.05 ETH", "--fee", "5"), 2, "with its unit"),
        (("0.05 ETH", "--profile", "reckless"), 2, "risk profile"),
        (("0.05 ETH", "--exposure", "short"), 2, "no exposure"),
        (("0.0000001 USDC",), 2, "USDC has 6 decimals"),
        (("0.05 ETH on nowhere",), 2, "No chain is called"),
        (("0.05 ETH", "--chain", "nowhere"), 2, "No chain is called"),
        (("0.05 ETH on sepolia",), 4, "ZUNO_SEPOLIA_RPC_URL"),  # the chain in the sentence is obeyed
    ],
)
def test_what_cannot_be_done_is_one_sentence(zuno: Zuno, asked: tuple[str, ...], code: int, said: str) -> None:
    ran = zuno("lp", "recommend", "create", *asked, "--json")
    assert ran.code == code, ran.err
    assert said in ran.document["error"]["message"]
    assert "Traceback" not in ran.err


def test_a_flag_wins_over_the_chain_in_the_sentence(zuno: Zuno) -> None:
    assert create(zuno, "5 ETH on sepolia", "--chain", "sim")["chain"] == "sim"


@pytest.mark.parametrize("amount", ["0.000000000000000001", "1000000"])
def test_dust_and_fortunes_end_in_a_plan(zuno: Zuno, amount: str) -> None:
    plan = create(zuno, f"{amount} ETH")
    assert plan["recommended"]["kind"] in {"hold", "open"}


@pytest.mark.parametrize(
    ("wish", "token"), [("96 WETH", "WETH"), ("1 WETH and 500000 USDC", "USDC"), ("999999999999999 ETH", "ETH")]
)
def test_more_than_the_wallet_holds_is_refused_by_name(zuno: Zuno, wish: str, token: str) -> None:
    ran = zuno("lp", "recommend", "create", wish, "--json")
    assert (ran.code, ran.document["error"]["kind"]) == (3, "refused")
    held = {
        line["token"]["symbol"]: line["amountHuman"]
        for line in zuno("wallet", "balance", "--json").document["balances"]
    }
    assert f"holds {held[token]} {token}" in ran.document["error"]["message"]


def test_two_to_five_ranges_in_all_and_a_regime_for_every_pool(bold: Any) -> None:
    opened = [(one["pool"]["label"], one["tickLower"], one["tickUpper"]) for one in moves(bold)]
    assert 2 <= len(opened) == len(set(opened)) <= 5
    surveyed = [line["pool"] for line in bold["regimes"]]
    assert len(surveyed) == 3
    assert {label for label, _, _ in opened} <= {*surveyed}
    assert all(line["regime"] and "{" not in line["why"] for line in bold["regimes"])
    assert (bold["candidates"][0]["kind"], bold["candidates"][0]["tickLower"]) == ("hold", None)


def test_the_card_names_pools_and_what_comes_first(zuno: Zuno) -> None:
    ran = zuno("lp", "recommend", "create", *BOLD)
    assert ran.code == 0, ran.err
    assert "'5 ETH'" in ran.out
    assert "wrap 5 ETH" in ran.out
    assert "WETH/USDC 0.05 %" in ran.out
    assert "ETH/USDC 0.30 %" in ran.out


def test_a_create_debate_is_in_the_journal(zuno: Zuno) -> None:
    plan = create(zuno, *BOLD)
    kinds = [
        one["kind"]
        for one in zuno("journal", "tail", "--json").document["entries"]
        if one["requestId"] == plan["requestId"]
    ]
    assert {"flow_create_start", "context_observed", "proposal", "plan_ready"} <= set(kinds)
    assert zuno("journal", "verify", "--json").document["ok"] is True


@pytest.mark.soak
def test_on_the_real_contracts(devnet: Zuno) -> None:
    plan = create(devnet, "5 WETH 5bps on devnet")
    assert plan["chain"] == "devnet"
    assert plan["recommended"]["pool"]["fee"] == 500
    assert create(devnet, "5 WETH 5bps on devnet")["hash"] == plan["hash"]


@pytest.mark.parametrize(("pair", "label"), [("ETH/USDC", "ETH/USDC 0.30 %"), ("WETH/USDC", "WETH/USDC 0.30 %")])
def test_a_pool_that_is_named_is_the_pool_that_opens(zuno: Zuno, pair: str, label: str) -> None:
    plan = zuno("lp", "recommend", "create", f"5000 USDC into {pair} 0.3%", "--json").document
    assert {candidate["pool"]["label"] for candidate in plan["candidates"]} == {label}
