"""Answer a question in rounds: in each a model calls one tool that only reads, or answers. Every round is one `ask`."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Final, Generic, Literal, Protocol, TypeVar

from pydantic import Field, create_model

from zuno.llm.ask import ModelContext, ask
from zuno.llm.port import Attempt
from zuno.llm.prompts import Untrusted, Value
from zuno.llm.question import Opinion, Question, Screen, Source

ANSWER: Final = "answer"
"""The tool name that means an answer."""
MAX_CALLS: Final = 4
"""Tool calls of one question; the round after them can only answer."""
MAX_SECONDS: Final = 90.0
"""For one question, models and tools together; no round begins later."""
TOOL_SECONDS: Final = 30.0
QUESTION_CHARS: Final = 1_000
HISTORY_CHARS: Final = 2_000
STRANGER_CHARS: Final = 240
"""Of one text of a stranger."""
MAX_STRANGERS: Final = 24
_LEFT_OUT: Final = "(left out for want of room)"
_NOTHING_SAID: Final = "No model answered."


class Argument(Opinion):
    name: Annotated[str, Field(min_length=1, max_length=24)]
    value: Annotated[str, Field(min_length=1, max_length=200)]


class Step(Opinion):
    """One round of a model: a tool and its arguments, or the answer."""

    tool: str
    arguments: Annotated[list[Argument], Field(max_length=6)]
    answer: Annotated[str, Field(max_length=2_000)]
    propose: Annotated[str, Field(max_length=80)]
    """A command that the person may send; empty where there is none."""


class ToolOutput(Protocol):
    """What a tool gives a model to read."""

    @property
    def text(self) -> str:
        """Facts by id, in words of our own."""

    @property
    def strangers(self) -> Sequence[str]:
        """Texts of other parties, each under the label that `text` uses; they are fenced."""


R = TypeVar("R", bound=ToolOutput)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    name: str
    description: str
    arguments: tuple[str, ...] = ()
    check: Callable[[Mapping[str, str]], str | None] = lambda arguments: None
    """None, or what is wrong with the arguments, for the model."""


@dataclass(frozen=True, slots=True)
class ToolCall(Generic[R]):
    tool: str
    arguments: Mapping[str, str]
    output: R


@dataclass(frozen=True, slots=True)
class ChatTask(Generic[R]):
    """A question, the tools that may be called, and how its answer is checked."""

    role: str
    prompt: str
    """The name of a prompt file with the places tools, commands, question, history, results, strangers and left."""
    question: str
    history: str
    """Earlier turns; the first thing left out where room is short."""
    commands: str
    """What may be proposed, one a line."""
    tools: Sequence[ToolSpec]
    call: Callable[[str, Mapping[str, str], float], Awaitable[R]]
    """Call a tool within so many seconds. A failure to read is an output that says so; other errors are raised."""
    judge: Callable[[Step, Sequence[ToolCall[R]]], str | None]
    """What is wrong with an answer beside its figures, or None."""
    faults: Callable[[str, Sequence[ToolCall[R]]], Iterable[str]]
    """What is wrong with an answer's text, or a piece of it."""
    max_chars: int
    """Of system and user text together. The question is never left out."""


@dataclass(frozen=True, slots=True)
class ChatResult(Generic[R]):
    """The answer, or none and why."""

    answer: str | None
    """With slots."""
    propose: str
    calls: tuple[ToolCall[R], ...]
    source: Source
    why: str
    attempts: tuple[Attempt, ...]


async def answer_in_rounds(task: ChatTask[R], model_context: ModelContext) -> ChatResult[R]:
    """At most `MAX_CALLS` tools, then an answer. No answer if there is no model, one fails, a budget or the time is
    used up, or an answer stays unusable after its repair."""
    started = model_context.stopwatch()
    calls: list[ToolCall[R]] = []
    attempts: list[Attempt] = []
    for round_ in range(MAX_CALLS + 1):
        left = MAX_SECONDS - (model_context.stopwatch() - started)
        if left <= 0:
            return ChatResult(None, "", tuple(calls), "fallback", "the time for one question is over", tuple(attempts))
        last = round_ == MAX_CALLS
        spoken = await ask(
            _build_question(task, calls, round_, model_context),
            replace(model_context, timeout=min(model_context.timeout, left)),
        )
        attempts += spoken.attempts
        step = spoken.value
        if spoken.model is None:
            return ChatResult(None, "", tuple(calls), spoken.source, spoken.why, tuple(attempts))
        if step.tool == ANSWER or last:
            return ChatResult(step.answer, step.propose, tuple(calls), spoken.source, spoken.why, tuple(attempts))
        arguments = _read_arguments(step)
        seconds = max(1.0, min(TOOL_SECONDS, MAX_SECONDS - (model_context.stopwatch() - started)))
        calls.append(ToolCall(step.tool, arguments, await task.call(step.tool, arguments, seconds)))
    raise AssertionError("the last round answers")


