"""A token that only its own contract calls USDC: shown as a stranger, and never priced by the name it gave itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.chain.world import USDC, WETH
from zuno.adapters.prices.coingecko import CoinGecko
from zuno.adapters.prices.feeds import ChainGas, FirstThatAnswers, NativePrice, PoolHistory
from zuno.amm.model import PoolState
from zuno.doors.cli.render import render
from zuno.kernel.text import Token
from zuno.kernel.units import HexId
from zuno.lp.model.chains import ETHER, market_name
from zuno.lp.ports.chain import Snapshot
from zuno.lp.ports.market import Feeds
from zuno.lp.service.positions import LpDesk
from zuno.lp.service.to_views import position_view
from zuno.lp.service.views import InspectView, PositionsView


class Impostors(SimChain):
    """The embedded world, had strangers deployed one of its tokens under the name it bears."""

    def __init__(self, home: Path, *impostors: Token) -> None:
        super().__init__(SimFile(home))
        self._impostors = {token.address for token in impostors}

    async def pool(self, pool_id: HexId) -> PoolState:
        return self._doubted(await super().pool(pool_id))

    async def positions(self, ids: Sequence[int]) -> Snapshot:
        snapshot = await super().positions(ids)
        doubted = tuple(replace(one, pool=self._doubted(one.pool)) for one in snapshot.positions)
        return replace(snapshot, positions=doubted)

    def _doubted(self, pool: PoolState) -> PoolState:
        token0, token1 = (
            replace(token, verified=token.address not in self._impostors) for token in (pool.token0, pool.token1)
        )
        return replace(pool, token0=token0, token1=token1)


async def inspected(chain: SimChain) -> tuple[InspectView, list[str]]:
    """Position 1 as the desk shows it beside a price service, and what that service was asked."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[0])
        at = 1000 * (await chain.head()).timestamp
        body = b'{"prices":[[%d,2400.5]]}' % at
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        service = CoinGecko(f"http://{host}:{port}")

        def feeds(pool_id: HexId) -> Feeds:
            prices = FirstThatAnswers((service, PoolHistory(chain, pool_id)))
            return Feeds(prices, ChainGas(chain), NativePrice(prices, ETHER))

        try:
            return await LpDesk(chain, feeds).inspect("1"), asked
        finally:
            await service.close()


async def test_tokens_we_named_are_priced_by_the_service(tmp_path: Path) -> None:
    seen, asked = await inspected(Impostors(tmp_path))
    assert seen.market.reference_price.source == "coingecko"
    assert asked
    assert seen.pool.currency0.verified
    assert seen.pool.currency1.verified
    assert seen.pool.label == "WETH/USDC 0.05 %"


@pytest.mark.parametrize("impostor", [USDC, WETH], ids=lambda token: token.symbol)
async def test_a_stranger_is_never_priced_by_the_name_it_gave_itself(tmp_path: Path, impostor: Token) -> None:
    seen, asked = await inspected(Impostors(tmp_path, impostor))
    reference = seen.market.reference_price
    assert reference.source == "pool price"  # what the pool itself says, and labelled as that
    assert any(impostor.address in note for note in reference.notes)
    # Ether in the real USDC may be asked for; anything in a stranger's USDC may not.
    assert len(asked) == (0 if impostor is USDC else 2)
    sides = {seen.pool.currency0.address: seen.pool.currency0, seen.pool.currency1.address: seen.pool.currency1}
    assert [side.verified for address, side in sides.items() if address == impostor.address] == [False]
    assert f"{impostor.symbol}?" in seen.pool.label
    assert f"{impostor.symbol}?" in reference.unit


def test_a_stranger_called_like_the_native_currency_is_not_it() -> None:
    assert market_name(WETH) == "ETH"
    assert market_name(replace(WETH, verified=False)) == WETH.address
    assert market_name(replace(USDC, verified=False)) == USDC.address


async def test_tables_mark_the_stranger_and_say_who_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = await Impostors(tmp_path, USDC).positions([1])
    shown = position_view(snapshot.positions[0])
    document = PositionsView(
        chain="sim", block=1, timestamp=1, wallet=None, complete=True, note="", positions=(shown,), missing=()
    )
    sides = [shown.model_dump(by_alias=True)["pool"][side] for side in ("currency0", "currency1")]
    assert {side["symbol"]: side["verified"] for side in sides} == {"WETH": True, "USDC": False}
    render(document)
    out = capsys.readouterr().out
    assert "WETH/USDC?" in out
    assert f"USDC? is {USDC.address}" in out
    assert "WETH?" not in out
