"""The exam of `TradeRecord`: whoever tells how trades came out sits it unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from zuno.adapters.account.closed_trades import MemoryTradeRecord
from zuno.kernel.units import Millis
from zuno.trading.model.cycle import JudgeKind, RegimeFamily
from zuno.trading.model.record import ClosedTrade
from zuno.trading.ports.record import TradeRecord

HERE, THERE = "SYNTHETIC seed 1", "SYNTHETIC seed 2"
Open = Callable[[Mapping[str, Sequence[ClosedTrade]]], TradeRecord]


@pytest.fixture(params=["memory"])
def record_of(request: pytest.FixtureRequest) -> Open:
    """A record in which these trades were closed."""
    return MemoryTradeRecord


def closed(at: int, exit_pct: float = 4.0) -> ClosedTrade:
    return ClosedTrade(
        closed=Millis(at),
        judge=JudgeKind.RULES,
        family=RegimeFamily.RANGE,
        edge=0.1,
        profit_pct=4.0,
        loss_pct=2.0,
        exit_pct=exit_pct,
    )


async def test_a_record_nobody_wrote_holds_none(record_of: Open) -> None:
    assert await record_of({}).closed_trades(HERE, Millis(2**50)) == ()


async def test_trades_come_back_in_the_order_they_were_closed(record_of: Open) -> None:
    trades = (closed(10), closed(20, -2.0), closed(30, 0.5))
    assert await record_of({HERE: trades}).closed_trades(HERE, Millis(99)) == trades


async def test_what_is_told_of_a_moment_was_closed_strictly_before(record_of: Open) -> None:
    record = record_of({HERE: (closed(10), closed(20))})
    for moment, count in ((10, 0), (11, 1), (20, 1), (21, 2)):
        assert len(await record.closed_trades(HERE, Millis(moment))) == count


async def test_a_later_trade_alters_no_earlier_answer(record_of: Open) -> None:
    fewer, more = (record_of({HERE: trades}) for trades in ((closed(10),), (closed(10), closed(20))))
    assert await fewer.closed_trades(HERE, Millis(20)) == await more.closed_trades(HERE, Millis(20))


async def test_another_markets_trades_are_not_in_it(record_of: Open) -> None:
    record = record_of({HERE: (closed(10),), THERE: (closed(11),)})
    assert await record.closed_trades(HERE, Millis(99)) == (closed(10),)
