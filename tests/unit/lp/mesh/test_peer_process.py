"""A mesh peer across restarts: what it was given before is found again, and what cannot be handled is reported."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.store.memory import MemoryStore
from zuno.journal.journal import ChainedJournal
from zuno.journal.port import Author
from zuno.kernel.canonical import Digest, canonical, digest
from zuno.kernel.errors import Unavailable
from zuno.kernel.units import Millis
from zuno.lp.mesh.delivery import DeliveryLimits, MessageRejected, Outgoing
from zuno.lp.mesh.envelope import Envelope, from_bytes, to_bytes
from zuno.lp.mesh.message_handler import EnvelopeSigner, flow_failure
from zuno.lp.mesh.peer import OutgoingMessage, Think
from zuno.lp.mesh.peer_process import (
    ANSWERS_AT_ONCE,
    DEAD_LETTER,
    MOST_PONGS,
    MOST_REASONS,
    MOST_RESUMED,
    MOST_UNANSWERED,
    NOTES,
    NOTES_A_SECOND,
    REJECTED,
    WINDOW_MS,
    ContextCache,
    MeshPeer,
    PeerStats,
    run_concurrently,
    run_receiver,
)
from zuno.lp.model.ballot import RiskProfile
from zuno.lp.model.debate import ContextObserved, Debate, FlowFailed, FlowStart, Role, Thought
from zuno.lp.ports.mesh import PeerReport
from zuno.lp.ports.transport import ReceivedMessage

REQUEST = "req_00000000000000cc"
CONTEXT = canonical({"world": "round"})
OBSERVED = ContextObserved(debate=Debate(flow="rebalance", context=digest(CONTEXT)))


class Mute:
    """A Strategist that only listens."""

    role = Role.STRATEGIST

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        self.heard.append(envelope.id)
        return []


class Pair:
    """A Scout that talks to a Strategist, and a clock for both."""

    def __init__(self, folder: Path) -> None:
        self.now = 1_700_000_000_000
        self.keys = {role: KeyFile(folder / f"{role.value}.key") for role in (Role.SCOUT, Role.STRATEGIST)}
        for key in self.keys.values():
            key.ensure()
        self.journals = {role: self.journal(role) for role in self.keys}
        self.way: list[tuple[Role, Outgoing]] = []
        self.scout = self.peer(Role.SCOUT, None)

    def journal(self, role: Role) -> ChainedJournal:
        return ChainedJournal(MemoryStore(), self.keys[role], code=lambda: "test", now=lambda: Millis(self.now))

    def peer(self, role: Role, peer: Mute | None) -> MeshPeer:
        async def send(one: Outgoing) -> None:
            self.way.append((role, one))

        table = {one: key.public for one, key in self.keys.items()}
        journal, key = self.journals[role], self.keys[role]
        return MeshPeer(role, peer, journal, key, table, send, lambda: self.now, chance=Random(1), code="test")

    async def carry(self, strategist: MeshPeer) -> int:
        """Everything on its way, until nothing is; how many messages there were."""
        count = 0
        while self.way:
            sender, one = self.way.pop(0)
            count += 1
            await (self.scout if one.to is Role.SCOUT else strategist).take(ReceivedMessage(one.data, sender))
        return count


async def test_a_context_given_to_an_earlier_life_is_found_in_the_journal(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    await pair.journals[Role.SCOUT].put_bundle(CONTEXT)
    first, second = Mute(), Mute()
    before = pair.peer(Role.STRATEGIST, first)
    await pair.scout.send_message(REQUEST, OutgoingMessage(Role.STRATEGIST, OBSERVED), None)
    assert await pair.carry(before) == 4  # the letter, its context, and an ack of each
    after = pair.peer(Role.STRATEGIST, second)
    await pair.scout.send_message("req_00000000000000dd", OutgoingMessage(Role.STRATEGIST, OBSERVED), None)
    # The letter and two acks: the Scout was told that the context arrived, and does not send it again.
    assert await pair.carry(after) == 3
    assert (len(first.heard), len(second.heard)) == (1, 1)
    assert pair.scout.delivery.waiting == 0


async def test_a_context_that_was_lost_is_sent_again_when_a_letter_stays_unanswered(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    await pair.journals[Role.SCOUT].put_bundle(CONTEXT)
    await pair.scout.send_message(REQUEST, OutgoingMessage(Role.STRATEGIST, OBSERVED), None)
    await pair.carry(pair.peer(Role.STRATEGIST, Mute()))
    pair.journals[Role.STRATEGIST] = pair.journal(Role.STRATEGIST)  # somebody emptied its folder
    mute = Mute()
    after = pair.peer(Role.STRATEGIST, mute)
    await pair.scout.send_message("req_00000000000000dd", OutgoingMessage(Role.STRATEGIST, OBSERVED), None)
    for _ in range(DeliveryLimits().tries):
        await pair.carry(after)
        pair.now += 6_000
        await pair.scout.tick()
    assert len(mute.heard) == 1
    assert pair.scout.delivery.waiting == 0
    assert pair.scout.stats.dead == 0


async def test_nothing_is_taken_in_before_what_was_heard_is_remembered(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    await pair.journals[Role.SCOUT].put_bundle(CONTEXT)
    await pair.scout.send_message(REQUEST, OutgoingMessage(Role.STRATEGIST, OBSERVED), None)
    (letter, _) = [one.data for _, one in pair.way]
    await pair.carry(pair.peer(Role.STRATEGIST, Mute()))
    after = pair.peer(Role.STRATEGIST, None)
    remembered: list[int] = []
    await after.resume(lambda: remembered.append(after.stats.heard))
    assert remembered == [0]
    await after.take(ReceivedMessage(letter, Role.SCOUT))
    assert (after.stats.heard, after.stats.again) == (0, 1)


async def test_what_cannot_be_borne_ends_the_attendance(tmp_path: Path) -> None:
    """A journal that cannot be written must be seen, not swallowed by a task nobody waits for."""
    pair = Pair(tmp_path)
    await pair.journals[Role.SCOUT].put_bundle(CONTEXT)
    await pair.scout.send_message(REQUEST, OutgoingMessage(Role.STRATEGIST, OBSERVED), None)
    messages = [ReceivedMessage(one.data, Role.SCOUT) for _, one in pair.way]

    class Full(MemoryStore):
        async def put_bundle(self, name: str, content: bytes) -> None:
            raise Unavailable("The disk is full.")

    pair.journals[Role.STRATEGIST] = ChainedJournal(
        Full(), pair.keys[Role.STRATEGIST], code=lambda: "test", now=lambda: Millis(pair.now)
    )
    strategist = pair.peer(Role.STRATEGIST, Mute())

    async def receive() -> ReceivedMessage:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop(0)

    with pytest.raises(ExceptionGroup) as caught:
        await run_receiver(strategist, receive)
    assert caught.group_contains(Unavailable, match="The disk is full")


# -- a neighbour with a right key that means no good


def request(number: int) -> str:
    return f"req_{number:016x}"


async def observed(pair: Pair, number: int) -> ReceivedMessage:
    """A letter of the Scout's about the same context, as it goes out."""
    await pair.scout.send_message(request(number), OutgoingMessage(Role.STRATEGIST, OBSERVED), None)
    letter = next(one for _, one in pair.way if one.to is Role.STRATEGIST)
    pair.way.clear()
    return ReceivedMessage(letter.data, Role.SCOUT)


