"""`zuno plan simulate … status` and the `zuno lp` commands that make a plan at once: their grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.frontends.cli import answering, consent
from zuno.frontends.cli.grammar import ChainName, Home, Json

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from zuno.app.views import View
    from zuno.app.zuno import Zuno

PlanId = Annotated[str, typer.Argument(metavar="PLAN", help="plan_ and 12 hex digits.")]
PositionId = Annotated[str, typer.Argument(metavar="ID", help="The position's id (its NFT's number).")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask: for scripts, and only on sim, devnet and test networks.")]


def register(plan: typer.Typer, lp: typer.Typer) -> None:
    """Add the commands to the groups they belong to."""
    plan.command("simulate")(simulate)
    plan.command("approve")(approve)
    plan.command("apply")(apply)
    plan.command("cancel")(cancel)
    plan.command("status")(status)
    lp.command("collect")(collect)
    lp.command("close")(close)
    lp.command("add")(add)
    lp.command("remove")(remove)


def simulate(ctx: typer.Context, plan_id: PlanId, home: Home = None, json: Json = False) -> None:
    """Try a plan's exact calldata on the latest block: balance changes, gas, price impact. Nothing is signed."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().simulate(plan_id))


def approve(ctx: typer.Context, plan_id: PlanId, yes: Yes = False, home: Home = None, json: Json = False) -> None:
    """Show every call in words and what would be signed, and sign the approval if the word is typed."""
    asked = consent.of(json=json, yes=yes)
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().approve(plan_id, asked))


def apply(ctx: typer.Context, plan_id: PlanId, yes: Yes = False, home: Home = None, json: Json = False) -> None:
    """Carry an approved plan out, exactly once; after an interruption it goes on where it stopped."""
    asked, told = consent.of(json=json, yes=yes), consent.progress(json)

    def question(zuno: Zuno) -> Awaitable[View]:
        return zuno.execution().apply(plan_id, asked, told)

    answering.answer(ctx.obj.at(home), json, question)


def cancel(ctx: typer.Context, plan_id: PlanId, home: Home = None, json: Json = False) -> None:
    """Call a plan off; what is on its way is overtaken by an empty transaction, allowances are taken back."""
    told = consent.progress(json)
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().cancel(plan_id, told))


def status(ctx: typer.Context, plan_id: PlanId, home: Home = None, json: Json = False) -> None:
    """Say how far a plan has come, held against the chain; nothing is sent."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().status(plan_id))


def collect(
    ctx: typer.Context, position: PositionId, chain: ChainName = None, home: Home = None, json: Json = False
) -> None:
    """Make a plan that takes a position's fees home."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().collect(position, chain))


def close(
    ctx: typer.Context, position: PositionId, chain: ChainName = None, home: Home = None, json: Json = False
) -> None:
    """Make a plan that takes a whole position home."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().close(position, chain))


def add(
    ctx: typer.Context,
    position: PositionId,
    amount: Annotated[
        list[str] | None,
        typer.Option("--amount", metavar="AMOUNT", help='How much, such as "0.5 WETH"; once, or for both tokens.'),
    ] = None,
    chain: ChainName = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Make a plan that adds to a position; of a token not named, as much as goes with the other."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().add(position, amount or (), chain))


def remove(
    ctx: typer.Context,
    position: PositionId,
    percent: Annotated[str, typer.Option("--percent", metavar="P", help="How much of the liquidity, e.g. 50.")],
    chain: ChainName = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Make a plan that takes a part of a position home, and all of its fees."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().remove(position, percent, chain))
