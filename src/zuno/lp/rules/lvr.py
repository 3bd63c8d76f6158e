"""Loss versus rebalancing, the benchmark that fees must beat. Floats are allowed: it is a statistic, not a balance."""

from zuno.amm.integers import Q96


def lvr_token1(liquidity: int, sqrt_price_x96: int, variance: float) -> float:
    """Loss versus rebalancing, in base units of token1, of in-range liquidity while the log price varies by `variance`.
    (σ²/4)·L·√P, the benchmark that fees must beat."""
    return variance / 4 * liquidity * (sqrt_price_x96 / Q96)


def rebalancing_gain_token1(
    liquidity: int, edges_x96: tuple[int, int], sqrt_before_x96: int, sqrt_after_x96: int
) -> float:
    """What a portfolio that held the range's tokens over one price step ends above the range itself, in token1.
    x(P₀)·(P₁ − P₀) − (V(P₁) − V(P₀)): never negative, and (σ²/4)·L·√P for a small step inside the range."""
    low, high = (edge / Q96 for edge in edges_x96)
    start, end = sqrt_before_x96 / Q96, sqrt_after_x96 / Q96
    inside, left = min(max(start, low), high), min(max(end, low), high)
    held0 = 1 / inside - 1 / high
    before = held0 * start * start + (inside - low)
    after = (1 / left - 1 / high) * end * end + (left - low)
    return max(0.0, liquidity * (held0 * (end * end - start * start) - (after - before)))
