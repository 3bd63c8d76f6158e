"""Texts about a coin: posts of public Telegram channels, and a web search. Texts are evidence, never instructions."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final

from zuno.adapters.http import RequestLimits
from zuno.adapters.venues.paging import time_limit
from zuno.adapters.venues.vendor_json import parse_instant
from zuno.adapters.venues.web import WebFeed, WebService, clean
from zuno.kernel.errors import Malformed, Unavailable, UsageError
from zuno.kernel.units import Millis
from zuno.markets.feeds import CHANNELS, SEARCH
from zuno.trading.model.market import MINUTE_MS, Feed, Text

PUBLIC_URL: Final = "https://t.me"
LONGEST: Final = 1_000
MOST_PAGES: Final = 5
NAMES: Final[Mapping[str, re.Pattern[str]]] = {
    "BTC": re.compile(r"\b(btc|bitcoin|xbt)\b", re.IGNORECASE),
    "ETH": re.compile(r"\b(eth|ether|ethereum)\b", re.IGNORECASE),
}
"""Words that name a coin; a post that names none concerns all."""
_CHANNEL: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{3,31}")
_POST: Final = re.compile(r"[A-Za-z0-9_]+/([0-9]{1,12})")
_VOID: Final = frozenset("area base br col embed hr img input link meta source track wbr".split())


class Channels(WebFeed):
    """Posts of public Telegram channels from their preview pages, `t.me/s/NAME`, an undocumented page. One channel that
    cannot be read makes the answer `Unavailable`."""

    feed = Feed.NEWS
    venue = CHANNELS

    def __init__(self, web: WebService, names: Sequence[str]) -> None:
        for name in names:
            if not _CHANNEL.fullmatch(name):
                raise UsageError(f"{name[:40]!r} is not a channel's name; write it as in t.me/NAME.")
        super().__init__(web)
        self._names = tuple(names)

    async def texts(self, about: str, since: Millis, until: Millis) -> Sequence[Text]:
        """Posts of that time about a coin, oldest first; pages are read back until one begins before it."""
        texts: dict[tuple[str, str], Text] = {}
        async with time_limit("the channels"):
            for name in self._names:
                for text in await self._posts(name, since):
                    if since <= text.at <= until and concerns(text.body, about):
                        texts[text.channel, text.id] = text
        return sorted(texts.values(), key=lambda text: (text.at, text.channel, text.id))

    async def _posts(self, name: str, since: Millis) -> list[Text]:
        posts: list[Text] = []
        before: dict[str, str] = {}
        for _ in range(MOST_PAGES):
            page = preview(await self._web.text(f"s/{name}", "page", before), name)
            posts += page.texts
            if page.first is None or (page.oldest is not None and page.oldest < since):
                return posts
            before = {"before": str(page.first)}
        raise Unavailable(f"The channel {name} has more than {MOST_PAGES} pages of that time; ask for less")


def concerns(body: str, about: str) -> bool:
    named = {coin for coin, pattern in NAMES.items() if pattern.search(body)}
    return not named or about in named


@dataclass(frozen=True, slots=True)
class Preview:
    """One page: the posts with text, and the lowest number and oldest time of all posts, text or not."""

    texts: Sequence[Text]
    first: int | None
    oldest: Millis | None


def preview(page: str, channel: str) -> Preview:
    """`Malformed` for a page that is no channel's preview. Service messages have a number and no text."""
    reader = _PreviewPage()
    reader.feed(page)
    reader.close()
    if not reader.is_channel:
        raise Malformed(f"The page of the channel {channel} is no preview of a channel")
    numbers, texts = list[int](), list[Text]()
    for post in reader.posts:
        if (number := _POST.fullmatch(post.name)) is None:
            raise Malformed(f"A post of the channel {channel} has no number")
        numbers.append(int(number[1]))
        if not post.is_service:
            if (at := parse_instant(post.time or "")) is None:
                raise Malformed(f"A post of the channel {channel} has no time that can be read")
            texts.append(Text(at, channel, str(numbers[-1]), clean("".join(post.words), LONGEST)))
    oldest = min((text.at for text in texts), default=None)
    return Preview([text for text in texts if text.body], min(numbers, default=None), oldest)


@dataclass(slots=True)
class _Post:
    name: str
    is_service: bool
    time: str | None = None
    words: list[str] = field(default_factory=list)


class _PreviewPage(HTMLParser):
    """Collects posts: depth tells where a message and its text end."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.is_channel = False
        self.posts: list[_Post] = []
        self._depth = 0
        self._post_depth: int | None = None
        self._text_depth: int | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        classes = (attributes.get("class") or "").split()
        if tag in _VOID:
            if tag == "br" and self._text_depth is not None:
                self.posts[-1].words.append("\n")
            return
        self._depth += 1
        if "tgme_channel_history" in classes or "tgme_channel_info" in classes:
            self.is_channel = True
        if "tgme_widget_message" in classes and self._post_depth is None:
            self.posts.append(_Post(attributes.get("data-post") or "", "service_message" in classes))
            self._post_depth = self._depth
        elif self._post_depth is not None:
            is_quoted = "js-message_reply_text" in classes
            if "tgme_widget_message_text" in classes and not is_quoted and self._text_depth is None:
                self._text_depth = self._depth
            if tag == "time" and "time" in classes:
                self.posts[-1].time = attributes.get("datetime")

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if self._depth == self._text_depth:
            self._text_depth = None
        if self._depth == self._post_depth:
            self._post_depth = None
        self._depth -= 1

    def handle_data(self, data: str) -> None:
        if self._text_depth is not None:
            self.posts[-1].words.append(data)


PATIENCE: Final = RequestLimits(timeout=60.0, attempts=1)
"""It reads the web before it answers, and every question costs: a failed one is not asked again."""
MODEL: Final = "sonar"
LONGEST_ANSWER: Final = 4_000
MOST_TOKENS: Final = 800
COIN_NAMES: Final = {"BTC": "Bitcoin (BTC)", "ETH": "Ethereum (ETH)"}


class Search(WebFeed):
    """One answer about now, of Perplexity or a service that speaks its chat endpoint:
    https://docs.perplexity.ai/api-reference/chat-completions-post."""

    feed = Feed.NARRATIVE
    venue = SEARCH

    def __init__(self, web: WebService, now: Callable[[], Millis]) -> None:
        super().__init__(web)
        self._now = now

    async def texts(self, about: str, since: Millis, until: Millis) -> Sequence[Text]:
        now = self._now()
        if not since <= now <= until + MINUTE_MS:
            return ()
        answer = await self._web.post("chat/completions", "answer", self._question(about))
        choice = answer.child("choices").only()
        body = clean(choice.child("message").text("content"), LONGEST_ANSWER)
        if not body:
            raise Malformed("The search answered with no words")
        at = Millis(min(now, until))
        return (Text(at, SEARCH, hashlib.sha256(body.encode()).hexdigest()[:16], body),)

    def _question(self, about: str) -> dict[str, object]:
        asked = (
            f"What happened in the last 24 hours that matters to the price of {COIN_NAMES.get(about, about)}? Name "
            "events, figures and their times. Say plainly when there is nothing. No advice."
        )
        return {
            "model": MODEL,
            "messages": [{"role": "user", "content": asked}],
            "max_tokens": MOST_TOKENS,
            "temperature": 0,
        }
