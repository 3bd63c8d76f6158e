"""What short commands cost, against the least a typer app can do: `python -m benchmarks.cli`.

Measured is the CPU time of the process, which a busy machine changes less than its wall time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from benchmarks.figure import report

TURNS = 12
BARS = {"--help": 1.3, "lp positions": 3.6}
BARE = """
import typer

app = typer.Typer()


@app.command()
def hello(name: str) -> None:
    typer.echo(name)


app()
"""


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """User and system time of a command."""
    start = getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    end = getrusage(RUSAGE_CHILDREN)
    return end.ru_utime - start.ru_utime + end.ru_stime - start.ru_stime


def main() -> int:
    # Byte code is cached as on any user's machine; a shell that forbids it would time the compiler.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        environment["ZUNO_HOME"] = folder
        bare = Path(folder) / "bare.py"
        bare.write_text(BARE)
        commands = [[sys.executable, str(bare), "--help"]]
        commands += [[sys.executable, "-m", "zuno", *words.split()] for words in BARS]
        for command in commands:
            seconds(command, environment)
        turns = [[seconds(command, environment) for command in commands] for _ in range(TURNS)]
    yardstick, *ours = (min(times) * 1000 for times in zip(*turns, strict=True))
    against = "--help of a bare typer app"
    good = [
        report(f"zuno {words}", cpu, "ms of CPU", yardstick, against, bar)
        for (words, bar), cpu in zip(BARS.items(), ours, strict=True)
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
