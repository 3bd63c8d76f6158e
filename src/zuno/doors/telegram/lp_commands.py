"""Commands about liquidity: positions, portfolio, plans, what-if, PnL, alerts, and the debate followed live."""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Final

from zuno.doors.telegram.commands import ChatRequest, Command, Level
from zuno.doors.telegram.layout import bold, join, paragraphs, text, warning
from zuno.doors.telegram.render import render
from zuno.doors.telegram.reply import Reply
from zuno.doors.zuno import Zuno
from zuno.kernel.errors import Refused, UsageError, ZunoError
from zuno.lp.model.ballot import RiskProfile
from zuno.lp.model.debate import Role, Thought
from zuno.lp.service.recommend import Waiting

PROFILES: Final = frozenset(RiskProfile)
CREATE: Final = "create"
MOST_PLANS: Final = 10
MOST_THOUGHTS: Final = 6
"""Of a debate that goes on, the newest that are shown."""
_THOUGHT_CHARS: Final = 240
MOST_EVENTS: Final = 10
"""Of past alerts in a message."""


async def show_positions(asked: ChatRequest, zuno: Zuno) -> Reply:
    ids = [word for word in asked.words if word[0].isdigit()]
    chain = _read_chain([word for word in asked.words if word not in ids], "/positions [ID] [CHAIN]")
    if len(ids) == 1:
        return render(await zuno.lp(chain).inspect(ids[0]))
    return render(await zuno.lp(chain).list_positions(ids))


async def show_portfolio(asked: ChatRequest, zuno: Zuno) -> Reply:
    if len(asked.words) > 1:
        raise UsageError("Write `/portfolio [WINDOW]`, as in `/portfolio 7d`.")
    return render(await zuno.portfolio().portfolio(window=asked.words[0] if asked.words else "7d"))


async def show_plan(asked: ChatRequest, zuno: Zuno) -> Reply:
    match asked.words:
        case ():
            return render(await zuno.archive().plans(MOST_PLANS))
        case (plan,):
            return await _show_plan(zuno, plan)
        case (plan, "simulate"):
            return render(await zuno.execution().simulate(plan))
        case (plan, "status"):
            return render(await zuno.execution().status(plan))
        case (plan, "replay"):
            return render(await zuno.archive().replay(plan))
        case _:
            raise UsageError("Write `/plan [ID] [simulate|status|replay]`.")


async def _show_plan(zuno: Zuno, plan: str) -> Reply:
    try:
        return render(await zuno.archive().plan(plan))
    except Refused:  # made without a debate: there is only how far it has come
        return render(await zuno.execution().status(plan))


async def show_whatif(asked: ChatRequest, zuno: Zuno) -> Reply:
    if not 1 <= len(asked.words) <= 3:
        raise UsageError("Write `/whatif ID [PRICE] [CHAIN]`, as in `/whatif 1 3,500`.")
    position, *rest = asked.words
    price = rest.pop(0) if rest and rest[0].lstrip("+-")[:1].isdigit() else None
    chain = _read_chain(rest, "/whatif ID [PRICE] [CHAIN]")
    return render(await zuno.lp(chain).whatif(position, price))


async def show_pnl(asked: ChatRequest, zuno: Zuno) -> Reply:
    if not 1 <= len(asked.words) <= 3:
        raise UsageError("Write `/pnl ID [SINCE] [CHAIN]`, as in `/pnl 1 7d`.")
    position, *rest = asked.words
    since = rest.pop(0) if rest and rest[0][0].isdigit() else None
    return render(await zuno.lp(_read_chain(rest, "/pnl ID [SINCE] [CHAIN]")).pnl(position, since))


