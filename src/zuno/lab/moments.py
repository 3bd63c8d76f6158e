"""Which moments of a synthetic market are studied: chosen by what happened before them, never by what was ruled."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Final, TypeVar

from zuno.kernel.units import Millis
from zuno.markets.feeds import BINANCE
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol
from zuno.trading.model.market import DAY_MS, HOUR_MS, Mode, funding_next
from zuno.trading.ports.series import SeriesStore
from zuno.trading.rules.risk_rules import CROWDED_FUNDING

T = TypeVar("T", int, str)
SCORED_MS: Final = 5 * DAY_MS + HOUR_MS
"""Ordinary moments end so long before the market does: a swing trade's hold can then be looked at whole."""


class MomentKind(StrEnum):
    """Why a moment was chosen."""

    ORDINARY = "ordinary"
    VOLATILE = "volatile"
    """Hours after a jump or the start of a panic."""
    CROWDED = "crowded funding"
    FAULTY = "faulty feed"
    NO_KRW = "no KRW rate"


SHARES: Final[Mapping[MomentKind, float]] = {
    MomentKind.VOLATILE: 0.15,
    MomentKind.CROWDED: 0.20,
    MomentKind.FAULTY: 0.05,
    MomentKind.NO_KRW: 0.10,
}
"""Of a market's moments; the rest are ordinary."""


@dataclass(frozen=True, slots=True)
class StudyMarket:
    """A synthetic market, loaded once for all its moments, and when something happened in it."""

    seed: int
    store: SeriesStore
    first: Millis
    """From here on every feed has its history."""
    end: Millis
    jumps: tuple[Millis, ...]
    panics: tuple[Millis, ...]
    faults: tuple[Millis, ...]
    """When a feed was wrong, the KRW rate aside."""
    krw_lost: Millis
    """From when on the KRW rate was missing for some hours."""


@dataclass(frozen=True, slots=True)
class Moment:
    number: int
    kind: MomentKind
    at: Millis
    symbol: Symbol
    mode: Mode

    def place_in(self, seed: int) -> tuple[int, int, Millis, str, str]:
        """The fields of a `StudiedMoment`."""
        return seed, self.number, self.at, self.symbol.value, self.mode.value


async def choose_moments(market: StudyMarket, count: int) -> tuple[Moment, ...]:
    """So many moments of a market, on the hour. What a kind cannot fill is filled with ordinary hours."""
    wanted, both = {kind: round(share * count) for kind, share in SHARES.items()}, tuple(DEFAULT_SYMBOLS)
    faulty = _shuffle(market, "faults", {-(-at // HOUR_MS) * HOUR_MS for at in market.faults if at >= market.first})
    chosen: list[tuple[MomentKind, int, Symbol | None]] = [
        *((MomentKind.VOLATILE, at, None) for at in _volatile_hours(market)[: wanted[MomentKind.VOLATILE]]),
        *(
            (MomentKind.CROWDED, at, symbol)
            for at, symbol in (await _crowded_hours(market))[: wanted[MomentKind.CROWDED]]
        ),
        *((MomentKind.FAULTY, at, None) for at in faulty[: wanted[MomentKind.FAULTY]]),
        *(
            (MomentKind.NO_KRW, market.krw_lost + (1 + (market.seed + place // 2) % 6) * HOUR_MS, both[place % 2])
            for place in range(wanted[MomentKind.NO_KRW])
        ),
    ]
    left, span = count - len(chosen), max(0, market.end - SCORED_MS - market.first)
    hours = [_floor_hour(market.first + span * place // max(1, left - 1)) for place in range(left)]
    ordinary = [(MomentKind.ORDINARY, at, None) for at in hours]
    return tuple(
        Moment(number, kind, Millis(at), symbol or both[number % 2], _mode_of(number, kind))
        for number, (kind, at, symbol) in enumerate((*ordinary, *chosen))
    )


def _mode_of(number: int, kind: MomentKind) -> Mode:
    """Unleveraged longs are the ones that funding and a missing KRW rate concern."""
    patient = number % 5 == 4 or kind is MomentKind.NO_KRW or (kind is MomentKind.CROWDED and number % 2 == 0)
    return Mode.POSITION if patient else Mode.SWING


def _volatile_hours(market: StudyMarket) -> list[int]:
    """Soon after the panics first, then at growing distances from the jumps."""
    last = market.end - DAY_MS
    panics = [at for at in market.panics if market.first <= at < last]
    jumps = _shuffle(market, "jumps", (at for at in market.jumps if market.first <= at < last))
    hours = [_floor_hour(at) + hours * HOUR_MS for at in panics for hours in (2, 20)]
    hours += [_floor_hour(at) + hours * HOUR_MS for hours in (1, 2, 4, 10) for at in jumps]
    return list(dict.fromkeys(hours))


async def _crowded_hours(market: StudyMarket) -> list[tuple[int, Symbol]]:
    hours: dict[str, tuple[int, Symbol]] = {}
    for symbol in DEFAULT_SYMBOLS:
        series = funding_next(BINANCE, symbol)
        for row in await market.store.read(series, market.first, market.end, market.end):
            if abs(row.rate) * 8 / row.interval_hours > CROWDED_FUNDING and row.at % HOUR_MS == 0:
                hours[f"{row.at} {symbol}"] = (row.at, symbol)
    return [hours[name] for name in _shuffle(market, "crowded", hours)]


def _floor_hour(at: int) -> int:
    return at // HOUR_MS * HOUR_MS


def _shuffle(market: StudyMarket, name: str, values: Iterable[T]) -> list[T]:
    """An order drawn from the seed, the same on every machine."""
    return sorted(values, key=lambda value: sha256(f"{market.seed} {name} {value}".encode()).digest())
