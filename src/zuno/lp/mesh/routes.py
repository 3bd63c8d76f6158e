"""Which role may send which kind of message to which role; anything else is dropped, even if validly signed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from zuno.lp.model.debate import Kind, Role

_ALL: Final = frozenset(Role)
_AGENTS: Final = _ALL - {Role.CLI}

ROUTES: Final[Mapping[Kind, tuple[frozenset[Role], Role]]] = MappingProxyType(
    {
        Kind.FLOW_START: (frozenset({Role.CLI}), Role.SCOUT),
        Kind.FLOW_CREATE_START: (frozenset({Role.CLI}), Role.SCOUT),
        Kind.CONTEXT_OBSERVED: (frozenset({Role.SCOUT}), Role.STRATEGIST),
        Kind.PROPOSAL: (frozenset({Role.STRATEGIST}), Role.CRITIC),
        Kind.REVISION: (frozenset({Role.STRATEGIST}), Role.CRITIC),
        Kind.CRITIQUE: (frozenset({Role.CRITIC}), Role.STRATEGIST),
        Kind.DEADLOCK: (frozenset({Role.CRITIC}), Role.ARBITER),
        Kind.PLAN_READY: (frozenset({Role.CRITIC, Role.ARBITER}), Role.CLI),
        Kind.FLOW_FAILED: (_ALL, Role.CLI),
        Kind.AGENT_THOUGHT: (_AGENTS, Role.CLI),
    }
)
