"""Sentences that name a command of the terminal, said with the chat's own: `zuno plan approve ID` is `/approve ID`."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

CHAT_COMMANDS: Final[Mapping[str, str]] = {
    "alerts": "/alerts {}",
    "alerts ack": "/ack {}",
    "alerts snooze": "/snooze {}",
    "logs": "/logs",
    "lp close": "/close {}",
    "lp inspect": "/positions {}",
    "lp mandate revoke": "/revoke lp",
    "lp mandate show": "/mandate lp",
    "lp pause": "/pause lp",
    "lp pnl": "/pnl {}",
    "lp portfolio": "/portfolio",
    "lp positions": "/positions {}",
    "lp recommend": "/recommend {}",
    "lp recommend rebalance": "/recommend {}",
    "lp whatif": "/whatif {}",
    "memory lessons": "/memory lessons",
    "memory list": "/memory",
    "memory search": "/memory search {}",
    "memory show": "/memory {}",
    "plan apply": "/apply {}",
    "plan approve": "/approve {}",
    "plan list": "/plan",
    "plan show": "/plan {}",
    "plan simulate": "/plan {} simulate",
    "plan status": "/plan {} status",
    "status": "/service",
    "trade balance": "/balance {}",
    "trade close": "/forceexit {}",
    "trade evaluate": "/evaluate {}",
    "trade kill": "/kill {}",
    "trade locks": "/locks {}",
    "trade mandate revoke": "/revoke trading {}",
    "trade mandate show": "/mandate {}",
    "trade pause": "/pause {}",
    "trade performance": "/performance {}",
    "trade positions": "/status {}",
    "trade profit": "/profit {}",
    "trade run": "/analyze {}",
    "trade runs": "/report list",
    "trade sleeves": "/sleeves {}",
    "trade stop": "/stop {}",
    "trade trades": "/trades {}",
    "trade unlock": "/unlock {}",
    "trade why": "/why {}",
    "version": "/version",
    "why": "/why {}",
}
"""By the terminal's words; `{}` is what follows them. `zuno trade resume RUN` is left out: `/resume` is another."""
_VALUED: Final = frozenset({"--account", "--chain", "--since"})
"""Options whose value the chat takes as a word."""
_NAMED: Final = re.compile(r"`zuno ([^`]+)`")


def translate_commands(sentence: str) -> str:
    """Commands in backticks, as they are typed in the chat; one that it does not have is left to the terminal."""
    return _NAMED.sub(lambda found: f"`{_translate(found[1].split()) or found[0][1:-1]}`", sentence)


def chat_command(command: str) -> str | None:
    """A command of the terminal (without `zuno`) as it is typed in the chat; None: the chat does not have it."""
    return _translate(command.split())


def _translate(words: list[str]) -> str | None:
    for count in (3, 2, 1):
        template = CHAT_COMMANDS.get(" ".join(words[:count]))
        if template is not None:
            break
    else:
        return None
    given = _read_arguments(words[count:], everything=template == CHAT_COMMANDS["alerts"])
    if given is None or (given and "{}" not in template):
        return None
    return " ".join(template.format(" ".join(given)).split())


def _read_arguments(words: Iterable[str], *, everything: bool) -> list[str] | None:
    """None where an option is among them that the chat has no word for."""
    given, listed = [], list(words)
    for before, word in zip(["", *listed], listed, strict=False):
        if word not in _VALUED:
            given.append(f"paper:{word}" if before == "--account" and word not in ("live", "demo") else word)
    if everything:
        given = ["all" if word == "--all" else word for word in given]
    return None if any(word.startswith("--") for word in given) else given
