"""The owner's own strategies: added in the terminal, asked once a day, and judged by their shadow before they hold
anything."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Final

from pydantic import ValidationError

from zuno.journal.port import Author, Entry, Journal
from zuno.kernel.canonical import digest
from zuno.kernel.clock import iso
from zuno.kernel.errors import Malformed, NotFound, Refused, Unavailable, UsageError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.kernel.view import ForeignText, IsoTime, View
from zuno.present.document import Document, document, facts, section, table
from zuno.present.values import foreign, number, quiet, share
from zuno.trading.data.daily_histories import read_days
from zuno.trading.model.known import derive
from zuno.trading.model.market import DAY_MS, MINUTE_MS
from zuno.trading.model.own_strategies import OWN_ANSWER, OWN_STRATEGY, OwnAnswer, Registration, StrategyForm
from zuno.trading.model.sleeves import LP_HEDGE, WITH_SHARES, SleeveShares, find_unknown
from zuno.trading.ports.own_strategies import OwnStrategy
from zuno.trading.service.features import TradingDesk
from zuno.trading.strategies.own_targets import COST, LEAST_SHADOW_DAYS, check_targets, encode_view, measure_shadow
from zuno.trading.strategies.port import StrategyView
from zuno.trading.strategies.scaler import SizedTarget, adjust_weight, scale_by_drawdown

SIGNAL_GRACE_MS: Final = MINUTE_MS
"""After the end of a day: what comes by then still is of that day."""
_RESERVED: Final = (*WITH_SHARES, LP_HEDGE, "hold", "vol-hold")
_SHOWN_DAYS: Final = 10
_OWNER, _DESK = Author("owner"), Author("desk")


class OwnShadowView(View):
    """What a strategy of the owner's would have earned so far."""

    said: ForeignText
    name: str
    form: StrategyForm
    path: ForeignText
    added: IsoTime
    asked: IsoTime | None
    """The end of the day that it was last asked for."""
    aside: ForeignText
    """Why it is set aside; empty: it is not."""
    targets: dict[str, float]
    """The newest that count."""
    days: int
    gain: float
    """After costs, a fraction of the sleeve, as are costs, fall and returns."""
    costs: float
    fall: float
    sharpe: float | None
    returns: dict[str, float]
    """By the end of the day."""

    def to_document(self) -> Document:
        held = ", ".join(f"{market} {weight:+.1%}" for market, weight in self.targets.items())
        newest = list(self.returns.items())[-_SHOWN_DAYS:]
        return document(
            foreign(self.said),
            facts(
                ("form", foreign(f"{self.form.value} {self.path}".rstrip())),
                ("added", self.added),
                ("last asked", self.asked or quiet("not yet")),
                ("wants", foreign(held or "nothing")),
                ("days", str(self.days)),
                ("return", share(self.gain, signed=True)),
                ("costs", share(self.costs)),
                ("deepest fall", share(self.fall)),
                ("Sharpe", number(self.sharpe)),
            ),
            section("last days", table(("day to", "return"), ((day, share(gain, signed=True)) for day, gain in newest)))
            if newest
            else None,
            urgent=[foreign(f"SET ASIDE: {self.aside}")] if self.aside else [],
            notes=(
                f"Costs: {10_000 * COST:g} bp of what is traded; no funding. Some weeks say nothing about a strategy.",
                f"A shadow holds nothing. A share takes at least {LEAST_SHADOW_DAYS} day of it.",
            ),
        )


class OwnShadowsView(View):
    shadows: tuple[OwnShadowView, ...]


