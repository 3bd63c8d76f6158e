"""The account `live` at a fake Binance: opened from its balance, traded once under a mandate, closed, killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.wire.exchanges import binance, hyperliquid
from tests.wire.exchanges.binance import FakeBinance
from tests.wire.exchanges.serving import serve_exchange
from tests.wire.order_gate import card, rule
from zuno.adapters.clock.system import unix_millis
from zuno.kernel.errors import Refused
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol, assume_market
from zuno.markets.venues import Venue
from zuno.settings import Settings
from zuno.trading.execute import reconcile as reconciliation
from zuno.trading.execute.intents import RulingToExecute
from zuno.trading.model.cycle import Call, JudgeKind, Leg, RegimeFamily, Style, Target
from zuno.trading.model.market import MINUTE_MS, Mode, Side
from zuno.trading.model.trade_events import LockSet, Protection
from zuno.trading.rules.trading_book import TradingBook
from zuno.trading.service.live_start import StartPermit
from zuno.trading.service.trade_desk import TradeDesk
from zuno.trading.watch.desk_loop import DeskLoop
from zuno.wiring.application import Application
from zuno.wiring.orders import build_exchange_gate
from zuno.wiring.venues import build_venue

BTC = Symbol("BTCUSDT")
D = Decimal


def yes(word: str, what: str) -> bool:
    return True


def no(word: str, what: str) -> bool:
    return False


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exchange on a busy machine is not a silent one."""
    monkeypatch.setattr(reconciliation, "ANSWER_SECONDS", 60.0)


@pytest.fixture
async def fake() -> AsyncIterator[FakeBinance]:
    found = FakeBinance()
    async with serve_exchange(found.server):
        yield found


@pytest.fixture
async def zuno(tmp_path: Path, fake: FakeBinance) -> AsyncIterator[Application]:
    application = Application(with_keys(tmp_path, fake))
    yield application
    await application.close()


def with_keys(home: Path, fake: FakeBinance) -> Settings:
    return Settings(
        home=home,
        recording="own",
        live=True,
        binance_api_key=SecretStr(binance.KEY),
        binance_api_secret=SecretStr(binance.SECRET),
        binance_order_url=fake.server.url,
    )


async def grant(zuno: Application) -> str:
    desk = zuno.account("live")
    wish = desk.build_mandate(["BTCUSDT"], ["binance"], "1000", "2000", "50", "7d", "venue", judge_fallback=False)
    view = await desk.grant_mandate(wish, yes)
    assert view.mandate is not None
    return view.mandate.hash


def opening(quantity: float = 0.01, style: Style = Style.MOMENTUM_SNIPER) -> RulingToExecute:
    as_of = unix_millis()
    leg = Leg(
        venue=Venue("BINANCE"),
        side=Side.LONG,
        currency="USD",
        margin=quantity * 60_000,
        notional=quantity * 60_000,
        leverage=1.0,
        quantity=quantity,
    )
    ruling = rule(
        Call.LONG,
        as_of,
        allocation_pct=6.0,
        target_exchange=Target.BINANCE,
        execution_style=style,
        legs=(leg,),
        card=card(Side.LONG, 60_000.0, 58_800.0, 62_400.0, quantity),
    )
    return RulingToExecute(
        run_id="run_1",
        symbol=BTC,
        mode=Mode.SWING,
        as_of=as_of,
        ruling=ruling,
        valid_until=Millis(as_of + 15 * MINUTE_MS),
        mark=D(60_000),
        atr=D(600),
        judge=JudgeKind.RULES,
        family=RegimeFamily.RANGE,
        edge=0.05,
    )


async def reconcile(zuno: Application) -> tuple[LockSet, ...]:
    """What keeps new risk back once the account was held against its exchange."""
    gate = await zuno._open_gate("live", unix_millis)
    await gate.reconcile()
    return await gate.locks()


