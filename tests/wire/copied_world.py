"""The simulated chain's default story, played once by a process and copied for each home."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from copy import copy
from typing import Any

from zuno.adapters.chain.sim.engine import SimWorld, WorldEvent

_GROWING = ("prices", "swaps", "traded")
"""Of each pool; a world adds to them and changes nothing that is there: copies share what they hold."""
_stories: dict[int, tuple[bytes, dict[str, list[Any]]]] = {}


class CopiedWorld:
    """A world whose story was played once by this process."""

    @staticmethod
    def play(seed: int, events: Iterable[WorldEvent] = ()) -> SimWorld:
        if seed not in _stories:
            played = SimWorld.play(seed)
            growing = {name: vars(played).pop(name) for name in _GROWING}
            _stories[seed] = pickle.dumps(played), growing
        rest, growing = _stories[seed]
        world: SimWorld = pickle.loads(rest)
        vars(world).update({name: [copy(each) for each in pools] for name, pools in growing.items()})
        for event in events:
            world.replay(event)
        return world
