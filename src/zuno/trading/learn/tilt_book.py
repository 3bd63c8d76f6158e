"""The debate's tilt of the core, scored once a day: from the runs of the days that ended, what their Judges said, and
from the market's closed days what that was worth. The journal decides what was written."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

from zuno.journal.port import Author, Journal
from zuno.kernel.canonical import canonical, digest, to_json
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.data.daily_histories import read_days
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.learn.memory_book import parse_entry
from zuno.trading.measure.portable import round_digits
from zuno.trading.model.bundle import Slot
from zuno.trading.model.cycle import Node
from zuno.trading.model.known import derive, pick
from zuno.trading.model.market import DAY_MS, HOUR_MS, Mode
from zuno.trading.model.sleeves import DEBATE, LP_HEDGE
from zuno.trading.model.tilts import CORE, TILT_DAY, CoreHolding, CoreSlot, MarketTilt, PastTilt, TiltDay, TiltScored
from zuno.trading.ports.series import SeriesStore
from zuno.trading.rules.price_menu import TradePrices
from zuno.trading.run.record import ENDED, JudgeRecord, RunSummary, kind_of
from zuno.trading.strategies.port import MarketHistory, StrategyView, align_days
from zuno.trading.strategies.tilt import DayTilt, measure_tilt, score_tilts
from zuno.trading.strategies.trend import LOOKBACKS, measure_trend

AUTHOR: Final = Author("tilt")
MADE_UP_DAYS: Final = 7
"""Days that an outage may leave to be scored; older ones are not scored any more."""
SHOWN: Final = 5
"""Tilts of a market that a cycle is told, the newest."""
_About = tuple[Symbol, Mode, Millis]
JudgeView = tuple[int, float, float]
"""Side, probability and fair rate; side 0: nothing new was to be opened."""


class TiltBook:
    """Reads runs and scored days on from where it has read."""

    def __init__(
        self,
        journal: Callable[[], Awaitable[Journal]],
        store: SeriesStore,
        refresh: Callable[[Symbol], Awaitable[None]] | None = None,
    ) -> None:
        """`refresh`: asks a live market what it did; None: it is a recording."""
        self._journal, self._store, self._refresh = journal, store, refresh
        self._read_runs = self._read_days = 0
        self._days: dict[str, dict[int, TiltDay]] = {}
        self._waiting: dict[str, dict[int, dict[_About, tuple[str, JudgeView]]]] = {}
        """Runs of days that are not scored, by account, day and what they were about."""

    async def read(self, account: str, before: Millis) -> tuple[TiltDay, ...]:
        """Days of an account that were over before a moment, the oldest first."""
        journal = await self._journal()
        async for entry in journal.entries(kind=TILT_DAY, after=self._read_days):
            scored = parse_entry(entry, TiltDay, "day of tilts")
            self._days.setdefault(scored.account, {}).setdefault(scored.day, scored)
            self._waiting.get(scored.account, {}).pop(scored.day, None)
            self._read_days = entry.seq
        days = self._days.get(account, {})
        return tuple(days[day] for day in sorted(days) if day + DAY_MS < before)

    async def find(self, account: str, day: Millis) -> TiltDay | None:
        """What was scored of a day, which counts on the day that follows. None: no Judge answered on it."""
        await self.read(account, day)
        return self._days.get(account, {}).get(day)

    async def score(self, account: str, at: Millis) -> tuple[TiltDay, ...]:
        """Write the days that were over by a moment and are not written yet. Idempotent. `Unavailable` where a live
        market's last day is not there yet: it is asked again within the hour."""
        today = at - at % DAY_MS
        await self.read(account, at)
        await self._read_new_runs()
        waiting = self._waiting.get(account, {})
        due = [day for day in sorted(waiting) if today - MADE_UP_DAYS * DAY_MS <= day < today]
        written = []
        for day in due:
            cycles = await self._read_cycles(waiting[day].items())
            if not cycles:
                continue
            scored = await self._score_day(account, Millis(day), cycles, at)
            journal, id = await self._journal(), f"tilt_{digest(canonical([account, day]))[:24]}"
            await journal.append_once(kind=TILT_DAY, author=AUTHOR, payload=scored, request_id=id)
            await self.read(account, at)
            written.append(self._days[account][day])
        return tuple(written)

    async def read_core(self, gate: OrderGate, symbol: Symbol, before: Millis) -> Slot | None:
        """What a cycle is told of the core and of tilts scored before its moment. None: the account has no core."""
        book = gate.book
        if not (core := [sleeve for sleeve in book.sleeves if sleeve not in (DEBATE, LP_HEDGE)]):
            return None
        days, marks = await self.read(gate.account, before), await gate.marks()
        holdings = []
        for sleeve in core:
            held = book.list_held(sleeve)
            if all((trade.exchange, trade.symbol) in marks for trade in held):
                for trade in (trade for trade in held if trade.symbol is symbol):
                    equity = book.sleeve_equity(sleeve, trade.exchange.currency, marks)
                    worth = trade.signed * marks[trade.exchange, symbol]
                    weight = float(100 * worth / equity) if equity > 0 else 0.0
                    holdings.append(CoreHolding(sleeve=sleeve, weight_pct=round_digits(weight, 6)))
        past = [(day.day, tilt) for day in reversed(days) if (tilt := day.find(symbol)) is not None]
        shown = [PastTilt(day=day, tilt=tilt.tilt, multiplier=tilt.multiplier) for day, tilt in past[:SHOWN]]
        score = derive(TiltScored, days[-1]) if days else None
        slot = CoreSlot(holdings=tuple(holdings), score=score, tilts=tuple(shown))
        return Slot(CORE, to_json(slot), before, "account, journal")

    async def _read_new_runs(self) -> None:
        journal = await self._journal()
        async for entry in journal.entries(kind=ENDED, after=self._read_runs):
            self._read_runs = entry.seq
            past = RunSummary.model_validate(dict(entry.payload), strict=False)
            day = past.as_of - past.as_of % DAY_MS
            if past.account is not None and day not in self._days.get(past.account, {}):
                cycles = self._waiting.setdefault(past.account, {}).setdefault(day, {})
                cycles.setdefault((past.symbol, past.mode, past.as_of), (entry.request_id or "", read_judge_view(past)))

    async def _read_cycles(self, runs: Iterable[tuple[_About, tuple[str, JudgeView]]]) -> dict[Symbol, list[JudgeView]]:
        """What was said of each market by a Judge who answered."""
        journal, cycles = await self._journal(), dict[Symbol, list[JudgeView]]()
        for (symbol, *_), (run, view) in runs:
            judged = await journal.latest(1, request_id=run, kind=kind_of(Node.JUDGE_AGENT))
            if judged and JudgeRecord.model_validate(dict(judged[0].payload), strict=False).value.source != "fallback":
                cycles.setdefault(symbol, []).append(view)
        return cycles

    async def _score_day(
        self, account: str, day: Millis, cycles: Mapping[Symbol, Sequence[JudgeView]], at: Millis
    ) -> TiltDay:
        tilts = {symbol: tilt for symbol, views in cycles.items() if (tilt := measure_tilt(views)) is not None}
        before = [scored for scored in self._days.get(account, {}).values() if scored.day < day]
        earlier = [DayTilt(scored.day, tilt.market, tilt.tilt) for scored in before for tilt in scored.markets]
        said = [DayTilt(day, symbol, tilt) for symbol, tilt in tilts.items()]
        several = dict.fromkeys((*tilts, *(tilt.market for scored in before for tilt in scored.markets)))
        histories = await self._read_histories(tuple(several), day, at)
        view = StrategyView(day + DAY_MS, {history.name: history for history in histories})
        score, columns = score_tilts([*earlier, *said], view), align_days(view)
        trend = measure_trend(columns)
        rows = {name: row for row, name in enumerate(columns.names) if columns.days.size and trend.listed[row, -1]}
        return TiltDay(
            **pick(score, "beta", "se", "weight", "days"),
            account=account,
            day=day,
            markets=tuple(
                MarketTilt(
                    market=symbol,
                    tilt=tilt,
                    cycles=len(cycles[symbol]),
                    trend=round(int(trend.up[rows[symbol], -1]) / len(LOOKBACKS), 9) if symbol in rows else None,
                    residual=score.residuals.get(symbol),
                    multiplier=score.multiplier(symbol),
                )
                for symbol, tilt in tilts.items()
            ),
        )

    async def _read_histories(self, symbols: Sequence[Symbol], day: Millis, at: Millis) -> tuple[MarketHistory, ...]:
        if self._refresh is not None:
            for symbol in symbols:
                await self._refresh(symbol)
        histories = await read_days(self._store, symbols, at)
        late = [history.name for history in histories if history.days and history.days[-1] < day]
        if late and self._refresh is not None and at - day < DAY_MS + HOUR_MS:
            raise Unavailable(f"the last day of {', '.join(late)} is not known yet")
        return histories


def read_judge_view(past: RunSummary) -> JudgeView:
    """What a Judge said before any rule had a word in it: side, probability, and the rate that the distances give."""
    side, entry, stop, take = past.decision.side, past.entry_price, past.stop_loss, past.take_profit
    if side is None or entry is None or stop is None or take is None:
        return 0, 0.0, 0.0
    return side.sign, past.win_probability_pct / 100, TradePrices(side, entry, stop, take).fair_odds
