"""The services as a route asks for them, on a loop of their own: a long computation leaves the page answering."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar, cast

from fastapi import Response

from zuno.doors.web.documents import DocumentView
from zuno.doors.web.problems import Problem
from zuno.doors.zuno import Zuno
from zuno.kernel.view import View, write_document
from zuno.present.document import Documented

T = TypeVar("T")
DOCUMENT_TYPE: Final = "application/vnd.zuno.document+json"
"""What a client accepts that wants a view and its document in one answer."""
LOOK_SECONDS: Final = 120.0
"""For a look: the first one at a home may have a market to invent."""


class Services:
    """`zuno` belongs to `loop`, which may run in another thread than the caller."""

    def __init__(self, zuno: Zuno, loop: asyncio.AbstractEventLoop) -> None:
        self._zuno = zuno
        self._loop = loop
        self._working: dict[asyncio.Task[Any], asyncio.Event] = {}
        """What goes on until this server ends, and what asks it to."""

    async def ask(self, question: Callable[[Zuno], Awaitable[T]], *, refresh: bool = True) -> T:
        """Ask on the services' own loop; `refresh`: and see what other processes did to the chains since."""

        async def look() -> T:
            if refresh:
                self._zuno.refresh()
            return await question(self._zuno)

        if asyncio.get_running_loop() is self._loop:
            return await look()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(look(), self._loop))

    async def work(self, begin: Callable[[Zuno, asyncio.Event], Awaitable[T]]) -> T:
        """Ask for what goes on until its event is set, as the end of the server sets it."""

        async def run(zuno: Zuno) -> T:
            task, stop = cast(asyncio.Task[Any], asyncio.current_task()), asyncio.Event()
            self._working[task] = stop
            try:
                return await begin(zuno, stop)
            finally:
                del self._working[task]

        return await self.ask(run)

    async def end_work(self) -> None:
        """On the services' own loop."""
        for stop in self._working.values():
            stop.set()
        await asyncio.gather(*self._working, return_exceptions=True)

    async def fetch(self, question: Callable[[Zuno], Awaitable[T]]) -> T:
        """The same for a look, which has to end in time."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                return await self.ask(question)
        except TimeoutError:
            raise Problem(503, f"No answer came within {LOOK_SECONDS:g} s; try again.") from None

    async def answer(self, question: Callable[[Zuno], Awaitable[View]]) -> Response:
        """The document that `--json` prints."""
        return respond(await self.fetch(question))

    async def page(
        self, question: Callable[[Zuno], Awaitable[View]], items: str, key: str, limit: int, cursor: str | None = None
    ) -> Response:
        """A page of the list `items` of a document, after the item whose `key` is the cursor: what is added at the
        front meanwhile moves nothing. Without one the list begins there. `Problem` for a cursor of no item."""
        whole = (await self.fetch(question)).model_dump(mode="json", by_alias=True)
        listed: Sequence[dict[str, Any]] = whole.pop(items)
        start = 0
        if cursor is not None:
            places = [place for place, item in enumerate(listed) if str(item[key]) == cursor]
            if not places:
                raise Problem(400, "This cursor names no item of the list; ask without one.")
            start = places[-1] + 1
        shown = tuple(listed[start : start + limit])
        more = start + limit < len(listed)
        return respond(PageView(items=shown, next_cursor=str(shown[-1][key]) if more else None, head=whole))


class ViewResponse(Response):
    def __init__(self, view: View, status: int) -> None:
        super().__init__(write_document(view), status, media_type="application/json")
        self._view = view

    def add_document(self) -> Response:
        """The same bytes as `view`, beside what the view says of itself in words."""
        view, document = self._view, "null"
        if isinstance(view, Documented):
            document = write_document(DocumentView.model_validate(view.to_document(), from_attributes=True))
        whole = b'{"view":%b,"document":%b}' % (bytes(self.body), document.encode("ascii"))
        return Response(whole, self.status_code, media_type=DOCUMENT_TYPE)


def respond(view: View, status: int = 200) -> Response:
    return ViewResponse(view, status)


def document(view: Any, status: int = 200) -> dict[str, Any]:
    """How a route's answer is described, for its decorator."""
    return {"responses": {status: {"model": view}}, "status_code": status}


class PageView(View):
    """A part of a list that grows: the next one is asked for by its cursor."""

    items: tuple[dict[str, Any], ...]
    next_cursor: str | None
    head: dict[str, Any]
    """The rest of the document."""
