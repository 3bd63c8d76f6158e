"""Every command of the chat, its help, and what answers free text: a command proposed there is never a button."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from html import escape

from zuno.doors.chat.desk import ChatAnswer, ChatDesk, Speaker
from zuno.doors.telegram import analysis_commands, lp_commands, money_commands, trading_commands
from zuno.doors.telegram.access import Role
from zuno.doors.telegram.commands import ChatRequest, Command, Level
from zuno.doors.telegram.layout import code, italic, join, paragraphs, text
from zuno.doors.telegram.render import render
from zuno.doors.telegram.reply import Reply
from zuno.doors.zuno import Zuno

_MARKS = {
    Level.LOOK: "",
    Level.OWNER: " · owners",
    Level.LOWERS_RISK: " · acts at once",
    Level.MONEY: " · asks you to confirm",
}


async def show_help(asked: ChatRequest, zuno: Zuno) -> Reply:
    return Reply("\n".join(("<b>Commands</b>", *map(_help_line, COMMANDS))))


def _help_line(command: Command) -> str:
    usage = f" {escape(command.usage, quote=False)}" if command.usage else ""
    aliases = f" (/{', /'.join(command.aliases)})" if command.aliases else ""
    return f"/{command.name}{usage}{aliases}: {escape(command.description, quote=False)}{_MARKS[command.level]}"


COMMANDS: tuple[Command, ...] = (
    Command("help", "", "List the commands.", Level.LOOK, show_help),
    *trading_commands.COMMANDS,
    *analysis_commands.COMMANDS,
    *lp_commands.COMMANDS,
    *money_commands.COMMANDS,
)


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
    shown = render(answer.view)
    return replace(shown, html=paragraphs(said, shown.html, sources))
