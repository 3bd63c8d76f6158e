"""Wallets on a screen of 80 columns: whole lines, whole amounts."""

from __future__ import annotations

import pytest

from zuno.kernel.text import Token
from zuno.kernel.units import Address
from zuno.lp.service.wallets import AllowancesView, AllowanceView, BalancesView, BalanceView, WalletsView, WalletView
from zuno.present.document import Documented
from zuno.present.text import to_text

OWN = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
USDC = Token(address=Address("0x" + "01" * 20), symbol="USDC", decimals=6, verified=True)
STRANGE = Token(address=Address("0x" + "02" * 20), symbol="[red]USDC[/]", decimals=18, verified=False)
AT = {"chain": "sim", "block": 7, "timestamp": 1_800_000_000, "wallet": OWN.lower()}


def shown(view: Documented, width: int = 80) -> list[str]:
    lines = to_text(view.to_document(), width).split("\n")
    assert max(map(len, lines)) <= width
    return lines


def allowance(token: Token, name: str, human: str, expires: int | None, *, expired: bool = False) -> AllowanceView:
    return AllowanceView(
        token=token,
        spender="0x" + "03" * 20,
        spender_name=name,
        amount="1",
        amount_human=human,
        unlimited=human == "unlimited",
        expires=expires,
        expired=expired,
    )


def test_allowances() -> None:
    view = AllowancesView(
        **AT,
        allowances=(
            allowance(USDC, "Permit2", "unlimited", None),
            allowance(USDC, "UniversalRouter", "1250.000001", 1_799_999_999, expired=True),
            allowance(STRANGE, "PositionManager", "3", 1_800_000_060),
        ),
        notes=("something is left out",),
    )
    assert shown(view) == [
        "Allowances: 3, unlimited: 1",
        "SYNTHETIC · sim at block 7",
        f"wallet  {OWN.lower()}",
        "token          who may move it  amount       until",
        "USDC           Permit2          unlimited    you revoke it",
        "USDC           UniversalRouter  1250.000001  2027-01-15 07:59 UTC, past",
        "[red]USDC[/]?  PositionManager  3            2027-01-15 08:01 UTC",
        f"[red]USDC[/]? is {STRANGE.address}: its contract alone",
        "gives it this name, so no price is looked up",
        "note: something is left out",
    ]
    nobody = AllowancesView(**AT, allowances=())
    assert shown(nobody)[0] == "Nobody may move its tokens."


def test_balances() -> None:
    amounts = (
        BalanceView(token=USDC, amount="1000001", amount_human="1.000001"),
        BalanceView(token=STRANGE, amount="0", amount_human="0"),
    )
    lines = shown(BalancesView(**AT, balances=amounts))
    assert lines[3:6] == ["token            amount", "USDC           1.000001", "[red]USDC[/]?         0"]
    assert "contract" in lines[6]


def wallet(**changed: object) -> WalletView:
    whole = {
        "address": OWN.lower(),
        "checksummed": OWN,
        "watch_only": False,
        "acts": True,
        "file": f"/home/somebody/.zuno/wallets/{OWN.lower()}.json",
    }
    return WalletView.model_validate(whole | changed)


@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_wallet_and_its_list(width: int) -> None:
    text = " ".join(shown(wallet(notes=("others may read it",)), width)).replace(" ", "")
    assert OWN in text or width == 40
    assert "Keepacopy" in text
    assert "note:othersmayreadit" in text
    watched = " ".join(shown(wallet(watch_only=True), width))
    assert "watched" in watched
    assert "Keep a copy" not in watched
    listed = WalletsView(
        wallets=(wallet(), wallet(watch_only=True, acts=False, file=None)), acting=OWN, note="Who acts."
    )
    lines = shown(listed, width)
    if width == 80:
        assert lines == [
            "Who acts.",
            "wallet                                      key        acts",
            f"{OWN}  here       yes",
            f"{OWN}  elsewhere",
        ]


def test_no_wallets_are_a_sentence() -> None:
    assert shown(WalletsView(wallets=(), acting=None, note="None yet.")) == ["None yet."]
