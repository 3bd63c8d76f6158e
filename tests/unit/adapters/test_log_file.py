"""The log of a home: written by every process of it, bounded, without secrets, read back with its tracebacks."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from zuno.adapters import log_file
from zuno.adapters.log_file import log_path, read_log, start_log, stop_log
from zuno.doors.logs import Logs
from zuno.kernel.errors import UsageError

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


def test_a_log_that_grew_too_long_is_set_aside_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "MAX_BYTES", 400)
    for number in range(40):
        LOG.info("line %d", number)
    kept = sorted(path.name for path in log_path(home).parent.iterdir())
    assert kept == ["zuno.log", "zuno.log.1"]
    assert all(path.stat().st_size < 600 for path in log_path(home).parent.iterdir())
    assert read_log(home)[-1].text == "line 39"


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
