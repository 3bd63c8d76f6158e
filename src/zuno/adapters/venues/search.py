"""What the web says of a coin, asked of Perplexity or any service that speaks its chat endpoint.

Endpoint: https://docs.perplexity.ai/api-reference/chat-completions-post. The answer is evidence, never instructions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

from zuno.adapters.http import RequestLimits
from zuno.adapters.venues.web import WebFeed, WebService, clean
from zuno.kernel.errors import Malformed
from zuno.kernel.units import Millis
from zuno.trading.model.market import MINUTE_MS, Feed, Text
from zuno.trading.model.venues import SEARCH

PUBLIC_URL: Final = "https://api.perplexity.ai"
PATIENCE: Final = RequestLimits(timeout=60.0, attempts=1)
"""It reads the web before it answers, and every question costs: one that failed is not asked again."""
MODEL: Final = "sonar"
LONGEST: Final = 4_000
MOST_TOKENS: Final = 800
NAMES: Final = {"BTC": "Bitcoin (BTC)", "ETH": "Ethereum (ETH)"}


class Search(WebFeed):
    """One answer about now. The past cannot be asked for: a time that is over has none."""

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
        body = clean(choice.child("message").text("content"), LONGEST)
        if not body:
            raise Malformed("The search answered with no words")
        at = Millis(min(now, until))
        return (Text(at, SEARCH, hashlib.sha256(body.encode()).hexdigest()[:16], body),)

    def _question(self, about: str) -> dict[str, object]:
        asked = (
            f"What happened in the last 24 hours that matters to the price of {NAMES.get(about, about)}? Name events, "
            "figures and their times. Say plainly when there is nothing. No advice."
        )
        return {
            "model": MODEL,
            "messages": [{"role": "user", "content": asked}],
            "max_tokens": MOST_TOKENS,
            "temperature": 0,
        }
