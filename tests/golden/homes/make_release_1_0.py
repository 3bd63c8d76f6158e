"""Make a home with the code of release 1.0, as README.md here says.

Beside HOME it writes HOME_backup.zip and HOME.json: what that code said of the home, what the fake exchange held. It is
kept as it ran: what it imports is that release's, so that no type is checked here.
"""

# mypy: ignore-errors

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from dataclasses import asdict, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.crash import cycle as crash
from tests.crash.matrix import forked
from tests.scenario.test_live_trading import rule_entry
from tests.wire.commands import Ran, run_zuno
from tests.wire.cycling import ROLES, Desk, Talkative, _invent, market, thin_out
from tests.wire.exchanges import binance
from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.serving import serve_exchange
from zuno.adapters.chain.world import WALLET
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.keys.wallets import WatchOnly
from zuno.adapters.series.sqlite import SqliteSeries
from zuno.adapters.store.sqlite import open_sqlite
from zuno.adapters.venues.synthetic.world import describe_origin
from zuno.journal.journal import ChainedJournal
from zuno.kernel.errors import Broken
from zuno.kernel.units import Liquidity, Millis
from zuno.lp.model.debate import Kind
from zuno.lp.service.execution import Consent
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.targets import TargetPosition
from zuno.wiring import Application, open_zuno
from zuno.wiring.version import code_version

SEED = 6
SLEEVES = ("trend:0.5:0.25", "debate:0.5:0.25")
DAY = 86_400
BINANCE, BTC = Venue("BINANCE"), Symbol("BTCUSDT")
YES = Consent(lambda view: True, lambda view: True)
KEPT = ("basis/binance/", "rates/")
"""Series of the market that an account is read by."""

_ahead = 0.0
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + _ahead
time.time_ns = lambda: _time_ns() + round(_ahead * 1e9)


def set_clock(seconds: float) -> None:
    """So far from the machine's own; processes that are forked from this one have the same."""
    global _ahead
    _ahead = seconds


class Maker:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment: dict[str, str] = {}
        self.told: dict[str, Any] = {}

    def run(self, *words: str, code: int = 0) -> Ran:
        ran = run_zuno(self.home, *words, "--json", **self.environment)
        print(ran.code, *words, flush=True)
        assert ran.code == code, ran.err or ran.out
        return ran

    def ask(self, *words: str) -> Any:
        return self.run(*words).document

    def act(self, work: Callable[[Application], Awaitable[Any]]) -> Any:
        """By the services themselves, where the command line would ask for a typed word."""

        async def open_and_act() -> Any:
            zuno = open_zuno(str(self.home))
            try:
                return await work(zuno)
            finally:
                await zuno.close()

        before = dict(os.environ)
        os.environ.update(self.environment)
        try:
            return asyncio.run(open_and_act())
        finally:
            os.environ.clear()
            os.environ.update(before)

    def die(self, kind: str, *words: str) -> None:
        """In a process that is killed once it has written an entry of that kind."""

        def work() -> int:
            append = ChainedJournal.append

            async def append_and_die(journal: ChainedJournal, *, kind: str, **rest: Any) -> Any:
                entry = await append(journal, kind=kind, **rest)
                if kind == fatal:
                    os.kill(os.getpid(), signal.SIGKILL)
                return entry

            ChainedJournal.append = append_and_die
            return run_zuno(self.home, *words, "--json", **self.environment).code

        fatal = kind
        status, said = forked(work)
        print("killed" if os.WIFSIGNALED(status) else f"ended with {said}", *words, flush=True)
        assert os.WIFSIGNALED(status)


# -- liquidity


def hand_out(make: Maker, position: str) -> str:
    """A plan whose wallet has its key elsewhere."""

    async def work(zuno: Application) -> str:
        watched: Any = WatchOnly(WALLET)
        zuno._signers.of = lambda chain: watched
        execution = zuno.execution()
        plan = await execution.collect(position, "sim")
        await execution.approve(plan.plan_id, YES)
        view = await execution.apply(plan.plan_id, YES, lambda line: None)
        make.told["handedOut"] = view.model_dump(mode="json", by_alias=True)
        return plan.plan_id

    return make.act(work)


