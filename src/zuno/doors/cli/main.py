"""The command line. Only typer is imported here, so that help and completion stay fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
import typer.main

from zuno.doors.cli import account as account_commands  # noqa: F401  # commands of `trade`
from zuno.doors.cli import learning as learning_commands  # noqa: F401  # commands of `trade`
from zuno.doors.cli import run_command
from zuno.doors.cli.data import data
from zuno.doors.cli.home import backup, home, restore
from zuno.doors.cli.lab import lab
from zuno.doors.cli.learning import memory
from zuno.doors.cli.mandate import mandate
from zuno.doors.cli.mesh import Transport, mesh, peer
from zuno.doors.cli.monitor import alerts, monitor
from zuno.doors.cli.options import ChainName, Home, Json, argument, command, flag, group, help_alone, number, option
from zuno.doors.cli.plan import PlanId, PositionId, lp, plan, wallet
from zuno.doors.cli.run_command import Opener
from zuno.doors.cli.strategy import strategy
from zuno.doors.cli.system import (
    agents,
    config,
    docs,
    doctor,
    export,
    glossary,
    logs,
    mcp,
    parse,
    serve_home,
    status,
    telegram,
)
from zuno.doors.cli.trade import book, trade
from zuno.doors.cli.web import web
from zuno.kernel.errors import UsageError

if TYPE_CHECKING:
    from typer.models import CommandInfo

    from zuno.doors.cli.run_command import Answer
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View
    from zuno.lp.service.recommend import Listen


app = group(
    "Multi-agent desk for Uniswap v4 LP and crypto trading. Without keys or network it runs on a built-in simulation."
)
sim = group("Built-in simulated chain: pools and a virtual clock, no EVM.")
devnet = group("Local chain on 127.0.0.1 with the real v4 contracts.")
journal = group("Signed, hash-chained journal of all debates and decisions.")
recommend = group("Run a debate and show the recommendation. Nothing is signed or sent.")
_first = {"lp": lp, "sim": sim, "devnet": devnet, "plan": plan, "journal": journal, "wallet": wallet, "data": data}
_desks = {"monitor": monitor, "alerts": alerts, "trade": trade, "strategy": strategy, "memory": memory, "lab": lab}
_others = {
    "telegram": telegram,
    "web": web,
    "mesh": mesh,
    "export": export,
    "home": home,
    "config": config,
    "docs": docs,
}
for _word, _group in (_first | _desks | _others).items():
    app.add_typer(_group, name=_word)
lp.add_typer(recommend, name="recommend")
lp.add_typer(mandate, name="mandate")
trade.add_typer(book, name="book")
command(app, "parse")(parse)
command(app, "glossary")(glossary)
command(app, "agents")(agents)
app.command("mcp")(mcp)
command(app, "peer")(peer)
command(app, "doctor", by=partial(run_command.mend, no=run_command.BROKEN))(doctor)
command(app, "logs")(logs)
command(app, "serve")(serve_home)
command(app, "status")(status)
command(app, "backup")(backup)
command(app, "restore")(restore)


Profile = Annotated[str | None, option("--profile", "NAME", "conservative, balanced or aggressive.")]
Candidate = Annotated[int | None, number("--candidate", "N", "Use this candidate instead, unless it was vetoed.")]
OwnPrices = Annotated[
    tuple[str, str] | None, option("--range", "LOW HIGH", "Add your own range as a candidate, in prices: 2800 3400.")
]
OwnTicks = Annotated[tuple[str, str] | None, option("--ticks", "LOW HIGH", "The same in ticks: -196640 -195360.")]
AnywayOwn = Annotated[bool, flag("--anyway", "Take your own range, even if it is vetoed.")]
Hedged = Annotated[bool, flag("--hedged", "With a short perpetual of what the range holds of its volatile token.")]
Again = Annotated[str | None, argument("PLAN|REQUEST|RUN", "Plan, request or run id (default: the last decision).")]
Percent = Annotated[str, option("--percent", "P", "ETH price change in %, e.g. -6.")]


def _print_version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
]


@app.callback(invoke_without_command=True)
def _root(ctx: typer.Context, home: Home = None, version: Version = False) -> None:
    ctx.obj = ctx.obj.at(home)
    if ctx.invoked_subcommand is None and ctx.obj.shell is not None:
        raise run_command.Failed(run_command.converse(ctx.obj, ctx.obj.shell))
    help_alone(ctx)


@app.command()
def demo(ctx: typer.Context, home: Home = None, json: Json = False) -> None:
    """Run a tour on the simulated chain: positions, a price move, a debate, PnL, an applied plan."""
    run_command.demo(ctx.obj.at(home), json)


@app.command()
def version(home: Home = None, json: Json = False) -> None:
    """Print the version."""
    from zuno.kernel.installation import read_version

    number = read_version()
    typer.echo(f'{{"version": "{number}"}}' if json else f"zuno {number}")


@command(app, "markets", by=partial(run_command.verdict, no=run_command.UNAVAILABLE))
def list_markets(
    zuno: Zuno,
    venue: Annotated[str | None, option("--venue", "NAME", "Only this venue: binance, bybit-spot, okx …")] = None,
    kind: Annotated[str | None, option("--kind", "spot|perp", "Only spot markets, or only perpetuals.")] = None,
    search: Annotated[str, option("--search", "TEXT", "Only names with this in them: SOL.")] = "",
    refresh: Annotated[bool, flag("--refresh", "Ask the venues for their lists first; exit 4 if one fails.")] = False,
) -> Answer:
    """List markets that venues list: tick, lot, least order, fees, funding, and the age of each list."""
    return zuno.market_desk().list(venue, kind, search, refresh=refresh)


@command(lp, "pools")
async def lp_pools(
    zuno: Zuno,
    wanted: Annotated[str | None, argument("PAIR|TOKEN", "With --rank: pools of these alone.")] = None,
    rank: Annotated[bool, flag("--rank", "Rank them: which pool's fees pay for its LVR.")] = False,
    amount: Annotated[str | None, option("--amount", "USD", "With --rank: a position of this size (10000).")] = None,
    chain: ChainName = None,
) -> View:
    """List pools of known tokens, standard fee tiers and others found in Initialize logs; or rank them."""
    if rank:
        from zuno.doors.cli.progress_bar import ProgressBar

        with ProgressBar("pools", run_command.complain) as bar:
            return await zuno.pool_ranking(chain).rank(wanted, amount or "10000", bar.tell)
    if wanted is not None or amount is not None:
        raise UsageError("A token, a pair and --amount are for --rank.")
    return await zuno.lp(chain).pools()


@command(lp, "pool")
def lp_pool(
    zuno: Zuno,
    which: Annotated[str, argument("ID|PAIR", "Pool id, or a pair such as ETH/USDC.")],
    fee: Annotated[str | None, argument("FEE", "Fee tier of the pair: 5bps, 0.3%.")] = None,
    chain: ChainName = None,
) -> Answer:
    """Show one pool."""
    return zuno.lp(chain).pool(which, fee)


@command(lp, "positions")
def lp_positions(
    zuno: Zuno,
    chain: ChainName = None,
    ids: Annotated[list[str] | None, option("--id", "ID", "Only this id; repeatable.")] = None,
    wallet: Annotated[str | None, option("--wallet", "ADDRESS", "Owner of the positions.")] = None,
    only: Annotated[
        str | None, option("--only", "STATE", "in-range, out-of-range, or risky (out of range or near an edge).")
    ] = None,
    closed: Annotated[bool, flag("--closed", "List closed positions and their results.")] = False,
) -> Answer:
    """List a wallet's positions: state, result since opening, fees, and what to do next."""
    if not closed:
        return zuno.lp(chain).list_positions(ids or (), wallet, only)
    if ids or only:
        raise UsageError("--closed takes --wallet and --chain, not --id or --only.")
    return zuno.lp(chain).list_closed(wallet, zuno.archive().ended_positions)


