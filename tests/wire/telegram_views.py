"""One of every view that a chat shows: of a paper account with a past, of a cycle, of the simulated chain."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.wire.account_home import write_account_home
from tests.wire.told import held, told, unfinished
from zuno.doors.cli import demo_tour
from zuno.kernel.view import View
from zuno.lp.model.debate import Thought
from zuno.lp.service.recommend import Waiting
from zuno.settings import Settings
from zuno.trading.service.runs_view import RunsView, run_view, why_view
from zuno.wiring.application import Application


@dataclass
class ChatViews:
    views: dict[str, View] = field(default_factory=dict)
    thoughts: list[Thought] = field(default_factory=list)


async def collect_views(folder: Path) -> ChatViews:
    (folder / "sim").mkdir()
    found = ChatViews(_views_of_runs())
    await write_account_home(folder / "account")
    found.views |= await _views_of_account(folder / "account")
    await _add_views_of_chain(folder / "sim", found)
    return found


def _views_of_runs() -> dict[str, View]:
    return {
        "run": run_view(told()),
        "run_held": run_view(told(ruling=held())),
        "run_why": why_view(told(ruling=held())),
        "run_unfinished": why_view(unfinished()),
        "runs": RunsView(
            runs=(
                told().line,
                told(ruling=held()).line,
                unfinished().line,
            )
        ),
    }


async def _views_of_account(home: Path) -> dict[str, View]:
    zuno = Application(Settings(home=home, recording="own"))
    try:
        account = zuno.account()
        return {
            "status": await account.status(),
            "trade_positions": await account.positions(),
            "orders": await account.orders(),
            "fills": await account.fills(),
            "trades": await account.trades(),
            "balance": await account.balance(),
            "profit": await account.profit(),
            "profit_by_day": await account.profit("day"),
            "performance": (await account.performance())[0],
            "locks": await account.locks(),
            "mandate": await account.mandate(),
            "evaluation": await zuno.learning().evaluate(),
            "calibration": (await zuno.learning().calibration())[0],
            "vetoes": await zuno.learning().vetoes(),
            "memories": await zuno.memory().list(),
            "memory_search": await zuno.memory().search("range with flat funding"),
            "lessons": await zuno.memory().lessons(),
            "logs": await zuno.logs().show(),
            "action": await account.pause(),
        }
    finally:
        await zuno.close()


async def _add_views_of_chain(home: Path, found: ChatViews) -> None:
    zuno, views = Application(Settings(home=home)), found.views
    try:
        desk = zuno.lp("sim")
        views["inspect"] = await desk.inspect("1")
        await demo_tour.opening(zuno)
        await zuno.monitor().once()
        views["positions"] = await desk.list_positions()
        views["alerts"] = await zuno.alerts().list(everything=True)
        heard: list[Thought | Waiting] = []
        views["plan"] = plan = await demo_tour.argument(zuno, heard.append)
        found.thoughts += [event for event in heard if isinstance(event, Thought)]
        views["plan_why"] = await zuno.archive().why(plan.plan_id)
        views["replay"] = await zuno.archive().replay(plan.plan_id)
        views["pnl"] = await desk.pnl("1", None)
        views["whatif"] = await desk.whatif("1", "3500")
        views["simulation"] = await zuno.execution().simulate(plan.plan_id)
        views["execution"] = (await demo_tour.carried_out(zuno)).execution
        views["portfolio"] = await zuno.portfolio().portfolio()
        views["plans"] = await zuno.archive().plans()
    finally:
        await zuno.close()
