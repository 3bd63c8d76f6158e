"""Backtests of the trading desk: arms side by side over one recorded market."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from zuno.kernel.canonical import Json
from zuno.kernel.errors import Broken, Refused, UsageError
from zuno.kernel.text import plain_text
from zuno.lab.replies import NameModels
from zuno.lab.reports import LabReports, report_id, trial_id
from zuno.lab.trading.arm_result import ArmResult, ClosedLine, PriceSeries, Span
from zuno.lab.trading.arms import AFTER_DEBATE, ASK_NOBODY, DESK_ARMS, NEED_MODEL, ORDER_ARMS, Arm
from zuno.lab.trading.order_arms import TargetPosition, plan_hold, plan_random, plan_sma_cross, slots_of
from zuno.lab.trading.question import OpenMarket, TradeMarket, TradeQuestion, choose_span
from zuno.lab.trading.scored_decisions import ScoredDecisions
from zuno.lab.trading.views import TradeLabView, build_view
from zuno.lab.workers import Progress, RunTasks, check_any_done, check_workers
from zuno.markets.market import Symbol
from zuno.trading.model.cycle import EDITION
from zuno.trading.service.learning import describe_outcomes, describe_vetoes
from zuno.trading.service.learning_view import TradeCalibrationView, VetoesView

KIND: Final = "trade"


@dataclass(frozen=True, slots=True)
class ArmsTask:
    market: TradeMarket
    symbols: tuple[Symbol, ...]
    span: Span
    arms: tuple[Arm, ...]
    matched: tuple[ClosedLine, ...] = ()
    """Trades that chance is matched with."""
    models: bool = False
    vote_tokens: int = 0
    """Of one decision by vote."""

    def plan_orders(self, arm: Arm, prices: Mapping[Symbol, PriceSeries]) -> list[TargetPosition]:
        if arm is Arm.HOLD:
            return plan_hold(self.symbols, self.span)
        if arm is Arm.SMA:
            return plan_sma_cross(prices, self.span)
        return plan_random(self.matched, self.span)


@dataclass(frozen=True, slots=True)
class TradeLab:
    """Backtests of the trading desk. Reads the home's recorded market and writes reports; accounts are not touched."""

    open_market: OpenMarket
    run_tasks: RunTasks[ArmsTask, ArmResult | None]
    """None: a slot of an arm was played."""
    reports: LabReports
    name_models: NameModels

    async def compare(
        self, question: TradeQuestion, workers: int, tell: Progress, stop: asyncio.Event, *, resume: bool = False
    ) -> TradeLabView:
        """Every arm over the same time, as far as `stop` lets them. `resume`: arms that are done are not run again."""
        check_workers(workers)
        async with self.open_market(question.folder) as market:
            span = choose_span(market, question)
            symbols: list[Json] = [symbol.value for symbol in question.symbols]
            asked: dict[str, Json] = {"symbols": symbols, "begin": span.begin, "end": span.end}
            models = await self.name_models() if question.models else {}
            report = report_id(KIND, {**asked, **models, "arms": list(question.arms)}, market.fingerprint, EDITION)
            done = {result.arm: result for result in self.reports.load_parts(report, ArmResult, resume=resume)}
            results = await self._run(question, market, span, report, done, workers, tell, stop)
            check_any_done(len(results) or not stop.is_set())
            asked_of = {result.arm: asked if result.arm in ASK_NOBODY else {**asked, **models} for result in results}
            tried = {trial_id(KIND, arm, of, market.fingerprint, EDITION): arm for arm, of in asked_of.items()}
            self.reports.note_trials(KIND, tried)
            trials = self.reports.count_trials(KIND)
            stopped = stop.is_set()
            view = build_view(report, question, market, span, results, stopped=stopped, trials=trials)
            title = f"Trading desk, {' and '.join(question.symbols)}, {view.since[:10]} to {view.until[:10]}"
            unanswered = sum(result.unanswered for result in results)
            scored = {result.arm: result.scored for result in results if result.scored is not None}
            arms = {arm.value: decisions.model_dump(mode="json", by_alias=True) for arm, decisions in scored.items()}
            self.reports.save_view(report, KIND, title, question.command, view, unanswered=unanswered, arms=arms)
            return view

    async def read_calibration(self, report: str, arm: str) -> TradeCalibrationView:
        """Calibration of an arm's agents. `NotFound`, `Refused`, `UsageError` where a report says nothing of it."""
        head, scored = await self._read_scored(report, arm)
        return TradeCalibrationView(
            **head, said=describe_outcomes(scored.outcomes), outcomes=scored.outcomes, agents=scored.agents
        )

    async def read_vetoes(self, report: str, arm: str) -> VetoesView:
        """What an arm's vetoes and cuts saved or cost."""
        head, scored = await self._read_scored(report, arm)
        return VetoesView(
            **head, said=describe_vetoes(scored.rules), outcomes=scored.vetoed, rules=scored.rules, scores=scored.scores
        )

    async def _read_scored(self, report: str, arm: str) -> tuple[dict[str, Any], ScoredDecisions]:
        kept = await self.reports.read(report)
        if kept.kind != KIND:
            raise Refused(
                f"{report} is no backtest of the trading desk; `zuno lab reports` lists those of `lab trade`."
            )
        if arm not in DESK_ARMS:
            raise UsageError(f"{plain_text(arm, 40)!r} is no arm with a desk; choose from {', '.join(DESK_ARMS)}.")
        if arm not in kept.arms and kept.partial:
            others = f"; --arm takes {', '.join(kept.arms)}" if kept.arms else ""
            raise Refused(
                f"{report} is unfinished and holds nothing of the arm {arm}{others}. If it was asked for, run "
                f"`{kept.command} --resume`."
            )
        if arm not in kept.arms and kept.arms:
            raise Refused(f"{report} did not run the arm {arm}; --arm takes {', '.join(kept.arms)}.")
        if arm not in kept.arms:
            raise Refused(f"{report} scored no decisions: no desk was run, or by an older Zuno; run `{kept.command}`.")
        try:
            scored = ScoredDecisions.model_validate(kept.arms[arm])
        except ValidationError as error:
            raise Broken(f"The report {report} is damaged; run `{kept.command}`.") from error
        origin, until = str(kept.body.get("origin")), str(kept.body.get("until"))
        market = {"synthetic": origin.startswith("SYNTHETIC"), "origin": origin, "as_of": until}
        return {**market, "account": f"{report}, arm {arm}", "mode": "paper"}, scored

    async def _run(
        self,
        question: TradeQuestion,
        market: TradeMarket,
        span: Span,
        report: str,
        done: Mapping[Arm, ArmResult],
        workers: int,
        tell: Progress,
        stop: asyncio.Event,
    ) -> list[ArmResult]:
        results: dict[Arm, ArmResult] = dict(done)
        wanted = [arm for arm in question.arms if (question.models or arm not in NEED_MODEL) and arm not in done]
        played, total = 0, len(slots_of(span)) * len(wanted)

        def hear(message: ArmResult | None) -> None:
            nonlocal played
            if message is None:
                played += 1
                tell(min(played, total), total)
                return
            results[message.arm] = message
            matched = results[Arm.DEBATE] if message.arm in AFTER_DEBATE else message
            if message.until == span.end and not message.unanswered and not matched.unanswered:
                self.reports.keep_part(report, message)

        tell(0, total)
        tasks = plan_tasks(wanted, question.symbols, market, span, workers, models=question.models)
        await self.run_tasks(tasks, workers, hear, stop)
        later = tuple(arm for arm in wanted if arm in AFTER_DEBATE)
        if later and not stop.is_set():
            debate = results[Arm.DEBATE]
            tokens = -(-debate.model_tokens // max(1, debate.cycles))
            task = ArmsTask(market, question.symbols, span, later, debate.trades, question.models, tokens)
            await self.run_tasks([task], 1, hear, stop)
        return [results[arm] for arm in question.arms if arm in results]


def plan_tasks(
    arms: Sequence[Arm],
    symbols: tuple[Symbol, ...],
    market: TradeMarket,
    span: Span,
    workers: int,
    *,
    models: bool = False,
) -> list[ArmsTask]:
    """Arms without a desk in one task, desks in one a process; those that ask models share one, and its answers."""
    first = [arm for arm in arms if arm not in AFTER_DEBATE]
    plain = tuple(arm for arm in first if arm in ORDER_ARMS)
    desks = [arm for arm in first if arm in DESK_ARMS]
    shares = 1 if models else workers
    split = [plain, *(tuple(desks[place::shares]) for place in range(shares))]
    return [ArmsTask(market, symbols, span, share, models=models) for share in split if share]
