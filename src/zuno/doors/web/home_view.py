"""Both desks at a glance, and what they say first: one sentence, what is urgent, one act."""

from collections.abc import Iterator, Sequence

from zuno.doors.web.jobs import JobView
from zuno.kernel.numbers_text import short_text, time_text
from zuno.kernel.view import ForeignText, View
from zuno.lp.service.archive import PlanLine
from zuno.lp.service.portfolio import PortfolioPositionView, PortfolioView
from zuno.lp.watch.alerts import AlertsView
from zuno.present.document import Act, Document, Facts, Tone, Value, document, facts, section
from zuno.present.values import amount, bad, foreign, gain, percent, quiet, share
from zuno.trading.service.account_view import TradePositionsView, TradeStatusView
from zuno.trading.service.profit_view import PerformanceView

MOST_NAMED = 3
"""Positions out of range that are named one by one."""
_CURRENCY = "USD"


class HomeView(View):
    """A part that could not be read is null, and `notes` says why."""

    portfolio: PortfolioView | None
    trading: TradeStatusView | None
    performance: PerformanceView | None
    positions: TradePositionsView | None
    alerts: AlertsView | None
    plans: tuple[PlanLine, ...]
    """Those that can still be approved or applied."""
    jobs: tuple[JobView, ...]
    """Of this server, the newest first."""
    notes: tuple[ForeignText, ...]

    def to_document(self) -> Document:
        chains = () if self.portfolio is None else self.portfolio.chains
        clocks = [
            f"liquidity as of {time_text(chain.timestamp)} ({chain.chain} block {chain.block})" for chain in chains
        ]
        if self.trading is not None:
            clocks.append(f"trading as of {self.trading.as_of} ({self.trading.market})")
        urgent = tuple(self._list_urgent())
        trading = "Trading could not be read." if self.trading is None else self.trading.describe()
        return document(
            foreign(f"{self._describe_liquidity()} {trading}", Tone.WARN if urgent else Tone.PLAIN),
            section("Liquidity", self._liquidity_facts()),
            section("Trading", self._trading_facts()),
            context=foreign("; ".join(clocks)),
            urgent=urgent,
            notes=map(foreign, self.notes),
            acts=(self._choose_act(),),
        )

    @property
    def _held(self) -> Sequence[PortfolioPositionView]:
        return () if self.portfolio is None else self.portfolio.positions

    @property
    def _out(self) -> list[PortfolioPositionView]:
        return [line for line in self._held if line.summary.state == "out_of_range"]

    def _describe_liquidity(self) -> str:
        if self.portfolio is None:
            return "Liquidity could not be read."
        totals, held = self.portfolio.totals, self._held
        if not totals.positions:
            return "No liquidity position is open."
        if len(held) == totals.positions == 1:
            return f"Position {held[0].id}: {held[0].summary.describe()}"
        worth = "what they are worth is unknown" if totals.worth is None else f"worth {_dollars(totals.worth)}"
        part = "" if totals.worth_of == totals.positions else f" ({totals.worth_of} of them)"
        inside = (
            f"{sum(line.in_range for line in held)} of {totals.positions} liquidity positions in range, {worth}{part}"
        )
        if totals.result is None or totals.against_holding is None:
            return f"{inside}; what they made is not known."
        up, ahead = not totals.result.startswith("-"), not totals.against_holding.startswith("-")
        rate, some = (
            self._roi,
            "" if totals.result_of == totals.positions else f", as far as known of {totals.result_of}",
        )
        return (
            f"{inside}: {'up' if up else 'down'} {_dollars(totals.result)}"
            f"{'' if rate is None else f' ({share(rate, signed=True).text})'}{some},"
            f" {_dollars(totals.against_holding)} {'better' if ahead else 'worse'} than holding."
        )

    @property
    def _roi(self) -> float | None:
        """The result as a share of the most that was in each position, of those whose result is known."""
        known = [
            (float(line.result), line.summary.result_share)
            for line in self._held
            if line.result is not None and line.summary.result_share
        ]
        put_in = sum(result / part for result, part in known if part)
        return sum(result for result, _ in known) / put_in if put_in > 0 else None

    def _list_urgent(self) -> Iterator[Value]:
        yield from () if self.trading is None else (part.write() for part in self.trading.uncovered)
        for line in self._out[:MOST_NAMED]:
            yield foreign(f"Position {line.id} in {line.pool.label}: {line.summary.describe()}", Tone.BAD)
        if more := self._out[MOST_NAMED:]:
            yield bad(f"{len(more)} more positions are out of range.")
        warnings = () if self.portfolio is None else self.portfolio.urgent
        yield from (foreign(text, Tone.WARN) for text in warnings)
        for plan in self.plans:
            if not any(plan.plan_id in text for text in warnings):
                yield foreign(
                    f"{plan.plan_id}, to {plan.choice} a position on {plan.chain}, is {plan.state}", Tone.WARN
                )
        for wallet in () if self.portfolio is None else self.portfolio.wallets:
            if not wallet.complete:
                yield foreign(wallet.trouble, Tone.BAD)
        yield from () if self.trading is None else (lock.write(Tone.WARN) for lock in self.trading.protections)
        for alert in () if self.alerts is None else self.alerts.alerts:
            if alert.condition != "out_of_range" and alert.state == "active":
                yield foreign(f"Alert: {alert.reason}", Tone.WARN)

    def _choose_act(self) -> Act:
        """What waits comes first, then what earns nothing, then what is locked."""
        if self.plans:
            plan = self.plans[0]
            return Act(
                f"Review the desk's plan to {plan.choice} {plan.position_id or ''}".rstrip(), f"why {plan.plan_id}"
            )
        if self._out:
            line = self._out[0]
            return line.summary.act(line.id, line.chain)
        if self.trading is not None and self.trading.protections:
            return Act("See what locks trading", "trade locks")
        if self._held:
            return Act("Look at the positions", "lp positions")
        return Act("Open a position", 'lp recommend create "0.05 ETH"')

    def _liquidity_facts(self) -> Facts | None:
        if self.portfolio is None or not self.portfolio.totals.positions:
            return None
        totals = self.portfolio.totals
        rows = {fact.label: fact for fact in totals.to_facts().facts}
        week = [float(line.fees24h) * (line.window_hours or 0) / 24 for line in self._held if line.fees24h is not None]
        fees = quiet("unknown") if not week else totals.count(amount(f"{sum(week):.6f}", _CURRENCY), len(week))
        roi = self._roi
        return facts(
            rows["result"],
            ("ROI", quiet("–") if roi is None else share(roi, signed=True)),
            rows["against holding"],
            ("fees, 7 days", fees),
            rows["worth"],
            rows["fee yield"],
        )

    def _trading_facts(self) -> Facts | None:
        if (trading := self.trading) is None:
            return None
        lines = () if self.performance is None else self.performance.lines
        made = {line.name: percent(line.return_pct, 2, signed=True) for line in lines}
        return facts(
            ("equity", trading.write_equity()),
            *((f"{name} return", value) for name, value in made.items()),
            ("today", gain(trading.today_usd)),
            ("unrealised PnL", gain(trading.unrealised_usd)),
        )


def _dollars(text: str) -> str:
    return f"{short_text(text.removeprefix('-'))} {_CURRENCY}"
