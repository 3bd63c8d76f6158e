"""Two processes that invent a market in one home at the same time: one whole market comes of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.wire.commands import run_process, run_zuno


@pytest.mark.soak
def test_a_market_invented_beside_a_reader_in_an_empty_home_is_there_whole(home: Path) -> None:
    asked = (("data", "synth", "--seed", "5", "--json"), ("trade", "features", "BTC", "--json"))
    with ThreadPoolExecutor(2) as people:
        synth, features = people.map(lambda words: run_process(home, *words), asked)
    assert (synth.code, features.code) == (0, 0), (synth.err, features.err)
    view = synth.document
    assert (view["setAside"], view["repeated"], view["corrected"]) == (3, 60, 1)  # its own dirt, over nobody's rows
    # Whoever came first: the reader begins a market where none is and never takes another's place.
    status = run_zuno(home, "data", "status", "--json").document
    assert (status["origin"], status["rows"]) == ("SYNTHETIC seed 5", view["rows"])
    assert features.document["origin"] in {"SYNTHETIC seed 1", "SYNTHETIC seed 5"}
