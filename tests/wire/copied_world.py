"""The simulated chain's default story, played once by a process and copied for each home."""

from __future__ import annotations

import pickle
from collections.abc import Iterable

from zuno.adapters.chain.sim.engine import SimWorld, WorldEvent

_stories: dict[int, bytes] = {}


class CopiedWorld:
    """A world whose story was played once by this process."""

    @staticmethod
    def play(seed: int, events: Iterable[WorldEvent] = ()) -> SimWorld:
        if seed not in _stories:
            _stories[seed] = pickle.dumps(SimWorld.play(seed))
        world: SimWorld = pickle.loads(_stories[seed])
        for event in events:
            world.replay(event)
        return world
