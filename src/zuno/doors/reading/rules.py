"""Which concepts together mean which intent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from zuno.doors.reading.intents import Intent
from zuno.doors.reading.tokens import Token

HEADS: Final = frozenset(
    """ACK AGENTS ALERTS ALLOWANCE BALANCE DEBATE DEMO DIFF EXIT HELP HISTORY HOLDINGS HOWMUCH HOWTO IN_RANGE INSPECT
    JOURNAL OPTIONS OUT_OF_RANGE PEERS PNL REBALANCE RECOMMEND REFRESH REPLAY RISKY SIMULATE SNOOZE STATUS SWITCH
    VERIFY VERSION WHY CANDIDATE CREATE PUT RESET MONITOR DONE""".split()
)
"""Concepts that ask for something by themselves: one that the chosen rule does not use is a second wish."""
_PARTICULARS: Final = frozenset("PLANID ALERTID REQUESTID AMOUNT PERCENT PAIR SIM DEVNET".split())
_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {**dict.fromkeys(HEADS, 3.0), **dict.fromkeys(_PARTICULARS, 2.0), "SHOW": 0.5, "IS": 0.5}
)


@dataclass(frozen=True, slots=True)
class Rule:
    """Every need must be met by a token of its own; a need may name several concepts."""

    intent: Intent
    needs: tuple[frozenset[str], ...]
    absorbs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Match:
    rule: Rule
    used: tuple[int, ...]
    score: float


_ABSORBS: Final[Mapping[Intent, str]] = MappingProxyType(
    {
        Intent.WHY: "RECOMMEND REBALANCE DEBATE OPTIONS CANDIDATE NEG RANGE WHY INSPECT",
        Intent.REBALANCE: "RECOMMEND REBALANCE DEBATE OPTIONS CANDIDATE RISKY",
        Intent.CREATE: "CREATE PUT RECOMMEND REBALANCE RISKY RANGE CANDIDATE",
        Intent.IN_RANGE: "INSPECT",
        Intent.OUT_OF_RANGE: "INSPECT",
        Intent.RISKY: "INSPECT IN_RANGE OUT_OF_RANGE RANGE",
        Intent.AGENTS: "STATUS",
        Intent.STATUS: "DONE INSPECT",
        Intent.DEVNET_STATUS: "STATUS",
        Intent.REPLAY: "DEBATE",
        Intent.VERIFY: "JOURNAL",
        Intent.ACK: "ALERTS",
        Intent.SNOOZE: "ALERTS",
        Intent.WALLET_CREATE: "CREATE",
        Intent.PNL: "HOWMUCH INSPECT",
        Intent.MONITOR_RUN: "MONITOR",
        Intent.OPTIONS: "OPTIONS INSPECT",
        Intent.INSPECT: "INSPECT",
        Intent.PEERS: "PEERS AGENTS",
        Intent.HELP: "HELP",
        Intent.DIFF: "DIFF",
        Intent.JOURNAL: "JOURNAL",
        Intent.BALANCES: "BALANCE HOWMUCH",
    }
)

_RULES: Final = """
positions: POSITIONS
positions: SHOW POSITIONS
positions: HAVE POSITIONS
positions: HOLDINGS
positions: SHOW CREATE POSITIONS
positions: SHOW POSITION SHOW
inspect: INSPECT
inspect: INSPECT POSITION|NUMBER|PRON|ORDINAL
inspect: ABOUT POSITION|NUMBER|PRON|ORDINAL
inspect: POSITION NUMBER
inspect: SHOW NUMBER
inspect: SHOW POSITION NUMBER|PRON|ORDINAL
inspect: SHOW PRON
inspect: SHOW ORDINAL
in_range: IN_RANGE
out_of_range: OUT_OF_RANGE
risky: RISKY
rebalance: REBALANCE
rebalance: RECOMMEND
rebalance: RECOMMEND REBALANCE
rebalance: DEBATE POSITION|NUMBER|PRON|ORDINAL
rebalance: DEBATE RUN
rebalance: TAKE|USE|VETO CANDIDATE|OPTIONS NUMBER
options: OPTIONS
options: CANDIDATE
why: WHY
why: WHY VETO
why: WHY RECOMMEND|REBALANCE|OPTIONS|DEBATE
why: SHOW DEBATE
why: ROLE SAY
diff: DIFF
diff: DIFF PLANID|PLANS
diff: HOWTO DIFF PLANID|PLANS
simulate: SIMULATE
simulate: RUN SIMULATE
status: STATUS
status: STATUS PLAN|PLANID|PRON
status: IS DONE PLAN|PLANID|PRON
status: DONE PLAN|PLANID|PRON
create: CREATE AMOUNT
create: CREATE POSITION|POSITIONS|PAIR
create: CREATE LIQUIDITY
create: CREATE RECOMMEND
create: NEW POSITION
create: AMOUNT
create: AMOUNT RISK
create: PUT
create: LONG
create: PAIR FEE|PERCENT
create: AMOUNT PAIR
pnl: HOWMUCH EARN
balances: BALANCE
balances: WALLET BALANCE
balances: HOWMUCH HAVE
allowances: ALLOWANCE
wallet: WALLET
wallet: SHOW WALLET
wallet_create: CREATE|NEW|MAKE WALLET
wallet_create: EARN NEW WALLET
wallet_import: IMPORT WALLET
switch: SWITCH
switch: SWITCH CHAIN
switch: USE|GOTO CHAIN
agents: AGENTS
agents: AGENTS STATUS|RUN
peers: PEERS
alerts: ALERTS
alerts: ALERTID
ack: ACK
ack: ACK ALERTS|ALERTID|PRON
snooze: SNOOZE
snooze: SNOOZE ALERTS|ALERTID|PRON
refresh: REFRESH
refresh: REFRESH|UPDATE POOLS|POOL
pools: POOLS
pools: SHOW POOLS
pool: POOL PAIR
pool: POOL PAIR FEE|PERCENT
pnl: PNL
pnl: EARN POSITION NUMBER|PRON
pnl: EARN POSITION
pnl: HISTORY POSITION
pnl: HISTORY POSITION NUMBER|PRON
history: HISTORY
journal: JOURNAL
journal: JOURNAL TAIL
journal: JOURNAL NUMBER
verify: VERIFY
verify: JOURNAL VERIFY|CHECK
replay: REPLAY
replay: DEBATE AGAIN
replay: DEBATE AGAIN PRON
plan: PLANID
plan: SHOW PLANID
plan: SHOW DEFPLAN
plan: SHOW PRON|ORDINAL PLAN
plans: PLANS
plans: SHOW PLANS
plans: PLAN SHOW
monitor_once: MONITOR ONCE
monitor_once: CHECK POSITIONS ONCE
monitor_run: MONITOR RUN
sim_move: SIM MOVE|DROP|RAISE PERCENT
sim_reset: SIM RESET
sim_reset: SIM RUN OVER
devnet_up: DEVNET UP|RUN
devnet_up: DEVNET UP RUN
devnet_down: DEVNET DOWN
devnet_status: DEVNET STATUS
devnet_status: DEVNET IS UP|RUN|DOWN
devnet_move: DEVNET MOVE|DROP|RAISE PERCENT
devnet_move: DEVNET MOVE UP|DOWN PERCENT
sim_move: SIM MOVE UP|DOWN PERCENT
demo: DEMO
demo: RUN DEMO
version: VERSION
help: HELP
help: HOWTO
exit: EXIT
"""


def _rules(text: str) -> tuple[Rule, ...]:
    rules = []
    for line in text.strip().splitlines():
        name, _, needs = line.partition(":")
        intent = Intent(name)
        alternatives = tuple(frozenset(need.split("|")) for need in needs.split())
        rules.append(Rule(intent, alternatives, frozenset(_ABSORBS.get(intent, "").split())))
    return tuple(rules)


RULES: Final = _rules(_RULES)


def concepts_of(token: Token) -> frozenset[str]:
    """A token's concept, and the ones it also stands for."""
    if token.concept == "CHAIN" and token.value in {"sim", "devnet"}:
        return frozenset({"CHAIN", token.value.upper()})
    if token.concept == "PLAN" and token.definite:
        return frozenset({"PLAN", "DEFPLAN"})
    return frozenset({token.concept})


def best_match(tokens: Sequence[Token]) -> Match | None:
    """The rule that explains most of the line; the earlier in the list where two explain as much."""
    matches = filter(None, (_match(rule, tokens) for rule in RULES))
    return max(matches, key=lambda match: match.score, default=None)


def _match(rule: Rule, tokens: Sequence[Token]) -> Match | None:
    used: list[int] = []
    score = 0.0
    for need in rule.needs:
        at = next((at for at, token in enumerate(tokens) if at not in used and concepts_of(token) & need), None)
        if at is None:
            return None
        used.append(at)
        score += max(_WEIGHTS.get(concept, 1.0) for concept in concepts_of(tokens[at]) & need)
    return Match(rule, tuple(used), score)


def second_wishes(match: Match, tokens: Sequence[Token]) -> Iterable[Token]:
    """Tokens that ask for something else than the rule found."""
    said = {tokens[at].concept for at in match.used} | match.rule.absorbs
    for token in tokens:
        if token.concept in HEADS and token.concept not in said:
            yield token
