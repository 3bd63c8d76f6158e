"""The home of release 1.0 (tests/golden/homes): what it wrote opens, reads and replays, and what was open goes on.

The clocks stand where that home's did: mandates and confirmations are as old as they were. It was made with a kill that
stands for one account, which keeps plans from going on until it is lifted.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tarfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.paths import GOLDEN
from tests.scenario.test_handed_out_service import YES, send, silently
from tests.wire.commands import Ran, Zuno, run_zuno
from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.harness import WIRES
from tests.wire.exchanges.matching import FakeAlgo, FakeOrder, FakePosition, FakeTrade
from tests.wire.exchanges.serving import serve_exchange
from zuno.adapters.chain.world import WALLET
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.keys.wallets import WatchOnly
from zuno.adapters.store.sqlite import open_sqlite
from zuno.journal.journal import ChainedJournal
from zuno.kernel.canonical import canonical
from zuno.kernel.units import Millis
from zuno.lp.mesh.envelope import Envelope, to_bytes
from zuno.lp.model import ballot
from zuno.lp.model.debate import Kind
from zuno.markets.venues import Venue
from zuno.trading.model import cycle
from zuno.trading.model.sleeves import DEBATE, TREND
from zuno.trading.model.trade_events import Protection
from zuno.wiring import Application, open_zuno

HOMES = GOLDEN / "homes"
BACKUP = HOMES / "release_1_0_backup.zip"
TOLD: dict[str, Any] = json.loads((HOMES / "release_1_0.json").read_text())
PLANS: dict[str, str] = TOLD["plans"]
BINANCE = Venue("BINANCE")
PEERS = ("scout", "strategist", "critic")
LP_EDITION, TRADING_EDITION = 6, 8
"""Of release 1.0."""


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """The machine's, which stands still; called with how many days it goes on."""
    now = [TOLD["at"]]
    monkeypatch.setattr(time, "time", lambda: now[0] / 1_000)
    monkeypatch.setattr(time, "time_ns", lambda: now[0] * 1_000_000)

    def go_on(days: int) -> None:
        now[0] += days * 86_400_000

    return go_on


@pytest.fixture(autouse=True)
def usual_sleeves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZUNO_SLEEVES")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(HOMES / "release_1_0.tar.gz") as packed:
        packed.extractall(folder, filter="data")
    return folder


@pytest.fixture
def home(unpacked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(unpacked, tmp_path / "home"))


@pytest.fixture
async def opened(home: Path) -> AsyncIterator[Application]:
    house = open_zuno(str(home))
    yield house
    await house.close()


def open_exchange() -> FakeBinance:
    """As it was when the home was left."""
    fake, kept = FakeBinance(), TOLD["exchange"]
    engine = fake.engine
    engine.cash, engine.last_id, engine.leverage = Decimal(kept["cash"]), kept["last_id"], kept["leverage"]
    engine.orders = {row["id"]: TypeAdapter(FakeOrder).validate_python(row) for row in kept["orders"]}
    engine.algos = {row["id"]: TypeAdapter(FakeAlgo).validate_python(row) for row in kept["algos"]}
    engine.trades = [TypeAdapter(FakeTrade).validate_python(row) for row in kept["trades"]]
    engine.positions = {name: TypeAdapter(FakePosition).validate_python(row) for name, row in kept["positions"].items()}
    for name, prices in kept["markets"].items():
        market = engine.markets[name]
        market.bid, market.ask, market.mark = (Decimal(prices[each]) for each in ("bid", "ask", "mark"))
    return fake


@asynccontextmanager
async def at_exchange() -> AsyncIterator[tuple[FakeBinance, dict[str, str]]]:
    """The exchange, and the settings of its keys."""
    fake = open_exchange()
    async with serve_exchange(fake.server) as server:
        yield fake, WIRES["BINANCE"].set_environment(BINANCE, server.url) | {"ZUNO_LIVE": "1"}


# -- reading


def find_differences(said: Any, told: Any, place: str = "") -> list[str]:
    """Where what is said now is not what release 1.0 said; what is said beside is new, and nobody's loss."""
    if isinstance(told, dict) and isinstance(said, dict):
        return [
            found
            for name, value in told.items()
            for found in find_differences(said.get(name, "nothing"), value, f"{place}.{name}")
        ]
    if isinstance(told, list) and isinstance(said, list) and len(told) == len(said):
        pairs = enumerate(zip(said, told, strict=True))
        return [found for number, (now, then) in pairs for found in find_differences(now, then, f"{place}[{number}]")]
    return [] if said == told or (told is None and isinstance(said, str)) else [f"{place}: {said!r}, not {told!r}"]


