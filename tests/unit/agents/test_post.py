"""The post office between peers that distrust each other: what is believed, what is sent again, what is given up."""

from __future__ import annotations

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

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.agents.peer import Say
from zuno.agents.post import (
    LIFETIME_MS,
    SKEW_MS,
    Again,
    Answered,
    Heard,
    Outgoing,
    Overheard,
    Post,
    Received,
    Rejected,
    Rules,
)
from zuno.agents.station import Mouth
from zuno.domain.debate import RiskProfile
from zuno.messages.codec import Digest, digest
from zuno.messages.debate import AgentThought, ContextObserved, Debate, FlowFailed, FlowStart, Role, Thought
from zuno.messages.envelope import Envelope, message_id, signed_part, to_bytes
from zuno.ports.transport import Parcel

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
    rules: Rules = field(default_factory=Rules)
    bundles: dict[Digest, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.post = Post(
            self.role, self.key, self.table, self.bundles.get, chance=Random(1), code="test", rules=self.rules
        )
        self.mouth = Mouth(self.role, self.key, lambda: NOW)

    def says(self, to: Role, payload: Any) -> Envelope:
        return self.mouth.envelope(REQUEST, Say(to, payload), None)


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
    return lambda role, key=None, rules=None: Office(role, keys[key or role.value], table, rules or Rules())


def parcels(out: list[Outgoing], sender: Role | None = None) -> list[Parcel]:
    return [Parcel(one.data, sender) for one in out]


def only(events: list[Any]) -> Any:
    (event,) = events
    return event


def resigned(envelope: Envelope, key: KeyFile, **changes: Any) -> Envelope:
    """The same envelope with some fields changed, and a signature that fits them."""
    changed = envelope.model_copy(update={**changes, "sig": ""})
    return changed.model_copy(update={"sig": key.sign(signed_part(changed)).hex()})


def test_a_letter_is_heard_once_acknowledged_and_not_sent_again(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    out = cli.post.letter(cli.says(Role.SCOUT, START), NOW)
    heard = only(scout.post.take(only(parcels(out)), NOW))
    assert isinstance(heard, Heard)
    again = only(scout.post.take(only(parcels(out)), NOW))
    assert isinstance(again, Heard), "not written down yet, so it may come again"
    ack = scout.post.accepted(heard.envelope, NOW)
    assert cli.post.waiting == 1
    assert cli.post.take(only(parcels([ack])), NOW) == []
    assert cli.post.waiting == 0
    assert cli.post.due(NOW + 60_000) == ([], [])


def test_a_repetition_is_acknowledged_again_and_not_heard_again(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    (parcel,) = parcels(cli.post.letter(cli.says(Role.SCOUT, START), NOW))
    scout.post.accepted(only(scout.post.take(parcel, NOW)).envelope, NOW)
    ack, again = scout.post.take(parcel, NOW + 5)
    assert isinstance(ack, Outgoing)
    assert isinstance(again, Again)
    cli.post.take(Parcel(ack.data), NOW + 6)
    assert cli.post.waiting == 0


def test_what_is_not_acknowledged_is_sent_again_ever_more_slowly_and_then_given_up(office: Offices) -> None:
    cli = office(Role.CLI)
    (first,) = cli.post.letter(cli.says(Role.SCOUT, START), NOW)
    moments, now = [NOW], NOW
    while True:
        assert cli.post.next_due is not None
        now = cli.post.next_due
        out, dead = cli.post.due(now)
        if dead:
            break
        assert out == [first], "the same bytes"
        moments.append(now)
    assert only(dead).tries == Rules().tries == len(moments)
    pauses = [later - earlier for earlier, later in pairwise(moments)]
    assert pauses[0] < 350
    assert max(pauses) <= 5_000 * 1.25
    assert pauses[-1] > 3_000
    assert now - NOW < 90_000
    assert cli.post.next_due is None


def test_two_posts_do_not_retry_in_step(office: Offices, keys: Any) -> None:
    table = {role: keys[role.value].public for role in Role}
    both = [Post(Role.CLI, keys["cli"], table, {}.get, chance=Random(seed), code="test") for seed in (1, 2)]
    mouth = Mouth(Role.CLI, keys["cli"], lambda: NOW)
    envelope = mouth.envelope(REQUEST, Say(Role.SCOUT, START), None)
    for post in both:
        post.letter(envelope, NOW)
    assert both[0].next_due != both[1].next_due


# -- not believed


def rejected(office: Office, envelope: Envelope, sender: Role | None = None, now: int = NOW, sort: bytes = b"L") -> str:
    event = only(office.post.take(Parcel(b"\x00ZM1" + sort + zlib.compress(to_bytes(envelope)), sender), now))
    assert isinstance(event, Rejected)
    return event.why


def test_a_stranger_s_key_is_nobody(office: Offices) -> None:
    stranger, scout = office(Role.CLI, key="stranger"), office(Role.SCOUT)
    assert "is not the key of cli" in rejected(scout, stranger.says(Role.SCOUT, START))


def test_a_right_key_in_a_wrong_role_is_nobody(office: Offices) -> None:
    critic, scout = office(Role.CRITIC), office(Role.SCOUT)
    posing = resigned(critic.says(Role.SCOUT, START), critic.key, from_=Role.CLI)
    assert "is not the key of cli" in rejected(scout, posing)


def test_a_role_says_only_what_is_its_to_say(office: Offices) -> None:
    strategist, critic, cli = office(Role.STRATEGIST), office(Role.CRITIC), office(Role.CLI)
    assert "may not say flow_start" in rejected(office(Role.SCOUT), critic.says(Role.SCOUT, START))
    observed = ContextObserved(debate=Debate(context="ab" * 32, flow="rebalance"))
    assert "may not say context_observed to cli" in rejected(cli, strategist.says(Role.CLI, observed))


def test_an_endpoint_speaks_for_its_own_role_alone(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    assert "critic's endpoint speaks as cli" in rejected(scout, cli.says(Role.SCOUT, START), sender=Role.CRITIC)


def test_somebody_else_s_letter_is_not_taken(office: Offices) -> None:
    cli = office(Role.CLI)
    assert "is for scout, not for critic" in rejected(office(Role.CRITIC), cli.says(Role.SCOUT, START))


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
    assert "is not signed by its key" in rejected(scout, changed.model_copy(update={"id": named}))


@pytest.mark.parametrize(("ahead", "believed"), [(SKEW_MS, True), (SKEW_MS + 1, False)])
def test_clocks_may_be_a_minute_apart(office: Offices, ahead: int, believed: bool) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    letter = cli.says(Role.SCOUT, START)
    (parcel,) = parcels(cli.post.letter(letter, NOW))
    early = only(scout.post.take(parcel, NOW - ahead))
    late = only(office(Role.SCOUT).post.take(parcel, letter.expires + ahead))
    assert (isinstance(early, Heard), isinstance(late, Heard)) == (believed, believed)


def test_an_old_letter_cannot_be_played_again_under_a_new_life(office: Offices) -> None:
    """After a restart the dedup memory is what the journal says; a number that was passed is refused without it too."""
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    first, second = cli.says(Role.SCOUT, START), cli.says(Role.SCOUT, START)
    scout.post.remember(second)
    assert "was passed already" in rejected(scout, first)


def test_two_different_letters_of_one_name_are_a_lie(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    letter = cli.says(Role.SCOUT, START)
    scout.post.accepted(letter, NOW)
    other = resigned(letter, cli.key, payload=START.model_copy(update={"position_id": 2}))
    assert "twice, and not the same" in rejected(scout, other)


def test_a_letter_that_cannot_be_spelled_again_is_an_event_and_no_error(office: Offices) -> None:
    """Read leniently, some numbers have no canonical bytes: they must not take the peer down."""
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    body = to_bytes(cli.says(Role.SCOUT, START))
    for lie in (body.replace(b'"seq":0', b'"seq":"' + b"9" * 100 + b'"'), body.replace(b'"seq":0', b'"seq":"0"')):
        assert lie != body
        event = only(scout.post.take(Parcel(b"\x00ZM1L" + zlib.compress(lie)), NOW))
        assert isinstance(event, Rejected)


def test_a_name_follows_from_who_speaks_where_and_when(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    stolen = resigned(cli.says(Role.SCOUT, START), cli.key, id="msg_" + "1" * 16)
    assert "is not the name of what cli says there" in rejected(scout, stolen)


def test_nobody_s_word_is_good_for_ever(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    letter = cli.says(Role.SCOUT, START)
    lasting = resigned(letter, cli.key, expires=letter.ts + LIFETIME_MS + 1)
    assert f"wants to be good for {LIFETIME_MS + 1} ms" in rejected(scout, lasting)


def test_a_peer_thinks_aloud_as_itself(office: Offices) -> None:
    scout, cli = office(Role.SCOUT), office(Role.CLI)
    thought = AgentThought(thought=Thought(role=Role.CRITIC, round=0, seq=0, text="fine", speaker="deterministic"))
    assert "thinks aloud as critic" in rejected(cli, scout.says(Role.CLI, thought), sort=b"T")


def test_a_flood_is_shut_out_before_anything_is_computed(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    letter = b"\x00ZM1L" + zlib.compress(to_bytes(cli.says(Role.SCOUT, START)))
    events = [only(scout.post.take(Parcel(letter, Role.CLI), NOW)) for _ in range(500)]
    shut_out = [event for event in events if isinstance(event, Rejected)]
    assert 390 <= len(shut_out) <= 410
    assert "more than it may send" in shut_out[0].why
    later = only(scout.post.take(Parcel(letter, Role.CLI), NOW + 1_000))
    assert isinstance(later, Heard), "a second later it may speak again"
    other = office(Role.SCOUT)
    assert isinstance(only(other.post.take(Parcel(letter, Role.CLI), NOW)), Heard)


def test_one_peer_s_flood_does_not_shut_out_another(office: Offices) -> None:
    critic, cli = office(Role.CRITIC), office(Role.CLI)
    failed = FlowFailed(at=Role.CRITIC, error="broken", reason="no")
    junk = Parcel(b"\x00ZM1L" + zlib.compress(b"{}"), Role.SCOUT)
    for _ in range(300):
        cli.post.take(junk, NOW)
    (parcel,) = parcels(critic.post.letter(critic.says(Role.CLI, failed), NOW), Role.CRITIC)
    assert isinstance(only(cli.post.take(parcel, NOW)), Heard)


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
    assert isinstance(only(office(Role.SCOUT).post.take(Parcel(data), NOW)), Rejected)


def test_what_unpacks_to_too_much_is_not_unpacked(office: Offices) -> None:
    scout = office(Role.SCOUT, rules=Rules(largest=10_000))
    bomb = b"\x00ZM1B" + zlib.compress(bytes(5_000_000))
    assert len(bomb) < 10_000
    assert "unpacks to more than 10000" in only(scout.post.take(Parcel(bomb), NOW)).why
    assert "over the limit" in only(scout.post.take(Parcel(bytes(10_001)), NOW)).why


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=400), packed=st.booleans(), sort=st.sampled_from([b"L", b"T", b"B", b"A", b"P", b"Q"]))
def test_no_bytes_break_it(office: Offices, data: bytes, packed: bool, sort: bytes) -> None:
    scout = office(Role.SCOUT)
    whole = b"\x00ZM1" + sort + zlib.compress(data) if packed else data
    events = scout.post.take(Parcel(whole), NOW)
    assert not any(isinstance(event, Heard) for event in events)


# -- contexts


def observed(scout: Office) -> Envelope:
    name = digest(CONTEXT)
    scout.bundles[name] = CONTEXT
    return scout.says(Role.STRATEGIST, ContextObserved(debate=Debate(context=name, flow="rebalance")))


@pytest.mark.parametrize("turned", [False, True], ids=["letter first", "context first"])
def test_a_context_travels_behind_its_letter_and_only_once(office: Offices, turned: bool) -> None:
    scout, strategist = office(Role.SCOUT), office(Role.STRATEGIST)
    out = scout.post.letter(observed(scout), NOW)
    assert len(out) == 2
    events = [event for parcel in parcels(out[::-1] if turned else out) for event in strategist.post.take(parcel, NOW)]
    received = only(events)
    assert isinstance(received, Received)
    assert received.content == CONTEXT
    strategist.bundles[received.digest] = received.content
    ack, letters = strategist.post.kept(received, NOW)
    heard = only(letters)
    scout.post.take(Parcel(ack.data), NOW)
    scout.post.take(Parcel(strategist.post.accepted(heard.envelope, NOW).data), NOW)
    assert scout.post.waiting == 0
    assert len(scout.post.letter(observed(scout), NOW)) == 1, "it has it already"


def test_a_letter_is_not_acknowledged_before_its_context_is_there(office: Offices) -> None:
    scout, strategist = office(Role.SCOUT), office(Role.STRATEGIST)
    letter, _ = scout.post.letter(observed(scout), NOW)
    assert strategist.post.take(Parcel(letter.data), NOW) == []
    assert scout.post.waiting == 2


def test_other_bytes_do_not_pass_for_a_context(office: Offices) -> None:
    scout, strategist = office(Role.SCOUT), office(Role.STRATEGIST)
    letter, _ = scout.post.letter(observed(scout), NOW)
    strategist.post.take(Parcel(letter.data), NOW)
    assert strategist.post.take(Parcel(b"\x00ZM1B" + zlib.compress(CONTEXT + b" ")), NOW) == []


# -- acks, pings, thoughts


def test_an_ack_counts_only_from_whom_the_letter_was_for(office: Offices) -> None:
    cli, scout, critic = office(Role.CLI), office(Role.SCOUT), office(Role.CRITIC)
    letter = cli.says(Role.SCOUT, START)
    cli.post.letter(letter, NOW)
    stolen = critic.post._ack(Role.CLI, digest(to_bytes(letter)), NOW)
    cli.post.take(Parcel(stolen.data), NOW)
    assert cli.post.waiting == 1
    cli.post.take(Parcel(scout.post.accepted(letter, NOW).data), NOW)
    assert cli.post.waiting == 0


def test_a_ping_is_answered_with_its_own_nonce(office: Offices) -> None:
    cli, scout = office(Role.CLI), office(Role.SCOUT)
    ping = cli.post.ping(Role.SCOUT, "0" * 16, NOW)
    pong = only(scout.post.take(Parcel(ping.data), NOW))
    assert only(cli.post.take(Parcel(pong.data), NOW)) == Answered(Role.SCOUT, "0" * 16, "test")
    old = only(cli.post.take(Parcel(pong.data), NOW + 10 * SKEW_MS))
    assert isinstance(old, Rejected)


def test_thoughts_are_few_and_nobody_waits_for_them(office: Offices) -> None:
    scout, cli = office(Role.SCOUT), office(Role.CLI)
    thought = AgentThought(thought=Thought(role=Role.SCOUT, round=0, seq=0, text="hm", speaker="deterministic"))
    sent = [one for _ in range(100) for one in scout.post.thought(scout.says(Role.CLI, thought), NOW)]
    assert 10 <= len(sent) <= 20
    assert scout.post.waiting == 0
    assert isinstance(only(cli.post.take(Parcel(sent[0].data), NOW)), Overheard)
    assert "came as a letter" in rejected(cli, scout.says(Role.CLI, thought))
