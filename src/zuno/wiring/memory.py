"""Which index memories are recalled from, and which embedder it uses."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from zuno.adapters.atomic_file import create_file
from zuno.adapters.clock.system import SystemClock
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.jsonl import FallbackIndex, JsonlMemory
from zuno.adapters.memory.sqlite import SqliteMemoryIndex
from zuno.adapters.model.daily_spend import DailySpendFile
from zuno.adapters.model.vendors import Price, price_tokens
from zuno.journal.port import Journal
from zuno.kernel.canonical import canonical, digest
from zuno.llm.budget import Limits, RunBudget
from zuno.llm.names import ModelId, Vendor, parse_model
from zuno.llm.port import Ceiling
from zuno.settings import OFFLINE_EMBEDDINGS, Settings
from zuno.trading.agents.learned import extract_entities
from zuno.trading.measure.similarity import Entities
from zuno.trading.ports.recall import Embedder, MemoryIndex
from zuno.trading.run.record import RunJournal
from zuno.wiring.cycles import build_run_context
from zuno.wiring.models import Models

if TYPE_CHECKING:
    from zuno.adapters.memory.endpoint import EmbeddingBudget
    from zuno.adapters.memory.lightrag import Extract

_VENDOR_URLS = {
    Vendor.OPENAI: "https://api.openai.com/v1",
    Vendor.GOOGLE: "https://generativelanguage.googleapis.com/v1beta/openai",
}


def embedder(settings: Settings) -> Embedder:
    if settings.embedding_model not in OFFLINE_EMBEDDINGS:
        return _endpoint_embedder(settings)
    if settings.embedding_model == "minilm":
        from zuno.adapters.memory.minilm import MiniLmEmbedder

        return MiniLmEmbedder()

    return HashedEmbedder()


def _endpoint_embedder(settings: Settings) -> Embedder:
    from zuno.adapters.memory.endpoint import EndpointEmbedder

    model = parse_model(settings.embedding_model)
    if model.vendor is Vendor.URL:
        secret = settings.model_keys.get(model.host)
        url, key = model.url, secret.get_secret_value() if secret else ""
    else:
        url, key = _VENDOR_URLS[model.vendor], settings.vendor_keys().get(model.vendor, "")
    return EndpointEmbedder(
        url, model.name, str(model), settings.embedding_dimension, key, budget=_embedding_budget(settings, model)
    )


def _embedding_budget(settings: Settings, model: ModelId) -> EmbeddingBudget:
    """The day's budget: embeddings are shared by many runs."""
    from zuno.adapters.memory.endpoint import EmbeddingBudget

    usd = settings.model_prices.get(str(model))
    price = None if usd is None else Price(*usd)
    limits = Limits(day=Ceiling(settings.budget_tokens_per_day, settings.budget_usd_per_day))
    return EmbeddingBudget(
        RunBudget(limits, DailySpendFile(settings.home / "spend.json"), SystemClock()),
        lambda tokens: price_tokens(model, price, tokens, 0),
    )


def extract_by_models(journal: Callable[[], Awaitable[Journal]], models: Models) -> Extract:
    """Entities by the role `rag_extraction`: a model or the rules. Answers are recorded: a text is asked about once."""

    async def extract(text: str) -> Entities:

        run = f"extraction_{digest(canonical(text))[:24]}"
        notebook = await RunJournal(await journal(), run).open()
        return await extract_entities(text, build_run_context(models, notebook, models.registry()))

    return extract


def memory_index(settings: Settings, home: Path, extract: Extract | None = None) -> MemoryIndex:
    """The configured index, with recall by age as its fallback. `extract`: entities for a graph; None: by rules."""
    return FallbackIndex(_open_index(settings, home / "memory", extract), memory_file(home))


def print_progress(store: str, done: int, total: int) -> None:
    """On stderr; the one or two memories that a close adds are not worth a line."""
    if total > 2:
        print(f"memory: {done:,} of {total:,} taken into {store}", file=sys.stderr, flush=True)


def memory_file(home: Path) -> MemoryIndex:
    """The fallback by itself: it is written even while the index is down."""
    return JsonlMemory(home / "memory" / "post_mortems.jsonl")


def news_index(settings: Settings, home: Path) -> MemoryIndex:
    """An index of news and narrative in the same store, apart from the memories: it can be rebuilt from recorded
    series. Entities are found by rules, because a model would be asked about each headline."""
    return FallbackIndex(_open_index(settings, home / "memory", None, "news"), None)


def _collection_name(folder: Path) -> str:
    """A name of this home's own: homes that share a server must not drop each other's memories."""
    path = folder / "collection"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        create_file(path, os.urandom(8).hex().encode())
    return path.read_text().strip()


def _open_index(settings: Settings, folder: Path, extract: Extract | None, what: str = "") -> MemoryIndex:
    """`what`: empty for memories, or `news`. Each has its own files or collection."""
    vectors, before = embedder(settings), f"{what}_" if what else ""
    if settings.memory_store == "sqlite":
        return SqliteMemoryIndex(folder / f"{what or 'index'}.db", vectors)
    from zuno.adapters.memory.milvus import MilvusMemoryIndex, split_login

    server, prefix = None, "zuno"
    if settings.memory_url is not None:
        server = split_login(settings.memory_url.get_secret_value())
        prefix = f"zuno_{before}{_collection_name(folder)}"
    if settings.memory_store == "milvus":
        place, token = server or (str(folder / f"{before}milvus.db"), "")
        return MilvusMemoryIndex(place, vectors, token, prefix)
    from zuno.adapters.memory.lightrag import LightRagMemoryIndex, extract_by_rule

    return LightRagMemoryIndex(folder / f"{before}graph", vectors, extract or extract_by_rule, server, prefix)
