"""What is done at the trading desk beside stopping it: trades, orders, levels, its mandate, the desk on paper."""

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Response
from pydantic import Field

from zuno.doors.web.confirm import Body, ConfirmBody, ShortText, confirm_by
from zuno.doors.web.events import EventFeed
from zuno.doors.web.jobs import Jobs, JobView
from zuno.doors.web.look_route import TEXT_CHARS, BodyAccount, LookRoute
from zuno.doors.web.services import Services, document, respond
from zuno.doors.web.stops import Helper
from zuno.doors.zuno import Zuno
from zuno.kernel.accounts import PAPER_ACCOUNT, account_mode
from zuno.kernel.errors import Refused
from zuno.trading.service.account_view import ActionView, MandateStateView
from zuno.trading.service.desk_view import DeskEvent, DeskRunView, DeskStopView

START_SECONDS: Final = 2.0
"""How long a desk may take to refuse its start before the answer is that it runs."""
Name = Annotated[str, Field(max_length=TEXT_CHARS)]


class CloseBody(ConfirmBody):
    which: Name
    """Position id, symbol, or `all`."""
    account: BodyAccount = None


class LevelsBody(ConfirmBody):
    position: Name
    stop: ShortText = None
    target: ShortText = None
    account: BodyAccount = None


class CancelBody(Body):
    order: Name
    account: BodyAccount = None


class AccountNameBody(Body):
    account: BodyAccount = None


class StartBody(AccountNameBody):
    symbols: Annotated[tuple[Name, ...], Field(max_length=50, strict=False)] = ()
    """Default: all of ZUNO_MARKETS."""
    mode: Name = "swing"


def build_trade_act_routes(services: Services, feed: EventFeed, jobs: Jobs, helper: Helper) -> APIRouter:
    router = APIRouter(prefix="/trading", tags=["trading"], route_class=LookRoute)

    @router.post("/close", **document(ActionView))
    async def close(body: CloseBody) -> Response:
        """Close positions at the market and cancel their orders; with real money the word `close` is needed."""
        confirm = confirm_by(body.word)
        return respond(await services.ask(lambda zuno: zuno.account(body.account).close(body.which, confirm)))

    @router.post("/levels", **document(ActionView))
    async def set_levels(body: LevelsBody) -> Response:
        """Move a stop or a target; what loosens it needs the word `loosen`, with real money anything needs `set`."""
        levels = body.position, body.stop, body.target, confirm_by(body.word)
        return respond(await services.ask(lambda zuno: zuno.account(body.account).set_levels(*levels)))

    @router.post("/cancel", **document(ActionView))
    async def cancel(body: CancelBody) -> Response:
        """Cancel an entry. Stops and targets go with their position."""
        return respond(await helper.ask(("cancel_order", body.account, body.order)))

    @router.post("/revoke", **document(MandateStateView))
    async def revoke(body: AccountNameBody) -> Response:
        """Revoke what the desk may do with real money: no live order is placed any more."""
        return respond(await helper.ask(("revoke", body.account)))

    @router.post("/start", **document(JobView, 202))
    async def start(body: StartBody) -> Response:
        """Run the desk on paper until it is stopped or this server ends; through the last day of a recorded market."""
        account = body.account or PAPER_ACCOUNT

        async def run(zuno: Zuno, stop: asyncio.Event) -> DeskRunView:
            name = zuno.find_account(body.account)
            if account_mode(name or PAPER_ACCOUNT) != "paper":
                raise Refused("The desk of an account at an exchange is started by `zuno trade start`, at a terminal.")

            def hear(event: DeskEvent) -> None:
                feed.publish("desk", event.model_dump(mode="json", by_alias=True) | {"account": account})

            speed, since = ("max", "24h") if zuno.config().market == "recorded" else (None, None)
            return await zuno.trade_desk().start(
                hear, stop, symbols=body.symbols, mode=body.mode, account=name, speed=speed, since=since
            )

        begun = await jobs.begin(jobs.new_id("job_"), "desk", account, services.work(run), START_SECONDS)
        return respond(begun, 202)

    @router.post("/stop", **document(DeskStopView))
    async def stop(body: AccountNameBody) -> Response:
        """Ask the desk of an account to end, wherever it runs; stops at the exchange stay there."""
        return respond(await services.ask(lambda zuno: zuno.trade_desk().stop(body.account)))

    return router
