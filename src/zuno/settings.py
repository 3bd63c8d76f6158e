"""Settings, read once from the environment, which wins, and from `zuno.toml`. `UsageError` names what is wrong."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cache, partial
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic.functional_validators import AfterValidator, BeforeValidator

from zuno import settings_file
from zuno.kernel.accounts import DEMO_ACCOUNT, LIVE_ACCOUNT
from zuno.kernel.errors import UsageError
from zuno.kernel.public_site import parse_proxies, parse_public_url
from zuno.kernel.taxable import parse_currency
from zuno.llm.names import DEFAULT_MODELS, ModelId, Vendor, parse_model, parse_model_list
from zuno.lp.model.chains import CHAINS, chain_named
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol, parse_markets
from zuno.markets.routes import Routes, parse_route
from zuno.markets.venues import Venue
from zuno.pushes.rules import parse_push_modes, parse_quiet_hours, parse_zone

T = TypeVar("T")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_POOL_ID = re.compile(r"0x[0-9a-fA-F]{64}")
_AMOUNT = re.compile(r"\d{1,12}(?:\.\d{1,18})?")
_PEER_ID = re.compile(r"[0-9a-fA-F]{64}")
_URL = re.compile(r"https?://[^\s/?#]+\S*")
_STREAM = re.compile(r"wss?://[^\s/?#]+\S*")
_CHANNEL = re.compile(r"@?[A-Za-z][A-Za-z0-9_]{3,31}")
_CHAT_ID = re.compile(r"-?[0-9]{1,16}")
_NODE_URL = re.compile(r"https?://[^\s:/?#@\[\]]+(?::(\d{1,9}))?(?:[/?#]\S*)?")
_POSTGRES = re.compile(r"postgres(ql)?://\S+")
_HOST = re.compile(r"[A-Za-z0-9._-]+")
_TABLES = {
    "time_zone": "general", "chain_id": "chains", "agent_wallet_address": "wallets", "contracts_dir": "devnet",
    "coingecko_url": "prices", "openai_api_key": "models", "budget_tokens_per_run": "budget", "deterministic": "agents",
    "live": "trading", "route_binance": "routes", "accounts": "accounts", "memory_store": "memory",
    "strategy_seconds": "strategies", "fee_binance_maker_pct": "fees", "risk_profile": "lp",
    "incentives_per_day": "incentives", "telegram_bot_token": "telegram",
    "metrics_port": "monitoring", "web_public_url": "web", "axl_cli_peer_id": "axl", "binance_url": "exchanges",
    "fred_url": "feeds",
}  # fmt: skip
"""The first setting of each table of `zuno.toml`; those after it stand in the same table."""
_HIDDEN = tuple(
    "_url _key _secret _passphrase _account _token _file _address _wallets _owners _viewers _groups _chat_id _peer_id "
    "_hooks".split()
)
"""Endings of settings whose values are not shown in a chat."""
_IGNORED_PREFIX = "ZUNO_TEST_"  # the test suite's own switches
_LOWEST_PORT = 2
_HIGHEST_PORT = 65_535
_LOCAL_CHAINS = ("sim", "devnet")
_CHAIN_NAME = re.compile("|".join([*_LOCAL_CHAINS, *(chain.name for chain in CHAINS)]))
_FLASH = "gemini-3-flash-preview"
_SONNET_FLASH = f"claude-sonnet-4-6,{_FLASH}"
_LP_ROLES = ("scout", "strategist", "critic", "arbiter")
KEY_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "binance": ("binance_api_key", "binance_api_secret"),
    "bybit": ("bybit_api_key", "bybit_api_secret"),
    "hyperliquid": ("hyperliquid_account", "hyperliquid_agent_key"),
    "okx": ("okx_api_key", "okx_api_secret", "okx_passphrase"),
    "upbit": ("upbit_access_key", "upbit_secret_key"),
}
"""By the house: its venues have the same keys."""
OFFLINE_EMBEDDINGS = ("hashed", "minilm")
_TRADING_ROLES = {
    "meta": "macro", "liquidity": "liquidity", "microstructure": "microstructure", "macro": "macro",
    "vlm_geometric": "vlm_geometric", "synthesis": "liquidity", "judge": "judge", "risk_manager": "macro",
    "post_mortem": "post_mortem", "self_correction": "self_correction", "feedback": "self_correction", "rag": "rag",
    "rag_extraction": "rag", "chat": "chat",
}  # fmt: skip
"""The setting that names the models of a role."""


def _matching(pattern: re.Pattern[str], expected: str, finish: Callable[[str], str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"expected {expected}")
        return finish(text)

    return read


def _matching_secret(pattern: re.Pattern[str], expected: str) -> Callable[[SecretStr], SecretStr]:
    check = _matching(pattern, expected, str)  # which never echoes it: it may hold a password
    return lambda secret: SecretStr(check(secret.get_secret_value()))


def _checked_by(parse: Callable[[T], object]) -> Callable[[T], T]:
    """What is given, unchanged, if `parse` accepts it."""

    def read(given: T) -> T:
        _parsed_by(parse)(given)
        return given

    return read


def _parsed_by(parse: Callable[[Any], T]) -> Callable[[Any], T]:
    """As `parse`, whose `UsageError` is a fault of the setting."""

    def read(raw: Any) -> T:
        try:
            return parse(raw)
        except UsageError as error:
            raise ValueError(str(error).rstrip(".")) from error

    return read


def _comma_separated(read_parts: Callable[[list[str]], object]) -> BeforeValidator:
    """What is set is split at its commas; a default is taken as it is."""

    def read(raw: object) -> object:
        return read_parts([part for part in map(str.strip, raw.split(",")) if part]) if isinstance(raw, str) else raw

    return BeforeValidator(read)


def _each_matching(pattern: re.Pattern[str], expected: str, finish: Callable[[str], object]) -> BeforeValidator:
    def read(parts: list[str]) -> tuple[object, ...]:
        if not parts or not all(map(pattern.fullmatch, parts)):
            raise ValueError(f"expected {expected}, separated by commas")  # never echo them: they may hold keys
        return tuple(map(finish, parts))

    return _comma_separated(read)


_address = _matching(_ADDRESS, "an address of 0x and 40 hex digits", str.lower)
_url = _matching(_URL, "an http(s) URL", lambda url: url.rstrip("/"))


def _node_url(text: str) -> str:
    """An AXL node's URL; the ports of its neighbours are counted from its own."""
    url = _url(text)
    match = _NODE_URL.fullmatch(url)
    if match is None or (match[1] is not None and not _LOWEST_PORT <= int(match[1]) <= _HIGHEST_PORT):
        raise ValueError("expected an http(s) IPv4 URL with a port from 2 to 65535; AXL nodes have no IPv6 API")
    return url


