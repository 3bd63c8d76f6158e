"""Routes of the LP desk: positions, pools, portfolio, alerts, debates."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field

from zuno.doors.web.confirm import Body, ShortText
from zuno.doors.web.events import EventFeed, describe_thought
from zuno.doors.web.jobs import Jobs, JobView
from zuno.doors.web.look_route import Chain, Id, LookRoute, Text, Wallet
from zuno.doors.web.problems import Problem
from zuno.doors.web.services import Services, document, respond
from zuno.doors.zuno import Zuno
from zuno.kernel.errors import NotFound
from zuno.kernel.view import View
from zuno.lp.model.debate import OwnRange, Thought
from zuno.lp.service.archive import WhyView
from zuno.lp.service.arguments import own_range
from zuno.lp.service.create_request import Flags
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.pool_ranking import PoolRankingView
from zuno.lp.service.portfolio import PortfolioView
from zuno.lp.service.range_preview import RangePreviewView, name_pool
from zuno.lp.service.recommend import Waiting
from zuno.lp.service.result_views import ClosedPositionsView, PnlView, WhatIfView
from zuno.lp.service.views import InspectView, LiquidityView, PoolsView, PoolView, PositionHistoryView, PositionsView
from zuno.lp.watch.alerts import AlertsView

Edge = Annotated[str, Query(max_length=60, description="In prices as people quote the pair; with `ticks`, a tick.")]


def read_range(lower: str | None, upper: str | None, *, ticks: bool) -> OwnRange:
    edges = lower or "", upper or ""
    own = own_range(None, edges) if ticks else own_range(edges, None)
    assert own is not None
    return own


class RecommendBody(Body):
    kind: Literal["rebalance", "create"] = "rebalance"
    position: ShortText = None
    """Of a rebalance."""
    wish: Annotated[str | None, Field(max_length=500)] = None
    """Of a new position, in words: "0.05 ETH passively"."""
    chain: ShortText = None
    profile: ShortText = None
    range: Annotated[tuple[ShortText, ShortText] | None, Field(strict=False)] = None
    """Of the owner's own, a further candidate: two prices; `ticks`: two ticks."""
    ticks: bool = False
    anyway: bool = False
    """Take the own range though the Critic advise against it."""
    pool: ShortText = None
    """The one to open the position in; without it the desk chooses."""


