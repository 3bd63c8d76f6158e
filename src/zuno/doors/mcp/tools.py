"""The tools: each asks one service and answers with its view. None approves, signs, sends or changes a setting."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from zuno.doors.mcp.analyses import Analyses, AnalysisView
from zuno.doors.mcp.backtests import ARMS, MOST_DAYS, MOST_MARKETS, SECONDS, run_backtest
from zuno.doors.mcp.services import AssistantServices
from zuno.journal.audit import JournalVerdictView
from zuno.journal.decision_view import ReplayView
from zuno.kernel.view import View
from zuno.lab.trading.views import TradeLabView
from zuno.lp.service.archive import PlanListView
from zuno.lp.service.execution_view import SimulationView, UnsignedView
from zuno.lp.service.plan_view import PlanView
from zuno.lp.service.pool_ranking import PoolRankingView
from zuno.lp.service.portfolio import PortfolioView
from zuno.lp.service.result_views import PnlView, WhatIfView
from zuno.lp.service.views import InspectView, PositionsView
from zuno.lp.watch.alerts import AlertsView
from zuno.trading.service.account_view import TradeStatusView, TradesView
from zuno.trading.service.markets import MarketsView
from zuno.trading.service.memory_view import LessonsView, SearchView
from zuno.trading.service.profit_view import ProfitView
from zuno.trading.service.runs_view import CycleWhyView, RunsView
from zuno.trading.service.strategies import StrategyTargetsView

Word = Annotated[str, Field(min_length=1, max_length=100)]
PositionId = Annotated[str, Field(min_length=1, max_length=80, description="Position id (NFT token id), as in 1.")]
Chain = Annotated[
    str | None, Field(max_length=40, description="sim, devnet, base, arbitrum …; default: the one this home is set to.")
]
Count = Annotated[int, Field(ge=1, le=200)]
Window = Annotated[str, Field(max_length=20, description="Of fees and time in range: 24h, 7d.")]
Coin = Annotated[str, Field(max_length=40, description="A coin or a part of a name: SOL, PEPE.")]
Query = Annotated[str, Field(min_length=1, max_length=500, description="Symbol, side, exit, outcome or setup.")]


class Arguments(BaseModel):
    """An id may come as a number: that is how an assistant often writes it."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


def _takes(**kinds: Any) -> type[Arguments]:
    """Of each argument its kind and its default; `...`: it is needed."""
    return create_model("Arguments", __base__=Arguments, **kinds)


def _text(most: int, description: str) -> tuple[Any, None]:
    return Annotated[str | None, Field(max_length=most, description=description)], None


def _id(description: str) -> tuple[Any, Any]:
    return Annotated[Word, Field(description=description)], ...


_CHAIN: Final = {"chain": (Chain, None)}
_POSITION: Final = {**_CHAIN, "position": (PositionId, ...)}
_LIMIT: Final = {"limit": (Count, 20)}


@dataclass(frozen=True, slots=True)
class Desk:
    """What a tool may ask."""

    services: AssistantServices
    analyses: Analyses


@dataclass(frozen=True, slots=True)
class AssistantTool:
    name: str
    title: str
    description: str
    takes: type[Arguments]
    gives: type[View]
    look: Callable[[Desk, Any], Awaitable[View]]
    starts: bool = False
    """It leaves a record: a debate or a cycle, which ask models within their budget, a backtest's report, or a
    step that was handed out. The others only read."""


async def _replay(desk: Desk, asked: Any) -> ReplayView:
    of_trading = asked.reference.startswith("run_")
    return await (desk.services.cycles() if of_trading else desk.services.archive()).replay(asked.reference)


