"""What an account's screens say of small quantities."""

from __future__ import annotations

from zuno.present.text import to_text
from zuno.trading.service.account_view import FillsView, FillView


def test_a_small_fill_is_written_without_an_exponent() -> None:
    fill = FillView(
        id="f1",
        order="o1",
        exchange="upbit",
        symbol="BTCUSDT",
        side="buy",
        quantity=0.00005,
        price=140_000_000.0,
        fee=3.5,
        currency="KRW",
        maker=False,
        liquidation=False,
        at="2026-01-01T00:00:00Z",
    )
    view = FillsView(
        synthetic=False,
        origin="recorded",
        account="paper:recorded",
        mode="paper",
        as_of="2026-01-01T00:00:00Z",
        protections=(),
        fills=(fill,),
        total=1,
    )
    assert "buy 0.00005 BTC upbit" in to_text(view.to_document(), 160)
