"""What `/forceexit` shows and is bound to is what it closes."""

from __future__ import annotations

from typing import Any

import pytest

from zuno.doors.telegram.commands import take_account
from zuno.kernel.errors import UsageError
from zuno.trading.service.account_view import TradePositionView
from zuno.trading.service.closing import find_closing


def held(id: str, symbol: str, exchange: str, *, manual: bool = False, sleeve: str = "debate") -> TradePositionView:
    known: dict[str, Any] = {"id": id, "symbol": symbol, "exchange": exchange}
    known |= {"manual": manual, "sleeve": sleeve}
    return TradePositionView.model_construct(**known)


HELD = (
    held("trd_1", "BTCUSDT", "BINANCE"),
    held("trd_2", "BTCUSDT", "UPBIT"),
    held("pos_1", "BTCUSDT", "BINANCE", manual=True),
    held("trd_3", "ETHUSDT", "BINANCE"),
    held("trd_4", "BTCUSDT", "BINANCE", sleeve="trend"),
)


@pytest.mark.parametrize(
    ("which", "closed"),
    [
        ("trd_1", ["trd_1", "trd_2"]),
        ("trd_2", ["trd_1", "trd_2"]),
        ("pos_1", ["pos_1"]),
        ("trd_3", ["trd_3"]),
        ("trd_4", ["trd_4"]),
        ("BTCUSDT", ["trd_1", "trd_2", "pos_1", "trd_4"]),
        ("all", ["trd_1", "trd_2", "pos_1", "trd_3", "trd_4"]),
        ("trd_9", []),
    ],
)
def test_a_trade_stands_for_its_symbol_at_every_exchange(which: str, closed: list[str]) -> None:
    assert [position.id for position in find_closing(HELD, which)] == closed


def test_a_paper_account_is_never_another_word_for_live() -> None:
    assert take_account(("all", "live")) == (("all",), "live")
    assert take_account(("all", "paper:scout")) == (("all",), "scout")
    assert take_account(("all", "Paper")) == (("all",), None)
    for word in ("paper:live", "PAPER:Demo"):
        with pytest.raises(UsageError):
            take_account(("all", word))
