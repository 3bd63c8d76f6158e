"""The event stream: what the journal gets, from whichever process, and what this server's own jobs are doing.

The journal is the store. Every entry is an `entry` event whose id is its number and the beginning of its hash, so that
a browser that comes back, after a restart too, gets everything since; what an entry means to a page (`thought`,
`debate`, `node`, `run_ended`, `plan`) stands before it. What is only worth seeing while it happens (`job`,
`step`, a node that waits) has no id and is not kept. One reader follows the journal for all viewers.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from zuno.doors.web.problems import Problem
from zuno.doors.web.services import Services
from zuno.doors.zuno import Zuno
from zuno.journal.port import Entry
from zuno.kernel.errors import ZunoError
from zuno.kernel.view import sanitise

POLL_SECONDS: Final = 0.3
BEAT_SECONDS: Final = 15.0
MOST_VIEWERS: Final = 50
MOST_WAITING: Final = 2_000
"""Events that a viewer may be behind; one that is further is cut off, and resumes by its id."""
_PAGE: Final = 200
_HASH_CHARS: Final = 16
_ID: Final = re.compile(r"([0-9]{1,15})-([0-9a-f]{16})")
_NODE: Final = "cycle_"


@dataclass(frozen=True, slots=True)
class Frame:
    """Lines of the stream. `seq`: of the entry they tell of; None: not kept."""

    seq: int | None
    text: bytes


@dataclass(eq=False, slots=True)
class _Viewer:
    loop: asyncio.AbstractEventLoop
    lasts: Callable[[], bool]
    """Whether the login of this viewer is still valid."""
    waiting: asyncio.Queue[Frame | None] = field(default_factory=lambda: asyncio.Queue(MOST_WAITING))
    """None: the stream ends."""

    def put(self, frame: Frame | None) -> None:
        try:
            self.waiting.put_nowait(frame)
        except asyncio.QueueFull:
            while not self.waiting.empty():
                self.waiting.get_nowait()
            self.waiting.put_nowait(None)


def event_id(entry: Entry) -> str:
    return f"{entry.seq}-{entry.hash[:_HASH_CHARS]}"


def write_frame(event: str, data: Mapping[str, Any], id_: str | None = None) -> bytes:
    head = f"id: {id_}\n" if id_ is not None else ""
    return f"{head}event: {event}\ndata: {json.dumps(data)}\n\n".encode()


class EventFeed:
    """Sends events to all viewers; `publish` may be called from any thread."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._viewers: set[_Viewer] = set()
        self._reader: asyncio.Task[None] | None = None
        self._guard: asyncio.Task[None] | None = None
        self._own: set[str] = set()
        """Debates of this server, whose thoughts are told as they are had."""

    @property
    def viewers(self) -> int:
        return len(self._viewers)

    def publish(self, event: str, data: Mapping[str, Any]) -> None:
        """To everybody who watches now; it is not kept."""
        self._send(Frame(None, write_frame(event, data)))

    def expect(self, request_id: str) -> None:
        """A debate that tells its thoughts by itself."""
        self._own.add(request_id)

    def close(self) -> None:
        """End every stream; browsers come back by themselves."""
        for viewer in tuple(self._viewers):
            viewer.loop.call_soon_threadsafe(viewer.put, None)

    async def open(self, last_id: str | None, lasts: Callable[[], bool] = lambda: True) -> AsyncIterator[bytes]:
        """The stream after an event, or from now on, while it `lasts`. `Problem` for an id of another journal."""
        if len(self._viewers) >= MOST_VIEWERS:
            raise Problem(503, f"{MOST_VIEWERS} streams are open; close a tab.")
        viewer = _Viewer(asyncio.get_running_loop(), lasts)
        self._viewers.add(viewer)
        with ExitStack() as unless_opened:
            unless_opened.callback(self._viewers.discard, viewer)
            after = await self._find_start(last_id)
            if self._reader is None or self._reader.done():
                newest = await self._find_newest()
                self._reader = asyncio.create_task(self._read(0 if newest is None else newest.seq))
            if self._guard is None or self._guard.done():
                self._guard = asyncio.create_task(self._end_logins())
            unless_opened.pop_all()
        return self._stream(viewer, after)

    async def _stream(self, viewer: _Viewer, after: int | None) -> AsyncIterator[bytes]:
        try:
            yield b"retry: 1000\n\n"
            if after is None and (newest := await self._find_newest()) is not None:
                yield write_frame("start", {}, event_id(newest))  # cut off before the first event: resume here
            sent = after or 0
            while after is not None:
                entries = await self._since(sent)
                for entry in entries:
                    yield (await self._describe(entry, known=False)).text
                    sent = entry.seq
                if len(entries) < _PAGE or not viewer.lasts():
                    break
            while True:
                try:
                    async with asyncio.timeout(BEAT_SECONDS):
                        frame = await viewer.waiting.get()
                except TimeoutError:
                    yield b": beat\n\n"
                    continue
                if frame is None:
                    return
                if frame.seq is None or frame.seq > sent:
                    yield frame.text
        finally:
            self._viewers.discard(viewer)

    async def _read(self, start: int) -> None:
        """Follow the journal while there are viewers."""
        seq = start
        while self._viewers:
            with suppress(ZunoError, Problem):  # a store that does not answer is asked again
                for entry in await self._since(seq):
                    self._send(await self._describe(entry, known=entry.request_id in self._own))
                    seq = entry.seq
            await asyncio.sleep(POLL_SECONDS)

    async def _end_logins(self) -> None:
        """Close the streams of logins that are over; by itself, for the journal may keep its reader waiting."""
        while self._viewers:
            for viewer in tuple(self._viewers):
                if not viewer.lasts():
                    viewer.put(None)
            await asyncio.sleep(POLL_SECONDS)

    def _send(self, frame: Frame) -> None:
        for viewer in tuple(self._viewers):
            viewer.loop.call_soon_threadsafe(viewer.put, frame)

    async def _since(self, seq: int, most: int = _PAGE) -> list[Entry]:
        return await self._services.ask(lambda zuno: zuno.audit().since(seq, most), refresh=False)

    async def _find_newest(self) -> Entry | None:
        return await self._services.ask(lambda zuno: zuno.audit().newest(), refresh=False)

    async def _find_start(self, last_id: str | None) -> int | None:
        if last_id is None or not last_id.strip():
            return None
        match = _ID.fullmatch(last_id.strip())
        seq = 0 if match is None else int(match[1])
        entries = await self._since(seq - 1, 1) if seq > 0 else []
        if not entries or event_id(entries[0]) != last_id.strip():
            raise Problem(409, "Last-Event-ID is of another home, or of a journal that is gone; begin without it.")
        return seq

    async def _describe(self, entry: Entry, *, known: bool) -> Frame:
        """`known`: its thoughts were told already."""
        parts = [] if known else await self._tell_thoughts(entry)
        parts += [write_frame(event, data) for event, data in _meaning(entry)]
        told = {"seq": entry.seq, "at": entry.at, "kind": entry.kind, "requestId": entry.request_id}
        parts.append(write_frame("entry", told | {"role": sanitise(entry.author.role)}, event_id(entry)))
        return Frame(entry.seq, b"".join(parts))

    async def _tell_thoughts(self, entry: Entry) -> list[bytes]:
        if entry.request_id is None or not entry.request_id.startswith("req_"):
            return []

        async def read(zuno: Zuno) -> list[bytes]:
            request_id, thoughts = entry.request_id or "", await zuno.archive().thoughts_in(entry)
            described = (describe_thought(request_id, each.role, each.round, each.seq, each.text) for each in thoughts)
            return [write_frame("thought", thought) for thought in described]

        try:
            return await self._services.ask(read, refresh=False)
        except ZunoError:  # of a message that cannot be read any more: it is an entry all the same
            return []