@command(lp, "portfolio")
def lp_portfolio(
    zuno: Zuno,
    wallets: Annotated[
        list[str] | None, option("--wallet", "[LABEL=]ADDRESS", "Only this wallet; repeatable. Default: all watched.")
    ] = None,
    window: Annotated[str, option("--window", "SPAN", "Window of fees and time in range: 24h, 7d.")] = "7d",
    chain: ChainName = None,
) -> Answer:
    """Show all positions in USD: worth, result, fees, yield, time in range."""
    return zuno.portfolio().portfolio(wallets or (), window, chain)


@command(lp, "inspect")
def lp_inspect(zuno: Zuno, position: PositionId, chain: ChainName = None) -> Answer:
    """Show one position: state, result, fees, pool and market."""
    return zuno.lp(chain).inspect(position)


@command(lp, "pnl")
def lp_pnl(
    zuno: Zuno,
    position: PositionId,
    since: Annotated[
        str | None, option("--since", "WHEN", "Start: 7d, 36h, 2026-01-25 or ISO time; default: the mint.")
    ] = None,
    chain: ChainName = None,
) -> Answer:
    """Show a position's PnL: fees, price effect, impermanent loss, gas, swap cost, residual."""
    return zuno.lp(chain).pnl(position, since)


@command(lp, "whatif")
def lp_whatif(
    zuno: Zuno,
    position: PositionId,
    price: Annotated[
        str | None, option("--price", "PRICE", "Change in % or a price: -20%, 2400; default: today's.")
    ] = None,
    chain: ChainName = None,
) -> Answer:
    """Show a position at another price: tokens, worth, impermanent loss; and from -50 % to +50 %."""
    return zuno.lp(chain).whatif(position, price)


