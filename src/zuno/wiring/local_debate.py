"""Wire a debate in this process: the four peers at one table, and the journal that hears all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zuno.adapters.keys.ed25519 import KeyFile
    from zuno.journal.port import Journal
    from zuno.llm.ask import ModelContext
    from zuno.lp.agents.scout import Observe
    from zuno.lp.agents.strategist import Recall
    from zuno.lp.mesh.peer import Peer
    from zuno.lp.service.recommend import LocalDebateRunner


def build_local_debate(
    journal: Journal,
    key: KeyFile,
    request_id: str,
    rounds: int,
    observe: Observe,
    model_context: ModelContext,
    patience: float,
    seat_critic: Callable[[Recall, ModelContext], Peer] | None = None,
    seat_strategist: Callable[[Recall, ModelContext], Peer] | None = None,
) -> LocalDebateRunner:
    """`patience`: seconds after which a debate without an end has failed. `seat_critic`, `seat_strategist`: who sits
    in their places, where it is not they."""
    from zuno.adapters.clock.system import unix_millis
    from zuno.adapters.transport.inproc import InProcess
    from zuno.lp.agents.arbiter import Arbiter
    from zuno.lp.agents.critic import Critic
    from zuno.lp.agents.scout import Scout
    from zuno.lp.agents.strategist import Strategist
    from zuno.lp.mesh.message_handler import MessageHandler
    from zuno.lp.model.debate import Context
    from zuno.lp.service.recommend import LocalDebateRunner
    from zuno.lp.service.recorded_request import load_context

    transport = InProcess()
    key.ensure()

    async def recall(digest: str) -> Context:
        return await load_context(journal, digest)

    peers = (
        Scout(observe, journal.put_bundle, model_context),
        (seat_strategist or Strategist)(recall, model_context),
        (seat_critic or Critic)(recall, model_context),
        Arbiter(recall, model_context),
    )
    handlers = [MessageHandler(peer, transport, journal, key, unix_millis) for peer in peers]
    return LocalDebateRunner(handlers, transport, journal, key, unix_millis, request_id, rounds, patience)
