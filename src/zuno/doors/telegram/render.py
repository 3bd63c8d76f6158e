"""A document as a Telegram message with its acts as buttons."""

from zuno.doors.telegram.reply import Button, Reply
from zuno.doors.telegram.terminal_words import chat_command, translate_commands
from zuno.kernel.view import View
from zuno.present.document import Document, document_of
from zuno.present.html import to_html


def render(view: View) -> Reply:
    """A view as a message; a picture or a page is added by whoever has it."""
    return render_document(document_of(view))


def render_document(document: Document) -> Reply:
    acts = ((act.label, chat_command(act.command)) for act in document.acts)
    buttons = tuple(Button(label, command) for label, command in acts if command is not None)
    return Reply(to_html(document, translate_commands), buttons)
