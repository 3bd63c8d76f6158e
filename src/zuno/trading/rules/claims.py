"""What agents claimed about a trade, against what came of it; one definition for everybody who scores them.

- Judge: its win probability, against the score of the exit (`score_exit`); fair is the rate by the distances alone.
- Experts: a stance with confidence c claims that the price goes its way over the trade with probability (1 + c) / 2;
  against the direction from entry to exit, fair by the distances. A neutral stance claims nothing.
- Meta names a regime and no probability: it claims nothing that can be scored so.
"""

from __future__ import annotations

from collections.abc import Iterator

from zuno.trading.measure.portable import round_digits
from zuno.trading.model.cycle import JudgeKind
from zuno.trading.model.market import Side
from zuno.trading.model.memory import AgentClaim
from zuno.trading.model.outcome import Outcome
from zuno.trading.model.trade_events import TradeSummary
from zuno.trading.rules.calibration import breakeven_win_rate, judge_kind, score_exit
from zuno.trading.rules.closed_trades import to_closed_trade
from zuno.trading.rules.score import board_entries

JUDGE = "judge"


def list_claims(outcome: Outcome, summary: TradeSummary) -> tuple[AgentClaim, ...]:
    """Of the run that opened a trade; none of a trade that counts for nobody's record."""
    return tuple(_claims(outcome, summary))


def _claims(outcome: Outcome, summary: TradeSummary) -> Iterator[AgentClaim]:
    trade = to_closed_trade(summary)
    if trade is None:
        return
    fair = round_digits(breakeven_win_rate(trade.profit_pct, trade.loss_pct))
    yield AgentClaim(
        role=JUDGE,
        source=judge_kind(outcome.decision),
        claimed=outcome.decision.win_probability_pct / 100,
        outcome=round_digits(score_exit(trade)),
        fair=fair,
    )
    came = 0.5 if trade.exit_pct == 0 else 1.0 if trade.exit_pct > 0 else 0.0
    for expert, entry in board_entries(outcome.board).items():
        if not entry.stance:
            continue
        same = (entry.stance > 0) is (summary.side is Side.LONG)
        yield AgentClaim(
            role=expert.value,
            source=JudgeKind.MODEL if entry.source in ("model", "repaired") else JudgeKind.RULES,
            claimed=round_digits((1 + entry.confidence) / 2),
            outcome=came if same else 1 - came,
            fair=fair if same else round_digits(1 - fair),
        )
