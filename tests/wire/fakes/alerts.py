"""Alerts that live as long as their process: for tests and for tours that leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from zuno.kernel.errors import Refused
from zuno.lp.model.alerts import AlertBook

T = TypeVar("T")


class AlertsInMemory:
    """Nothing here awaits, so nobody can come between reading and writing."""

    def __init__(self) -> None:
        self._book = AlertBook()

    async def book(self) -> AlertBook:
        return self._book

    async def change(self, make: Callable[[AlertBook], tuple[AlertBook, T]]) -> T:
        self._book, answer = make(self._book)
        return answer


class SeatInMemory:
    """One object is one home."""

    def __init__(self) -> None:
        self._taken = False

    def take(self) -> None:
        if self._taken:
            raise Refused("A monitor runs already in this process.")
        self._taken = True

    @property
    def is_taken(self) -> bool:
        return self._taken

    def leave(self) -> None:
        self._taken = False
