"""From a reading to the command line's own words. `--yes` is none of them: whoever signs types it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from zuno.doors.reading.intents import Intent, Need, Reading, Slots, shape_of

Words = tuple[str, ...]

ONLY_HERE: Final = frozenset({Intent.SWITCH, Intent.HELP, Intent.EXIT, Intent.UNCLEAR})
"""What the shell does by itself."""

QUESTIONS: Final[Mapping[Need, str]] = MappingProxyType(
    {
        "position": "Which position?",
        "plan": "Which plan?",
        "reference": "Which plan?",
        "alert": "Which alert?",
        "amount": "How much of which token? Say it like 0.05 ETH.",
        "percent": "By how many percent?",
        "span": "For how long? Say it like 6h.",
        "chain": "Which chain?",
        "pair": "Which pool? Say it like ETH/USDC 5bps.",
    }
)


def command_of(reading: Reading, chain: str | None = None) -> Words:
    """The words after `zuno`, once nothing is missing and nothing points at what was shown; else none.

    `chain` is meant where the line names none.
    """
    if reading.ask or reading.missing or reading.slots.refers or reading.intent in ONLY_HERE:
        return ()
    words = (*_WORDS[reading.intent](reading.slots), *_options(reading))
    if chain is None or reading.slots.chain or "chain" not in shape_of(reading.intent).takes:
        return words
    return (*words, "--chain", chain)


def template_of(reading: Reading) -> Words:
    """The same with a place for whatever is still missing, such as POSITION."""
    if reading.ask or reading.intent in ONLY_HERE:
        return ()
    slots = reading.slots
    takes = shape_of(reading.intent)
    for need in takes.needs:
        name = "plan" if need == "reference" else need
        if getattr(slots, name) is None and not (need == "reference" and slots.request):
            slots = replace(slots, **{name: name.upper()})
    whole = replace(reading, slots=replace(slots, refers=None))
    return (*_WORDS[reading.intent](whole.slots), *_options(whole))


def _options(reading: Reading) -> Words:
    slots = reading.slots
    words: list[str] = []
    if slots.chain is not None and reading.intent is not Intent.CREATE:
        words += ["--chain", slots.chain]
    if slots.profile is not None and reading.intent is Intent.REBALANCE:
        words += ["--profile", slots.profile]
    if slots.candidate is not None:
        words += ["--candidate", slots.candidate]
    return tuple(words)


def _fixed_words(*words: str) -> Callable[[Slots], Words]:
    return lambda slots: words


def _of_position(*words: str) -> Callable[[Slots], Words]:
    return lambda slots: (*words, str(slots.position))


def _of_plan(*words: str) -> Callable[[Slots], Words]:
    return lambda slots: (*words, str(slots.plan or slots.request))


def _positions(only: str | None) -> Callable[[Slots], Words]:
    """A position that is named answers for itself, whatever was asked of all."""

    def words(slots: Slots) -> Words:
        if slots.position is not None:
            return ("lp", "positions", "--id", slots.position)
        return ("lp", "positions", *(("--only", only) if only else ()))

    return words


def _pool(slots: Slots) -> Words:
    fee = () if slots.fee is None else (f"{int(slots.fee)}pips",)
    return ("lp", "pool", str(slots.pair), *fee)


def _add(slots: Slots) -> Words:
    amounts = str(slots.amount).split(" + ")
    return ("lp", "add", str(slots.position), *(word for amount in amounts for word in ("--amount", amount)))


_WORDS: Final[Mapping[Intent, Callable[[Slots], Words]]] = MappingProxyType(
    {
        Intent.POSITIONS: _positions(None),
        Intent.INSPECT: _of_position("lp", "inspect"),
        Intent.IN_RANGE: _positions(None),
        Intent.OUT_OF_RANGE: _positions("out-of-range"),
        Intent.RISKY: _positions("risky"),
        Intent.REBALANCE: _of_position("lp", "recommend", "rebalance"),
        Intent.OPTIONS: _of_plan("plan", "show"),
        Intent.WHY: _of_plan("why"),
        Intent.DIFF: lambda slots: ("plan", "diff", str(slots.plan), str(slots.other or "OTHER")),
        Intent.SIMULATE: _of_plan("plan", "simulate"),
        Intent.APPROVE: _of_plan("plan", "approve"),
        Intent.APPLY: _of_plan("plan", "apply"),
        Intent.CANCEL: _of_plan("plan", "cancel"),
        Intent.STATUS: _of_plan("plan", "status"),
        Intent.CREATE: lambda slots: ("lp", "recommend", "create", slots.wish or ""),
        Intent.BALANCES: _fixed_words("wallet", "balance"),
        Intent.ALLOWANCES: _fixed_words("wallet", "allowances"),
        Intent.WALLET: _fixed_words("wallet", "show"),
        Intent.WALLET_CREATE: _fixed_words("wallet", "create"),
        Intent.WALLET_IMPORT: _fixed_words("wallet", "import"),
        Intent.AGENTS: _fixed_words("agents"),
        Intent.PEERS: _fixed_words("agents"),
        Intent.ALERTS: lambda slots: ("alerts", "--all") if slots.all else ("alerts",),
        Intent.ACK: lambda slots: ("alerts", "ack", str(slots.alert)),
        Intent.SNOOZE: lambda slots: ("alerts", "snooze", str(slots.alert), str(slots.span)),
        Intent.REFRESH: _fixed_words("lp", "pools"),
        Intent.POOLS: _fixed_words("lp", "pools"),
        Intent.POOL: _pool,
        Intent.COLLECT: _of_position("lp", "collect"),
        Intent.CLOSE: _of_position("lp", "close"),
        Intent.ADD: _add,
        Intent.REMOVE: lambda slots: ("lp", "remove", str(slots.position), "--percent", str(slots.percent)),
        Intent.PNL: lambda slots: (
            *("lp", "pnl", str(slots.position)),
            *(() if slots.span is None else ("--since", slots.span)),
        ),
        Intent.HISTORY: _fixed_words("plan", "list"),
        Intent.JOURNAL: lambda slots: ("journal", "tail", *(("--count", slots.count) if slots.count else ())),
        Intent.VERIFY: _fixed_words("journal", "verify"),
        Intent.REPLAY: _of_plan("replay"),
        Intent.PLANS: _fixed_words("plan", "list"),
        Intent.PLAN: _of_plan("plan", "show"),
        Intent.MONITOR_ONCE: _fixed_words("monitor", "once"),
        Intent.MONITOR_RUN: _fixed_words("monitor", "run"),
        Intent.SIM_MOVE: lambda slots: ("sim", "move", "--percent", str(slots.percent)),
        Intent.SIM_RESET: _fixed_words("sim", "reset"),
        # In the foreground it would hold the shell until it is stopped.
        Intent.DEVNET_UP: _fixed_words("devnet", "up", "--background"),
        Intent.DEVNET_DOWN: _fixed_words("devnet", "down"),
        Intent.DEVNET_STATUS: _fixed_words("devnet", "status"),
        Intent.DEVNET_MOVE: lambda slots: ("devnet", "move", "--percent", str(slots.percent)),
        Intent.DEMO: _fixed_words("demo"),
        Intent.VERSION: _fixed_words("version"),
        Intent.PARSE: lambda slots: ("parse", str(slots.wish)),
    }
)
