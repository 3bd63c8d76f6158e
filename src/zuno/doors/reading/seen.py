"""Positions that were shown, and which of them a line refers to: by its place in the list or by its tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from zuno.doors.reading.intents import UNCLEAR, Reading, intent_of
from zuno.lp.service.create_request import same_token
from zuno.lp.service.views import PositionsView, PositionView

PLACES: Final = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4}
_MOST_KEPT: Final = 200
_MOST_CHOICES: Final = 3


@dataclass(frozen=True, slots=True)
class ShownPosition:
    chain: str
    id: str
    tokens: tuple[str, ...] = ()


def to_shown_position(view: PositionView) -> ShownPosition:
    return ShownPosition(view.chain, view.id, (view.pool.currency0.symbol, view.pool.currency1.symbol))


def to_shown_positions(view: PositionsView) -> list[ShownPosition]:
    return [to_shown_position(position) for position in view.positions[:_MOST_KEPT]]


def asks_for_list(reading: Reading) -> bool:
    """Whether the line means a position by its place in a list, or by what it holds."""
    takes = reading.intent != UNCLEAR and "position" in intent_of(reading.intent).takes
    return takes and ("holds" in reading.slots or reading.slots.get("refers") in PLACES)


def find_position(reading: Reading, seen: Sequence[ShownPosition]) -> Reading:
    """The reading with the position it means; asked back where none or several are meant."""
    slots = {name: value for name, value in reading.slots.items() if name not in {"refers", "holds"}}
    held, refers = reading.slots.get("holds"), reading.slots.get("refers")
    if held is None:
        place = PLACES[str(refers)]
        matches = [seen[place]] if place < len(seen) else []
    else:
        matches = _holders(held.split("/"), seen)
    if len(matches) == 1:
        return replace(reading, slots={**slots, "position": matches[0].id})
    description = f"holds {held}" if held else f"is the {refers}"
    if not matches:
        return replace(reading, slots=slots, ask=f"No position shown {description}; say its id.")
    choices = tuple(replace(reading, slots={**slots, "position": position.id}) for position in matches[:_MOST_CHOICES])
    return replace(reading, slots=slots, ask=f"More than one position {description}.", choices=choices)


def _holders(tokens: Sequence[str], seen: Sequence[ShownPosition]) -> list[ShownPosition]:
    """Those that hold every token itself; else those that hold its like, as WETH is to ETH."""
    exact = [position for position in seen if all(token in position.tokens for token in tokens)]
    alike = [s for s in seen if all(any(same_token(token, held) for held in s.tokens) for token in tokens)]
    return exact or alike
