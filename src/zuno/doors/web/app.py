"""The application: access first, then the interface under /api/v1, then the files of the page."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from mimetypes import guess_type
from pathlib import Path
from typing import Annotated, Final

from fastapi import FastAPI, Request, Response
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse
from pydantic import Field

from zuno.doors.docs_site import build_site
from zuno.doors.metrics import TEXT_TYPE
from zuno.doors.web.access import Access, Guard
from zuno.doors.web.confirm import Body
from zuno.doors.web.documents import DocumentView
from zuno.doors.web.events import EventFeed
from zuno.doors.web.jobs import Jobs
from zuno.doors.web.metrics import Metrics
from zuno.doors.web.page_files import LEAST_PACKED_BYTES, PageFiles
from zuno.doors.web.problems import PROBLEMS, Problem, ProblemView, register_problems
from zuno.doors.web.routes.lp import build_lp_routes
from zuno.doors.web.routes.lp_acts import build_lp_act_routes
from zuno.doors.web.routes.plans import build_plan_routes
from zuno.doors.web.routes.system import build_system_routes
from zuno.doors.web.routes.trade_acts import build_trade_act_routes
from zuno.doors.web.routes.trading import build_trading_routes
from zuno.doors.web.routes.trust import FRAME_HEADERS, build_lab_routes, build_trust_routes
from zuno.doors.web.services import DOCUMENT_TYPE, Services
from zuno.doors.web.stops import Helper
from zuno.doors.web_logins import SESSION_MS
from zuno.kernel.accounts import KillLock
from zuno.kernel.units import Millis

STATIC: Final = Path(__file__).parent / "static"
API: Final = "/api/v1"
READY_SECONDS: Final = 5.0
READY_MS: Final = 1_000


class LoginBody(Body):
    code: Annotated[str, Field(max_length=200)]


@dataclass(frozen=True, slots=True)
class WebBackends:
    access: Access
    now: Callable[[], Millis]
    chance: Callable[[int], bytes]
    """Unguessable bytes, for ids."""
    metrics: Metrics
    version: str
    kill_lock: KillLock
    helper: Helper
    list_faults: Callable[[], Awaitable[tuple[str, ...]]]
    """Why the home is not ready, in codes, asked on the services' loop."""
    docs: Path | None = None
    """The folder of this project's pages, where they are installed."""


def create_app(services: Services, on: WebBackends, feed: EventFeed) -> FastAPI:
    jobs = Jobs(services, feed, on.now, on.chance, on.metrics.count_job)
    app = FastAPI(
        title="Zuno",
        version=on.version,
        summary="The documents of `--json`, for the page and for scripts on this machine.",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses=PROBLEMS,
    )
    register_problems(app)
    for router in (
        build_lp_routes(services, feed, jobs),  # tried in this order: the one that is asked most comes first
        build_system_routes(services, on.access, on.version, feed, jobs),
        build_plan_routes(services, feed, jobs, on.helper),
        build_lp_act_routes(services, jobs, on.helper),
        build_trading_routes(services, feed, jobs, on.helper, on.kill_lock),
        build_trade_act_routes(services, feed, jobs, on.helper),
        build_trust_routes(services),
        build_lab_routes(services),
    ):
        app.include_router(router, prefix=API)
    _add_health_routes(app, services, on)
    _add_open_routes(app, on.access, on.docs)

    @app.get("/metrics", include_in_schema=False)
    async def write_metrics() -> Response:
        desk = await services.ask(lambda zuno: zuno.metrics().write(), refresh=False)
        return Response(on.metrics.write(feed) + desk, media_type=TEXT_TYPE)

    _describe_answers(app)
    app.mount("/", PageFiles(STATIC), name="page")
    app.add_middleware(GZipMiddleware, minimum_size=LEAST_PACKED_BYTES, compresslevel=5)  # not the event stream
    app.add_middleware(Guard, access=on.access, metrics=on.metrics, chance=on.chance)
    return app


