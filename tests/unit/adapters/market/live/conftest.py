"""Test folders are no packages; the servers these tests share are found from here."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[4] / "wire"))
