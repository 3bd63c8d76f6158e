"""Answer a person's free text: by a model that calls read-only tools, or by the shell's reader. Nothing acts."""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import ValidationError

from zuno.doors.chat.conversation import Ask, ChainSwitched, Conversation, EndConversation, Help, Run, Turn
from zuno.doors.chat.facts import FactWriter, ToolFacts, build_sheet
from zuno.doors.chat.proposals import Proposal, judge_proposal, list_commands, moves_anything, propose_reading
from zuno.doors.chat.tools import TOOLS, Tool, tool_for_intent
from zuno.doors.reading.intents import Reading, intent_of
from zuno.doors.reading.reader import read
from zuno.doors.reading.secrecy import looks_secret
from zuno.doors.reading.seen import asks_for_list
from zuno.doors.zuno import Zuno
from zuno.journal.port import Author, Journal
from zuno.kernel.errors import Refused, ZunoError
from zuno.kernel.text import plain_text
from zuno.kernel.view import View
from zuno.kernel.wire import Wire, derive
from zuno.llm.ask import ModelContext
from zuno.llm.chat import (
    HISTORY_CHARS,
    QUESTION_CHARS,
    TOOL_SECONDS,
    ChatResult,
    ChatTask,
    Step,
    ToolCall,
    answer_in_rounds,
)
from zuno.llm.port import Outcome
from zuno.present.document import document_of
from zuno.provenance.refusal import find_faults
from zuno.provenance.slots import render

TURN_KIND: Final = "chat"
QUESTION_KIND: Final = "chat_question"
CALL_KIND: Final = "chat_tool"


class QuestionRecord(Wire):
    """Written before a model is asked."""

    chat: str
    user: str
    question: str
    history: str
    """Earlier turns as the model reads them."""


class CallRecord(Wire):
    tool: str
    arguments: dict[str, str]
    output: ToolFacts


class SourceRecord(Wire):
    """What an answer was read from."""

    command: str
    as_of: str | None


class TurnRecord(Wire):
    """One line of a person and what was answered."""

    chat: str
    user: str
    question: str
    """Empty where the line may hold a secret."""
    answer: str
    """As it was shown, figures printed."""
    cited: str
    """The model's words with slots; empty where the rules answered."""
    proposal: str
    source: Literal["model", "rules"]
    why: str
    """Why no model answered, where one might have."""
    sources: tuple[SourceRecord, ...]


_log = logging.getLogger("zuno.chat")
ROLE: Final = "chat"
MAX_CHARS: Final = 15_000
"""Of the prompt: the role's cap."""
MAX_ANSWER_CHARS: Final = 1_500
MAX_TURNS: Final = 4
"""Turns of a chat that a model is told of."""
MAX_CHATS: Final = 100
"""Chats whose conversation is kept in mind."""
_LOOKED_BACK: Final = 60
"""Entries of the journal that are read for the history of a chat."""
_TURN_CHARS: Final = 400
_WHY: Final[Mapping[Outcome, str]] = {
    "budget": "the budget for models is used up",
    "breaker": "the model failed several times and is left alone for a while",
    "timeout": "the model did not answer in time",
    "unavailable": "the model cannot be reached",
    "refused": "the model refused to answer",
}
_UNUSABLE: Final = "the model's answer could not be used"
_SECRET: Final = "That line may hold a secret. It was not kept and no model saw it; delete it here."
_WITHHELD: Final = "(withheld)"
_HELP: Final = "Ask about the account, trades, positions, plans, alerts or memory. /help lists the commands."


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who says something, and where."""

    chat: str
    user: str
    viewer: bool = False
    """May only look: what models cost for them has a limit of its own."""


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    text: str
    """Figures printed; may be empty beside a view."""
    sources: tuple[SourceRecord, ...] = ()
    view: View | None = None
    """What the command would show, where the rules read the line."""
    proposal: Proposal | None = None
    source: Literal["model", "rules"] = "rules"
    why: str = ""
    """Why no model answered, where one might have."""
    cited: str = ""
    """The model's words with slots."""


