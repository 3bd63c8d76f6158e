"""The veto ledger: every decision that was vetoed or cut is scored once, when its trade would have been over."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.wire import told
from tests.wire.learning import ACCOUNT, ORIGIN, Learning, candle, journal, market, minute
from tests.wire.trades import decision
from zuno.kernel.units import Millis
from zuno.trading.learn.evaluator import VetoLedger
from zuno.trading.model.cycle import Call, Node, RuleChange
from zuno.trading.model.memory import VETO_SCORE
from zuno.trading.model.trade_events import LIVE_ACCOUNT
from zuno.trading.rules.inputs import Fees
from zuno.trading.rules.trade_outcomes import total_vetoes
from zuno.trading.run.record import DESK, ENDED, ExecutionRecord, ReportRecord, RunSummary, kind_of, summarise_run

END = minute(60)


@pytest.fixture
async def learning(tmp_path: Path) -> Learning:
    """It falls to the stop in the tenth minute."""
    store = await market(candle(minute(number), 97 if number == 9 else 99, 101) for number in range(60))
    return Learning(store, journal(tmp_path))


def past(**changed: Any) -> RunSummary:
    """A long that was wanted and vetoed."""
    outcome = told.outcome(decision=decision(hold_duration="1h"), origin=ORIGIN, as_of=minute(0))
    vetoed = {"ruling": Call.HOLD, "veto": "expectancy", "account": ACCOUNT}
    return summarise_run(outcome).model_copy(update=vetoed | changed)


async def end_run(learning: Learning, run: str, ended: RunSummary) -> None:
    await learning.journal.append_once(kind=ENDED, author=DESK, payload=ended, request_id=run)


def ledger(learning: Learning) -> VetoLedger:
    return VetoLedger(learning.opened, learning.store, Fees())


async def test_a_veto_is_scored_once_when_it_is_resolved(learning: Learning) -> None:
    await end_run(learning, "run_1", past())
    await end_run(learning, "run_2", past())
    own = ledger(learning)
    assert await own.score(ACCOUNT, ORIGIN, minute(9)) == ((), 1)
    (score,), waiting = await own.score(ACCOUNT, ORIGIN, minute(10))
    assert waiting == 0
    assert (score.exit, score.resolved) == ("stop", minute(10))
    assert score.r == pytest.approx(-1.05), "the stop and the fees of both ways"
    assert await own.score(ACCOUNT, ORIGIN, END) == ((), 0)
    assert await ledger(learning).score(ACCOUNT, ORIGIN, END) == ((), 0)
    assert await ledger(learning).read() == (score,)


async def test_two_consumers_score_it_once(learning: Learning) -> None:
    await end_run(learning, "run_1", past())
    await asyncio.gather(*(ledger(learning).score(ACCOUNT, ORIGIN, END) for _ in range(3)))
    assert len([entry async for entry in learning.journal.entries(kind=VETO_SCORE)]) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"decision": Call.HOLD},
        {"ruling": Call.CANCEL_AND_CLOSE, "veto": None},
        {"origin": "another market"},
        {"account": "paper:another"},
        {"stop_loss": None},
        {"as_of": END},
    ],
)
async def test_what_was_not_wanted_or_is_not_ours_is_not_scored(learning: Learning, changed: dict[str, Any]) -> None:
    await end_run(learning, "run_1", past(**changed))
    found, _ = await ledger(learning).score(ACCOUNT, ORIGIN, END)
    assert not found


async def test_a_run_that_nobody_acts_on_is_of_paper_alone(learning: Learning) -> None:
    await end_run(learning, "run_1", past(account=None))
    assert await ledger(learning).score(LIVE_ACCOUNT, ORIGIN, END) == ((), 0)
    found, _ = await ledger(learning).score(ACCOUNT, ORIGIN, END)
    assert len(found) == 1


async def test_a_cut_is_scored_by_what_each_rule_took(learning: Learning) -> None:
    outcome = told.outcome(decision=decision(hold_duration="1h"), origin=ORIGIN, as_of=minute(0))
    cut = RuleChange(by="cro_2_volatility", field="allocation_pct", from_=40, to=20, why="")
    outcome = outcome.model_copy(update={"ruling": outcome.ruling.model_copy(update={"changes": (cut,)})})
    report = ReportRecord(outcome=outcome, at=Millis(0))
    await learning.journal.append_once(
        kind=kind_of(Node.GENERATE_REPORT), author=DESK, payload=report, request_id="run_1"
    )
    await end_run(learning, "run_1", past(ruling=Call.LONG, veto=None, account=None))
    ((score,), _) = await ledger(learning).score(ACCOUNT, ORIGIN, END)
    ((part),) = score.rules
    assert (part.rule, part.owner, part.share) == ("cro_2_volatility", "cro", 0.5)
    assert outcome.ruling.card is not None
    assert score.left_usd == outcome.ruling.card.notional_usd
    assert score.wanted_usd == pytest.approx(2 * score.left_usd)
    (total,) = total_vetoes([score])
    assert total.total_usd == pytest.approx(-score.pct / 100 * score.left_usd), "half of what was wanted was taken"


async def test_what_a_protection_refused_is_a_veto_of_its_size(learning: Learning) -> None:
    outcome = told.outcome(decision=decision(hold_duration="1h"), origin=ORIGIN, as_of=minute(0))
    done = ExecutionRecord(state="refused", reason="daily_loss until tomorrow: $70 lost", intent=None)
    report = ReportRecord(outcome=outcome, at=Millis(0))
    for node, record in ((Node.GENERATE_REPORT, report), (Node.EXECUTE_TRADE, done)):
        await learning.journal.append_once(kind=kind_of(node), author=DESK, payload=record, request_id="run_1")
    await end_run(learning, "run_1", past(ruling=Call.LONG, veto=None))
    ((score,), _) = await ledger(learning).score(ACCOUNT, ORIGIN, END)
    ((part),) = score.rules
    assert (part.rule, part.owner, part.share, score.left_usd) == ("daily_loss", "desk", 1.0, 0.0)
    (total,) = total_vetoes([score])
    assert score.wanted_usd is not None
    assert total.total_usd == pytest.approx(-score.pct / 100 * score.wanted_usd)
