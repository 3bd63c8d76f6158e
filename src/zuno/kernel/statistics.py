"""Order statistics both desks use."""

from collections.abc import Sequence


def percentile(values: Sequence[float], percent: int) -> float:
    """The nearest-rank percentile: always one of the values."""
    return sorted(values)[max(0, -(-percent * len(values) // 100) - 1)]
