"""The owner at a debate held elsewhere: say what is wanted, hear how it ends, and believe none of it unchecked.

Several command lines of one home share one endpoint, so an answer may arrive at another of them. What is heard is
written down before it is acknowledged, so each finds its own in the journal they share.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from zuno.journal.port import Author, Journal
from zuno.kernel.backoff import Backoff
from zuno.kernel.canonical import digest
from zuno.kernel.errors import Broken, Malformed, Refused, Unavailable, UsageError, ZunoError
from zuno.kernel.signing import NodeKey
from zuno.kernel.text import plain_text
from zuno.kernel.units import Seconds
from zuno.kernel.view import sanitise
from zuno.kernel.wire import Wire
from zuno.lp.agents.verify_peer_plan import NO_FIGURES, check_age, check_asked, check_ready, check_seen
from zuno.lp.agents.verify_scout import check_yield, find_doubts
from zuno.lp.mesh.delivery import edition_refusal
from zuno.lp.mesh.envelope import Envelope, to_bytes
from zuno.lp.mesh.message_handler import EnvelopeSigner, journal_envelope
from zuno.lp.mesh.peer import OutgoingMessage
from zuno.lp.mesh.running import AGENTS, PeerRunner, PingReply
from zuno.lp.model.ballot import EDITION
from zuno.lp.model.debate import AgentThought, Context, FlowFailed, Kind, PlanReady, PoolFacts, Role, Start
from zuno.lp.ports.chain import Chain
from zuno.lp.ports.mesh import MeshFolder
from zuno.lp.ports.transport import NodeHealth
from zuno.lp.service.recommend import DebateEnd, Listen, Waiting, error_of
from zuno.lp.service.recorded_request import load_context

DISBELIEVED: Final = "mesh_disbelieved"
"""The journal's kind of an entry that says which message was not believed, and why."""
LOOK: Final = 0.25
FIRST_REPEAT: Final = 4.0
"""Seconds without an end after which the start is said again: whoever has answered it sends the answer again, though
not within three seconds of the last time."""
SLOWEST_REPEAT: Final = 30.0
_REPEATS: Final = Backoff(FIRST_REPEAT, SLOWEST_REPEAT)
BEAT: Final = 5.0
SILENCE: Final = 60.0
"""Seconds a peer may leave its pings unanswered before the owner stops waiting for it."""
_MOST_WHY: Final = 500
_ENDS: Final = frozenset({Kind.PLAN_READY.value, Kind.FLOW_FAILED.value})
_STARTS: Final = frozenset({Kind.FLOW_START.value, Kind.FLOW_CREATE_START.value})


class DisbelievedNote(Wire):
    """A message that did not hold. `peer` signed it, and lied or passed on a lie."""

    message_id: str
    peer: Role
    why: str


class DebateTimeout:
    """How long an owner waits, and when it says its start again. Both are told the time, so that a simulation waits as
    a command line does."""

    def __init__(self, now: float, patience: float) -> None:
        self._until = now + patience
        self._starts = 1
        self._again = now + _REPEATS.delay(self._starts)

    @property
    def next_at(self) -> float:
        """Until then nothing is due."""
        return min(self._again, self._until)

    def over(self, now: float) -> bool:
        return now > self._until

    def repeats(self, now: float) -> bool:
        """Whether it is time to say the start again; once for each time."""
        if now <= self._again:
            return False
        self._starts += 1
        self._again = now + _REPEATS.delay(self._starts)
        return True


class OwnerInbox:
    """Receives for the owner: passes thoughts to the listener and wakes whoever waits for the end."""

    def __init__(self) -> None:
        self.listeners: dict[str, Listen] = {}
        self._nudge = asyncio.Event()

    async def hear(self, envelope: Envelope) -> None:
        if isinstance(envelope.payload, AgentThought):
            listener = self.listeners.get(envelope.request_id)
            if listener is not None:
                thought = envelope.payload.thought
                listener(thought.model_copy(update={"text": sanitise(thought.text)}))
        else:
            self._nudge.set()

    async def wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._nudge.wait(), seconds)
        self._nudge.clear()


