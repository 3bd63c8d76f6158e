"""Where things lie in the checkout, written once: a test may move, these do not."""

from __future__ import annotations

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
SOURCE = CHECKOUT / "src" / "zuno"
DEVNET = CHECKOUT / "src" / "zuno_devnet"
BENCHMARKS = CHECKOUT / "benchmarks"
GOLDEN = CHECKOUT / "tests" / "golden"
CACHE = CHECKOUT / ".cache"
NODE_MODULES = CHECKOUT / "contracts" / "node_modules"
"""The official contract packages, after `make devnet`."""
SHARED_DATA = CHECKOUT.parent / "shared" / "data"
"""Recorded figures beside the checkout; tests that read them are skipped where there are none."""
REAL_MINUTES = SHARED_DATA / "uniswap-minute"
REAL_EVENTS = SHARED_DATA / "pool-events" / "usdc-weth-005-2023-07.csv.gz"
"""Every event of a pool, two weeks."""
