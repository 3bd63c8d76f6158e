"""A moment as it is written everywhere."""

from __future__ import annotations

import numpy as np

from zuno.domain.units import Millis


def iso(at: Millis) -> str:
    """UTC, to the second; to the millisecond where that says more."""
    return f"{np.datetime_as_string(np.datetime64(at, 'ms'), unit='ms' if at % 1_000 else 's')}Z"
