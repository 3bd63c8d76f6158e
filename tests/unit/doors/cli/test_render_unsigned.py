"""Transactions for another signer: what is copied from a screen is whole, however narrow the screen."""

from __future__ import annotations

import json

import pytest

from zuno.doors.cli.render import render
from zuno.kernel.units import Address, Millis
from zuno.lp.model.plan import Step, StepKind
from zuno.lp.plan.unsigned import build_unsigned, safe_batch
from zuno.lp.service.execution_view import UnsignedView

WALLET = Address("0x" + "ab" * 20)
STEP = Step(StepKind.BURN, Address("0x" + "cd" * 20), 0, bytes(range(256)) * 3, None)


def made(steps: int) -> UnsignedView:
    calls = [STEP] * steps
    return UnsignedView(
        plan_id="plan_0123456789ab",
        plan_hash="ab" * 32,
        approval_hash="cd" * 32,
        state="handed_out",
        chain="base",
        wallet=WALLET,
        transactions=tuple(
            build_unsigned(chain_id=8453, wallet=WALLET, nonce=7 + at, call=call, gas=500_000, max_fee=10**9, tip=10**8)
            for at, call in enumerate(calls)
        ),
        safe=safe_batch(
            chain_id=8453, wallet=WALLET, calls=calls, created_at=Millis(1), name="Zuno", description="burn"
        ),
        deadline=1,
        notes=("good until then",),
    )


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_what_is_copied_is_one_line(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    view = made(2)
    render(view)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    first, second, batch = map(json.loads, lines)
    assert [first, second] == [one.model_dump(by_alias=True) for one in view.transactions]
    assert view.safe is not None
    assert batch == json.loads(view.safe.model_dump_json(by_alias=True))


def test_the_rest_is_told_in_fields(capsys: pytest.CaptureFixture[str]) -> None:
    view = made(1)
    render(view)
    told = capsys.readouterr().out
    assert view.transactions[0].signing_hash in told
    assert "nonce" in told
    assert "good until then" in told
