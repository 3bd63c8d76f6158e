"""Runs of the trading desk: the same input gives the same outcome, whatever is cut off, missing or said by a model."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests.wire.cycling import ROLES, Brush, Desk, Talkative, market, opinion, run_once
from tests.wire.fakes.model import ScriptedModel, Silence
from tests.wire.fakes.series import MemorySeries
from zuno.adapters.file_lock import symbol_lock
from zuno.adapters.venues.synthetic.path import END
from zuno.journal.port import Author
from zuno.kernel.clock import iso
from zuno.kernel.errors import Broken, NotFound, Refused, UsageError
from zuno.kernel.units import Millis
from zuno.llm.port import Answered, Attempt, Failed, ModelRequest, Usage
from zuno.llm.question import BY_RULE
from zuno.markets.market import Symbol
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.measure.features import measure_features
from zuno.trading.model.chart import Picture
from zuno.trading.model.cycle import (
    STARTED,
    Call,
    Expectation,
    JudgeKind,
    Node,
    NodeEvent,
    Outcome,
    RegimeFamily,
    content_for_hash,
    hash_of,
)
from zuno.trading.model.market import HOUR_MS, MINUTE_MS, Mode
from zuno.trading.model.memory import ClosedTrade
from zuno.trading.ports.series import Origin
from zuno.trading.rules.price_menu import PriceMenu, build_price_menu
from zuno.trading.run.record import kind_of, load_bundle
from zuno.trading.service.run_replay import counted_attempts
from zuno.trading.service.runs_view import RunsView

BTC = "BTCUSDT"
EARLIER = iso(Millis(END - 8 * HOUR_MS))


@pytest.fixture(scope="module")
def store() -> MemorySeries:
    return asyncio.run(market(thin=True))


@pytest.fixture(scope="module")
def menu(store: MemorySeries) -> PriceMenu:
    bundle = asyncio.run(build_bundle(store, Symbol("BTCUSDT"), Mode.SWING, END))  # type: ignore[arg-type]
    return build_price_menu(bundle, measure_features(bundle))


@pytest.fixture
def desk(tmp_path: Path, store: MemorySeries) -> Desk:
    return Desk(tmp_path, store)


def seated(
    menu: PriceMenu, asked: Callable[[ModelRequest], int] = lambda request: 0
) -> dict[str, tuple[Talkative, ...]]:
    return {role: (Talkative(menu, asked),) for role in ROLES}


class Cut(Exception):
    """A process that ends in the middle."""


def cut_at(node: Node, state: str = "waits") -> Callable[[NodeEvent], None]:
    def listen(event: NodeEvent) -> None:
        if (event.node, event.state) == (node, state):
            raise Cut

    return listen


async def cut_off(desk: Desk, node: Node, **asked: Any) -> str:
    """A run that was cut off there, by its id."""
    with pytest.raises(Cut):
        await desk.cycles.run(BTC, listen=cut_at(node), **asked)
    return (await desk.cycles.runs()).runs[0].run_id


async def kinds(desk: Desk) -> Counter[str]:
    return Counter([entry.kind async for entry in (await desk.opened()).entries()])


# -- a run


@pytest.mark.slow
async def test_a_run_puts_every_node_on_record_once_and_tells_of_each(desk: Desk) -> None:
    heard: list[NodeEvent] = []
    outcome = await desk.cycles.run(BTC, listen=heard.append)
    found = await kinds(desk)
    assert {kind: found[kind] for kind in map(kind_of, Node)} == dict.fromkeys(map(kind_of, Node), 1)
    assert (found["cycle_started"], found["cycle_ended"]) == (1, 1)
    assert Counter(event.node for event in heard if event.state == "waits") == dict.fromkeys(Node, 1)
    last = {event.node: event for event in heard}
    assert [last[node].note for node in (Node.EXECUTE_TRADE, Node.DATA_SYNTHESIS)] == [
        "execution not enabled",
        "no close",
    ]
    assert last[Node.JUDGE_AGENT].source == "deterministic"
    assert [voice.role for voice in outcome.voices] == list(ROLES)
    assert outcome.hash == hash_of(outcome)
    assert (await desk.cycles.outcome(outcome.run_id)) == outcome


@pytest.mark.slow
async def test_the_same_bundle_gives_the_same_hash(desk: Desk, tmp_path: Path, store: MemorySeries) -> None:
    first, second = await desk.cycles.run(BTC), await desk.cycles.run(BTC)
    elsewhere = await Desk(tmp_path / "another", store).cycles.run(BTC)
    assert first.run_id != second.run_id
    assert first.bundle == second.bundle == elsewhere.bundle
    assert first.hash == second.hash == elsewhere.hash


@pytest.mark.slow
async def test_the_last_decision_is_strictly_earlier_and_names_no_run(desk: Desk) -> None:
    first = await desk.cycles.run(BTC, as_of=EARLIER)
    assert (await load_bundle(await desk.opened(), first.bundle)).why_absent("previous_decision") is not None
    later = await desk.cycles.run(BTC)
    again = await desk.cycles.run(BTC)
    assert later.bundle == again.bundle, "a decision of the same moment is not an earlier one"
    slots = {slot.name: slot for slot in (await load_bundle(await desk.opened(), later.bundle)).slots}
    before = slots["previous_decision"]
    assert before.as_of == first.as_of < later.as_of
    assert isinstance(before.content, dict)
    assert before.content["decision"] == first.decision.decision
    assert first.run_id not in str(before.content)
    assert {"positions", "equity"} <= set(slots)
    other_mode = await desk.cycles.run(BTC, mode="position")
    assert (await load_bundle(await desk.opened(), other_mode.bundle)).why_absent("previous_decision") is not None


@pytest.mark.slow
async def test_two_explorations_a_day_and_a_replay_counts_as_the_run_did(
    tmp_path: Path, store: MemorySeries, menu: PriceMenu
) -> None:
    """Three cycles of one day by a Judge without a record, of whom the first is made again."""
    desk = Desk(tmp_path, store, models=seated(menu))
    moments = [iso(Millis(END - hours * HOUR_MS)) for hours in (2, 1, 2, 0)]
    runs = [await desk.cycles.run(BTC, as_of=moment, chart=False) for moment in moments]
    cards = [run.ruling.card for run in runs]
    assert [card is not None and card.exploration for card in cards] == [True, True, True, False]
    assert (runs[3].ruling.decision, runs[3].ruling.veto) == (Call.HOLD, "expectancy")
    assert runs[0].hash == runs[2].hash
    replayed = await desk.cycles.replay(runs[3].run_id)
    assert (replayed.ok, replayed.identical) == (True, True)
    await desk.close()


@pytest.mark.soak
async def test_of_two_explorations_at_one_instant_the_first_on_record_counts(
    tmp_path: Path, store: MemorySeries, menu: PriceMenu
) -> None:
    """One was explored two hours before. While a cycle is painted, another one begins and ends."""
    other = Desk(tmp_path / "other", store, models=seated(menu), number=100)
    other.home.mkdir()

    class Slow(Brush):
        async def paint(self, picture: Picture) -> bytes:
            ruled.append(await other.cycles.run(BTC, as_of=moments[1], chart=False))
            return await super().paint(picture)

    ruled: list[Outcome] = []
    moments = [iso(Millis(END - hours * HOUR_MS)) for hours in (2, 1)]
    desk = Desk(tmp_path, store, models=seated(menu), painter=Slow())
    other.journal = await desk.opened()
    before = await desk.cycles.run(BTC, as_of=moments[0], chart=False)
    last = await desk.cycles.run(BTC)
    cards = [run.ruling.card for run in (before, *ruled, last)]
    assert [card is not None and card.exploration for card in cards] == [True, True, False]
    assert (last.ruling.decision, last.ruling.veto) == (Call.HOLD, "expectancy")
    assert (await desk.cycles.replay(last.run_id)).identical
    again = await desk.cycles.run(BTC, chart=False)
    assert again.ruling.veto == "expectancy"
    await desk.close()


@pytest.mark.slow
async def test_every_exploration_of_the_day_counts_however_many_runs_came_after(
    tmp_path: Path, store: MemorySeries, menu: PriceMenu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zuno.trading.service.runs.MOST", 1)
    desk = Desk(tmp_path, store, models=seated(menu))
    moments = [iso(Millis(END - hours * HOUR_MS)) for hours in (2, 1, 30, 29, 28, 0)]
    runs = [await desk.cycles.run(BTC, as_of=moment, chart=False) for moment in moments]
    assert [runs[0].ruling.card is not None, runs[1].ruling.card is not None] == [True, True]
    assert (runs[-1].ruling.decision, runs[-1].ruling.veto) == (Call.HOLD, "expectancy")
    await desk.close()


@pytest.mark.slow
async def test_closed_trades_before_the_moment_are_what_a_judge_is_believed_by(
    tmp_path: Path, store: MemorySeries, menu: PriceMenu
) -> None:
    won = ClosedTrade(
        opened=Millis(END - 2 * HOUR_MS),
        closed=Millis(END - HOUR_MS),
        judge=JudgeKind.MODEL,
        family=RegimeFamily.RANGE,
        edge=0.2,
        profit_pct=4.0,
        loss_pct=2.0,
        exit_pct=4.0,
    )
    later, label = won.model_copy(update={"closed": END}), store.origin.label
    ends = (Millis(END - number * HOUR_MS) for number in range(1, 201))
    several = [won.model_copy(update={"opened": end - HOUR_MS, "closed": end}) for end in ends]
    desk = Desk(tmp_path, store, seated(menu), closed={label: several + [later] * 99})
    run = await desk.cycles.run(BTC, chart=False)
    assert isinstance(run.expectation, Expectation)
    assert (run.expectation.n, run.expectation.exploration) == (200, False)
    assert run.expectation.lambda_ == 1.0
    assert run.ruling.card is not None
    assert run.ruling.card.ev_pct == run.expectation.ev_pct > 0
    assert (await desk.cycles.replay(run.run_id)).identical
    await desk.close()


async def test_a_moment_that_cannot_be_leaves_nothing_behind(desk: Desk) -> None:
    for wrong in ("tomorrow maybe", "2099-01-01"):
        with pytest.raises(UsageError):
            await desk.cycles.run(BTC, as_of=wrong)
    for symbol, mode in (("DOGEUSDT", "swing"), (BTC, "scalp")):
        with pytest.raises(UsageError):
            await desk.cycles.run(symbol, mode)
    assert await kinds(desk) == {}


@pytest.mark.slow
async def test_a_painter_that_fails_is_told_and_the_desk_goes_on(tmp_path: Path, store: MemorySeries) -> None:
    outcome = await Desk(tmp_path, store, painter=Brush(fails=OSError("no fonts"))).cycles.run(BTC)
    assert outcome.chart is None
    assert [(one.what, "(OSError)" in one.why) for one in outcome.degraded] == [("chart", True)]


@pytest.mark.slow
async def test_a_run_without_a_chart_paints_nothing(tmp_path: Path, store: MemorySeries) -> None:
    brush = Brush()
    desk = Desk(tmp_path, store, painter=brush)
    outcome = await desk.cycles.run(BTC, chart=False)
    assert (brush.painted, outcome.chart, outcome.degraded) == (0, None, ())
    assert (await desk.cycles.record(outcome.run_id)).picture is None


@pytest.mark.slow
async def test_only_the_visual_expert_is_shown_the_picture(
    tmp_path: Path, store: MemorySeries, menu: PriceMenu
) -> None:
    shown: dict[str, int] = {}

    def asked(request: ModelRequest) -> int:
        shown[request.role] = len(request.images)
        return 0

    outcome = await Desk(tmp_path, store, models=seated(menu, asked)).cycles.run(BTC)
    assert shown == {role: int(role == "vlm_geometric") for role in ROLES}
    assert outcome.ruling.decision is Call.LONG
    assert {voice.source for voice in outcome.voices} == {"model"}


@pytest.mark.slow
async def test_what_is_missing_is_told(tmp_path: Path, store: MemorySeries) -> None:
    empty = MemorySeries(store.origin)
    with pytest.raises(Refused, match="recorded"):
        await Desk(tmp_path, empty).cycles.run(BTC)
    old = iso(Millis(END - 20 * 24 * HOUR_MS))
    outcome = await Desk(tmp_path, store).cycles.run(BTC, as_of=old)
    assert {"book", "mark"} <= {one.what for one in outcome.degraded}
    assert outcome.ruling.decision is Call.HOLD


# -- hostile models

HOSTILE = {
    "prose": "I would buy, it looks fine.",
    "truncated": '{"decision": "LONG", "allocation_pct": 40, "lev',
    "NaN": '{"decision": "LONG", "allocation_pct": NaN}',
    "string numbers": '{"decision": "LONG", "allocation_pct": "100", "leverage": "3"}',
    "unknown word": '{"decision": "ALL_IN", "regime": "MOON", "anomaly": "yes"}',
    "nothing": "",
}


@pytest.mark.slow
@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE)
async def test_behaviour_14_garbage_ends_in_a_flagged_run_and_no_order(
    tmp_path: Path, store: MemorySeries, said: str
) -> None:
    models = {role: (ScriptedModel(lambda request: said),) for role in ROLES}
    outcome = await Desk(tmp_path, store, models=models).cycles.run(BTC)
    silent = {voice.role for voice in outcome.voices if voice.source == "fallback"}
    assert silent >= set(ROLES) - {"risk_manager"}, "who is not asked cannot fail"
    assert silent == {one.what for one in outcome.degraded}
    assert outcome.ruling.decision in (Call.HOLD, Call.CANCEL_AND_CLOSE)
    assert outcome.ruling.legs == ()


@pytest.mark.slow
async def test_a_judge_that_fails_alone_opens_nothing(tmp_path: Path, store: MemorySeries, menu: PriceMenu) -> None:
    down = ScriptedModel(lambda request: Failed("unavailable", "no answer"))
    outcome = await Desk(tmp_path, store, models=seated(menu) | {"judge": (down,)}).cycles.run(BTC)
    assert [one.what for one in outcome.degraded] == ["judge"]
    assert outcome.ruling.decision is Call.HOLD


# -- cut off, and taken up


@pytest.mark.soak(every=3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("node", "lost"), [(Node.CONTEXT_GATHERING, False), (Node.JUDGE_AGENT, True), (Node.DATA_SYNTHESIS, False)]
)
async def test_a_run_that_was_cut_off_ends_as_if_it_had_not(
    tmp_path: Path, store: MemorySeries, menu: PriceMenu, node: Node, lost: bool
) -> None:
    turns: Counter[str] = Counter()

    def counting(request: ModelRequest) -> int:
        turns[request.role] += 1
        return turns[request.role] - 1

    desk = Desk(tmp_path / "cut", store, models=seated(menu, counting))
    run_id = await cut_off(desk, node)
    if lost:
        (tmp_path / "cut" / "cycles.db").unlink(missing_ok=True)
    whole = await Desk(tmp_path / "whole", store, models=seated(menu)).cycles.run(BTC)
    heard: list[NodeEvent] = []
    outcome = await desk.cycles.resume(run_id, heard.append)
    assert (outcome.hash, outcome.ruling) == (whole.hash, whole.ruling)
    assert max(turns.values()) == 1
    assert {event.node for event in heard} == set(Node), "what stands already is told as well"


@pytest.mark.slow
async def test_a_run_that_ended_is_shown_and_nothing_is_written(desk: Desk) -> None:
    outcome = await desk.cycles.run(BTC)
    before = await kinds(desk)
    assert await desk.cycles.resume(outcome.run_id) == outcome
    assert await kinds(desk) == before


@pytest.mark.slow
async def test_checkpoints_of_another_run_are_found_out(tmp_path: Path, store: MemorySeries) -> None:
    """The same id, another history: a home put together from two."""
    one, two = Desk(tmp_path / "one", store), Desk(tmp_path / "two", store)
    run_id = await cut_off(one, Node.JUDGE_AGENT)
    assert run_id == await cut_off(two, Node.JUDGE_AGENT, as_of=EARLIER)
    for name in ("cycles.db", "cycles.db-wal", "cycles.db-shm"):
        (tmp_path / "two" / name).unlink(missing_ok=True)
        if (tmp_path / "one" / name).exists():
            shutil.copy(tmp_path / "one" / name, tmp_path / "two" / name)
    with pytest.raises(Broken, match="checkpoints"):
        await two.cycles.resume(run_id)


@pytest.mark.slow
async def test_a_checkpoint_whose_journal_is_gone_is_found_out(tmp_path: Path, store: MemorySeries) -> None:
    desk = Desk(tmp_path / "one", store)
    run_id = await cut_off(desk, Node.JUDGE_AGENT)
    other = Desk(tmp_path / "two", store)
    journal = await other.opened()
    (started,) = await (await desk.opened()).latest(1, kind=STARTED)
    await journal.append(kind=STARTED, author=Author("trading"), payload=started.payload, request_id=run_id)
    await desk.close()
    shutil.copy(tmp_path / "one" / "cycles.db", tmp_path / "two" / "cycles.db")
    with pytest.raises(Broken, match="no cycle_"):
        await other.cycles.resume(run_id)


async def test_a_run_is_not_taken_up_in_another_market(desk: Desk) -> None:
    run_id = await cut_off(desk, Node.CONTEXT_GATHERING)
    other = MemorySeries(Origin(synthetic=True, label="SYNTHETIC seed 4"))
    elsewhere = Desk(desk.home, other, journal=await desk.opened())
    with pytest.raises(Refused, match=r"seed 3.*seed 4"):
        await elsewhere.cycles.resume(run_id)


async def test_a_run_that_knows_no_moment_yet_is_not_taken_up_in_another_kind_of_market(desk: Desk) -> None:
    async def refresh(symbol: Symbol) -> tuple[Millis, Mapping[str, str]]:
        return END, {}  # type: ignore[return-value]

    recorded = await cut_off(desk, Node.COLLECT_DATA)
    desk.live, desk.refresh = True, refresh
    with pytest.raises(Refused, match="ZUNO_MARKET=recorded"):
        await desk.cycles.resume(recorded)
    live = await cut_off(desk, Node.COLLECT_DATA)
    desk.live = False
    with pytest.raises(Refused, match="ZUNO_MARKET=live"):
        await desk.cycles.resume(live)


# -- time


@pytest.mark.soak(every=3)
@pytest.mark.slow
@pytest.mark.parametrize("node", [Node.RISK_MANAGER, Node.GENERATE_REPORT, Node.DATA_SYNTHESIS])
async def test_a_live_run_that_is_resumed_too_late_expires(
    tmp_path: Path, store: MemorySeries, menu: PriceMenu, node: Node
) -> None:
    async def refresh(symbol: Symbol) -> tuple[Millis, Mapping[str, str]]:
        return END, {"fred/DGS2": "it did not answer"}  # type: ignore[return-value]

    desk = Desk(tmp_path, store, models=seated(menu), live=True, refresh=refresh, now=lambda: Millis(END + MINUTE_MS))
    in_time = await cut_off(desk, node)
    assert (await desk.cycles.resume(in_time)).ruling.decision is Call.LONG
    late = await cut_off(desk, node)
    desk.now = lambda: Millis(END + 16 * MINUTE_MS)
    outcome = await desk.cycles.resume(late)
    assert (outcome.ruling.decision, outcome.ruling.veto, outcome.ruling.legs) == (Call.HOLD, "expired", ())
    assert (await desk.cycles.replay(late)).identical
    assert (await desk.cycles.replay(in_time)).identical
    assert {run.run_id: run.ruling for run in (await desk.cycles.runs()).runs if run.ruling} == {
        late: Call.HOLD,
        in_time: Call.LONG,
    }
    assert (await desk.cycles.resume(late)) == (await desk.cycles.outcome(late)) == outcome


@pytest.mark.slow
async def test_a_recorded_run_never_expires(tmp_path: Path, store: MemorySeries, menu: PriceMenu) -> None:
    desk = Desk(tmp_path, store, models=seated(menu))
    run_id = await cut_off(desk, Node.EXECUTE_TRADE)
    assert (await desk.cycles.resume(run_id)).ruling.decision is Call.LONG


# -- the lease


@pytest.mark.slow
async def test_one_symbol_is_argued_about_once_at_a_time_whatever_the_mode(desk: Desk) -> None:
    refusals: list[str] = []

    async def second(mode: str) -> None:
        with pytest.raises(Refused) as told:
            await desk.cycles.run(BTC, mode)
        refusals.append(str(told.value))

    tasks: list[asyncio.Task[None]] = []

    def listen(event: NodeEvent) -> None:
        if (event.node, event.state) == (Node.TRIAGE, "waits"):
            tasks.extend(asyncio.ensure_future(second(mode)) for mode in ("swing", "position"))

    await desk.cycles.run(BTC, listen=listen)
    await asyncio.gather(*tasks)
    assert len(refusals) == 2
    assert all("process" in one and BTC in one for one in refusals)
    symbol_lock(desk.home, "ETHUSDT").take()
    await desk.cycles.run(BTC)


@pytest.mark.slow
async def test_a_run_that_fails_gives_its_lease_back(desk: Desk) -> None:
    run_id = await cut_off(desk, Node.TRIAGE)
    seat = symbol_lock(desk.home, BTC)
    seat.take()
    with pytest.raises(Refused, match="progress"):
        await desk.cycles.resume(run_id)
    seat.leave()
    await desk.cycles.resume(run_id)


@pytest.mark.slow
def test_behaviour_20_concurrent_runs_of_one_symbol_share_nothing(tmp_path: Path, store: MemorySeries) -> None:
    """Three homes, two moments, one process, side by side in threads: each is about its own moment, and comes to what
    it comes to in a process that never saw another."""
    ends = [END, Millis(END - 4 * HOUR_MS), END]
    folders, moments = [tmp_path / f"beside-{place}" for place in range(len(ends))], [None, *map(iso, ends[1:])]  # type: ignore[arg-type]
    with ThreadPoolExecutor(len(ends)) as pool:
        beside = list(pool.map(partial(run_once, store=store), folders, moments))
    with ProcessPoolExecutor(1, get_context("spawn")) as elsewhere:
        alone = elsewhere.submit(run_once, tmp_path / "alone", moments[1], store).result()
    assert [outcome.as_of for outcome in beside] == ends
    assert len({outcome.hash for outcome in beside}) == 2
    assert beside[0].hash == beside[2].hash
    assert beside[1].hash == alone.hash


# -- looking back


@pytest.mark.slow
async def test_runs_are_told_newest_first_with_how_they_stand(desk: Desk) -> None:
    ended = await desk.cycles.run(BTC, as_of=EARLIER)
    early = await cut_off(desk, Node.COLLECT_DATA)
    broken = await cut_off(desk, Node.JUDGE_AGENT)
    lines = (await desk.cycles.runs()).runs
    assert [(line.run_id, line.state, line.as_of, line.synthetic) for line in lines] == [
        (broken, "unfinished", iso(Millis(END)), True),
        (early, "unfinished", None, None),
        (ended.run_id, "ended", iso(ended.as_of), True),
    ]
    assert (lines[2].hash, lines[2].ruling) == (ended.hash, ended.ruling.decision)
    assert lines[0].ruling is None
    assert await desk.cycles.runs(2) == RunsView(runs=lines[:2], more=True)
    assert await desk.cycles.runs() == RunsView(runs=lines, more=False)
    assert await desk.cycles.runs(2, before=lines[1].run_id) == RunsView(runs=lines[2:])
    assert await desk.cycles.runs(2, before=lines[2].run_id) == RunsView(runs=())
    for nobody in ("run_0000000000000000", "x", ""):
        with pytest.raises(UsageError):
            await desk.cycles.runs(2, before=nobody)
    with pytest.raises(Refused, match="ended"):
        await desk.cycles.outcome(broken)
    with pytest.raises(Refused, match="was cut off"):
        await desk.cycles.record(early)
    told = await desk.cycles.record(broken)
    assert (told.line.state, told.line.as_of, told.picture is not None) == ("unfinished", iso(Millis(END)), True)


@pytest.mark.parametrize("wrong", ["plan_0123456789ab", "run_123", "req_0123456789abcdef", "", "run_" + "g" * 16])
async def test_a_word_that_is_no_run_is_said_to_be_none(desk: Desk, wrong: str) -> None:
    for ask in (desk.cycles.outcome, desk.cycles.resume, desk.cycles.record, desk.cycles.replay):
        with pytest.raises(UsageError, match=r"\brun_"):
            await ask(wrong)


async def test_a_run_nobody_started_is_unknown(desk: Desk) -> None:
    with pytest.raises(NotFound, match="run_0123456789abcdef"):
        await desk.cycles.resume("run_0123456789abcdef")


# -- replay


@pytest.mark.slow
async def test_a_replay_asks_nobody_writes_nothing_and_needs_no_lease(
    tmp_path: Path, store: MemorySeries, menu: PriceMenu
) -> None:
    turns: Counter[str] = Counter()

    def counting(request: ModelRequest) -> int:
        turns[request.role] += 1
        return turns[request.role]

    desk = Desk(tmp_path, store, models=seated(menu, counting))
    outcome = await desk.cycles.run(BTC)
    before, asked = await kinds(desk), dict(turns)
    symbol_lock(desk.home, BTC).take()
    view = await desk.cycles.replay(outcome.run_id)
    assert (view.ok, view.identical, view.differences) == (True, True, ())
    assert view.hash == view.replayed_hash == outcome.hash
    assert (await kinds(desk), dict(turns)) == (before, asked)


@pytest.mark.slow
async def test_a_replay_that_comes_to_something_else_says_what(
    tmp_path: Path, store: MemorySeries, menu: PriceMenu
) -> None:
    class Forgetful(Desk):
        async def _rehearse(self, attempts: Any, whys: Any) -> Any:
            other = [
                one if one.role != "judge" else one.model_copy(update={"raw": opinion("judge", menu, 7)})
                for one in attempts
            ]
            return await super()._rehearse(other, whys)

    desk = Forgetful(tmp_path, store, models=seated(menu))
    outcome = await desk.cycles.run(BTC)
    view = await desk.cycles.replay(outcome.run_id)
    assert not view.ok
    assert view.hash != view.replayed_hash
    assert any(one.startswith("decision: ") for one in view.differences)


@pytest.mark.slow
async def test_a_record_with_a_part_missing_is_not_replayed_to_the_rest_of_it(desk: Desk) -> None:
    outcome = await desk.cycles.run(BTC)
    await desk.close()
    desk.journal = None
    with closing(sqlite3.connect(desk.home / "journal.db")) as file, file:
        assert file.execute("DELETE FROM entries WHERE kind = 'cycle_execute_trade'").rowcount == 1
    with pytest.raises(Broken, match="damaged"):
        await desk.cycles.replay(outcome.run_id)


@pytest.mark.slow
async def test_a_run_that_has_not_ended_cannot_be_replayed(desk: Desk) -> None:
    with pytest.raises(Refused, match="ended"):
        await desk.cycles.replay(await cut_off(desk, Node.TRIAGE))


SPOILED = "It runs to 71,850 by Friday."


@pytest.mark.parametrize("faulty", [1, 10])
async def test_faulty_words_cost_no_ruling_and_why_they_went_is_told_and_replayed(
    tmp_path: Path, store: MemorySeries, menu: PriceMenu, faulty: int
) -> None:
    """A Judge's answer of ten texts, with a fault in one of them and in all."""

    def judge(request: ModelRequest) -> str:
        said = json.loads(opinion("judge", menu))
        said["key_factors"] *= 2
        texts = [(said["reasoning"], name) for name in said["reasoning"]]
        texts += [(said, "ev_rationale"), *((said["key_factors"], place) for place in range(2))]
        assert len(texts) == 10
        for held, name in texts[:faulty]:
            held[name] = SPOILED
        return json.dumps(said)

    model = ScriptedModel(judge)
    whole = await Desk(tmp_path / "whole", store, models=seated(menu)).cycles.run(BTC)
    desk = Desk(tmp_path, store, models=seated(menu) | {"judge": (model,)})
    outcome = await desk.cycles.run(BTC)
    assert len(model.asked) == 1
    words = {"reasoning", "ev_rationale", "key_factors", "why"}
    assert outcome.decision.source == "model"
    assert outcome.decision.model_dump(exclude=words) == whole.decision.model_dump(exclude=words)
    assert "71,850" not in outcome.decision.model_dump_json(exclude={"why"})
    assert outcome.decision.reasoning.counter_scenario.startswith(BY_RULE)
    assert outcome.decision.key_factors == (whole.decision.key_factors * 2 if faulty == 1 else [])
    view = await desk.cycles.why(outcome.run_id)
    assert [attempt.outcome for attempt in view.attempts if attempt.role == "judge"] == ["ok"]
    assert all("71,850" in attempt.why for attempt in view.attempts if attempt.role == "judge")
    replayed = await desk.cycles.replay(outcome.run_id)
    assert (replayed.ok, replayed.identical, replayed.replayed_hash) == (True, True, outcome.hash)


