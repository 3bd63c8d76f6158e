"""Decided bytes and the edition they belong to: whoever changes the bytes raises the edition and adds a row.

A row holds two hashes of one fixed debate or run: of what was decided, and of what models were asked (prompts, schemas,
facts). `PYTHONPATH=. python tests/unit/lp/service/test_editions.py` prints the rows of today.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import pytest

from tests.paths import GOLDEN
from tests.wire.cycling import ROLES, Desk, Talkative, market
from tests.wire.debating import Table, arbiter_says, observed, outcome_of, scout_says, shaken, surveyed
from tests.wire.fakes.model import Script
from tests.wire.remembered import lesson, memory, slots
from zuno.llm.port import Attempt
from zuno.lp.model import ballot
from zuno.lp.model.ballot import RiskProfile
from zuno.markets.market import Symbol
from zuno.trading.agents.case import Case
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.measure.features import measure_features
from zuno.trading.model import cycle
from zuno.trading.model.bundle import Slot
from zuno.trading.model.market import Mode, Side
from zuno.trading.model.memory import Verdict
from zuno.trading.rules.price_menu import build_price_menu
from zuno.trading.service.features import TradingDesk

pytestmark = pytest.mark.slow

ROWS = GOLDEN / "editions"


def hash_texts(*texts: str) -> str:
    return sha256("\n".join(texts).encode()).hexdigest()


def hash_asked(attempts: list[Attempt]) -> str:
    return hash_texts(*sorted(f"{asked.role} {asked.round} {asked.attempt} {asked.request}" for asked in attempts))


async def lp_row(folder: Path) -> dict[str, str]:
    """A rebalance that is argued to a deadlock, a create, and one by the rules alone. Some models say nothing usable:
    then both what they are asked and what the rules say in their place is in the row."""
    calm = await observed(folder / "sim")
    rough = shaken(calm, Fraction(6, 5))
    useless: Script = lambda request: "{}"  # noqa: E731
    scripts = {"strategist": useless, "critic": useless}
    said = {"scout": lambda request: scout_says(), "arbiter": lambda request: arbiter_says(2)}
    argued = Table(folder / "argued", rough, {**scripts, **said})
    opened = Table(folder / "opened", await surveyed(folder / "sim", ("WETH", "0.5")), scripts)
    by_rule = Table(folder / "by_rule", rough)
    decided = [
        outcome_of(await argued.debate(max_rounds=0)),
        outcome_of(await opened.debate()),
        outcome_of(await by_rule.debate(RiskProfile.CONSERVATIVE)),
    ]
    assert {attempt.role for attempt in argued.attempts} == {"scout", "strategist", "critic", "arbiter"}
    return {"decided": hash_texts(*decided), "asked": hash_asked([*argued.attempts, *opened.attempts])}


async def recall_failures(case: Case) -> Sequence[Slot]:
    found = [memory(at, side, Verdict.FAILURE) for at, side in enumerate((Side.LONG, Side.LONG, Side.SHORT), 1)]
    return slots(found, [lesson(1, side, Verdict.FAILURE) for side in Side])


async def trading_row(folder: Path) -> dict[str, str]:
    """A run by the rules alone, one in which a model speaks for every role, and one by rules that remember failures."""
    store = await market(thin=True)
    moment = await TradingDesk(store, None, None).moment(Symbol("BTCUSDT"), None)  # type: ignore[arg-type]
    bundle = await build_bundle(store, Symbol("BTCUSDT"), Mode.SWING, moment.as_of)
    model = Talkative(build_price_menu(bundle, measure_features(bundle)), lambda request: 0)
    for name in ("argued", "by_rule", "learned"):
        (folder / name).mkdir()
    argued = Desk(folder / "argued", store, models=dict.fromkeys(ROLES, (model,)), recall=recall_failures)
    desks = (argued, Desk(folder / "by_rule", store), Desk(folder / "learned", store, recall=recall_failures))
    try:
        outcomes = [await desk.cycles.run("BTCUSDT") for desk in desks]
        told = await argued.cycles.record(outcomes[0].run_id)
    finally:
        for desk in desks:
            await desk.close()
    assert {attempt.role for attempt in told.attempts} == set(ROLES)
    return {"decided": hash_texts(*(outcome.hash for outcome in outcomes)), "asked": hash_asked(list(told.attempts))}


def check_row(name: str, edition: int, row: dict[str, str]) -> None:
    rows = json.loads((ROWS / f"{name}.json").read_text())
    assert list(rows) == [str(number) for number in range(1, edition + 1)], "a row for each edition, and none to come"
    assert rows[str(edition)] == row, f"decided bytes changed: raise the {name} desk's EDITION and add this row"


async def test_the_lp_desk_decides_what_its_edition_says(tmp_path: Path) -> None:
    check_row("lp", ballot.EDITION, await lp_row(tmp_path))


async def test_the_trading_desk_decides_what_its_edition_says(tmp_path: Path) -> None:
    check_row("trading", cycle.EDITION, await trading_row(tmp_path))


async def print_rows() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, edition, make in (("lp", ballot.EDITION, lp_row), ("trading", cycle.EDITION, trading_row)):
            home = Path(folder) / name
            home.mkdir()
            print(name, json.dumps({str(edition): await make(home)}, indent=1))


if __name__ == "__main__":
    asyncio.run(print_rows())
