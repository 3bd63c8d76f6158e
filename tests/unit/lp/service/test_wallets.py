"""What a person is told of wallets: which one acts, what it holds, who may move it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.chain.world import DEPLOYMENT, SIM, USDC, WALLET, WETH
from zuno.adapters.keys.passphrases import Passphrases
from zuno.adapters.keys.wallets import WalletFolder
from zuno.amm.model import Block
from zuno.kernel.errors import Unavailable, UsageError
from zuno.kernel.text import NATIVE
from zuno.kernel.units import Address, HexId, Seconds
from zuno.lp.model.chains import PERMIT2
from zuno.lp.model.plan import Allowances, Grant, WalletState
from zuno.lp.ports.chain import Holdings
from zuno.lp.service.wallets import UNLIMITED, WalletOnChain, WalletService

NOW = 1_800_000_000
BLOCK = Block(77, HexId("0x" + "00" * 32), Seconds(NOW))
OTHER = Address("0x" + "ab" * 20)
MANAGER, ROUTER = DEPLOYMENT.position_manager, DEPLOYMENT.universal_router


class Wallet:
    """A wallet's contents, and what was asked about it."""

    def __init__(self, allowances: Allowances | None = None) -> None:
        self.allowances = allowances or Allowances()
        self.asked: list[tuple[Address, list[Address], list[Address]]] = []

    async def look(self, wallet: Address, currencies: Sequence[Address], spenders: Sequence[Address]) -> WalletState:
        self.asked.append((wallet, list(currencies), list(spenders)))
        holdings = {currency: 10**6 + place for place, currency in enumerate(currencies)}
        return WalletState(BLOCK, holdings, self.allowances, nonce=0, next_nonce=0)


class Unlisted(SimChain):
    """A chain that cannot say whose positions there are."""

    async def holdings(self, owner: Address) -> Holdings:
        raise Unavailable("the logs are not kept")


class Backwards(SimChain):
    """A chain whose tokens are named in another order."""

    info = replace(SIM, tokens=SIM.tokens[::-1])


class Bare(SimChain):
    """A chain of which ether alone is known."""

    info = replace(SIM, tokens=SIM.tokens[:1])


@pytest.fixture
def chain(tmp_path: Path) -> SimChain:
    return SimChain(SimFile(tmp_path))


async def test_balances_are_of_one_block_with_ether_first(chain: SimChain) -> None:
    wallet = Wallet()
    view = await WalletOnChain(chain, WALLET, wallet.look).balance()
    assert wallet.asked == [(WALLET, [NATIVE, WETH.address, USDC.address], [])]
    assert (view.chain, view.block, view.timestamp, view.wallet, view.notes) == ("sim", 77, NOW, WALLET, ())
    assert [(one.token.symbol, one.amount, one.amount_human) for one in view.balances] == [
        ("ETH", "1000000", "0.000000000001"),
        ("WETH", "1000001", "0.000000000001000001"),
        ("USDC", "1000002", "1.000002"),
    ]


async def test_ether_is_first_wherever_the_chain_names_it(tmp_path: Path) -> None:
    view = await WalletOnChain(Backwards(SimFile(tmp_path)), WALLET, Wallet().look).balance()
    assert [one.token.symbol for one in view.balances] == ["ETH", "USDC", "WETH"]


async def test_tokens_of_held_positions_are_read_too(tmp_path: Path) -> None:
    wallet = Wallet()
    await WalletOnChain(Bare(SimFile(tmp_path)), WALLET, wallet.look).balance()
    ((_, currencies, _),) = wallet.asked
    assert currencies[0] == NATIVE
    assert set(currencies) == {NATIVE, WETH.address, USDC.address}
    nobody = Wallet()
    await WalletOnChain(Bare(SimFile(tmp_path)), OTHER, nobody.look).balance()
    assert nobody.asked == [(OTHER, [NATIVE], [])]


