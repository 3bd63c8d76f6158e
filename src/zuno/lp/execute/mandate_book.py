"""What the journal says of mandates."""

from dataclasses import dataclass, field

from pydantic import ValidationError

from zuno.amm.model import Block
from zuno.journal.port import Journal
from zuno.kernel.errors import Broken
from zuno.kernel.units import Millis
from zuno.lp.model.mandate import (
    MANDATE_ENTRY,
    ActDecided,
    ActsPaused,
    DeskAsked,
    LevelSeen,
    MandateEvent,
    MandateGranted,
    MandateRecord,
    MandateRevoked,
)

Place = tuple[str, str]
"""Chain and wallet."""


@dataclass(slots=True)
class MandateBook:
    """Everything the journal says of mandates."""

    standing: dict[Place, MandateGranted] = field(default_factory=dict)
    """The newest of each wallet that is not revoked; it may have expired."""
    granted: dict[str, MandateGranted] = field(default_factory=dict)
    """Every one there ever was, by its hash."""
    numbers: dict[str, int] = field(default_factory=dict)
    """Of the entries that granted them."""
    paused: bool = False
    seen: dict[tuple[str, int], tuple[Millis, Block | None]] = field(default_factory=dict)
    asked: dict[tuple[str, int], Millis] = field(default_factory=dict)
    acts: list[tuple[Millis, ActDecided]] = field(default_factory=list)

    def apply_event(self, event: MandateEvent, at: Millis, number: int) -> None:
        match event:
            case MandateGranted(mandate=mandate, hash=name):
                self.standing[mandate.chain, mandate.wallet] = self.granted[name] = event
                self.numbers[name] = number
            case MandateRevoked(hash=name):
                self.standing = {place: each for place, each in self.standing.items() if each.hash != name}
            case ActsPaused(paused=paused):
                self.paused = paused
            case LevelSeen(hash=name, position_id=position, block=block):
                self.seen[name, position] = at, block
            case DeskAsked(hash=name, position_id=position):
                self.asked[name, position] = at
            case ActDecided():
                self.acts.append((at, event))

    def acts_at(self, place: Place) -> list[tuple[Millis, ActDecided]]:
        """Acts of a wallet, whichever of its mandates they were done under."""
        of = {name for name, each in self.granted.items() if (each.mandate.chain, each.mandate.wallet) == place}
        return [(at, act) for at, act in self.acts if act.hash in of]


async def load_mandates(journal: Journal) -> MandateBook:
    book = MandateBook()
    async for entry in journal.entries(kind=MANDATE_ENTRY):
        try:
            book.apply_event(MandateRecord.model_validate(dict(entry.payload)).of, entry.at, entry.seq)
        except ValidationError as error:
            raise Broken(f"Entry {entry.seq} ({entry.kind}) cannot be read.") from error
    return book
