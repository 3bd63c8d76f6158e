"""The chains of a process: each opened once, and none left open."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from zuno.adapters.chain.rpc.chain import RpcChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import HexId, Seconds
from zuno.settings import Settings, read_settings
from zuno.wiring.chains import Chains


@dataclass
class Running:
    """Where a devnet answers today."""

    at: str

    def url(self) -> str:
        return self.at


class DevnetChains(Chains):
    """Chains beside a devnet that may be started anew elsewhere."""

    def __init__(self, home: Path) -> None:
        super().__init__(read_settings({}, home), None, lambda: None)
        self.running: Any = Running("http://127.0.0.1:1")

    def devnet(self) -> Any:
        return self.running


async def test_a_devnet_that_was_started_anew_is_read_anew_and_the_old_connection_is_closed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[object] = []

    async def close(chain: RpcChain) -> None:
        closed.append(chain)

    monkeypatch.setattr(RpcChain, "close", close)
    chains = DevnetChains(tmp_path)
    first = chains.current_chain("devnet")
    assert chains.current_chain("devnet") is first
    chains.running = Running("http://127.0.0.1:2")
    second = chains.current_chain("devnet")
    assert second is not first
    await chains.close()
    assert {id(one) for one in closed} == {id(first), id(second)}
    assert len(closed) == 2


async def test_sim_is_watched_as_the_file_has_it_now_and_otherwise_opened_once(tmp_path: Path) -> None:
    chains = DevnetChains(tmp_path)
    assert chains.open_chain(" SIM ") is chains.open_chain("sim") is chains.sim
    before = (await chains.current_chain("sim").head()).number
    await DevnetChains(tmp_path).sim.move(Decimal(5))
    assert (await chains.current_chain("sim").head()).number == before + 1
    assert SimFile(tmp_path).load().head.number == before + 1


def test_a_home_that_cannot_be_written_still_shows_sim(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chains = Chains(read_settings({}, tmp_path), "Read-only file system", lambda: None)
    assert chains.open_chain("sim") is chains.sim
    assert "read" in capsys.readouterr().err
    with pytest.raises(Unavailable, match="--home"):
        chains.open_chain("base")


async def test_gas_is_priced_by_the_coin_of_the_chains_row(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:1"
    settings = Settings.model_validate({"home": tmp_path, "polygon_rpc_url": nowhere, "unichain_rpc_url": nowhere})
    chains = Chains(settings, None, lambda: None)
    for name, wrapped in (("polygon", "WPOL"), ("unichain", "WETH"), ("sim", "WETH")):
        native = chains.feeds(chains.open_chain(name), HexId("0x" + "11" * 32)).native
        fact = await native.native(wrapped, Seconds(1_700_000_000))
        assert (fact.value, fact.source) == (1, "same currency")
    await chains.close()
