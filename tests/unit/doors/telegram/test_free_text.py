"""The chat's answers as messages, and its commands beside those that the bot has."""

from __future__ import annotations

import pytest

pytest.importorskip("telegram")

from zuno.doors.chat.desk import ChatAnswer, SourceRecord
from zuno.doors.chat.proposals import COMMANDS as PROPOSABLE
from zuno.doors.chat.proposals import Proposal
from zuno.doors.chat.tools import TOOLS
from zuno.doors.telegram.command_table import COMMANDS, show_answer

KNOWN = {f"/{name}" for command in COMMANDS for name in (command.name, *command.aliases)}


def test_whatever_is_named_to_a_person_is_a_command_of_the_bot() -> None:
    named = {tool.command.split()[0] for tool in TOOLS.values() if tool.command.startswith("/")}
    assert named | set(PROPOSABLE) <= KNOWN


def test_a_proposal_is_text_to_copy() -> None:
    source = SourceRecord(command="/positions 1", as_of="2026-01-31T00:00:00Z")
    reply = show_answer(ChatAnswer("It is <b>out</b> & far.", (source,), None, Proposal("/close 1"), "model"))
    assert "&lt;b&gt;out&lt;/\u2060b&gt; &amp; far." in reply.html
    assert "<code>/close 1</code>" in reply.html
    assert "2026-01-31T00:00:00Z" in reply.html
    assert (reply.buttons, reply.photo) == ((), None)


def test_an_answer_without_a_look_says_so() -> None:
    assert "looked" in show_answer(ChatAnswer("Hello.", source="model")).html
    assert "looked" not in show_answer(ChatAnswer("Say what you want.")).html
