"""What the trading desk pushes: rulings, entries, fills, ends of trades with their PnL, locks, the day's summary.

Pushed is what happens by the wall's clock: at an exchange everything, on paper what is written within
`CLOCK_TOLERANCE_MS` of its own moment, and in an account that was written so, also what is booked late after an outage.
Recorded time runs through years in minutes and is pushed by nobody, whatever clock its account went by before. A paper
exchange's own books are not pushed: the account that trades there tells the same.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import chain, takewhile
from typing import Any, Final

from pydantic import ValidationError

from zuno.journal.port import Entry, Journal
from zuno.kernel.clock import iso
from zuno.kernel.errors import Broken, ZunoError
from zuno.kernel.notify import Button, Fact, Notice, NoticeKind, NoticeLabel, Severity
from zuno.kernel.numbers_text import currency_text, hours_text, multiple_text
from zuno.kernel.units import Millis, Seconds
from zuno.markets.market import Symbol
from zuno.pushes.endings import list_endings
from zuno.pushes.feed import KeyedNotice
from zuno.trading.model.cycle import STARTED, Node
from zuno.trading.model.market import DAY_MS, HOUR_MS, MINUTE_MS
from zuno.trading.model.own_strategies import OWN_ANSWER, OwnAnswer
from zuno.trading.model.sleeves import DEBATE
from zuno.trading.model.trade_events import (
    DAY_SUMMARY,
    PAPER_ACCOUNT,
    TRADE_EVENTS,
    DaySummary,
    ExitReason,
    FillBooked,
    IntentEnded,
    IntentKind,
    IntentStored,
    LockLifted,
    LockSet,
    Protection,
    TradeClosed,
    TradeEntry,
    TradeEvent,
    TradeSummary,
    account_mode,
    account_word,
)
from zuno.trading.rules.performance import AccountHistory, AccountLog, risk_multiple
from zuno.trading.rules.protections import MANUAL_UNLOCK, describe_end
from zuno.trading.rules.trading_book import TradingBook
from zuno.trading.run.record import ENDED, RunSummary, kind_of

CLOCK_TOLERANCE_MS: Final = 10 * MINUTE_MS
_RECENT_ENTRIES: Final = 300
_RECENT_MS: Final = 7 * DAY_MS
_VENUE: Final = "venue:"
"""What the name of a paper exchange's own books begins with."""
Paint = Callable[[str], Awaitable[bytes | None]]
"""The equity picture of an account; None where there is none."""
_KINDS: Final = {
    ExitReason.STOP: NoticeKind.STOP,
    ExitReason.TARGET: NoticeKind.TARGET,
    ExitReason.LIQUIDATION: NoticeKind.LIQUIDATION,
}
_ENDS: Final = {
    ExitReason.STOP: "stopped out", ExitReason.TARGET: "reached its target", ExitReason.HOLD_OVER: "closed: hold over",
    ExitReason.DECISION: "closed by a decision", ExitReason.OWNER: "closed by the owner",
    ExitReason.KILL_SWITCH: "closed by the kill switch", ExitReason.LIQUIDATION: "LIQUIDATED",
    ExitReason.UNDONE: "undone: it could not be protected", ExitReason.MANUAL: "closed by hand",
}  # fmt: skip
_WORSE: Final = frozenset({ExitReason.LIQUIDATION, ExitReason.UNDONE, ExitReason.KILL_SWITCH})
_GRAVE: Final = frozenset({Protection.KILL_SWITCH, Protection.MAX_DRAWDOWN, Protection.RECONCILIATION})


