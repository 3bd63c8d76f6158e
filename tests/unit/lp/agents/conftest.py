"""The worlds the desk is tested in: the simulated one as it is, shaken, and drifted out of range."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.wire.debating import Table, observed, shaken
from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.lp.model.debate import Context


@pytest.fixture(scope="session")
async def calm(tmp_path_factory: pytest.TempPathFactory) -> Context:
    """Proposals are accepted at once."""
    return await observed(tmp_path_factory.mktemp("calm"))


@pytest.fixture(scope="session")
def rough(calm: Context) -> Context:
    """First proposals are found too thin; a revision can answer."""
    return shaken(calm, Fraction(6, 5))


@pytest.fixture(scope="session")
def wild(calm: Context) -> Context:
    """Every move of a first proposal is vetoed."""
    return shaken(calm, Fraction(2))


@pytest.fixture(scope="session")
async def drifted(tmp_path_factory: pytest.TempPathFactory) -> Context:
    """The price has left the position's range."""
    home = tmp_path_factory.mktemp("drifted")
    await SimChain(SimFile(home)).move(Decimal(-15))
    context = await observed(home)
    position = context.scenes[0].position
    assert position
    assert not position.in_range
    return context


@pytest.fixture(scope="session")
def worlds(calm: Context, rough: Context, wild: Context, drifted: Context) -> dict[str, Context]:
    return {"calm": calm, "rough": rough, "wild": wild, "drifted": drifted}


@pytest.fixture
def seat(tmp_path: Path) -> Callable[..., Table]:
    """A table: `seat(context, critic=script, …)`."""

    def seated(context: Context, *, settings: dict[str, Any] | None = None, **scripts: Any) -> Table:
        return Table(tmp_path, context, scripts, **(settings or {}))

    return seated
