"""Who has data: an expert without holds no weight in the dominant signal, and Meta does not trust it."""

from zuno.trading.agents.case import Case
from zuno.trading.model.cycle import Blackboard, Expert, Meta
from zuno.trading.model.known import Missing
from zuno.trading.rules.price_menu import frame_of
from zuno.trading.rules.score import BoardScore, board_entries, score_entries


def find_own_gap(case: Case, expert: Expert) -> str:
    """Why nothing is known of an expert's own feeds; empty where anything is."""
    features, context = case.features, case.context
    match expert:
        case Expert.LIQUIDITY:
            hours = (features.forced.longs_hour, features.forced.shorts_hour)
            flows = (context.flow, features.whales_day, features.whales_hour, *hours)
            known = features.events.events or any(not isinstance(flow, Missing) for flow in flows)
            return "" if known or not isinstance(context.flow, Missing) else context.flow.reason
        case Expert.MICROSTRUCTURE:
            return features.book.reason if isinstance(features.book, Missing) else ""
        case Expert.MACRO:
            dvol, slope = features.dvol, features.economy.slope
            own = (features.surface, context.dollar, context.stocks, slope)
            return dvol.reason if isinstance(dvol, Missing) and all(isinstance(each, Missing) for each in own) else ""
        case Expert.GEOMETRY:
            frame = frame_of(features, case.bundle.mode.chart[0])
            return frame.reason if isinstance(frame, Missing) else ""


def find_gap(case: Case, expert: Expert) -> str:
    """Why an expert can know nothing: its own feeds are missing, and no candles are read in their place."""
    if expert in (Expert.LIQUIDITY, Expert.MICROSTRUCTURE) and reads_candles(case):
        return ""
    return find_own_gap(case, expert)


def reads_candles(case: Case) -> bool:
    """Whether price and volume stand in for feeds that were never recorded."""
    return case.bundle.candles_only and not isinstance(case.context.action, Missing)


def has_few_books(case: Case) -> bool:
    """Whether the book was looked at less than five times within the minute: it may second, and does not lead."""
    return not isinstance(case.features.book, Missing) and isinstance(case.features.walls, Missing)


def weigh_board(case: Case, meta: Meta, board: Blackboard) -> BoardScore:
    """Silent is who is absent, or has no feed of its own and says nothing; who is neutral on its own feed is not."""
    there = board_entries(board)
    silent = {
        expert
        for expert in Expert
        if expert not in there or (not there[expert].confidence and find_own_gap(case, expert))
    }
    seconds = {Expert.MICROSTRUCTURE} if has_few_books(case) else set[Expert]()
    return score_entries(there, case.bundle.mode, meta.trust_directive.expert, silent=silent, seconds=seconds)