async def test_a_wrong_field_is_sent_back_whatever_its_words(
    tmp_path: Path, store: MemorySeries, menu: PriceMenu
) -> None:
    answers = iter([json.loads(opinion("judge", menu)) | {"leverage": None}, json.loads(opinion("judge", menu))])
    model = ScriptedModel(lambda request: json.dumps(next(answers) | {"ev_rationale": SPOILED}))
    outcome = await Desk(tmp_path, store, models=seated(menu) | {"judge": (model,)}).cycles.run(BTC)
    assert (len(model.asked), outcome.decision.source) == (2, "repaired")
    assert "leverage" in model.asked[1].turns[-1].text


@pytest.mark.soak(every=2)
@pytest.mark.slow
@pytest.mark.parametrize(("again", "source"), [("others", "model"), ("nobody", "deterministic")])
async def test_a_run_that_is_resumed_with_others_or_nobody_is_replayed_from_its_last_asking(
    tmp_path: Path, store: MemorySeries, menu: PriceMenu, again: str, source: str
) -> None:
    turn = iter([Answered("prose", Usage(1, 1, None)), Silence()])

    def script(request: ModelRequest) -> Any:
        line = next(turn)
        if isinstance(line, Silence):
            raise Cut
        return line

    desk = Desk(tmp_path, store, models=seated(menu) | {"judge": (ScriptedModel(script, "first"),)})
    with pytest.raises(Cut):
        await desk.cycles.run(BTC)
    desk.models = seated(menu) if again == "others" else None
    outcome = await desk.cycles.resume((await desk.cycles.runs()).runs[0].run_id)
    assert outcome.decision.source == source
    assert (await desk.cycles.replay(outcome.run_id)).identical


