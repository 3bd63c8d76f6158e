"""An update of every kind that the Bot API documents, from a person and where it can, from a chat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.wire.telegram_api import NOW, Person, Room, TelegramApi, bot_user, private_chat

Build = Callable[[TelegramApi, Person, Room | None, str], dict[str, Any]]


def sample_update(
    api: TelegramApi, kind: str, user: Person, chat: Room | None = None, text: str = "/status"
) -> dict[str, Any]:
    """What stands under the kind's name in an update."""
    return _BUILDERS[kind](api, user, chat, text)


def _message(api: TelegramApi, user: Person, chat: Room | None, text: str) -> dict[str, Any]:
    return api.message(user, text, chat)


def _edited(api: TelegramApi, user: Person, chat: Room | None, text: str) -> dict[str, Any]:
    return _message(api, user, chat, text) | {"edit_date": NOW + 5}


def _post(api: TelegramApi, user: Person, chat: Room | None, text: str) -> dict[str, Any]:
    channel = {"id": -1_009_999, "type": "channel", "title": "News"}
    document = api.message(user, text, chat) | {"chat": channel, "sender_chat": channel}
    del document["from"]
    return document


def _edited_post(api: TelegramApi, user: Person, chat: Room | None, text: str) -> dict[str, Any]:
    return _post(api, user, chat, text) | {"edit_date": NOW + 5}


def _callback(api: TelegramApi, user: Person, chat: Room | None, text: str) -> dict[str, Any]:
    under = api.message(user, "a card", chat) | {"from": bot_user()}
    return {"id": "4001", "from": user.document(), "message": under, "chat_instance": "-7", "data": text[:64]}


def _chat(user: Person, chat: Room | None) -> dict[str, Any]:
    return private_chat(user) if chat is None else chat.document()


def _membership(api: TelegramApi, user: Person, chat: Room | None, text: str) -> dict[str, Any]:
    return {
        "chat": _chat(user, chat),
        "from": user.document(),
        "date": NOW,
        "old_chat_member": {"user": bot_user(), "status": "left"},
        "new_chat_member": {"user": bot_user(), "status": "member"},
    }


def _boost(api: TelegramApi, user: Person, chat: Room | None, text: str) -> dict[str, Any]:
    source = {"source": "premium", "user": user.document()}
    boost = {"boost_id": "b1", "add_date": NOW, "expiration_date": NOW + 60, "source": source}
    return {"chat": _chat(user, chat), "boost": boost}


def _removed_boost(api: TelegramApi, user: Person, chat: Room | None, text: str) -> dict[str, Any]:
    source = {"source": "premium", "user": user.document()}
    return {"chat": _chat(user, chat), "boost_id": "b1", "remove_date": NOW, "source": source}


def _poll(text: str) -> dict[str, Any]:
    option = {"text": "yes", "voter_count": 1, "persistent_id": "o1"}
    return {
        "id": "p1",
        "question": text,
        "options": [option],
        "total_voter_count": 1,
        "is_closed": False,
        "is_anonymous": True,
        "type": "regular",
        "allows_multiple_answers": False,
        "allows_revoting": False,
        "members_only": False,
    }


_THUMB = [{"type": "emoji", "emoji": "👍"}]
_ADDRESS = {"country_code": "DE", "state": "", "city": "B", "street_line1": "1", "street_line2": "", "post_code": "1"}
_BUILDERS: dict[str, Build] = {
    "message": _message,
    "edited_message": _edited,
    "channel_post": _post,
    "edited_channel_post": _edited_post,
    "inline_query": lambda api, user, chat, text: {
        "id": "9",
        "from": user.document(),
        "query": text,
        "offset": "",
        "chat_type": "sender",
    },
    "chosen_inline_result": lambda api, user, chat, text: {"result_id": "1", "from": user.document(), "query": text},
    "callback_query": _callback,
    "shipping_query": lambda api, user, chat, text: {
        "id": "8",
        "from": user.document(),
        "invoice_payload": text,
        "shipping_address": _ADDRESS,
    },
    "pre_checkout_query": lambda api, user, chat, text: {
        "id": "8",
        "from": user.document(),
        "currency": "XTR",
        "total_amount": 5,
        "invoice_payload": text,
    },
    "poll": lambda api, user, chat, text: _poll(text),
    "poll_answer": lambda api, user, chat, text: {
        "poll_id": "p1",
        "user": user.document(),
        "option_ids": [0],
        "option_persistent_ids": ["o1"],
    },
    "my_chat_member": _membership,
    "chat_member": _membership,
    "chat_join_request": lambda api, user, chat, text: {
        "chat": _chat(user, chat),
        "from": user.document(),
        "user_chat_id": user.id,
        "date": NOW,
        "bio": text,
    },
    "chat_boost": _boost,
    "removed_chat_boost": _removed_boost,
    "message_reaction": lambda api, user, chat, text: {
        "chat": _chat(user, chat),
        "message_id": 5,
        "user": user.document(),
        "date": NOW,
        "old_reaction": [],
        "new_reaction": _THUMB,
    },
    "message_reaction_count": lambda api, user, chat, text: {
        "chat": _chat(user, chat),
        "message_id": 5,
        "date": NOW,
        "reactions": [{"type": _THUMB[0], "total_count": 3}],
    },
    "business_connection": lambda api, user, chat, text: {
        "id": "c1",
        "user": user.document(),
        "user_chat_id": user.id,
        "date": NOW,
        "is_enabled": True,
    },
    "business_message": lambda api, user, chat, text: (
        _message(api, user, chat, text) | {"business_connection_id": "c1"}
    ),
    "edited_business_message": lambda api, user, chat, text: (
        _edited(api, user, chat, text) | {"business_connection_id": "c1"}
    ),
    "deleted_business_messages": lambda api, user, chat, text: {
        "business_connection_id": "c1",
        "chat": _chat(user, chat),
        "message_ids": [5],
    },
    "purchased_paid_media": lambda api, user, chat, text: {"from": user.document(), "paid_media_payload": text},
    "managed_bot": lambda api, user, chat, text: {"user": user.document(), "bot": bot_user()},
    "guest_message": _message,
}
KINDS = tuple(_BUILDERS)