@dataclass(slots=True)
class _Chat:
    conversation: Conversation
    turns: deque[tuple[str, str]]
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


OpenModelContext = Callable[[str, Speaker], Awaitable[ModelContext | None]]
"""What asking needs, for one request of a person; None where no model answers them."""


@dataclass(slots=True, eq=False)
class ChatDesk:
    """One for the life of a door. It reads through the same services as the commands, and can propose, never act."""

    zuno: Zuno
    journal: Callable[[], Awaitable[Journal]]
    model_context: OpenModelContext
    new_request: Callable[[], str]
    _chats: OrderedDict[str, _Chat] = field(default_factory=OrderedDict, init=False)

    async def answer(self, text: str, who: Speaker) -> ChatAnswer:
        """Always an answer: what the model found, the view the line asks for, a proposal, or a question back."""
        chat = await self._open_chat(who.chat)
        async with chat.lock:
            request = self.new_request()
            secret = looks_secret(text)
            try:
                answer = await self._answer(text, who, chat, request, secret=secret)
            except ZunoError as error:
                answer = ChatAnswer(plain_text(str(error), MAX_ANSWER_CHARS))
            await self._record(text, who, answer, request, secret=secret)
            if not secret:
                chat.turns.append((plain_text(text, _TURN_CHARS), plain_text(_tell(answer), _TURN_CHARS)))
            return answer

    async def _answer(self, text: str, who: Speaker, chat: _Chat, request: str, *, secret: bool) -> ChatAnswer:
        talk = chat.conversation
        await self._show_positions(text, talk)
        turn = talk.hear(text)
        if isinstance(turn, Run) and moves_anything(turn.reading):
            return _propose(turn, talk)
        why = ""
        if not secret and len(text) <= QUESTION_CHARS and any(map(str.isalnum, text)):
            asked = await self._ask_model(text, who, chat, request)
            if isinstance(asked, ChatAnswer):
                talk.drop_question()
                return asked
            why = asked
        answer = await self._answer_by_rules(turn, talk)
        note = _SECRET if secret else f"No model answered: {why}." if why else ""
        shown = "\n".join(part for part in (note, answer.text) if part)
        return ChatAnswer(shown, answer.sources, answer.view, answer.proposal, why=why)

    async def _ask_model(self, text: str, who: Speaker, chat: _Chat, request: str) -> ChatAnswer | str:
        """The model's answer, or why there is none; empty where none sits."""
        model_context = await self.model_context(request, who)
        if model_context is None:
            return ""
        question = QuestionRecord(chat=who.chat, user=who.user, question=text, history=_history(chat.turns))
        try:
            await self._append(QUESTION_KIND, question, request)
        except ZunoError as error:  # a configured secret stands in the line, or nothing can be written
            _log.warning("a question was not sent to a model: it cannot be recorded (%s)", type(error).__name__)
            return "the question cannot be recorded"
        box = _JournaledTools(self.zuno, chat.conversation, lambda call: self._append(CALL_KIND, call, request))
        result = await answer_in_rounds(build_task(question, box.call), model_context)
        return finish_answer(result)

    async def _show_positions(self, text: str, talk: Conversation) -> None:
        """A line that means a position by what it holds or by its place needs the list."""
        if talk.has_positions or not asks_for_list(reading := read(text)):
            return
        try:
            talk.remember_view(await self.zuno.lp(reading.slots.get("chain", talk.chain)).positions())
        except ZunoError:
            return

    async def _answer_by_rules(self, turn: Turn, talk: Conversation) -> ChatAnswer:
        match turn:
            case Help():
                return ChatAnswer(_HELP)
            case EndConversation():
                return ChatAnswer("Good bye.")
            case ChainSwitched(chain):
                return ChatAnswer(f"On {chain} from here on.")
            case Ask(question, _, offered):
                offer = [f"{number}  {_command_of(reading, talk)}" for number, reading in enumerate(offered, 1)]
                return ChatAnswer("\n".join((question, *offer)))
            case Run(_, reading):
                slots = dict(reading.slots)
                if talk.chain is not None and "chain" in intent_of(reading.intent).takes:
                    slots.setdefault("chain", talk.chain)
                tool_call = tool_for_intent(reading.intent, slots)
                if tool_call is None:
                    return _propose(turn, talk)
                tool, arguments = tool_call
                try:
                    async with asyncio.timeout(TOOL_SECONDS):
                        view = await tool.look(self.zuno, arguments)
                except TimeoutError:
                    return ChatAnswer(f"It could not be read within {TOOL_SECONDS:g} s.")
                talk.remember_view(view)
                source = _source(tool, arguments, FactWriter(tool.prefix).document(document_of(view)))
                unused = f"Not understood here: {', '.join(reading.unused)}." if reading.unused else ""
                return ChatAnswer(unused, (source,), view)

    async def _open_chat(self, name: str) -> _Chat:
        if name not in self._chats:
            turns = await self._load_turns(name)
            self._chats.setdefault(name, _Chat(Conversation(), turns))
        self._chats.move_to_end(name)
        while len(self._chats) > MAX_CHATS:
            self._chats.popitem(last=False)
        return self._chats[name]

    async def _load_turns(self, name: str) -> deque[tuple[str, str]]:
        """The last turns of a chat as the journal has them."""
        turns: list[tuple[str, str]] = []
        for entry in await (await self.journal()).latest(_LOOKED_BACK, kind=TURN_KIND):
            try:
                turn = TurnRecord.model_validate(entry.payload)
            except ValidationError:  # a command, which another room wrote down
                continue
            if turn.chat == name and turn.question:
                turns.append((plain_text(turn.question, _TURN_CHARS), plain_text(turn.answer or "?", _TURN_CHARS)))
        return deque(reversed(turns[:MAX_TURNS]), maxlen=MAX_TURNS)

    async def _record(self, text: str, who: Speaker, answer: ChatAnswer, request: str, *, secret: bool) -> None:
        turn = derive(
            TurnRecord,
            answer,
            who,
            question="" if secret else plain_text(text, QUESTION_CHARS),
            answer=plain_text(_tell(answer), MAX_ANSWER_CHARS),
            proposal="" if answer.proposal is None else answer.proposal.command,
        )
        try:
            await self._append(TURN_KIND, turn, request)
        except Refused:  # it holds a configured secret
            withheld = turn.model_copy(update={"question": "", "answer": _WITHHELD, "cited": "", "proposal": ""})
            await self._append(TURN_KIND, withheld, request)

    async def _append(self, kind: str, payload: QuestionRecord | CallRecord | TurnRecord, request: str) -> None:
        await (await self.journal()).append(kind=kind, author=Author(ROLE), payload=payload, request_id=request)


