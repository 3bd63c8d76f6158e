"""Keeping peers alive: what dies is started again, not for ever, and nothing is left behind."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from zuno.adapters.keys.ed25519 import KeyFile
from zuno.adapters.mesh.folder import MeshFiles
from zuno.kernel.errors import Refused, Unavailable, UsageError
from zuno.kernel.units import Millis
from zuno.lp.model.debate import Role
from zuno.lp.ports.mesh import PeerReport
from zuno.lp.ports.transport import NodeHealth, NodeState
from zuno.lp.service.mesh import MeshService
from zuno.lp.service.mesh_supervisor import (
    LONG_LIFE,
    LONGEST_PAUSE,
    LOOK,
    MISSING_SECONDS,
    MOST_DEATHS,
    MeshEventView,
    MeshHost,
)


class Pretended:
    """A process without one: it ends when the story says so."""

    def __init__(self, pid: int, stubborn: bool = False) -> None:
        self.pid = pid
        self.stubborn = stubborn
        self.signals: list[bool] = []
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def die(self, code: int) -> None:
        if not self._ended.done():
            self._ended.set_result(code)

    def signal(self, *, hard: bool = False) -> None:
        self.signals.append(hard)
        if hard or not self.stubborn:
            self.die(-9 if hard else 0)

    def last_words(self) -> str:
        return "it was tired"


class Ward:
    def __init__(self, nodes: bool = False, stubborn: bool = False) -> None:
        self.has_nodes = nodes
        self.stubborn = stubborn
        self.born: list[tuple[str, Pretended]] = []
        self.left: tuple[int, ...] = ()

    async def end_orphans(self) -> tuple[int, ...]:
        assert not self.born, "before anything new is started"
        return self.left

    def peer(self, role: Role, transport: str) -> Pretended:
        return self._add(role.value)

    def node(self, role: Role) -> Pretended:
        return self._add(f"node of the {role}")

    def _add(self, name: str) -> Pretended:
        child = Pretended(1_000 + len(self.born), self.stubborn)
        self.born.append((name, child))
        return child

    def of(self, name: str) -> list[Pretended]:
        return [child for born, child in self.born if born == name]


async def nowhere(*ignored: Any) -> Any:
    raise AssertionError("nobody is to be asked")


async def nobody() -> tuple[int, ...]:
    return ()


def keeper_of(home: Path, open_endpoint: Any = nowhere) -> MeshService:
    files = MeshFiles(home)
    return MeshService(
        files,
        str(files.root),
        lambda role: KeyFile(files.of(role) / "peer.key"),
        lambda role: KeyFile(files.of(role) / "axl.key"),
        lambda role: (None, f"http://127.0.0.1:{9002 + 10 * list(Role).index(role)}"),
        lambda: "iroh",
        open_endpoint,
        nowhere,
        nowhere,
        nobody,
    )


class Story:
    """A host whose sleeps take no time and are written down."""

    def __init__(self, home: Path, ward: Ward, open_endpoint: Any = nowhere) -> None:
        self.ward = ward
        self.files = MeshFiles(home)
        self.pauses: list[float] = []
        self.events: list[MeshEventView] = []
        self.stop = asyncio.Event()
        self.moment = 0.0
        self.shown = 0
        self.host = MeshHost(
            keeper_of(home, open_endpoint),
            self.files,
            ward,
            lambda: Millis(1_700_000_000_000),
            lambda: self.moment,
            self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)

    def _show(self, view: object) -> None:
        self.shown += 1

    def up(self, transport: str | None = "iroh") -> asyncio.Task[Any]:
        return asyncio.ensure_future(self.host.up(transport, self.events.append, self._show, self.stop))

    async def beat(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    def told(self, event: str) -> list[str]:
        return [one.text for one in self.events if one.event == event]


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    await keeper_of(tmp_path).init(None, None, ())
    return tmp_path


def said_by(pid: int, node: NodeHealth | None = None) -> PeerReport:
    return PeerReport(
        node=node,
        pid=pid,
        since=Millis(1),
        at=Millis(2),
        code="v",
        transport="iroh",
        heard=0,
        said=0,
        again=0,
        dead=0,
        rejected={},
        round_trips={},
    )


@pytest.mark.slow
async def test_the_four_are_started_and_it_is_told_when_all_are_there(home: Path) -> None:
    story = Story(home, Ward())
    task = story.up()
    await story.beat()
    assert [name for name, _ in story.ward.born] == ["scout", "strategist", "critic", "arbiter"]
    assert story.told("up") == []
    for name, child in story.ward.born:
        story.files.keep_report(Role(name), said_by(child.pid))
    await story.beat()
    assert len(story.told("up")) == 1
    assert story.files.running_mesh() is not None
    story.stop.set()
    view = await task
    assert view.restarts == dict.fromkeys(("scout", "strategist", "critic", "arbiter"), 0)
    assert all(child.signals == [False] for _, child in story.ward.born)
    assert story.files.running_mesh() is None  # nobody keeps it any more


async def test_one_that_dies_during_the_start_is_waited_for_and_then_it_is_up(home: Path) -> None:
    story = Story(home, Ward())
    task = story.up()
    await story.beat()
    for name, child in story.ward.born:
        if name != "arbiter":
            story.files.keep_report(Role(name), said_by(child.pid))
    story.ward.of("critic")[0].die(-9)
    await story.beat()
    story.files.keep_report(Role.ARBITER, said_by(story.ward.of("arbiter")[0].pid))
    await story.beat()
    assert len(story.ward.of("critic")) == 2
    assert story.told("up") == []  # the dead critic's report counts for nothing
    story.moment += MISSING_SECONDS
    await story.beat()
    (missing,) = story.told("note")
    assert "critic" in missing
    assert "arbiter" not in missing
    story.files.keep_report(Role.CRITIC, said_by(story.ward.of("critic")[1].pid))
    await story.beat()
    assert len(story.told("up")) == 1
    story.ward.of("scout")[0].die(-9)  # later on it is no news that it is up
    await story.beat()
    story.files.keep_report(Role.SCOUT, said_by(story.ward.of("scout")[1].pid))
    await story.beat()
    assert len(story.told("up")) == 1
    story.stop.set()
    assert (await task).restarts["critic"] == 1


@pytest.mark.parametrize("state", ["not ours", "not AXL", "late"])
async def test_without_a_node_of_its_own_no_mesh_is_up(home: Path, state: NodeState) -> None:
    story = Story(home, Ward())
    task = story.up()
    await story.beat()
    for name, child in story.ward.born:
        wrong = NodeHealth(state=state, why="Mend it.") if name == "critic" else NodeHealth(state="ok")
        story.files.keep_report(Role(name), said_by(child.pid, wrong))
    await story.beat()
    assert story.told("note") == []  # it may be starting
    for _ in range(2):
        story.moment += MISSING_SECONDS
        await story.beat()
    assert story.told("up") == []
    assert len(story.told("note")) == 1
    assert f"critic: {state}. Mend it." in story.told("note")[0]
    story.files.keep_report(Role.CRITIC, said_by(story.ward.of("critic")[0].pid, NodeHealth(state="ok")))
    await story.beat()
    assert len(story.told("up")) == 1
    story.stop.set()
    await task


async def test_a_node_that_breaks_in_another_way_each_time_is_told_all_the_same(home: Path) -> None:
    story = Story(home, Ward())
    task = story.up()
    await story.beat()
    for number in range(12):
        for name, child in story.ward.born:
            wrong = NodeHealth(state="late", why=f"In way {number}.")
            story.files.keep_report(Role(name), said_by(child.pid, wrong))
        story.moment += MISSING_SECONDS / 4
        await story.beat()
    assert len(story.told("note")) == 3  # once in five seconds
    story.stop.set()
    await task


async def test_what_the_owners_own_node_lacks_is_told_as_soon_as_a_peers(home: Path) -> None:
    async def open_endpoint(way: str) -> Any:
        raise Unavailable("The owner's node. [node: late]")

    story = Story(home, Ward(), open_endpoint)
    task = story.up("axl")
    await story.beat()
    for name, child in story.ward.born:
        story.files.keep_report(Role(name), said_by(child.pid, NodeHealth(state="ok")))
    await story.beat()
    story.moment += MISSING_SECONDS
    await story.beat()
    assert [note.rpartition(" [")[2] for note in story.told("note")[1:]] == ["node: late]"]
    assert set(story.pauses) == {LOOK}
    story.stop.set()
    await task


async def test_one_that_dies_once_it_was_met_is_waited_for_again(home: Path) -> None:
    class Met:
        """An endpoint that everybody answers, and the critic with its last breath."""

        node, has_node = NodeHealth(state="ok"), True

        async def ping(self, seconds: float, roles: tuple[Role, ...]) -> tuple[Role, ...]:
            if len(story.ward.of("critic")) == 1:
                story.ward.of("critic")[0].die(-9)
                await story.beat()
            return roles

        async def aclose(self) -> None:
            return None

    async def open_endpoint(way: str) -> Any:
        return Met()

    story = Story(home, Ward(), open_endpoint)
    task = story.up("axl")
    await story.beat()
    for name, child in story.ward.born:
        story.files.keep_report(Role(name), said_by(child.pid))
    await story.beat()
    await story.beat()
    assert len(story.ward.of("critic")) == 2
    assert story.told("up") == []
    story.files.keep_report(Role.CRITIC, said_by(story.ward.of("critic")[1].pid))
    await story.beat()
    assert len(story.told("up")) == 1
    story.stop.set()
    await task


async def test_the_table_goes_on_while_the_peers_are_met_for_the_first_time(home: Path) -> None:
    meeting = asyncio.Event()

    async def open_endpoint(way: str) -> Any:
        meeting.set()
        await asyncio.Event().wait()  # nodes that look for the way

    story = Story(home, Ward(), open_endpoint)
    task = story.up("axl")
    await story.beat()
    for name, child in story.ward.born:
        story.files.keep_report(Role(name), said_by(child.pid))
    await asyncio.wait_for(meeting.wait(), 10)
    before = story.shown
    await story.beat()
    assert story.shown > before + 5
    assert story.told("up") == []
    story.stop.set()
    await task


async def test_restarts_are_counted_on_by_the_next_keeper(home: Path) -> None:
    for life in (1, 2):
        story = Story(home, Ward())
        task = story.up()
        await story.beat()
        story.ward.of("critic")[0].die(-9)
        await story.beat()
        story.stop.set()
        assert (await task).restarts["critic"] == life
        keeper = keeper_of(home)
        peers = {peer.role: peer.restarts for peer in keeper.build_view(keeper.table(), "iroh", None).peers}
        assert peers["critic"] == life  # while nobody keeps it, too


@pytest.mark.slow
async def test_what_dies_is_started_again_after_longer_and_longer_pauses(home: Path) -> None:
    story = Story(home, Ward())
    task = story.up()
    await story.beat()
    for _ in range(3):
        story.ward.of("critic")[-1].die(-9)
        await story.beat()
    assert len(story.ward.of("critic")) == 4
    assert [pause for pause in story.pauses if pause != 0.5] == [0.2, 0.4, 0.8]
    assert "signal 9: " in story.told("died")[0]
    kept = story.files.running_mesh()
    assert kept is not None
    assert kept.restarts["critic"] == 3
    story.moment = LONG_LIFE + 1  # it lived long: the next death is the first again
    story.ward.of("critic")[-1].die(70)
    await story.beat()
    assert [pause for pause in story.pauses if pause != 0.5][-1] == 0.2
    story.stop.set()
    assert (await task).restarts["critic"] == 4


@pytest.mark.slow
async def test_one_that_only_dies_is_given_up_and_the_others_ended(home: Path) -> None:
    story = Story(home, Ward())
    task = story.up()
    await story.beat()
    for _ in range(MOST_DEATHS + 1):
        story.ward.of("scout")[-1].die(4)
        await story.beat()
    with pytest.raises(Unavailable, match=rf"scout\b.*\b{MOST_DEATHS + 1} times\b.*\b4: "):
        await task
    assert max(story.pauses) <= LONGEST_PAUSE
    assert [child.signals for child in story.ward.of("critic")] == [[False]]


@pytest.mark.slow
async def test_whoever_does_not_end_is_made_to(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zuno.lp.service.mesh_supervisor.GRACE", 0.01)
    story = Story(home, Ward(stubborn=True))
    task = story.up()
    await story.beat()
    story.stop.set()
    await task
    assert {tuple(child.signals) for _, child in story.ward.born} == {(False, True)}


async def test_one_mesh_for_a_home(home: Path) -> None:
    story = Story(home, Ward())
    lock = MeshFiles(home).lock("up")
    lock.take()
    with pytest.raises(Refused, match=r"process \d+"):
        await story.up()
    assert story.ward.born == []
    lock.leave()


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "born"), [(True, 9), (False, 4)])
async def test_axl_nodes_are_started_where_there_is_a_binary(home: Path, nodes: bool, born: int) -> None:
    story = Story(home, Ward(nodes))
    task = story.up("axl")
    await story.beat()
    assert len(story.ward.born) == born
    assert bool(story.told("note")) is not nodes
    story.stop.set()
    await task


@pytest.mark.slow
async def test_nodes_of_a_mesh_that_was_killed_are_ended_before_new_ones_start(home: Path) -> None:
    ward = Ward(nodes=True)
    ward.left = (4_000, 4_001)
    story = Story(home, ward)
    task = story.up("axl")
    await story.beat()
    assert [re.findall(r"\d+", note) for note in story.told("note")] == [["4000", "4001"]]
    assert len(ward.born) == 9
    story.stop.set()
    await task


@pytest.mark.slow
async def test_a_role_whose_key_is_elsewhere_is_not_started(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    await keeper_of(theirs).init("10.0.0.2", None, ())
    view = await keeper_of(ours).init(None, str(theirs / "mesh" / "mesh.json"), ["critic"])
    assert [line.role for line in view.roles if not line.here] == ["critic"]
    there = MeshFiles(theirs).table()
    assert there is not None
    assert view.roles[3].key == there[Role.CRITIC].key
    assert view.roles[3].iroh_address.startswith("10.0.0.2:")
    again = await keeper_of(ours).init("10.0.0.1", None, ())
    assert again.roles[3] == view.roles[3]  # theirs stays, ours moves
    assert all(line.iroh_address.startswith("10.0.0.1:") for line in again.roles if line.here)
    assert [line.key for line in again.roles] == [line.key for line in view.roles]
    story = Story(ours, Ward())
    task = story.up()
    await story.beat()
    assert [name for name, _ in story.ward.born] == ["scout", "strategist", "arbiter"]
    assert [note.rpartition(": ")[2] for note in story.told("note")] == ["critic."]
    story.stop.set()
    await task


async def test_what_cannot_be_joined_is_said(tmp_path: Path) -> None:
    keeper = keeper_of(tmp_path)
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(UsageError, match=r"--join.*--role"):
        await keeper.init(None, str(tmp_path / "no.json"), ())
    with pytest.raises(UsageError, match="table"):
        await keeper.init(None, None, ["critic"])
    with pytest.raises(UsageError, match="table"):
        await keeper.init(None, str(tmp_path / "no.json"), ["critic"])
    with pytest.raises(UsageError, match="role"):
        await keeper.init(None, str(tmp_path / "no.json"), ["judge"])
    with pytest.raises(UsageError, match="host"):
        await keeper.init("a b", None, ())
    assert not (tmp_path / "mesh").exists()
    with pytest.raises(Refused, match="zuno mesh init"):
        await keeper.ping(None)