@command(recommend, "rebalance", by=run_command.listen_and_answer)
def recommend_rebalance(
    zuno: Zuno,
    listen: Listen,
    position: PositionId,
    profile: Profile = None,
    chain: ChainName = None,
    candidate: Candidate = None,
    prices: OwnPrices = None,
    ticks: OwnTicks = None,
    anyway: AnywayOwn = False,
    hedged: Hedged = False,
    transport: Transport = None,
) -> Answer:
    """Debate a position: hold, close, widen, tighten or shift."""
    from zuno.lp.service.arguments import own_range

    own = own_range(prices, ticks)
    return zuno.advice(transport=transport).rebalance(
        position,
        chain=chain,
        profile=profile,
        candidate=candidate,
        own_range=own,
        anyway=anyway,
        hedged=hedged,
        listen=listen,
    )


@command(recommend, "create", by=run_command.listen_and_answer)
def recommend_create(
    zuno: Zuno,
    listen: Listen,
    wish: Annotated[str, argument("WISH", 'Capital and risk in words: "0.05 ETH passively".')] = "",
    token: Annotated[str | None, option("--token", "TOKEN", "Token to deposit, symbol or address.")] = None,
    amount: Annotated[str | None, option("--amount", "N", "Amount to deposit, e.g. 0.05.")] = None,
    with_: Annotated[str | None, option("--with", "CAPITAL", 'Second token to deposit, e.g. "50 USDC".')] = None,
    pair: Annotated[str | None, option("--pair", "A/B", "Only pools of this pair.")] = None,
    fee: Annotated[str | None, option("--fee", "FEE", "Only this fee tier: 5bps, 0.3%.")] = None,
    exposure: Annotated[
        str | None, option("--exposure", "NAME", "long-token (stay long the deposited token) or neutral.")
    ] = None,
    profile: Profile = None,
    chain: ChainName = None,
    candidate: Candidate = None,
    prices: OwnPrices = None,
    ticks: OwnTicks = None,
    anyway: AnywayOwn = False,
    use_all: Annotated[bool, flag("--use-all", "Of two tokens, swap so that all of both goes in.")] = False,
    hedged: Hedged = False,
    transport: Transport = None,
) -> Answer:
    """Debate a new position: pool and range, or none. Flags override the sentence."""
    from zuno.lp.service.arguments import own_range
    from zuno.lp.service.create_request import Flags

    own = own_range(prices, ticks)
    flags = Flags(token=token, amount=amount, with_=with_, pair=pair, fee=fee, exposure=exposure, use_all=use_all)
    return zuno.advice(transport=transport).create(
        wish,
        flags,
        chain=chain,
        profile=profile,
        candidate=candidate,
        own_range=own,
        anyway=anyway,
        hedged=hedged,
        listen=listen,
    )