class TradingNotices:
    """The trading desk's `NoticeSource`. It follows every account that trades by the wall's clock."""

    def __init__(self, log: AccountLog, paint: Paint) -> None:
        self._log = log
        self._paint = paint
        self._books: dict[str, AccountHistory] = {}
        self._changes: set[str] = set()
        """Changes of sleeves that were pushed, by their keys."""
        self._looked_at: Millis | None = None
        self._by_wall: dict[str, bool] = {}
        """Whether an account goes by the wall's clock, of those that were asked about."""

    @property
    def kinds(self) -> Sequence[str]:
        return (TRADE_EVENTS, ENDED, DAY_SUMMARY, OWN_ANSWER)

    async def describe(self, entry: Entry, journal: Journal) -> Sequence[KeyedNotice]:
        try:
            if entry.kind == TRADE_EVENTS:
                return await self._describe_events(entry, journal)
            if entry.kind == ENDED:
                return await _describe_run(entry, journal)
            if entry.kind == OWN_ANSWER:
                return _describe_answer(entry, OwnAnswer.model_validate(dict(entry.payload)))
            return await self._describe_day(entry, DaySummary.model_validate(dict(entry.payload)))
        except ValidationError as error:
            raise Broken(f"Entry {entry.seq} ({entry.kind}) cannot be read.") from error

    async def find_due(self, now: Millis, journal: Journal) -> Sequence[KeyedNotice]:
        """Locks and mandates that have ended by themselves since the last look, or in the day before the first, and
        mandates that end soon; what sleeves beside the debate changed today, once each has nothing more in hand."""
        if self._looked_at is None:
            await self._open_recent(now, journal)
            self._looked_at = Millis(now - DAY_MS)
        since, self._looked_at = self._looked_at, now
        changes = [
            KeyedNotice(key, notice)
            for account, book in self._books.items()
            for sleeve in (() if book.recorded else book.sleeves[1:])
            if (key := f"sleeve:{account}:{sleeve}:{now // DAY_MS}") not in self._changes
            and (notice := describe_change(account, book, sleeve, now)) is not None
        ]
        self._changes.update(change.key for change in changes)
        unlocked = [
            KeyedNotice(
                f"unlock:{account}:{lock.protection.value}:{lock.symbol or ''}:{lock.until}",
                _describe_unlock(account, lock, lock.until, "its time is over"),
            )
            for account, book in self._books.items()
            for lock in book.locks.values()
            if lock.until is not None and since < lock.until <= now and not book.recorded
        ]
        ending = (_list_endings(account, book, since, now) for account, book in self._books.items())
        return [*changes, *chain.from_iterable(ending), *unlocked]

    async def _open_recent(self, now: Millis, journal: Journal) -> None:
        """Accounts that traded by the wall's clock of late: their locks may end before anything else happens."""
        for entry in await journal.latest(_RECENT_ENTRIES, kind=TRADE_EVENTS):
            account, recent = entry.payload.get("account"), now - entry.at < _RECENT_MS
            if not isinstance(account, str) or not recent or account in self._books or account.startswith(_VENUE):
                continue
            if _is_live(entry):
                await self._open_book(account, None)
        for account in await self._log.accounts():  # their mandates run, whether they trade or not
            if account_mode(account) != "paper":
                await self._open_book(account, None)

    async def _describe_events(self, entry: Entry, journal: Journal) -> list[KeyedNotice]:
        account = str(entry.payload.get("account"))
        if account.startswith(_VENUE) or not await self._goes_by_wall(account, entry, journal):
            return []
        written = TradeEntry.model_validate(dict(entry.payload))
        book = await self._open_book(written.account, written.first - 1)
        if book.recorded:
            return []  # its last minutes may be near the wall's clock
        notices = []
        for number, event in enumerate(written.events, start=written.first):
            if book.count == number - 1:
                book.apply(event)
            notice = describe_event(event, book, written.account)
            if notice is not None:
                notices.append(KeyedNotice(f"trade:{written.account}:{number}", notice))
        return notices

    async def _goes_by_wall(self, account: str, entry: Entry, journal: Journal) -> bool:
        """Whether an account is written as things happen, by this entry or the last earlier one that tells."""
        by_wall = True if account_mode(account) != "paper" else _find_clock(entry)
        if by_wall is None and account not in self._by_wall:
            earlier = await journal.latest(_RECENT_ENTRIES, kind=TRADE_EVENTS, before=entry.seq)
            own = map(_find_clock, (each for each in earlier if each.payload.get("account") == account))
            by_wall = next((clock for clock in own if clock is not None), False)
        if by_wall is not None:
            self._by_wall[account] = by_wall
        return self._by_wall[account]

    async def _open_book(self, account: str, upto: int | None) -> AccountHistory:
        """The account after so many events; None: after all there are. One that has gone on further stays there."""
        book = self._books.get(account)
        if book is None or upto is None or book.count < upto:
            self._books[account] = book = await self._log.open_book(account, upto)
        return book

    async def _describe_day(self, entry: Entry, summary: DaySummary) -> list[KeyedNotice]:
        late = abs(entry.at - (summary.day + DAY_MS)) > DAY_MS
        if late or (await self._open_book(summary.account, None)).recorded:
            return []
        try:
            picture = await self._paint(summary.account)
        except ZunoError:
            picture = None
        return [KeyedNotice(f"summary:{summary.account}:{summary.day}", describe_day(summary, entry.at, picture))]


