"""Where these tests find what tests share."""

from __future__ import annotations

import sys
from pathlib import Path

# Test folders are no packages; the code they share is found from here.
sys.path.append(str(Path(__file__).parents[2] / "wire"))
