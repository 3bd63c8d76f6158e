"""The page on this machine as the command line opens it: what its process has to say."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from zuno.kernel.view import EventView, View
from zuno.present.document import Document, document

LOOPBACK: Final = "127.0.0.1"


class WebEventView(EventView):
    url: str | None = None
    """The login link: for one login, within two minutes."""


class WebEndView(View):
    url: str
    requests: int
    refused: int
    """Requests without a login, from another site, or too many."""

    def to_document(self) -> Document:
        return document(f"{self.url}: {self.requests} requests, {self.refused} refused.")


class WebDoor(Protocol):
    async def run(self, hear: Callable[[WebEventView], None], stop: asyncio.Event) -> WebEndView:
        """Serve until `stop`. `Refused` where the port is in use, or a page of this home is served already."""
