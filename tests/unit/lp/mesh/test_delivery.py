"""The post office between peers that distrust each other: what is believed, what is sent again, what is given up."""

from __future__ import annotations

import json
import re
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from zuno.adapters.keys.ed25519 import KeyFile
from zuno.kernel.canonical import Digest, digest
from zuno.lp.mesh import delivery
from zuno.lp.mesh.delivery import (
    LIFETIME_MS,
    SKEW_MS,
    ContextReceived,
    ContextWanted,
    Delivery,
    DeliveryLimits,
    DuplicateEnvelope,
    EnvelopeReceived,
    MessageRejected,
    Outgoing,
    PongReceived,
    ThoughtReceived,
)
from zuno.lp.mesh.envelope import (
    LONGEST_VERSION,
    Envelope,
    message_id,
    read_version,
    signed_part,
    to_bytes,
    version_text,
)
from zuno.lp.mesh.message_handler import EnvelopeSigner
from zuno.lp.mesh.peer import OutgoingMessage
from zuno.lp.model.ballot import EDITION, RiskProfile
from zuno.lp.model.debate import AgentThought, Arguing, ContextObserved, Debate, FlowFailed, FlowStart, Role, Thought
from zuno.lp.ports.transport import ReceivedMessage

NOW = 1_700_000_000_000
REQUEST = "req_0123456789abcdef"
START = FlowStart(chain="sim", position_id=1, profile=RiskProfile.BALANCED, max_rounds=2)
CONTEXT = b'{"the":"world"}' * 50


@dataclass
class Office:
    """One role with its key, its post and the contexts it has."""

    role: Role
    key: KeyFile
    table: dict[Role, str]
    rules: DeliveryLimits = field(default_factory=DeliveryLimits)
    bundles: dict[Digest, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.post = Delivery(
            self.role, self.key, self.table, self.bundles.get, chance=Random(1), code="test", rules=self.rules
        )
        self.mouth = EnvelopeSigner(self.role, self.key, lambda: NOW)

    def says(self, to: Role, payload: Any) -> Envelope:
        return self.mouth.envelope(REQUEST, OutgoingMessage(to, payload), None)


Offices = Callable[..., Office]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KeyFile]:
    folder: Path = tmp_path_factory.mktemp("post")
    made = {name: KeyFile(folder / name / "node.key") for name in (*(role.value for role in Role), "stranger")}
    for key in made.values():
        key.ensure()
    return made


@pytest.fixture
def office(keys: dict[str, KeyFile]) -> Offices:
    table = {role: keys[role.value].public for role in Role}
    return lambda role, key=None, rules=None: Office(role, keys[key or role.value], table, rules or DeliveryLimits())


def arrivals(out: list[Outgoing], sender: Role | None = None) -> list[ReceivedMessage]:
    return [ReceivedMessage(one.data, sender) for one in out]


def only(events: list[Any]) -> Any:
    (event,) = events
    return event


def resigned(envelope: Envelope, key: KeyFile, **changes: Any) -> Envelope:
    """The same envelope with some fields changed, and a signature that fits them."""
    changed = envelope.model_copy(update={**changes, "sig": ""})
    return changed.model_copy(update={"sig": key.sign(signed_part(changed)).hex()})