def _is_live(entry: Entry) -> bool:
    """Whether any of its events was written near its own moment; recorded time is not."""
    times = [event.get("at") for event in _list_events(entry)]
    return any(isinstance(at, int) and abs(entry.at - at) <= CLOCK_TOLERANCE_MS for at in times)


def _find_clock(entry: Entry) -> bool | None:
    """Whether it was written by the wall clock; None where only late bookings are in it. Trades are opened at their own
    moment."""
    intents = [event.get("intent") for event in _list_events(entry) if event.get("kind") == "intent_stored"]
    opens = any(isinstance(intent, Mapping) and intent.get("kind") == IntentKind.OPEN for intent in intents)
    return True if _is_live(entry) else False if opens else None


def _list_events(entry: Entry) -> list[Mapping[str, Any]]:
    events = entry.payload.get("events")
    return [event for event in events if isinstance(event, Mapping)] if isinstance(events, list) else []


def choose_label(account: str | None, origin: str = "") -> NoticeLabel:
    """Whose money it is; a run that nobody acts on is paper."""
    mode = "paper" if account is None else account_mode(account)
    if mode == "paper":
        market = origin or (account or "").partition(":")[2]
        return NoticeLabel.SYNTHETIC if market.startswith("SYNTHETIC") else NoticeLabel.PAPER
    return NoticeLabel.LIVE if mode == "live" else NoticeLabel.DEMO


def describe_event(event: TradeEvent, book: TradingBook, account: str) -> Notice | None:
    """The push about one event, `book` being the account right after it; None where it is worth none. Of a sleeve
    beside the debate only stops and what went wrong are, under its name."""
    notice, sleeve = _describe_event(event, book, account), _find_sleeve(event, book)
    if notice is None or sleeve == DEBATE:
        return notice
    if notice.kind is not NoticeKind.STOP and notice.severity is not Severity.CRITICAL:
        return None
    return replace(notice, title=f"{sleeve}: {notice.title}")


def _find_sleeve(event: TradeEvent, book: TradingBook) -> str:
    match event:
        case IntentStored():
            return event.intent.sleeve
        case TradeClosed():
            return event.summary.sleeve
        case IntentEnded(intent=id) if id in book.intents:
            return book.intents[id].intent.sleeve
        case FillBooked(fill=fill) if fill.client_id in book.orders and not fill.liquidation:
            return book.sleeve_of(book.orders[fill.client_id])
        case _:
            return DEBATE


def describe_change(account: str, book: AccountHistory, sleeve: str, now: Millis) -> Notice | None:
    """What a sleeve bought and sold today, by market; None where it did not, or still does."""
    today = now // DAY_MS * DAY_MS
    working = any(tracked.intent.sleeve == sleeve for tracked in book.open_intents.values())
    if working or book.newest < today:
        return None
    changed: dict[Symbol, Decimal] = {}
    for fill in takewhile(lambda fill: fill.at >= today, reversed(book.fills)):
        order = book.orders.get(fill.client_id)
        if order is not None and book.sleeve_of(order) == sleeve:
            changed[fill.symbol] = changed.get(fill.symbol, Decimal(0)) + fill.side.sign * fill.executed
    if not changed:
        return None
    held = {symbol: f"{_quantity(book.sum_held(symbol, sleeve))} {symbol.base}" for symbol in changed}
    facts = (Fact(symbol, f"{changed[symbol].normalize():+f}, now {held[symbol]}") for symbol in sorted(changed))
    sleeves = (Button("Sleeves", f"/sleeves{_asked_of(account)}"),)
    title = f"{sleeve}: positions changed"
    return _notice(NoticeKind.SUMMARY, title, account, book.newest, facts=facts, buttons=sleeves)


