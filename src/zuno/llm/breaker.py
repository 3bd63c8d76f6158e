"""Circuit breakers: a model that keeps failing is skipped for a while."""

from __future__ import annotations

from dataclasses import dataclass

from zuno.kernel.units import Seconds

COOL_DOWN = Seconds(60)


@dataclass(slots=True)
class _Circuit:
    failures: int = 0
    open_until: Seconds | None = None
    probing: bool = False


class Breakers:
    """One circuit per model name: closed, open after `threshold` failures in a row, then one probe at a time."""

    def __init__(self, threshold: int | None = 3, cool_down: Seconds = COOL_DOWN) -> None:
        """Without a threshold no circuit ever opens (a replay decides nothing anew)."""
        if threshold is not None and threshold < 1:
            raise ValueError("a circuit needs at least one failure to open")
        self._threshold = threshold
        self._cool_down = cool_down
        self._circuits: dict[str, _Circuit] = {}

    def admit(self, name: str, now: Seconds) -> str | None:
        """None lets the call through; the caller must then report `record_success`, `record_failure` or `release`."""
        circuit = self._circuits.get(name)
        if circuit is None or circuit.open_until is None:
            return None
        # On record with what was said, so without a clock: the same failures are told in the same words.
        failed = f"it failed {self._threshold} times in a row or more"
        if now < circuit.open_until:
            return f"{failed} and is left alone for a while"
        if circuit.probing:
            return f"{failed} and is being tried by another call"
        circuit.probing = True
        return None

    def record_success(self, name: str) -> None:
        self._circuits.pop(name, None)

    def record_failure(self, name: str, now: Seconds) -> None:
        circuit = self._circuits.setdefault(name, _Circuit())
        circuit.failures += 1
        circuit.probing = False
        if self._threshold is not None and circuit.failures >= self._threshold:
            circuit.open_until = Seconds(now + self._cool_down)

    def release(self, name: str) -> None:
        """The admitted call was not made or was cancelled by us: it counts neither way."""
        if name in self._circuits:
            self._circuits[name].probing = False
