"""The wire's tests share the local server and the small desk."""

from __future__ import annotations

import sys
from pathlib import Path

# Test folders are no packages; the code these tests share is found from here.
sys.path.append(str(Path(__file__).parents[3] / "wire"))
