"""Thoughts of the agents, sent live and kept in the debate, and who spoke for each role."""

from collections.abc import Iterable
from decimal import Decimal

from zuno.kernel.text import plain_text
from zuno.llm.question import SourcedAnswer, T
from zuno.lp.agents.prompt_facts import print_thought
from zuno.lp.mesh.peer import Think
from zuno.lp.model.debate import Debate, Role, SpeakerRecord, Thought
from zuno.provenance.facts import FactSheet

MAX_THOUGHT = 4_000
MAX_WHY = 2_000


async def publish_answer(
    debate: Debate,
    role: Role,
    round_: int,
    answer: SourcedAnswer[T],
    texts: Iterable[str],
    facts: FactSheet,
    think: Think,
) -> Debate:
    """The debate with who spoke for the role, what it cost, and these thoughts at its end. Each thought is offered to
    the owner as it comes, printed."""
    thoughts = list(debate.transcript)
    seq = sum(thought.role is role and thought.round == round_ for thought in thoughts)
    for place, text in enumerate(texts, start=seq):
        said = plain_text(text, MAX_THOUGHT)
        thoughts.append(Thought(role=role, round=round_, seq=place, text=said, speaker=answer.source))
        await think(print_thought(thoughts[-1], facts))
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
    return debate.model_copy(update={"transcript": tuple(thoughts), "spoke": (*debate.spoke, voice)})
