"""Files of the lab's reports in one folder of the home."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from zuno.adapters.atomic_file import read_file, replace_file, translate_write_errors
from zuno.adapters.file_lock import WAIT_SECONDS, FileLock
from zuno.kernel.errors import Unavailable

LOCK: Final = ".lock"


class FolderOfReports:
    """A lab's `ReportFiles`; the folder is made by the first write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.folder = str(folder)

    def names(self) -> Sequence[str]:
        try:
            return sorted(path.name for path in self._folder.iterdir() if path.is_file())
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise Unavailable(f"{self._folder} cannot be read ({error.strerror}).") from error

    def read(self, name: str) -> bytes | None:
        return read_file(self._folder / name)

    def write(self, name: str, content: bytes) -> None:
        path = self._folder / name
        with translate_write_errors(path):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(path, content)

    def add_lines(self, name: str, lines: Sequence[str]) -> None:
        path = self._folder / name
        with FileLock(self._folder / LOCK, timeout=WAIT_SECONDS, signed=False), translate_write_errors(path):
            before = self.read(name) or b""
            held = set(before.split(b"\n"))
            if fresh := [line for line in dict.fromkeys(map(str.encode, lines)) if line not in held]:
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
                with os.fdopen(handle, "wb") as file:
                    # Half a line that a kill left is ended, so that the next one stands alone.
                    file.write(b"\n" if before and not before.endswith(b"\n") else b"")
                    file.write(b"".join(line + b"\n" for line in fresh))

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            (self._folder / name).unlink()
