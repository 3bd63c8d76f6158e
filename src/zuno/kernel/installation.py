"""What is installed: the version of our own distribution, and the command that adds one of its extras."""

import json
from functools import cache
from typing import Any, Final

from zuno.kernel.errors import Unavailable

# The import name and the command are `zuno`; a package of that name on an index is not ours.
DISTRIBUTION: Final = "zuno-desk"


def read_version() -> str:
    """Return the installed version of Zuno. `Unavailable` where its files are here but not its distribution."""
    return str(_find_distribution().version)


def name_install(extra: str) -> str:
    """Return the command that adds `extra` to what is installed: a make target in a checkout, else `pip install` with
    the folder or the wheel file it came from. Names no package index."""
    folder = json.loads(_find_distribution().read_text("direct_url.json") or "{}").get("dir_info")
    if folder is not None and folder.get("editable"):
        return f"`make {extra}` in the checkout"

    place = "." if folder is not None else f"./zuno_desk-{read_version()}-py3-none-any.whl"
    return f"`pip install '{place}[{extra}]'` in the folder that Zuno was installed from"


@cache
def _find_distribution() -> Any:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution(DISTRIBUTION)
    except PackageNotFoundError as error:
        raise Unavailable(
            f"This Python has Zuno's files and no distribution {DISTRIBUTION}: in a checkout run `make web` once more, "
            "elsewhere install Zuno's wheel file again."
        ) from error
