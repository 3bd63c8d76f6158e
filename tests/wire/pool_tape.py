"""Events of a pool that nobody recorded: swaps, mints and burns drawn from a seed on our own pool."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

from zuno.adapters.imports.pool_events import EVENT_COLUMNS
from zuno.amm.model import Range
from zuno.amm.pool import Pool
from zuno.amm.ticks import MAX_SQRT_PRICE, MIN_SQRT_PRICE, sqrt_price_at_tick
from zuno.kernel.units import Seconds, Tick
from zuno.lp.model.tape import PoolTape, TapeChange, TapeSwap

OWNER = "0x" + "cc" * 20
START = 1_689_276_000
TICK = 200_400
EARLY = Range(Tick(TICK - 400), Tick(TICK + 400))
"""Of a position that is older than the tape and is burnt on it."""


def draw_tape(swaps: int, seed: int = 1, apart: int = 30, most: float = 40_000.0) -> PoolTape:
    """The pool is empty a thousand ticks away from where it begins."""
    dice = random.Random(seed)
    pool = Pool.initialize(500, 10, sqrt_price_at_tick(TICK))
    for number in range(-100, 100, 4):
        lower = TICK + 10 * number
        pool.modify_liquidity(OWNER, lower, lower + 40, dice.randint(10, 20) * 10**18, 0)
    pool.modify_liquidity(OWNER, EARLY.lower, EARLY.upper, 10**18, 7)
    events: list[TapeSwap | TapeChange] = []
    for number in range(swaps):
        at = Seconds(START + apart * number)
        if number % 40 == 20:
            held = Range(Tick(TICK - 100 * dice.randint(1, 5)), Tick(TICK + 100 * dice.randint(1, 5)))
            pool.modify_liquidity(OWNER, held.lower, held.upper, 5 * 10**17, number)
            events.append(TapeChange(at, held, 5 * 10**17))
        if number == swaps // 2:
            pool.modify_liquidity(OWNER, EARLY.lower, EARLY.upper, -(10**18), 7)
            events.append(TapeChange(at, EARLY, -(10**18)))
        falling = (dice.random() < 0.5) if abs(pool.slot0.tick - TICK) < 500 else pool.slot0.tick > TICK
        dollars = dice.uniform(100, most)
        came_in = int(dollars * 1e6) if falling else int(dollars / 2_000 * 1e18)
        pool.swap(falling, -came_in, MIN_SQRT_PRICE + 1 if falling else MAX_SQRT_PRICE - 1)
        in0, in1 = (came_in, 0) if falling else (0, came_in)
        events.append(TapeSwap(at, in0, in1, pool.slot0.sqrt_price_x96, pool.liquidity, pool.slot0.tick))
    return PoolTape(tuple(events))


def write_tape(folder: Path, tape: PoolTape) -> Path:
    lines = [",".join(EVENT_COLUMNS)]
    fields: list[object]
    for event in tape.events:
        moment = datetime.fromtimestamp(event.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
        if isinstance(event, TapeSwap):
            amounts = (event.in0 or -1, event.in1 or -1)
            fields = [moment, "swap", "", "", *amounts, event.sqrt_price_x96, event.liquidity, event.tick]
        else:
            kind = "mint" if event.delta > 0 else "burn"
            fields = [moment, kind, event.range.lower, event.range.upper, 0, 0, "", abs(event.delta), ""]
        lines.append(",".join(map(str, fields)))
    lines.append(f"{moment},collect,{TICK},{TICK + 10},1,1,,,")
    (folder / "events.csv").write_text("\n".join(lines) + "\n")
    return folder
