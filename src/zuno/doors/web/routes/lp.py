"""Routes of the LP desk: positions, pools, portfolio, alerts, debates."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from zuno.doors.web.routes.parameters import TEXT_CHARS, Chain, Id, Wallet
from zuno.doors.web.services import Services, document
from zuno.lp.service.archive import WhyView
from zuno.lp.service.portfolio import PortfolioView
from zuno.lp.service.views import (
    ClosedPositionsView,
    InspectView,
    LiquidityView,
    PnlView,
    PoolsView,
    PoolView,
    PositionHistoryView,
    PositionsView,
    WhatIfView,
)
from zuno.lp.watch.alerts import AlertsView

Text = Annotated[str | None, Query(max_length=TEXT_CHARS)]


def build_lp_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix="/lp", tags=["lp"])

    @router.get("/positions", **document(PositionsView))
    async def list_positions(chain: Chain = None, wallet: Wallet = None, only: Text = None) -> Response:
        """A wallet's positions with exact amounts and uncollected fees."""
        return await services.answer(lambda zuno: zuno.lp(chain).positions((), wallet, only))

    @router.get("/closed", **document(ClosedPositionsView))
    async def list_closed(chain: Chain = None, wallet: Wallet = None) -> Response:
        """What became of positions that are gone."""
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
        chain: Chain = None, window: Annotated[str, Query(max_length=20)] = "24h", wallet: Wallet = None
    ) -> Response:
        """All watched positions in USD: worth, fees per day, fee and net APR, time in range."""
        wallets = () if wallet is None else (wallet,)
        return await services.answer(lambda zuno: zuno.portfolio().portfolio(wallets, window, chain))

    @router.get("/pools", **document(PoolsView))
    async def list_pools(chain: Chain = None) -> Response:
        return await services.answer(lambda zuno: zuno.lp(chain).pools())

    @router.get("/pools/{pool}", **document(PoolView))
    async def get_pool(pool: Id, chain: Chain = None, fee: Text = None) -> Response:
        """One pool by its id."""
        return await services.answer(lambda zuno: zuno.lp(chain).pool(pool, fee))

    @router.get("/pools/{pool}/liquidity", **document(LiquidityView))
    async def get_liquidity(pool: Id, chain: Chain = None) -> Response:
        """How the pool's liquidity lies from half its price to twice."""
        return await services.answer(lambda zuno: zuno.lp(chain).liquidity(pool))

    @router.get("/alerts", **document(AlertsView))
    async def list_alerts(everything: bool = False) -> Response:
        """Active alerts, and the price and fee alerts that are set; `everything`: past ones too."""
        return await services.answer(lambda zuno: zuno.alerts().list(everything=everything))

    @router.get("/debates/{debate}", **document(WhyView))
    async def get_debate(debate: Id) -> Response:
        """The argument behind a plan or a request, as it stands in the journal."""
        return await services.answer(lambda zuno: zuno.archive().why(debate))

    return router