class PartlyFilled:
    """A chain on which a new position holds half of what was paid for."""

    def __init__(self, chain: Any, old: set[int]) -> None:
        self._chain, self._old = chain, old

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chain, name)

    async def positions(self, ids: Any) -> Any:
        found = await self._chain.positions(ids)
        return replace(found, positions=tuple(map(self._shrink, found.positions)))

    def _shrink(self, position: Any) -> Any:
        part = Fraction(1) if position.id in self._old else Fraction(1, 2)
        return replace(position, liquidity=Liquidity(int(position.liquidity * part)))


def end_with_problems(make: Maker, plan_id: str) -> None:
    async def work(zuno: Application) -> None:
        whole = zuno._execution_context

        async def short(chain: str) -> Any:
            context = await whole(chain)
            old = set((await context.chain.owned(WALLET)).ids)
            return replace(context, chain=PartlyFilled(context.chain, old))

        zuno._execution_context = short
        try:
            await zuno.execution().apply(plan_id, YES, lambda line: None)
        except Broken as error:
            print(error)
        else:
            raise AssertionError("nothing was missed")

    make.act(work)


def choose(make: Maker, *words: str) -> str:
    """The owner's own choice of a range that was not vetoed: by rule the desk may want to hold."""
    ballot = make.ask("lp", "recommend", *words)["candidates"]
    ranges = [each for each in ballot if each["tickLower"] is not None and each["kind"] != "hold"]
    number = next(str(each["index"]) for each in ranges if each["verdict"] != "veto")
    return str(make.ask("lp", "recommend", *words, "--candidate", number)["planId"])


def make_liquidity(make: Maker) -> None:
    ask = make.ask
    ask("sim", "move", "--percent", "12")
    ask("monitor", "once")
    alerts = ask("alerts")["alerts"]
    ask("alerts", "ack", alerts[0]["id"])
    ask("alerts", "add", "2", "--price-above", "4100")

    opened = choose(make, "create", "0.5 ETH passively")
    ask("plan", "approve", opened, "--yes")
    new = ask("plan", "apply", opened, "--yes")["newPositionId"]

    half = choose(make, "rebalance", new)
    ask("plan", "approve", half, "--yes")
    make.die("step_over", "plan", "apply", half, "--yes")

    short = choose(make, "create", "0.2 ETH passively")
    ask("plan", "approve", short, "--yes")
    end_with_problems(make, short)
    mandated = leave_under_mandate(make, ask("lp", "positions")["positions"][-1]["id"])

    sent = choose(make, "rebalance", "1")
    ask("plan", "approve", sent, "--yes")
    make.die("step_sent", "plan", "apply", sent, "--yes")

    handed = hand_out(make, "2")
    approved = ask("lp", "recommend", "rebalance", "2", "--candidate", "1")["planId"]
    ask("plan", "approve", approved, "--yes")
    drafted = ask("lp", "recommend", "rebalance", "2")["planId"]
    collect = ask("lp", "collect", "2")["planId"]
    cancelled = ask("lp", "close", "2")["planId"]
    ask("plan", "cancel", cancelled)
    make.told["plans"] = {
        "confirmed": opened,
        "mined": half,
        "sent": sent,
        "problems": short,
        "mandated": mandated,
        "handedOut": handed,
        "approved": approved,
        "drafted": drafted,
        "undebated": collect,
        "cancelled": cancelled,
    }


def argue_on_mesh(make: Maker) -> None:
    make.ask("mesh", "init")
    words = [sys.executable, "-m", "zuno", "mesh", "up", "--json", "--home", str(make.home)]
    up = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        for _ in range(120):
            time.sleep(1)
            if run_zuno(make.home, "mesh", "ping", "--json").code == 0:
                break
        make.told["meshPlan"] = make.ask("lp", "recommend", "rebalance", "2", "--transport", "iroh")["planId"]
    finally:
        make.ask("mesh", "down")
        up.wait(60)


GRANT = ("lp", "mandate", "grant", "--yes", "--worth-per-day", "100000")


def leave_under_mandate(make: Maker, position: str) -> str:
    """The mandate of before has ended by its time; this one is revoked after its exit."""
    make.ask(*GRANT, "--position", position, "--exit-below", "3400", "--to", "token1")
    make.ask("sim", "move", "--percent", "-3")
    make.ask("monitor", "once")
    make.ask("sim", "move", "--percent", "-0.1")
    make.ask("monitor", "once")
    make.ask("lp", "mandate", "revoke")
    newest = make.ask("plan", "list")["plans"][0]
    assert (newest["choice"], newest["positionId"], newest["state"]) == ("close", position, "confirmed")
    return str(newest["planId"])


