"""The only place where a socket meets its plug."""

from zuno.wiring.house import House, open_zuno
from zuno.wiring.version import code_version

__all__ = ["House", "code_version", "open_zuno"]