class _JournaledTools:
    """Calls tools for a model: what they found is journaled before the model reads it."""

    def __init__(self, zuno: Zuno, conversation: Conversation, record: Callable[[CallRecord], Awaitable[None]]) -> None:
        self._zuno = zuno
        self._conversation = conversation
        self._record = record
        self._prefixes: list[str] = []

    async def call(self, name: str, arguments: Mapping[str, str], seconds: float) -> ToolFacts:
        tool = TOOLS[name]
        before = self._prefixes.count(tool.prefix)
        self._prefixes.append(tool.prefix)
        facts = FactWriter(f"{tool.prefix}{before + 1}" if before else tool.prefix)
        try:
            async with asyncio.timeout(seconds):
                view = await tool.look(self._zuno, arguments)
            output = facts.document(document_of(view))
            self._conversation.remember_view(view)
        except TimeoutError:
            facts.line("it could not be read in time")
            output = facts.build(failed=True)
        except ZunoError as error:
            facts.line(f"it could not be read: {facts.stranger(str(error))}")
            output = facts.build(failed=True)
        await self._record(CallRecord(tool=name, arguments=dict(arguments), output=output))
        return output


def build_task(
    asked: QuestionRecord, call: Callable[[str, Mapping[str, str], float], Awaitable[ToolFacts]]
) -> ChatTask[ToolFacts]:
    """The question to the model; of the same record it is the same to the byte."""
    return ChatTask(
        role=ROLE,
        prompt="chat",
        question=asked.question,
        history=asked.history,
        commands=list_commands(),
        tools=[tool.spec for tool in TOOLS.values()],
        call=call,
        judge=lambda step, calls: _judge_answer(step, calls, asked.question),
        faults=_find_faults,
        max_chars=MAX_CHARS,
    )


