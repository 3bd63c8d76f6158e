"""What one sender may still send: messages it sent before are rejected until they expire, and the rate is limited. Each
sender has its own guard, so that a talkative one cannot push out what another sent."""

from dataclasses import dataclass, field
from typing import Final

from zuno.kernel.backoff import TokenBucket
from zuno.kernel.canonical import Digest
from zuno.lp.model.debate import Kind

DebateTurn = tuple[Kind, int]
"""What is said, and after how many rounds."""
_SWEEP_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class _SeenEnvelope:
    name: Digest
    until: int


@dataclass(slots=True)
class _Request:
    last_seq: int
    letters: int
    until: int
    turns: set[DebateTurn] = field(default_factory=set)


class ReplayGuard:
    """`most_requests` that may be open at once, `most_letters` in each; `paper` is what may be written down, in bytes.
    A letter is remembered until it would be rejected for its age: there is nothing to forget before."""

    def __init__(self, most_requests: int, most_letters: int, paper: TokenBucket) -> None:
        self._most_requests = most_requests
        self._most_letters = most_letters
        self._paper = paper
        self._letters: dict[str, _SeenEnvelope] = {}
        self._requests: dict[str, _Request] = {}
        self._swept = 0

    def name_of(self, message_id: str) -> Digest | None:
        """The bytes that were taken in under this id."""
        letter = self._letters.get(message_id)
        return None if letter is None else letter.name

    def is_replayed(self, request_id: str, seq: int) -> bool:
        """Whether it has spoken beyond that number already."""
        request = self._requests.get(request_id)
        return request is not None and seq <= request.last_seq

    def has_turn(self, request_id: str, turn: DebateTurn) -> bool:
        """Whether it has said that in this request already."""
        request = self._requests.get(request_id)
        return request is not None and turn in request.turns

    def refusal(self, request_id: str, size: int, now: int) -> str | None:
        """Why so many bytes more are not taken in, if they are not."""
        self._sweep(now)
        request = self._requests.get(request_id)
        if request is None and len(self._requests) >= self._most_requests:
            return f"opens more than {self._most_requests} requests at once"
        if request is not None and request.letters >= self._most_letters:
            return f"says more than {self._most_letters} letters in one request"
        return self.storage_refusal(size, now)

    def storage_refusal(self, size: int, now: int) -> str | None:
        """Why so many bytes more are not written down, if they are not."""
        if self._paper.has(now, size):
            return None
        return f"fills more than {self._paper.burst:.0f} bytes and {self._paper.rate:.0f} a second"

    def add(
        self, message_id: str, name: Digest, request_id: str, seq: int, until: int, size: int, turn: DebateTurn
    ) -> None:
        if message_id in self._letters:
            return
        self._letters[message_id] = _SeenEnvelope(name, until)
        request = self._requests.setdefault(request_id, _Request(seq, 0, until))
        request.last_seq, request.until = max(request.last_seq, seq), max(request.until, until)
        request.letters += 1
        request.turns.add(turn)
        self._paper.pay(size)

    def charge_bytes(self, size: int) -> None:
        """A context of its is written down, or an answer to it."""
        self._paper.pay(size)

    def _sweep(self, now: int) -> None:
        if now - self._swept >= _SWEEP_MS:
            self._swept = now
            self._letters = {name: letter for name, letter in self._letters.items() if letter.until >= now}
            self._requests = {name: request for name, request in self._requests.items() if request.until >= now}