def grant_and_pause(make: Maker) -> None:
    """The mandate that stands."""
    make.ask(*GRANT, "--position", "2", "--exit-below", "1500", "--to", "token1", "--rebalance", "--for", "30d")
    make.ask("lp", "pause")


# -- trading


async def write_market(home: Path, kept: tuple[str, ...] = ()) -> None:
    """Of an invented market as little as a desk can rule on; `kept`: of that, what an account is read by."""
    store = SqliteSeries(home / "market" / "synthetic", describe_origin(SEED))
    batches = [thin_out(batch) for batch in _invent(SEED)]
    await store.write([batch for batch in batches if not kept or str(batch.series).startswith(kept)])
    await store.close()


def make_paper(make: Maker) -> None:
    ask = make.ask
    asyncio.run(write_market(make.home))
    make.environment = {"ZUNO_EV": "seed", "ZUNO_SLEEVES": "trend:0.5,debate:0.5"}
    make.run("trade", "start", "--speed", "max", "--from", "24h", "--symbols", "ETHUSDT")
    ask("trade", "book", "add", "BTCUSDT", "short", "--margin", "200")
    ask("trade", "book", "lp", "ETHUSDT", "0.25")
    ask("trade", "run", "BTCUSDT", "--no-chart")
    make.die("cycle_blackboard_synthesis", "trade", "run", "BTCUSDT", "--no-chart")
    make.environment = {}

    async def with_models() -> None:
        store = await market(thin=True)
        menu = await crash._menu(store)
        talk = Talkative(menu, lambda request: 0)
        key = KeyFile(make.home / "keys" / "node.key")
        journal = ChainedJournal(open_sqlite(make.home), key, code=code_version, now=unix_millis)
        desk = Desk(make.home, store, models=dict.fromkeys(ROLES, (talk,)), journal=journal)
        await desk.cycles.run(BTC)
        await desk.close()

    assert forked(lambda: asyncio.run(with_models()))[0] == 0


@contextmanager
def exchange(make: Maker) -> Any:
    """A fake exchange on loopback, and the keys of an account there."""
    fake, ready, loop = FakeBinance(), threading.Event(), asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        async with serve_exchange(fake.server):
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(30)
    make.environment = {
        "ZUNO_BINANCE_API_KEY": binance.KEY,
        "ZUNO_BINANCE_API_SECRET": binance.SECRET,
        "ZUNO_BINANCE_ORDER_URL": fake.server.url,
        "ZUNO_LIVE": "1",
    }
    try:
        yield fake
    finally:
        make.environment = {}
        loop.call_soon_threadsafe(ended.set)
        thread.join(30)


def grant_live(make: Maker, *sleeves: str, lasts: str = "7d", account: str = "live") -> None:
    async def work(zuno: Application) -> None:
        desk = zuno.account(account)
        limits = ("700", "900", "50", lasts, "venue")
        mandate = desk.build_mandate(["BTCUSDT"], ["BINANCE"], *limits, judge_fallback=False, sleeves=sleeves)
        await desk.grant_mandate(mandate, lambda word, what: True)

    make.act(work)


def at_gate(make: Maker, work: Callable[[Any], Awaitable[Any]]) -> Any:
    async def open_and_work(zuno: Application) -> Any:
        gate = await zuno._open_gate("live", lambda: Millis(unix_millis()), entries=True)
        return await work(gate)

    return make.act(open_and_work)


