"""The server on the official SDK: tools and resources over stdio. An error is one sentence, and never a traceback."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, cast

from mcp import MCPError, types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from zuno.doors.mcp.analyses import Analyses
from zuno.doors.mcp.services import AssistantServices
from zuno.doors.mcp.tools import TOOLS, AssistantTool, Desk
from zuno.kernel.errors import Broken, Refused, Unavailable, UsageError, ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.view import MAX_TEXT_CHARS, View, write_document
from zuno.llm.prompts import FENCE_RULE, Untrusted
from zuno.lp.model.chains import CHAINS
from zuno.lp.model.cover import RankFault
from zuno.markets.market import Catalogue
from zuno.markets.venues import DEFAULT_VENUE
from zuno.present.document import Documented, Kind, Value, map_values
from zuno.present.text import to_text

_WORD: Final = re.compile(r"[A-Za-z0-9_&+-]{0,24}")
"""A single short word, or nothing: too short to carry an instruction."""
_REGULAR: Final = re.compile(
    r"|[+-]?[0-9]+(\.[0-9]+)?"  # a number, an amount to the last wei
    r"|(0x|[a-z]{1,12}_)?[0-9a-f]{8,128}|0x[0-9a-fA-F]{40}|0x([0-9a-f]{2})*"  # a hash, an id, an address, calldata
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,15}Z"  # a moment
)
_STRANGERS: Final = re.compile(
    r"(?i)\w*(symbol|token|base|quote|pair|label|unit|name|title|text|note|reason|why|query|model|rationale|said|because|"
    "headline|caution|constraint|condition|setup|review|narrative|failed|failure|error|detail|unknown|difference|whyrule|"
    "scenario|technical|derivatives|experts|logic|factor|uncertainty|claim|tiebreaker|consensus_signal)s?[01]?"
)
"""Fields in which a stranger may have chosen every word: there a single short one is fenced too, unless it is ours."""
_OURS: Final = frozenset(
    {
        "USD",
        "gwei",
        *RankFault,
        *(market.symbol for market in Catalogue().list_at(DEFAULT_VENUE)),
        *(token.symbol for chain in CHAINS for token in chain.tokens),
    }
)
_UNITS: Final = _OURS | {"", "%", "h", "s", "×", "R", "bps", "KRW", "ms", "points", "ticks"}
_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
"""A field's name; others are keys of a map, and texts."""


def fence_text(text: str, field: str = "") -> str:
    """`field`: whose text it is."""
    ours = text in _OURS or (not _STRANGERS.fullmatch(field) and _WORD.fullmatch(text))
    return text if ours or _REGULAR.fullmatch(text) else Untrusted(text, MAX_TEXT_CHARS).fenced_text


def fence_document(view: View) -> dict[str, Any]:
    """Fenced by what a text looks like and not by who should have written it: nothing has to be marked for it."""
    document: dict[str, Any] = _fence(json.loads(write_document(view)))
    return document


def write_fenced(view: View) -> str:
    """What the view says of itself, in lines; one without a document, as JSON."""
    if not isinstance(view, Documented):
        return json.dumps(fence_document(view))
    return to_text(map_values(view.to_document(), fence_value), TEXT_COLUMNS)


def fence_value(value: Value) -> Value:
    """A figure of a unit that is not ours may be named by a stranger."""
    ours = value.kind is not Kind.FOREIGN and (value.number is None or value.unit in _UNITS)
    if ours and "untrusted" not in value.text.casefold():
        return value
    text = fence_text(value.text, "text")
    # Tags that stand alone are never folded, however long the word between them is.
    return replace(value, text=text if text == value.text else text.replace(">", "> ", 1).replace("</", " </"))


def describe_fenced(view: type[View]) -> dict[str, Any]:
    """The schema of such a document: a fenced text has no longer the length and the form it had."""
    written = view.model_json_schema(mode="serialization")
    # A view that leaves fields out when it is written says nothing of them there.
    described = written if "properties" in written else view.model_json_schema(mode="validation")
    schema: dict[str, Any] = _remove_bounds(described)
    return schema


