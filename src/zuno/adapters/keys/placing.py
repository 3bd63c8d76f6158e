"""Puts a file in its place whole, readable by its owner alone, and never over another one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def place(path: Path, content: bytes) -> bool:
    """False: one was there already, and it stays as it is."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600 from its first moment
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        os.unlink(draft)
    return True