async def trade_once(zuno: Application, settings: Settings) -> str:
    """As a process of the desk does: reconcile, execute, and the same decision once more."""
    venue = build_venue(settings, Venue("BINANCE"))
    try:
        gate = build_exchange_gate(zuno._trade_log(), "live", {Venue("BINANCE"): venue}, unix_millis, entries=True)
        await gate.reconcile()
        order = opening()
        result = await gate.execute(order)
        assert result.state == "open", result
        assert (await gate.execute(order)).intent == result.intent
        (tracked,) = gate.book.intents.values()
        assert tracked.intent.mandate is not None
        return tracked.intent.mandate
    finally:
        await venue.close()


@pytest.mark.slow
async def test_a_live_start_names_what_is_missing_and_reaches_nothing(zuno: Application, fake: FakeBinance) -> None:
    start = zuno.live_start()
    assert [found.piece for found in await start.find_missing("live", (BTC,))] == ["market", "mandate"]
    await grant(zuno)
    assert [found.piece for found in await start.find_missing("live", (BTC,))] == ["market"]
    fake.withdrawals = True
    assert [found.piece for found in await start.find_missing("live", (BTC,))] == ["market", "doctor"]
    with pytest.raises(Refused):
        await zuno.live_start().permit("live", (BTC,), "recorded", "paper:recorded", yes)
    assert not [name for name in fake.server.asked if name.startswith(("POST", "DELETE"))]
    assert not fake.engine.orders


async def test_the_account_begins_with_the_exchanges_balance_and_never_with_papers(
    zuno: Application, fake: FakeBinance
) -> None:
    before = await zuno.account("live").balance()
    assert (before.mode, [purse.cash for purse in before.purses]) == ("live", [0.0, 0.0])
    await grant(zuno)
    await reconcile(zuno)
    after = await zuno.account("live").balance()
    assert {purse.currency: purse.cash for purse in after.purses} == {"USD": 10_000.0, "KRW": 0.0}
    assert await reconcile(zuno) == ()


@pytest.mark.slow
async def test_an_order_is_placed_once_protected_booked_and_closed(
    zuno: Application, fake: FakeBinance, tmp_path: Path
) -> None:
    granted = await grant(zuno)
    assert await trade_once(zuno, with_keys(tmp_path, fake)) == granted
    assert fake.server.count("POST /fapi/v1/order") == 1
    assert fake.server.count("POST /fapi/v1/algoOrder") == 2, "stop and target stand at the exchange"
    view = await zuno.account("live").positions()
    (position,) = view.positions
    assert (view.mode, view.synthetic, position.quantity, position.stop, position.target) == (
        "live",
        False,
        0.01,
        58_800.0,
        62_400.0,
    )
    assert position.mark == 60_000.0, "the exchange's own"
    ledger = await zuno.account("live").ledger()
    assert all(entry.balanced for entry in ledger.ledgers)
    with pytest.raises(Refused):
        await zuno.account("live").close("all", no)
    assert (await zuno.account("live").positions()).positions
    await zuno.account("live").close("all", yes)
    assert not (await zuno.account("live").positions()).positions
    assert not [algo for algo in fake.engine.algos.values() if algo.status == "NEW"]
    purse = next(purse for purse in (await zuno.account("live").balance()).purses if purse.currency == "USD")
    assert D(str(purse.cash)) == fake.engine.cash, "the ledger equals the venue"
    assert [lock.protection for lock in await reconcile(zuno)] == [Protection.COOLDOWN]
    assert await zuno._trade_log().accounts() == ("live",), "paper is another account"


def permitted(zuno: Application, watch_only: str | None = None) -> TradeDesk:
    """A desk whose owner has typed the word."""

    async def permit(account: str, *rest: object) -> StartPermit:
        return StartPermit(account, (), watch_only)

    return TradeDesk(replace(zuno.trade_desk()._with, permit=permit))


def waits(fake: FakeBinance) -> bool:
    """Whether an entry stands in the book of the exchange."""
    return any(order.status == "NEW" for order in fake.engine.orders.values())


