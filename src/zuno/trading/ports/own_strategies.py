"""The owner's own strategies as the desk asks them: a confined Python file, a CSV file, or what came by webhook."""

from collections.abc import Mapping
from typing import Protocol

from zuno.kernel.units import Millis


class OwnStrategy(Protocol):
    """Promises to every asker:

    - An answer is of what was known by `at`: later rows and signals do not count.
    - It comes within bounded time and memory, whatever the owner's code does; that code reaches no key, file, network
      or other process.
    - It is unchecked: names and weights may be anything.
    """

    async def ask(self, at: Millis, view: bytes) -> Mapping[str, object]:
        """Weights by market; `view` is a `StrategyView` as JSON. `Malformed` for an answer that cannot be read,
        `Unavailable` where none came, `Refused` where it may not be asked; the sentence is for the owner."""
