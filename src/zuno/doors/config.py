"""The settings of this home as a person may see them: no secret, no address that may hold one."""

from __future__ import annotations

from zuno.kernel.view import ForeignText, View


class SettingView(View):
    name: str
    """Of its environment variable."""
    value: ForeignText
    """`set` where the value itself is nobody's to see."""


class ConfigView(View):
    home: ForeignText
    chain: str
    """The default one."""
    chains: tuple[str, ...]
    """Every one that may be read: the default one, and those with an RPC."""
    market: str
    """`live` or `recorded`."""
    recording: str
    live: bool
    """Whether trading with money is allowed at all."""
    settings: tuple[SettingView, ...]
    """Those that differ from their default."""
