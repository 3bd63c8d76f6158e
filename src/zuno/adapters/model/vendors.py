"""OpenAI, Anthropic, Gemini and OpenAI-compatible servers through pydantic-ai, imported when first asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec
from typing import TYPE_CHECKING

import httpx2

from zuno.kernel.installation import name_install
from zuno.llm.names import ModelId, Vendor, thinking_tokens
from zuno.llm.port import Answered, Failed, ModelRequest, Reply, Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model as VendorSdk

MAX_BODY_BYTES = 1_000_000
"""The most we read of one HTTP answer."""

_HOMES = {
    Vendor.OPENAI: "https://api.openai.com/v1",
    Vendor.ANTHROPIC: "https://api.anthropic.com",
    Vendor.GOOGLE: "https://generativelanguage.googleapis.com",
}
_NO_KEY = "none"  # servers without keys want a header all the same
_NOTHING = Usage(0, 0, Decimal(0))
_MAX_TOKENS = 10**9  # a server that reports more is not counting
_CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens, read in and written out."""

    usd_in: Decimal
    usd_out: Decimal


class AnswerTooLarge(Exception):
    """The answer is too long, or compressed."""


class VendorModel:
    """One model of one vendor. The SDK is imported in a thread at the first question; where it is not installed, the
    answer names the install command."""

    def __init__(
        self, model_id: ModelId, key: str | None, *, price: Price | None = None, base_url: str | None = None
    ) -> None:
        self.name = str(model_id)
        self._id = model_id
        self._key = key
        self._price = price
        self._base_url = base_url or model_id.url or _HOMES[model_id.vendor]
        self._installed = find_spec("pydantic_ai") is not None
        self._opening = asyncio.Lock()
        self._sdk: VendorSdk | None = None
        self._http: httpx2.AsyncClient | None = None

    async def price(self, tokens_in: int, tokens_out: int) -> Decimal | None:
        return await price_tokens(self._id, self._price, tokens_in, tokens_out) if self._installed else Decimal(0)

    async def ready(self) -> None:
        if self._installed:
            await self._open()

    async def reply(self, request: ModelRequest) -> Reply:
        if not self._installed:
            return Failed("unavailable", f"models are not installed: {name_install('models')}", _NOTHING)
        sdk = await self._open()
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition
        from pydantic_ai.settings import ModelSettings

        native = bool(sdk.profile.get("supports_json_schema_output", False))
        shape = OutputObjectDefinition(
            json_schema=json.loads(request.schema),
            name=request.shape,
            strict=True if self._id.vendor in (Vendor.OPENAI, Vendor.URL) else None,
        )
        parameters = ModelRequestParameters(
            output_mode="native" if native else "prompted", output_object=shape, allow_text_output=True
        )
        most = request.max_output_tokens + thinking_tokens(self.name)
        settings = ModelSettings(max_tokens=most, timeout=request.timeout * 2)
        if self._id.vendor is Vendor.GOOGLE:
            # In its own way for each Gemini: a level, a budget, or nothing where it cannot think.
            settings["thinking"] = "low"
        if self._id.vendor is Vendor.URL:
            settings["temperature"] = 0.0
        try:
            response = await sdk.request(_messages(request), settings, parameters)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            # The vendor's code met the vendor's bytes; ours was done before the try and goes on after it.
            return _fault(error)
        return await self._reply(response)

    async def close(self) -> None:
        self._sdk = None
        if self._http is not None:
            http, self._http = self._http, None
            await http.aclose()

    async def _reply(self, response: ModelResponse) -> Reply:
        usage = await self._usage(response)
        text = self._without_key("".join(part.content for part in response.parts if part.part_kind == "text"))
        if response.finish_reason == "content_filter":
            details = response.provider_details or {}
            refused = details.get("refusal")
            refusal = self._without_key(refused) if isinstance(refused, str) else text
            return Failed("refused", "it refused to answer", usage, refusal)
        if text:
            return Answered(text, usage)
        if any(part.part_kind == "tool-call" for part in response.parts):
            return Failed("malformed", "it called a tool instead of answering", usage)
        if response.finish_reason == "length":
            return Failed("malformed", "it reached the output limit before answering", usage)
        return Failed("malformed", "it answered with nothing", usage)

    async def _usage(self, response: ModelResponse) -> Usage | None:
        tokens_in, tokens_out = response.usage.input_tokens, response.usage.output_tokens
        if not (0 < tokens_in <= _MAX_TOKENS and 0 <= tokens_out <= _MAX_TOKENS):
            return None
        return Usage(tokens_in, tokens_out, await self.price(tokens_in, tokens_out))

    def _without_key(self, text: str) -> str:
        """A server that repeats our key must not get it into a record."""
        return text.replace(self._key, "[key]") if self._key else text

    async def _open(self) -> VendorSdk:
        async with self._opening:
            if self._sdk is None:
                self._http = self._http or self._client()
                self._sdk = await asyncio.to_thread(_build, self._id, self._key or _NO_KEY, self._base_url, self._http)
            return self._sdk

    def _client(self) -> httpx2.AsyncClient:
        """No redirects (a key must not follow one), no compression (a bound on bytes is then a bound on text)."""
        local = self._id.loopback or self._base_url.startswith(("http://127.", "http://localhost"))
        return httpx2.AsyncClient(
            headers={"accept-encoding": "identity"},
            timeout=httpx2.Timeout(None, connect=_CONNECT_SECONDS),
            follow_redirects=False,
            trust_env=not local,
            event_hooks={"response": [_bound_body]},
        )


