"""The version of this code, which the journal writes beside every entry."""

from functools import cache
from pathlib import Path

from zuno.kernel.installation import read_version

PACKAGE = Path(__file__).resolve().parents[1]


@cache
def code_version() -> str:
    """The installed version and the first digits of the hash of its files, so that an edited checkout has its own."""
    from hashlib import sha256

    whole = sha256()
    for path in sorted(PACKAGE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            whole.update(f"{path.relative_to(PACKAGE).as_posix()}\n{path.stat().st_size}\n".encode())
            whole.update(path.read_bytes())
    return f"{read_version()}+{whole.hexdigest()[:12]}"