async def settled(pair: Pair) -> MeshPeer:
    """A Strategist that has the context."""
    await pair.journals[Role.SCOUT].put_bundle(CONTEXT)
    await pair.journals[Role.STRATEGIST].put_bundle(CONTEXT)
    return pair.peer(Role.STRATEGIST, Mute())


@pytest.mark.soak
async def test_a_restart_remembers_the_whole_window_however_much_came_after(tmp_path: Path) -> None:
    """An early letter, thousands of entries of other kinds and other letters, a restart: the letter is no new one."""
    pair = Pair(tmp_path)
    first = await settled(pair)
    early = await observed(pair, 1)
    await first.take(early)
    journal = pair.journals[Role.STRATEGIST]
    for number in range(2_100):
        await journal.append(kind="model_attempt", author=Author("strategist"), payload={"number": number})
    for number in range(500):
        pair.now += 1_000
        await first.take(await observed(pair, 2 + number))
    assert first.stats.heard == 501
    mute = Mute()
    second = pair.peer(Role.STRATEGIST, mute)
    await second.resume()
    mute.heard.clear()
    before = len([entry async for entry in journal.entries(kind="context_observed")])
    await second.take(early)
    assert (second.stats.heard, second.stats.again, mute.heard) == (0, 1, [])
    assert len([entry async for entry in journal.entries(kind="context_observed")]) == before


