"""Every bench, one after the other: `make bench`. Ends with 1 when any bar is missed."""

from __future__ import annotations

import subprocess
import sys

BENCHES = (
    "amm",
    "cli",
    "shell",
    "chain",
    "monitor",
    "wallets",
    "pushes",
    "portfolio",
    "pool_ranking",
    "debate",
    "mesh",
    "indicators",
    "features",
    "chart",
    "collector",
    "cycle",
    "desk",
    "journal_size",
    "backtest",
    "imports",
    "ten_markets",
    "paper_venue",
    "lp_lab",
    "sma_cross",
    "strategies",
    "own_strategy",
    "sleeves",
    "memory",
    "telegram",
    "telegram_follow",
    "page",
    "web",
    "kill_flood",
    "records",
)


def main() -> int:
    missed = [
        name for name in BENCHES if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode
    ]
    if missed:
        sys.stderr.write(f"missed a bar: {', '.join(missed)}\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
