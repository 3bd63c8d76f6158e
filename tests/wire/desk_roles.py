"""Every agent of the trading desk by its role: how it is asked, and what its rules would say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.wire.desk_bundles import minds_of
from zuno.llm.ask import ModelContext
from zuno.llm.port import Image
from zuno.llm.question import Opinion
from zuno.trading.agents import geometry, judge, liquidity, macro_options, meta, microstructure, risk_manager, synthesis
from zuno.trading.agents.ask import Heard
from zuno.trading.agents.case import Matter, matter_of
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import Blackboard, Decision, Meta
from zuno.trading.rules.ruling import RulingDraft, apply_risk_rules, start_draft

PICTURE = Image("image/png", b"a picture")


@dataclass(frozen=True)
class Argued:
    """A whole argument by rule."""

    matter: Matter
    meta: Meta
    board: Blackboard
    decision: Decision
    draft: RulingDraft
    _twins: dict[tuple[str, Image | None], Opinion] = field(default_factory=dict, init=False, repr=False, compare=False)

    def ask(self, role: str, minds: ModelContext, image: Image | None = PICTURE) -> Awaitable[Heard[Any]]:
        matter, board = self.matter, self.board
        asked: Mapping[str, Callable[[], Awaitable[Heard[Any]]]] = {
            "meta": lambda: meta.classify(matter, minds),
            "liquidity": lambda: liquidity.weigh(matter, minds),
            "microstructure": lambda: microstructure.weigh(matter, minds),
            "macro": lambda: macro_options.weigh(matter, minds),
            "vlm_geometric": lambda: geometry.look(matter, image, minds),
            "synthesis": lambda: synthesis.distil(matter, self.meta, board, minds),
            "judge": lambda: judge.decide(matter, self.meta, board, minds),
            "risk_manager": lambda: risk_manager.review(matter, self.draft, minds),
        }
        return asked[role]()

    def in_front_of(self, matter: Matter) -> Argued:
        """The same argument about a matter whose figures are the same, so that the rules say the same."""
        found = replace(self, matter=matter)
        object.__setattr__(found, "_twins", self._twins)
        return found

    def twin(self, role: str, image: Image | None = PICTURE) -> Opinion:
        """What the rules say, worked out once."""
        if (role, image) not in self._twins:
            self._twins[role, image] = self._work_out(role, image)
        return self._twins[role, image]

    def _work_out(self, role: str, image: Image | None) -> Opinion:
        matter, board = self.matter, self.board
        said: Mapping[str, Callable[[], Opinion]] = {
            "meta": lambda: meta.twin(matter),
            "liquidity": lambda: liquidity.twin(matter),
            "microstructure": lambda: microstructure.twin(matter),
            "macro": lambda: macro_options.twin(matter),
            "vlm_geometric": lambda: geometry.twin(matter, geometry.panels_of(matter, image)),
            "synthesis": lambda: synthesis.twin(matter, self.meta, board),
            "judge": lambda: judge.twin(matter, self.meta, board),
            "risk_manager": lambda: risk_manager.twin(matter, self.draft),
        }
        return said[role]()


ROLES = ("meta", "liquidity", "microstructure", "macro", "vlm_geometric", "synthesis", "judge", "risk_manager")


async def argued(bundle: Bundle, image: Image | None = PICTURE) -> Argued:
    matter, nobody = matter_of(bundle), minds_of()
    ruled = (await meta.classify(matter, nobody)).value
    board = Blackboard(
        liquidity=(await liquidity.weigh(matter, nobody)).value,
        microstructure=(await microstructure.weigh(matter, nobody)).value,
        macro=(await macro_options.weigh(matter, nobody)).value,
        vlm_geometry=(await geometry.look(matter, image, nobody)).value,
    )
    board = board.model_copy(update={"synthesis": (await synthesis.distil(matter, ruled, board, nobody)).value})
    decision = (await judge.decide(matter, ruled, board, nobody)).value
    draft = apply_risk_rules(start_draft(decision, ruled, matter.terms, 0.0, 0.0), matter.terms, None)
    return Argued(matter, ruled, board, decision, draft)
