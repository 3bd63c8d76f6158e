"""The synthesis: what the experts agree on, where they contradict each other, and what would settle it."""

from collections.abc import Mapping
from itertools import combinations
from typing import Final

from zuno.llm.ask import ModelContext
from zuno.trading.agents import prompt_facts
from zuno.trading.agents.ask import Keep, ask_agent, keep_fields, to_answer
from zuno.trading.agents.case import Case
from zuno.trading.agents.known_data import weigh_board
from zuno.trading.model import cycle
from zuno.trading.model.market import Mode
from zuno.trading.rules.score import Entry, board_entries

ROLE: Final = "synthesis"
_SETTLED_BY: Final[Mapping[cycle.Expert, str]] = {
    cycle.Expert.LIQUIDITY: "whether takers keep leaning that way over the next bars",
    cycle.Expert.MICROSTRUCTURE: "whether the book still leans that way in the next snapshot",
    cycle.Expert.MACRO: "the next print of DVOL and of the skew",
    cycle.Expert.GEOMETRY: "a close beyond the nearest level on either side",
}


_CLAIMS: Final = dict.fromkeys(("expert_a_claim", "expert_b_claim", "tiebreaker"), cycle.SHORT_TEXT)


async def ask_synthesis(
    case: Case, meta: cycle.Meta, board: cycle.Blackboard, model_context: ModelContext
) -> cycle.AgentAnswer[cycle.Synthesis]:
    spoken = await ask_agent(
        model_context,
        role=ROLE,
        sections=lambda: (
            prompt_facts.market_section(case),
            prompt_facts.anomalies_section(case),
            prompt_facts.regime_section(meta),
            prompt_facts.experts_section(case, board),
        ),
        # The Judge takes the synthesis as fact, so it may not quote Meta, whose words may come from outside texts.
        others={"directive": prompt_facts.directive(meta, quotable=False)},
        output=cycle.SynthesisOpinion,
        fallback=lambda: answer_by_rules(case, meta, board),
        prose=lambda opinion, keep: _keep_texts(opinion, answer_by_rules(case, meta, board), board, keep),
        judge=lambda opinion: _objection(opinion, board),
    )
    score = weigh_board(case, meta, board)
    heard = None if score.heard == score.all else score.heard
    return to_answer(ROLE, cycle.Synthesis, spoken, dominant_signal=score.signal, score=score.all, heard_score=heard)


def _keep_texts(
    opinion: cycle.SynthesisOpinion, rules: cycle.SynthesisOpinion, board: cycle.Blackboard, keep: Keep
) -> cycle.SynthesisOpinion:
    """With the texts that `keep` allows: the rules' own for a refused one; a refused consensus signal is dropped."""
    entries = board_entries(board)
    conflicts = [
        keep_fields(conflict, _describe_conflict(entries, *conflict.between), keep, **_CLAIMS)
        for conflict in opinion.conflicts
    ]
    signals = [*filter(None, (keep(text, cycle.SHORT_TEXT, "") for text in opinion.consensus_signals))]
    kept = keep_fields(opinion, rules, keep, key_uncertainty=cycle.SHORT_TEXT, regime_note=cycle.SHORT_TEXT)
    return kept.model_copy(update={"consensus_signals": signals, "conflicts": conflicts})


def _objection(opinion: cycle.SynthesisOpinion, board: cycle.Blackboard) -> str | None:
    entries = board_entries(board)
    for conflict in opinion.conflicts:
        first, second = conflict.between
        if first is second:
            return f"between names {first} twice; a conflict is between two experts"
        absent = [name for name in (first, second) if name not in entries]
        if absent:
            return f"between names {absent[0]}, who wrote nothing on the blackboard"
    most = max((entry.confidence for entry in entries.values()), default=0.0)
    named = entries.get(opinion.highest_confidence_expert)
    if entries and (named is None or named.confidence < most):
        return f"highest_confidence_expert is {opinion.highest_confidence_expert}, whose confidence is not the highest"
    return None


def answer_by_rules(case: Case, meta: cycle.Meta, board: cycle.Blackboard) -> cycle.SynthesisOpinion:
    entries, mode = board_entries(board), case.bundle.mode
    return cycle.SynthesisOpinion(
        consensus_signals=[
            f"{prompt_facts.LEANINGS[side]} by {', '.join(same)}"
            for side in (1, -1)
            if len(same := [expert for expert, entry in entries.items() if entry.stance == side]) >= 2
        ],
        conflicts=[
            _describe_conflict(entries, first, second)
            for first, second in combinations(entries, 2)
            if entries[first].stance * entries[second].stance < 0
        ],
        highest_confidence_expert=max(  # of equals, the first in the order of conviction
            cycle.CONVICTION[mode], key=lambda expert: entries[expert].confidence if expert in entries else -1.0
        ),
        key_uncertainty=_key_uncertainty(entries, mode),
        regime_note=f"{meta.regime}: {meta.trust_directive.expert} weighs more than the order of conviction gives it.",
    )


def _describe_conflict(
    entries: Mapping[cycle.Expert, Entry], first: cycle.Expert, second: cycle.Expert
) -> cycle.ConflictOpinion:
    claim, counter = entries[first], entries[second]
    return cycle.ConflictOpinion(
        between=[first, second],
        expert_a_claim=f"{prompt_facts.LEANINGS[claim.stance]} at {{{first}.confidence}}",
        expert_b_claim=f"{prompt_facts.LEANINGS[counter.stance]} at {{{second}.confidence}}",
        tiebreaker=_SETTLED_BY[first if claim.confidence <= counter.confidence else second],
    )


def _key_uncertainty(entries: Mapping[cycle.Expert, Entry], mode: Mode) -> str:
    sides = {entry.stance for entry in entries.values()} - {0}
    if len(sides) == 2:
        heaviest = next(expert for expert in cycle.CONVICTION[mode] if expert in entries and entries[expert].stance)
        return f"Experts disagree; what weighs most is {heaviest}: {_SETTLED_BY[heaviest]}?"
    if not sides:
        return "Nobody leans anywhere: is there any reason to be in this market now?"
    quiet = [expert for expert in cycle.CONVICTION[mode] if expert not in entries or not entries[expert].stance]
    if quiet:
        return f"Nobody objects, but {', '.join(quiet)} do not confirm."
    return "Nobody objects: what does nobody see?"
