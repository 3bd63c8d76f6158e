"""Child processes that are kept alive: started again after longer and longer pauses, given up after too many deaths in
a row."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

from zuno.kernel.backoff import Backoff

PART_VARIABLE: Final = "ZUNO_PART"
"""Set by `zuno serve` in its parts: stdin is a socket that ends with it and takes a byte a second."""
READY_BYTE: Final = b"r"
BEAT_BYTE: Final = b"."
BEAT_SECONDS: Final = 1.0


class Child(Protocol):
    """A process we started."""

    @property
    def pid(self) -> int: ...

    async def wait(self) -> int:
        """Its exit code, once it has one; negative for the signal that ended it."""

    def signal(self, *, hard: bool = False) -> None:
        """Ask it to end, or make it; one that is gone needs neither."""

    def last_words(self) -> str:
        """The last line it wrote; of one that a signal ended, that it was not its to say."""


Kept = TypeVar("Kept", bound=Child)


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    backoff: Backoff
    long_life: float
    """Seconds after which a life counts as one; a death after it is the first again."""
    most_deaths: int
    """Deaths in a row after which it is started once more; the next one is the last."""
    passing: int | None = None
    """The exit code of troubles that pass by themselves: such deaths are not among those."""


@dataclass(frozen=True, slots=True)
class Death:
    pid: int
    code: int
    count: int
    """In a row, this one included."""
    how: str
    """The signal or exit code, and the last line."""


@dataclass(eq=False)
class ChildKeeper(Generic[Kept]):
    """Holds the children that live now, by name. Intervals are measured by `stopwatch`, which no clock step moves."""

    policy: RestartPolicy
    stopwatch: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    children: dict[str, Kept] = field(default_factory=dict, init=False)

    async def keep(
        self,
        name: str,
        start: Callable[[], Kept],
        hear_start: Callable[[Kept], None],
        hear_death: Callable[[Death, float], None],
        is_over: Callable[[int], bool] = lambda code: False,
        has_lived: Callable[[Kept], bool] = lambda child: True,
    ) -> Death:
        """Start it again and again, until it died too often in a row or `is_over` says so of its exit code; returns
        the last death. `hear_death` gets each other one, and the seconds until the next start. `has_lived`: whether it
        did its work at all; a start alone is no life, however long it took."""
        deaths = hopeless = 0
        while True:
            child = self.children[name] = start()
            hear_start(child)
            began = self.stopwatch()
            code = await child.wait()
            del self.children[name]
            lived = has_lived(child) and self.stopwatch() - began > self.policy.long_life
            deaths = 1 if lived else deaths + 1
            ended = f"signal {-code}" if code < 0 else f"exit code {code}"
            death = Death(child.pid, code, deaths, f"{ended}: {child.last_words()}")
            hopeless = 0 if code == self.policy.passing else 1 if lived else hopeless + 1
            if is_over(code) or hopeless > self.policy.most_deaths:
                return death
            pause = self.policy.backoff.delay(deaths)
            hear_death(death, pause)
            await self.sleep(pause)
