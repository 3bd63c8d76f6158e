"""`zuno trade` commands about what was learned: evaluate, calibration, vetoes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.account import Account
from zuno.doors.cli.options import Home, Json, command
from zuno.doors.cli.trade import put, show, trade

if TYPE_CHECKING:
    from zuno.doors.cli.run_command import Answer
    from zuno.doors.zuno import Zuno
    from zuno.trading.service.learning_view import TradeCalibrationView

AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="What was known at a moment (default: everything), as in 7d."),
]


@command(trade, "evaluate")
def trade_evaluate(zuno: Zuno, /, account: Account = None) -> Answer:
    """Score trades, vetoes and cuts that resolved since the last run."""
    return zuno.learning(account).evaluate()


@trade.command("calibration")
def trade_calibration(
    ctx: typer.Context,
    as_of: AsOf = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="PNG path (default: `charts` in the home).")
    ] = None,
    account: Account = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Show the calibration of each agent's probabilities: Brier, skill, ECE by regime, with a picture."""
    drawn: list[bytes] = []

    async def fetch(zuno: Zuno) -> TradeCalibrationView:
        view, image = await zuno.learning(account).calibration(as_of)
        if image is None:
            return view
        drawn.append(image)
        name = view.account.replace(":", "-").replace("/", "-").replace(" ", "-")
        place = Path(out) if out is not None else zuno.place().home / "charts" / f"calibration-{name}.png"
        put(zuno, place, image, "picture", "choose another --out")
        return view.model_copy(update={"file": str(place)})

    run_command.answer(ctx.obj.at(home), json, fetch)
    if drawn and not json:
        from zuno.trading.model.chart import HEIGHT, WIDTH

        show(drawn[0], (WIDTH, HEIGHT))


@command(trade, "vetoes")
def trade_vetoes(zuno: Zuno, /, as_of: AsOf = None, account: Account = None) -> Answer:
    """Show what vetoes and cuts of expectancy, risk officer and leverage guard saved or cost, by rule."""
    return zuno.learning(account).vetoes(as_of)
