"""AXL's manners, on nodes that have them: what a node says in our words, what it hands out, and what it loses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx2
import pytest

from tests.wire.axl_node import FIRST_SENDS, INBOX, LARGEST, AxlNode, Manner, axl_nodes, rebuilt
from tests.wire.model_server import cut, endless, hang_up, never, serving
from zuno.adapters.transport.axl import FIRST_PATIENCE, PATIENCE, AxlTransport
from zuno.kernel.errors import Malformed, Refused, Unavailable, UsageError
from zuno.lp.model.debate import Role

CLI, SCOUT = Role.CLI, Role.SCOUT
KEYS = ["0a" + "31" * 31, "c7" + "52" * 31, "0a" + "31" * 12 + "99" * 19]
"""The last one differs from the first behind the 14th byte: within what an address holds."""
TABLE = {CLI: KEYS[0], SCOUT: KEYS[1]}
BOUND = 8.0


@pytest.fixture
async def nodes() -> AsyncIterator[list[AxlNode]]:
    async with axl_nodes(KEYS, stall=30) as three:
        yield three


@pytest.fixture
async def cli(nodes: list[AxlNode]) -> AsyncIterator[AxlTransport]:
    transport = AxlTransport(CLI, nodes[0].url, TABLE, patience=2)
    yield transport
    await transport.close()


@pytest.fixture
async def scout(nodes: list[AxlNode]) -> AsyncIterator[AxlTransport]:
    transport = AxlTransport(SCOUT, nodes[1].url + "/", TABLE, patience=2)
    yield transport
    await transport.close()


async def got(transport: AxlTransport, role: Role) -> bytes:
    return (await asyncio.wait_for(transport.receive(role), BOUND)).data


# -- what a node says to a message


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (400, Refused, "scout.*HTTP 400"),
        (405, Malformed, "HTTP 405"),
        (404, Malformed, "HTTP 404"),
        (307, Malformed, "HTTP 307"),
        (204, Malformed, "HTTP 204"),
        (502, Unavailable, "scout.*HTTP 502"),
        (500, Unavailable, "scout.*HTTP 500"),
    ],
)
async def test_every_status_has_its_error(
    nodes: list[AxlNode], cli: AxlTransport, status: int, error: type[Exception], words: str
) -> None:
    answer = (status, {"Location": f"{nodes[1].url}/send"}, b"")
    nodes[0].fault = lambda request: answer if request.path == "/send" else None
    with pytest.raises(error, match=words):
        await cli.send(SCOUT, b"x")
    assert nodes[1].heard == []  # a redirect is not followed
    nodes[0].fault = lambda request: None
    await cli.send(SCOUT, b"x")


@pytest.mark.slow
async def test_a_peer_that_is_gone_costs_our_own_patience_and_not_the_nodes(nodes: list[AxlNode]) -> None:
    """A longer one until it was met, the usual one after."""
    met, stranger = (AxlTransport(CLI, nodes[0].url, TABLE, patience=0.2, first_patience=first) for first in (5.0, 0.3))
    await met.send(SCOUT, b"x")
    await nodes[1].stop()
    for cli, seconds in ((met, r"0\.2"), (stranger, r"0\.3")):
        with pytest.raises(Unavailable, match=rf"{seconds} s"):
            await asyncio.wait_for(cli.send(SCOUT, b"x"), BOUND)
        await cli.close()


@pytest.mark.slow
async def test_a_first_send_outlasts_the_slowest_route_look_up() -> None:
    pace = 0.2
    async with axl_nodes(KEYS[:2], first_sends=(max(FIRST_SENDS),), pace=pace) as (one, other):
        cli = AxlTransport(CLI, one.url, TABLE, patience=PATIENCE * pace, first_patience=FIRST_PATIENCE * pace)
        await cli.send(SCOUT, b"x")
        assert [body for _, body in other.inbox] == [b"\x01x"]
        await cli.close()


async def test_a_send_that_was_given_up_may_arrive_later_and_beside_the_next() -> None:
    async with axl_nodes(KEYS[:2], first_sends=FIRST_SENDS[:1], pace=0.5) as (one, other):
        cli = AxlTransport(CLI, one.url, TABLE, patience=0.1, first_patience=0.1)
        scout = AxlTransport(SCOUT, other.url, TABLE)
        with pytest.raises(Unavailable, match=rf"\b{SCOUT}\b.* 0\.1 s\b"):
            await cli.send(SCOUT, b"x")
        assert await got(scout, SCOUT) == b"x"
        await cli.send(SCOUT, b"x")
        assert await got(scout, SCOUT) == b"x"
        await cli.close()
        await scout.close()


async def test_another_port_inside_the_overlay_is_unavailable_at_once(nodes: list[AxlNode], cli: AxlTransport) -> None:
    nodes[1].tcp_port = 7001
    with pytest.raises(Unavailable, match="HTTP 502"):
        await cli.send(SCOUT, b"x")


@pytest.mark.parametrize(
    ("headers", "error", "state"),
    [
        ({"X-Sent-Bytes": "3"}, Unavailable, "ok"),
        ({"X-Sent-Bytes": ""}, Unavailable, "ok"),
        ({"X-Sent-Bytes": "12"}, Unavailable, "ok"),
        ({}, Malformed, "not AXL"),
    ],
)
async def test_a_node_that_does_not_say_that_it_sent_every_byte_delivered_nothing(
    nodes: list[AxlNode], cli: AxlTransport, headers: dict[str, str], error: type[Exception], state: str
) -> None:
    nodes[0].fault = lambda request: (200, headers, b"") if request.path == "/send" else None
    with pytest.raises(error, match=rf"\[node: {state}\]$"):
        await cli.send(SCOUT, b"0123456789")
    nodes[0].fault = lambda request: None
    await cli.send(SCOUT, b"0123456789")
    assert cli.node.state == "ok"


async def test_no_node_at_all_is_unavailable() -> None:
    cli = AxlTransport(CLI, "http://127.0.0.1:9", TABLE)
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:9"):
        await cli.send(SCOUT, b"x")
    await cli.close()


@pytest.mark.parametrize("answer", [never, cut, hang_up, endless])
async def test_something_else_at_the_nodes_address_is_bounded(answer: object) -> None:
    async with serving(lambda heard: answer) as server:  # type: ignore[arg-type, return-value]
        cli = AxlTransport(CLI, server.origin, TABLE, patience=0.5)
        with pytest.raises((Unavailable, Malformed)):
            await asyncio.wait_for(cli.send(SCOUT, b"x"), BOUND)
        await cli.close()


# -- whose node it is


async def wait_for_state(transport: AxlTransport, state: str) -> None:
    async with asyncio.timeout(BOUND):
        while transport.node.state != state:  # noqa: ASYNC110 - a state has no event
            await asyncio.sleep(0.01)


async def test_nothing_is_taken_from_or_given_to_another_homes_node(nodes: list[AxlNode]) -> None:
    """Their mail waits at their node, as ours would."""
    cli = AxlTransport(CLI, nodes[2].url, TABLE, patience=2)
    assert cli.node.state == "late"  # nobody has answered yet
    nodes[2].inbox.append((rebuilt(nodes[1].address), b"\x01for its owner"))
    await cli.open()
    assert cli.node.state == "not ours"
    assert KEYS[2][:16] in cli.node.why
    waiting = asyncio.create_task(cli.receive(CLI))
    with pytest.raises(Unavailable, match=r"\[node: not ours\]$"):
        await cli.send(SCOUT, b"x")
    while len(nodes[2].heard) < 4:  # noqa: ASYNC110 - it goes on asking whose the node is
        await asyncio.sleep(0.01)
    assert {request.path for request in nodes[2].heard} == {"/topology"}
    assert (len(nodes[2].inbox), len(nodes[1].inbox)) == (1, 0)
    nodes[2].key = KEYS[0]  # its own node, at last
    nodes[2].inbox[0] = (rebuilt(nodes[1].address), b"\x01for us")
    assert (await asyncio.wait_for(waiting, BOUND)).data == b"for us"
    assert cli.node.state == "ok"
    await cli.close()


async def test_a_node_that_came_in_place_of_ours_is_noticed(nodes: list[AxlNode], cli: AxlTransport) -> None:
    await cli.open()
    waiting = asyncio.create_task(cli.receive(CLI))
    await cli.send(SCOUT, b"x")
    await nodes[0].stop()
    await wait_for_state(cli, "late")
    nodes[0].key = KEYS[2]
    await nodes[0].start()
    await wait_for_state(cli, "not ours")
    waiting.cancel()


@pytest.mark.parametrize("polls", [True, False])
async def test_a_node_that_came_between_two_requests_gets_and_gives_nothing(
    nodes: list[AxlNode], cli: AxlTransport, monkeypatch: pytest.MonkeyPatch, polls: bool
) -> None:
    for pause in ("SHORTEST_PAUSE", "LONGEST_PAUSE"):
        monkeypatch.setattr(f"zuno.adapters.transport.axl.{pause}", 0.3)
    await cli.send(SCOUT, b"x")
    waiting = asyncio.create_task(cli.receive(CLI) if polls else asyncio.sleep(BOUND))
    while polls and nodes[0].heard[-1].path != "/recv":  # noqa: ASYNC110 - nothing waits there, and the pause begins
        await asyncio.sleep(0.01)
    await nodes[0].stop()
    nodes[0].key = KEYS[2]
    await nodes[0].start()
    nodes[0].inbox.append((rebuilt(nodes[1].address), b"\x01for its owner"))
    nodes[0].heard.clear()
    if not polls:
        with pytest.raises(Unavailable, match=r"\[node: not ours\]$"):
            await cli.send(SCOUT, b"x")
    await wait_for_state(cli, "not ours")
    assert {request.path for request in nodes[0].heard} == {"/topology"}
    assert (len(nodes[0].inbox), len(nodes[1].inbox)) == (1, 1)
    waiting.cancel()


async def test_without_an_id_of_its_own_any_node_will_do(nodes: list[AxlNode]) -> None:
    cli = AxlTransport(CLI, nodes[2].url, {SCOUT: KEYS[1]})
    await cli.open()
    assert cli.node.state == "ok"
    await cli.close()


@pytest.mark.parametrize(
    ("manner", "state", "error"),
    [
        ("garbage", "not AXL", Malformed),
        ("html", "not AXL", Malformed),
        ("half-open", "late", Unavailable),
        ("late", "late", Unavailable),
    ],
)
async def test_a_broken_node_is_told_and_used_again_once_it_is_mended(
    nodes: list[AxlNode], scout: AxlTransport, manner: Manner, state: str, error: type[Exception]
) -> None:
    cli = AxlTransport(CLI, nodes[0].url, TABLE, patience=0.5)
    await cli.open()
    waiting = asyncio.create_task(cli.receive(CLI))
    await wait_for_state(cli, "ok")
    nodes[0].manner = manner
    await wait_for_state(cli, state)
    with pytest.raises(error, match=rf"\[node: {state}\]$"):
        await cli.send(SCOUT, b"x")
    assert nodes[0].url in cli.node.why
    assert not waiting.done()
    nodes[0].manner = "node"
    await wait_for_state(cli, "ok")
    await cli.send(SCOUT, b"x")
    assert (await got(scout, SCOUT), cli.node.why) == (b"x", "")
    waiting.cancel()
    await cli.close()


@pytest.mark.parametrize(
    "topology",
    [b"", b"[]", b"{}", b'{"our_public_key": null}', b'{"our_public_key": "0a"}', b"[" * 100_000, b"\xff", b"7"],
)
async def test_a_topology_without_a_key_is_no_nodes(nodes: list[AxlNode], cli: AxlTransport, topology: bytes) -> None:
    nodes[0].fault = lambda request: (200, {}, topology)
    await cli.open()
    assert cli.node.state == "not AXL"


# -- what it hands out


async def test_a_sender_is_known_by_the_address_of_its_padded_id(
    nodes: list[AxlNode], cli: AxlTransport, scout: AxlTransport
) -> None:
    await cli.send(SCOUT, b"x")
    ((padded, body),) = nodes[1].inbox
    assert padded != KEYS[0]
    assert padded.endswith("f" * 30)
    assert body[1:] == b"x"
    received = await asyncio.wait_for(scout.receive(SCOUT), BOUND)
    assert (received.data, received.sender) == (b"x", CLI)


@pytest.mark.parametrize("sender", ["", "f" * 64, "zz" * 32, "0a31", KEYS[1], rebuilt("0200" + "31" * 14)])
async def test_whoever_is_none_of_the_table_is_dropped_and_counted(
    nodes: list[AxlNode], cli: AxlTransport, scout: AxlTransport, sender: str
) -> None:
    nodes[1].inbox.append((sender, b"\x01strange"))
    await cli.send(SCOUT, b"known")
    assert await got(scout, SCOUT) == b"known"
    assert (scout.dropped, scout.strangers) == (1, 1)


async def test_a_key_that_is_nearly_the_same_is_a_stranger(
    nodes: list[AxlNode], cli: AxlTransport, scout: AxlTransport
) -> None:
    stranger = AxlTransport(CLI, nodes[2].url, TABLE | {CLI: KEYS[2]})
    await stranger.send(SCOUT, b"I am the CLI")
    await cli.send(SCOUT, b"known")
    assert await got(scout, SCOUT) == b"known"
    assert scout.dropped == 1
    await stranger.close()


async def test_what_no_such_transport_wrote_is_dropped(
    nodes: list[AxlNode], cli: AxlTransport, scout: AxlTransport
) -> None:
    for body in (b"", b'{"hello": 1}', b"\x00"):
        nodes[1].inbox.append((rebuilt(nodes[0].address), body))
    await cli.send(SCOUT, b"known")
    assert await got(scout, SCOUT) == b"known"
    assert (scout.dropped, scout.strangers) == (3, 0)


@pytest.mark.slow
async def test_an_inbox_that_answers_nonsense_is_asked_again(
    nodes: list[AxlNode], cli: AxlTransport, scout: AxlTransport
) -> None:
    faults = [
        (500, {}, b"oops"), (405, {}, b""), (200, {"X-From-Peer-Id": KEYS[0]}, b"\x01" + bytes(LARGEST)),
        (200, {}, b"\x01nobody's"),
    ]  # fmt: skip
    nodes[1].fault = lambda request: faults.pop() if faults and request.path == "/recv" else None
    await cli.send(SCOUT, b"at last")
    assert await got(scout, SCOUT) == b"at last"
    assert (faults, scout.dropped) == ([], 0)


@pytest.mark.slow
async def test_receiving_outlives_the_nodes_restart(
    nodes: list[AxlNode], cli: AxlTransport, scout: AxlTransport
) -> None:
    waiting = asyncio.create_task(scout.receive(SCOUT))
    await asyncio.sleep(0.05)
    await nodes[1].stop()
    await asyncio.sleep(0.05)
    await nodes[1].start()
    await cli.send(SCOUT, b"again")
    assert (await asyncio.wait_for(waiting, BOUND)).data == b"again"


@pytest.mark.slow
async def test_the_inbox_is_drained_without_a_pause_and_left_alone_when_empty(
    nodes: list[AxlNode], scout: AxlTransport
) -> None:
    nodes[1].inbox.extend((rebuilt(nodes[0].address), b"\x01%d" % number) for number in range(INBOX))
    async with asyncio.timeout(BOUND):  # a pause behind each would take three times as long
        assert [await got(scout, SCOUT) for _ in range(INBOX)] == [b"%d" % number for number in range(INBOX)]
    drained = len(nodes[1].heard)
    assert drained <= INBOX + 3  # its key, and not one empty answer between two messages
    await asyncio.sleep(0.6)
    assert 1 <= len(nodes[1].heard) - drained <= 9  # 5, 10, 20, 40, 80, 160, 250 ms …


async def test_whoever_sends_looks_for_the_answer_at_once(
    nodes: list[AxlNode], cli: AxlTransport, scout: AxlTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pause in ("SHORTEST_PAUSE", "LONGEST_PAUSE"):
        monkeypatch.setattr(f"zuno.adapters.transport.axl.{pause}", 60.0)
    waiting = asyncio.create_task(cli.receive(CLI))
    while len(nodes[0].heard) < 2:  # noqa: ASYNC110 - its key, and the first look finds nothing, and the pause begins
        await asyncio.sleep(0.01)
    nodes[0].inbox.append((rebuilt(nodes[1].address), b"\x01an answer"))
    await cli.send(SCOUT, b"a question")
    assert (await asyncio.wait_for(waiting, BOUND)).data == b"an answer"


async def test_connections_are_used_again(nodes: list[AxlNode], cli: AxlTransport, scout: AxlTransport) -> None:
    for number in range(10):
        await cli.send(SCOUT, b"%d" % number)
    for _ in range(10):
        await got(scout, SCOUT)
    assert (nodes[0].connections, nodes[1].connections) == (1, 1)


@pytest.mark.soak
async def test_a_full_inbox_leaves_the_rest_with_the_node(nodes: list[AxlNode], scout: AxlTransport) -> None:
    """Nobody takes: three parcels that are larger than the bound together with the first are not fetched."""
    nodes[1].inbox.extend((rebuilt(nodes[0].address), b"\x01" + bytes(15 * 1024 * 1024)) for _ in range(8))
    first = await got(scout, SCOUT)
    assert len(first) == 15 * 1024 * 1024
    for _ in range(100):
        if len(nodes[1].inbox) <= 2:
            break
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.1)
    assert len(nodes[1].inbox) == 2  # one was taken, five wait here: 75 MiB, and no more are asked for
    for _ in range(7):
        await got(scout, SCOUT)


async def test_a_bug_while_fetching_is_seen_by_whoever_receives(
    cli: AxlTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "_fetch_one", broken)
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(cli.receive(CLI), BOUND)


async def test_every_error_says_how_the_node_is_and_a_silence_whose_it_is(nodes: list[AxlNode]) -> None:
    """Two peers that are gone: words that are the same for both would be about this side."""
    gone = {Role.CRITIC: "11" * 32, Role.ARBITER: "22" * 32}
    cli = AxlTransport(CLI, nodes[0].url, TABLE | gone, patience=0.2, first_patience=0.2)
    await cli.open()
    silences = await asyncio.gather(*(cli.send(role, b"x") for role in gone), return_exceptions=True)
    assert [role in str(error) for role, error in zip(gone, silences, strict=True)] == [True, True]
    errors = [*silences, *await asyncio.gather(cli.send(SCOUT, bytes(cli.limit + 1)), cli.send(Role.STRATEGIST, b""),
                                               cli.receive(SCOUT), return_exceptions=True)]  # fmt: skip
    await cli.close()
    errors += await asyncio.gather(cli.send(SCOUT, b"x"), cli.receive(CLI), return_exceptions=True)
    assert len(errors) == 7
    assert {str(error)[-10:] for error in errors} == {"[node: ok]"}


# -- tables that cannot work


@pytest.mark.parametrize("peer_id", ["", "0a", "zz" * 32, "0a" * 33])
def test_a_peer_id_that_is_none_is_refused_by_its_setting(peer_id: str) -> None:
    with pytest.raises(UsageError, match="ZUNO_AXL_SCOUT_PEER_ID"):
        AxlTransport(CLI, "http://127.0.0.1:9002", {SCOUT: peer_id})


def test_two_roles_behind_one_node_cannot_be_told_apart() -> None:
    padded = KEYS[1][:40] + "f" * 24
    with pytest.raises(UsageError, match="peer"):
        AxlTransport(CLI, "http://127.0.0.1:9002", {SCOUT: KEYS[1], Role.CRITIC: padded})


async def test_ids_are_read_in_either_case(nodes: list[AxlNode], scout: AxlTransport) -> None:
    cli = AxlTransport(CLI, nodes[0].url, {SCOUT: KEYS[1].upper()})
    await cli.send(SCOUT, b"x")
    assert await got(scout, SCOUT) == b"x"
    await cli.close()


# -- that the nodes have the manners they stand for


@pytest.fixture
async def raw() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=0.3) as client:
        yield client


async def posted(client: httpx2.AsyncClient, node: AxlNode, to: str, data: bytes) -> httpx2.Response:
    return await client.post(f"{node.url}/send", headers={"X-Destination-Peer-Id": to}, content=data)


@pytest.mark.slow
async def test_the_node_keeps_a_hundred_and_forgets_the_oldest(nodes: list[AxlNode], raw: httpx2.AsyncClient) -> None:
    for number in range(INBOX + 5):
        assert (await posted(raw, nodes[0], KEYS[1], b"%d" % number)).status_code == 200
    bodies = [(await raw.get(f"{nodes[1].url}/recv")).content for _ in range(INBOX)]
    assert bodies == [b"%d" % number for number in range(5, INBOX + 5)]
    assert (await raw.get(f"{nodes[1].url}/recv")).status_code == 204


async def test_the_node_takes_a_padded_id_and_refuses_what_is_none(
    nodes: list[AxlNode], raw: httpx2.AsyncClient
) -> None:
    assert (await posted(raw, nodes[1], rebuilt(nodes[0].address), b"reply")).headers["X-Sent-Bytes"] == "5"
    assert nodes[0].inbox[0][1] == b"reply"
    assert (await posted(raw, nodes[0], "0a", b"")).status_code == 400
    assert (await raw.post(f"{nodes[0].url}/send", content=b"")).status_code == 400
    assert (await raw.get(f"{nodes[0].url}/send")).status_code == 405


@pytest.mark.slow
async def test_the_node_stalls_for_a_peer_that_is_gone(nodes: list[AxlNode], raw: httpx2.AsyncClient) -> None:
    with pytest.raises(httpx2.ReadTimeout):
        await posted(raw, nodes[0], "77" * 32, b"x")
    nodes[0].overlay.stall = 0.01
    assert (await posted(raw, nodes[0], "77" * 32, b"x")).status_code == 502


async def test_the_node_goes_on_with_a_send_whose_caller_has_gone(raw: httpx2.AsyncClient) -> None:
    async with axl_nodes(KEYS[:2], pace=0.5) as (one, other):
        await other.stop()
        with pytest.raises(httpx2.ReadTimeout):  # knocks at 0, 0.5, 1.5 s …
            await posted(raw, one, KEYS[1], b"late")
        await other.start()
        async with asyncio.timeout(BOUND):
            while not other.inbox:  # noqa: ASYNC110 - a node tells nobody
                await asyncio.sleep(0.02)
        assert [body for _, body in other.inbox] == [b"late"]


async def test_the_node_says_yes_to_what_the_other_side_throws_away(
    nodes: list[AxlNode], raw: httpx2.AsyncClient
) -> None:
    for lost in (b'{"service": "x"}', b'{"a2a": 1, "b": 2}'):
        assert (await posted(raw, nodes[0], KEYS[1], lost)).status_code == 200
    with suppress(httpx2.TimeoutException):
        await raw.post(
            f"{nodes[0].url}/send",
            headers={"X-Destination-Peer-Id": KEYS[1]},
            content=bytes(LARGEST + 1),
            timeout=BOUND,
        )
    assert not nodes[1].inbox
    for kept in (b'{"nested": {"service": 1}}', b'["a2a"]'):
        await posted(raw, nodes[0], KEYS[1], kept)
    assert len(nodes[1].inbox) == 2


async def test_the_node_forgets_in_a_restart_and_mixes_what_is_sent_at_once(raw: httpx2.AsyncClient) -> None:
    async with axl_nodes(KEYS[:2], jitter=0.05) as (one, other):
        sent = [b"%d" % number for number in range(20)]
        async with httpx2.AsyncClient(trust_env=False, timeout=BOUND) as client:
            await asyncio.gather(*(posted(client, one, KEYS[1], data) for data in sent))
        arrived = [body for _, body in other.inbox]
        assert arrived != sent
        assert sorted(arrived) == sorted(sent)
        url = other.url
        await other.stop()
        await other.start()
        assert (other.url, len(other.inbox)) == (url, 0)
