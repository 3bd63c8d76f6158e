"""A dead man's switch: a URL is asked after every round, so that whoever keeps it sees when none comes any more."""

from __future__ import annotations

import logging
from typing import Final

import httpx2

from zuno.adapters.http import CLIENT_LOG, HttpClient, RequestLimits, SecretFilter
from zuno.kernel.errors import Unavailable, ZunoError

TIMEOUT: Final = 5.0
_REFUSED: Final = 300
_LOG: Final = logging.getLogger(__name__)


class DeadManPing:
    """Never raises. A failure is logged once, until a ping gets through again; the URL, which is a secret, never is."""

    def __init__(self, url: str, part: str, *, timeout: float = TIMEOUT) -> None:
        """`part`: takes the place of `{part}` in the URL."""
        whole = httpx2.URL(url.replace("{part}", part))
        self._url, self._query = str(whole.copy_with(query=None)).rstrip("/"), dict(whole.params)
        self._limits = RequestLimits(timeout=timeout, attempts=1)
        self._failing = False
        CLIENT_LOG.addFilter(SecretFilter(self._url))

    async def __call__(self, ok: bool) -> None:
        url = self._url if ok else f"{self._url}/fail"
        try:
            async with httpx2.AsyncClient(timeout=self._limits.timeout, follow_redirects=False) as client:
                answer = await HttpClient("the ping's server", client, self._limits, reads=()).get(url, self._query)
            if answer.status >= _REFUSED:
                raise Unavailable(f"the ping's server answers HTTP {answer.status}")
            self._failing = False
        except (ZunoError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            if not self._failing:
                known = error if isinstance(error, ZunoError) else type(error).__name__
                _LOG.warning("no ping (ZUNO_PING_URL): %s; the desk goes on", known)
            self._failing = True
