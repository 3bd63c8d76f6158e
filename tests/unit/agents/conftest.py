"""The runtime's tests share one small desk."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Test folders are no packages; the code these tests share is found from here.
sys.path.append(str(Path(__file__).parents[2] / "wire"))

from asking import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)
