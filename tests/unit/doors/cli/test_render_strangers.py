"""What strangers write on chain is shown as they wrote it: never as markup, never as a crash."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.doors.cli.render import render
from zuno.lp.service.to_views import position_view
from zuno.lp.service.views import PositionsView


@pytest.mark.parametrize("symbol", ["[/x]", "[red]USDC[/red]", "[bold red]PWN[/]", ":smile:", "\\[x]"])
def test_a_symbol_is_never_markup(symbol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = asyncio.run(SimChain(SimFile(tmp_path)).positions([1]))
    shown = position_view(snapshot.positions[0])
    currency = replace(shown.pool.currency1, symbol=symbol)
    pool = shown.pool.model_copy(update={"currency1": currency, "label": f"WETH/{symbol} 0.05 %"})
    strange = shown.model_copy(update={"pool": pool, "price_unit": f"{symbol} per WETH"})
    render(
        PositionsView(
            chain="sim", block=1, timestamp=1, wallet=None, complete=True, note=symbol, positions=(strange,), missing=()
        )
    )
    assert symbol in capsys.readouterr().out


@pytest.mark.parametrize(
    "number", ["1e26", "340282366920938463463374607431768211456.5", "9" * 200, "0.1", "-5e30", "0"]
)
def test_an_absurd_figure_is_shown_all_the_same(number: str) -> None:
    from decimal import Decimal

    from zuno.kernel.numbers_text import short_text

    assert len(short_text(format(Decimal(number), "f"))) < 20
