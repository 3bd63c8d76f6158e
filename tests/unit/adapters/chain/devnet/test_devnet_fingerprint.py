"""A kept world is opened only by the code that would build the same one."""

from __future__ import annotations

import os
from pathlib import Path

import grimp
import pytest

pytest.importorskip("eth", reason="py-evm is the devnet extra")

from zuno.adapters.chain.devnet import world_builder as room
from zuno.adapters.chain.devnet.world_builder import _WORLDS_KEPT, SHAPING, _drop_old_worlds, fingerprint, source_of

# Types, words, and our own pools, which only check the finished chain.
NOT_SHAPING = (
    "zuno.adapters.atomic_file",
    "zuno.adapters.chain.sim.state",
    "zuno.adapters.chain.sim.contracts",
    "zuno.adapters.chain.sim.engine",
    "zuno.adapters.chain.sim.gas",
    "zuno.adapters.chain.sim.transactions",
    "zuno.adapters.chain.states",
    "zuno.amm.model",
    "zuno.kernel.errors",
    "zuno.kernel.installation",
    "zuno.kernel.notify",
    "zuno.kernel.numbers_text",
    "zuno.kernel.text",
    "zuno.kernel.units",
    "zuno.lp.model.chains",
    "zuno.lp.model.gas",
    "zuno.lp.model.history",
    "zuno.lp.model.market",
    "zuno.lp.model.plan",
    "zuno.lp.plan.calls",
    "zuno.lp.plan.decoding",
    "zuno.lp.ports.spending",
    "zuno_devnet.rpc_errors",
)


@pytest.mark.slow
def test_every_module_the_world_is_built_with_is_counted() -> None:
    builder = "zuno.adapters.chain.devnet.world_builder"
    used = {builder, *grimp.build_graph("zuno", "zuno_devnet").find_upstream_modules(builder)}
    assert sorted([*SHAPING, *NOT_SHAPING]) == sorted(used)


@pytest.mark.soak(every=4)
@pytest.mark.slow
@pytest.mark.parametrize("module", SHAPING)
def test_a_line_changed_anywhere_is_another_world(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(7)
    assert fingerprint(7) == before
    edited = tmp_path / "edited.py"
    edited.write_bytes(source_of(module).read_bytes() + b"# edited\n")
    monkeypatch.setattr(room, "source_of", lambda name: edited if name == module else source_of(name))
    assert fingerprint(7) != before


@pytest.mark.slow
def test_another_seed_is_another_world() -> None:
    assert fingerprint(7) != fingerprint(8)


def test_only_the_newest_worlds_are_kept(tmp_path: Path) -> None:
    for age in range(_WORLDS_KEPT + 2):
        world = tmp_path / f"world-{age}.chain"
        world.touch()
        os.utime(world, (1000 - age, 1000 - age))
    other = tmp_path / "building.lock"
    other.touch()
    _drop_old_worlds(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "building.lock",
        *(f"world-{age}.chain" for age in range(_WORLDS_KEPT)),
    }
