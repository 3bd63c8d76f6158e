"""The command line's grammar. Only typer is imported here, so that help and completion stay fast."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.frontends.cli import answering, carrying
from zuno.frontends.cli.agents import agents
from zuno.frontends.cli.answering import Opener
from zuno.frontends.cli.book import book
from zuno.frontends.cli.data import data
from zuno.frontends.cli.grammar import ChainName, Home, Json, group, help_alone, whole_number
from zuno.frontends.cli.mesh import Transport, mesh, peer
from zuno.frontends.cli.monitor import alerts, monitor
from zuno.frontends.cli.parse import parse
from zuno.frontends.cli.trade import trade
from zuno.frontends.cli.wallet import wallet

if TYPE_CHECKING:
    from zuno.app.archive import ReplayView
    from zuno.app.debate import Listen
    from zuno.app.views import View
    from zuno.app.zuno import Zuno


app = group("A desk of arguing agents for crypto capital. With no key and no network it runs on an embedded world.")
lp = group("Liquidity positions: pools, positions, and where their money went.")
sim = group("The embedded world: our own pools, a virtual clock, no EVM.")
devnet = group("The local chain: the real v4 contracts on 127.0.0.1.")
journal = group("The journal: everything that was said and decided, chained and signed.")
recommend = group("Let the desk argue and show what it recommends; nothing is signed or sent.")
app.add_typer(lp, name="lp")
lp.add_typer(recommend, name="recommend")
app.add_typer(sim, name="sim")
app.add_typer(devnet, name="devnet")
plan = group("Plans: what the desk recommended; try, approve and apply them.")
app.add_typer(plan, name="plan")
carrying.register(plan, lp)
app.add_typer(journal, name="journal")
app.command("parse")(parse)
app.command("agents")(agents)
app.add_typer(wallet, name="wallet")
app.add_typer(monitor, name="monitor")
app.add_typer(alerts, name="alerts")
app.add_typer(data, name="data")
app.add_typer(trade, name="trade")
trade.add_typer(book, name="book")
app.add_typer(mesh, name="mesh")
app.command("peer")(peer)


Profile = Annotated[str | None, typer.Option("--profile", metavar="NAME", help="conservative, balanced or aggressive.")]
Candidate = Annotated[
    int | None,
    typer.Option(
        "--candidate", metavar="N", parser=whole_number, help="Take this candidate instead, if it was not vetoed."
    ),
]
PlanId = Annotated[str, typer.Argument(metavar="PLAN", help="plan_ and 12 hex digits.")]
Again = Annotated[str, typer.Argument(metavar="PLAN|REQUEST|RUN", help="A plan's, a request's or a run's id.")]
PositionId = Annotated[str, typer.Argument(metavar="ID", help="The position's id (its NFT's number).")]
Percent = Annotated[str, typer.Option("--percent", metavar="P", help="Change of the ETH price in USDC, e.g. -6.")]


@app.callback(invoke_without_command=True)
def _root(ctx: typer.Context, home: Home = None) -> None:
    ctx.obj = ctx.obj.at(home)
    if ctx.invoked_subcommand is None and ctx.obj.shell is not None:
        raise typer.Exit(answering.converse(ctx.obj, ctx.obj.shell))
    help_alone(ctx)


@app.command()
def demo(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """Show the embedded world, push its price, and explain where the money went."""
    answering.demo(ctx.obj.at(home), json)


@app.command()
def version(home: Home = None, json: Json = False) -> None:
    """Print the version."""
    from importlib.metadata import version as installed

    number = installed("zuno")
    typer.echo(f'{{"version": "{number}"}}' if json else f"zuno {number}")


@lp.command("pools")
def lp_pools(ctx: typer.Context, chain: ChainName = None, home: Home = None, json: Json = False) -> None:
    """List the pools of tokens Zuno knows: the usual fees, and others found by their Initialize logs."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.lp(chain).pools())


