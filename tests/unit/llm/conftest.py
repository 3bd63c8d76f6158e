"""The runtime's tests share one small desk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wire.asking import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)
