"""`zuno strategy` commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from zuno.doors.cli.options import argument, command, flag, group, option
from zuno.kernel.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View

strategy = group("Strategies: what each sleeve of the account would hold, and why; your own in shadow.")

Name = Annotated[str, argument("NAME", "trend or cash-carry.")]
Own = Annotated[str, argument("NAME", "Name of your own: small letters, digits, hyphens.")]
AsOf = Annotated[str | None, option("--as-of", "T", "Point in time: 7d, 2025-12-24T12:00, unix seconds or ms.")]
Account = Annotated[str | None, option("--account", "NAME", "Another account (default: the market's own).")]


@command(strategy, "list")
def strategy_list(zuno: Zuno, account: Account = None) -> Awaitable[View]:
    """List strategies with their rules and the account's share of each."""
    return zuno.strategies(account).list()


@command(strategy, "show")
def strategy_show(zuno: Zuno, name: Name, as_of: AsOf = None, account: Account = None) -> Awaitable[View]:
    """Show a strategy's rule, and what it would hold now and why."""
    return zuno.strategies(account).show(name, as_of)


@command(strategy, "targets")
def strategy_targets(zuno: Zuno, as_of: AsOf = None, account: Account = None) -> Awaitable[View]:
    """Show what every sleeve would hold, why, and what a minimum order prevents."""
    return zuno.strategies(account).targets(as_of)


@command(strategy, "add")
def strategy_add(
    zuno: Zuno,
    name: Own,
    file: Annotated[str, option("--file", "FILE", "Python file with a function targets(view).")] = "",
    csv: Annotated[str, option("--csv", "FILE", "CSV file of time,market,weight.")] = "",
    webhook: Annotated[bool, flag("--webhook", "Signals that come to ZUNO_WEBHOOK_PORT.")] = False,
) -> Awaitable[View]:
    """Add a strategy of your own; it is asked once a day in shadow and holds nothing."""
    from zuno.trading.model.own_strategies import StrategyForm

    chosen = [form for form, given in zip(StrategyForm, (file, csv, webhook), strict=True) if given]
    if len(chosen) != 1:
        raise UsageError("Give one of --file, --csv and --webhook.")
    return zuno.own_strategies().add(name, chosen[0], file or csv)


@command(strategy, "remove")
def strategy_remove(zuno: Zuno, name: Own) -> Awaitable[View]:
    """Ask a strategy of your own no more."""
    return zuno.own_strategies().remove(name)


@command(strategy, "shadow")
def strategy_shadow(zuno: Zuno, name: Own) -> Awaitable[View]:
    """Show the shadow of a strategy of your own: return, fall, Sharpe, costs; it is asked first if it is due."""
    return zuno.own_strategies().shadow(name)
