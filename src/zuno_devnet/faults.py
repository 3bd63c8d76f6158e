"""Misbehaviour on request: what a client must survive, made reproducible."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from . import params
from .rpc_errors import bad_params

FaultKind = Literal["delay", "status", "garbage", "cut"]
_KINDS: Final = get_args(FaultKind)
_FIELDS: Final = frozenset({"kind", "count", "ms", "status", "methods", "processed"})
_LONGEST_MS: Final = 600_000
_GREATEST_STATUS: Final = 999
_CONTROL_PREFIX: Final = "zuno_"


@dataclass(slots=True)
class PlannedFault:
    """One way to misbehave, for the next `count` requests that name one of `methods` (any, if none is given).

    `processed` says whether the node does the work before the answer is spoiled: a reply lost after a
    transaction was accepted is the fault that tells a careful client from a careless one.
    """

    kind: FaultKind
    count: int = 1
    ms: int = 0
    status: int = 500
    methods: frozenset[str] = frozenset()
    processed: bool = False

    def hits(self, named: frozenset[str]) -> bool:
        return self.count > 0 and (not self.methods or bool(self.methods & named))


def read_fault(fields: Mapping[str, Any]) -> PlannedFault:
    params.only(fields, _FIELDS, "fault option")
    kind: Any = fields.get("kind")
    if kind not in _KINDS:
        raise bad_params(f"a fault is one of {', '.join(_KINDS)}")
    return PlannedFault(
        kind=kind,
        count=params.optional_quantity(fields, "count", 1),
        ms=params.up_to(_LONGEST_MS, params.optional_quantity(fields, "ms", 0)),
        status=params.up_to(_GREATEST_STATUS, params.optional_quantity(fields, "status", 500)),
        methods=frozenset(map(params.text, params.list_or_empty(fields.get("methods")))),
        processed=params.flag(fields.get("processed"), default=kind in ("cut", "garbage")),
    )


class FaultPlan:
    """The faults still to come. Control requests are never hit, or no test could end one."""

    def __init__(self) -> None:
        self._planned: list[PlannedFault] = []
        self._lock = threading.Lock()

    def plan(self, fault: PlannedFault) -> None:
        with self._lock:
            self._planned.append(fault)

    def clear(self) -> None:
        with self._lock:
            self._planned.clear()

    def next(self, named: frozenset[str]) -> PlannedFault | None:
        """The fault that hits a request naming these methods, if one does; it counts as used."""
        if any(name.startswith(_CONTROL_PREFIX) for name in named):
            return None
        with self._lock:
            for fault in self._planned:
                if fault.hits(named):
                    fault.count -= 1
                    return fault
        return None
