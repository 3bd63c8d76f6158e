"""How the page's process is shown to people."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from zuno.doors.web_door import WebEndView, WebEventView
from zuno.kernel.numbers_text import time_text


def web_event_line(event: WebEventView) -> str:
    return f"{time_text(event.at // 1000)}  {event.text}"


def show_web_end(view: WebEndView) -> RenderableType:
    return Text(f"{view.url}: {view.requests} requests, {view.refused} refused.")
