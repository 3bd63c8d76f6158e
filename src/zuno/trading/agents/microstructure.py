"""The order-book expert: imbalance, slippage by size, spoofed walls."""

from typing import Final

from zuno.llm.ask import ModelContext
from zuno.trading.agents import prompt_facts
from zuno.trading.agents.ask import ask_numeric_expert, explain, limit_confidence, limit_to_candles, to_answer
from zuno.trading.agents.case import Case
from zuno.trading.agents.evidence import Reason, confidence, direction_of, scale_weight, total_weight, weigh_by_volume
from zuno.trading.agents.known_data import has_few_books, reads_candles
from zuno.trading.measure.features import PriceAction
from zuno.trading.measure.order_book import BookFigures
from zuno.trading.measure.triage import LEAN
from zuno.trading.model import cycle
from zuno.trading.model.known import Missing
from zuno.trading.model.market import Side
from zuno.trading.rules.score import entry_stance

ROLE: Final = "microstructure"
ORDINARY: Final = 0.15
"""An imbalance within this says nothing."""
LOPSIDED: Final = 1.5
"""How many times dearer one way must be than the other to mean something."""
NOTICEABLE_BPS: Final = 0.5
"""Below this nobody minds what size costs."""
FEW_BOOKS: Final = 0.5
"""The most that less than five snapshots of a minute make sure of: enough to second a trade."""
_BIASES: Final[dict[int, cycle.Direction]] = {1: "UP", 0: "NEUTRAL", -1: "DOWN"}


async def ask_expert(case: Case, model_context: ModelContext) -> cycle.AgentAnswer[cycle.MicrostructureEntry]:
    spoken = await ask_numeric_expert(
        case,
        cycle.Expert.MICROSTRUCTURE,
        lambda: (
            prompt_facts.book_section(case),
            prompt_facts.price_action_section(case).at_weight(60),
            prompt_facts.derivatives_section(case).at_weight(40),
        ),
        cycle.MicrostructureOpinion,
        lambda: answer_by_rules(case),
        model_context,
    )
    sure, few = limit_to_candles(case, spoken.value.confidence)
    if has_few_books(case):
        sure, few = limit_confidence(sure, FEW_BOOKS, "a glance at the book makes it")
    stance = entry_stance(spoken.value)
    return to_answer(ROLE, cycle.MicrostructureEntry, spoken, few, stance=stance, confidence=sure)


def answer_by_rules(case: Case) -> cycle.MicrostructureOpinion:
    book, action = case.features.book, case.context.action
    if isinstance(book, Missing) and reads_candles(case) and not isinstance(action, Missing):
        return _answer_by_candles(case, action)
    if isinstance(book, Missing):
        return _build_opinion(case, "none", [], "The book is not known: {book.spread.unknown}.")
    walls, lean = _wall_reasons(case), _imbalance_reasons(book)
    reasons = [*walls, *lean, *_thin_side_reasons(book)]
    anomaly: cycle.BookAnomaly = "none"
    if walls and abs(total_weight(walls)) >= abs(total_weight(lean)):
        anomaly = "fake_wall"
    elif not isinstance(book.imbalance, Missing) and abs(book.imbalance) > LEAN:
        anomaly = "microstructure_imbalance"
    balance = "" if isinstance(book.imbalance, Missing) else ", the imbalance {book.imbalance}"
    quiet = f"An ordinary book: the spread is {{book.spread}}{balance}, and no wall vanished."
    return _build_opinion(case, anomaly, reasons, quiet)


def _build_opinion(
    case: Case, anomaly: cycle.BookAnomaly, reasons: list[Reason], quiet: str
) -> cycle.MicrostructureOpinion:
    sure, _ = limit_to_candles(case, confidence(reasons))
    return cycle.MicrostructureOpinion(
        anomaly=anomaly,
        confidence=min(sure, FEW_BOOKS) if has_few_books(case) else sure,
        directional_bias=_BIASES[direction_of(reasons)],
        rationale=explain(case, reasons, quiet),
    )


def _answer_by_candles(case: Case, action: PriceAction) -> cycle.MicrostructureOpinion:
    """Without a book: a long wick shows who was rejected, volume how strongly."""
    own, reasons = action.timeframe, []
    if action.rejection is not None:
        sent = f"a wick of {{{own}.wick}} of the last bar sent the price {action.rejection}"
        text = f"{sent}, on {{{own}.volume_ratio}} the usual volume"
        reasons.append(Reason(weigh_by_volume(action.volume_backing, action.rejection.sign), text))
    if action.breakout is not None and action.volume_backing == 1:
        text = f"the last bar broke {{{own}.range_edge}} on {{{own}.volume_ratio}} the usual volume"
        reasons.append(Reason(0.5 * action.breakout.sign, text))
    quiet = f"No book was recorded here; the last bar turned nobody away: its longer wick is {{{own}.wick}} of it."
    return _build_opinion(case, "none", reasons, quiet)


def _imbalance_reasons(book: BookFigures) -> list[Reason]:
    if isinstance(book.imbalance, Missing) or abs(book.imbalance) <= ORDINARY:
        return []
    side = "bids" if book.imbalance > 0 else "asks"
    return [Reason(scale_weight(book.imbalance, LEAN, 0.75), f"{side} outweigh: the imbalance is {{book.imbalance}}")]


def _wall_reasons(case: Case) -> list[Reason]:
    """A wall of bids that vanishes untraded was to lure buyers: who put it there sells."""
    walls = case.features.walls
    if isinstance(walls, Missing):
        return []
    reasons: list[Reason] = []
    for side, sign, name in ((Side.LONG, -1, "bids"), (Side.SHORT, 1, "asks")):
        fake = [(place, wall) for place, wall in enumerate(walls.fake, 1) if wall.side is side]
        if fake:
            place, _ = max(fake, key=lambda ranked: ranked[1].times_median)
            size = f"{{walls.fake_{place}_size}} the median"
            text = f"a wall of {name} at {{walls.fake_{place}_price}}, {size}, vanished untraded"
            reasons.append(Reason(sign * min(0.5 + 0.1 * (len(fake) - 1), 0.7), text))
    return reasons


def _thin_side_reasons(book: BookFigures) -> list[Reason]:
    """Where size is expensive the book is thin, and the price moves that way more easily."""
    buy, sell = book.buy_slippage_bps, book.sell_slippage_bps
    if isinstance(buy, Missing) or isinstance(sell, Missing) or max(buy, sell) < NOTICEABLE_BPS:
        return []
    if max(buy, sell) < LOPSIDED * min(buy, sell):
        return []
    sign, thin = (1, "asks") if buy > sell else (-1, "bids")
    text = f"{thin} are thin: slippage is {{book.buy_slippage}} to buy and {{book.sell_slippage}} to sell"
    return [Reason(0.25 * sign, text)]
