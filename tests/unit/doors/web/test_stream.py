"""The event stream: the journal is its store, an id is resumed after, and one reader serves every viewer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.wire.page_app import open_page_app
from zuno.doors.web import events
from zuno.doors.web.events import EventFeed, event_id
from zuno.doors.web.problems import Problem
from zuno.doors.web.services import Services
from zuno.journal.port import Author, Entry
from zuno.wiring import Application, open_zuno


@pytest.fixture
async def zuno(tmp_path: Path) -> AsyncIterator[Application]:
    opened = open_zuno(str(tmp_path))
    yield opened
    await opened.close()


@pytest.fixture
def feed(zuno: Application, monkeypatch: pytest.MonkeyPatch) -> EventFeed:
    monkeypatch.setattr(events, "POLL_SECONDS", 0.001)
    return EventFeed(Services(zuno, asyncio.get_event_loop()))


async def write(zuno: Application, kind: str = "note", request: str | None = None, **payload: Any) -> Entry:
    return await zuno.journal().append(kind=kind, author=Author("test"), payload=payload, request_id=request)


async def read_events(stream: AsyncIterator[bytes], count: int) -> list[tuple[str | None, str, Any]]:
    """The next events: id, type, data."""
    found: list[tuple[str | None, str, Any]] = []
    async for part in stream:
        for block in part.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            if "event" in fields:
                found.append((fields.get("id"), fields["event"], json.loads(fields["data"])))
        if len(found) >= count:
            break
    return found


async def test_what_is_written_from_now_on_is_told(zuno: Application, feed: EventFeed) -> None:
    await write(zuno)
    stream = await feed.open(None)
    entry = await write(zuno, "cycle_judge_agent", "run_1", voice={"source": "model", "usd": 0.5, "model": "m"})
    start, node, told = await read_events(stream, 3)
    assert start == (event_id(entry), "start", {}), "where whoever is cut off at once resumes"
    assert node[:2] == (None, "node")
    assert node[2] == {
        "runId": "run_1",
        "node": "judge_agent",
        "state": "speaks",
        "source": "model",
        "usd": 0.5,
        "note": "m",
    }
    assert told[:2] == (event_id(entry), "entry")
    assert told[2]["seq"] == entry.seq


@pytest.mark.slow
async def test_an_id_is_resumed_after_by_another_process(zuno: Application, feed: EventFeed) -> None:
    written = [await write(zuno, number=number) for number in range(events._PAGE + 5)]
    stream = await EventFeed(Services(zuno, asyncio.get_running_loop())).open(event_id(written[1]))
    told = await read_events(stream, len(written) - 2)
    assert [id_ for id_, _, _ in told] == [event_id(entry) for entry in written[2:]]


async def test_backlog_and_news_meet_without_gap_or_repeat(zuno: Application, feed: EventFeed) -> None:
    first, *_ = [await write(zuno, number=number) for number in range(5)]
    stream = await feed.open(event_id(first))
    await asyncio.sleep(0.02)
    later = [await write(zuno, number=number) for number in range(5)]
    await asyncio.sleep(0.1)  # the reader has them too by now
    told = [await anext(stream) for _ in range(10)][1:]
    newest = await write(zuno)
    told.append(await anext(stream))
    seen = [json.loads(part.decode().partition("data: ")[2])["seq"] for part in told]
    assert seen == list(range(2, newest.seq + 1))
    assert newest.seq == later[-1].seq + 1


@pytest.mark.parametrize(
    "id_", ["1-0000000000000000", "99-0000000000000000", "0-0000000000000000", "x", "1", "é", "-1"]
)
async def test_an_id_of_another_home_is_refused(zuno: Application, feed: EventFeed, id_: str) -> None:
    await write(zuno)
    with pytest.raises(Problem) as refused:
        await feed.open(id_)
    assert refused.value.view.status == 409
    assert feed.viewers == 0


async def test_viewers_share_what_is_told_and_one_that_left_is_forgotten(zuno: Application, feed: EventFeed) -> None:
    streams = [await feed.open(None) for _ in range(20)]
    feed.publish("step", {"text": "<b>"})
    for stream in streams:
        assert await read_events(stream, 1) == [(None, "step", {"text": "<b>"})]
        await stream.aclose()  # type: ignore[attr-defined]
    assert feed.viewers == 0


async def test_a_viewer_that_falls_behind_is_cut_off(feed: EventFeed) -> None:
    stream = await feed.open(None)
    for number in range(events.MOST_WAITING + 1):
        feed.publish("step", {"number": number})
    assert await read_events(stream, 1) == []


async def test_too_many_streams_are_refused(feed: EventFeed) -> None:
    streams = [await feed.open(None) for _ in range(events.MOST_VIEWERS)]
    with pytest.raises(Problem):
        await feed.open(None)
    feed.close()
    for stream in streams:
        assert await read_events(stream, 1) == []


async def test_foreign_text_is_one_plain_line(zuno: Application, feed: EventFeed) -> None:
    stream = await feed.open(None)
    await write(zuno, "cycle_macro_expert", "run_1", skipped="a\n\nevent: job\ndata: {}\x1b[31m")
    (_start, node, _entry) = await read_events(stream, 3)
    assert node[1] == "node"
    assert "\n" not in node[2]["note"]
    assert "\x1b" not in node[2]["note"]


async def test_a_stream_ends_with_its_login_while_others_go_on(zuno: Application, feed: EventFeed) -> None:
    logged_in = [True]
    ended, other = await feed.open(None, lambda: logged_in[0]), await feed.open(None)
    entry = await write(zuno)
    await read_events(ended, 1)
    logged_in[0] = False
    async with asyncio.timeout(30):
        async for _ in ended:
            pass
    assert feed.viewers == 1
    assert (await read_events(other, 2))[-1][0] == event_id(entry)


async def test_what_was_missed_is_not_told_to_a_login_that_is_over(zuno: Application, feed: EventFeed) -> None:
    first, *rest = [await write(zuno, number=number) for number in range(2 * events._PAGE + 5)]
    logged_in = [True]
    stream = await feed.open(event_id(first), lambda: logged_in[0])
    told = await read_events(stream, 1)
    logged_in[0] = False
    async with asyncio.timeout(30):
        told += await read_events(stream, len(rest))
    assert len(told) < len(rest)


@pytest.mark.slow
def test_the_route_refuses_a_foreign_id(tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    from tests.wire.page_app import BEARER, HOST

    with open_page_app(tmp_path) as page, TestClient(page.app, base_url=f"http://{HOST}", headers=BEARER) as client:
        answer = client.get("/api/v1/events", headers={"Last-Event-ID": "7-" + "0" * 16})
    assert answer.status_code == 409
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:zuno:problem:refused"
