"""`zuno trade` commands about an account: look, close, cancel, move levels, pause, kill, unlock, mandate."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from zuno.doors.cli import consent, run_command
from zuno.doors.cli.options import Answer, Home, Json, argument, command, flag, group, number, option
from zuno.doors.cli.trade import Out, save_picture, trade
from zuno.kernel.accounts import LIVE_ACCOUNT, PAPER_ACCOUNT, RESERVED_ACCOUNTS, account_mode, check_account_name
from zuno.kernel.errors import Refused, Unavailable, UsageError

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View
    from zuno.trading.service.live_start import Confirm

mandate = group("Mandate: what the desk may do with real money. Without one it trades on paper.")
trade.add_typer(mandate, name="mandate")

Account = Annotated[
    str | None, option("--account", "NAME", "Paper account (default: the home's), live, demo or one of zuno.toml.")
]
AtExchange = Annotated[str, option("--account", "NAME", "Account at an exchange: live, demo or one of zuno.toml.")]
BySleeve = Annotated[str | None, option("--by", "GROUP", "Group by sleeve.")]
Lines = Annotated[int, number("--lines -n", "N", "Show the last N lines.")]
Yes = Annotated[bool, flag("--yes", "Skip the typed confirmation; not with real money.")]


@command(trade, "status")
def trade_status(zuno: Zuno, account: Account = None) -> Answer:
    """Show the account: equity, PnL, locks, mandate, and the risk book of positions and LP inventory."""
    return zuno.account(account).status()


@command(trade, "sleeves")
def trade_sleeves(zuno: Zuno, account: Account = None) -> Answer:
    """Show the account's sleeves: share, capital, equity, results, what each holds."""
    return zuno.account(account).sleeves()


@command(trade, "positions")
def trade_positions(zuno: Zuno, by: BySleeve = None, account: Account = None) -> Answer:
    """List open positions: entry, mark, unrealised PnL, stop, target, order ids."""
    return zuno.account(account).positions(by)


@command(trade, "orders")
def trade_orders(
    zuno: Zuno,
    everything: Annotated[bool, flag("--all", "Also filled, cancelled and rejected orders.")] = False,
    by: BySleeve = None,
    account: Account = None,
) -> Answer:
    """List open orders with their ids, purpose and fills."""
    return zuno.account(account).orders(everything=everything, by=by)


@command(trade, "fills")
def trade_fills(zuno: Zuno, lines: Lines = 50, account: Account = None) -> Answer:
    """List fills, newest first: price, quantity, fee, maker or taker."""
    return zuno.account(account).fills(lines)


@command(trade, "trades")
def trade_trades(zuno: Zuno, lines: Lines = 50, account: Account = None) -> Answer:
    """List closed trades, newest first: net PnL, R, fees, funding, exit reason."""
    return zuno.account(account).trades(lines)


@command(trade, "ledger")
def trade_ledger(zuno: Zuno, lines: Lines = 20, account: Account = None) -> Answer:
    """Show the double-entry ledger: balances, debits and credits, postings."""
    return zuno.account(account).ledger(lines)


@command(trade, "balance")
def trade_balance(zuno: Zuno, account: Account = None) -> Answer:
    """Show cash, margin, unrealised PnL, equity and free margin by exchange."""
    return zuno.account(account).balance()


@command(trade, "profit")
def trade_profit(
    zuno: Zuno,
    by: Annotated[
        str | None, option("--by", "GROUP", "Group by day, week, month, symbol, exit, side or sleeve.")
    ] = None,
    account: Account = None,
) -> Answer:
    """Show win rate, profit factor, expectancy in R, drawdown, duration and costs of closed trades."""
    return zuno.account(account).profit(by)


@command(trade, "performance")
async def trade_performance(
    zuno: Zuno, by: BySleeve = None, out: Out = None, account: Account = None, json: Json = False
) -> View:
    """Show equity and drawdown over time beside core and hold, with a picture."""
    return save_picture(zuno, *await zuno.account(account).performance(by), "equity", out, json)


