"""What the desk learned from an account, as a person asks for it: evaluate, calibration, vetoes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from zuno.kernel.clock import iso
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.trading.chart.account_charts import describe_reliability
from zuno.trading.learn.evaluator import Evaluator
from zuno.trading.model.known import derive
from zuno.trading.model.memory import VetoScore
from zuno.trading.model.sleeves import DEBATE
from zuno.trading.model.tilts import describe_tilt
from zuno.trading.model.trade_events import account_mode, account_name, check_account_name
from zuno.trading.rules.calibration import (
    EVERY_REGIME,
    LEAST_OUTCOMES,
    calibrate,
    list_closed_trades,
    measure_reliability,
    slope_of,
)
from zuno.trading.rules.performance import AccountLog
from zuno.trading.rules.trade_outcomes import VetoTotals, belongs_to_account, total_vetoes
from zuno.trading.service.account_page import require_account
from zuno.trading.service.features import TradingDesk
from zuno.trading.service.learning_view import (
    EvaluationView,
    JudgeRecordView,
    LearnedTradeView,
    NewLessonView,
    TiltsView,
    TiltView,
    TradeCalibrationView,
    VetoesView,
    VetoScoreView,
)

NO_VERDICT: Final = f"Under {LEAST_OUTCOMES} outcomes no verdict is given: chance alone could explain what is seen."
EVER: Final = Millis(2**53 - 1)
RECENT: Final = 20
"""Scores that are listed."""


class LearningDesk:
    def __init__(
        self, desk: TradingDesk, evaluator: Evaluator, log: AccountLog, now: Callable[[], Millis], name: str | None
    ) -> None:
        """`name`: of `--account`."""
        if name is not None:
            check_account_name(name)
        self._desk, self._evaluator, self._log, self._now, self._name = desk, evaluator, log, now, name

    async def evaluate(self) -> EvaluationView:
        """Score what resolved since the last time: closed trades, and decisions that were vetoed or cut."""
        head, now, _ = await self._ask(None)
        found = await self._evaluator.evaluate(head["account"], self._desk.origin, now)
        with suppress(Unavailable):  # a market's last day that is not there yet: the next one asks again
            await self._evaluator.tilts.score(head["account"], now)
        said = (
            f"New since the last evaluation: post-mortems {len(found.post_mortems)}, vetoes and cuts "
            f"{len(found.vetoes)}, lessons {len(found.lessons)}; waiting for the market: {found.waiting}."
        )
        learned = ((each, each.path, each.summary.trade) for each in found.post_mortems)
        return EvaluationView(
            **{**head, "notes": (*head["notes"], *found.notes)},
            said=said,
            post_mortems=tuple(derive(LearnedTradeView, each, path, trade=trade) for each, path, trade in learned),
            vetoes=tuple(derive(VetoScoreView, score) for score in found.vetoes),
            lessons=tuple(derive(NewLessonView, drawn, cases=len(drawn.cases)) for drawn in found.lessons),
            waiting=found.waiting,
        )

    async def calibration(self, as_of: str | None = None) -> tuple[TradeCalibrationView, bytes | None]:
        """How far each agent's claims can be relied on, and the picture of it where there is one."""
        view, painter = await self.reliability(as_of), self._desk.painter
        if not view.agents or painter.media_type != "image/png":
            return view, None
        about = view.agents, view.mode.upper(), view.account, view.origin
        return view, await painter.paint_reliability(describe_reliability(*about, synthetic=view.synthetic))

    async def reliability(self, as_of: str | None = None) -> TradeCalibrationView:
        """The same figures; nothing is painted."""
        head, _, before = await self._ask(as_of)
        cases = await self._evaluator.cases(head["account"], before)
        outcomes = sum(bool(case.claims) for case in cases)
        days = await self._evaluator.tilts.read(head["account"], before)
        tilts = [derive(TiltView, tilt, says=describe_tilt(tilt.tilt)) for day in days[-1:] for tilt in day.markets]
        return TradeCalibrationView(
            **{**head, "notes": await self._notes(head, before, len(cases))},
            said=describe_outcomes(outcomes),
            outcomes=outcomes,
            records=await self._read_records(head["account"], before),
            agents=measure_reliability((case.claims, case.regime) for case in cases),
            tilts=None if not days else derive(TiltsView, days[-1], error=days[-1].se, markets=tilts),
        )

    async def _read_records(self, account: str, before: Millis) -> tuple[JudgeRecordView, ...]:
        closed = list_closed_trades((await self._log.history(account)).closed, before)
        records = []
        for sums in (*calibrate(closed), *calibrate(closed, families=True)):
            slope = slope_of(sums)
            own = {"weight": slope.weight if sums.family is None else None, "family": sums.family or EVERY_REGIME}
            records.append(derive(JudgeRecordView, slope, sums, **own))
        return tuple(records)

    async def vetoes(self, as_of: str | None = None) -> VetoesView:
        head, _, before = await self._ask(as_of)
        here = (score for score in await self._evaluator.vetoes.read() if score.origin == self._desk.origin)
        own = (score for score in here if belongs_to_account(head["account"], score.account))
        scores = [score for score in own if score.resolved < before]
        rules, newest = total_vetoes(scores), newest_scores(scores)
        return VetoesView(**head, said=describe_vetoes(rules), outcomes=len(scores), rules=rules, scores=newest)

    async def _ask(self, as_of: str | None) -> tuple[dict[str, Any], Millis, Millis]:
        """What every answer says; the market's moment, of a recording its end, live the present; and the one of which,
        and of later, nothing is known."""
        desk = self._desk
        moment = None if as_of is None and desk.live(None) else await desk.newest_moment(as_of)
        at, notes = (self._now(), ()) if moment is None else (moment.as_of, moment.notes)
        account = account_name(desk.origin, self._name)
        await require_account(self._log, desk.origin, self._name)
        mode = account_mode(account)
        head = {
            "synthetic": mode == "paper" and desk.origin.startswith("SYNTHETIC"),
            "origin": desk.origin if mode == "paper" else account,
            "live": mode != "paper" or desk.live(None),
            "account": account,
            "mode": mode,
            "as_of": iso(at),
            "notes": notes,
        }
        return head, at, EVER if as_of is None else at

    async def _notes(self, head: Mapping[str, Any], before: Millis, learned: int) -> tuple[str, ...]:
        book = await self._log.history(head["account"])
        waiting = sum(summary.closed < before for summary in book.closed if summary.sleeve == DEBATE) - learned
        note = f"closed trades not evaluated yet: {waiting}; run `zuno trade evaluate`"
        return (*head["notes"], *([note] if waiting > 0 else []))


def describe_outcomes(outcomes: int) -> str:
    """Before closed trades that were scored; empty: they speak for themselves."""
    if not outcomes:
        return "No closed trade has been scored yet."
    return NO_VERDICT if outcomes < LEAST_OUTCOMES else ""


def describe_vetoes(rules: Sequence[VetoTotals]) -> str:
    if not rules:
        return "No decision that was vetoed or cut has been scored yet."
    return "" if any(row.enough for row in rules) else NO_VERDICT


def newest_scores(scores: Iterable[VetoScore]) -> tuple[VetoScoreView, ...]:
    newest = sorted(scores, key=lambda score: (-score.decided, score.id))
    return tuple(derive(VetoScoreView, score) for score in newest[:RECENT])
