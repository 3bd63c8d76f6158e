"""Wire the Model Context Protocol server: the services an assistant may ask."""

from __future__ import annotations

import os
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from zuno.kernel.errors import Unavailable

if TYPE_CHECKING:
    from zuno.doors.zuno import AssistantDoor, Zuno

INSTALL: Final = "`make mcp` in a checkout, or pip install 'zuno[mcp]'"


def build_assistant(zuno: Zuno) -> AssistantDoor:
    """`Unavailable` without the library, and how to get it."""
    if find_spec("mcp") is None:
        raise Unavailable(f"The server for an assistant needs the library mcp: {INSTALL}.")
    from zuno.doors.mcp.server import AssistantServer

    return AssistantServer(zuno, os.urandom, version("zuno"))
