"""How the page's process is shown to people."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from zuno.doors.cli.layout import Rows
from zuno.doors.web_door import WebEndView, WebEventView
from zuno.doors.web_logins import WebAllowanceView, WebLinkView, WebLoginsView, WebLoginView
from zuno.kernel.numbers_text import time_text


def web_event_line(event: WebEventView) -> str:
    return f"{time_text(event.at // 1000)}  {event.text}"


def show_web_end(view: WebEndView) -> RenderableType:
    return Text(f"{view.url}: {view.requests} requests, {view.refused} refused.")


def show_link(view: WebLinkView) -> RenderableType:
    return Text(f"{view.url}\nOne login (scope {view.scope}), until {time_text(view.expires // 1000)}.")


def show_logins(view: WebLoginsView) -> RenderableType:
    rows = Rows("name", "scope", "made", "last used")
    for login in view.logins:
        rows.add_row(login.name, login.scope, time_text(login.made // 1000), time_text(login.seen // 1000))
    return rows if view.logins else Text("None.")


def show_token(view: WebLoginView) -> RenderableType:
    return Text(f"{view.token}\nToken {view.name} (scope {view.scope}); it is shown this once.")


def show_allowance(view: WebAllowanceView) -> RenderableType:
    if view.until is None:
        return Text("In a home with real money the page may not act; `zuno web allow --for 30m` lets it.")
    return Text(f"The page may act with real money until {time_text(view.until // 1000)}.")
