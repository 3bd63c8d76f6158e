"""The desk's figures for Prometheus: each comes from what is stored, has help and a unit, and no stranger's label."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.paths import CHECKOUT
from tests.wire.fakes.outbox import OutboxInMemory
from tests.wire.trading_account import AccountStory
from zuno.adapters.account.trade_log import JournalTradeLog
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.memory import MemoryStore
from zuno.doors import metrics as module
from zuno.doors.metrics import CACHE_SECONDS, COUNTERS, GAUGES, DeskMetrics, MetricSources, serve_metrics
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author, Journal
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis, Seconds
from zuno.llm.port import Attempt
from zuno.lp.model.alerts import AlertBook, ChainHealth
from zuno.markets.market import Symbol
from zuno.trading.model.cycle import ENDED, STARTED
from zuno.trading.model.market import Side
from zuno.trading.model.trade_events import OrderLost, Protection
from zuno.trading.service.account import AccountFigures

NOW = Millis(1_760_000_000_000)
UNITS = re.compile(r"zuno_\w+_(seconds|bytes|usd|ratio)")
COUNTED = {"zuno_active_locks", "zuno_waiting_notices", "zuno_event_streams"}
"""Gauges that count things: their unit is the thing."""


class Figures:
    async def figures(self) -> AccountFigures:
        return AccountFigures(
            "paper",
            Decimal("10250.5"),
            Decimal("0.025"),
            {Symbol("BTCUSDT"): Decimal(-1200)},
            {Protection.KILL_SWITCH: 1},
        )


class Home:
    """A journal, and everything else that figures are made of."""

    def __init__(self, folder: Path) -> None:
        self.now, self.seconds, self.reads = NOW, 0.0, 0
        key = KeyFile(folder / "node.key")
        self.journal = ChainedJournal(MemoryStore(), key, code=lambda: "test", now=lambda: self.now)
        self.book = AlertBook(
            looked_at=Seconds(NOW // 1000 - 30),
            chains={
                "base": ChainHealth(block_time=Seconds(NOW // 1000 - 12)),
                "sim": ChainHealth(block_time=Seconds(9)),
            },
        )
        sources = MetricSources(
            journal=self.open,
            accounts=lambda: [Figures()],  # type: ignore[list-item]
            feeds=self.feeds,
            alerts=self.alerts,
            outbox=OutboxInMemory,
            journal_bytes=lambda: 4096,
            roles=frozenset({"judge"}),
        )
        self.metrics = DeskMetrics(sources, lambda: self.now, lambda: self.seconds)

    async def open(self) -> Journal:
        self.reads += 1
        return self.journal

    async def feeds(self) -> Mapping[str, Millis]:
        return {"basis/binance/BTCUSDT": Millis(NOW - 4_000)}

    async def alerts(self) -> AlertBook:
        if self.book.dropped:
            raise Unavailable("alerts.json")
        return self.book

    async def put(self, kind: str, payload: Any, request: str | None = None, author: str = "desk") -> None:
        await self.journal.append(kind=kind, author=Author(author), payload=payload, request_id=request)

    async def read(self) -> dict[str, dict[tuple[str, ...], float]]:
        self.seconds += CACHE_SECONDS
        found: dict[str, dict[tuple[str, ...], float]] = {}
        for family in text_string_to_metric_families((await self.metrics.write()).decode()):
            for sample in family.samples:
                labels = tuple(value for _, value in sorted(sample.labels.items()))
                found.setdefault(sample.name, {})[labels] = sample.value
        return found


@pytest.fixture
async def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    await home.put("test", {})
    await home.read()
    return home


def attempt(**changed: Any) -> Attempt:
    fields: dict[str, Any] = {
        "role": "judge", "round": 0, "attempt": 1, "model": "m", "request": "f", "outcome": "ok", "why": "", "raw": "",
        "cut": False, "tokens_in": 100, "tokens_out": 20, "usd": Decimal("0.03"), "estimated": False, "latency_ms": 5,
    }  # fmt: skip
    return Attempt(**fields | changed)


async def test_what_is_stored_is_said(home: Home) -> None:
    figures = await home.read()
    assert figures["zuno_equity_usd"] == {("paper",): 10250.5}
    assert figures["zuno_drawdown_ratio"] == {("paper",): 0.025}
    assert figures["zuno_exposure_usd"] == {("paper", "BTCUSDT"): -1200}
    locks = figures["zuno_active_locks"]
    assert locks.pop(("paper", "kill_switch")) == 1
    assert len(locks) == len(Protection) - 1
    assert set(locks.values()) == {0}
    assert figures["zuno_feed_age_seconds"] == {("basis/binance/BTCUSDT",): 4}
    assert figures["zuno_monitor_age_seconds"] == {(): 30}
    assert figures["zuno_chain_head_age_seconds"] == {("base",): 12}
    assert figures["zuno_journal_size_bytes"] == {(): 4096}
    assert figures["zuno_waiting_notices"] == {(): 0}
    assert "zuno_cycle_age_seconds" not in figures


async def test_cycles_their_age_and_their_rulings(home: Home) -> None:
    await home.put(STARTED, {}, "run_1")
    home.now = Millis(NOW + 7_500)
    await home.put(ENDED, {"ruling": "LONG", "veto": None}, "run_1")
    await home.put(ENDED, {"ruling": "HOLD", "veto": "min_edge"}, "run_2")
    await home.put(STARTED, {}, "run_3")
    await home.put(ENDED, {"ruling": "buy 0xfeed"}, "run_3")
    home.now = Millis(NOW + 60_500)
    figures = await home.read()
    assert figures["zuno_cycle_age_seconds"] == {(): 53}
    assert figures["zuno_cycle_duration_seconds"] == {(): 0}
    assert figures["zuno_rulings_total"] == {("LONG", "no"): 1, ("HOLD", "yes"): 1}
    assert figures["zuno_failed_reads_total"] == {("journal",): 1}


async def test_model_calls_tokens_cost_and_refusals(home: Home) -> None:
    for entry in (
        attempt(),
        attempt(role="0xstranger", usd=None),
        attempt(outcome="refused", usd=Decimal(0)),
        attempt(outcome="budget", tokens_in=0, tokens_out=0, usd=Decimal(0)),
    ):
        await home.put("model_attempt", entry)
    figures = await home.read()
    assert figures["zuno_model_calls_total"] == {("ok", "judge"): 1, ("ok", "other"): 1, ("refused", "judge"): 1}
    assert figures["zuno_model_refusals_total"] == {("refused", "judge"): 1, ("budget", "judge"): 1}
    assert figures["zuno_model_tokens_total"][("in", "judge")] == 200
    assert figures["zuno_model_cost_usd_total"] == {("judge",): 0.03, ("other",): 0}
    assert await home.read() == figures, "an entry is counted once"


async def test_orders_fills_rejects_and_slippage(home: Home) -> None:
    story = AccountStory(JournalTradeLog(home.open), "paper:recorded")
    intent = await story.open_trade(NOW, Symbol("BTCUSDT"), Side.LONG, "0.02", "60000", "59000", "63000")
    await story.exit_trade(NOW, intent, "stop")
    log = JournalTradeLog(home.open)
    count = len(await log.events("live"))
    await log.append("live", [OrderLost(at=NOW, client_id="zn-1", reason="never seen")], count)
    figures = await home.read()
    assert figures["zuno_orders_total"][("paper", "BINANCE", "entry")] == 1
    assert figures["zuno_orders_total"][("paper", "BINANCE", "stop")] == 1
    assert figures["zuno_fills_total"] == {("paper", "BINANCE"): 2}
    assert figures["zuno_order_rejects_total"] == {("live",): 1}
    assert figures["zuno_slippage_ratio_bucket"][("BINANCE", "+Inf")] == 2


async def test_envelopes_by_peer(home: Home) -> None:
    await home.put("proposal", {}, "req_1", "strategist")
    await home.put("proposal", {}, "req_1", "mallory")
    await home.put("alert", {}, None, "monitor")
    assert (await home.read())["zuno_envelopes_total"] == {("proposal", "strategist"): 1, ("proposal", "other"): 1}


async def test_what_cannot_be_read_is_missing_and_counted_and_the_rest_is_said(home: Home) -> None:
    home.book = AlertBook(dropped=1)
    figures = await home.read()
    assert figures["zuno_failed_reads_total"] == {("monitor",): 1}
    assert "zuno_monitor_age_seconds" not in figures
    assert figures["zuno_equity_usd"]


async def test_a_home_is_read_once_however_often_it_is_asked(home: Home) -> None:
    await home.read()
    before = home.reads
    assert len(set(await asyncio.gather(*(home.metrics.write() for _ in range(20))))) == 1
    assert home.reads == before


async def test_a_long_journal_is_counted_in_parts(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", 2)
    for number in range(3):
        await home.put(ENDED, {"ruling": "HOLD"}, f"run_{number}")
    assert (await home.read())["zuno_rulings_total"] == {("HOLD", "no"): 2}
    assert (await home.read())["zuno_rulings_total"] == {("HOLD", "no"): 3}


async def ask(port: int, request: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    answer = await reader.read()
    writer.close()
    return answer


async def test_one_address_and_nothing_else_is_answered(home: Home, unused_tcp_port: int) -> None:
    port = unused_tcp_port
    serving = asyncio.create_task(serve_metrics(home.metrics, "127.0.0.1", port))
    await asyncio.sleep(0.05)
    host = f"Host: 127.0.0.1:{port}\r\n\r\n"
    try:
        good = await ask(port, f"GET /metrics HTTP/1.1\r\nUser-Agent: p\r\n{host}")
        head, _, body = good.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert f"Content-Length: {len(body)}".encode() in head
        assert b"zuno_equity_usd" in body
        for bad in (
            f"GET / HTTP/1.1\r\n{host}",
            f"GET /metrics/../journal.db HTTP/1.1\r\n{host}",
            f"POST /metrics HTTP/1.1\r\n{host}",
            "GET /metrics HTTP/1.1\r\nHost: rebound.example\r\n\r\n",
            "GET /metrics HTTP/1.1\r\nX: host:localhost\r\n\r\n",
            "GET /metrics HTTP/1.1\r\n\r\n",
        ):
            answer = await ask(port, bad)
            assert answer.startswith(b"HTTP/1.1 404"), bad
            assert b"zuno_" not in answer
        assert await ask(port, "GET /metrics HTTP/1.1\r\n" + f"X: {'x' * 9000}\r\n" + host) == b""
    finally:
        serving.cancel()


async def test_the_second_process_takes_over_when_the_first_has_ended(
    home: Home, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.05)
    request = f"GET /metrics HTTP/1.1\r\nHost: localhost:{unused_tcp_port}\r\n\r\n"
    first, second = (asyncio.create_task(serve_metrics(home.metrics, "127.0.0.1", unused_tcp_port)) for _ in range(2))
    await asyncio.sleep(0.1)
    first.cancel()
    await asyncio.sleep(0.2)
    try:
        assert (await ask(unused_tcp_port, request)).startswith(b"HTTP/1.1 200")
    finally:
        second.cancel()


def test_every_name_has_its_unit_and_its_help() -> None:
    assert [name for name in GAUGES if not UNITS.fullmatch(name) and name not in COUNTED] == []
    assert [name for name in (*GAUGES, *COUNTERS) if name.endswith("_total")] == [], "the library adds it to counters"
    assert all(text.endswith(".") and len(text) > 10 for text, _ in (*GAUGES.values(), *COUNTERS.values()))


def test_rules_dashboard_and_page_name_metrics_that_exist() -> None:
    known = {*GAUGES, *(f"{name}_total" for name in COUNTERS), "zuno_slippage_ratio", "zuno_slippage_ratio_bucket"}
    folder = CHECKOUT / "docs" / "monitoring"
    rules = pytest.importorskip("yaml").safe_load((folder / "alerts.yml").read_text())["groups"][0]["rules"]
    named = {
        file: set(re.findall(r"\bzuno_[a-z_]+", (folder / file).read_text()))
        for file in ("alerts.yml", "dashboard.json")
    }
    assert all(names <= known for names in named.values()), named
    assert known - {"zuno_slippage_ratio"} == named["dashboard.json"], "the dashboard shows all of them"
    page = (CHECKOUT / "docs" / "running-it.md").read_text()
    assert [name for name in known - {"zuno_slippage_ratio_bucket"} if f"`{name}`" not in page] == []
    runbook = (CHECKOUT / "docs" / "runbook.md").read_text()
    assert [rule["alert"] for rule in rules if f"`{rule['alert']}`" not in runbook] == []
    assert all(rule["annotations"]["summary"] and rule["labels"]["severity"] for rule in rules)