class Curt(Mute):
    """A Strategist that ends every debate."""

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        await super().handle(envelope, think)
        return [OutgoingMessage(Role.CLI, FlowFailed(at=Role.STRATEGIST, error="broken", reason="no"))]


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_letter_that_is_repeated_has_its_answer_repeated_whichever_life_gave_it(
    tmp_path: Path, restarted: bool
) -> None:
    pair = Pair(tmp_path)
    await settled(pair)
    letter, curt = await observed(pair, 1), Curt()
    strategist = pair.peer(Role.STRATEGIST, curt)
    await strategist.take(letter)
    (answer,) = [one.data for _, one in pair.way if one.to is Role.CLI]
    if restarted:
        strategist = pair.peer(Role.STRATEGIST, curt)
        strategist.delivery.remember((await strategist._recent())[0])
    pair.way.clear()
    await strategist.take(letter)
    assert [one.data for _, one in pair.way if one.to is Role.CLI] == [answer]
    assert len(curt.heard) == 1
    pair.way.clear()
    pair.now += 2_000
    await strategist.take(letter)
    assert [one for _, one in pair.way if one.to is Role.CLI] == [], "not so soon"


async def test_a_restart_forgets_what_is_too_old_to_be_played_again(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    first = await settled(pair)
    early = await observed(pair, 1)
    await first.take(early)
    pair.now += WINDOW_MS + 1
    second = pair.peer(Role.STRATEGIST, Mute())
    assert await second._recent() == []
    await second.take(early)
    assert any("expired" in why for why in second.stats.rejected)
    pair.now -= 2
    assert len(await second._recent()) == 1


@pytest.mark.slow
async def test_a_flood_of_rejections_fills_neither_the_journal_nor_the_list_of_reasons(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    strategist = await settled(pair)
    await strategist.take(ReceivedMessage(b"one of the Critic's", Role.CRITIC))
    for number in range(3_000):
        junk = b"\x00ZM1L" + zlib.compress(b'{"cause":null,"expires":%d' % number)
        await strategist.take(ReceivedMessage(junk + b"x" * (number % 7), Role.SCOUT))
        pair.now += 10
    notes = [entry async for entry in pair.journals[Role.STRATEGIST].entries(kind=REJECTED)]
    assert len(notes) <= 1 + NOTES + 30 * NOTES_A_SECOND + 1
    assert sum(strategist.stats.rejected.values()) == 3_001
    assert strategist.stats.rejected["from the critic: these are not bytes of a peer"] == 1
    assert len(strategist.stats.rejected) <= 5
    pair.now += 60_000
    await strategist.take(ReceivedMessage(b"junk", Role.SCOUT))
    after = [entry async for entry in pair.journals[Role.STRATEGIST].entries(kind=REJECTED)]
    assert len(after) == len(notes) + 1, "later ones are written down again"


@pytest.mark.slow
async def test_one_neighbour_s_inventions_do_not_hide_another_s_reasons(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    strategist = await settled(pair)
    for number in range(200):
        word = "".join(chr(ord("g") + int(digit)) for digit in f"{number:03}")
        await strategist._record_rejection(MessageRejected(why=f"a reason {word} \x1b[31m", claimed=Role.SCOUT))
    await strategist._record_rejection(
        MessageRejected(why="msg_0123456789abcdef expired 61000 ms ago", claimed=Role.CRITIC)
    )
    await strategist._record_rejection(
        MessageRejected(why="msg_fedcba9876543210 expired 62000 ms ago", claimed=Role.CRITIC)
    )
    reasons = strategist.stats.rejected
    assert reasons["from the critic: msg_0123456789abcdef expired 61000 ms ago"] == 2
    assert reasons["from the scout: something else"] == 200 - MOST_REASONS
    assert len(reasons) == MOST_REASONS + 2
    notes = [str(entry.payload["why"]) async for entry in pair.journals[Role.STRATEGIST].entries(kind=REJECTED)]
    assert all(text.isprintable() for text in (*reasons, *notes))


def test_a_restart_makes_no_room_for_more_inventions_and_forgets_no_words() -> None:
    report = PeerReport(
        pid=1, since=Millis(1), at=Millis(1), code="", transport="axl", heard=0, said=0, again=0, dead=0, rejected={},
        round_trips={},
    )  # fmt: skip
    for life in range(5):
        stats = PeerStats()
        stats.add(report)
        stats.count_rejection(MessageRejected(why=f"msg_{life:016} expired {life} ms ago", claimed=Role.CRITIC))
        for number in range(2 * MOST_REASONS):
            word = "".join(chr(ord("g") + int(digit)) for digit in f"{life}{number:03}")
            stats.count_rejection(MessageRejected(why=f"a reason {word}", claimed=Role.SCOUT))
        report = report.model_copy(update={"rejected": dict(stats.rejected)})
    assert report.rejected["from the critic: msg_0000000000000000 expired 0 ms ago"] == 5
    assert len(report.rejected) == MOST_REASONS + 2
    assert sum(report.rejected.values()) == 5 * (1 + 2 * MOST_REASONS)


async def test_the_same_words_of_two_neighbours_are_two_reasons(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    strategist = await settled(pair)
    for claimed in (Role.SCOUT, Role.CRITIC, Role.CRITIC, None):
        await strategist._record_rejection(MessageRejected(why="these bytes cannot be unpacked", claimed=claimed))
    assert strategist.stats.rejected == {
        "from the scout: these bytes cannot be unpacked": 1,
        "from the critic: these bytes cannot be unpacked": 2,
        "from somebody: these bytes cannot be unpacked": 1,
    }


async def test_a_turn_is_answered_once_however_often_it_is_had(tmp_path: Path) -> None:
    """Thirty-two contexts of one Scout in one request are one debate."""
    pair = Pair(tmp_path)
    await settled(pair)
    curt = Curt()
    strategist = pair.peer(Role.STRATEGIST, curt)
    for _ in range(5):
        await strategist.take(await observed(pair, 1))
    assert (len(curt.heard), strategist.stats.heard, strategist.stats.said) == (1, 1, 1)
    why = "from the scout: scout says context_observed after 0 rounds twice in one request"
    assert strategist.stats.rejected[why] == 4
    after = pair.peer(Role.STRATEGIST, curt)
    await after.resume()
    await after.take(await observed(pair, 1))
    assert (len(curt.heard), after.stats.rejected[why]) == (1, 1), "and after a restart"
    await after.take(await observed(pair, 2))
    assert len(curt.heard) == 2


async def test_two_letters_that_waited_for_one_context_are_one_turn(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    await pair.journals[Role.SCOUT].put_bundle(CONTEXT)
    curt = Curt()
    strategist = pair.peer(Role.STRATEGIST, curt)
    for _ in range(2):
        await pair.scout.send_message(REQUEST, OutgoingMessage(Role.STRATEGIST, OBSERVED), None)
    letters = [ReceivedMessage(one.data, Role.SCOUT) for _, one in pair.way if one.to is Role.STRATEGIST]
    assert len(letters) == 3
    for received in (letters[0], letters[2], letters[1]):  # the context last
        await strategist.take(received)
    assert len(curt.heard) == 1


class Verbose(Mute):
    """Makes a context of its own for every letter, and says so at length."""

    def __init__(self, pair: Pair) -> None:
        super().__init__()
        self.pair = pair

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        await super().handle(envelope, think)
        name = await self.pair.journals[Role.STRATEGIST].put_bundle(b'{"of":"%s"}' % envelope.id.encode() * 1_000)
        return [OutgoingMessage(Role.CRITIC, ContextObserved(debate=Debate(flow="rebalance", context=name)))]


@pytest.mark.parametrize("restarted", [False, True])
async def test_what_is_written_in_answer_is_on_the_account_of_who_asked(tmp_path: Path, restarted: bool) -> None:
    pair = Pair(tmp_path)
    await settled(pair)
    strategist = pair.peer(Role.STRATEGIST, Verbose(pair))
    letter = await observed(pair, 1)
    await strategist.take(letter)
    (answer,) = [one async for one in pair.journals[Role.STRATEGIST].entries() if one.author.role == "strategist"]
    if restarted:
        strategist = pair.peer(Role.STRATEGIST, Verbose(pair))
        await strategist.resume()
    paid = DeliveryLimits().paper_bytes - strategist.delivery._replay_guards[Role.SCOUT]._paper.left
    made = 1_000 * len(b'{"of":"msg_0123456789abcdef"}')
    heard = len(zlib.decompress(letter.data[5:]))
    assert paid == heard + len(canonical(dict(answer.payload))) + made


# -- what is left of an earlier life


class Musing(Curt):
    """Ends every debate, and goes on thinking aloud about it."""

    def __init__(self) -> None:
        super().__init__()
        self.think: Think | None = None

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        self.think = think
        return await super().handle(envelope, think)


@pytest.mark.slow
@pytest.mark.parametrize("thoughts", [0, 1, 999])
async def test_no_message_of_a_new_life_bears_the_name_of_an_old_one_s(tmp_path: Path, thoughts: int) -> None:
    """Thoughts are numbered with the letters and not written down: nobody knows after a restart how many there were."""
    pair, musing = Pair(tmp_path), Musing()
    await settled(pair)
    strategist = pair.peer(Role.STRATEGIST, musing)
    await strategist.take(await observed(pair, 1))
    assert musing.think is not None
    for number in range(thoughts):
        pair.now += 200  # slowly enough for each to be sent
        await musing.think(Thought(role=Role.STRATEGIST, round=0, seq=number, text="hm", speaker="deterministic"))
    before = sent_to_owner(pair)
    assert len(before) == 1 + thoughts
    after = pair.peer(Role.STRATEGIST, Mute())
    await after.resume()
    pair.way.clear()
    await after.send_message(
        request(1), OutgoingMessage(Role.CLI, FlowFailed(at=Role.STRATEGIST, error="broken", reason="again")), None
    )
    (new,) = sent_to_owner(pair)
    assert new.seq > max(old.seq for old in before)
    assert new.id not in {old.id for old in before}


@pytest.mark.parametrize(("after", "alive"), [(-1, True), (0, True), (1, False)])
async def test_a_new_life_takes_up_what_has_not_expired_to_the_millisecond(
    tmp_path: Path, after: int, alive: bool
) -> None:
    pair, curt = Pair(tmp_path), Curt()
    strategist = await settled(pair)
    (letter,) = await strategist.hear(await observed(pair, 1))
    pair.now = letter.expires + after
    scout, again = pair.peer(Role.SCOUT, None), pair.peer(Role.STRATEGIST, curt)
    await scout.resume()
    assert [sent.to for _, sent in pair.way if sent.to is Role.STRATEGIST] == [Role.STRATEGIST] * 2 * alive
    assert await again.resume() == len(curt.heard) == alive
    assert (again._bundles(digest(CONTEXT)) is not None) is alive, "and has its context at hand"


def sent_to_owner(pair: Pair) -> list[Envelope]:
    return [from_bytes(zlib.decompress(sent.data[5:])) for _, sent in pair.way if sent.to is Role.CLI]


class Deadly(Mute):
    """Dies of one request, and answers all others."""

    def __init__(self, of: str) -> None:
        super().__init__()
        self.of = of
        self.at_once: set[str] = set()
        self.most = 0

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        self.heard.append(envelope.request_id)
        self.at_once.add(envelope.id)
        self.most = max(self.most, len(self.at_once))
        for _ in range(3):
            await asyncio.sleep(0)
        self.at_once.discard(envelope.id)
        if envelope.request_id == self.of:
            raise MemoryError
        return [OutgoingMessage(Role.CLI, FlowFailed(at=Role.STRATEGIST, error="refused", reason="no"))]


@pytest.mark.slow
async def test_a_letter_that_every_life_dies_of_is_given_up_and_nobody_else_s_is(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    await settled(pair)
    strategist = pair.peer(Role.STRATEGIST, Slow())
    for number in range(20):
        await strategist.hear(await observed(pair, number))
    journal, lives = pair.journals[Role.STRATEGIST], list[Deadly]()
    while True:
        lives.append(Deadly(request(3)))
        life = pair.peer(Role.STRATEGIST, lives[-1])
        try:
            await life.resume(all_of=run_concurrently)
            break
        except MemoryError:
            assert len(lives) < 10
    assert len(lives) == 1 + MOST_RESUMED
    assert lives[0].most == ANSWERS_AT_ONCE, "several at a time"
    assert lives[1].heard[-1] == request(3)
    assert lives[1].most <= ANSWERS_AT_ONCE
    assert request(3) not in lives[2].heard
    (dead,) = [entry async for entry in journal.entries(kind=DEAD_LETTER)]
    assert (dead.request_id, dead.payload["tries"], life.stats.dead) == (request(3), MOST_RESUMED, 1)
    ends = {entry.request_id: entry.payload async for entry in journal.entries(kind="flow_failed")}
    assert len(ends) == 20
    told: Any = ends[request(3)]["payload"]
    assert re.search(r"\bstrategist\b.*\b2 times\b.*\bcontext_observed\b.*\bscout\b", told["reason"])
    assert [one["payload"]["error"] for one in ends.values()].count("refused") == 19  # type: ignore[index, call-overload]
    assert await pair.peer(Role.STRATEGIST, Deadly(request(3))).resume() == 0, "that is its answer"


async def test_what_was_said_goes_out_again_before_anything_is_answered(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    await settled(pair)
    before = pair.peer(Role.STRATEGIST, Curt())
    await before.take(await observed(pair, 1))
    await before.hear(await observed(pair, 2))
    pair.way.clear()
    slow = Slow()
    after = pair.peer(Role.STRATEGIST, slow)
    resuming = asyncio.ensure_future(after.resume())
    await until(lambda: len(slow.heard) == 1)
    assert [one.to for _, one in pair.way] == [Role.CLI]
    slow.let.set()
    assert await resuming == 1


async def test_a_journal_that_fails_while_old_letters_are_answered_is_seen_as_it_is(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    await settled(pair)
    await pair.peer(Role.STRATEGIST, Slow()).hear(await observed(pair, 1))

    class Failing(Mute):
        async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
            raise OSError("The disk is full.")

    with pytest.raises(OSError, match="The disk is full"):
        await pair.peer(Role.STRATEGIST, Failing()).resume(all_of=run_concurrently)


class Slow(Mute):
    """Answers when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Event()
        self.at_once = 0

    async def handle(self, envelope: Envelope, think: Think) -> Sequence[OutgoingMessage]:
        self.heard.append(envelope.id)
        self.at_once = max(self.at_once, len(self.heard))
        await self.let.wait()
        return []


@pytest.mark.slow
async def test_a_sender_makes_only_so_many_answers_wait_and_pings_are_answered_all_the_same(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    await settled(pair)
    slow = Slow()
    strategist = pair.peer(Role.STRATEGIST, slow)
    messages = []
    for number in range(MOST_UNANSWERED + 10):
        messages.append(await observed(pair, number))
    inbox: asyncio.Queue[ReceivedMessage] = asyncio.Queue()
    attending = asyncio.ensure_future(run_receiver(strategist, inbox.get))
    for received in messages:
        inbox.put_nowait(received)
        pair.now += 1_000
        await until(inbox.empty)
    await until(lambda: sum(strategist.stats.rejected.values()) == 10)
    assert strategist.stats.heard == MOST_UNANSWERED
    assert slow.at_once == ANSWERS_AT_ONCE
    assert len(asyncio.all_tasks()) <= MOST_UNANSWERED + 3
    assert any(re.search(rf"\bscout\b.*\b{MOST_UNANSWERED} letters\b", why) for why in strategist.stats.rejected)
    pair.way.clear()
    await pair.scout.ping(Role.STRATEGIST, "0" * 16)
    inbox.put_nowait(ReceivedMessage(pair.way.pop()[1].data, Role.SCOUT))
    await until(lambda: any(one.to is Role.SCOUT for _, one in pair.way))
    slow.let.set()
    await until(lambda: len(slow.heard) == MOST_UNANSWERED)
    await until(lambda: not strategist._answering)
    inbox.put_nowait(messages[-1])  # it comes again, and there is room
    await until(lambda: len(slow.heard) == MOST_UNANSWERED + 1)
    attending.cancel()
    await asyncio.gather(attending, return_exceptions=True)


async def until(happens: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not happens():  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0.001)


async def test_contexts_at_hand_are_bounded_for_each_giver() -> None:
    bundles = ContextCache(most=3, most_bytes=100)
    bundles.add(digest(b"mine"), b"mine", Role.SCOUT)
    for number in range(20):
        bundles.add(Digest(f"{number:064}"), bytes(40), Role.CRITIC)
    assert bundles(digest(b"mine")) == b"mine"
    assert [bundles(Digest(f"{number:064}")) is not None for number in (17, 18, 19)] == [False, True, True]
    bundles.add(Digest("f" * 64), bytes(500), Role.CRITIC)
    assert bundles(Digest("f" * 64)) == bytes(500), "one that is larger alone is kept alone"


async def test_answers_to_pings_nobody_sent_do_not_pile_up(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    for number in range(500):
        pair.scout._record_pong(Role.STRATEGIST, f"{number:016x}", "1.0")
    pair.scout._record_pong(Role.CRITIC, "0" * 16, "1.0")
    assert len(pair.scout.pongs) == MOST_PONGS + 1
    assert (Role.STRATEGIST, f"{499:016x}") in pair.scout.pongs


# -- the owner, whose processes share a journal


class Ears(Pair):
    """A Strategist that writes to the owner."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.keys[Role.CLI] = KeyFile(folder / "cli.key")
        self.keys[Role.CLI].ensure()
        self.journals[Role.CLI] = self.journal(Role.CLI)
        self.mouth = EnvelopeSigner(Role.STRATEGIST, self.keys[Role.STRATEGIST], lambda: self.now)

    def failure(self, number: int) -> ReceivedMessage:
        flow_failure = FlowFailed(at=Role.STRATEGIST, error="broken", reason="no")
        letter = to_bytes(self.mouth.envelope(request(number), OutgoingMessage(Role.CLI, flow_failure), None))
        return ReceivedMessage(b"\x00ZM1L" + zlib.compress(letter), Role.STRATEGIST)

    async def kinds(self) -> Counter[str]:
        return Counter([entry.kind async for entry in self.journals[Role.CLI].entries()])


START = FlowStart(chain="sim", position_id=1, profile=RiskProfile.BALANCED, max_rounds=2)


async def test_nobody_ends_a_request_that_the_owner_never_began(tmp_path: Path) -> None:
    ears = Ears(tmp_path)
    owner = ears.peer(Role.CLI, None)
    await owner.take(ears.failure(1))
    assert await ears.kinds() == {REJECTED: 1}
    assert any(Role.STRATEGIST in why for why in owner.stats.rejected)
    assert ears.way == [], "and it is not acknowledged"
    await owner.send_message(request(1), OutgoingMessage(Role.SCOUT, START), None)
    await ears.peer(Role.CLI, None).take(ears.failure(1))  # another process of the same home
    assert (await ears.kinds())["flow_failed"] == 1


async def test_a_letter_that_another_process_of_the_owner_wrote_down_is_written_once(tmp_path: Path) -> None:
    ears = Ears(tmp_path)
    owner = ears.peer(Role.CLI, None)
    await owner.send_message(request(1), OutgoingMessage(Role.SCOUT, START), None)
    ears.way.clear()
    received = ears.failure(1)
    await owner.take(received)
    await ears.peer(Role.CLI, None).take(received)
    assert (await ears.kinds())["flow_failed"] == 1
    assert len(ears.way) == 2, "acknowledged both times"


@pytest.mark.slow
async def test_the_owner_s_request_has_room_for_so_many_letters_of_one_sender(tmp_path: Path) -> None:
    ears, most = Ears(tmp_path), DeliveryLimits().letters_a_request
    await ears.peer(Role.CLI, None).send_message(request(1), OutgoingMessage(Role.SCOUT, START), None)
    for _ in range(most + 5):
        owner = ears.peer(Role.CLI, None)  # a new process each time: none of them has heard the others
        await owner.take(ears.failure(1))
    assert (await ears.kinds())["flow_failed"] == most
    assert any(re.search(rf"\bstrategist\b.*\b{most} letters\b", why) for why in owner.stats.rejected)


async def test_the_words_that_end_a_flow_fit_a_message(tmp_path: Path) -> None:
    reason = flow_failure(Role.SCOUT, Unavailable("no node \x1b[31m\n" + "x" * 5_000)).reason
    assert len(reason) == 2_000
    assert reason.startswith("no node [31m x")
