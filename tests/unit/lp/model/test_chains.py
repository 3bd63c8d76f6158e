"""The table of chains: every row is complete, and what gas is paid in is the row's own."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

from zuno.adapters.prices.coingecko import COINS
from zuno.amm.model import PoolKey
from zuno.kernel.text import NATIVE, STABLES
from zuno.kernel.units import Address, Pips
from zuno.lp.model.chains import CHAINS, PERMIT2, ChainInfo, DataFee, chain_named, market_name, native_coin
from zuno.settings import Settings


def row(name: str) -> ChainInfo:
    info = chain_named(name)
    assert info is not None
    return info


def addresses(info: ChainInfo) -> Iterator[Address]:
    at = info.deployment
    yield from (at.pool_manager, at.position_manager, at.universal_router, at.permit2)
    yield from (token.address for token in info.tokens if not token.native)


def test_no_two_rows_share_an_id_a_name_or_a_variable() -> None:
    rows = [(chain.id, chain.name, chain.rpc_url_variable) for chain in CHAINS]
    assert all(len({*column}) == len(CHAINS) for column in zip(*rows, strict=True))


@pytest.mark.parametrize("info", CHAINS, ids=lambda info: info.name)
def test_every_row_is_complete(info: ChainInfo) -> None:
    listed = list(addresses(info))
    assert len({*listed}) == len(listed)
    for address in listed:
        assert len(bytes.fromhex(address.removeprefix("0x"))) == 20
        assert address == address.lower() != NATIVE
    assert info.deployment.permit2 == PERMIT2
    assert [token for token in info.tokens if token.native] == [info.native.token]
    assert info.native.token.decimals == 18
    assert all(token.verified for token in info.tokens)
    assert len({token.symbol for token in info.tokens}) == len(info.tokens)
    assert info.confirmations >= 1
    assert info.block_millis > 0
    assert {market_name(token) for token in info.tokens} <= COINS.keys()
    assert COINS[info.native.symbol] == COINS[info.native.wrapped] == info.native.price_id
    assert Settings().rpc_urls(info.name) == ()
    if not info.testnet:
        assert info.wrapper is not None
        assert info.wrapper.decimals == 18
        assert STABLES & {token.symbol for token in info.tokens}


def test_unichain_is_an_op_stack_rollup_of_one_second_that_pays_in_ether() -> None:
    unichain = row("unichain")
    assert (unichain.id, unichain.native.symbol, unichain.data_fee) == (130, "ETH", DataFee.OP_STACK)
    assert unichain.block_millis == 1_000
    assert unichain.deployment.pool_manager == "0x1f98400000000000000000000000000000000004"
    assert not unichain.testnet


def test_polygon_pays_in_pol_and_its_weth_is_a_token_like_any_other() -> None:
    polygon = row("137")
    assert (polygon.native.symbol, polygon.data_fee, polygon.testnet) == ("POL", DataFee.NONE, False)
    by_symbol = {token.symbol: token for token in polygon.tokens}
    assert "ETH" not in by_symbol
    assert polygon.wrapper == by_symbol["WPOL"]
    usdc, weth, wpol = (by_symbol[symbol].address for symbol in ("USDC", "WETH", "WPOL"))
    assert polygon.native_side(PoolKey(usdc, weth, Pips(500), 10)) is None
    assert polygon.native_side(PoolKey(wpol, usdc, Pips(500), 10)) == 0
    assert polygon.native_side(PoolKey(NATIVE, weth, Pips(500), 10)) == 0
    assert [market_name(by_symbol[symbol]) for symbol in ("POL", "WPOL", "WETH")] == ["POL", "POL", "ETH"]


def test_an_amount_of_gas_bears_the_coin_of_its_chain() -> None:
    assert native_coin("polygon").amount_text(15 * 10**17) == "1.5 POL"
    for name in ("unichain", "sim", "devnet", "mainnet"):
        assert native_coin(name).amount_text(1) == f"{Decimal(1).scaleb(-18):f} ETH"
