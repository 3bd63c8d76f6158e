"""Composition root: the only place where a port meets its adapter."""

from zuno.wiring.application import Application, open_zuno
from zuno.wiring.version import code_version

__all__ = ["Application", "code_version", "open_zuno"]