def _parse_sleeves(text: str) -> object:
    from zuno.trading.model.sleeves import parse_sleeves  # only where they are set

    return parse_sleeves(text)


def _ip_address(text: str) -> str:
    from ipaddress import ip_address  # only where one is set: 3 ms

    return text if text == "127.0.0.1" else str(ip_address(text.strip("[]")))


def _route(name: str) -> BeforeValidator:
    def check(parts: list[str]) -> None:
        shares = parse_route(parts)
        if len(shares) < len(parts):
            raise UsageError("a venue is named twice")
        if not all(map(isfinite, shares.values())):
            raise UsageError("a share is no number")
        Routes({**Routes().shares, name: shares})

    return _comma_separated(_checked_by(check))


def _embedding_model(text: str) -> str:
    name = text.strip()
    if name in OFFLINE_EMBEDDINGS:
        return name
    try:
        model = parse_model(name)
    except UsageError as error:
        raise ValueError(f"expected {', '.join(OFFLINE_EMBEDDINGS)} or a model: {str(error).rstrip('.')}") from None
    if model.vendor is Vendor.ANTHROPIC:
        raise ValueError("Anthropic has no embedding models")
    return str(model) if model.url else f"{model.vendor}:{model.name}"


def _model_keys(parts: list[str]) -> dict[str, SecretStr]:
    keys: dict[str, SecretStr] = {}
    for part in parts:
        host, _, key = part.partition("=")
        if not _HOST.fullmatch(host) or not key:
            raise ValueError("expected NAME=KEY, separated by commas")  # never echo them
        keys[host.lower()] = SecretStr(key)
    return keys


def _model_prices(parts: list[str]) -> dict[str, tuple[Decimal, Decimal]]:
    """`NAME=IN/OUT`, divided at the last equals sign: a URL may hold others."""
    prices: dict[str, tuple[Decimal, Decimal]] = {}
    for part in parts:
        name, _, text = part.rpartition("=")
        try:
            usd_in, usd_out = map(Decimal, text.split("/"))
            model = str(parse_model(name))
        except (ValueError, InvalidOperation, UsageError):
            raise ValueError("expected MODEL=IN/OUT in dollars for a million tokens, separated by commas") from None
        if not all(usd.is_finite() and usd >= 0 for usd in (usd_in, usd_out)):
            raise ValueError("a price is a number of dollars, 0 or more")
        prices[model] = (usd_in, usd_out)
    return prices


def _labelled_wallets(parts: list[str]) -> dict[str, str]:
    """`cold=0x…, 0x…` as addresses with their labels; one without a label has none."""
    pairs = [(label.strip(), address.strip()) for label, _, address in (part.rpartition("=") for part in parts)]
    bad = [str(number) for number, (_, address) in enumerate(pairs, start=1) if not _ADDRESS.fullmatch(address)]
    if bad:
        raise ValueError(
            f"expected addresses of 0x and 40 hex digits; wallet {', '.join(bad[:20])} of {len(pairs)} is none"
        )
    return {address.lower(): label for label, address in pairs}


def _amounts_by(name: re.Pattern[str], expected: str) -> Callable[[list[str]], dict[str, Decimal]]:
    """`0xPOOL=120` or `mainnet=40`: amounts by names of this form."""

    def read_amounts(parts: list[str]) -> dict[str, Decimal]:
        amounts = {}
        for key, _, amount in (part.partition("=") for part in parts):
            if not (name.fullmatch(key.strip()) and _AMOUNT.fullmatch(amount.strip())):
                raise ValueError(f"expected {expected} and a number, comma-separated")
            amounts[key.strip().lower()] = Decimal(amount.strip())
        return amounts

    return read_amounts


def _chain(text: str) -> str:
    name = text.strip().lower()
    if name in _LOCAL_CHAINS:
        return name
    chain = chain_named(name)
    if chain is None:
        known = ", ".join([*_LOCAL_CHAINS, *(f"{chain.id} ({chain.name})" for chain in CHAINS)])
        raise ValueError(f"expected one of {known}")
    return chain.name