async def recommend(asked: ChatRequest, zuno: Zuno) -> AsyncIterator[Reply]:
    """Follow the debate in one message, then send the plan that came of it."""
    if not asked.words:
        raise UsageError("Write `/recommend ID [CHAIN] [PROFILE]`, or `/recommend create 2 ETH safely`.")
    position, *rest = asked.words
    if position.lower() == CREATE:
        title, argue = "Argues a new position", partial(zuno.advice().create, " ".join(rest))
    else:
        profile = next((word.lower() for word in rest if word.lower() in PROFILES), None)
        chain = _read_chain([word for word in rest if word.lower() not in PROFILES], "/recommend ID [CHAIN] [PROFILE]")
        title = f"Argues position {position}"
        argue = partial(zuno.advice().rebalance, position, chain=chain, profile=profile)
    thoughts: list[Thought] = []
    message = asked.live.follow()

    def hear(event: Thought | Waiting) -> None:
        if isinstance(event, Waiting):
            message.show(show_debate_progress(title, thoughts, event))
        else:  # told before whoever is asked next
            thoughts.append(event)

    message.show(show_debate_progress(title, thoughts))
    try:
        plan = await argue(listen=hear)
    except ZunoError as error:
        await message.finish(f"{show_debate_progress(title, thoughts)}\n{warning(str(error))}")
        raise
    yield render(plan)
    await message.finish(show_debate_progress(title, thoughts))


def _cut(line: str) -> str:
    return line if len(line) <= _THOUGHT_CHARS else f"{line[: _THOUGHT_CHARS - 1]}…"


def show_debate_progress(title: str, thoughts: Sequence[Thought], waiting: Waiting | None = None) -> str:
    """The newest thoughts and, as long as it goes on, whom it waits for, for a message that is edited."""
    newest = [thought for thought in thoughts if thought.role is not Role.CLI][-MOST_THOUGHTS:]
    lines = [f"{bold(f'{thought.role} {thought.round}')} {text(_cut(thought.text))}" for thought in newest]
    return paragraphs(bold(title), join(*lines), "" if waiting is None else f"⏳ {text(str(waiting))}")


async def show_alerts(asked: ChatRequest, zuno: Zuno) -> Reply:
    if asked.words not in ((), ("all",)):
        raise UsageError("Write `/alerts`, or `/alerts all` for what happened.")
    view = await zuno.alerts().list(everything=bool(asked.words))
    newest = None if view.events is None else view.events[:MOST_EVENTS]
    return render(view.model_copy(update={"events": newest}))


async def acknowledge(asked: ChatRequest, zuno: Zuno) -> Reply:
    if len(asked.words) != 1:
        raise UsageError("Write `/ack ALERT`; `/alerts` lists them.")
    return render(await zuno.alerts().ack(asked.words[0]))


async def snooze(asked: ChatRequest, zuno: Zuno) -> Reply:
    if len(asked.words) != 2:
        raise UsageError("Write `/snooze ALERT SPAN`, as in `/snooze alert_0123456789ab 6h`.")
    return render(await zuno.alerts().snooze(*asked.words))


def _read_chain(words: list[str], usage: str) -> str | None:
    if len(words) > 1:
        raise UsageError(f"Write `{usage}`.")
    return words[0] if words else None


_RECOMMEND: Final = "Let the agents argue about a position; it moves nothing."
COMMANDS = (
    Command("positions", "[ID] [CHAIN]", "Show liquidity positions and their ranges.", Level.LOOK, show_positions),
    Command("portfolio", "[WINDOW]", "Show worth, fees and APR of all liquidity.", Level.LOOK, show_portfolio),
    Command("recommend", "ID [CHAIN] [PROFILE] | create WISH", _RECOMMEND, Level.OWNER, recommend, takes_long=True),
    Command("plan", "[ID] [simulate|status|replay]", "List plans, or show one.", Level.LOOK, show_plan),
    Command("whatif", "ID [PRICE] [CHAIN]", "Show a position at another price.", Level.LOOK, show_whatif),
    Command("pnl", "ID [SINCE] [CHAIN]", "Show where a position's money went.", Level.LOOK, show_pnl),
    Command("alerts", "[all]", "List alerts and your levels.", Level.LOOK, show_alerts),
    Command("ack", "ALERT", "Acknowledge an alert.", Level.OWNER, acknowledge),
    Command("snooze", "ALERT SPAN", "Silence an alert for a while.", Level.OWNER, snooze),
)
