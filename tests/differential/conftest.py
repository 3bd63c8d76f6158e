"""One deployment of the real contracts for each test process."""

from __future__ import annotations

import pytest

from tests.differential.onchain.engines import Engine, start_engine
from tests.differential.onchain.v4 import MISSING, V4, contracts_are_installed, creation_code


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
