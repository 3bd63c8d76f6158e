"""The log file of a home directory: all its processes write to one file, which is bounded in size."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Final
from urllib.parse import quote

from zuno.kernel.errors import Unavailable
from zuno.kernel.logs import LogLine

MAX_BYTES: Final = 4_000_000
"""Size at which the log is renamed to `zuno.log.1`; the one before it is overwritten."""
_PACKAGES: Final = ("zuno", "zuno_devnet")
_LINE: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([A-Z]+) (\S+) (.*)")
_READ: Final = 2_000_000
"""Bytes that are read from the end of each of the two files."""


class HomeLog(WatchedFileHandler):
    """Appends to the log. The process that finds it too long renames it; the others then open the new one."""

    def __init__(self, path: Path, secrets: Sequence[str]) -> None:
        super().__init__(path, encoding="utf-8", delay=True)
        self.setFormatter(_Formatter(secrets))

    def emit(self, record: logging.LogRecord) -> None:
        path = Path(self.baseFilename)
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.stat().st_size > MAX_BYTES:
                os.replace(path, path.with_suffix(".log.1"))
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Drops the record: a full disk must not stop the process."""


class _Formatter(logging.Formatter):
    """Replaces secrets by stars, plain or URL-encoded, in messages and tracebacks."""

    def __init__(self, secrets: Sequence[str]) -> None:
        super().__init__()
        forms = {form for secret in secrets if secret for form in (secret, quote(secret, safe=""))}
        self._secrets = sorted(forms, key=len, reverse=True)  # one may be the beginning of another

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        lines = [record.getMessage()]
        if record.exc_info:
            lines.append(self.formatException(record.exc_info))
        text = "\n".join(lines).replace("\n", "\n    ")
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return f"{at} {record.levelname} {record.name.removeprefix('zuno.')} {text}"


def log_path(home: Path) -> Path:
    return home / "logs" / "zuno.log"


def start_log(home: Path, secrets: Sequence[str]) -> HomeLog:
    """Send Zuno's loggers to the home's log; warnings also to stderr."""
    handler = HomeLog(log_path(home), secrets)
    for logger in map(logging.getLogger, _PACKAGES):
        logger.addHandler(handler)
        if logging.lastResort is not None and logging.lastResort not in logger.handlers:
            logger.addHandler(logging.lastResort)
        logger.setLevel(logging.INFO)
    return handler


def stop_log(handler: HomeLog) -> None:
    """Remove the handler. With the last one, warnings stop going to stderr."""
    for logger in map(logging.getLogger, _PACKAGES):
        logger.removeHandler(handler)
        if logging.lastResort is not None and not any(isinstance(other, HomeLog) for other in logger.handlers):
            logger.removeHandler(logging.lastResort)
    handler.close()


def read_log(home: Path) -> tuple[LogLine, ...]:
    """The newest lines, oldest first; continuation lines (tracebacks) belong to the line before."""
    path = log_path(home)
    content = b""
    for file in (path.with_suffix(".log.1"), path):
        try:
            with file.open("rb") as opened:
                opened.seek(max(0, file.stat().st_size - _READ))
                content += opened.read(_READ)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise Unavailable(f"{file} cannot be read ({error.strerror}).") from error
    lines: list[LogLine] = []
    for line in content.decode("utf-8", "replace").splitlines():
        if parts := _LINE.fullmatch(line):
            lines.append(LogLine(*parts.groups()))
        elif lines:
            lines[-1] = lines[-1].extended(line)
    return tuple(lines)