def _describe_event(event: TradeEvent, book: TradingBook, account: str) -> Notice | None:
    match event:
        case IntentStored() if event.intent.kind is IntentKind.OPEN:
            return _describe_entry(event, account)
        case IntentEnded(state="refused" | "expired" | "undone"):
            return _describe_failed_entry(event, book, account)
        case FillBooked():
            return _describe_fill(event, book, account)
        case TradeClosed():
            return describe_close(event.summary, event.at, account)
        case LockSet():
            # What stands until somebody lifts it offers that; what ends by itself says when.
            word, lifted = _asked_of(account), event.protection in MANUAL_UNLOCK
            unlock = (Button("Unlock", f"/unlock {event.protection.value}{word}"),) if lifted else ()
            return _notice(
                NoticeKind.LOCK,
                f"Locked: {_protection(event.protection)}{_of(event.symbol)}",
                account,
                event.at,
                Severity.CRITICAL if event.protection in _GRAVE else Severity.WARNING,
                facts=(Fact("new risk", f"refused {describe_end(event)}"),),
                reason=event.reason,
                buttons=(Button("Locks", f"/locks{word}"), *unlock),
            )
        case LockLifted():
            return _describe_unlock(account, event, event.at, event.reason or "it was lifted")
        case _:
            return None


def describe_close(trade: TradeSummary, at: Millis, account: str) -> Notice:
    multiple, currency = risk_multiple(trade), trade.exchange.currency
    facts = [
        Fact("net PnL", _format_gain(float(trade.net_pnl), currency)),
        Fact("result", multiple_text(None if multiple is None else float(multiple))),
        Fact("fees", currency_text(float(trade.fees), currency)),
        Fact("funding", _format_gain(float(trade.funding), currency)),
        Fact("exit", trade.reason.replace("_", " ")),
        Fact("entry → exit", f"{_price(trade.entry)} → {_price(trade.exit)}"),
        Fact("quantity", _quantity(trade.quantity)),
        Fact("held", hours_text((trade.closed - trade.opened) / HOUR_MS)),
        Fact("at", trade.exchange.value),
    ]
    words = [Button("Trades", f"/trades{_asked_of(account)}"), Button("Profit", f"/profit{_asked_of(account)}")]
    if trade.decision is not None and trade.decision.startswith("run_"):
        words.insert(0, Button("Why", f"/why {trade.decision}"))
    severity = Severity.WARNING if trade.net_pnl < 0 else Severity.INFO
    return _notice(
        _KINDS.get(trade.reason, NoticeKind.CLOSE),
        f"{trade.symbol.value} {trade.side.lower()} {_ENDS[trade.reason]}",
        account,
        at,
        Severity.CRITICAL if trade.reason in _WORSE else severity,
        facts=facts,
        reference=trade.trade,
        buttons=words,
    )


def describe_day(summary: DaySummary, at: Millis, picture: bytes | None) -> Notice:
    facts = (
        Fact("trades closed", str(summary.trades)),
        Fact("net PnL", _format_amounts(summary.net, _format_gain)),
        Fact("fees", _format_amounts(summary.fees)),
        Fact("funding", _format_amounts(summary.funding, _format_gain)),
        Fact("cash", _format_amounts(summary.cash)),
        Fact("open positions", str(summary.open_trades)),
    )
    words = (Button(name, f"/{name.lower()}{_asked_of(summary.account)}") for name in ("Profit", "Status"))
    title = f"Day of {iso(Millis(summary.day))[:10]}"
    day = _notice(NoticeKind.SUMMARY, title, summary.account, at, facts=facts, buttons=words)
    return replace(day, picture=picture)


