"""Recommendations: start a debate, follow it, and record the plan that it decides."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Protocol

from zuno.journal.decision_view import DECISION_VIEW, Facts, pack_view
from zuno.journal.port import Author, Journal
from zuno.kernel.canonical import Digest, digest
from zuno.kernel.errors import Broken, Malformed, Refused, Unavailable, UsageError, ZunoError
from zuno.kernel.logs import log_under
from zuno.kernel.signing import NodeKey
from zuno.kernel.view import sanitise
from zuno.lp.mesh.envelope import Envelope, to_bytes
from zuno.lp.mesh.message_handler import EnvelopeSigner, Now, flow_failure, journal_envelope, open_envelope
from zuno.lp.mesh.peer import OutgoingMessage, Peer
from zuno.lp.model.ballot import RiskProfile
from zuno.lp.model.debate import (
    AgentThought,
    FlowCreateStart,
    FlowFailed,
    FlowStart,
    OwnRange,
    PlanReady,
    PositionRequest,
    Role,
    Thought,
)
from zuno.lp.model.plan import PLAN_KIND
from zuno.lp.ports.transport import Transport
from zuno.lp.service import arguments
from zuno.lp.service.create_request import Flags, parse_create_request
from zuno.lp.service.plan_record import build_plan, chosen_by_owner, find_own, record_of, with_doubts
from zuno.lp.service.plan_view import REFUSED_KIND, ChoiceRefused, PlanRecord, PlanView
from zuno.lp.service.recorded_request import load_context
from zuno.lp.service.wallets import BalancesView

Listen = Callable[["Thought | Waiting"], None]
OpenRoom = Callable[["str | None", Listen], Awaitable["DebateRunner"]]
"""Somewhere to hold one debate: in this process or on a mesh. None: the request gets a new id."""
OpenJournal = Callable[[], Awaitable[Journal]]
ReadBalances = Callable[[str], Awaitable[BalancesView]]
FindShort = Callable[[str, int], Awaitable[int | None]]
_ERRORS: dict[str, type[ZunoError]] = {
    "usage": UsageError,
    "refused": Refused,
    "unavailable": Unavailable,
    "broken": Broken,
}
TICK: Final = 1.0
_AFTER_CRITIC: Final = (Role.STRATEGIST, Role.ARBITER)
_NEXT: Final = {Role.SCOUT: (Role.STRATEGIST,), Role.STRATEGIST: (Role.CRITIC,), Role.CRITIC: _AFTER_CRITIC}
"""Who is asked next, once somebody's thoughts are heard: they come with its answer."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Who was asked and has not answered, and for how long; nobody, while the plan is checked."""

    roles: tuple[Role, ...]
    seconds: int = 0

    def __str__(self) -> str:
        names = " / ".join(self.roles)
        return f"asking the {names} for {self.seconds} s, no answer yet" if names else "checking the plan"


@asynccontextmanager
async def tell_waiting(listen: Listen, *asked: Role, answered: Container[Role] = ()) -> AsyncIterator[Listen]:
    """Tells `listen` every second who was asked and has not answered. Yields the listener for the debate, which notes
    who is asked next."""
    now, since = asyncio.get_running_loop().time, dict[Role, float]()

    def tell() -> None:
        nonlocal since
        since = {role: since.get(role, now()) for role in asked if role not in answered}
        listen(Waiting(tuple(since), int(now() - min(since.values(), default=now()))))

    def hear(event: Thought | Waiting) -> None:
        nonlocal asked
        if isinstance(event, Thought):
            listen(event)
        asked = event.roles if isinstance(event, Waiting) else _NEXT.get(event.role, ())
        tell()

    async def repeat() -> None:
        while True:
            tell()
            await asyncio.sleep(TICK)

    repeating = asyncio.ensure_future(repeat())
    try:
        yield hear
    finally:
        repeating.cancel()


def ignore_event(event: Thought | Waiting) -> None:
    """For callers that do not follow the debate: the plan holds the transcript."""


