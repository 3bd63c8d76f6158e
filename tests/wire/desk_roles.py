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
from zuno.trading.agents.case import Case, build_case
from zuno.trading.model.bundle import Bundle
from zuno.trading.model.cycle import AgentAnswer, Blackboard, Decision, Meta
from zuno.trading.rules.draft import RulingDraft
from zuno.trading.rules.risk_rules import apply_risk_rules
from zuno.trading.rules.ruling import start_draft

PICTURE = Image("image/png", b"a picture")


@dataclass(frozen=True)
class Argued:
    """A whole debate by rule."""

    case: Case
    meta: Meta
    board: Blackboard
    decision: Decision
    draft: RulingDraft
    _twins: dict[tuple[str, Image | None], Opinion] = field(default_factory=dict, init=False, repr=False, compare=False)

    def ask(self, role: str, model_context: ModelContext, image: Image | None = PICTURE) -> Awaitable[AgentAnswer[Any]]:
        case, board = self.case, self.board
        asked: Mapping[str, Callable[[], Awaitable[AgentAnswer[Any]]]] = {
            "meta": lambda: meta.ask_meta(case, model_context),
            "liquidity": lambda: liquidity.ask_expert(case, model_context),
            "microstructure": lambda: microstructure.ask_expert(case, model_context),
            "macro": lambda: macro_options.ask_expert(case, model_context),
            "vlm_geometric": lambda: geometry.ask_expert(case, image, model_context),
            "synthesis": lambda: synthesis.ask_synthesis(case, self.meta, board, model_context),
            "judge": lambda: judge.ask_judge(case, self.meta, board, model_context),
            "risk_manager": lambda: risk_manager.ask_risk_manager(case, self.draft, model_context),
        }
        return asked[role]()

    def in_front_of(self, case: Case) -> Argued:
        """The same debate about a case whose figures are the same, so that the rules say the same."""
        found = replace(self, case=case)
        object.__setattr__(found, "_twins", self._twins)
        return found

    def twin(self, role: str, image: Image | None = PICTURE) -> Opinion:
        """What the rules say, worked out once."""
        if (role, image) not in self._twins:
            self._twins[role, image] = self._work_out(role, image)
        return self._twins[role, image]

    def _work_out(self, role: str, image: Image | None) -> Opinion:
        case, board = self.case, self.board
        said: Mapping[str, Callable[[], Opinion]] = {
            "meta": lambda: meta.answer_by_rules(case),
            "liquidity": lambda: liquidity.answer_by_rules(case),
            "microstructure": lambda: microstructure.answer_by_rules(case),
            "macro": lambda: macro_options.answer_by_rules(case),
            "vlm_geometric": lambda: geometry.answer_by_rules(case, geometry.panels_of(case, image)),
            "synthesis": lambda: synthesis.answer_by_rules(case, self.meta, board),
            "judge": lambda: judge.answer_by_rules(case, self.meta, board),
            "risk_manager": lambda: risk_manager.answer_by_rules(case, self.draft),
        }
        return said[role]()


ROLES = ("meta", "liquidity", "microstructure", "macro", "vlm_geometric", "synthesis", "judge", "risk_manager")


async def argued(bundle: Bundle, image: Image | None = PICTURE) -> Argued:
    case, nobody = build_case(bundle), minds_of()
    ruled = (await meta.ask_meta(case, nobody)).value
    board = Blackboard(
        liquidity=(await liquidity.ask_expert(case, nobody)).value,
        microstructure=(await microstructure.ask_expert(case, nobody)).value,
        macro=(await macro_options.ask_expert(case, nobody)).value,
        vlm_geometry=(await geometry.ask_expert(case, image, nobody)).value,
    )
    board = board.model_copy(update={"synthesis": (await synthesis.ask_synthesis(case, ruled, board, nobody)).value})
    decision = (await judge.ask_judge(case, ruled, board, nobody)).value
    draft = apply_risk_rules(start_draft(decision, ruled, case.inputs, 0.0, 0.0), case.inputs, None)
    return Argued(case, ruled, board, decision, draft)
