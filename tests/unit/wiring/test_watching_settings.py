"""How a home is watched, by its settings: figures, pings, the form of the log."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.wire.account_home import write_account_home
from zuno.adapters.log_file import log_path
from zuno.settings import Settings
from zuno.wiring.application import Application


async def test_the_figures_of_a_home_with_a_past(tmp_path: Path) -> None:
    await write_account_home(tmp_path)
    zuno = Application(Settings(home=tmp_path, recording="own"))
    try:
        text = (await zuno.metrics().write()).decode()
        equity = (await zuno.account().status()).equity_usd
        assert zuno.metrics() is zuno.metrics()
        await zuno.serve_metrics()  # no port is set: nothing to serve
    finally:
        await zuno.close()
    assert f'zuno_equity_usd{{account="paper"}} {equity}' in text
    assert 'zuno_exposure_usd{account="paper",market="BTCUSDT"} 1200.0' in text
    assert "zuno_journal_size_bytes " in text
    assert "zuno_failed_reads_total{" not in text


async def test_a_home_without_a_market_gets_none_by_being_watched(tmp_path: Path) -> None:
    zuno = Application(Settings(home=tmp_path))
    try:
        text = (await zuno.metrics().write()).decode()
        assert await zuno._recordings.selected_store().spans() == ()
    finally:
        await zuno.close()
    assert "zuno_failed_reads_total{" not in text
    assert 'zuno_active_locks{account="paper",protection="kill_switch"} 0.0' in text


async def test_the_log_has_the_form_that_is_set(tmp_path: Path) -> None:
    zuno = Application(Settings(home=tmp_path, log_format="json"))
    logging.getLogger("zuno.test").info("hello")
    await zuno.close()
    assert json.loads(log_path(tmp_path).read_text())["text"] == "hello"


def test_the_pings_url_is_a_secret() -> None:
    settings = Settings(ping_url="https://hc-ping.com/k3y/zuno-{part}")
    assert settings.describe("ping_url", private=False) == "set"
    assert settings.secrets() == ("https://hc-ping.com/k3y/zuno-{part}",)


@pytest.mark.parametrize(
    "wrong", [{"metrics_host": "all"}, {"metrics_port": 0}, {"ping_url": "hc-ping.com"}, {"log_format": "xml"}]
)
def test_a_setting_that_cannot_be_read_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Settings(**wrong)