def expect_today(line: str, told: Any) -> Any:
    """What an edition that was raised since changes: decisions are verified and not argued again, and a run that was
    cut off is over. How old the last look is, is said by the clock of today."""
    if line.startswith("alerts"):
        return {name: value for name, value in told.items() if name != "notes"}
    if line.startswith("replay plan_") and ballot.EDITION != LP_EDITION:
        return {name: told[name] for name in ("ok", "hash", "edition")} | {"identical": None, "replayedHash": None}
    if line.startswith("replay run_") and cycle.EDITION != TRADING_EDITION:
        return {name: told[name] for name in ("ok", "hash", "edition")} | {"identical": None, "replayedHash": None}
    if line == "trade runs" and cycle.EDITION != TRADING_EDITION:
        runs = [{**run, "state": run["state"].replace("unfinished", "expired")} for run in told["runs"]]
        return {**told, "runs": runs}
    return told


async def test_everything_that_release_1_0_could_show_reads_as_it_did(home: Path) -> None:
    differences = []
    async with at_exchange() as (_, keys):
        for line, live, told in TOLD["answers"]:
            settings = keys if live else {}
            ran: Ran = await asyncio.to_thread(run_zuno, home, *line.split(), "--json", **settings)
            assert ran.code == 0, f"{line}: {ran.err}"
            differences += find_differences(ran.document, expect_today(line, told), line)
    assert differences == []


async def test_journals_of_peers_hold_and_envelopes_keep_their_bytes(home: Path) -> None:
    counted = {}
    for folder in (home, *(home / "mesh" / peer for peer in PEERS)):
        (key,) = [*folder.glob("peer.key"), *folder.glob("keys/node.key")]
        journal = ChainedJournal(open_sqlite(folder), KeyFile(key), code=lambda: "today", now=unix_millis)
        assert (await journal.verify()).ok
        bodies = [entry.payload async for entry in journal.entries() if entry.kind in set(Kind)]
        for body in bodies:
            assert to_bytes(Envelope.model_validate(body)) == canonical(body)
        counted["owner" if folder == home else folder.name] = len(bodies)
        await journal.close()
    assert counted == TOLD["envelopes"]


# -- plans that were begun


def lift_kill(zuno: Zuno) -> None:
    assert zuno("trade", "unlock", "--account", "third", "--json").code == 0


def end_plan(zuno: Zuno, act: str, name: str) -> str:
    ran = zuno("plan", act, PLANS[name], *(["--yes"] if act == "apply" else []), "--json")
    assert ran.code == 0, ran.err
    return str(ran.document["state"])


def test_a_plan_that_was_half_sent_is_finished_once_nothing_keeps_it_back(zuno: Zuno) -> None:
    apply = ("plan", "apply", PLANS["sent"], "--yes")
    assert zuno(*apply).code == 3, "an account is killed"
    lift_kill(zuno)
    assert zuno(*apply).code == 3, "the wallet's next transaction was handed out"
    assert end_plan(zuno, "cancel", "handedOut") == "cancelled"
    assert end_plan(zuno, "apply", "sent") == "confirmed"
    assert zuno("plan", "apply", PLANS["mined"], "--yes").code == 5, "the wallet spent something beside it since"
    assert zuno("journal", "verify").code == 0


def test_what_was_begun_is_cancelled_and_what_was_mined_is_confirmed(zuno: Zuno) -> None:
    lift_kill(zuno)
    for name, state in (("sent", "cancelled"), ("approved", "cancelled"), ("mined", "confirmed")):
        assert end_plan(zuno, "cancel", name) == state
        assert zuno("plan", "apply", PLANS[name], "--yes").code == 3


