"""Where alerts are remembered, and the one seat a monitor takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from zuno.lp.model.alerts import AlertBook

T = TypeVar("T")


class AlertStore(Protocol):
    """Promises one book for all processes of a home:

    - `change` holds the book alone while it reads, computes and writes; two changes never lose one another.
    - A change is written whole or not at all, and what `change` returned of is on disk.
    - A book nobody wrote yet is empty; one that cannot be read is `Broken` and stays as it is.
    - `Unavailable` where it cannot be reached or written: nothing was changed.
    """

    async def book(self) -> AlertBook: ...

    async def change(self, make: Callable[[AlertBook], tuple[AlertBook, T]]) -> T:
        """Replace the book by what `make` returns; `make` runs while the book is held, possibly on a thread."""