TOOLS: Final = {
    tool.name: tool
    for tool in (
        AssistantTool("lp_list_positions", "LP positions",
            "Uniswap v4 positions of a wallet: exact amounts, uncollected fees, price and range.",
            _takes(**_CHAIN, wallet=_text(80, "0x…; default: the watched wallet."),
                state=(Literal["in-range", "out-of-range", "risky"] | None, None)), PositionsView,
            lambda desk, asked: desk.services.lp(asked.chain).list_positions((), asked.wallet, asked.state)),
        AssistantTool("lp_get_position", "LP position", "One Uniswap v4 position with its pool and its market.",
            _takes(**_POSITION), InspectView,
            lambda desk, asked: desk.services.lp(asked.chain).inspect(asked.position)),
        AssistantTool("lp_get_portfolio", "LP portfolio",
            "All watched positions in USD: worth, fees per day, fee APR, net APR after LVR, time in range.",
            _takes(**_CHAIN, window=(Window, "7d")), PortfolioView,
            lambda desk, asked: desk.services.portfolio().portfolio((), asked.window, asked.chain)),
        AssistantTool("lp_get_pnl", "LP profit and loss",
            "Where a position's money went: fees, price effect, impermanent loss, gas, swap cost, residual.",
            _takes(**_POSITION, since=_text(40, "7d, 2026-01-25; default: the mint.")), PnlView,
            lambda desk, asked: desk.services.lp(asked.chain).pnl(asked.position, asked.since)),
        AssistantTool("lp_what_if", "LP position at another price",
            "A position at another price: tokens, worth, impermanent loss; and from -50 % to +50 %.",
            _takes(**_POSITION, price=_text(40, "A change in % or a price: -20%, 2400.")), WhatIfView,
            lambda desk, asked: desk.services.lp(asked.chain).whatif(asked.position, asked.price)),
        AssistantTool("lp_list_alerts", "LP alerts",
            "What the monitor raised: positions out of range or near an edge, levels that were set.",
            _takes(everything=(Annotated[bool, Field(description="Also those that are over.")], False)), AlertsView,
            lambda desk, asked: desk.services.alerts().list(everything=asked.everything)),
        AssistantTool("rank_pools", "Which pools pay",
            "Pools of a chain by whether their fees pay for LVR: fee cover with its interval, depth, volume, age.",
            _takes(**_CHAIN, wanted=_text(100, "Only pools of this pair or token: ETH/USDC."),
                amount=(Annotated[str, Field(max_length=40, description="Size of the position, in USD.")], "10000")),
            PoolRankingView,
            lambda desk, asked: desk.services.pool_ranking(asked.chain).rank(
                asked.wanted, asked.amount, lambda done, total: None)),
        AssistantTool("lp_recommend_rebalance", "Debate an LP position",
            "Four agents argue: hold, close, widen, tighten or shift. Answers with an id within seconds and argues on;"
            " analysis_get tells its state and, in the end, the plan. Nothing is approved, signed or sent.",
            _takes(**_POSITION, profile=(Literal["conservative", "balanced", "aggressive"] | None, None)), AnalysisView,
            lambda desk, asked: desk.analyses.recommend_rebalance(asked.position, asked.chain, asked.profile),
            starts=True),
        AssistantTool("plan_list", "LP plans", "Plans of the LP desk, newest first, with how far they have come.",
            _takes(**_LIMIT, before=_text(100, "Only plans made before this one.")), PlanListView,
            lambda desk, asked: desk.services.archive().plans(asked.limit, asked.before)),
        AssistantTool("plan_get", "LP plan",
            "One plan: verdict, candidates with stress and carry, cautions, who said what. A person approves it with"
            " `zuno plan approve`.",
            _takes(plan=_id("plan_ and 12 hex digits.")), PlanView,
            lambda desk, asked: desk.services.archive().plan(asked.plan)),
        AssistantTool("simulate_plan", "Simulate an LP plan",
            "A plan as exact calls on the latest block: balance changes, gas, price impact, bounds, or why it fails.",
            _takes(plan=_id("plan_ and 12 hex digits.")), SimulationView,
            lambda desk, asked: desk.services.execution().simulate(asked.plan, looks=True)),
        AssistantTool("prepare_plan", "Next step of an approved plan, unsigned",
            "For a wallet whose key is elsewhere: of an approved plan the next transaction, or a Safe's whole batch, to"
            " be signed there. It is handed out once; asked again, the same bytes. Without an approval the answer is"
            " the command that approves. Nothing is signed or sent here.",
            _takes(plan=_id("plan_ and 12 hex digits.")), UnsignedView,
            lambda desk, asked: desk.services.execution().prepare(asked.plan),
            starts=True),
        AssistantTool("trade_get_status", "Trading account",
            "The trading account: paper or live, equity, PnL, open trades, protections, mandate.",
            Arguments, TradeStatusView, lambda desk, asked: desk.services.account().status()),
        AssistantTool("trade_list_trades", "Closed trades",
            "Closed trades, newest first: entry, exit, net PnL, R, fees, exit reason.",
            _takes(**_LIMIT), TradesView, lambda desk, asked: desk.services.account().trades(asked.limit)),
        AssistantTool("trade_get_profit", "Trading profit",
            "Win rate, profit factor, expectancy and drawdown of closed trades, in all and by group.",
            _takes(by=(Literal["day", "week", "month", "symbol", "exit", "side"] | None, None)), ProfitView,
            lambda desk, asked: desk.services.account().profit(asked.by)),
        AssistantTool("trade_list_runs", "Trading runs",
            "Runs of the trading desk, newest first: regime, decision, ruling, veto.",
            _takes(**_LIMIT, before=_text(100, "Only runs started before this one.")), RunsView,
            lambda desk, asked: desk.services.cycles().runs(asked.limit, asked.before)),
        AssistantTool("trade_get_run", "Trading run",
            "One run in full: experts, decision, every rule that changed it, expected value, sources and their ages.",
            _takes(run=_id("run_ and 16 hex digits.")), CycleWhyView,
            lambda desk, asked: desk.services.cycles().why(asked.run)),
        AssistantTool("trade_list_markets", "Markets",
            "What venues list: tick, lot, least order, fees, funding interval, and the age of each list.",
            _takes(search=(Coin, ""), venue=_text(40, "binance, bybit-spot, okx …; default: all."),
                kind=(Literal["spot", "perp"] | None, None)), MarketsView,
            lambda desk, asked: desk.services.market_desk().list(asked.venue, asked.kind, asked.search)),
        AssistantTool("strategy_targets", "Targets of the strategies",
            "What every sleeve of the trading account would hold, why, and what a minimum order prevents.",
            _takes(as_of=_text(40, "Only what was known then: 7d, 2026-01-25; default: now.")), StrategyTargetsView,
            lambda desk, asked: desk.services.strategies().targets(asked.as_of)),
        AssistantTool("backtest", "Backtest the trading desk",
            f"The last days of this home's recording by the desk's rules beside holding, an average and chance, every"
            f" cost counted. At most {MOST_DAYS} days, {MOST_MARKETS} markets and {SECONDS:g} s: the notes say what was"
            " cut. Leaves a report; no model is asked, no order placed.",
            _takes(symbols=(Annotated[str, Field(max_length=200, description="BTCUSDT, or several with commas.")], ""),
                days=(Annotated[int, Field(ge=1, le=3_650)], 14),
                arms=(Annotated[str, Field(max_length=200, description="debate, hold, sma, random …")], ARMS)),
            TradeLabView,
            lambda desk, asked: run_backtest(desk.services, asked.symbols, asked.days, asked.arms),
            starts=True),
        AssistantTool("trade_analyze", "Analyse a market",
            "Experts, a judge and a risk officer rule on a market. Answers with an id within seconds and runs on;"
            " analysis_get tells its state, trade_get_run the ruling. No order is placed.",
            _takes(symbol=_id("A market of ZUNO_MARKETS: BTCUSDT, eth."), mode=(Literal["swing", "position"], "swing")),
            AnalysisView, lambda desk, asked: desk.analyses.analyze(asked.symbol, asked.mode),
            starts=True),
        AssistantTool("analysis_get", "State of an analysis",
            "State of what lp_recommend_rebalance or trade_analyze began, and what was said so far.",
            _takes(id=_id("As it was answered: req_… or run_….")), AnalysisView,
            lambda desk, asked: desk.analyses.look(asked.id)),
        AssistantTool("memory_search", "Search post-mortems",
            "Post-mortems of closed trades by words of symbol, side, exit, outcome and setup, best first.",
            _takes(query=(Query, ...), limit=(Annotated[int, Field(ge=1, le=20)], 5)), SearchView,
            lambda desk, asked: desk.services.memory().search(asked.query, asked.limit)),
        AssistantTool("memory_list_lessons", "Lessons",
            "Lessons drawn from post-mortems, with their cases and whether they hold.",
            Arguments, LessonsView, lambda desk, asked: desk.services.memory().lessons()),
        AssistantTool("journal_verify", "Verify the journal",
            "Verify the hash chain and every signature of the journal.",
            Arguments, JournalVerdictView, lambda desk, asked: desk.services.audit().verify()),
        AssistantTool("journal_replay", "Replay a decision",
            "Argue a recorded decision of either desk again, offline, and compare the bytes. Nothing is written.",
            _takes(reference=_id("plan_…, req_… or run_….")), ReplayView, _replay),
    )
}  # fmt: skip