async def test_a_plan_that_was_handed_out_hands_out_the_same_step_and_ends_with_it(
    opened: Application, zuno: Zuno, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched: Any = WatchOnly(WALLET)
    monkeypatch.setattr(opened._signers, "of", lambda chain: watched)
    await asyncio.to_thread(lift_kill, zuno)
    execution = opened.execution()
    step = await execution.apply(PLANS["handedOut"], YES, silently)
    transactions = step.model_dump(mode="json", by_alias=True)["transactions"]
    assert find_differences(transactions, TOLD["handedOut"]["transactions"]) == []
    await send(opened, step)  # type: ignore[arg-type]
    done = await execution.apply(PLANS["handedOut"], YES, silently)
    assert (done.state, done.problems) == ("confirmed", ())  # type: ignore[union-attr]


# -- trades that were open


async def test_an_open_trade_is_found_with_its_stop_and_ends_at_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with at_exchange() as (fake, keys):
        for name, value in keys.items():
            monkeypatch.setenv(name, value)
        house = open_zuno(str(home))
        gate = await house._open_gate("live", lambda: Millis(unix_millis()))
        await gate.reconcile()
        assert await gate.locks() == ()
        held = {place[2]: trade.signed for place, trade in gate.book.positions.items()}
        assert held == {DEBATE: Decimal("0.005"), TREND: Decimal("0.008")}
        standing = [algo for algo in fake.engine.algos.values() if algo.status == "NEW" and algo.type == "STOP_MARKET"]
        assert [(algo.trigger, algo.quantity) for algo in standing if algo.trigger > 50_000] == [
            (Decimal(58_900), Decimal("0.005"))
        ]
        fake.engine.move("BTCUSDT", Decimal("58889.9"), Decimal("58890.1"))
        await gate.advance()
        await gate.reconcile()
        assert {place[2]: trade.signed for place, trade in gate.book.positions.items()} == {TREND: Decimal("0.008")}
        assert fake.engine.position("BTCUSDT").amount == Decimal("0.008")
        assert {lock.protection for lock in await gate.locks()} == {Protection.COOLDOWN}
        await house.close()


def test_mandates_stand_for_as_long_as_they_were_granted(zuno: Zuno, clock: Callable[[int], None]) -> None:
    def find_active() -> tuple[bool, list[bool]]:
        trading = zuno("trade", "mandate", "show", "--account", "live", "--json").document
        liquidity = zuno("lp", "mandate", "show", "--json").document
        return trading["mandate"]["active"], [each["active"] for each in liquidity["mandates"]]

    assert find_active() == (True, [True])
    clock(31)
    assert find_active() == (False, [False])


# -- runs, backup


def test_a_run_that_was_cut_off_goes_on_in_its_edition_and_is_over_in_another(zuno: Zuno) -> None:
    runs = zuno("trade", "runs", "--json").document["runs"]
    (cut_off,) = [run for run in runs if run["state"] != "ended"]
    (whole,) = [
        run for run in runs if run["state"] == "ended" and run["symbol"] == "BTCUSDT" and run["ruling"] == "HOLD"
    ]
    ran = zuno("trade", "resume", cut_off["runId"], "--json")
    if cycle.EDITION == TRADING_EDITION:
        assert (ran.code, ran.document["hash"]) == (0, whole["hash"]), "it was asked for the same moment"
    else:
        assert (ran.code, ran.document["error"]["kind"]) == (3, "refused")


def test_its_backup_is_restored_and_reads(unpacked: Path, tmp_path: Path) -> None:
    home = tmp_path / "restored"
    restored = run_zuno(home, "restore", str(BACKUP), "--json")
    assert restored.code == 0, restored.err
    told = {name: restored.document[name] for name in ("entries", "missing")}
    assert told == {"entries": TOLD["restored"]["entries"], "missing": ["keys/node.key"]}
    shutil.copy(unpacked / "keys" / "node.key", home / "keys" / "node.key")
    verdict = run_zuno(home, "journal", "verify", "--all", "--json")
    assert (verdict.code, verdict.document["ok"]) == (0, True)
    listed = {plan["planId"]: plan["state"] for plan in run_zuno(home, "plan", "list", "--json").document["plans"]}
    assert {name: listed[plan] for name, plan in PLANS.items()} == TOLD["restored"]["plans"]
    for plan in (PLANS["sent"], PLANS["handedOut"]):
        assert run_zuno(home, "plan", "status", plan, "--json").code == 0
    trades = run_zuno(home, "trade", "trades", "--account", "live", "--json")
    assert trades.code == 0, trades.err