@command(trade, "close")
def trade_close(
    zuno: Zuno,
    which: Annotated[str, argument("ID|SYMBOL|all", "Position id, symbol, or all.")],
    account: Account = None,
    json: Json = False,
) -> Answer:
    """Close positions at the market and cancel their orders. With real money it asks for confirmation."""
    return zuno.account(account).close(which, consent.ask_to_type(json=json))


@command(trade, "cancel")
def trade_cancel(
    zuno: Zuno, order: Annotated[str, argument("ORDER", "Order id, see `zuno trade orders`.")], account: Account = None
) -> Answer:
    """Cancel an entry. Stops and targets go with their position."""
    return zuno.account(account).cancel(order)


@command(trade, "set")
def trade_set(
    zuno: Zuno,
    position: Annotated[str, argument("ID|SYMBOL", "Position id, or the symbol of the only one there.")],
    stop: Annotated[str | None, option("--stop", "PRICE", "Stop loss.")] = None,
    target: Annotated[str | None, option("--target", "PRICE", "Take profit.")] = None,
    yes: Yes = False,
    account: Account = None,
    json: Json = False,
) -> Answer:
    """Move a position's stop or target: tightening at once, loosening after a typed confirmation."""
    return zuno.account(account).set_levels(
        position, stop, target, _ask(zuno.find_account(account), json=json, yes=yes)
    )


@command(trade, "pause")
def trade_pause(zuno: Zuno, account: Account = None) -> Answer:
    """Open no new trades and cancel waiting entries; open positions keep their stops and targets."""
    return zuno.account(account).pause()


@trade.command("kill")
def trade_kill(
    ctx: typer.Context, yes: Yes = False, account: Account = None, home: Home = None, json: Json = False
) -> None:
    """Cancel all orders, close all positions, and lock until `zuno trade unlock`. Asks for confirmation."""
    session: run_command.Session = ctx.obj.at(home)
    what = "this cancels all orders, closes all positions at the market and locks the desk."

    def lock_and_open(place: str | None) -> Zuno:
        """The lock waits for nothing that has to be imported, read or answered first."""
        name = PAPER_ACCOUNT if account is None else account
        check_account_name(name)
        named = yes and name not in RESERVED_ACCOUNTS  # whether money is in it the settings say
        whole = session.find_account(place, name) if named else name
        if not _ask(whole, json=json, yes=yes)("kill", f"{name.upper()} account: {what}"):
            raise Refused("The word was not typed; nothing was changed.")
        with suppress(Unavailable):  # a full disk keeps nobody from getting out; the desk tries again, and says so
            session.lock_account(place, name)
        return session.opener(place)

    run_command.answer(replace(session, opener=lock_and_open), json, lambda zuno: zuno.account(account).kill(None))


@command(trade, "locks")
def trade_locks(zuno: Zuno, account: Account = None) -> Answer:
    """List active protections that keep the desk from new trades."""
    return zuno.account(account).locks()


@command(trade, "unlock")
def trade_unlock(
    zuno: Zuno,
    protection: Annotated[str | None, argument("PROTECTION", "Only this one, e.g. kill_switch; default: all.")] = None,
    account: Account = None,
    json: Json = False,
) -> Answer:
    """Lift locks. With real money it asks for confirmation."""
    return zuno.account(account).unlock(protection, consent.ask_to_type(json=json))


@command(trade, "transfer")
def trade_transfer(
    zuno: Zuno,
    source: Annotated[str, argument("SOURCE", "Sleeve that gives, e.g. debate.")],
    target: Annotated[str, argument("TARGET", "Sleeve that gets it, e.g. trend.")],
    amount: Annotated[str, argument("AMOUNT", "Dollars; at most what the sleeve has free.")],
    account: Account = None,
    json: Json = False,
) -> Answer:
    """Move free cash from one sleeve to another, after a typed confirmation."""
    return zuno.account(account).transfer(source, target, amount, consent.ask_to_type(json=json))


