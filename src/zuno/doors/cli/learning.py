"""What was learned from closed trades: `zuno trade evaluate`, `calibration`, `vetoes`, and `zuno memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from zuno.doors.cli.account import Account
from zuno.doors.cli.options import Answer, Json, argument, command, group, number, option
from zuno.doors.cli.trade import Out, save_picture, trade

if TYPE_CHECKING:
    from zuno.doors.zuno import Zuno
    from zuno.kernel.view import View


AsOf = Annotated[str | None, option("--as-of", "TIME", "What was known at a moment (default: everything), as in 7d.")]


@command(trade, "evaluate")
def trade_evaluate(zuno: Zuno, account: Account = None) -> Answer:
    """Score trades, vetoes and cuts that resolved since the last run."""
    return zuno.learning(account).evaluate()


@command(trade, "calibration")
async def trade_calibration(
    zuno: Zuno, as_of: AsOf = None, out: Out = None, account: Account = None, json: Json = False
) -> View:
    """Show the calibration of each agent's probabilities: Brier, skill, ECE by regime, with a picture."""
    return save_picture(zuno, *await zuno.learning(account).calibration(as_of), "calibration", out, json)


@command(trade, "vetoes")
def trade_vetoes(zuno: Zuno, as_of: AsOf = None, account: Account = None) -> Answer:
    """Show what vetoes and cuts of expectancy, risk officer and leverage guard saved or cost, by rule."""
    return zuno.learning(account).vetoes(as_of)


memory = group("Memory of the trading desk: post-mortems of closed trades and lessons drawn from them.")

MemoryId = Annotated[str, argument("ID", "Memory id, see `zuno memory list`.")]


@command(memory, "list")
def memory_list(
    zuno: Zuno,
    symbol: Annotated[str | None, option("--symbol", "SYMBOL", "Market, one of ZUNO_MARKETS.")] = None,
    lines: Annotated[int, number("--lines -n", "N", "Show the newest N.")] = 50,
) -> Answer:
    """List post-mortems of closed trades, newest first."""
    return zuno.memory().list(lines, symbol)


@command(memory, "show")
def memory_show(zuno: Zuno, memory_id: MemoryId) -> Answer:
    """Show a post-mortem: setup, outcome, future constraint, realised path."""
    return zuno.memory().show(memory_id)


@command(memory, "search")
def memory_search(
    zuno: Zuno,
    query: Annotated[str, argument("QUERY", 'Words, such as "BTC long stopped out".')],
    lines: Annotated[int, number("--lines -n", "N", "Show the best N, at most 20.")] = 5,
) -> Answer:
    """Find post-mortems by words of symbol, side, exit, outcome or setup."""
    return zuno.memory().search(query, lines)


@command(memory, "lessons")
def memory_lessons(zuno: Zuno) -> Answer:
    """List lessons with their cases and state: active, contradicted, expired or withdrawn."""
    return zuno.memory().lessons()


@command(memory, "forget")
def memory_forget(zuno: Zuno, memory_id: MemoryId) -> Answer:
    """Forget a post-mortem. The journal and the agents' calibration keep the trade; it is never recalled again."""
    return zuno.memory().forget(memory_id)
