"""The monitor on the real contracts: few requests, real moves, and a node that dies and comes back elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Zuno = Callable[..., Any]


def test_a_running_devnet_is_watched_and_a_move_is_told(devnet: Zuno) -> None:
    first = devnet("monitor", "once", "--json")
    assert first.code == 0, first.err
    assert [(chain["chain"], chain["positions"]) for chain in first.document["chains"]] == [("sim", 2), ("devnet", 2)]
    devnet("devnet", "move", "--percent", "-12")
    moved = devnet("monitor", "once", "--json", ZUNO_CHAIN_ID="devnet").document
    # The simulation left the list, and with it its alert; the devnet's got worse.
    assert [(event["chain"], event["happening"]) for event in moved["events"]] == [
        ("devnet", "worsened"),
        ("sim", "ended"),
    ]
    assert moved["alerts"][0]["condition"] == "out_of_range"


def test_a_devnet_that_is_gone_is_no_longer_watched(apart: Zuno) -> None:
    assert apart("devnet", "up", "--background", "--port", "0").code == 0
    raised = apart("monitor", "once", "--json", ZUNO_CHAIN_ID="devnet").document
    assert [alert["chain"] for alert in raised["alerts"]] == ["devnet"]
    assert apart("devnet", "down").code == 0
    down = apart("monitor", "once", ZUNO_CHAIN_ID="devnet")
    assert (down.code, "running" in down.err) == (4, True)
    assert [alert["chain"] for alert in apart("alerts", "--json").document["alerts"]] == ["devnet"]
    left = apart("monitor", "once", "--json").document
    assert ("devnet", "ended") in [(event["chain"], event["happening"]) for event in left["events"]]
