"""A killed account keeps every plan from beginning, and none that has begun from its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.lp.execute.test_carrying import begun, closing
from zuno.adapters.keys.wallets import WatchOnly
from zuno.adapters.kill_lock import KillLockFile
from zuno.kernel.accounts import HomeLock
from zuno.kernel.errors import Refused, Unavailable
from zuno.lp.model.plan import PlanState, StepState


@pytest.fixture
def lock(tmp_path: Path) -> KillLockFile:
    return KillLockFile(tmp_path / "home")


async def test_a_killed_account_keeps_every_plan_from_beginning(bench: Any, lock: KillLockFile) -> None:
    plan_id = await closing(bench)
    lock.lock("paper", "page")
    with pytest.raises(Refused, match="paper"):
        await bench.apply(plan_id, killed=lock.why_locked)
    assert bench.pond.taken == []
    lock.unlock("paper")
    assert (await bench.apply(plan_id, killed=lock.why_locked)).state is PlanState.CONFIRMED


async def test_in_a_restored_home_only_what_leaves_begins(bench: Any) -> None:
    lock = HomeLock("this home was restored", "zuno home unlock", "restored")
    adding = await bench.approved(await bench.two_steps())
    with pytest.raises(Refused, match="`zuno home unlock`"):
        await bench.apply(adding, killed=lambda: lock)
    assert bench.pond.taken == []
    assert (await bench.apply(await closing(bench), killed=lambda: lock)).state is PlanState.CONFIRMED


async def test_a_kill_while_a_plan_is_checked_comes_before_its_first_signature(bench: Any, lock: KillLockFile) -> None:
    plan_id = await closing(bench)
    asked: list[None] = []

    def look() -> HomeLock | None:
        asked.append(None)
        if len(asked) == 2:  # after the owner agreed, when everything was checked once more
            lock.lock("live", "terminal")
        return lock.why_locked()

    with pytest.raises(Refused, match="live"):
        await bench.apply(plan_id, killed=look)
    assert bench.pond.taken == []
    assert not (await bench.book(plan_id)).signed_anything


async def test_a_kill_while_the_owner_reads_keeps_a_plan_from_being_handed_out(bench: Any, lock: KillLockFile) -> None:
    plan_id = await closing(bench)

    def agree(*shown: object) -> bool:
        lock.lock("live", "terminal")
        return True

    gate = bench.gate(signer=WatchOnly(bench.wallet), killed=lock.why_locked)
    with pytest.raises(Refused, match="live"):
        await gate.apply(plan_id, agree, lambda line: None)
    assert not (await bench.book(plan_id)).begun
    with pytest.raises(Refused, match="live"):
        await gate.offer(await bench.book(plan_id))


async def test_the_rest_of_a_plan_that_has_begun_goes_on(bench: Any, lock: KillLockFile) -> None:
    plan_id = await begun(bench)
    lock.lock("paper", "page")
    book = await bench.apply(plan_id, killed=lock.why_locked)
    assert book.state is PlanState.CONFIRMED
    assert {step.state for step in book.steps} == {StepState.FINAL}


async def test_a_plan_that_has_begun_can_be_cancelled_though_an_account_is_killed(
    bench: Any, lock: KillLockFile
) -> None:
    plan_id = await closing(bench)
    bench.pond.holding = True
    bench.asleep = [lambda: lock.lock("live", "page")]
    with pytest.raises(Unavailable):
        await bench.apply(plan_id, killed=lock.why_locked)
    bench.asleep = [bench.pond.mine]
    book = await bench.gate(killed=lock.why_locked).cancel(plan_id, lambda line: None)
    assert book.state is PlanState.CANCELLED
