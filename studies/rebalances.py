"""How much of a position a rebalance puts to work: six in a row on the local chain with the real contracts.

The price moves by 6 % before each of them, up and down in turn, and the position follows it: recommended, simulated,
approved and applied by the same commands a person types. What the new position holds is read from the chain afterwards
and held against what stayed in the wallet. A share below 98 % ends the study with 1.

    python -m studies.rebalances [--position 1|2] [--home DIR]

Position 1 lies in the WETH pool, 2 in the native one. A home that is named keeps the chain's story, which the first
start takes a minute or two to play.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

MOVES: Final = ("6", "-6", "6", "-6", "6", "-6")
LEAST_SHARE: Final = 0.98


class Commands:
    """The command line in one home."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def run(self, *words: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "zuno", *words, "--home", str(self._home), "--json"]
        environment = {**os.environ, "ZUNO_DETERMINISTIC": "true"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode:
            raise SystemExit(f"zuno {' '.join(words)} ended with {done.returncode}:\n{done.stderr or done.stdout}")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


def choose_move(commands: Commands, position: str) -> dict[str, Any]:
    """A plan that moves the position: what the desk recommends, or its first move that was not vetoed."""
    words = ("lp", "recommend", "rebalance", position, "--chain", "devnet", "--transport", "inproc")
    plan = commands.run(*words)
    if plan["recommended"]["kind"] not in ("hold", "close"):
        return plan
    moves = [each for each in plan["candidates"] if each["kind"] not in ("hold", "close") and each["verdict"] != "veto"]
    if not moves:
        raise SystemExit(f"The desk vetoed every move of position {position}.")
    return commands.run(*words, "--candidate", str(moves[0]["index"]))


def rebalance(commands: Commands, position: str, percent: str) -> tuple[str, float]:
    """One line of the study, printed; the new position's id and the share of the tokens in it."""
    commands.run("devnet", "move", "--percent", percent)
    plan = choose_move(commands, position)
    tried = commands.run("plan", "simulate", plan["planId"])
    commands.run("plan", "approve", plan["planId"], "--yes")
    done = commands.run("plan", "apply", plan["planId"], "--yes")
    left, new = done["leftover"], done["newPositionId"]
    kinds = " + ".join(step["kind"] for step in done["steps"] if "approve" not in step["kind"])
    print(
        f"{percent:>4} %  position {position:>2} → {new:>2}  {plan['recommended']['kind']:<8} {kinds:<22} "
        f"left {left['token0']} {left['symbol0']} and {left['token1']} {left['symbol1']} = {100 * left['share']:.3f} % "
        f"(simulated {100 * tried['leftover']['share']:.3f} %)",
        flush=True,
    )
    return new, 1 - left["share"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Six rebalances on the local chain, and what each leaves over.")
    parser.add_argument("--position", default="1", help="1 (WETH pool) or 2 (native pool)")
    parser.add_argument("--home", type=Path, help="data directory (default: a temporary one)")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        commands = Commands(asked.home or Path(folder))
        commands.run("devnet", "up", "--background", "--port", "0")
        try:
            position, shares = asked.position, []
            for percent in MOVES:
                position, share = rebalance(commands, position, percent)
                shares.append(share)
        finally:
            commands.run("devnet", "down")
    print(f"in the new position: {100 * min(shares):.3f} % at least, bar {100 * LEAST_SHARE:.0f} %")
    return 0 if min(shares) >= LEAST_SHARE else 1


if __name__ == "__main__":
    raise SystemExit(main())
