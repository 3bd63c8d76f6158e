"""One deployment of the real contracts for each test process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Test folders are no packages; the code these tests share is found from here.
sys.path.append(str(Path(__file__).parent))

from onchain.engines import Engine, start_engine
from onchain.v4 import MISSING, V4, contracts_are_installed, creation_code


@pytest.fixture(scope="session")
def engine() -> Engine:
    if not contracts_are_installed():
        pytest.skip(MISSING)
    return start_engine()


@pytest.fixture(scope="session")
def v4(engine: Engine) -> V4:
    return V4.deploy(engine)


@pytest.fixture(scope="session")
def tick_math(engine: Engine) -> str:
    return engine.deploy(creation_code("TickMathTest"))
