"""`zuno`: hand the command line to its front end; everything else is opened when a command needs it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from zuno.frontends.cli.main import run

if TYPE_CHECKING:
    from zuno.app.zuno import Zuno


def _open(home: str | None) -> Zuno:
    from zuno.wiring import open_zuno

    return open_zuno(home)


def main() -> None:
    sys.exit(run(sys.argv[1:], _open))


if __name__ == "__main__":
    main()