Url = Annotated[str, AfterValidator(_url)]
Secret = SecretStr | None
SecretUrl = Annotated[SecretStr, AfterValidator(_matching_secret(_URL, "an http(s) URL"))] | None
DatabaseUrl = Annotated[SecretStr, AfterValidator(_matching_secret(_POSTGRES, "a postgresql:// URL"))] | None
Currency = Annotated[str, AfterValidator(_checked_by(parse_currency))]
PublicUrl = Annotated[str, AfterValidator(_checked_by(parse_public_url))] | None
Proxies = Annotated[tuple[str, ...], _comma_separated(_checked_by(parse_proxies))]
Sleeves = Annotated[str, AfterValidator(_checked_by(_parse_sleeves))] | None
PushModes = Annotated[str, AfterValidator(_checked_by(parse_push_modes))]
QuietHours = Annotated[str, AfterValidator(_checked_by(parse_quiet_hours))]
NodeUrl = Annotated[str, AfterValidator(_node_url)] | None
StreamUrl = Annotated[str, AfterValidator(_matching(_STREAM, "a ws(s) URL", lambda url: url.rstrip("/")))]
Channels = Annotated[
    tuple[str, ...],
    _each_matching(_CHANNEL, "names of public channels as in t.me/NAME", lambda name: name.removeprefix("@")),
]
ChatIds = Annotated[tuple[int, ...], _each_matching(_CHAT_ID, "numbers as `zuno telegram setup` shows them", int)]
Urls = Annotated[tuple[SecretStr, ...], _each_matching(_URL, "one or more http(s) URLs", SecretStr)]
Models = Annotated[str, AfterValidator(lambda text: ",".join(map(str, _parsed_by(parse_model_list)(text))))]
ModelKeys = Annotated[dict[str, SecretStr], _comma_separated(_model_keys)]
ModelPrices = Annotated[dict[str, tuple[Decimal, Decimal]], _comma_separated(_model_prices)]
Dollars = Annotated[Decimal, Field(ge=0, allow_inf_nan=False)]
FeePct = Annotated[float, Field(ge=0, le=5, allow_inf_nan=False)]
OptionalAddress = Annotated[str, AfterValidator(_address)] | None
Hooks = Annotated[tuple[str, ...], _each_matching(_ADDRESS, "addresses of 0x and 40 hex digits", str.lower)]
LabelledWallets = Annotated[dict[str, str], _comma_separated(_labelled_wallets)]
PoolRewards = Annotated[
    dict[str, Decimal], _comma_separated(_amounts_by(_POOL_ID, "POOL=AMOUNT, a pool id of 0x and 64 hex digits"))
]
ChainCaps = Annotated[
    dict[str, Decimal],
    _comma_separated(_amounts_by(_CHAIN_NAME, "CHAIN=AMOUNT, a chain's name (mainnet, arbitrum, …)")),
]
Markets = Annotated[tuple[Symbol, ...], _comma_separated(_parsed_by(parse_markets))]
Accounts = Annotated[dict[str, settings_file.AccountSettings], BeforeValidator(settings_file.parse_accounts)]
PeerId = Annotated[str, AfterValidator(_matching(_PEER_ID, "64 hex digits", str.lower))] | None


def _setting(default: Any, description: str, **limits: Any) -> Any:
    return Field(default, description=description, **limits)


