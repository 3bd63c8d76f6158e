"""What holding a range costs and pays per unit of time. Floats are allowed here: these are statistics, not balances."""

from __future__ import annotations

Q96 = 1 << 96


def lvr_token1(liquidity: int, sqrt_price_x96: int, variance: float) -> float:
    """Loss versus rebalancing, in base units of token1, of in-range liquidity while the log price varies by `variance`.

    (σ²/4)·L·√P, the benchmark that fees must beat.
    """
    return variance / 4 * liquidity * (sqrt_price_x96 / Q96)
