"""Every knob is read once, and what cannot be read is refused by the name of its variable."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from zuno.kernel.errors import UsageError
from zuno.lp.model.chains import CHAINS
from zuno.settings import read_settings, variables

KNOWN_TO_USERS = """
OPENAI_API_KEY ZUNO_AGENT_MODEL ZUNO_DETERMINISTIC ZUNO_MAX_DEBATE_ROUNDS ZUNO_RISK_PROFILE ZUNO_CHAIN_ID
ZUNO_MAINNET_RPC_URL ZUNO_OPTIMISM_RPC_URL ZUNO_BASE_RPC_URL ZUNO_ARBITRUM_RPC_URL ZUNO_SEPOLIA_RPC_URL
ZUNO_BASE_SEPOLIA_RPC_URL ZUNO_ARBITRUM_SEPOLIA_RPC_URL ZUNO_UNICHAIN_SEPOLIA_RPC_URL ZUNO_AXL_CLI_PEER_ID
ZUNO_AXL_SCOUT_PEER_ID ZUNO_AXL_STRATEGIST_PEER_ID ZUNO_AXL_CRITIC_PEER_ID ZUNO_AXL_ARBITER_PEER_ID
ZUNO_AXL_CLI_API_URL ZUNO_AXL_SCOUT_API_URL ZUNO_AXL_STRATEGIST_API_URL ZUNO_AXL_CRITIC_API_URL
ZUNO_AXL_ARBITER_API_URL ZUNO_AGENT_WALLET_ADDRESS ZUNO_MONITOR_INTERVAL_MS ZUNO_TELEGRAM_BOT_TOKEN
ZUNO_TELEGRAM_CHAT_ID ZUNO_TELEGRAM_API_BASE_URL ZUNO_HOME
""".split()

REFUSED = {
    "ZUNO_CHAIN_ID": "777",
    "ZUNO_BASE_RPC_URL": "ftp://node",
    "ZUNO_ARBITRUM_RPC_URL": "https://one.example,,two",
    "ZUNO_RISK_PROFILE": "yolo",
    "ZUNO_MAX_DEBATE_ROUNDS": "two",
    "ZUNO_MONITOR_INTERVAL_MS": "10",
    "ZUNO_DETERMINISTIC": "perhaps",
    "ZUNO_AGENT_WALLET_ADDRESS": "0x123",
    "ZUNO_AXL_SCOUT_PEER_ID": "zz",
    "ZUNO_TELEGRAM_API_BASE_URL": "telegram",
    "ZUNO_RPC_TIMEOUT_SECONDS": "0",
    "ZUNO_BINANCE_URL": "wss://fstream.binance.com",
    "ZUNO_BINANCE_STREAM_URL": "https://fapi.binance.com",
    "ZUNO_NEWS_CHANNELS": "coin_wire,not a name",
}


def test_every_name_users_know_is_a_setting() -> None:
    assert set(KNOWN_TO_USERS) <= variables().keys()


def test_every_chain_has_its_rpc_variable() -> None:
    for chain in CHAINS:
        assert chain.rpc_url_variable in variables()


@pytest.mark.parametrize("name", REFUSED)
def test_a_malformed_value_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, REFUSED[name])
    with pytest.raises(UsageError, match=name):
        read_settings(os.environ)


@pytest.mark.parametrize("role", ["CLI", "SCOUT", "STRATEGIST", "CRITIC", "ARBITER"])
@pytest.mark.parametrize("port", ["65536", "99999", "1", "0", "-1", "http"])
def test_a_node_has_a_port_that_there_is(monkeypatch: pytest.MonkeyPatch, role: str, port: str) -> None:
    name = f"ZUNO_AXL_{role}_API_URL"
    monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
    with pytest.raises(UsageError, match=f"{name}.*2 to 65535"):
        read_settings(os.environ)
    monkeypatch.setenv(name, "http://127.0.0.1:65535/")
    assert getattr(read_settings(os.environ), name.removeprefix("ZUNO_").lower()) == "http://127.0.0.1:65535"


@pytest.mark.parametrize("url", ["http://[::1]:9002", "http://[::ffff:127.0.0.1]:9002", "https://[fe80::1]:9002/"])
def test_a_node_is_not_asked_over_ipv6_where_it_does_not_listen(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("ZUNO_AXL_CLI_API_URL", url)
    with pytest.raises(UsageError, match=r"ZUNO_AXL_CLI_API_URL.*IPv6"):
        read_settings(os.environ)


def test_a_malformed_url_is_not_echoed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZUNO_BASE_RPC_URL", "wss://node.example/SECRETKEY")
    with pytest.raises(UsageError) as refused:
        read_settings(os.environ)
    assert "SECRETKEY" not in str(refused.value)
    assert "SECRETKEY" not in repr(refused.value.__cause__)


@pytest.mark.slow
def test_an_unknown_name_is_refused_and_a_near_one_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZUNO_BASE_RPC_URLS", "https://node.example")
    with pytest.raises(UsageError, match=r"ZUNO_BASE_RPC_URLS .* ZUNO_BASE_RPC_URL\?"):
        read_settings(os.environ)


PARTIES = (
    *"BINANCE BYBIT OKX DERIBIT UPBIT COINGECKO FRED YAHOO PERPLEXITY TELEGRAM ANTHROPIC OPENAI GEMINI GOOGLE".split(),
    *"ARBITRUM BASE OPTIMISM MAINNET SEPOLIA UNICHAIN POLYGON".split(),
)
STRANGERS = tuple("KRAKEN COINBASE BITGET KUCOIN BITMEX HUOBI MISTRAL GROQ DISCORD SOLANA INFURA ALPHAVANTAGE".split())
FORMS = "{}_API_KEY {}_API_SECRET {}_ACCESS_KEY {}_URL {}_STREAM_URL {}_RPC_URL FEE_{}_MAKER_PCT {}_BOT_TOKEN".split()


@pytest.mark.parametrize("party", [*PARTIES, *STRANGERS])
def test_no_name_of_another_venue_vendor_or_chain_is_suggested(party: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for form in FORMS:
        name = f"ZUNO_{form.format(party)}"
        if name in variables():
            continue
        monkeypatch.setenv(name, "secret")
        with pytest.raises(UsageError) as refused:
            read_settings(os.environ)
        monkeypatch.delenv(name)
        suggested = re.findall(r"[A-Z]+(?:_[A-Z]+)+", str(refused.value))[1:]
        assert all(party in setting.split("_") for setting in suggested), str(refused.value)
        assert not {*PARTIES} - {party} & {part for setting in suggested for part in setting.split("_")}
        assert bool(suggested) is (party in PARTIES), str(refused.value)


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("ZUNO_BYBIT_API_KEYS", ["ZUNO_BYBIT_API_KEY"]),
        ("ZUNO_BINNANCE_API_KEY", ["ZUNO_BINANCE_API_KEY"]),
        ("ZUNO_TELEGRAM_TOKEN", ["ZUNO_TELEGRAM_BOT_TOKEN"]),
        ("ZUNO_ANTHROPIC_API_KEY", ["ANTHROPIC_API_KEY"]),
        ("ZUNO_API_KEY", []),
        ("ZUNO_", []),
    ],
)
def test_what_was_meant_is_named(name: str, suggested: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "secret")
    with pytest.raises(UsageError) as refused:
        read_settings(os.environ)
    assert re.findall(r"[A-Z]+(?:_[A-Z]+)+", str(refused.value).removeprefix(name)) == suggested


def test_secrets_do_not_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZUNO_BASE_RPC_URL", "https://node.example/SECRETKEY")
    monkeypatch.setenv("OPENAI_API_KEY", "SECRETKEY")
    monkeypatch.setenv("ZUNO_TELEGRAM_BOT_TOKEN", "SECRETKEY")
    settings = read_settings(os.environ)
    assert "SECRETKEY" not in repr(settings) + str(settings) + settings.model_dump_json()
    assert settings.rpc_urls("base")[0].get_secret_value().endswith("SECRETKEY")


def test_several_urls_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZUNO_BASE_SEPOLIA_RPC_URL", "https://one.example/a, http://127.0.0.1:8545")
    urls = [url.get_secret_value() for url in read_settings(os.environ).rpc_urls("base-sepolia")]
    assert urls == ["https://one.example/a", "http://127.0.0.1:8545"]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "sim"),
        ({"ZUNO_ARBITRUM_RPC_URL": "https://a.example", "ZUNO_BASE_RPC_URL": "https://b.example"}, "arbitrum"),
        ({"ZUNO_BASE_RPC_URL": "https://b.example"}, "base"),
        ({"ZUNO_BASE_RPC_URL": "https://b.example", "ZUNO_CHAIN_ID": "1"}, "mainnet"),
        ({"ZUNO_CHAIN_ID": "devnet"}, "devnet"),
        ({"ZUNO_CHAIN_ID": "8453"}, "sim"),
        ({"ZUNO_CHAIN_ID": "arbitrum"}, "sim"),
        ({"ZUNO_CHAIN_ID": "sim", "ZUNO_BASE_RPC_URL": "https://b.example"}, "sim"),
    ],
)
def test_the_default_chain(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert read_settings(os.environ).default_chain() == expected


def test_a_home_given_by_hand_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ZUNO_HOME", "/nowhere")
    assert read_settings(os.environ, tmp_path).home == tmp_path
    assert read_settings(os.environ).home == Path("/nowhere")


def test_an_empty_value_is_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZUNO_BASE_RPC_URL", "")
    assert read_settings(os.environ).rpc_urls("base") == ()


def test_channels_are_read_by_commas_and_may_carry_their_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZUNO_NEWS_CHANNELS", "@coin_wire, desk_notes,")
    assert read_settings(os.environ).news_channels == ("coin_wire", "desk_notes")


def test_the_feeds_keys_are_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZUNO_FRED_API_KEY", "fred-secret")
    monkeypatch.setenv("ZUNO_PERPLEXITY_API_KEY", "search-secret")
    settings = read_settings(os.environ)
    assert {"fred-secret", "search-secret"} <= set(settings.secrets())
    assert "-secret" not in repr(settings)


def test_a_key_stands_in_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = '{"main": {"venues": ["okx"], "key": "same", "secret": "s", "passphrase": "p"}}'
    environment = {"ZUNO_HOME": str(tmp_path), "ZUNO_ACCOUNTS": accounts, "ZUNO_OKX_API_KEY": "other"}
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    assert read_settings(environment).accounts["main"].key == "same"
    monkeypatch.setenv("ZUNO_OKX_API_KEY", "same")
    with pytest.raises(UsageError, match="ZUNO_ACCOUNTS") as error:
        read_settings({**environment, "ZUNO_OKX_API_KEY": "same"})
    assert "ZUNO_OKX_API_KEY" in str(error.value)
    assert "same:" not in str(error.value)