class Settings(BaseModel):
    """All settings by their environment names. Secrets print as stars."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True, validate_by_name=True)

    home: Path = _setting(Path("~/.zuno"), "data directory (created 0700)")
    time_zone: Annotated[str, AfterValidator(_checked_by(parse_zone))] = _setting(
        "UTC", "time zone of quiet hours that name none and of exports, e.g. `Europe/Zurich`"
    )
    reporting_currency: Currency = _setting("USD", "currency of exported events: USD, EUR, KRW …")
    database_url: DatabaseUrl = _setting(None, "Postgres URL of the journal; default: `journal.db` in the home")
    disk_budget_mb: int = _setting(
        0, "disk budget of the home without its archive, MB; past it the desk archives old bundles; 0: none", ge=0
    )
    chain_id: Annotated[str, AfterValidator(_chain)] | None = _setting(
        None,
        "default chain, id or name, used once any RPC is configured; default: arbitrum (42161) if it has an RPC, else "
        "the first chain with one, else `sim`",
    )
    mainnet_rpc_url: Urls = _setting((), "Ethereum RPC URLs, comma-separated, best first")
    optimism_rpc_url: Urls = _setting((), "Optimism RPC URLs")
    unichain_rpc_url: Urls = _setting((), "Unichain RPC URLs")
    polygon_rpc_url: Urls = _setting((), "Polygon RPC URLs")
    base_rpc_url: Urls = _setting((), "Base RPC URLs")
    arbitrum_rpc_url: Urls = _setting((), "Arbitrum One RPC URLs")
    sepolia_rpc_url: Urls = _setting((), "Sepolia RPC URLs")
    base_sepolia_rpc_url: Urls = _setting((), "Base Sepolia RPC URLs")
    arbitrum_sepolia_rpc_url: Urls = _setting((), "Arbitrum Sepolia RPC URLs")
    unichain_sepolia_rpc_url: Urls = _setting((), "Unichain Sepolia RPC URLs")
    rpc_timeout_seconds: float = _setting(15.0, "RPC request timeout, s", gt=0, le=120)
    agent_wallet_address: OptionalAddress = _setting(
        None, "wallet that signs and whose positions are watched; default: the only one in `zuno wallet show`"
    )
    watched_wallets: LabelledWallets = _setting(
        {}, "more wallets to watch, comma-separated, each with or without a label: `cold=0x…`"
    )
    wallets_file: Path | None = _setting(
        None,
        "file of more wallets to watch, one address a line and its label after it, or a CSV of both; from the home on",
    )
    passphrase_file: Path | None = _setting(
        None, "file (0600) with the wallet passphrase on its first line, for services"
    )
    contracts_dir: Path | None = _setting(
        None, "`node_modules` with the contract packages, if not installed by `make devnet`"
    )
    coingecko_url: Url = _setting("https://api.coingecko.com/api/v3", "CoinGecko-compatible price API")
    coingecko_api_key: Secret = _setting(None, "CoinGecko API key; without one the public rate limits apply")
    openai_api_key: Secret = _setting(
        None, "OpenAI API key; without any model key the agents run on rules", validation_alias="OPENAI_API_KEY"
    )
    anthropic_api_key: Secret = _setting(None, "Anthropic API key", validation_alias="ANTHROPIC_API_KEY")
    gemini_api_key: Secret = _setting(None, "Gemini API key", validation_alias="GEMINI_API_KEY")
    google_api_key: Secret = _setting(
        None, "Gemini API key, takes precedence over `GEMINI_API_KEY`", validation_alias="GOOGLE_API_KEY"
    )
    model_keys: ModelKeys = _setting({}, "API keys of other model servers, `HOST=KEY`, comma-separated")
    agent_model: Models = _setting(
        "gpt-4o-mini",
        "models of the LP agents, comma-separated, best first: `gpt-…`, `claude-…`, `gemini-…`, `ollama:NAME`, "
        "`http(s)://HOST/v1#NAME`",
    )
    model_judge: Models = _setting(
        _SONNET_FLASH,
        "models of the trading Judge, best first, named as in `ZUNO_AGENT_MODEL`; a single GPT or Claude gets a "
        "Gemini as second if there is a key",
    )
    model_liquidity: Models = _setting(_FLASH, "models of the liquidity expert (order flow) and of the synthesis")
    model_microstructure: Models = _setting(_FLASH, "models of the microstructure expert (order book)")
    model_macro: Models = _setting(_FLASH, "models of the macro and options expert, of Meta and of the risk manager")
    model_vlm_geometric: Models = _setting(
        "gemini-3.1-pro-preview,gemini-3-flash-preview", "vision models of the chart expert"
    )
    model_post_mortem: Models = _setting(_FLASH, "models that write the post-mortem of a closed trade")
    model_self_correction: Models = _setting(
        _SONNET_FLASH, "models that write lessons (`self_correction`) and their reviews (`feedback`)"
    )
    model_rag: Models = _setting(
        _FLASH, "models that read recalled news (`rag`) and find entities in it (`rag_extraction`)"
    )
    model_chat: Models = _setting(_FLASH, "models of the chat that answers free text, e.g. in Telegram")
    model_timeout_seconds: float = _setting(30.0, "model call timeout, s", gt=0, le=600)
    model_prices: ModelPrices = _setting(
        {}, "model prices not in the built-in list, USD per million tokens, `MODEL=IN/OUT`, comma-separated"
    )
    budget_tokens_per_run: int = _setting(200_000, "model token budget per run", ge=0)
    budget_tokens_per_day: int = _setting(2_000_000, "model token budget per UTC day, all runs and embeddings", ge=0)
    budget_tokens_per_day_viewers: int = _setting(
        100_000, "of these, for questions of Telegram viewers; 0: rules alone answer them", ge=0
    )
    budget_usd_per_run: Dollars = _setting(Decimal("0.50"), "model budget per run, USD")
    budget_usd_per_day: Dollars = _setting(Decimal("5.00"), "model budget per UTC day, all runs and embeddings, USD")
    deterministic: bool = _setting(False, "true: rules only, no model calls")
    max_debate_rounds: int = _setting(2, "max revision rounds per debate", ge=0, le=10)
    live: bool = _setting(False, "true: `--live` may trade with real money; without it the desk trades on paper")
    let_run_pct: int = _setting(
        0,
        "share of a trade that runs on past its target behind a trailing stop, %; 0: none",
        ge=0,
        le=90,
    )
    market: Literal["recorded", "live"] = _setting("recorded", "trading data source: stored data or live venues")
    ev: Literal["record", "seed"] = _setting(
        "record",
        "expected value by `record`, the edge that closed trades support, or `seed`, the Judge's own odds (paper only)",
    )
    recording: Literal["auto", "synthetic", "own"] = _setting(
        "auto", "stored data to use: synthetic, your own recordings, or your own once something is imported"
    )
    markets: Markets = _setting(
        DEFAULT_SYMBOLS, "markets the desk trades, comma-separated: `BTCUSDT`, `SOL` or `bybit:SOL/USDT:USDT`"
    )
    sleeves: Sleeves = _setting(
        None,
        "sleeves of paper accounts and their shares, `trend:0.6,debate:0.4`; default: those for new accounts, existing "
        "ones as they are",
    )
    target_taker_minutes: int = _setting(
        30, "minutes that orders toward a target wait at the touch before the rest is taken", ge=0, le=1_440
    )
    route_binance: Annotated[tuple[str, ...], _route("BINANCE")] = _setting(
        ("binance",), "venues of a ruling's target BINANCE, which carries shorts: names, with shares as in `okx:0.7`"
    )
    route_upbit: Annotated[tuple[str, ...], _route("UPBIT")] = _setting(("upbit",), "venues of the target UPBIT")
    route_split: Annotated[tuple[str, ...], _route("SPLIT")] = _setting(
        ("binance", "upbit"), "venues of the target SPLIT; equal shares if none are given"
    )
    accounts: Accounts = _setting(
        {}, "named accounts at venues as JSON; in `zuno.toml` each is a table `[accounts.NAME]`"
    )
    strategy_seconds: float = _setting(
        5.0, "how long a Python strategy of your own may take to answer, s", gt=0, le=60, allow_inf_nan=False
    )
    webhook_port: Annotated[int, Field(ge=1, le=_HIGHEST_PORT)] | None = _setting(
        None, "port on which `trade start` takes signals of your own strategies, and nothing else; default: none"
    )
    webhook_host: Annotated[str, AfterValidator(_ip_address)] = _setting(
        "127.0.0.1", "IP address to take them at; a charting service needs a proxy with TLS in front of it"
    )
    webhook_secrets: ModelKeys = _setting(
        {}, "secrets of your strategies' signals, 16 characters or more, `NAME=SECRET`, comma-separated"
    )
    webhook_sources: Proxies = _setting(
        (), "addresses or networks that signals may come from, comma-separated; default: any"
    )
    memory_store: Literal["sqlite", "milvus", "lightrag"] = _setting(
        "sqlite", "index of the desk's memories and news: SQLite in the home, Milvus or LightRAG (extras)"
    )
    memory_url: SecretUrl = _setting(
        None, "Milvus server URL, USER:PASSWORD@ if asked; LightRAG's too; default: milvus-lite in the home"
    )
    embedding_model: Annotated[str, AfterValidator(_embedding_model)] = _setting(
        "hashed",
        "embedding model: `hashed` (character n-grams, offline), `minilm` (offline, weights in a package of others), "
        "`openai:NAME`, `gemini-…`, `ollama:NAME`, `http(s)://HOST/v1#NAME`",
    )
    embedding_dimension: int = _setting(1_536, "vector dimension of an embedding model over HTTP", ge=8, le=8_192)
    fee_binance_maker_pct: FeePct = _setting(0.02, "Binance maker fee, %")
    fee_binance_taker_pct: FeePct = _setting(0.05, "Binance taker fee, %")
    fee_upbit_pct: FeePct = _setting(0.05, "Upbit fee, maker and taker, %")
    risk_profile: Literal["conservative", "balanced", "aggressive"] = _setting("balanced", "default risk profile")
    slippage_bps: int = _setting(50, "max slippage between plan and execution, bps", ge=1, le=1_000)
    tick_drift: int = _setting(50, "max tick move between decision and execution", ge=0, le=10_000)
    approval_seconds: int = _setting(900, "approval and calldata expire after, s", ge=30, le=86_400)
    spend_usd_per_plan: Dollars = _setting(Decimal(25_000), "max spend per plan, USD")
    spend_usd_per_day: Dollars = _setting(Decimal(100_000), "max spend per 24 h, all plans, USD")
    max_tip_gwei: ChainCaps = _setting(
        {},
        "max tip for a unit of gas, gwei: `CHAIN=AMOUNT`, comma-separated; defaults: `docs/settings.md`",
    )
    max_gas: ChainCaps = _setting({}, "max cost of one transaction, data fee included, in the chain's coin, by chain")
    max_exit_tip_gwei: ChainCaps = _setting({}, "the same of a tip where liquidity is taken out, in a crash too")
    max_exit_gas: ChainCaps = _setting({}, "the same of one transaction's cost where liquidity is taken out")
    allowed_hooks: Hooks = _setting((), "trusted hook addresses, comma-separated; pools with other hooks are view-only")
    receipt_seconds: float = _setting(300.0, "receipt timeout of `plan apply`, s", gt=0, le=86_400)
    monitor_interval_ms: int = _setting(60_000, "monitor interval, ms", ge=5_000)
    incentives_per_day: PoolRewards = _setting(
        {},
        "rewards of pools beside fees, `POOL=AMOUNT`, comma-separated: what all liquidity in range gets a day, in the "
        "token that the pool's price is quoted in",
    )
    telegram_bot_token: Secret = _setting(None, "Telegram bot token (@BotFather gives one)")
    telegram_chat_id: str | None = _setting(
        None, "Telegram chat that alerts and notices go to; by its number, a @name gets no buttons"
    )
    telegram_api_base_url: Url = _setting("https://api.telegram.org", "Telegram Bot API URL")
    telegram_owners: ChatIds = _setting(
        (),
        "Telegram user ids that may look and confirm, comma-separated; if both lists are empty the bot answers nobody",
    )
    telegram_viewers: ChatIds = _setting((), "Telegram user ids that may look, comma-separated")
    telegram_groups: ChatIds = _setting(
        (), "Telegram groups where listed users are answered, by their (negative) chat ids"
    )
    telegram_push: PushModes = _setting(
        "fill=silent,ruling=silent,unlock=silent,summary=silent",
        "pushes by kind, `kind=on|silent|off,…`; `all` is every kind; those not named keep their default",
    )
    telegram_quiet_hours: QuietHours = _setting(
        "",
        "quiet hours, pushes that are not critical arrive silently: `22:00-07:00` (at `ZUNO_TIME_ZONE`) or "
        "`22:00-07:00 Asia/Seoul`",
    )
    metrics_port: Annotated[int, Field(ge=1, le=_HIGHEST_PORT)] | None = _setting(
        None, "port of the figures for Prometheus, served by `trade start` and `monitor run`; default: none"
    )
    metrics_host: Annotated[str, AfterValidator(_ip_address)] = _setting(
        "127.0.0.1",
        "IP address to serve them at; any other than this machine's own lets everybody there read equity and positions",
    )
    ping_url: SecretUrl = _setting(
        None,
        "URL asked after each cycle and monitor round, with `/fail` added after one that failed (as healthchecks.io "
        "takes it); `{part}` in it becomes `trade` or `monitor`",
    )
    log_format: Literal["text", "json"] = _setting("text", "lines of the log: text or JSON")
    web_public_url: PublicUrl = _setting(
        None, "public URL of the page behind a proxy, `https://HOST[/BASE]`; default of `zuno web --public-url`"
    )
    web_proxies: Proxies = _setting(
        (), "proxies whose `X-Forwarded-…` headers count, addresses or networks, comma-separated; default: this machine"
    )
    axl_cli_peer_id: PeerId = _setting(None, "AXL peer id of the CLI")
    axl_scout_peer_id: PeerId = _setting(None, "AXL peer id of the Scout")
    axl_strategist_peer_id: PeerId = _setting(None, "AXL peer id of the Strategist")
    axl_critic_peer_id: PeerId = _setting(None, "AXL peer id of the Critic")
    axl_arbiter_peer_id: PeerId = _setting(None, "AXL peer id of the Arbiter")
    axl_node: Path | None = _setting(None, "path of the AXL node binary, for a mesh that starts its own nodes")
    axl_cli_api_url: NodeUrl = _setting(None, "AXL node URL of the CLI (default: by `mesh init`)")
    axl_scout_api_url: NodeUrl = _setting(None, "AXL node URL of the Scout (default: by `mesh init`)")
    axl_strategist_api_url: NodeUrl = _setting(None, "AXL node URL of the Strategist; `mesh init` picks a port")
    axl_critic_api_url: NodeUrl = _setting(None, "AXL node URL of the Critic (default: by `mesh init`)")
    axl_arbiter_api_url: NodeUrl = _setting(None, "AXL node URL of the Arbiter (default: by `mesh init`)")
    binance_url: Url | None = _setting(None, "Binance REST mirror, futures and spot")
    binance_api_key: Secret = _setting(
        None, "Binance API key for live orders: futures trading allowed, withdrawals not"
    )
    binance_api_secret: Secret = _setting(None, "secret of `ZUNO_BINANCE_API_KEY`")
    binance_demo: bool = _setting(False, "true: the Binance keys belong to its demo trading, no real money")
    binance_order_url: Url | None = _setting(None, "base URL of Binance's signed API, for tests")
    binance_stream_url: StreamUrl = _setting("wss://fstream.binance.com", "Binance futures WebSocket URL")
    bybit_url: Url | None = _setting(None, "Bybit REST mirror")
    bybit_api_key: Secret = _setting(None, "Bybit API key for live orders: contract and spot trading, no withdrawals")
    bybit_api_secret: Secret = _setting(None, "secret of `ZUNO_BYBIT_API_KEY`")
    bybit_demo: bool = _setting(False, "true: the Bybit keys belong to its demo trading, no real money")
    bybit_order_url: Url | None = _setting(None, "base URL of Bybit's signed API, for tests")
    bybit_stream_url: StreamUrl = _setting("wss://stream.bybit.com", "Bybit public WebSocket URL")
    hyperliquid_account: Secret = _setting(None, "Hyperliquid address of the account, for live orders")
    hyperliquid_agent_key: Secret = _setting(None, "key of an agent (API wallet) of `ZUNO_HYPERLIQUID_ACCOUNT`")
    hyperliquid_demo: bool = _setting(False, "true: account and agent belong to Hyperliquid's testnet")
    hyperliquid_order_url: Url | None = _setting(None, "base URL of Hyperliquid's signed API, for tests")
    hyperliquid_url: Url | None = _setting(None, "Hyperliquid API mirror")
    okx_url: Url | None = _setting(None, "OKX REST mirror")
    okx_api_key: Secret = _setting(None, "OKX API key for live orders: trading allowed, withdrawals not")
    okx_api_secret: Secret = _setting(None, "secret of `ZUNO_OKX_API_KEY`")
    okx_passphrase: Secret = _setting(None, "passphrase of `ZUNO_OKX_API_KEY`")
    okx_demo: bool = _setting(False, "true: the OKX keys belong to its demo trading, no real money")
    okx_order_url: Url | None = _setting(None, "base URL of OKX's signed API, for tests")
    okx_stream_url: StreamUrl = _setting("wss://ws.okx.com:8443", "OKX public WebSocket URL")
    upbit_url: Url | None = _setting(None, "Upbit REST mirror")
    upbit_access_key: Secret = _setting(
        None, "Upbit access key for live orders: accounts and orders allowed, withdrawals not"
    )
    upbit_secret_key: Secret = _setting(None, "secret of `ZUNO_UPBIT_ACCESS_KEY`")
    upbit_order_url: Url | None = _setting(None, "base URL of Upbit's signed API, for tests")
    deribit_url: Url | None = _setting(None, "Deribit REST mirror")
    fred_url: Url = _setting("https://api.stlouisfed.org/fred", "FRED API URL (macro data)")
    fred_api_key: Secret = _setting(None, "FRED API key (free); without one no macro prints")
    yahoo_url: Url = _setting("https://query1.finance.yahoo.com", "Yahoo-compatible chart API: DXY, Nasdaq, gold, oil")
    fear_greed_url: Url = _setting("https://api.alternative.me", "Fear & Greed index API URL")
    perplexity_url: Url = _setting("https://api.perplexity.ai", "Perplexity-compatible search API URL")
    perplexity_api_key: Secret = _setting(None, "Perplexity API key; without one no narrative")
    news_channels: Channels = _setting((), "public Telegram channels to read (t.me/NAME), comma-separated")

    @model_validator(mode="before")
    @classmethod
    def _add_environment(cls, given: dict[str, Any]) -> dict[str, Any]:
        """What is not given is read from the environment, in capitals or not; an empty variable is not set."""
        variables = {name.upper(): text for name, text in os.environ.items() if text}
        return {each: variables[name] for each in cls.model_fields if (name := variable_of(each)) in variables} | given

    def rpc_urls(self, chain_name: str) -> tuple[SecretStr, ...]:
        """The configured URLs of a known chain, best first."""
        urls: tuple[SecretStr, ...] = getattr(self, f"{chain_name.replace('-', '_')}_rpc_url")
        return urls

    def secrets(self) -> tuple[str, ...]:
        """Every secret that is set: what must never be written anywhere."""
        values = [value for name in type(self).model_fields for value in _each(getattr(self, name))]
        own = (secret for account in self.accounts.values() for secret in account.secrets())
        return (*(value.get_secret_value() for value in values if isinstance(value, SecretStr)), *own)

    def describe(self, name: str, *, private: bool) -> str:
        """As text. Secrets are only said to be set; so are addresses and lists of people, unless `private`."""
        value = getattr(self, name)
        secret = any(isinstance(each, SecretStr) for each in _each(value)) or settings_file.has_login(str(value))
        if secret or (not private and name.endswith(_HIDDEN)):
            return "set"
        if name == "watched_wallets":
            return f"{len(value):,} wallets"
        if name == "accounts":
            return ", ".join(f"{account} at {' and '.join(value[account].venues).lower()}" for account in value)
        return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)

    def model_table(self) -> dict[str, tuple[ModelId, ...]]:
        """Which models speak for which role, best first."""
        table = dict.fromkeys(_LP_ROLES, parse_model_list(self.agent_model))
        desk = {role: parse_model_list(getattr(self, f"model_{name}")) for role, name in _TRADING_ROLES.items()}
        return table | {role: self._with_second(chain) for role, chain in desk.items()}

    def _with_second(self, chain: tuple[ModelId, ...]) -> tuple[ModelId, ...]:
        """A GPT or Claude that is named alone gets a Gemini as second, where there is a key for one."""
        alone = len(chain) == 1 and chain[0].vendor in (Vendor.OPENAI, Vendor.ANTHROPIC)
        if not alone or Vendor.GOOGLE not in self.vendor_keys():
            return chain
        return (*chain, ModelId(Vendor.GOOGLE, DEFAULT_MODELS[Vendor.GOOGLE]))

    def is_demo(self, venue: Venue) -> bool:
        """Whether the keys of a venue that stand in settings of their own, not in an account, are of demo trading."""
        return venue.sandbox and bool(getattr(self, f"{venue.house}_demo"))

    def find_account(self, name: str | None) -> str | None:
        """The whole name of an account that `--account` means: `live:NAME` or `demo:NAME` for one of these settings."""
        account = self.accounts.get(name or "")
        return name if account is None else f"{DEMO_ACCOUNT if account.demo else LIVE_ACCOUNT}:{name}"

    def find_shared_keys(self) -> dict[str, str]:
        """What is wrong with `accounts` where one of them has the key of a setting."""
        held = {name: getattr(self, name) for names in KEY_SETTINGS.values() for name in names}
        keys = {key.get_secret_value(): variable_of(name) for name, key in held.items() if key is not None}
        shared = (f"{name} has the key of {keys[own.key]}" for name, own in self.accounts.items() if own.key in keys)
        twice = next(shared, None)
        return {} if twice is None else {"accounts": f"{twice}: one ledger is kept of one account"}

    def routes(self) -> Routes:
        named = {"BINANCE": self.route_binance, "UPBIT": self.route_upbit, "SPLIT": self.route_split}
        return Routes({name: parse_route(words) for name, words in named.items()})

    def vendor_keys(self) -> dict[Vendor, str]:
        """The vendors' keys that are set, in the clear: for wiring alone."""
        keys = {
            Vendor.OPENAI: self.openai_api_key,
            Vendor.ANTHROPIC: self.anthropic_api_key,
            Vendor.GOOGLE: self.google_api_key or self.gemini_api_key,
        }
        return {vendor: key.get_secret_value() for vendor, key in keys.items() if key is not None}

    def list_chains(self) -> tuple[str, ...]:
        """Every chain that may be read: the default one, and those with an RPC."""
        configured = (chain.name for chain in CHAINS if self.rpc_urls(chain.name))
        return tuple(dict.fromkeys((self.default_chain(), *configured)))

    def default_chain(self) -> str:
        """`ZUNO_CHAIN_ID` once any RPC is configured, else Arbitrum or the first chain that has one; before, `sim`."""
        configured = [chain.name for chain in CHAINS if self.rpc_urls(chain.name)]
        if self.chain_id is not None and (configured or self.chain_id in _LOCAL_CHAINS):
            return self.chain_id
        if "arbitrum" in configured:
            return "arbitrum"
        return configured[0] if configured else "sim"