@command(sim, "reset")
def sim_reset(
    zuno: Zuno, seed: Annotated[int | None, number("--seed", "N", "Random seed of the simulation.")] = None
) -> Answer:
    """Reset the simulated chain."""
    return zuno.sim().reset(seed)


@command(sim, "move")
def sim_move(zuno: Zuno, percent: Percent) -> Answer:
    """Move the simulated ETH price by swaps in every pool."""
    return zuno.sim().move(percent)


@command(devnet, "up")
def devnet_up(
    zuno: Zuno,
    port: Annotated[int, number("--port", "N", "Port on 127.0.0.1; 0 picks a free one.")] = 8545,
    background: Annotated[bool, flag("--background", "Return once the node is up.")] = False,
) -> Answer:
    """Start the local chain. The first start deploys contracts and pools and caches them."""
    return zuno.devnet().up(port, background=background)


@command(devnet, "status")
def devnet_status(zuno: Zuno) -> Answer:
    """Show whether the local chain is running, and its URL."""
    return zuno.devnet().status()


@command(devnet, "move")
def devnet_move(zuno: Zuno, percent: Percent) -> Answer:
    """Move the ETH price on the local chain by real swaps in every pool."""
    return zuno.devnet_world().move(percent)


@command(devnet, "down")
def devnet_down(zuno: Zuno) -> Answer:
    """Stop the local chain."""
    return zuno.devnet().down()


@command(app, "why")
async def why(zuno: Zuno, reference: Again = None) -> View:
    """Show a debate or a trading run from the journal, the last by default. No model calls."""
    which = reference or await _last_decision(zuno)
    return await (zuno.cycles() if which.strip().startswith("run_") else zuno.archive()).why(which)


@command(app, "replay", by=run_command.verdict)
async def replay(zuno: Zuno, reference: Again = None) -> View:
    """Replay a debate, a trading run or a chat answer offline (default: the last decision), and compare the results."""
    which = reference or await _last_decision(zuno)
    if which.strip().startswith("run_"):
        return await zuno.cycles().replay(which)
    return await zuno.replay_chat(which) or await zuno.archive().replay(which)


async def _last_decision(zuno: Zuno) -> str:
    from zuno.lp.model.plan import PLAN_KIND
    from zuno.trading.service.runs import DECIDED

    return await zuno.audit().last_request((PLAN_KIND, DECIDED))


@command(plan, "list")
async def plan_list(
    zuno: Zuno, waiting: Annotated[bool, flag("--waiting", "Only what can still be approved or applied.")] = False
) -> View:
    """List the plans, newest first."""
    return await (zuno.execution().list_waiting() if waiting else zuno.archive().plans())


@command(plan, "show")
def plan_show(zuno: Zuno, plan_id: PlanId) -> Answer:
    """Show a plan as it was when the debate ended."""
    return zuno.archive().plan(plan_id)


@command(plan, "diff")
def plan_diff(zuno: Zuno, before: PlanId, after: Annotated[str, argument("OTHER", "Plan to compare with.")]) -> Answer:
    """Compare two plans."""
    return zuno.archive().diff(before, after)