def finish_answer(result: ChatResult[ToolFacts]) -> ChatAnswer | str:
    """The answer with its figures printed and its sources, or why there is none."""
    if result.answer is None:
        return (_WHY.get(result.attempts[-1].outcome, _UNUSABLE) if result.attempts else result.why) or _UNUSABLE
    sheet = build_sheet(call.output for call in result.calls)
    sources = tuple(_source(TOOLS[call.tool], call.arguments, call.output) for call in result.calls)
    proposal = Proposal(result.propose.strip()) if result.propose.strip() else None
    return ChatAnswer(render(result.answer, sheet), sources, None, proposal, "model", cited=result.answer)


def _judge_answer(step: Step, calls: Sequence[ToolCall[ToolFacts]], question: str) -> str | None:
    if not step.propose.strip():
        return None
    return judge_proposal(step.propose, question, {id_ for call in calls for id_ in call.output.ids})


def _find_faults(text: str, calls: Sequence[ToolCall[ToolFacts]]) -> list[str]:
    sheet = build_sheet(call.output for call in calls)
    return [str(fault) for fault in find_faults(text, sheet, limits=(1, MAX_ANSWER_CHARS))]


def _source(tool: Tool, arguments: Mapping[str, str], output: ToolFacts) -> SourceRecord:
    return SourceRecord(command=plain_text(tool.sent_as(arguments), 80), as_of=output.as_of)


def _command_of(reading: Reading, talk: Conversation) -> str:
    """What a person would send for a reading; in capitals what it does not say."""
    tool_call = tool_for_intent(reading.intent, reading.slots)
    if tool_call is None:
        return propose_reading(reading, reading.template, talk.chain).command
    tool, slots = tool_call
    open_ = {name: name.upper() for name, needed in tool.takes.items() if needed}
    return tool.sent_as({**open_, **slots})


def _propose(turn: Run, talk: Conversation) -> ChatAnswer:
    proposal = propose_reading(turn.reading, turn.words, talk.chain)
    where = "Send" if proposal.in_chat else "Type at the command line"
    nothing_done = "Nothing is done by a sentence. " if moves_anything(turn.reading) else ""
    unused = f"Not understood here: {', '.join(turn.reading.unused)}. " if turn.reading.unused else ""
    return ChatAnswer(f"{nothing_done}{unused}{where}:", proposal=proposal)


def _tell(answer: ChatAnswer) -> str:
    """The answer in one line, for the record and for the next question."""
    shown = "" if answer.view is None else f"[{', '.join(source.command for source in answer.sources)} was shown]"
    proposed = "" if answer.proposal is None else answer.proposal.command
    return " ".join(part for part in (answer.text, shown, proposed) if part)


def _history(turns: Sequence[tuple[str, str]]) -> str:
    lines = [f"Person: {question} You: {answer}" for question, answer in turns]
    while lines and sum(map(len, lines)) > HISTORY_CHARS:
        lines.pop(0)
    return " ".join(lines)
