"""Replies of models, kept by the request they answered: a study runs again without a key, to the same bytes."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias

from pydantic import ValidationError

from zuno.kernel.canonical import Json
from zuno.kernel.units import Millis
from zuno.kernel.view import View, write_document
from zuno.lab.reports import ReportFiles, whole_lines
from zuno.llm.ask import ModelContext
from zuno.llm.port import Attempt, Failed, ModelRegistry, ModelRequest, Outcome, Reply, RoleModels, Usage

_KEPT: Final[frozenset[Outcome]] = frozenset({"ok", "malformed", "out_of_bounds", "unsupported_figure"})
"""What a model said. That nobody answered is no reply, and is asked again."""


class PricedModel(View):
    """A model by name and price of a token in dollars; null: not known. It answers nothing but what is in the book."""

    name: str
    usd_in: Decimal | None = None
    usd_out: Decimal | None = None

    async def price(self, tokens_in: int, tokens_out: int) -> Decimal | None:
        if self.usd_in is None or self.usd_out is None:
            return None
        return self.usd_in * tokens_in + self.usd_out * tokens_out

    async def ready(self) -> None:
        return None

    async def reply(self, request: ModelRequest) -> Reply:
        return Failed("unavailable", "no reply to this request is kept", Usage(0, 0, Decimal(0)))

    async def close(self) -> None:
        return None


class RoleTable(View):
    """The models of every role, best first."""

    roles: dict[str, tuple[PricedModel, ...]]


DescribeModels: TypeAlias = Callable[[], Awaitable[RoleTable]]


async def describe_models(registry: ModelRegistry, roles: Sequence[str]) -> RoleTable:
    """Whom a registry would ask. Prices go with the tokens, so those of one token tell them."""
    priced: dict[str, PricedModel] = {}
    chains: dict[str, tuple[PricedModel, ...]] = {}
    for role in roles:
        models = registry.models_for(role, 0).models
        for model in models:
            if model.name not in priced:
                usd_in, usd_out = await model.price(1, 0), await model.price(0, 1)
                priced[model.name] = PricedModel(name=model.name, usd_in=usd_in, usd_out=usd_out)
        chains[role] = tuple(priced[model.name] for model in models)
    return RoleTable(roles=chains)


NameModels: TypeAlias = Callable[[], Awaitable[Mapping[str, Json]]]
"""Whom a desk would ask, by role, and how many rounds it argues: what models say hangs on it."""


class ReplyBook:
    """`replies.jsonl` of the lab's folder, or another file of the same form for replies that are to be fresh. Beside it
    stands who was asked, in which order and at which price: `replies-models.json`."""

    def __init__(self, files: ReportFiles, name: str, describe: DescribeModels | None = None) -> None:
        """`describe`: who is asked now; kept with the first fresh reply."""
        self._describe = describe
        self._files, self._name, self._table_name = files, f"{name}.jsonl", f"{name}-models.json"
        self._attempts: dict[str, Attempt] = {}
        for line in whole_lines(files.read(self._name)):
            try:
                attempt = Attempt.model_validate_json(line)
            except ValidationError:
                continue  # of another form: it is asked for again
            self._attempts.setdefault(attempt.request, attempt)
        self._table = _read_table(files.read(self._table_name))

    def recall(self, request: ModelRequest) -> Attempt | None:
        return self._attempts.get(request.fingerprint)

    async def record(self, attempt: Attempt) -> None:
        if attempt.outcome in _KEPT and attempt.request not in self._attempts:
            await self._keep_table()
            self._attempts[attempt.request] = attempt
            self._files.add_lines(self._name, [attempt.model_dump_json(by_alias=True)])

    def has_reply(self, role: str) -> bool:
        return any(attempt.role == role for attempt in self._attempts.values())

    def models_for(self, role: str, round: int) -> RoleModels:
        """Those that were asked, in that order: a registry for whoever has no key."""
        models = self._list_speakers(role) if self._table is None else self._table.roles.get(role, ())
        return RoleModels(models, "" if models else "no model is configured and no reply is kept")

    async def close(self) -> None:
        return None

    def _list_speakers(self, role: str) -> tuple[PricedModel, ...]:
        """Of replies that are older than the table: a model is asked after those that failed before it."""
        first: dict[str, int] = {}
        for attempt in self._attempts.values():
            if attempt.role == role:
                first[attempt.model] = min(attempt.attempt, first.get(attempt.model, attempt.attempt))
        return tuple(PricedModel(name=name) for name in sorted(first, key=lambda name: (first[name], name)))

    async def _keep_table(self) -> None:
        if self._describe is not None:
            describe, self._describe = self._describe, None
            self._table = await describe()
            self._files.write(self._table_name, (write_document(self._table) + "\n").encode())


def _read_table(content: bytes | None) -> RoleTable | None:
    try:
        return None if content is None else RoleTable.model_validate_json(content)
    except ValidationError:
        return None


class KeptOrConfigured:
    """The configured models; of a role that has none, those whose replies are kept."""

    def __init__(self, configured: ModelRegistry, kept: ModelRegistry) -> None:
        self._configured, self._kept = configured, kept

    def models_for(self, role: str, round: int) -> RoleModels:
        configured = self._configured.models_for(role, round)
        return configured if configured.models else self._kept.models_for(role, round)

    async def close(self) -> None:
        await self._configured.close()


class ModelCharge(NamedTuple):
    """What one reply took, fresh or kept: an arm pays for what it heard."""

    at: Millis
    tokens: int
    usd: Decimal
    model: str
    """Empty where nothing was said."""


def describe_unanswered(count: int) -> str:
    return f"{count:,} questions to models had no answer, and rules answered for them; --resume asks again."


class ModelMeter:
    """Counts what the models of one arm took."""

    def __init__(self, now: Callable[[], Millis]) -> None:
        self._now = now
        self.charges: list[ModelCharge] = []
        self.unanswered = 0
        """Questions to which no model said anything: the budget was spent, or nobody could be reached."""
        self._answered: dict[tuple[str, int], bool] = {}

    def add(self, attempt: Attempt) -> None:
        spent = attempt.usd if attempt.usd is not None else Decimal(0)
        model = attempt.model if attempt.outcome in _KEPT else ""
        self.charges.append(ModelCharge(self._now(), attempt.tokens_in + attempt.tokens_out, spent, model))
        question = (attempt.role, attempt.round)
        before = self._answered.get(question) if attempt.attempt > 1 else None
        self.unanswered -= before is False  # the model before it was silent, and this one is asked in its place
        answered = bool(before) or attempt.outcome in (*_KEPT, "refused")
        self._answered[question] = answered
        self.unanswered += not answered


def keep_replies(model_context: ModelContext, book: ReplyBook, meter: ModelMeter) -> ModelContext:
    """Asks only what the book does not hold, and keeps what is answered."""

    def recall(request: ModelRequest) -> Attempt | None:
        known = book.recall(request)
        if known is not None:
            meter.add(known)
        return known

    async def record(attempt: Attempt) -> None:
        await model_context.record(attempt)
        await book.record(attempt)
        meter.add(attempt)

    return replace(model_context, recall=recall, record=record)


def draw_again(model_context: ModelContext, number: int) -> ModelContext:
    """The same models, whose replies to the same requests are others: the first of them is 0."""
    if not number:
        return model_context

    def recall(request: ModelRequest) -> Attempt | None:
        return model_context.recall(replace(request, fingerprint=f"{request.fingerprint}/{number}"))

    async def record(attempt: Attempt) -> None:
        await model_context.record(attempt.model_copy(update={"request": f"{attempt.request}/{number}"}))

    return replace(model_context, recall=recall, record=record)
