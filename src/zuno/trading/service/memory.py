"""The desk's memory as a person asks for it: what closed trades taught, found by words, and forgotten on request."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from zuno.journal.port import Author, Journal
from zuno.kernel.errors import NotFound, UsageError
from zuno.kernel.text import plain_text
from zuno.kernel.units import Millis
from zuno.markets.market import DEFAULT_SYMBOLS, Symbol, parse_symbol
from zuno.trading.learn.memory_book import LessonBook, MemoryBook, MemoryIndexes
from zuno.trading.learn.recall import note_memory
from zuno.trading.measure.similarity import LEAST_ALIKE, split_words
from zuno.trading.model.known import derive
from zuno.trading.model.memory import MEMORY_FORGOTTEN, MemoryForgotten, PostMortem, RecallQuery, Verdict
from zuno.trading.model.trade_events import ExitReason
from zuno.trading.ports.recall import MemoryIndex
from zuno.trading.service.memory_view import (
    ForgottenView,
    LessonsView,
    MemoriesView,
    MemoryView,
    PostMortemView,
    SearchView,
    post_mortem_view,
    standing_view,
)

OWNER: Final = Author("owner")
MOST: Final = 500
"""Memories that are listed, the newest."""
SEARCH_CHARS: Final = 10_000
"""Of a longer query the rest is not read."""
MOST_FOUND: Final = 20
_ALSO_CALLED: Final[Mapping[str, str]] = {
    ExitReason.STOP: "stopped out", ExitReason.TARGET: "take profit", ExitReason.HOLD_OVER: "time expired",
    ExitReason.LIQUIDATION: "liquidated", Verdict.SUCCESS: "won win winner profit", Verdict.FAILURE: "lost loss loser",
}  # fmt: skip


@dataclass(eq=False)
class MemoryDesk:
    """`origin`: of the market that this home reads. `now`: its clock where it goes on by itself; None: time is as
    far as the newest close."""

    journal: Callable[[], Awaitable[Journal]]
    book: MemoryBook
    lesson_book: LessonBook
    index: MemoryIndex | MemoryIndexes
    origin: Callable[[], str]
    now: Callable[[], Millis] | None = None
    markets: tuple[Symbol, ...] = DEFAULT_SYMBOLS

    async def list(self, lines: int = 50, symbol: str | None = None, before: str | None = None) -> MemoriesView:
        """The newest first, of every market; `before`: those that were written before this one."""
        wanted = None if symbol is None else parse_symbol(symbol, self.markets)
        newest = await self.book.newest(MOST if wanted else min(max(1, lines), MOST), before)
        kept = [memory for memory in newest if wanted is None or memory.symbol is wanted][: max(0, lines)]
        return MemoriesView(memories=tuple(derive(MemoryView, note_memory(memory)) for memory in kept))

    async def show(self, id_: str) -> PostMortemView:
        """`NotFound` for one that was never written, or was forgotten."""
        return post_mortem_view(await self._find(id_))

    async def search(self, query: str, lines: int = 5) -> SearchView:
        """Ranked by the share of words that symbol, side, exit, outcome or setup hold, or by similarity of the setup,
        whichever is higher. Other markets are searched where nothing of this one fits. `UsageError` for a query
        without a word; only the beginning of a long one is read."""
        text = plain_text(query, SEARCH_CHARS)
        words = set(split_words(text))
        if not words:
            raise UsageError('What is to be found? For example `zuno memory search "BTC long stopped out"`.')
        if not 1 <= lines <= MOST_FOUND:
            raise UsageError(f"--lines is a number from 1 to {MOST_FOUND}.")
        known = await self.book.read()
        if not known:
            return SearchView(query=text, source=self.index.name)
        origin, before = self._market_of([(memory.origin, memory.closed) for memory in known.values()])
        answer = await self.index.recall(RecallQuery(text=text, origin=origin, before=before, limit=MOST_FOUND))
        likeness = {hit.id: hit for hit in answer.found if hit.id in known}
        ranked: list[tuple[bool, float, float, int, str]] = []
        for memory in known.values():
            held = len(words.intersection(split_words(_list_words(memory))))
            hit = likeness.get(memory.id)
            similarity = max(round(held / len(words), 4), (hit and hit.similarity) or 0.0)
            if held or similarity >= LEAST_ALIKE:
                score = hit.score if hit else 0.0
                ranked.append((memory.origin != origin, -similarity, -score, -memory.closed, memory.id))
        elsewhere = bool(ranked) and min(ranked)[0]
        notes = [note_memory(known[id], -rank) for other, rank, _, _, id in sorted(ranked) if other == elsewhere]
        if not notes:  # a store that is down answers with the most recent
            notes = [note_memory(known[id]) for id, hit in likeness.items() if hit.similarity is None]
        note = answer.note
        if elsewhere:
            note = "; ".join(filter(None, (note, f"of other markets: no memory of {origin} holds a word of it")))
        elif not notes and not note:
            nearest = max((hit.similarity or 0.0 for hit in answer.found), default=0.0)
            note = f"nothing alike: no memory holds a word of it, and the nearest similarity is {nearest:.2f}"
        memories = tuple(derive(MemoryView, memory) for memory in notes[:lines])
        return SearchView(query=text, source=answer.source, note=note, memories=memories)

    async def lessons(self) -> LessonsView:
        """Every lesson as it stands now, on a recording after its newest close; the newest first."""
        written = (await self.lesson_book.read()).values()
        if not written:
            return LessonsView()
        post_mortems = await self.book.read()
        closed = [(memory.origin, memory.closed) for memory in post_mortems.values()]
        origin, before = self._market_of([*closed, *((lesson.origin, lesson.written) for lesson in written)])
        standings = await self.lesson_book.list_standings(post_mortems.values(), origin, before)
        reviews = await self.lesson_book.reviews()
        return LessonsView(lessons=tuple(standing_view(lesson, reviews.get(lesson.lesson.id)) for lesson in standings))

    async def forget(self, id_: str) -> ForgottenView:
        """Removes it from files and indexes; the journal keeps the request, and a new index is built without it."""
        post_mortem = await self._find(id_)
        journal, id = await self.journal(), post_mortem.id
        await journal.append_once(kind=MEMORY_FORGOTTEN, author=OWNER, payload=MemoryForgotten(id=id), request_id=id)
        await self.index.remove(id)
        return derive(ForgottenView, post_mortem)

    async def _find(self, id_: str) -> PostMortem:
        memory = await self.book.find(plain_text(id_, 64))
        if memory is None:
            raise NotFound(f"No memory {plain_text(id_, 40)!r} in this journal; `zuno memory list` lists them.")
        return memory

    def _market_of(self, learned: Sequence[tuple[str, Millis]]) -> tuple[str, Millis]:
        """The market that is read here, where something was learned in it, else that of the newest; and the moment
        after the last of it. `learned`: markets and moments, at least one."""
        own = self.origin()
        origin = own if any(market == own for market, _ in learned) else max(learned, key=itemgetter(1))[0]
        after = Millis(max(at for market, at in learned if market == origin) + 1)
        return origin, after if self.now is None or origin != own else Millis(max(after, self.now()))


def _list_words(memory: PostMortem) -> str:
    reason, verdict = memory.summary.reason, memory.verdict
    called = f"{reason} {_ALSO_CALLED.get(reason, '')} {verdict} {_ALSO_CALLED.get(verdict, '')}"
    return f"{memory.symbol} {memory.symbol.base} {memory.side} {called} {memory.outcome} {memory.setup}"
