"""The desk with something left out: one expert who speaks for all, or no risk officer."""

from __future__ import annotations

from zuno.trading.model.cycle import Blackboard, Expert
from zuno.trading.rules.inputs import RulingInputs
from zuno.trading.rules.risk_rules import place_legs
from zuno.trading.rules.ruling import RulingDraft, Tightening
from zuno.trading.rules.score import board_entries
from zuno.trading.run.nodes import Cycle

_SEATS = {expert: expert.value for expert in Expert}


def seat_alone(expert: Expert) -> type[Cycle]:
    """The others say what this one says, as surely: its opinion has all the weight there is."""

    class ExpertAlone(Cycle):
        @property
        def _board(self) -> Blackboard:
            board = super()._board
            entries = board_entries(board)
            said = entries[expert]
            same = {"stance": said.stance, "confidence": said.confidence}
            return board.model_copy(
                update={_SEATS[other]: entry.model_copy(update=same) for other, entry in entries.items()}
            )

    return ExpertAlone


class WithoutRiskOfficer(Cycle):
    """What is decided is sized and routed, and nothing else is asked. The leverage guard stays: it is not his."""

    def _review_risk(self, draft: RulingDraft, inputs: RulingInputs, tightening: Tightening | None) -> RulingDraft:
        return place_legs(draft, inputs) if draft.opens else draft