def test_a_letter_is_heard_once_acknowledged_and_not_sent_again(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    out = cli.post.prepare_envelope(cli.says(Role.SCOUT, START), NOW)
    heard = only(scout.post.take(only(arrivals(out)), NOW))
    assert isinstance(heard, EnvelopeReceived)
    again = only(scout.post.take(only(arrivals(out)), NOW))
    assert isinstance(again, EnvelopeReceived), "not written down yet, so it may come again"
    ack = scout.post.acknowledge_envelope(heard.envelope, NOW)
    assert cli.post.waiting == 1
    assert cli.post.take(only(arrivals([ack])), NOW) == []
    assert cli.post.waiting == 0
    assert cli.post.due(NOW + 60_000) == ([], [])


def test_a_repetition_is_acknowledged_again_and_not_heard_again(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    (received,) = arrivals(cli.post.prepare_envelope(cli.says(Role.SCOUT, START), NOW))
    scout.post.acknowledge_envelope(only(scout.post.take(received, NOW)).envelope, NOW)
    ack, again = scout.post.take(received, NOW + 5)
    assert isinstance(ack, Outgoing)
    assert isinstance(again, DuplicateEnvelope)
    cli.post.take(ReceivedMessage(ack.data), NOW + 6)
    assert cli.post.waiting == 0


def test_what_is_not_acknowledged_is_sent_again_ever_more_slowly_and_then_given_up(office: Offices) -> None:
    cli = office(Role.CLI)
    (first,) = cli.post.prepare_envelope(cli.says(Role.SCOUT, START), NOW)
    moments, now = [NOW], NOW
    while True:
        assert cli.post.next_due is not None
        now = cli.post.next_due
        out, dead = cli.post.due(now)
        if dead:
            break
        assert out == [first], "the same bytes"
        moments.append(now)
    assert only(dead).tries == DeliveryLimits().tries == len(moments)
    pauses = [later - earlier for earlier, later in pairwise(moments)]
    assert pauses[0] < 350
    assert max(pauses) <= 5_000 * 1.25
    assert pauses[-1] > 3_000
    assert now - NOW < 90_000
    assert cli.post.next_due is None


def test_two_posts_do_not_retry_in_step(office: Offices, keys: Any) -> None:
    table = {role: keys[role.value].public for role in Role}
    both = [Delivery(Role.CLI, keys["cli"], table, {}.get, chance=Random(seed), code="test") for seed in (1, 2)]  # type: ignore[arg-type]
    mouth = EnvelopeSigner(Role.CLI, keys["cli"], lambda: NOW)
    envelope = mouth.envelope(REQUEST, OutgoingMessage(Role.SCOUT, START), None)
    for one in both:
        one.prepare_envelope(envelope, NOW)
    assert both[0].next_due != both[1].next_due


# -- not believed


def rejected(office: Office, envelope: Envelope, sender: Role | None = None, now: int = NOW, sort: bytes = b"L") -> str:
    event = only(office.post.take(ReceivedMessage(b"\x00ZM1" + sort + zlib.compress(to_bytes(envelope)), sender), now))
    assert isinstance(event, MessageRejected)
    return event.why


def test_a_stranger_s_key_is_nobody(office: Offices) -> None:
    stranger, scout = office(Role.CLI, key="stranger"), office(Role.SCOUT)
    assert re.search(rf"\bkey\b.*{Role.CLI}$", rejected(scout, stranger.says(Role.SCOUT, START)))


def test_a_right_key_in_a_wrong_role_is_nobody(office: Offices) -> None:
    critic, scout = office(Role.CRITIC), office(Role.SCOUT)
    posing = resigned(critic.says(Role.SCOUT, START), critic.key, from_=Role.CLI)
    assert re.search(rf"\bkey\b.*{Role.CLI}$", rejected(scout, posing))


def test_a_role_says_only_what_is_its_to_say(office: Offices) -> None:
    strategist, critic, cli = office(Role.STRATEGIST), office(Role.CRITIC), office(Role.CLI)
    assert "flow_start" in rejected(office(Role.SCOUT), critic.says(Role.SCOUT, START))
    observed = ContextObserved(debate=Debate(context="ab" * 32, flow="rebalance"))
    assert "context_observed" in rejected(cli, strategist.says(Role.CLI, observed))


def test_an_endpoint_speaks_for_its_own_role_alone(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    assert f"as {Role.CLI}" in rejected(scout, cli.says(Role.SCOUT, START), sender=Role.CRITIC)


def test_somebody_else_s_letter_is_not_taken(office: Offices) -> None:
    cli = office(Role.CLI)
    assert f"for {Role.SCOUT}," in rejected(office(Role.CRITIC), cli.says(Role.SCOUT, START))


@pytest.mark.parametrize(
    "changes",
    [
        {"request_id": "req_" + "f" * 16},
        {"seq": 9},
        {"ts": NOW + 1},
        {"expires": NOW + LIFETIME_MS - 1},
        {"cause": "msg_" + "1" * 16},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_changed_field_breaks_the_signature(office: Offices, changes: dict[str, Any]) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    changed = cli.says(Role.SCOUT, START).model_copy(update=changes)
    named = message_id(changed.request_id, changed.from_, changed.seq)
    assert "signed" in rejected(scout, changed.model_copy(update={"id": named}))


@pytest.mark.parametrize(("ahead", "believed"), [(SKEW_MS, True), (SKEW_MS + 1, False)])
def test_clocks_may_be_a_minute_apart(office: Offices, ahead: int, believed: bool) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    letter = cli.says(Role.SCOUT, START)
    (received,) = arrivals(cli.post.prepare_envelope(letter, NOW))
    early = only(scout.post.take(received, NOW - ahead))
    late = only(office(Role.SCOUT).post.take(received, letter.expires + ahead))
    assert (isinstance(early, EnvelopeReceived), isinstance(late, EnvelopeReceived)) == (believed, believed)


def test_an_old_letter_cannot_be_played_again_under_a_new_life(office: Offices) -> None:
    """After a restart the dedup memory is what the journal says; a number that was passed is refused without it too."""
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    first, second = cli.says(Role.SCOUT, START), cli.says(Role.SCOUT, START)
    scout.post.remember(second)
    assert "passed" in rejected(scout, first)


def test_two_different_letters_of_one_name_are_a_lie(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    letter = cli.says(Role.SCOUT, START)
    scout.post.acknowledge_envelope(letter, NOW)
    other = resigned(letter, cli.key, payload=START.model_copy(update={"position_id": 2}))
    assert "twice" in rejected(scout, other)


def test_a_letter_that_cannot_be_spelled_again_is_an_event_and_no_error(office: Offices) -> None:
    """Read leniently, some numbers have no canonical bytes: they must not take the peer down."""
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    body = to_bytes(cli.says(Role.SCOUT, START))
    for lie in (body.replace(b'"seq":0', b'"seq":"' + b"9" * 100 + b'"'), body.replace(b'"seq":0', b'"seq":"0"')):
        assert lie != body
        event = only(scout.post.take(ReceivedMessage(b"\x00ZM1L" + zlib.compress(lie)), NOW))
        assert isinstance(event, MessageRejected)


def test_a_name_follows_from_who_speaks_where_and_when(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    stolen = resigned(cli.says(Role.SCOUT, START), cli.key, id="msg_" + "1" * 16)
    assert "name" in rejected(scout, stolen)


def test_nobody_s_word_is_good_for_ever(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    letter = cli.says(Role.SCOUT, START)
    lasting = resigned(letter, cli.key, expires=letter.ts + LIFETIME_MS + 1)
    assert f" {LIFETIME_MS + 1} ms" in rejected(scout, lasting)


def test_a_peer_thinks_aloud_as_itself(office: Offices) -> None:
    scout, cli = office(Role.SCOUT), office(Role.CLI)
    thought = AgentThought(thought=Thought(role=Role.CRITIC, round=0, seq=0, text="fine", speaker="deterministic"))
    assert f"as {Role.CRITIC}" in rejected(cli, scout.says(Role.CLI, thought), sort=b"T")


def test_a_flood_is_shut_out_before_anything_is_computed(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    letter = b"\x00ZM1L" + zlib.compress(to_bytes(cli.says(Role.SCOUT, START)))
    events = [only(scout.post.take(ReceivedMessage(letter, Role.CLI), NOW)) for _ in range(500)]
    shut_out = [event for event in events if isinstance(event, MessageRejected)]
    assert 390 <= len(shut_out) <= 410
    assert "more than it may send" in shut_out[0].why
    later = only(scout.post.take(ReceivedMessage(letter, Role.CLI), NOW + 1_000))
    assert isinstance(later, EnvelopeReceived), "a second later it may speak again"
    other = office(Role.SCOUT)
    assert isinstance(only(other.post.take(ReceivedMessage(letter, Role.CLI), NOW)), EnvelopeReceived)


def test_one_peer_s_flood_does_not_shut_out_another(office: Offices) -> None:
    critic, cli = office(Role.CRITIC), office(Role.CLI)
    failed = FlowFailed(at=Role.CRITIC, error="broken", reason="no")
    junk = ReceivedMessage(b"\x00ZM1L" + zlib.compress(b"{}"), Role.SCOUT)
    for _ in range(300):
        cli.post.take(junk, NOW)
    (received,) = arrivals(critic.post.prepare_envelope(critic.says(Role.CLI, failed), NOW), Role.CRITIC)
    assert isinstance(only(cli.post.take(received, NOW)), EnvelopeReceived)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"service":"x"}',
        b"\x00ZM1",
        b"\x00ZM1L",
        b"\x00ZM1Lnot zlib",
        b"\x00ZM1X" + zlib.compress(b"{}"),
        b"\x00ZM1L" + zlib.compress(b"{}") + b"more",
        b"\x00ZM1L" + zlib.compress(b"x" * 1000)[:-2],
        b"\x00ZM1A" + zlib.compress(b"[]"),
        b"\x00ZM1B",
    ],
)
def test_bytes_that_are_none_of_ours_are_an_event_and_no_error(office: Offices, data: bytes) -> None:
    assert isinstance(only(office(Role.SCOUT).post.take(ReceivedMessage(data), NOW)), MessageRejected)


@pytest.mark.soak(every=5)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("sort", "most"), [(b"L", 1 << 20), (b"B", 1 << 22), (b"T", 1 << 14), (b"A", 1 << 14), (b"P", 1 << 14)]
)
def test_every_sort_of_message_has_a_largest_one_packed_and_unpacked(office: Offices, sort: bytes, most: int) -> None:
    critic, cli = office(Role.CRITIC), office(Role.CLI)
    thought = AgentThought(thought=Thought(role=Role.CRITIC, round=0, seq=0, text="hm", speaker="deterministic"))
    failed = FlowFailed(at=Role.CRITIC, error="broken", reason="no")
    begun = {b"L": to_bytes(critic.says(Role.CLI, failed)), b"T": to_bytes(critic.says(Role.CLI, thought))}
    bomb = b"\x00ZM1" + sort + zlib.compress(begun.get(sort, b"") + bytes(64 * most))
    assert len(bomb) < most
    assert f" {most} bytes" in only(cli.post.take(ReceivedMessage(bomb), NOW)).why
    raw = b"\x00ZM1" + sort + bytes(most + 1)
    assert re.search(rf"\blimit\b.*\b{most}\b", only(cli.post.take(ReceivedMessage(raw), NOW + 60_000)).why)


@pytest.mark.slow
def test_a_bomb_is_unpacked_up_to_its_bound_and_no_further(office: Offices) -> None:
    scout = office(Role.SCOUT)
    bomb = b"\x00ZM1B" + zlib.compress(zlib.compress(bytes(1)) + bytes(2_000_000_000 // 100), 9)
    tracemalloc.start()
    try:
        scout.post.take(ReceivedMessage(bomb), NOW)
        assert tracemalloc.get_traced_memory()[1] < 4 * DeliveryLimits().largest_context
    finally:
        tracemalloc.stop()


class Unread:
    """A body that nobody may look at: what stands outside is enough."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.parsed = self.unpacked = self.verified = 0
        parse, unpack, verify = delivery.wire.from_bytes, zlib.decompressobj, KeyFile.verify  # type: ignore[attr-defined]

        def parsing(data: bytes) -> Envelope:
            self.parsed += 1
            return parse(data)

        def verifying(key: KeyFile, public: str, message: bytes, signature: bytes) -> bool:
            self.verified += 1
            return verify(key, public, message, signature)

        outer = self

        class Counting:
            def __init__(self) -> None:
                self._opener = unpack()

            def decompress(self, data: bytes, most: int) -> bytes:
                found = self._opener.decompress(data, most)
                outer.unpacked += len(found)
                return found

            def __getattr__(self, name: str) -> Any:
                return getattr(self._opener, name)

        monkeypatch.setattr(delivery.wire, "from_bytes", parsing)  # type: ignore[attr-defined]
        monkeypatch.setattr(delivery.zlib, "decompressobj", Counting)  # type: ignore[attr-defined]
        monkeypatch.setattr(KeyFile, "verify", verifying)


def big(to: Role = Role.CRITIC) -> Arguing:
    """A proposal's words without its figures: half a megabyte of narration."""
    thought = Thought(role=Role.STRATEGIST, round=0, seq=0, text="é" * 1_600, speaker="deterministic")
    return ContextObserved(debate=Debate(context="ab" * 32, flow="rebalance", transcript=(thought,) * 160))


def test_who_is_nobody_makes_nobody_unpack_or_parse(office: Offices, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger, scout, strategist = office(Role.SCOUT, key="stranger"), office(Role.SCOUT), office(Role.STRATEGIST)
    unread = Unread(monkeypatch)
    letters = [stranger.says(Role.STRATEGIST, big()), scout.says(Role.STRATEGIST, big())]
    assert len(to_bytes(letters[1])) > 500_000
    assert re.search(rf"\bkey\b.*{Role.SCOUT}$", rejected(strategist, letters[0]))
    assert f"as {Role.SCOUT}" in rejected(strategist, letters[1], sender=Role.CRITIC)
    assert f"for {Role.STRATEGIST}," in rejected(office(Role.CRITIC), letters[1])
    assert "expired" in rejected(strategist, letters[1], now=NOW + LIFETIME_MS + SKEW_MS + 1)
    assert (unread.parsed, unread.verified) == (0, 0)
    assert unread.unpacked <= 4 * 512


def test_what_is_not_signed_is_not_parsed(office: Offices, monkeypatch: pytest.MonkeyPatch) -> None:
    scout, strategist = office(Role.SCOUT), office(Role.STRATEGIST)
    forged = scout.says(Role.STRATEGIST, big()).model_copy(update={"sig": "ab" * 64})
    unread = Unread(monkeypatch)
    assert "signed" in rejected(strategist, forged)
    assert (unread.parsed, unread.verified) == (0, 1)


def test_a_letter_that_is_known_is_not_parsed_again(office: Offices, monkeypatch: pytest.MonkeyPatch) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    (received,) = arrivals(cli.post.prepare_envelope(cli.says(Role.SCOUT, START), NOW))
    scout.post.acknowledge_envelope(only(scout.post.take(received, NOW)).envelope, NOW)
    unread = Unread(monkeypatch)
    _, again = scout.post.take(received, NOW + 5)
    assert isinstance(again, DuplicateEnvelope)
    assert (unread.parsed, unread.verified) == (0, 0)


# -- bounds of a neighbour with a right key


def believed(office: Office, envelope: Envelope, now: int = NOW) -> bool:
    """Whether a letter is taken in; then it is."""
    event = only(office.post.take(ReceivedMessage(b"\x00ZM1L" + zlib.compress(to_bytes(envelope))), now))
    if isinstance(event, EnvelopeReceived):
        office.post.acknowledge_envelope(event.envelope, now, event)
    return isinstance(event, EnvelopeReceived)


def in_request(office: Office, number: int, at: int = NOW, payload: Any = START, to: Role = Role.SCOUT) -> Envelope:
    mouth = EnvelopeSigner(office.role, office.key, lambda: at, office.mouth.counts)
    return mouth.envelope(f"req_{number:016x}", OutgoingMessage(to, payload), None)


def test_letters_of_a_request_are_bounded(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    most = DeliveryLimits().letters_a_request
    assert all(believed(scout, in_request(cli, 1), NOW + 1_000 * at) for at in range(most))
    why = rejected(scout, in_request(cli, 1), now=NOW + 60_000)
    assert re.search(rf"\b{Role.CLI}\b.*\b{most} letters\b", why)
    assert believed(scout, in_request(cli, 2), NOW + 61_000), "another request is another matter"


def test_open_requests_are_bounded_and_close_with_time(office: Offices) -> None:
    rules = DeliveryLimits(requests_of_a_sender=5)
    cli, scout = office(Role.CLI), office(Role.SCOUT, rules=rules)
    assert all(believed(scout, in_request(cli, number)) for number in range(5))
    assert "5 requests" in rejected(scout, in_request(cli, 5))
    assert believed(scout, in_request(cli, 3)), "what is open stays open"
    later = NOW + LIFETIME_MS + SKEW_MS + 1
    assert believed(scout, in_request(cli, 6, at=later), later)


def test_what_a_sender_may_have_written_down_is_bounded(office: Offices) -> None:
    """Contexts are on the same account as the letters that name them."""
    size = len(to_bytes(in_request(office(Role.CLI), 0)))
    rules = DeliveryLimits(paper_bytes=3 * size + size // 2, paper_a_second=size / 10)
    cli, scout = office(Role.CLI), office(Role.SCOUT, rules=rules)
    assert [believed(scout, in_request(cli, number)) for number in range(5)] == [True] * 3 + [False] * 2
    assert f" {rules.paper_bytes} bytes" in rejected(scout, in_request(cli, 7))
    assert believed(scout, in_request(cli, 8), NOW + 10_000), "it grows back"
    narrow = office(Role.STRATEGIST, rules=DeliveryLimits(paper_bytes=len(CONTEXT), paper_a_second=0))
    sender = office(Role.SCOUT)
    letter, context = sender.post.prepare_envelope(observed(sender), NOW)
    assert isinstance(only(narrow.post.take(ReceivedMessage(letter.data), NOW)), ContextWanted)
    assert isinstance(only(narrow.post.take(ReceivedMessage(context.data), NOW)), ContextReceived)
    assert isinstance(only(narrow.post.take(ReceivedMessage(context.data), NOW)), MessageRejected)


def test_what_was_written_before_a_restart_is_on_the_account_still(office: Offices) -> None:
    size = len(to_bytes(in_request(office(Role.CLI), 0)))
    rules = DeliveryLimits(
        paper_bytes=3 * size + size // 2, paper_a_second=1
    )  # nothing grows back before the first look
    cli, scout = office(Role.CLI), office(Role.SCOUT, rules=rules)
    for number in range(3):
        scout.post.remember(in_request(cli, number))
    assert "fills" in rejected(scout, in_request(cli, 4))


def test_one_neighbour_s_bounds_are_not_another_s(office: Offices) -> None:
    rules = DeliveryLimits(requests_of_a_sender=2, burst=1_000.0)
    critic, arbiter, cli = office(Role.CRITIC), office(Role.ARBITER), office(Role.CLI, rules=rules)
    failed = FlowFailed(at=Role.CRITIC, error="broken", reason="no")
    letters = [in_request(critic, number, payload=failed, to=Role.CLI) for number in range(50)]
    assert sum(believed(cli, one) for one in letters) == 2
    assert believed(cli, in_request(arbiter, 99, payload=failed, to=Role.CLI))


@pytest.mark.slow
def test_bytes_are_unpacked_at_a_bounded_rate(office: Offices) -> None:
    """Each is small on its way, large when unpacked, and thrown away: it may cost no more than its share of time."""
    strategist, rules = office(Role.STRATEGIST), DeliveryLimits()
    context = b"\x00ZM1B" + zlib.compress(bytes(rules.largest_context))
    events = [strategist.post.take(ReceivedMessage(context, Role.SCOUT), NOW) for _ in range(20)]
    opened = sum(event == [] for event in events)
    assert opened == rules.bytes_burst // rules.largest_context
    assert strategist.post.take(ReceivedMessage(context, Role.SCOUT), NOW + 1) == [], (
        "there is a little, and then a debt"
    )
    assert isinstance(only(strategist.post.take(ReceivedMessage(context, Role.SCOUT), NOW + 5_000)), MessageRejected)
    assert strategist.post.take(ReceivedMessage(context, Role.CRITIC), NOW) == [], "another sender's share is its own"
    assert strategist.post.take(ReceivedMessage(context, Role.SCOUT), NOW + 60_000) == []


BOMB = bytes(4 * 1024 * 1024 + 10)
BOMBS = {
    "too large": b"\x00ZM1B" + zlib.compress(BOMB, 9),
    "cut at its end": b"\x00ZM1B" + zlib.compress(BOMB[:-20], 9)[:-8],
    "broken at its end": b"\x00ZM1B" + zlib.compress(BOMB[:-20], 9)[:-8] + b"\xff" * 8,
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_does_not_unpack_is_paid_for_all_the_same(office: Offices, name: str) -> None:
    strategist = office(Role.STRATEGIST)
    whys = [only(strategist.post.take(ReceivedMessage(BOMBS[name], Role.SCOUT), NOW)).why for _ in range(20)]
    opened = [why for why in whys if "more than it may send" not in why]
    assert len(opened) == 2 + (name != "too large"), "a little less than the half leaves a little"
    assert "(bundles)" in whys[-1]


def test_whose_front_is_not_believed_pays_for_the_front_alone(office: Offices) -> None:
    stranger, scout = office(Role.CLI, key="stranger"), office(Role.SCOUT)
    rejected(scout, stranger.says(Role.SCOUT, START))
    assert 0 < DeliveryLimits().bytes_burst - scout.post._byte_buckets[None].left <= 512


@pytest.mark.parametrize("data", [b"junk" * 1_000, b"\x00ZM1", b"\x00ZM1?junk", bytes(4 * 1024 * 1024 + 1)])
def test_whatever_comes_counts_before_it_is_looked_at(
    office: Offices, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[int] = []
    monkeypatch.setattr(delivery, "digest", lambda of: hashed.append(len(of)) or digest(of))  # type: ignore[func-returns-value]
    scout, burst = office(Role.SCOUT), int(DeliveryLimits().burst)
    events = [only(scout.post.take(ReceivedMessage(data, Role.CLI), NOW)) for _ in range(burst + 20)]
    assert ["(messages)" in event.why for event in events] == [False] * burst + [True] * 20
    assert len(hashed) <= burst
    assert {event.claimed for event in events} == {Role.CLI}


def test_clocks_may_be_a_minute_apart_and_letters_live_a_quarter_of_an_hour() -> None:
    """In figures: the tests beside this one are written in the names, and would follow them anywhere."""
    assert (SKEW_MS, LIFETIME_MS) == (60_000, 900_000)


def test_a_turn_is_had_once_and_what_is_written_in_answer_is_the_sender_s(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    first, second = cli.says(Role.SCOUT, START), cli.says(Role.SCOUT, START)
    assert not scout.post.heard_before(first)
    scout.post.acknowledge_envelope(first, NOW)
    assert scout.post.heard_before(second)
    assert not scout.post.heard_before(in_request(cli, 7))
    scout.post.charge(Role.CLI, DeliveryLimits().paper_bytes)
    assert "fills" in rejected(scout, in_request(cli, 8))


@pytest.mark.slow
def test_letters_that_wait_for_a_context_are_bounded_for_each_sender(office: Offices) -> None:
    scout, critic = office(Role.SCOUT), office(Role.CRITIC)
    rules = DeliveryLimits(waiting_letters=3, burst=10_000.0)
    strategist = office(Role.STRATEGIST, rules=rules)
    mine = ContextObserved(debate=Debate(context="ab" * 32, flow="rebalance"))
    for number in range(50):
        strategist.post.take(wrapped(in_request(scout, number, payload=mine, to=Role.STRATEGIST)), NOW)
    assert sum(map(len, strategist.post._awaiting.values())) == 3
    heavy = office(Role.STRATEGIST, rules=DeliveryLimits(waiting_bytes=1_300_000))
    for number in range(6):
        heavy.post.take(wrapped(in_request(scout, number, payload=big(), to=Role.STRATEGIST)), NOW + 2_000 * number)
    kept = [len(one.body) for one in heavy.post._awaiting[Role.SCOUT].values()]
    assert len(kept) == 2
    assert sum(kept) <= 1_300_000
    assert critic.role not in heavy.post._awaiting


def wrapped(envelope: Envelope) -> ReceivedMessage:
    return ReceivedMessage(b"\x00ZM1L" + zlib.compress(to_bytes(envelope)))


def test_contexts_that_came_early_are_bounded_for_each_sender(office: Offices) -> None:
    scout, strategist = office(Role.SCOUT), office(Role.STRATEGIST)
    letter, context = scout.post.prepare_envelope(observed(scout), NOW)
    assert strategist.post.take(ReceivedMessage(context.data, Role.SCOUT), NOW) == []
    for number in range(40):  # another one's contexts that nobody ever names
        strategist.post.take(ReceivedMessage(b"\x00ZM1B" + zlib.compress(b"%d" % number), Role.CRITIC), NOW)
    assert len(strategist.post._early[Role.CRITIC]) == DeliveryLimits().early_contexts
    assert isinstance(only(strategist.post.take(ReceivedMessage(letter.data, Role.SCOUT), NOW)), ContextReceived)


@pytest.mark.parametrize("reason", ["x" * 2_001, "é" * 2_001])
def test_no_text_in_a_message_is_longer_than_any_needs_to_be(office: Offices, reason: str) -> None:
    critic, cli = office(Role.CRITIC), office(Role.CLI)
    failed = FlowFailed(at=Role.CRITIC, error="broken", reason=reason)
    assert "2001" in rejected(cli, critic.says(Role.CLI, failed))
    short = FlowFailed(at=Role.CRITIC, error="broken", reason=reason[:2_000])
    assert believed(cli, critic.says(Role.CLI, short))


def test_a_letter_of_a_newer_edition_is_refused_by_name(office: Offices, keys: dict[str, KeyFile]) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    newer = resigned(cli.says(Role.SCOUT, START), keys["cli"], edition=EDITION + 1)
    rejected = only(scout.post.take(only(arrivals(cli.post.prepare_envelope(newer, NOW), Role.CLI)), NOW))
    assert isinstance(rejected, MessageRejected)
    assert rejected.claimed is Role.CLI
    for name in ("cli", f"edition {EDITION + 1}", "scout", f"edition {EDITION}"):
        assert name in rejected.why


def test_a_letter_of_an_older_edition_is_heard_so_that_it_can_be_answered(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    older, body = cli.mouth.sign_message(REQUEST, OutgoingMessage(Role.SCOUT, START), None, edition=1)
    assert b"edition" not in body
    heard = only(scout.post.take(only(arrivals(cli.post.prepare_envelope(older, NOW, body))), NOW))
    assert isinstance(heard, EnvelopeReceived)
    assert heard.envelope.edition == 1


def test_a_pong_has_the_fields_that_a_peer_of_edition_1_takes(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    pong = only(scout.post.take(ReceivedMessage(cli.post.ping(Role.SCOUT, "0" * 16, NOW).data), NOW))
    said = json.loads(zlib.decompress(pong.data[5:]))
    assert set(said) == {"by", "to", "ts", "key", "sig", "nonce", "code"}
    assert read_version(said["code"]) == ("test", EDITION)


@pytest.mark.parametrize(
    ("text", "code", "edition"),
    [("0.1.0+0123456789ab", "0.1.0+0123456789ab", 1), (version_text("1.0", 7), "1.0", 7), (" edition 3", "", 3)],
)
def test_a_version_tells_its_edition(text: str, code: str, edition: int) -> None:
    assert read_version(text) == (code, edition)


def test_a_long_version_leaves_room_for_its_edition() -> None:
    text = version_text("v" * 100, 12)
    assert len(text) == LONGEST_VERSION
    assert read_version(text)[1] == 12


def test_a_version_is_told_in_plain_words(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    scout.post._code = "1.0\x1b[2J\u202e"
    pong = only(scout.post.take(ReceivedMessage(cli.post.ping(Role.SCOUT, "0" * 16, NOW).data), NOW))
    assert only(cli.post.take(ReceivedMessage(pong.data), NOW)) == PongReceived(
        Role.SCOUT, "0" * 16, f"1.0[2J edition {EDITION}"
    )


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=400), packed=st.booleans(), sort=st.sampled_from([b"L", b"T", b"B", b"A", b"P", b"Q"]))
def test_no_bytes_break_it(office: Offices, data: bytes, packed: bool, sort: bytes) -> None:
    scout = office(Role.SCOUT)
    whole = b"\x00ZM1" + sort + zlib.compress(data) if packed else data
    events = scout.post.take(ReceivedMessage(whole), NOW)
    assert not any(isinstance(event, EnvelopeReceived) for event in events)


# -- contexts


def observed(scout: Office) -> Envelope:
    name = digest(CONTEXT)
    scout.bundles[name] = CONTEXT
    return scout.says(Role.STRATEGIST, ContextObserved(debate=Debate(context=name, flow="rebalance")))


@pytest.mark.parametrize("turned", [False, True], ids=["letter first", "context first"])
def test_a_context_travels_behind_its_letter_and_only_once(office: Offices, turned: bool) -> None:
    scout, strategist = office(Role.SCOUT), office(Role.STRATEGIST)
    out = scout.post.prepare_envelope(observed(scout), NOW)
    assert len(out) == 2
    events = [
        event for received in arrivals(out[::-1] if turned else out) for event in strategist.post.take(received, NOW)
    ]
    received = events.pop()
    assert isinstance(received, ContextReceived)
    assert received.content == CONTEXT
    assert events == ([] if turned else [ContextWanted(Role.SCOUT, received.digest)])
    strategist.bundles[received.digest] = received.content
    ack, letters = strategist.post.acknowledge_context(received, NOW)
    heard = only(letters)
    scout.post.take(ReceivedMessage(ack.data), NOW)
    scout.post.take(ReceivedMessage(strategist.post.acknowledge_envelope(heard.envelope, NOW).data), NOW)
    assert scout.post.waiting == 0
    assert len(scout.post.prepare_envelope(observed(scout), NOW)) == 1, "it has it already"


def test_a_letter_is_not_acknowledged_before_its_context_is_there(office: Offices) -> None:
    scout, strategist = office(Role.SCOUT), office(Role.STRATEGIST)
    letter, _ = scout.post.prepare_envelope(observed(scout), NOW)
    assert only(strategist.post.take(ReceivedMessage(letter.data), NOW)) == ContextWanted(Role.SCOUT, digest(CONTEXT))
    assert scout.post.waiting == 2


def test_other_bytes_do_not_pass_for_a_context(office: Offices) -> None:
    scout, strategist = office(Role.SCOUT), office(Role.STRATEGIST)
    letter, _ = scout.post.prepare_envelope(observed(scout), NOW)
    strategist.post.take(ReceivedMessage(letter.data), NOW)
    assert strategist.post.take(ReceivedMessage(b"\x00ZM1B" + zlib.compress(CONTEXT + b" ")), NOW) == []


# -- acks, pings, thoughts


def test_an_ack_counts_only_from_whom_the_letter_was_for(office: Offices) -> None:
    cli, scout, critic = office(Role.CLI), office(Role.SCOUT), office(Role.CRITIC)
    letter = cli.says(Role.SCOUT, START)
    cli.post.prepare_envelope(letter, NOW)
    stolen = critic.post._ack(Role.CLI, digest(to_bytes(letter)), NOW)
    cli.post.take(ReceivedMessage(stolen.data), NOW)
    assert cli.post.waiting == 1
    cli.post.take(ReceivedMessage(scout.post.acknowledge_envelope(letter, NOW).data), NOW)
    assert cli.post.waiting == 0


def test_a_ping_is_answered_with_its_own_nonce(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    ping = cli.post.ping(Role.SCOUT, "0" * 16, NOW)
    pong = only(scout.post.take(ReceivedMessage(ping.data), NOW))
    assert only(cli.post.take(ReceivedMessage(pong.data), NOW)) == PongReceived(
        Role.SCOUT, "0" * 16, version_text("test", EDITION)
    )
    old = only(cli.post.take(ReceivedMessage(pong.data), NOW + 10 * SKEW_MS))
    assert isinstance(old, MessageRejected)


def test_thoughts_are_few_and_nobody_waits_for_them(office: Offices) -> None:
    scout, cli = office(Role.SCOUT), office(Role.CLI)
    thought = AgentThought(thought=Thought(role=Role.SCOUT, round=0, seq=0, text="hm", speaker="deterministic"))
    said = scout.says(Role.CLI, thought)
    sent = [one for _ in range(100) for one in scout.post.prepare_thought(said, NOW, to_bytes(said))]
    assert 10 <= len(sent) <= 20
    assert scout.post.waiting == 0
    assert isinstance(only(cli.post.take(ReceivedMessage(sent[0].data), NOW)), ThoughtReceived)
    assert "letter" in rejected(cli, scout.says(Role.CLI, thought))
