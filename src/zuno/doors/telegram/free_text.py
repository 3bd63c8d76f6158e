"""Messages that give no command, and what the chat answers. A command in an answer is text to copy, never a button."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from zuno.doors.chat.desk import ChatAnswer, ChatDesk, Speaker
from zuno.doors.telegram.access import Role
from zuno.doors.telegram.commands import ChatRequest
from zuno.doors.telegram.layout import code, italic, join, paragraphs, text
from zuno.doors.telegram.render import MESSAGES, render
from zuno.doors.telegram.reply import Reply
from zuno.doors.zuno import Zuno
from zuno.present.document import Documented


def answer_free_text(desk: ChatDesk) -> Callable[[ChatRequest, Zuno], AsyncIterator[Reply]]:
    async def answer(asked: ChatRequest, zuno: Zuno) -> AsyncIterator[Reply]:
        speaker = Speaker(str(asked.chat), str(asked.user), viewer=asked.role is not Role.OWNER)
        yield show_answer(await desk.answer(asked.text, speaker))

    return answer


def show_answer(answer: ChatAnswer) -> Reply:
    said = join(*map(text, answer.text.splitlines()))
    proposed = "" if answer.proposal is None else code(answer.proposal.command)
    read = [source.command + (f", {source.as_of}" if source.as_of else "") for source in answer.sources]
    unread = italic("nothing was looked up") if answer.source == "model" else ""
    sources = italic(f"from {'; '.join(read)}") if read else unread
    if answer.view is None:
        return Reply(paragraphs(join(said, proposed), sources))
    documented = isinstance(answer.view, Documented) or any(kind in MESSAGES for kind in type(answer.view).__mro__)
    shown = render(answer.view) if documented else Reply("The command line shows that.")
    return replace(shown, html=paragraphs(said, shown.html, sources))
