"""The log of a home: written by every process of it, bounded, without secrets, read back with its tracebacks."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from zuno.adapters import log_file
from zuno.adapters.log_file import KEPT_FILES, log_path, read_log, start_log, stop_log
from zuno.doors.logs import Logs
from zuno.kernel.errors import UsageError
from zuno.kernel.logs import current_log_id, log_under, logged_by_id

LOG = logging.getLogger("zuno.trading.watch")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    handler = start_log(tmp_path, ["hush/hush"])
    yield tmp_path
    stop_log(handler)


def test_lines_come_back_with_their_tracebacks_and_without_secrets(home: Path) -> None:
    assert not log_path(home).exists()
    assert read_log(home) == ()
    LOG.info("cycle of %s ended", "BTCUSDT")
    try:
        raise ValueError("at https://venue?key=hush%2Fhush and hush/hush")
    except ValueError:
        LOG.exception("two\nlines")
    LOG.debug("nobody hears this")
    first, second = read_log(home)
    assert (first.level, first.where, first.text) == ("INFO", "trading.watch", "cycle of BTCUSDT ended")
    assert second.level == "ERROR"
    assert second.text.startswith("two\nlines\nTraceback")
    assert "ValueError" in second.text
    assert b"hush" not in log_path(home).read_bytes()


def test_the_devnet_writes_it_too(home: Path) -> None:
    logging.getLogger("zuno_devnet.rpc").error("eth_call failed")
    (line,) = read_log(home)
    assert (line.level, line.where) == ("ERROR", "zuno_devnet.rpc")


def test_a_log_that_grew_too_long_is_set_aside(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "MAX_BYTES", 400)
    for number in range(80):
        LOG.info("line %d", number)
    kept = sorted(path.name for path in log_path(home).parent.iterdir())
    assert kept == ["zuno.lock", "zuno.log", *(f"zuno.log.{number}" for number in range(1, KEPT_FILES + 1))]
    assert all(path.stat().st_size < 600 for path in log_path(home).parent.iterdir())
    assert read_log(home)[-1].text == "line 79"


async def test_a_level_and_a_number_of_lines(home: Path) -> None:
    for number in range(3):
        LOG.info("line %d", number)
        LOG.warning("\x1b[31mwarning %d", number)
    logs = Logs("file", lambda: read_log(home))
    assert [line.text[-1] for line in (await logs.show(2)).lines] == ["2", "2"]
    warned = (await logs.show(50, "WARNING")).lines
    assert [line.level for line in warned] == ["warning"] * 3
    assert "\x1b" not in warned[0].text
    for wrong in ((0, "info"), (10, "loud")):
        with pytest.raises(UsageError):
            await logs.show(*wrong)


@pytest.mark.parametrize("package", ["zuno", "zuno_devnet"])
def test_a_log_that_is_closed_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    ours = logging.getLogger(package)
    monkeypatch.setattr(ours, "handlers", [])
    first, second = start_log(tmp_path, []), start_log(tmp_path / "other", [])
    stop_log(first)
    assert second in ours.handlers
    stop_log(second)
    assert ours.handlers == []


@pytest.mark.parametrize("as_json", [False, True])
def test_lines_carry_the_ids_they_were_logged_under_in_either_form(tmp_path: Path, as_json: bool) -> None:
    handler = start_log(tmp_path, ['hush"hush'], json_lines=as_json)
    try:
        LOG.info("[run_c0ffee00] is what a stranger wrote")
        with log_under("http_0a1b2c3d4e5f"), log_under("run_c0ffee00"), log_under("run_c0ffee00"):
            LOG.info('hush"hush and a\nsecond line')
        with log_under("../../etc 0x39"):
            LOG.info("after")
    finally:
        stop_log(handler)
    stranger, within, after = read_log(tmp_path)
    assert (stranger.id, stranger.text) == ("", "[run_c0ffee00] is what a stranger wrote")
    assert (within.id, within.text) == ("http_0a1b2c3d4e5f/run_c0ffee00", "*** and a\nsecond line")
    assert (after.id, after.text) == ("", "after")
    content = log_path(tmp_path).read_text()
    assert "hush" not in content
    if as_json:
        assert [json.loads(line)["text"] for line in content.splitlines()] == [stranger.text, within.text, "after"]


def test_a_file_of_both_forms_and_a_cut_line_is_read(tmp_path: Path) -> None:
    for as_json in (False, True):
        handler = start_log(tmp_path, [], json_lines=as_json)
        LOG.warning("as %s", as_json)
        stop_log(handler)
    with log_path(tmp_path).open("a") as file:
        file.write('{"at": "2026-01-01T00:00:00.000Z", "lev\n{"at": 1, "level": 2, "where": 3, "text": 4, "id": 5}\n')
    assert [line.text for line in read_log(tmp_path)] == ["as False", "as True"]


async def test_an_id_goes_with_the_tasks_that_were_begun_under_it() -> None:
    class Plans:
        @logged_by_id
        async def apply(self, plan: str) -> str:
            return await asyncio.create_task(read())

    async def read() -> str:
        return current_log_id()

    assert await Plans().apply("plan_00000000beef") == "plan_00000000beef"
    assert current_log_id() == ""


WRITER = """
import logging, sys
from pathlib import Path
from zuno.adapters import log_file
log_file.MAX_BYTES = 8_000
log_file.KEPT_FILES = 60
handler = log_file.start_log(Path(sys.argv[1]), [], json_lines=sys.argv[2] == "1")
for number in range(400):
    logging.getLogger("zuno.writer").info("%s:%d %s", sys.argv[2], number, "x" * 40)
"""


def test_no_line_is_lost_where_several_processes_rotate_one_file(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(number)]) for number in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    files = list(log_path(tmp_path).parent.glob("zuno.log*"))
    assert len(files) > 5
    assert min(file.stat().st_size for file in files if file.suffix != ".log") > 8_000, "none is set aside twice"
    lines = [line for file in files for line in file.read_text().splitlines()]
    assert len(lines) == 3 * 400
    assert len({line.partition(":")[2] for line in lines if "{" in line}) == 400
    assert max(file.stat().st_size for file in files) < 4 * 8_000, "others write on while one renames"