def make_live(make: Maker, fake: FakeBinance) -> None:
    """A mandate that ended by its time, one that was revoked, one that stands; a trade that was closed, one that is
    open with its stop and target at the exchange, and a second sleeve that holds the same perpetual."""
    begin = -7 * DAY
    set_clock(begin - 3 * DAY)
    grant_live(make, *SLEEVES, lasts="1d")
    set_clock(begin)
    grant_live(make, *SLEEVES)
    asyncio.run(rule_entry(make.home, name="int_first"))
    at_gate(make, lambda gate: gate.reconcile())
    set_clock(begin + 3_600)
    at_gate(make, lambda gate: gate.end_entries("the first is over"))
    make.act(lambda zuno: zuno.account("live").close("BTCUSDT", lambda word, what: True))
    make.act(lambda zuno: zuno.account("live").revoke_mandate())
    grant_live(make, *SLEEVES, lasts="30d")
    set_clock(begin + 4 * 3_600)
    asyncio.run(rule_entry(make.home, name="int_second"))
    at_gate(make, lambda gate: gate.reconcile())
    set_clock(begin + 5 * 3_600)
    at_gate(make, lambda gate: gate.end_entries("no more of the second"))
    make.act(lambda zuno: zuno.account("live").transfer("debate", "trend", "4900", lambda word, what: True))
    wanted = {"trend": [TargetPosition(BINANCE, BTC, Decimal("0.008"))]}
    (ordered,) = at_gate(make, lambda gate: gate.set_targets(wanted, unix_millis(), "req_trend"))
    assert ordered.state == "working", ordered
    fake.engine.move("BTCUSDT", Decimal("59899.9"), Decimal("59900.1"))
    set_clock(begin + 6 * 3_600)
    at_gate(make, lambda gate: gate.advance())
    held = make.ask("trade", "positions", "--account", "live")["positions"]
    debated, _ = (each["id"] for each in sorted(held, key=lambda each: str(each["sleeve"])))
    make.act(lambda zuno: zuno.account("live").set_levels(debated, "58900", None, lambda word, what: True))


# -- the home


def give_leave(make: Maker) -> None:
    for name in ("second", "third"):
        hours = ("--from", "2025-12-31T22:00", "--until", "2025-12-31T22:30")
        make.run("trade", "start", "--speed", "max", *hours, "--symbols", "ETHUSDT", "--account", name)
    make.ask("web", "token", "create", "script", "--scope", "act")
    make.ask("web", "allow", "--for", "2h")
    make.ask("trade", "kill", "--account", "second", "--yes")


def take_leave_back(make: Maker) -> None:
    """What a backup of before still has; and what came later."""
    make.act(lambda zuno: zuno.account("live").revoke_mandate())
    grant_live(make, *SLEEVES, lasts="30d")
    make.ask("web", "token", "revoke", "script")
    make.ask("web", "token", "create", "later", "--scope", "act")
    make.ask("web", "token", "create", "grafana", "--scope", "look")
    make.ask("web", "allow", "--end")
    make.ask("web", "allow", "--for", "1d")
    make.ask("trade", "unlock", "--account", "second")


def dump_exchange(fake: FakeBinance) -> dict[str, Any]:
    """What the exchange has of the account, by the names of the fake's own fields."""
    engine = fake.engine
    return {
        "cash": engine.cash,
        "last_id": engine.last_id,
        "leverage": engine.leverage,
        "markets": {
            name: {"bid": each.bid, "ask": each.ask, "mark": each.mark} for name, each in engine.markets.items()
        },
        "orders": [asdict(each) for each in engine.orders.values()],
        "algos": [asdict(each) for each in engine.algos.values()],
        "trades": [asdict(each) for each in engine.trades],
        "positions": {name: asdict(each) for name, each in engine.positions.items()},
    }


def keep_figures(document: Any) -> Any:
    """A document without its sentences, which may be worded better one day."""
    if isinstance(document, dict):
        return {
            name: keep_figures(value) for name, value in document.items() if name != "codeNow" and not is_prose(value)
        }
    if isinstance(document, list):
        return [None if is_prose(value) else keep_figures(value) for value in document]
    return document


def is_prose(value: Any) -> bool:
    return isinstance(value, str) and (" " in value or "\n" in value)


def question(make: Maker, live: dict[str, str]) -> list[list[Any]]:
    """What is asked of the home, with which settings, and what was answered."""
    plans = make.told["plans"]
    debated = [plan for name, plan in plans.items() if name not in ("mandated", "handedOut", "undebated", "cancelled")]
    debated.append(make.told["meshPlan"])
    ended = [run for run in make.ask("trade", "runs")["runs"] if run["state"] == "ended"]
    runs = [run["runId"] for run in ended]
    shown = {(run["synthetic"], run["symbol"], run["ruling"]): run["runId"] for run in ended}
    memories = [each["id"] for each in make.ask("memory", "list")["memories"]]
    account = ("status", "positions", "orders --all", "trades", "ledger", "sleeves")
    words = [
        "journal verify --all",
        "plan list",
        *(f"plan status {plan}" for plan in plans.values()),
        *(f"plan show {plan}" for plan in (plans["confirmed"], plans["problems"], make.told["meshPlan"])),
        *(f"replay {plan}" for plan in debated),
        "lp positions",
        "lp mandate show",
        "alerts --all",
        "wallet show",
        "trade runs",
        *(f"trade why {run}" for run in shown.values()),
        *(f"replay {run}" for run in runs),
        *(f"trade {look}" for look in account),
        "trade vetoes",
        "memory list",
        *(f"memory show {memory}" for memory in memories),
        "memory lessons",
        "trade locks --account second",
        "trade locks --account third",
        "web token list",
        "web sessions",
        "web allow",
    ]
    asked = [[each, False] for each in words]
    asked += [[f"trade {look} --account live", True] for look in (*account, "mandate show")]
    answers = []
    for line, at_exchange in asked:
        make.environment = live if at_exchange else {}
        answers.append([line, at_exchange, keep_figures(make.ask(*line.split()))])
    make.environment = {}
    return answers