def describe_thought(request_id: str, role: str, round_: int, seq: int, text: str) -> dict[str, Any]:
    """`key`: the same for the same thought, if it is sent twice."""
    key = f"{round_}.{role}.{seq}"
    return {"id": request_id, "role": str(role), "round": round_, "key": key, "text": sanitise(text)}


def _meaning(entry: Entry) -> list[tuple[str, dict[str, Any]]]:
    payload, request = entry.payload, entry.request_id
    match entry.kind:
        case "plan" as kind:
            plan = str(payload.get("planId"))
            return [("debate", {"id": request, "planId": plan}), ("plan", {"planId": plan, "kind": kind})]
        case "flow_failed":
            inner = payload.get("payload")
            reason = inner.get("reason") if isinstance(inner, Mapping) else None
            return [("debate", {"id": request, "planId": None, "error": sanitise(str(reason or ""))})]
        case "choice_refused":
            return [("debate", {"id": request, "planId": None, "error": sanitise(str(payload.get("why") or ""))})]
        case "cycle_started":
            return [("run_started", {"runId": request, "symbol": payload.get("symbol"), "mode": payload.get("mode")})]
        case "cycle_ended":
            return [("run_ended", {"runId": request, "ruling": payload.get("ruling"), "veto": payload.get("veto")})]
        case kind if kind.startswith(_NODE):
            return [("node", _describe_node(request, kind.removeprefix(_NODE), payload))]
        case kind if kind.startswith(("plan_", "step_")) and kind != "plan_ready":
            return [("plan", {"planId": payload.get("planId"), "kind": kind, "state": payload.get("state")})]
        case _:
            return []


def _describe_node(run: str | None, node: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    voice = payload.get("voice")
    known: Mapping[str, Any] = voice if isinstance(voice, Mapping) else {}
    skipped = payload.get("skipped")
    state = "skipped" if skipped is not None else "speaks" if known else "done"
    note = skipped if skipped is not None else known.get("why") or known.get("model") or ""
    told = {"runId": run, "node": node, "state": state, "source": known.get("source"), "usd": known.get("usd")}
    return told | {"note": sanitise(str(note))}
