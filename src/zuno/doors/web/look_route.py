"""A route that reads the parameters of a look at once: FastAPI takes as long for a few of them as for all the rest."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final

from fastapi import Path, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import Field, StringConstraints

from zuno.doors.web.services import DOCUMENT_TYPE, ViewResponse

CLIENT_GONE: Final = 499
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class LookRoute(APIRoute):
    """Of a GET that takes path and query alone. What is not as it should be goes the usual way, to be refused there."""

    def get_route_handler(self) -> Handler:
        """As `application/vnd.zuno.document+json` an answer is its view and the view's document."""
        handle = self._choose_handler()

        async def negotiate(request: Request) -> Response:
            answer = await handle(request)
            if isinstance(answer, ViewResponse):
                wanted = DOCUMENT_TYPE in request.headers.get("accept", "")
                answer = answer.add_document() if wanted else answer
                answer.headers["Vary"] = "Accept"
            return answer

        return negotiate

    def _choose_handler(self) -> Handler:
        usual, needs, look = super().get_route_handler(), self.dependant, self.endpoint
        taken = (needs.header_params, needs.cookie_params, needs.body_params, needs.dependencies)
        if self.methods != {"GET"} or any(taken) or needs.request_param_name is not None:
            return usual
        path = [(field.name, field.alias, field) for field in needs.path_params]
        query = [(field.name, field.alias, field) for field in needs.query_params]

        async def handle(request: Request) -> Response:
            named: dict[str, Any] = {}
            for fields, given in ((path, request.path_params), (query, request.query_params)):
                for name, alias, field in fields:
                    if alias in given:
                        named[name], wrong = field.validate(given[alias])
                        if wrong:
                            return await usual(request)
                    elif field.field_info.is_required():
                        return await usual(request)
                    # else: the function's own default
            connection = request.scope.get("state", {}).get("connection")
            if connection is not None:
                connection.looking = asyncio.current_task()
            try:
                answer = await look(**named)
            except asyncio.CancelledError:
                if connection is None or not connection.gone:
                    raise
                return Response(status_code=CLIENT_GONE)  # which nobody reads; what it computed is cancelled
            finally:
                if connection is not None:
                    connection.looking = None
            assert isinstance(answer, Response)
            return answer

        return handle


ID_CHARS = 80
TEXT_CHARS = 200

Id = Annotated[str, Path(max_length=ID_CHARS)]
Chain = Annotated[str | None, Query(max_length=TEXT_CHARS, description="Chain name or id; default: the home's.")]
Wallet = Annotated[str | None, Query(max_length=TEXT_CHARS, description="Owner of the positions.")]
_ACCOUNT_WORDS = "paper (the home's own, the default), the name of another paper account, live or demo."
_AccountText = Annotated[str, StringConstraints(max_length=TEXT_CHARS)]
Account = Annotated[_AccountText | None, Query(description=_ACCOUNT_WORDS)]
BodyAccount = Annotated[_AccountText | None, Field(description=_ACCOUNT_WORDS)]
Symbol = Annotated[str, Query(max_length=TEXT_CHARS, description="A market of ZUNO_MARKETS: BTCUSDT, eth.")]
Mode = Annotated[str, Query(max_length=TEXT_CHARS, description="swing or position.")]
AsOf = Annotated[str | None, Query(max_length=TEXT_CHARS, description="A moment, as in 7d; default: now.")]
Cursor = Annotated[str | None, Query(max_length=TEXT_CHARS, description="`nextCursor` of the page before.")]
Text = Annotated[str | None, Query(max_length=TEXT_CHARS)]
Limit = Annotated[int, Query(ge=1, le=200, description="Items of a page.")]
