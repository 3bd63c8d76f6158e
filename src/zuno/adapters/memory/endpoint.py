"""Vectors from a provider, or from any server that speaks OpenAI's `/v1/embeddings`: Ollama, vLLM, llama.cpp.

Endpoint: https://platform.openai.com/docs/api-reference/embeddings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import httpx2
import numpy as np

from zuno.adapters import foreign_json
from zuno.adapters.http import OK, HttpClient, RequestLimits
from zuno.adapters.memory.hashed import pack_vector
from zuno.kernel.errors import Unavailable

DUPLICATE: Final = 0.90
"""Usual for headlines where embeddings know meanings. Not measured for each model there is: see MiniLM's."""
PATIENCE: Final = RequestLimits(timeout=30.0, attempts=2, max_bytes=50_000_000)
_AT_ONCE: Final = 128
"""Texts of one request."""


@dataclass(frozen=True, slots=True)
class EndpointEmbedder:
    """`name` tells server and model: the same model's name on two servers may be two models."""

    url: str
    """Up to and with `/v1`."""
    model: str
    name: str
    dimension: int
    key: str = ""
    patience: RequestLimits = PATIENCE

    @property
    def duplicate(self) -> float:
        return DUPLICATE

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        """Empty texts are not sent: servers refuse them."""
        asked = [text for text in texts if text.strip()]
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        found: list[bytes] = []
        if asked:
            async with httpx2.AsyncClient(base_url=self.url, headers=headers) as client:
                server = HttpClient(f"The embedding model {self.model}", client, self.patience)
                for start in range(0, len(asked), _AT_ONCE):
                    found += await self._ask(server, asked[start : start + _AT_ONCE])
        vectors = iter(found)
        return [next(vectors) if text.strip() else bytes(self.dimension) for text in texts]

    async def _ask(self, server: HttpClient, texts: Sequence[str]) -> list[bytes]:
        answer = await server.post("embeddings", {"model": self.model, "input": texts, "encoding_format": "float"})
        if answer.status != OK:
            raise Unavailable(f"The embedding model {self.model} refused the request (HTTP {answer.status}).")
        try:
            return self._read(answer.body, len(texts))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise Unavailable(f"The embedding model {self.model} did not answer with embeddings.") from error

    def _read(self, body: bytes, count: int) -> list[bytes]:
        document = foreign_json.parse(body)
        if not isinstance(document, dict):
            raise ValueError("no object")
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
