"""What the desk rules without a model: 200 cycles over ten invented markets, and the mix that comes of them.

Twenty cycles a market: ten of its ordinary hours, three of the hours after something violent, four at which one side
pays dearly, one in which a feed is wrong and two without the won. What is held differs from cycle to cycle. Moments are
chosen by what the market did before them, never by what was ruled. The bars of the study are named in `bars`; a bar
that is missed ends it with 1.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import sqrt
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any, Final

SEEDS: Final = range(1, 11)
ORDINARY, VIOLENT, CROWDED, DIRTY, WITHOUT_WON = 10, 3, 4, 1, 2
LEAST_ACTIVE, MOST_ACTIVE, MOST_ONE_RULE = 0.05, 0.50, 0.40


@dataclass(frozen=True, slots=True)
class Trade:
    """A decision to open something, and how it would have ended."""

    p0: float
    won: float
    """1 the target first, 0 the stop first; a trade that touches neither counts as what is worth nothing."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one cycle came to."""

    seed: int
    why: str
    call: str
    ruling: str
    veto: str | None
    rules: tuple[str, ...]
    anomalies: tuple[str, ...]
    regime: str
    holding: str
    trade: Trade | None


def main() -> int:
    started = perf_counter()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        seen = [one for several in pool.map(of_seed, SEEDS) for one in several]
    told(seen, perf_counter() - started)
    missed = list(bars(seen))
    for line in missed:
        print(f"MISSED  {line}")
    return 1 if missed else 0


# -- the bars


def bars(seen: Sequence[Seen]) -> Iterator[str]:
    from zuno.trading.measure.triage import Label, Rule
    from zuno.trading.rules.draft import RuleName, RuleOwner

    calls = Counter(one.ruling for one in seen)
    for call in ("LONG", "SHORT", "HOLD", "CANCEL_AND_CLOSE"):
        if not calls[call]:
            yield f"no ruling is {call}"
    active = 1 - calls["HOLD"] / len(seen)
    if not LEAST_ACTIVE <= active <= MOST_ACTIVE:
        yield f"{active:.0%} of the rulings are not HOLD; {LEAST_ACTIVE:.0%} to {MOST_ACTIVE:.0%} are asked for"
    fired = Counter(rule for one in seen for rule in one.rules)
    found = Counter(name for one in seen for name in one.anomalies)
    ours = [rule.value for rule in RuleName if rule.owner is not RuleOwner.DESK and rule is not RuleName.TIGHTENED]
    # What a model asks for beyond the rules is no rule: without a model it never comes.
    for name, count in [
        *((rule, fired[rule]) for rule in ours),
        *((name.value, found[name.value]) for several in (Rule, Label) for name in several),
    ]:
        if not count:
            yield f"{name} never fires"
        if count > MOST_ONE_RULE * len(seen):
            yield f"{name} fires in {count / len(seen):.0%} of the cycles"
    hits = Hits.of(seen)
    if not hits.inside:
        yield f"the twin's hits are outside the band of a market without drift: {hits}"


@dataclass(frozen=True, slots=True)
class Hits:
    """How often the target of a decision to open came first, beside how often it would without drift."""

    count: int
    won: float
    expected: float
    band: float
    """95 % of what chance makes of it."""

    @classmethod
    def of(cls, seen: Sequence[Seen]) -> Hits:
        trades = [one.trade for one in seen if one.trade is not None]
        band = 1.96 * sqrt(sum(one.p0 * (1 - one.p0) for one in trades))
        return cls(len(trades), sum(one.won for one in trades), sum(one.p0 for one in trades), band)

    @property
    def inside(self) -> bool:
        return self.count > 0 and abs(self.won - self.expected) <= self.band

    def __str__(self) -> str:
        if not self.count:
            return "nothing was to be opened"
        won, expected, band = (value / self.count for value in (self.won, self.expected, self.band))
        return (
            f"{self.count} decisions to open, {won:.1%} hits; a market without drift gives {expected:.1%} ± {band:.1%}"
        )


def told(seen: Sequence[Seen], seconds: float) -> None:
    from zuno.trading.rules.draft import RuleName, RuleOwner

    print(f"SYNTHETIC  {len(seen)} cycles, {len(SEEDS)} seeds, no model, {seconds:.0f} s\n")

    def table(title: str, names: Counter[str]) -> None:
        print(title)
        for name, count in names.most_common():
            print(f"  {name:<28}{count:>5}{count / len(seen):>8.1%}")
        print()

    table("the Judge decides", Counter(one.call for one in seen))
    table("the desk rules", Counter(one.ruling for one in seen))
    table("  vetoed by", Counter(one.veto for one in seen if one.veto))
    table("regimes", Counter(one.regime for one in seen))
    table("triage", Counter(name for one in seen for name in one.anomalies))
    for office in RuleOwner:
        names = [rule for one in seen for rule in one.rules if RuleName(rule).owner is office]
        table(f"rules: {office.value}", Counter(names))
    for why in dict.fromkeys(one.why for one in seen):
        some = [one for one in seen if one.why == why]
        active = sum(one.ruling != "HOLD" for one in some)
        print(f"{why:<10} {len(some):>4} cycles, {active / len(some):>6.1%} not HOLD")
    held = [one for one in seen if one.holding in ("long", "short")]
    closed = sum(one.ruling == "CANCEL_AND_CLOSE" for one in held)
    print(f"with an open position {len(held)} cycles, {closed} close it")
    hits = Hits.of(seen)
    print(f"\n{hits}: {'inside' if hits.inside else 'OUTSIDE'} the 95 % band (no edge is expected)")


