"""Routes of the trading desk: the account, its books, the market, the runs."""

from contextlib import suppress
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field

from zuno.doors.web.confirm import Body, ConfirmBody, ShortText, confirm_by, is_word
from zuno.doors.web.events import EventFeed
from zuno.doors.web.jobs import Jobs, JobView
from zuno.doors.web.look_route import (
    TEXT_CHARS,
    Account,
    AsOf,
    BodyAccount,
    Cursor,
    Id,
    Limit,
    LookRoute,
    Mode,
    Symbol,
    Text,
)
from zuno.doors.web.services import PageView, Services, document, respond
from zuno.doors.web.stops import Helper
from zuno.doors.zuno import Zuno
from zuno.kernel.accounts import PAPER_ACCOUNT, KillLock, account_mode
from zuno.kernel.clock import iso
from zuno.kernel.errors import NotFound, Refused, Unavailable
from zuno.kernel.units import Millis
from zuno.kernel.view import ForeignText, View
from zuno.markets.market import parse_symbol
from zuno.trading.model.cycle import NodeEvent
from zuno.trading.model.market import parse_mode
from zuno.trading.service.account_view import (
    ActionView,
    LocksView,
    TradeBalanceView,
    TradePositionsView,
    TradeStatusView,
)
from zuno.trading.service.features_view import CandlesView, FeaturesView, MarketChartView
from zuno.trading.service.markets import MarketsView
from zuno.trading.service.own_strategies import OwnShadowsView
from zuno.trading.service.profit_view import EquityCurvesView, PerformanceView, ProfitView
from zuno.trading.service.report import Report, Reports
from zuno.trading.service.runs_view import CycleWhyView
from zuno.trading.service.strategies import SleevesListView, StrategyTargetsView

Interval = Annotated[str, Query(max_length=TEXT_CHARS, description="1m, 5m, 15m, 1h, 4h, 1d or 1w.")]


class AnalyzeBody(Body):
    symbol: Annotated[str, Field(max_length=TEXT_CHARS)]
    mode: Annotated[str, Field(max_length=TEXT_CHARS)] = "swing"
    execute: bool = False
    """Act on the ruling: place its orders in a paper account. Real money is traded by `zuno trade`, at a terminal."""
    account: BodyAccount = None


class RunStartView(View):
    """A run of this server that is not on record yet, or never came that far. The fields are those of a run."""

    run_id: str
    symbol: str
    mode: str
    state: Literal["starting", "failed"]
    started: str
    error: ForeignText | None
    run: None = None
    reached: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


class AccountBody(ConfirmBody):
    account: BodyAccount = None


class UnlockBody(AccountBody):
    protection: ShortText = None
    """Only this one; default: all."""


