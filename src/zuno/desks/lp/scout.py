"""The Scout: reads the world, freezes it, names the regime, and says in a sentence why it is so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from zuno.agents.ask import Minds, ask
from zuno.agents.peer import Say, Think
from zuno.agents.question import Question
from zuno.desks.lp.knowledge import Backing, context_lines, pairs_of
from zuno.desks.lp.opinions import ScoutOpinion
from zuno.desks.lp.speaking import think_aloud, with_voice
from zuno.domain.errors import Broken
from zuno.messages.codec import Digest, canonical
from zuno.messages.debate import Context, ContextObserved, Debate, FlowCreateStart, FlowStart, Role
from zuno.messages.envelope import Envelope

Observe = Callable[[FlowStart | FlowCreateStart], Awaitable[Context]]
"""Reads the world; in a replay, the context that was read then."""
Keep = Callable[[bytes], Awaitable[Digest]]


class Scout:
    """Never proposes a range: it sets the world that the others act in."""

    role = Role.SCOUT

    def __init__(self, observe: Observe, keep: Keep, minds: Minds) -> None:
        self._observe = observe
        self._keep = keep
        self._minds = minds

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[Say]:
        start = envelope.payload
        if not isinstance(start, FlowStart | FlowCreateStart):
            raise Broken(f"the Scout does not answer {envelope.kind}")
        context = await self._observe(start)
        debate = Debate(flow=context.flow, context=await self._keep(canonical(context)))
        spoken = await ask(self._question(context), self._minds)
        debate = with_voice(debate, self.role, 0, spoken)
        debate = await think_aloud(debate, self.role, 0, spoken.source, [spoken.value.summary], think)
        return [Say(Role.STRATEGIST, ContextObserved(debate=debate))]

    def _question(self, context: Context) -> Question[ScoutOpinion]:
        backing = Backing(context)
        return Question(
            role=self.role,
            round=0,
            prompt="scout",
            variables={"facts": context_lines(context), "pair": pairs_of(context)},
            output=ScoutOpinion,
            fallback=lambda: ScoutOpinion(summary=summary(context)),
            unsupported=lambda said: backing(said.summary),
        )


def summary(context: Context) -> str:
    """The Scout's own words without a model."""
    scenes = {scene.regime: scene.regime_why for scene in context.scenes}
    parts = [f"{regime}: {why}" for regime, why in scenes.items()]
    text = "; ".join(parts)
    if len(context.scenes) > 1:
        text = f"{len(context.scenes)} pools surveyed. {text}"
    return text if len(text) <= 280 else text[:279] + "…"