@pytest.mark.slow
@pytest.mark.parametrize("style", [Style.PASSIVE_MAKER, Style.SMART_DCA])
async def test_entries_of_one_run_end_with_it_and_stops_stay(
    zuno: Application, fake: FakeBinance, style: Style
) -> None:
    await grant(zuno)
    async with permitted(zuno).open_run("BTCUSDT", None, yes, live=True) as run:
        assert run is not None
        acting = run.cycles._with.gate
        assert acting is not None
        gate = await acting("live", unix_millis())
        assert gate.book.cash(Venue("BINANCE")) == 10_000, "reconciled before it acts"
        result = await gate.execute(opening(style=style))
        assert result.state == "working", result
        assert waits(fake)
        with pytest.raises(Refused):
            async with permitted(zuno).open_run("BTCUSDT", None, yes, live=True):
                pass
    assert not waits(fake)
    assert len([algo for algo in fake.engine.algos.values() if algo.status == "NEW"]) == (
        0 if style is Style.PASSIVE_MAKER else 2
    )


@pytest.mark.slow
async def test_entries_end_with_the_desk(zuno: Application, fake: FakeBinance) -> None:
    await grant(zuno)
    gate = await zuno._open_gate("live", unix_millis, entries=True)
    await gate.reconcile()
    await gate.execute(opening(style=Style.PASSIVE_MAKER))
    assert waits(fake)
    stop = asyncio.Event()
    stop.set()
    view = await permitted(zuno).start(lambda event: None, stop, symbols=["BTCUSDT"], live=True, confirm=yes)
    assert not waits(fake)
    assert (view.trading, view.open_trades) == ("live", 0)
    assert (await gate.refresh()).open_intents == {}


@pytest.mark.slow
async def test_a_desk_that_only_watches_protects_what_is_held_and_opens_nothing(
    zuno: Application, fake: FakeBinance, tmp_path: Path
) -> None:
    await grant(zuno)
    await trade_once(zuno, with_keys(tmp_path, fake))
    await zuno.account("live").revoke_mandate()
    for algo in fake.engine.algos.values():
        algo.status = "CANCELED"  # by another hand
    why = "no mandate stands"
    async with permitted(zuno, why).open_run("BTCUSDT", None, yes, live=True) as run:
        assert run is not None
        acting = run.cycles._with.gate
        assert acting is not None
        gate = await acting("live", unix_millis())
        await grant(zuno)  # whoever typed the word was told that nothing is opened
        refused = await gate.execute(opening())
        assert (refused.state, refused.reason) == ("refused", why)
        standing = [algo for algo in fake.engine.algos.values() if algo.status == "NEW"]
        assert len(standing) == 2, "stop and target stand again"
        await gate.close(BTC)
    assert not [algo for algo in fake.engine.algos.values() if algo.status == "NEW"]
    assert not (await zuno.account("live").positions()).positions
    assert fake.server.count("POST /fapi/v1/order") == 2


