"""`zuno plan simulate … status` and the `zuno lp` commands that make a plan at once: their grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import consent, run_command
from zuno.doors.cli.options import ChainName, Home, Json

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View

PlanId = Annotated[str, typer.Argument(metavar="PLAN", help="plan_ and 12 hex digits.")]
PositionId = Annotated[str, typer.Argument(metavar="ID", help="Position id (NFT token id).")]
SomePositionId = Annotated[str | None, typer.Argument(metavar="ID", help="Position id (NFT token id).")]
All = Annotated[bool, typer.Option("--all", help="Every position of the wallet, in one plan.")]
Anyway = Annotated[bool, typer.Option("--anyway", help="Allow it while the pool is over 1 % off the reference.")]
Tx = Annotated[
    str | None,
    typer.Option("--tx", metavar="HASH", help="Transaction of the step that was signed elsewhere, if not found."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Skip the confirmation; only on sim, devnet and testnets.")]


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
    lp.command("revoke")(revoke)
    lp.command("compound")(compound)


def simulate(ctx: typer.Context, plan_id: PlanId, home: Home = None, json: Json = False) -> None:
    """Simulate a plan's calldata on the latest block: balance changes, gas, price impact."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().simulate(plan_id))


def approve(ctx: typer.Context, plan_id: PlanId, yes: Yes = False, home: Home = None, json: Json = False) -> None:
    """Show every call of a plan, ask for confirmation and sign the approval."""
    asked = consent.of(json=json, yes=yes)
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().approve(plan_id, asked))


def apply(
    ctx: typer.Context, plan_id: PlanId, tx: Tx = None, yes: Yes = False, home: Home = None, json: Json = False
) -> None:
    """Execute an approved plan exactly once; resumes after an interruption. For a watch-only wallet or a Safe, print
    what to sign elsewhere and continue once it is on the chain."""
    asked, told = consent.of(json=json, yes=yes), consent.progress(json)

    def question(zuno: Zuno) -> Awaitable[View]:
        return zuno.execution().apply(plan_id, asked, told, tx)

    run_command.answer(ctx.obj.at(home), json, question)


def cancel(ctx: typer.Context, plan_id: PlanId, home: Home = None, json: Json = False) -> None:
    """Cancel a plan: replace pending transactions, revoke allowances."""
    told = consent.progress(json)
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().cancel(plan_id, told))


def status(ctx: typer.Context, plan_id: PlanId, home: Home = None, json: Json = False) -> None:
    """Show a plan's progress, checked against the chain."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().status(plan_id))


def collect(
    ctx: typer.Context,
    position: SomePositionId = None,
    every: All = False,
    chain: ChainName = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Plan to collect a position's fees, or those of every position."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().collect(position, chain, every=every))


def close(
    ctx: typer.Context,
    position: SomePositionId = None,
    every: All = False,
    anyway: Anyway = False,
    chain: ChainName = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Plan to close a position, or every position."""
    run_command.answer(
        ctx.obj.at(home), json, lambda zuno: zuno.execution().close(position, chain, every=every, anyway=anyway)
    )


def compound(
    ctx: typer.Context,
    position: PositionId,
    anyway: Annotated[bool, typer.Option("--anyway", help="Even if it never earns back the gas.")] = False,
    chain: ChainName = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Plan to put a position's fees back into it, if that pays for the gas."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().compound(position, chain, anyway=anyway))


def revoke(ctx: typer.Context, chain: ChainName = None, home: Home = None, json: Json = False) -> None:
    """Plan to set every allowance of the wallet to zero."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().revoke(chain))


def add(
    ctx: typer.Context,
    position: PositionId,
    amount: Annotated[
        list[str] | None,
        typer.Option("--amount", metavar="AMOUNT", help='Amount, e.g. "0.5 WETH"; repeat for the second token.'),
    ] = None,
    chain: ChainName = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Plan to add liquidity; an amount not given is matched to the other token."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().add(position, amount or (), chain))


def remove(
    ctx: typer.Context,
    position: PositionId,
    percent: Annotated[str, typer.Option("--percent", metavar="P", help="Share of the liquidity in %, e.g. 50.")],
    anyway: Anyway = False,
    chain: ChainName = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Plan to remove part of the liquidity and collect all fees."""
    run_command.answer(ctx.obj.at(home), json, lambda zuno: zuno.execution().remove(position, percent, chain, anyway))