@lp.command("pool")
def lp_pool(
    ctx: typer.Context,
    which: Annotated[str, typer.Argument(metavar="ID|PAIR", help="The pool's id, or a pair such as ETH/USDC.")],
    fee: Annotated[str | None, typer.Argument(metavar="FEE", help="With a pair: 5bps, 0.3%.")] = None,
    chain: ChainName = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Show one pool."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.lp(chain).pool(which, fee))


@lp.command("positions")
def lp_positions(
    ctx: typer.Context,
    chain: ChainName = None,
    ids: Annotated[list[str] | None, typer.Option("--id", metavar="ID", help="Only this id; may be repeated.")] = None,
    wallet: Annotated[str | None, typer.Option("--wallet", metavar="ADDRESS", help="Whose positions.")] = None,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="STATE", help="in-range, out-of-range, or risky: out or near an edge."),
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """List a wallet's positions with exact amounts and uncollected fees."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.lp(chain).positions(ids or (), wallet, only))


@lp.command("inspect")
def lp_inspect(
    ctx: typer.Context, position: PositionId, chain: ChainName = None, home: Home = None, json: Json = False
) -> None:
    """Show one position in full, its pool and the market around it."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.lp(chain).inspect(position))


@lp.command("pnl")
def lp_pnl(
    ctx: typer.Context,
    position: PositionId,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="7d, 36h, 2026-01-25 or an ISO time; else the mint.")
    ] = None,
    chain: ChainName = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Explain a position's result: fees, price effect, divergence loss, gas, swap cost; residual zero or it says so."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.lp(chain).pnl(position, since))