def _add_health_routes(app: FastAPI, services: Services, on: WebBackends) -> None:
    known: tuple[int, tuple[str, ...]] = (-READY_MS, ("starting",))

    @app.get("/healthz", include_in_schema=False)
    @app.get("/livez", include_in_schema=False)
    async def tell_life() -> Response:
        """The process and its loop are there, whatever else is."""
        return PlainTextResponse("ok\n")

    @app.get("/readyz", include_in_schema=False)
    async def tell_readiness() -> Response:
        """200, or 503 with the codes of what is amiss; what was seen within a second is not looked at again."""
        nonlocal known
        if not 0 <= on.now() - known[0] < READY_MS:
            known = on.now(), known[1]  # whoever asks meanwhile gets the last answer
            try:
                async with asyncio.timeout(READY_SECONDS):
                    known = on.now(), await services.ask(lambda zuno: on.list_faults(), refresh=False)
            except TimeoutError:
                known = on.now(), ("busy",)
        return JSONResponse({"ready": not known[1], "faults": known[1]}, 503 if known[1] else 200)


def _add_open_routes(app: FastAPI, access: Access, docs: Path | None) -> None:

    @app.post("/login", include_in_schema=False)
    async def log_in(request: Request, body: LoginBody) -> Response:
        """For a code of `zuno web link`: a cookie, and the secret of the header that goes with it."""
        cookie, secret, scope = await access.log_in(body.code, request.state.client)
        response = JSONResponse({"secret": secret, "scope": scope})
        access.set_cookie(response, cookie, SESSION_MS // 1000)
        return response

    @app.get("/report.html", include_in_schema=False)
    async def frame_report() -> Response:
        return FileResponse(STATIC / "report.html", headers=FRAME_HEADERS)

    if docs is None:
        return

    @app.get("/docs", include_in_schema=False)
    @app.get("/docs/decisions", include_in_schema=False)
    async def add_slash(request: Request) -> Response:
        """Else what these pages link to would be looked for one folder too high."""
        return RedirectResponse(f"{request.url.path}/", 307)

    built: list[asyncio.Task[dict[str, bytes]]] = []

    @app.get("/llms.txt", include_in_schema=False)
    @app.get("/llms-full.txt", include_in_schema=False)
    @app.get("/docs/{place:path}", include_in_schema=False)
    async def show_docs(request: Request, place: str = "") -> Response:
        """Built when it is first asked for, which takes two seconds."""
        if not built:
            built.append(asyncio.create_task(asyncio.to_thread(build_site, docs, f"{access.base}/docs/")))
        site = await asyncio.shield(built[0])
        name = request.path_params.get("place", request.url.path.rpartition("/")[2])
        name = f"{name}index.html" if name.endswith("/") or not name else name
        if (content := site.get(name)) is None:
            raise Problem(404, "The documentation has no such page; /docs/ lists them.")
        if name == "llms.txt":
            content += f"\n## Interface\n\n- [OpenAPI]({access.base}{API}/openapi.json): wants the login\n".encode()
        kind = guess_type(name)[0] or "text/markdown"
        return Response(content, media_type="text/plain" if name.endswith((".md", ".txt")) else kind)


def _describe_answers(app: FastAPI) -> None:
    """What no route names itself: the schema that problems refer to, and the answers that hold a document too."""
    build = app.openapi

    def describe() -> dict[str, object]:
        if app.openapi_schema is None:
            whole = build()
            known = whole.setdefault("components", {}).setdefault("schemas", {})
            known["ProblemView"] = ProblemView.model_json_schema(by_alias=True, mode="serialization")
            document = DocumentView.model_json_schema(
                by_alias=True, mode="serialization", ref_template="#/components/schemas/{model}"
            )
            known |= document.pop("$defs") | {"DocumentView": document}
            answers = (
                answer.get("content", {})
                for methods in whole["paths"].values()
                for operation in methods.values()
                for status, answer in operation["responses"].items()
                if status.startswith("2")
            )
            for content in answers:
                if view := content.get("application/json", {}).get("schema"):
                    maybe = {"anyOf": [{"$ref": "#/components/schemas/DocumentView"}, {"type": "null"}]}
                    both = {"type": "object", "properties": {"view": view, "document": maybe}}
                    content[DOCUMENT_TYPE] = {"schema": both | {"required": ["view", "document"]}}
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]
