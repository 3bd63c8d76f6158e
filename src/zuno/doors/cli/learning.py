"""`zuno trade` commands about what was learned: evaluate, calibration, vetoes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import run_command
from zuno.doors.cli.account import Account
from zuno.doors.cli.options import Home, Json
from zuno.doors.cli.trade import put, show, trade

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.trading.service.learning_view import TradeCalibrationView

AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="What was known at a moment (default: everything), as in 7d."),
]


@trade.command("evaluate")
def trade_evaluate(ctx: typer.Context, account: Account = None, home: Home = None, json: Json = False) -> None:
    """Score trades, vetoes and cuts that resolved since the last run."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.learning(account).evaluate())


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


@trade.command("vetoes")
def trade_vetoes(
    ctx: typer.Context, as_of: AsOf = None, account: Account = None, home: Home = None, json: Json = False
) -> None:
    """Show what vetoes and cuts of expectancy, risk officer and leverage guard saved or cost, by rule."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.learning(account).vetoes(as_of))
