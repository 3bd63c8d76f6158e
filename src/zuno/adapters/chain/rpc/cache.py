"""A cache on disk: small JSON files, each replaced whole."""

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from zuno.adapters.atomic_file import replace_file
from zuno.kernel.errors import DiskFull
from zuno.kernel.foreign_json import check_nesting

T = TypeVar("T")
_log = logging.getLogger(__name__)


class JsonCache:
    """A directory of named JSON objects. Failures are logged, never raised: the chain can be read again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._writable = True

    def load(self, name: str, read: Callable[[dict[str, Any]], T]) -> T | None:
        """What `read` makes of the object; None where there is none that it can read."""
        try:
            return read(json.loads(check_nesting(self._path(name).read_bytes())))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
            _log.warning("The record %s cannot be read (%s) and is made anew.", self._path(name), type(error).__name__)
            return None

    def save(self, name: str, value: dict[str, Any]) -> None:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            replace_file(self._path(name), json.dumps(value, separators=(",", ":")).encode())
        except (OSError, DiskFull) as error:
            if self._writable:
                why = error.strerror if isinstance(error, OSError) else error
                _log.warning("Nothing can be kept in %s (%s): the next run reads it anew.", self._directory, why)
            self._writable = False
        else:
            self._writable = True

    def drop(self, name: str) -> None:
        with suppress(OSError):
            self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}.json"
