"""`zuno.toml`: the environment wins over it, each value has an origin, each fault a line, and no secret is repeated."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zuno.kernel.errors import UsageError
from zuno.settings import Settings, examine_settings, file_fields, read_settings
from zuno.settings_file import read_wallets, write_template
from zuno.wiring.config import check_config, list_settings, write_config

VALUES = {  # by setting: as the file has it, as the environment has it, and what each means
    "slippage_bps": ("[lp]\nslippage_bps = 11", "22", 11, 22),
    "deterministic": ("[agents]\ndeterministic = true", "false", True, False),
    "risk_profile": ("[lp]\nrisk_profile = 'aggressive'", "conservative", "aggressive", "conservative"),
    "telegram_owners": ("[telegram]\nowners = [1, 2]", "3", (1, 2), (3,)),
    "time_zone": ('[general]\ntime_zone = "Asia/Seoul"', "Europe/Zurich", "Asia/Seoul", "Europe/Zurich"),
    "news_channels": (
        '[feeds]\nnews_channels = ["coin_wire", "@desk_notes"]',
        "abcd",
        ("coin_wire", "desk_notes"),
        ("abcd",),
    ),
    "markets": ('[trading]\nmarkets = ["BTC", "sol/usdt"]', "ETH", ("BTCUSDT", "SOLUSDT"), ("ETHUSDT",)),
    "route_split": ('[routes]\nSPLIT = ["okx:0.7", "upbit:0.3"]', "bybit", ("okx:0.7", "upbit:0.3"), ("bybit",)),
    "model_chat": ('[models]\nchat = "gpt-4o"', "gpt-4.1", "gpt-4o", "gpt-4.1"),
}
ADDRESS, OTHER = "0x" + "Ab" * 20, "0x" + "cd" * 20


def read(home: Path, text: str) -> list[str]:
    (home / "zuno.toml").write_text(text)
    return [str(fault) for fault in examine_settings(os.environ, home).file.faults]


@given(in_file=st.sets(st.sampled_from(sorted(VALUES))), in_environment=st.sets(st.sampled_from(sorted(VALUES))))
def test_the_environment_wins_and_each_origin_is_right(
    in_file: set[str], in_environment: set[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    tables: dict[str, list[str]] = {}
    for name in sorted(in_file):
        table, line = VALUES[name][0].split("\n")
        tables.setdefault(table, []).append(line)
    text = "\n".join(part for table, lines in tables.items() for part in (table, *lines))
    (home / "zuno.toml").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        for name in in_environment:
            patch.setenv(f"ZUNO_{name.upper()}", VALUES[name][1])
        reading = examine_settings(os.environ, home)
    assert not reading.file.faults
    for name, (written, _, from_file, from_environment) in VALUES.items():
        default = Settings.model_fields[name].default
        expected = from_environment if name in in_environment else from_file if name in in_file else default
        value = getattr(reading.settings, name)
        assert value == expected
        line = f"zuno.toml:{text.split(chr(10)).index(written.split(chr(10))[1]) + 1}" if name in in_file else ""
        over = f"environment, over {line}" if line else "environment"
        assert reading.origin(name) == (over if name in in_environment else line or "default")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[lp]\nslipage_bps = 5", 2, "did you mean [lp] slippage_bps?"),
        ("[lpp]\nslippage_bps = 5", 2, "did you mean [lp] slippage_bps?"),
        ("slippage = 5", 1, "did you mean [lp] slippage_bps?"),
        ("[telegram]\nslippage_bps = 5", 2, "did you mean [lp] slippage_bps?"),
        ("[lp]\n\nslippage_bps = 'ten'", 3, "a valid integer"),
        ("[lp]\nslippage_bps = true", 2, "a valid integer"),
        ("[lp]\nslippage_bps = 1e999999999", 2, "a valid integer"),
        ("[lp]\nslippage_bps = " + "9" * 5_000, 2, "a number out of range"),
        ("[lp]\nslippage_bps = 1e99999999999999999999", 2, "a number out of range"),
        ("[lp]\nslippage_bps = 0", 2, "greater than or equal to 1"),
        ("[lp]\nslippage_bps = [5]", 2, "a single value"),
        ("[agents]\ndeterministic = 3", 2, "a valid boolean"),
        ("[budget]\nusd_per_day = nan", 2, "[budget] usd_per_day"),
        ("[general]\ntime_zone = 'Mars/Olympus'", 2, "no time zone"),
        ("[general]\nreporting_currency = 'dollars'", 2, "daily rates"),
        ("[general]\nhome = '/x'", 2, "ZUNO_HOME"),
        ("[wallets]\npassphrase_file = 'secrets/wallet'", 2, "relative path"),
        ("[exchanges]\nbinance_api_key = { file = 'secrets/key' }", 2, "relative path"),
        ("[wallets]\npassphrase_file = '~nobody-here/key'", 2, "~nobody-here"),
        ("[exchanges]\nbinance_api_key = { file = '~nobody-here/key' }", 2, "~nobody-here"),
        ("[exchanges]\nbinance_api_key = { file = '/nowhere/at/all' }", 2, "is not there"),
        (f"[exchanges]\nbinance_api_key = {{ file = '/{'k' * 5_000}' }}", 2, "cannot be read"),
        ("[exchanges]\nbinance_api_key = { vault = 'x' }", 2, "{ env"),
        ("[exchanges]\nbinance_api_key = { env = 3 }", 2, "{ env"),
        ("[exchanges]\nbinance_url = { env = 'X' }", 2, "no secret"),
        ("[lp]\nslippage_bps = 5\ntick_drift = 5\nslippage_bps = 6", 4, "first in line 2"),
        ("slippage_bps = 5\n[lp]\nslippage_bps = 6", 3, "first in line 1"),
        ("[telegram]\nowners = [1]\ntelegram_owners = [2]", 3, "first in line 2"),
        ("[lp]\ntick_drift = 5\n[lp]\nslippage_bps = 5", 3, "no TOML"),
        ("[lp]\nslippage_bps 5", 2, "no TOML"),
        ("[lp]\nallowed_hooks = [\n'0x12',", 2, "no TOML"),
        ("[[lp]]\n", 1, "single brackets"),
        ("[wallets]\nwatched_wallets = [\n'0x12',\n]", 2, "wallet 1 of 1"),
        ("lp.slippage_bps = '", 1, "no TOML"),
        ("[lp]\nslippage_bps = " + "[" * 3_000, 2, "line 2"),
        ("[feeds]\nnews_channels = 2020-01-01", 2, "a single value"),
    ],
)
def test_a_fault_is_named_with_its_line(text: str, line: int, words: str, tmp_path: Path) -> None:
    (fault,) = read(tmp_path, text)
    assert fault.startswith(f"line {line}: ")
    assert words in fault
    with pytest.raises(UsageError, match="zuno config check"):
        read_settings(os.environ, tmp_path)


def test_every_fault_is_named(tmp_path: Path) -> None:
    text = "what = 1\n[lp]\nslippage_bps = 0\nx y\n[models]\nchat = 5\njudge = 'nobody'\n[telegram]\nowners = ['me']"
    assert [fault.split(":")[0] for fault in read(tmp_path, text)] == [f"line {line}" for line in (1, 3, 4, 6, 7, 9)]


def test_a_faulty_file_sets_nothing(tmp_path: Path) -> None:
    read(tmp_path, "[lp]\nslippage_bps = 7\nnonsense = 1")
    reading = examine_settings(os.environ, tmp_path)
    assert (reading.settings.slippage_bps, reading.origin("slippage_bps")) == (50, "default")


def test_a_value_that_the_environment_overrides_is_still_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZUNO_SLIPPAGE_BPS", "9")
    assert read(tmp_path, "[lp]\nslippage_bps = 0")


SECRETS = [field for field in file_fields().values() if field.secret]


@pytest.mark.parametrize("field", SECRETS, ids=lambda field: field.name)
def test_a_secret_in_the_file_is_refused_and_not_repeated(field: object, tmp_path: Path) -> None:
    name, table, key = (getattr(field, each) for each in ("name", "table", "key"))
    for plain in (
        "'https://node.example/v2/SECRETSECRET1'",
        "'postgresql://me:SECRET@host/db'",
        "'SECRET'",
        "['SECRET']",
    ):
        (fault,) = read(tmp_path, f"[{table}]\n{key} = {plain}")
        assert "SECRET" not in fault.replace("write { file", "")
        assert fault.startswith(f"line 2: [{table}] {key}: ")
        with pytest.raises(UsageError) as refused:
            read_settings(os.environ, tmp_path)
        assert "SECRET" not in str(refused.value)
    assert name in Settings.model_fields


@pytest.mark.parametrize(
    "url", ["https://me:secret-word@prices.example/v3", "https://prices.example/v3?key=secret-word"]
)
def test_a_url_with_a_login_is_neither_read_nor_written_nor_shown(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fault,) = read(tmp_path, f"[prices]\ncoingecko_url = '{url}'")
    assert fault.startswith("line 2: ")
    assert "secret-word" not in fault
    (tmp_path / "zuno.toml").unlink()
    monkeypatch.setenv("ZUNO_COINGECKO_URL", url)
    monkeypatch.delenv("ZUNO_SLEEVES")
    assert write_config(tmp_path).ok
    assert "secret-word" not in (tmp_path / "zuno.toml").read_text()
    reading = examine_settings(os.environ, tmp_path)
    assert reading.settings.coingecko_url == url
    assert [line.value for line in list_settings(reading, private=True)] == ["set"]


def test_a_url_without_a_key_is_no_secret(tmp_path: Path) -> None:
    text = "[chains]\nbase_rpc_url = ['http://127.0.0.1:8545', 'https://rpc.example/eth']"
    assert not read(tmp_path, text)
    assert len(read_settings(os.environ, tmp_path).base_rpc_url) == 2


def test_a_secret_comes_from_a_file_or_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "key"
    secret.write_text("from-file\n")
    secret.chmod(0o600)
    monkeypatch.setenv("MY_SECRET", "from-variable")
    text = f"[exchanges]\nbinance_api_key = {{ file = '{secret}' }}\nbinance_api_secret = {{ env = 'MY_SECRET' }}\n"
    assert not read(tmp_path, text + "upbit_access_key = { env = 'NOT_SET' }")
    reading = examine_settings(os.environ, tmp_path)
    assert {"from-file", "from-variable"} == set(reading.settings.secrets())
    assert [note.line for note in reading.file.notes] == [4]
    secret.chmod(0o640)
    (fault,) = read(tmp_path, text)
    assert fault.startswith("line 2: ")
    assert "others" in fault


def _not_utf8(file: Path) -> None:
    file.write_bytes(b"[lp]\nrisk_profile = '\xff'")


def _too_large(file: Path) -> None:
    file.write_bytes(b"#" * 5_000_000)


def _dangling(file: Path) -> None:
    file.symlink_to(file.parent / "nowhere")


def _unreadable(file: Path) -> None:
    file.write_text("")
    file.chmod(0)
    if os.access(file, os.R_OK):
        file.unlink()
        file.symlink_to(file)  # root reads everything; nobody follows a loop


@pytest.mark.parametrize("spoil", [_not_utf8, _too_large, _dangling, Path.mkdir, os.mkfifo, _unreadable])
def test_a_file_that_cannot_be_read_is_refused(spoil: Callable[[Path], None], tmp_path: Path) -> None:
    spoil(tmp_path / "zuno.toml")
    with pytest.raises(UsageError, match="zuno config check"):
        read_settings(os.environ, tmp_path)


def test_a_link_a_mark_and_foreign_line_ends_are_read(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"\xef\xbb\xbf[lp]\r\nslippage_bps = 5 # five\r\ntick_drift = 0\r\n")
    (tmp_path / "zuno.toml").symlink_to(tmp_path / "elsewhere")
    settings = read_settings(os.environ, tmp_path)
    assert (settings.slippage_bps, settings.tick_drift) == (5, 0)


def test_the_template_says_the_defaults(tmp_path: Path) -> None:
    """As it is, and with every comment that is an assignment taken for one."""
    template = write_template(file_fields().values(), {})
    assert not read(tmp_path, template)
    assert not examine_settings(os.environ, tmp_path).file.lines
    whole = re.sub(r"^# (?=[A-Za-z_0-9]+ = )", "", template, flags=re.MULTILINE)
    assert not read(tmp_path, whole)
    reading = examine_settings(os.environ, tmp_path)
    assert reading.file.lines.keys() == file_fields().keys() - {"accounts"}  # a table for each
    assert reading.settings == Settings(home=tmp_path)


@given(names=st.sets(st.sampled_from(sorted(VALUES))))
def test_the_template_takes_the_environment(names: set[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("home")
    template = write_template(file_fields().values(), {name: VALUES[name][1] for name in names})
    assert not read(home, template)
    reading = examine_settings(os.environ, home)
    assert reading.file.values.keys() == names
    assert all(getattr(reading.settings, name) == VALUES[name][3] for name in names)


def test_names_of_one_table_differ() -> None:
    fields = file_fields().values()
    assert len({(field.table, field.key) for field in fields}) == len(fields) == len(Settings.model_fields) - 1


def test_wallets_are_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "wallets.txt"
    file.write_text(
        f"address,label\n# ours\n{ADDRESS} cold store # kept\n\n{OTHER},hot\n0x12\nnonsense\n{ADDRESS[:-1]}\n{OTHER}\n"
    )
    reading = read_wallets(file)
    assert reading.values == {ADDRESS.lower(): "cold store", OTHER: "hot"}
    assert [fault.line for fault in reading.faults] == [6, 7, 8]
    assert [note.line for note in reading.notes] == [9]


def test_the_home_of_nobody_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="~nobody-here"):
        examine_settings(os.environ, Path("~nobody-here/zuno"))
    (tmp_path / "zuno.toml").write_text("[wallets]\nwallets_file = '~nobody-here/wallets'")
    view = check_config(tmp_path, None)
    assert [fault for fault in view.faults if "~nobody-here" in fault] == list(view.faults)
    assert not view.ok


def test_a_missing_list_of_wallets_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_wallets(tmp_path / "wallets.txt")


@pytest.mark.parametrize(
    "line",
    [
        "[trading]\nmarkets = ['BTC', 'BTCUSDT']",
        "[trading]\nmarkets = ['kraken:BTC/USD']",
        f"[trading]\nmarkets = {[f'A{number}' for number in range(51)]}",
        "[routes]\nBINANCE = ['upbit']",  # it carries shorts
        "[routes]\nSPLIT = ['binance:0.7', 'upbit:0.2']",
        "[routes]\nSPLIT = ['binance:0.7', 'upbit']",
        "[routes]\nSPLIT = ['binance', 'binance']",
        "[routes]\nSPLIT = ['binance:nan', 'upbit:0.3']",
        "[routes]\nSPLIT = ['binanse', 'upbit']",
        "[routes]\nOTHER = ['binance']",
    ],
)
def test_markets_and_routes_that_cannot_be_are_faults_of_their_line(tmp_path: Path, line: str) -> None:
    (fault,) = read(tmp_path, line) or ["none"]
    assert fault.startswith("line 2: ")


def test_routes_are_values_with_shares(tmp_path: Path) -> None:
    assert not read(tmp_path, '[routes]\nBINANCE = ["bybit"]\nUPBIT = ["okx-spot"]\nSPLIT = ["okx:0.7", "upbit:0.3"]')
    routes = read_settings(os.environ, tmp_path).routes()
    assert routes.shares == {"BINANCE": {"BYBIT": 1.0}, "UPBIT": {"OKX-SPOT": 1.0}, "SPLIT": {"OKX": 0.7, "UPBIT": 0.3}}
    assert Settings(home=tmp_path).routes().venues == ("BINANCE", "UPBIT")


ACCOUNT = """[accounts.swiss]
venues = ["bybit", "bybit-spot"]
key = { env = "SWISS_KEY" }
secret = { env = "SWISS_SECRET" }
"""


def test_an_account_of_the_file_names_its_keys_and_never_holds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWISS_KEY", "key-of-swiss")
    monkeypatch.setenv("SWISS_SECRET", "secret-of-swiss")
    assert not read(tmp_path, ACCOUNT + "demo = true\n[lp]\nslippage_bps = 11\n")
    settings = read_settings(os.environ, tmp_path)
    account = settings.accounts["swiss"]
    assert (account.venues, account.demo) == (("BYBIT", "BYBIT-SPOT"), True)
    assert {"key-of-swiss", "secret-of-swiss"} <= set(settings.secrets())
    assert "of-swiss" not in settings.describe("accounts", private=True)
    assert "of-swiss" not in repr(settings)
    monkeypatch.delenv("SWISS_KEY")
    assert not read(tmp_path, ACCOUNT)  # a note; whoever trades there is told
    assert read_settings(os.environ, tmp_path).accounts["swiss"].key == ""


@pytest.mark.parametrize(
    "text",
    [
        ACCOUNT.replace("swiss", "paper"),
        ACCOUNT.replace("accounts.swiss", "accounts.'a b'"),
        ACCOUNT.replace('"bybit", "bybit-spot"', '"kraken"'),
        ACCOUNT.replace('"bybit", "bybit-spot"', '"bybit", "okx"'),
        ACCOUNT.replace('"bybit", "bybit-spot"', ""),
        ACCOUNT.replace('{ env = "SWISS_KEY" }', '"key-of-swiss"'),
        ACCOUNT.replace('key = { env = "SWISS_KEY" }\n', ""),
        ACCOUNT.replace('"bybit", "bybit-spot"', '"upbit"') + "demo = true\n",
        ACCOUNT + "leverage = 3\n",
        ACCOUNT + ACCOUNT.replace("swiss", "other"),  # one key in two accounts
        'accounts = \'{"swiss": {"key": "key-of-swiss"}}\'',
    ],
)
def test_a_bad_account_is_a_fault_that_repeats_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("SWISS_KEY", "key-of-swiss")
    monkeypatch.setenv("SWISS_SECRET", "secret-of-swiss")
    faults = read(tmp_path, text)
    assert faults
    assert not any("of-swiss" in fault for fault in faults)
