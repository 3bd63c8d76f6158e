"""The monitor as a service: beside other commands, ended, killed, and with nobody listening."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.wire.forked import ZunoProcess

Zuno = Callable[..., Any]


@contextmanager
def service(home: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("ZUNO_")}
    running = ZunoProcess(
        ["monitor", "run", *more],
        env={**bare, "ZUNO_HOME": str(home), "ZUNO_MONITOR_INTERVAL_MS": "5000"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield running
    finally:
        running.kill()
        running.communicate(timeout=30)


def line(running: subprocess.Popen[str]) -> Any:
    assert running.stdout is not None
    return json.loads(running.stdout.readline())


def events(running: subprocess.Popen[str]) -> list[str]:
    """What the next look that found anything found."""
    while not (found := line(running)["events"]):
        pass
    return [event["happening"] for event in found]


def test_a_service_sees_what_others_do_and_ends_when_asked(home: Path, zuno: Zuno) -> None:
    with service(home, "--json") as running:
        assert events(running) == ["raised"]
        second = zuno("monitor", "once")
        assert (second.code, f"process {running.pid}" in second.err) == (3, True)
        (alert,) = zuno("alerts", "--json").document["alerts"]
        assert zuno("alerts", "ack", alert["id"]).code == 0
        zuno("sim", "move", "--percent", "-12")
        assert events(running) == ["worsened"]
        running.send_signal(signal.SIGTERM)
        last = line(running)
        while "ticks" not in last:
            last = line(running)
        assert last["ticks"] >= 2
        assert running.wait(30) == 0
        assert running.stderr is not None
        told = running.stderr.read()
    assert "WARNING Near the edge [SYNTHETIC], chain sim" in told
    assert "CRITICAL Out of range [SYNTHETIC], chain sim" in told
    kinds = [event["happening"] for event in zuno("alerts", "--all", "--json").document["events"]]
    assert kinds == ["worsened", "acknowledged", "raised"]
    assert zuno("monitor", "once").code == 0


def test_a_killed_service_leaves_its_seat_and_a_whole_book(home: Path, zuno: Zuno) -> None:
    with service(home) as running:
        assert running.stdout is not None
        assert "sim block" in running.stdout.readline()
        running.kill()
        running.wait(30)
        assert zuno("monitor", "once").code == 0
    assert len(zuno("alerts", "--json").document["alerts"]) == 1


@pytest.mark.soak
def test_a_service_that_nobody_listens_to_ends(home: Path) -> None:
    with service(home, "--json") as running:
        assert running.stdout is not None
        line(running)
        running.stdout.close()
        assert running.wait(60) == 4