def describe_ruling(run: RunSummary, run_id: str, ev_pct: float | None, at: Millis) -> Notice:
    opens = run.ruling.side is not None
    facts = [Fact("judge", f"{run.decision}, win probability {run.win_probability_pct} %"), Fact("ruling", run.ruling)]
    if run.veto:
        facts.append(Fact("veto", run.veto.replace("_", " ")))
    if opens:
        facts.append(Fact("size", f"{run.allocation_pct:g} % of the equity, {run.leverage:g}×"))
        for name, price in (("entry", run.entry_price), ("stop", run.stop_loss), ("target", run.take_profit)):
            if price is not None:
                facts.append(Fact(name, _price(price)))
    if ev_pct is not None:
        facts.append(Fact("EV", f"{ev_pct:+.3f} %"))
    facts.append(Fact("mode", run.mode.value))
    if run.exploration:
        facts.append(Fact("exploration", "yes"))
    title = f"{run.symbol.value}: {run.ruling.replace('_', ' ')}"
    words = (Button("Why", f"/why {run_id}"), Button("Report", f"/report {run_id}"))
    ruling = _notice(NoticeKind.RULING, title, run.account or "", at, facts=facts, reference=run_id, buttons=words)
    return replace(ruling, label=choose_label(run.account, run.origin))


async def _describe_run(entry: Entry, journal: Journal) -> list[KeyedNotice]:
    run_id = entry.request_id or ""
    started = await journal.latest(1, request_id=run_id, kind=STARTED)
    if not started or started[0].payload.get("live") is not True:
        return []
    run = RunSummary.model_validate(dict(entry.payload), strict=False)
    report = await journal.latest(1, request_id=run_id, kind=kind_of(Node.GENERATE_REPORT))
    payload: Mapping[str, Any] = report[0].payload if report else {}
    card = payload.get("outcome", {}).get("ruling", {}).get("card")
    ev_pct = float(card["ev_pct"]) if isinstance(card, Mapping) and "ev_pct" in card else None
    return [KeyedNotice(f"ruling:{run_id}", describe_ruling(run, run_id, ev_pct, entry.at))]


def _describe_answer(entry: Entry, answer: OwnAnswer) -> list[KeyedNotice]:
    """Of a strategy of the owner's that was set aside, or counts again."""
    if not answer.news or abs(entry.at - answer.at) > DAY_MS:
        return []
    kept = ", ".join(f"{name} {weight:+.1%}" for name, weight in answer.targets.items())
    notice = _notice(
        NoticeKind.SERVICE,
        f"Strategy {answer.name} {'set aside' if answer.aside else 'counts again'}",
        PAPER_ACCOUNT,
        entry.at,
        Severity.WARNING if answer.aside else Severity.INFO,
        facts=(Fact("keeps", kept or "nothing"),),
        reason=answer.aside,
        reference=answer.name,
    )
    return [KeyedNotice(f"own:{entry.request_id}", notice)]


def _describe_entry(event: IntentStored, account: str) -> Notice:
    intent = event.intent
    facts = []
    for leg in intent.legs:
        facts.append(Fact(leg.exchange.value, f"{_quantity(leg.quantity)} at {_price(leg.entry)}, {leg.leverage}×"))
        facts += [Fact(name, _price(price)) for name, price in (("stop", leg.stop), ("target", leg.target)) if price]
    facts.append(Fact("order", intent.style.replace("_", " ").lower()))
    if intent.hold is not None:
        facts.append(Fact("hold", intent.hold))
    if intent.exploration:
        facts.append(Fact("exploration", "yes"))
    why = (Button("Why", f"/why {intent.decision}"),) if intent.decision.startswith("run_") else ()
    words = (*why, Button("Status", f"/status{_asked_of(account)}"))
    title = f"{intent.symbol.value} {intent.side.lower()}: entry ordered"
    return _notice(NoticeKind.ENTRY, title, account, event.at, facts=facts, reference=intent.id, buttons=words)


