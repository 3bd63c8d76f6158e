"""A node that lies while a plan is under way: every kind of transaction by everything it can lie about, and the most
that was signed. `python -m tests.wire.hostile_gas` prints the table."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.unit.lp.execute.conftest import Bench
from tests.unit.lp.execute.test_carrying import Full, Instead, begun
from zuno.adapters.keys.wallets import WatchOnly
from zuno.kernel.errors import Unavailable, ZunoError
from zuno.kernel.units import Wei
from zuno.lp.execute.context import Timeouts
from zuno.lp.model.plan_events import Action, StepHandedOut, StepSigned

GWEI = 10**9
HIGH = 2_000_000
"""Times the price, in gwei: what the node of the finding said."""
PATIENT = Timeouts(poll_interval=1, speed_up=30, patience=60)
SIGNED: dict[str, type[StepSigned] | type[StepHandedOut]] = {
    StepSigned.kind: StepSigned,
    StepHandedOut.kind: StepHandedOut,
}


@dataclass(frozen=True)
class Signed:
    """The most of what was signed or handed out once the node lied."""

    count: int = 0
    wei: int = 0
    """Gas at its highest fee."""
    tip: int = 0
    max_fee: int = 0
    approved: int = 0
    """What a unit of gas was approved at."""


class LyingNode:
    """The bench's node; from `lie` on it lies about one thing."""

    def __init__(self, bench: Bench, about: str) -> None:
        self.bench = bench
        self.about = about
        self.lies = False
        self.since = 0
        honest, pond = bench.hands, bench.pond
        self.changes: dict[str, Any] = {
            "chain": Instead(honest.chain, gas=self._gas),
            "writer": Instead(pond, estimate=self._estimate, wallet_state=self._wallet_state),
        }

    async def lie(self) -> None:
        self.lies = True
        self.since = len([entry async for entry in self.bench.journal.entries()])
        self.bench.pond.holding = self.about == "withheld, then tip"
        self.bench.pond.later = 10**6 if self.about == "head's time" else self.bench.pond.later

    async def _gas(self) -> Any:
        told = await self.bench.chain.gas()
        match self.about if self.lies else "":
            case "tip" | "withheld, then tip":
                return replace(told, priority_fee=Wei(told.priority_fee * HIGH))
            case "base fee":
                return replace(told, base_fee=Wei(told.base_fee * HIGH))
            case "a little more of both":  # below every bound of a unit: only the owner's caps are left
                base_fee, tip = Wei(told.base_fee * 11 // 10), Wei(told.priority_fee * 11 // 10)
                return replace(told, base_fee=base_fee, priority_fee=tip)
            case "data fee":
                return replace(told, l1_fee_per_byte=Wei(10**15))
            case _:
                return told

    async def _estimate(self, *asked: Any) -> int:
        units = await self.bench.pond.estimate(*asked)
        return 30_000_000 if self.lies and self.about == "gas estimate" else units

    async def _wallet_state(self, *asked: Any) -> Any:
        told = await self.bench.pond.wallet_state(*asked)
        if not (self.lies and self.about == "number"):
            return told
        return replace(told, nonce=told.nonce + 5, next_nonce=told.next_nonce + 5)


LIES = (
    "tip",
    "base fee",
    "a little more of both",
    "gas estimate",
    "data fee",
    "withheld, then tip",
    "head's time",
    "number",
)


async def _apply(bench: Bench, node: LyingNode, plan_id: str, **changes: Any) -> str:
    await node.lie()
    with suppress(ZunoError):
        await bench.apply(plan_id, **{**node.changes, **changes})
    return plan_id


async def _permit(bench: Bench, node: LyingNode) -> str:
    return await _apply(bench, node, await bench.approved(await bench.creation()))


async def _mint(bench: Bench, node: LyingNode) -> str:
    return await _apply(bench, node, await begun(bench))


async def _close(bench: Bench, node: LyingNode) -> str:
    return await _apply(bench, node, await bench.approved(await bench.told(Action.CLOSE)))


async def _collect(bench: Bench, node: LyingNode) -> str:
    return await _apply(bench, node, await bench.approved(await bench.told(Action.COLLECT)))


async def _second_half(bench: Bench, node: LyingNode) -> str:
    plan_id = await bench.approved(await bench.two_steps())
    with suppress(Unavailable):
        await bench.apply(plan_id, journal=Full(bench.journal, "step_signed", 1))
    return await _apply(bench, node, plan_id)


async def _speed_up(bench: Bench, node: LyingNode) -> str:
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    bench.pond.holding = True

    async def pass_time() -> None:
        await node.lie()
        bench.pond.holding = True
        bench.wait(31)

    bench.asleep = [pass_time, *[lambda: bench.wait(10)] * 9]
    with suppress(ZunoError):
        await bench.apply(plan_id, **node.changes, timeouts=replace(PATIENT, patience=120))
    return plan_id


async def _cancel(bench: Bench, node: LyingNode) -> str:
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    bench.pond.answers = [Unavailable("no answer")]
    with suppress(Unavailable):
        await bench.apply(plan_id)
    await node.lie()
    with suppress(ZunoError):
        await bench.cancel(plan_id, **node.changes)
    return plan_id


async def _cancel_by_itself(bench: Bench, node: LyingNode) -> str:
    """An allowance that no block had when its approval ended."""
    plan_id = await bench.approved(await bench.creation())
    bench.pond.answers = [Unavailable("no answer")]
    with suppress(Unavailable):
        await bench.apply(plan_id)
    bench.pond.later = 10_000
    return await _apply(bench, node, plan_id)


async def _past_its_deadline(bench: Bench, node: LyingNode) -> str:
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    bench.pond.answers = [Unavailable("no answer")]
    with suppress(Unavailable):
        await bench.apply(plan_id)
    bench.pond.later = 10_000
    return await _apply(bench, node, plan_id)


async def _revoke(bench: Bench, node: LyingNode) -> str:
    plan_id = await begun(bench)
    await node.lie()
    with suppress(ZunoError):
        await bench.cancel(plan_id, **node.changes)
    return plan_id


async def _hand_out(bench: Bench, node: LyingNode) -> str:
    plan_id = await bench.approved(await bench.told(Action.CLOSE))
    return await _apply(bench, node, plan_id, signer=WatchOnly(bench.wallet))


KINDS: dict[str, Callable[[Bench, LyingNode], Awaitable[str]]] = {
    "permit": _permit,
    "swap and mint": _mint,
    "close": _close,
    "collect": _collect,
    "second half": _second_half,
    "speed-up": _speed_up,
    "cancel": _cancel,
    "cancel of an allowance": _cancel_by_itself,
    "past its deadline": _past_its_deadline,
    "revocation": _revoke,
    "hand-out": _hand_out,
}
LEAVING = ("close", "speed-up", "cancel", "past its deadline", "hand-out")


async def sign_under_lies(folder: Path, kind: str, lie: str) -> Signed:
    """Let a plan go as far as it will while the node lies, and return the most that was signed meanwhile."""
    bench = Bench(folder)
    node = LyingNode(bench, lie)
    plan_id = await KINDS[kind](bench, node)
    entries = [entry async for entry in bench.journal.entries(request_id=plan_id) if entry.kind in SIGNED]
    draft = (await bench.book(plan_id)).draft
    assert draft is not None
    made = [SIGNED[entry.kind].model_validate(dict(entry.payload)) for entry in entries if entry.seq > node.since]
    return Signed(
        count=len(made),
        wei=max((each.gas * each.max_fee for each in made), default=0),
        tip=max((each.tip for each in made), default=0),
        max_fee=max((each.max_fee for each in made), default=0),
        approved=draft.gas.max_fee,
    )


def _print_table() -> None:
    print(
        f"most ETH signed in one transaction, of {HIGH:,} times the price where the node lies about a fee; -: nothing"
    )
    print(f"{'':24}" + "".join(f"{lie:>24}" for lie in LIES))
    for kind in KINDS:
        cells = []
        for lie in LIES:
            with TemporaryDirectory() as folder:
                done = asyncio.run(sign_under_lies(Path(folder), kind, lie))
            cells.append(f"{done.wei / 10**18:>24.6f}" if done.count else f"{'-':>24}")
        print(f"{kind:24}" + "".join(cells))


if __name__ == "__main__":
    _print_table()
