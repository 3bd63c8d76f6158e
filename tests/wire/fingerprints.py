"""What a machine computes, in digests: `python fingerprints.py HOME` prints them as one JSON object.

Run under other settings of numpy and of its linear algebra it must print the same; `series` and `touch` are frozen
besides, for every machine there is.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from tests.wire.cycling import SEED, Desk, market, rows
from tests.wire.desk_bundles import World, bundle_of
from tests.wire.desk_roles import ROLES, argued
from zuno.adapters.venues.synthetic.path import END
from zuno.kernel.units import Millis
from zuno.markets.market import Symbol
from zuno.trading.agents.case import build_case
from zuno.trading.data.bundle_builder import build_bundle
from zuno.trading.measure.portable import exp, log
from zuno.trading.model.bundle import bundle_hash
from zuno.trading.model.known import Missing
from zuno.trading.model.market import Mode, Side
from zuno.trading.rules.expectancy import TouchOdds, first_touch

BUSY = World(drift=-0.01, lean=-0.8, whales=-0.5, stocks=-0.03)
PRICE = 80_000.0
NEWEST = 100
"""Rows of a series that are looked at: a walk's last price rests on all its steps."""


def digest(value: Any) -> str:
    return sha256(repr(value).encode()).hexdigest()


def series() -> str:
    values = np.linspace(0.001, 7.0, 10_007)
    return sha256(log(values).astype("<f8").tobytes() + exp(values).astype("<f8").tobytes()).hexdigest()


def touch() -> TouchOdds:
    inputs = build_case(bundle_of(BUSY)).inputs
    assert not isinstance(inputs.bars, Missing)
    found = first_touch(inputs.bars, PRICE, 0.98 * PRICE, 1.03 * PRICE, Side.LONG, 72, inputs.seed)
    assert isinstance(found, TouchOdds)
    return found


async def computed(home: Path) -> dict[str, Any]:
    world = rows(SEED, thin=True)
    store = await market(SEED, thin=True)
    case = build_case(await build_bundle(store, Symbol("BTCUSDT"), Mode.SWING, Millis(END)))
    desk = Desk(home, store)
    run = await desk.cycles.run("BTCUSDT")
    await desk.close()
    debate = await argued(bundle_of(BUSY))
    return {
        "series": series(),
        "world": digest([(str(batch.series), batch.rows[-NEWEST:]) for batch in world]),
        "touch": asdict(touch()),
        "bundle": run.bundle,
        "run": run.hash,
        "features": digest((case.features, case.context, case.menu)),
        "argued": digest((debate.decision, debate.draft, [debate.twin(role) for role in ROLES])),
        "by hand": bundle_hash(debate.case.bundle),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(computed(Path(sys.argv[1])))))