@command(trade, "reconcile")
def trade_reconcile(zuno: Zuno, account: Account = None, json: Json = False) -> Answer:
    """Hold the ledger against the exchanges now, book what is missing, and say what is left to do."""
    return zuno.account(account).reconcile()


@command(trade, "adopt")
def trade_adopt(zuno: Zuno, account: AtExchange = LIVE_ACCOUNT, json: Json = False) -> Answer:
    """Book a deposit or withdrawal you made at the exchange, after a typed confirmation, and lift its lock."""
    return zuno.account(account).adopt(consent.ask_to_type(json=json))


@command(mandate, "grant")
async def mandate_grant(
    zuno: Zuno,
    symbols: Annotated[
        list[str] | None, option("--symbol --symbols", "SYMBOL", "Market; repeatable. Default: all of ZUNO_MARKETS.")
    ] = None,
    exchanges: Annotated[
        list[str] | None, option("--exchange", "NAME", "Venue, see `zuno markets`; repeatable.")
    ] = None,
    per_trade: Annotated[str, option("--margin-per-trade", "USD", "Maximum margin per trade.")] = "100",
    per_day: Annotated[str, option("--margin-per-day", "USD", "Maximum margin per day.")] = "300",
    daily_loss: Annotated[str, option("--daily-loss", "USD", "Daily loss at which no new trade is opened.")] = "50",
    lasts: Annotated[str, option("--for", "SPAN", "How long: 7d; at most 30d.")] = "7d",
    stops: Annotated[
        str,
        option(
            "--stops",
            "venue|watched",
            "Where stops are kept: venue (orders at the exchange) or watched (by this process, where it holds none).",
        ),
    ] = "venue",
    judge_fallback: Annotated[
        bool, flag("--judge-fallback", "Let rules open trades when the Judge's model fails.")
    ] = False,
    policy: Annotated[
        str,
        option("--policy", "record|seed", "seed: ZUNO_EV=seed is allowed, too."),
    ] = "record",
    sleeves: Annotated[
        list[str] | None,
        option("--sleeve", "NAME:SHARE:FALL", "Sleeve, its share, and its largest fall: trend:0.6:0.25; repeatable."),
    ] = None,
    account: AtExchange = LIVE_ACCOUNT,
    json: Json = False,
) -> View:
    """Grant a mandate, signed and expiring, after a typed confirmation. Live orders cite its hash."""
    desk = zuno.account(_check_granted(zuno, account))
    words = [word for symbol in symbols or () for word in symbol.split(",")]
    limits = (per_trade, per_day, daily_loss, lasts, stops)
    mandate = desk.build_mandate(
        words, exchanges or [], *limits, judge_fallback=judge_fallback, policy=policy, sleeves=sleeves or []
    )
    return await desk.grant_mandate(mandate, consent.ask_to_type(json=json))


@command(mandate, "show")
def mandate_show(zuno: Zuno, account: AtExchange = LIVE_ACCOUNT) -> Answer:
    """Show the mandate: symbols, exchanges, limits, expiry, hash."""
    return zuno.account(_check_granted(zuno, account)).mandate()


@command(mandate, "revoke")
def mandate_revoke(zuno: Zuno, account: AtExchange = LIVE_ACCOUNT) -> Answer:
    """Revoke the mandate: no live order is placed under it any more."""
    return zuno.account(_check_granted(zuno, account)).revoke_mandate()


def _ask(account: str | None, *, json: bool, yes: bool) -> Confirm:
    """With real money a word is typed, whatever `--yes` says."""
    return consent.ask_to_type(json=json, yes=yes and account_mode(account or PAPER_ACCOUNT) != "live")


def _check_granted(zuno: Zuno, account: str) -> str:
    if account_mode(zuno.find_account(account) or account) == "paper":
        raise UsageError(f"A mandate is for an account at an exchange, as {LIVE_ACCOUNT} is; paper needs none.")
    return account
