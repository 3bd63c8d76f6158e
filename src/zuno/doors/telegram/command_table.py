"""Every command of the chat, and the help that lists them."""

from __future__ import annotations

from html import escape

from zuno.doors.telegram import analysis_commands, lp_commands, money_commands, trading_commands
from zuno.doors.telegram.commands import ChatRequest, Command, Level
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
