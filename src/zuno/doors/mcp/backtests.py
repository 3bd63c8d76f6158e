"""Backtests that an assistant asks for: short enough for one call, and the answer says what was cut."""

import asyncio
from typing import Final

from zuno.doors.mcp.services import AssistantServices
from zuno.kernel.errors import Unavailable
from zuno.lab.trading.question import read_question
from zuno.lab.trading.views import TradeLabView
from zuno.lab.workers import StoppedEarly

MOST_DAYS: Final = 30
MOST_MARKETS: Final = 2
SECONDS: Final = 40.0
"""Below the minute after which clients cut a call off."""
ARMS: Final = "debate,hold,sma,random"


async def run_backtest(services: AssistantServices, symbols: str, days: int, arms: str) -> TradeLabView:
    """The last days of this home's recording, by the desk's rules: no model is asked."""
    asked = [name for name in symbols.split(",") if name.strip()] or list(services.markets)
    question = read_question(
        None, ",".join(asked[:MOST_MARKETS]), f"{min(days, MOST_DAYS)}d", None, arms, markets=services.markets
    )
    notes = [f"cut: {MOST_MARKETS} of {len(asked)} markets"] if len(asked) > MOST_MARKETS else []
    notes += [f"cut: the last {MOST_DAYS} of {days} days"] if days > MOST_DAYS else []
    played: list[str] = []
    stop = asyncio.Event()
    timer = asyncio.get_running_loop().call_later(SECONDS, stop.set)
    try:
        lab = services.lab().trade
        view = await lab.compare(question, 1, lambda done, total: played.append(f"{done} of {total}"), stop)
    except StoppedEarly:
        raise Unavailable(
            f"No arm came to its end within {SECONDS:g} s; ask for less, or run `{question.command}`."
        ) from None
    finally:
        timer.cancel()
    if view.stopped:
        notes.append(f"cut: after {SECONDS:g} s, {played[-1]} decisions; `{question.command}` runs all")
    return view.model_copy(update={"notes": (*notes, *view.notes)})
