"""What distrust costs: signed and acknowledged hops, debates between processes, and a thousand debates in bad weather.

`python benchmarks/mesh.py` prints one JSON line per figure and ends with 1 when a bar is missed. Yardsticks are the
same bytes over the same transport and the same processes, without signatures, acks or memory.
"""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import sys
import tempfile
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.figure import report
from tests.wire.debating import Table, observed
from tests.wire.mesh_world import Weather, World
from zuno.adapters.chain.sim.chain import SimChain
from zuno.adapters.chain.sim.world_file import SimFile
from zuno.adapters.clock.system import unix_millis
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.sqlite import open_sqlite
from zuno.adapters.transport.iroh import IrohPeer, IrohTransport
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Journal
from zuno.kernel.canonical import canonical, decode_canonical
from zuno.lp.agents.arbiter import Arbiter
from zuno.lp.agents.critic import Critic
from zuno.lp.agents.scout import Scout
from zuno.lp.agents.strategist import Strategist
from zuno.lp.mesh.delivery import Delivery, EnvelopeReceived, Outgoing
from zuno.lp.mesh.envelope import Envelope
from zuno.lp.mesh.message_handler import EnvelopeSigner
from zuno.lp.mesh.peer import OutgoingMessage, Peer
from zuno.lp.mesh.peer_process import MeshPeer, run_receiver, run_retries
from zuno.lp.model.ballot import RiskProfile
from zuno.lp.model.debate import Context, FlowFailed, FlowStart, Kind, PlanReady, Role
from zuno.lp.ports.transport import ReceivedMessage
from zuno.lp.service.recorded_request import load_context

HOPS = 60
DEBATES = 1_000
HOP_BAR = 3.0
RELAY_BAR = 10.0
START = FlowStart(chain="sim", position_id=1, profile=RiskProfile.BALANCED, max_rounds=2)
REQUEST = "req_0123456789abcdef"
RUNS = 9
RAW = b"\x02RAW"
RELAYED_BYTES = 9_000
"""What the largest hop of a debate carries: a proposal and its context, packed."""
RING = (Role.CLI, Role.SCOUT, Role.STRATEGIST, Role.CRITIC)


def secret_of(role: Role) -> bytes:
    return hashlib.sha256(f"bench {role}".encode()).digest()


def endpoint_of(role: Role) -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(secret_of(role)).public_key().public_bytes_raw().hex()


async def opened(me: Role, others: dict[Role, str | None]) -> IrohTransport:
    book = {role: IrohPeer(endpoint_of(role), address) for role, address in others.items()}
    transport = IrohTransport(me, secret_of(me), book)
    await transport.open()
    return transport


# -- one hop


async def hop(folder: Path) -> bool:
    """A letter until its ack is back, against the same bytes there and a few back."""
    keys = {role: KeyFile(folder / role.value / "node.key") for role in (Role.CLI, Role.SCOUT)}
    for key in keys.values():
        key.ensure()
    table = {role: key.public for role, key in keys.items()}
    scout_line = await opened(Role.SCOUT, {Role.CLI: None})
    cli_line = await opened(Role.CLI, {Role.SCOUT: scout_line.address})
    posts = {
        role: Delivery(role, key, table, lambda name: None, chance=Random(1), code="bench")
        for role, key in keys.items()
    }
    now = 1_700_000_000_000
    mouth = EnvelopeSigner(Role.CLI, keys[Role.CLI], lambda: now)

    async def answer_raw() -> None:
        while True:
            await scout_line.receive(Role.SCOUT)
            await scout_line.send(Role.CLI, b"\x00" * 240)

    async def answer() -> None:
        while True:
            for event in posts[Role.SCOUT].take(await scout_line.receive(Role.SCOUT), now):
                if isinstance(event, EnvelopeReceived):
                    await scout_line.send(Role.CLI, posts[Role.SCOUT].acknowledge_envelope(event.envelope, now).data)

    raw, signed = list[float](), list[float]()
    size = len(
        posts[Role.CLI].prepare_envelope(mouth.envelope(REQUEST, OutgoingMessage(Role.SCOUT, START), None), now)[0].data
    )
    posts[Role.CLI].forget(REQUEST)
    answering = asyncio.ensure_future(answer_raw())
    for _ in range(HOPS):
        began = perf_counter()
        await cli_line.send(Role.SCOUT, b"\x00" * size)
        await cli_line.receive(Role.CLI)
        raw.append(perf_counter() - began)
    answering.cancel()
    answering = asyncio.ensure_future(answer())
    for at in range(HOPS):
        now += 1_000  # nobody is rate-limited
        began = perf_counter()
        letter = mouth.envelope(f"req_{at:016x}", OutgoingMessage(Role.SCOUT, START), None)
        for one in posts[Role.CLI].prepare_envelope(letter, now):
            await cli_line.send(one.to, one.data)
        while posts[Role.CLI].waiting:
            posts[Role.CLI].take(await cli_line.receive(Role.CLI), now)
        signed.append(perf_counter() - began)
    answering.cancel()
    await cli_line.close()
    await scout_line.close()
    return report(
        "mesh.hop", median(signed), "s", median(raw), "the raw round trip of the same bytes over iroh", HOP_BAR
    )


