"""What is installed: the version of our own distribution, and the command that adds one of its extras."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Final

from zuno.kernel.errors import Unavailable

if TYPE_CHECKING:
    from importlib.metadata import Distribution

DISTRIBUTION: Final = "zuno-desk"
"""The import name and the command are `zuno`; a package of that name on an index is not ours."""


def read_version() -> str:
    """Return the installed version of Zuno. `Unavailable` where its files are here but not its distribution."""
    return _find_distribution().version


def name_install(extra: str) -> str:
    """Return the command that adds `extra` to what is installed: a make target in a checkout, else `pip install` with
    the folder or the wheel file it came from. Names no package index."""
    origin = json.loads(_find_distribution().read_text("direct_url.json") or "{}")
    folder = origin.get("dir_info")

    if folder is None:
        return f"`pip install './zuno_desk-{read_version()}-py3-none-any.whl[{extra}]'` beside Zuno's wheel file"
    if folder.get("editable"):
        return f"`make {extra}` in the checkout"
    return f"`pip install '.[{extra}]'` in the checkout that Zuno was installed from"


@cache
def _find_distribution() -> Distribution:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution(DISTRIBUTION)
    except PackageNotFoundError as error:
        raise Unavailable(
            f"This Python has Zuno's files and no distribution {DISTRIBUTION}: in a checkout run `make web` once more, "
            "elsewhere install Zuno's wheel file again."
        ) from error
