"""`zuno lab lp` as a person runs it, on minutes drawn from a seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wire.commands import run_zuno
from tests.wire.pool_minutes import draw_minutes, write_minutes

HOURS = 168 + 26


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_minutes(tmp_path_factory.mktemp("minutes"), draw_minutes(60 * HOURS, step=18))


def test_arms_over_the_same_hours_are_explained_whatever_the_workers(data: Path, tmp_path: Path) -> None:
    words = ["lab", "lp", "--data", str(data), "--width", "2", "--every", "6", "--json"]
    done = run_zuno(tmp_path, *words, "--workers", "1")
    assert done.code == 0, done.err
    view = done.document
    assert (view["hours"], view["stopped"], view["repairs"]["rows"]) == (26, False, 60 * HOURS)
    arms = {arm["arm"]: arm for arm in view["arms"]}
    assert list(arms) == ["hold", "passive", "reset", "debate"]
    for arm in arms.values():
        assert arm["residual"] == 0
        told = arm["fees"] + arm["priceEffect"] - arm["divergenceLoss"] - arm["gas"] - arm["swapCost"]
        assert told == pytest.approx(arm["netPnlUsd"], abs=1e-5)
    assert (arms["hold"]["fees"], arms["hold"]["vsHold"], arms["hold"]["gas"]) == (0, None, 0)
    assert arms["passive"]["timeInRange"] == 1
    assert arms["passive"]["fees"] > 0 < arms["passive"]["gas"]
    assert arms["debate"]["decisions"] == 4
    again = run_zuno(tmp_path, *words, "--workers", "2")
    assert again.out == done.out
    shown = run_zuno(tmp_path, *words[:-1], "--arms", "hold,passive").out
    assert "passive" in shown


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--arms", "hodl"], 2),
        (["--capital", "5"], 2),
        (["--every", "0"], 2),
        (["--width", "NaN"], 2),
        (["--gas-gwei", "-1"], 2),
        (["--profile", "yolo"], 2),
        (["--workers", "0"], 2),
        (["--data", "nowhere"], 3),
    ],
)
def test_what_cannot_be_asked(data: Path, tmp_path: Path, words: list[str], code: int) -> None:
    assert run_zuno(tmp_path, "lab", "lp", "--data", str(data), *words).code == code


def test_too_short_a_record_is_refused(tmp_path: Path) -> None:
    write_minutes(tmp_path, draw_minutes(600))
    assert run_zuno(tmp_path / "home", "lab", "lp", "--data", str(tmp_path)).code == 3
