"""What the chat may propose: a command as text, which the person sends or not. Nothing here runs one.

What moves money or stops the desk is proposed only where the person's own line says its word, so that nothing a
stranger wrote into a tool's result can lead to it.
"""

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from zuno.doors.reading.intents import Reading, intent_of
from zuno.kernel.text import plain_text
from zuno.markets.market import KNOWN_COINS

_WORD: Final = re.compile(r"[a-z']+")
_NAMED: Final = re.compile(r"[A-Za-z0-9_]+")
_MODES: Final = frozenset({"swing", "position"})
_SYMBOLS: Final = KNOWN_COINS | {f"{coin}USDT" for coin in KNOWN_COINS}


@dataclass(frozen=True, slots=True)
class Proposable:
    """A command of the chat."""

    usage: str
    asked_by: frozenset[str] = frozenset()
    """Words of which the person's line must hold one; empty: it moves nothing."""
    words: frozenset[str] = frozenset()
    """What it takes beside ids that are known."""
    takes: int = 1
    """Arguments at most."""
    needs: int = 0


_EXIT: Final = frozenset({"close", "exit", "forceexit"})
COMMANDS: Final[Mapping[str, Proposable]] = {
    "/recommend": Proposable("/recommend POSITION", needs=1),
    "/analyze": Proposable("/analyze SYMBOL [MODE]", words=_SYMBOLS | _MODES, takes=2, needs=1),
    "/whatif": Proposable("/whatif POSITION", needs=1),
    "/pnl": Proposable("/pnl POSITION", needs=1),
    "/why": Proposable("/why DECISION"),
    "/plan": Proposable("/plan PLAN"),
    "/ack": Proposable("/ack ALERT", frozenset({"ack", "acknowledge"}), needs=1),
    "/pause": Proposable("/pause", frozenset({"pause", "halt", "stopentry"}), takes=0),
    "/stop": Proposable("/stop", frozenset({"stop", "halt"}), takes=0),
    "/resume": Proposable("/resume", frozenset({"resume", "unpause", "continue"}), takes=0),
    "/unlock": Proposable("/unlock", frozenset({"unlock"}), takes=0),
    "/approve": Proposable("/approve PLAN", frozenset({"approve"}), needs=1),
    "/apply": Proposable("/apply PLAN", frozenset({"apply", "execute"}), needs=1),
    "/close": Proposable("/close POSITION", _EXIT, needs=1),
    "/forceexit": Proposable("/forceexit TRADE", _EXIT, words=_SYMBOLS, needs=1),
    "/kill": Proposable("/kill", frozenset({"kill"}), takes=0),
}

_OF_INTENTS: Final = {
    "rebalance": "/recommend {position} {chain} {profile}",
    "trade_run": "/analyze {symbol} {mode}",
    "trade_evaluate": "/evaluate",
    "ack": "/ack {alert}",
    "snooze": "/snooze {alert} {span}",
    "close": "/close {position} {chain}",
    "approve": "/approve {plan}",
    "apply": "/apply {plan}",
    "trade_close": "/forceexit {trade}",
    "trade_close_all": "/forceexit all",
    "trade_pause": "/pause",
    "trade_stop": "/stop",
    "trade_unpause": "/resume",
    "trade_unlock": "/unlock",
    "trade_kill": "/kill",
    "logs": "/logs",
    "version": "/version",
}
CREATE: Final = "create"
_WISH_CHARS: Final = 200
_SLOT: Final = re.compile(r" ?\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A command that the person may send. It is text: nothing is bound to it."""

    command: str
    in_chat: bool = True
    """False: it is typed at the command line."""


def list_commands() -> str:
    return "\n".join(
        f"{command.usage}" + (" (only where the person asks for it)" if command.asked_by else "")
        for command in COMMANDS.values()
    )


def judge_proposal(proposed: str, question: str, known: Collection[str]) -> str | None:
    """None, or why a model may not propose this to the person who asked that. `known`: ids from tools' results. A bare
    number has to be one of them: in a question it may as well be an amount."""
    words = proposed.split()
    command = COMMANDS.get(words[0]) if words else None
    if command is None:
        return "propose is empty or one command of the list"
    if command.asked_by and not command.asked_by & set(_WORD.findall(question.lower())):
        return f"the person did not ask for {words[0]}"
    if not command.needs <= len(words) - 1 <= command.takes:
        return f"it is written {command.usage}"
    named = (word for word in _NAMED.findall(question) if not word.isdigit())
    allowed = {*known, *named, *command.words}
    if any(word not in allowed for word in words[1:]):
        return f"{words[0]} names something that stands neither in the question nor in the results; look it up first"
    return None


def propose_reading(reading: Reading, words: tuple[str, ...], chain: str | None) -> Proposal:
    """The command for a line that the rules read, in the chat or at the terminal; `chain`: the one spoken of."""
    if reading.intent == CREATE:
        return Proposal(f"/recommend create {plain_text(reading.text, _WISH_CHARS)}")
    template = _OF_INTENTS.get(reading.intent)
    slots = dict(reading.slots)
    if chain is not None and "chain" in intent_of(reading.intent).takes:
        slots.setdefault("chain", chain)
    if template is None or not slots.keys() <= set(_SLOT.findall(template)):
        return Proposal(f"zuno {shlex.join(words)}", in_chat=False)
    return Proposal(_SLOT.sub(lambda slot: f" {value}" if (value := slots.get(slot[1])) else "", template))


def moves_anything(reading: Reading) -> bool:
    """Whether a line is an order, read by the strict rules for orders: no model is asked what it means."""
    intent = intent_of(reading.intent)
    return bool(intent.signs) or intent.moves
