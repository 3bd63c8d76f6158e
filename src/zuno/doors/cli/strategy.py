"""`zuno strategy` commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from zuno.doors.cli.options import Answer, argument, command, flag, group, option
from zuno.doors.cli.trade import AsOf
from zuno.kernel.errors import UsageError

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno

strategy = group("Strategies: what each sleeve of the account would hold, and why; your own in shadow.")

Name = Annotated[str, argument("NAME", "trend or cash-carry.")]
Own = Annotated[str, argument("NAME", "Name of your own: small letters, digits, hyphens.")]
Account = Annotated[str | None, option("--account", "NAME", "Another account (default: the market's own).")]


@command(strategy, "list")
def strategy_list(zuno: Zuno, account: Account = None) -> Answer:
    """List strategies with their rules and the account's share of each."""
    return zuno.strategies(account).list()


@command(strategy, "show")
def strategy_show(zuno: Zuno, name: Name, as_of: AsOf = None, account: Account = None) -> Answer:
    """Show a strategy's rule, and what it would hold now and why."""
    return zuno.strategies(account).show(name, as_of)


@command(strategy, "targets")
def strategy_targets(zuno: Zuno, as_of: AsOf = None, account: Account = None) -> Answer:
    """Show what every sleeve would hold, why, and what a minimum order prevents."""
    return zuno.strategies(account).targets(as_of)


@command(strategy, "add")
def strategy_add(
    zuno: Zuno,
    name: Own,
    file: Annotated[str, option("--file", "FILE", "Python file with a function targets(view).")] = "",
    csv: Annotated[str, option("--csv", "FILE", "CSV file of time,market,weight.")] = "",
    webhook: Annotated[bool, flag("--webhook", "Signals that come to ZUNO_WEBHOOK_PORT.")] = False,
) -> Answer:
    """Add a strategy of your own; it is asked once a day in shadow and holds nothing."""
    from zuno.trading.model.own_strategies import StrategyForm

    chosen = [form for form, given in zip(StrategyForm, (file, csv, webhook), strict=True) if given]
    if len(chosen) != 1:
        raise UsageError("Give one of --file, --csv and --webhook.")
    return zuno.own_strategies().add(name, chosen[0], file or csv)


@command(strategy, "remove")
def strategy_remove(zuno: Zuno, name: Own) -> Answer:
    """Ask a strategy of your own no more."""
    return zuno.own_strategies().remove(name)


@command(strategy, "shadow")
def strategy_shadow(zuno: Zuno, name: Own) -> Answer:
    """Show the shadow of a strategy of your own: return, fall, Sharpe, costs; it is asked first if it is due."""
    return zuno.own_strategies().shadow(name)