@command(journal, "verify", by=run_command.verdict)
def journal_verify(
    zuno: Zuno,
    everything: Annotated[bool, flag("--all", "Check every signature.")] = False,
    quick: Annotated[bool, flag("--quick", "Only from the last checkpoint on.")] = False,
) -> Answer:
    """Verify every hash and link, and the signatures since the last checkpoint; then seal what holds in a new one."""
    from zuno.journal.journal import VerifyMode

    if everything and quick:
        raise UsageError("--all or --quick, not both.")
    mode = VerifyMode.ALL if everything else VerifyMode.QUICK if quick else VerifyMode.CHAIN
    return zuno.audit().verify(mode, seal=True)


@command(journal, "upgrade")
def journal_upgrade(zuno: Zuno) -> Answer:
    """Store the view of every finished run and plan that has none."""
    return zuno.upgrade_journal()


@command(journal, "tail")
def journal_tail(zuno: Zuno, count: Annotated[int, number("--count -n", "N", "Number of entries.")] = 20) -> Answer:
    """List the newest entries."""
    return zuno.audit().page(count)


def run(
    arguments: Sequence[str],
    opener: Opener,
    *,
    shown: Callable[[View], None] | None = None,
    shell: Callable[[str | None], int] | None = None,
    lock_account: Callable[[str | None, str], None] = lambda home, account: None,
    find_account: Callable[[str | None, str], str | None] | None = None,
    mender: Opener | None = None,
) -> int:
    """Run one command and return its exit code; what went wrong is one sentence, never a traceback.

    `shown` is told what was printed; `shell` is opened where no command is given; `lock_account`, `find_account` and
    `mender`: of the session.
    """
    named = find_account or (lambda home, account: opener(home).find_account(account))
    session = run_command.Session(opener, None, shown, lock_account, named, mender, shell)
    try:
        code = _run(arguments, session)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return run_command.discard_stdout()
    except SystemExit as ending:
        if ending.code != 1:
            raise
        return run_command.discard_stdout()  # rich ends the process so when nobody reads its help
    except OSError as error:
        return run_command.report_unwritten(error)


def build_command(words: Sequence[str] = ()) -> Callable[..., object]:
    """As much of the grammar as these words can need: typer takes a tenth of a second for all of it."""
    return typer.main.get_command(_narrow(app, words))


def _narrow(group: typer.Typer, words: Sequence[str] | None) -> typer.Typer:
    """Only what the words lead to, or all where they lead nowhere; None: without its commands, to be listed in help."""
    first = words[0] if words else ""
    listed, part = first in ("-h", "--help"), copy(group)
    part.registered_groups = [copy(each) for each in group.registered_groups if listed or each.name == first]
    part.registered_commands = [each for each in group.registered_commands if listed or _name(each) == first]
    for each in part.registered_groups:
        each.typer_instance = _narrow(each.typer_instance or group, None if listed or not words else words[1:])
    return part if words is None or part.registered_groups or part.registered_commands else group


def _name(command: CommandInfo) -> str:
    return command.name or typer.main.get_command_name(getattr(command.callback, "__name__", ""))


def _run(arguments: Sequence[str], session: run_command.Session) -> int:
    try:
        command = build_command(arguments)
        code = command(list(arguments), prog_name="zuno", obj=session, standalone_mode=False)
        if code == run_command.STOPPED:  # how typer tells of Ctrl-C
            return run_command.tell_stopped(json="--json" in arguments)
        return code if isinstance(code, int) else 0
    except typer.TyperException as mistake:
        where = getattr(getattr(mistake, "ctx", None), "command_path", "zuno")
        message = mistake.format_message().rstrip(".")
        return run_command.tell_mistake(
            f"{message}{'' if message.endswith('?') else '.'} Try `{where} --help`.", json="--json" in arguments
        )
    except (typer.Abort, KeyboardInterrupt):
        return run_command.tell_stopped(json="--json" in arguments)
    except run_command.Failed as failure:
        return failure.code
