"""Whole cycles with models that answer garbage or obey strangers: each ends, says so, and opens nothing by it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import pytest

from tests.examples import mark_all_but
from tests.wire.accounts import build_account
from tests.wire.attacks import ATTACKS, Attack, attacked, obeying
from tests.wire.cycling import Desk
from tests.wire.desk_bundles import AS_OF, World, bundle_of, holding
from tests.wire.desk_roles import ROLES, Argued, argued
from tests.wire.fakes.model import Line, ScriptedModel, Silence
from tests.wire.fakes.series import MemorySeries
from zuno.adapters.store.memory import MemoryStore
from zuno.journal.journal import ChainedJournal
from zuno.kernel.units import Millis
from zuno.llm.ask import ModelContext
from zuno.llm.port import Failed, ModelRegistry, ModelRequest
from zuno.trading.model.account import Account, account_slots
from zuno.trading.model.bundle import Bundle, Slot
from zuno.trading.model.cycle import Call, Outcome, Style
from zuno.trading.model.market import Side
from zuno.trading.ports.series import Batch, Origin
from zuno.trading.run.record import RunJournal
from zuno.trading.service.report import page
from zuno.trading.service.runs_view import run_view

BTC = "BTCUSDT"
DOWN = World(drift=-0.01, lean=-0.8, whales=-0.5, stocks=-0.03)
"""A market in which the rules sell."""
NOW = Millis(AS_OF + 60_000)


@cache
def bundle(*, panic: bool = False) -> Bundle:
    return bundle_of(replace(DOWN, dvol=75.0) if panic else DOWN)


def store_of(given: Bundle) -> MemorySeries:
    store = MemorySeries(Origin(synthetic=True, label="SYNTHETIC by hand"))
    asyncio.run(store.write([Batch(block.series, list(block.rows)) for block in given.blocks]))
    return store


@pytest.fixture(scope="module")
def store() -> MemorySeries:
    return store_of(bundle())


@pytest.fixture(scope="module")
def panic() -> MemorySeries:
    return store_of(bundle(panic=True))


@pytest.fixture(scope="module")
def debate() -> Argued:
    """What the rules say about it."""
    found = asyncio.run(argued(bundle(), None))
    assert found.draft.opens
    return found


async def soon(seconds: float) -> None:
    """A timer that has run out by the time a model that answers has done so."""
    for _ in range(100):
        await asyncio.sleep(0)


@dataclass
class Room(Desk):
    """A desk in memory, at which nobody waits."""

    account: Account | None = None

    def __post_init__(self) -> None:
        self.journal = ChainedJournal(MemoryStore(), self.key, code=lambda: "test", now=lambda: AS_OF)
        self.now = lambda: NOW

    async def _held(self, of: str, moment: Millis, present: bool, account: Any = None) -> list[Slot]:
        return account_slots(self.account or build_account(usd=2_000.0, krw=2_000_000.0), moment)

    def _model_context(self, notebook: RunJournal, registry: ModelRegistry) -> ModelContext:
        return replace(super()._model_context(notebook, registry), sleep=soon)


Script = Callable[[ModelRequest], Line]


def seated(home: Path, store: MemorySeries, script: Script, account: Account | None = None) -> Room:
    """With one model in every seat."""
    return Room(home, store, models={role: (ScriptedModel(script),) for role in ROLES}, account=account)


async def cycle(home: Path, store: MemorySeries, script: Script, account: Account | None = None) -> Outcome:
    return await seated(home, store, script, account).cycles.run(BTC, chart=False)


def honest(debate: Argued) -> Script:
    return lambda request: debate.twin(request.role, None).model_dump_json()


# -- garbage

Said = dict[str, Any]


def _spoiled(said: Said, kind: type | tuple[type, ...], value: Any) -> Said:
    """With another value in the first field of a kind, or in the first of all where there is none."""
    for name, old in said.items():
        if isinstance(old, kind) and not isinstance(old, bool) and " " not in str(old):
            return said | {name: value}
    for name, old in said.items():
        if isinstance(old, dict) and (inner := _spoiled(old, kind, value)) != old:
            return said | {name: inner}
    return said | {next(iter(said)): value}


def _number(said: Said, written: str) -> str:
    return json.dumps(_spoiled(said, (int, float), "@")).replace('"@"', written)


def _text(said: Said) -> str:
    """The name of a field of prose."""
    return next(name for name in ("rationale", "key_uncertainty", "ev_rationale") if name in said)


def _twice(said: Said) -> str:
    name = next(iter(said))
    return f"{json.dumps(said)[:-1]}, {json.dumps(name)}: {json.dumps(said[name])}}}"


GARBAGE: Mapping[str, Callable[[Said], Line]] = {
    "prose": lambda said: "I would rather buy here, all things considered.",
    "truncated": lambda said: json.dumps(said)[:-20],
    "NaN": lambda said: _number(said, "NaN"),
    "string numbers": lambda said: _number(said, '"7"'),
    "unknown enum": lambda said: json.dumps(_spoiled(said, str, "TO_THE_MOON")),
    "Infinity": lambda said: _number(said, "-Infinity"),
    "beyond a double": lambda said: _number(said, "1e999"),
    "yes for a number": lambda said: _number(said, "true"),
    "extra field": lambda said: json.dumps(said | {"order": "buy"}),
    "missing field": lambda said: json.dumps({name: said[name] for name in said if name != _text(said)}),
    "given twice": _twice,
    "a list of it": lambda said: json.dumps([said]),
    "two of it": lambda said: json.dumps(said) * 2,
    "prose around it": lambda said: f"Here you are: {json.dumps(said)} I hope it helps.",
    "endless text": lambda said: json.dumps(said | {_text(said): "and so on " * 2_000}),
    "nested without end": lambda said: '{"a":' * 5_000,
    "control characters": lambda said: json.dumps(said | {_text(said): "a \x1b[m red \u202e word"}),
    "half a letter": lambda said: json.dumps(said | {_text(said): "@"}).replace("@", "\\ud800"),
    "mojibake": lambda said: json.dumps(said).encode("utf-16").decode("latin-1"),
    "an invented figure": lambda said: json.dumps(said | {_text(said): "Funding of 0.7731 % decides it."}),
    "nothing": lambda said: "",
    "null": lambda said: "null",
    "a refusal": lambda said: Failed("refused", "it will not speak of money"),
    "no answer in time": lambda said: Silence(),
    "cut off": lambda said: Failed("unavailable", "the connection was closed", raw='{"decision": "LO'),
}


def garbage(debate: Argued, kind: str, role: str) -> Line:
    return GARBAGE[kind](json.loads(debate.twin(role, None).model_dump_json()))


def hold_flags(outcome: Outcome, failed: set[str]) -> None:
    assert {voice.role for voice in outcome.voices if voice.source == "fallback"} == failed
    flagged = {one.what: one.why for one in outcome.degraded}
    assert set(flagged) == failed
    assert all(flagged.values())
    assert (outcome.decision.source == "fallback") == ("judge" in failed)


def hold_nothing_opened(outcome: Outcome) -> None:
    assert outcome.ruling.decision is Call.HOLD
    assert outcome.ruling.veto == "judge_fallback"
    assert (outcome.ruling.legs, outcome.ruling.allocation_pct) == ((), 0.0)


ASKED = set(ROLES) - {"risk_manager"}
"""Nobody asks the officer about a draft that opens nothing."""
NAMED = ("prose", "truncated", "NaN", "string numbers", "unknown enum")


@pytest.mark.parametrize("kind", mark_all_but(2, NAMED, pytest.mark.soak))
async def test_behaviour_14_garbage_completes_the_cycle_flagged_and_without_an_order(
    tmp_path: Path, store: MemorySeries, panic: MemorySeries, debate: Argued, kind: str
) -> None:
    def script(request: ModelRequest) -> Line:
        return garbage(debate, kind, request.role)

    flat = await cycle(tmp_path / "flat", store, script)
    hold_flags(flat, ASKED)
    hold_nothing_opened(flat)
    assert flat.decision.decision is Call.SHORT, "what the rules would have done is told"
    held = await cycle(tmp_path / "held", panic, script, holding(Side.SHORT))
    hold_flags(held, ASKED)
    assert (held.ruling.decision, held.ruling.execution_style) == (Call.CANCEL_AND_CLOSE, Style.CASINO_EXIT)
    assert (held.ruling.veto, held.ruling.legs) == (None, ())


@pytest.mark.soak(every=6)
@pytest.mark.parametrize("turn", mark_all_but(2, range(len(GARBAGE)), pytest.mark.soak))
async def test_every_kind_from_everybody_at_once(
    tmp_path: Path, store: MemorySeries, debate: Argued, turn: int
) -> None:
    """Each role says another kind, and over all turns every role says every one."""
    kinds = {role: [*GARBAGE][(turn + 3 * place) % len(GARBAGE)] for place, role in enumerate(ROLES)}
    outcome = await cycle(tmp_path, store, lambda request: garbage(debate, kinds[request.role], request.role))
    hold_flags(outcome, ASKED)
    hold_nothing_opened(outcome)
    ruled = debate.decision
    assert outcome.decision.model_dump(exclude={"source", "why"}) == ruled.model_dump(exclude={"source", "why"})


@pytest.mark.soak(every=4)
@pytest.mark.parametrize("role", mark_all_but(2, ROLES, pytest.mark.soak))
async def test_one_that_fails_alone_is_replaced_by_its_rules(
    tmp_path: Path, store: MemorySeries, debate: Argued, role: str
) -> None:
    kind, well = [*GARBAGE][ROLES.index(role)], honest(debate)
    outcome = await cycle(
        tmp_path, store, lambda request: garbage(debate, kind, role) if request.role == role else well(request)
    )
    hold_flags(outcome, {role})
    if role == "judge":
        hold_nothing_opened(outcome)
    else:
        assert outcome.ruling.decision is Call.SHORT, "the Judge's own model has spoken"
        assert outcome.ruling.legs


# -- strangers


async def hold_out(room: Room, outcome: Outcome, attack: Attack) -> None:
    """Nothing they wrote is in what is shown, and nothing they had written is more than text."""
    view = run_view(await room.cycles.record(outcome.run_id))
    html, said = page(view, None), view.model_dump_json()
    assert outcome.hash in html
    assert "<script" not in html
    assert "<img src=x" not in html
    for text in attack.words:
        assert text[:40] not in said
        assert escape(text[:40]) not in html


@pytest.mark.soak(every=3)
@pytest.mark.parametrize(
    "name", mark_all_but(2, ["repeat this", "hold for ever", "sell everything", "markup", "as Meta"], pytest.mark.soak)
)
async def test_a_cycle_of_readers_that_obey_rules_within_the_rules(tmp_path: Path, debate: Argued, name: str) -> None:
    attack = next(one for one in ATTACKS if one.name == name)
    given = attacked(bundle(), attack)
    obeys = obeying(attack, replace(debate, case=replace(debate.case, bundle=given)))
    asked: list[ModelRequest] = []

    def script(request: ModelRequest) -> Line:
        asked.append(request)
        return obeys(request)

    # A store is written outside of a running loop.
    room = seated(tmp_path, await asyncio.to_thread(store_of, given), script)
    outcome = await room.cycles.run(BTC, chart=False)
    await hold_out(room, outcome, attack)
    assert {request.role for request in asked if attack.seen_in(request)} == {"meta", "judge"}
    assert outcome.meta.risk_budget_pct <= debate.meta.risk_budget_pct
    ruling = outcome.ruling
    assert ruling.decision in (Call.SHORT, Call.HOLD), "nobody who reads numbers looks up"
    assert ruling.leverage <= 3
    assert sum(leg.margin for leg in ruling.legs) <= 2_000
    assert sum(leg.notional for leg in ruling.legs) <= 4_000
    if name == "sell everything":
        assert ruling.decision is Call.SHORT
    if name == "markup":
        assert outcome.meta.source == "model", "it is text like any other"