@recommend.command("rebalance")
def recommend_rebalance(
    ctx: typer.Context,
    position: PositionId,
    profile: Profile = None,
    chain: ChainName = None,
    candidate: Candidate = None,
    transport: Transport = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Debate what to do with a position: hold, close, widen, tighten or shift."""
    answering.listen_and_answer(
        ctx.obj.at(home),
        json,
        lambda zuno, listen: zuno.advice(transport=transport).rebalance(
            position, chain=chain, profile=profile, candidate=candidate, listen=listen
        ),
    )


@recommend.command("create")
def recommend_create(
    ctx: typer.Context,
    wish: Annotated[
        str, typer.Argument(metavar="WISH", help='What you bring and how boldly: "0.05 ETH passively".')
    ] = "",
    token: Annotated[
        str | None, typer.Option("--token", metavar="TOKEN", help="The token you bring, by symbol or address.")
    ] = None,
    amount: Annotated[str | None, typer.Option("--amount", metavar="N", help="How much of it, e.g. 0.05.")] = None,
    with_: Annotated[
        str | None, typer.Option("--with", metavar="CAPITAL", help='A second token beside it, e.g. "50 USDC".')
    ] = None,
    pair: Annotated[str | None, typer.Option("--pair", metavar="A/B", help="Only pools of this pair.")] = None,
    fee: Annotated[str | None, typer.Option("--fee", metavar="FEE", help="Only this fee tier: 5bps, 0.3%.")] = None,
    exposure: Annotated[
        str | None, typer.Option("--exposure", metavar="NAME", help="long-token (keep what you bring) or neutral.")
    ] = None,
    profile: Profile = None,
    chain: ChainName = None,
    candidate: Candidate = None,
    transport: Transport = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Debate where and how wide to open a position, or to open none. A flag wins over the sentence."""

    def asked(zuno: Zuno, listen: Listen) -> Awaitable[View]:
        from zuno.app.wishes import Flags

        flags = Flags(token=token, amount=amount, with_=with_, pair=pair, fee=fee, exposure=exposure)
        return zuno.advice(transport=transport).create(
            wish, flags, chain=chain, profile=profile, candidate=candidate, listen=listen
        )

    answering.listen_and_answer(ctx.obj.at(home), json, asked)


@sim.command("reset")
def sim_reset(
    ctx: typer.Context,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", parser=whole_number, help="Another story for another number.")
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """Make the embedded world anew."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.sim().reset(seed))


@sim.command("move")
def sim_move(ctx: typer.Context, percent: Percent, home: Home = None, json: Json = False) -> None:
    """Push the ETH price of the embedded world by swaps in every pool."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.sim().move(percent))


@devnet.command("up")
def devnet_up(
    ctx: typer.Context,
    port: Annotated[
        int, typer.Option("--port", metavar="N", parser=whole_number, help="Port on 127.0.0.1; 0 picks a free one.")
    ] = 8545,
    background: Annotated[bool, typer.Option("--background", help="Return when the node answers.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Start the local chain (the first start builds its world and keeps it)."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.devnet().up(port, background=background))


@devnet.command("status")
def devnet_status(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """Say whether the local chain runs, and where."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.devnet().status())


@devnet.command("move")
def devnet_move(ctx: typer.Context, percent: Percent, home: Home = None, json: Json = False) -> None:
    """Push the ETH price of the local chain by real swaps in every pool."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.devnet_world().move(percent))


@devnet.command("down")
def devnet_down(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """Stop the local chain."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.devnet().down())


@app.command()
def why(ctx: typer.Context, reference: Again, home: Home = None, json: Json = False) -> None:
    """Show a debate, or a run of the trading desk, from the journal; no model is asked."""

    def asked(zuno: Zuno) -> Awaitable[View]:
        from zuno.app.report import Reports

        of_the_desk = reference.strip().startswith("run_")
        return Reports(zuno.cycles()).why(reference) if of_the_desk else zuno.archive().why(reference)

    answering.answer(ctx.obj.at(home), json, asked)


@app.command()
def replay(ctx: typer.Context, reference: Again, home: Home = None, json: Json = False) -> None:
    """Hold a recorded debate, or a run of the trading desk, again, with no key and no network, and compare."""

    def again(zuno: Zuno) -> Awaitable[ReplayView]:
        of_the_desk = reference.strip().startswith("run_")
        return zuno.cycles().replay(reference) if of_the_desk else zuno.archive().replay(reference)

    answering.verdict(ctx.obj.at(home), json, again)


@plan.command("list")
def plan_list(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """List the plans, newest first."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.archive().plans())


@plan.command("show")
def plan_show(ctx: typer.Context, plan_id: PlanId, home: Home = None, json: Json = False) -> None:
    """Show a plan's card again."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.archive().plan(plan_id))


@plan.command("diff")
def plan_diff(
    ctx: typer.Context,
    before: PlanId,
    after: Annotated[str, typer.Argument(metavar="OTHER", help="The plan to compare with.")],
    home: Home = None,
    json: Json = False,
) -> None:
    """Compare two plans."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.archive().diff(before, after))


@journal.command("verify")
def journal_verify(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """Check every entry's hash, signature and place, and that none is missing at the end."""
    answering.verdict(ctx.obj.at(home), json, lambda zuno: zuno.audit().verify())


@journal.command("tail")
def journal_tail(
    ctx: typer.Context,
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", parser=whole_number, help="How many.")] = 20,
    home: Home = None,
    json: Json = False,
) -> None:
    """List the newest entries."""
    answering.answer(ctx.obj.at(home), json, lambda zuno: zuno.audit().tail(count))


def run(
    arguments: Sequence[str],
    opener: Opener,
    *,
    shown: Callable[[View], None] | None = None,
    shell: Callable[[str | None], int] | None = None,
) -> int:
    """Run one command and return its exit code; what went wrong is one sentence, never a traceback.

    `shown` is told what was printed; `shell` is opened where no command is given.
    """
    try:
        code = _run(arguments, answering.Session(opener, shown=shown, shell=shell))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return answering.hush()
    except SystemExit as ending:
        if ending.code != 1:
            raise
        return answering.hush()  # rich ends the process so when nobody reads its help
    except OSError as error:
        return answering.unwritten(error)


def _run(arguments: Sequence[str], session: answering.Session) -> int:
    try:
        code = app(list(arguments), prog_name="zuno", obj=session, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except typer.TyperException as mistake:
        where = getattr(getattr(mistake, "ctx", None), "command_path", "zuno")
        said = mistake.format_message().rstrip(".")
        return answering.tell_mistake(
            f"{said}{'' if said.endswith('?') else '.'} Try `{where} --help`.", json="--json" in arguments
        )
    except (typer.Abort, KeyboardInterrupt):
        answering.complain("Stopped.")
        return 130
    except answering.Failed as failure:
        return failure.code
