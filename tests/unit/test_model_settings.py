"""The knobs of the models: names, keys, prices and budgets, each refused by name and never echoed."""

from __future__ import annotations

import os
from decimal import Decimal

import pytest

from zuno.kernel.errors import UsageError
from zuno.llm.names import Vendor
from zuno.settings import read_settings

LP = ("scout", "strategist", "critic", "arbiter")
REFUSED = {
    "ZUNO_AGENT_MODEL": ["llama", "http://h/v1", "gpt-4o-mini,nobody", "https://u:SECRETKEY@h/v1#m", " , "],
    "ZUNO_MODEL_KEYS": ["SECRETKEY", "h=", "=SECRETKEY", "https://h=SECRETKEY", "h:8000=SECRETKEY"],
    "ZUNO_MODEL_PRICES": ["gpt-4o-mini", "gpt-4o-mini=1", "nobody=1/2", "gpt-x=a/b", "gpt-x=-1/2", "gpt-x=NaN/1"],
    "ZUNO_MODEL_TIMEOUT_SECONDS": ["0", "-1", "601", "nan"],
    "ZUNO_BUDGET_TOKENS_PER_RUN": ["-1", "many", "1.5"],
    "ZUNO_BUDGET_TOKENS_PER_DAY": ["-1"],
    "ZUNO_BUDGET_USD_PER_RUN": ["-0.01", "NaN", "Infinity", "free"],
    "ZUNO_BUDGET_USD_PER_DAY": ["-1"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in REFUSED.items() for value in values])
def test_what_cannot_be_read_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=name) as refused:
        read_settings(os.environ)
    assert "SECRETKEY" not in str(refused.value)


def test_the_defaults_ask_one_cheap_model_and_limit_everything() -> None:
    settings = read_settings(os.environ)
    table = settings.model_table()
    named = {role: ",".join(map(str, chain)) for role, chain in table.items()}
    assert {named[role] for role in LP} == {"gpt-4o-mini"}
    assert settings.vendor_keys() == {}
    assert 0 < settings.budget_usd_per_run < settings.budget_usd_per_day
    assert 0 < settings.budget_tokens_per_run < settings.budget_tokens_per_day


def test_the_trading_desk_seats_its_own_models_each_before_its_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZUNO_MODEL_MACRO", "ollama:small")
    table = read_settings(os.environ).model_table()
    flash, small = "gemini-3-flash-preview", "http://127.0.0.1:11434/v1#small"
    assert {role: ",".join(map(str, table[role])) for role in table if role not in LP} == {
        "judge": f"claude-sonnet-4-6,{flash}",
        "vlm_geometric": f"gemini-3.1-pro-preview,{flash}",
        "liquidity": flash,
        "chat": flash,
        "synthesis": flash,
        "microstructure": flash,
        "macro": small,
        "meta": small,
        "risk_manager": small,
        "post_mortem": flash,
        "self_correction": f"claude-sonnet-4-6,{flash}",
        "feedback": f"claude-sonnet-4-6,{flash}",
        "rag": flash,
        "rag_extraction": flash,
    }


@pytest.mark.parametrize("alone", ["gpt-4o-mini", "claude-sonnet-4-6"])
@pytest.mark.parametrize("key", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
def test_a_model_of_the_desk_named_alone_has_a_gemini_behind_it(
    monkeypatch: pytest.MonkeyPatch, alone: str, key: str
) -> None:
    monkeypatch.setenv("ZUNO_MODEL_JUDGE", alone)
    monkeypatch.setenv("ZUNO_MODEL_LIQUIDITY", f"{alone},ollama:small")
    monkeypatch.setenv("ZUNO_MODEL_MACRO", "ollama:small")
    monkeypatch.setenv("ZUNO_AGENT_MODEL", alone)

    def seated(role: str) -> list[str]:
        return [str(one) for one in read_settings(os.environ).model_table()[role]]

    assert seated("judge") == [alone]
    monkeypatch.setenv(key, "SECRETKEY")
    assert seated("judge") == [alone, "gemini-3-flash-preview"]
    assert seated("liquidity") == [alone, "http://127.0.0.1:11434/v1#small"]
    assert seated("macro") == ["http://127.0.0.1:11434/v1#small"]
    assert seated("microstructure") == ["gemini-3-flash-preview"]
    assert seated("scout") == [alone]


def test_a_chain_a_url_and_its_price(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://models.example/v1#meta/llama"
    monkeypatch.setenv("ZUNO_AGENT_MODEL", f"claude-sonnet-4-6, {url}, ollama:llama3.2")
    monkeypatch.setenv("ZUNO_MODEL_PRICES", f"{url}=0.10/0.40, ollama:llama3.2=0/0")
    monkeypatch.setenv("ZUNO_BUDGET_USD_PER_DAY", "1.25")
    settings = read_settings(os.environ)
    local = "http://127.0.0.1:11434/v1#llama3.2"
    assert [str(model_id) for model_id in settings.model_table()["critic"]] == ["claude-sonnet-4-6", url, local]
    assert settings.model_prices == {url: (Decimal("0.10"), Decimal("0.40")), local: (Decimal(0), Decimal(0))}
    assert settings.budget_usd_per_day == Decimal("1.25")


def test_keys_are_known_to_wiring_and_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "SECRETKEY-a")
    monkeypatch.setenv("GEMINI_API_KEY", "SECRETKEY-b")
    monkeypatch.setenv("ZUNO_MODEL_KEYS", "Models.Example=SECRETKEY=c, other.example=SECRETKEY-d")
    settings = read_settings(os.environ)
    assert settings.vendor_keys() == {Vendor.ANTHROPIC: "SECRETKEY-a", Vendor.GOOGLE: "SECRETKEY-b"}
    assert {host: key.get_secret_value() for host, key in settings.model_keys.items()} == {
        "models.example": "SECRETKEY=c",
        "other.example": "SECRETKEY-d",
    }
    assert "SECRETKEY" not in repr(settings) + str(settings) + settings.model_dump_json()
    assert {"SECRETKEY-a", "SECRETKEY-b", "SECRETKEY=c", "SECRETKEY-d"} <= set(settings.secrets())


def test_the_newer_name_of_googles_key_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "old")
    monkeypatch.setenv("GOOGLE_API_KEY", "new")
    assert read_settings(os.environ).vendor_keys() == {Vendor.GOOGLE: "new"}


@pytest.mark.parametrize("name", ["BINANCE_MAKER", "BINANCE_TAKER", "UPBIT"])
@pytest.mark.parametrize("value", ["-0.01", "5.1", "nan", "cheap"])
def test_a_fee_is_a_few_per_cent(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"ZUNO_FEE_{name}_PCT", value)
    with pytest.raises(UsageError, match=f"ZUNO_FEE_{name}_PCT"):
        read_settings(os.environ)
