"""What came of an arm's decisions: its agents' claims against what its trades did, and what was vetoed or cut against
what it would have made. Scored by the desk's own rules, as `trade calibration` and `trade vetoes` do for an account."""

from collections.abc import Iterable, Iterator

from zuno.kernel.units import Millis
from zuno.kernel.view import View
from zuno.trading.learn.evaluator import WaitingVeto, find_veto, play_vetoes
from zuno.trading.model.cycle import Outcome, Regime
from zuno.trading.model.memory import AgentClaim, RuleShare
from zuno.trading.model.trade_events import TradeClosed, TradeEvent, TradeSummary
from zuno.trading.ports.series import SeriesStore
from zuno.trading.rules.calibration import Reliability, list_claims, measure_reliability, to_closed_trade
from zuno.trading.rules.inputs import Fees
from zuno.trading.rules.trade_outcomes import VetoTotals, shares_of_cuts, total_vetoes
from zuno.trading.run.record import summarise_run
from zuno.trading.service.learning import newest_scores
from zuno.trading.service.learning_view import VetoScoreView


class ScoredDecisions(View):
    """Of one arm, over the whole span."""

    outcomes: int
    agents: tuple[Reliability, ...]
    vetoed: int
    """Decisions that were vetoed or cut, and scored."""
    rules: tuple[VetoTotals, ...]
    scores: tuple[VetoScoreView, ...]


class DecisionRecord:
    """An arm's decisions until they are scored."""

    def __init__(self, account: str) -> None:
        self._account = account
        self._opened: dict[str, Outcome] = {}
        self._waiting: list[WaitingVeto] = []

    def keep(self, run: str, outcome: Outcome) -> None:
        changed: tuple[RuleShare, ...] = ()
        if outcome.ruling.decision.side is not None:
            self._opened[run] = outcome
            changed = shares_of_cuts(outcome.decision, outcome.ruling.changes)
        waiting = find_veto(run, summarise_run(outcome, account=self._account), changed)
        self._waiting += [] if waiting is None else [waiting]

    async def score(self, events: Iterable[TradeEvent], store: SeriesStore, at: Millis) -> ScoredDecisions:
        """`events`: of the account. What was not resolved by that moment counts for nothing."""
        closed = [event.summary for event in events if isinstance(event, TradeClosed) and event.at <= at]
        trades = list(self._list_claimed(closed))
        scores = await play_vetoes([veto for veto in self._waiting if veto.summary.as_of < at], store, Fees(), at)
        return ScoredDecisions(
            outcomes=len(trades),
            agents=measure_reliability(trades),
            vetoed=len(scores),
            rules=total_vetoes(scores),
            scores=newest_scores(scores),
        )

    def _list_claimed(self, closed: Iterable[TradeSummary]) -> Iterator[tuple[tuple[AgentClaim, ...], Regime]]:
        """Of an intent the leg that closed first."""
        intents: set[str] = set()
        for summary in closed:
            run = self._opened.get(summary.decision or "")
            claims = () if run is None or summary.intent in intents else list_claims(run, summary)
            if run is not None and claims:
                yield claims, run.meta.regime
            if to_closed_trade(summary) is not None:
                intents.add(summary.intent)
