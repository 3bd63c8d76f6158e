"""The simulated chain on disk: a seed and the moves since, small enough to read by eye and safe to lose half-way."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zuno.adapters.chain.sim.engine import Move, SimWorld
from zuno.adapters.chain.world import DEFAULT_SEED
from zuno.domain.errors import Broken, Unavailable
from zuno.domain.units import Seconds

FORMAT = 1
_REPAIR = "run `zuno sim reset` to start a new one."


@dataclass(frozen=True, slots=True)
class Saved:
    """What is needed to play a world again, and the hash it must end on."""

    seed: int
    moves: tuple[Move, ...]
    head_hash: str


class SimFile:
    """One world per home. Reading never writes; writing is atomic and one at a time."""

    def __init__(self, home: Path) -> None:
        self._path = home / "sim.json"
        self._lock = home / "sim.lock"

    def load(self) -> SimWorld:
        """The saved world, or the default one where nothing was saved yet."""
        saved = self._read()
        if saved is None:
            return SimWorld.play(DEFAULT_SEED)
        world = SimWorld.play(saved.seed, saved.moves)
        if world.head.hash != saved.head_hash:
            raise Broken(f"The simulated world in {self._path} was made by another version of Zuno; {_REPAIR}")
        return world

    def save(self, world: SimWorld) -> None:
        document = {
            "format": FORMAT,
            "seed": world.seed,
            "moves": [{"reference": str(move.reference), "timestamp": move.timestamp} for move in world.moves],
            "head": world.head.hash,
        }
        partial = self._path.with_suffix(".json.partial")
        try:
            with open(partial, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, self._path)
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be written ({error.strerror}); the world is as it was.") from error

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the world's lock: two commands that change it take turns."""
        try:
            file = open(self._lock, "a", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise Unavailable(f"{self._lock} cannot be written ({error.strerror}); the world is as it was.") from error
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _read(self) -> Saved | None:
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except PermissionError as error:  # a world may be there: the default one must not pass for it
            raise Unavailable(f"{self._path} cannot be read ({error.strerror}); choose another --home.") from error
        except (OSError, UnicodeDecodeError) as error:
            raise Broken(f"{self._path} cannot be read ({error}); {_REPAIR}") from error
        try:
            return _saved(json.loads(text))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Broken(f"{self._path} is damaged; {_REPAIR}") from error


def _saved(document: dict[str, Any]) -> Saved:
    if document["format"] != FORMAT:
        raise ValueError("unknown format")
    moves = tuple(Move(int(move["reference"]), Seconds(int(move["timestamp"]))) for move in document["moves"])
    if any(move.reference <= 0 for move in moves):
        raise ValueError("a price is positive")
    return Saved(int(document["seed"]), moves, str(document["head"]))