@dataclass(frozen=True, slots=True)
class OwnStrategies:
    journal: Callable[[], Awaitable[Journal]]
    desk: TradingDesk
    live: bool
    """Whether the market is read live; shadows of recorded time are apart."""
    check: Callable[[Registration], Awaitable[Registration]]
    """Whether it can be asked here, and as what; it keeps a Python file in the home. `Refused` where it cannot."""
    open: Callable[[Registration], OwnStrategy]

    async def add(self, name: str, form: StrategyForm, path: str = "") -> OwnShadowView:
        """From the terminal alone. Adding it again begins a new shadow."""
        try:
            registration = Registration(name=name, form=form, path=path)
        except ValidationError:
            raise UsageError(f"{plain_text(name, 40)!r} is no name: small letters, digits and hyphens.") from None
        if name in _RESERVED:
            raise UsageError(f"{name} is built in; choose another name.")
        checked, journal = await self.check(registration), await self.journal()
        await journal.append(kind=OWN_STRATEGY, author=_OWNER, payload=checked)
        return await self._view(name, f"{name} is asked once a day from now on, and holds nothing")

    async def remove(self, name: str) -> OwnShadowView:
        view, journal = await self._view(name, f"{name} is not asked any more; its record stays"), await self.journal()
        await journal.append(kind=OWN_STRATEGY, author=_OWNER, payload=Registration(name=name, form=None))
        return view

    async def shadow(self, name: str) -> OwnShadowView:
        """Its record; it is asked first for the day that ended last, if it was not."""
        await self._find(name)
        await self._ask(name, (await self.desk.newest_moment(None)).as_of)
        return await self._view(name, f"Shadow of {name}")

    async def records(self) -> OwnShadowsView:
        """Of all, as they stand; none is asked."""
        return OwnShadowsView(
            shadows=tuple([await self._view(name, f"Shadow of {name}") for name in await self.names()])
        )

    async def ask_all(self, at: Millis) -> list[str]:
        """Ask each for the day that ended last, once; what is new of those that are set aside. `Unavailable` where the
        day is not known yet."""
        answers = [await self._ask(name, at) for name in await self.names()]
        return [f"{answer.name}: {answer.aside or 'counts again'}" for answer in answers if answer and answer.news]

    async def names(self) -> tuple[str, ...]:
        return tuple(sorted(await self._read_known()))

    async def answers(self, name: str) -> list[OwnAnswer]:
        """Of each day since it was added, oldest first; the last one's targets are what its sleeve is to hold."""
        journal = await self.journal()
        entries = journal.entries(kind=OWN_ANSWER, request_id=f"{await self._prefix(name)}*")
        known = [OwnAnswer.model_validate(dict(entry.payload)) async for entry in entries]
        return sorted(known, key=lambda answer: answer.at)

    async def check_shares(self, shares: SleeveShares) -> None:
        """`UsageError` for a sleeve that nobody knows, `Refused` for a strategy without a record."""
        if (why := find_unknown(shares, await self.names())) is not None:
            raise UsageError(why)
        for name in shares:
            if name not in WITH_SHARES and (days := measure_shadow(await self.answers(name)).days) < LEAST_SHADOW_DAYS:
                least = f"{LEAST_SHADOW_DAYS} is the least; `zuno strategy shadow {name}` shows it"
                raise Refused(f"{name} gets no share yet: its shadow is {days} days long, and {least}.")

    async def size_targets(self, name: str, at: Millis) -> dict[str, SizedTarget] | None:
        """What its sleeve is to hold from the end of the last day on, sized by the fall of its shadow until then. None:
        it was removed, its answer does not count, or it was added again and has no shadow yet; the sleeve keeps what it
        holds."""
        if name not in await self.names():
            return None
        await self._ask(name, at)
        answers = [answer for answer in await self.answers(name) if answer.at <= at]
        if answers[-1].aside or measure_shadow(answers).days < LEAST_SHADOW_DAYS:
            return None
        equity = [1.0, *accumulate((1 + gain for gain in measure_shadow(answers).returns.values()), mul)]
        scale = scale_by_drawdown(equity)[-1]
        return {
            market: SizedTarget(adjust_weight(weight, scale), scale, f"{name} asks for {weight:+.1%}")
            for market, weight in answers[-1].targets.items()
        }

    # -- parts

    async def _read_known(self) -> dict[str, tuple[Entry, Registration]]:
        known: dict[str, tuple[Entry, Registration]] = {}
        async for entry in (await self.journal()).entries(kind=OWN_STRATEGY):
            registration = Registration.model_validate(dict(entry.payload), strict=False)
            known[registration.name] = entry, registration
        return {name: stored for name, stored in known.items() if stored[1].form is not None}

    async def _find(self, name: str) -> tuple[Entry, Registration]:
        known = await self._read_known()
        if name not in known:
            names = ", ".join(sorted(known)) or "none; `zuno strategy add` adds one"
            raise NotFound(f"No strategy of yours is called {plain_text(name, 40)!r}; there are {names}.")
        return known[name]

    async def _prefix(self, name: str) -> str:
        """Of the answers' ids: those of another market, or from before it was added again, are not its own."""
        market = "live" if self.live else digest(self.desk.origin.encode())[:8]
        return f"own_{name}_{(await self._find(name))[0].seq}_{market}_"

    async def _ask(self, name: str, at: Millis) -> OwnAnswer | None:
        """None where it was asked for that day before."""
        journal, end = await self.journal(), Millis(at - at % DAY_MS)
        request_id = f"{await self._prefix(name)}{end}"
        if await journal.latest(1, kind=OWN_ANSWER, request_id=request_id):
            return None
        earlier = [answer for answer in await self.answers(name) if answer.at < end]
        targets, before = (earlier[-1].targets, earlier[-1].aside) if earlier else ({}, "")
        view, aside = await self._read_view(end, at), ""
        try:
            strategy = self.open((await self._find(name))[1])
            asked = await strategy.ask(Millis(min(at, end + SIGNAL_GRACE_MS)), encode_view(view))
            targets = check_targets(asked, {market: not history.spot for market, history in view.markets.items()})
        except (Malformed, Unavailable, Refused) as error:
            aside = plain_text(str(error), 400)
        closes = {market: history.closes[-1] for market, history in view.markets.items()}
        answer = OwnAnswer(name=name, at=end, targets=targets, closes=closes, aside=aside, news=aside != before)
        await journal.append_once(kind=OWN_ANSWER, author=_DESK, payload=answer, request_id=request_id)
        return answer

    async def _read_view(self, end: Millis, known_by: Millis) -> StrategyView:
        """The closed days of every market. `Unavailable` where the last one is not known of any."""
        symbols, last = self.desk.markets, Millis(end - DAY_MS)
        histories = await read_days(self.desk.store, symbols, known_by, spot=lambda symbol: symbol.venue.spot)
        markets = {history.name: history for history in histories if history.days}
        if not any(history.days[-1] == last for history in markets.values()):
            raise Unavailable(f"The day that ended at {iso(end)} is not known of any market yet.")
        return StrategyView(end, markets)

    async def _view(self, name: str, said: str) -> OwnShadowView:
        entry, registration = await self._find(name)
        answers = await self.answers(name)
        record, newest = measure_shadow(answers), answers[-1] if answers else None
        return derive(
            OwnShadowView,
            record,
            registration,
            said=said,
            added=iso(entry.at),
            asked=None if newest is None else iso(Millis(newest.at)),
            aside="" if newest is None else newest.aside,
            targets={} if newest is None else newest.targets,
            returns={iso(Millis(at)): gain for at, gain in record.returns.items()},
        )