def build_lp_routes(services: Services, feed: EventFeed, jobs: Jobs) -> APIRouter:
    router = APIRouter(prefix="/lp", tags=["lp"], route_class=LookRoute)

    @router.get("/positions", **document(PositionsView))
    async def list_positions(chain: Chain = None, wallet: Wallet = None, only: Text = None) -> Response:
        """A wallet's positions with exact amounts and uncollected fees."""
        return await services.answer(lambda zuno: zuno.lp(chain).list_positions((), wallet, only))

    @router.get("/closed", **document(ClosedPositionsView))
    async def list_closed(chain: Chain = None, wallet: Wallet = None) -> Response:
        """Closed positions and their results."""
        return await services.answer(lambda zuno: zuno.lp(chain).list_closed(wallet, zuno.archive().ended_positions))

    @router.get("/positions/{position}", **document(InspectView))
    async def get_position(position: Id, chain: Chain = None) -> Response:
        """One position with its pool and market."""
        return await services.answer(lambda zuno: zuno.lp(chain).inspect(position))

    @router.get("/positions/{position}/attribution", **document(PnlView))
    async def get_attribution(position: Id, chain: Chain = None, since: Text = None) -> Response:
        """Where the money went: fees, price effect, impermanent loss, gas, swap cost, residual."""
        return await services.answer(lambda zuno: zuno.lp(chain).pnl(position, since))

    @router.get("/positions/{position}/history", **document(PositionHistoryView))
    async def get_history(position: Id, chain: Chain = None) -> Response:
        """The price of 30 days beside the range, and fees by day."""
        return await services.answer(lambda zuno: zuno.lp(chain).history(position))

    @router.get("/positions/{position}/whatif", **document(WhatIfView))
    async def get_what_if(position: Id, chain: Chain = None, move: Text = None) -> Response:
        """The position at another price, a change in percent or a price; and from -50 % to +50 %."""
        return await services.answer(lambda zuno: zuno.lp(chain).whatif(position, move))

    @router.get("/portfolio", **document(PortfolioView))
    async def get_portfolio(
        chain: Chain = None, window: Annotated[str, Query(max_length=20)] = "7d", wallet: Wallet = None
    ) -> Response:
        """All watched positions in USD: worth, fees per day, fee and net APR, time in range."""
        wallets = () if wallet is None else (wallet,)
        return await services.answer(lambda zuno: zuno.portfolio().portfolio(wallets, window, chain))

    @router.get("/pools", **document(PoolsView))
    async def list_pools(chain: Chain = None) -> Response:
        return await services.answer(lambda zuno: zuno.lp(chain).pools())

    @router.get("/pools/rank", **document(PoolRankingView))
    async def rank_pools(
        wanted: Text = None, amount: Annotated[str, Query(max_length=20)] = "10000", chain: Chain = None
    ) -> Response:
        """Which pools' fees pay for their LVR, by the low end of fee cover; `wanted`: a token or a pair."""
        return await services.answer(lambda zuno: zuno.pool_ranking(chain).rank(wanted, amount, lambda *_: None))

    @router.get("/pools/{pool}", **document(PoolView))
    async def get_pool(pool: Id, chain: Chain = None, fee: Text = None) -> Response:
        """One pool by its id."""
        return await services.answer(lambda zuno: zuno.lp(chain).pool(pool, fee))

    @router.get("/pools/{pool}/liquidity", **document(LiquidityView))
    async def get_liquidity(pool: Id, chain: Chain = None) -> Response:
        """How the pool's liquidity lies from half its price to twice."""
        return await services.answer(lambda zuno: zuno.lp(chain).liquidity(pool))

    @router.get("/range", **document(RangePreviewView))
    async def preview_range(
        lower: Edge,
        upper: Edge,
        ticks: bool = False,
        position: Text = None,
        pool: Text = None,
        wish: Annotated[str | None, Query(max_length=500)] = None,
        chain: Chain = None,
        profile: Text = None,
    ) -> Response:
        """What a range of one's own would earn and cost, by the rules of the debate: of a position moved there, or of a
        wish in a pool."""
        if (position is None) == (wish is None) or (wish is None) != (pool is None):
            raise Problem(422, "A range of a position, or of a wish in a pool.")
        own = read_range(lower, upper, ticks=ticks)

        async def preview(zuno: Zuno) -> View:
            there = None if pool is None else await zuno.lp(chain).pool(pool)
            return await zuno.range_previews.preview(own, chain, profile, position or "", wish or "", there)

        return await services.answer(preview)

    @router.get("/alerts", **document(AlertsView))
    async def list_alerts(everything: bool = False) -> Response:
        """Active alerts, and the price and fee alerts that are set; `everything`: past ones too."""
        return await services.answer(lambda zuno: zuno.alerts().list(everything=everything))

    @router.get("/debates/{debate}", **document(WhyView))
    async def get_debate(debate: Id) -> Response:
        """The argument behind a plan or a request, as it stands in the journal; empty where this server has just
        begun it."""
        try:
            return await services.answer(lambda zuno: zuno.archive().why(debate))
        except NotFound:
            if (job := jobs.find(debate)) is None:
                raise
        begun = WhyView(request_id=debate, code="", messages=(), transcript=(), sources=(), plan=None, failed=job.error)
        return respond(begun)

    @router.post("/recommend", **document(JobView, 202))
    async def recommend(body: RecommendBody) -> Response:
        """Start a debate; `id` is its request. Thoughts and the plan come by the event stream. Nothing is signed."""
        if (body.kind == "create") == (body.wish is None) or (body.kind == "rebalance") == (body.position is None):
            raise Problem(422, "A rebalance names a position, a new position is a wish in words.")
        request_id = jobs.new_id("req_")

        def hear(event: Thought | Waiting) -> None:
            if isinstance(event, Waiting):
                waits = {"id": request_id, "roles": event.roles, "seconds": event.seconds, "text": str(event)}
                feed.publish("waiting", waits)
            else:
                feed.publish("thought", describe_thought(request_id, event.role, event.round, event.seq, event.text))

        own = None if body.range is None else read_range(*body.range, ticks=body.ticks)
        terms: dict[str, Any] = {"own_range": own, "anyway": body.anyway, "listen": hear, "request_id": request_id}
        terms |= {"chain": body.chain, "profile": body.profile}

        async def debate(zuno: Zuno) -> PlanView:
            advice = zuno.advice()
            if body.wish is None:
                return await advice.rebalance(body.position or "", **terms)
            flags = Flags() if body.pool is None else name_pool(await zuno.lp(body.chain).pool(body.pool))
            return await advice.create(body.wish, flags, **terms)

        feed.expect(request_id)
        return respond(jobs.start(request_id, "recommend", body.wish or f"position {body.position}", debate), 202)

    return router
