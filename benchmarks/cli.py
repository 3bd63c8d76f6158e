"""How soon the command line answers, against the least a typer app can do: `python benchmarks/cli.py`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks.figure import report

TURNS = 12
BAR = 2.0
BARE = """
import typer

app = typer.Typer()


@app.command()
def hello(name: str) -> None:
    typer.echo(name)


app()
"""


def seconds(command: list[str], environment: dict[str, str]) -> float:
    start = perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return perf_counter() - start


def main() -> int:
    # Byte code is cached as on any user's machine; a shell that forbids it would time the compiler.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare.py"
        bare.write_text(BARE)
        commands = [[sys.executable, str(bare), "--help"], [sys.executable, "-m", "zuno", "--help"]]
        for command in commands:
            seconds(command, environment)
        turns = [[seconds(command, environment) for command in commands] for _ in range(TURNS)]
    yardstick, ours = (min(times) for times in zip(*turns, strict=True))
    good = report("zuno --help", ours * 1000, "ms", yardstick * 1000, "--help of a bare typer app", BAR)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