@dataclass(frozen=True, slots=True)
class DebateEnd:
    """What a debate came to, and which message says so."""

    ready: PlanReady
    message: Digest
    """Of the bytes that were signed."""
    doubts: tuple[str, ...] = ()
    """What the owner's own sources do not bear out."""


class DebateRunner(Protocol):
    """Where one debate is held."""

    @property
    def journal(self) -> Journal: ...

    @property
    def request_id(self) -> str: ...

    @property
    def max_rounds(self) -> int: ...

    async def debate(self, start: FlowStart | FlowCreateStart, listen: Listen) -> DebateEnd:
        """The plan as far as this home believes it, or the error that ended the flow."""


@dataclass(frozen=True, slots=True)
class LocalDebateRunner:
    """Where one debate is held: the peers on their transport, and the journal all of it goes into."""

    peers: Sequence[Peer]
    transport: Transport
    journal: Journal
    key: NodeKey
    now: Now
    request_id: str
    max_rounds: int
    patience: float
    """Seconds after which a debate without an end has failed: a message was lost, or a peer is gone."""

    async def debate(self, start: FlowStart | FlowCreateStart, listen: Callable[[Thought], None]) -> DebateEnd:
        """The plan, or the error that ended the flow."""
        signer = EnvelopeSigner(Role.CLI, self.key, self.now)
        opening = signer.envelope(self.request_id, OutgoingMessage(Role.SCOUT, start), None)
        await journal_envelope(self.journal, opening)
        await self.transport.send(Role.SCOUT, to_bytes(opening))
        running = [asyncio.ensure_future(self._attend(peer)) for peer in self.peers]
        ending = asyncio.ensure_future(self._wait_for_end(listen))
        try:
            done, _ = await asyncio.wait([ending, *running], timeout=self.patience, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise await self._record_timeout(signer, opening)
            if not ending.done():
                next(task for task in running if task.done()).result()  # a peer ends only by our own bug
            return await ending
        finally:
            for task in (ending, *running):
                task.cancel()
            await asyncio.gather(ending, *running, return_exceptions=True)

    async def _attend(self, peer: Peer) -> None:
        """One peer's part: it answers for as long as it runs; the debate's end is the owner's to see."""
        signer = EnvelopeSigner(peer.role, self.key, self.now)
        while True:
            received = await self.transport.receive(peer.role)
            try:
                heard = open_envelope(received.data, self.key, peer.role, self.now())
            except Malformed:  # what cannot be read, is not signed or is too old is dropped
                continue
            await self._answer(peer, heard, signer)

    async def _answer(self, peer: Peer, heard: Envelope, signer: EnvelopeSigner) -> None:
        async def say(message: OutgoingMessage, *, journaled: bool = True) -> None:
            envelope, body = signer.sign_message(heard.request_id, message, heard.id)
            if journaled:
                await journal_envelope(self.journal, envelope, body)
            await self.transport.send(message.to, body)

        async def think(thought: Thought) -> None:
            with suppress(ZunoError):  # narration: the debate carries it all the same
                await say(OutgoingMessage(Role.CLI, AgentThought(thought=thought)), journaled=False)

        try:
            answers = await peer.handle(heard, think)
        except ZunoError as error:
            answers = [OutgoingMessage(Role.CLI, flow_failure(peer.role, error))]
        for answer in answers:
            await say(answer)

    async def _record_timeout(self, signer: EnvelopeSigner, opening: Envelope) -> Unavailable:
        """A timeout is journaled like any other end."""
        reason = (
            f"The debate did not end within {self.patience:g} s: a message was lost or a peer is silent; ask again."
        )
        failed = FlowFailed(at=Role.CLI, error="unavailable", reason=reason)
        await journal_envelope(
            self.journal, signer.envelope(self.request_id, OutgoingMessage(Role.CLI, failed), opening.id)
        )
        return Unavailable(reason)

    async def _wait_for_end(self, listen: Callable[[Thought], None]) -> DebateEnd:
        while True:
            received = await self.transport.receive(Role.CLI)
            heard = open_envelope(received.data, self.key, Role.CLI, self.now())
            if heard.request_id != self.request_id:
                continue
            match heard.payload:
                case AgentThought(thought=thought):
                    listen(thought)
                case PlanReady() as ready:
                    return DebateEnd(ready, digest(received.data))
                case FlowFailed() as failed:
                    raise error_of(failed)
                case _:
                    raise Broken(f"{heard.from_} sent {heard.kind} to the owner")


@dataclass(frozen=True, slots=True)
class RecommendService:
    """What a person can ask the desk for."""

    open_room: OpenRoom
    chain: str
    profile: str
    hooks: Sequence[str] = ()
    """The hook contracts the owner trusts."""
    read_balances: ReadBalances | None = None
    """What the acting wallet holds on a chain."""
    find_short: FindShort | None = None
    """What is sold short for a position already, in base units; None: it is not hedged."""

    async def rebalance(
        self,
        position: str,
        *,
        chain: str | None = None,
        profile: str | None = None,
        candidate: int | None = None,
        own_range: OwnRange | None = None,
        anyway: bool = False,
        hedged: bool = False,
        listen: Listen = ignore_event,
        request_id: str | None = None,
    ) -> PlanView:
        """Argue about a position; `candidate` is the owner's own choice among what was not vetoed, `own_range` a range
        of the owner's that is judged beside the others, and taken `anyway`, a veto or not. `request_id`: a new one that
        whoever asks names the debate by while it is held. Where it is hedged it stays so."""
        position_id = arguments.position_id(position)
        _check_choice(candidate)
        risk = parse_profile(profile or self.profile)
        room = await self.open_room(request_id, listen)
        terms = self._list_terms(chain or self.chain, risk, room, own_range)
        short = None if self.find_short is None else await self.find_short(chain or self.chain, position_id)
        start = FlowStart(position_id=position_id, **terms, hedged=hedged or short is not None, short=short or 0)
        return await self._plan(room, start, candidate, listen, anyway)

    async def create(
        self,
        text: str = "",
        flags: Flags | None = None,
        *,
        chain: str | None = None,
        profile: str | None = None,
        candidate: int | None = None,
        own_range: OwnRange | None = None,
        anyway: bool = False,
        hedged: bool = False,
        listen: Listen = ignore_event,
        request_id: str | None = None,
    ) -> PlanView:
        """Argue about opening a position; what the flags say wins over the sentence. `hedged`: with a short perpetual
        of what it holds of the volatile token; `Refused` where none can be had."""
        asked_for = parse_create_request(text, flags)
        _check_choice(candidate)
        risk = parse_profile(profile or asked_for.profile or self.profile)
        where = chain or asked_for.chain or self.chain
        await self._check_capital(where, asked_for.position)
        room = await self.open_room(request_id, listen)
        terms = self._list_terms(where, risk, room, own_range or arguments.own_range(asked_for.prices, None))
        start = FlowCreateStart(wish=asked_for.position, **terms, hedged=hedged)
        if asked_for.notes:
            listen(Thought(role=Role.CLI, round=0, seq=0, text="; ".join(asked_for.notes), speaker="deterministic"))
        return await self._plan(room, start, candidate, listen, anyway)

    def _list_terms(self, chain: str, risk: RiskProfile, room: DebateRunner, own: OwnRange | None) -> dict[str, Any]:
        """What every debate starts with."""
        rounds, hooks = room.max_rounds, tuple(sorted(self.hooks))
        return {"chain": chain, "profile": risk, "max_rounds": rounds, "own_range": own, "hooks": hooks}

    async def _check_capital(self, chain: str, request: PositionRequest) -> None:
        """`Refused` for more of a token than the acting wallet holds. Without a wallet, or where it cannot be read, the
        debate is held all the same: nothing is spent by it."""
        if self.read_balances is None:
            return
        try:
            held = await self.read_balances(chain)
        except (Refused, Unavailable, Malformed):
            return
        for line in request.capital:
            for balance in held.balances:
                token = balance.token
                named = token.address == line.token.lower() or (token.verified and token.symbol == line.token.upper())
                if named and Decimal(balance.amount_human) < line.amount:
                    raise Refused(
                        f"The wallet {held.wallet} holds {balance.amount_human} {token.display_name} on {held.chain}, "
                        f"less than the {line.amount:f} that are to go in."
                    )

    async def _plan(
        self,
        room: DebateRunner,
        start: FlowStart | FlowCreateStart,
        candidate: int | None,
        listen: Listen,
        anyway: bool,
    ) -> PlanView:
        with log_under(room.request_id):
            async with tell_waiting(listen, Role.SCOUT) as hear:
                return await record_plan(room, await room.debate(start, hear), candidate, anyway=anyway)


async def record_plan(room: DebateRunner, end: DebateEnd, candidate: int | None, *, anyway: bool = False) -> PlanView:
    """The plan of a finished debate, on record. A request has one: whoever comes second finds it, and it is `Broken`
    where theirs is another."""
    ready = end.ready
    context = await load_context(room.journal, ready.debate.context)
    if anyway:
        candidate = find_own(context, ready, candidate)
    if candidate is not None:
        try:
            ready = chosen_by_owner(context, ready, candidate, anyway=anyway)
        except Refused as error:
            await _record_refusal(room, end, candidate, str(error))
            raise Refused(f"{error} `zuno why {room.request_id}` shows the last ballot.") from None

    def plan_with(doubts: Sequence[str]) -> tuple[PlanView, Facts, PlanRecord]:
        plan, facts = build_plan(room.request_id, context, with_doubts(ready, doubts))
        return plan, facts, record_of(plan, candidate, end.message, doubts, anyway=anyway)

    plan, facts, record = plan_with(end.doubts)
    author = Author(Role.CLI.value)
    entry = await room.journal.append_once(kind=PLAN_KIND, author=author, payload=record, request_id=room.request_id)
    stands = PlanRecord.model_validate(dict(entry.payload))
    if stands.doubts != record.doubts:
        plan, facts, record = plan_with(stands.doubts)  # this home's sources differed then: the first record stands
    if stands != record:
        raise Broken(
            f"A request has one plan, and {room.request_id} has {stands.plan_id} on record ({stands.choice}, decided "
            f"by the {stands.decided_by}); this would be {plan.plan_id} ({record.choice}, decided by the "
            f"{record.decided_by}). `zuno plan show {stands.plan_id}` shows it; ask the desk again for another."
        )
    stored = pack_view(plan, facts)
    await room.journal.append_once(kind=DECISION_VIEW, author=author, payload=stored, request_id=room.request_id)
    return plan


async def _record_refusal(room: DebateRunner, end: DebateEnd, candidate: int, why: str) -> None:
    """Record which message was checked, so that `zuno why` can show the ballot of a request without a plan."""
    note = ChoiceRefused(message=end.message, choice=candidate, why=sanitise(why))
    await room.journal.append(
        kind=REFUSED_KIND, author=Author(Role.CLI.value), payload=note, request_id=room.request_id
    )


def error_of(failed: FlowFailed) -> ZunoError:
    """The error that a failed flow raises for its caller; the reason may be a peer's text."""
    return _ERRORS[failed.error](sanitise(failed.reason))


def _check_choice(candidate: int | None) -> None:
    if candidate is not None and candidate < 0:
        raise UsageError(f"A candidate is named by its index on the ballot, 0 or more, not {candidate}.")


def parse_profile(text: str) -> RiskProfile:
    try:
        return RiskProfile(text)
    except ValueError:
        raise UsageError(f"{text[:40]!r} is no risk profile; choose conservative, balanced or aggressive.") from None


def new_request_id(random: bytes) -> str:
    return "req_" + hashlib.sha256(random).hexdigest()[:16]
