"""Every vendor is told the same thing in its own words, and nothing is loaded before somebody asks."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.wire.model_server import anthropic, chat, gemini, serving
from zuno.adapters.model import vendors
from zuno.adapters.model.registry import BY_ORDER, NO_KEY, ModelKeys, open_models, usable_chain
from zuno.adapters.model.vendors import Price, VendorModel
from zuno.kernel.errors import UsageError
from zuno.llm.names import DEFAULT_MODELS, THINKING_TOKENS, ModelId, Vendor, parse_model, parse_model_list
from zuno.llm.port import Failed, Image, ModelRequest, Turn

KEY = "sk-wire-0123456789"
PICTURE = b"\x89PNG\r\n\x1a\n not really"
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "share": {"type": "integer", "minimum": 3, "maximum": 97},
        "reason": {"type": "string", "maxLength": 281},
    },
    "required": ["share", "reason"],
}
REQUEST = ModelRequest(
    role="critic",
    round=1,
    attempt=2,
    system="You judge ranges.",
    turns=(Turn("user", "Judge this."), Turn("model", "prose"), Turn("user", "Your answer cannot be used.")),
    shape="Verdict",
    schema=json.dumps(SCHEMA),
    max_output_tokens=321,
    timeout=5.0,
    images=(Image("image/png", PICTURE),),
)
WIRES: dict[str, tuple[str, Callable[[str], bytes], str, str]] = {
    # the model, how it answers, the path below its base, where the limit on output stands
    "openai": ("gpt-4o-mini", chat, "/v1/chat/completions", "max_completion_tokens"),
    "anthropic": ("claude-sonnet-4-6", anthropic, "/v1/messages", "max_tokens"),
    "old anthropic": ("claude-3-haiku-20240307", anthropic, "/v1/messages", "max_tokens"),
    "google": (
        "gemini-3-flash-preview",
        gemini,
        "/models/gemini-3-flash-preview:generateContent",
        "maxOutputTokens",
    ),
    "url": ("BASE/v1#llama", chat, "/v1/chat/completions", "max_tokens"),
}


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
async def test_everything_is_told(wire: str) -> None:
    name, says, path, limit = WIRES[wire]
    async with serving(lambda heard: says("{}")) as server:
        base = server.origin + ("/v1" if wire == "openai" else "")
        model_id = parse_model(name.replace("BASE", server.origin))
        model = VendorModel(model_id, KEY, base_url=None if model_id.vendor is Vendor.URL else base)
        await model.reply(REQUEST)
        await model.close()
    (heard,) = server.heard
    text = json.dumps(heard.body)
    assert heard.path.split("?")[0].endswith(path)
    room = THINKING_TOKENS if wire == "google" else 0
    assert f'"{limit}": {321 + room}' in text
    assert b64encode(PICTURE).decode() in text
    assert text.count(b64encode(PICTURE).decode()) == 1
    for told in ("You judge ranges.", "share", "reason"):
        assert told in text
    positions = [text.index(turn.text) for turn in REQUEST.turns]
    assert positions == sorted(positions)
    # The bounds reach the model: as schema where the vendor takes them, else as a note in it.
    assert "97" in text
    assert "281" in text
    assert KEY in json.dumps(heard.headers)
    assert KEY not in heard.path + text


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gemini-3-flash-preview", {"thinking_level": "LOW"}),
        ("gemini-3.1-pro-preview", {"thinking_level": "LOW"}),
        ("gemini-2.5-flash", {"thinking_budget": 2048}),
        ("gemini-2.0-flash", {}),
    ],
)
async def test_a_gemini_thinks_little_and_has_room_for_it(name: str, told: dict[str, Any]) -> None:
    """What it thinks counts against the limit: without room for it the answer would be cut."""
    async with serving(lambda heard: gemini("{}")) as server:
        model = VendorModel(parse_model(name), KEY, base_url=server.origin)
        await model.reply(REQUEST)
        await model.close()
    config = server.heard[0].body["generationConfig"]
    thinking = config.get("thinkingConfig", {})
    assert {each: value for each, value in thinking.items() if each != "include_thoughts"} == told
    assert config["maxOutputTokens"] == 321 + THINKING_TOKENS
    assert told.get("thinking_budget", 0) < THINKING_TOKENS


async def test_a_server_by_url_gets_the_schema_as_it_is() -> None:
    async with serving(lambda heard: chat("{}")) as server:
        model = VendorModel(parse_model(f"{server.origin}/v1#llama"), None)
        await model.reply(REQUEST)
        await model.close()
    body = server.heard[0].body
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert body["model"] == "llama"
    assert body["temperature"] == 0
    assert KEY not in json.dumps(server.heard[0].headers)


@pytest.mark.parametrize(
    ("model", "price", "expected"),
    [
        ("gpt-4o-mini", None, Decimal("0.75")),
        ("claude-sonnet-4-6", None, Decimal(18)),
        ("ollama:llama3.2", None, Decimal(0)),
        ("http://localhost:8000/v1#m", None, Decimal(0)),
        ("http://[::1]:8000/v1#m", None, Decimal(0)),
        ("https://models.example/v1#llama", None, None),
        ("http://192.168.0.7:8000/v1#llama", None, None),
        ("gpt-99-nobody-knows", None, None),
        ("https://models.example/v1#llama", Price(Decimal("0.1"), Decimal("0.4")), Decimal("0.5")),
        ("gpt-4o-mini", Price(Decimal(0), Decimal(1)), Decimal(1)),
    ],
)
async def test_what_a_million_tokens_each_way_cost(model: str, price: Price | None, expected: Decimal | None) -> None:
    assert await VendorModel(parse_model(model), None, price=price).price(1_000_000, 1_000_000) == expected


async def test_without_the_libraries_a_model_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendors, "find_spec", lambda name: None)
    model = VendorModel(parse_model("gpt-4o-mini"), KEY)
    await model.ready()
    reply = await model.reply(REQUEST)
    assert isinstance(reply, Failed)
    assert (reply.kind, await model.price(9, 9)) == ("unavailable", 0)
    assert "`make models`" in reply.why
    await model.close()


OPENAI, CLAUDE, GEMINI, LOCAL = map(
    parse_model, ("gpt-4o-mini", "claude-sonnet-4-6", "gemini-3-flash-preview", "ollama:llama3.2")
)


@pytest.mark.parametrize(
    ("chain", "vendors", "usable"),
    [
        ((OPENAI,), [Vendor.OPENAI], (OPENAI,)),
        ((OPENAI, CLAUDE), [Vendor.OPENAI, Vendor.ANTHROPIC], (OPENAI, CLAUDE)),
        ((CLAUDE, OPENAI), [Vendor.OPENAI], (OPENAI,)),
        ((OPENAI, LOCAL), [], (LOCAL,)),
        ((OPENAI,), [], ()),
        ((OPENAI,), [Vendor.GOOGLE], (ModelId(Vendor.GOOGLE, DEFAULT_MODELS[Vendor.GOOGLE]),)),
        ((CLAUDE,), [Vendor.OPENAI, Vendor.GOOGLE], (OPENAI,)),
    ],
)
def test_which_models_the_keys_can_buy(
    chain: tuple[ModelId, ...], vendors: list[Vendor], usable: tuple[ModelId, ...]
) -> None:
    assert usable_chain(chain, ModelKeys(dict.fromkeys(vendors, KEY))) == usable


async def test_seats_follow_the_table() -> None:
    keys = ModelKeys({Vendor.OPENAI: KEY})
    registry = open_models({"critic": (OPENAI, LOCAL), "scout": (OPENAI,)}, keys)
    critic, scout = registry.models_for("critic", 0), registry.models_for("scout", 3)
    assert [model.name for model in critic.models] == ["gpt-4o-mini", "http://127.0.0.1:11434/v1#llama3.2"]
    assert critic.models[0] is scout.models[0]
    assert registry.models_for("stranger", 0).models == ()
    assert KEY not in repr(keys)
    await registry.close()


def test_without_a_key_or_by_order_nobody_sits() -> None:
    table = {"critic": (OPENAI,)}
    assert open_models(table, ModelKeys()).models_for("critic", 0).why == NO_KEY
    ordered = open_models(table, ModelKeys({Vendor.OPENAI: KEY}), deterministic=True).models_for("critic", 0)
    assert (ordered.models, ordered.why) == ((), BY_ORDER)


def test_a_key_goes_to_its_own_host_and_never_in_the_clear() -> None:
    keys = ModelKeys({Vendor.OPENAI: "openai-key"}, {"models.example": "their-key", "127.0.0.1": "local-key"})
    assert keys.of(parse_model("https://models.example:8443/v1#m")) == "their-key"
    assert keys.of(parse_model("https://other.example/v1#m")) is None
    assert keys.of(parse_model("http://127.0.0.1:1/v1#m")) == "local-key"
    with pytest.raises(UsageError, match="unencrypted"):
        keys.of(parse_model("http://models.example/v1#m"))


SILENT = """
import asyncio, sys
from zuno.adapters.model.registry import ModelKeys, open_models
from zuno.llm.names import Vendor, parse_model_list
import zuno.llm.ask
ours = ModelKeys({Vendor.OPENAI: "k"})
for keys, deterministic in ((ModelKeys(), False), (ours, True), (ours, False)):
    registry = open_models({"critic": parse_model_list("gpt-4o-mini")}, keys, deterministic=deterministic)
    registry.models_for("critic", 0)
    asyncio.run(registry.close())
