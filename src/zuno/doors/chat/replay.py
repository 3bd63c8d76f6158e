"""Replay an answer of the chat: recorded tool results and replies give the same words, or what differs is named."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from pydantic import BaseModel

from zuno.doors.chat import desk
from zuno.doors.chat.facts import ToolFacts
from zuno.doors.chat.proposals import Proposal
from zuno.journal.decision_view import ReplayView
from zuno.journal.port import Journal
from zuno.kernel.canonical import canonical
from zuno.llm.ask import ModelContext
from zuno.llm.chat import answer_in_rounds
from zuno.llm.port import Attempt

R = TypeVar("R", bound=BaseModel)
EDITION: Final = 1
Rehearse = Callable[[Journal, Sequence[Attempt]], tuple[ModelContext, Callable[[], Sequence[str]]]]
"""Recorded replies as models, and what was asked differently then."""


class ChatReplay:
    def __init__(self, journal: Callable[[], Awaitable[Journal]], rehearse: Rehearse, code: Callable[[], str]) -> None:
        self._journal = journal
        self._rehearse = rehearse
        self._code = code

    async def replay(self, request_id: str) -> ReplayView | None:
        """None where no model was asked in that request, or it is no chat's: nothing could be compared."""
        journal = await self._journal()
        entries = [entry async for entry in journal.entries(request_id=request_id)]

        def read(kind: str, form: type[R]) -> list[R]:
            return [form.model_validate(entry.payload) for entry in entries if entry.kind == kind]

        asked = read(desk.QUESTION_KIND, desk.QuestionRecord)
        ended = next((entry for entry in entries if entry.kind == desk.TURN_KIND), None)
        if not asked or ended is None:
            return None
        turn = desk.TurnRecord.model_validate(ended.payload)
        model_context, asked_differently = self._rehearse(journal, read("model_attempt", Attempt))
        calls = _RecordedCalls(read(desk.CALL_KIND, desk.CallRecord))
        answer = desk.finish_answer(await answer_in_rounds(desk.build_task(asked[0], calls.call), model_context))
        then, now = _list_decisions(turn), _list_decisions(answer)
        differences = [*asked_differently(), *calls.differences]
        if then != now:
            differences.append("the answer is another one")
        return ReplayView(
            ok=not differences,
            identical=not differences,
            edition=EDITION,
            request_id=request_id,
            hash=_hash(then),
            replayed_hash=_hash(now),
            code_then=ended.code,
            code_now=self._code(),
            differences=tuple(differences),
        )


class _RecordedCalls:
    def __init__(self, calls: Sequence[desk.CallRecord]) -> None:
        self._calls = list(calls)
        self._unexpected: list[str] = []

    @property
    def differences(self) -> list[str]:
        return [*self._unexpected, *(f"{call.tool} was called then" for call in self._calls)]

    async def call(self, name: str, arguments: Mapping[str, str], seconds: float) -> ToolFacts:
        if not self._calls or (self._calls[0].tool, self._calls[0].arguments) != (name, dict(arguments)):
            self._unexpected.append(f"{name} was not called then")
            return ToolFacts(text="", failed=True)
        return self._calls.pop(0).output


def _list_decisions(by: desk.TurnRecord | desk.ChatAnswer | str) -> dict[str, str]:
    if isinstance(by, str) or by.source == "rules":
        return {"cited": "", "proposal": ""}
    command = by.proposal.command if isinstance(by.proposal, Proposal) else by.proposal
    return {"cited": by.cited, "proposal": command or ""}


def _hash(decided: dict[str, str]) -> str:
    return hashlib.sha256(canonical(decided)).hexdigest()