def _describe_failed_entry(event: IntentEnded, book: TradingBook, account: str) -> Notice | None:
    tracked = book.intents.get(event.intent)
    if tracked is None or tracked.intent.kind is not IntentKind.OPEN:
        return None
    intent = tracked.intent
    title = f"{intent.symbol.value} {intent.side.lower()}: entry {event.state}"
    severity = Severity.CRITICAL if event.state == "undone" else Severity.WARNING
    return _notice(NoticeKind.ENTRY, title, account, event.at, severity, reason=event.reason, reference=intent.id)


def _describe_fill(event: FillBooked, book: TradingBook, account: str) -> Notice:
    fill, order = event.fill, book.orders.get(event.fill.client_id)
    purpose = "liquidation" if fill.liquidation else "foreign order" if order is None else order.purpose
    facts = (
        Fact(fill.side.lower(), f"{_quantity(fill.quantity)} at {_price(fill.price)}"),
        Fact("fee", fill.foreign_fee or currency_text(float(fill.fee), fill.exchange.currency)),
        Fact("at", f"{fill.exchange.value}, {'maker' if fill.maker else 'taker'}"),
    )
    title, severity = f"{fill.symbol.value} {purpose} filled", Severity.WARNING if fill.liquidation else Severity.INFO
    return _notice(NoticeKind.FILL, title, account, event.at, severity, facts=facts, reference=fill.client_id)


def _list_endings(account: str, book: TradingBook, since: int, now: Millis) -> Iterator[KeyedNotice]:
    """Of the mandate that stands. One that is granted for a week is not told of at once."""
    granted = book.mandate
    if granted is None:
        return
    mandate = granted.mandate
    for days, moment, title in list_endings(mandate.granted, mandate.expires, since, now):
        sleeves = ", ".join(sleeve.name for sleeve in mandate.sleeves)
        facts = (Fact("ends", iso(mandate.expires)), Fact("sleeves", sleeves or DEBATE))
        reason = "after its end nothing is added; smaller targets, exits and stops go on"
        notice = _notice(NoticeKind.MANDATE, title, account, moment, Severity.WARNING, facts=facts, reason=reason)
        yield KeyedNotice(f"mandate:{account}:{granted.hash[:16]}:{days}", notice)


def _describe_unlock(account: str, lock: LockSet | LockLifted, at: Millis, reason: str) -> Notice:
    title = f"Unlocked: {_protection(lock.protection)}{_of(lock.symbol)}"
    return _notice(NoticeKind.UNLOCK, title, account, at, reason=reason)


def _notice(
    kind: NoticeKind,
    title: str,
    account: str,
    at: Millis,
    severity: Severity = Severity.INFO,
    *,
    facts: Iterable[Fact] = (),
    reason: str = "",
    reference: str | None = None,
    buttons: Iterable[Button] = (),
) -> Notice:
    """About an account, which it refers to unless something else is named."""
    label, seconds = choose_label(account), Seconds(at // 1_000)
    of = account if reference is None else reference
    return Notice(kind, title, severity, label, seconds, tuple(facts), reason, of, tuple(buttons))


def _asked_of(account: str) -> str:
    """How a chat's command names an account that is not the home's own on paper."""
    return f" {account_word(account)}".rstrip()


def _of(symbol: Symbol | None) -> str:
    return "" if symbol is None else f" of {symbol.value}"


def _protection(protection: Protection) -> str:
    return protection.value.replace("_", " ")


def _price(price: Decimal | float) -> str:
    return f"{Decimal(str(price)).normalize():,f}"


def _quantity(quantity: Decimal) -> str:
    return f"{quantity.normalize():f}"


def _format_gain(amount: float, currency: str = "USD") -> str:
    text = currency_text(amount, currency)
    return text if text.startswith("-") or not amount else f"+{text}"


def _format_amounts(amounts: Mapping[str, float], write: Callable[[float, str], str] = currency_text) -> str:
    return ", ".join(write(amount, currency) for currency, amount in amounts.items())
