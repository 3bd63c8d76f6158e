"""The simulated chain on disk: a seed and the events since, in one small file that is replaced whole."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zuno.adapters.atomic_file import replace_file, translate_write_errors
from zuno.adapters.chain.sim.engine import PriceShift, SentTransaction, SimWorld, WorldEvent
from zuno.adapters.chain.world import DEFAULT_SEED
from zuno.adapters.file_lock import WAIT_SECONDS, FileLock
from zuno.kernel.errors import Broken, Refused, Unavailable
from zuno.kernel.units import Address, Seconds

FORMAT = 2
_MOVES_ALONE = 1
"""The format of worlds before there were transactions."""
_REPAIR = "run `zuno sim reset` to start a new one."


@dataclass(frozen=True, slots=True)
class SavedWorld:
    """What is needed to play a world again, and the hash it must end on."""

    seed: int
    events: tuple[WorldEvent, ...]
    head_hash: str


class SimFile:
    """One world per home. Reading never writes; writing is atomic and one at a time."""

    def __init__(self, home: Path) -> None:
        self._path = home / "sim.json"
        self._lock = home / "sim.lock"

    def load(self) -> SimWorld:
        """The saved world, or the default one where nothing was saved yet."""
        saved = self._load_saved()
        if saved is None:
            return SimWorld.play(DEFAULT_SEED)
        other = f"The simulated world in {self._path} was made by another version of Zuno; {_REPAIR}"
        try:
            world = SimWorld.play(saved.seed, saved.events)
        except (Refused, Broken) as error:  # bytes that were taken once and would not be taken now
            raise Broken(other) from error
        if world.head.hash != saved.head_hash:
            raise Broken(other)
        return world

    def ends_on(self, world: SimWorld) -> bool:
        """Whether that world is the one on disk, without playing it."""
        saved = self._load_saved()
        if saved is None:
            return world.seed == DEFAULT_SEED and not world.events
        return saved.head_hash == world.head.hash

    def save(self, world: SimWorld) -> None:
        document = {
            "format": FORMAT,
            "seed": world.seed,
            "events": [_format_event(event) for event in world.events],
            "head": world.head.hash,
        }
        with translate_write_errors(self._path, "; the world is as it was"):
            replace_file(self._path, json.dumps(document, indent=1).encode())

    def lock(self) -> FileLock:
        return FileLock(self._lock, timeout=WAIT_SECONDS)

    def _load_saved(self) -> SavedWorld | None:
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except PermissionError as error:  # a world may be there: the default one must not pass for it
            raise Unavailable(f"{self._path} cannot be read ({error.strerror}); choose another --home.") from error
        except (OSError, UnicodeDecodeError) as error:
            raise Broken(f"{self._path} cannot be read ({error}); {_REPAIR}") from error
        try:
            document = json.loads(text)
            if document["format"] not in (_MOVES_ALONE, FORMAT):
                raise ValueError("unknown format")
            entries = document["moves" if document["format"] == _MOVES_ALONE else "events"]
            return SavedWorld(int(document["seed"]), tuple(map(_parse_event, entries)), str(document["head"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Broken(f"{self._path} is damaged; {_REPAIR}") from error


def _format_event(event: WorldEvent) -> dict[str, Any]:
    if isinstance(event, PriceShift):
        return {"reference": str(event.reference), "timestamp": event.timestamp}
    sent = {"transaction": "0x" + event.raw.hex(), "from": event.sender, "timestamp": event.timestamp}
    return {**sent, "gasTable": event.gas_table} if event.gas_table else sent


def _parse_event(entry: dict[str, Any]) -> WorldEvent:
    at = Seconds(int(entry["timestamp"]))
    if "transaction" in entry:
        from zuno.adapters.chain.sim.gas import TABLES

        raw = bytes.fromhex(entry["transaction"].removeprefix("0x"))
        if (table := int(entry.get("gasTable", 0))) not in range(len(TABLES)):
            raise ValueError(f"there is no gas table {table}")
        return SentTransaction(raw, Address(str(entry["from"])), at, table)
    move = PriceShift(int(entry["reference"]), at)
    if move.reference <= 0:
        raise ValueError("a price is positive")
    return move