@pytest.mark.slow
async def test_checkpoints_of_a_run_are_forgotten_when_it_ends(
    tmp_path: Path, store: MemorySeries, menu: PriceMenu
) -> None:
    desk = Desk(tmp_path, store, models=seated(menu))
    cut = await cut_off(desk, Node.JUDGE_AGENT)
    assert kept_of(tmp_path)
    await desk.cycles.resume(cut)
    assert not kept_of(tmp_path)


def kept_of(home: Path) -> int:
    with closing(sqlite3.connect(home / "cycles.db")) as beside:
        return sum(beside.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in ("checkpoints", "writes"))


def test_of_a_question_begun_anew_the_last_asking_counts() -> None:
    one = Attempt(
        role="judge",
        round=0,
        attempt=1,
        model="a",
        request="x",
        outcome="malformed",
        why="",
        raw="",
        cut=False,
        tokens_in=0,
        tokens_out=0,
        usd=None,
        estimated=False,
        latency_ms=0,
    )
    two, new = one.model_copy(update={"attempt": 2}), one.model_copy(update={"model": "b"})
    meta = one.model_copy(update={"role": "meta"})
    assert counted_attempts([one, meta, two]) == (one, two, meta)
    assert counted_attempts([one, meta, two, new]) == (new, meta)


# -- the hash


@pytest.mark.slow
async def test_the_hash_is_of_what_was_decided_and_of_nothing_else(desk: Desk) -> None:
    outcome = await desk.cycles.run(BTC)
    dear = tuple(voice.model_copy(update={"usd": 3.5, "tokens": 9}) for voice in outcome.voices)
    same = outcome.model_copy(
        update={
            "run_id": "run_" + "0" * 16,
            "code": "later",
            "hash": "",
            "chart": None,
            "notes": ("x",),
            "voices": dear,
        }
    )
    assert hash_of(same) == outcome.hash
    budget = outcome.meta.risk_budget_pct
    near = outcome.model_copy(
        update={"ruling": outcome.ruling.model_copy(update={"leverage": outcome.ruling.leverage * (1 + 1e-12)})}
    )
    assert content_for_hash(near) == content_for_hash(outcome)
    for part in (
        {"meta": outcome.meta.model_copy(update={"risk_budget_pct": budget + 1})},
        {"ruling": outcome.ruling.model_copy(update={"leverage": outcome.ruling.leverage * (1 + 1e-6)})},
        {"voices": outcome.voices[1:]},
        {"bundle": "0" * 64},
    ):
        assert hash_of(outcome.model_copy(update=part)) != outcome.hash
