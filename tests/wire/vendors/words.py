"""Perplexity's chat endpoint and the preview page of a public Telegram channel.

Built from https://docs.perplexity.ai/api-reference/chat-completions-post and https://core.telegram.org/widgets/post (a
post's `data-post`, its text and its `time`, as t.me/s/NAME lists them).
"""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from typing import Any

from tests.wire.model_server import http
from tests.wire.vendors.serving import Query, Route
from tests.wire.vendors.world import World

KEY = "pplx-exam-key"
CHANNEL = "coin_wire"


def search(world: World) -> dict[str, Route]:
    def answer(query: Query) -> Any:
        message = {"role": "assistant", "content": world.texts[-1].body}
        return {
            "id": "3c90c3cc",
            "model": "sonar",
            "created": world.now // 1_000,
            "usage": {"prompt_tokens": 14, "completion_tokens": 70, "total_tokens": 84},
            "citations": ["https://example.com/a"],
            "object": "chat.completion",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        }

    return {"/chat/completions": answer}


def post(at: int, number: str, body: str, channel: str = CHANNEL, *, quoted: str = "", service: bool = False) -> str:
    """A message; `quoted` is what it replies to, and a service message is what the channel did, without a time."""
    time = datetime.fromtimestamp(at / 1_000, UTC).isoformat()
    words = escape(body).replace("\n", "<br/>")
    marks = "text_not_supported_wrap service_message" if service else "text_not_supported_wrap"
    reply = (
        f"""<a class="tgme_widget_message_reply user-color-4" href="https://t.me/{channel}/2">
<div class="tgme_widget_message_author accent_color"><span class="tgme_widget_message_author_name">A</span></div>
<div class="tgme_widget_message_text js-message_reply_text" dir="auto">{escape(quoted)}</div></a>"""
        if quoted
        else ""
    )
    time_shown = "" if service else f'<time datetime="{time}" class="time">12:00</time>'
    return f"""<div class="tgme_widget_message_wrap js-widget_message_wrap">
<div class="tgme_widget_message {marks} js-widget_message" data-post="{channel}/{number}" data-view="x">
<div class="tgme_widget_message_user"><a href="https://t.me/{channel}"><img src="a.jpg"></a></div>
<div class="tgme_widget_message_bubble"><div class="tgme_widget_message_author">Author words</div>
{reply}
<div class="tgme_widget_message_text js-message_text" dir="auto">{words}<b></b></div>
<div class="tgme_widget_message_footer compact"><span class="tgme_widget_message_views">1.2K</span>
<a class="tgme_widget_message_date" href="#">{time_shown}</a></div>
</div></div></div>"""


def page(posts: str) -> str:
    return (
        '<!DOCTYPE html><html><head><meta charset="utf-8"></head><body><main class="tgme_main">'
        '<div class="tgme_channel_info"><div class="tgme_channel_info_header">A channel</div></div>'
        f'<section class="tgme_channel_history js-message_history">{posts}</section></main></body></html>'
    )


def channels(world: World, most: int = 20) -> dict[str, Route]:
    def preview(query: Query) -> bytes:
        before = int(query.get("before", 10**12))
        kept = [text for text in world.texts if int(text.id) < before][-most:]
        html = page("".join(post(text.at, text.id, text.body) for text in kept))
        return http(200, html.encode(), "text/html; charset=utf-8")

    return {f"/s/{CHANNEL}": preview}
