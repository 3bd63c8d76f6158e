"""The mesh under a virtual clock: loss, repetition, reordering, delay, partitions, crashes and liars, seed by seed.

Whatever the weather: at most one plan for a request, every debate ends, nobody speaks without bound, and a seed tells
the same story twice.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "wire"))

from debating import Table, observed
from mesh_world import START, Weather, World

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.agents.peer import Peer
from zuno.app.debate import recalled
from zuno.desks.lp.arbiter import Arbiter
from zuno.desks.lp.critic import Critic
from zuno.desks.lp.scout import Scout
from zuno.desks.lp.strategist import Strategist
from zuno.messages.debate import Context, Role
from zuno.ports.journal import Journal
from zuno.ports.signing import NodeKey

MOST_MESSAGES = 2_000


@pytest.fixture(scope="session")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Context:
    return asyncio.run(observed(tmp_path_factory.mktemp("mesh-sim")))


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Role, NodeKey]:
    folder = tmp_path_factory.mktemp("mesh-keys")
    made = {role: KeyFile(folder / role.value / "node.key") for role in Role}
    for key in made.values():
        key.ensure()
    return made


@pytest.fixture(scope="session")
def peer_of(frozen: Context, tmp_path_factory: pytest.TempPathFactory) -> Any:
    minds = Table(tmp_path_factory.mktemp("mesh-table"), frozen).minds()

    def peer(role: Role, journal: Journal) -> Peer:
        async def recall(name: str) -> Context:
            return await recalled(journal, name)

        async def observe(start: Any) -> Context:
            return frozen.model_copy(update={"profile": start.profile, "max_rounds": start.max_rounds})

        match role:
            case Role.SCOUT:
                return Scout(observe, journal.put_bundle, minds)
            case Role.STRATEGIST:
                return Strategist(recall, minds)
            case Role.CRITIC:
                return Critic(recall, minds)
            case _:
                return Arbiter(recall, minds)

    return peer


def weather_of(seed: int) -> Weather:
    chance = Random(seed ^ 0x5EED)
    return Weather(
        loss=chance.choice([0.0, 0.05, 0.1, 0.3]),
        repeats=chance.choice([0.0, 0.1, 0.5]),
        slowest_ms=chance.choice([5, 50, 500, 3_000]),
        crashes=chance.choice([0, 0, 1, 2]),
        partitions=chance.choice([0, 0, 1, 2]),
        names_senders=chance.random() < 0.5,
    )


def test_a_calm_mesh_reaches_the_plan_of_one_process(keys: Any, peer_of: Any) -> None:
    world = World(1, keys, peer_of, Weather())
    debate = world.ask(1)
    world.run()
    assert len(debate.plans) == 1
    assert world.now - START < 2_000


def test_whatever_the_weather_a_debate_ends_with_one_plan_at_most(keys: Any, peer_of: Any) -> None:
    for seed in range(20):
        world = World(seed, keys, peer_of, weather_of(seed))
        debate = world.ask(seed)
        world.run()
        assert debate.over, f"seed {seed} never ended"
        assert len(debate.plans) <= 1, f"seed {seed} gave {len(debate.plans)} plans"
        assert world.sent < MOST_MESSAGES, f"seed {seed} sent {world.sent} messages"