def _remove_bounds(part: Any) -> Any:
    if isinstance(part, list):
        return [_remove_bounds(item) for item in part]
    if not isinstance(part, dict):
        return part
    bounds = ("maxLength", "pattern") if part.get("type") == "string" else ()
    return {name: _remove_bounds(item) for name, item in part.items() if name not in bounds}


def _fence(value: Any, field: str = "") -> Any:
    match value:
        case str():
            return fence_text(value, field)
        case list():
            return [_fence(item, field) for item in value]
        case dict():
            # A Safe's file is ours to the last letter, and its checksum would not bear a fence.
            exact = {"safe"} if value.keys() >= {"safe", "approvalHash"} else ()
            return {
                name if _NAME.fullmatch(name) else fence_text(name): item if name in exact else _fence(item, name)
                for name, item in value.items()
            }
        case _:
            return value


TEXT_COLUMNS: Final = 200
"""Wide enough for every column of a table: an assistant may be given no more of an answer than its text."""
LOOK_SECONDS: Final = 50.0
"""For a look; clients cut a call off after a minute."""
MOST_LISTED: Final = 20
"""Resources of a kind that are listed; the others are read by their id all the same."""
INSTRUCTIONS: Final = (
    "Zuno is a desk of arguing agents for Uniswap v4 liquidity and crypto trading. These tools look and ask; none"
    " approves, signs, sends or changes a setting: name the command for that and let the person run it. Figures come"
    " from the tools, with their source and age; SYNTHETIC and paper are not real money. Nothing here is advice. "
) + FENCE_RULE
_PLANS: Final = "zuno://plans/"
_RUNS: Final = "zuno://runs/"
_JSON: Final = "application/json"
_KINDS: Final[tuple[tuple[type[ZunoError], str], ...]] = (
    (UsageError, "usage"),
    (Refused, "refused"),
    (Unavailable, "unavailable"),
    (Broken, "broken"),
)
_log: Final = logging.getLogger(__name__)

Context = ServerRequestContext[Any]