def _each(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else tuple(value.values()) if isinstance(value, dict) else (value,)


def variables() -> dict[str, str]:
    """Every variable and its description; a test compares the docs with it."""
    return {variable_of(name): field.description or "" for name, field in Settings.model_fields.items()}


def variable_of(field_name: str) -> str:
    alias = Settings.model_fields[field_name].validation_alias
    return alias if isinstance(alias, str) else f"ZUNO_{field_name.upper()}"


@dataclass(frozen=True, slots=True)
class SettingsReading:
    """The settings of a process, and the file they partly come from. If the file has faults, it is left out."""

    settings: Settings
    file: settings_file.FileReading
    environment: frozenset[str]
    """Settings that the environment has; it wins over the file."""

    def origin(self, name: str) -> str:
        """Where a setting's value comes from: environment, `zuno.toml:12` or default."""
        here = f"{self.file.path.name}:{self.file.lines[name]}" if name in self.file.values else ""
        if name in self.environment:
            return f"environment, over {here}" if here else "environment"
        return here if here and not self.file.faults else "default"


def examine_settings(
    environment: Mapping[str, str], home: Path | None = None, file: Path | None = None
) -> SettingsReading:
    """The settings of this process and every fault of their file; `UsageError` that names the variable to fix.

    `environment` is what `Settings` reads too: it must be the process's own. `file`: instead of the home's.
    """
    given, known = {name.upper(): text for name, text in environment.items() if text}, variables()
    for name in map(str.upper, environment):
        if name.startswith("ZUNO_") and not name.startswith(_IGNORED_PREFIX) and name not in known:
            raise UsageError(f"{name} is not a setting of Zuno{_suggest(name, known)}")
    own = frozenset(name for name in Settings.model_fields if variable_of(name) in given)
    place = settings_file.expand_path(home or given.get("ZUNO_HOME") or Settings.model_fields["home"].default)
    reading = settings_file.read_settings_file(file or place / settings_file.FILE, file_fields, environment)
    if reading.values:
        _, wrong = _validate({"home": place, **reading.values})
        faults = [
            settings_file.Fault(reading.lines[name], f"{file_fields()[name]}: {why}")
            for name, why in wrong.items()
            if name in reading.values
        ]
        reading = replace(reading, faults=tuple(sorted((*reading.faults, *faults), key=lambda fault: fault.line)))
    chosen = {} if reading.faults else {name: text for name, text in reading.values.items() if name not in own}
    settings, wrong = _validate({"home": place, **chosen})
    if settings is None or wrong:
        name, why = next(iter(wrong.items()))
        raise UsageError(f"{variable_of(name) if name in Settings.model_fields else name} cannot be read: {why}.")
    return SettingsReading(settings, reading, own)


def read_settings(environment: Mapping[str, str], home: Path | None = None) -> Settings:
    """The settings of this process; `UsageError` where a variable or the file in the home cannot be read."""
    reading = examine_settings(environment, home)
    reading.file.require_faultless()
    return reading.settings


def _validate(given: dict[str, Any]) -> tuple[Settings | None, dict[str, str]]:
    """The settings with these given, or what is wrong with each that cannot be read."""
    try:
        settings = Settings(**given)
        return settings, settings.find_shared_keys()
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        return None, {str(fault["loc"][0]): fault["msg"].removeprefix("Value error, ") for fault in reversed(faults)}


@cache
def file_fields() -> dict[str, settings_file.FileField]:
    """Every setting as `zuno.toml` has it, by name, but the home: that is where the file lies."""
    fields, table = dict[str, settings_file.FileField](), ""
    for name, field in Settings.model_fields.items():
        table = _TABLES.get(name, table)
        form, key = str(field.annotation), re.sub(rf"^{table.removesuffix('s')}s?_", "", name)
        key = key.upper() if table == "routes" else key
        secret, path = "SecretStr" in form, "Path" in form and name != "wallets_file"
        default = field.get_default(call_default_factory=True)
        fields[name] = settings_file.FileField(
            name, table, key, secret, path, variable_of(name), field.description or "", default
        )
    del fields["home"]
    return fields


def _suggest(name: str, known: Mapping[str, str]) -> str:
    """The end of a sentence: the nearest name, else those of the same venue, vendor or chain."""
    from difflib import get_close_matches  # only on the way to an error

    near = partial(get_close_matches, cutoff=0.75)
    words = name.split("_")[1:]
    split = {setting: setting.removeprefix("ZUNO_").split("_") for setting in known}
    parties = {parts[0] for parts in split.values() if parts[-1] in ("URL", "KEY")}
    own = {setting: parts for setting, parts in split.items() if all(near(each, words) for each in parties & {*parts})}
    if meant := near(name, [setting for setting, parts in own.items() if all(near(word, parts) for word in words)]):
        return f"; did you mean {meant[0]}?"
    same = get_close_matches(name, [setting for setting, parts in own.items() if parties & {*parts}], cutoff=0)
    return f"; there is {', '.join(same)}." if same else "."


def agent_roles() -> dict[str, tuple[str, ...]]:
    """The agents of each desk, in the order they are shown."""
    return {"lp": tuple(_LP_ROLES), "trading": tuple(_TRADING_ROLES)}