async def test_positions_that_cannot_be_listed_are_told(tmp_path: Path) -> None:
    view = await WalletOnChain(Unlisted(SimFile(tmp_path)), WALLET, Wallet().look).balance()
    assert len(view.balances) == 3
    assert [note.endswith(": the logs are not kept") for note in view.notes] == [True]


async def test_allowances_by_token_and_by_permit2(chain: SimChain) -> None:
    wallet = Wallet(
        Allowances(
            {USDC.address: (1 << 256) - 1, WETH.address: 5},
            {
                (USDC.address, MANAGER): Grant(UNLIMITED, Seconds(NOW)),
                (USDC.address, ROUTER): Grant(UNLIMITED - 1, Seconds(NOW - 1)),
                (WETH.address, MANAGER): Grant(0, Seconds(NOW + 9)),
                (WETH.address, ROUTER): Grant(10**18, Seconds((1 << 48) - 1)),
            },
        )
    )
    view = await WalletOnChain(chain, WALLET, wallet.look).allowances()
    assert wallet.asked == [(WALLET, [WETH.address, USDC.address], [MANAGER, ROUTER])]
    assert [
        (one.token.symbol, one.spender_name, one.spender, one.amount_human, one.expires, one.expired, one.unlimited)
        for one in view.allowances
    ] == [
        ("WETH", "Permit2", PERMIT2, "0.000000000000000005", None, False, False),
        ("WETH", "UniversalRouter", ROUTER, "1", None, False, False),
        ("USDC", "Permit2", PERMIT2, "unlimited", None, False, True),
        ("USDC", "PositionManager", MANAGER, "unlimited", NOW, False, True),
        (
            *("USDC", "UniversalRouter", ROUTER, "1461501637330902918203684832716283019655932.542974"),
            *(NOW - 1, True, False),
        ),
    ]
    assert [one.amount for one in view.allowances][2:4] == [str((1 << 256) - 1), str(UNLIMITED)]


def keeper(home: Path, acting: Address | None = None) -> WalletService:
    folder = WalletFolder(home, Passphrases(None, lambda prompt: SecretStr("correct horse")), rounds=2)
    return WalletService(folder, lambda: acting)


async def test_nothing_is_kept(tmp_path: Path) -> None:
    view = await keeper(tmp_path).show()
    assert (view.wallets, view.acting) == ((), None)
    assert "`zuno wallet create`" in view.note


async def test_a_wallet_named_by_the_settings_is_shown_without_a_file(tmp_path: Path) -> None:
    view = await keeper(tmp_path, OTHER).show()
    (one,) = view.wallets
    assert (one.address, one.watch_only, one.acts, one.file) == (OTHER, True, True, None)
    assert one.checksummed == "0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB"


async def test_it_is_shown_which_one_acts(tmp_path: Path) -> None:
    made = await keeper(tmp_path).create()
    assert not made.acts
    await keeper(tmp_path).add(None, OTHER)
    view = await keeper(tmp_path, Address(made.address)).show()
    assert {one.address: one.acts for one in view.wallets} == {made.address: True, OTHER: False}
    undecided = await keeper(tmp_path).show()
    assert "ZUNO_AGENT_WALLET_ADDRESS" in undecided.note


@pytest.mark.parametrize("typed", ["", "0x12", "ab" * 20, "0x" + "ab" * 21, "0x" + "zz" * 20, "vitalik.eth"])
async def test_what_is_no_address_is_not_watched(tmp_path: Path, typed: str) -> None:
    with pytest.raises(UsageError, match="address"):
        await keeper(tmp_path).add(None, typed)


async def test_a_mistyped_address_is_not_watched(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="checksum"):
        await keeper(tmp_path).add(None, "0xABaBaBaBABabABabAbAbABAbABabababaBaBABab")
    with pytest.raises(UsageError, match="--watch"):
        await keeper(tmp_path).add("file", OTHER)
    assert (await keeper(tmp_path).show()).wallets == ()
    shown = await keeper(tmp_path).add(None, "0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB")
    assert (shown.address, shown.watch_only) == (OTHER, True)