# -- a debate between processes


def desk(frozen: Context, model_context: Any, role: Role, journal: Journal) -> Peer:
    """One agent of a debate about a frozen world."""

    async def recall(name: str) -> Context:
        return await load_context(journal, name)

    async def observe(start: Any) -> Context:
        return frozen.model_copy(update={"profile": start.profile, "max_rounds": start.max_rounds})

    match role:
        case Role.SCOUT:
            return Scout(observe, journal.put_bundle, model_context)
        case Role.STRATEGIST:
            return Strategist(recall, model_context)
        case Role.CRITIC:
            return Critic(recall, model_context)
        case _:
            return Arbiter(recall, model_context)


async def inhabited(role: Role, folder: Path, ports: dict[Role, int], heard: Any = None) -> tuple[Any, MeshPeer]:
    """A role on its port: the transport, and a resident with a journal on disk."""
    keys = {each: KeyFile(folder.parent / "keys" / each.value / "node.key") for each in Role}
    for key in keys.values():
        key.ensure()
    book = {each: IrohPeer(endpoint_of(each), f"127.0.0.1:{port}") for each, port in ports.items() if each is not role}
    line = IrohTransport(role, secret_of(role), book, bind=f"127.0.0.1:{ports[role]}")
    await line.open()
    journal = ChainedJournal(open_sqlite(folder), keys[role], code=lambda: "bench", now=unix_millis)
    peer = None
    if role is not Role.CLI:
        frozen = Context.model_validate(decode_canonical((folder.parent / "context.json").read_bytes()))
        peer = desk(frozen, Table(folder, frozen).model_context(), role, journal)

    async def send(one: Outgoing) -> None:
        await line.send(one.to, one.data)

    table = {each: key.public for each, key in keys.items()}
    chance = Random(role.value)
    resident = MeshPeer(
        role, peer, journal, keys[role], table, send, unix_millis, chance=chance, code="bench", listen=heard
    )
    return line, resident


def agent(role: Role, folder: str, ports: dict[Role, int]) -> None:
    """A process of one agent, which also hands on raw bytes where it is asked to."""

    async def work() -> None:
        line, resident = await inhabited(role, Path(folder), ports)
        onward = RING[(RING.index(role) + 1) % len(RING)] if role in RING else Role.CLI

        async def receive() -> ReceivedMessage:
            while True:
                received: ReceivedMessage = await line.receive(role)
                if not received.data.startswith(RAW):
                    return received
                await line.send(onward, received.data)

        await asyncio.gather(run_receiver(resident, receive), run_retries(resident, asyncio.sleep))

    asyncio.run(work())


