"""Errors as RFC 9457 problem documents: one sentence, a kind and a status, never a traceback."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as AnyHTTPException

from zuno.kernel.errors import Broken, Malformed, NotFound, Refused, Unavailable, UsageError, ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.view import View

MEDIA_TYPE: Final = "application/problem+json"
MOST_CHARS: Final = 2_000
_log: Final = logging.getLogger(__name__)
_STATUSES: Final[tuple[tuple[type[ZunoError], str, int], ...]] = (
    (UsageError, "usage", 400),
    (NotFound, "unknown", 404),
    (Refused, "refused", 409),
    (Unavailable, "unavailable", 503),
    (Malformed, "unavailable", 502),
    (Broken, "broken", 500),
)
_KINDS: Final = {
    400: "usage",
    401: "unauthorized",
    403: "forbidden",
    404: "unknown",
    405: "method",
    409: "refused",
    413: "too-large",
    421: "host",
    422: "usage",
    429: "too-many-requests",
    503: "unavailable",
}


class ProblemView(View):
    """RFC 9457, with what a page needs to go on."""

    type: str
    """`urn:zuno:problem:` and its kind."""
    title: str
    status: int
    detail: str
    word: str | None = None
    """What has to be typed to go on, where a confirmation is missing."""
    approval: dict[str, Any] | None = None
    """What is approved by typing it."""


class Problem(HTTPException):
    """An answer that is a problem, raised by a route, or while its body is read."""

    def __init__(self, status: int, detail: str, kind: str | None = None, **more: Any) -> None:
        super().__init__(status, detail)
        self.view = build_problem(status, detail, kind, **more)


def build_problem(status: int, detail: str, kind: str | None = None, **more: Any) -> ProblemView:
    named = kind or _KINDS.get(status, "bug" if status >= 500 else "usage")
    title, said = HTTPStatus(status).phrase, plain_text(detail, MOST_CHARS)
    return ProblemView(type=f"urn:zuno:problem:{named}", title=title, status=status, detail=said, **more)


def describe_error(error: Exception) -> ProblemView:
    """What a person is told of it; our own bug is named by its type alone and goes to the log."""
    if isinstance(error, Problem):
        return error.view
    for branch, kind, status in _STATUSES:
        if isinstance(error, branch):
            return build_problem(status, str(error), kind)
    _log.error("a request failed", exc_info=error)
    return build_problem(500, f"Zuno has a bug ({type(error).__name__}); `zuno logs` says more.", "bug")


def answer_problem(view: ProblemView, headers: Mapping[str, str] | None = None) -> Response:
    content = view.model_dump_json(by_alias=True, exclude_none=True)
    return Response(content, view.status, headers=headers, media_type=MEDIA_TYPE)


def register_problems(app: FastAPI) -> None:
    """Every error of this app becomes a problem document."""

    async def tell(request: Request, error: Exception) -> Response:
        return answer_problem(describe_error(error))

    async def tell_unread(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        return answer_problem(build_problem(422, f"{where}: {fault['msg']}."))

    async def tell_status(request: Request, error: Exception) -> Response:
        assert isinstance(error, AnyHTTPException)
        return answer_problem(build_problem(error.status_code, str(error.detail)), error.headers)

    for kind in (ZunoError, Problem, Exception):
        app.add_exception_handler(kind, tell)
    app.add_exception_handler(RequestValidationError, tell_unread)
    app.add_exception_handler(AnyHTTPException, tell_status)


_SCHEMA: Final = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemView"}}}}
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"description": HTTPStatus(status).phrase, **_SCHEMA}
    for status in (400, 401, 403, 404, 409, 413, 421, 422, 429, 500, 502, 503)
}
"""What every route may answer, for the description of the interface."""