# -- one market


def of_seed(seed: int) -> list[Seen]:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from zuno.wiring.cycles import disable_tracing

    disable_tracing()
    return asyncio.run(_of_seed(seed))


async def _of_seed(seed: int) -> list[Seen]:
    from tests.wire.fakes.series import MemorySeries
    from zuno.adapters.venues.synthetic.world import batches, origin

    given = batches(seed)
    store = MemorySeries(origin(seed))
    await store.write(given)
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        for number, moment in enumerate(_moments(seed, given)):
            # Where funding or the won matters most a long of one's own money is the one to look at.
            patient = number % 5 == 4 or moment.why in ("crowded", "no won")
            mode = "position" if patient else "swing"
            seen.append(await _cycle(Path(folder), store, seed, number, moment, mode))
    return seen


@dataclass(frozen=True, slots=True)
class Moment:
    why: str
    at: int
    symbol: Any


def _moments(seed: int, given: Sequence[Any]) -> list[Moment]:
    """On the hour, as the venues of the past were read, and chosen by what had happened by then."""
    import numpy as np

    from zuno.adapters.venues.synthetic.injected_faults import MARKET_FAULTS
    from zuno.adapters.venues.synthetic.path import DAYS_FROM, END, MINUTES_FROM, chance, panics, paths
    from zuno.trading.model.market import DAY_MS, HOUR_MS, Symbol, funding_next
    from zuno.trading.model.venues import BINANCE, USDT_KRW
    from zuno.trading.rules.risk_rules import CROWDED_FUNDING as DEAR

    draw = chance(seed, "study")
    first = MINUTES_FROM + 5 * DAY_MS
    both = list(Symbol)
    found = [Moment("ordinary", int(at) // HOUR_MS * HOUR_MS, None) for at in np.linspace(first, END, ORDINARY)]

    def within(hours: Iterable[int]) -> list[int]:
        return [at for hour in hours if first <= (at := DAYS_FROM + hour * HOUR_MS) < END - DAY_MS]

    jumps = draw.permutation(within(paths(seed)[Symbol.BTCUSDT].jumps.hour.tolist())).tolist()
    after = [at + hours * HOUR_MS for at in within(panics(seed).tolist()) for hours in (2, 20)]
    after += [at + hours * HOUR_MS for hours in (1, 2, 4, 10) for at in jumps]
    found += [Moment("violent", at, None) for at in list(dict.fromkeys(after))[:VIOLENT]]
    rates = {batch.series: batch.rows for batch in given}
    dear = [
        Moment("crowded", row.at, symbol)
        for symbol in both
        for row in rates[funding_next(BINANCE, symbol)]
        if abs(row.rate) * 8 / row.interval_hours > DEAR and row.at >= first and row.at % HOUR_MS == 0
    ]
    found += [dear[place] for place in draw.permutation(len(dear))[:CROWDED].tolist()]
    wrong = {
        -(-one.first // HOUR_MS) * HOUR_MS
        for one in MARKET_FAULTS
        if one.first >= first and one.series.name != USDT_KRW
    }
    rest = ORDINARY + VIOLENT + CROWDED + DIRTY - len(found)
    found += [Moment("dirty", at, None) for at in draw.permutation(sorted(wrong)).tolist()[:rest]]
    (gone,) = (one for one in MARKET_FAULTS if one.series.name == USDT_KRW)
    found += [Moment("no won", gone.first + (1 + seed % 6) * HOUR_MS, symbol) for symbol in both[:WITHOUT_WON]]
    return [Moment(one.why, one.at, one.symbol or both[number % 2]) for number, one in enumerate(found)]


async def _cycle(folder: Path, store: Any, seed: int, number: int, moment: Moment, mode: str) -> Seen:
    from tests.wire.fakes.painter import DigestPainter
    from zuno.adapters.checkpoints.sqlite import sqlite_checkpoints
    from zuno.adapters.file_lock import symbol_lock
    from zuno.adapters.keys.ed25519 import KeyFile
    from zuno.adapters.store.memory import MemoryStore
    from zuno.journal.journal import ChainedJournal
    from zuno.kernel.units import Millis
    from zuno.settings import Settings
    from zuno.trading.model.account import account_slots
    from zuno.trading.service.features import TradingDesk
    from zuno.trading.service.runs import Cycles, RunBackends
    from zuno.wiring.cycles import build_run_context
    from zuno.wiring.minds import Models

    at, symbol = moment.at, moment.symbol
    key = KeyFile(folder / "keys")
    journal = ChainedJournal(MemoryStore(), key, code=lambda: "study", now=lambda: Millis(at))
    holding, account = await _account(store, symbol, at, number)

    async def opened() -> Any:
        return journal

    async def held(origin: str, before: Any, present: bool) -> Any:
        return account_slots(account, before, "study")

    async def nobody(*_: Any) -> Any:
        raise NotImplementedError

    models = Models(Settings(home=folder, deterministic=True))
    backing = RunBackends(
        journal=opened,
        held=held,
        minds=lambda notebook: build_run_context(models, notebook, models.registry()),
        checkpoints=lambda: sqlite_checkpoints(folder / "cycles.db"),
        lease=lambda one: symbol_lock(folder, one),
        rehearse=nobody,
        now=lambda: Millis(at),
        random=os.urandom,
        code=lambda: "study",
    )
    cycles = Cycles(TradingDesk(store, opened, DigestPainter()), backing)
    outcome = await cycles.run(symbol.value, mode, str(at), chart=False)
    ruling = outcome.ruling
    rules = tuple(dict.fromkeys(change.by.split(" ")[0] for change in ruling.changes))
    return Seen(
        seed,
        moment.why,
        outcome.decision.decision.value,
        ruling.decision.value,
        ruling.veto,
        rules,
        tuple(dict.fromkeys(name for one in outcome.anomalies for name in (one.rule, one.label) if name)),
        outcome.meta.regime.value,
        holding,
        await _ended(store, outcome, symbol, at),
    )


async def _account(store: Any, symbol: Any, at: int, number: int) -> tuple[str, Any]:
    """Nothing most of the time; else what makes exits, caps, guards and top-ups bite."""
    from zuno.kernel.units import Millis
    from zuno.trading.model.account import Account, Holding, Liquidity
    from zuno.trading.model.cycle import Exchange
    from zuno.trading.model.market import DAY_MS, HOUR_MS, Side, Symbol, Timeframe, candles
    from zuno.trading.model.venues import BINANCE
    from zuno.trading.rules.paper_book import STARTING_ACCOUNT

    prices = {}
    for one in Symbol:
        rows = await store.read(candles(BINANCE, one, Timeframe.H1), at - DAY_MS - 3 * HOUR_MS, at - DAY_MS, at)
        prices[one] = rows[-1].close

    def position(one: Any, side: Any, margin: float, leverage: float) -> Any:
        entry = prices[one]
        quantity = margin * leverage / entry
        return Holding(
            id="pos_study",
            symbol=one,
            exchange=Exchange.BINANCE,
            side=side,
            quantity=quantity,
            entry=entry,
            leverage=leverage,
            opened=Millis(at - DAY_MS),
        )

    other = next(one for one in Symbol if one is not symbol)
    begin = STARTING_ACCOUNT
    match number % 10:
        case 3:
            return "long", Account(begin.usd, begin.krw, (position(symbol, Side.LONG, 400, 2),))
        case 4:
            return "short", Account(begin.usd, begin.krw, (position(symbol, Side.SHORT, 400, 2),))
        case 5 | 8:
            return "other", Account(begin.usd, begin.krw, (position(other, Side.LONG, 1_850, 1),))
        case 6 | 9:
            return "heavy", Account(
                begin.usd,
                begin.krw,
                (position(other, Side.SHORT, 900, 3),),
                liquidity=(Liquidity(symbol=symbol, quantity=3_800 / prices[symbol]),),
            )
        case 7:
            return "long" if number % 20 == 7 else "short", Account(
                begin.usd,
                begin.krw,
                (position(symbol, Side.LONG if number % 20 == 7 else Side.SHORT, 60, 1),),
            )
        case _:
            return "nothing", begin


async def _ended(store: Any, outcome: Any, symbol: Any, at: int) -> Trade | None:
    """What became of a decision to open something, over the hours the desk could not see."""
    from zuno.trading.model.market import HOUR_MS, Timeframe, candles
    from zuno.trading.model.venues import BINANCE
    from zuno.trading.rules.inputs import hold_hours

    decided, worth = outcome.decision, outcome.expectation
    side = decided.decision.side
    if side is None or worth is None or None in (decided.entry_price, decided.stop_loss, decided.take_profit):
        return None
    hours = hold_hours(decided.hold_duration, outcome.mode)
    series = candles(BINANCE, symbol, Timeframe.H1)
    rows = await store.read(series, at, at + (hours - 1) * HOUR_MS, at + (hours + 1) * HOUR_MS)
    if len(rows) < hours:
        return None  # the market ends before the trade would
    up = decided.take_profit > decided.entry_price
    gain, loss = abs(decided.take_profit - decided.entry_price), abs(decided.stop_loss - decided.entry_price)
    for row in rows:
        if row.low <= decided.stop_loss if up else row.high >= decided.stop_loss:
            return Trade(worth.p0, 0.0)
        if row.high >= decided.take_profit if up else row.low <= decided.take_profit:
            return Trade(worth.p0, 1.0)
    return Trade(worth.p0, loss / (gain + loss))


if __name__ == "__main__":
    raise SystemExit(main())
