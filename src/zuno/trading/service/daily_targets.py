"""The day's targets of an account's sleeves: decided on the days that are over, carried out by the order gate."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Final

from pydantic import Field

from zuno.kernel.clock import iso
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.kernel.wire import Wire
from zuno.markets.market import Symbol
from zuno.markets.venues import Venue
from zuno.trading.execute.order_gate import OrderGate
from zuno.trading.execute.targets import TargetPosition, stop_distance
from zuno.trading.learn.tilt_book import TiltBook
from zuno.trading.model.market import DAY_MS, HOUR_MS
from zuno.trading.model.orders import to_decimal
from zuno.trading.model.sleeves import CASH_CARRY, DEBATE, LP_HEDGE, TREND
from zuno.trading.service.own_strategies import OwnStrategies
from zuno.trading.strategies.catalogue import STRATEGIES
from zuno.trading.strategies.port import StrategyView
from zuno.trading.strategies.scaler import SizedTarget, size_targets
from zuno.trading.strategies.trend import BAND, measure_deviation

TARGETS_DAY: Final = "sleeve_targets"
"""The kind of the journal's entries."""


class TargetLine(Wire):
    sleeve: str
    market: str
    weight: float
    """Of the sleeve's capital."""
    state: str
    why: Annotated[str, Field(max_length=600)]


class TargetsDay(Wire):
    """What the sleeves of an account were to hold from a day on."""

    account: str
    day: int
    targets: tuple[TargetLine, ...]


Decide = Callable[[str, str, StrategyView], Awaitable[Mapping[str, SizedTarget] | None]]
"""A sleeve's targets by account, name and what is known. None: it has none today and keeps what it holds."""


def decide(tilts: TiltBook, own: OwnStrategies) -> Decide:
    """By the core's strategies, `trend` with the tilt that was scored on the day before, and by the owner's own."""

    async def decide_sleeve(account: str, sleeve: str, view: StrategyView) -> Mapping[str, SizedTarget] | None:
        at = Millis(view.at)
        if (strategy := STRATEGIES.get(sleeve)) is None:
            return await own.size_targets(sleeve, at)
        multipliers: dict[str, float] = {}
        if sleeve == TREND:
            await tilts.score(account, at)
            scored = await tilts.find(account, Millis(at - at % DAY_MS - DAY_MS))
            multipliers = {} if scored is None else {tilt.market: tilt.multiplier for tilt in scored.markets}
        return size_targets(strategy, view, multipliers)

    return decide_sleeve


@dataclass(frozen=True, slots=True)
class DailyTargets:
    """Positions of one leg are ordered all in one round, the carry's by themselves."""

    read_view: Callable[[Millis], Awaitable[StrategyView]]
    find_venue: Callable[[Symbol], Venue]
    """Where the core's positions of one leg are held: spot where the house has it. The owner's own are held at the
    market itself."""
    decide: Decide
    refresh: Callable[[Symbol], Awaitable[None]] | None = None
    """Asks a live market for its newest bars; None: it is a recording."""

    async def set(self, gate: OrderGate, day: Millis, at: Millis) -> tuple[TargetLine, ...]:
        """By the days before `day`, as they are known at a moment of it: of a live market's last bar that is some
        seconds later. Once a month money follows the shares first. `Unavailable` where something has to be asked for
        again."""
        if iso(day)[8:10] == "01":
            await gate.restore_shares(f"month {day}")
        view, lines = await self._read_days(day, at), list[TargetLine]()
        weights: dict[str, Mapping[str, SizedTarget]] = {}
        wanted: dict[str, list[TargetPosition]] = {}
        for sleeve in gate.book.sleeves:
            if sleeve in (DEBATE, LP_HEDGE):
                continue
            targets = await self._decide(gate, sleeve, view)
            if targets is None:
                continue
            if sleeve == CASH_CARRY:
                lines += await set_carry_targets(gate, targets, day)
                continue
            capital = await gate.read_capital(sleeve)
            weights[sleeve], wanted[sleeve] = targets, []
            # What drifts away from the core's weights is not traded back. An owner's weight is held as its shadow is.
            band = to_decimal(BAND) * capital / max(1, len(targets)) if sleeve in STRATEGIES else Decimal(0)
            for market, target in targets.items():
                history, symbol = view.markets[market], Symbol(market)
                quantity = to_decimal(target.weight) * capital / to_decimal(history.closes[-1] if history.closes else 1)
                stop = stop_distance(to_decimal(measure_deviation(history.closes)))
                venue = self.find_venue(symbol) if sleeve in STRATEGIES else symbol.venue
                wanted[sleeve].append(TargetPosition(venue, symbol, quantity, stop, band))
        for result in await gate.set_targets(wanted, day, f"targets_{iso(day)[:10]}"):
            meant = weights[result.sleeve].get(result.symbol.value)
            lines.append(_write_line(result.sleeve, result.symbol, meant, result.state, result.reason))
        if waiting := [f"{line.market}: {line.why}" for line in lines if line.state == "waiting"]:
            raise Unavailable("; ".join(waiting))
        return tuple(lines)

    async def _decide(self, gate: OrderGate, sleeve: str, view: StrategyView) -> Mapping[str, SizedTarget] | None:
        """A sleeve that has no share any more ends what it holds."""
        if gate.book.shares.of(sleeve):
            return await self.decide(gate.account, sleeve, view)
        held = {trade.symbol.value for trade in gate.book.trades.values() if trade.sleeve == sleeve}
        nothing = SizedTarget(0.0, 1.0, f"{sleeve} has no share")
        return dict.fromkeys(held if sleeve == CASH_CARRY else (), nothing)

    async def _read_days(self, day: Millis, at: Millis) -> StrategyView:
        view = await self.read_view(at)
        if self.refresh is not None and at - day < HOUR_MS:
            before = day - 2 * DAY_MS
            if late := [name for name, history in view.markets.items() if history.days and history.days[-1] == before]:
                for name in late:
                    await self.refresh(Symbol(name))
                raise Unavailable(f"the last day of {', '.join(late)} is not known yet")
        return view


async def set_carry_targets(gate: OrderGate, targets: Mapping[str, SizedTarget], day: Millis) -> list[TargetLine]:
    """Both legs of each market, at the spot and the perpetuals of its house."""
    lines = list[TargetLine]()
    for market, target in targets.items():
        symbol = Symbol(market)
        try:
            result = await gate.set_carry(symbol, symbol.venue, to_decimal(target.weight), day)
            state, reason = str(result.state), result.reason
        except Unavailable as error:
            state, reason = "waiting", str(error)
        lines.append(_write_line(CASH_CARRY, symbol, target, state, reason))
    return lines


def _write_line(sleeve: str, symbol: Symbol, target: SizedTarget | None, state: str, reason: str) -> TargetLine:
    """`target`: None of what is ended because nothing is wanted of it any more."""
    why = "; ".join(filter(None, (reason, "" if target is None else target.why)))[:600]
    weight = 0.0 if target is None else target.weight
    return TargetLine(sleeve=sleeve, market=symbol.value, weight=weight, state=state, why=why)
