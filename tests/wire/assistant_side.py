"""An assistant at the server of a home: the SDK's own client, in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.types import CallToolResult, TextContent

from zuno.doors.mcp.server import AssistantServer
from zuno.settings import Settings
from zuno.wiring.application import Application


@dataclass(frozen=True)
class Assistant:
    client: Client
    zuno: Application

    async def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The document a tool answers with; the client holds it to the tool's own schema."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, read_text(result)
        document: dict[str, Any] = result.structured_content
        return document

    async def fail(self, tool: str, **arguments: Any) -> str:
        """The sentence of an error."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error
        assert result.structured_content is None
        return read_text(result)


def read_text(result: CallToolResult) -> str:
    last = result.content[-1]
    assert isinstance(last, TextContent)
    return last.text


@asynccontextmanager
async def assistant_at(home: Path, **settings: Any) -> AsyncIterator[Assistant]:
    zuno = _open(home, settings)
    server = zuno.assistant()
    assert isinstance(server, AssistantServer)
    try:
        async with Client(server.protocol) as client:
            yield Assistant(client, zuno)
    finally:
        await server.close()
        await zuno.close()


def _open(home: Path, settings: dict[str, Any]) -> Application:
    home.mkdir(exist_ok=True)
    return Application(Settings(home=home, **settings))
