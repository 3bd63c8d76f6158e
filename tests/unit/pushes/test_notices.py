"""From the journal to the outbox: what the desks record is told once, in order, with whose money it is."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.wire.fakes.outbox import OutboxInMemory
from tests.wire.order_gate import GateHarness
from tests.wire.paper_venue import PaperHarness
from tests.wire.trading_account import AccountStory
from zuno.adapters.account.trade_log import JournalTradeLog
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.memory import MemoryStore
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author
from zuno.kernel.errors import Unavailable
from zuno.kernel.notify import Notice, NoticeKind, NoticeLabel, Severity
from zuno.kernel.units import Millis
from zuno.lp.model.plan_events import PlanApplying, PlanOver
from zuno.lp.watch.plan_notices import PlanNotices
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.pushes.feed import OLDEST_MS, JournalFeed
from zuno.trading.model.cycle import STARTED, Call, JudgeKind, Regime
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS, Mode, Side
from zuno.trading.model.trade_events import (
    DAY_SUMMARY,
    DaySummary,
    ExitReason,
    IntentEnded,
    LockLifted,
    LockSet,
    Mandate,
    MandatedSleeve,
    MandateGranted,
    MandateRevoked,
    Protection,
    TradeEvent,
    TradeSummary,
)
from zuno.trading.rules.performance import AccountHistory
from zuno.trading.rules.protections import hash_mandate
from zuno.trading.run.record import ENDED, RunSummary
from zuno.trading.watch.notices import TradingNotices, choose_label, describe_close, describe_event

NOW = Millis(1_760_000_000_000)
PAPER = "paper:recorded"
PNG = b"\x89PNG picture"


class Desk:
    """A journal, what is written into it, and the feed that follows it."""

    def __init__(self, folder: Path, outbox: OutboxInMemory | None = None) -> None:
        self.now = NOW
        self.journal = ChainedJournal(
            MemoryStore(), KeyFile(folder / "node.key"), code=lambda: "test", now=lambda: self.now
        )
        self.log = JournalTradeLog(self.open)
        self.outbox = outbox or OutboxInMemory()
        self.told: list[str] = []

    async def open(self) -> ChainedJournal:
        return self.journal

    def feed(self) -> JournalFeed:
        async def paint(account: str) -> bytes | None:
            if account == "live":
                raise Unavailable("no prices")
            return PNG

        sources = (PlanNotices(), TradingNotices(JournalTradeLog(self.open), paint))
        return JournalFeed(self.outbox, self.open, sources, lambda: self.now, self.told.append)

    async def write(self, account: str, *events: TradeEvent) -> None:
        await self.log.append(account, events, len(await self.log.events(account)))

    async def put(self, kind: str, request: str, payload: Any) -> None:
        await self.journal.append(kind=kind, author=Author("desk"), payload=payload, request_id=request)

    async def notices(self) -> list[Notice]:
        found = []
        while (post := await self.outbox.next()) is not None:
            found.append(post.notice)
            await self.outbox.mark_delivered(post.number, post.notice.at)
        return found


@pytest.fixture
async def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    await desk.journal.append(kind="test", author=Author("cli"), payload={})
    await desk.feed().step()
    return desk


def lock(protection: Protection = Protection.DAILY_LOSS, until: int | None = None) -> LockSet:
    end = None if until is None else Millis(until)
    return LockSet(at=NOW, protection=protection, symbol=None, until=end, reason="lost 3 % today")


def kinds(notices: Sequence[Notice]) -> list[NoticeKind]:
    return [notice.kind for notice in notices]


async def test_a_trade_from_its_entry_to_its_stop(desk: Desk) -> None:
    story = AccountStory(desk.log, PAPER)
    intent = await story.open_trade(NOW, Symbol("BTCUSDT"), Side.LONG, "0.02", "60000", "59000", "63000")
    await story.exit_trade(NOW, intent, "stop")
    await desk.feed().step()
    notices = await desk.notices()
    assert kinds(notices) == [NoticeKind.ENTRY, NoticeKind.FILL, NoticeKind.FILL, NoticeKind.STOP]
    assert {notice.label for notice in notices} == {NoticeLabel.PAPER}
    entry, filled, exited, stopped = notices
    assert dict(entry.facts)["stop"] == "59,000"
    assert "entry" in filled.title
    assert "stop" in exited.title
    facts = dict(stopped.facts)
    assert facts["net PnL"].startswith("-")
    assert facts["result"] == "-1.06 R"  # the fees are part of it
    assert stopped.buttons[0].words == f"/why run_{1:016x}"


async def test_what_a_sleeve_changed_is_told_once_a_day_and_its_orders_are_not(desk: Desk) -> None:
    story = AccountStory(desk.log, PAPER)
    await story.set_sleeves(NOW, trend="0.5", debate="0.5")
    btc = Symbol("BTCUSDT")
    await story.open_trade(NOW, btc, Side.LONG, "0.005", "60000", "40000", "63000", sleeve="trend")
    await story.open_trade(NOW, btc, Side.LONG, "0.005", "60000", "40000", "63000", sleeve="trend")
    feed = desk.feed()
    await feed.step()
    await feed.step()
    [change] = await desk.notices()
    assert (change.kind, change.label) == (NoticeKind.SUMMARY, NoticeLabel.PAPER)
    assert change.title.startswith("trend")
    assert [tuple(fact) for fact in change.facts] == [("BTCUSDT", "+0.01, now 0.01 BTC")]
    assert [button.words for button in change.buttons] == ["/sleeves"]
    await desk.feed().step()  # of another process
    assert await desk.notices() == []


async def test_a_stop_of_a_sleeve_is_told_under_its_name(desk: Desk) -> None:
    story = AccountStory(desk.log, PAPER)
    await story.set_sleeves(NOW, trend="0.5", debate="0.5")
    btc = Symbol("BTCUSDT")
    opened = await story.open_trade(NOW, btc, Side.LONG, "0.005", "60000", "40000", "63000", sleeve="trend")
    await story.exit_trade(NOW, opened, "stop")
    await desk.feed().step()
    stopped = [notice for notice in await desk.notices() if notice.kind is NoticeKind.STOP]
    assert [notice.title.partition(":")[0] for notice in stopped] == ["trend"]


async def test_each_event_is_told_once_whoever_follows(desk: Desk) -> None:
    story = AccountStory(desk.log, PAPER)
    first, second = desk.feed(), desk.feed()
    await first.step()
    intent = await story.open_trade(NOW, Symbol("BTCUSDT"), Side.LONG, "0.02", "60000", "59000", "63000")
    await first.step()
    await story.exit_trade(NOW, intent, "target")
    await second.step()
    await first.step()
    await desk.feed().step()
    assert kinds(await desk.notices()) == [NoticeKind.ENTRY, NoticeKind.FILL, NoticeKind.FILL, NoticeKind.TARGET]


@pytest.mark.parametrize("step", range(1, 7))
async def test_a_kill_after_any_write_loses_and_repeats_nothing(tmp_path: Path, step: int) -> None:
    class Dying(OutboxInMemory):
        """Ends its process after so many writes."""

        left = step

        def _write(self) -> None:
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt

        async def append(self, notice: Notice, key: str) -> int:
            number = await super().append(notice, key)
            self._write()
            return number

        async def move_cursor(self, feed: str, position: str) -> None:
            await super().move_cursor(feed, position)
            self._write()

    outbox = Dying()
    outbox.left = 0  # while the stage is set
    desk = Desk(tmp_path, outbox)
    await desk.feed().step()
    story = AccountStory(desk.log, PAPER)
    intent = await story.open_trade(NOW, Symbol("BTCUSDT"), Side.LONG, "0.02", "60000", "59000", "63000")
    await story.exit_trade(NOW, intent, "stop")
    outbox.left = step
    try:
        await desk.feed().step()
    except KeyboardInterrupt:
        await desk.feed().step()
    assert kinds(await desk.notices()) == [NoticeKind.ENTRY, NoticeKind.FILL, NoticeKind.FILL, NoticeKind.STOP]


async def test_the_first_feed_starts_at_the_end_of_the_journal(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await AccountStory(desk.log, PAPER).open_trade(NOW, Symbol("BTCUSDT"), Side.LONG, "0.02", "60000", "59000", "63000")
    await desk.feed().step()
    await desk.feed().step()
    assert await desk.notices() == []


async def test_recorded_time_is_pushed_by_nobody(desk: Desk) -> None:
    story = AccountStory(desk.log, PAPER)
    then = NOW - 30 * DAY_MS
    intent = await story.open_trade(then, Symbol("BTCUSDT"), Side.LONG, "0.02", "60000", "59000", "63000")
    await story.exit_trade(then + HOUR_MS, intent, "stop")
    await desk.put(DAY_SUMMARY, "job_1", day(then))
    await put_run(desk, live=False)
    await desk.feed().step()
    assert await desk.notices() == []


async def test_the_last_minutes_of_recorded_time_are_pushed_by_nobody(desk: Desk) -> None:
    """Of a run through recorded time that ends now: its last trade and its last day are of this very minute."""
    story = AccountStory(desk.log, PAPER)
    await story.come_to(NOW - HOUR_MS)
    intent = await story.open_trade(
        NOW - 2 * MINUTE_MS, Symbol("BTCUSDT"), Side.LONG, "0.02", "60000", "59000", "63000"
    )
    await story.exit_trade(NOW - MINUTE_MS, intent, "stop")
    await desk.write(PAPER, lock(until=NOW + MINUTE_MS))
    await story.come_to(NOW)
    day = DaySummary.model_validate(
        {name: {} for name in ("net", "fees", "funding", "cash")}
        | {"account": PAPER, "trades": 0, "open_trades": 0, "day": NOW // DAY_MS * DAY_MS - DAY_MS}
    )
    await desk.put(DAY_SUMMARY, "job_day", day)
    feed = desk.feed()
    await feed.step()
    desk.now = Millis(NOW + 2 * MINUTE_MS)
    await feed.step()
    assert await desk.notices() == []


async def test_what_was_missed_for_too_long_is_told_no_more(desk: Desk) -> None:
    await desk.write("live", lock())
    desk.now = Millis(NOW + OLDEST_MS + 1)
    await desk.feed().step()
    assert await desk.notices() == []


async def test_locks_and_unlocks_are_told_and_an_end_by_the_clock_too(desk: Desk) -> None:
    feed = desk.feed()
    until = NOW + 2 * HOUR_MS
    await desk.write("live", lock(until=until), lock(Protection.KILL_SWITCH))
    await desk.write("live", LockLifted(at=NOW, protection=Protection.KILL_SWITCH, symbol=None, reason="by the owner"))
    await feed.step()
    timed, killed, lifted = await desk.notices()
    assert kinds([timed, killed, lifted]) == [NoticeKind.LOCK, NoticeKind.LOCK, NoticeKind.UNLOCK]
    assert (timed.severity, killed.severity) == (Severity.WARNING, Severity.CRITICAL)
    assert [button.words for button in killed.buttons] == ["/locks live", "/unlock kill_switch live"]
    assert {notice.label for notice in (timed, killed, lifted)} == {NoticeLabel.LIVE}
    desk.now = Millis(until)
    await feed.step()
    await desk.feed().step()  # another process, or the same after a kill
    (ended,) = await desk.notices()
    assert (ended.kind, ended.at) == (NoticeKind.UNLOCK, until // 1_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("account", "word"), [("demo", " demo"), ("paper:recorded", ""), ("paper:recorded:scout", " paper:scout")]
)
async def test_the_buttons_of_a_lock_are_of_its_own_account(desk: Desk, account: str, word: str) -> None:
    await desk.write(account, lock(Protection.KILL_SWITCH))
    await desk.feed().step()
    (killed,) = await desk.notices()
    assert [button.words for button in killed.buttons] == [f"/locks{word}", f"/unlock kill_switch{word}"]


async def test_an_entry_that_came_to_nothing_is_told(desk: Desk) -> None:
    story = AccountStory(desk.log, "demo")
    intent = await story.open_trade(NOW, Symbol("BTCUSDT"), Side.LONG, "0.02", "60000", "59000", "63000")
    await desk.feed().step()
    await desk.notices()
    refused = IntentEnded(at=NOW, intent=intent, state="undone", reason="no stop could be placed")
    book = await TradingNotices(desk.log, lambda account: no_picture())._open_book("demo", None)
    notice = describe_event(refused, book, "demo")
    assert notice is not None
    assert (notice.kind, notice.severity, notice.label) == (NoticeKind.ENTRY, Severity.CRITICAL, NoticeLabel.DEMO)


async def no_picture() -> bytes | None:
    return None


def day(at: int) -> DaySummary:
    return DaySummary(
        account=PAPER, day=at, trades=2, net={"USD": 12.5}, fees={}, funding={}, cash={"USD": 2012.5}, open_trades=1
    )


async def test_the_day_is_told_with_its_picture_and_without_one_where_it_fails(desk: Desk) -> None:
    await desk.put(DAY_SUMMARY, "job_1", day(NOW - DAY_MS))
    await desk.put(DAY_SUMMARY, "job_2", day(NOW - DAY_MS).model_copy(update={"account": "live"}))
    await desk.feed().step()
    drawn, plain = await desk.notices()
    assert (drawn.kind, drawn.picture, plain.picture) == (NoticeKind.SUMMARY, PNG, None)
    assert dict(drawn.facts)["net PnL"].startswith("+$12.50")
    assert [drawn.label, plain.label] == [NoticeLabel.PAPER, NoticeLabel.LIVE]


def run_summary(**changed: Any) -> RunSummary:
    shape: dict[str, Any] = {
        "symbol": Symbol("BTCUSDT"),
        "mode": Mode.SWING,
        "as_of": NOW,
        "origin": "recorded",
        "regime": next(iter(Regime)),
        "signal": None,
        "score": None,
        "decision": Call.LONG,
        "entry_price": 60_000.0,
        "stop_loss": 59_000.0,
        "take_profit": 63_000.0,
        "hold_duration": "5d",
        "win_probability_pct": 55,
        "ruling": Call.LONG,
        "allocation_pct": 10.0,
        "leverage": 2.0,
        "veto": None,
        "hash": "ab" * 32,
        "judge": JudgeKind.RULES,
        "account": PAPER,
    }
    return RunSummary(**shape | changed)


async def put_run(desk: Desk, *, live: bool, **changed: Any) -> None:
    await desk.put(STARTED, "run_1", {"live": live})
    report = {"outcome": {"ruling": {"card": {"ev_pct": 0.1234}}}}
    await desk.put("cycle_generate_report", "run_1", report)
    await desk.put(ENDED, "run_1", run_summary(**changed))


@pytest.mark.slow
async def test_recorded_time_in_an_account_that_went_by_the_walls_clock_is_pushed_by_nobody(desk: Desk) -> None:
    story, late = AccountStory(desk.log, PAPER), [NoticeKind.FILL, NoticeKind.STOP]
    first = await story.open_trade(NOW, Symbol("BTCUSDT"), Side.LONG, "0.02", "60000", "59000", "63000")
    await desk.feed().step()
    assert kinds(await desk.notices()) == [NoticeKind.ENTRY, NoticeKind.FILL]
    feed = desk.feed()  # of another process, that reads the account's past
    desk.now = Millis(NOW + 30 * DAY_MS)
    await story.exit_trade(NOW + DAY_MS, first, "stop")
    then = NOW + 2 * DAY_MS
    second = await story.open_trade(then, Symbol("ETHUSDT"), Side.LONG, "0.2", "3000", "2900", "3200")
    await story.exit_trade(then + HOUR_MS, second, "target")
    await feed.step()
    assert kinds(await desk.notices()) == late, "the first trade's stop is booked late; the second is recorded"
    third = await story.open_trade(desk.now, Symbol("BTCUSDT"), Side.LONG, "0.02", "60000", "59000", "63000")
    await story.exit_trade(desk.now + HOUR_MS, third, "stop")
    await feed.step()
    assert kinds(await desk.notices()) == [NoticeKind.ENTRY, NoticeKind.FILL, *late]


async def test_a_ruling_says_size_levels_and_ev(desk: Desk) -> None:
    await put_run(desk, live=True)
    await desk.feed().step()
    (ruling,) = await desk.notices()
    facts = dict(ruling.facts)
    assert (facts["EV"], facts["stop"], facts["target"]) == ("+0.123 %", "59,000", "63,000")
    assert facts["size"] == "10 % of the equity, 2×"
    assert [button.words for button in ruling.buttons] == ["/why run_1", "/report run_1"]


async def test_a_veto_is_named_and_nothing_is_sized(desk: Desk) -> None:
    await put_run(desk, live=True, ruling=Call.HOLD, veto="edge_below_cost")
    await desk.feed().step()
    (ruling,) = await desk.notices()
    facts = dict(ruling.facts)
    assert facts["veto"] == "edge below cost"
    assert "size" not in facts


@pytest.mark.parametrize(
    ("state", "play", "severity", "label"),
    [
        ("confirmed", True, Severity.INFO, NoticeLabel.SYNTHETIC),
        ("failed", False, Severity.CRITICAL, NoticeLabel.LIVE),
        ("partial", False, Severity.CRITICAL, NoticeLabel.LIVE),
    ],
)
async def test_a_plan_that_ended_is_told(
    desk: Desk, state: Any, play: bool, severity: Severity, label: NoticeLabel
) -> None:
    plan = f"plan_{1:012x}"
    block = {"number": 1, "hash": "0x" + "00" * 32, "timestamp": 1}
    await desk.put(
        PlanApplying.kind, plan, PlanApplying.model_validate({"planId": plan, "block": block, "playMoney": play})
    )
    await desk.put(PlanOver.kind, plan, PlanOver(plan_id=plan, state=state, why="the swap reverted"))
    await desk.feed().step()
    (told,) = await desk.notices()
    assert (told.kind, told.severity, told.label) == (NoticeKind.PLAN, severity, label)


async def test_a_plan_that_nobody_signed_is_not_told(desk: Desk) -> None:
    plan = f"plan_{1:012x}"
    await desk.put(PlanOver.kind, plan, PlanOver(plan_id=plan, state="expired"))
    await desk.feed().step()
    assert await desk.notices() == []


async def test_an_entry_that_cannot_be_read_silences_no_other(desk: Desk) -> None:
    await desk.put(DAY_SUMMARY, "job_1", {"account": 5})
    await desk.put(DAY_SUMMARY, "job_2", day(NOW - DAY_MS))
    await desk.feed().step()
    assert len(await desk.notices()) == 1
    assert len(desk.told) == 1


@pytest.mark.parametrize("reason", ExitReason)
def test_every_way_to_end_has_words_and_a_kind(reason: ExitReason) -> None:
    summary = TradeSummary(
        trade="t1",
        intent="i1",
        decision=None,
        exchange=Venue("UPBIT"),
        symbol=Symbol("ETHUSDT"),
        side=Side.LONG,
        mode=None,
        opened=Millis(NOW - 3 * HOUR_MS),
        closed=NOW,
        quantity=Decimal("0.5"),
        entry=Decimal(4_000_000),
        exit=Decimal(4_100_000),
        stop=None,
        target=None,
        gross_pnl=Decimal(50_000),
        fees=Decimal(2_000),
        funding=Decimal(0),
        net_pnl=Decimal(48_000),
        reason=reason,
        exploration=False,
        judge=None,
        family=None,
        edge=None,
    )
    notice = describe_close(summary, NOW, PAPER)
    assert notice.kind in {NoticeKind.STOP, NoticeKind.TARGET, NoticeKind.CLOSE, NoticeKind.LIQUIDATION}
    facts = dict(notice.facts)
    assert (facts["net PnL"], facts["held"], facts["result"]) == ("+₩48,000", "3.0 h", "–")


@pytest.mark.parametrize(
    ("account", "origin", "label"),
    [
        ("live", "", NoticeLabel.LIVE),
        ("live", "SYNTHETIC seed 1", NoticeLabel.LIVE),
        ("demo", "", NoticeLabel.DEMO),
        ("paper:recorded", "", NoticeLabel.PAPER),
        ("paper:recorded:live", "", NoticeLabel.PAPER),
        ("paper:SYNTHETIC seed 11", "", NoticeLabel.SYNTHETIC),
        (None, "recorded", NoticeLabel.PAPER),
        (None, "SYNTHETIC seed 11", NoticeLabel.SYNTHETIC),
    ],
)
def test_no_label_is_mistaken_for_another(account: str | None, origin: str, label: NoticeLabel) -> None:
    assert choose_label(account, origin) is label


@pytest.mark.slow
@pytest.mark.parametrize("gap", [5 * MINUTE_MS, HOUR_MS, 20 * HOUR_MS])
async def test_a_stop_that_was_hit_while_nobody_looked_is_told_once_and_late(tmp_path: Path, gap: int) -> None:
    desk = Desk(tmp_path)
    paper = PaperHarness(Venue("BINANCE"), Decimal(20_000), Decimal("0.1"), Decimal("0.050"), log=desk.log)
    gate = GateHarness(paper=paper)
    desk.now = Millis(paper.at)
    await desk.journal.append(kind="test", author=Author("cli"), payload={})
    await desk.feed().step()
    await gate.gate.execute(gate.opening())
    await desk.feed().step()
    opened = [notice.kind for notice in await desk.notices()]
    assert opened.count(NoticeKind.FILL) == 1, "the paper exchange's own books are told too"
    await gate.move(19_500)
    gate.wait(gap)
    desk.now = Millis(paper.at)
    await gate.restart().reconcile()
    await desk.feed().step()
    told = [notice.kind for notice in await desk.notices()]
    assert told.count(NoticeKind.STOP) == 1
    assert len(told) == len(set(told))
    await desk.feed().step()
    assert await desk.notices() == []


class MomentarilyGone(JournalTradeLog):
    """A log whose first reads find no database."""

    left = 1

    async def open_book(self, account: str, upto: int | None = None) -> AccountHistory:
        if self.left:
            self.left -= 1
            raise Unavailable("the database does not answer")
        return await super().open_book(account, upto)


async def test_what_a_store_did_not_answer_for_is_told_at_the_next_look(desk: Desk) -> None:
    story = AccountStory(desk.log, "live")
    intent = await story.open_trade(NOW, Symbol("BTCUSDT"), Side.LONG, "0.02", "60000", "59000", "63000")
    await desk.feed().step()
    await desk.notices()
    await story.exit_trade(NOW, intent, "stop")
    gone = MomentarilyGone(desk.open)

    async def paint(account: str) -> bytes | None:
        return None

    feed = JournalFeed(desk.outbox, desk.open, (TradingNotices(gone, paint),), lambda: desk.now, desk.told.append)
    with pytest.raises(Unavailable):
        await feed.step()
    await feed.step()
    assert NoticeKind.STOP in kinds(await desk.notices())


# -- mandates that end


def grant(days: int, sleeve: str = "trend") -> MandateGranted:
    mandate = Mandate(
        symbols=(Symbol("BTCUSDT"),),
        venues=(Venue("BINANCE"),),
        max_margin_per_trade_usd=Decimal(1),
        max_margin_per_day_usd=Decimal(1),
        max_daily_loss_usd=Decimal(1),
        sleeves=(MandatedSleeve(name=sleeve, share=Decimal("0.5"), max_drawdown=Decimal("0.2")),),
        granted=NOW,
        expires=NOW + days * DAY_MS,
    )
    return MandateGranted(at=NOW, mandate=mandate, hash=hash_mandate(mandate))


async def list_mandate_pushes(desk: Desk, days: int, step: int = DAY_MS) -> list[tuple[int, str]]:
    feed, pushed = desk.feed(), list[tuple[int, str]]()
    for moment in range(NOW, NOW + days * DAY_MS + 1, step):
        desk.now = Millis(moment)
        await feed.step()
        new = [notice for notice in await desk.notices() if notice.kind is NoticeKind.MANDATE]
        pushed += [((moment - NOW) // DAY_MS, notice.title) for notice in new]
    return pushed


async def test_a_mandate_that_ends_is_pushed_seven_days_and_a_day_before_and_then(desk: Desk) -> None:
    await desk.write("live", grant(30))
    pushed = await list_mandate_pushes(desk, 31)
    assert [day for day, _ in pushed] == [23, 29, 30]
    assert len({title for _, title in pushed}) == 3
    desk.now = Millis(NOW + 30 * DAY_MS)
    await desk.feed().step()  # another process looks: it is pushed once
    assert await desk.notices() == []


async def test_a_mandate_of_a_week_is_not_announced_as_it_is_granted(desk: Desk) -> None:
    await desk.write("live", grant(7))
    assert [day for day, _ in await list_mandate_pushes(desk, 8)] == [6, 7]


async def test_what_was_revoked_or_replaced_ends_unannounced(desk: Desk) -> None:
    first = grant(10)
    await desk.write("live", first, grant(20, "cash-carry"))
    assert [day for day, _ in await list_mandate_pushes(desk, 12)] == []
    await desk.write("demo", first, MandateRevoked(at=NOW, hash=first.hash))
    assert [day for day, _ in await list_mandate_pushes(desk, 12)] == []