class AssistantServer:
    """The `AssistantDoor`."""

    def __init__(self, services: AssistantServices, random: Callable[[int], bytes], version: str) -> None:
        self._services = services
        self._analyses = Analyses(services, random)
        self._desk = Desk(services, self._analyses)
        self.protocol: Server[Any] = Server(
            "zuno",
            version=version,
            title="Zuno",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
        )

    async def serve(self) -> None:
        """Until stdin ends. The SDK keeps stdout for itself meanwhile: whatever else is printed goes to stderr."""
        try:
            async with stdio_server() as (reading, writing):
                options = self.protocol.create_initialization_options()
                await self.protocol.run(cast("Any", _answer_unread(reading, writing)), writing, options)
        finally:
            await self.close()

    async def close(self) -> None:
        await self._analyses.close()

    async def _list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[describe_tool(tool) for tool in TOOLS.values()])

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            name = plain_text(params.name, 40)
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {name!r}; tools/list names those there are.")
        try:
            asked = tool.takes.model_validate(params.arguments or {})
            view = await self._look(lambda: tool.look(self._desk, asked))
            document, text = fence_document(view), write_fenced(view)
        except Exception as error:  # the border: a bug is logged and named by its type alone
            return types.CallToolResult(content=[_text(FENCE_RULE), _text(describe_error(error))], is_error=True)
        return types.CallToolResult(content=[_text(FENCE_RULE), _text(text)], structured_content=document)

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        try:
            plans = (await self._services.archive().plans(MOST_LISTED)).plans
            runs = (await self._services.cycles().runs(MOST_LISTED)).runs
        except Exception as error:  # the border, as above
            raise MCPError(types.INTERNAL_ERROR, describe_error(error)) from None
        listed = [(f"{_PLANS}{plan.plan_id}", plan.plan_id, f"{plan.kind} on {plan.chain}") for plan in plans]
        listed += [(f"{_RUNS}{run.run_id}", run.run_id, f"{run.symbol} {run.mode}, {run.state}") for run in runs]
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=uri, name=name, description=description, mime_type=_JSON)
                for uri, name, description in listed
            ]
        )

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        plan = types.ResourceTemplate(
            uri_template=f"{_PLANS}{{id}}", name="plan", description="A plan of the LP desk.", mime_type=_JSON
        )
        run = types.ResourceTemplate(
            uri_template=f"{_RUNS}{{id}}", name="run", description="A run of the trading desk.", mime_type=_JSON
        )
        return types.ListResourceTemplatesResult(resource_templates=[plan, run])

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        look: Callable[[], Awaitable[View]]
        if uri.startswith(_PLANS):
            look = lambda: self._services.archive().plan(uri.removeprefix(_PLANS))  # noqa: E731
        elif uri.startswith(_RUNS):
            look = lambda: self._services.cycles().why(uri.removeprefix(_RUNS))  # noqa: E731
        else:
            raise MCPError(types.INVALID_PARAMS, f"A resource is {_PLANS}ID or {_RUNS}ID.")
        try:
            document = fence_document(await self._look(look))
        except Exception as error:  # the border, as above
            raise MCPError(types.INVALID_PARAMS, describe_error(error)) from None
        rule = types.TextResourceContents(uri=uri, mime_type="text/plain", text=FENCE_RULE)
        content = types.TextResourceContents(uri=uri, mime_type=_JSON, text=json.dumps(document))
        return types.ReadResourceResult(contents=[rule, content])

    async def _look(self, look: Callable[[], Awaitable[View]]) -> View:
        """See what other processes did since, and ask."""
        self._services.refresh()
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                return await look()
        except TimeoutError:
            raise Unavailable(
                f"No answer came within {LOOK_SECONDS:g} s; ask again: the first look at a home invents its market."
            ) from None


async def _answer_unread(reading: AsyncIterable[Any], writing: Any) -> AsyncIterator[Any]:
    """The messages. What cannot be read is answered here: the SDK leaves its sender without an answer."""
    async for item in reading:
        if isinstance(item, Exception):
            await writing.send(SessionMessage(describe_unread(item)))
        else:
            yield item


def describe_unread(error: Exception) -> types.JSONRPCError:
    """Under the id that was asked under, where it is text. JSON may hold half a surrogate pair, which is no text."""
    asked: Any = error.errors()[0]["input"] if isinstance(error, ValidationError) else ""
    code = types.INVALID_REQUEST
    if isinstance(asked, str):
        try:
            asked = json.loads(asked)
        except (ValueError, RecursionError):
            code = types.PARSE_ERROR
    id_ = asked.get("id") if isinstance(asked, dict) else None
    known = id_ if type(id_) is int or (isinstance(id_, str) and id_.isprintable()) else None
    problem = types.ErrorData(code=code, message="This is no message of JSON-RPC in Unicode text.")
    return types.JSONRPCError(jsonrpc="2.0", id=known, error=problem)


def describe_tool(tool: AssistantTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.takes.model_json_schema(),
        output_schema=describe_fenced(tool.gives),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.starts,
            destructive_hint=False,
            idempotent_hint=not tool.starts,
            open_world_hint=True,
        ),
    )


def describe_error(error: Exception) -> str:
    """Its kind and its sentence, which may quote whatever was given or answered; our own bug is named by its type."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return _sentence("usage", f"{'.'.join(map(str, first['loc']))}: {first['msg']}.")
    if isinstance(error, ZunoError):
        kind = next((name for branch, name in _KINDS if isinstance(error, branch)), "unavailable")
        return _sentence(kind, str(error))
    _log.error("a tool failed", exc_info=error)
    return f"bug: Zuno has a bug ({type(error).__name__}); `zuno logs` says more."


def _sentence(kind: str, text: str) -> str:
    return f"{kind}: {Untrusted(text, MAX_TEXT_CHARS).fenced_text}"


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)
