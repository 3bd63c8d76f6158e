"""Embeddings from OpenAI or any server with its `/v1/embeddings`: Ollama, vLLM, llama.cpp.

Endpoint: https://platform.openai.com/docs/api-reference/embeddings.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Final

import httpx2
import numpy as np

from zuno.adapters.http import OK, HttpClient, RequestLimits
from zuno.adapters.memory.hashed import pack_vector
from zuno.kernel import foreign_json
from zuno.kernel.errors import Unavailable, Unreachable
from zuno.llm.budget import Reservation, RunBudget
from zuno.llm.prompts import estimate_tokens

DUPLICATE: Final = 0.90
"""Usual for headlines where embeddings know meanings. Not measured for each model there is: see MiniLM's."""
PATIENCE: Final = RequestLimits(timeout=30.0, attempts=2, max_bytes=50_000_000)
_MOST_TOKENS: Final = 10**9
"""A server that reports more miscounts."""
_AT_ONCE: Final = 128
"""Texts of one request."""


@dataclass(frozen=True, slots=True)
class EmbeddingBudget:
    budget: RunBudget
    price: Callable[[int], Awaitable[Decimal | None]]
    """Of so many tokens, in dollars."""


@dataclass(frozen=True, slots=True)
class EndpointEmbedder:
    """`name` holds server and model: one model name on two servers may be two models."""

    url: str
    """Up to and with `/v1`."""
    model: str
    name: str
    dimension: int
    key: str = ""
    patience: RequestLimits = PATIENCE
    budget: EmbeddingBudget | None = None
    """None: nothing is counted."""
    duplicate: ClassVar[float] = DUPLICATE

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        """Empty texts are not sent: servers refuse them. Beyond the budget nothing is sent: `Unavailable`."""
        asked = [text for text in texts if text.strip()]
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        embeddings: list[bytes] = []
        if asked:
            async with httpx2.AsyncClient(base_url=self.url, headers=headers) as client:
                server = HttpClient(f"The embedding model {self.model}", client, self.patience)
                for start in range(0, len(asked), _AT_ONCE):
                    embeddings += await self._ask(server, asked[start : start + _AT_ONCE])
        vectors = iter(embeddings)
        return [next(vectors) if text.strip() else bytes(self.dimension) for text in texts]

    async def _ask(self, server: HttpClient, texts: Sequence[str]) -> list[bytes]:
        """Reserve, ask, settle. The reservation is given back only if the server read nothing."""
        estimated = sum(map(estimate_tokens, texts))
        reserved = await self._reserve(estimated)
        try:
            answer = await server.post("embeddings", {"model": self.model, "input": texts, "encoding_format": "float"})
        except Unreachable:
            await self._settle(reserved, 0)
            raise
        if answer.status != OK:
            await self._settle(reserved, 0)
            raise Unavailable(f"The embedding model {self.model} refused the request (HTTP {answer.status}).")
        try:
            document = foreign_json.parse(answer.body)
            if not isinstance(document, dict):
                raise ValueError("no object")
            vectors = self._read(document, len(texts))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise Unavailable(f"The embedding model {self.model} did not answer with embeddings.") from error
        await self._settle(reserved, _count_tokens(document) or estimated)
        return vectors

    async def _settle(self, reserved: Reservation | None, used: int) -> None:
        if self.budget is not None and reserved is not None:
            price = await self.budget.price(used) if used else Decimal(0)
            await self.budget.budget.settle(reserved, used, price)

    async def _reserve(self, tokens: int) -> Reservation | None:
        if self.budget is None:
            return None
        reserved = await self.budget.budget.reserve(tokens, await self.budget.price(tokens))
        if isinstance(reserved, str):
            raise Unavailable(f"The embedding model {self.model} is not asked: {reserved}.")
        return reserved

    def _read(self, document: dict[str, Any], count: int) -> list[bytes]:
        rows = sorted(document["data"], key=lambda row: int(row["index"]))
        if [int(row["index"]) for row in rows] != list(range(count)):
            raise ValueError("not one vector for each text")
        return [self._pack(row["embedding"]) for row in rows]

    def _pack(self, numbers: Sequence[object]) -> bytes:
        values = [float(str(number)) for number in numbers]
        if len(values) != self.dimension:
            raise Unavailable(
                f"The embedding model {self.model} gives {len(values)} numbers and not {self.dimension}: "
                f"set ZUNO_EMBEDDING_DIMENSION={len(values)}."
            )
        if not all(map(math.isfinite, values)):
            raise ValueError("no numbers")
        return pack_vector(np.array(values, dtype=np.float64))


def _count_tokens(document: dict[str, Any]) -> int | None:
    """Tokens as the server counts them; None where it gives no usable count."""
    usage = document.get("usage")
    count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return count if isinstance(count, int) and 0 < count <= _MOST_TOKENS else None