def build_trading_routes(services: Services, feed: EventFeed, jobs: Jobs, helper: Helper, lock: KillLock) -> APIRouter:
    router = APIRouter(prefix="/trading", tags=["trading"], route_class=LookRoute)

    @router.get("/account", **document(TradeStatusView))
    async def get_account(account: Account = None) -> Response:
        """Equity, PnL, locks, mandate, and the risk book."""
        return await services.answer(lambda zuno: zuno.account(account).status())

    @router.get("/balance", **document(TradeBalanceView))
    async def get_balance(account: Account = None) -> Response:
        """Cash, margin, unrealised PnL, equity and free margin by exchange."""
        return await services.answer(lambda zuno: zuno.account(account).balance())

    @router.get("/positions", **document(TradePositionsView))
    async def list_positions(account: Account = None) -> Response:
        """Open positions: entry, mark, unrealised PnL, stop, target, order ids."""
        return await services.answer(lambda zuno: zuno.account(account).positions())

    @router.get("/trades", **document(PageView))
    async def list_trades(account: Account = None, cursor: Cursor = None, limit: Limit = 50) -> Response:
        """Closed trades, newest first."""
        return await services.page(lambda zuno: zuno.account(account).trades(limit + 1, cursor), "trades", "id", limit)

    @router.get("/orders", **document(PageView))
    async def list_orders(
        account: Account = None, everything: bool = False, cursor: Cursor = None, limit: Limit = 50
    ) -> Response:
        """Open orders, newest first; `everything`: also filled, cancelled and rejected ones."""
        return await services.page(
            lambda zuno: zuno.account(account).orders(everything=everything), "orders", "id", limit, cursor
        )

    @router.get("/fills", **document(PageView))
    async def list_fills(account: Account = None, cursor: Cursor = None, limit: Limit = 50) -> Response:
        """Fills, newest first."""
        return await services.page(lambda zuno: zuno.account(account).fills(limit + 1, cursor), "fills", "id", limit)

    @router.get("/ledger", **document(PageView))
    async def list_postings(account: Account = None, cursor: Cursor = None, limit: Limit = 50) -> Response:
        """Postings of the double-entry ledger, newest first; its balances are in `head`."""
        return await services.page(
            lambda zuno: zuno.account(account).ledger(limit + 1, cursor), "postings", "number", limit
        )

    @router.get("/equity", **document(PerformanceView))
    async def get_equity(account: Account = None) -> Response:
        """Equity and drawdown over time."""
        return await services.answer(lambda zuno: zuno.account(account).equity())

    @router.get("/curves", **document(EquityCurvesView))
    async def get_curves(account: Account = None) -> Response:
        """Desk, core, hold and every sleeve over the same days, from the account's first equity on."""
        return await services.answer(lambda zuno: zuno.account(account).curves())

    @router.get("/strategies", **document(SleevesListView))
    async def list_strategies(account: Account = None) -> Response:
        """The rule of each strategy, and its share of the account."""
        return await services.answer(lambda zuno: zuno.strategies(account).list())

    @router.get("/targets", **document(StrategyTargetsView))
    async def list_targets(account: Account = None, as_of: AsOf = None) -> Response:
        """What each sleeve would hold, why, and what a minimum order prevents."""
        return await services.answer(lambda zuno: zuno.strategies(account).targets(as_of))

    @router.get("/shadows", **document(OwnShadowsView))
    async def list_shadows() -> Response:
        """The record of each strategy of the owner's own; none is asked."""
        return await services.answer(lambda zuno: zuno.own_strategies().records())

    @router.get("/daily", **document(ProfitView))
    async def get_profit(account: Account = None, by: Annotated[str, Query(max_length=20)] = "day") -> Response:
        """PnL of closed trades by day, week, month, symbol, exit, side or sleeve."""
        return await services.answer(lambda zuno: zuno.account(account).profit(by))

    @router.get("/protections", **document(LocksView))
    async def list_protections(account: Account = None) -> Response:
        """What keeps the desk from new trades."""
        return await services.answer(lambda zuno: zuno.account(account).locks())

    @router.get("/markets", **document(MarketsView))
    async def list_markets(venue: Text = None, kind: Text = None, search: Text = None) -> Response:
        """What venues list: tick, lot, least order, fees, funding, and the age of each list."""
        return await services.answer(lambda zuno: zuno.market_desk().list(venue, kind, search or ""))

    @router.get("/candles", **document(CandlesView))
    async def list_candles(
        symbol: Symbol,
        interval: Interval = "1h",
        since: Annotated[str, Query(alias="from", max_length=TEXT_CHARS)] = "7d",
        until: Annotated[str | None, Query(alias="to", max_length=TEXT_CHARS)] = None,
    ) -> Response:
        """Closed bars of a time, the newest 1,000 of them at most."""
        return await services.answer(lambda zuno: zuno.trading().candles(symbol, interval, since, until))

    @router.get("/chart", **document(MarketChartView))
    async def get_chart(
        symbol: Symbol,
        interval: Interval = "4h",
        mode: Mode = "swing",
        as_of: AsOf = None,
        bars: Annotated[int | None, Query(ge=1, le=1000)] = None,
    ) -> Response:
        """Candles with levels, averages, gaps, volume profile and heat map as figures."""
        return await services.answer(lambda zuno: zuno.trading().market_chart(symbol, interval, mode, as_of, bars))

    @router.get("/features", **document(FeaturesView))
    async def get_features(symbol: Symbol, mode: Mode = "swing", as_of: AsOf = None) -> Response:
        """What is measured of a symbol."""
        return await services.answer(lambda zuno: zuno.trading().features(symbol, mode, as_of))

    @router.get("/runs", **document(PageView))
    async def list_runs(cursor: Cursor = None, limit: Limit = 50) -> Response:
        """Runs, newest first."""
        return await services.page(lambda zuno: zuno.cycles().runs(limit + 1, cursor), "runs", "runId", limit)

    @router.get("/runs/{run}", **document(CycleWhyView | RunStartView))
    async def get_run(run: Id) -> Response:
        """A run from the journal: agents, model attempts, rules that fired, the ruling. One that was just started here
        and is not on record yet is `starting`."""
        try:
            return await services.answer(lambda zuno: zuno.cycles().why(run))
        except (NotFound, Refused):
            if (job := jobs.find(run)) is None:
                raise
        symbol, _, mode = job.about.partition(" ")
        state: Literal["starting", "failed"] = "failed" if job.state == "failed" else "starting"
        started = iso(Millis(job.started))
        return respond(
            RunStartView(run_id=run, symbol=symbol, mode=mode, state=state, started=started, error=job.error)
        )

    @router.post("/analyze", **document(JobView, 202))
    async def analyze(body: AnalyzeBody) -> Response:
        """Start a cycle; `id` is its run. Its nodes come by the event stream."""

        async def choose(zuno: Zuno) -> str:
            if body.execute and account_mode(zuno.find_account(body.account) or PAPER_ACCOUNT) != "paper":
                raise Refused("A cycle that acts at an exchange is run by `zuno trade run --execute`, at a terminal.")
            return parse_symbol(body.symbol, zuno.markets)

        symbol, mode = await services.ask(choose), parse_mode(body.mode)
        run_id = jobs.new_id("run_")

        def hear(event: NodeEvent) -> None:
            if event.state == "waits":  # the rest comes by the journal
                feed.publish("node", {"runId": run_id, "node": event.node.value, "state": event.state})

        async def run(zuno: Zuno) -> Report:
            return await Reports(zuno.cycles()).run(
                symbol, mode, None, hear, execute=body.execute, account=body.account, run_id=run_id
            )

        return respond(jobs.start(run_id, "analyze", f"{symbol} {mode}", run), 202)

    @router.post("/pause", **document(ActionView))
    async def pause(body: AccountBody) -> Response:
        """Open no new trades and cancel waiting entries; open positions keep their stops and targets."""
        return respond(await helper.ask(("pause", body.account)))

    @router.post("/resume", **document(ActionView))
    async def resume(body: AccountBody) -> Response:
        """Open new trades again; with real money the word `resume` is needed."""
        return respond(await services.ask(lambda zuno: zuno.account(body.account).resume(confirm_by(body.word))))

    @router.post("/kill", **document(ActionView))
    async def kill(body: AccountBody) -> Response:
        """Lock, cancel all orders and close all positions; the word `kill` is needed."""
        if not is_word(body.word, "kill"):  # says what would be done
            return respond(await services.ask(lambda zuno: zuno.account(body.account).kill(confirm_by(body.word))))
        with suppress(Unavailable):  # then it is said after everything is closed
            lock.lock(body.account or PAPER_ACCOUNT, "page")
        about = body.account or "the home's account"
        return respond(await jobs.follow(jobs.new_id("job_"), "kill", about, helper.ask(("kill", body.account))))

    @router.post("/unlock", **document(ActionView))
    async def unlock(body: UnlockBody) -> Response:
        """Lift locks; with real money the word `unlock` is needed."""
        confirm = confirm_by(body.word)
        return respond(await services.ask(lambda zuno: zuno.account(body.account).unlock(body.protection, confirm)))

    return router
