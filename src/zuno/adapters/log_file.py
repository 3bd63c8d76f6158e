"""The log of a home directory: all its processes write to one file, as text or as JSON lines; old files are bounded in
size and number."""

import json
import logging
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Final
from urllib.parse import quote

from zuno.adapters.file_lock import FileLock
from zuno.kernel.errors import Unavailable
from zuno.kernel.logs import LogLine, current_log_id

MAX_BYTES: Final = 4_000_000
"""Size at which the log is renamed to `zuno.log.1`, that one to `zuno.log.2`, and so on."""
KEPT_FILES: Final = 5
"""Old files; the oldest is overwritten."""
_PACKAGES: Final = ("zuno", "zuno_devnet")
_LINE: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([A-Z]+) (\S+) (?:\[([a-z0-9_/-]+)\] )?(.*)")
_FIELDS: Final = ("at", "level", "where", "text", "id")
_READ: Final = 2_000_000
"""Bytes that are read from the end of each of the two newest files."""


class HomeLog(WatchedFileHandler):
    """Appends to the log. The process that finds it too long renames it; the others then open the new one."""

    def __init__(self, path: Path, secrets: Sequence[str], *, json_lines: bool = False) -> None:
        super().__init__(path, encoding="utf-8", delay=True)
        self.setFormatter(_Formatter(secrets, json_lines))

    def emit(self, record: logging.LogRecord) -> None:
        path = Path(self.baseFilename)
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.stat().st_size > MAX_BYTES:
                _rotate(path)
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Drops the record: a full disk must not stop the process."""


def _rotate(path: Path) -> None:
    """One process at a time, and only while the file is still too long: a second one would set aside an almost empty
    file and push a full one out."""
    with suppress(Unavailable), FileLock(path.with_suffix(".lock"), signed=False, parents=False):
        if path.stat().st_size <= MAX_BYTES:
            return
        for number in range(KEPT_FILES, 1, -1):
            with suppress(FileNotFoundError):
                os.replace(path.with_suffix(f".log.{number - 1}"), path.with_suffix(f".log.{number}"))
        os.replace(path, path.with_suffix(".log.1"))


class _Formatter(logging.Formatter):
    """Replaces secrets by stars, plain or URL-encoded, in messages and tracebacks."""

    def __init__(self, secrets: Sequence[str], json_lines: bool) -> None:
        super().__init__()
        self._json_lines = json_lines
        forms = {form for secret in secrets if secret for form in (secret, quote(secret, safe=""))}
        self._secrets = sorted(forms, key=len, reverse=True)  # one may be the beginning of another

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        lines = [record.getMessage()]
        if record.exc_info:
            lines.append(self.formatException(record.exc_info))
        text = "\n".join(lines)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        where, id = record.name.removeprefix("zuno."), current_log_id()
        if self._json_lines:
            return json.dumps(dict(zip(_FIELDS, (at, record.levelname, where, text, id), strict=True)))
        mark = f"[{id or '-'}] " if id or text.startswith("[") else ""  # text in brackets is not read back as an id
        return f"{at} {record.levelname} {where} {mark}{text}".replace("\n", "\n    ")


def log_path(home: Path) -> Path:
    return home / "logs" / "zuno.log"


def start_log(home: Path, secrets: Sequence[str], *, json_lines: bool = False) -> HomeLog:
    """Send Zuno's loggers to the home's log; warnings also to stderr."""
    handler = HomeLog(log_path(home), secrets, json_lines=json_lines)
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
            at, level, where, id, text = parts.groups()
            lines.append(LogLine(at, level, where, text, "" if id in (None, "-") else id))
        elif line.startswith("{"):
            with suppress(ValueError, KeyError, TypeError):  # it is cut off, or not ours
                fields = json.loads(line)
                values = [fields[name] for name in _FIELDS]
                lines += [LogLine(*values)] if all(isinstance(value, str) for value in values) else []
        elif lines:
            lines[-1] = replace(lines[-1], text=f"{lines[-1].text}\n{line.strip()}")
    return tuple(lines)
