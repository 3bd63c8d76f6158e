"""Checks: what is raised is a failure, what is off fails only before money is traded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from pydantic import SecretStr

from zuno.adapters.file_lock import outbox_lock
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.sqlite import SqliteMemoryIndex
from zuno.adapters.store.outbox import SqliteOutbox
from zuno.doors.doctor import Check, CheckView, Doctor
from zuno.doors.export import ExportView, to_csv
from zuno.kernel.errors import Unavailable
from zuno.kernel.notify import Notice, NoticeKind, NoticeLabel, Severity
from zuno.kernel.units import Millis, Seconds
from zuno.settings import Settings
from zuno.wiring.application import Application
from zuno.wiring.doctor import build_memory_check, build_push_check
from zuno.wiring.outbox import PushSources, build_pushes


def check(state: str, *, needed_live: bool = False) -> Check:
    async def look() -> Sequence[CheckView]:
        if state == "raise":
            raise Unavailable("nobody answered")
        return [CheckView.model_validate({"topic": "thing", "state": state, "text": "looked at"})]

    return Check("thing", look, "mend it", needed_live)


async def test_what_fails_and_what_may_be_off() -> None:
    assert (await Doctor([check("ok"), check("warn"), check("off", needed_live=True)]).examine()).ok
    assert not (await Doctor([check("off", needed_live=True)]).examine(live=True)).ok
    assert (await Doctor([check("off")]).examine(live=True)).ok
    failed = await Doctor([check("raise"), check("ok")]).examine()
    assert not failed.ok
    assert [(line.state, line.advice) for line in failed.checks] == [("fail", "mend it"), ("ok", "")]


async def test_a_new_home_is_ready_offline(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    zuno = Application(Settings(home=home))
    view = await zuno.doctor().examine()
    assert view.ok
    assert {line.topic for line in view.checks} >= {
        "home",
        "disk",
        "store",
        "keys",
        "market",
        "models",
        "chains",
        "memory",
        "mandate",
    }
    assert not (await zuno.doctor().examine(live=True)).ok
    home.chmod(0o755)
    open_home = await zuno.doctor().examine()
    assert [line.state for line in open_home.checks if line.topic == "home"] == ["warn"]
    await zuno.close()


@pytest.mark.slow
async def test_pushes_say_what_is_not_set_what_waits_and_who_sends(tmp_path: Path) -> None:
    box = SqliteOutbox(tmp_path)

    async def states(**given: object) -> list[tuple[str, str]]:
        settings = Settings(home=tmp_path, **given)
        found = await build_push_check(settings, lambda: box, lambda: Millis(9_000_000)).look()
        return [(line.topic, line.state) for line in found]

    assert await states() == [("pushes", "off"), ("outbox", "ok")]
    whole = {"telegram_bot_token": "1:a", "telegram_chat_id": "11", "telegram_owners": (11,)}
    assert await states(**whole) == [("pushes", "ok"), ("outbox", "ok")]
    assert await states(telegram_chat_id="11") == [("pushes", "warn"), ("outbox", "ok")]
    assert await states(telegram_bot_token="1:a") == [("pushes", "warn"), ("pushes", "warn"), ("outbox", "ok")]
    assert await states(**whole | {"telegram_chat_id": "@desk"}) == [("pushes", "warn"), ("outbox", "ok")]
    notice = Notice(NoticeKind.ALERT, "Out of range", Severity.WARNING, NoticeLabel.PAPER, Seconds(8_990))
    await box.append(notice, "1")
    assert (await states(**whole))[-1] == ("outbox", "warn")
    with outbox_lock(tmp_path):
        assert (await states(**whole))[-1] == ("outbox", "ok")
        (line,) = [line for line in await look_at(box, tmp_path) if line.topic == "outbox"]
        assert f"process {os.getpid()} sends" in line.text
        assert "0 min old" in line.text
        await box.append(replace(notice, at=Seconds(1)), "2")
        await box.mark_delivered(1, Seconds(9_000))
        assert (await states(**whole))[-1] == ("outbox", "warn")
    await box.close()


async def test_a_desk_says_what_keeps_its_pushes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings, sources = Settings(home=tmp_path, telegram_bot_token=SecretStr("1:a")), cast(PushSources, None)
    push = build_pushes(settings, sources, tell_gaps=True)
    assert push is not None
    await push(asyncio.Event())
    assert "ZUNO_TELEGRAM_CHAT_ID" in capsys.readouterr().err
    assert build_pushes(settings, sources) is None


async def look_at(box: SqliteOutbox, home: Path) -> Sequence[CheckView]:
    return await build_push_check(Settings(home=home), lambda: box, lambda: Millis(9_000_000)).look()


async def test_memory_that_is_damaged_or_behind_the_journal_is_told(tmp_path: Path) -> None:
    async def line(store: Path, missing: bool = False) -> str:
        index = SqliteMemoryIndex(store, HashedEmbedder())
        book = Book({"pm_1": None}) if missing else Book({})
        (found,) = await build_memory_check(lambda: index, lambda: book).look()  # type: ignore[arg-type, return-value]
        return found.state

    assert await line(tmp_path / "none.db") == "ok"
    assert await line(tmp_path / "none.db", missing=True) == "warn"
    (tmp_path / "damaged.db").write_bytes(b"no database at all" * 1_000)
    assert await line(tmp_path / "damaged.db") == "warn"


class Book:
    def __init__(self, written: dict[str, object]) -> None:
        self._written = written

    async def read(self) -> dict[str, object]:
        return self._written


def test_a_strangers_name_is_no_formula() -> None:
    view = ExportView(what="lp", columns=("name", "result"), rows=(("=1+1", "-12.5"), ("a,b", "")))
    assert to_csv(view) == 'name,result\n\'=1+1,-12.5\n"a,b",\n'