def _build_question(
    task: ChatTask[R], calls: Sequence[ToolCall[R]], round_: int, model_context: ModelContext
) -> Question[Step]:
    last = round_ == MAX_CALLS
    variables, included = _fit(task, calls, MAX_CALLS - round_, model_context)
    names = () if last else tuple(tool.name for tool in task.tools)
    return Question(
        role=task.role,
        round=round_,
        prompt=task.prompt,
        variables=lambda: variables,
        output=_step_type((*names, ANSWER)),
        fallback=lambda: Step(tool=ANSWER, arguments=[], answer=_NOTHING_SAID, propose=""),
        judge=lambda step: _judge_step(task, step, calls),
        prose=lambda step, screen: _screen_step(task, step, included, screen),
        max_output_tokens=1_000,
    )


def _screen_step(task: ChatTask[R], step: Step, included: Sequence[ToolCall[R]], screen: Screen) -> Step:
    """The answer without its faulty sentences. Text beside a tool call is shown to nobody and not checked."""
    answer = screen(step.answer, lambda piece: task.faults(piece, included) if step.tool == ANSWER else (), "")
    return step.model_copy(update={"answer": answer})


def _judge_step(task: ChatTask[R], step: Step, calls: Sequence[ToolCall[R]]) -> str | None:
    if step.answer == _NOTHING_SAID:
        return None
    if step.tool == ANSWER:
        return task.judge(step, calls) if step.answer.strip() else "the answer is empty"
    tool = next(tool for tool in task.tools if tool.name == step.tool)
    arguments = _read_arguments(step)
    if len(arguments) < len(step.arguments):
        return "an argument is given twice"
    if unknown := sorted(arguments.keys() - set(tool.arguments)):
        takes = ", ".join(tool.arguments) or "no arguments"
        return f"{tool.name} takes {takes}, not {unknown[0]}"
    if any(call.tool == tool.name and call.arguments == arguments for call in calls):
        return f"{tool.name} was called with these arguments already; its result stands in the question"
    return tool.check(arguments)


def _read_arguments(step: Step) -> dict[str, str]:
    return {argument.name: argument.value for argument in step.arguments}


def _fit(
    task: ChatTask[R], calls: Sequence[ToolCall[R]], left: int, model_context: ModelContext
) -> tuple[dict[str, Value], list[ToolCall[R]]]:
    """The prompt's values within its room, and the calls whose results are included. History is dropped first, then the
    oldest results."""
    history, included = task.history, list(calls)
    while True:
        variables = _variables(task, calls, included, history, left)
        prompt = model_context.prompts.render(task.prompt, variables)
        if len(prompt.system) + len(prompt.user) <= task.max_chars or not (history or included):
            return variables, included
        if history:
            history = ""
        else:
            included.pop(0)


def _variables(
    task: ChatTask[R], calls: Sequence[ToolCall[R]], included: Sequence[ToolCall[R]], history: str, left: int
) -> dict[str, Value]:
    results = [f"## {_describe_call(call)}\n{call.output.text if call in included else _LEFT_OUT}" for call in calls]
    strangers = [text for call in included for text in call.output.strangers][:MAX_STRANGERS]
    fenced = " ".join(Untrusted(text, STRANGER_CHARS).safe_text for text in strangers)
    return {
        "tools": "\n".join(f"{tool.name}({', '.join(tool.arguments)}): {tool.description}" for tool in task.tools),
        "commands": task.commands,
        "question": Untrusted(task.question, QUESTION_CHARS, quotable=True),
        "history": Untrusted(history, HISTORY_CHARS, quotable=True) if history else "(none)",
        "results": "\n\n".join(results) or "(no tool was called yet)",
        "strangers": Untrusted(fenced, (STRANGER_CHARS + 1) * MAX_STRANGERS) if fenced else "(none)",
        "left": "You can call no more tools: write the answer." if left == 0 else f"Tool calls left: {left}.",
    }


def _describe_call(call: ToolCall[R]) -> str:
    arguments = ", ".join(f"{name}={value}" for name, value in call.arguments.items())
    return f"{call.tool}({Untrusted(arguments, STRANGER_CHARS).safe_text})"


@cache
def _step_type(names: tuple[str, ...]) -> type[Step]:
    """The step with the tools' names in its schema, so that a grammar holds a model to them."""
    choice: Any = Literal[names]
    return create_model("Step", __base__=Step, tool=(choice, ...))
