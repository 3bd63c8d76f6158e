"""A mesh peer on a real transport, with one send queue per neighbour, so that a silent one delays no other."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from zuno.kernel.errors import Unavailable, ZunoError
from zuno.lp.mesh.delivery import Outgoing
from zuno.lp.mesh.envelope import read_version
from zuno.lp.mesh.peer_process import MeshPeer, run_receiver, run_retries
from zuno.lp.model.debate import Role
from zuno.lp.ports.transport import Transport

MOST_WAITING: Final = 256
SENDERS_PER_PEER: Final = 16
"""Messages on their way to one neighbour at a time: those for a process that is gone do not hold up the next one's."""
PING_AGAIN: Final = 0.4
AGENTS: Final = (Role.SCOUT, Role.STRATEGIST, Role.CRITIC, Role.ARBITER)


class Outbox:
    """Sends in the background. What does not fit is dropped; letters are sent again."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._queues: dict[Role, asyncio.Queue[bytes]] = {}
        self._senders: list[asyncio.Task[None]] = []
        self.lost: dict[Role, str] = {}
        """Why the last message to a role could not be sent, where it could not."""

    async def send(self, outgoing: Outgoing) -> None:
        queue = self._queues.get(outgoing.to)
        if queue is None:
            queue = self._queues[outgoing.to] = asyncio.Queue(MOST_WAITING)
            self._senders += [
                asyncio.create_task(self._send_queued(outgoing.to, queue)) for _ in range(SENDERS_PER_PEER)
            ]
        try:
            queue.put_nowait(outgoing.data)
        except asyncio.QueueFull:
            raise Unavailable(f"{MOST_WAITING} messages wait for the {outgoing.to} already.") from None

    async def close(self, patience: float) -> None:
        """Let what waits go out, for so long."""
        waiting = [asyncio.ensure_future(queue.join()) for queue in self._queues.values()]
        if waiting:
            await asyncio.wait(waiting, timeout=patience)
        for task in (*waiting, *self._senders):
            task.cancel()
        await asyncio.gather(*waiting, *self._senders, return_exceptions=True)

    async def _send_queued(self, to: Role, queue: asyncio.Queue[bytes]) -> None:
        while True:
            data = await queue.get()
            try:
                await self._transport.send(to, data)
                self.lost.pop(to, None)
            except ZunoError as error:  # nobody is there; the post sends it again
                self.lost[to] = str(error)
            finally:
                queue.task_done()


@dataclass(frozen=True, slots=True)
class PingReply:
    code: str
    edition: int
    milliseconds: float


class PeerRunner:
    def __init__(
        self,
        role: Role,
        transport: Transport,
        open_peer: Callable[[Callable[[Outgoing], Awaitable[None]]], MeshPeer],
        *,
        stopwatch: Callable[[], float],
        nonce: Callable[[], str],
    ) -> None:
        self._role = role
        self.transport = transport
        self._outbox = Outbox(transport)
        self.peer = open_peer(self._outbox.send)
        self._stopwatch = stopwatch
        self._nonce = nonce
        self._work: list[asyncio.Task[None]] = []
        self.awaited: set[str] = set()
        """Nonces of pings that are waited for here."""

    def start(self) -> None:
        async def receive() -> None:
            await run_receiver(self.peer, lambda: self.transport.receive(self._role))

        self._work = [asyncio.create_task(receive()), asyncio.create_task(run_retries(self.peer, asyncio.sleep))]

    @property
    def attends(self) -> bool:
        return bool(self._work)

    @property
    def unsent(self) -> str | None:
        """Why nothing goes out at all: the same words for everybody are about this side."""
        whys = set(self._outbox.lost.values())
        return whys.pop() if len(self._outbox.lost) > 1 and len(whys) == 1 else None

    async def wait_for_failure(self) -> BaseException:
        """Waits for what ends the attendance; it never ends by itself."""
        done, _ = await asyncio.wait(self._work, return_when=asyncio.FIRST_COMPLETED)
        return _first_error(next(iter(done)))

    @property
    def failure(self) -> BaseException | None:
        """What ended the attendance, if anything has."""
        return next((_first_error(task) for task in self._work if task.done()), None)

    async def ping(
        self,
        roles: tuple[Role, ...],
        patience: float,
        elsewhere: Callable[[Role, str], str | None] = lambda role, nonce: None,
        answered: dict[Role, PingReply] | None = None,
    ) -> dict[Role, PingReply]:
        """Who answers within `patience` seconds, added to `answered`; `elsewhere`: answers other processes took in."""
        replies = {} if answered is None else answered
        asking = [asyncio.create_task(self._ask(role, replies, elsewhere)) for role in roles]
        if asking:
            await asyncio.wait(asking, timeout=patience)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        return replies

    async def _ask(
        self, role: Role, replies: dict[Role, PingReply], elsewhere: Callable[[Role, str], str | None]
    ) -> None:
        """Asks anew until one of the pings is answered; a ping may get lost like anything else."""
        asked: dict[str, float] = {}
        try:
            while role not in replies:
                if not asked or self._stopwatch() - max(asked.values()) > PING_AGAIN:
                    nonce = self._nonce()
                    asked[nonce] = self._stopwatch()
                    self.awaited.add(nonce)
                    await self.peer.ping(role, nonce)
                await asyncio.sleep(0.005)
                for nonce, began in asked.items():
                    code = self.peer.pongs.pop((role, nonce), None) or elsewhere(role, nonce)
                    if code is not None:
                        replies[role] = PingReply(*read_version(code), (self._stopwatch() - began) * 1000)
        finally:
            self.awaited.difference_update(asked)

    async def close(self, patience: float = 0.5) -> None:
        await self._outbox.close(patience)
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await self.transport.close()


def _first_error(task: asyncio.Task[None]) -> BaseException:
    error: BaseException | None = asyncio.CancelledError() if task.cancelled() else task.exception()
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error or RuntimeError("a task that never ends has ended")