class OwnerEndpoint:
    def __init__(self, running: PeerRunner, inbox: OwnerInbox, folder: MeshFolder, transport: str) -> None:
        self.running = running
        self.inbox = inbox
        self.transport = transport
        self._folder = folder
        self._sharing: asyncio.Task[None] | None = None
        self.closed = False

    def start(self) -> None:
        self.running.start()
        self._sharing = asyncio.create_task(self._share())

    @property
    def node(self) -> NodeHealth | None:
        """How the owner's own node answered last; None where there is none."""
        return self.running.transport.node

    @property
    def has_node(self) -> bool:
        """Whether its own node answered last, where it needs one."""
        return self.node is None or self.node.state == "ok"

    async def ping(
        self, patience: float, roles: tuple[Role, ...] = AGENTS, answered: dict[Role, PingReply] | None = None
    ) -> dict[Role, PingReply]:
        if self.node is not None and self.node.state in {"not ours", "not AXL"}:
            return {}  # something else answers in the node's place; one that is late may still come
        return await self.running.ping(roles, patience, self._folder.pinned_reply, answered)

    async def aclose(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._sharing is not None:
            self._sharing.cancel()
        await self.running.close()

    async def _share(self) -> None:
        """Answers to pings of another command line of this home."""
        answered = self.running.peer.pongs
        while True:
            await asyncio.sleep(0.05)
            for (role, nonce), code in list(answered.items()):
                if nonce not in self.running.awaited:
                    del answered[role, nonce]
                    with suppress(ZunoError):
                        self._folder.pin(role, nonce, code)


@dataclass(frozen=True, slots=True)
class MeshDebateRunner:
    endpoint: OwnerEndpoint
    journal: Journal
    key: NodeKey
    now: Callable[[], int]
    stopwatch: Callable[[], float]
    chain_of: Callable[[str], Chain]
    observe_again: Callable[[Context], Awaitable[tuple[PoolFacts, ...]]]
    """This home's own reading of the pools of a context."""
    request_id: str
    max_rounds: int
    patience: float
    """Seconds after which a debate without an end has failed."""
    tell: Callable[[str], None]

    async def debate(self, start: Start, listen: Listen) -> DebateEnd:
        opening = await self.endpoint.running.peer.send_message(
            self.request_id, OutgoingMessage(Role.SCOUT, start), None
        )
        self.tell(
            f"{self.request_id} is argued over {self.endpoint.transport}; `zuno mesh join {self.request_id}` rejoins."
        )
        return await self._follow(opening, start, listen)

    async def rejoin(self, listen: Listen) -> DebateEnd:
        """Go on with a debate that this home began: its start is said again, and whoever answered answers again."""
        opening = await self._opening()
        start = opening.payload
        if not isinstance(start, Start):
            raise Broken(f"{self.request_id} does not begin with a start; run `zuno journal verify`.")
        if opening.edition != EDITION:
            raise Refused(
                f"{self.request_id} began in edition {opening.edition} and this Zuno argues in edition {EDITION}; "
                "ask the desk again."
            )
        if await self._end() is None:
            if opening.key != self.key.public:
                raise Refused(f"{self.request_id} was not argued on this mesh; ask the desk again.")
            if opening.expires < self.now():
                raise Refused(
                    f"{self.request_id} began more than {(opening.expires - opening.ts) // 60_000} minutes ago and "
                    "nobody answers it any more; ask the desk again."
                )
            await self.endpoint.running.peer.repeat(opening)
        return await self._follow(opening, start, listen)

    async def _follow(self, opening: Envelope, start: Start, listen: Listen) -> DebateEnd:
        self.endpoint.inbox.listeners[self.request_id] = listen
        watch = asyncio.ensure_future(self._watch_for_silence())
        try:
            end = await self._wait_for_end(opening, watch)
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            self.endpoint.inbox.listeners.pop(self.request_id, None)
            self.endpoint.running.peer.delivery.forget(self.request_id)
        listen(Waiting(()))
        return await self.settle(opening, end, start)

    async def _wait_for_end(self, opening: Envelope, watch: asyncio.Future[str]) -> Envelope:
        waiting = DebateTimeout(self.stopwatch(), self.patience)
        while (end := await self.look(opening, waiting)) is None:
            if trouble := self.endpoint.running.failure:
                raise trouble
            if watch.done():
                raise await self._record_timeout(opening, watch.result())
            await self.endpoint.inbox.wait(LOOK)
        return end

    async def look(self, opening: Envelope, waiting: DebateTimeout) -> Envelope | None:
        """The end, once somebody has told it; before, the start is said again when it is time. `Unavailable`, and on
        record, when it took too long."""
        if (end := await self._end()) is not None:
            return end
        if waiting.over(self.stopwatch()):
            raise await self._record_timeout(opening, f"The debate did not end within {self.patience:g} s")
        if waiting.repeats(self.stopwatch()):
            await self.endpoint.running.peer.repeat(opening)
        return None

    async def settle(self, opening: Envelope, end: Envelope, start: Start) -> DebateEnd:
        """What an end comes to: the plan, if it is believed, or the error it is."""
        match end.payload:
            case PlanReady() if end.edition != opening.edition:
                reason = edition_refusal(end.from_, end.edition, Role.CLI)
                await self._record(opening, FlowFailed(at=Role.CLI, error="refused", reason=reason))
                raise Refused(reason)
            case PlanReady() as ready:
                doubts = await self.check(opening, end, ready, start)
                return DebateEnd(ready, digest(to_bytes(end)), doubts)
            case FlowFailed() as failed:
                raise error_of(failed)
            case _:
                raise Broken(f"{end.from_} ended {self.request_id} with {end.kind}")

    async def _watch_for_silence(self) -> str:
        """Ends with a sentence about whoever has not answered for too long."""
        last = dict.fromkeys(AGENTS, self.stopwatch())
        while True:
            await asyncio.sleep(BEAT)
            answered = await self.endpoint.ping(BEAT)
            if others := other_editions(answered):
                return others
            last.update(dict.fromkeys(answered, self.stopwatch()))
            gone = [role.value for role, at in last.items() if self.stopwatch() - at > SILENCE]
            if gone:
                return f"The {' and the '.join(gone)} did not answer for {SILENCE:g} s"

    async def _record_timeout(self, opening: Envelope, why: str) -> Unavailable:
        """A silence goes on the record like any other end."""
        reason = f"{why}; `zuno mesh status` shows who is there, `zuno mesh join {self.request_id}` goes on with it."
        reason = add_node(self.endpoint.node, reason)
        await self._record(opening, FlowFailed(at=Role.CLI, error="unavailable", reason=reason))
        return Unavailable(reason)

    async def _opening(self) -> Envelope:
        async for entry in self.journal.entries(request_id=self.request_id):
            if entry.kind in _STARTS:
                return Envelope.model_validate(dict(entry.payload))
        raise Refused(f"No request {self.request_id} began in this journal; `zuno plan list` shows what was asked.")

    async def _end(self) -> Envelope | None:
        """The first end that a peer told, whichever command line of this home heard it."""
        async for entry in self.journal.entries(request_id=self.request_id):
            if entry.kind in _ENDS and entry.author.role != Role.CLI.value:
                return Envelope.model_validate(dict(entry.payload))
        return None

    async def check(self, opening: Envelope, end: Envelope, ready: PlanReady, start: Start) -> tuple[str, ...]:
        """Nothing is shown that does not follow from the rules, and from what the chain says to us. What our own
        sources do not bear out is handed back as doubts."""
        try:
            context = await load_context(self.journal, ready.debate.context)
        except (Malformed, *NO_FIGURES):
            raise await self._reject_end(opening, end, "its context cannot be read") from None
        lie = await self._find_unconfirmed(context, opening, start)  # before any computing
        if lie is not None:
            raise await self._reject_end(opening, end, f"with a context it says is the scout's, {lie}")
        try:
            check_ready(context, ready, start)
            doubts = find_doubts(context, await self.observe_again(context))
            check_yield(ready)
        except (Malformed, Refused, UsageError) as error:
            raise await self._reject_end(opening, end, str(error)) from None
        except NO_FIGURES as error:
            why = f"its figures cannot be computed with ({type(error).__name__})"
            raise await self._reject_end(opening, end, why) from None
        return doubts

    async def _find_unconfirmed(self, context: Context, opening: Envelope, start: Start) -> str | None:
        """What the Scout is said to have seen and the chain does not show, or showed long before it was asked. Only
        the chain that was asked about is opened, for no more than was asked; one that does not answer settles nothing.
        """
        try:
            check_asked(context, start)
        except Malformed as error:
            return str(error)
        chain = self.chain_of(start.chain)
        head, waited = await chain.head(), Seconds(max(0, self.now() - opening.ts) // 1000)
        pools = [pool_facts.pool.id for pool_facts in context.scenes]
        positions = [pool_facts.position.id for pool_facts in context.scenes if pool_facts.position is not None]
        try:
            check_age(context.block, head, waited)
            seen = await chain.witness(context.block, pools, positions)
            check_seen(context, seen.pools, seen.positions, chain.info.id)
        except (Malformed, Refused) as error:  # Refused: there is no such block
            return str(error)
        except NO_FIGURES as error:
            return f"it names what no chain can be asked for ({type(error).__name__})"
        return None

    async def _reject_end(self, opening: Envelope, end: Envelope, why: str) -> Broken:
        """Whoever signed the end answers for all of it: what it brings of others carries no word of theirs."""
        why = plain_text(why, _MOST_WHY)  # some of it may be the peer's own words
        note = DisbelievedNote(message_id=end.id, peer=end.from_, why=why)
        await self.journal.append(
            kind=DISBELIEVED, author=Author(Role.CLI.value), payload=note, request_id=self.request_id
        )
        reason = f"The {end.from_}'s plan was refused: {why.rstrip('.')}; nothing of it is shown."
        await self._record(opening, FlowFailed(at=Role.CLI, error="broken", reason=reason))
        return Broken(reason)

    async def _record(self, opening: Envelope, failed: FlowFailed) -> None:
        """Under an id of its own: numbered behind whatever this home has said in the request."""
        signer = EnvelopeSigner(Role.CLI, self.key, self.now)
        async for entry in self.journal.entries(request_id=self.request_id):
            if entry.kind in _STARTS | _ENDS and entry.author.role == Role.CLI.value:
                message = Envelope.model_validate(dict(entry.payload))
                signer.counts[self.request_id] = max(signer.counts[self.request_id], message.seq + 1)
        await journal_envelope(
            self.journal, signer.envelope(self.request_id, OutgoingMessage(Role.CLI, failed), opening.id)
        )


def other_editions(answered: Mapping[Role, PingReply]) -> str:
    """Who argues in another edition than this Zuno; empty where nobody does."""
    others = [f"{role} (edition {pong.edition})" for role, pong in answered.items() if pong.edition != EDITION]
    return f"The {' and the '.join(others)} cannot argue with this Zuno (edition {EDITION})" if others else ""


def add_node(node: NodeHealth | None, sentence: str = "") -> str:
    """A sentence about peers that did not answer, with what is wrong with the owner's own node before it."""
    return sentence if node is None else f"{node.why} {sentence}".strip() + f" [node: {node.state}]"


OpenEndpoint = Callable[[str], Awaitable[OwnerEndpoint]]