def count_envelopes(home: Path) -> dict[str, int]:
    """Messages of debates in the home's journal and in those of its peers."""
    kinds = ", ".join(f"'{kind.value}'" for kind in Kind)
    counted = {}
    for folder in (home, *(home / "mesh" / peer for peer in ("scout", "strategist", "critic"))):
        with sqlite3.connect(folder / "journal.db") as journal:
            query = f"SELECT count(*) FROM entries WHERE kind IN ({kinds})"
            (counted[folder.name if folder != home else "owner"],) = journal.execute(query).fetchone()
        journal.close()
    return counted


def clean_up(home: Path) -> None:
    """Leave out what processes keep for each other, and what is made again."""
    for name in ("reports", "charts", "leases", "logs", "memory"):
        shutil.rmtree(home / name, ignore_errors=True)
    shutil.rmtree(home / "market")
    asyncio.run(write_market(home, KEPT))
    for database in home.rglob("*.db"):
        with sqlite3.connect(database) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
    left = ("*.log*", "*.lock", "axl.*", "report.json", "kept.json", "*.db-*")
    for path in [path for pattern in left for path in home.rglob(pattern) if path.name != "kill.lock"]:
        path.unlink()


def main(home: Path) -> None:
    home.mkdir(mode=0o700)
    backup = home.with_name(f"{home.name}_backup.zip")
    make = Maker(home)
    set_clock(-11 * DAY)
    make.ask("sim", "reset")
    ended = ("--position", "1", "--exit-below", "900", "--for", "1d", "--worth-per-day", "100000")
    make.ask("lp", "mandate", "grant", *ended, "--yes")
    with exchange(make) as fake:
        make_live(make, fake)
        live, make.environment = make.environment, {}
        set_clock(-6 * DAY)
        asyncio.run(write_market(home))
        make_liquidity(make)
        give_leave(make)
        make.ask("backup", str(backup))
        restored = home.with_name(f"{home.name}_restored")
        told = Maker(restored).ask("restore", str(backup))
        make.told["restored"] = {name: told[name] for name in ("entries", "files", "killed", "missing")}
        listed = {plan["planId"]: plan["state"] for plan in Maker(restored).ask("plan", "list")["plans"]}
        make.told["restored"]["plans"] = {name: listed[plan] for name, plan in make.told["plans"].items()}
        shutil.rmtree(restored)
        set_clock(0)
        make.environment = live
        take_leave_back(make)
        make.environment = {}
        grant_and_pause(make)
        make_paper(make)
        argue_on_mesh(make)
        make.ask("trade", "kill", "--account", "third", "--yes")
        clean_up(home)
        now = unix_millis()
        time.time, time.time_ns = lambda: now / 1_000, lambda: now * 1_000_000
        exchanged = dump_exchange(fake)
        asked = shutil.copytree(home, home.with_name(f"{home.name}_asked"))
        answers = question(replace_home(make, asked), live)
        shutil.rmtree(asked)
    told = {"at": now, **make.told, "envelopes": count_envelopes(home), "exchange": exchanged}
    lines = ",\n".join(json.dumps(answer) for answer in answers)
    text = json.dumps(told, indent=1, default=str).removesuffix("\n}")
    home.with_name(f"{home.name}.json").write_text(f'{text},\n "answers": [\n{lines}\n]\n}}\n')


def replace_home(make: Maker, home: Path) -> Maker:
    """Whoever asks may write: a first verification seals."""
    other = Maker(home)
    other.told = make.told
    return other


if __name__ == "__main__":
    main(Path(sys.argv[1]))