async def between_processes(folder: Path) -> bool:
    frozen = await observed(folder)
    (folder / "context.json").write_bytes(canonical(frozen))
    ports = dict(zip(Role, _free_ports(len(Role)), strict=True))
    spawning = multiprocessing.get_context("spawn")
    ends: asyncio.Queue[Envelope] = asyncio.Queue()
    for role in Role:
        (folder / role.value).mkdir()

    async def heard(envelope: Envelope) -> None:
        if isinstance(envelope.payload, PlanReady | FlowFailed):
            ends.put_nowait(envelope)

    agents = [
        spawning.Process(target=agent, args=(role, str(folder / role.value), ports), daemon=True)
        for role in Role
        if role is not Role.CLI
    ]
    for process in agents:
        process.start()
    line, cli = await inhabited(Role.CLI, folder / "cli", ports, heard)
    raw_back: asyncio.Queue[bytes] = asyncio.Queue()

    async def receive() -> ReceivedMessage:
        while True:
            received: ReceivedMessage = await line.receive(Role.CLI)
            if not received.data.startswith(RAW):
                return received
            raw_back.put_nowait(received.data)

    living = [
        asyncio.ensure_future(run_receiver(cli, receive)),
        asyncio.ensure_future(run_retries(cli, asyncio.sleep)),
    ]
    try:
        await _all_answer(cli)
        meshed, relayed = list[float](), list[float]()
        for at in range(RUNS + 1):
            began = perf_counter()
            await cli.send_message(f"req_{at:016x}", OutgoingMessage(Role.SCOUT, START), None)
            ended = await asyncio.wait_for(ends.get(), 60)
            meshed.append(perf_counter() - began)
            if not isinstance(ended.payload, PlanReady):
                raise ValueError(f"the debate failed: {ended.payload}")
            began = perf_counter()
            await line.send(Role.SCOUT, RAW + bytes(RELAYED_BYTES))
            await asyncio.wait_for(raw_back.get(), 60)
            relayed.append(perf_counter() - began)
    finally:
        for task in living:
            task.cancel()
        for process in agents:
            process.terminate()
            process.join()
        await line.close()
    alone = list[float]()
    for at in range(RUNS + 1):
        home = folder / f"alone-{at}"
        home.mkdir()
        table = Table(home, frozen)
        table.journal = ChainedJournal(open_sqlite(home), table.key, code=lambda: "bench", now=unix_millis)
        began = perf_counter()
        await table.debate()
        alone.append(perf_counter() - began)
    one, many, four_hops = (median(times[1:]) for times in (alone, meshed, relayed))
    return report(
        "mesh.debate",
        many - one,
        "s more than in one process",
        four_hops,
        "a raw relay of as many bytes over the same processes, four hops",
        RELAY_BAR,
        mesh=many,
        inproc=one,
    )


async def _all_answer(cli: MeshPeer) -> None:
    wanted = {role for role in Role if role is not Role.CLI}
    for attempt in range(200):
        nonce = f"{attempt:016x}"
        for role in wanted:
            await cli.ping(role, nonce)
        await asyncio.sleep(0.2)
        if {role for role, _ in cli.pongs} >= wanted:
            return
    raise ValueError("not all agents answered")


def _free_ports(count: int) -> list[int]:
    import socket

    held = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


# -- bad weather


def weather(folder: Path) -> bool:
    """A thousand debates with a tenth of everything lost and a tenth doubled: what their owner's journal holds a minute
    after the end."""
    frozen = asyncio.run(observed(folder / "sim"))
    model_context = Table(folder, frozen).model_context()
    keys = {role: KeyFile(folder / "keys" / role.value / "node.key") for role in Role}
    for key in keys.values():
        key.ensure()

    def peer(role: Role, journal: Journal) -> Peer:
        return desk(frozen, model_context, role, journal)

    chain = SimChain(SimFile(folder / "sim"))
    plans = failed = doubled = sent = 0
    bad = Weather(loss=0.1, repeats=0.1, slowest_ms=200)
    for seed in range(DEBATES):
        world = World(seed, keys, peer, bad, chain)
        debate = world.ask(seed)
        world.run()
        written = world.written(Role.CLI, debate)
        plans += "plan" in written
        failed += "flow_failed" in written
        doubled += written.count(Kind.PLAN_READY.value) > 1 or len(debate.plans) > 1
        sent += world.sent
    good = report(
        "mesh.weather.planless", DEBATES - plans, "debates", DEBATES, "all of them", 0.0, failed=failed,
        doubled=doubled, messages=sent / DEBATES,
    )  # fmt: skip
    return good and not doubled


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sim").mkdir()
        good = asyncio.run(hop(Path(folder) / "hop"))
        (Path(folder) / "many").mkdir()
        good &= asyncio.run(between_processes(Path(folder) / "many"))
        good &= weather(Path(folder))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
