"""A model registry that answers a replay with recorded replies: no key, no network."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from zuno.kernel.errors import Broken
from zuno.llm.port import Attempt, ModelRequest, Reply, RoleModels

_Key = tuple[str, int, int]


class RecordedModels:
    """For each role and round, the models that were asked then, in that order. A role and round without a record had no
    model then; `why` and `whys` give the reason."""

    def __init__(
        self, attempts: Iterable[Attempt], why: str = "no model was asked", whys: Mapping[str, str] | None = None
    ) -> None:
        self._attempts: dict[_Key, Attempt] = {}
        for attempt in attempts:
            key = (attempt.role, attempt.round, attempt.attempt)
            if key in self._attempts:
                raise Broken(f"Two records of attempt {attempt.attempt} of {attempt.role} in round {attempt.round}.")
            self._attempts[key] = attempt
        self._why = why
        self._whys = whys or {}
        self._unheard = set(self._attempts)
        self._differences: list[str] = []

    def list_differences(self) -> tuple[str, ...]:
        """Requests that differ from the recorded ones, and replies nobody asked for; empty for a faithful replay."""
        unheard = (
            f"{role}, round {round}: a recorded reply was not asked for" for role, round, _ in sorted(self._unheard)
        )
        return (*self._differences, *unheard)

    def models_for(self, role: str, round: int) -> RoleModels:
        theirs = [attempt for key, attempt in sorted(self._attempts.items()) if key[:2] == (role, round)]
        names = dict.fromkeys(attempt.model for attempt in theirs)
        models = tuple(_RecordedModel(self, name) for name in names)
        return RoleModels(models, "" if models else self._whys.get(role, self._why))

    async def close(self) -> None:
        return None

    def speak(self, name: str, request: ModelRequest) -> Reply:
        """The recorded reply; `Broken` when the replay asks what was never asked."""
        key = (request.role, request.round, request.attempt)
        attempt = self._attempts.get(key)
        if attempt is None or attempt.model != name:
            raise Broken(f"Nobody recorded attempt {key[2]} of {key[0]} in round {key[1]} by {name}.")
        self._unheard.discard(key)
        if attempt.request != request.fingerprint:
            self._differences.append(f"{key[0]}, round {key[1]}, attempt {key[2]}: asked differently then")
        return attempt.reply


class _RecordedModel:
    def __init__(self, registry: RecordedModels, name: str) -> None:
        self._registry = registry
        self.name = name

    async def price(self, tokens_in: int, tokens_out: int) -> Decimal | None:
        return Decimal(0)  # paid then

    async def ready(self) -> None:
        return None

    async def reply(self, request: ModelRequest) -> Reply:
        return self._registry.speak(self.name, request)

    async def close(self) -> None:
        return None
