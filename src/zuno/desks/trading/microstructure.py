"""The expert on microstructure: which way the book leans, what size costs, and which walls were never meant."""

from __future__ import annotations

from typing import Final

from zuno.agents.ask import Minds
from zuno.core.board import stance_of
from zuno.core.books import BookFigures
from zuno.core.known import Missing
from zuno.core.triage import LEAN
from zuno.desks.trading import knowledge
from zuno.desks.trading.matter import Matter
from zuno.desks.trading.opinions import LONG_TEXT, Direction, MicrostructureOpinion
from zuno.desks.trading.speaking import Heard, hear, noted, to_expert, voice_of
from zuno.desks.trading.weighing import Pull, confidence, pulled, told, total, way
from zuno.domain.trading import Side
from zuno.messages.cycle import BookAnomaly, MicrostructureEntry

ROLE: Final = "microstructure"
ORDINARY: Final = 0.15
"""An imbalance within this says nothing."""
LOPSIDED: Final = 1.5
"""How many times dearer one way must be than the other to mean something."""
NOTICEABLE_BPS: Final = 0.5
"""Below this nobody minds what size costs."""
_BIASES: Final[dict[int, Direction]] = {1: "UP", 0: "NEUTRAL", -1: "DOWN"}


async def weigh(matter: Matter, minds: Minds) -> Heard[MicrostructureEntry]:
    sections = (
        knowledge.market(matter),
        knowledge.anomalies(matter),
        knowledge.book(matter),
        knowledge.derivatives(matter, 40),
    )
    spoken = await hear(to_expert(ROLE, sections, MicrostructureOpinion, lambda: twin(matter)), minds)
    said = spoken.value
    entry = MicrostructureEntry(
        source=spoken.source,
        why=noted(spoken),
        anomaly=said.anomaly,
        confidence=said.confidence,
        directional_bias=said.directional_bias,
        rationale=said.rationale,
        stance=0,
    )
    return Heard(entry.model_copy(update={"stance": stance_of(entry)}), voice_of(ROLE, spoken))


def twin(matter: Matter) -> MicrostructureOpinion:
    book = matter.features.book
    if isinstance(book, Missing):
        why = f"The book is not known: {book.reason}."
        return MicrostructureOpinion(
            anomaly="none", confidence=0.0, directional_bias="NEUTRAL", rationale=why[:LONG_TEXT]
        )
    walls, lean = _walls(matter), _lean(book)
    pulls = [*walls, *lean, *_sizes(book)]
    anomaly: BookAnomaly = "none"
    if walls and abs(total(walls)) >= abs(total(lean)):
        anomaly = "fake_wall"
    elif not isinstance(book.imbalance, Missing) and abs(book.imbalance) > LEAN:
        anomaly = "microstructure_imbalance"
    return MicrostructureOpinion(
        anomaly=anomaly,
        confidence=confidence(pulls),
        directional_bias=_BIASES[way(total(pulls))],
        rationale=told(pulls, _ordinary(book))[:LONG_TEXT],
    )


def _lean(book: BookFigures) -> list[Pull]:
    if isinstance(book.imbalance, Missing) or abs(book.imbalance) <= ORDINARY:
        return []
    side = "bids" if book.imbalance > 0 else "asks"
    return [Pull(pulled(book.imbalance, LEAN, 0.75), f"{side} outweigh: the imbalance is {book.imbalance:+.2f}")]


def _walls(matter: Matter) -> list[Pull]:
    """A wall of bids that was never meant wanted buyers to come: who put it there sells."""
    walls = matter.features.walls
    if isinstance(walls, Missing):
        return []
    found: list[Pull] = []
    for side, sign, name in ((Side.LONG, -1, "bids"), (Side.SHORT, 1, "asks")):
        fake = [one for one in walls.fake if one.side is side]
        if fake:
            largest = max(fake, key=lambda one: one.times_median)
            size = f"{largest.times_median:.1f}× the median"
            said = f"a wall of {name} at {knowledge.price(largest.price)}, {size}, vanished untraded"
            found.append(Pull(sign * min(0.5 + 0.1 * (len(fake) - 1), 0.7), said))
    return found


def _sizes(book: BookFigures) -> list[Pull]:
    """Where size is dear the book is thin, and the price goes that way more easily."""
    buy, sell = book.buy_slippage_bps, book.sell_slippage_bps
    if isinstance(buy, Missing) or isinstance(sell, Missing) or max(buy, sell) < NOTICEABLE_BPS:
        return []
    if max(buy, sell) < LOPSIDED * min(buy, sell):
        return []
    sign, thin = (1, "asks") if buy > sell else (-1, "bids")
    return [Pull(0.25 * sign, f"{thin} are thin: slippage is {buy:.3f} bps to buy and {sell:.3f} bps to sell")]


def _ordinary(book: BookFigures) -> str:
    lean = "" if isinstance(book.imbalance, Missing) else f", the imbalance {book.imbalance:+.2f}"
    return f"An ordinary book: the spread is {book.spread_bps:.3f} bps{lean}, and no wall vanished."
