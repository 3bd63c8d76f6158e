"""Thousands of wallets: read some at a time, none of them hidden by another, and a round cut short goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.lp.watch.test_monitor import House
from tests.wire.many_wallets import INFO, GeneratedChain, serve_chain, wallet_address
from tests.wire.watching import WatchedChain, position
from zuno.adapters.chain.rpc import RpcChain
from zuno.kernel.errors import Malformed, Unavailable
from zuno.kernel.units import Address
from zuno.lp.ports.chain import Holdings
from zuno.lp.watch import monitor
from zuno.lp.watch.monitor import Watch


class CrowdedChain(WatchedChain):
    """A wallet for every position, and what was asked together."""

    poison: frozenset[Address] = frozenset()
    gone: frozenset[Address] = frozenset()
    stops_at: Address | None = None

    def asked(self) -> list[tuple[Address, ...]]:
        self.__dict__.setdefault("questions", [])
        return self.__dict__["questions"]

    async def holdings_of(self, owners: Sequence[Address]) -> tuple[Holdings, ...]:
        self.asked().append(tuple(owners))
        if self.stops_at in owners:
            await asyncio.Event().wait()
        if self.poison & {*owners}:
            raise Malformed("a position that cannot be")
        if self.gone & {*owners}:
            raise Unavailable("nobody answers")
        return await super().holdings_of(owners)


def crowd(count: int) -> CrowdedChain:
    return CrowdedChain(held=[position(id=number + 1, owner=wallet_address(number)) for number in range(count)])


def house_of(folder: Path, chain: CrowdedChain, **more: float) -> House:
    watches = [Watch(chain.name, held.owner) for held in chain.held]
    return House(folder, [chain], watches, **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "WALLETS_AT_ONCE", 4)
    monkeypatch.setattr(monitor, "TOLD_EVERY", 0.0)


async def test_a_round_is_read_in_parts_and_says_how_far_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chain = crowd(10)
    house = house_of(tmp_path, chain)
    with caplog.at_level(logging.INFO, "zuno.lp.watch.monitor"):
        tick = await house.monitor.tick()
    assert tick.chains[0].positions == 10
    assert [len(part) for part in chain.asked()] == [4, 4, 2]
    assert len(house.told) == len(caplog.records) == 2


async def test_a_malformed_wallet_hides_no_other(tmp_path: Path) -> None:
    chain = crowd(10)
    chain.poison = frozenset({wallet_address(6)})
    look = (await house_of(tmp_path, chain).monitor.tick()).chains[0]
    assert (look.positions, look.wallets) == (9, 9)
    assert look.failure


async def test_wallets_whose_part_was_not_answered_raise_and_clear_nothing(tmp_path: Path) -> None:
    chain = crowd(10)
    chain.held = [position(-50, id=number + 1, owner=wallet_address(number)) for number in range(10)]
    house = house_of(tmp_path, chain)
    assert len((await house.monitor.tick()).alerts) == 10
    chain.gone = frozenset({wallet_address(5)})
    chain.held = []
    tick = await house.later()
    assert tick.chains[0].wallets == 6
    assert {alert.wallet for alert in tick.alerts} == {wallet_address(number) for number in range(4, 8)}


async def test_a_round_that_was_cut_short_goes_on_where_it_ended(tmp_path: Path) -> None:
    chain = crowd(10)
    chain.stops_at = wallet_address(5)
    house = house_of(tmp_path, chain, patience=0.2)
    tick = await house.monitor.tick()
    assert tick.chains[0].wallets == 4
    chain.stops_at = None
    chain.asked().clear()
    assert (await house.later()).chains[0].wallets == 10
    assert chain.asked()[0][0] == wallet_address(4)
    chain.asked().clear()
    await house.later()
    assert chain.asked()[0][0] == wallet_address(0)


async def test_alerts_of_wallets_that_left_the_list_end(tmp_path: Path) -> None:
    chain = crowd(10)
    chain.held = [position(-50, id=number + 1, owner=wallet_address(number)) for number in range(10)]
    house = house_of(tmp_path, chain)
    await house.monitor.tick()
    house.watches = house.watches[3:]
    assert len((await house.later()).alerts) == 7


@contextmanager
def generated(wallets: int, held: int, folder: Path) -> Iterator[tuple[GeneratedChain, RpcChain]]:
    chain = GeneratedChain(wallets, held)
    with serve_chain(chain) as url:
        yield chain, RpcChain(INFO, [url], folder / "chains")


async def test_a_node_is_asked_little_for_many_wallets(tmp_path: Path) -> None:
    with generated(120, 2, tmp_path) as (world, chain):
        strangers = [Address("0x" + "77" * 20)]
        every = await chain.holdings_of([*world.wallets, *strangers])
        first = chain.requests
        assert [holdings.owned.ids for holdings in every] == [
            tuple(world.ids.get(owner, ())) for owner in (*world.wallets, *strangers)
        ]
        assert all(holdings.owned.complete for holdings in every)
        world.head += 1
        newest = world.mint(world.wallets[7], 3)
        again = await chain.holdings_of([*world.wallets, *strangers])
        assert again[7].owned.ids == (*every[7].owned.ids, newest)
        assert {position.pool.id for held in again for position in held.snapshot.positions} == {*world.pools}
        assert first <= 12
        assert chain.requests - first <= 16
        alone = [await chain.holdings(world.wallets[number]) for number in (0, 7, 119)]
        assert alone == [again[number] for number in (0, 7, 119)]
        await chain.close()
