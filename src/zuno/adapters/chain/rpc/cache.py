"""What survives the process: small JSON files, replaced whole, so that an interruption loses nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

from zuno.adapters.foreign_json import shallow


class Shelf:
    """A directory of named JSON objects. An unreadable one is as good as none: everything here can be read anew."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def load(self, name: str) -> dict[str, Any]:
        try:
            value = json.loads(shallow(self._path(name).read_bytes()))
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def save(self, name: str, value: dict[str, Any]) -> None:
        """Replace the object; a reader sees the old one or the new one, never half of either."""
        self._directory.mkdir(parents=True, exist_ok=True)
        draft = self._directory / f".{name}.{uuid4().hex}"
        try:
            with draft.open("w", encoding="utf-8") as file:
                json.dump(value, file, separators=(",", ":"))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._path(name))
        finally:
            draft.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}.json"
