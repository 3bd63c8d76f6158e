"""The intents a line can have, the slots each takes, and what a reading says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal


class Intent(StrEnum):
    """What is wanted; `unclear` is asked back and does nothing."""

    POSITIONS = "positions"
    INSPECT = "inspect"
    IN_RANGE = "in_range"
    OUT_OF_RANGE = "out_of_range"
    RISKY = "risky"
    REBALANCE = "rebalance"
    OPTIONS = "options"
    WHY = "why"
    DIFF = "diff"
    SIMULATE = "simulate"
    APPROVE = "approve"
    APPLY = "apply"
    CANCEL = "cancel"
    STATUS = "status"
    CREATE = "create"
    BALANCES = "balances"
    ALLOWANCES = "allowances"
    WALLET = "wallet"
    WALLET_CREATE = "wallet_create"
    WALLET_IMPORT = "wallet_import"
    SWITCH = "switch"
    AGENTS = "agents"
    PEERS = "peers"
    ALERTS = "alerts"
    ACK = "ack"
    SNOOZE = "snooze"
    REFRESH = "refresh"
    POOLS = "pools"
    POOL = "pool"
    COLLECT = "collect"
    CLOSE = "close"
    ADD = "add"
    REMOVE = "remove"
    PNL = "pnl"
    HISTORY = "history"
    JOURNAL = "journal"
    VERIFY = "verify"
    REPLAY = "replay"
    PLANS = "plans"
    PLAN = "plan"
    MONITOR_ONCE = "monitor_once"
    MONITOR_RUN = "monitor_run"
    SIM_MOVE = "sim_move"
    SIM_RESET = "sim_reset"
    DEVNET_UP = "devnet_up"
    DEVNET_DOWN = "devnet_down"
    DEVNET_STATUS = "devnet_status"
    DEVNET_MOVE = "devnet_move"
    DEMO = "demo"
    VERSION = "version"
    PARSE = "parse"
    HELP = "help"
    EXIT = "exit"
    UNCLEAR = "unclear"


DANGEROUS: Final = frozenset(
    {
        Intent.APPROVE,
        Intent.APPLY,
        Intent.CANCEL,
        Intent.COLLECT,
        Intent.CLOSE,
        Intent.ADD,
        Intent.REMOVE,
        Intent.WALLET_CREATE,
        Intent.WALLET_IMPORT,
    }
)
"""What leads to a signature or a key. Read only from a line in which every word is understood, spelled as it is."""

_DESTRUCTIVE: Final = frozenset({Intent.SIM_RESET, Intent.SIM_MOVE, Intent.DEVNET_DOWN, Intent.DEVNET_MOVE})
GUESSABLE: Final = frozenset(Intent) - DANGEROUS - _DESTRUCTIVE - {Intent.UNCLEAR, Intent.PARSE}
"""What a model may say a line means: whatever changes nothing that a person would miss."""


@dataclass(frozen=True, slots=True)
class Slots:
    """The particulars of a line, as text that a command takes; `refers` is `last`, `first` … of what was shown."""

    position: str | None = None
    plan: str | None = None
    other: str | None = None
    request: str | None = None
    alert: str | None = None
    amount: str | None = None
    percent: str | None = None
    span: str | None = None
    chain: str | None = None
    pair: str | None = None
    fee: str | None = None
    profile: str | None = None
    exposure: str | None = None
    candidate: str | None = None
    count: str | None = None
    all: str | None = None
    refers: str | None = None
    wish: str | None = None
    """A sentence that is handed on: what to open, or what to parse."""

    def said(self) -> dict[str, str]:
        """Those that are filled, by name."""
        values = ((slot.name, getattr(self, slot.name)) for slot in fields(self))
        return {name: value for name, value in values if value is not None}


Need = Literal["position", "plan", "alert", "amount", "percent", "span", "chain", "reference", "pair"]


@dataclass(frozen=True, slots=True)
class Shape:
    """Which slots an intent takes, and which of them it cannot do without."""

    takes: frozenset[str] = frozenset()
    needs: tuple[Need, ...] = ()


def _shape(takes: str = "", needs: tuple[Need, ...] = ()) -> Shape:
    return Shape(frozenset(takes.split()), needs)


_OF_POSITION = _shape("position refers chain", ("position",))
_OF_PLAN = _shape("plan refers", ("plan",))
SHAPES: Final[Mapping[Intent, Shape]] = MappingProxyType(
    {
        Intent.POSITIONS: _shape("chain"),
        Intent.INSPECT: _OF_POSITION,
        Intent.IN_RANGE: _shape("position refers chain"),
        Intent.OUT_OF_RANGE: _shape("position refers chain"),
        Intent.RISKY: _shape("position refers chain"),
        Intent.REBALANCE: _shape("position refers chain profile candidate", ("position",)),
        Intent.OPTIONS: _shape("plan", ("plan",)),
        Intent.WHY: _shape("plan request", ("reference",)),
        Intent.DIFF: _shape("plan other", ("plan",)),
        Intent.SIMULATE: _OF_PLAN,
        Intent.APPROVE: _OF_PLAN,
        Intent.APPLY: _OF_PLAN,
        Intent.CANCEL: _OF_PLAN,
        Intent.STATUS: _OF_PLAN,
        Intent.CREATE: _shape("amount pair fee profile exposure chain candidate wish", ("amount",)),
        Intent.BALANCES: _shape("chain"),
        Intent.ALLOWANCES: _shape("chain"),
        Intent.SWITCH: _shape("chain", ("chain",)),
        Intent.ALERTS: _shape("all"),
        Intent.ACK: _shape("alert refers", ("alert",)),
        Intent.SNOOZE: _shape("alert refers span", ("alert", "span")),
        Intent.REFRESH: _shape("chain"),
        Intent.POOLS: _shape("chain"),
        Intent.POOL: _shape("pair fee chain", ("pair",)),
        Intent.COLLECT: _OF_POSITION,
        Intent.CLOSE: _OF_POSITION,
        Intent.ADD: _shape("position refers chain amount", ("position", "amount")),
        Intent.REMOVE: _shape("position refers chain percent", ("position", "percent")),
        Intent.PNL: _shape("position refers chain span", ("position",)),
        Intent.JOURNAL: _shape("count"),
        Intent.REPLAY: _shape("plan request refers", ("reference",)),
        Intent.PLAN: _OF_PLAN,
        Intent.SIM_MOVE: _shape("percent", ("percent",)),
        Intent.DEVNET_MOVE: _shape("percent", ("percent",)),
    }
)


def shape_of(intent: Intent) -> Shape:
    return SHAPES.get(intent, Shape())


@dataclass(frozen=True, slots=True)
class Reading:
    """One line, read. Nothing is done on a reading that asks."""

    text: str
    intent: Intent
    slots: Slots = field(default_factory=Slots)
    confidence: float = 0.0
    why: tuple[str, ...] = ()
    """Which words gave what."""
    ask: str = ""
    """What to ask back, where the line does not say what to do."""
    suggestion: Intent | None = None
    """What may have been meant, where it was not taken for granted."""
    source: Literal["rules", "model"] = "rules"

    @property
    def missing(self) -> tuple[Need, ...]:
        """What the intent still needs, in the order it is asked for."""
        return tuple(need for need in shape_of(self.intent).needs if not _is_filled(need, self.slots))


def _is_filled(need: Need, slots: Slots) -> bool:
    if need == "reference":
        return bool(slots.plan or slots.request or slots.refers)
    if need in ("position", "plan", "alert") and slots.refers:
        return True
    return getattr(slots, need) is not None