print([name for name in ("pydantic_ai", "openai", "anthropic", "google.genai", "genai_prices") if name in sys.modules])
"""


@pytest.mark.slow
def test_no_vendor_is_imported_before_it_is_asked() -> None:
    done = subprocess.run([sys.executable, "-c", SILENT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("text", "vendor", "name", "url"),
    [
        ("gpt-4o-mini", Vendor.OPENAI, "gpt-4o-mini", ""),
        (" o3-mini ", Vendor.OPENAI, "o3-mini", ""),
        ("openai:my-tuned:v1", Vendor.OPENAI, "my-tuned:v1", ""),
        ("claude-sonnet-4-6", Vendor.ANTHROPIC, "claude-sonnet-4-6", ""),
        ("gemini-3-flash-preview", Vendor.GOOGLE, "gemini-3-flash-preview", ""),
        ("ollama:llama3.2:1b", Vendor.URL, "llama3.2:1b", "http://127.0.0.1:11434/v1"),
        ("http://127.0.0.1:11434/v1#llama3.2", Vendor.URL, "llama3.2", "http://127.0.0.1:11434/v1"),
        ("https://h.example/v1/#meta-llama/Llama-3", Vendor.URL, "meta-llama/Llama-3", "https://h.example/v1"),
    ],
)
def test_a_name_says_who_runs_it(text: str, vendor: Vendor, name: str, url: str) -> None:
    model_id = parse_model(text)
    assert model_id == ModelId(vendor, name, url)
    assert parse_model(str(model_id) if url or (vendor is Vendor.OPENAI and "gpt" in name) else text) == model_id


@pytest.mark.parametrize(
    "text",
    [
        "",
        "llama",
        "http://h/v1",
        "http://h/v1#",
        "ftp://h/v1#m",
        "https://user:SECRETKEY@h/v1#m",
        "https://h/v1?key=SECRETKEY#m",
        "https://SECRETKEY@h#m",
        "gpt-4 o",
        "gpt-4\n",
        "ollama:",
        "https://h/v1#a b",
    ],
)
def test_a_name_nobody_can_read_is_refused_without_its_secret(text: str) -> None:
    if text == "gpt-4\n":
        assert parse_model(text).name == "gpt-4"
        return
    with pytest.raises(UsageError) as refused:
        parse_model(text)
    assert "SECRETKEY" not in str(refused.value)


def test_a_chain_keeps_its_order_and_names_each_once() -> None:
    chain = parse_model_list("claude-x, gpt-4o-mini,,claude-x ,ollama:m")
    assert [str(model_id) for model_id in chain] == ["claude-x", "gpt-4o-mini", "http://127.0.0.1:11434/v1#m"]
    with pytest.raises(UsageError):
        parse_model_list(" , ")


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.9.9.9:1/v1#m", True),
        ("http://LOCALHOST/v1#m", True),
        ("http://127.0.0.1.evil.example/v1#m", False),
        ("http://localhost.evil.example/v1#m", False),
        ("http://0.0.0.0/v1#m", False),
        ("https://h.example/v1#m", False),
    ],
)
def test_what_runs_on_this_machine(url: str, local: bool) -> None:
    assert parse_model(url).loopback is local
