"""What a process of a sweep loads."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from zuno.lab.lp.ranges import play_ranges

SHOW_LOADED = """
import pickle, sys
pickle.loads(sys.stdin.buffer.read())
print(*sorted({".".join(name.split(".")[:2]) for name in sys.modules if name.startswith("zuno.")}))
print(*({"pandas", "langgraph", "web3"} & set(sys.modules)))
"""


@pytest.mark.slow
def test_a_worker_of_a_sweep_loads_nothing_of_the_desks_and_no_wiring() -> None:
    done = subprocess.run(
        (sys.executable, "-c", SHOW_LOADED), input=pickle.dumps(play_ranges), capture_output=True, check=True
    )
    rooms, vendors = done.stdout.decode().splitlines()
    assert set(rooms.split()) == {"zuno.amm", "zuno.kernel", "zuno.lab", "zuno.lp"}
    assert vendors == ""
