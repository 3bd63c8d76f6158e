"""The Scout: reads the world, freezes it, names the regime, and says in a sentence why it is so."""

from collections.abc import Awaitable, Callable, Sequence

from zuno.kernel.canonical import Digest, canonical
from zuno.kernel.errors import Broken
from zuno.llm.ask import ModelContext, ask
from zuno.llm.question import Question
from zuno.lp.agents.prompt_facts import cite_pool, context_lines, facts_of, pairs_of, screen_field
from zuno.lp.agents.schemas import SUMMARY_CHARS, ScoutOpinion
from zuno.lp.agents.transcript import publish_answer
from zuno.lp.mesh.envelope import Envelope
from zuno.lp.mesh.peer import OutgoingMessage, Think
from zuno.lp.model.debate import Context, ContextObserved, Debate, Role, Start
from zuno.provenance.slots import cut

Observe = Callable[[Start], Awaitable[Context]]
"""Reads the world; in a replay, the context that was read then."""
Keep = Callable[[bytes], Awaitable[Digest]]


class Scout:
    """Never proposes a range: it sets the world that the others act in."""

    role = Role.SCOUT

    def __init__(self, observe: Observe, keep: Keep, model_context: ModelContext) -> None:
        self._observe = observe
        self._keep = keep
        self._model_context = model_context

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        start = envelope.payload
        if not isinstance(start, Start):
            raise Broken(f"the Scout does not answer {envelope.kind}")
        context = await self._observe(start)
        debate = Debate(flow=context.flow, context=await self._keep(canonical(context)))
        answer = await ask(self._question(context), self._model_context)
        texts = [answer.value.summary]
        debate = await publish_answer(debate, self.role, 0, answer, texts, facts_of(context), think)
        return [OutgoingMessage(Role.STRATEGIST, ContextObserved(debate=debate))]

    def _question(self, context: Context) -> Question[ScoutOpinion]:
        facts = facts_of(context)
        return Question(
            role=self.role,
            round=0,
            prompt="scout",
            variables=lambda: {"facts": context_lines(context), "pair": pairs_of(context)},
            output=ScoutOpinion,
            fallback=lambda: ScoutOpinion(summary=summarise_context(context)),
            prose=lambda opinion, screen: screen_field(opinion, "summary", screen, facts, summarise_context(context)),
        )


def summarise_context(context: Context) -> str:
    regimes = {pool_facts.regime: (index, pool_facts.regime_why) for index, pool_facts in enumerate(context.scenes)}
    parts = [f"{regime}: {cite_pool(context, index, why)}" for regime, (index, why) in regimes.items()]
    text = "; ".join(parts)
    if len(context.scenes) > 1:
        text = f"{len(context.scenes)} pools surveyed. {text}"
    return cut(text, facts_of(context), SUMMARY_CHARS[1])
