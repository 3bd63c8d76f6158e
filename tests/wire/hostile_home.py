"""A home in which strangers wrote whatever a stranger can: token names, models' words, memories, lessons, log lines,
entries of the journal and a report of the lab, all of them made to be run by a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.wire.debating import scout_says, shape, strategist_says
from tests.wire.model_server import Heard, chat, serving
from tests.wire.post_mortems import post_mortem
from zuno.adapters.chain import world
from zuno.adapters.log_file import log_path
from zuno.adapters.store.report_files import FolderOfReports
from zuno.journal.port import Author
from zuno.lab.reports import LabReport, LabReports
from zuno.settings import Settings
from zuno.trading.model.market import Side
from zuno.trading.model.memory import LESSON, POST_MORTEM, Lesson, Verdict
from zuno.wiring.application import Application

FLAG = "hurt"
"""What every one of these would set on a browser's window."""
IMAGE = f"<img src=x onerror={FLAG}=true>"
SCRIPT = f"</script><script>{FLAG}=true</script>"
LINK = f"javascript:{FLAG}=true"
ATTRIBUTE = f"\"'><svg onload={FLAG}=true>"
SPOKEN = f"It looks so because <svg onload={FLAG}=true> was seen."
"""What a desk lets a model say: nothing of it repeats a stranger's name, and no letter is invisible."""
OVERRIDE = "\u202egnp.exe\u2066 \u200b"
"""Letters that turn the reading direction, and one that cannot be seen."""
TEXTS = (IMAGE, SCRIPT, LINK, ATTRIBUTE, OVERRIDE)
ALL = " ".join(TEXTS)
TOKEN = IMAGE
REPORT = "lp-0123456789ab"
PAGE = f"<!doctype html><title>{IMAGE}</title><h1>A report</h1>{IMAGE}{SCRIPT}<a href='{LINK}'>on</a>"


@dataclass(frozen=True)
class HostileHome:
    plan_id: str
    """Of a pool with a hostile token, argued by hostile models."""
    run_id: str | None
    """None without a market."""
    memory_id: str
    report_id: str


async def write_hostile_home(home: Path) -> HostileHome:
    """A market in `home/market` is argued about too."""
    async with serving(_answer) as server:
        model = f"{server.origin}/v1#hostile"
        zuno = Application(Settings(home=home, agent_model=model, model_judge=model, model_macro=model))
        with _rename_token():
            plan = await zuno.advice().rebalance("1")
        run_id = None
        if (home / "market").exists():
            run_id = "run_" + "0" * 15 + "1"
            await zuno.cycles().run("BTC", chart=False, run_id=run_id)
        memory_id = await _write_memories(zuno)
        await zuno.close()
    log = log_path(home)
    log.parent.mkdir(exist_ok=True)
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    with log.open("a", encoding="utf-8") as lines:
        lines.writelines(f"{now} WARNING {IMAGE.replace(' ', '')} {text}\n" for text in TEXTS)
    report = LabReport(
        id=REPORT, kind="lp", title=ALL, command=f"zuno lab lp {ALL}", partial=False, body={"text": ALL, IMAGE: 1}
    )
    LabReports(FolderOfReports(home / "lab")).save(report, PAGE)
    return HostileHome(plan.plan_id, run_id, memory_id, REPORT)


@contextmanager
def _rename_token() -> Iterator[None]:
    """The world's WETH as its contract might call it: what is argued meanwhile has that name in the journal."""
    name = world.WETH.symbol
    object.__setattr__(world.WETH, "symbol", TOKEN)
    try:
        yield
    finally:
        object.__setattr__(world.WETH, "symbol", name)


def _answer(heard: Heard) -> bytes:
    """Well-formed for those who look at a pool and propose a range, with a hostile text in every field; to everybody
    else the texts alone."""
    asked = heard.body["messages"][0]["content"]
    if "the Scout" in asked:
        return chat(scout_says(SPOKEN))
    if "the Strategist" in asked:
        return chat(strategist_says(shape(120, 0, SPOKEN), shape(90, 0, SPOKEN)))
    return chat(ALL)


async def _write_memories(zuno: Application) -> str:
    journal = await zuno._open_journal()
    memories = [
        post_mortem(number, setup=f"{ALL} {number}", outcome=ALL, constraint=ALL, verdict=Verdict.FAILURE)
        for number in range(1, 6)
    ]
    for memory in memories:
        await journal.append(kind=POST_MORTEM, author=Author("evaluator"), payload=memory, request_id=memory.id)
    lesson = Lesson(
        id=f"les_{1:016x}",
        origin=memories[0].origin,
        written=memories[-1].closed,
        expires=memories[-1].closed + 86_400_000 * 365,
        condition=ALL,
        side=Side.LONG,
        verdict=Verdict.FAILURE,
        text=ALL,
        cases=tuple(memory.id for memory in memories),
        source="model",
    )
    await journal.append(kind=LESSON, author=Author("evaluator"), payload=lesson, request_id=lesson.id)
    await journal.append(kind="note", author=Author("test"), payload={"text": ALL})
    return memories[0].id
