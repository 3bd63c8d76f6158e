"""The page's own files."""

import gzip
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path
from typing import Final

from fastapi import Response
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers
from starlette.staticfiles import NotModifiedResponse
from starlette.types import Scope

LEAST_PACKED_BYTES: Final = 1_000


class PageFiles(StaticFiles):
    """Read and packed once, and again when a file changes: a first visit asks for fifteen of them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, html=True)
        self._paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        self._kept: dict[str, tuple[int, bytes, bytes]] = {}
        """By path: when the file was written, its content, and the same packed."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        file = self._paths.get("index.html" if path == "." else path)
        if file is None or scope["method"] != "GET":
            return await super().get_response(path, scope)
        asked = Headers(scope=scope)
        try:
            plain, packed = self._read(path, file)
        except OSError:
            return await super().get_response(path, scope)
        is_packed = "gzip" in asked.get("accept-encoding", "") and len(plain) >= LEAST_PACKED_BYTES
        response = Response(packed if is_packed else plain, media_type=guess_type(file.name)[0])
        response.headers["etag"] = f'"{sha256(plain).hexdigest()[:32]}"'
        if is_packed:
            response.headers.update({"content-encoding": "gzip", "vary": "Accept-Encoding"})
        return NotModifiedResponse(response.headers) if self.is_not_modified(response.headers, asked) else response

    def _read(self, path: str, file: Path) -> tuple[bytes, bytes]:
        written = file.stat().st_mtime_ns
        if self._kept.get(path, (0,))[0] != written:
            content = file.read_bytes()
            self._kept[path] = (written, content, gzip.compress(content, mtime=0))
        return self._kept[path][1:]