@pytest.mark.slow
@pytest.mark.parametrize("way", ["run", "desk"])
async def test_a_desk_that_only_watches_ends_the_entries_that_wait(
    zuno: Application, fake: FakeBinance, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The mandate is good, the record is too short: nobody else would cancel them."""
    await grant(zuno)
    gate = await zuno._open_gate("live", unix_millis, entries=True)
    await gate.reconcile()
    await gate.execute(opening(style=Style.PASSIVE_MAKER))
    assert waits(fake)
    desk, why = permitted(zuno, "the record is too short"), "the record is too short"
    if way == "run":
        async with desk.open_run("BTCUSDT", None, yes, live=True):
            assert not waits(fake)
    else:
        waited: list[bool] = []

        async def look_once(loop: DeskLoop, *rest: object) -> None:
            waited.append(waits(fake))

        monkeypatch.setattr(DeskLoop, "run_live", look_once)
        await desk.start(lambda event: None, asyncio.Event(), symbols=["BTCUSDT"], live=True, confirm=yes)
        assert waited == [False]
    (tracked,) = (await gate.refresh()).intents.values()
    assert tracked.reason == why


@pytest.mark.slow
async def test_commands_work_no_entry_and_a_revoked_mandate_cancels_it(zuno: Application, fake: FakeBinance) -> None:
    await grant(zuno)
    gate = await zuno._open_gate("live", unix_millis, entries=True)
    await gate.reconcile()
    await gate.execute(opening(style=Style.PASSIVE_MAKER))
    command = await zuno._open_account("live")
    refused = await command.execute(replace(opening(), run_id="run_2"))
    assert refused.state == "refused", refused
    await zuno.account("live").revoke_mandate()
    assert not waits(fake)


@pytest.mark.slow
async def test_a_kill_acts_before_it_reads_what_may_be_slow(zuno: Application, fake: FakeBinance) -> None:
    """Prices and liquidity positions are read for the answer, once everything is closed."""
    await grant(zuno)
    gate = await zuno._open_gate("live", unix_millis, entries=True)
    await gate.reconcile()
    await gate.execute(opening())
    desk, read = zuno.account("live"), list[tuple[str, bool]]()

    async def note(what: str) -> None:
        book = TradingBook()
        book.apply_all(await zuno._trade_log().events("live"))
        read.append((what, not book.trades))

    async def read_marks(account: str) -> Mapping[tuple[Venue, Symbol], Decimal]:
        await note("marks")
        return {}

    async def read_inventory() -> Mapping[str, Decimal]:
        await note("inventory")
        return {}

    reader = desk._reader
    reader._with = replace(reader._with, marks=read_marks, inventory=read_inventory)
    assert ((await desk.open_risk()).trades, read) == (1, [])
    with pytest.raises(Refused):
        await desk.kill(no)
    assert read == []
    await desk.kill(yes)
    assert read == [("marks", True), ("inventory", True)]
    assert not (await zuno.account("live").positions()).positions


@pytest.mark.slow
async def test_a_deposit_is_adopted_with_the_word_and_the_lock_goes(zuno: Application, fake: FakeBinance) -> None:
    await grant(zuno)
    await reconcile(zuno)
    fake.engine.cash += 500
    assert [lock.protection for lock in await reconcile(zuno)] == [Protection.RECONCILIATION]
    asked: list[str] = []

    def hear(word: str, what: str) -> bool:
        asked.append(what)
        return False

    with pytest.raises(Refused):
        await zuno.account("live").adopt(hear)
    assert "+500 USD" in asked[0]
    done = await zuno.account("live").adopt(yes)
    assert done.protections == ()
    assert next(p.cash for p in (await zuno.account("live").balance()).purses if p.currency == "USD") == 10_500.0
    assert await reconcile(zuno) == ()
    with pytest.raises(Refused):
        await zuno.account(None).adopt(yes)


@pytest.mark.slow
async def test_lifting_locks_and_a_pause_wants_the_word_with_money(zuno: Application) -> None:
    await grant(zuno)
    live = zuno.account("live")
    await live.pause()
    for act in (live.resume, live.unlock):
        with pytest.raises(Refused):
            await act(confirm=no)
    assert (await live.locks()).protections
    await live.unlock("paused", yes)
    assert not (await live.locks()).protections
    await live.pause()
    assert (await live.resume(yes)).protections == ()


@pytest.mark.slow
async def test_the_kill_switch_wants_the_word_closes_everything_and_locks(
    zuno: Application, fake: FakeBinance, tmp_path: Path
) -> None:
    await grant(zuno)
    await trade_once(zuno, with_keys(tmp_path, fake))
    with pytest.raises(Refused):
        await zuno.account("live").kill(no)
    await zuno.account("live").kill(yes)
    view = await zuno.account("live").status()
    assert view.open_trades == 0
    assert "kill_switch" in [lock.protection for lock in view.protections]


async def test_a_run_acts_in_a_live_account_only_with_a_permit_of_this_process(zuno: Application) -> None:
    acting = zuno.cycles()._with.gate
    assert acting is not None
    await grant(zuno)
    with pytest.raises(Refused):
        await acting("live", unix_millis())


async def test_what_the_exchange_holds_beside_the_log_is_asked_for_and_said(
    zuno: Application, fake: FakeBinance
) -> None:
    """Before any mandate, too: a look opens nothing."""
    fake.engine.take("BTCUSDT", D("0.5"), D(60_000))
    fake.engine.place("stranger", "BTCUSDT", "SELL", "LIMIT", D("0.2"), D(70_000))
    desk = zuno.account("live")
    for view in (await desk.status(), await desk.positions(), await desk.orders(), await desk.balance()):
        assert view.exchanges is not None
        (answer,) = view.exchanges
        assert (answer.exchange, answer.unknown, answer.total) == ("BINANCE", None, float(fake.engine.cash))
        assert answer.asked_at is not None
        assert [(found.order, found.quantity, found.booked) for found in answer.unbooked] == [
            (None, D("0.5"), 0),
            ("stranger", D("-0.2"), 0),
        ]
        assert not view.complete
        assert "0.5" in " ".join(view.notes)
    for quiet in (await desk.trades(), await desk.profit(), await desk.locks()):
        assert quiet.exchanges is None
        assert not quiet.complete
        assert [note for note in quiet.notes if "not asked" in note]
    risk = await desk.open_risk()
    assert risk.exchanges is not None
    assert (risk.trades, len(risk.exchanges[0].unbooked)) == (0, 2)
    asked: list[str] = []

    def hear(word: str, what: str) -> bool:
        asked.append(what)
        return False

    with pytest.raises(Refused):
        await desk.kill(hear)
    assert "0.5" in asked[0]
    posted = [name for name in fake.server.asked if not name.startswith("GET")]
    assert posted == []


async def test_what_the_log_has_is_not_said_twice(zuno: Application, fake: FakeBinance) -> None:
    await grant(zuno)
    gate = await zuno._open_gate("live", unix_millis, entries=True)
    await gate.reconcile()
    await gate.execute(opening())
    view = await zuno.account("live").positions()
    assert view.exchanges is not None
    assert (len(view.positions), view.exchanges[0].unbooked, view.complete) == (1, (), True)
    killed = await zuno.account("live").kill(None)
    assert (killed.positions, killed.complete) == ((), True)


@pytest.mark.parametrize("silent", ["refuses", "hangs"])
async def test_an_exchange_that_does_not_answer_is_said_and_waited_for_seconds_at_most(
    tmp_path: Path, fake: FakeBinance, monkeypatch: pytest.MonkeyPatch, silent: str
) -> None:
    monkeypatch.setattr(reconciliation, "ANSWER_SECONDS", 0.3)
    held: list[asyncio.StreamWriter] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        await reader.read()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    if silent == "refuses":
        server.close()
        await server.wait_closed()
    settings = with_keys(tmp_path, fake).model_copy(update={"binance_order_url": f"http://127.0.0.1:{port}"})
    zuno = Application(settings)
    try:
        async with asyncio.timeout(60):
            risk = await zuno.account("live").open_risk()
            status = await zuno.account("live").status()
        for answers in (risk.exchanges, status.exchanges):
            assert answers is not None
            assert answers[0].asked_at is not None
            assert answers[0].unknown
        assert not status.complete
        assert risk.notes
    finally:
        await zuno.close()
        for writer in held:
            writer.close()
        server.close()


@pytest.mark.slow
async def test_an_exchange_without_keys_was_not_asked(zuno: Application, fake: FakeBinance, tmp_path: Path) -> None:
    await grant(zuno)
    await trade_once(zuno, with_keys(tmp_path, fake))
    assert (await zuno.account("live").status()).complete
    keyless = with_keys(tmp_path, fake).model_copy(update={"binance_api_key": None, "binance_api_secret": None})
    other = Application(keyless)
    try:
        view = await other.account("live").status()
        assert view.exchanges is not None
        assert [(answer.exchange, answer.asked_at) for answer in view.exchanges] == [("BINANCE", None)]
        assert (view.exchanges[0].unknown is None, view.complete) == (False, False)
        assert (await other.account("demo").status()).exchanges is not None
    finally:
        await other.close()


async def test_the_doctor_shows_the_record_that_live_waits_for(zuno: Application) -> None:
    for live, state in ((False, "off"), (True, "fail")):
        view = await zuno.doctor().examine(live=live)
        (line,) = [line for line in view.checks if line.topic == "record"]
        assert (line.state, "0 of 40" in line.text) == (state, True)
    assert not view.ok


@pytest.mark.parametrize("now", ["ETHUSDT", "binance:BTC/USDC:USDT", "bybit:BTC/USDT:USDT"])
async def test_what_is_held_of_a_market_that_left_the_desk_is_compared_protected_and_closed(
    zuno: Application, fake: FakeBinance, tmp_path: Path, now: str
) -> None:
    await grant(zuno)
    settings = with_keys(tmp_path, fake)
    await trade_once(zuno, settings)
    await zuno.close()
    later = Application(settings.model_copy(update={"markets": (Symbol(now),)}))
    try:
        assert await later._list_held() == (BTC,)
        assert await reconcile(later) == ()
        view = await later.account("live").positions()
        assert [(held.symbol, held.mark) for held in view.positions] == [(BTC, 60_000.0)]
        assert any("ZUNO_MARKETS" in note for note in view.notes)
        gate = await later._open_gate("live", unix_millis, entries=True)
        if now != "ETHUSDT":
            other = await gate.execute(replace(opening(), symbol=Symbol(now), run_id="run_2"))
            assert (other.state, str(BTC) in other.reason) == ("refused", True)
        orders = (await gate.refresh()).open_orders.values()
        assert {order.purpose for order in orders} == {"stop", "target"}
        await later.account("live").close("BTCUSDT", yes)
        assert fake.engine.position("BTCUSDT").amount == 0
        assert (await later.account("live").positions()).positions == ()
    finally:
        await later.close()


async def test_a_delisted_coin_that_is_held_is_said_and_its_close_is_tried(
    zuno: Application, fake: FakeBinance, tmp_path: Path
) -> None:
    await grant(zuno)
    await trade_once(zuno, with_keys(tmp_path, fake))
    zuno._catalogue.renew(Venue("BINANCE"), [assume_market(Venue("BINANCE"), "BTC")], unix_millis())
    assert not any("not traded" in note for note in (await zuno.account("live").positions()).notes)
    zuno._catalogue.renew(Venue("BINANCE"), [assume_market(Venue("BINANCE"), "ETH")], unix_millis())
    fake.delist("BTCUSDT")
    assert any("BTCUSDT is not traded at BINANCE" in note for note in (await zuno.account("live").positions()).notes)
    gate = await zuno._open_gate("live", unix_millis, entries=True)
    refused = await gate.execute(replace(opening(), run_id="run_2", as_of=Millis(unix_millis() + 1)))
    assert refused.state == "refused"
    before = fake.server.count("POST /fapi/v1/order")
    await zuno.account("live").close("BTCUSDT", yes)
    assert fake.server.count("POST /fapi/v1/order") > before


async def test_an_account_in_hedge_mode_is_not_started(zuno: Application, fake: FakeBinance) -> None:
    await grant(zuno)
    fake.hedge = True
    missing = await zuno.live_start().find_missing("live", (BTC,))
    assert ["hedge mode" in found.text for found in missing if found.piece == "doctor"] == [True]


async def test_the_main_key_of_a_wallet_is_not_started_with(tmp_path: Path) -> None:
    found = hyperliquid.FakeHyperliquid()
    async with serve_exchange(found.server):
        settings = Settings(
            home=tmp_path,
            live=True,
            hyperliquid_account=SecretStr(hyperliquid.owner()),
            hyperliquid_agent_key=SecretStr(hyperliquid.OWNER_KEY),
            hyperliquid_order_url=found.server.url,
            route_binance=("hyperliquid",),
        )
        house = Application(settings)
        try:
            missing = await house.live_start().find_missing("live", (BTC,))
            assert any(piece.piece == "doctor" and "main key" in piece.text for piece in missing)
            assert found.actions == []
        finally:
            await house.close()


async def test_a_position_of_another_hand_stops_its_symbol_and_stays(zuno: Application, fake: FakeBinance) -> None:
    await grant(zuno)
    fake.hold_foreign("BTCUSDT", D("0.5"))
    [lock] = await reconcile(zuno)
    assert (lock.protection, lock.symbol) == (Protection.RECONCILIATION, BTC)
    assert "0.5 BTC" in lock.reason
    gate = await zuno._open_gate("live", unix_millis, entries=True)
    refused = await gate.execute(opening())
    assert (refused.state, "0.5 BTC" in refused.reason) == ("refused", True)
    await gate.kill()
    assert fake.engine.position("BTCUSDT").amount == D("0.5")
