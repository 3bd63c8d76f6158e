"""`zuno`: hand the command line to its front end; everything else is opened when a command needs it."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zuno.app.zuno import Zuno


def _open(home: str | None) -> Zuno:
    from zuno.wiring import open_zuno

    return open_zuno(home)


def main() -> None:
    _mend_streams()
    try:
        from zuno.frontends.cli.main import run

        code = run(sys.argv[1:], _open)
    except KeyboardInterrupt:  # before the command line was even read
        code = 130
    sys.exit(code)


def _mend_streams() -> None:
    """A closed stream swallows what is written; one that cannot spell a sign writes a question mark."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


if __name__ == "__main__":
    main()
