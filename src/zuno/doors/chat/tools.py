"""The read-only tools of the chat: each calls a service of `Zuno` and returns its view, and the view as facts.

A tool is named like the shell's intent for the same thing, and takes the same slots as arguments. None of them
approves, signs, sends, pauses or changes a setting.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from zuno.doors.glossary import look_up
from zuno.doors.zuno import Zuno
from zuno.kernel.view import View
from zuno.llm.chat import ToolSpec
from zuno.lp.model.plan import PLAN_KIND
from zuno.trading.service.runs import DECIDED

Slots = Mapping[str, str]
GROUPS: Final = ("day", "week", "month", "symbol", "exit", "side", "sleeve")
STATES: Final = ("in-range", "out-of-range", "risky")
_MOST_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    """The intent of the shell that asks for the same."""
    command: str
    """What a person sends for the same view, with its arguments in capitals."""
    description: str
    look: Callable[[Zuno, Slots], Awaitable[View]]
    prefix: str
    """Of the ids of its facts."""
    takes: Mapping[str, bool] = field(default_factory=dict)
    """Its arguments; whether one is needed."""
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of arguments that are one of a few words."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, tuple(self.takes), self.check)

    def check(self, arguments: Slots) -> str | None:
        for name, needed in self.takes.items():
            if needed and not arguments.get(name, "").strip():
                return f"{self.name} needs {name}"
        for name, allowed in self.choices.items():
            if name in arguments and arguments[name] not in allowed:
                return f"{name} is one of {', '.join(allowed)}"
        return None

    def sent_as(self, arguments: Slots) -> str:
        """The command with these arguments; those that were not given are left out."""
        words = [arguments.get(word.lower(), "") if word.isupper() else word for word in self.command.split()]
        return " ".join(word for word in words if word)


async def _look_at_reference(zuno: Zuno, slots: Slots) -> View:
    which = slots.get("reference") or slots.get("run") or await zuno.audit().last_request((PLAN_KIND, DECIDED))
    return await (zuno.cycles() if which.startswith("run_") else zuno.archive()).why(which)


async def _explain(zuno: Zuno, slots: Slots) -> View:
    return look_up(slots["term"])


TOOLS: Final = {
    tool.name: tool
    for tool in (
        Tool("trade_status", "/status", "the trading account: equity, PnL, open trades, locks, mandate",
            lambda zuno, slots: zuno.account().status(), "status"),
        Tool("trade_positions", "/status", "open trades: entry, mark, unrealised PnL, stop, target",
            lambda zuno, slots: zuno.account().positions(), "open"),
        Tool("trade_trades", "/trades", "closed trades, newest first: net PnL, R, fees, exit",
            lambda zuno, slots: zuno.account().trades(_MOST_LINES), "trades"),
        Tool("trade_profit", "/profit BY",
            f"win rate, profit factor, expectancy, drawdown of closed trades; by: {', '.join(GROUPS)}",
            lambda zuno, slots: zuno.account().profit(slots.get("by")), "profit", {"by": False}, {"by": GROUPS}),
        Tool("trade_performance", "/performance", "equity and drawdown over time",
            lambda zuno, slots: zuno.account().equity(), "performance"),
        Tool("trade_sleeves", "/sleeves", "sleeves: share, capital, equity, results, what each holds",
            lambda zuno, slots: zuno.account().sleeves(), "sleeves"),
        Tool("trade_balance", "/balance", "cash, margin and equity by exchange",
            lambda zuno, slots: zuno.account().balance(), "balance"),
        Tool("trade_locks", "/locks", "what keeps the desk from new trades",
            lambda zuno, slots: zuno.account().locks(), "locks"),
        Tool("markets", "/markets SYMBOL",
            "what venues list: tick, lot, least order, fees, funding, age of the lists; symbol: a coin, as SOL",
            lambda zuno, slots: zuno.market_desk().list(search=slots.get("symbol", "")), "markets", {"symbol": False}),
        Tool("trade_runs", "/report list", "the trading desk's runs: decision, ruling, veto",
            lambda zuno, slots: zuno.cycles().runs(), "runs"),
        Tool("why", "/why REFERENCE",
            "why a decision was made; reference: run_…, plan_… or req_…, the last decision if empty",
            _look_at_reference, "why", {"reference": False}),
        Tool("memory_list", "/memory", "post-mortems of closed trades; symbol: a market, as BTCUSDT",
            lambda zuno, slots: zuno.memory().list(_MOST_LINES, slots.get("symbol")), "memories", {"symbol": False}),
        Tool("memory_search", "/memory search QUERY",
            "post-mortems by words; query: symbol, side, exit, outcome or setup",
            lambda zuno, slots: zuno.memory().search(slots["query"], 5), "found", {"query": True}),
        Tool("memory_lessons", "/memory lessons", "lessons drawn from post-mortems",
            lambda zuno, slots: zuno.memory().lessons(), "lessons"),
        Tool("positions", "/positions CHAIN",
            f"LP positions: amounts, fees, price and range; only: {', '.join(STATES)}",
            lambda zuno, slots: zuno.lp(slots.get("chain")).list_positions(
                [slots["position"]] if "position" in slots else (), slots.get("address"), slots.get("only")
            ), "positions", {"only": False, "chain": False}, {"only": STATES}),
        Tool("inspect", "/positions POSITION CHAIN", "one LP position by its id",
            lambda zuno, slots: zuno.lp(slots.get("chain")).inspect(slots["position"]), "position",
            {"position": True, "chain": False}),
        Tool("portfolio", "/portfolio SPAN",
            "all LP positions in USD: worth, fees, fee APR, net APR after LVR; span: the window, 24h or 7d",
            lambda zuno, slots: zuno.portfolio().portfolio(
                [slots["address"]] if "address" in slots else (), slots.get("span", "7d"), slots.get("chain")
            ), "portfolio", {"span": False, "chain": False}),
        Tool("pnl", "/pnl POSITION SINCE CHAIN",
            "what an LP position earned: fees, impermanent loss, gas; since: 7d or a date",
            lambda zuno, slots: zuno.lp(slots.get("chain")).pnl(slots["position"], slots.get("since")), "pnl",
            {"position": True, "since": False, "chain": False}),
        Tool("whatif", "/whatif POSITION MOVE CHAIN", "an LP position at another price; move: -20% or a price",
            lambda zuno, slots: zuno.lp(slots.get("chain")).whatif(slots["position"], slots.get("move")), "whatif",
            {"position": True, "move": False, "chain": False}),
        Tool("plans", "/plan", "the LP plans and how far they have come",
            lambda zuno, slots: zuno.archive().plans(), "plans"),
        Tool("plan", "/plan PLAN", "one LP plan: verdict, range, costs, cautions",
            lambda zuno, slots: zuno.archive().plan(slots["plan"]), "plan", {"plan": True}),
        Tool("alerts", "/alerts", "alerts of the LP monitor", lambda zuno, slots: zuno.alerts().list(), "alerts"),
        Tool("glossary", "zuno glossary TERM", "what a term of the field means; term: as LVR", _explain, "term",
            {"term": True}),
        Tool("balances", "zuno wallet balance", "the tokens in the wallet on a chain",
            lambda zuno, slots: zuno.wallet(slots.get("chain")).balance(), "wallet", {"chain": False}),
    )
}  # fmt: skip
_OF_INTENTS: Final[Mapping[str, tuple[str, Slots]]] = {
    "in_range": ("positions", {}),
    "in_range_only": ("positions", {"only": "in-range"}),
    "out_of_range": ("positions", {"only": "out-of-range"}),
    "risky": ("positions", {"only": "risky"}),
    "trade_why": ("why", {}),
    **{f"trade_profit_{group}": ("trade_profit", {"by": group}) for group in GROUPS},
}
"""Intents that are another one with a word fixed."""


def tool_for_intent(intent: str, slots: Slots) -> tuple[Tool, dict[str, str]] | None:
    """The tool that answers what the shell's reader read, and its arguments; None where none does."""
    name, fixed = _OF_INTENTS.get(intent, (intent, {}))
    tool = TOOLS.get(name)
    return None if tool is None else (tool, {**slots, **fixed})
