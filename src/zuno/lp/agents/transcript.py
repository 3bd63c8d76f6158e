"""Thoughts of the agents, sent live and kept in the debate, and who spoke for each role."""

from collections.abc import Iterable
from decimal import Decimal

from zuno.kernel.text import plain_text
from zuno.llm.question import SourcedAnswer, T
from zuno.lp.agents.prompt_facts import print_thought
from zuno.lp.mesh.peer import Think
from zuno.lp.model.debate import Debate, Role, Speaker, SpeakerRecord, Thought
from zuno.provenance.facts import FactSheet

MAX_THOUGHT = 4_000
MAX_WHY = 2_000


async def publish_thoughts(
    debate: Debate, role: Role, round_: int, speaker: Speaker, texts: Iterable[str], facts: FactSheet, think: Think
) -> Debate:
    """The debate with these thoughts at its end; each was offered to the owner as it came, printed."""
    thoughts = list(debate.transcript)
    seq = sum(thought.role is role and thought.round == round_ for thought in thoughts)
    for text in texts:
        thought = Thought(role=role, round=round_, seq=seq, text=plain_text(text, MAX_THOUGHT), speaker=speaker)
        thoughts.append(thought)
        await think(print_thought(thought, facts))
        seq += 1
    return debate.model_copy(update={"transcript": tuple(thoughts)})


def with_speaker(debate: Debate, role: Role, round_: int, answer: SourcedAnswer[T]) -> Debate:
    """The debate with a note of who spoke for the role and what it cost."""
    usd: Decimal | None = Decimal(0)
    for attempt in answer.attempts:
        usd = None if usd is None or attempt.usd is None else usd + attempt.usd
    voice = SpeakerRecord(
        role=role,
        round=round_,
        speaker=answer.source,
        why=answer.why[:MAX_WHY],
        model=answer.model,
        tokens=sum(attempt.tokens_in + attempt.tokens_out for attempt in answer.attempts),
        usd=usd,
    )
    return debate.model_copy(update={"spoke": (*debate.spoke, voice)})