def _build(model_id: ModelId, key: str, base_url: str, http: httpx2.AsyncClient) -> VendorSdk:
    """The vendor's client without its own retries: one call is one request."""
    match model_id.vendor:
        case Vendor.ANTHROPIC:
            from anthropic import AsyncAnthropic
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            anthropic = AsyncAnthropic(api_key=key, base_url=base_url, http_client=http, max_retries=0)
            return AnthropicModel(model_id.name, provider=AnthropicProvider(anthropic_client=anthropic))
        case Vendor.GOOGLE:
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            google = GoogleProvider(api_key=key, http_client=http, base_url=base_url)
            return GoogleModel(model_id.name, provider=google)
        case Vendor.OPENAI | Vendor.URL:
            from openai import AsyncOpenAI
            from pydantic_ai.models.openai import OpenAIChatModel
            from pydantic_ai.profiles.openai import OpenAIModelProfile
            from pydantic_ai.providers.openai import OpenAIProvider
            from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

            client = AsyncOpenAI(api_key=key, base_url=base_url, http_client=http, max_retries=0)
            if model_id.vendor is Vendor.OPENAI:
                return OpenAIChatModel(model_id.name, provider=OpenAIProvider(openai_client=client))
            # Grammars of local servers want the schema as it is, bounds included, and know `max_tokens` only.
            plain = OpenAIModelProfile(
                supports_json_schema_output=True,
                json_schema_transformer=None,
                openai_chat_supports_max_completion_tokens=False,
            )
            provider = OpenAICompatibleProvider("compatible", openai_client=client)
            return OpenAIChatModel(model_id.name, provider=provider, profile=plain)


def _messages(request: ModelRequest) -> list[ModelMessage]:
    from pydantic_ai import messages as wire

    messages: list[ModelMessage] = []
    opening: list[wire.ModelRequestPart] = [wire.SystemPromptPart(request.system)]
    images = request.images
    for turn in request.turns:
        if turn.who == "model":
            messages.append(wire.ModelResponse(parts=[wire.TextPart(turn.text)]))
            continue
        pictures = [wire.BinaryContent(data=image.data, media_type=image.media_type) for image in images]
        content: list[wire.UserContent] = [turn.text, *pictures]
        messages.append(wire.ModelRequest(parts=[*opening, wire.UserPromptPart(content if images else turn.text)]))
        opening, images = [], ()
    return messages


async def _bound_body(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity").lower() not in ("identity", ""):
        raise AnswerTooLarge("compressed, though we asked for plain bytes")
    response.stream = _Bounded(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: object) -> None:
        if not isinstance(stream, httpx2.AsyncByteStream):
            raise TypeError("an answer to an async client is an async stream")
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for chunk in self._stream:
            read += len(chunk)
            if read > MAX_BODY_BYTES:
                raise AnswerTooLarge(f"more than {MAX_BODY_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _fault(error: Exception) -> Failed:
    """Our failure for a vendor's error; nothing of the server's own is quoted, because it may hold what we sent."""
    from pydantic_ai import exceptions as theirs

    for cause in _causes(error):
        if isinstance(cause, AnswerTooLarge):
            return Failed("malformed", f"it answered with too much: {cause}")
        if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
            return Failed("unavailable", "it could not be reached", _NOTHING)
        if isinstance(cause, httpx2.TimeoutException):
            return Failed("timeout", "it did not answer in time")
        if isinstance(cause, json.JSONDecodeError | UnicodeDecodeError):
            return Failed("malformed", "its answer is not JSON")
        if isinstance(cause, httpx2.TransportError):
            return Failed("unavailable", f"it broke off ({type(cause).__name__})")
    match error:
        case theirs.ModelHTTPError():
            return _status(error.status_code)
        case theirs.ModelTimeoutError() | theirs.ModelRequestTimeout():
            return Failed("timeout", "it did not answer in time")
        case theirs.ContentFilterError():
            return Failed("refused", "its content filter refused")
        case theirs.ModelAPIError():
            return Failed("unavailable", f"its service failed ({type(error).__name__})")
        case theirs.UserError():
            raise error  # we held the library wrong
        case _:
            return Failed("malformed", f"its answer is not what its API promises ({type(error).__name__})")


def _status(status: int) -> Failed:
    """A rejected request cost nothing; a failed one may have cost something."""
    if not 400 <= status < 500:
        return Failed("unavailable", f"its service failed (HTTP {status})")
    key = "it refused our key"
    words = {401: key, 403: key, 404: "it does not know this model", 429: "it limits our requests"}
    return Failed("unavailable", f"{words.get(status, 'it refused the request')} (HTTP {status})", _NOTHING)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


async def price_tokens(model_id: ModelId, price: Price | None, tokens_in: int, tokens_out: int) -> Decimal | None:
    """By the configured price, else nothing on this machine, else by the package's price list (no network)."""
    if price is not None:
        return (price.usd_in * tokens_in + price.usd_out * tokens_out) / 1_000_000
    if model_id.loopback:
        return Decimal(0)
    return await asyncio.to_thread(_list_price, model_id, tokens_in, tokens_out)


def _list_price(model_id: ModelId, tokens_in: int, tokens_out: int) -> Decimal | None:
    from genai_prices import Usage as Counted
    from genai_prices import calc_price

    counted = Counted(input_tokens=tokens_in, output_tokens=tokens_out)
    with suppress(LookupError):
        if model_id.url:
            return calc_price(counted, model_id.name, provider_api_url=model_id.url).total_price
        return calc_price(counted, model_id.name, provider_id=model_id.vendor.value).total_price
    return None
