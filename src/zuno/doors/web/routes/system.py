"""Routes of Zuno itself: the session, both desks at a glance, settings, checks, logs."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from zuno.doors.config import ConfigView
from zuno.doors.doctor import DoctorView
from zuno.doors.logs import LogsView
from zuno.doors.status import StatusView
from zuno.doors.web.access import Access, Caller
from zuno.doors.web.confirm import Body
from zuno.doors.web.events import EventFeed
from zuno.doors.web.home_view import HomeView
from zuno.doors.web.jobs import Jobs, JobsView, JobView
from zuno.doors.web.look_route import TEXT_CHARS, Account, Chain, Id, LookRoute
from zuno.doors.web.problems import describe_error
from zuno.doors.web.services import Services, document, respond
from zuno.doors.web_logins import LoginScope, WebLoginsView
from zuno.doors.zuno import Zuno
from zuno.kernel.errors import NotFound, ZunoError
from zuno.kernel.view import View
from zuno.kernel.wire import derive
from zuno.lp.model.chains import chain_named
from zuno.trading.model.trade_events import LIVE_ACCOUNT, PAPER_ACCOUNT, account_mode

Shown = TypeVar("Shown", bound=View)
Trading = Literal["synthetic", "paper", "live"]
Liquidity = Literal["synthetic", "test", "real"]


class AccountChoiceView(View):
    name: str
    """What `account` says for it."""
    mode: Literal["paper", "demo", "live"]


class EndSessionBody(Body):
    id: Annotated[str, Field(max_length=TEXT_CHARS)]
    """Of a session, or `all`."""


class SessionView(View):
    login: str
    """Its id, or the name of the token."""
    scope: LoginScope
    """Of this login."""
    may_act: bool
    """False where it may only look, or where real money waits for `zuno web allow`; then it may still lower risk."""
    home: str
    chain: str
    mode: Trading
    """The worse of the next two: `live` where money is at stake at either desk, `synthetic` where both are invented."""
    trading: Trading
    """`synthetic`: prices are invented; `paper`: they are real and no money is traded; `live`: money may be traded."""
    liquidity: Liquidity
    """`real` where any chain that this home reads holds money, `test` where any is a test network, `synthetic` where
    all are local ones."""
    accounts: tuple[AccountChoiceView, ...]
    """Accounts of the trading desk that a page may show, the one to begin with first."""
    markets: tuple[str, ...]
    """Those that the trading desk trades."""
    market: str
    """`live` or `recorded`."""
    version: str


def judge_trading(config: ConfigView) -> Trading:
    if config.live:
        return "live"
    return "synthetic" if config.market == "recorded" and config.recording == "synthetic" else "paper"


def judge_liquidity(config: ConfigView) -> Liquidity:
    """A chain that is in no table of ours is a local one."""
    public = [chain for name in config.chains if (chain := chain_named(name)) is not None]
    if any(not chain.testnet for chain in public):
        return "real"
    return "test" if public else "synthetic"


def judge_mode(trading: Trading, liquidity: Liquidity) -> Trading:
    if trading == "live" or liquidity == "real":
        return "live"
    return "synthetic" if trading == liquidity == "synthetic" else "paper"


def has_real_money(config: ConfigView) -> bool:
    return judge_mode(judge_trading(config), judge_liquidity(config)) == "live"


async def _list_accounts(zuno: Zuno, trading: Trading) -> tuple[AccountChoiceView, ...]:
    """Live is the first where money may be traded; else what happened at an exchange can still be looked at."""
    used: tuple[str, ...] = ()
    with suppress(ZunoError):  # whoever logs in is told so by what they look at
        used = await zuno.account().list_exchange_accounts()
    names = [LIVE_ACCOUNT] if trading == "live" else []
    names += [PAPER_ACCOUNT, *sorted(used, key=account_mode, reverse=True)]
    return tuple(AccountChoiceView(name=name, mode=account_mode(name)) for name in dict.fromkeys(names))


def build_system_routes(services: Services, access: Access, version: str, feed: EventFeed, jobs: Jobs) -> APIRouter:
    router = APIRouter(tags=["system"], route_class=LookRoute)

    @router.get("/session", **document(SessionView))
    async def get_session(request: Request) -> Response:
        """Who is asked, and what this login may do."""
        caller: Caller = request.state.caller

        async def look(zuno: Zuno) -> View:
            config = zuno.config()
            trading, liquidity = judge_trading(config), judge_liquidity(config)
            return derive(
                SessionView,
                config,
                login=caller.login.name,
                scope=caller.login.scope,
                may_act=access.may_act(caller),
                mode=judge_mode(trading, liquidity),
                trading=trading,
                liquidity=liquidity,
                accounts=await _list_accounts(zuno, trading),
                markets=zuno.markets,
                version=version,
            )

        return await services.answer(look)

    @router.delete("/session", status_code=204)
    async def end_session(request: Request) -> Response:
        """Log this browser out."""
        await access.log_out(request.state.caller)
        response = Response(status_code=204)
        access.set_cookie(response, "", 0)
        return response

    @router.get("/sessions", **document(WebLoginsView))
    async def list_sessions() -> Response:
        """Browsers that are logged in, without their secrets."""
        return respond(await asyncio.to_thread(access.logins.list, "session"))

    @router.post("/sessions/end", **document(WebLoginsView))
    async def end_sessions(body: EndSessionBody) -> Response:
        return respond(await asyncio.to_thread(access.logins.list, "session", body.id))

    @router.get("/home", **document(HomeView))
    async def get_home(chain: Chain = None, account: Account = None) -> Response:
        """Both desks: one sentence, what is urgent, one act; then worth, fees, PnL, drawdown, open trades, alerts, and
        the plans that wait."""
        notes: list[str] = []

        async def read(question: Callable[[Zuno], Awaitable[Shown]]) -> Shown | None:
            try:
                return await services.fetch(question)
            except ZunoError as error:
                if account is not None and isinstance(error, NotFound):
                    raise
                notes.append(describe_error(error).detail)
                return None

        portfolio, plans, trading, performance, positions, alerts = await asyncio.gather(
            read(lambda zuno: zuno.portfolio().portfolio((), "7d", chain)),
            read(lambda zuno: zuno.execution().list_waiting()),
            read(lambda zuno: zuno.account(account).status()),
            read(lambda zuno: zuno.account(account).equity()),
            read(lambda zuno: zuno.account(account).positions()),
            read(lambda zuno: zuno.alerts().list()),
        )
        view = HomeView(
            portfolio=portfolio,
            trading=trading,
            performance=performance,
            positions=positions,
            alerts=alerts,
            plans=() if plans is None else plans.plans,
            jobs=jobs.list().jobs[:10],
            notes=tuple(dict.fromkeys(notes)),
        )
        return respond(view)

    @router.get("/jobs", **document(JobsView))
    async def list_jobs() -> Response:
        """What this server was asked to do, and how far it is."""
        return respond(jobs.list())

    @router.get("/jobs/{job}", **document(JobView))
    async def get_job(job: Id) -> Response:
        return respond(jobs.show(job))

    @router.get(
        "/events",
        responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "A stream."}},
    )
    async def follow_events(
        request: Request, last_event_id: Annotated[str | None, Header(max_length=TEXT_CHARS)] = None
    ) -> Response:
        """Server-sent events: what the journal gets, and what jobs are doing. Resumes after the event of an id."""
        caller: Caller = request.state.caller
        stream = await feed.open(last_event_id, lambda: access.lasts(caller))
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    @router.get("/config", **document(ConfigView))
    async def get_config() -> Response:
        """Settings that differ from their default, without secrets."""

        async def look(zuno: Zuno) -> View:
            return zuno.config()

        return await services.answer(look)

    @router.get("/doctor", **document(DoctorView))
    async def get_doctor() -> Response:
        """Home, disk, store, keys, clock, market, models, chains and exchanges."""
        return await services.answer(lambda zuno: zuno.doctor().examine())

    @router.get("/status", **document(StatusView))
    async def get_status() -> Response:
        """What runs, last and next cycle, last monitor look, open risk, locks, disk, record."""
        return await services.answer(lambda zuno: zuno.status())

    @router.get("/logs", **document(LogsView))
    async def list_logs(
        lines: Annotated[int, Query(ge=1, le=1000)] = 50, level: Annotated[str, Query(max_length=20)] = "info"
    ) -> Response:
        """What this home's processes said of themselves, oldest first."""
        return await services.answer(lambda zuno: zuno.logs().show(lines, level))

    return router
